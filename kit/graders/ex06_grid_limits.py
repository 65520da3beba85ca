"""Exercise 06: a grid that every GPU runs, for every number of tokens."""

from __future__ import annotations

from kit.graders.ex06_legal_grid import STEP_1
from kit.graders.ex06_swap import STEP_2
from kit.graders.ex06_tiles import STEP_3
from kit.graders.step import Exercise

EXERCISE = Exercise("06_grid_limits", "Grid limits", (STEP_1, STEP_2, STEP_3))
