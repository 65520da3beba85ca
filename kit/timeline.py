"""`Timeline`: what happens one after the other, on one axis of time: a lane for each case, a bar for each phase."""

from __future__ import annotations

from dataclasses import dataclass

from kit.errors import BadInput
from kit.picture_base import WIDTH, Picture, expect_all, expect_number, expect_text, number

# One style a phase, in the order in which the names first appear; the number over a bar says the same without colour.
_STYLES = ("muted", "third", "bad", "fourth", "ok", "ink")


@dataclass(frozen=True)
class Phase:
    """A part of a lane: its name and how long it takes, 0 or more."""

    name: str
    length: float

    def __post_init__(self):
        expect_text(self.name, "Phase: name")
        if expect_number(self.length, f"Phase: length of {self.name}") < 0:
            raise BadInput(f"Phase: length of {self.name} must be 0 or more; got {self.length}.")


@dataclass(frozen=True)
class Lane:
    """One case of a Timeline: its label, and its phases in the order in which they happen."""

    label: str
    phases: tuple[Phase, ...]

    def __post_init__(self):
        expect_text(self.label, "Lane: label")
        object.__setattr__(self, "phases", expect_all(self.phases, Phase, f"Lane: phases of {self.label}"))

    @property
    def total(self):
        """The sum of its phases."""
        return sum(phase.length for phase in self.phases)


@dataclass(frozen=True, repr=False)
class Timeline(Picture):
    """Lanes of phases, all from the same zero. `unit` is the word after a time. At most six different phases, which the legend names."""

    title: str
    lanes: tuple[Lane, ...] = ()
    unit: str = "s"

    def __post_init__(self):
        self._check()
        expect_text(self.unit, "Timeline: unit")
        object.__setattr__(self, "lanes", expect_all(self.lanes, Lane, "Timeline: lanes"))
        if not self.lanes or not any(lane.phases for lane in self.lanes):
            raise BadInput(f'Timeline: "{self.title}" has no phases; give it a Lane with one.')
        if len(self.names) > len(_STYLES):
            raise BadInput(f"Timeline: {len(self.names)} different phases cannot be told apart; give at most {len(_STYLES)}.")

    @property
    def names(self):
        """The names of the phases, each once, in the order in which they first appear."""
        return tuple(dict.fromkeys(phase.name for lane in self.lanes for phase in lane.phases))

    def described(self):
        lanes = []
        for lane in self.lanes:
            parts = ", ".join(f"{phase.name} {number(phase.length)}" for phase in lane.phases)
            lanes.append(f"{lane.label} {number(lane.total)} {self.unit}".strip() + (f" ({parts})" if len(lane.phases) > 1 else ""))
        return "; ".join(lanes) + "."

    def extent(self):
        return 0, max(lane.total for lane in self.lanes)

    def shapes(self):
        return _timeline(self)


def _timeline(picture):
    """(height, shapes), as in picture_base.py: labels at the left, bars with the phase's number above, totals behind, a legend below."""
    from kit.layout import Scale, _axis, _wide

    low, high = picture.extent()
    low, high = (low if picture.low is None else picture.low), (high if picture.high is None else picture.high)
    totals = [f"{number(lane.total)} {picture.unit}".strip() for lane in picture.lanes]
    left = min(230, max(_wide(lane.label, 8.8) for lane in picture.lanes) + 14)
    scale = Scale(low, high if high > low else low + 1, left, WIDTH - max(_wide(words, 8.8) for words in [*totals, "00,000.0"]) - 16)
    out, y = [], 6
    for lane, words in zip(picture.lanes, totals, strict=True):
        out.append(("text", left - 10, y + 27, lane.label, "end", ""))
        begun, free = 0.0, left
        for phase in lane.phases:
            start, stop = scale(begun), scale(begun + phase.length)
            begun += phase.length
            which = picture.names.index(phase.name)
            out.append(("rect", start, y + 14, round(max(stop - start, 1), 1), 18, _STYLES[which]))
            middle, half = round((start + stop) / 2, 1), 5
            if middle - half >= free:  # a number that would touch the one before is left out; the legend has its colour
                out.append(("text", middle, y + 10, str(which + 1), "middle", "small"))
                free = middle + half
        out.append(("text", scale(begun) + 8, y + 27, words, "start", "halo"))
        y += 38
    out += _axis(scale, y + 2, about=6)
    return _legend(picture, y + 40, out)


def _legend(picture, y, out):
    from kit.layout import _wide

    x = 12
    for i, name in enumerate(picture.names):
        words = f"{i + 1} {name}"
        if x > 12 and x + 26 + _wide(words, 6.6) > WIDTH:
            x, y = 12, y + 20
        out += [("squares", (x, y - 7), 14, _STYLES[i]), ("text", x + 20, y + 4, words, "start", "small")]
        x = round(x + 40 + _wide(words, 6.6), 1)
    return y + 14, out
