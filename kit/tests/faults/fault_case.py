"""What a fault is: a faulty kernel, its right twin, one launch for both, and what a dry run must say of the first."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import torch

from kit import machine
from kit.dry_run import dry_run


@dataclass(frozen=True)
class Fault:
    """A small kernel with one fault, after a report in CASES.md.

    `launch` gives (grid, arguments, constexprs and options); `right_launch` another one for the twin, where the fault is in the launch.
    `hazard`, `verdict` and `line` (a part of the source line) are what a Report must hold. With an empty hazard the fault is an expected
    miss: `why` says what hides it from paper, and `shows` what does show it.
    """

    name: str
    rule: str
    faulty: object
    right: object
    launch: Callable
    hazard: str = ""
    verdict: str = ""
    line: str = ""
    right_launch: Callable | None = None
    program: tuple | None = None
    why: str = ""
    shows: str = ""

    @property
    def visible(self):
        """True when paper can see it."""
        return bool(self.hazard)

    def report(self):
        """The Report on the faulty kernel."""
        return _on_paper(self.faulty, self.launch)

    def twin_report(self):
        """The Report on the right twin."""
        return _on_paper(self.right, self.right_launch or self.launch)

    def matching(self, report):
        """The findings that are this fault; for an expected miss, anything that calls the launch wrong or fragile."""
        if not self.visible:
            return report.told("wrong") + report.told("fragile")
        return [
            f for f in report.told(self.verdict) if f.hazard == self.hazard and self.line in f.source and self.program in (None, f.program)
        ]

    def found_in(self, report):
        """True when the Report names the fault."""
        return bool(self.matching(report))

    def alarms_in(self, report):
        """What a Report on the right twin must not hold."""
        same = [f for f in report.findings if self.visible and f.hazard == self.hazard and f.verdict == self.verdict]
        return report.told("wrong") + report.told("fragile") + [f for f in same if f.verdict not in ("wrong", "fragile")]


def _on_paper(kernel, launch):
    grid, arguments, meta = launch()
    return dry_run(kernel, grid, *arguments, **meta)


def normal(*shape, dtype=torch.float32):
    """Seeded normal numbers."""
    generator = torch.Generator().manual_seed(1)
    return torch.randn(*shape, generator=generator).to(dtype).to(machine.current().device)


def numbers(values, dtype=torch.int32):
    """These numbers as a tensor."""
    return torch.tensor(values, dtype=dtype, device=machine.current().device)


def filled(shape, value=0, dtype=torch.float32):
    """A tensor full of one value."""
    return torch.full(shape, value, dtype=dtype, device=machine.current().device)
