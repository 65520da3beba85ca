"""Draws a Timing: bars at one shape, curves over the one axis that varies."""

from __future__ import annotations

from kit.errors import BadInput, quoted
from kit.pictures import Bar, Bars, Curve

VALUES = {"us": "µs", "gb_s": "GB/s", "tflop_s": "TFLOP/s", "share": "of the ceiling"}


def draw(timing, value):
    """A Bars or Curve of the medians of `value`. Raises BadInput where more than one axis varies, or the value was not counted."""
    if value not in VALUES:
        raise BadInput(f"bench: value must be one of {', '.join(VALUES)}; got {quoted(value)}.")
    records = timing.table()
    if all(record[value] is None for record in records):
        raise BadInput(f"bench: there is no {value} without a count: give bytes= or flop= to bench.")
    axes = [key for key in timing.shapes[0] if len({shape[key] for shape in timing.shapes}) > 1]
    if not axes:
        rows = [Bar(one["name"], one[value] or 0, note=f"{one['low']:,.2f} to {one['high']:,.2f} µs") for one in records]
        return Bars("Median of the rounds", VALUES[value], tuple(rows), evidence=timing)
    if len(axes) > 1:
        raise BadInput(f"bench: {' and '.join(axes)} both vary; draw one axis at a time, or use .table().")
    axis = axes[0]
    x = sorted({shape[axis] for shape in timing.shapes})
    at = {(one["name"], one[axis]): one[value] for one in records}
    series = {name: [at.get((name, point)) for point in x] for name in timing.names}
    return Curve("Median of the rounds", x, series, x_label=axis, y_label=VALUES[value], evidence=timing)
