"""Atomic read-modify-write and compare-and-swap, for all programs at once: some order of the lanes, one after the other.

A kernel that waits (a lock, a flag that another program raises) goes round a loop until an atomic, or a volatile load, reads what it
waits for. `waits` finds such kernels, whose programs have to run one at a time, and a wait that cannot end is refused.
"""

from __future__ import annotations

import torch

from kit.simulator.arithmetic import BINARY
from kit.simulator.memory import source_line
from kit.simulator.program import Unsupported
from kit.simulator.values import BY_SIZE, in_full

_COMBINE = {
    "add": torch.add,
    "fadd": torch.add,
    "max": torch.maximum,
    "min": torch.minimum,
    "umax": BINARY["arith.maxui"],
    "umin": BINARY["arith.minui"],
    "and": torch.bitwise_and,
    "or": torch.bitwise_or,
    "xor": torch.bitwise_xor,
    "exch": lambda old, new: new,
}


ROUNDS = 1000  # a wait that reads the same this often, while nothing was written, cannot end


def waits(program):
    """True when a program may wait for another one: run such programs one at a time, the first one first."""
    return bool(_spinning(program))


def _spinning(program):
    """The ids of the atomics whose result is used, and of the volatile loads, inside a `while` loop."""
    if not hasattr(program, "spinning"):
        loops = [op for op in program.operations() if op.name == "scf.while"]
        program.spinning = {id(op) for loop in loops for op in _inside(loop) if _may_wait(program, op)}
    return program.spinning


def _inside(op):
    for region in op.regions:
        for block in region.blocks:
            for inner in block.operations:
                yield inner
                yield from _inside(inner)


def _may_wait(program, op):
    if op.name == "tt.load":
        return op.attribute("isVolatile") == "true"
    return op.name in ("tt.atomic_cas", "tt.atomic_rmw") and op.results[0] in _used(program)


def wrote(executor):
    """Note that memory changed: whoever waits may go on."""
    executor.writes = getattr(executor, "writes", 0) + 1


def note_wait(executor, frame, op, read):
    """Raise Unsupported when `op`, inside a loop, has read the same for ROUNDS rounds while nothing was written."""
    if id(op) not in _spinning(executor.program):
        return
    book = executor.__dict__.setdefault("waiting", {})
    before, writes, rounds = book.get(id(op), (None, None, 0))
    same = before is not None and writes == getattr(executor, "writes", 0) and torch.equal(before, read)
    book[id(op)] = (read, getattr(executor, "writes", 0), rounds + 1 if same else 0)
    if rounds >= ROUNDS:
        program = ", ".join(map(str, frame.programs[0].tolist()))
        raise Unsupported(
            f"launch: program ({program}) waits at line {op.location.line}: {source_line(op.location)} for what no program before it "
            f"writes. The simulated GPU runs the programs of such a kernel one after the other, so a wait for a later one never ends here; "
            f"on a GPU it ends only if both run at the same time, which nothing promises."
        )


def atomic_rmw(executor, frame, op, access):
    """The old values. A lane whose mask is False reads nothing and gives 0."""
    kind = op.text.split(",")[0].strip()
    shape = executor.kind(op.operands[1]).shape
    value = _full(executor, frame, op.operands[1])
    mask = _full(executor, frame, op.operands[2]) if len(op.operands) > 2 else None
    used = bool(op.results) and op.results[0] in _used(executor.program)
    old = _each(executor, frame, op, access, (value,), mask, shape, _COMBINE[kind], kind if not used else None)
    note_wait(executor, frame, op, old)
    return old


def atomic_cas(executor, frame, op, access):
    """The old values; the new one is stored where the old one had the expected bits."""
    shape = executor.kind(op.operands[1]).shape
    expected, value = (_full(executor, frame, number) for number in op.operands[1:3])

    def swap(old, wanted, new):
        bits = BY_SIZE[old.element_size()] if old.element_size() > 1 else torch.int8
        return torch.where(old.view(bits) == wanted.view(bits), new, old)

    old = _each(executor, frame, op, access, (expected, value), None, shape, swap, None)
    note_wait(executor, frame, op, old)
    return old


def _full(executor, frame, number):
    data = in_full(frame[number].data, executor.kind(number).shape)
    return data.expand(frame.n, *data.shape[1:]).reshape(-1)


def _used(program):
    if not hasattr(program, "used_values"):
        program.used_values = {
            n for op in program.operations() for n in (*op.operands, *(v for _, values in op.successors for v in values))
        }
    return program.used_values


def update(executor, frame, op, access, address, data, inside, kind):
    """Combine `data` with what lies at `address` (n, *shape), where `inside` is True; nobody reads the old values."""
    flat = [part.expand(frame.n, *data.shape[1:]).reshape(-1) for part in (address, data, inside)]
    if kind == "add" and data.dtype.is_floating_point:
        kind = "fadd"
    _on_lanes(executor, frame, access, flat[0], (flat[1],), flat[2], _COMBINE[kind], kind)


def _each(executor, frame, op, access, operands, mask, shape, combine, unused):
    address = _full(executor, frame, op.operands[0])
    return _on_lanes(executor, frame, access, address, operands, mask, combine, unused).reshape(frame.n, *shape)


def _on_lanes(executor, frame, access, address, operands, mask, combine, unused):
    """The old values at the flat `address` of all programs' lanes, each updated by `combine` where `mask` is True."""
    dtype = operands[0].dtype
    lanes = torch.arange(len(address)) if mask is None else mask.nonzero()[:, 0]
    old_values = torch.zeros(len(address), dtype=dtype)
    if len(lanes):
        per_program = len(address) // frame.n
        access.programs = frame.programs[lanes // per_program]
        address, operands = address[lanes], tuple(operand[lanes].contiguous() for operand in operands)
        for allocation, index, here in executor.memory.lanes(address, None, dtype.itemsize, access):
            if allocation.storage is None:
                continue
            chosen = torch.arange(len(lanes)) if here is None else here.nonzero()[:, 0]
            flat = allocation.elements(dtype.itemsize).view(dtype)
            given = tuple(operand[chosen] for operand in operands)
            old_values[lanes[chosen]], changed = _apply(flat, index[chosen], given, combine, unused)
            if changed:
                wrote(executor)
    return old_values


def _apply(flat, index, operands, combine, unused):
    """(the old values, whether memory changed): update `flat` at `index`, lane after lane where several meet. `unused` names a sum or
    extreme whose old values nobody reads."""
    if unused in ("add", "fadd") and flat.dtype not in (torch.float16, torch.bfloat16):
        flat.index_add_(0, index, operands[0])
        return torch.zeros_like(operands[0]), True
    if unused in ("max", "min") and not flat.dtype.is_floating_point:
        flat.scatter_reduce_(0, index, operands[0], "amax" if unused == "max" else "amin")
        return torch.zeros_like(operands[0]), True
    order = torch.argsort(index, stable=True)
    at = index[order]
    first = torch.ones_like(at, dtype=torch.bool)
    first[1:] = at[1:] != at[:-1]
    position = torch.arange(len(at))
    turn = position - torch.cummax(torch.where(first, position, 0), 0).values  # 0 for the first lane at an address, 1 for the next
    old_values = torch.empty_like(operands[0])
    changed = False
    for now in range(int(turn.max()) + 1):
        lanes = order[turn == now]
        old = flat[index[lanes]]
        new = combine(old, *(operand[lanes] for operand in operands)).to(flat.dtype)
        flat[index[lanes]] = new
        old_values[lanes] = old
        changed = changed or not torch.equal(old, new)
    return old_values, changed
