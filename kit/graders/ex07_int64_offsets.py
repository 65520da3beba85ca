"""Exercise 07: offsets past 2^31, computed in int64."""

from __future__ import annotations

from kit.graders.ex07_read import STEP_2
from kit.graders.ex07_threshold import STEP_1
from kit.graders.ex07_write import STEP_3
from kit.graders.step import Exercise

EXERCISE = Exercise("07_int64_offsets", "Int64 offsets", (STEP_1, STEP_2, STEP_3))
