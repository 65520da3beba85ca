"""A step of an exercise, and how its answer is judged: cases in order, until one shows a problem.

A grader is a function `grade(answer, trial)` that runs the answer on its cases and tells the Trial what it saw. The likely cause of a
problem comes from the step's mistakes: each looks at the facts of the failing case, and the first that recognises them speaks.
"""

from __future__ import annotations

import re
import traceback
from dataclasses import dataclass, field

import torch
import triton

from kit import machine
from kit.errors import KitError


@dataclass(frozen=True)
class Mistake:
    """A likely slip: `seen(facts)` says whether the facts of a failing case show it, `cause` is the sentence for the reader."""

    name: str
    seen: object
    cause: str


@dataclass(frozen=True)
class Step:
    """One thing to write. `answer` is "function" or "kernel", `call` how the grader calls it, `size` how long it is."""

    number: str
    title: str
    spec: str
    answer: str
    call: str
    size: str
    grade: object
    hints: tuple[str, str, str]
    mistakes: tuple[Mistake, ...] = ()
    patience: int = 1  # times the usual limit, for a step that is long to judge

    @property
    def name(self):
        """The name of the function or kernel that the step asks for."""
        return self.call.split("(")[0]

    @property
    def parameters(self):
        """The names of the arguments that the grader passes."""
        return [word.strip() for word in self.call[len(self.name) + 1 : -1].split(",")]


@dataclass(frozen=True)
class Exercise:
    """A notebook of exercises: its file's stem, its title, its steps."""

    stem: str
    title: str
    steps: tuple[Step, ...]


@dataclass
class Problem:
    """One thing that is wrong. `about`: "answer" (it cannot be used), "launch", "memory" or "values"; `text` is the clause that says it."""

    about: str
    text: str
    ran: str = ""
    where: str = ""
    got: str = ""
    expected: str = ""
    cause: str = ""
    picture: dict | None = None


class NotDone(Exception):
    """The stub was reached."""


class Stop(Exception):
    """A case showed a problem: the later cases are not run."""


@dataclass
class Trial:
    """What a grader saw. `values` and `memory` are two verdicts, None where a step has none or its case was not reached."""

    step: Step
    problems: list[Problem] = field(default_factory=list)
    ran: list[str] = field(default_factory=list)
    values: bool | None = None
    memory: bool | None = None
    evidence: str = "simulated"

    def problem(self, about, text, facts=None, **told):
        """Note a problem; its cause is that of the first mistake that `facts` show."""
        facts = facts or {}
        cause = next((mistake.cause for mistake in self.step.mistakes if mistake.seen(facts)), "")
        self.problems.append(Problem(about, text, cause=cause, **told))

    def case(self, what, values=None, memory=None):
        """End a case: note that it ran, and what its two verdicts are. Raises Stop when it showed a problem."""
        self.ran.append(what)
        if values is not None:
            self.values = values and self.values is not False
        if memory is not None:
            self.memory = memory and self.memory is not False
        if self.problems:
            raise Stop

    def call(self, answer, *args, ran="", expect=()):
        """`answer(*args)`; an exception ends the trial as a problem of the answer. Those in `expect` are raised as they are."""
        try:
            returned = answer(*args)
            if machine.current().live:
                torch.cuda.synchronize()  # a kernel's own error surfaces here, and not in the comparison after it
            return returned
        except expect:
            raise
        except Exception as error:  # noqa: BLE001  whatever an answer raises is a finding
            self.failed(error, ran)

    def failed(self, error, ran):
        """End the trial on an exception: the stub, a refused launch, an illegal access, or the answer's own."""
        stub_in(error, self.step)
        about, told = kind_of(error)
        if about == "memory":
            self.memory = False
            if any(problem.about == "memory" for problem in self.problems):  # the run on paper has told it
                raise Stop from None
        self.problem(about, f"{ran}: {told}" if ran else told, {"error": error, "told": told}, ran=ran, where=line_of(error), got=told)
        raise Stop from None


def judge(step, answer):
    """Run the step's grader on `answer`. Returns state, ran, problems, values, memory, evidence, machine, and the stub's words."""
    here = machine.current()
    trial, state, stub = Trial(step, evidence="simulated"), "passed", ""
    torch.manual_seed(0)
    try:
        step.grade(answer, trial)
    except Stop:
        state = "wrong"
    except NotDone as error:
        state, stub = "not done yet", str(error)
    told = {"problems": [vars(problem) for problem in trial.problems], "ran": trial.ran, "evidence": trial.evidence}
    return {**told, "state": state, "stub": stub, "values": trial.values, "memory": trial.memory, "machine": here.name}


def stub_in(error, step):
    """Raise NotDone when `error`, or what caused it, is the stub of this exercise: an unsolved part, whichever its step."""
    lesson = str(int(step.number.split(".")[0]))
    while error is not None:
        found = re.search(rf"Exercise {lesson}\.\d+: (about [^\n,)'\"]+)", str(error))
        if found:
            raise NotDone(found[1]) from None
        error = error.__cause__


def kind_of(error):
    """(about, sentence) of an exception that an answer or its launch raised."""
    words = re.sub(r"\bline \d+: ", "line: ", str(error).strip())  # its number is that of the text sent
    first = next((line for line in reversed(words.splitlines()) if line.strip()), "")
    name = type(error).__name__
    if "illegal memory access" in words or name == "MisalignedAccess":
        return "memory", words.splitlines()[0].removesuffix(" (simulated)").rstrip(".")
    if "Triton Error [CUDA]: invalid argument" in words:
        return "launch", "the launch is refused (invalid argument)"
    if isinstance(error, triton.CompilationError):
        return "answer", f"Triton cannot compile it: {first}"
    if isinstance(error, KitError):
        return "answer", words.split(": ", 1)[-1].rstrip(".")
    return "answer", f"it raises {name}" + (f": {first.rstrip('.')}" if first else "")


def line_of(error):
    """The reader's line that raised, or ""; frames of the kit, Triton and torch are passed over. Its number is that of the text sent."""
    own = (
        "kit/graders/",
        "kit/simulator/",
        "/triton/",
        "/torch/",
        "kit/dry_run",
        "kit/paper",
        "kit/telling",
        "kit/report",
        "kit/compiling",
        "kit/errors",
        "kit/practice",
    )
    for frame in reversed(traceback.extract_tb(error.__traceback__)):
        if frame.line and not any(part in frame.filename.replace("\\", "/") for part in own):
            return f"line: {frame.line}"
    return ""


def counted(n, noun):
    """ "1 token", "65,536 tokens"."""
    return f"{n:,} {noun}{'' if n == 1 else 's'}"
