"""Exercise 04.1: count the variants of a list of launches."""

from __future__ import annotations

import itertools
import math

from kit.graders.step import Mistake, Step

# {what the case is about: launches (address, n, step)}. Sizes near 1, 16 and the ends of int32, and one pair whose order matters.
CASES = {
    "no launch at all": [],
    "the same launch three times": [(64, 100, 5)] * 3,
    "other numbers of one class": [(64, n, 5) for n in (2, 3, 15, 17, 1001)],
    "the eight sizes of the lesson": [(64, n, 5) for n in (0, 1, 2, 3, 15, 16, 17, 32)],
    "a step that alternates between 0 and 1": [(64, 100, i % 2) for i in range(6)],
    "views of one float32 tensor": [(64 + 4 * i, 100, 5) for i in range(6)],
    "views of one uint8 tensor": [(64 + i, 100, 5) for i in range(4)],
    "addresses that are multiples of 8": [(64, 100, 5), (72, 100, 5), (80, 100, 5)],
    "numbers that are multiples of 8": [(64, n, 5) for n in (8, 16, 24, 32)],
    "numbers below zero": [(64, 100, step) for step in (-1, -2, -15, -16, -32)],
    "classes that come together": [(64, 1, 1), (68, 2, 2), (64, 16, 16)],
    "two numbers that change places": [(64, 1, 2), (64, 2, 1)],
    "the upper end of int32": [(64, n, 5) for n in (2**31 - 1, 2**31, 2**31 + 1, 2**31 - 16)],
    "numbers of 40 bits": [(64, n, 5) for n in (5, 2**40 + 1, -(2**40) + 3)],
    "the lower end of int32": [(64, n, 5) for n in (-(2**31), -(2**31) - 16, -(2**31) - 1, -(2**31) + 1)],
    "all at once": list(itertools.product((64, 72), (1, 2, 16, 2**31), (0, 1, 7))),
}


def class_of(n, one=True, zero=False, by=16, width=True, edge=2**31):
    """The class of an integer argument; the keywords make it the class of somebody who has missed a rule."""
    if one and n == 1:
        return "= 1"
    if zero and n == 0:
        return "= 0"
    wide = width and not -edge <= n < edge
    return (wide, bool(by) and n % by == 0)


def variants_of(launches, align=16, together=True, **slips):
    """How many variants `launches` need. The keywords make it the answer of somebody who has missed a rule."""
    keys = [(bool(align) and address % align == 0, class_of(n, **slips), class_of(step, **slips)) for address, n, step in launches]
    if together:
        return len(set(keys))
    return math.prod(len(set(column)) for column in zip(*keys, strict=True)) if keys else 0


def grade_count(answer, trial):
    """Judge `count_variants`. All cases are asked before the first is judged: a likely cause is a rule whose lack explains every answer."""
    asked = [(launches, trial.call(answer, list(launches), ran=ran)) for ran, launches in CASES.items()]
    for ran, (launches, got) in zip(CASES, asked, strict=True):
        right = variants_of(launches)
        whole = isinstance(got, int) and not isinstance(got, bool)
        if not whole or got != right:
            shown = ", ".join(map(str, launches[:4])) + (", ..." if len(launches) > 4 else "")
            text = f"{ran} ({shown or 'an empty list'}): got {got!r:.40}, expected {right}"
            picture = _count_picture(launches, right, got) if whole and launches and got >= 0 else None
            told = {"ran": ran, "where": "what it returns", "got": f"{got!r:.40}", "expected": f"{right}", "picture": picture}
            trial.problem("answer", text, {"got": got, "right": right, "asked": asked, "whole": whole}, **told)
        trial.case(ran)


def _count_picture(launches, right, got):
    columns = zip(*[(address % 16 == 0, class_of(n), class_of(step)) for address, n, step in launches], strict=True)
    rows = [
        {"label": f"classes of {name}", "value": len(set(column)), "ok": None}
        for name, column in zip(("the address", "n", "step"), columns, strict=True)
    ]
    rows += [{"label": "variants", "value": right, "ok": True}, {"label": "the answer", "value": got, "ok": False}]
    return {"kind": "Bars", "title": "How many there are in these launches", "rows": rows}


def _fits(**slips):
    """True when the rules with `slips` explain every answer."""
    return lambda f: "asked" in f and all(got == variants_of(launches, **slips) for launches, got in f["asked"])


def _fits_count(count):
    return lambda f: "asked" in f and all(got == count(launches) for launches, got in f["asked"])


STEP_1 = Step(
    number="04.1",
    title="Count the variants",
    spec="Return how many variants a list of launches needs, when no argument is exempt.",
    answer="function",
    call="count_variants(launches)",
    size="about 5 lines",
    grade=grade_count,
    mistakes=(
        Mistake("nothing returned", lambda f: "got" in f and f["got"] is None, "Is the return missing?"),
        Mistake("not a number", lambda f: not f.get("whole", True), "A number of variants is a whole number: is it the len() of a set?"),
        Mistake("every launch", _fits_count(len), "Is every launch counted? Launches of the same classes share a variant."),
        Mistake(
            "every value",
            _fits_count(lambda launches: len(set(launches))),
            "Is every value a class of its own? Only a constexpr is; an integer has a class, and values of one class share a variant.",
        ),
        Mistake(
            "product",
            _fits(together=False),
            "Are the classes of the arguments multiplied? That is how many there can be; only those that occur together are compiled.",
        ),
        Mistake("no class of 1", _fits(one=False), "Is an argument of 1 like any other? It becomes a constant of the kernel: a class."),
        Mistake("a class of 0", _fits(zero=True), "Is 0 a class of its own? It is a multiple of 16 like the others; only 1 is special."),
        Mistake("no sixteen", _fits(by=0), "Do multiples of 16 count? The compiler is told of them: another class."),
        Mistake("by eight", _fits(by=8), "Is that a multiple of 8? For an integer it is 16 that counts."),
        Mistake(
            "no width",
            _fits(width=False),
            "Does the width count? An integer that needs 64 bits has another type, which makes another variant.",
        ),
        Mistake("unsigned width", _fits(edge=2**32), "Is 2^32 the end? int32 has a sign: it ends at 2^31 - 1."),
        Mistake(
            "pointer left out",
            _fits(align=0),
            "Is the address left out? Whether it is a multiple of 16 bytes is the class of a pointer.",
        ),
        Mistake("pointer by 8", _fits(align=8), "Is that a multiple of 8 bytes? Sixteen are what a thread loads at once."),
        Mistake("pointer by 4", _fits(align=4), "Is the address counted in elements? It is in bytes, and it is 16 of them that count."),
        Mistake(
            "order",
            _fits_count(lambda launches: len({(a % 16 == 0, *sorted(map(str, (class_of(n), class_of(s))))) for a, n, s in launches})),
            "Are the classes of a launch sorted, or put in a set? Which argument has which class matters.",
        ),
    ),
    hints=(
        "A class is what the compiler knows of an argument: of an address, whether 16 divides it; of an integer, three things.",
        "An integer: is it 1? If not: does it fit 32 bits, and does 16 divide it? A variant is one combination of three classes.",
        'key = (address % 16 == 0, class_of(n), class_of(step)), with class_of 1 -> "1", others -> (-2**31 <= n < 2**31, n % 16 == 0); '
        "then len() of the set of keys",
    ),
)
