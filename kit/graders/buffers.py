"""Buffers that show what was written where it should not be, or never written at all: guard cells around, poison inside."""

from __future__ import annotations

import math

import torch

from kit import machine

GUARD = 2048  # cells in front and behind: a tile past the end still lands in them
SHOWN = 512  # cells of a picture
RIGHT, WRONG, UNWRITTEN, OUTSIDE = range(4)
NAMES = ("right, or not to be written", "wrong", "never written", "outside, overwritten")
_BITS = {1: torch.int8, 2: torch.int16, 4: torch.int32, 8: torch.int64}
# Of inputs, around and between their elements, and of outputs, in every cell: two values, so that poison that was read
# is not taken for unwritten.
_INPUT_POISON, _OUTPUT_POISON = (-66, math.inf), (-77, math.nan)


def strides_of(shape, wider=None):
    """Row-major strides of `shape`, or of a view of it inside a parent of the shape `wider`."""
    shape = wider or shape
    return tuple(math.prod(max(n, 1) for n in shape[i + 1 :]) for i in range(len(shape)))


class Buffer:
    """A tensor inside a larger allocation: `view` is what the kernel gets, and every cell around and between holds poison.

    With `values` the view holds these, as an input; without, it is poisoned too, as an output. Poison is a value that no case uses.
    """

    def __init__(self, shape, dtype, *, values=None, wider=None, offset=GUARD):
        self.shape, self.dtype = tuple(shape), dtype
        self.strides = strides_of(shape, wider)
        span = 1 + sum((n - 1) * s for n, s in zip(shape, self.strides, strict=True)) if math.prod(shape) else 0
        self.offset = offset
        poison = (_OUTPUT_POISON if values is None else _INPUT_POISON)[dtype.is_floating_point]
        self.parent = torch.full((offset + span + GUARD,), poison, dtype=dtype, device=machine.current().device)
        self.view = self.parent.as_strided(self.shape, self.strides, offset)
        if values is not None:
            self.view.copy_(values)
        self.before = self.parent.view(_BITS[dtype.itemsize]).clone()

    def states(self, expected=None):
        """The state of each cell of the parent, flat. `expected` is what the view should hold; None: nothing should be written."""
        now = self.parent.view(_BITS[self.dtype.itemsize])
        changed = now != self.before
        states = torch.where(changed, OUTSIDE, RIGHT)
        if expected is not None and expected.numel():
            inside = states.as_strided(self.shape, self.strides, self.offset)
            wanted = expected.to(self.view.device, self.dtype)
            same = torch.isclose(self.view.double(), wanted.double(), rtol=1e-5, atol=1e-6)
            written = changed.as_strided(self.shape, self.strides, self.offset)
            inside.copy_(torch.where(same, RIGHT, torch.where(written, WRONG, UNWRITTEN)))
        return states.cpu()

    def index_of(self, cell):
        """The view's index tuple at flat cell `cell` of the parent, or None where it lies outside."""
        left, index = cell - self.offset, []
        if left < 0:
            return None
        for n, s in zip(self.shape, self.strides, strict=True):
            index.append(left // s)
            left -= index[-1] * s
            if index[-1] >= n:
                return None
        return tuple(index) if left == 0 else None


def cells_picture(title, states, center, first, names=NAMES):
    """A picture of the cells around number `center`; `first` is what is subtracted to number them as the reader does."""
    start = max(0, min(center - SHOWN // 4, len(states) - SHOWN)) // 32 * 32
    part = states[start : start + SHOWN].tolist()
    return {"kind": "Cells", "title": title, "rows": part, "names": names, "columns": 32, "first": start - first}


def compare(trial, buffer, expected, *, name, axes, ran, facts=None):
    """Compare an output Buffer with `expected`, and its guard cells with what they were; note a problem of each kind.

    `axes` names the axes of the view, for the sentence. Returns (values are right, no cell outside was written).
    """
    states = buffer.states(expected)
    outside = (states == OUTSIDE).nonzero()[:, 0]
    bad = ((states == WRONG) | (states == UNWRITTEN)).nonzero()[:, 0]
    facts = {**(facts or {}), "outside": len(outside), "bad": len(bad)}
    if len(outside):
        _tell_outside(trial, buffer, states, outside, name, ran, facts)
    if len(bad):
        _tell_values(trial, buffer, states, bad, expected, name, axes, ran, facts)
    return not len(bad), not len(outside)


def _tell_outside(trial, buffer, states, outside, name, ran, facts):
    cell = int(outside[0])
    place = cell - buffer.offset
    n = "1 cell" if len(outside) == 1 else f"{len(outside):,} cells"
    text = f"{ran}: {n} outside {name} overwritten, the first at element offset {place:,}"
    facts = {**facts, "about": "memory"}
    picture = cells_picture(f"{name}, and the guard cells around it", states, cell, buffer.offset)
    trial.problem(
        "memory",
        text,
        facts,
        ran=ran,
        where=f"element offset {place:,} of {name}",
        got="overwritten",
        expected="untouched",
        picture=picture,
    )


def _tell_values(trial, buffer, states, bad, expected, name, axes, ran, facts):
    cell = int(bad[0])
    index = buffer.index_of(cell)
    where = ", ".join(f"{axis} {i:,}" for axis, i in zip(axes, index, strict=True))
    unwritten = int((states == UNWRITTEN).sum())
    last = buffer.index_of(int(bad[-1]))
    wanted = _shown(expected[index])
    got = "never written" if int(states[cell]) == UNWRITTEN else _shown(buffer.view[index])
    facts = {
        **facts,
        "about": "values",
        "unwritten": unwritten,
        "first": index,
        "last": last,
        "shape": buffer.shape,
        "got": buffer.view[index].item(),
    }
    said = f"{where} was never written" if got == "never written" else f"{where} is {got}, expected {wanted}"
    text = f"{ran}: {name} at {said} ({len(bad):,} of {expected.numel():,} wrong)"
    picture = cells_picture(f"{name}: right and wrong elements", states, cell, buffer.offset)
    trial.problem("values", text, facts, ran=ran, where=f"{name} at {where}", got=got, expected=wanted, picture=picture)


def _shown(value):
    value = value.item()
    return f"{value:.4g}" if isinstance(value, float) else f"{value:,}"
