"""Exercise 05.2: a row normalised and rotated in place, with a sum that brings barriers of its own."""

from __future__ import annotations

import torch

from kit import machine
from kit.graders.buffers import Buffer
from kit.graders.ex05_warps import IN_A_BRANCH, RERUN, SUPERFLUOUS, SUPERFLUOUS_ALONE, grade_kernel, race_is, says
from kit.graders.step import Mistake, Step


def _rotate_case(size):
    D = size
    device = machine.current().device
    q = torch.randn(2, D).to(device)
    angle = torch.rand(D // 2).to(device) * 3
    cos, sin = angle.cos(), angle.sin()
    low, high = (q * torch.rsqrt((q * q).mean(1, keepdim=True) + 1e-6)).chunk(2, 1)
    expected = torch.cat([low * cos - high * sin, high * cos + low * sin], 1)
    row = Buffer((2, D), torch.float32, values=q)
    tables = [Buffer((D // 2,), torch.float32, values=values).view for values in (cos, sin)]
    return f"rows of {D:,}", (row.view, *tables, D), [("q", row, expected)], D


def _loads_behind(kernel, call):
    """True when a load stands behind the barrier."""
    return any("load(" in line for line in kernel.raw_src[call.span[1] + 1 :])


STEP_2 = Step(
    number="05.2",
    title="In place, with a sum",
    spec="Normalise each row of q in place, then rotate its halves in place: the given lines, with as few barriers as they need.",
    answer="kernel",
    call="norm_rotate_kernel(q_ptr, cos_ptr, sin_ptr, D)",
    size="about 8 lines",
    grade=lambda kernel, trial: grade_kernel(kernel, trial, _rotate_case, (256, 1024)),
    mistakes=(
        *RERUN,
        IN_A_BRANCH,
        Mistake(
            "none",
            race_is(lambda _, calls: not calls),
            "There is no barrier of yours, and the sum's own come before the store: what is read back may not be normalised yet.",
        ),
        Mistake(
            "on both sides, not between",
            race_is(lambda race, calls: calls[0].line < race.first_line and calls[-1].line > race.second_line),
            "There are barriers, and none of them between the store of the normalised row and the loads of its halves.",
        ),
        Mistake(
            "before the store",
            race_is(lambda race, calls: calls[-1].line < race.first_line),
            "The barrier comes before the normalised row is stored; the sum has barriers there already. It belongs behind that store.",
        ),
        Mistake(
            "between the loads",
            lambda f: "race" in f and _loads_behind(f["kernel"], f["calls"][0]),
            "One of the two halves is read before the barrier: it must stand before both loads.",
        ),
        Mistake(
            "behind the loads",
            race_is(lambda race, calls: calls[0].line > race.second_line),
            "The barrier comes behind the loads of the halves: by then they have read rows that were not stored yet.",
        ),
        SUPERFLUOUS,
        SUPERFLUOUS_ALONE,
        Mistake(
            "outside",
            lambda f: f.get("about") == "memory",
            "It leaves the row: does the upper half begin at D // 2 of the program's own row?",
        ),
        Mistake(
            "not normalised",
            lambda f: f.get("name") == "q" and f["one"] and not says("rsqrt(q", "rsqrt(tl", "tl.sqrt", "scale")(f),
            "Is the row normalised? It is multiplied by rsqrt(mean of its squares + 1e-6).",
        ),
        Mistake(
            "the lower half",
            lambda f: f.get("name") == "q" and f["first"][1] >= f["shape"][1] // 2,
            "The lower half is right and the upper is not: high * cos + low * sin, of the values before the rotation.",
        ),
        Mistake(
            "values",
            lambda f: f.get("name") == "q",
            "The rotation is low * cos - high * sin and high * cos + low * sin, of the normalised halves.",
        ),
    ),
    hints=(
        "Which store is followed by a load of the same elements in another shape? What does each other barrier order?",
        "The sum brings barriers, so none is needed before it; a half is stored by the warp that loaded it, so none is needed after.",
        "One barrier: behind tl.store(row + offs, q * scale), before low and high are loaded.",
    ),
)
