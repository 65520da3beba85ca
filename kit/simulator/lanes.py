"""Integers and masks that are described instead of computed: most offsets are a start and a step, most masks say `offs < n`.

`Lanes` is start + step·position along each axis of the block, for all programs at once, and `Box` is a mask that is True on the
first lanes of each axis. Both are Values: whoever asks for their `data` gets it, computed then. RULES work on descriptions alone and
return None where they cannot; the operation from the plain table then runs on the data. So a load of a contiguous block costs a copy,
and no arithmetic on its addresses (strides.py).
"""

from __future__ import annotations

import math
import re

import torch

from kit.simulator.values import Value, common_shape, dtype_of

LIMITS = {torch.int32: (-(2**31), 2**31 - 1), torch.int64: (-(2**63), 2**63 - 1)}


class Lanes(Value):
    """first + starts[program] + Σ steps[axis]·position[axis], wrapped to `dtype`, which is int32 or int64.

    `starts` is a tensor of one number a program, or None where all programs have the same. Its numbers lie within `span`, which is
    None until somebody asks, and are multiples of `unit`. An axis along which the value is constant has size 1 and step 0, as in Value.
    """

    __slots__ = ("_data", "dtype", "first", "sizes", "span_", "starts", "steps", "unit")

    def __init__(self, dtype, first, starts, steps, sizes, argument=None, span=None, unit=1):
        self.argument = argument
        self.exact = self.origin = self._data = None
        self.dtype, self.starts, self.span_, self.unit = dtype, starts, span, unit
        self.first = _wrap(first, dtype)
        self.steps, self.sizes = steps, sizes

    @property
    def data(self):
        if self._data is None:
            rank = len(self.sizes)
            data = torch.tensor([self.first], dtype=self.dtype)
            data = (data if self.starts is None else self.starts + data).reshape(-1, *(1,) * rank)
            for axis, (step, n) in enumerate(zip(self.steps, self.sizes)):
                if n > 1:
                    data = data + (torch.arange(n, dtype=self.dtype) * step).reshape(n, *(1,) * (rank - 1 - axis))
            self._data = data
        return self._data

    def rows(self, rows):
        """The same of the programs `rows` alone."""
        if self.starts is None:
            return self
        return Lanes(self.dtype, self.first, self.starts[rows], self.steps, self.sizes, self.argument, self.span_, self.unit)

    def cut(self, sizes):
        """The same with its axes cut to `sizes`."""
        sizes = tuple(map(min, self.sizes, sizes))
        return Lanes(self.dtype, self.first, self.starts, self.steps, sizes, self.argument, self.span_, self.unit)

    @property
    def varies(self):
        """Whether the lanes of a block differ."""
        return any(n > 1 for n in self.sizes)

    @property
    def span(self):
        """(smallest, largest) that a start can be."""
        if self.span_ is None:
            self.span_ = (0, 0) if self.starts is None else tuple(map(int, torch.aminmax(self.starts)))
        return self.span_

    @property
    def ends(self):
        """(smallest, largest) that a lane can be, before wrapping."""
        low = high = self.first
        for step, n in zip(self.steps, self.sizes):
            low, high = low + min(0, step * (n - 1)), high + max(0, step * (n - 1))
        return low + self.span[0], high + self.span[1]

    def wraps(self):
        """Whether a lane may lie outside the dtype, so that it wrapped."""
        low, high = LIMITS[self.dtype]
        if low <= self.ends[0] and self.ends[1] <= high:
            return False
        self.span_ = None  # what was carried along may be wider than what is there
        return not (low <= self.ends[0] and self.ends[1] <= high)

    def aligned(self, size):
        """Whether all lanes of all programs are multiples of `size`, a power of two."""
        if self.first % size or any(step % size for step in self.steps):
            return False
        return self.starts is None or self.unit % size == 0 or not bool((self.starts & (size - 1)).any())


class Box(Value):
    """True where position < count on every axis. counts[axis] is None (all lanes), a number, or a tensor of one number a program.

    spans[axis] is (smallest, largest) that the count can be.
    """

    __slots__ = ("_data", "counts", "sizes", "spans")

    def __init__(self, counts, sizes, spans):
        self.argument = self.exact = self.origin = self._data = None
        self.counts, self.sizes, self.spans = counts, sizes, spans

    @property
    def data(self):
        if self._data is None:
            rank = len(self.sizes)
            data = torch.ones((1,) * (1 + rank), dtype=torch.bool)
            for axis, (count, n) in enumerate(zip(self.counts, self.sizes)):
                if count is not None:
                    within = torch.arange(n) < (count[:, None] if isinstance(count, torch.Tensor) else count)
                    data = data & within.reshape(-1, *(1,) * axis, n, *(1,) * (rank - 1 - axis))
            self._data = data
        return self._data

    def rows(self, rows):
        """The same of the programs `rows` alone."""
        counts = tuple(c[rows] if isinstance(c, torch.Tensor) else c for c in self.counts)
        return Box(counts, self.sizes, self.spans)


def _wrap(number, dtype):
    low, high = LIMITS[dtype]
    return number if low <= number <= high else (number - low) % (high - low + 1) + low


def as_lanes(value):
    """The value as Lanes: what is one, and an integer that is the same in all lanes of a block. Else None."""
    if isinstance(value, Lanes):
        return value
    data = value.data
    if data.dtype not in LIMITS or data.numel() != data.shape[0] or value.exact is not None:
        return None
    rank = data.dim() - 1
    number, starts = (int(data), None) if data.shape[0] == 1 else (0, data.reshape(-1))
    return Lanes(data.dtype, number, starts, (0,) * rank, (1,) * rank, value.argument)


def _operands(frame, op):
    """The operands as Lanes; None when one of them is not, or when none varies along its block."""
    values = [frame[number] for number in op.operands]
    if not any(isinstance(value, Lanes) and value.varies for value in values):
        return None
    lanes = [as_lanes(value) for value in values]
    return None if None in lanes else lanes


def _together(a, b, sign=1):
    """(starts, span, unit) of a ± b; nothing is computed where only one of them has starts."""
    if b.starts is None:
        return a.starts, a.span_, a.unit
    if a.starts is None and sign > 0:
        return b.starts, b.span_, b.unit
    low, high = b.span if sign > 0 else (-b.span[1], -b.span[0])
    starts = -b.starts if a.starts is None else torch.add(a.starts, b.starts, alpha=sign)
    span = (a.span[0] + low, a.span[1] + high)
    return starts, _kept_span(span, starts.dtype), math.gcd(a.unit, b.unit) if a.starts is not None else b.unit


def _kept_span(span, dtype):
    """The span, or None when numbers may have wrapped on the way, and what they are now has to be looked up."""
    low, high = LIMITS[dtype]
    return span if low <= span[0] and span[1] <= high else None


# ---- rules: (executor, frame, operation) -> results, or None
def make_range(executor, frame, op):
    first, last = int(op.attribute("start")), int(op.attribute("end"))
    return [Lanes(torch.int32, first, None, (1 if last - first > 1 else 0,), (last - first,))]


def splat(executor, frame, op):
    value = as_lanes(frame[op.operands[0]])
    if value is None:
        return None
    rank = len(op.types[0].shape)
    return [Lanes(value.dtype, value.first, value.starts, (0,) * rank, (1,) * rank, value.argument, value.span, value.unit)]


def _stepped(dtype, first, starts, steps, sizes, argument=None, span=None, unit=1):
    """Lanes whose steps may have wrapped, or cancelled each other."""
    steps = tuple(_wrap(step, dtype) for step in steps)
    return Lanes(dtype, first, starts, steps, tuple(n if step else 1 for step, n in zip(steps, sizes)), argument, span, unit)


def _sum(sign):
    def run(executor, frame, op):
        pair = _operands(frame, op)
        if pair is None:
            return None
        a, b = pair
        starts, span, unit = _together(a, b, sign)
        steps = [s + sign * t for s, t in zip(a.steps, b.steps)]
        return [_stepped(a.dtype, a.first + sign * b.first, starts, steps, common_shape(a.sizes, b.sizes), None, span, unit)]

    return run


def muli(executor, frame, op):
    pair = _operands(frame, op)
    if pair is None:
        return None
    a, b = pair if pair[0].varies else pair[::-1]
    if b.starts is not None or b.varies:
        return None
    factor = b.first
    starts, span = None, None
    if a.starts is not None:
        starts = a.starts * factor
        span = _kept_span(tuple(sorted(end * factor for end in a.span)), a.dtype)
    return [_stepped(a.dtype, a.first * factor, starts, [step * factor for step in a.steps], a.sizes, None, span, a.unit * factor)]


def widen(executor, frame, op):
    value = frame[op.operands[0]]
    dtype = dtype_of(op.types[0])
    if not isinstance(value, Lanes) or dtype is not torch.int64 or value.wraps():
        return None
    starts = value.starts if value.starts is None else value.starts.to(dtype)
    return [Lanes(dtype, value.first, starts, value.steps, value.sizes, None, value.span, value.unit)]


def addptr(executor, frame, op):
    from kit.simulator.operations import element_size

    pair = _operands(frame, op)
    if pair is None or pair[1].wraps():
        return None
    pointer, offset = pair
    size = element_size(op.types[0])
    scaled = offset
    if offset.starts is not None:
        span = tuple(end * size for end in offset.span)
        scaled = Lanes(torch.int64, 0, offset.starts.to(torch.int64) * size, (), (), None, span, offset.unit * size)
    starts, span, unit = _together(pointer, scaled)
    steps = [p + o * size for p, o in zip(pointer.steps, offset.steps)]
    sizes = common_shape(pointer.sizes, offset.sizes)
    return [_stepped(torch.int64, pointer.first + offset.first * size, starts, steps, sizes, pointer.argument, span, unit)]


def cmpi(executor, frame, op):
    """offs < n, and the like: a Box when the difference of the two sides grows along one axis."""
    how = op.text.split(",")[0].strip()
    pair = _operands(frame, op) if how in ("slt", "sle", "sgt", "sge") else None
    if pair is None or any(side.wraps() or max(map(abs, side.ends)) > 2**62 for side in pair):
        return None
    left, right = pair if how in ("slt", "sle") else pair[::-1]
    steps = [s - t for s, t in zip(left.steps, right.steps)]
    varies = [axis for axis, step in enumerate(steps) if step]
    if len(varies) != 1:
        return None
    axis = varies[0]
    step, sizes = steps[axis], common_shape(left.sizes, right.sizes)
    # True where step·position < gap
    gap = right.first - left.first + (how in ("sle", "sge"))
    low, high = gap + right.span[0] - left.span[1], gap + right.span[1] - left.span[0]
    if step < 0:
        return [Box((None,) * len(sizes), sizes, _whole(sizes))] if low > 0 else None  # else true from some lane on
    counts, spans = [None] * len(sizes), list(_whole(sizes))
    if low <= step * (sizes[axis] - 1):
        spans[axis] = tuple(_count(end, step, sizes[axis]) for end in (low, high))
        if left.starts is None and right.starts is None:
            counts[axis] = spans[axis][0]
        else:
            gaps = sum(sign * side.starts.to(torch.int64) for sign, side in ((1, right), (-1, left)) if side.starts is not None) + gap
            gaps = gaps if step == 1 else torch.div(gaps + (step - 1), step, rounding_mode="floor")
            counts[axis] = gaps.clamp(0, sizes[axis])
    return [Box(tuple(counts), sizes, tuple(spans))]


def _count(gap, step, size):
    return min(max(-(-gap // step), 0), size)


def _whole(sizes):
    return tuple((n, n) for n in sizes)


def andi(executor, frame, op):
    a, b = (frame[number] for number in op.operands)
    a, b = _as_box(a, b), _as_box(b, a)
    if a is None or b is None:
        return None
    sizes = common_shape(a.sizes, b.sizes)
    counts, spans = [], []
    for n, x, y, first, second in zip(sizes, a.counts, b.counts, a.spans, b.spans):
        counts.append(x if y is None else y if x is None else _smaller(x, y))
        spans.append((n, n) if counts[-1] is None else second if x is None else first if y is None else tuple(map(min, first, second)))
    return [Box(tuple(counts), sizes, tuple(spans))]


def _smaller(x, y):
    if isinstance(x, torch.Tensor) and isinstance(y, torch.Tensor):
        return torch.minimum(x, y)
    if isinstance(y, torch.Tensor):
        x, y = y, x
    return x.clamp(max=y) if isinstance(x, torch.Tensor) else min(x, y)


def _as_box(value, beside):
    """`value` as a Box of the same sizes as the Box `beside`: what is one, and a flag that is the same in all lanes of a block."""
    if isinstance(value, Box) or not isinstance(beside, Box):
        return value if isinstance(value, Box) else None
    axis = next((axis for axis, n in enumerate(beside.sizes) if n > 1), None)
    if axis is None or value.data.numel() != value.data.shape[0]:
        return None
    counts, spans = [None] * len(beside.sizes), list(_whole(beside.sizes))
    counts[axis] = value.data.reshape(-1).to(torch.int64) * beside.sizes[axis]
    spans[axis] = (0, beside.sizes[axis])
    return Box(tuple(counts), beside.sizes, tuple(spans))


def _moved(move):
    """An operation that only moves axes: `move` gives the new tuple from an old one and what a new axis holds."""

    def run(executor, frame, op):
        value = frame[op.operands[0]]
        if isinstance(value, Lanes):
            steps, sizes = move(op, value.steps, 0), move(op, value.sizes, 1)
            return [Lanes(value.dtype, value.first, value.starts, steps, sizes, value.argument, value.span_, value.unit)]
        if isinstance(value, Box):
            return [Box(move(op, value.counts, None), move(op, value.sizes, 1), move(op, value.spans, (1, 1)))]
        return None

    return run


def _insert(op, items, new):
    axis = int(op.attribute("axis"))
    return (*items[:axis], new, *items[axis:])


def _permute(op, items, new):
    return tuple(items[int(i)] for i in re.search(r"order = array<i32: ([^>]*)>", op.text)[1].split(","))


RULES = {
    "tt.make_range": make_range,
    "tt.splat": splat,
    "arith.addi": _sum(1),
    "arith.subi": _sum(-1),
    "arith.muli": muli,
    "arith.extsi": widen,
    "arith.index_cast": widen,
    "tt.addptr": addptr,
    "arith.cmpi": cmpi,
    "arith.andi": andi,
    "tt.expand_dims": _moved(_insert),
    "tt.trans": _moved(_permute),
    "tt.broadcast": _moved(lambda op, items, new: items),
    "ttg.convert_layout": _moved(lambda op, items, new: items),
}


def described(table, rules):
    """The table of operations with `rules` tried first."""

    def first(rule, plain):
        def run(executor, frame, op):
            results = rule(executor, frame, op)
            return plain(executor, frame, op) if results is None else results

        return run

    return table | {name: first(rule, table[name]) for name, rule in rules.items() if name in table}
