"""`explore`: a picture, and a slider for each thing that it depends on.

A view that returns a picture of pictures.py is called once for every combination, and the browser draws them (explore.js): a step costs
no kernel round trip. A view that returns a matplotlib figure, or one that compiles or launches (`live=True`), is called when a slider
comes to rest. Where no kernel is live the still picture and the sentence remain.
"""

from __future__ import annotations

import itertools
import json
import math

from kit.axes import checked_axes, expect_parameters, start_position
from kit.errors import BadInput, WrongType, quoted
from kit.panel import Panel, Table, call, spelled
from kit.pictures import WIDTH, Bar, Bars, Cells, Curve, Limit, Mark, NumberLine, Picture, Span

__all__ = ["Bar", "Bars", "Cells", "Curve", "Limit", "Mark", "NumberLine", "Panel", "Span", "explore"]

MOST_COMBINATIONS = 4000
MOST_BYTES = 8 * 10**6  # of the table, as it travels to the browser


def explore(view, /, *, start=None, live=False, **axes):
    """Return a Panel: what `view(**values)` shows, with an input for each of `axes`, a list of numbers or of names.

    `view` returns a picture (Bars, NumberLine, Cells, Curve), a matplotlib Figure, or (Figure, sentence). `start` is a dict of the values
    to begin with, the first of each axis otherwise. `live=True` calls the view when it is needed, not for all values beforehand: for one
    that compiles or launches. Raises BadInput when an axis or what the view returns cannot be used, KitError when the view raises; both
    name the values.
    """
    if not callable(view):
        raise WrongType(f"explore: view must be a function of the axes that returns a picture; got {quoted(view)} ({type(view).__name__}).")
    checked = checked_axes(axes)
    expect_parameters(view, checked)
    position = start_position(checked, start)
    first = call(view, checked, position)
    table = _table(view, checked, position, first) if isinstance(first, Picture) and not live else None
    return Panel(view, checked, position, first, table)


def _table(view, axes, start, first):
    counts = [len(axis.values) for axis in axes]
    if math.prod(counts) > MOST_COMBINATIONS:
        raise BadInput(
            f"explore: {' x '.join(map(str, counts))} = {math.prod(counts):,} combinations, and at most {MOST_COMBINATIONS:,} are computed "
            f"beforehand; give fewer values, or live=True to compute each when it is needed."
        )
    pictures = []
    for position in itertools.product(*map(range, counts)):
        picture = first if position == start else call(view, axes, position)
        if type(picture) is not type(first):
            kind = type(picture).__name__ if isinstance(picture, Picture) else "Figure"
            raise BadInput(
                f"explore: {spelled(axes, position)} returned a {kind} and {spelled(axes, start)} a {type(first).__name__}; "
                f"return the same kind of picture for all values."
            )
        pictures.append(picture)
    pictures = _on_one_scale(pictures)
    return Table(pictures, _packed(pictures))


def _on_one_scale(pictures):
    """All on the scale that holds all, so that a step moves the bars and not the axis."""
    extents = [picture.extent() for picture in pictures]
    if None in extents:
        return pictures
    low, high = min(low for low, _ in extents), max(high for _, high in extents)
    return [picture.fixed_to(low, high) for picture in pictures] if low < high else pictures


def _packed(pictures):
    """The table as the browser reads it. Equal shapes, such as the axis, travel once: a frame is a list of indices into the pool."""
    pool, titles, frames, tallest, n_bytes = {}, {}, [], 0, 0
    for picture in pictures:
        height, shapes = picture.shapes()
        tallest = max(tallest, height)
        n_bytes += sum(len(json.dumps(shape)) for shape in shapes if shape not in pool)
        frame = {
            "shapes": [pool.setdefault(shape, len(pool)) for shape in shapes],
            "title": titles.setdefault(picture.title, len(titles)),
            "sentence": picture.says,
            "alt": picture.alt,
            "evidence": picture.word,
            "tag": picture.tag,
        }
        n_bytes += len(json.dumps(frame))
        if n_bytes > MOST_BYTES:
            raise BadInput(
                f"explore: the pictures of {len(pictures):,} combinations take more than the {MOST_BYTES / 1e6:.0f} MB that are sent to "
                f"the browser; give fewer values, smaller pictures, or live=True."
            )
        frames.append(frame)
    return {"width": WIDTH, "height": tallest, "pool": list(pool), "titles": list(titles), "frames": frames}
