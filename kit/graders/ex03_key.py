"""Exercise 03.3: the tuner's key, judged by how often Triton's own tuner tunes with it."""

from __future__ import annotations

from dataclasses import dataclass

import torch
import triton
import triton.language as tl

from kit.graders.ex03_rule import two_bars
from kit.graders.step import Mistake, Step, counted
from kit.graders.tuners import tunings


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
            bars = two_bars("Tunings of two launches", "", ("tuned", tuned, False), ("needed", 1 if pair.share else 2, True))
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
        bars = two_bars("Tunings", "", ("tuned", tuned, False), ("at most", MOST_TUNINGS, True))
        told = {"ran": ran, "where": f"key {key}", "got": f"{tuned} tunings", "expected": f"at most {MOST_TUNINGS}", "picture": bars}
        trial.problem("answer", f"{ran}: {tuned} tunings", facts, **told)
    trial.case(ran)
    buckets = {}
    for launch in launches:
        buckets.setdefault(launch["bucket"], []).append(launch["n_rows"])
    few, many = max(((min(rows), max(rows)) for rows in buckets.values()), key=lambda ends: ends[1] / ends[0])
    if many > 4 * few:
        bars = two_bars("Rows in one bucket", "rows", ("the most", many, False), ("the fewest", few, None))
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
