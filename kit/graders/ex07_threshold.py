"""Exercise 07.1: where the edge is, the first token that has an element past 2^31 - 1."""

from __future__ import annotations

from kit.graders.step import Mistake, Step, counted

EDGE = 2**31
# (num_heads, head_size): rows that divide 2^31, and rows that leave a remainder on either side of one half.
ROWS = ((8, 128), (16, 96), (32, 192), (24, 80), (40, 128), (64, 576), (1, 7168), (3, 85), (1, 1024))


def first_bad(num_heads, head_size):
    """The first token with an element at offset 2^31 or more, in a row-major (tokens, num_heads, head_size) tensor."""
    return EDGE // (num_heads * head_size)


def grade_threshold(answer, trial):
    """Judge `first_bad_token` on sizes where rounding, the last element of a row, and 2^31 against 2^31 - 1 make a difference.

    All sizes are asked before the first is judged: a likely cause is a formula that explains every answer.
    """
    asked = [(heads, size, trial.call(answer, heads, size, ran=_title(heads, size))) for heads, size in ROWS]
    for heads, size, got in asked:
        row, right = heads * size, first_bad(heads, size)
        whole = isinstance(got, int) and not isinstance(got, bool)
        if not whole or got != right:
            last = (right + 1) * row - 1
            said = f"{got:,}" if whole else f"{got!r:.40}"
            text = f"{_title(heads, size)}: got token {said}, expected {right:,}, whose last element is at offset {last:,}, past 2^31 - 1"
            picture = _threshold_picture(row, right, got) if whole and abs(got) < 2**40 else None
            told = {"ran": _title(heads, size), "where": "what it returns", "got": said, "expected": f"{right:,}", "picture": picture}
            trial.problem("answer", text, {"got": got, "right": right, "asked": asked}, **told)
        trial.case(_title(heads, size))


def _title(num_heads, head_size):
    return f"{counted(num_heads, 'head')} of {head_size:,}"


def _threshold_picture(row, right, got):
    marks = [
        {"at": (right + 1) * row - 1, "label": f"end of token {right:,}", "ok": True},
        {"at": (got + 1) * row - 1, "label": f"end of token {got:,}, the answer", "ok": False},
    ]
    return {"kind": "NumberLine", "title": "Where a token ends", "marks": marks, "unit": "elements"}


def _fits(formula):
    """True when `formula(row, head_size)` explains every answer."""
    return lambda f: "asked" in f and all(got == formula(heads * size, size) for heads, size, got in f["asked"])


STEP_1 = Step(
    number="07.1",
    title="Where is the edge?",
    spec="Return the first token that has an element at offset 2^31 or more, in a row-major tensor (tokens, num_heads, head_size).",
    answer="function",
    call="first_bad_token(num_heads, head_size)",
    size="about 2 lines",
    grade=grade_threshold,
    mistakes=(
        Mistake(
            "not a whole number", lambda f: isinstance(f.get("got"), float), "A token is a whole number: use //, which is exact, and not /."
        ),
        Mistake("nothing returned", lambda f: "got" in f and f["got"] is None, "Is the return missing?"),
        Mistake(
            "2^31 - 1",
            _fits(lambda row, _: (EDGE - 1) // row),
            "Is 2^31 - 1 divided? That offset still fits: there are 2^31 offsets from 0 to 2^31 - 1.",
        ),
        Mistake(
            "bytes",
            lambda f: any(_fits(lambda row, _, n=n: EDGE // (row * n))(f) for n in (2, 4)),
            "Are these bytes? Offsets count elements.",
        ),
        Mistake("unsigned", _fits(lambda row, _: 2 * EDGE // row), "Is this 2^32? int32 has a sign, so offsets end at 2^31 - 1."),
        Mistake("heads left out", _fits(lambda _, size: EDGE // size), "A token has num_heads rows of head_size: is num_heads missing?"),
        Mistake(
            "first element only",
            _fits(lambda row, _: -(-EDGE // row)),
            "That token begins past 2^31; the one before it ends past it. Which of its elements decides?",
        ),
        Mistake(
            "a count",
            _fits(lambda row, _: EDGE // row + 1),
            "Is this the number of tokens? Tokens are numbered from 0, so the last of n is n - 1.",
        ),
        Mistake("one early", _fits(lambda row, _: EDGE // row - 1), "Is 1 taken off once too often? Token t begins at offset t * row."),
        Mistake(
            "rounding",
            lambda f: isinstance(f.get("got"), int) and abs(f["got"] - f["right"]) < 2 + f["right"] * 2**-20,
            "Is the quotient rounded? Whole-number division, //, is exact.",
        ),
    ),
    hints=(
        "How many elements has one token? Token t takes the offsets from t * row to (t + 1) * row - 1.",
        "Tokens that fit entirely below 2^31: that many whole rows. The next token is the first that does not.",
        "return 2**31 // (num_heads * head_size)",
    ),
)
