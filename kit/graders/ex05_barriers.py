"""Exercise 05: barriers inside a program, one where it is needed and no more; and what no barrier can order."""

from __future__ import annotations

import math
import re

import torch

from kit import machine
from kit.dry_run import dry_run
from kit.ghosts import ghost
from kit.graders.barriers import barrier_calls, meeting_picture, races, superfluous
from kit.graders.buffers import Buffer, compare
from kit.graders.paper import meta, on_paper, tell_report
from kit.graders.step import Exercise, Mistake, Step, counted
from kit.simulator.orders import simulated_in

WARPS = (2, 4, 8)


# ---- a kernel whose barriers are judged: 05.1 and 05.2
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
def _race_is(test):
    return lambda f: "race" in f and test(f["race"], f["calls"])


def _between(race, calls):
    low, high = sorted((race.first_line, race.second_line))
    return [call for call in calls if low < call.line < high]


def _loads_behind(kernel, call):
    """True when a load stands behind the barrier."""
    return any("load(" in line for line in kernel.raw_src[call.span[1] + 1 :])


def _says(*words):
    """True when the kernel's source holds one of `words`."""
    return lambda f: "kernel" in f and any(word in f["kernel"].src for word in words)


def _says_in_race(*words):
    says = _says(*words)
    return lambda f: "race" in f and says(f)


IN_A_BRANCH = Mistake(
    "in a branch",
    _race_is(lambda race, calls: any(call.branch for call in calls)),
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


# ---- 05.1: the barrier where it belongs
def _steps_case(size):
    n, BLOCK = size
    x = torch.randint(1, 50, (2, n)).to(torch.float32)
    x = x.to(machine.current().device)
    tmp, out = Buffer((2, n), torch.float32), Buffer((2, n), torch.float32)
    squares = x * x
    given = Buffer((2, n), torch.float32, values=x)
    outputs = [("tmp", tmp, squares), ("out", out, squares.roll(-1, 1) - squares)]
    return f"rows of {n:,}, BLOCK {BLOCK:,}", (given.view, tmp.view, out.view, n, BLOCK), outputs, n


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
            "no barrier", _race_is(lambda _, calls: not calls), "There is no barrier: a warp that is ahead reads what was there before."
        ),
        Mistake(
            "before the store",
            _race_is(lambda race, calls: bool(calls) and calls[-1].line < race.first_line),
            "Does the barrier stand before the store? It orders what stands on its two sides: the store before it, the load behind it.",
        ),
        Mistake(
            "behind the load",
            _race_is(lambda race, calls: bool(calls) and calls[0].line > race.second_line),
            "Does the barrier stand behind the load? By then the load has read what was there.",
        ),
        Mistake(
            "on both sides, not between",
            _race_is(lambda race, calls: not _between(race, calls)),
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


# ---- 05.2: in place, with a reduction
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
            _race_is(lambda _, calls: not calls),
            "There is no barrier of yours, and the sum's own come before the store: what is read back may not be normalised yet.",
        ),
        Mistake(
            "on both sides, not between",
            _race_is(lambda race, calls: calls[0].line < race.first_line and calls[-1].line > race.second_line),
            "There are barriers, and none of them between the store of the normalised row and the loads of its halves.",
        ),
        Mistake(
            "before the store",
            _race_is(lambda race, calls: calls[-1].line < race.first_line),
            "The barrier comes before the normalised row is stored; the sum has barriers there already. It belongs behind that store.",
        ),
        Mistake(
            "between the loads",
            lambda f: "race" in f and _loads_behind(f["kernel"], f["calls"][0]),
            "One of the two halves is read before the barrier: it must stand before both loads.",
        ),
        Mistake(
            "behind the loads",
            _race_is(lambda race, calls: calls[0].line > race.second_line),
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
            lambda f: f.get("name") == "q" and f["one"] and not _says("rsqrt(q", "rsqrt(tl", "tl.sqrt", "scale")(f),
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


# ---- 05.3: two programs
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
            lambda f: _between_programs(f) and _says("atomic")(f),
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


EXERCISE = Exercise("05_barriers", "Barriers", (STEP_1, STEP_2, STEP_3))
