"""Exercise 09.1: count the cells outside a view that a launch has overwritten, from copies of the memory before and after it."""

from __future__ import annotations

import math

import torch

from kit import machine
from kit.graders.step import Mistake, Step

# (name, shape, strides, offset, indices of the view that are written, cells of the memory that are overwritten). The memory has 48 cells.
# All that is no element is NaN before the launch, but for cells 40 to 47, which hold numbers of somebody else.
_ALL = None
CASES = (
    ("nothing written", (6,), (1,), 8, (), ()),
    ("every element written", (6,), (1,), 8, _ALL, ()),
    ("one cell behind", (6,), (1,), 8, _ALL, (14,)),
    ("one cell in front", (6,), (1,), 8, _ALL, (7,)),
    ("the first cell of the memory", (6,), (1,), 8, _ALL, (0, 14)),
    ("a neighbour's number", (6,), (1,), 8, _ALL, (41, 47)),
    ("every second element, all written", (6,), (2,), 8, _ALL, ()),
    ("between every second element", (6,), (2,), 8, _ALL, (9, 11)),
    ("a slice of wider rows, all written", (3, 4), (7, 1), 8, _ALL, ()),
    ("beside a slice of wider rows", (3, 4), (7, 1), 8, _ALL, (12, 13, 19)),
    ("a transposed view, all written", (3, 5), (1, 3), 8, _ALL, ()),
    ("behind a transposed view", (3, 5), (1, 3), 8, _ALL, (23, 24)),
    ("half of the elements", (8,), (1,), 8, (1, 3, 5, 7), (16,)),
    ("a view without elements", (0,), (1,), 8, (), (8, 9)),
    ("a single number", (), (), 20, _ALL, (21,)),
    ("three axes", (2, 3, 2), (16, 4, 1), 8, _ALL, (10, 14, 15, 30)),
)
INSIDE = ("exact", "packed", "span", "none", "no offset")


def memory_of(shape, strides, offset, written, stray):
    """(before, after) of a case, flat float32 tensors."""
    before = torch.full((48,), math.nan)
    before[40:] = torch.arange(8.0)
    view = before.as_strided(shape, strides, offset)
    view.fill_(5.0)
    after = before.clone()
    inside = after.as_strided(shape, strides, offset)
    if written is _ALL:
        inside.fill_(6.0)
    for i in written or ():
        inside[i] = 6.0
    for cell in stray:
        after[cell] = 7.5
    device = machine.current().device
    return before.to(device), after.to(device)


def count_of(before, after, shape, strides, offset, inside="exact", nan_differs=False):
    """How many cells outside the view changed. The keywords make it the answer of somebody who has missed something."""
    changed = before != after if nan_differs else before.view(torch.int32) != after.view(torch.int32)
    mask = torch.zeros_like(before, dtype=torch.bool)
    n = math.prod(shape)
    if inside == "exact":
        mask.as_strided(shape, strides, offset).fill_(True)
    elif inside == "no offset":
        mask.as_strided(shape, strides, 0).fill_(True)
    elif inside == "packed":
        mask[offset : offset + n] = True
    elif inside == "span" and n:
        mask[offset : offset + 1 + sum((m - 1) * s for m, s in zip(shape, strides, strict=True))] = True
    return int((changed & ~mask).sum())


def grade_overwritten(answer, trial):
    """Judge `overwritten` on CASES. All are asked before the first is judged: a cause is what explains every answer."""
    asked = []
    for name, *case in CASES:
        before, after = memory_of(*case)
        got = trial.call(answer, before.clone(), after.clone(), *case[:3], ran=name)
        asked.append(((before, after, *case[:3]), got))
    for (name, shape, strides, offset, *_), (given, got) in zip(CASES, asked, strict=True):
        right = count_of(*given)
        number = _number(got)
        if number != right:
            told = f"{name} (shape {shape}, strides {strides}, offset {offset})"
            facts = {"asked": asked, "got": got, "number": number, "right": right}
            where = "what it returns"
            text = f"{told}: got {got!r:.40}, expected {right}"
            trial.problem("answer", text, facts, ran=name, where=where, got=f"{got!r:.40}", expected=f"{right}", picture=_picture(given))
        trial.case(name)


def _number(got):
    """The whole number that was returned, also as a tensor of one element; None for anything else."""
    if isinstance(got, torch.Tensor) and got.numel() == 1 and got.dtype is not torch.bool:
        got = got.item()
    return got if isinstance(got, int) and not isinstance(got, bool) else None


def _picture(given):
    before, after, shape, strides, offset = (one.cpu() if isinstance(one, torch.Tensor) else one for one in given)
    mask = torch.zeros(len(before), dtype=torch.bool)
    mask.as_strided(shape, strides, offset).fill_(True)
    changed = before.view(torch.int32) != after.view(torch.int32)
    rows = torch.where(mask, torch.where(changed, 3, 2), torch.where(changed, 1, 0)).tolist()
    names = ("outside, as it was", "outside, overwritten", "an element, as it was", "an element, written")
    return {"kind": "Cells", "title": "The memory of this case", "rows": rows, "names": names, "columns": 16}


def _fits(**slips):
    """True when this way of counting explains every answer."""
    return lambda f: "asked" in f and all(_number(got) == count_of(*given, **slips) for given, got in f["asked"])


def _counts_nan(f):
    return any(_fits(inside=inside, nan_differs=True)(f) for inside in INSIDE)


STEP_1 = Step(
    number="09.1",
    title="Look at the guard cells",
    spec="Return how many cells that are no element of the view were changed by a launch.",
    answer="function",
    call="overwritten(before, after, shape, strides, offset)",
    size="about 4 lines",
    grade=grade_overwritten,
    mistakes=(
        Mistake("nothing returned", lambda f: "got" in f and f["got"] is None, "Is the return missing?"),
        Mistake(
            "not a number",
            lambda f: "got" in f and f["number"] is None,
            "How many cells is one whole number: is a sum() missing, over the marks of the cells?",
        ),
        Mistake(
            "NaN",
            _counts_nan,
            "NaN differs from itself: poison that nobody touched counts as changed. Compare the bits, .view(torch.int32).",
        ),
        Mistake("all changes", _fits(inside="none"), "Are the elements themselves counted? A launch may write those."),
        Mistake(
            "packed",
            _fits(inside="packed"),
            "Is the view taken for so many cells in a row? Its strides say where its elements are, and what lies between is not its own.",
        ),
        Mistake(
            "the span",
            _fits(inside="span"),
            "Is everything from the first to the last element the view's? Cells between its elements belong to somebody else.",
        ),
        Mistake("no offset", _fits(inside="no offset"), "Does the view begin at cell 0? It begins at `offset`."),
        Mistake(
            "poison alone",
            lambda f: "asked" in f and all(_number(got) == int((given[0].isnan() & ~given[1].isnan()).sum()) for given, got in f["asked"]),
            "Is only poison looked at? Memory beside a view may hold somebody's numbers, which must not change either.",
        ),
    ),
    hints=(
        "Two marks for each cell: was it changed, and is it an element of the view? Asked is how many are the first and not the second.",
        "A tensor of marks as long as the memory, seen through as_strided(shape, strides, offset), is the view's elements alone. "
        "NaN differs from NaN: compare the bits instead.",
        "inside = torch.zeros_like(before, dtype=torch.bool)\ninside.as_strided(shape, strides, offset).fill_(True)\n"
        "changed = before.view(torch.int32) != after.view(torch.int32)\nthen the number of changed & ~inside",
    ),
)
