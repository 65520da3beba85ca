"""How exercise 05 judges a kernel whose warps share memory, 05.1 and 05.2: a barrier where it is needed and no more."""

from __future__ import annotations

import torch

from kit import machine
from kit.dry_run import dry_run
from kit.ghosts import ghost
from kit.graders.barriers import barrier_calls, meeting_picture, races, superfluous
from kit.graders.buffers import compare
from kit.graders.paper import tell_report
from kit.graders.step import Mistake, counted

WARPS = (2, 4, 8)


def grade_kernel(kernel, trial, case, sizes):
    """Judge a kernel by `case(size)`, which gives (what it is, arguments, [(name, Buffer, expected)], length of a row), for two programs.

    First the values with one warp, which no race touches; then, from the compiled code, every pair of accesses that no barrier orders, and
    every barrier that orders none; then the values with several warps.
    """
    trial.evidence = machine.current().evidence
    for size in sizes:
        _values(kernel, trial, case(size), 1)
    on_sizes = [(case(size), warps) for size in sizes for warps in WARPS]
    for (ran, args, _, length), warps in on_sizes:
        _race(kernel, trial, f"{ran}, {warps} warps", args, warps, length)
    _count(kernel, trial, [((2,), args, {"num_warps": warps}) for (_, args, _, _), warps in on_sizes])
    for warps in WARPS:
        _values(kernel, trial, case(sizes[0]), warps)


def _values(kernel, trial, case, warps):
    ran, args, outputs, _ = case
    ran = f"{ran}, {counted(warps, 'warp')}"
    facts = {"kernel": kernel, "one": warps == 1}
    paper = tuple(_on_paper(a) for a in args)
    if warps == 1:  # the races of several warps have been told when these are run
        report = trial.call(lambda: dry_run(kernel, (2,), *paper, num_warps=warps), ran=ran)
        tell_report(trial, report, ran, facts)
    legal = not trial.problems
    if legal or not machine.current().live:
        trial.call(lambda: kernel[(2,)](*args, num_warps=warps), ran=ran)
        checked = [
            compare(trial, buffer, expected, name=name, axes=("row", "element"), ran=ran, facts={**facts, "name": name})
            for name, buffer, expected in outputs
        ]
        right, inside = all(right for right, _ in checked), all(inside for _, inside in checked)
        trial.case(ran, values=right, memory=legal and inside)
    trial.case(ran, memory=legal)


def _on_paper(value):
    return ghost(tuple(value.shape), value.dtype, tuple(value.stride())) if isinstance(value, torch.Tensor) else value


def _race(kernel, trial, ran, args, warps, length):
    """A problem for the first pair of lines that race; a case when there is none."""
    paper = tuple(_on_paper(a) for a in args)
    found = trial.call(lambda: races(kernel, (2,), paper, num_warps=warps), ran=ran)
    if found:
        race, calls = found[0], barrier_calls(kernel)
        name = race.argument.removesuffix("_ptr")
        text = (
            f"{ran}: no barrier stands between `{race.first_source}` and `{race.second_source}`: warps {race.warps[0]} and "
            f"{race.warps[1]} meet at element {race.element % length:,} of a row of {name}"
        )
        facts = {"kernel": kernel, "race": race, "calls": calls}
        picture = meeting_picture(kernel, (2,), paper, {"num_warps": warps}, race, length)
        got, expected = "no barrier between", "a barrier between the two lines"
        trial.problem("values", text, facts, ran=ran, where=f"line: {race.second_source}", got=got, expected=expected, picture=picture)
        trial.case(ran, values=False, memory=True)
    trial.case(ran)


def _count(kernel, trial, launches):
    """A problem for the first barrier without which nothing races; a case when each is needed."""
    ran = f"each barrier taken out, {', '.join(map(str, WARPS))} warps"
    paper = [(grid, tuple(_on_paper(a) for a in args), options) for grid, args, options in launches]
    call = trial.call(lambda: superfluous(kernel, paper), ran=ran)
    if call is not None:
        text = f"{call.place} orders nothing: without it no two warps meet, and every launch waits at it"
        picture = {
            "kind": "Bars",
            "title": "Barriers in the kernel",
            "rows": [
                {"label": "written", "value": call.of, "ok": False},
                {"label": "needed at most", "value": call.of - 1, "ok": True},
            ],
        }
        facts = {"kernel": kernel, "superfluous": call}
        trial.problem(
            "answer", text, facts, ran=ran, where=call.place, got="no race without it", expected="a race without it", picture=picture
        )
    trial.case(ran)


# ---- what goes wrong with a barrier
def race_is(test):
    """True when a problem is a race of which `test(race, calls)` holds; `calls` are the kernel's barriers."""
    return lambda f: "race" in f and test(f["race"], f["calls"])


def says(*words):
    """True when the kernel's source holds one of `words`."""
    return lambda f: "kernel" in f and any(word in f["kernel"].src for word in words)


def _says_in_race(*words):
    said = says(*words)
    return lambda f: "race" in f and said(f)


IN_A_BRANCH = Mistake(
    "in a branch",
    race_is(lambda race, calls: any(call.branch for call in calls)),
    "Does the barrier stand in a branch? All warps of every program must come to it.",
)
RERUN = (
    Mistake(
        "volatile",
        _says_in_race("volatile", "cache_modifier", "eviction_policy"),
        "`volatile` and cache modifiers say where a load looks, not when: it still does not wait for another warp's store.",
    ),
    Mistake(
        "an atomic",
        _says_in_race("atomic"),
        "An atomic orders what its own thread did. Warps of a program meet at a barrier.",
    ),
)
SUPERFLUOUS = Mistake(
    "superfluous",
    lambda f: "superfluous" in f and f["superfluous"].of > 1,
    "A barrier is needed where one warp stores what another loads or stores. Take this one out; the others do the work.",
)
SUPERFLUOUS_ALONE = Mistake(
    "superfluous, and alone",
    lambda f: "superfluous" in f,
    "Nothing in this kernel goes from warp to warp through memory, so it needs no barrier at all.",
)
