"""What a kernel's source says about its offsets: a clue to the cause of a problem that a run has already shown."""

from __future__ import annotations

import ast
import textwrap

from triton.runtime import JITFunction


def words_of(kernel):
    """A set of words on what `kernel`'s source does to its offsets.

    "int64" and "uint32": it mentions one. What an int64 cast is applied to: "product" (an expression with a multiplication, directly or by
    name), "loaded" (what a pointer of the cache or of keys gave), "pointer". "compares": a mask looks at an offset's product.
    "at most": a comparison is <=.
    """
    if not isinstance(kernel, JITFunction):
        return frozenset()
    try:
        tree = ast.parse(textwrap.dedent(kernel.src))
    except SyntaxError:
        return frozenset()
    names = {}
    for node in ast.walk(tree):
        if isinstance(node, ast.Assign) and len(node.targets) == 1 and isinstance(node.targets[0], ast.Name):
            names.setdefault(node.targets[0].id, []).append(node.value)
    words = {node.attr for node in ast.walk(tree) if isinstance(node, ast.Attribute)} & {"int64", "uint32"}
    for node in ast.walk(tree):
        operand = _cast_operand(node)
        if operand is not None:
            words |= _of(operand, names)
        if isinstance(node, ast.Compare) and any("product" in _of(side, names) for side in (node.left, *node.comparators)):
            words.add("compares")
        if isinstance(node, ast.Compare) and any(isinstance(operator, ast.LtE) for operator in node.ops):
            words.add("at most")
    return frozenset(words)


def _cast_operand(node):
    """The expression that `node` casts to int64: x.to(tl.int64), x.cast(tl.int64), tl.cast(x, tl.int64); None for anything else."""
    if not isinstance(node, ast.Call) or not isinstance(node.func, ast.Attribute) or node.func.attr not in ("to", "cast"):
        return None
    target = [*node.args, *(keyword.value for keyword in node.keywords)]
    if not any(isinstance(t, ast.Attribute) and t.attr == "int64" for t in target):
        return None
    in_module = isinstance(node.func.value, ast.Name) and node.func.value.id in ("tl", "triton")
    return node.args[0] if in_module and node.args else node.func.value


def _of(node, names, deep=3):
    """What an expression is: "product", "loaded", "pointer"."""
    if isinstance(node, ast.Name):
        if node.id.endswith(("_ptr", "_ptrs")):
            return {"pointer"}
        found = set()
        for value in names.get(node.id, []) if deep else []:
            found |= _of(value, names, deep - 1)
        return found
    if isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute) and node.func.attr == "load":
        return {"loaded"} if "mask" in {keyword.arg for keyword in node.keywords} or len(node.args) > 1 else set()
    if _cast_operand(node) is not None:
        return set()  # wide from here on
    if isinstance(node, ast.BinOp):
        below = _of(node.left, names, deep) | _of(node.right, names, deep)
        if isinstance(node.op, ast.Mult) and not any(_widened(side, names) for side in (node.left, node.right)):
            return below | {"product"}
        return below
    return set()


def _widened(node, names):
    """True when an expression is cast to int64, directly or where its name is bound."""
    if _cast_operand(node) is not None:
        return True
    return isinstance(node, ast.Name) and any(_cast_operand(value) is not None for value in names.get(node.id, []))
