"""Pictures as PNG, by matplotlib. Every render in this process takes RENDER: matplotlib is not thread-safe, and JupyterLab may call widget
callbacks on threads of their own (reference: matplotlib/ipympl#610)."""

from __future__ import annotations

import base64
import io
import textwrap
import threading

from kit.errors import KitError
from kit.picture_base import WIDTH

RENDER = threading.RLock()
_UNIT = 0.72  # points an unit: WIDTH units are 7.2 inches
_DPI = 144
# Okabe and Ito's colours: told apart by colour-blind readers. The style sheet of explore.css has the same.
COLOURS = {
    "ok": "#0072B2",
    "bad": "#D55E00",
    "third": "#E69F00",
    "fourth": "#009E73",
    "ink": "#222222",
    "muted": "#767676",
    "faint": "#E4E7EA",
    "limit": "#222222",
    "paper": "#FFFFFF",
}
# Symbols as strokes in a square from -1 to 1, y downwards; a closed one is filled. explore.js draws the same.
SYMBOLS = {
    "tick": (((-0.8, 0.05), (-0.25, 0.7), (0.85, -0.65)), False),
    "cross": (((-0.75, -0.75), (0.75, 0.75), None, (-0.75, 0.75), (0.75, -0.75)), False),
    "square": (((-0.8, -0.8), (0.8, -0.8), (0.8, 0.8), (-0.8, 0.8)), True),
    "diamond": (((0, -1), (1, 0), (0, 1), (-1, 0)), True),
    "triangle": (((0, -1), (0.9, 0.75), (-0.9, 0.75)), True),
    "down": (((-0.9, -0.8), (0.9, -0.8), (0, 0.9)), True),
    "left": (((0.8, -0.9), (0.8, 0.9), (-0.9, 0)), True),
    "right": (((-0.8, -0.9), (-0.8, 0.9), (0.9, 0)), True),
}


def still(picture, position=""):
    """The picture as PNG bytes in base64 text: title and evidence word above, `position` below them, the sentence at the foot."""
    return base64.b64encode(png(picture, position)).decode()


def png(picture, position=""):
    """The picture as PNG bytes. Raises KitError when matplotlib is not installed."""
    with RENDER:
        Figure, _ = _matplotlib()
        height, shapes = picture.shapes()
        foot = [line for part in picture.says.split("\n") for line in textwrap.wrap(part, 96)]
        head = 50 if position else 32
        total = head + height + 12 + 18 * len(foot) + 4
        figure = Figure(figsize=(WIDTH / 100, total / 100), dpi=_DPI, facecolor="white")
        axes = figure.add_axes((0, 0, 1, 1))
        axes.set_axis_off()
        axes.set_xlim(0, WIDTH)
        axes.set_ylim(total, 0)
        _text(axes, 6, 18, picture.title, "start", "title")
        _text(axes, WIDTH - 6, 18, picture.tag, "end", "tag")
        if position:
            _text(axes, 6, 38, position, "start", "muted")
        for shape in shapes:
            _DRAW[shape[0]](axes, head, *shape[1:])
        for i, line in enumerate(foot):
            _text(axes, 6, head + height + 18 + 18 * i, line, "start", "")
        return _save(figure)


def _save(figure, **how):
    """A matplotlib figure as PNG bytes: the same bytes for the same figure. Its callers hold RENDER."""
    file = io.BytesIO()
    figure.savefig(file, format="png", metadata={"Software": None}, **how)
    return file.getvalue()


def figure_png(figure, word):
    """A reader's own figure as PNG bytes, with its evidence word in the corner; a pyplot figure is closed, so that none pile up."""
    import sys

    with RENDER:
        figure.text(0.995, 0.005, word, ha="right", va="bottom", fontsize=8, color=COLOURS["muted"])
        data = _save(figure, dpi=_DPI)
        if pyplot := sys.modules.get("matplotlib.pyplot"):
            pyplot.close(figure)
        return data


def _matplotlib():
    try:
        from matplotlib.figure import Figure
        from matplotlib.path import Path
    except ImportError:
        raise KitError("picture: matplotlib draws the pictures and is not installed; run `pip install matplotlib`.") from None
    return Figure, Path


def _colour(style, default="ink"):
    return next((COLOURS[word] for word in style.split() if word in COLOURS), COLOURS[default])


def _stroke(style):
    dash = (0, (4, 3)) if "dashed" in style or "limit" in style.split() else (0, (1, 2)) if "dotted" in style else "solid"
    return {"color": _colour(style), "linewidth": 1.2 if "limit" in style.split() else 1, "linestyle": dash, "solid_capstyle": "butt"}


def _text(axes, x, y, words, anchor, style):
    size = 15 if style == "title" else 11 if "small" in style or style == "tag" else 13
    bold = "bold" if "strong" in style or style == "title" else "normal"
    box = {"boxstyle": "round,pad=0.25", "facecolor": "none", "edgecolor": COLOURS["muted"], "linewidth": 0.7} if style == "tag" else None
    horizontal = {"start": "left", "middle": "center", "end": "right"}[anchor]
    words = words.replace("$", r"\$")  # no formulas: a dollar is a dollar
    text = axes.text(x, y, words, ha=horizontal, va="baseline", fontsize=size * _UNIT, color=_colour(style), fontweight=bold, bbox=box)
    if "halo" in style:  # readable where it crosses a line
        from matplotlib.patheffects import withStroke

        text.set_path_effects([withStroke(linewidth=3, foreground=COLOURS["paper"])])


def _rect(axes, down, x, y, w, h, style):
    axes.fill([x, x + w, x + w, x], [y + down, y + down, y + h + down, y + h + down], color=_colour(style), linewidth=0)


def _line(axes, down, x1, y1, x2, y2, style):
    axes.plot([x1, x2], [y1 + down, y2 + down], **_stroke(style))


def _path(axes, down, points, style):
    axes.plot(points[::2], [y + down for y in points[1::2]], **_stroke(style) | {"linewidth": 1.6})


def _squares(axes, down, points, size, style):
    _compound(axes, [((0, 0), (size, 0), (size, size), (0, size))], points, down, 1, style, closed=True)


def _marks(axes, down, kind, points, size, style):
    if kind in ("circle", "dot", "ring"):
        from matplotlib.collections import EllipseCollection

        d = size * (2 if kind == "circle" else 1 if kind == "dot" else 1.7)
        places = [(x, y + down) for x, y in zip(points[::2], points[1::2], strict=True)]
        colour = _colour(style)
        face, width = ("none", size * 0.4) if kind == "ring" else (colour, 0)
        look = {"facecolors": face, "edgecolors": colour, "linewidths": width}
        axes.add_collection(EllipseCollection(d, d, 0, units="xy", offsets=places, offset_transform=axes.transData, **look))
        return
    outline, closed = SYMBOLS[kind]
    strokes, stroke = [], []
    for point in [*outline, None]:
        if point is None:
            strokes.append(stroke)
            stroke = []
        else:
            stroke.append(point)
    _compound(axes, strokes, points, down, size, style, closed)


def _compound(axes, strokes, points, down, size, style, closed):
    """The same strokes at many places, as one path: a thousand cells cost what one does."""
    from matplotlib.patches import PathPatch
    from matplotlib.path import Path

    vertices, codes = [], []
    for x, y in zip(points[::2], points[1::2], strict=True):
        for stroke in strokes:
            vertices += [(x + size * dx, y + down + size * dy) for dx, dy in stroke]
            codes += [Path.MOVETO] + [Path.LINETO] * (len(stroke) - 1)
            if closed:
                vertices.append(vertices[-len(stroke)])
                codes.append(Path.CLOSEPOLY)
    colour = _colour(style)
    look = {"facecolor": colour, "linewidth": 0} if closed else {"facecolor": "none", "edgecolor": colour, "linewidth": max(1, size * 0.3)}
    axes.add_patch(PathPatch(Path(vertices, codes), **look))


_DRAW = {
    "rect": _rect,
    "line": _line,
    "path": _path,
    "squares": _squares,
    "marks": _marks,
    "text": lambda axes, down, x, y, words, anchor, style: _text(axes, x, y + down, words, anchor, style),
}
