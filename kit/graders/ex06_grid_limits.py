"""Exercise 06: a grid that every GPU runs, for every number of tokens."""

from __future__ import annotations

import math

import torch

from kit import machine
from kit.graders.buffers import Buffer, compare
from kit.graders.paper import grid_picture, meta, on_paper, tell_report
from kit.graders.reading import words_of
from kit.graders.step import Exercise, Mistake, Step, counted

MOST_TOKENS = 1_048_576
TILE = 16

# ---- 06.1: the grid alone
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


def _has_float(grid):
    return isinstance(grid, float) or (isinstance(grid, (tuple, list)) and any(isinstance(n, float) for n in grid))


# ---- 06.2 and 06.3: a kernel and its launch
def grade_launch(answer, trial, tokens, tile=None):
    """Judge a wrapper `answer(x, w, out)` of out[t, h, :] = x[t, h, :] * w[h]: small sizes, both sides of 65,536, 1 M tokens on paper.

    Each case is run on paper, for the grid and the memory, then for its values in guarded buffers. `tile` is the tokens a program owns.
    """
    trial.evidence = machine.current().evidence
    for case, num_tokens in enumerate(tokens):
        small = num_tokens < 1000
        num_heads, head_size, wider = (3, 20, (4, 24)) if small else (2, 5, None)
        ran = f"{counted(num_tokens, 'token')} of {num_heads} heads"
        facts = {"tokens": num_tokens, "heads": num_heads, "tile": tile}
        _on_paper(answer, trial, num_tokens, num_heads, head_size, ran, facts)
        memory = not any(p.about == "memory" for p in trial.problems)
        right = _values(answer, trial, num_tokens, num_heads, head_size, wider if case % 2 else None, ran, facts)
        trial.case(ran, values=right, memory=memory and not any(p.about == "memory" for p in trial.problems))
    ran = f"{counted(MOST_TOKENS, 'token')} of 16 heads, on paper"
    _on_paper(answer, trial, MOST_TOKENS, 16, 64, ran, {"tokens": MOST_TOKENS, "heads": 16, "tile": tile})
    trial.case(ran)


def _on_paper(answer, trial, num_tokens, num_heads, head_size, ran, facts):
    shape = (num_tokens, num_heads, head_size)
    with on_paper() as launches:
        trial.call(answer, meta(shape, torch.float32), meta((num_heads,), torch.float32), meta(shape, torch.float32), ran=ran)
    facts |= {"grids": [launch.grid for launch in launches], "kernels": [launch.kernel for launch in launches]}
    for launch in launches:
        tell_report(trial, launch.report, ran, facts)
    programs = sum(launch.programs for launch in launches)
    facts["programs"] = programs
    if not launches and num_tokens:
        trial.problem(
            "launch", f"{ran}: no kernel is launched", facts | {"nothing": True}, ran=ran, where="the call", got="0 launches", expected="1"
        )
    elif facts["tile"] and not trial.problems and programs > -(-num_tokens // facts["tile"]) * num_heads:
        wanted = -(-num_tokens // facts["tile"]) * num_heads
        text = f"{ran}: {counted(programs, 'program')} are launched, and {wanted:,} tiles of {facts['tile']} tokens cover them"
        picture = grid_picture(launches[0].grid)
        trial.problem(
            "launch", text, facts | {"many": True}, ran=ran, where="the grid", got=f"{programs:,}", expected=f"{wanted:,}", picture=picture
        )


def _values(answer, trial, num_tokens, num_heads, head_size, wider, ran, facts):
    shape = (num_tokens, num_heads, head_size)
    device = machine.current().device
    values = torch.randn(shape, device=device)
    weights = torch.arange(2, num_heads + 2, dtype=torch.float32, device=device)
    wide = wider and (num_tokens, *wider)
    x = Buffer(shape, torch.float32, values=values, wider=wide, offset=2051 if wide else 2048)
    w = Buffer((num_heads,), torch.float32, values=weights)
    out = Buffer(shape, torch.float32, wider=wide)
    if any(p.about == "launch" for p in trial.problems):
        return None  # refused, or not what was asked: there are no values to compare
    if any(p.about == "memory" for p in trial.problems) and machine.current().live:
        return None  # on a GPU the launch could end the process; the paper run has told
    trial.call(answer, x.view, w.view, out.view, ran=ran)
    expected = values * weights[:, None]
    return compare(trial, out, expected, name="out", axes=("token", "head", "element"), ran=ran, facts=facts)[0]


def _refused_axis(f):
    """The first axis over its limit, with the grid, of a refused launch; None otherwise."""
    if f.get("hazard") != "grid":
        return None
    over = [axis for axis, n in enumerate((*f["grid"], 1, 1)[:3]) if axis and n > 65_535]
    return over[0] if over else None


def _token_axis_refused(f):
    axis = _refused_axis(f)
    tiles = (f["tokens"], -(-f["tokens"] // f["tile"])) if f.get("tile") else (f["tokens"],)
    return axis is not None and f["grid"][axis] in tiles


def _tail(f, first):
    """The unwritten elements are those of the tokens from `first` on, and nothing else is wrong."""
    return f.get("about") == "values" and f["first"][0] == first and f["unwritten"] == f["bad"] and f["last"][0] == f["tokens"] - 1


COMMON = (
    Mistake("tokens on axis 1", _token_axis_refused, "Is the number of tokens still on axis 1? Axis 0 is the one that holds more."),
    Mistake("another axis", lambda f: _refused_axis(f) is not None, "Axes 1 and 2 hold at most 65,535 programs: which number is there?"),
    Mistake("nothing launched", lambda f: "nothing" in f, "Does a condition skip the launch? Large inputs need the work too."),
    Mistake(
        "not on this machine",
        lambda f: isinstance(f.get("error"), AttributeError),
        "The wrapper may use the shape and strides of its arguments, and launch.",
    ),
)

STEP_2 = Step(
    number="06.2",
    title="Swap or flatten",
    spec="Change kernel and launch so that any number of tokens runs: today the grid is (num_heads, num_tokens).",
    answer="function",
    call="scale_heads(x, w, out)",
    size="about 2 lines in the kernel, 1 in the launch",
    grade=lambda answer, trial: grade_launch(answer, trial, (1, 7, 0, 65_535, 65_536, 100_003)),
    mistakes=(
        Mistake(
            "empty input",
            lambda f: f.get("tokens") == 0,
            "With 0 tokens there is nothing to do: is at least one program launched all the same?",
        ),
        *COMMON,
        Mistake(
            "cut at 65,535",
            lambda f: _tail(f, 65_535),
            "Is the grid cut at 65,535 tokens, or its second part launched on the first part's tokens?",
        ),
        Mistake(
            "grid and kernel disagree",
            lambda f: f.get("about") in ("memory", "values") and any(g[:2] == (f["tokens"], f["heads"]) for g in f.get("grids", [])),
            "Do grid and kernel disagree on which axis holds the tokens? program_id(0) counts along grid[0].",
        ),
        Mistake(
            "flattened, taken apart wrongly",
            lambda f: f.get("about") in ("memory", "values") and any(g == (f["tokens"] * f["heads"], 1, 1) for g in f.get("grids", [])),
            "With pid = pid_t * num_heads + pid_h, the token is pid // num_heads and the head pid % num_heads: does each use num_heads?",
        ),
        Mistake(
            "work left out",
            lambda f: f.get("about") == "values" and f["unwritten"] == f["bad"],
            "Some elements have no program: does the grid hold one for each token and head?",
        ),
        Mistake(
            "outside",
            lambda f: f.get("about") == "memory",
            "A program works on a token or a head that is not there: are there more programs than tokens times heads?",
        ),
        Mistake("wrong pairs", lambda f: f.get("about") == "values", "Is each program's pair (token, head) another one?"),
    ),
    hints=(
        "The driver refuses grid[1] above 65,535. Which of the two numbers may grow, and which axis holds more?",
        "Swap both sides alike: the launch puts num_tokens first, and the kernel reads the token from the axis that now holds it.",
        "grid = (num_tokens, num_heads); pid_t = tl.program_id(0); pid_h = tl.program_id(1). Or flatten: // num_heads and % num_heads.",
    ),
)

STEP_3 = Step(
    number="06.3",
    title="Tile the tokens",
    spec="Let one program own TILE = 16 tokens of one head. The last tile may be partial: mask it.",
    answer="function",
    call="scale_tiles(x, w, out)",
    size="about 2 lines in the kernel, 1 in the launch",
    grade=lambda answer, trial: grade_launch(answer, trial, (16, 1, 0, 15, 17, 33, 100_003), tile=TILE),
    mistakes=(
        *COMMON,
        Mistake(
            "not tiled",
            lambda f: "many" in f and f["programs"] >= f["tokens"],
            "Is there still a program for every token? A tile needs one: triton.cdiv(num_tokens, TILE).",
        ),
        Mistake(
            "one tile too many",
            lambda f: "many" in f,
            "Is 1 added after a floor division? triton.cdiv rounds up only where something is left.",
        ),
        Mistake(
            "elements unmasked",
            lambda f: f.get("about") == "memory" and f["tokens"] and f["tokens"] % TILE == 0,
            "No tile is partial here: does the mask leave out the lanes past head_size, which are no elements of a head?",
        ),
        Mistake(
            "off by one in the mask",
            lambda f: f.get("about") == "memory" and any("at most" in words_of(kernel) for kernel in f.get("kernels", [])),
            "Is the mask one token too long? The tokens that are there are those with offs_t < num_tokens.",
        ),
        Mistake(
            "no tail mask",
            lambda f: f.get("about") == "memory",
            "The last tile is partial: does the mask of the load and of the store leave out offs_t >= num_tokens?",
        ),
        Mistake(
            "rounded down",
            lambda f: f.get("about") == "values" and _tail(f, f["tokens"] // TILE * TILE),
            "Does the grid round down? The last, partial tile needs a program: triton.cdiv.",
        ),
        Mistake(
            "tiles overlap",
            lambda f: f.get("about") == "values" and f["unwritten"] == f["bad"] and f["first"][0] < f["tokens"] // TILE * TILE,
            "Tokens between are never written: does tile pid_t begin at pid_t * TILE?",
        ),
        Mistake("wrong pairs", lambda f: f.get("about") == "values", "Is each lane's token another one?"),
    ),
    hints=(
        "A tile is a block of token numbers: where does it begin, and how many of its tokens are there?",
        "offs_t = pid_t * TILE + tl.arange(0, TILE). The mask has two axes: tokens below num_tokens, elements below head_size.",
        "mask = (offs_t < num_tokens)[:, None] & (offs_d < head_size)[None, :]; grid = (triton.cdiv(num_tokens, TILE), num_heads).",
    ),
)


EXERCISE = Exercise("06_grid_limits", "Grid limits", (STEP_1, STEP_2, STEP_3))
