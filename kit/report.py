"""What a launch on paper showed: a Finding is one thing seen, a Report all of them."""

from __future__ import annotations

import html
from dataclasses import dataclass, field

# Of a finding. A remark is no verdict on the launch: it breaks nothing, and is kept because it may surprise.
VERDICTS = ("wrong", "fragile", "not visible here", "remark")
_MARKS = {"wrong": "✗", "fragile": "!", "not visible here": "?", "remark": "·"}

# The notebook that teaches the rule behind a hazard.
NOTEBOOKS = {
    "grid": "06_grid_limits",
    "overflow": "07_int64_offsets",
    "out of bounds": "09_boundaries_and_views",
    "race in a program": "05_barriers",
    "race between programs": "05_barriers",
    "wait between programs": "05_barriers",
    "never written": "09_boundaries_and_views",
    "masked lane": "09_boundaries_and_views",
    "undefined value": "01_semantics",
    "division by zero": "01_semantics",
    "assertion": "01_semantics",
    "misaligned": "09_boundaries_and_views",
    "alignment": "04_specialization",
    "index": "09_boundaries_and_views",
}


@dataclass(frozen=True)
class Finding:
    """One thing a dry run saw.

    `hazard` is a key of NOTEBOOKS and `verdict` one of VERDICTS: "wrong"; "fragile" (undefined by the documentation, or right only by
    what stood in memory before); "not visible here" (the text says what would show it); "remark". `program` is the first program that
    shows it and `other` the second one of a pair, each three numbers; `line` and `other_line` are their source lines.
    `true` and `wrapped` are the numbers of the text: a value as meant and as it became, or an element offset.
    """

    hazard: str
    text: str
    verdict: str = "wrong"
    line: int | None = None
    source: str = ""
    program: tuple | None = None
    true: int | None = None
    wrapped: int | None = None
    argument: str | None = None
    other: tuple | None = None
    other_line: int | None = None

    @property
    def wrong(self):
        """True when this makes the launch wrong."""
        return self.verdict == "wrong"

    @property
    def notebook(self):
        """The name of the notebook that teaches the rule."""
        return NOTEBOOKS[self.hazard]

    def __repr__(self):
        return f"{self.verdict}: {self.hazard}: {self.text} ({self.notebook})"


@dataclass(frozen=True)
class Report:
    """What a launch on paper showed. True when nothing is wrong; what is fragile or not visible is in `findings`, and is told."""

    kernel: str
    grid: tuple
    findings: list[Finding] = field(default_factory=list)
    programs: int = 0
    ran: int = 0
    evidence: str = "simulated"
    numbers: tuple = field(default=(), repr=False)
    chosen: bool = False

    @property
    def errors(self):
        """The findings that make a launch wrong."""
        return [finding for finding in self.findings if finding.wrong]

    def __bool__(self):
        return not self.errors

    def of(self, hazard):
        """The errors of one hazard: "grid", "overflow", "out of bounds" and so on."""
        return [finding for finding in self.errors if finding.hazard == hazard]

    def told(self, verdict):
        """The findings of one verdict: "wrong", "fragile", "not visible here" or "remark"."""
        return [finding for finding in self.findings if finding.verdict == verdict]

    def which(self):
        """The ids (x, y, z) of the programs that ran, ascending."""
        x, y = (*self.grid, 1, 1)[:2]
        return [(n % x, n // x % y, n // (x * y)) for n in self.numbers]

    @property
    def scope(self):
        """How much of the launch was run, as a phrase."""
        if self.ran == self.programs:
            return f"all {self.programs:,} program{'s' if self.programs != 1 else ''} on paper"
        how = "as chosen" if self.chosen else "corners and a spread between"
        return f"{self.ran:,} of {self.programs:,} programs on paper, {how}"

    def __repr__(self):
        head = f"{self.kernel} on {self.grid}"
        if not self:
            more = f" (and {len(self.errors) - 1} more)" if len(self.errors) > 1 else ""
            return f"{head}: {self.errors[0].text}{more} [{self.evidence}]"
        beside = ""
        for verdict in ("fragile", "not visible here"):
            if told := self.told(verdict):
                beside += f"; {len(told)} {verdict}: {told[0].text}"
        return f"{head}: nothing wrong in {self.scope}{beside} [{self.evidence}]"

    def _repr_html_(self):
        from kit.evidence import label_html

        rows = "".join(
            f"<tr><td>{_MARKS[f.verdict]} {f.verdict}</td><td>{html.escape(f.hazard)}</td>"
            f"<td style='text-align:left'>{html.escape(f.text)}</td></tr>"
            for f in self.findings
            if f.verdict != "remark" or f.hazard in ("grid", "overflow")  # the other remarks are told on request
        )
        verdict = "nothing wrong" if self else f"{len(self.errors)} wrong"
        head = f"<p><b>{html.escape(self.kernel)}</b> on {self.grid}: {verdict}, {self.scope}. {label_html(self.evidence)}</p>"
        return head + (f"<table>{rows}</table>" if rows else "")
