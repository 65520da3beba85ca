"""The exercises: what each step asks, the grader that judges an answer, the mistakes it knows, three hints.

A file a step, and one that puts an exercise together. An exercise is imported when it is first asked for: lessons need none, and a child
that judges an answer needs one. `grade` is what the child calls with the reader's answer.
"""

from __future__ import annotations

from collections.abc import Mapping
from importlib import import_module

from kit.graders.step import Exercise, Step

__all__ = ["EXERCISES", "STEPS", "Exercise", "Step", "grade"]  # EXERCISES: all of them, see __getattr__

_FILES = {
    name[2:4]: name
    for name in (
        "ex01_semantics",
        "ex02_reading_inductor",
        "ex03_block_sizes",
        "ex04_specialization",
        "ex05_barriers",
        "ex06_grid_limits",
        "ex07_int64_offsets",
        "ex08_decode_and_prefill",
        "ex09_boundaries_and_views",
        "ex10_numerics",
        "ex11_microbenchmarks",
        "ex12_sweeps",
        "ex13_cold_start",
        "ex14_your_kernel",
        "ex15_bug_hunt",
    )
}


def _exercise(lesson):
    return import_module(f"kit.graders.{_FILES[lesson]}").EXERCISE


def __getattr__(name):
    if name == "EXERCISES":
        return tuple(_exercise(lesson) for lesson in _FILES)
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")


class _Steps(Mapping):
    """{number: Step}. Looking one up imports its exercise alone."""

    def __getitem__(self, number):
        lesson = str(number).split(".")[0]
        found = [step for step in _exercise(lesson).steps if step.number == number] if lesson in _FILES else []
        if not found:
            raise KeyError(number)
        return found[0]

    def __iter__(self):
        return (step.number for lesson in _FILES for step in _exercise(lesson).steps)

    def __len__(self):
        return sum(1 for _ in self)


STEPS = _Steps()


def grade(number, answer):
    """Judge `answer` to the step `number`; return a dict that JSON holds (see kit.graders.step.judge)."""
    from kit.graders.step import judge

    return judge(STEPS[number], answer)
