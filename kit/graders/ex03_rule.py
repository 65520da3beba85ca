"""Exercise 03.1: a rule for BLOCK and num_warps, judged on its numbers, and on the registers that the compiler needs."""

from __future__ import annotations

import torch
import triton
import triton.language as tl

from kit.build import build
from kit.ghosts import ghost
from kit.graders.step import Mistake, Step, counted

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
        left = two_bars("BLOCK against the row", "elements", ("BLOCK", BLOCK, False), ("the row", n, True))
        wrong("short", f"BLOCK is {BLOCK:,} and leaves {n - BLOCK:,} of the row out", f"{n:,} or more", left)
    elif 2 * n <= BLOCK and BLOCK > 1:
        idle = two_bars("BLOCK against the row", "elements", ("BLOCK", BLOCK, False), ("the row", n, True))
        wrong("long", f"BLOCK is {BLOCK:,}, and half of it would hold the row", "the smallest power of two that does", idle)
    elif warps < 1 or warps & (warps - 1):
        wrong("warps", f"num_warps is {warps:,}, which is no power of two", "1, 2, 4, 8, 16 or 32")
    elif warps > 32:
        wrong("many", f"num_warps is {warps:,}: {warps * 32:,} threads, and a program has at most 1,024", "at most 32")
    elif warps > max(1, BLOCK // A_WARP):
        threads = two_bars("Threads against elements", "", ("threads", 32 * warps, False), ("at most", max(32, BLOCK // 4), True))
        said = f"{warps} warps are {32 * warps:,} threads for a block of {BLOCK:,}: fewer than 4 elements each"
        wrong("idle", said, f"at most {counted(max(1, BLOCK // A_WARP), 'warp')}", threads)


def _judge_registers(n, BLOCK, warps, asked, trial):
    ran, each = f"{counted(n, 'column')}, BLOCK {BLOCK:,}, {counted(warps, 'warp')}", BLOCK // (32 * warps)
    facts = {"asked": asked, "n": n, "got": (BLOCK, warps), "what": "spills"}
    fits = f"at most {REGISTERS} registers a thread, and no spills"
    bars = two_bars("What a thread has to hold", "values", ("elements a thread", each, False), ("registers", REGISTERS, True))
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


def two_bars(title, unit, *bars):
    """A picture of two numbers side by side; each of `bars` is (label, value, ok)."""
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
