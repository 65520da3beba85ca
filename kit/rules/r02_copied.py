"""Rule 2: what a kernel copied from Inductor brings along: literal sizes, masks that mask nothing, private imports."""

from __future__ import annotations

import ast
import re

from kit.rules.code import codes, is_call, names_in
from kit.rules.note import Note

RULE = 2
_SIZE = re.compile(r"^(?:[xyzr]|r\d+_)numel$")
_BLOCK = re.compile(r"^(?:[XYZR]|R\d+_)BLOCK$")
_MASK = re.compile(r"^(?P<axis>[xyzr]|r\d+_)mask$")
_TEMPORARY = re.compile(r"^tmp\d+$")


def look(subject):
    """The Notes of rule 2."""
    told = []
    for code in codes(subject.kernel):
        told += overwritten(code, subject) + private(code)
        if traces(code):
            told += always_true(code, subject) + literals(code, subject)
    if told:
        return told
    found = traces(codes(subject.kernel)[0])
    what = (
        f"it has names of Inductor's ({', '.join(found)}), and no size of the traced call is left in it"
        if found
        else "nothing of Inductor's"
    )
    text = f"{what}: no argument is replaced by a literal, no mask is constant, no private import"
    return [Note(RULE, "fine", text, "compiled", "no trace", numbers={"traces": len(found)})]


def traces(code):
    """The names by which a function looks like Inductor's, when there are at least two kinds of them; else []."""
    arguments = [one.arg for one in code.tree.args.args]
    sizes = [name for name in arguments if _SIZE.match(name)]
    blocks = [name for name in arguments if _BLOCK.match(name)]
    bound = {one.id for one in ast.walk(code.tree) if isinstance(one, ast.Name) and isinstance(one.ctx, ast.Store)}
    temporaries = sorted(name for name in bound if _TEMPORARY.match(name))
    helpers = ["triton_helpers"] if "triton_helpers" in names_in(code.tree) else []
    kinds = [kind for kind in (sizes, blocks, temporaries if len(temporaries) > 2 else [], helpers) if kind]
    return [kind[0] for kind in kinds] if len(kinds) > 1 else []


def overwritten(code, subject):
    """Notes on an argument that the body replaces by a number: `xnumel = 4096`."""
    arguments = {one.arg for one in code.tree.args.args}
    found = []
    for node in ast.walk(code.tree):
        whole = isinstance(node, ast.Assign) and isinstance(node.value, ast.Constant) and type(node.value.value) is int
        if not whole or len(node.targets) != 1 or getattr(node.targets[0], "id", None) not in arguments:
            continue
        name, literal = node.targets[0].id, node.value.value
        line, source = code.place(node)
        given = [(size, subject.ghosts(size).named.get(name)) for size in subject.sizes] if code.own else []
        other = [(size, value) for size, value in given if isinstance(value, int) and value != literal]
        if other:
            text = (
                f"{name} is replaced by {literal:,}, the size of the traced call; {_at(subject, other[0][0])} it is given as "
                f"{other[0][1]:,} "
                f"and ignored: delete the line"
            )
            numbers = {"literal": literal, "given": other[0][1]}
            found.append(Note(RULE, "wrong", text, "compiled", "size replaced", line, source, numbers))
        else:
            text = f"{name} is replaced by {literal:,}, the size of the traced call: right for that size alone; delete the line"
            found.append(Note(RULE, "fragile", text, "compiled", "size replaced", line, source, {"literal": literal}))
    return found


def _at(subject, size):
    told = subject.ghosts(size).told
    return f"at {told}" if told else "in this launch"


def private(code):
    """A Note on helpers that Inductor imports for its own kernels."""
    module = code.function.fn.__globals__.get("triton_helpers")
    for node in ast.walk(code.tree):
        if isinstance(node, ast.Attribute) and getattr(node.value, "id", None) == "triton_helpers":
            line, source = code.place(node)
            home = getattr(module, "__name__", "torch._inductor.runtime.triton_helpers")
            text = f"triton_helpers.{node.attr} is private to torch ({home}) and may change with it: use Triton's own function, or copy it"
            return [Note(RULE, "fragile", text, "compiled", "private helper", line, source)]
    return []


def always_true(code, subject):
    """Notes on masks that are all True: right while the block divides the size."""
    found = []
    for node in ast.walk(code.tree):
        name = getattr(node.targets[0], "id", "") if isinstance(node, ast.Assign) and len(node.targets) == 1 else ""
        if not _MASK.match(name) or not _full_of_true(node.value):
            continue
        axis = _MASK.match(name)["axis"]
        size, block = f"{axis}numel", f"{axis.upper()}BLOCK"
        line, source = code.place(node)
        pairs = [(subject.ghosts(one).named, one) for one in subject.sizes] if code.own else []
        bad = [(named[size], named[block], one) for named, one in pairs if _whole(named, size, block) and named[size] % named[block]]
        if bad:
            n, width, one = bad[0]
            text = (
                f"{name} masks nothing, and {size} = {n:,} {_at(subject, one)} is no multiple of {block} = {width:,}: the last "
                "block reads and "
                f"writes past the end; use {name} = {axis}index < {size}"
            )
            found.append(Note(RULE, "wrong", text, "compiled", "dead mask", line, source, {"size": n, "block": width}))
        else:
            text = (
                f"{name} masks nothing: Inductor left the comparison out because {block} divided the traced size; use {name} = "
                f"{axis}index < {size}, or another "
                f"size runs past the end"
            )
            found.append(Note(RULE, "fragile", text, "compiled", "dead mask", line, source))
    return found


def _whole(named, *names):
    return all(type(named.get(name)) is int and named[name] > 0 for name in names)


def _full_of_true(node):
    values = [*node.args, *(one.value for one in node.keywords)] if is_call(node, "full") else []
    return any(isinstance(value, ast.Constant) and value.value is True for value in values)


def literals(code, subject):
    """A Note on sizes and strides of the traced call that stand in the index arithmetic as numbers."""
    found = {}
    for node in ast.walk(code.tree):
        if isinstance(node, ast.BinOp) and isinstance(node.op, (ast.Mult, ast.FloorDiv, ast.Mod)):
            sides = ((node.left, node.right), (node.right, node.left))
        elif isinstance(node, ast.Compare) and len(node.comparators) == 1:
            sides = ((node.comparators[0], node.left),)
        else:
            continue
        for side, other in sides:
            whole = isinstance(side, ast.Constant) and type(side.value) is int and side.value > 2
            if whole and any(_index(name) for name in names_in(other)):
                found.setdefault(side.value, node)
    if not found:
        return []
    first = min(found.values(), key=lambda node: node.lineno)
    line, source = code.place(first)
    known = _measures(subject)
    strange = sorted(value for value in found if any(value not in measures for measures in known))
    more = f"; {', '.join(f'{n:,}' for n in strange)} is no size or stride of the tensors at every size given" if strange else ""
    text = (
        f"sizes of the traced call stand in the index arithmetic: {', '.join(f'{n:,}' for n in sorted(found))}{more}; make them "
        "arguments, or "
        f"another shape reads the wrong elements"
    )
    return [Note(RULE, "fragile", text, "compiled", "literal sizes", line, source, {"literals": sorted(found)})]


def _index(name):
    """True for the names that Inductor gives to indices: xindex, x0, r0_1, yoffset."""
    return bool(re.match(r"^(?:[xyzr]\d*(?:_\d+)?|(?:[xyzr]|r\d+_)(?:index|offset))$", name))


def _measures(subject):
    """[the sizes, strides and element counts of the tensors] of each size given."""
    found = []
    for size in subject.sizes:
        tensors = subject.ghosts(size).tensors.values()
        found.append({n for one in tensors for n in (*one.shape, *one.stride(), one.numel())})
    return found
