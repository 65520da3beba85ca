"""What a grader tells of a Buffer (kit/shapes_buffer.py): cells that were overwritten around it, wrong and missing values inside."""

from __future__ import annotations

from kit.shapes_buffer import GUARD, OUTSIDE, RIGHT, UNWRITTEN, WRONG, Buffer, strides_of

__all__ = ["GUARD", "NAMES", "OUTSIDE", "RIGHT", "UNWRITTEN", "WRONG", "Buffer", "cells_picture", "compare", "strides_of"]
SHOWN = 512  # cells of a picture
NAMES = ("right, or not to be written", "wrong", "never written", "outside, overwritten")


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
