"""Exercise 13: warm-up that misses nothing, and a kernel that needs little of it."""

from __future__ import annotations

import contextlib
from dataclasses import dataclass

import torch
import triton
import triton.language as tl
from triton.runtime import JITFunction

from kit import machine
from kit.build import build
from kit.graders.buffers import Buffer, compare
from kit.graders.ex13_representatives import STEP_1, class_of
from kit.graders.paper import on_paper, tell_report
from kit.graders.step import Exercise, Mistake, Step, counted
from kit.watch import JitError, watch

SIZE, MOST_TOKENS, SLOTS = 128, 512, 1024


# ---- 13.2: the warm-up
@triton.jit
def write_keys_kernel(k_ptr, slot_ptr, cache_ptr, n_tokens, SIZE: tl.constexpr, BLOCK_T: tl.constexpr):
    """cache[slot[t], :] = k[t, :]; a program owns BLOCK_T tokens."""
    pid = tl.program_id(0)

    offs_t = pid * BLOCK_T + tl.arange(0, BLOCK_T)
    offs_d = tl.arange(0, SIZE)

    mask_t = offs_t < n_tokens

    slot = tl.load(slot_ptr + offs_t, mask=mask_t, other=0)
    k = tl.load(k_ptr + offs_t[:, None] * SIZE + offs_d, mask=mask_t[:, None])

    tl.store(cache_ptr + slot[:, None] * SIZE + offs_d, k, mask=mask_t[:, None])


@dataclass(frozen=True)
class Request:
    """What arrives: `n` tokens of a step's batch from number `first` on, with keys of `dtype`."""

    dtype: torch.dtype
    first: int
    n: int

    def __str__(self):
        kind = str(self.dtype).removeprefix("torch.")
        return f"{counted(self.n, 'token')} of {kind}, the slots from number {self.first}"


F16, F32 = torch.float16, torch.float32
# Held back from the reader. Both dtypes; 1 token, multiples of 16 and others; slots that begin at a multiple of 4 (aligned) and not.
TRACE = tuple(
    Request(dtype, first, n)
    for first, n in ((0, 37), (37, 1), (0, 80), (81, 16), (0, 1), (38, 5), (0, 512), (64, 1), (43, 3), (12, 144), (2, 1), (7, 48))
    for dtype in (F16, F32)
)
NEEDED = 12  # variants: two dtypes, three classes of n_tokens, two of the slots' pointer
MOST_LAUNCHES = 2 * NEEDED


class Server:
    """Buffers as a server has them, and the requests' views of them."""

    def __init__(self):
        device = machine.current().device
        self.slots = torch.randperm(SLOTS)[: MOST_TOKENS + 128].to(device, torch.int32)
        self.keys = {dtype: torch.randn(MOST_TOKENS + 128, SIZE, device=device).to(dtype) for dtype in (F16, F32)}
        self.caches = {dtype: torch.zeros(SLOTS, SIZE, dtype=dtype, device=device) for dtype in (F16, F32)}

    def arguments(self, request):
        """(k, slots, cache) of a request; its slots are a view, at their own offset."""
        stop = request.first + request.n
        return self.keys[request.dtype][: request.n], self.slots[request.first : stop], self.caches[request.dtype]

    def is_right(self, request):
        """Whether the cache holds the request's keys in their slots."""
        k, slots, cache = self.arguments(request)
        return torch.equal(cache[slots.long()], k)


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
        trial.problem("answer", text, facts, picture=_trace_picture(missed), **told)
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


def launch(kernel, k, slots, cache):
    """Write the keys of a request by one launch of `kernel`."""
    kernel[(triton.cdiv(len(slots), 4),)](k, slots, cache, len(slots), SIZE=SIZE, BLOCK_T=4)


def _compiles(kernel, arguments):
    try:
        launch(kernel, *arguments)
    except JitError:
        return True
    return False


def _trace_picture(missed):
    states = [int(request in missed) for request in TRACE]
    return {"kind": "Cells", "title": "The requests of the trace", "rows": states, "names": ("served", "would compile"), "columns": 12}


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


# ---- 13.3: fewer variants
@dataclass
class Seen:
    """One launch of the answer: its kernel, its arguments and its constexprs."""

    kernel: JITFunction
    args: tuple
    meta: dict


@contextlib.contextmanager
def noting_launches():
    """Inside, each `kernel[grid](...)` is noted, and made. Yields the list of Seen. As `on_paper`, for this process only."""
    seen, own = [], vars(JITFunction).get("__getitem__")
    plain = JITFunction.__getitem__

    def launched(kernel, grid):
        def run(*args, **meta):
            seen.append(Seen(kernel, args, meta))
            return plain(kernel, grid)(*args, **meta)

        return run

    JITFunction.__getitem__ = launched
    try:
        yield seen
    finally:
        if own is None:
            del JITFunction.__getitem__
        else:
            JITFunction.__getitem__ = own


def grade_few_variants(answer, trial):
    """Judge `write_keys`: a trace after two warm-up launches, then values in guarded buffers, then the width of its loads.

    The trace comes first: whatever else is launched would warm it up.
    """
    trial.evidence = machine.current().evidence
    server = Server()
    with noting_launches() as launches, watch() as warm:
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
        _tell_missed(trial, missed, len(warm), log, launches[0].kernel, ran)
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
        told = {"where": str(missed[0]), "got": f"{len(missed)} would compile", "picture": _trace_picture(missed)}
    else:
        rows = [{"label": "variants", "value": warmed, "limit": 2, "ok": False}]
        text = f"{ran}: the warm-up alone compiled {warmed} variants, and 2 are enough"
        told = {"where": "the warm-up", "got": str(warmed), "picture": {"kind": "Bars", "title": "Variants", "rows": rows}}
    trial.problem("answer", text, facts, ran=ran, expected="2 variants, one a dtype", **told)


def _written(kernel):
    """Names in the decorator's lists that are no arguments of the kernel: Triton accepts them in silence."""
    listed = [*(getattr(kernel, "do_not_specialize", None) or ()), *(getattr(kernel, "do_not_specialize_on_alignment", None) or ())]
    return [name for name in listed if isinstance(name, str) and name not in kernel.arg_names]


def _width(trial, seen, server):
    """The widest load and store, in bits, against those of the kernel as it was, at the same request."""
    request = Request(F16, 0, 64)
    ran = "the machine code for 64 tokens of float16"
    got = _widest(build(seen.kernel, *seen.args, **seen.meta))
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

EXERCISE = Exercise("13_cold_start", "Cold start", (STEP_1, STEP_2, STEP_3))
