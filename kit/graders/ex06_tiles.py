"""Exercise 06.3: a program owns a tile of tokens, the last one in part."""

from __future__ import annotations

from kit.graders.ex06_launch import COMMON, grade_launch, tail_missing
from kit.graders.reading import words_of
from kit.graders.step import Mistake, Step

TILE = 16

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
            lambda f: f.get("about") == "values" and tail_missing(f, f["tokens"] // TILE * TILE),
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
