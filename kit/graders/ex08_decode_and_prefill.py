"""Exercise 08: count a launch, give a program enough to do, and a rule that picks a tile from decode to prefill."""

from __future__ import annotations

from kit.graders.ex08_norm import STEP_2
from kit.graders.ex08_rule import STEP_3
from kit.graders.step import Exercise, Mistake, Step, counted

# ---- 08.1: what a launch of RoPE moves
ITEM = 2  # bytes of a float16
# (tokens, heads, size, BLOCK_T, BLOCK_H): whole tiles, a head a program, both sides of an edge on each axis, more tile than there is.
LAUNCHES = (
    (512, 32, 128, 4, 8),
    (8_192, 32, 128, 1, 1),
    (8_192, 32, 128, 1, 32),
    (1, 1, 64, 1, 1),
    (33, 32, 128, 16, 32),
    (16, 40, 128, 4, 16),
    (1, 8, 128, 16, 8),
    (5, 3, 64, 4, 8),
    (15, 9, 80, 16, 4),
    (0, 32, 128, 4, 8),
    (100_003, 40, 128, 8, 16),
)


def programs_of(tokens, heads, BLOCK_T, BLOCK_H):
    """The two axes of the grid that covers tokens and heads with tiles."""
    return -(-tokens // BLOCK_T), -(-heads // BLOCK_H)


def moved_by(tokens, heads, size, BLOCK_T, BLOCK_H):
    """(programs, bytes that they read and write): x and y once, and cos and sin once for each column of tiles."""
    along_t, along_h = programs_of(tokens, heads, BLOCK_T, BLOCK_H)
    return along_t * along_h, ITEM * (2 * tokens * heads * size + along_h * tokens * size)


def grade_launch(answer, trial):
    """Judge `launch`: the programs of the grid, and the bytes that all of them together read and write."""
    for numbers in LAUNCHES:
        tokens, heads, size, BLOCK_T, BLOCK_H = numbers
        ran = f"{counted(tokens, 'token')} of {counted(heads, 'head')} of {size}, tiles of {BLOCK_T} x {BLOCK_H}"
        got = trial.call(answer, *numbers, ran=ran)
        _judge(got, trial, ran, numbers)
        trial.case(ran)


def _judge(got, trial, ran, numbers):
    wanted, facts = moved_by(*numbers), {"got": got, "numbers": numbers}
    told = {"ran": ran, "where": "what it returns", "got": f"{got!r:.60}"}
    pair = isinstance(got, (tuple, list)) and len(got) == 2
    if not pair or not all(isinstance(n, int) and not isinstance(n, bool) for n in got):
        text = f"{ran}: it returns {got!r:.60}, and not two whole numbers"
        trial.problem("answer", text, facts | {"what": "type"}, expected="(programs, bytes)", **told)
    elif got[0] != wanted[0]:
        text = f"{ran}: it says {counted(got[0], 'program')}, and the grid has {wanted[0]:,}"
        picture = _bars("Programs", "programs", got[0], wanted[0])
        trial.problem("answer", text, facts | {"what": "programs"}, expected=f"{wanted[0]:,} programs", picture=picture, **told)
    elif got[1] != wanted[1]:
        text = f"{ran}: it says {counted(got[1], 'byte')}, and the programs move {wanted[1]:,}"
        picture = _bars("Bytes that the launch moves", "bytes", got[1], wanted[1])
        trial.problem("answer", text, facts | {"what": "bytes"}, expected=f"{wanted[1]:,} bytes", picture=picture, **told)


def _bars(title, unit, got, wanted):
    rows = [{"label": "yours", "value": max(0, got), "ok": False}, {"label": "the launch's", "value": wanted, "ok": True}]
    return {"kind": "Bars", "title": title, "unit": unit, "rows": rows}


def _programs(rule):
    """True when the programs are what `rule(tokens, heads, BLOCK_T, BLOCK_H)` says."""
    return lambda f: f.get("what") == "programs" and f["got"][0] == rule(*f["numbers"][:2], *f["numbers"][3:])


def _bytes(rule):
    """True when the bytes are what `rule(tokens, heads, size, BLOCK_T, BLOCK_H)` says."""
    return lambda f: f.get("what") == "bytes" and f["got"][1] == rule(*f["numbers"])


def _padded(tokens, heads, size, BLOCK_T, BLOCK_H):
    """Bytes as though no lane were masked."""
    along_t, along_h = programs_of(tokens, heads, BLOCK_T, BLOCK_H)
    return moved_by(along_t * BLOCK_T, along_h * BLOCK_H, size, BLOCK_T, BLOCK_H)[1]


STEP_1 = Step(
    number="08.1",
    title="Count a launch",
    spec="Return (programs, bytes): the programs of RoPE's grid, and the bytes that all of them together read and write.",
    answer="function",
    call="launch(tokens, heads, size, BLOCK_T, BLOCK_H)",
    size="about 4 lines",
    grade=grade_launch,
    mistakes=(
        Mistake("nothing returned", lambda f: "got" in f and f["got"] is None, "Is the return missing?"),
        Mistake(
            "floats",
            lambda f: f.get("what") == "type" and isinstance(f["got"], (tuple, list)) and any(isinstance(n, float) for n in f["got"]),
            "A division with / gives a float: triton.cdiv counts tiles, and rounds up.",
        ),
        Mistake("not a pair", lambda f: f.get("what") == "type", "Two whole numbers are asked for: return programs, bytes."),
        Mistake(
            "rounded down",
            _programs(lambda t, h, BT, BH: (t // BT) * (h // BH)),
            "Does a floor division drop the tiles at the edges? triton.cdiv rounds up.",
        ),
        Mistake(
            "over the product",
            _programs(lambda t, h, BT, BH: -(-t * h // (BT * BH))),
            "Are tokens and heads multiplied before the division? The grid has two axes, and each rounds up by itself.",
        ),
        Mistake(
            "heads not tiled",
            _programs(lambda t, h, BT, BH: -(-t // BT) * h),
            "Does each head have a program of its own? A program owns BLOCK_H of them.",
        ),
        Mistake("programs", lambda f: f.get("what") == "programs", "How many tiles cover the tokens, how many the heads?"),
        Mistake(
            "cos and sin once",
            _bytes(lambda t, h, s, BT, BH: ITEM * (2 * t * h * s + t * s)),
            "Are cos and sin counted once? Each program reads those of its tokens: once for every tile along the heads.",
        ),
        Mistake(
            "cos and sin for each head",
            _bytes(lambda t, h, s, BT, BH: ITEM * (2 * t * h * s + h * t * s)),
            "Are cos and sin counted for each head? A program reads them once for all heads of its tile.",
        ),
        Mistake(
            "no cos and sin",
            _bytes(lambda t, h, s, BT, BH: ITEM * 2 * t * h * s),
            "Are the cosines and sines left out? They are read, too.",
        ),
        Mistake(
            "one of cos and sin",
            _bytes(lambda t, h, s, BT, BH: ITEM * (2 * t * h * s + -(-h // BH) * t * s // 2)),
            "A row of cos has size // 2 numbers, and so has a row of sin: are both counted?",
        ),
        Mistake(
            "full rows",
            _bytes(lambda t, h, s, BT, BH: ITEM * (2 * t * h * s + 2 * -(-h // BH) * t * s)),
            "Does a row of cos have size numbers in it? It has size // 2, one for each pair of elements.",
        ),
        Mistake(
            "not written",
            _bytes(lambda t, h, s, BT, BH: ITEM * (t * h * s + -(-h // BH) * t * s)),
            "Is only what is read counted? y is written, as large as x.",
        ),
        Mistake(
            "elements", lambda f: f.get("what") == "bytes" and ITEM * f["got"][1] == moved_by(*f["numbers"])[1], "A float16 has two bytes."
        ),
        Mistake(
            "float32",
            lambda f: f.get("what") == "bytes" and f["got"][1] == 2 * moved_by(*f["numbers"])[1],
            "A float16 has two bytes, not four.",
        ),
        Mistake("masked lanes", _bytes(_padded), "Are whole tiles counted at the edges? Masked lanes move nothing."),
        Mistake(
            "bytes", lambda f: f.get("what") == "bytes", "x is read and y written once; cos and sin are read once for every tile of heads."
        ),
    ),
    hints=(
        "The grid has an axis of token tiles and an axis of head tiles. Which of the four tensors does a second head tile read again?",
        "Programs: a triton.cdiv for each axis. x and y have tokens * heads * size elements each, cos and sin tokens * size // 2 each.",
        "tiles_h = triton.cdiv(heads, BLOCK_H); programs = triton.cdiv(tokens, BLOCK_T) * tiles_h; "
        "bytes = 2 * (2 * tokens * heads * size + tiles_h * tokens * size).",
    ),
)


EXERCISE = Exercise("08_decode_and_prefill", "Decode and prefill", (STEP_1, STEP_2, STEP_3))
