"""Stores that change what they store: `tl.store` casts to the pointer's element type, and says nothing.

A cast that the source writes out (`.to(...)`, `tl.cast`) is on purpose and is left alone; so is a cast from float32 to float16 or bfloat16.
"""

from __future__ import annotations

import ast
from dataclasses import dataclass

from kit.rules.code import is_call

_INTEGER = {"arith.trunci"}
_TO_INTEGER = {"arith.fptosi", "arith.fptoui"}
_TO_FLOAT8 = {"tt.fp_to_fp", "arith.truncf"}
_BITS = {"arith.shli", "arith.shrui", "arith.shrsi", "arith.andi", "arith.ori", "arith.xori"}
_BOUNDS = {"tt.clampf", "arith.minsi", "arith.maxsi", "arith.minimumf", "arith.maximumf", "arith.minnumf", "arith.maxnumf", "arith.remui"}
_ROUNDS = {"math.floor", "math.ceil", "math.roundeven", "math.round", "math.trunc", "tt.extern_elementwise", "tt.elementwise_inline_asm"}


@dataclass(frozen=True)
class Narrowing:
    """An implicit cast in a store of a Code: `kind` is "integer", "to integer" or "float8"; `bounded` when a clamp, a rounding or bits
    made its value, which then was chosen to fit."""

    code: object
    node: ast.Call
    kind: str
    before: str
    after: str
    line: int  # in the kernel's file
    bounded: bool


def narrowings(program, codes):
    """[Narrowing] of a Program (kit.simulator.program) whose functions are `codes` (kit.rules.code)."""
    made_by = {number: op for op in program.operations() for number in op.results}
    found = {}
    for op in program.operations():
        if op.name != "tt.store":
            continue
        value = made_by.get(op.operands[1])
        while value is not None and value.name in ("tt.splat", "tt.broadcast", "tt.expand_dims", "tt.reshape"):
            value = made_by.get(value.operands[0])
        kind = _kind(value, program)
        if kind is None:
            continue
        before, after = (program.types[number].element for number in (value.operands[0], value.results[0]))
        for code, node in _stores_at(codes, op.location.line):
            if not _explicit(node, code):
                bounded = _bounded(made_by.get(value.operands[0]), made_by)
                found.setdefault((code.name, node.lineno), Narrowing(code, node, kind, before, after, op.location.line, bounded))
    return list(found.values())


def _kind(op, program):
    """What sort of narrowing an operation is, or None."""
    if op is None:
        return None
    after = program.types[op.results[0]].element if op.results else ""
    if op.name in _INTEGER and after in ("i8", "i16"):
        return "integer"
    if op.name in _TO_INTEGER:
        return "to integer"
    return "float8" if op.name in _TO_FLOAT8 and after.startswith("f8") else None


def _stores_at(codes, line):
    """The tl.store calls that stand in line `line` of the kernel's file. One in a function that it calls is named by the calling line."""
    own, *called = codes
    number = line - own.function.starting_line_number + 1
    here = [node for node in ast.walk(own.tree) if isinstance(node, ast.stmt) and not isinstance(node, ast.FunctionDef)]
    here = [node for node in here if node.lineno <= number <= node.end_lineno and not hasattr(node, "body")]
    calls = [call for node in here for call in ast.walk(node) if isinstance(call, ast.Call)]
    stores = [(own, call) for call in calls if is_call(call, "store") and call.lineno <= number <= call.end_lineno]
    if stores:
        return stores
    names = {getattr(call.func, "id", getattr(call.func, "attr", "")) for call in calls}
    inside = [(code, node) for code in called if code.name in names for node in ast.walk(code.tree) if is_call(node, "store")]
    return inside if len(inside) == 1 else []


def _explicit(node, code):
    """True when the stored value is cast in the source, in place or where its name is bound."""
    value = node.args[1] if len(node.args) > 1 else next((one.value for one in node.keywords if one.arg == "value"), None)
    names = {}
    for one in ast.walk(code.tree):
        if isinstance(one, ast.Assign) and len(one.targets) == 1 and isinstance(one.targets[0], ast.Name):
            names.setdefault(one.targets[0].id, []).append(one.value)
    if isinstance(value, ast.Name) and len(names.get(value.id, ())) == 1:
        value = names[value.id][0]
    return value is None or is_call(value, "to", "cast")


def _bounded(op, made_by, deep=4):
    """True when a clamp, a rounding or bit operations made a value, up to `deep` operations back."""
    if op is None or deep == 0:
        return False
    if op.name in _BITS | _BOUNDS | _ROUNDS:
        return True
    return any(_bounded(made_by.get(number), made_by, deep - 1) for number in op.operands)
