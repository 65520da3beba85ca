"""Tensor descriptors: blocks of a tensor by their corner, with its bounds checked by the hardware's copy engine (TMA).

A descriptor's Value holds one row of int64 a program: base address, padding, sizes, strides (in elements). What lies outside the
tensor, on either side, reads as zero (or NaN, when the descriptor says so) and is not written.
"""

from __future__ import annotations

import torch

from kit.simulator.atomics import update, wrote
from kit.simulator.memory import Access
from kit.simulator.values import BY_SIZE, Value, dtype_of, in_full

_PADS_NAN = 2


def make(executor, frame, op):
    rank = (len(op.operands) - 1) // 2
    pointer, *numbers = (frame[number] for number in op.operands)
    padding = torch.tensor([int(op.attribute("padding") or 1)])
    columns = [pointer.data, padding, *(value.data.reshape(-1).to(torch.int64) for value in numbers[: 2 * rank])]
    rows = max(column.shape[0] for column in columns)
    return [Value(torch.stack([column.reshape(-1).expand(rows) for column in columns], dim=1), pointer.argument)]


class _Block:
    """The addresses of a block, and which of them lie inside the tensor. `shape` is the block's, one size a tensor axis."""

    def __init__(self, frame, descriptor, corner, shape, itemsize):
        rank = len(shape)
        self.descriptor = descriptor
        table = descriptor.data
        ones = (1,) * rank
        address = table[:, 0].reshape(-1, *ones)
        inside = torch.ones((1, *ones), dtype=torch.bool)
        for axis, length in enumerate(shape):
            line = [1] * rank
            line[axis] = length
            at = corner[axis].to(torch.int64)
            if at.dim() == 1:  # a corner; a list of rows has two axes and stands for itself
                at = at.reshape(-1, 1) + torch.arange(length)
            at = at.reshape(-1, *line)
            size, stride = (table[:, 2 + axis + k].reshape(-1, *ones) for k in (0, rank))
            address = address + at * stride * itemsize
            inside = inside & (at >= 0) & (at < size)
        self.address, self.inside = address, inside

    def access(self, frame, op, verb):
        return Access(verb, op.location, frame.programs, self.descriptor.argument, Value(self.address, self.descriptor.argument))

    @property
    def pads_nan(self):
        return int(self.descriptor.data[0, 1]) == _PADS_NAN


def load(executor, frame, op):
    kind = op.types[0]
    dtype = dtype_of(kind)
    descriptor, *numbers = op.operands
    corner = [frame[number].data for number in numbers]
    shape = (1,) * (len(corner) - len(kind.shape)) + kind.shape  # leading axes of size 1 may have been dropped
    block = _Block(frame, frame[descriptor], corner, shape, dtype.itemsize)
    bits = executor.memory.load(block.address, block.inside, dtype.itemsize, block.access(frame, op, "reads"))
    data = bits.view(dtype)
    if block.pads_nan:
        data = torch.where(block.inside, data, torch.tensor(float("nan"), dtype=dtype))
    return [Value(data.reshape(-1, *kind.shape))]


def _written(executor, frame, op, operands):
    descriptor, *numbers, source = operands
    kind = executor.kind(source)
    data = in_full(frame[source].data, kind.shape)
    corner = [frame[number].data for number in numbers]
    shape = (1,) * (len(corner) - len(kind.shape)) + kind.shape
    block = _Block(frame, frame[descriptor], corner, shape, data.element_size())
    return block, data.reshape(-1, *shape)


def store(executor, frame, op):
    block, data = _written(executor, frame, op, op.operands)
    bits = data.contiguous().view(BY_SIZE[data.element_size()])
    executor.memory.store(block.address, block.inside, bits, block.access(frame, op, "writes"))
    wrote(executor)
    return []


def reduce(executor, frame, op):
    """Each element of the block combined with what memory holds, by an atomic."""
    block, data = _written(executor, frame, op, op.operands)
    kind = op.text.split(",")[0].strip()
    update(executor, frame, op, block.access(frame, op, "updates"), block.address, data, block.inside, kind)
    return []


OPERATIONS = {
    "tt.make_tensor_descriptor": make,
    "tt.descriptor_load": load,
    "tt.descriptor_store": store,
    "tt.descriptor_gather": load,
    "tt.descriptor_scatter": store,
    "tt.descriptor_reduce": reduce,
}


# ---- descriptors made on the host and passed as arguments (triton.tools.tensor_descriptor.TensorDescriptor)
def is_host(value):
    """True for a TensorDescriptor given as a launch argument."""
    return all(hasattr(value, name) for name in ("base", "shape", "strides", "block_shape"))


def live_arguments(name, kind, value):
    """[(name, kind, value)] that a compiled kernel takes for one: the descriptor itself, its sizes, its strides."""
    sizes = [(f"{name}.shape.{i}", "i32", int(n)) for i, n in enumerate(value.shape)]
    strides = [(f"{name}.stride.{i}", "i64", int(n)) for i, n in enumerate(value.strides)]
    return [(name, kind, value), *sizes, *strides]


def host(name, value):
    """Its Value, the same for all programs."""
    padding = _PADS_NAN if getattr(value, "padding", "zero") == "nan" else 1
    row = [value.base.data_ptr(), padding, *map(int, value.shape), *map(int, value.strides)]
    return Value(torch.tensor([row], dtype=torch.int64), name)
