"""The pictures of the lessons: `Bars`, `NumberLine`, `Cells`, `Curve`, and `Timeline`, `HeatMap` of their own files. Alone: a still."""

from __future__ import annotations

from dataclasses import dataclass, field

from kit.errors import BadInput, WrongType, quoted
from kit.heat_map import HeatMap
from kit.picture_base import WIDTH, Picture, expect_all, expect_number, expect_text, number
from kit.timeline import Lane, Phase, Timeline

__all__ = [
    "INT32",
    "WIDTH",
    "Bar",
    "Bars",
    "Cells",
    "Curve",
    "HeatMap",
    "Lane",
    "Limit",
    "Mark",
    "NumberLine",
    "Phase",
    "Picture",
    "Span",
    "Timeline",
    "number",
]


@dataclass(frozen=True)
class Bar:
    """One row of Bars: a label, a value of 0 or more, the limit it is held against, ok (None: neither), a note below."""

    label: str
    value: float
    limit: float | None = None
    ok: bool | None = True
    note: str = ""

    def __post_init__(self):
        expect_text(self.label, "Bar: label")
        expect_text(self.note, "Bar: note")
        if expect_number(self.value, "Bar: value") < 0:
            raise BadInput(f"Bar: value must be 0 or more; got {self.value}. For signed numbers use a NumberLine.")
        if self.limit is not None and expect_number(self.limit, "Bar: limit") <= 0:
            raise BadInput(f"Bar: limit must be more than 0; got {self.limit}.")


@dataclass(frozen=True, repr=False)
class Bars(Picture):
    """Magnitudes side by side, each against its limit. `unit` is the word after each value, `scale` "linear" or "log"."""

    title: str
    unit: str = ""
    rows: tuple[Bar, ...] = ()
    scale: str = "linear"

    def __post_init__(self):
        self._check()
        expect_text(self.unit, "Bars: unit")
        object.__setattr__(self, "rows", expect_all(self.rows, Bar, "Bars: rows"))
        if not self.rows:
            raise BadInput(f'Bars: rows is empty; give "{self.title}" at least one Bar.')
        if self.scale not in ("linear", "log"):
            raise BadInput(f'Bars: scale must be "linear" or "log"; got {quoted(self.scale)}.')

    def described(self):
        parts = []
        for row in self.rows:
            mark = {True: "✓ ", False: "✗ ", None: ""}[row.ok]
            limit = "" if row.limit is None else f" (limit {number(row.limit)})"
            parts.append(f"{mark}{row.label} {number(row.value)}{' ' + self.unit if self.unit else ''}{limit}")
        return ", ".join(parts) + "."

    def extent(self):
        values = [v for row in self.rows for v in (row.value, row.limit) if v]
        return (min(values, default=1), max(values, default=1))

    def shapes(self):
        from kit.layout import bars

        return bars(self)


@dataclass(frozen=True)
class Mark:
    """A point of a NumberLine. `wraps_from` draws an arrow from there to it; ok None: neither right nor wrong."""

    at: float
    label: str
    ok: bool | None = None
    wraps_from: float | None = None

    def __post_init__(self):
        expect_number(self.at, "Mark: at")
        expect_text(self.label, "Mark: label")
        if self.wraps_from is not None:
            expect_number(self.wraps_from, "Mark: wraps_from")


@dataclass(frozen=True)
class Span:
    """A stretch of a NumberLine, from `start` to `stop`: an allocation, a range of values."""

    start: float
    stop: float
    label: str
    ok: bool | None = None

    def __post_init__(self):
        expect_text(self.label, "Span: label")
        if expect_number(self.start, "Span: start") > expect_number(self.stop, "Span: stop"):
            raise BadInput(f"Span: start must not be after stop; got {self.start} and {self.stop} for {self.label}.")


@dataclass(frozen=True)
class Limit:
    """A border on a NumberLine or the height of one on a Curve; beyond the outermost two the line is shaded."""

    at: float
    label: str

    def __post_init__(self):
        expect_number(self.at, "Limit: at")
        expect_text(self.label, "Limit: label")


INT32 = (Limit(-(2**31), "-2³¹"), Limit(2**31 - 1, "2³¹ - 1"))


@dataclass(frozen=True, repr=False)
class NumberLine(Picture):
    """A signed axis with spans below it, marks above it, and limits across it: where does an offset fall against 2^31?"""

    title: str
    marks: tuple[Mark, ...] = ()
    spans: tuple[Span, ...] = ()
    limits: tuple[Limit, ...] = INT32
    unit: str = ""

    def __post_init__(self):
        self._check()
        expect_text(self.unit, "NumberLine: unit")
        for name, kind in (("marks", Mark), ("spans", Span), ("limits", Limit)):
            object.__setattr__(self, name, expect_all(getattr(self, name), kind, f"NumberLine: {name}"))
        if not self.marks and not self.spans:
            raise BadInput(f'NumberLine: "{self.title}" has neither marks nor spans; give it one.')

    def described(self):
        parts = [f"{ {True: '✓ ', False: '✗ ', None: ''}[m.ok] }{m.label} at {number(m.at)}" for m in self.marks]
        parts += [f"{s.label} from {number(s.start)} to {number(s.stop)}" for s in self.spans]
        parts += [f"limit {limit.label}" for limit in self.limits]
        return ", ".join(parts) + (f" ({self.unit})." if self.unit else ".")

    def extent(self):
        values = [m.at for m in self.marks] + [m.wraps_from for m in self.marks if m.wraps_from is not None]
        values += [v for s in self.spans for v in (s.start, s.stop)] + [limit.at for limit in self.limits]
        return min(values), max(values)

    def shapes(self):
        from kit.layout import number_line

        return number_line(self)


@dataclass(frozen=True, repr=False)
class Cells(Picture):
    """Elements as a grid of cells, each in a state: `rows` holds the states 0 to 3, which `names` names.

    A flat list is folded after `columns` cells. State 0 is blank, 1 carries a cross, 2 a ring, 3 a dot. `first` is the index of the first
    cell (of the first row, where there are rows), for a piece of something larger. At most 16,384 cells.
    """

    title: str
    rows: tuple = ()
    names: tuple[str, ...] = ("right", "wrong", "never written", "not compared")
    columns: int = 32
    first: int = 0
    shape: tuple[int, int] = field(init=False, default=(0, 0))
    folded: bool = field(init=False, default=False)

    def __post_init__(self):
        self._check()
        rows = self.rows.tolist() if hasattr(self.rows, "tolist") else self.rows
        if not isinstance(rows, (list, tuple)) or not rows:
            raise WrongType(f"Cells: rows must be a list of states or a list of such rows, not empty; got {quoted(self.rows)}.")
        folded = not isinstance(rows[0], (list, tuple))
        if folded:
            rows = [rows[i : i + self.columns] for i in range(0, len(rows), self.columns)]
        rows = tuple(tuple(row) for row in rows)
        if not folded and len({len(row) for row in rows}) != 1:
            raise BadInput("Cells: every row must have the same length.")
        n_cells = sum(map(len, rows))
        if n_cells > 16_384 or len(rows[0]) > 256:
            raise BadInput(
                f"Cells: {n_cells:,} cells in rows of {len(rows[0])} cannot be told apart; show a part of at most 16,384, 256 a row."
            )
        states = {state for row in rows for state in row}
        if not states <= set(range(min(len(self.names), 4))):
            most = min(len(self.names), 4) - 1
            raise BadInput(f"Cells: a state must be 0 to {most}, one for each of {self.names}; got {sorted(map(str, states))}.")
        object.__setattr__(self, "rows", rows)
        object.__setattr__(self, "folded", folded)
        object.__setattr__(self, "shape", (len(rows), len(rows[0])))

    def count(self, state):
        """How many cells are in `state`."""
        return sum(row.count(state) for row in self.rows)

    def described(self):
        return ", ".join(f"{self.count(i):,} {name}" for i, name in enumerate(self.names[:4]) if self.count(i)) + "."

    def extent(self):
        return None

    def shapes(self):
        from kit.layout import cells

        return cells(self)


@dataclass(frozen=True, repr=False)
class Curve(Picture):
    """One to four series over an axis, with the point where the reader stands (`at`) and a limit.

    `series` is {name: values}, each as long as `x`; None leaves a gap. `x_scale` and `y_scale` are "linear" or "log".
    """

    title: str
    x: tuple[float, ...] = ()
    series: dict = field(default_factory=dict)
    at: float | None = None
    limit: Limit | None = None
    x_label: str = ""
    y_label: str = ""
    x_scale: str = "log"
    y_scale: str = "linear"

    def __post_init__(self):
        self._check()
        x = tuple(self.x)
        if len(x) < 2 or any(expect_number(a, "Curve: x") >= expect_number(b, "Curve: x") for a, b in zip(x, x[1:], strict=False)):
            raise BadInput(f"Curve: x must be two or more growing numbers; got {quoted(self.x)}.")
        if not isinstance(self.series, dict) or not 1 <= len(self.series) <= 4:
            raise BadInput(f"Curve: series must be a dict of one to four names and their values; got {quoted(self.series)}.")
        for name, values in self.series.items():
            if len(values) != len(x):
                raise BadInput(f"Curve: series {name} has {len(values)} values and x has {len(x)}; give one each.")
            for value in values:
                if value is not None and expect_number(value, f"Curve: series {name}") <= 0 and self.y_scale == "log":
                    raise BadInput(f"Curve: series {name} holds {value}, which a log scale cannot show; leave it out as None.")
        for name in ("x_scale", "y_scale"):
            if getattr(self, name) not in ("linear", "log"):
                raise BadInput(f'Curve: {name} must be "linear" or "log"; got {quoted(getattr(self, name))}.')
        if self.x_scale == "log" and x[0] <= 0:
            raise BadInput(f'Curve: x holds {x[0]}, which a log scale cannot show; use x_scale="linear".')
        if self.limit is not None and not isinstance(self.limit, Limit):
            raise WrongType(f"Curve: limit must be a Limit(at, label); got {quoted(self.limit)}.")
        if all(v is None for values in self.series.values() for v in values):
            raise BadInput(f'Curve: "{self.title}" has no values; give it one.')
        object.__setattr__(self, "x", x)

    def described(self):
        parts = []
        for name, values in self.series.items():
            known = [(x, y) for x, y in zip(self.x, values, strict=True) if y is not None]
            if not known:
                parts.append(f"{name} has no values")
            elif self.at in self.x:
                value = values[self.x.index(self.at)]
                parts.append(f"{name} {'has no value' if value is None else number(value)} at {number(self.at)}")
            else:
                parts.append(f"{name} from {number(known[0][1])} to {number(known[-1][1])}")
        limit = f", limit {self.limit.label}" if self.limit else ""
        return ", ".join(parts) + limit + (f" ({self.y_label})." if self.y_label else ".")

    def extent(self):
        values = [v for values in self.series.values() for v in values if v is not None] + ([self.limit.at] if self.limit else [])
        return min(values), max(values)

    def shapes(self):
        from kit.layout import curve

        return curve(self)
