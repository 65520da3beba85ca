"""Exercise 11: a benchmark to repair; what an operation moves and computes is in ex11_work.py, doubtful results in ex11_results.py."""

from __future__ import annotations

import math
import statistics

import torch

from kit.graders.ex11_results import STEP_3
from kit.graders.ex11_stand_in import N, Operation, StandIn
from kit.graders.ex11_work import STEP_2
from kit.graders.step import Exercise, Mistake, Step, Stop, counted

_REFUSALS = (ValueError, AssertionError)


# ---- 11.1: the benchmark
def _last_wrong(out):
    out[-1] += 0.5
    return out


def _one_nan(out):
    out[N // 2] = math.nan
    return out


def _half_done(out):
    out[N // 2 :] = 0.0
    return out


# Held back from the reader: (true µs, timed calls) of right operations, and what is wrong with the wrong ones.
RIGHT_ONES = ((8.0, 15), (400.0, 1), (3.0, 24))
WRONG_ONES = (("its second half never computed", _half_done), ("its last element wrong", _last_wrong), ("one element nan", _one_nan))


def grade_benchmark(answer, trial):
    """Judge `time_us` on a stand-in GPU: right operations whose time is known, then wrong ones, which are not to be timed."""
    for us, calls in RIGHT_ONES:
        _right_operation(answer, trial, us, calls)
    for what, spoil in WRONG_ONES:
        _wrong_operation(answer, trial, what, spoil)


def _right_operation(answer, trial, us, calls):
    machine = StandIn()
    op = Operation(machine, us)
    ran = f"a stand-in GPU, an operation of {us:g} µs, {counted(calls, 'call')}"
    try:
        got = trial.call(answer, op, machine.reference, machine.make, machine.flush, calls, machine.cuda, ran=ran, expect=_REFUSALS)
    except _REFUSALS as error:
        same = {entry.inputs for entry in machine.log if entry.what == "op"} & {e.inputs for e in machine.log if e.what == "reference"}
        said = f"{type(error).__name__}: {str(error).strip().splitlines()[0] if str(error).strip() else 'no words'}"
        told = {"ran": ran, "where": "the check", "got": said, "expected": f"about {us:g} µs"}
        trial.problem("answer", f"{ran}: a right operation is refused", {"refused": True, "same": bool(same)}, **told)
        raise Stop from None
    facts = seen_in(machine, got, calls)
    if found := _fault(facts, us):
        where, text = found
        shown = f"{got:,.2f} µs" if facts["number"] else f"{got!r:.40}"
        told = {"ran": ran, "where": where, "got": shown, "expected": f"{_expected(facts, us):,.2f} µs, or near it"}
        trial.problem("answer", f"{ran}: {text}", facts, picture=_times_picture(facts, us), **told)
    trial.case(ran)


def seen_in(machine, got, calls):
    """What a run of an answer shows: the number, the samples read from events, and what lay between the events of each."""
    samples = [us for _, _, us in machine.pairs]
    between = [machine.log[start + 1 : end] for start, end, _ in machine.pairs]
    kinds = {entry.what for part in between for entry in part}
    ops = [entry for part in between for entry in part if entry.what == "op"]
    before = [machine.log[:start] for start, _, _ in machine.pairs]
    return {
        "got": got,
        "number": isinstance(got, (int, float)) and not isinstance(got, bool) and math.isfinite(got),
        "calls": calls,
        "samples": samples,
        "inside": kinds,
        "compiled": any(op.compiled for op in ops),
        "warm": any(op.warm for op in ops),
        "each": [sum(entry.what == "op" for entry in part) for part in between],
        "true": [op.cold_us for op in ops],
        "after flush": {_since_flush(part) for part in before},
        "flushed": any(entry.what == "flush" for entry in machine.log),
    }


def _since_flush(log):
    """What was asked since the last flush, as one word: "make" or "op" (the inputs are in the cache again), "sync", or ""."""
    since = []
    for entry in reversed(log):
        if entry.what == "flush":
            break
        since.append(entry.what)
    return next((word for word in ("make", "op", "reference", "sync") if word in since), "")


def _expected(facts, us):
    return statistics.median(facts["true"]) if len(facts["true"]) == facts["calls"] else us


def _fault(facts, us):
    """(where, what) of the first thing that is wrong with a run, or None. Notes in facts["fault"] which it is."""
    got, samples, calls = facts["got"], facts["samples"], facts["calls"]
    gaps = [sample - sum(true) for sample, true in zip(samples, _by_pair(facts), strict=True)]
    # Ordered so that each fault is told before one that it causes.
    faults = (
        ("number", not facts["number"], "what it returns", "no number comes back"),
        ("no events", not samples, "what it returns", "no pair of events was read"),
        ("make", "make" in facts["inside"], "between the events", "the inputs are made in the timed region"),
        ("reference", "reference" in facts["inside"], "between the events", "the reference runs in the timed region"),
        ("flush", "flush" in facts["inside"], "between the events", "the flush is in the timed region"),
        ("compile", facts["compiled"], "between the events", "the first call of op is timed, and it compiles"),
        ("empty", 0 in facts["each"], "between the events", "nothing ran between two events"),
        ("warm", facts["warm"], "between the events", "op finds its inputs in the L2 cache"),
        (
            "several",
            max(facts["each"], default=1) > 1,
            "between the events",
            f"{max(facts['each'], default=1)} calls lie between two events",
        ),
        ("gap", max(gaps, default=0.0) > 2, "between the events", f"the GPU stands idle for {max(gaps, default=0.0):,.0f} µs of a sample"),
        ("count", len(samples) != calls, "the events", f"{counted(len(samples), 'pair')} of events read, for {counted(calls, 'call')}"),
        ("value", facts["number"] and not math.isclose(got, _expected(facts, us), rel_tol=1e-3), "what it returns", ""),
    )
    for name, wrong, where, text in faults:
        if wrong:
            facts["fault"] = name
            return where, text or f"got {got:,.2f} µs, and the median of the samples is {statistics.median(samples):,.2f}"
    return None


def _by_pair(facts):
    true = iter(facts["true"])
    return [[next(true) for _ in range(n)] for n in facts["each"]]


def _times_picture(facts, us):
    rows = [{"label": "true time", "value": round(_expected(facts, us), 2), "ok": True}]
    if facts["number"] and facts["got"] >= 0:
        rows.append({"label": "returned", "value": round(facts["got"], 2), "ok": False})
    if facts["samples"]:
        rows.append({"label": "fastest sample", "value": round(min(facts["samples"]), 2), "ok": None})
        rows.append({"label": "slowest sample", "value": round(max(facts["samples"]), 2), "ok": None})
    log = max(row["value"] for row in rows) > 30 * us and min(row["value"] for row in rows) > 0
    return {"kind": "Bars", "title": "Time of one call", "unit": "µs", "rows": rows, "scale": "log" if log else "linear"}


def _wrong_operation(answer, trial, what, spoil):
    machine = StandIn()
    op = Operation(machine, 8.0, spoil)
    ran = f"a stand-in GPU, an operation with {what}"
    told = {"ran": ran, "expected": "a ValueError or an AssertionError, and nothing timed"}
    try:
        got = trial.call(answer, op, machine.reference, machine.make, machine.flush, 15, machine.cuda, ran=ran, expect=_REFUSALS)
    except _REFUSALS:
        timed = sum(entry.what == "record" for entry in machine.log) // 2
        if timed:
            text = f"{ran}: refused, but only after {counted(timed, 'call')} had been timed"
            trial.problem("answer", text, {"late": True}, where="the check", got=f"{timed} timed", **told)
        trial.case(ran)
        return
    asked = any(entry.what == "reference" for entry in machine.log)
    facts = {"missed": what, "asked": asked}
    shown = f"{got:,.2f} µs" if isinstance(got, float) else f"{got!r:.40}"
    text = f"{ran}: it is timed all the same"
    trial.problem("answer", text, facts, where="the check", got=shown, picture=_wrong_picture(spoil), **told)
    trial.case(ran)


def _wrong_picture(spoil):
    right = spoil(torch.ones(N)) == 1.0
    title = "What the operation computed"
    return {"kind": "Cells", "title": title, "rows": (~right).int().tolist(), "names": ("right", "wrong"), "columns": 64}


def _is(name):
    return lambda f: f.get("fault") == name


def _returns(function):
    """True when the number is this function of the samples, and not their median."""

    def seen(facts):
        return facts.get("fault") == "value" and math.isclose(facts["got"], function(facts["samples"]), rel_tol=1e-6)

    return seen


def _told(words):
    return lambda f: words in f.get("told", "")


STEP_1 = Step(
    number="11.1",
    title="Repair the benchmark",
    spec="Return the median µs of a call from a cold cache: checked first, compiled before, and nothing else between the events.",
    answer="function",
    call="time_us(op, reference, make, flush, calls, cuda)",
    size="about 12 lines",
    grade=grade_benchmark,
    mistakes=(
        Mistake(
            "not waited",
            _told("must be completed"),
            "An event can be read when the GPU has passed it: wait with cuda.synchronize() after the loop, then read.",
        ),
        Mistake("not recorded", _told("must be recorded"), "Each pair needs start.record() before the call and end.record() after it."),
        Mistake("no timing", _told("enable_timing"), "An event keeps a time only when it is made with enable_timing=True."),
        Mistake("no number", _is("number"), "Return one number, the median in µs. Is the return missing?"),
        Mistake(
            "host's clock",
            _is("no events"),
            "The host's clock sees when calls are queued, not when the GPU runs them: time with pairs of cuda.Event.",
        ),
        Mistake("inputs inside", _is("make"), "make() runs kernels of its own: call it once, before the loop."),
        Mistake("check inside", _is("reference"), "Compare with the reference before the loop: between the events its time counts too."),
        Mistake("flush inside", _is("flush"), "Overwriting the cache takes longer than the call: flush() before start.record()."),
        Mistake("compile inside", _is("compile"), "A first call compiles, for a quarter of a second here: call op once before the loop."),
        Mistake("nothing timed", _is("empty"), "Is op called after start.record() and before end.record()?"),
        Mistake(
            "made after the flush",
            lambda f: f.get("fault") == "warm" and f["flushed"] and "make" in f["after flush"],
            "make() after flush() writes the inputs, and so puts them into the cache again.",
        ),
        Mistake(
            "several calls",
            lambda f: f.get("fault") in ("warm", "several") and max(f["each"]) > 1,
            "Of several calls between two events only the first comes from a cold cache: time each call with a pair of its own.",
        ),
        Mistake(
            "no flush", lambda f: f.get("fault") == "warm" and not f["flushed"], "The last call left its inputs in the L2 cache: flush()."
        ),
        Mistake(
            "flushed once",
            _is("warm"),
            "Each call fills the cache again: flush() before every timed call, and let nothing else run between.",
        ),
        Mistake(
            "sync before the start",
            lambda f: f.get("fault") == "gap" and "sync" in f["after flush"],
            "After a wait the GPU has nothing to do until the host has launched op, and the events contain that. "
            "Leave no synchronize between flush() and start.record().",
        ),
        Mistake(
            "idle", _is("gap"), "The GPU is done before the host has queued the next thing. Queue op behind something that takes long."
        ),
        Mistake("count", _is("count"), "Time `calls` calls, no more and no fewer, with a pair of events each."),
        Mistake("mean", _returns(statistics.fmean), "A mean follows the few calls that something disturbed. The median does not."),
        Mistake("minimum", _returns(min), "The fastest call is luck. The median says what a call usually takes."),
        Mistake("maximum", _returns(max), "The slowest call was disturbed. The median says what a call usually takes."),
        Mistake("milliseconds", _returns(lambda s: statistics.median(s) / 1e3), "elapsed_time() gives milliseconds, and µs are asked for."),
        Mistake("the first", _returns(lambda s: s[0]), "One sample is one sample: take the median of all."),
        Mistake("the sum", _returns(sum), "That is the time of all calls together."),
        Mistake("value", _is("value"), "The samples are right. What is returned is not their median in µs."),
        Mistake(
            "other inputs",
            lambda f: f.get("refused") and not f["same"],
            "make() gives new inputs at each call: give op and reference the same.",
        ),
        Mistake(
            "to the bit",
            lambda f: f.get("refused"),
            "Another order of the same sum rounds otherwise, and is right: compare with a tolerance, as torch.allclose does.",
        ),
        Mistake("timed first", lambda f: f.get("late"), "Check first: a wrong operation's time is of no use, however long it took."),
        Mistake(
            "never checked",
            lambda f: "missed" in f and not f["asked"],
            "The result is never compared with the reference, so the fastest operation is the one that does nothing.",
        ),
        Mistake(
            "nan",
            lambda f: f.get("missed", "").endswith("nan"),
            "A comparison with nan is false, so `difference > limit` lets it pass. Ask whether all is close, not whether something is far.",
        ),
        Mistake("in part", lambda f: "missed" in f, "The comparison does not look at every element, or its tolerance forgives too much."),
    ),
    hints=(
        "Sort what the old code does into three: once before the loop, in each round before start.record(), between the events. "
        "What must stand between them?",
        "Before the loop: make, op, reference, compare; that compiles too. In a round: flush, record, op, record. After it: wait, read.",
        "Leave out the synchronize between flush() and start.record(), keep the pairs in a list, and return "
        "statistics.median(1e3 * start.elapsed_time(end) for start, end in pairs).",
    ),
)

EXERCISE = Exercise("11_microbenchmarks", "Microbenchmarks", (STEP_1, STEP_2, STEP_3))
