"""`check`, `hint`: judge an answer to a step of an exercise in a sandbox, and give the next of its three hints."""

from __future__ import annotations

import difflib
import html
import inspect
from dataclasses import dataclass

from triton.runtime import JITFunction

from kit import machine, sources
from kit.errors import BadInput, WrongType, expect_kernel, quoted
from kit.graders import STEPS
from kit.graders.step import Problem
from kit.progress import next_hint, note_check, progress
from kit.sandbox import run_source
from kit.verdict import Verdict

__all__ = ["Hint", "check", "hint", "progress"]

TIMEOUT = 30.0  # seconds; the checks take about one to three


def check(exercise, answer):
    """Judge `answer` to the step `exercise` ("06.1") in a sandbox; return the Verdict, which is true when the step is passed.

    `answer` is the function or the @triton.jit kernel that the step asks for; it is sent with all that it uses. Raises BadInput for a step
    that does not exist and for an answer that cannot be sent, WrongType for the wrong kind of answer.
    """
    step = _step(exercise, "check")
    _expect_answer(step, answer)
    try:
        text, name = sources.program(answer)
    except BadInput as error:
        raise BadInput(f"check: {error}") from None
    outcome = run_source(f"{text}\n__import__('kit.graders').graders.grade({step.number!r}, {name})\n", timeout=step.patience * TIMEOUT)
    verdict = _verdict(step, outcome)
    verdict.note = note_check(step.number, verdict.state)
    return verdict


@dataclass(frozen=True)
class Hint:
    """One of a step's three hints."""

    exercise: str
    number: int
    of: int
    text: str
    note: str = ""

    def __repr__(self):
        more = "" if self.number < self.of else " (the last one)"
        return f"{self.exercise}, hint {self.number} of {self.of}{more}: {self.text}" + (f" {self.note}" if self.note else "")

    def _repr_html_(self):
        head, text = repr(self).split(": ", 1)
        return f"<div><b>{html.escape(head)}</b>: {html.escape(text)}</div>"


def hint(exercise):
    """Return the next Hint of the step `exercise` ("06.1"), each closer than the one before; after the third, the third again."""
    step = _step(exercise, "hint")
    number, note = next_hint(step.number, len(step.hints))
    return Hint(step.number, number, len(step.hints), step.hints[number - 1], note)


def _step(exercise, verb):
    if not isinstance(exercise, str):
        raise WrongType(
            f'{verb}: exercise must be a step\'s number as text, such as "06.1"; got {quoted(exercise)} ({type(exercise).__name__}).'
        )
    number = exercise.strip().zfill(4)
    if number in STEPS:
        return STEPS[number]
    lesson = [n for n in STEPS if n.split(".")[0] == number.split(".")[0]]
    near = lesson or difflib.get_close_matches(number, STEPS, 1)
    guess = f" Did you mean {' or '.join(near)}?" if near else ""
    raise BadInput(f"{verb}: there is no exercise {quoted(exercise)}.{guess} There are {', '.join(STEPS)}.")


def _expect_answer(step, answer):
    what = f"check: {step.number} takes the {step.answer} {step.name}"
    if step.answer == "kernel":
        if not isinstance(answer, JITFunction) and not callable(answer):
            raise WrongType(f"{what} itself; got {quoted(answer)} ({type(answer).__name__}).")
        expect_kernel(answer, verb="check")
        _expect_parameters(step, list(answer.arg_names), len(answer.arg_names))
        return
    if isinstance(answer, JITFunction) or sources.is_kernel(answer):
        raise WrongType(f"{what}, which launches the kernel; got the kernel {answer.fn.__name__}. Pass {step.name}.")
    if not inspect.isroutine(answer):
        raise WrongType(f"{what} itself; got {quoted(answer)} ({type(answer).__name__}). Pass {step.name}, without calling it.")
    try:
        names = inspect.signature(answer)
    except ValueError:
        raise WrongType(f"{what}, written in Python; got {quoted(answer)}.") from None
    try:
        names.bind(*step.parameters)
    except TypeError:
        _expect_parameters(step, list(names.parameters), -1)


def _expect_parameters(step, names, count):
    if count != len(step.parameters):
        raise WrongType(
            f"check: {step.number} calls {step.call}; the one given takes ({', '.join(names)}). Keep the arguments of the exercise."
        )


def _verdict(step, outcome):
    if outcome.kind == "ok" and isinstance(outcome.value, dict):
        told = outcome.value
        problems = tuple(Problem(**problem) for problem in told["problems"])
        lines = f'write {step.size}; kit.hint("{step.number}") gives a hint'
        return Verdict(step.number, told["state"], lines, told["values"], told["memory"], tuple(told["ran"]), problems, told["evidence"])
    words = f"it does not end within {step.patience * TIMEOUT:g} s" if outcome.kind == "hang" else outcome.message or outcome.kind
    cause = "Is there a loop that never ends?" if outcome.kind == "hang" else ""
    where = str(outcome.line) if outcome.line else ""
    text = f"{step.name}: {words}" if outcome.kind == "hang" else f"{step.name}: {outcome.kind}, {words}"
    problem = Problem("answer", text, ran=step.call, where=where, got=outcome.kind, expected="an answer that runs to its end", cause=cause)
    memory = False if outcome.kind == "illegal access" else None
    return Verdict(step.number, "wrong", "", None, memory, (), (problem,), machine.current().evidence)
