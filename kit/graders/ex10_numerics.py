"""Exercise 10: three kernels that are right on ordinary numbers. 10.1: an RMSNorm that squares and adds in the type of its input."""

from __future__ import annotations

import torch

from kit import machine
from kit.graders import ex10_softmax, ex10_variance
from kit.graders.ex10_rows import Task, gives, grade_rows, hard_only, ratios, wrong_in
from kit.graders.step import Exercise, Mistake, Step
from kit.numbers import tolerance

BLOCK, EPS = 128, 1e-6
HALVES = (torch.float16, torch.bfloat16)
ALL = {"all 300", "all 200", "all 100"}


def weight(n, dtype):
    """The weights of a row of n: from 0.5 to 2, on the machine's device."""
    return torch.linspace(0.5, 2, n).to(machine.current().device, dtype)


def reference(x):
    """x / sqrt(mean(x²) + eps) * w in float64; x (rows, n)."""
    w = weight(x.shape[-1], x.dtype).cpu().double()
    x = x.double()
    return x / (x.pow(2).mean(-1, keepdim=True) + EPS).sqrt() * w


TASK = Task(
    out="y",
    axes=("row", "element"),
    args=lambda x, out, n: (x, weight(n, x.dtype), out, n, EPS, BLOCK),
    out_shape=lambda rows, n: (rows, n),
    out_dtype=lambda dtype: dtype,
    reference=reference,
    within=lambda dtype, n: tolerance(dtype, n, roundings=16),
    sizes=(300, 127, 128, 129),
    dtypes=(*HALVES, torch.float32),
    left_out=lambda dtype: () if dtype == torch.float16 else ("near max",),  # their squares pass float32's largest, too
    more=(("all 300", 300.0), ("all 200", 200.0), ("all 100", 100.0)),
)


def grade_norm(kernel, trial):
    """Judge `rms_norm_kernel`: plain rows, then rows whose squares, lane sums or totals pass float16's largest."""
    grade_rows(kernel, trial, TASK)


def _root(x, n=None, outside=False, eps=EPS):
    mean = x.pow(2).sum(-1, keepdim=True) / (n or x.shape[-1])
    root = mean.sqrt() + eps if outside else (mean + eps).sqrt()
    return x / root


def _last_block(x):
    n = x.shape[-1]
    return x / (x[:, (n - 1) // BLOCK * BLOCK :].pow(2).sum(-1, keepdim=True) / n + EPS).sqrt()


def _weighted(formula):
    def found(x):
        return formula(x) * torch.linspace(0.5, 2, x.shape[-1], dtype=torch.float64)

    return found


def _zeros(f, names):
    """All of `names` were run, and came out as zeros."""
    return names <= f.get("runs", {}).keys() and all(bool((f["runs"][name].got == 0).all()) for name in names)


def _one_factor(f):
    """Each wrong float32 row is off by one factor near 1: what the row was divided by is rounded."""
    found = ratios(f) if f["dtype"] == torch.float32 else []
    return bool(found) and all(bool(((r / r.median() - 1).abs() < 1e-5).all()) for r in found)


STEP_1 = Step(
    number="10.1",
    title="An RMSNorm for every row",
    spec="Compute x / sqrt(mean(x²) + eps) * w so that no finite float16 row is lost, and round once.",
    answer="kernel",
    call="rms_norm_kernel(x_ptr, w_ptr, y_ptr, n_cols, eps, BLOCK)",
    size="about 7 lines",
    grade=grade_norm,
    mistakes=(
        Mistake("memory", lambda f: f.get("about") == "memory" or "hazard" in f, "It leaves the row: does the mask still hold?"),
        Mistake("not compiled", lambda f: "told" in f, "Triton refuses it: read its words, and look at the types of that line."),
        Mistake("unwritten", lambda f: f.get("unwritten"), "Are all elements of the row stored?"),
        Mistake("no weight", gives(_root), "Is w left out?"),
        Mistake(
            "divided by BLOCK",
            gives(_weighted(lambda x: _root(x, -(-x.shape[-1] // BLOCK) * BLOCK))),
            "The mean is over n_cols elements; masked lanes are none of them.",
        ),
        Mistake(
            "last block only",
            gives(_weighted(_last_block)),
            "Only the last block is in the sum: does acc add up?",
        ),
        Mistake("no eps", lambda f: "zeros" in wrong_in(f), "A row of zeros is divided by 0: is eps added to the mean?"),
        Mistake("eps outside", gives(_weighted(lambda x: _root(x, outside=True))), "eps belongs to the mean, inside the root."),
        Mistake(
            "total in float16",
            lambda f: _zeros(f, ALL),
            "Rows of 100s come out as zeros: each square fits float16, and their total does not. In which type does tl.sum add?",
        ),
        Mistake(
            "lanes in float16",
            lambda f: _zeros(f, ALL - {"all 100"}),
            "Rows of 200s come out as zeros: a square of 40,000 fits float16, two of them do not. Which type has the accumulator?",
        ),
        Mistake(
            "squares in float16",
            lambda f: _zeros(f, {"all 300"}),
            "Rows of 300s come out as zeros: 300 * 300 is past 65,504. In which type is the product made? A cast after it comes too late.",
        ),
        Mistake(
            "clamped",
            lambda f: hard_only(f) and {"one outlier", "all 300"} & wrong_in(f) and "normal" not in wrong_in(f),
            "Large rows come out wrong, and not as zeros: is something clamped? Nothing needs to be, in float32.",
        ),
        Mistake(
            "root rounded",
            lambda f: "runs" in f and _one_factor(f),
            "Each row is off by one factor, close to 1: the sum, or the root, is rounded on its way. Keep it in float32.",
        ),
        Mistake(
            "rounded twice",
            lambda f: "runs" in f,
            "Elements are off by more than one rounding: is x * scale rounded before w? Let the store alone round.",
        ),
    ),
    hints=(
        "Which type has x * x when x is float16? Where does that type end, and what is one over the root of infinity?",
        "Make x a float32 as it is loaded: then the squares, the accumulator, tl.sum, and the products with scale and w all are.",
        "x = tl.load(...).to(tl.float32) and acc = tl.zeros([BLOCK], tl.float32); below, y = x.to(tl.float32) * scale * w",
    ),
)

EXERCISE = Exercise("10_numerics", "Numerics", (STEP_1, ex10_softmax.STEP_2, ex10_variance.STEP_3))
