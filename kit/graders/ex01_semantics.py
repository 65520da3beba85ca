"""Exercise 01: whole numbers below zero; narrow types and a kernel that reads like Python are in ex01_narrow.py and ex01_window.py."""

from __future__ import annotations

import torch

from kit import machine
from kit.ghosts import ghost
from kit.graders.buffers import OUTSIDE, RIGHT, UNWRITTEN, WRONG, Buffer, cells_picture
from kit.graders.ex01_narrow import STEP_2
from kit.graders.ex01_window import STEP_3
from kit.graders.launching import compiles, launch, on_paper
from kit.graders.step import Exercise, Mistake, Step, counted

BLOCK = 128

# ---- 01.1: floor division and remainder
BITS = {"int8": 8, "int16": 16, "int32": 32, "int64": 64, "uint8": 8, "uint16": 16, "uint32": 32, "uint64": 64}


def wrapped(value, dtype):
    """A whole number as `dtype` keeps it."""
    bits = BITS[dtype]
    value %= 1 << bits
    return value - (1 << bits) if dtype.startswith("int") and value >> (bits - 1) else value


def pairs(dtype):
    """(a, b) for a case of `dtype`: signs, exact quotients, ones around them, and the ends of the type. 7 is no multiple of anything here.

    What nothing defines is left out: a divisor of 0, and the smallest number divided by -1.
    """
    bits, signed = BITS[dtype], dtype.startswith("int")
    low, high = (-(1 << (bits - 1)), (1 << (bits - 1)) - 1) if signed else (0, (1 << bits) - 1)
    near = [n for n in (7, -7, 8, -8, 9, -9, 0, 1, -1, 100, -100, low, low + 1, low + 5, high, high - 1, high // 2 + 1) if low <= n <= high]
    found = [(a, b) for a in near for b in near if b and not (signed and a == low and b == -1)]
    return sorted(set(found), key=found.index)


def truncated(a, b):
    """(a // b, a % b) rounded toward zero."""
    q = abs(a) // abs(b) * (1 if (a < 0) == (b < 0) else -1)
    return q, a - q * b


def grade_floor(kernel, trial):
    """Judge `floor_kernel` on every integer dtype: each compiled, on paper, and compared with Python's own // and %."""
    trial.evidence = machine.current().evidence
    for dtype in ("int32", "int8", "int16", "int64", "uint8", "uint32", "uint64"):
        _floor_case(kernel, trial, dtype)


def _floor_case(kernel, trial, dtype):
    asked, n = pairs(dtype), len(pairs(dtype))
    ran = f"{counted(n, 'pair')} of {dtype}"
    # Buffers are of the signed dtype of the same width: torch cannot fill and compare the unsigned ones.
    signed, as_kind = getattr(torch, f"int{BITS[dtype]}"), getattr(torch, dtype)
    columns = [torch.tensor([wrapped(value, f"int{BITS[dtype]}") for value in column], dtype=signed) for column in zip(*asked, strict=True)]
    a, b = (Buffer((n,), signed, values=column) for column in columns)
    q, r = Buffer((n,), signed), Buffer((n,), signed)
    grid = (-(-n // BLOCK),)
    facts = {"kernel": kernel, "dtype": dtype, "pairs": asked}
    # Which memory is touched does not depend on the numbers, so on paper they are small: a sum that wraps there is no finding.
    paper = [torch.full((n,), small, dtype=signed, device=a.view.device).view(as_kind) for small in (5, 3)] + [ghost((n,), as_kind)] * 2
    compiles(trial, kernel, (*paper, n, BLOCK), ran, facts)
    memory = on_paper(trial, kernel, grid, (*paper, n, BLOCK), ran, facts)
    views = [x.parent.view(as_kind)[x.offset : x.offset + n] for x in (a, b, q, r)]
    trial.call(launch, kernel, grid, *views, n, BLOCK, ran=ran)
    got = [[wrapped(value, dtype) for value in x.view.tolist()] for x in (q, r)]
    facts["got_q"], facts["got_r"] = got
    facts["q_wrong"] = [i for i, (x, y) in enumerate(asked) if got[0][i] != x // y]
    facts["r_wrong"] = [i for i, (x, y) in enumerate(asked) if got[1][i] != x % y]
    inside = _exact(trial, q, facts["q_wrong"], got[0], [x // y for x, y in asked], "q", "//", ran, facts)
    if not trial.problems:
        inside = _exact(trial, r, facts["r_wrong"], got[1], [x % y for x, y in asked], "r", "%", ran, facts) and inside
    trial.case(ran, values=not (facts["q_wrong"] or facts["r_wrong"]), memory=memory and inside)


def _exact(trial, out, wrong, got, expected, name, operator, ran, facts):
    """Compare to the bit; note a problem with the first wrong pair. Returns whether no cell outside was written."""
    states = out.states(None)
    inside = states[out.offset : out.offset + len(got)]
    unwritten = inside == RIGHT
    inside[:] = RIGHT
    outside = bool((states == OUTSIDE).any())
    if outside:
        cell = int((states == OUTSIDE).nonzero()[0])
        text = f"{ran}: cells outside {name} overwritten, the first at element offset {cell - out.offset:,}"
        picture = cells_picture(f"{name}, and the guard cells around it", states, cell, out.offset)
        where = f"element offset {cell - out.offset:,} of {name}"
        trial.problem(
            "memory", text, {**facts, "outside": True}, ran=ran, where=where, got="overwritten", expected="untouched", picture=picture
        )
    if wrong:
        for i in wrong:
            inside[i] = UNWRITTEN if unwritten[i] else WRONG
        i = wrong[0]
        a, b = facts["pairs"][i]
        said = "never written" if unwritten[i] else f"{got[i]:,}"
        text = f"{ran}: {a:,} {operator} {b:,} is {said}, expected {expected[i]:,} ({len(wrong):,} of {len(got):,} wrong)"
        picture = cells_picture(f"{name}: right and wrong elements", states, out.offset, out.offset)
        told = {"where": f"{name} at element {i}, {a:,} {operator} {b:,}", "got": said, "expected": f"{expected[i]:,}", "picture": picture}
        trial.problem("values", text, {**facts, "unwritten": bool(unwritten[i])}, ran=ran, **told)
    return not outside


def _gives(formula, which="both"):
    """True when `formula(a, b)`, wrapped to the dtype, gives every quotient and remainder of the failing case."""

    def seen(f):
        if "got_q" not in f:
            return False
        told = [[wrapped(int(value), f["dtype"]) for value in formula(a, b)] for a, b in f["pairs"]]
        q, r = zip(*told, strict=True)
        return (which == "r" or list(q) == f["got_q"]) and (which == "q" or list(r) == f["got_r"])

    return seen


def _signs_alone(a, b):
    q, r = truncated(a, b)
    return (q - 1, r + b) if (a < 0) != (b < 0) else (q, r)


def _divides_rest(f):
    """q is (a - r) // b, where a - r has wrapped."""
    return "got_q" in f and f["got_q"] == [truncated(wrapped(a - a % b, f["dtype"]), b)[0] for a, b in f["pairs"]]


def _wrong_is_wide(f):
    return bool(f.get("q_wrong")) and all(max(map(abs, f["pairs"][i])) > 2**14 for i in f["q_wrong"])


STEP_1 = Step(
    number="01.1",
    title="Floor, whatever the sign",
    spec="Make q and r Python's a // b and a % b, for every integer dtype.",
    answer="kernel",
    call="floor_kernel(a_ptr, b_ptr, q_ptr, r_ptr, n, BLOCK)",
    size="about 4 lines",
    grade=grade_floor,
    mistakes=(
        Mistake("outside", lambda f: "outside" in f or f.get("about") == "memory", "It writes past the end: does the mask still hold?"),
        Mistake("nothing there", lambda f: f.get("unwritten"), "Is each of q and r stored?"),
        Mistake(
            "a negative literal",
            lambda f: "unsigned tensor and a negative scalar" in f.get("told", ""),
            "An unsigned tensor takes no negative literal: write the correction without one.",
        ),
        Mistake(
            "not compiled",
            lambda f: "told" in f,
            "Triton refuses it for this dtype: do all operations work on it, and do both sides of each have one signedness?",
        ),
        Mistake("as it was", _gives(truncated), "Triton's // and % round toward zero. Where is the result not Python's?"),
        Mistake(
            "signs alone",
            _gives(_signs_alone),
            "An exact quotient needs no correction, whatever the signs: look at the remainder first.",
        ),
        Mistake(
            "quotient left",
            lambda f: bool(f.get("q_wrong")) and not f["r_wrong"] and _gives(truncated, "q")(f),
            "The remainder is right and the quotient is not: where the one moves by b, the other moves by 1.",
        ),
        Mistake(
            "remainder left",
            lambda f: bool(f.get("r_wrong")) and not f["q_wrong"] and _gives(truncated, "r")(f),
            "The quotient is right and the remainder is not: where the one moves by 1, the other moves by b.",
        ),
        Mistake(
            "absolute",
            _gives(lambda a, b: (a // b, abs(truncated(a, b)[1])), "r"),
            "The remainder is not made positive, it is moved by b: -7 % 4 is 1 and not 3.",
        ),
        Mistake(
            "wrong way",
            _gives(lambda a, b: (truncated(a, b)[0] + (a % b != truncated(a, b)[1]), a % b), "q"),
            "Flooring goes down: the quotient is one less, and never one more.",
        ),
        Mistake(
            "positive divisors",
            lambda f: bool(f.get("r_wrong")) and all(f["pairs"][i][1] < 0 for i in f["r_wrong"]),
            "Is the sign of the remainder compared with 0? A negative divisor wants a negative remainder: compare it with the divisor's.",
        ),
        Mistake(
            "top bit",
            lambda f: "got_q" in f and f["dtype"].startswith("uint"),
            "An unsigned number has no sign, and its upper half is not negative. Is it made signed, or narrower, on the way?",
        ),
        Mistake(
            "overflow",
            _divides_rest,
            "Does a - r leave the type? At its lower end it wraps. Correct a // b instead.",
        ),
        Mistake(
            "adding b",
            lambda f: (
                bool(f.get("r_wrong"))
                and all(abs(truncated(*f["pairs"][i])[1]) + abs(f["pairs"][i][1]) >= 2 ** (BITS[f["dtype"]] - 1) for i in f["r_wrong"])
            ),
            "r + b leaves the type where both are large, and wraps: add b only where the signs differ.",
        ),
        Mistake(
            "float", _wrong_is_wide, "Small numbers are right and large ones are not. Is there a float, or a narrower integer, on the way?"
        ),
    ),
    hints=(
        "Compare Python's -7 // 4, -7 % 4, 7 // -4, 7 % -4 and -8 // 4 with what C gives. Where do they differ, and by how much?",
        "They differ where the remainder is not 0 and its sign is not the divisor's: there r + b, and the quotient less 1.",
        "r = a % b; off = (r != 0) & ((r < 0) != (b < 0)); q = a // b - off; r = tl.where(off, r + b, r)",
    ),
)

EXERCISE = Exercise("01_semantics", "Semantics", (STEP_1, STEP_2, STEP_3))
