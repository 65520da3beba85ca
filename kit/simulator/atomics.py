"""Atomic read-modify-write and compare-and-swap, for all programs at once: some order of the lanes, one after the other."""

from __future__ import annotations

import torch

from kit.simulator.arithmetic import BINARY
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


def atomic_rmw(executor, frame, op, access):
    """The old values. A lane whose mask is False reads nothing and gives 0."""
    kind = op.text.split(",")[0].strip()
    shape = executor.kind(op.operands[1]).shape
    value = _full(executor, frame, op.operands[1])
    mask = _full(executor, frame, op.operands[2]) if len(op.operands) > 2 else None
    used = bool(op.results) and op.results[0] in _used(executor.program)
    return _each(executor, frame, op, access, (value,), mask, shape, lambda old, new: _COMBINE[kind](old, new), kind if not used else None)


def atomic_cas(executor, frame, op, access):
    """The old values; the new one is stored where the old one had the expected bits."""
    shape = executor.kind(op.operands[1]).shape
    expected, value = (_full(executor, frame, number) for number in op.operands[1:3])

    def swap(old, wanted, new):
        bits = BY_SIZE[old.element_size()] if old.element_size() > 1 else torch.int8
        return torch.where(old.view(bits) == wanted.view(bits), new, old)

    return _each(executor, frame, op, access, (expected, value), None, shape, swap, None)


def _full(executor, frame, number):
    data = in_full(frame[number].data, executor.kind(number).shape)
    return data.expand(frame.n, *data.shape[1:]).reshape(-1)


def _used(program):
    if not hasattr(program, "used_values"):
        program.used_values = {
            n for op in program.operations() for n in (*op.operands, *(v for _, values in op.successors for v in values))
        }
    return program.used_values


def _each(executor, frame, op, access, operands, mask, shape, combine, unused):
    address = _full(executor, frame, op.operands[0])
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
            old_values[lanes[chosen]] = _apply(flat, index[chosen], given, combine, unused)
    return old_values.reshape(frame.n, *shape)


def _apply(flat, index, operands, combine, unused):
    """Update `flat` at `index`, lane after lane where several meet. `unused` names a sum or extreme whose old values nobody reads."""
    if unused in ("add", "fadd") and flat.dtype not in (torch.float16, torch.bfloat16):
        flat.index_add_(0, index, operands[0])
        return torch.zeros_like(operands[0])
    if unused in ("max", "min") and not flat.dtype.is_floating_point:
        flat.scatter_reduce_(0, index, operands[0], "amax" if unused == "max" else "amin")
        return torch.zeros_like(operands[0])
    order = torch.argsort(index, stable=True)
    at = index[order]
    first = torch.ones_like(at, dtype=torch.bool)
    first[1:] = at[1:] != at[:-1]
    position = torch.arange(len(at))
    turn = position - torch.cummax(torch.where(first, position, 0), 0).values  # 0 for the first lane at an address, 1 for the next
    old_values = torch.empty_like(operands[0])
    for now in range(int(turn.max()) + 1):
        lanes = order[turn == now]
        old = flat[index[lanes]]
        flat[index[lanes]] = combine(old, *(operand[lanes] for operand in operands)).to(flat.dtype)
        old_values[lanes] = old
    return old_values
