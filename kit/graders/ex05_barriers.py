"""Exercise 05: barriers inside a program, one where it is needed and no more; and what no barrier can order."""

from __future__ import annotations

from kit.graders.ex05_place import STEP_1
from kit.graders.ex05_rotate import STEP_2
from kit.graders.ex05_shares import STEP_3
from kit.graders.step import Exercise

EXERCISE = Exercise("05_barriers", "Barriers", (STEP_1, STEP_2, STEP_3))
