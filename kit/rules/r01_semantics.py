"""Rule 1: where Triton's semantics are not Python's. From the source, the IR, and one launch on paper."""

from __future__ import annotations

import ast

from kit.errors import KitError
from kit.report import NOTEBOOKS
from kit.rules.code import assigned, codes
from kit.rules.narrowing import narrowings
from kit.rules.note import Note
from kit.rules.signs import divisions_and_wraps
from kit.simulator.launch import read_program

RULE = 1
MINE = {hazard for hazard, notebook in NOTEBOOKS.items() if notebook == "01_semantics"}
_BITWISE = {ast.BitAnd: "&", ast.BitOr: "|", ast.BitXor: "^"}
_WORDS = {"i8": "int8", "i16": "int16", "i32": "int32", "i64": "int64", "f16": "float16", "bf16": "bfloat16", "f32": "float32"}


def look(subject):
    """The Notes of rule 1."""
    found, told = codes(subject.kernel), []
    build = subject.build()
    report = subject.report()
    for code in found:
        told += precedence(code) + folded(code, subject)
    told += booleans(found[0], build, subject)
    told += [_finding(subject, one) for one in report.findings if one.hazard in MINE]
    told += narrow_wraps(subject, build, report)
    try:
        program = read_program(build.ttir, subject.kernel.fn.__code__.co_filename)
        told += [_narrowing(subject, one, report) for one in narrowings(program, found)]
        told += doubles(subject, program, found)
        told += columns(subject, program, found[0])
        divided, wrapped = divisions_and_wraps(build, subject.ghosts())
        told += [_division(subject, one) for one in divided] + [_wrap(subject, one, one.bits) for one in wrapped]
    except KitError as error:
        words = str(error).rstrip(".")
        told.append(Note(RULE, "not visible here", f"signs and casts could not be followed: {words}", "compiled", "could not look"))
    told = _once(note for note in told if note is not None)
    if not any(note.verdict in ("wrong", "fragile") for note in told):
        told.append(_fine(subject, found, report))
    return told


def _once(notes):
    """One Note for each kind and line."""
    kept = {}
    for note in notes:
        kept.setdefault((note.key, note.line, note.text if note.line is None else ""), note)
    return list(kept.values())


def _fine(subject, found, report):
    lines = sum(len(code.texts) for code in found)
    more = f" and {len(found) - 1} function{'s' if len(found) > 2 else ''} it calls" if len(found) > 1 else ""
    text = (
        f"no trap in {lines} lines of {subject.kernel.__name__}{more}: no division of a negative number that matters, no cast that a store "
        f"hides, no undefined value, in {report.scope} at {subject.ghosts().told or 'the size given'}"
    )
    return Note(RULE, "fine", text, "simulated", "no trap", numbers={"lines": lines, "functions": len(found), "programs": report.ran})


# ---- From the source


def precedence(code):
    """Notes on `a < b & (c > d)`: & binds before <, so b is joined with the condition."""
    found = []
    for node in ast.walk(code.tree):
        if not isinstance(node, ast.Compare):
            continue
        for side in (node.left, *node.comparators):
            sign = _BITWISE.get(type(side.op)) if isinstance(side, ast.BinOp) else None
            if sign and any(isinstance(part, ast.Compare) for part in (side.left, side.right)):
                line, source = code.place(node)
                text = (
                    f"{sign} binds before the comparison, so `{ast.unparse(side)}` is formed first and then compared: put each condition "
                    f"in brackets, (a < b) {sign} (c > d){_in(code)}"
                )
                found.append(Note(RULE, "wrong", text, "compiled", "precedence", line, source))
                break
    return found


def _in(code):
    return "" if code.own else f", in {code.name}"


def folded(code, subject):
    """Notes on // and % of negative constants: the compiler folds them as Python does, and rounds the other way at run time."""
    if not code.own:
        return []
    launch = subject.ghosts()
    known = {p.name: launch.named[p.name] for p in subject.kernel.params if _constant(p, launch.named[p.name])}
    bound = assigned(code.tree)
    known = {name: value for name, value in known.items() if name not in bound}
    found = []
    for node in ast.walk(code.tree):
        if not isinstance(node, ast.BinOp) or not isinstance(node.op, (ast.FloorDiv, ast.Mod)):
            continue
        a, b = _value(node.left, known), _value(node.right, known)
        if a is None or b in (None, 0) or (a < 0) == (b < 0) or a % b == 0 or not _names(node, known):
            continue
        python = a // b if isinstance(node.op, ast.FloorDiv) else a % b
        c = -(-a // b) if isinstance(node.op, ast.FloorDiv) else a - b * -(-a // b)
        line, source = code.place(node)
        text = (
            f"`{ast.unparse(node)}` is a constant here and follows Python: {python}; the same expression on a run-time value "
            f"gives {c}, as in "
            f"C, so its result depends on how the kernel is compiled: keep the dividend at zero or more"
        )
        found.append(Note(RULE, "fragile", text, "compiled", "constant division", line, source, {"folded": python, "runtime": c}))
    return found


def _constant(parameter, value):
    """True for an argument that the compiler knows: a constexpr, or an integer of 1 that is not exempt."""
    if type(value) is not int:
        return False
    return parameter.is_constexpr or (value == 1 and not parameter.do_not_specialize)


def _names(node, known):
    return any(isinstance(one, ast.Name) and one.id in known for one in ast.walk(node))


def _value(node, known):
    """The whole number that an expression of constants is, or None."""
    if isinstance(node, ast.Constant):
        return node.value if type(node.value) is int else None
    if isinstance(node, ast.Name):
        return known.get(node.id)
    if isinstance(node, ast.UnaryOp) and isinstance(node.op, ast.USub):
        value = _value(node.operand, known)
        return None if value is None else -value
    if isinstance(node, ast.BinOp) and isinstance(node.op, (ast.Add, ast.Sub, ast.Mult)):
        a, b = _value(node.left, known), _value(node.right, known)
        if None in (a, b):
            return None
        return a + b if isinstance(node.op, ast.Add) else a - b if isinstance(node.op, ast.Sub) else a * b
    return None


def booleans(code, build, subject):
    """Notes on `and` and `or` of blocks: lowered to & and |, and deprecated."""
    first = subject.kernel.starting_line_number
    blocks = {
        frame[1]
        for one in build._ir
        for frame in one.frames
        if ("arith.andi" in one.text or "arith.ori" in one.text) and "xi1>" in one.text
    }
    found = []
    for node in ast.walk(code.tree):
        if isinstance(node, ast.BoolOp) and blocks.intersection(range(first + node.lineno - 1, first + node.end_lineno)):
            word, sign = ("and", "&") if isinstance(node.op, ast.And) else ("or", "|")
            if any(isinstance(one, ast.BinOp) and type(one.op) in _BITWISE for one in ast.walk(node)):
                continue  # the bitwise operation of the line is written out
            line, source = code.place(node)
            text = (
                f"`{word}` joins blocks: Triton takes it as {sign} today and has deprecated it, and Python's short cut does not "
                "exist: write "
                f"{sign}, with each condition in brackets"
            )
            found.append(Note(RULE, "fragile", text, "compiled", "and of blocks", line, source))
    return found


# ---- From the launch on paper


_MEND = {
    "undefined value": "give it a value before the loop or on every branch",
    "division by zero": "replace a divisor of 0 before dividing, such as tl.where(y == 0, 1, y)",
}


def _finding(subject, one):
    line = subject.line(one.line)
    head = f"line {one.line}: {one.source}: "
    mend = f": {_MEND[one.hazard]}" if one.hazard in _MEND else ""
    return Note(RULE, one.verdict, subject.told(one.text.removeprefix(head)) + mend, "simulated", one.hazard, line, one.source)


def narrow_wraps(subject, build, report):
    """Notes on sums and products of 8 or 16 bits that wrap: a constant does not widen them."""
    found = []
    for one in report.told("remark"):
        if one.hazard != "overflow" or one.line is None:
            continue
        at = [i.text for i in build._ir if any(line == one.line for _, line in i.frames)]
        kinds = [kind for kind in ("i8", "i16") for text in at if _arithmetic(text) and (f"x{kind}>" in text or text.endswith(f" {kind}"))]
        if kinds and one.true is not None:
            found.append(_wrap(subject, one, int(kinds[0][1:])))
    return found


def _arithmetic(text):
    return any(name in text for name in ("arith.addi", "arith.subi", "arith.muli"))


def _wrap(subject, one, bits):
    text = (
        f"a sum or product stays {bits} bits wide and wraps: {one.true:,} becomes {one.wrapped:,}; a number in the source does "
        "not widen it: cast with "
        f".to(tl.int32) before"
    )
    numbers = {"true": one.true, "wrapped": one.wrapped}
    return Note(RULE, "fragile", text, "simulated", "narrow integers", subject.line(one.line), one.source, numbers)


def _division(subject, one):
    text = (
        f"{one.dividend:,} {one.sign} {one.divisor:,} is {one.got:,} here, rounded toward zero as in C, where Python gives {one.python:,}; "
        f"{one.reaches} depends on it, first in program {one.program}: if Python's was meant, make the dividend positive first, such as "
        f"(x % n + n) % n for the remainder"
    )
    numbers = {"dividend": one.dividend, "divisor": one.divisor, "triton": one.got, "python": one.python}
    return Note(RULE, "fragile", text, "simulated", "negative division", subject.line(one.line), one.source, numbers)


# ---- From the IR


def _narrowing(subject, one, report):
    line, source = one.code.place(one.node)
    before, after = (_WORDS.get(kind, kind) for kind in (one.before, one.after))
    if one.kind == "integer":
        seen = [f for f in report.findings if f.hazard == "overflow" and f.line == one.line and f.true is not None]
        if not seen:
            return None  # every value fits, as far as paper shows
        wrap = seen[0]
        text = (
            f"the store casts {before} to {after} and says nothing: {wrap.true:,} becomes {wrap.wrapped:,}, first in program "
            f"{wrap.program}; "
            f"give it a wider output, or clamp before"
        )
        numbers = {"true": wrap.true, "wrapped": wrap.wrapped}
        return Note(RULE, "fragile" if one.bounded else "wrong", text, "simulated", "store narrows", line, source, numbers)
    if one.bounded:
        return None
    if one.kind == "to integer":
        text = (
            f"the store casts {before} to {after} and says nothing: fractions are cut off toward zero, and nan or a number out "
            "of range has "
            f"no defined result; round and clamp, and write the cast out with .to(...)"
        )
    else:
        text = (
            f"the store casts {before} to {after} and says nothing: about two decimal digits remain, and nothing bounds the "
            "value before; scale and clamp it, "
            f"and write the cast out with .to(...)"
        )
    return Note(RULE, "fragile", text, "compiled", "store narrows", line, source)


def doubles(subject, program, found):
    """Notes on float64 arithmetic that no argument brought in and no source line asks for."""
    if any(
        value.dtype.itemsize == 8 and value.dtype.is_floating_point
        for value in subject.ghosts().tensors.values()
        if hasattr(value.dtype, "itemsize")
    ):
        return []
    if any("float64" in "".join(code.texts) for code in found):
        return []
    wide = [op for op in program.operations() if op.results and any(program.types[n].element == "f64" for n in op.results)]
    wide = [op for op in wide if op.name.startswith(("arith.", "math.")) and op.name != "arith.constant"]
    if not wide:
        return []
    line = subject.line(wide[0].location.line)
    text = (
        f"{len(wide)} operations are float64, though no argument is: a number that float32 cannot hold makes the expression "
        "float64, which most "
        f"GPUs compute many times slower; write it as a float32, such as tl.full((), x, tl.float32)"
    )
    return [Note(RULE, "fragile", text, "compiled", "float64", line, subject.source(line), {"operations": len(wide)})]


def columns(subject, program, code):
    """Notes on a column that meets a plain block: (N, 1) with (N,) becomes (N, N)."""
    made_by = {number: op for op in program.operations() for number in op.results}
    found = []
    for op in program.operations():
        if len(op.operands) != 2 or not op.name.startswith(("arith.", "tt.addptr")) or not op.results:
            continue
        shape = program.types[op.results[0]].shape
        if len(shape) != 2 or shape[0] != shape[1] or shape[0] == 1:
            continue
        axes = [_expanded(made_by, number) for number in op.operands]
        if sorted(axis for axis, _ in axes if axis is not None) != [0, 1]:
            continue
        row = next(expand for axis, expand in axes if axis == 0)
        line = subject.line(row.location.line)
        if line is None or line != subject.line(op.location.line) or _asks_for_a_row(code, line):
            continue
        text = (
            f"a column of {shape[0]} meets a block of {shape[0]} without an axis, and the result is {shape[0]} x {shape[1]}: "
            "shapes are filled up "
            f"on the left; write [None, :] if that is meant, and leave [:, None] out if not"
        )
        found.append(Note(RULE, "fragile", text, "compiled", "column by row", line, subject.source(line), {"shape": list(shape)}))
    return found[:1]


def _expanded(made_by, number):
    """(axis, operation) of the tt.expand_dims behind a value, through a broadcast; (None, None) for none."""
    op = made_by.get(number)
    while op is not None and op.name == "tt.broadcast":
        op = made_by.get(op.operands[0])
    if op is None or op.name != "tt.expand_dims":
        return None, None
    axis = op.attribute("axis")
    return (int(axis), op) if axis is not None else (None, None)


def _asks_for_a_row(code, line):
    """True when the line itself gives a block an axis: [None, :], expand_dims, reshape."""
    words = ("None", "expand_dims", "reshape", "view", "broadcast")
    return any(word in code.texts[line - 1] for word in words)
