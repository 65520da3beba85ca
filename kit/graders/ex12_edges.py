"""Exercise 12.1: the shapes at the two sides of each limit."""

from __future__ import annotations

import math

from kit.graders.step import Mistake, Step

AXIS, INT32 = 65_535, 2**31
MB, GB = 2**20, 10**9

# What an answer is asked: (heads, size, itemsize, block, l2, memory). Each tells two ways of counting apart.
CASES = (
    ("32 heads of 128, float16", (32, 128, 2, 64, 50 * MB, 8 * GB)),
    ("the same in float32", (32, 128, 4, 64, 50 * MB, 8 * GB)),
    ("24 heads, blocks of 8 rows", (24, 128, 2, 8, 50 * MB, 8 * GB)),
    ("1 head, blocks of 8 rows", (1, 64, 2, 8, 40 * MB, 24 * GB)),
    ("3 heads of 80, blocks of 64 rows", (3, 80, 2, 64, 40 * MB, 16 * GB)),
    ("an L2 cache of 1,000 tokens, exactly", (8, 128, 2, 16, 1_000 * 2 * 8 * 128 * 2, 80 * GB)),
    ("an L2 cache smaller than a token", (64, 512, 4, 64, 100_000, 141 * GB)),
    ("room for 65,535 tokens, exactly", (8, 128, 2, 16, 50 * MB, 65_535 * 2 * 8 * 128 * 2)),
    ("int32 reached first", (128, 576, 2, 16, 50 * MB, 141 * GB)),
    ("a power of two, and much memory", (64, 256, 2, 8, 64 * MB, 141 * GB)),
    ("room for 100 tokens", (64, 256, 2, 128, 50 * MB, 100 * 2 * 64 * 256 * 2)),
    ("no room for one", (64, 256, 4, 8, 50 * MB, 10_000)),
)


def limits_of(heads, size, itemsize, block, l2):
    """{limit: the last number of tokens below it}. Of n tokens the last element has the offset n * heads * size - 1."""
    row = heads * size
    return {
        "one program": block // heads,
        "a grid axis": AXIS,
        "the L2 cache": l2 // (2 * row * itemsize),
        "int32 offsets": INT32 // row,
    }


def edges_of(heads, size, itemsize, block, l2, memory):
    """What `edge_tokens` has to return."""
    sides = {side for last in limits_of(heads, size, itemsize, block, l2).values() for side in (last, last + 1)}
    return sorted(n for n in sides if n >= 1 and 2 * n * heads * size * itemsize <= memory)


def grade_edges(answer, trial):
    """Judge `edge_tokens`: exactly the last value below and the first above each limit, for every case.

    All cases are asked before the first is judged: a likely cause is another way of counting that explains every answer.
    """
    asked = [(given, _plain(trial.call(answer, *given, ran=name))) for name, given in CASES]
    for (name, given), (_, got) in zip(CASES, asked, strict=True):
        wanted = edges_of(*given)
        if said := _wrong(got, wanted):
            told = {"ran": name, "where": "edge_tokens({}, {}, {}, {}, {:,}, {:,})".format(*given)}
            told |= {"got": f"{got!r:.60}", "expected": f"{wanted!r:.60}"}
            facts = {"asked": asked, "got": got, "wanted": wanted}
            trial.problem("answer", f"{name}: {said}", facts, picture=_picture(given, got), **told)
        trial.case(name)


def _plain(got):
    return list(got) if isinstance(got, (list, tuple)) else got


def _wrong(got, wanted):
    if not isinstance(got, list):
        return f"got {got!r:.40}, expected a list"
    if strange := [n for n in got if type(n) is not int]:
        return f"{strange[0]!r:.30} is no whole number"
    if missing := [n for n in wanted if n not in got]:
        return f"the list lacks {missing[0]:,}"
    if extra := [n for n in got if n not in wanted]:
        return f"the list has {extra[0]:,}, which is at no limit, or too large"
    if len(got) != len(wanted):
        return "a number of tokens is there twice"
    return "" if got == wanted else "the list is not sorted"


def _picture(given, got):
    """Bars of the wanted numbers of tokens, those that are there and those that are not."""
    names = {}
    for limit, last in limits_of(*given[:5]).items():
        for n, side in ((last, "last below"), (last + 1, "first above")):
            names.setdefault(n, f"{limit}, {side}")
    rows = [{"label": names[n], "value": n, "ok": isinstance(got, list) and n in got} for n in edges_of(*given)]
    return (
        {"kind": "Bars", "title": "Tokens at the two sides of each limit", "unit": "tokens", "rows": rows, "scale": "log"} if rows else None
    )


def _counted(sides=(0, 1), keep=1, twice=False, fits=None, **lasts):
    """Another way of counting: `lasts` replace the last value below a limit, named block, axis, l2, int32; functions of the case."""

    def counting(heads, size, itemsize, block, l2, memory):
        row, case = heads * size, (heads, size, itemsize, block, l2)
        found = dict(zip(("block", "axis", "l2", "int32"), limits_of(*case).values(), strict=True))
        found |= {name: last(*case) for name, last in lasts.items()}
        tokens = [last + side for last in found.values() for side in sides]
        inside = fits or (lambda n, row, itemsize, memory: 2 * n * row * itemsize <= memory)
        tokens = [n for n in tokens if n >= keep and inside(n, row, itemsize, memory)]
        return sorted(tokens if twice else set(tokens))

    return counting


def _by(counting):
    """True when another way of counting explains every answer."""

    def seen(facts):
        return "asked" in facts and all(isinstance(got, list) and sorted(got) == counting(*given) for given, got in facts["asked"])

    seen.counting = counting
    return seen


def _elements(heads, size, itemsize, block, l2):
    return l2 // (2 * heads * size)


STEP_1 = Step(
    number="12.1",
    title="Both sides of each limit",
    spec="Return the numbers of tokens at the two sides of four limits.",
    answer="function",
    call="edge_tokens(heads, size, itemsize, block, l2, memory)",
    size="about 5 lines",
    grade=grade_edges,
    mistakes=(
        Mistake(
            "no list", lambda f: "got" in f and not isinstance(f["got"], list), "Return a list of whole numbers. Is the return missing?"
        ),
        Mistake(
            "floats",
            lambda f: isinstance(f.get("got"), list) and any(isinstance(n, float) for n in f["got"]),
            "A division with / gives a float: tokens are whole, use //.",
        ),
        Mistake(
            "only below", _by(_counted(sides=(0,))), "Only the last values below are there: the first value above each limit is missing."
        ),
        Mistake(
            "only above", _by(_counted(sides=(1,))), "Only the first values above are there: the last value below each limit is missing."
        ),
        Mistake(
            "three of each",
            _by(_counted(sides=(-1, 0, 1))),
            "Three values a limit: nothing happens between the last two below. The last below and the first above are enough.",
        ),
        Mistake(
            "both shifted", _by(_counted(sides=(-1, 0))), "Both values lie below the limit: take the last that it allows, and one more."
        ),
        Mistake("nothing kept back", _by(_counted(keep=0)), "0 tokens are no shape: the list begins at 1."),
        Mistake("twice", _by(_counted(twice=True)), "Two limits may lie at one number of tokens: list it once."),
        Mistake(
            "memory forgotten",
            _by(_counted(fits=lambda *_: True)),
            "Some do not fit: leave out the tokens whose x and y take more than `memory`.",
        ),
        Mistake(
            "memory strict",
            _by(_counted(fits=lambda n, row, itemsize, memory: 2 * n * row * itemsize < memory)),
            "What takes `memory` bytes exactly still fits.",
        ),
        Mistake(
            "x alone in memory",
            _by(_counted(fits=lambda n, row, itemsize, memory: n * row * itemsize <= memory)),
            "Memory holds x and y: count both.",
        ),
        Mistake(
            "x alone in the cache",
            _by(_counted(l2=lambda h, s, i, b, l2: l2 // (h * s * i))),
            "The L2 cache holds x and y: count both.",
        ),
        Mistake("elements in the cache", _by(_counted(l2=_elements)), "`l2` is in bytes: an element takes `itemsize` of them."),
        Mistake(
            "cache strict",
            _by(_counted(l2=lambda h, s, i, b, l2: (l2 - 1) // (2 * h * s * i))),
            "A tensor that fills the cache exactly still fits.",
        ),
        Mistake(
            "one past the axis",
            _by(_counted(axis=lambda *_: 65_536)),
            "A grid axis takes 65,535: that is the last value below, and 65,536 the first above.",
        ),
        Mistake(
            "bytes in int32",
            _by(_counted(int32=lambda h, s, i, b, l2: INT32 // (h * s * i))),
            "The offset of an element counts elements, not bytes.",
        ),
        Mistake(
            "int32 one less",
            _by(_counted(int32=lambda h, s, i, b, l2: (INT32 - 1) // (h * s))),
            "The last element of n tokens has the offset n * heads * size - 1: 2^31 elements are still addressed.",
        ),
        Mistake(
            "block of tokens",
            _by(_counted(block=lambda h, s, i, b, l2: b)),
            "`block` counts rows, and a token has one for each head.",
        ),
        Mistake(
            "block rounded up",
            _by(_counted(block=lambda h, s, i, b, l2: math.ceil(b / h))),
            "The last number of tokens that fits a block is rounded down: block // heads.",
        ),
        Mistake(
            "unsorted",
            lambda f: isinstance(f.get("got"), list) and sorted(f["got"]) == f["wanted"],
            "The numbers are right: return them sorted.",
        ),
        Mistake(
            "more than asked",
            lambda f: isinstance(f.get("got"), list) and set(f["wanted"]) < set(f["got"]),
            "Only the two sides of the four limits are asked for: other shapes belong to the grid of the sweep.",
        ),
    ),
    hints=(
        "For each of the four limits, which is the largest number of tokens that it still allows? The other one is one more.",
        "block // heads; 65,535; l2 divided by the bytes of a token's x and y; 2^31 divided by the elements of a token.",
        "row = heads * size; lasts = (block // heads, 65_535, l2 // (2 * row * itemsize), 2**31 // row). Then a set of n and n + 1, "
        "sorted, with n >= 1 and 2 * n * row * itemsize <= memory.",
    ),
)
