"""The exercises: what each step asks, the grader that judges an answer, the mistakes it knows, three hints.

One file an exercise. `grade` is what the sandbox's child calls with the reader's answer.
"""

from __future__ import annotations

from kit.graders import (
    ex01_semantics,
    ex02_reading_inductor,
    ex03_block_sizes,
    ex04_specialization,
    ex05_barriers,
    ex06_grid_limits,
    ex07_int64_offsets,
    ex08_decode_and_prefill,
    ex09_boundaries_and_views,
    ex10_numerics,
    ex11_microbenchmarks,
    ex12_sweeps,
    ex13_cold_start,
    ex14_your_kernel,
    ex15_bug_hunt,
)
from kit.graders.step import Exercise, Step

__all__ = ["EXERCISES", "STEPS", "Exercise", "Step", "exercise_of", "grade"]

EXERCISES = (
    ex01_semantics.EXERCISE,
    ex02_reading_inductor.EXERCISE,
    ex03_block_sizes.EXERCISE,
    ex04_specialization.EXERCISE,
    ex05_barriers.EXERCISE,
    ex06_grid_limits.EXERCISE,
    ex07_int64_offsets.EXERCISE,
    ex08_decode_and_prefill.EXERCISE,
    ex09_boundaries_and_views.EXERCISE,
    ex10_numerics.EXERCISE,
    ex11_microbenchmarks.EXERCISE,
    ex12_sweeps.EXERCISE,
    ex13_cold_start.EXERCISE,
    ex14_your_kernel.EXERCISE,
    ex15_bug_hunt.EXERCISE,
)
STEPS = {step.number: step for exercise in EXERCISES for step in exercise.steps}


def exercise_of(number):
    """The Exercise that the step `number` ("06.1") belongs to."""
    return next(exercise for exercise in EXERCISES if any(step.number == number for step in exercise.steps))


def grade(number, answer):
    """Judge `answer` to the step `number`; return a dict that JSON holds (see kit.graders.step.judge)."""
    from kit.graders.step import judge

    return judge(STEPS[number], answer)
