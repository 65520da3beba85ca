"""Exercise 09: guard cells, padding and strides, and a list of test inputs."""

from __future__ import annotations

from kit.graders.ex09_list import STEP_3
from kit.graders.ex09_memory import STEP_1
from kit.graders.ex09_rows import STEP_2
from kit.graders.step import Exercise

EXERCISE = Exercise("09_boundaries_and_views", "Test at the edges, and on views", (STEP_1, STEP_2, STEP_3))
