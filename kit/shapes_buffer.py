"""A tensor in a larger allocation whose every other cell holds poison: what was overwritten, read by mistake or never written shows."""

from __future__ import annotations

import math

import torch

from kit import machine

GUARD = 2048  # cells in front and behind: a tile past the end still lands in them
RIGHT, WRONG, UNWRITTEN, OUTSIDE = range(4)
BITS = {1: torch.int8, 2: torch.int16, 4: torch.int32, 8: torch.int64}
# Of inputs, around and between their elements, and of outputs, in every cell: two values, so that poison that was read
# is not taken for unwritten.
_INPUT_POISON, _OUTPUT_POISON = (-66, math.inf), (-77, math.nan)


def strides_of(shape, wider=None):
    """Row-major strides of `shape`, or of a view of it inside a parent of the shape `wider`."""
    shape = wider or shape
    return tuple(math.prod(max(n, 1) for n in shape[i + 1 :]) for i in range(len(shape)))


def filled(length, cells, dtype, device):
    """A flat tensor of `length` elements that repeats `cells`, a short tensor of the same dtype. Works for fp8, which torch cannot fill."""
    bits = cells.view(BITS[dtype.itemsize]).to(device)
    return bits.repeat(-(-length // len(bits)))[:length].clone().view(dtype)


class Buffer:
    """A tensor inside a larger allocation: `view` is what the kernel gets, and every cell around and between holds poison.

    With `values` the view holds these, as an input; without, it is poisoned too, as an output. Poison is a value that no case uses, or
    the cells of `poison` in turn. The layout is row-major, that of a slice of `wider`, or `strides` in elements; `offset` and `behind` are
    how many cells lie in front and behind.
    """

    def __init__(self, shape, dtype, *, values=None, wider=None, strides=None, offset=GUARD, behind=GUARD, poison=None, device=None):
        self.shape, self.dtype = tuple(shape), dtype
        self.strides = strides_of(shape, wider) if strides is None else tuple(strides)
        span = 1 + sum((n - 1) * s for n, s in zip(shape, self.strides, strict=True)) if math.prod(shape) else 0
        self.offset, self.span = offset, span
        if poison is None:
            value = (_OUTPUT_POISON if values is None else _INPUT_POISON)[dtype.is_floating_point]
            poison = torch.tensor([value], dtype=torch.float32 if dtype.is_floating_point else torch.int64).to(dtype)
        self.parent = filled(offset + span + behind, poison, dtype, device or machine.current().device)
        self.view = self.parent.as_strided(self.shape, self.strides, offset)
        if values is not None:
            self.view.copy_(values)
        self.before = self.parent.view(BITS[dtype.itemsize]).clone()

    def changed(self):
        """Which cells of the parent are no longer what they were, bit by bit; flat."""
        return self.parent.view(BITS[self.dtype.itemsize]) != self.before

    def of_view(self, flat):
        """A flat tensor over the parent's cells, as the view sees it."""
        return flat.as_strided(self.shape, self.strides, self.offset)

    def outside(self):
        """Which cells of the parent are no element of the view; flat."""
        cells = torch.ones(len(self.before), dtype=torch.bool, device=self.before.device)
        self.of_view(cells).fill_(False)
        return cells

    def states(self, expected=None):
        """The state of each cell of the parent, flat. `expected` is what the view should hold; None: nothing should be written."""
        changed = self.changed()
        states = torch.where(changed, OUTSIDE, RIGHT)
        if expected is not None and expected.numel():
            inside = self.of_view(states)
            wanted = expected.to(self.view.device, self.dtype)
            same = torch.isclose(self.view.double(), wanted.double(), rtol=1e-5, atol=1e-6)
            inside.copy_(torch.where(same, RIGHT, torch.where(self.of_view(changed), WRONG, UNWRITTEN)))
        return states.cpu()

    def index_of(self, cell):
        """The view's index tuple at flat cell `cell` of the parent, or None where it lies outside."""
        left, index = cell - self.offset, [0] * len(self.shape)
        if left < 0:
            return None
        # The widest stride first: a transposed view's last axis is not its narrowest.
        for axis in sorted(range(len(self.shape)), key=lambda axis: -self.strides[axis]):
            if self.strides[axis]:
                index[axis] = left // self.strides[axis]
                left -= index[axis] * self.strides[axis]
            if index[axis] >= self.shape[axis]:
                return None
        return tuple(index) if left == 0 else None
