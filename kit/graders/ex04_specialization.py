"""Exercise 04: what makes a new variant of a kernel."""

from __future__ import annotations

from kit.graders.ex04_count import STEP_1
from kit.graders.ex04_exempt import STEP_2
from kit.graders.ex04_ring import STEP_3
from kit.graders.step import Exercise

EXERCISE = Exercise("04_specialization", "Know what makes a new variant", (STEP_1, STEP_2, STEP_3))
