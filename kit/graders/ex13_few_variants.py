"""Exercise 13.3: a kernel that needs two variants, judged by a trace after two launches, by its values, and by the width of its loads."""

from __future__ import annotations

import torch

from kit import machine
from kit.build import build
from kit.graders.buffers import Buffer, compare
from kit.graders.ex13_server import F16, F32, SIZE, TRACE, Request, Server, trace_picture, write_keys_kernel
from kit.graders.noting import noted
from kit.graders.paper import on_paper, tell_report
from kit.graders.step import Mistake, Step, counted
from kit.watch import JitError, watch


def grade_few_variants(answer, trial):
    """Judge `write_keys`: a trace after two warm-up launches, then values in guarded buffers, then the width of its loads.

    The trace comes first: whatever else is launched would warm it up.
    """
    trial.evidence = machine.current().evidence
    server = Server()
    with noted() as launches, watch() as warm:
        for dtype in (F16, F32):
            trial.call(answer, *server.arguments(Request(dtype, 0, 64)), ran=f"64 tokens of {dtype}, the warm-up")
    _expect_two(trial, launches)
    ran = f"two launches to warm up, then {len(TRACE)} requests, the monitor in error mode"
    missed = []
    with watch("error") as log:
        for request in TRACE:
            try:
                trial.call(answer, *server.arguments(request), ran=str(request), expect=(JitError,))
                served = server.is_right(request)
            except JitError:
                missed.append(request)
                continue
            if not served:
                told = {"ran": ran, "where": str(request), "got": "other values", "expected": "the keys, in their slots"}
                trial.problem("values", f"{request}: the cache does not hold the keys", {"about": "values"}, **told)
                trial.case(ran, values=False)
    if missed or len(warm) > 2:
        _tell_missed(trial, missed, len(warm), log, launches[0][0], ran)
    trial.case(ran, values=True)
    for n_tokens, first in ((5, 0), (1, 0), (16, 3), (33, 1), (0, 0)):
        _small(answer, trial, n_tokens, first)
    _width(trial, launches[0], server)


def _expect_two(trial, launches):
    """Two requests are two launches."""
    if len(launches) == 2:
        return
    ran, made = "two requests of 64 tokens", "no launch" if not launches else f"{len(launches)} launches"
    told = {"ran": ran, "where": "write_keys", "got": made, "expected": "one launch a request"}
    trial.problem("answer", f"{ran}: {made} of a kernel", {"launches": len(launches)}, **told)
    trial.case(ran)


def _small(answer, trial, n_tokens, first):
    ran = f"{counted(n_tokens, 'token')}, the slots from number {first}"
    device = machine.current().device
    values = torch.randn(n_tokens, SIZE, device=device).half()
    slots = torch.randperm(64)[: n_tokens + first].to(device, torch.int32)[first:]
    k = Buffer((n_tokens, SIZE), F16, values=values)
    cache = Buffer((64, SIZE), F16, values=torch.zeros(64, SIZE))
    facts = {"small": True, "n": n_tokens}
    with on_paper() as launches:
        trial.call(answer, k.view, slots, cache.view, ran=ran)
    for made in launches:
        tell_report(trial, made.report, ran, facts)
    legal = not trial.problems
    trial.call(answer, k.view, slots, cache.view, ran=ran)
    expected = torch.zeros(64, SIZE, device=device, dtype=F16)
    expected[slots.long()] = values
    right, inside = compare(trial, cache, expected, name="the cache", axes=("slot", "element"), ran=ran, facts=facts)
    trial.case(ran, values=right, memory=legal and inside)


def _tell_missed(trial, missed, warmed, log, kernel, ran):
    """Say which requests would compile, and by the classes that changed, why."""
    changes = [change for variant in log.variants for change in variant.changes]
    facts = {"missed": missed, "warmed": warmed, "changed": {change.argument for change in changes}, "written": _written(kernel)}
    facts["after"] = {change.after for change in changes if change.argument == "n_tokens"}
    facts["constexpr"] = {c.argument for c in changes if c.argument not in kernel.arg_names or c.after.startswith("constexpr")}
    if missed:
        text = f"{ran}: {len(missed)} of {len(TRACE)} would compile, the first: {missed[0]}"
        told = {"where": str(missed[0]), "got": f"{len(missed)} would compile", "picture": trace_picture(missed)}
    else:
        rows = [{"label": "variants", "value": warmed, "limit": 2, "ok": False}]
        text = f"{ran}: the warm-up alone compiled {warmed} variants, and 2 are enough"
        told = {"where": "the warm-up", "got": str(warmed), "picture": {"kind": "Bars", "title": "Variants", "rows": rows}}
    trial.problem("answer", text, facts, ran=ran, expected="2 variants, one a dtype", **told)


def _written(kernel):
    """Names in the decorator's lists that are no arguments of the kernel: Triton accepts them in silence."""
    listed = [*(getattr(kernel, "do_not_specialize", None) or ()), *(getattr(kernel, "do_not_specialize_on_alignment", None) or ())]
    return [name for name in listed if isinstance(name, str) and name not in kernel.arg_names]


def _width(trial, launch, server):
    """The widest load and store, in bits, against those of the kernel as it was, at the same request."""
    request = Request(F16, 0, 64)
    ran = "the machine code for 64 tokens of float16"
    kernel, args, meta = launch
    got = _widest(build(kernel, *args, **meta))
    wanted = _widest(build(write_keys_kernel, *server.arguments(request), request.n, SIZE=SIZE, BLOCK_T=4))
    for what in ("load", "store"):
        if got[what] < wanted[what]:
            rows = [{"label": name, "value": n, "ok": n >= wanted[what]} for name, n in (("as it was", wanted[what]), ("now", got[what]))]
            picture = {"kind": "Bars", "title": f"The widest {what}", "unit": "bits", "rows": rows}
            text = f"{ran}: the keys' {what}s are {got[what]} bits wide, and were {wanted[what]}"
            told = {"where": f"the {what} of the keys", "got": f"{got[what]} bits", "expected": f"{wanted[what]} bits", "picture": picture}
            trial.problem("answer", text, {"width": got[what]}, ran=ran, **told)
            break
    trial.case(ran)


def _widest(made):
    """The width in bits of the load of the keys, and of the store into the cache."""
    lines = {"load": "k_ptr", "store": "cache_ptr"}
    return {op: max((a.bits for a in made.accesses if a.op == op and name in a.source), default=0) for op, name in lines.items()}


STEP_3 = Step(
    number="13.3",
    title="A kernel that needs two variants",
    spec="Decorate the kernel and write its launch so that two launches warm all of it up, and the keys' loads stay as wide as they were.",
    answer="function",
    call="write_keys(k, slots, cache)",
    size="about 2 lines",
    grade=grade_few_variants,
    mistakes=(
        Mistake("no kernel", lambda f: f.get("launches") == 0, "Launch write_keys_kernel: what torch does instead is not what is asked."),
        Mistake(
            "many launches", lambda f: f.get("launches", 2) != 2, "One launch writes a whole request; each further one costs its own time."
        ),
        Mistake(
            "outside",
            lambda f: f.get("about") == "memory",
            "It reads or writes outside its tensors: is n_tokens the number of slots, and not a larger one?",
        ),
        Mistake(
            "left out",
            lambda f: f.get("about") == "values",
            "Some tokens are not written: does the grid cover all of them, and is n_tokens the number of slots?",
        ),
        Mistake(
            "a constexpr that varies",
            lambda f: bool(f.get("constexpr")),
            "A constexpr or launch option follows the number of tokens: each of its values is a variant.",
        ),
        Mistake(
            "misspelt",
            lambda f: bool(f.get("written")),
            "A name in the decorator is no argument of the kernel. Triton accepts it, and nothing changes.",
        ),
        Mistake(
            "ones left",
            lambda f: f.get("changed") == {"n_tokens"} and f["after"] == {"= 1"},
            "Only batches of one compile: `do_not_specialize_on_alignment` drops ÷16 and keeps 1 apart; `do_not_specialize` drops both.",
        ),
        Mistake(
            "views left",
            lambda f: f.get("changed") == {"slot_ptr"},
            "Only unaligned slots compile: slot_ptr needs `do_not_specialize_on_alignment`, or slots that are aligned.",
        ),
        Mistake(
            "sizes left",
            lambda f: f.get("changed") == {"n_tokens"},
            "Only the number of tokens matters still: n_tokens needs `do_not_specialize`.",
        ),
        Mistake(
            "as it was",
            lambda f: bool(f.get("missed")) or f.get("warmed", 0) > 2,
            "Both n_tokens and slot_ptr still have classes. Neither makes a load of the keys wider.",
        ),
        Mistake(
            "too much",
            lambda f: "width" in f,
            "k_ptr and cache_ptr must keep their alignment: without it the compiler cannot load several elements at once.",
        ),
    ),
    hints=(
        "Which two arguments vary, besides the dtype? Does the alignment of either make the keys' loads wider?",
        "`do_not_specialize` drops 1 and ÷16 of an integer, `do_not_specialize_on_alignment` ÷16 of a pointer. Leave k_ptr and cache_ptr.",
        'Use @triton.jit(do_not_specialize=["n_tokens"], do_not_specialize_on_alignment=["slot_ptr"]), and launch as before.',
    ),
)
