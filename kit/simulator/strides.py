"""Loads and stores of evenly spaced elements: one strided view of the memory, and a copy.

These are rules as in lanes.py: they take a pointer that is Lanes, and return None where they cannot, so that the operation runs on
the addresses instead. Programs whose block leaves the pointer's argument, at an edge, are sent there alone.
"""

from __future__ import annotations

import torch

from kit.simulator.lanes import RULES, Box, Lanes, described
from kit.simulator.memory import Access, Memory
from kit.simulator.operations import TABLE as PLAIN
from kit.simulator.values import BY_SIZE, Value, common_shape, dtype_of

SMALL = 1 << 13  # elements up to which it does not pay to ask whether the programs' blocks are evenly spaced


class Block:
    """Where the lanes of a pointer lie in its allocation.

    `full` are the sizes of the access, `kept` those that the mask leaves in some program, `ragged` whether it may leave fewer in
    others. `cut` is the pointer with its axes cut to `kept`.
    """

    def __init__(self, memory, pointer, mask, itemsize):
        self.pointer, self.mask, self.itemsize = pointer, mask, itemsize
        self.home = memory.by_argument.get(pointer.argument)
        self.full = pointer.sizes if mask is None else common_shape(pointer.sizes, mask.sizes)
        self.kept, self.ragged = self.full, False
        if mask is not None:
            limits = [(n, n) if count is None else span for n, count, span in zip(self.full, mask.counts, mask.spans)]
            self.kept, self.ragged = tuple(high for _, high in limits), any(low != high for low, high in limits)
        self.cut = pointer if self.kept == self.full else pointer.cut(self.kept)

    @property
    def usable(self):
        """Whether the lanes can be a view: steps of whole elements, none downward, and aligned starts."""
        home = self.home
        if home is None or home.storage is None or home.base % self.itemsize or 0 in self.kept:
            return False
        return all(step >= 0 for step in self.cut.steps) and self.cut.aligned(self.itemsize) and not self.cut.wraps()

    @property
    def reach(self):
        """How many bytes the last lane lies behind the first."""
        return sum(step * (n - 1) for step, n in zip(self.cut.steps, self.cut.sizes))

    def inside(self):
        """True when all programs' lanes lie in the allocation; else a flag for each program."""
        low, high = self.home.base, self.home.end - self.itemsize
        if low <= self.cut.ends[0] and self.cut.ends[1] <= high:
            return True
        if self.cut.starts is None:
            return torch.zeros(1, dtype=torch.bool)
        starts = self.cut.starts + self.cut.first
        flags = (starts >= low) & (starts <= high - self.reach)
        return True if bool(flags.all()) else flags

    def view(self):
        """(the blocks at every element of the allocation that can begin one, the number of each program's)."""
        size = self.itemsize
        flat = self.home.elements(size)
        strides = (1, *(step // size for step in self.cut.steps))
        view = flat.as_strided((flat.shape[0] - self.reach // size, *self.cut.sizes), strides)
        first = (self.cut.first - self.home.base) // size
        if self.cut.starts is None:
            return view, torch.tensor([first])
        return view, (self.cut.starts >> (size.bit_length() - 1)) + first

    def masks(self, rows):
        """The mask of some programs, on the lanes that are kept."""
        return None if self.mask is None else _cut(self.mask.rows(rows).data, self.kept)


def _block(executor, frame, op, mask_at, itemsize):
    """The Block of a load or store, or None where no view will do."""
    pointer = frame[op.operands[0]]
    mask = frame[op.operands[mask_at]] if len(op.operands) > mask_at else None
    if type(executor.memory) is not Memory or not isinstance(pointer, Lanes) or not (mask is None or isinstance(mask, Box)):
        return None
    block = Block(executor.memory, pointer, mask, itemsize)
    return block if block.usable else None


def _access(frame, op, verb, pointer, rows):
    return Access(verb, op.location, frame.programs[rows], pointer.argument, pointer)


def _cut(data, sizes):
    """The first lanes of each axis; an axis of size 1 stays."""
    for axis, n in enumerate(sizes):
        if data.shape[1 + axis] > n:
            data = data.narrow(1 + axis, 0, n)
    return data


# ---- rules
def load(executor, frame, op):
    dtype = dtype_of(op.types[0])
    block = _block(executor, frame, op, 1, dtype.itemsize)
    if block is None:
        return None
    inside = block.inside()
    if inside is True:
        view, index = block.view()
        bits = view.index_select(0, index)
    else:
        bits = _load_in_two(executor, frame, op, block, inside)
        if bits is None:
            return None
    data = bits != 0 if dtype is torch.bool else bits.view(dtype)
    return [Value(_filled(frame, op, block, data))]


def _load_in_two(executor, frame, op, block, inside):
    """The bits of a load that some programs make outside of the argument: theirs by address, the others' as one view."""
    within, out = inside.nonzero()[:, 0], (~inside).nonzero()[:, 0]
    if not len(within) or len(inside) != frame.n:
        return None
    access = _access(frame, op, "reads", block.pointer, out)
    slow = executor.memory.load(block.cut.rows(out).data, block.masks(out), block.itemsize, access)
    bits = torch.empty((frame.n, *common_shape(block.cut.sizes, slow.shape[1:])), dtype=BY_SIZE[block.itemsize])
    view, index = block.view()
    bits[within] = view.index_select(0, index[within])
    bits[out] = slow
    return bits


def _filled(frame, op, block, data):
    """`data` at the operation's full size, with `other`, or 0, in the lanes that the mask leaves out."""
    if block.mask is None or (block.kept == block.full and not block.ragged):
        return data
    rank = len(block.full)
    other = frame[op.operands[2]].data if len(op.operands) > 2 else torch.zeros((1,) * (1 + rank), dtype=data.dtype)
    if block.ragged:
        data = torch.where(_cut(block.mask.data, block.kept), data, _cut(other, block.kept))
    if block.kept == block.full:
        return data
    result = torch.empty((max(data.shape[0], other.shape[0]), *block.full), dtype=data.dtype)
    result[:] = other
    _cut(result, block.kept)[:] = data
    return result


def store(executor, frame, op):
    pointer, value = (frame[number] for number in op.operands[:2])
    data = value.data
    itemsize = data.element_size()
    block = _block(executor, frame, op, 2, itemsize)
    if block is None or block.kept != block.cut.sizes or any(n > most for n, most in zip(data.shape[1:], block.full)):
        return None  # several lanes of a program at one place
    if pointer.starts is None and frame.n > 1:
        return None  # all programs at one place
    inside = block.inside()
    whole = torch.ones(frame.n, dtype=torch.bool) if inside is True else inside
    if block.ragged:
        for count, n in zip(block.mask.counts, block.kept):
            if isinstance(count, torch.Tensor):
                whole = whole & (count >= n)
    data = data.to(torch.uint8) if data.dtype is torch.bool else data
    bits = _cut(data, block.kept).contiguous().view(BY_SIZE[itemsize]).expand(frame.n, *block.kept)
    if bool(whole.all()):
        _put(*block.view(), bits)
        return []
    rest, whole = (~whole).nonzero()[:, 0], whole.nonzero()[:, 0]
    access = _access(frame, op, "writes", pointer, rest)
    executor.memory.store(block.cut.rows(rest).data, block.masks(rest), bits[rest], access)  # first, since it may be refused
    if len(whole):
        view, index = block.view()
        _put(view, index[whole], bits[whole])
    return []


def _put(view, index, bits):
    """Write each program's block. Evenly spaced blocks that do not overlap are one copy."""
    n = index.shape[0]
    if n == 1:
        view[int(index)] = bits[0]
        return
    if bits.numel() > SMALL:
        apart = int(index[0] - index[1])
        reach = sum(stride * (size - 1) for stride, size in zip(view.stride()[1:], view.shape[1:]))
        if abs(apart) > reach and bool((index[:-1] - index[1:] == apart).all()):
            first = int(min(index[0], index[-1]))
            target = view.as_strided((n, *view.shape[1:]), (abs(apart), *view.stride()[1:]), view.storage_offset() + first)
            target.copy_(bits.flip(0) if apart > 0 else bits)
            return
    view[index] = bits


TABLE = described(PLAIN, RULES | {"tt.load": load, "tt.store": store})
