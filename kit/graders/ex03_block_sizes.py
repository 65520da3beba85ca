"""Exercise 03: a rule for block and warps, an in-place kernel under a tuner, and the tuner's key."""

from __future__ import annotations

import contextlib
from dataclasses import dataclass

import torch
import triton
import triton.language as tl

from kit import machine
from kit.build import build
from kit.ghosts import ghost
from kit.graders.buffers import Buffer, compare
from kit.graders.step import Exercise, Mistake, Step, counted
from kit.graders.tuners import emulated, tunings

# ---- 03.1: block and warps
MOST_COLUMNS = 32_768
WIDTHS = (1, 2, 31, 100, 128, 129, 1_000, 1_024, 1_025, 3_000, 4_096, 5_120, 8_192, 12_288, 16_384, 16_385, 20_000, MOST_COLUMNS)
COMPILED = (MOST_COLUMNS, 16_384, 8_192, 4_096, 1_024, 100)  # the widest first: there a wrong rule shows
A_WARP = 128  # elements of the block that each warp should have: 4 a thread
REGISTERS = 255


@triton.jit
def rms_norm_kernel(x_ptr, w_ptr, y_ptr, stride_xm, n_cols, eps, BLOCK: tl.constexpr):
    """y[m] = x[m] / rms(x[m]) * w; a program owns a row."""
    pid = tl.program_id(0)
    offs = tl.arange(0, BLOCK)
    mask = offs < n_cols
    x = tl.load(x_ptr + pid * stride_xm + offs, mask=mask, other=0.0).to(tl.float32)
    w = tl.load(w_ptr + offs, mask=mask).to(tl.float32)
    rms = tl.sqrt(tl.sum(x * x, 0) / n_cols + eps)
    tl.store(y_ptr + pid * stride_xm + offs, x / rms * w, mask=mask)


def norm_of(n_cols, BLOCK, num_warps):
    """The Build of rms_norm_kernel for float16 rows of `n_cols`."""
    x, w = ghost((4, n_cols), torch.float16), ghost((n_cols,), torch.float16)
    return build(rms_norm_kernel, x, w, x, n_cols, n_cols, 1e-6, BLOCK=BLOCK, num_warps=num_warps)


def grade_pick(answer, trial):
    """Judge `pick`: what can be said of its numbers, at all widths; then what the compiler makes of them, the widest first.

    All widths are asked before the first is judged: a likely cause is a rule that explains every answer.
    """
    trial.evidence = "compiled"
    asked = {n: trial.call(answer, n, ran=counted(n, "column")) for n in WIDTHS}
    for n, got in asked.items():
        _judge_numbers(n, got, asked, trial)
        trial.case(counted(n, "column"))
    for n in COMPILED:
        _judge_registers(n, *asked[n], asked, trial)
        trial.case(f"{counted(n, 'column')}, compiled")


def _judge_numbers(n, got, asked, trial):
    ran, facts = counted(n, "column"), {"asked": asked, "n": n, "got": got}

    def wrong(what, said, expected, picture=None):
        told = {"ran": ran, "where": "what it returns", "got": f"{got!r:.40}", "expected": expected, "picture": picture}
        trial.problem("answer", f"{ran}: {said}", facts | {"what": what}, **told)

    if not _pair(got):
        return wrong("type", f"it returns {got!r:.40}, and not two whole numbers", "(BLOCK, num_warps), such as (1024, 4)")
    BLOCK, warps = got
    if BLOCK < 1 or BLOCK & (BLOCK - 1):
        wrong("power", f"BLOCK is {BLOCK:,}, which is no power of two", f"a power of two, {n:,} or more")
    elif n > BLOCK:
        left = _two_bars("BLOCK against the row", "elements", ("BLOCK", BLOCK, False), ("the row", n, True))
        wrong("short", f"BLOCK is {BLOCK:,} and leaves {n - BLOCK:,} of the row out", f"{n:,} or more", left)
    elif 2 * n <= BLOCK and BLOCK > 1:
        idle = _two_bars("BLOCK against the row", "elements", ("BLOCK", BLOCK, False), ("the row", n, True))
        wrong("long", f"BLOCK is {BLOCK:,}, and half of it would hold the row", "the smallest power of two that does", idle)
    elif warps < 1 or warps & (warps - 1):
        wrong("warps", f"num_warps is {warps:,}, which is no power of two", "1, 2, 4, 8, 16 or 32")
    elif warps > 32:
        wrong("many", f"num_warps is {warps:,}: {warps * 32:,} threads, and a program has at most 1,024", "at most 32")
    elif warps > max(1, BLOCK // A_WARP):
        threads = _two_bars("Threads against elements", "", ("threads", 32 * warps, False), ("at most", max(32, BLOCK // 4), True))
        said = f"{warps} warps are {32 * warps:,} threads for a block of {BLOCK:,}: fewer than 4 elements each"
        wrong("idle", said, f"at most {counted(max(1, BLOCK // A_WARP), 'warp')}", threads)


def _judge_registers(n, BLOCK, warps, asked, trial):
    ran, each = f"{counted(n, 'column')}, BLOCK {BLOCK:,}, {counted(warps, 'warp')}", BLOCK // (32 * warps)
    facts = {"asked": asked, "n": n, "got": (BLOCK, warps), "what": "spills"}
    fits = f"at most {REGISTERS} registers a thread, and no spills"
    bars = _two_bars("What a thread has to hold", "values", ("elements a thread", each, False), ("registers", REGISTERS, True))
    told = {"ran": ran, "where": "rms_norm_kernel", "expected": fits, "picture": bars}
    if each > 256:  # certain to spill, and slow to compile
        trial.problem("answer", f"{ran}: {each} elements a thread, and it has {REGISTERS} registers", facts, got=f"{each} elements", **told)
        return
    made = norm_of(n, BLOCK, warps)
    if made.spills:
        said = f"{ran}: each thread spills {made.spills:,} bytes, with {each} elements to hold"
        trial.problem("answer", said, facts, got=f"{made.spills:,} bytes spilled", **told)


def _pair(got):
    return isinstance(got, (tuple, list)) and len(got) == 2 and all(isinstance(n, int) and not isinstance(n, bool) for n in got)


def _two_bars(title, unit, *bars):
    rows = [{"label": label, "value": value, "ok": ok} for label, value, ok in bars]
    return {"kind": "Bars", "title": title, "unit": unit, "rows": rows}


def _always(holds):
    """True when `holds(n, BLOCK, num_warps)` is true of every answer, and the answers are pairs of numbers."""
    return lambda f: "asked" in f and all(_pair(got) and holds(n, *got) for n, got in f["asked"].items())


def _is(what):
    return lambda f: f.get("what") == what


def _widest(f):
    return f["asked"][MOST_COLUMNS]


STEP_1 = Step(
    number="03.1",
    title="A rule for rows",
    spec="Return (BLOCK, num_warps) for a kernel that keeps a row in registers: no spills up to 32,768 columns, no threads without work.",
    answer="function",
    call="pick(n_cols)",
    size="about 3 lines",
    grade=grade_pick,
    mistakes=(
        Mistake("nothing returned", lambda f: "got" in f and f["got"] is None, "Is the return missing?"),
        Mistake(
            "floats",
            lambda f: _is("type")(f) and isinstance(f["got"], (tuple, list)) and any(isinstance(n, float) for n in f["got"]),
            "A division with / gives a float: use //.",
        ),
        Mistake("not a pair", _is("type"), "Two whole numbers are asked for: return BLOCK, num_warps."),
        Mistake(
            "the other way round",
            _always(lambda n, block, warps: warps >= n and block <= 32),
            "Are the two the other way round? BLOCK comes first.",
        ),
        Mistake("the row itself", _always(lambda n, block, warps: block == n), "Is BLOCK the row itself? tl.arange needs a power of two."),
        Mistake(
            "no power of two",
            lambda f: any(_pair(got) and got[0] & (got[0] - 1) for got in f.get("asked", {}).values()),
            "triton.next_power_of_2(n_cols) is the smallest power of two that covers the row.",
        ),
        Mistake(
            "rounded down",
            lambda f: _is("short")(f) and f["got"][0] * 2 > f["n"],
            "Is it rounded down? The block has to cover the row: triton.next_power_of_2.",
        ),
        Mistake(
            "fixed block",
            _always(lambda n, block, warps: block in (256, 512, 1024, 2048, 4096, 8192, MOST_COLUMNS)),
            "Is BLOCK the same for every row? A program owns a whole row here, so the block follows it.",
        ),
        Mistake(
            "one power too high",
            lambda f: _is("long")(f) and f["got"][0] <= 4 * f["n"],
            "Is it one power too high? A row of 128 needs a block of 128.",
        ),
        Mistake("too short", _is("short"), "The block has to cover the row."),
        Mistake("too long", _is("long"), "Is there a lower limit on BLOCK? Lanes past the row do nothing."),
        Mistake(
            "none",
            lambda f: _is("warps")(f) and f["got"][1] == 0,
            "A division leaves 0 for small blocks: max(1, ...).",
        ),
        Mistake(
            "threads",
            lambda f: f.get("what") in ("many", "idle") and _widest(f)[1] >= 128,
            "Is this the number of threads? A warp is 32 of them.",
        ),
        Mistake("no upper limit", _is("many"), "Is there an upper limit? 32 warps are 1,024 threads, the most a program has."),
        Mistake("odd number of warps", _is("warps"), "Divide a power of two by a power of two, and the number of warps is one as well."),
        Mistake(
            "fixed warps",
            lambda f: "asked" in f and len({got[1] for got in f["asked"].values() if _pair(got)}) == 1,
            "Is num_warps the same for every row? What a short row can use is not enough for a long one.",
        ),
        Mistake(
            "floor too high",
            _is("idle"),
            "Is num_warps at least some number, even for a short row? Give a warp 128 elements or more, and a short row one warp.",
        ),
        Mistake(
            "cap too low",
            lambda f: _is("spills")(f) and _widest(f)[1] == f["asked"][16_384][1],
            "Does a cap keep num_warps too low? It has to grow as far as the longest row needs.",
        ),
        Mistake("too few", _is("spills"), "More warps share the row: aim at 32 or 64 elements a thread, 1,024 or 2,048 a warp."),
    ),
    hints=(
        "BLOCK is known from the row alone. For num_warps, divide: how many elements may a warp have, with 255 registers a thread?",
        "32 elements a thread are 1,024 a warp. Short rows then get 0 warps, which is one too few; none gets more than 32.",
        "BLOCK = triton.next_power_of_2(n_cols); num_warps = min(max(BLOCK // 1024, 1), 32); return BLOCK, num_warps",
    ),
)

# ---- 03.2: in place, under a tuner
BLOCKS = (64, 256, 1024)
LENGTHS = (1000, 1024, 257, 1, 5003)
RUNS = 3  # launches for timing, of each configuration


def grade_decay(answer, trial):
    """Judge `decay`: each configuration alone, then as the tuner's choice after launches of all of them, and at the call after that."""
    trial.evidence = machine.current().evidence
    with emulated() as tuners, _poisoned_empty():
        for n in LENGTHS:
            for number, BLOCK in enumerate(BLOCKS):
                tuners.start(number, 0)
                _one_call(answer, trial, tuners, n, BLOCK, f"{counted(n, 'element')}, BLOCK {BLOCK} alone", "alone")
                tuners.start(number, RUNS)
                ran = f"{counted(n, 'element')}, {RUNS} launches of each configuration, then BLOCK {BLOCK}"
                _one_call(answer, trial, tuners, n, BLOCK, ran, "tuning")
                _one_call(answer, trial, tuners, n, BLOCK, f"{counted(n, 'element')}, BLOCK {BLOCK}, the call after tuning", "after")


def _one_call(answer, trial, tuners, n, BLOCK, ran, when):
    values = torch.arange(1, n + 1, device=machine.current().device) % 97 + 32.0
    more = torch.arange(n, device=machine.current().device) % 13 + 1.0
    state, x = Buffer((n,), torch.float32, values=values), Buffer((n,), torch.float32, values=more)
    trial.call(answer, state.view, x.view, ran=ran)
    _expect_tuned(tuners, trial, ran)
    expected = values / 2 + more
    facts = {
        "when": when,
        "looks": looks_like(state.view, values, more),
        "n": n,
        "BLOCK": BLOCK,
        "x changed": not torch.equal(x.view, more),
    }
    right, inside = compare(trial, state, expected, name="state", axes=("element",), ran=ran, facts=facts)
    same, outside = compare(trial, x, more, name="x", axes=("element",), ran=ran, facts=facts)
    trial.case(ran, values=right and same, memory=inside and outside)


def _expect_tuned(tuners, trial, ran):
    """A problem where no tuner ran, or one with other configurations: then what follows would judge something else."""
    blocks = [sorted(config.kwargs.get("BLOCK", 0) for config in tuner.configs) for tuner in tuners.seen]
    if blocks != [list(BLOCKS)] and not trial.problems:
        got = "no tuner ran" if not blocks else f"{counted(len(blocks), 'tuner')}, with BLOCK {blocks[0]}"
        facts = {"untuned": not blocks, "tuners": len(blocks)}
        told = {"where": "the call", "got": got, "expected": f"one tuner, with BLOCK {list(BLOCKS)}"}
        trial.problem("answer", f"{ran}: {got}", facts, ran=ran, **told)
        trial.case(ran)


@contextlib.contextmanager
def _poisoned_empty():
    """Inside, torch.empty is filled with nan, so that an output that keeps an older result does not pass for a written one."""
    before, warn = torch.are_deterministic_algorithms_enabled(), torch.is_deterministic_algorithms_warn_only_enabled()
    fill = torch.utils.deterministic.fill_uninitialized_memory
    torch.use_deterministic_algorithms(True, warn_only=True)
    torch.utils.deterministic.fill_uninitialized_memory = True
    try:
        yield
    finally:
        torch.use_deterministic_algorithms(before, warn_only=warn)
        torch.utils.deterministic.fill_uninitialized_memory = fill


def looks_like(got, state, x):
    """What happened to a state, by its values: "many", "twice", "erased", "untouched", "partly", or ""."""
    once = state / 2 + x
    many = state
    for _ in range(RUNS * len(BLOCKS) + 1):
        many = many / 2 + x
    candidates = {"twice": once / 2 + x, "many": many, "erased": x, "untouched": state}
    for name, values in candidates.items():
        if torch.allclose(got, values):
            return name
    touched = ~torch.isclose(got, state)
    return "partly" if touched.any() and torch.allclose(got[touched], once[touched]) else ""


def _looks(name):
    return lambda f: f.get("looks") == name


STEP_2 = Step(
    number="03.2",
    title="In place, under a tuner",
    spec="Tune decay_kernel over three blocks, so that every call halves the state once: the call that tunes as well.",
    answer="function",
    call="decay(state, x)",
    size="about 1 line in tuner, 2 in decay",
    grade=grade_decay,
    mistakes=(
        Mistake(
            "untuned", lambda f: f.get("untuned"), "The step asks for the tuned kernel: launch tuner()[grid](...), and not decay_kernel."
        ),
        Mistake(
            "another tuner a call",
            lambda f: f.get("tuners", 0) > 1,
            "Is a new tuner made at every call? Then every call tunes. Make it once, in tuner().",
        ),
        Mistake("other configurations", lambda f: "untuned" in f, "Keep the three configurations: they are what is to be tuned."),
        Mistake("x changed", lambda f: f.get("x changed"), "x is an input, and was changed: which tensors does the kernel write to?"),
        Mistake(
            "not a name",
            lambda f: isinstance(f.get("error"), KeyError) or "not kernel arguments" in str(f.get("error", "")),
            "restore_value and key take names of the kernel's own arguments, as in its first line: new_ptr.",
        ),
        Mistake(
            "grid of one configuration",
            lambda f: f.get("looks") == "partly",
            "Part of the state is left as it was: does the grid follow BLOCK? lambda meta: (triton.cdiv(n, meta['BLOCK']),)",
        ),
        Mistake(
            "erased",
            _looks("erased"),
            "The old state is lost, new = 0 / 2 + x: does something set it to zero? reset_to_zero is for sums that begin at 0.",
        ),
        Mistake(
            "put back",
            _looks("untouched"),
            "The state is as it was before: is it put back after the real launch too, or is the result written elsewhere and left there?",
        ),
        Mistake("twice", _looks("twice"), "It is applied twice: is the kernel launched once more, to tune?"),
        Mistake(
            "many times",
            lambda f: f.get("when") == "tuning",
            "Only the call that tunes is wrong: the tuner launched every configuration on the real state. What puts it back?",
        ),
        Mistake("alone", lambda f: f.get("when") == "alone", "It is wrong without any tuning: is each tensor passed in its own place?"),
    ),
    hints=(
        "The call that tunes launches each configuration several times, on the state itself. What must the state be before each launch?",
        "triton.autotune takes restore_value, the arguments to put back after each try. The grid follows BLOCK: a function of meta.",
        'triton.autotune(configs, key=["n"], restore_value=["new_ptr"])(decay_kernel); '
        'tuner()[lambda meta: (triton.cdiv(n, meta["BLOCK"]),)](state, x, state, n)',
    ),
)


# ---- 03.3: the key
@triton.jit
def norm_dropout_kernel(x_ptr, w_ptr, y_ptr, n_rows, n_cols, eps, seed, bucket, BLOCK: tl.constexpr):
    """The arguments of the exercise's kernel; it is never launched."""
    pass


MOST_TUNINGS = 20
MOST_ROWS = 65_536
ROWS = sorted({*range(1, 65), *(int(1.1**i) for i in range(45, 117)), *(2**i + d for i in range(6, 17) for d in (-1, 0, 1)), MOST_ROWS})
ROWS = [n for n in ROWS if n <= MOST_ROWS]


@dataclass(frozen=True)
class Pair:
    """Two launches, as changes to a usual one, and whether the second should be served by the tuning of the first."""

    what: str
    first: dict
    second: dict
    share: bool


PAIRS = (
    Pair("rows of 1,024 and of 8,192 columns", {"n_cols": 1_024}, {"n_cols": 8_192}, share=False),
    Pair("1 row (decode) and 4,096 rows (prefill)", {"n_rows": 1}, {"n_rows": 4_096}, share=False),
    Pair("the next seed", {"seed": 1}, {"seed": 2}, share=True),
    Pair("another eps", {"eps": 1e-6}, {"eps": 1e-5}, share=True),
    Pair("other tensors of the same shape", {"tensors": 0}, {"tensors": 1}, share=True),
)


def grade_key(answer, trial):
    """Judge `tuning`: pairs of launches through Triton's own tuner, then all numbers of rows; nothing is launched."""
    usual = trial.call(answer, 256, ran="256 rows")
    _expect_key(usual, trial)
    key = list(usual[0])
    pool = [torch.zeros(8, dtype=torch.float16) for _ in range(6)]
    for pair in PAIRS:
        launches = [_launch(answer, trial, pool, **change) for change in (pair.first, pair.second)]
        tuned = tunings(norm_dropout_kernel, key, launches)
        if tuned != (1 if pair.share else 2):
            got = "both are tuned" if pair.share else "the second gets the choice of the first"
            told = {"ran": pair.what, "where": f"key {key}", "got": got, "expected": "one tuning" if pair.share else "a tuning each"}
            facts = {"pair": pair, "key": key, "buckets": [launch["bucket"] for launch in launches]}
            bars = _two_bars("Tunings of two launches", "", ("tuned", tuned, False), ("needed", 1 if pair.share else 2, True))
            trial.problem("answer", f"{pair.what}: {got}", facts, picture=bars, **told)
        trial.case(pair.what)
    _judge_rows(answer, key, pool, trial)


def _launch(answer, trial, pool, n_rows=256, n_cols=4_096, eps=1e-6, seed=1, tensors=0):
    """The arguments of a launch, as a dict; `tensors` says which three of the pool."""
    x, w, y = pool[3 * tensors : 3 * tensors + 3]
    _, bucket = trial.call(answer, n_rows, ran=counted(n_rows, "row"))
    return {"x_ptr": x, "w_ptr": w, "y_ptr": y, "n_rows": n_rows, "n_cols": n_cols, "eps": eps, "seed": seed, "bucket": bucket}


def _expect_key(returned, trial):
    names = norm_dropout_kernel.arg_names
    ran = "256 rows"

    def wrong(what, said, got):
        told = {"ran": ran, "where": "what it returns", "got": got, "expected": "a list of argument names, and a number"}
        trial.problem("answer", f"{ran}: {said}", {"what": what}, **told)
        trial.case(ran)

    if not isinstance(returned, (tuple, list)) or len(returned) != 2:
        return wrong("nothing" if returned is None else "type", f"it returns {returned!r:.60}, and not (key, bucket)", f"{returned!r:.60}")
    key, bucket = returned
    if not isinstance(key, (list, tuple)) or not all(isinstance(name, str) for name in key):
        return wrong("type", f"the key is {key!r:.60}, and not a list of names", f"{key!r:.60}")
    if isinstance(bucket, bool) or not isinstance(bucket, (int, float)):
        return wrong("bucket", f"the bucket is {bucket!r:.60}, and not a number", f"{bucket!r:.60}")
    if unknown := [name for name in key if name not in names]:
        return wrong("unknown", f"the key names {', '.join(unknown)}, which is no argument of the kernel", f"{key}")
    if "BLOCK" in key:
        return wrong("BLOCK", "the key names BLOCK, which the wrapper fixes with n_cols", f"{key}")


def _judge_rows(answer, key, pool, trial):
    """At most MOST_TUNINGS for all numbers of rows, and within a bucket no more than 4 times as many rows as the fewest."""
    ran = f"{len(ROWS)} numbers of rows from 1 to {MOST_ROWS:,}"
    launches = [_launch(answer, trial, pool, n_rows=n) for n in ROWS]
    tuned = tunings(norm_dropout_kernel, key, launches)
    facts = {"key": key, "rows": True, "tuned": tuned}
    if tuned > MOST_TUNINGS:
        bars = _two_bars("Tunings", "", ("tuned", tuned, False), ("at most", MOST_TUNINGS, True))
        told = {"ran": ran, "where": f"key {key}", "got": f"{tuned} tunings", "expected": f"at most {MOST_TUNINGS}", "picture": bars}
        trial.problem("answer", f"{ran}: {tuned} tunings", facts, **told)
    trial.case(ran)
    buckets = {}
    for launch in launches:
        buckets.setdefault(launch["bucket"], []).append(launch["n_rows"])
    few, many = max(((min(rows), max(rows)) for rows in buckets.values()), key=lambda ends: ends[1] / ends[0])
    if many > 4 * few:
        bars = _two_bars("Rows in one bucket", "rows", ("the most", many, False), ("the fewest", few, None))
        told = {"ran": f"{few:,} and {many:,} rows", "where": "the bucket", "got": "the same bucket", "picture": bars}
        said = f"{few:,} and {many:,} rows share a bucket, so the choice for one serves the other"
        trial.problem("answer", said, facts | {"wide": (few, many)}, expected="at most 4 times as many", **told)
    trial.case("rows that share a bucket")


def _pair_is(what, more=lambda f: True):
    return lambda f: "pair" in f and f["pair"].what == what and more(f)


STEP_3 = Step(
    number="03.3",
    title="The tuner's key",
    spec="Return the key and the bucket: what changes the best choice is in the key, what does not is left out, and near sizes share one.",
    answer="function",
    call="tuning(n_rows)",
    size="about 2 lines",
    grade=grade_key,
    mistakes=(
        Mistake("nothing returned", lambda f: f.get("what") == "nothing", "Is the return missing? return key, bucket"),
        Mistake("no list", lambda f: f.get("what") == "type", 'A key is a list of names, such as ["n_cols"], and the bucket a number.'),
        Mistake("no number", lambda f: f.get("what") == "bucket", "The bucket is a number that stands for n_rows."),
        Mistake(
            "unknown name",
            lambda f: f.get("what") == "unknown",
            "Triton before 3.9 drops a name that it does not know, and tunes too seldom; 3.9 refuses it. Spell it as the kernel does.",
        ),
        Mistake(
            "BLOCK", lambda f: f.get("what") == "BLOCK", "BLOCK follows from n_cols: the key needs one of the two, and here it is n_cols."
        ),
        Mistake(
            "n_cols missing",
            _pair_is(PAIRS[0].what),
            "n_cols decides how many warps a row needs, so it has to be in the key.",
        ),
        Mistake(
            "rows missing",
            _pair_is(PAIRS[1].what, lambda f: "bucket" not in f["key"]),
            "The number of rows decides how full the GPU is, and nothing in the key stands for it.",
        ),
        Mistake(
            "one bucket",
            _pair_is(PAIRS[1].what),
            "1 row and 4,096 rows have the same bucket: does it grow with n_rows?",
        ),
        Mistake(
            "seed", _pair_is(PAIRS[2].what), "The seed changes at every launch and changes no time: with it in the key, every launch tunes."
        ),
        Mistake("eps", _pair_is(PAIRS[3].what), "The kernel reads eps, but its speed does not depend on it: leave it out of the key."),
        Mistake(
            "tensors", _pair_is(PAIRS[4].what), "A tensor in the key is compared by what it is, not by its shape: every new one tunes."
        ),
        Mistake(
            "exact rows",
            lambda f: "rows" in f and "wide" not in f and "n_rows" in f["key"],
            "n_rows itself is in the key: every length is tuned. Its bucket is enough.",
        ),
        Mistake(
            "too many buckets",
            lambda f: "rows" in f and "wide" not in f,
            "There are too many buckets: let them double in size, as powers of two do.",
        ),
        Mistake(
            "first bucket too wide",
            lambda f: "wide" in f and f["wide"][0] == 1,
            "Are buckets equally wide? Then the first holds decode and prefill both. Powers of two are equally wide in ratio.",
        ),
        Mistake(
            "too few buckets", lambda f: "wide" in f, "Buckets are too wide: sizes more than 4 times apart should be tuned on their own."
        ),
    ),
    hints=(
        "Go through the arguments: for which does the fastest configuration change, and which of them takes a new value at every launch?",
        "n_cols and the number of rows matter. The rows come in too many values: pass a coarse number for them, and name that in the key.",
        'return ["n_cols", "bucket"], triton.next_power_of_2(n_rows)',
    ),
)

EXERCISE = Exercise("03_block_sizes", "Block sizes", (STEP_1, STEP_2, STEP_3))
