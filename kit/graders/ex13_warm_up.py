"""Exercise 13.2: a warm-up, judged by a trace of requests that it has not seen, and by what it compiled for nothing."""

from __future__ import annotations

import torch
import triton

from kit import machine
from kit.graders.ex13_representatives import class_of
from kit.graders.ex13_server import SIZE, TRACE, Server, launch, trace_picture, write_keys_kernel
from kit.graders.step import Mistake, Step, counted
from kit.watch import JitError, watch

NEEDED = 12  # variants: two dtypes, three classes of n_tokens, two of the slots' pointer
MOST_LAUNCHES = 2 * NEEDED


def seen_as(k, slots, cache):
    """What the cache key is made of, in words: (dtype of k, of slots, of cache, class of n_tokens, slots aligned, k and cache aligned)."""
    dtypes = tuple(str(tensor.dtype).removeprefix("torch.") for tensor in (k, slots, cache))
    aligned = [tensor.data_ptr() % 16 == 0 for tensor in (k, slots, cache)]
    return (*dtypes, class_of(len(slots))[1], aligned[1], aligned[0] and aligned[2])


def grade_warm_up(answer, trial):
    """Judge `warm_up`: what it compiled, then a trace it has not seen with the monitor in error mode, then what it compiled for nothing."""
    trial.evidence = machine.current().evidence
    kernel = triton.jit(write_keys_kernel.fn)  # nothing in memory yet
    calls, refused = [], []

    def write_keys(k, slots, cache):
        if reason := unlike_a_request(k, slots, cache):
            refused.append(reason)  # and not launched: it would read or write memory of others
        else:
            calls.append(seen_as(k, slots, cache))
            launch(kernel, k, slots, cache)

    server, device = Server(), machine.current().device
    with watch() as log:
        trial.call(answer, write_keys, device, ran="the warm-up")
    if refused:
        told = {"ran": "the warm-up", "where": "write_keys(k, slots, cache)", "got": refused[0], "expected": "dummies like a request"}
        trial.problem("answer", f"the warm-up: {refused[0]}", {"refused": refused[0]}, **told)
        trial.case("the warm-up")
    trial.ran.append(f"the warm-up, which compiled {counted(len(log), 'variant')}")
    with watch("error"):
        missed = [request for request in TRACE if _compiles(kernel, server.arguments(request))]
    ran, warmed = f"a trace of {len(TRACE)} requests, the monitor in error mode", set(calls)
    wanted = {seen_as(*server.arguments(request)) for request in TRACE}
    facts = {"warmed": warmed, "missing": wanted - warmed, "extra": warmed - wanted, "calls": len(calls), "variants": len(log)}
    if missed:
        text = f"{ran}: {len(missed)} of {len(TRACE)} would compile, the first: {missed[0]}"
        told = {"ran": ran, "where": str(missed[0]), "got": f"{len(missed)} would compile", "expected": "none"}
        trial.problem("answer", text, facts, picture=trace_picture(missed), **told)
    elif len(log) > NEEDED or len(calls) > MOST_LAUNCHES:
        what, n, most = ("variant", len(log), NEEDED) if len(log) > NEEDED else ("launch", len(calls), MOST_LAUNCHES)
        noun = {"variant": "variants", "launch": "launches"}[what]
        text = f"the warm-up: {n} {noun}, and {most} are enough"
        rows = [{"label": noun, "value": n, "limit": most, "ok": False}]
        picture = {"kind": "Bars", "title": "What the warm-up takes", "rows": rows}
        told = {"ran": "the warm-up", "where": f"its {noun}", "got": str(n), "expected": f"at most {most}", "picture": picture}
        trial.problem("answer", text, {**facts, "too many": what}, **told)
    trial.case(ran)


def unlike_a_request(k, slots, cache):
    """What makes these arguments no request, so that a launch with them would leave its tensors; "" when nothing does."""
    if not all(isinstance(tensor, torch.Tensor) for tensor in (k, slots, cache)):
        return "an argument is no tensor"
    if slots.dim() != 1 or k.shape != (len(slots), SIZE) or cache.dim() != 2 or cache.shape[1] != SIZE:
        return f"k is {tuple(k.shape)}, slots {tuple(slots.shape)}, cache {tuple(cache.shape)}"
    if len(slots) and not 0 <= int(slots.min()) <= int(slots.max()) < len(cache):
        return f"slots from {int(slots.min()):,} to {int(slots.max()):,}, and a cache of {counted(len(cache), 'row')}"
    return ""


def _compiles(kernel, arguments):
    try:
        launch(kernel, *arguments)
    except JitError:
        return True
    return False


def _only(place, *values):
    """True when the warm-up launched with nothing but `values` at `place` of `seen_as`."""
    return lambda f: bool(f.get("warmed")) and {seen[place] for seen in f["warmed"]} <= set(values)


def _never(place, value):
    return lambda f: bool(f.get("warmed")) and "missing" in f and value not in {seen[place] for seen in f["warmed"]}


def _all_of(*seen):
    return lambda f: all(one(f) for one in seen)


_K, _SLOT, _CACHE, _N, _ALIGNED = range(5)
_MISSES = (
    Mistake("nothing launched", lambda f: f.get("calls") == 0, "Nothing was launched: call write_keys once for each variant."),
    Mistake(
        "wild slots",
        lambda f: f.get("refused", "").startswith("slots"),
        "A warm-up launch writes too: its slots must be rows of its cache. What `torch.empty` holds is any number.",
    ),
    Mistake("shapes", lambda f: "refused" in f, "k is (n, 128), slots (n,), cache (rows, 128)."),
    Mistake(
        "slots of 64 bits",
        _never(_SLOT, "int32"),
        "The server's slots are int32. `torch.arange` and `torch.randint` make int64 unless they are told.",
    ),
    Mistake(
        "float32 only",
        _all_of(_only(_K, "float32"), _never(_K, "float16")),
        "The dummies are float32, which is what `torch.zeros` makes unless it is told; most requests are float16.",
    ),
    Mistake("one dtype", _all_of(_never(_K, "float32"), _only(_K, "float16", "bfloat16")), "Requests of an adapter have float32 keys."),
    Mistake(
        "one cache",
        lambda f: bool(f.get("missing")) and any(seen[_K] != seen[_CACHE] for seen in f["warmed"]),
        "The cache has the dtype of the keys: a float32 cache for float16 keys is a variant that never serves.",
    ),
    Mistake(
        "one token only",
        _only(_N, "= 1"),
        "A batch of one alone covers one class: 1 is a constant in its variant, and no other size uses that.",
    ),
    Mistake("no single token", _never(_N, "= 1"), "A batch of one token was not warmed: n_tokens = 1 is a class of its own."),
    Mistake("no multiple", _never(_N, "÷16"), "No batch size was a multiple of 16, which is a class of its own."),
    Mistake("no other size", _never(_N, "other"), "All batch sizes were 1 or multiples of 16: most requests are neither."),
    Mistake(
        "aligned only",
        _only(_ALIGNED, True),
        "All slots began at a multiple of 16 bytes, as fresh memory does, and `slots[4:]` too. The server passes views such as slots[37:].",
    ),
    Mistake(
        "views only", _only(_ALIGNED, False), "All slots were unaligned views: the first part of a batch begins at an aligned address."
    ),
)
_TOO_MANY = (
    Mistake(
        "too many launches",
        lambda f: f.get("too many") == "launch",
        "One batch size of each class is enough: the others launch what is compiled already.",
    ),
    Mistake(
        "a dtype that never comes",
        lambda f: any(seen[_K] not in ("float16", "float32") or seen[_CACHE] not in ("float16", "float32") for seen in f.get("extra", ())),
        "A dtype was warmed that no request has.",
    ),
    Mistake(
        "mixed dtypes",
        lambda f: any(seen[_K] != seen[_CACHE] for seen in f.get("extra", ())),
        "Keys and cache of different dtypes were warmed: they always have one dtype.",
    ),
    Mistake(
        "slots of two widths",
        lambda f: any(seen[_SLOT] != "int32" for seen in f.get("extra", ())),
        "Slots of another dtype were warmed too; the server's are int32.",
    ),
    Mistake(
        "keys unaligned",
        lambda f: any(not seen[-1] for seen in f.get("extra", ())),
        "Keys or cache were passed unaligned; a row of theirs is a multiple of 16 bytes, so a view of whole rows never is.",
    ),
)

STEP_2 = Step(
    number="13.2",
    title="A warm-up that misses nothing",
    spec="Launch once with dummies for each variant that the requests described can need, and for no other.",
    answer="function",
    call="warm_up(write_keys, device)",
    size="about 7 lines",
    grade=grade_warm_up,
    mistakes=(
        *_MISSES,
        *_TOO_MANY,
        Mistake(
            "not every pair",
            lambda f: bool(f.get("missing")),
            "Each class was warmed, but not with each of the others: a variant is a combination of dtype, batch size and alignment.",
        ),
    ),
    hints=(
        "Three things vary: the dtype (2), the class of the number of tokens (3), whether the slots are aligned (2). How many in all?",
        "Loop over dtypes, over the sizes 1, 2 and 16, and over a start of 0 and of 1: `slots[start : start + n]` is the view.",
        "k = torch.zeros(n, 128, dtype=dtype, device=device), a cache of the same dtype, slots = torch.zeros(n + start, dtype=torch.int32, "
        "device=device)[start:], then write_keys(k, slots, cache).",
    ),
)
