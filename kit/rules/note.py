"""`Note`: one thing that a rule saw of a kernel."""

from __future__ import annotations

from dataclasses import asdict, dataclass, field

# Worst first. "plan": what to do next, no verdict on the kernel (a benchmark to run, launches to warm up).
VERDICTS = ("wrong", "fragile", "not visible here", "plan", "fine")


@dataclass(frozen=True)
class Note:
    """One thing that a rule saw.

    `verdict` is one of VERDICTS, `evidence` one of the four words. `line` counts from the kernel's first decorator, 1 being that line;
    `source` is its text. `numbers` holds what the text tells, for programs: JSON values by name. `key` names the kind of thing in two or
    three words that do not change with the kernel ("overflow", "no mask"), so that CI can leave it out by name.
    """

    rule: int
    verdict: str
    text: str
    evidence: str
    key: str = ""
    line: int | None = None
    source: str = ""
    numbers: dict = field(default_factory=dict)

    def data(self):
        """The Note as JSON holds it."""
        return asdict(self)
