"""Exercise 10.2: a softmax that holds for large logits, and says what a row of nothing gives."""

from __future__ import annotations

import torch
import triton

from kit.graders.ex10_rows import Task, gives, grade_rows, ratios, wrong_in
from kit.graders.step import Mistake, Step
from kit.numbers import tolerance

LARGE = {"mean 1e4", "mean -1e4", "one outlier", "near max", "cancelling"}


def reference(x):
    """softmax(x) in float64, 0 in a row of -inf, nan in a row with +inf; x (rows, n)."""
    x = x.double()
    return torch.where(x.isneginf().all(-1, keepdim=True), 0.0, x.softmax(-1))


TASK = Task(
    out="y",
    axes=("row", "element"),
    args=lambda x, out, n: (x, out, n, triton.next_power_of_2(n)),
    out_shape=lambda rows, n: (rows, n),
    out_dtype=lambda dtype: torch.float32,
    reference=reference,
    within=lambda dtype, n: tolerance(dtype, n, roundings=200),  # exp multiplies a rounding of its argument by up to 88
    sizes=(300, 127, 128, 129),
    dtypes=(torch.float32, torch.float16),
    left_out=lambda dtype: (),
)


def grade_softmax(kernel, trial):
    """Judge `softmax_kernel`: plain rows, then large logits, masked rows, a row of nothing, a row with +inf."""
    grade_rows(kernel, trial, TASK)


def _run(f, name):
    return f.get("runs", {}).get(name)


def _all(f, name, test):
    run = _run(f, name)
    return run is not None and run.wrong and bool(test(run.got).all())


def _uniform(f):
    run = _run(f, "all -inf")
    return run is not None and run.wrong and bool(run.got.isfinite().all()) and bool((run.got > 0).all())


STEP_2 = Step(
    number="10.2",
    title="A softmax for every row",
    spec="Compute softmax(x) for logits of any size; a row of -inf gives zeros, a row with +inf gives nan.",
    answer="kernel",
    call="softmax_kernel(x_ptr, y_ptr, n_cols, BLOCK)",
    size="about 6 lines",
    grade=grade_softmax,
    mistakes=(
        Mistake("memory", lambda f: f.get("about") == "memory" or "hazard" in f, "It leaves the row: does the mask still hold?"),
        Mistake("not compiled", lambda f: "told" in f, "Triton refuses it: read its words, and look at the types of that line."),
        Mistake("unwritten", lambda f: f.get("unwritten"), "Are all elements of the row stored?"),
        Mistake(
            "powers of two",
            gives(lambda x: torch.softmax(x * 0.6931471805599453, -1)),
            "These are powers of 2, not of e: exp(d) is exp2(d * 1.4426950408889634).",
        ),
        Mistake(
            "clamped",
            lambda f: "mean 1e4" in wrong_in(f) and gives(lambda x: torch.softmax(x.clamp(max=80), -1))(_only(f, "mean 1e4")),
            "Logits of 10,000 all weigh the same: are they clamped? Subtracting the maximum keeps their differences.",
        ),
        Mistake(
            "masked maximum",
            lambda f: "mean -1e4" in wrong_in(f) and "mean 1e4" not in wrong_in(f),
            "Rows far below zero come out wrong, and far above they do not: is the maximum taken over zeros as well, or begun at 0?",
        ),
        Mistake(
            "mean",
            lambda f: "one outlier" in wrong_in(f) and "mean 1e4" not in wrong_in(f),
            "One large logit is enough: is what you subtract the largest element? The mean is not.",
        ),
        Mistake(
            "large maximum",
            lambda f: "mean 1e4" in wrong_in(f) and not _all(f, "mean 1e4", torch.isnan) and "normal" not in wrong_in(f),
            "Rows round 10,000 lose digits: is something small added to the maximum, such as a log of the sum? Subtract it by itself.",
        ),
        Mistake(
            "no maximum",
            lambda f: "mean 1e4" in wrong_in(f) and _all(f, "mean 1e4", torch.isnan),
            "exp of 10,000 is inf, and inf / inf is nan: subtract the row's maximum first.",
        ),
        Mistake(
            "uniform",
            _uniform,
            "A row of -inf shares its weight out: it should be zeros. Was -inf replaced by a large number?",
        ),
        Mistake(
            "nan hidden",
            lambda f: "one +inf" in wrong_in(f) and "all -inf" not in wrong_in(f),
            "A row with +inf has no softmax, and must say so: is nan replaced? Guard against the row of -inf alone.",
        ),
        Mistake(
            "row of nothing",
            lambda f: wrong_in(f) == {"all -inf"},
            "A row of -inf gives nan, twice over: -inf - -inf, and 0 / 0. Both need an answer.",
        ),
        Mistake(
            "sum rounded",
            lambda f: "runs" in f and bool(ratios(f)) and all(bool(((r / r.median() - 1).abs() < 1e-5).all()) for r in ratios(f)),
            "Each row is off by one factor, close to 1: in which type is the sum of exps?",
        ),
        Mistake(
            "difference rounded",
            lambda f: "runs" in f and f["dtype"] == torch.float16,
            "float32 rows are right and float16 ones are not: is x - max made in float16? exp turns its rounding into percents.",
        ),
        Mistake("other", lambda f: "runs" in f, "Does each element become exp(x - max) over the sum of these along the row?"),
    ),
    hints=(
        "exp(x - c) / sum of exp(x - c) is the same for every c. Which c keeps every exp at 1 or below?",
        "In a row of -inf the maximum is -inf: use 0 in its place. Then every exp is 0, and so is their sum: divide by 1 there.",
        "top = tl.max(x, axis=0), then x - tl.where(top == -float('inf'), 0.0, top); total = tl.where(total == 0, 1.0, total)",
    ),
)


def _only(f, name):
    return {**f, "runs": {name: f["runs"][name]}}
