"""Exercise 14, the capstone: a paged cache write fused with RMSNorm and RoPE, from a page of specification to a clean report card."""

from __future__ import annotations

from kit.graders.ex14_arithmetic import STEP_1
from kit.graders.ex14_rules import STEP_3
from kit.graders.ex14_write import STEP_2
from kit.graders.step import Exercise

EXERCISE = Exercise("14_your_kernel", "Your kernel", (STEP_1, STEP_2, STEP_3))
