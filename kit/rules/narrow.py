"""Sums that are kept in 16 bits, and products in tf32, read off a kernel's IR."""

from __future__ import annotations

from dataclasses import dataclass

NARROW = {"f16": "float16", "bf16": "bfloat16"}
SHORT = 8  # a sum of fewer terms loses no more than a few roundings do
_PASSES = {"tt.trans", "tt.reshape", "tt.broadcast", "tt.expand_dims", "ttg.convert_layout"}


@dataclass(frozen=True)
class Narrow:
    """`kind`: "sum", "running sum", "scan", "dot" or "tf32"; `dtype` in which it is kept; the source line; how many terms, 0: not known."""

    kind: str
    dtype: str
    line: int | None
    length: int = 0


def narrow(program):
    """[Narrow] of a Program, each line and kind once."""
    made_by = {number: op for op in program.operations() for number in op.results}
    found = []
    for op in program.operations():
        if op.name in ("tt.reduce", "tt.scan"):
            found += _combined(program, op)
        elif op.name == "scf.for":
            found += _carried(program, op, made_by)
        elif op.name == "tt.dot":
            found += _product(program, op, made_by)
    return list({(one.kind, one.line): one for one in found}.values())


def _kind(program, number):
    return NARROW.get(program.types[number].element)


def _combined(program, op):
    adds = [inner for region in op.regions for block in region.blocks for inner in block.operations if inner.name == "arith.addf"]
    dtype = next((_kind(program, add.results[0]) for add in adds if _kind(program, add.results[0])), None)
    shape = program.types[op.operands[0]].shape
    axis = op.attribute("axis")
    length = shape[int(axis)] if axis and axis.isdigit() and int(axis) < len(shape) else max([1, *shape])
    word = "sum" if op.name == "tt.reduce" else "scan"
    return [Narrow(word, dtype, op.location.line, length)] if dtype and length >= SHORT else []


def _carried(program, op, made_by):
    """Values that a loop hands on in 16 bits and adds to."""
    body = op.regions[0].entry
    last = body.operations[-1] if body.operations else None
    if last is None or last.name != "scf.yield":
        return []
    found = []
    for carried, number in zip(body.arguments[1:], last.operands, strict=False):
        maker, dtype = made_by.get(number), _kind(program, carried)
        if dtype and maker is not None and maker.name in ("arith.addf", "math.fma") and carried in maker.operands:
            found.append(Narrow("running sum", dtype, maker.location.line))
    return found


def _product(program, op, made_by):
    if dtype := _kind(program, op.results[0]):
        return [Narrow("dot", dtype, op.location.line)]
    if op.attribute("inputPrecision") != "tf32":
        return []
    wide = [number for number in op.operands[:2] if program.types[number].element == "f32" and not _widened(program, number, made_by)]
    return [Narrow("tf32", "tf32", op.location.line)] if wide else []


def _widened(program, number, made_by):
    """Whether a float32 came from 16 bits, which tf32 holds without loss."""
    while number in made_by and made_by[number].name in _PASSES:
        number = made_by[number].operands[0]
    op = made_by.get(number)
    return op is not None and op.name == "arith.extf" and _kind(program, op.operands[0]) is not None
