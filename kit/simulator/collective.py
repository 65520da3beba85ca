"""Operations across the elements of a block: reductions, scans, matrix products."""

from __future__ import annotations

import torch

from kit.simulator import arithmetic
from kit.simulator.values import Value

# A region that is one of these operations has a torch equivalent, for dtypes that accumulate as the hardware does.
_WHOLE = {
    "arith.addf": lambda data, axis: data.sum(axis),
    "arith.addi": lambda data, axis: data.sum(axis, dtype=data.dtype),
    "arith.maxsi": torch.amax,
    "arith.minsi": torch.amin,
    "arith.maximumf": torch.amax,
    "arith.minimumf": torch.amin,
}


def reduce(executor, frame, op):
    """tt.reduce: combine along an axis, in a tree of neighbours when the region has no torch equivalent."""
    axis = 1 + int(op.attribute("axis"))
    block = op.regions[0].entry
    data = _along(executor, frame, op, axis)
    only = block.operations[0].name if len(block.operations) == 2 and len(data) == 1 else None
    if only in _WHOLE and data[0].dtype not in (torch.float16, torch.bfloat16, torch.bool):
        return [Value(_WHOLE[only](data[0], axis))]
    while data[0].shape[axis] > 1:
        left, right = ([_strided(d, axis, start) for d in data] for start in (0, 1))
        data = _combine(executor, frame, block, left, right)
    return [Value(d.squeeze(axis)) for d in data]


def scan(executor, frame, op):
    """tt.scan: the inclusive scan, in log2(n) steps; reversed when the operation says so."""
    axis = 1 + int(op.attribute("axis"))
    backward = op.attribute("reverse") == "true"
    block = op.regions[0].entry
    data = _along(executor, frame, op, axis)
    if backward:
        data = [d.flip(axis) for d in data]
    length, distance = data[0].shape[axis], 1
    while distance < length:
        earlier = [d.narrow(axis, 0, length - distance) for d in data]
        later = [d.narrow(axis, distance, length - distance) for d in data]
        combined = _combine(executor, frame, block, earlier, later)
        data = [torch.cat([d.narrow(axis, 0, distance), c], axis) for d, c in zip(data, combined)]
        distance *= 2
    if backward:
        data = [d.flip(axis) for d in data]
    return [Value(d) for d in data]


def _along(executor, frame, op, axis):
    """The operands with equal shapes, and `axis` at its full size."""
    datas = []
    for number in op.operands:
        data = frame[number].data
        full = executor.kind(number).shape[axis - 1]
        datas.append(data.expand(*data.shape[:axis], full, *data.shape[axis + 1 :]))
    return list(torch.broadcast_tensors(*datas))


def _strided(data, axis, start):
    return data[(slice(None),) * axis + (slice(start, None, 2),)]


def _combine(executor, frame, block, left, right):
    """Run the combining region on two lists of operands. Its scalars are given whole blocks, which is the same arithmetic."""
    _, results = executor.inside(block, frame, [Value(data) for data in (*left, *right)])
    return [value.data.expand_as(data) for value, data in zip(results, left)]


def dot(a, b, acc, precision):
    """tt.dot: a·b + acc. 16- and 8-bit floats multiply exactly into fp32; fp32 at the precision that the IR names."""
    rows = max(a.shape[0], b.shape[0], acc.shape[0])
    a, b = (x.expand(rows, *x.shape[1:]) for x in (a, b))
    if not a.dtype.is_floating_point:
        product = torch.matmul(a.to(torch.float64), b.to(torch.float64)).to(torch.int64)  # exact: products of 8 bits
    elif a.dtype is torch.float64:
        product = torch.matmul(a, b)
    else:
        a, b = a.to(torch.float32), b.to(torch.float32)
        if precision == "tf32":
            a, b = arithmetic.to_tf32(a), arithmetic.to_tf32(b)
        product = torch.matmul(a, b)
    return (acc.to(product.dtype) + product).to(acc.dtype)
