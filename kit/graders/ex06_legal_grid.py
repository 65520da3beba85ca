"""Exercise 06.1: a grid that is legal on every axis, and a refusal where there is none."""

from __future__ import annotations

import math

from kit import machine
from kit.graders.paper import grid_picture
from kit.graders.step import Mistake, Step, counted

MOST_TOKENS = 1_048_576
# (num_tokens, num_heads, num_seqs, BLOCK): both sides of a block, no tokens, both sides of 65,536 on each axis, of 2^31 on the product.
GRIDS = (
    (1, 1, 1, 1),
    (127, 3, 2, 128),
    (128, 3, 2, 128),
    (129, 3, 2, 128),
    (0, 8, 4, 128),
    (65_535, 4, 1, 1),
    (65_536, 4, 1, 1),
    (100_003, 8, 2, 1),
    (MOST_TOKENS, 32, 1, 16),
    (4096, 6, 10_923, 128),
    (MOST_TOKENS, 128, 15, 1),
    (MOST_TOKENS - 1, 128, 16, 1),
    (MOST_TOKENS, 96, 64, 1),
    (MOST_TOKENS, 128, 16, 1),
    (MOST_TOKENS, 128, 16_384, 1),
)


def blocks_of(num_tokens, BLOCK):
    """How many blocks of BLOCK tokens cover num_tokens."""
    return -(-num_tokens // BLOCK)


def grade_grid(answer, trial):
    """Judge `legal_grid`: one program a block, head and sequence; legal on every axis; ValueError where no grid holds them."""
    most = machine.current().limits.programs
    for num_tokens, num_heads, num_seqs, BLOCK in GRIDS:
        blocks = blocks_of(num_tokens, BLOCK)
        wanted = blocks * num_heads * num_seqs
        ran = f"{counted(num_tokens, 'token')}, {counted(num_heads, 'head')}, {counted(num_seqs, 'sequence')}, BLOCK {BLOCK}"
        facts = {
            "tokens": num_tokens,
            "blocks": blocks,
            "heads": num_heads,
            "seqs": num_seqs,
            "BLOCK": BLOCK,
            "wanted": wanted,
            "most": most,
        }
        try:
            grid = trial.call(answer, num_tokens, num_heads, num_seqs, BLOCK, ran=ran, expect=ValueError)
        except ValueError as error:
            if wanted <= most:
                text = f"{ran}: it raises ValueError, and {counted(wanted, 'program')} do fit a grid"
                told = {"got": f"ValueError: {error}", "expected": f"a grid of {counted(wanted, 'program')}"}
                trial.problem("answer", text, facts | {"refuses": True}, ran=ran, where="the call", **told)
        else:
            _judge_grid(grid, trial, ran, facts)
        trial.case(ran)


def _judge_grid(grid, trial, ran, facts):
    limits = machine.current().limits
    if not _whole(grid):
        text = f"{ran}: it returns {grid!r:.60}, and a grid is a tuple of one to three whole numbers"
        trial.problem(
            "answer", text, facts | {"type": grid}, ran=ran, where="what it returns", got=f"{grid!r:.60}", expected="a tuple such as (8, 1)"
        )
        return
    full, wanted = (*grid, 1, 1)[:3], facts["wanted"]
    facts = facts | {"grid": full, "count": math.prod(full)}
    told = {"ran": ran, "where": f"grid {tuple(grid)}", "picture": grid_picture(grid)}
    over = [axis for axis, (n, limit) in enumerate(zip(full, limits.grid, strict=True)) if n > limit]
    if wanted > facts["most"]:
        text = f"{ran}: {counted(wanted, 'program')} are over 2^31 - 1, and it returns {tuple(grid)}: no launch runs them"
        trial.problem("launch", text, facts | {"late": True}, got=f"{tuple(grid)}", expected="ValueError", **told)
    elif over:
        axis = over[0]
        text = f"{ran}: the launch is refused, grid[{axis}] is {full[axis]:,}, over {limits.grid[axis]:,}"
        trial.problem("launch", text, facts | {"axis": axis}, got=f"{full[axis]:,}", expected=f"at most {limits.grid[axis]:,}", **told)
    elif facts["count"] != wanted:
        text = f"{ran}: grid {tuple(grid)} has {counted(facts['count'], 'program')}, expected {wanted:,}"
        trial.problem("answer", text, facts, got=f"{facts['count']:,}", expected=f"{wanted:,}", **told)


def _whole(grid):
    return (
        isinstance(grid, (tuple, list))
        and 1 <= len(grid) <= 3
        and all(isinstance(n, int) and not isinstance(n, bool) and n >= 0 for n in grid)
    )


def _axis_is(product):
    return lambda f: "axis" in f and f["grid"][f["axis"]] == product(f)


def _has_float(grid):
    return isinstance(grid, float) or (isinstance(grid, (tuple, list)) and any(isinstance(n, float) for n in grid))


STEP_1 = Step(
    number="06.1",
    title="A legal grid",
    spec="Return a grid with one program for each block of tokens of each head of each sequence; ValueError where there is none.",
    answer="function",
    call="legal_grid(num_tokens, num_heads, num_seqs, BLOCK)",
    size="about 4 lines",
    grade=grade_grid,
    mistakes=(
        Mistake("tokens on axis 1 or 2", _axis_is(lambda f: f["blocks"]), "Is the number of tokens on an axis other than 0?"),
        Mistake(
            "two numbers multiplied",
            _axis_is(lambda f: f["heads"] * f["seqs"]),
            "Are two small numbers multiplied on axis 1 or 2? Their product is not small.",
        ),
        Mistake("another axis", lambda f: "axis" in f, "Axes 1 and 2 hold at most 65,535 programs: which number can grow past it?"),
        Mistake(
            "limit off by one",
            lambda f: "late" in f and f["wanted"] == 2**31,
            "Is the limit on the product taken as 2^31 itself? It is 2^31 - 1.",
        ),
        Mistake(
            "no product check", lambda f: "late" in f, "Every axis may be legal and the product not: is the product of all three checked?"
        ),
        Mistake(
            "refuses too much",
            lambda f: "refuses" in f,
            "Does a check refuse a product that fits? Only axes 1 and 2 stop at 65,535; the product stops at 2^31 - 1.",
        ),
        Mistake("floats", lambda f: "type" in f and _has_float(f["type"]), "A division with / gives a float: use triton.cdiv."),
        Mistake("nothing returned", lambda f: "type" in f and f["type"] is None, "Is the return missing?"),
        Mistake(
            "divides by zero",
            lambda f: isinstance(f.get("error"), ZeroDivisionError),
            "With 0 tokens there are 0 blocks: is something divided by that number?",
        ),
        Mistake(
            "clamped",
            lambda f: f.get("count", 0) < f.get("wanted", 0) and 65_535 in f["grid"],
            "Is an axis cut at 65,535? The work above it is dropped.",
        ),
        Mistake(
            "rounded down",
            lambda f: "count" in f and f["count"] == f["tokens"] // f["BLOCK"] * f["heads"] * f["seqs"],
            "Does a floor division drop the last, partial block? triton.cdiv rounds up.",
        ),
        Mistake(
            "no tokens",
            lambda f: f.get("tokens") == 0,
            "With 0 tokens there is nothing to do: is at least one program launched all the same?",
        ),
        Mistake(
            "one block too many",
            lambda f: "count" in f and f["count"] == (f["tokens"] // f["BLOCK"] + 1) * f["heads"] * f["seqs"],
            "Is 1 added after a floor division? Where BLOCK divides the tokens that is one block too many: triton.cdiv.",
        ),
        Mistake(
            "too many",
            lambda f: f.get("count", 0) > f.get("wanted", 0),
            "Is an axis split in two and rounded up? That leaves programs without a block.",
        ),
        Mistake("too few", lambda f: f.get("count", 0) < f.get("wanted", 0), "Is a head, a sequence or a block left out?"),
    ),
    hints=(
        "Three numbers multiply to the number of programs. Which of them can pass 65,535, and on which axis may it?",
        "Axis 0 holds up to 2^31 - 1 programs, so all may go there: one number, the product. triton.cdiv(num_tokens, BLOCK) counts blocks.",
        "programs = triton.cdiv(num_tokens, BLOCK) * num_heads * num_seqs; raise ValueError if programs > 2**31 - 1; return (programs,).",
    ),
)
