"""`HeatMap`: ratios over two axes. A cell has the colour of its side, above or below 1, and fills with the distance from 1."""

from __future__ import annotations

import math
import statistics
from dataclasses import dataclass

from kit.errors import BadInput, WrongType, quoted
from kit.picture_base import WIDTH, Picture, expect_number, expect_text, number

_HEIGHT, _GAP = 32, 2
_WIDEST = 96  # units of a column
_LEAST = 1.1  # the ratio that fills a cell is at least this: noise alone does not fill one
_MOST_COLUMNS, _MOST_ROWS = 14, 40


@dataclass(frozen=True, repr=False)
class HeatMap(Picture):
    """Ratios in a table: `values[row][column]`, each more than 0, or None where there is none.

    `rows` and `columns` are the labels, numbers or words, of the two axes named `row_label` and `column_label`. `above` and `below` say in
    the legend what a ratio above and below 1 means. The ratio farthest from 1, or of `low` and `high` where given, fills its cell.
    """

    title: str
    rows: tuple = ()
    columns: tuple = ()
    values: tuple = ()
    row_label: str = ""
    column_label: str = ""
    above: str = ""
    below: str = ""

    def __post_init__(self):
        self._check()
        for name in ("row_label", "column_label", "above", "below"):
            expect_text(getattr(self, name), f"HeatMap: {name}")
        for name, most in (("rows", _MOST_ROWS), ("columns", _MOST_COLUMNS)):
            object.__setattr__(self, name, _labels(getattr(self, name), f"HeatMap: {name}", most))
        object.__setattr__(self, "values", self._checked_values())
        for name in ("low", "high"):
            if getattr(self, name) is not None and getattr(self, name) <= 0:
                raise BadInput(f"HeatMap: {name} must be more than 0, as ratios are; got {getattr(self, name)}.")

    def _checked_values(self):
        lines = self.values
        if not isinstance(lines, (list, tuple)) or not all(isinstance(line, (list, tuple)) for line in lines):
            raise WrongType(f"HeatMap: values must be a list of lists, one a row; got {quoted(lines)}.")
        sizes = {len(line) for line in lines}
        if len(lines) != len(self.rows) or sizes != {len(self.columns)}:
            raise BadInput(f"HeatMap: values must be {len(self.rows)} rows of {len(self.columns)}; got {len(lines)} of {sorted(sizes)}.")
        for value in (value for line in lines for value in line if value is not None):
            if expect_number(value, "HeatMap: values") <= 0:
                raise BadInput(f"HeatMap: values holds {value}, and a ratio of times is more than 0; leave it out as None.")
        if all(value is None for line in lines for value in line):
            raise BadInput(f'HeatMap: "{self.title}" has no values; give it one.')
        return tuple(map(tuple, lines))

    def cells(self):
        """[(row, column, ratio)] of the cells that hold one."""
        return [
            (row, column, value)
            for row, line in zip(self.rows, self.values, strict=True)
            for column, value in zip(self.columns, line, strict=True)
            if value is not None
        ]

    def described(self):
        cells = self.cells()
        at = f"{self.column_label} {{}}, {self.row_label} {{}}"
        ends = [
            f"{ratio_words(v)} ({at.format(number(c), number(r)).strip()})" for r, c, v in (min(cells, key=_value), max(cells, key=_value))
        ]
        above = sum(value > 1 for *_, value in cells)
        middle = ratio_words(statistics.median(map(_value, cells)))
        return f"{len(cells)} ratios from {ends[0]} to {ends[1]}, median {middle}; above 1 in {above}."

    def extent(self):
        values = [value for *_, value in self.cells()]
        return min(values), max(values)

    def shapes(self):
        return _heat_map(self)


def _value(cell):
    return cell[2]


def _labels(items, where, most):
    if not isinstance(items, (list, tuple, range)) or not all(isinstance(item, (str, int, float)) for item in items):
        raise WrongType(f"{where} must be a list of numbers or words; got {quoted(items)}.")
    if not 1 <= len(items) <= most:
        raise BadInput(f"{where} must have 1 to {most} entries; got {len(items)}.")
    return tuple(items)


def ratio_words(value):
    """A ratio as a cell shows it: 0.48, 1.25, 12.3, 134."""
    return f"{value:.2f}" if value < 9.995 else f"{value:.1f}" if value < 99.95 else f"{value:,.0f}"


def _heat_map(picture):
    """(height, shapes), as in picture_base.py: row labels at the left, columns' above, a legend below."""
    from kit.layout import _wide

    low, high = picture.extent()
    low, high = (low if picture.low is None else picture.low), (high if picture.high is None else picture.high)
    full = max(high, 1 / low, _LEAST)
    labels = [number(row) for row in picture.rows]
    left = min(240, max(_wide(words) for words in [*labels, picture.row_label]) + 14)
    width = min(_WIDEST, (WIDTH - left - 4) // len(picture.columns))
    middle = round(left + width * len(picture.columns) / 2, 1)
    out, y = (
        [
            ("text", left - 10, 32, picture.row_label, "end", "small muted"),
            ("text", middle, 14, picture.column_label, "middle", "small muted"),
        ],
        40,
    )
    for i, column in enumerate(picture.columns):
        out.append(("text", round(left + width * (i + 0.5), 1), 32, number(column), "middle", ""))
    for words, line in zip(labels, picture.values, strict=True):
        out.append(("text", left - 10, y + 20, words, "end", ""))
        for i, value in enumerate(line):
            out += _cell(value, left + width * i, y, width, full)
        y += _HEIGHT
    return _legend(picture, y + 18, full, out)


def _cell(value, x, y, width, full):
    """The shapes of one cell: its ground, the part that is coloured, the number."""
    middle = round(x + width / 2, 1)
    if value is None:
        return [("text", middle, y + 20, "–", "middle", "muted")]
    w, h = width - _GAP, _HEIGHT - _GAP
    out = [("rect", x, y, w, h, "faint")]
    level = round(h * min(1.0, abs(math.log(value)) / math.log(full)), 1)  # the level says how far, the number says it exactly
    if level > 0:
        out.append(("rect", x, round(y + h - level, 1), w, level, "bad" if value > 1 else "ok"))
    return [*out, ("text", middle - 1, y + 20, ratio_words(value), "middle", "halo")]


def _legend(picture, y, full, out):
    from kit.layout import _wide

    x = 12
    words = [
        (f"above 1: {picture.above}", "bad") if picture.above else None,
        (f"below 1: {picture.below}", "ok") if picture.below else None,
    ]
    for told, style in [*filter(None, words), (f"a full cell: {ratio_words(full)} or {ratio_words(1 / full)}", "faint")]:
        if x > 12 and x + 20 + _wide(told, 6.6) > WIDTH:
            x, y = 12, y + 20
        out += [("squares", (x, y - 7), 14, style), ("text", x + 20, y + 4, told, "start", "small")]
        x = round(x + 40 + _wide(told, 6.6), 1)
    return y + 14, out
