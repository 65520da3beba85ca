"""Exercise 05.1: the barrier where it belongs, between a store and the load of what another warp has stored."""

from __future__ import annotations

import torch

from kit import machine
from kit.graders.buffers import Buffer
from kit.graders.ex05_warps import IN_A_BRANCH, RERUN, SUPERFLUOUS, SUPERFLUOUS_ALONE, grade_kernel, race_is
from kit.graders.step import Mistake, Step


def _steps_case(size):
    n, BLOCK = size
    x = torch.randint(1, 50, (2, n)).to(torch.float32)
    x = x.to(machine.current().device)
    tmp, out = Buffer((2, n), torch.float32), Buffer((2, n), torch.float32)
    squares = x * x
    given = Buffer((2, n), torch.float32, values=x)
    outputs = [("tmp", tmp, squares), ("out", out, squares.roll(-1, 1) - squares)]
    return f"rows of {n:,}, BLOCK {BLOCK:,}", (given.view, tmp.view, out.view, n, BLOCK), outputs, n


def _between(race, calls):
    low, high = sorted((race.first_line, race.second_line))
    return [call for call in calls if low < call.line < high]


STEP_1 = Step(
    number="05.1",
    title="Where it belongs",
    spec="Store the squares in tmp, read each one's right neighbour back from tmp, store the difference; with the barrier in its place.",
    answer="kernel",
    call="steps_kernel(x_ptr, tmp_ptr, out_ptr, n, BLOCK)",
    size="about 4 lines",
    grade=lambda kernel, trial: grade_kernel(kernel, trial, _steps_case, ((1000, 1024), (255, 256), (64, 64))),
    mistakes=(
        *RERUN,
        IN_A_BRANCH,
        Mistake(
            "no barrier", race_is(lambda _, calls: not calls), "There is no barrier: a warp that is ahead reads what was there before."
        ),
        Mistake(
            "before the store",
            race_is(lambda race, calls: bool(calls) and calls[-1].line < race.first_line),
            "Does the barrier stand before the store? It orders what stands on its two sides: the store before it, the load behind it.",
        ),
        Mistake(
            "behind the load",
            race_is(lambda race, calls: bool(calls) and calls[0].line > race.second_line),
            "Does the barrier stand behind the load? By then the load has read what was there.",
        ),
        Mistake(
            "on both sides, not between",
            race_is(lambda race, calls: not _between(race, calls)),
            "There are barriers, and none of them between the two lines.",
        ),
        SUPERFLUOUS,
        SUPERFLUOUS_ALONE,
        Mistake(
            "tmp never written",
            lambda f: f.get("name") == "tmp" and f.get("unwritten"),
            "Is tmp written? Its squares are part of the result.",
        ),
        Mistake(
            "x in tmp",
            lambda f: f.get("name") == "tmp",
            "tmp gets the squares, x * x, of every element of the row.",
        ),
        Mistake(
            "the end of the row",
            lambda f: f.get("name") == "out" and f["bad"] <= 2,
            "Only the end of each row is wrong: its right neighbour is the first element of the same row, (offs + 1) % n.",
        ),
        Mistake(
            "outside",
            lambda f: f.get("about") == "memory",
            "It leaves the row: do the offsets start at the program's own row, and does each load and store have the mask?",
        ),
        Mistake(
            "difference",
            lambda f: f.get("name") == "out",
            "out is the right neighbour's square less the own one: is it another neighbour, or the other sign?",
        ),
    ),
    hints=(
        "Which line stores what another warp loads? The barrier stands between these two lines, and all warps come to it.",
        "Store to tmp; barrier; load from tmp at (offs + 1) % n; store the difference to out.",
        "tl.store(tmp_ptr + row + offs, x * x, mask=mask); tl.debug_barrier(); "
        "right = tl.load(tmp_ptr + row + (offs + 1) % n, mask=mask, other=0.0); tl.store(out_ptr + row + offs, right - x * x, mask=mask)",
    ),
)
