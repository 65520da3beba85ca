"""Exercise 13: warm-up that misses nothing, and a kernel that needs little of it."""

from __future__ import annotations

from kit.graders.ex13_few_variants import STEP_3
from kit.graders.ex13_representatives import STEP_1
from kit.graders.ex13_warm_up import STEP_2
from kit.graders.step import Exercise

EXERCISE = Exercise("13_cold_start", "Cold start", (STEP_1, STEP_2, STEP_3))
