"""Exercise 05.3: what no barrier can order: a total over many programs, in two launches."""

from __future__ import annotations

import math
import re

import torch

from kit import machine
from kit.graders.barriers import barrier_calls
from kit.graders.buffers import Buffer, compare
from kit.graders.ex05_warps import says
from kit.graders.paper import meta, on_paper, tell_report
from kit.graders.step import Mistake, Step, counted
from kit.simulator.orders import simulated_in

SHARE_BLOCK = 256
UNORDERED = ("wait between programs", "race between programs", "race in a program")
ORDERS = (("last first", "last first"), ("odd first", "middle first"), ("first first", "first first"))


def grade_shares(answer, trial):
    """Judge `shares(x, sums, out)`: each launch on paper, then the values in several orders of programs and warps, then as a plain run."""
    trial.evidence = machine.current().evidence
    for n in (1023, 1, 256, 5_001):
        ran = f"{counted(n, 'element')}, {counted(-(-n // SHARE_BLOCK), 'program')}"
        facts = {"n": n, "blocks": -(-n // SHARE_BLOCK)}
        memory = _shares_on_paper(answer, trial, n, ran, facts)
        right = True
        for warps, programs in ORDERS:
            with simulated_in(warps, programs):
                right = right and _shares_values(answer, trial, n, f"{ran}, programs {programs}", facts | {"order": programs})
        if not trial.problems:
            right = _shares_values(answer, trial, n, ran, facts)
        trial.case(ran, values=right, memory=memory)


def _shares_on_paper(answer, trial, n, ran, facts):
    """True when the launches leave nobody's memory; a race between programs is a problem of the values, and told with what it means."""
    with on_paper() as launches:
        shapes = [meta(shape, torch.float32) for shape in ((n,), (facts["blocks"],), (n,))]
        trial.call(answer, *shapes, ran=f"{ran}, on paper")
    facts |= {"launches": len(launches), "kernels": [launch.kernel for launch in launches]}
    legal = True
    for launch in launches:
        between = [f for hazard in UNORDERED for f in launch.report.of(hazard)]
        for finding in between[:1]:
            name, source = launch.kernel.__name__, finding.source.rstrip(":")
            told = finding.text.split(f"{finding.source}: ", 1)[-1]
            told = re.sub(r"in line (\d+)", lambda match, k=launch.kernel: f"in `{_line(k, int(match[1]))}`", told)
            text = f"{ran}: in {name}, `{source}`: {told}"
            what = facts | {"between": finding.hazard, "finding": finding, "kernel": launch.kernel}
            where = f"line: {finding.source}" if finding.source else name
            trial.problem("values", text, what, ran=ran, where=where, got=finding.hazard, expected="no order of programs needed")
        if not between:
            tell_report(trial, launch.report, ran, facts | {"kernel": launch.kernel})
            legal = legal and bool(launch.report)
    return legal


def _line(kernel, number):
    """A line of the kernel's file, when it is one of the kernel's own."""
    at = number - kernel.starting_line_number
    return kernel.raw_src[at].strip() if 0 <= at < len(kernel.raw_src) else "another line"


def _shares_values(answer, trial, n, ran, facts):
    """Whether out is right; one problem of the values is told, the first."""
    if trial.problems and (machine.current().live or any(problem.picture for problem in trial.problems)):
        return False
    device = machine.current().device
    values = torch.randint(1, 9, (n,)).to(device, torch.float32)
    x = Buffer((n,), torch.float32, values=values)
    before = torch.full((facts["blocks"],), 17.0, device=device)
    sums, out = Buffer((facts["blocks"],), torch.float32, values=before), Buffer((n,), torch.float32)
    trial.call(answer, x.view, sums.view, out.view, ran=ran)
    facts = facts | {"total": values.sum().item(), "stale": (values / before.sum()).tolist()}
    expected = values.double() / values.double().sum()
    right, inside = compare(trial, out, expected, name="out", axes=("element",), ran=ran, facts=facts)
    return right and inside


def _between_programs(f):
    return f.get("between") == "race between programs"


def _stale(f):
    """The wrong element is x over what the sums held before."""
    return math.isclose(f["got"], f["stale"][f["first"][0]], rel_tol=1e-5)


STEP_3 = Step(
    number="05.3",
    title="What no barrier orders",
    spec="out = x / sum(x), over many programs: split the work so that no program needs what another one writes in the same launch.",
    answer="function",
    call="shares(x, sums, out)",
    size="about 7 lines",
    grade=grade_shares,
    mistakes=(
        Mistake(
            "waiting",
            lambda f: f.get("between") == "wait between programs",
            "A loop that waits for other programs ends only if all of them run at the same time, which nothing promises.",
        ),
        Mistake(
            "atomics read in the same launch",
            lambda f: _between_programs(f) and says("atomic")(f),
            "An atomic makes each addition whole, and tells nobody that it was the last: the sum is read while others still add to it.",
        ),
        Mistake(
            "a barrier",
            lambda f: _between_programs(f) and bool(barrier_calls(f["kernel"])),
            "A barrier waits for the warps of its own program. What other programs write in this launch may come later.",
        ),
        Mistake(
            "one launch",
            _between_programs,
            "One launch both writes and reads it, and its programs have no order: the second launch begins when the first has ended.",
        ),
        Mistake(
            "inside a program",
            lambda f: f.get("between") == "race in a program",
            "Here the warps of one program race: it needs a barrier between that store and that load.",
        ),
        Mistake(
            "nothing launched",
            lambda f: "total" in f and f["launches"] == 0,
            "No kernel is launched: launch both, the one that writes the sums first.",
        ),
        Mistake(
            "the sums too late",
            lambda f: "total" in f and f["launches"] > 1 and _stale(f),
            "The sums are read before any launch has written them: is their launch the second one?",
        ),
        Mistake(
            "the sums never",
            lambda f: "total" in f and f["launches"] == 1 and _stale(f),
            "The sums hold what was there before: is the kernel that writes them launched?",
        ),
        Mistake(
            "its own block only",
            lambda f: "total" in f and f["blocks"] > 1 and not f.get("unwritten"),
            "Is x divided by one block's sum, or by some of them? The total is the sum of all sums.",
        ),
        Mistake("not written", lambda f: "total" in f and f.get("unwritten"), "Some of out has no program: one for each block."),
        Mistake(
            "outside",
            lambda f: f.get("about") == "memory",
            "It leaves its argument: BLOCKS is rounded up to a power of two, so the load of the sums needs a mask, and x one too.",
        ),
    ),
    hints=(
        "A program needs the sums of all the others. When is it certain that they have been stored?",
        "When their launch has ended: launch sums_kernel, then divide_kernel, which only reads them.",
        "divide_kernel: sums = tl.load(sums_ptr + blocks, mask=blocks < n_blocks, other=0.0), x / tl.sum(sums). shares: "
        "sums_kernel[grid](x, sums, n, BLOCK=256), then divide_kernel[grid](x, sums, out, n, n_blocks, BLOCK=256, BLOCKS=...).",
    ),
)
