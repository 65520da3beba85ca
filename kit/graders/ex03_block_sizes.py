"""Exercise 03: a rule for block and warps, an in-place kernel under a tuner, and the tuner's key."""

from __future__ import annotations

from kit.graders.ex03_in_place import STEP_2
from kit.graders.ex03_key import STEP_3
from kit.graders.ex03_rule import STEP_1
from kit.graders.step import Exercise

EXERCISE = Exercise("03_block_sizes", "Block sizes", (STEP_1, STEP_2, STEP_3))
