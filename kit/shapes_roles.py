"""Which arguments a kernel loads from and which it stores to, by following their pointers forward through the compiler's IR."""

from __future__ import annotations

import re

_READS = {"tt.load", "tt.descriptor_load", "tt.descriptor_gather", "tt.atomic_rmw", "tt.atomic_cas"}
_WRITES = {"tt.store", "tt.descriptor_store", "tt.descriptor_scatter", "tt.descriptor_reduce", "tt.atomic_rmw", "tt.atomic_cas"}


def roles(program, names):
    """(arguments loaded from, arguments stored to), of `names`, those of the kernel's parameters in order.

    The IR's own names will not do: a parameter that is bound to another name takes that one. A pointer that was itself loaded from
    memory belongs to no argument.
    """
    held = {n: {name} for n, name in zip(program.kernel.parameters, names, strict=True)}
    operations = list(program.operations())
    pairs = [pair for op in operations for pair in _passes(op, program)]
    changed = True
    while changed:  # a loop carries a pointer round: until nothing is added
        changed = False
        for source, target in pairs:
            new = held.get(source, set()) - held.setdefault(target, set())
            held[target] |= new
            changed |= bool(new)
    found = [set(), set()]
    for op in operations:
        for kind, its in zip((_READS, _WRITES), found, strict=True):
            if op.name in kind:
                its |= held.get(op.operands[0], set())
    return tuple(found)


def _points(program, number):
    element = program.types[number].element
    return element.startswith("ptr<") or element.startswith("tensordesc<")


def _passes(op, program):
    """(from, to) value numbers along which a pointer travels through an operation."""
    if op.name == "tt.call":
        called = next((f for name, f in program.functions.items() if re.search(rf"@{re.escape(name)}\b", op.text)), None)
        inner = zip(op.operands, called.parameters, strict=False) if called else ()
        returned = [zip(last.operands, op.results, strict=False) for last in _ends(called.body, "tt.return")] if called else ()
        return [*inner, *(pair for pairs in returned for pair in pairs)]
    if op.name == "scf.for":
        body = op.regions[0]
        carried = body.entry.arguments[1:]
        pairs = [*zip(op.operands[3:], carried, strict=False), *zip(op.operands[3:], op.results, strict=False)]
        for last in _ends(body, "scf.yield"):
            pairs += [*zip(last.operands, carried, strict=False), *zip(last.operands, op.results, strict=False)]
        return pairs
    if op.name == "scf.while":
        before, after = op.regions
        pairs = [*zip(op.operands, before.entry.arguments, strict=False)]
        for last in _ends(before, "scf.condition"):
            pairs += [*zip(last.operands[1:], after.entry.arguments, strict=False), *zip(last.operands[1:], op.results, strict=False)]
        for last in _ends(after, "scf.yield"):
            pairs += [*zip(last.operands, before.entry.arguments, strict=False)]
        return pairs
    if op.name == "scf.if":
        return [
            pair for region in op.regions for last in _ends(region, "scf.yield") for pair in zip(last.operands, op.results, strict=False)
        ]
    return [(operand, result) for result in op.results if _points(program, result) for operand in op.operands]


def _ends(region, name):
    return [op for block in region.blocks for op in block.operations if op.name == name]
