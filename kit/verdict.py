"""`Verdict`: what a check of an answer says, in one line and in a notebook."""

from __future__ import annotations

import base64
import html
from dataclasses import dataclass
from functools import cached_property

from kit.evidence import label_html
from kit.graders.step import Problem

_MARK = {"passed": ("✓", "#0072B2"), "wrong": ("✗", "#D55E00"), "not done yet": ("·", "#555555")}


@dataclass
class Verdict:
    """What a check says. True when the step is passed.

    `state` is "passed", "wrong" or "not done yet". `values` and `memory` are two verdicts, right and legal, None where a step has none or
    the case was not reached. `problems` hold what ran, where, got, expected, the likely cause; the first of them is the verdict's own.
    """

    exercise: str
    state: str
    about: str
    values: bool | None = None
    memory: bool | None = None
    ran: tuple[str, ...] = ()
    problems: tuple[Problem, ...] = ()
    evidence: str = "simulated"
    note: str = ""

    def __bool__(self):
        return self.state == "passed"

    @property
    def problem(self):
        """The first Problem, or None."""
        return self.problems[0] if self.problems else None

    @property
    def cause(self):
        """The likely cause, or ""."""
        return next((problem.cause for problem in self.problems if problem.cause), "")

    @cached_property
    def picture(self):
        """The picture of what is wrong, or None."""
        given = next((problem.picture for problem in self.problems if problem.picture), None)
        return given and drawn(given, self.evidence)

    @property
    def two(self):
        """The two verdicts as words: "values right, memory legal"."""
        parts = []
        if self.values is not None:
            parts.append(f"values {'right' if self.values else 'wrong'}")
        if self.memory is not None:
            parts.append(f"memory {'legal' if self.memory else 'illegal'}")
        return ", ".join(parts)

    def _two_sentence(self):
        if self.two and self.problem.about not in ("values", "memory"):
            return f"Until then: {self.two}."  # of the cases that ran before
        return self.two and self.two.capitalize() + "."

    def __repr__(self):
        said = f"{self.exercise}: {self.state}: {self.sentence}"
        tail = "" if self.state == "not done yet" else f" [{self.evidence}]"
        return said + tail + (f" {self.note}" if self.note else "")

    @property
    def sentence(self):
        """What the verdict says after its state."""
        if self.state == "not done yet":
            return self.about
        if self.state == "passed":
            return "; ".join(filter(None, [self.two, f"{len(self.ran)} cases, the last: {self.ran[-1]}"]))
        parts = [self.problem.text.rstrip(".") + ".", self.cause, self._two_sentence()]
        return " ".join(filter(None, parts))

    def _repr_html_(self):
        mark, colour = _MARK[self.state]
        head = f'<b style="color:{colour}">{mark} {self.exercise}: {self.state}</b>'
        if self.state != "wrong":
            tag = "" if self.state == "not done yet" else " " + label_html(self.evidence)
            return f"<div>{head}: {html.escape(self.sentence)}{tag}{self._told_note()}</div>"
        cause = f"<p>{_code(self.cause)}</p>" if self.cause else ""
        two = f"<p>{html.escape(self._two_sentence())}</p>" if self.two else ""
        body = "".join(map(_row, self.problems))
        columns = "".join(f"<th style='text-align:left'>{name}</th>" for name in ("what ran", "where", "got", "expected"))
        table = f"<table><tr>{columns}</tr>{body}</table>"
        first = f": {_code(self.problem.text.rstrip('.'))}. {label_html(self.evidence)}"
        return f"<div>{head}{first}{cause}{two}{table}{self._image()}{self._told_note()}</div>"

    def _image(self):
        if self.picture is None:
            return ""
        data, metadata = self.picture._repr_mimebundle_()
        png = data["image/png"]
        png = png if isinstance(png, str) else base64.b64encode(png).decode()
        about = metadata["image/png"]
        return f'<img alt="{html.escape(about["alt"])}" width="{about["width"]}" src="data:image/png;base64,{png}">'

    def _told_note(self):
        return f"<p>{html.escape(self.note)}</p>" if self.note else ""


def _row(problem):
    cells = (problem.ran, problem.where, problem.got, problem.expected)
    return "<tr>" + "".join(f"<td style='text-align:left'>{_code(cell)}</td>" for cell in cells) + "</tr>"


def _code(text):
    """HTML of a text, with what stands between backquotes as code."""
    parts = html.escape(text).split("`")
    return "".join(
        f"<code>{part}</code>" if i % 2 and i < len(parts) - 1 else part if i % 2 == 0 else f"`{part}" for i, part in enumerate(parts)
    )


def drawn(given, evidence):
    """The picture that a grader described as a dict: {"kind": "Cells", ...}."""
    from kit.pictures import Bar, Bars, Cells, Limit, Mark, NumberLine, Span

    fields = {key: value for key, value in given.items() if key != "kind"}
    if given["kind"] == "Bars":
        return Bars(**{**fields, "rows": tuple(Bar(**row) for row in fields["rows"])}, evidence=evidence)
    if given["kind"] == "NumberLine":
        parts = {"marks": Mark, "spans": Span, "limits": Limit}
        made = {key: tuple(parts[key](**part) for part in held) if key in parts else held for key, held in fields.items()}
        return NumberLine(**made, evidence=evidence)
    return Cells(**{**fields, "names": tuple(fields["names"])}, evidence=evidence)
