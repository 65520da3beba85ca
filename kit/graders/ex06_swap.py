"""Exercise 06.2: a grid with its tokens on axis 1, swapped or flattened so that any number of them runs."""

from __future__ import annotations

from kit.graders.ex06_launch import COMMON, grade_launch, tail_missing
from kit.graders.step import Mistake, Step

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
            lambda f: tail_missing(f, 65_535),
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
