"""Exercise 09.2: a kernel whose padding leaks and whose views are wrong, judged at the cases of `kit.shapes`, on paper and launched."""

from __future__ import annotations

import torch

from kit import machine
from kit.dry_run import dry_run
from kit.graders.buffers import compare
from kit.graders.launching import compiles
from kit.graders.paper import tell_report
from kit.graders.step import Mistake, Step, counted
from kit.shapes import shapes

BLOCK = 64


def make_rows(M, N):
    """Rows round 3: a mean of 0 would hide what the padding does."""
    x = 3 + torch.randn(M, N, device=machine.current().device)
    out = torch.empty(M, device=machine.current().device)
    return x, out, *x.stride(), *out.stride(), N


def farthest_of(x):
    """The truth: the largest distance from the mean of each row."""
    return (x.double() - x.double().mean(1, keepdim=True)).abs().amax(1).float() if x.shape[0] else x.new_empty(0)


def slips_of(x):
    """{slip: what somebody who has made it gets}, for rows of x. Padding holds 0, as with other=0."""
    x, n = x.double(), x.shape[1]
    mean, by_block = x.mean(1, keepdim=True), x.sum(1, keepdim=True) / BLOCK
    padded = torch.nn.functional.pad(x, (0, BLOCK - n))
    leaks = (padded - mean).abs().amax(1)
    return {
        "padding leaks": leaks,
        "divided by BLOCK": (x - by_block).abs().amax(1),
        "divided by BLOCK, and leaks": (padded - by_block).abs().amax(1),
        "signed": (x - mean).amax(1),
        "largest": x.abs().amax(1),
    }


def grade_farthest(kernel, trial):
    """Judge `farthest_kernel` at sizes and views, each on paper and then launched in guarded memory."""
    trial.evidence = machine.current().evidence
    compiles(trial, kernel, (*make_rows(2, 40), BLOCK), "2 rows of 40", {})
    cases = trial.call(lambda: shapes(kernel, make_rows, {"M": range(6), "N": range(1, BLOCK + 1)}, BLOCK=BLOCK), ran="the cases")
    for case in sorted(cases, key=_order):
        _judge(kernel, trial, case)


def _order(case):
    """What passed before comes first, and a slice of wider rows, which only the row's stride decides, before the other views."""
    return case.sizes["N"] != BLOCK, case.layout in ("every second element", "transposed")


def _judge(kernel, trial, case):
    x, (rows, n) = case.tensors["x_ptr"], (case.sizes["M"], case.sizes["N"])
    view = "" if case.argument is None else f", {case.name.split(', ')[-1]}"
    ran = f"{counted(rows, 'row')} of {n}{view}"
    facts = {"layout": case.layout, "argument": case.argument, "n": n}
    report = trial.call(lambda: dry_run(kernel, (rows,), *case.args, BLOCK=BLOCK), ran=ran)
    tell_report(trial, report, ran, facts)
    memory = not trial.problems
    if rows:
        trial.call(lambda: case.launch((rows,)), ran=ran)
    expected, out = farthest_of(x), case.buffers["out_ptr"]
    if rows and n:
        got = out.view.double()
        facts["fits"] = [name for name, values in slips_of(x).items() if torch.allclose(got, values, rtol=1e-4)]
    right, inside = compare(trial, out, expected, name="out", axes=("row",), ran=ran, facts=facts)
    undefined = [finding for finding in report.told("fragile") if finding.hazard == "masked lane"]
    if undefined and not trial.problems:
        found = undefined[0]
        told = {"ran": ran, "where": f"line: {found.source}", "got": "a value that Triton does not define", "expected": "other="}
        trial.problem("values", f"{ran}: {found.text}", {**facts, "undefined": True}, **told)
    trial.case(ran, values=right and not undefined, memory=memory and inside)


def _fits(name):
    return lambda f: name in f.get("fits", ())


def _view_of(argument, *layouts):
    return lambda f: f.get("argument") == argument and f["layout"] in layouts


STEP_2 = Step(
    number="09.2",
    title="Padding and strides",
    spec="Mend the kernel: at every length up to BLOCK, and whatever the strides of x and out are.",
    answer="kernel",
    call="farthest_kernel(x_ptr, out_ptr, stride_xm, stride_xn, stride_om, N, BLOCK)",
    size="about 3 lines",
    grade=grade_farthest,
    mistakes=(
        Mistake(
            "undefined",
            lambda f: f.get("undefined"),
            "The load has a mask and no other=: Triton does not define what its padding holds, and the mean counts it.",
        ),
        Mistake(
            "out's stride",
            _view_of("out_ptr", "every second element"),
            "Where does row m of out lie? stride_om elements from row to row.",
        ),
        Mistake(
            "the row's stride",
            _view_of("x_ptr", "padded rows"),
            "Is a row of x taken to be N elements after the one before? In a slice of wider rows it is stride_xm.",
        ),
        Mistake(
            "the column's stride",
            _view_of("x_ptr", "every second element", "transposed"),
            "Are the elements of a row taken to lie side by side? They are stride_xn apart.",
        ),
        Mistake(
            "divided by BLOCK, and leaks",
            _fits("divided by BLOCK, and leaks"),
            "The mean is over N elements, not over BLOCK lanes.",
        ),
        Mistake("divided by BLOCK", _fits("divided by BLOCK"), "The mean is over N elements, not over BLOCK lanes."),
        Mistake(
            "padding leaks",
            _fits("padding leaks"),
            "After the mean is subtracted, padding holds minus the mean, which is far away: make it neutral again with tl.where.",
        ),
        Mistake("signed", _fits("signed"), "Is it a distance? An element far below the mean counts as well: tl.abs."),
        Mistake("largest", _fits("largest"), "That is the distance from 0: is the mean subtracted?"),
        Mistake(
            "past the end",
            lambda f: f.get("hazard") == "out of bounds",
            "Has the mask one lane too many, or has the load none? A lane is an element while its number is below N.",
        ),
        Mistake(
            "the neutral value",
            lambda f: isinstance(f.get("got"), float) and f["got"] in (float("inf"), float("-inf")),
            "An infinity in the padding is not neutral: a sum keeps it. Under the sum 0 is, under the maximum of distances too.",
        ),
    ),
    hints=(
        "What do the padding lanes hold after the load, and after the mean is subtracted? What is neutral under a maximum of distances?",
        "Load with other=0.0, so that the sum is right; divide by N; tl.where(mask, tl.abs(x - mean), 0.0) before the maximum. An element "
        "of x lies at row * stride_xm + offs * stride_xn.",
        "x = tl.load(x_ptr + row * stride_xm + offs * stride_xn, mask=mask, other=0.0)\n"
        "d = tl.where(mask, tl.abs(x - tl.sum(x, axis=0) / N), 0.0)\ntl.store(out_ptr + row * stride_om, tl.max(d, axis=0))",
    ),
)
