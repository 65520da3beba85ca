"""What every picture is: data with a title, a sentence and an evidence word, laid out as a list of shapes.

The shapes lie on a plane WIDTH units wide, y growing downwards; the browser (explore.js) and matplotlib (drawing.py) draw the same list.
A shape is a tuple: ("rect", x, y, w, h, style), ("line", x1, y1, x2, y2, style), ("path", (x, y, ...), style),
("text", x, y, words, anchor, style), ("squares", (x, y, ...), size, style), ("marks", kind, (x, y, ...), size, style).
A style is a few words of STYLES. Colours have symbols beside them.
"""

from __future__ import annotations

import html
import math
import os
from dataclasses import dataclass, replace

from kit.errors import BadInput, WrongType, quoted

WIDTH = 720
STYLES = ("ok", "bad", "third", "fourth", "ink", "muted", "faint", "limit", "paper", "small", "strong", "halo", "dashed", "dotted")


def number(value):
    """A value as a reader wants it: thousands separated, four figures of a fraction, other values as they are."""
    if isinstance(value, bool) or not isinstance(value, (int, float)):
        return str(value)
    if isinstance(value, int) or (value == int(value) and abs(value) < 1e15):
        return f"{int(value):,}"
    return f"{value:,.4g}" if abs(value) < 1e4 else f"{value:,.0f}"


def expect_number(value, where):
    """Return `value` when it is a finite number; raise BadInput otherwise."""
    if isinstance(value, bool) or not isinstance(value, (int, float)) or not math.isfinite(value):
        raise BadInput(f"{where} must be a finite number; got {quoted(value)} ({type(value).__name__}). Use .item() on a tensor.")
    return value


def expect_text(value, where):
    """Return `value` when it is a string; raise WrongType otherwise."""
    if not isinstance(value, str):
        raise WrongType(f"{where} must be a string; got {quoted(value)} ({type(value).__name__}).")
    return value


def expect_all(items, kind, where):
    if not isinstance(items, (list, tuple)) or not all(isinstance(item, kind) for item in items):
        raise WrongType(f"{where} must be a list of {kind.__name__}; got {quoted(items)}.")
    return tuple(items)


@dataclass(frozen=True, kw_only=True)
class Picture:
    """What all pictures share.

    `evidence` is a word, or a result that carries one, such as a Recording, whose GPU and date the picture then shows. `low` and `high`
    fix the ends of the scale; left out, they follow from what is shown.
    """

    sentence: str = ""
    evidence: object = None
    detail: str = ""
    low: float | None = None
    high: float | None = None

    def _check(self):
        from kit.evidence import word_of

        what = type(self).__name__
        expect_text(self.title, f"{what}: title")
        expect_text(self.sentence, f"{what}: sentence")
        if self.evidence is not None:
            stale = ", STALE" if getattr(self.evidence, "stale", False) else ""
            object.__setattr__(self, "detail", getattr(self.evidence, "detail", self.detail) + stale)
            object.__setattr__(self, "evidence", word_of(self.evidence, what))
        for name in ("low", "high"):
            if getattr(self, name) is not None:
                expect_number(getattr(self, name), f"{what}: {name}")
        if self.low is not None and self.high is not None and self.low >= self.high:
            raise BadInput(f"{what}: low must be smaller than high; got {self.low} and {self.high}.")

    @property
    def word(self):
        """Its evidence word: the one given, else the machine's."""
        from kit import machine

        return self.evidence or machine.current().evidence

    @property
    def tag(self):
        """Its label: the evidence word, for a recording with the GPU and the date."""
        return f"{self.word} {self.detail}".strip()

    @property
    def says(self):
        """The sentence, or what the picture shows in words."""
        return self.sentence or self.described()

    @property
    def alt(self):
        """The text that stands in for the picture."""
        return f"{self.title}{'' if self.title[-1:] in '.?!' else '.'} {self.described()}"

    def fixed_to(self, low, high):
        """The same picture on the scale from `low` to `high`, where it has none of its own."""
        return replace(self, low=low if self.low is None else self.low, high=high if self.high is None else self.high)

    def __repr__(self):
        return f"{self.title}: {self.says} [{self.tag}]"

    def _repr_mimebundle_(self, include=None, exclude=None):
        from kit.drawing import still

        data = {"text/plain": repr(self), "image/png": still(self)}
        if not os.environ.get("KIT_NOTEBOOK"):  # set where outputs are stored or compared: there the PNG is the one form
            data["text/html"] = as_html(data["image/png"], self.alt)
        return data, {"image/png": {"alt": self.alt, "width": WIDTH}}


def as_html(png, alt):
    """A PNG in base64 as an <img> with its alternative text, which JupyterLab leaves out of the <img> that it makes of a PNG."""
    return f'<img alt="{html.escape(alt)}" width="{WIDTH}" src="data:image/png;base64,{png}">'
