"""Exercise 10.3: a variance that does not cancel."""

from __future__ import annotations

import torch

from kit.graders.ex10_rows import Task, gives, grade_rows, hard_only, wrong_in
from kit.graders.step import Mistake, Step
from kit.numbers import tolerance

BLOCK = 128
WITHIN = tolerance(torch.float32, 64, roundings=16)  # 300 elements: 3 to a lane, 4 to a thread, 5 across a warp, 2 across warps, and room


def reference(x):
    """The population variance of each row in float64; x (rows, n)."""
    return x.double().var(-1, correction=0)


def scale(x, want):
    """What is added up: squares, 4 times the variance where they are taken from an element of the row instead of the mean, and the error
    of the mean, squared."""
    return 4 * want + WITHIN.summed * x.mean(-1) ** 2


TASK = Task(
    out="out",
    axes=("row",),
    args=lambda x, out, n: (x, out, n, BLOCK),
    out_shape=lambda rows, n: (rows,),
    out_dtype=lambda dtype: torch.float32,
    reference=reference,
    scale=scale,
    within=lambda dtype, n: WITHIN,
    sizes=(300, 127, 128, 129),
    dtypes=(torch.float32, torch.float16),
    left_out=lambda dtype: () if dtype == torch.float16 else ("near max",),  # its variance passes float32's largest
)


def grade_variance(kernel, trial):
    """Judge `variance_kernel`: plain rows, then large means, equal elements, tiny and infinite ones."""
    grade_rows(kernel, trial, TASK)


def _padded(x):
    """The variance with masked lanes counted: each is 0, and so its distance from the mean is the mean."""
    n = x.shape[-1]
    pad = -n % BLOCK
    return x.var(-1, correction=0) + pad * x.mean(-1) ** 2 / n


def _within_blocks(x):
    """The mean over the elements of the variances within their blocks."""
    parts = [part.var(-1, correction=0) * part.shape[-1] for part in x.split(BLOCK, -1)]
    return sum(parts) / x.shape[-1]


def _from_first_block(x):
    return (x - x[:, :BLOCK].mean(-1, keepdim=True)).pow(2).mean(-1)


def _lost(f):
    """The rows with an infinity, whose variance is nan, came out as numbers."""
    return {"half -inf", "one +inf"} & wrong_in(f)


STEP_3 = Step(
    number="10.3",
    title="A variance for every row",
    spec="Compute the variance of each row, divided by n_cols, whatever its mean.",
    answer="kernel",
    call="variance_kernel(x_ptr, out_ptr, n_cols, BLOCK)",
    size="about 12 lines",
    grade=grade_variance,
    mistakes=(
        Mistake("memory", lambda f: f.get("about") == "memory" or "hazard" in f, "It leaves the row: does the mask still hold?"),
        Mistake("not compiled", lambda f: "told" in f, "Triton refuses it: read its words, and look at the types of that line."),
        Mistake("unwritten", lambda f: f.get("unwritten"), "Is the result stored for every row?"),
        Mistake("one less", gives(lambda x: x.var(-1)), "This divides by n_cols - 1: divide by n_cols."),
        Mistake(
            "divided by BLOCK",
            gives(lambda x: x.var(-1, correction=0) * x.shape[-1] / (-(-x.shape[-1] // BLOCK) * BLOCK)),
            "The mean is over n_cols elements; masked lanes are none of them.",
        ),
        Mistake("root", gives(lambda x: x.var(-1, correction=0).sqrt()), "This is the standard deviation: the variance has no root."),
        Mistake("second moment", gives(lambda x: x.pow(2).mean(-1)), "This is the mean of the squares: is the mean subtracted first?"),
        Mistake(
            "masked lanes counted",
            gives(_padded),
            "Masked lanes hold 0, and 0 - mean is not 0: mask the distance as well, before it is squared.",
        ),
        Mistake(
            "within blocks",
            gives(_within_blocks),
            "Each block is measured from its own mean: take one mean for the row.",
        ),
        Mistake(
            "first block",
            gives(_from_first_block),
            "The distances are from the first block's mean: finish the row's first.",
        ),
        Mistake(
            "clamped",
            lambda f: hard_only(f) and _lost(f),
            "A negative variance is made 0, and so is nan: the sign was a symptom. Subtract the mean before you square.",
        ),
        Mistake(
            "cancels",
            lambda f: hard_only(f) and {"mean 1e4", "mean -1e4"} & wrong_in(f) and "normal" not in wrong_in(f),
            "Large means cancel: mean(x²) and mean(x)² are near 100,000,000, each rounded there. Subtract before you square.",
        ),
        Mistake(
            "rounded",
            lambda f: "runs" in f,
            "It is off by more than float32's roundings: what is kept in a narrower type on its way?",
        ),
    ),
    hints=(
        "Which two numbers are subtracted, how large are they when the mean is 10,000, and how far apart are float32's neighbours there?",
        "Two loops: the first adds up x and gives the mean, the second adds up (x - mean)². What do masked lanes hold in each?",
        "second loop: d = tl.where(offs < n_cols, x - mean, 0.0), then acc += d * d; out is tl.sum(acc, axis=0) / n_cols",
    ),
)
