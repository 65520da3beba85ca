"""`Outcome`: how a sandboxed cell ended, and how that is shown."""

from __future__ import annotations

import html
from dataclasses import dataclass

KINDS = ("ok", "wrong", "refused", "illegal access", "assert", "hang", "out of memory", "compile error", "error", "crashed")
MEANING = {
    "ok": "the cell ran to its end",
    "wrong": "the cell itself reported a wrong result (AssertionError)",
    "refused": "a launch was not accepted: its grid, or more shared memory or registers than the GPU has",
    "illegal access": "a kernel touched memory that is not there",
    "assert": "an assertion inside a kernel failed",
    "hang": "the cell did not end within its time limit",
    "out of memory": "the cell asked for more memory than it may have",
    "compile error": "Triton's compiler rejected a kernel",
    "error": "the cell raised a Python exception",
    "crashed": "the process died",
}
_SHOWN_LINES = 24


@dataclass(frozen=True)
class Line:
    """A source line: the function it stands in ("" for the cell itself), its number there, its text.

    Lines of the cell are counted as the editor does, the `%%sandbox` line being 1; lines of a function or kernel of another
    cell are counted from its first decorator.
    """

    function: str
    number: int
    text: str

    def __str__(self):
        place = f"{self.function}, line {self.number}" if self.function else f"line {self.number}"
        return f"{place}: {_cut(self.text.strip(), 72)}"


@dataclass
class Outcome:
    """How a cell ended. True when it is "ok".

    `kind` is one of KINDS. `value` is the last expression's value where JSON holds it, else its repr; `text` is its repr.
    `stdout` and `stderr` hold what Python, C and the driver wrote. `error` is "Type: message" or "", `message` the message
    alone. `seconds` is the time from the child's start to its end, `signal` the name of the signal that ended it, or None.
    """

    kind: str
    value: object = None
    text: str = ""
    stdout: str = ""
    stderr: str = ""
    error: str = ""
    message: str = ""
    line: Line | None = None
    seconds: float = 0.0
    signal: str | None = None

    def __bool__(self):
        return self.kind == "ok"

    def __repr__(self):
        # Nothing here may differ from run to run, because notebooks compare it: no times, process numbers or paths.
        if self.kind == "ok":
            return f"ok: {_cut(_first_line(self.text), 100)}" if self.text else "ok"
        told = self.error if self.kind == "error" else self.message
        parts = [str(self.line) if self.line else "", _cut(_first_line(told), 240)]
        return f"{self.kind}: " + " · ".join(part for part in parts if part)

    def _repr_html_(self):
        told = repr(self)[len(self.kind) :].removeprefix(": ")
        colour = "seagreen" if self else "firebrick"
        head = f'<b style="color:{colour}" title="{html.escape(MEANING[self.kind])}">{self.kind}</b>'
        head += f" <code>{html.escape(told)}</code>" if told else ""
        folds = [_fold(name, text) for name, text in (("output", self.stdout), ("error output", self.stderr)) if text.strip()]
        return f"<div>{head}{''.join(folds)}</div>"


def _fold(name, text):
    lines = text.rstrip("\n").split("\n")
    if len(lines) > _SHOWN_LINES:
        left_out = len(lines) - _SHOWN_LINES
        lines = [
            *lines[: _SHOWN_LINES // 2],
            f"... {left_out} lines left out (outcome.stdout and outcome.stderr have all) ...",
            *lines[-_SHOWN_LINES // 2 :],
        ]
    return f"<details><summary>{name}</summary><pre>{html.escape(chr(10).join(lines))}</pre></details>"


def _first_line(text):
    return text.strip().split("\n")[0] if text.strip() else ""


def _cut(text, limit):
    return text if len(text) <= limit else text[: limit - 3] + "..."
