"""Where each mark of a picture goes: `bars`, `number_line`, `cells`, `curve` return (height, shapes), as in picture_base.py."""

from __future__ import annotations

import math

from kit.picture_base import WIDTH, number

_SERIES = (("ok", "circle"), ("third dashed", "square"), ("fourth dotted", "triangle"), ("ink", "diamond"))
_STATES = (("faint", None), ("bad", "cross"), ("third", "ring"), ("muted", "dot"))
_CHARACTER = 7.6  # units a character of a label takes, at 13 units high


def _verdict(ok):
    return {True: ("ok", "tick"), False: ("bad", "cross"), None: ("muted", None)}[ok]


def _wide(text, character=_CHARACTER):
    return round(len(text) * character, 1)


class Scale:
    """From values to places: `low` to `high` on `start` to `stop`; places are clipped to the ends."""

    def __init__(self, low, high, start, stop, log=False):
        self.low, self.high, self.start, self.stop, self.log = low, high, start, stop, log

    def __call__(self, value):
        if self.log:
            part = math.log(max(value, self.low) / self.low) / math.log(self.high / self.low)
        else:
            part = (value - self.low) / (self.high - self.low)
        return round(self.start + (self.stop - self.start) * min(max(part, 0), 1), 1)

    def ticks(self, about=5):
        """Round values between the ends: about so many on a linear scale, powers of ten (or of two) on a log scale."""
        if self.log:
            base = 10 if self.high / self.low >= 1000 else 2
            first, last = math.ceil(math.log(self.low, base) - 1e-9), math.floor(math.log(self.high, base) + 1e-9)
            step = max(1, -(-(last - first) // (about + 1)))
            return [base**e if e >= 0 else float(base) ** e for e in range(first, last + 1, step)]
        raw = (self.high - self.low) / about
        power = 10 ** math.floor(math.log10(raw))
        step = next(m * power for m in (1, 2, 2.5, 5, 10) if m * power >= raw * 0.999)
        first = math.ceil(self.low / step - 1e-9)
        return [k * step for k in range(first, math.floor(self.high / step + 1e-9) + 1)]


def _short(value):
    """A tick's words, short enough to stand side by side."""
    for size, word in ((10**12, "trillion"), (10**9, "billion"), (10**6, "million")):
        if abs(value) >= size:
            return f"{value / size:,.3g} {word}"
    return number(round(value, 10))


def bars(picture):
    """Labels at the left, bars, each value behind its bar, limits as upright lines."""
    rows, log = picture.rows, picture.scale == "log"
    low, high = picture.extent()
    low, high = (low if picture.low is None else picture.low), (high if picture.high is None else picture.high)
    if log:
        low = 10.0 ** math.floor(math.log10(low) - 1e-9)  # a step below the smallest, so that it has a length
        high = max(high, low * 10)
    else:
        low, high = min(0, low if picture.low is not None and picture.low < 0 else 0), high or 1
    values = [f"{number(row.value)} {picture.unit}".strip() for row in rows]
    left = min(230, max(_wide(row.label) for row in rows) + 14)
    whole = all(isinstance(row.value, int) for row in rows)
    longest = f"{number(high) if whole else '00,000.0'} {picture.unit}".strip()  # the same for every picture on this scale
    scale = Scale(low, high, left, WIDTH - min(240, max(_wide(words, 8.8) for words in [longest, *values]) + 30), log)
    shared = {row.limit for row in rows}
    common = next(iter(shared)) if len(shared) == 1 else None
    lead = 0 if len(shared) == 1 else 14  # room over each bar for the words of its own limit
    y = 26 if common else 6
    top, out = y - 4, []
    for row, words in zip(rows, values, strict=True):
        style, symbol = _verdict(row.ok)
        middle = y + lead + 12
        out.append(("text", left - 10, middle + 4, row.label, "end", ""))
        end = scale(row.value) if row.value else left
        out.append(("rect", left, middle - 9, round(max(end - left, 1.5), 1), 18, style))
        after = end + 8
        if row.limit is not None and not common:
            at = scale(row.limit)
            out.append(("line", at, middle - 14, at, middle + 13, "limit"))
            out.append(("text", at, middle - 17, f"limit {number(row.limit)}", "middle", "small limit"))
        if row.limit is not None and after - 4 < scale(row.limit) < after + _wide(words, 8.8) + 20:
            after = scale(row.limit) + 8  # words do not cross the limit's line
        if symbol:
            out.append(("marks", symbol, (after + 6, middle), 6, style))
            after += 18
        out.append(("text", after, middle + 4, words, "start", "halo strong" if row.ok is False else "halo"))
        y = middle + 20
        if row.note:
            out.append(("text", left, y + 5, row.note, "start", "small muted"))
            y += 16
    if common:
        at = scale(common)
        out.append(("line", at, top, at, y, "limit"))
        out.append(("text", at, 14, f"limit {number(common)} {picture.unit}".strip(), _anchor(at), "small limit"))
    return y + 24, [*_axis(scale, y + 2, about=6, least=1 if whole and log else -math.inf), *out]


def _anchor(at):
    return "start" if at < WIDTH * 0.2 else "end" if at > WIDTH * 0.8 else "middle"


def _axis(scale, y, about=5, least=-math.inf):
    """The axis with its ticks; those under `least` are left out: there is no tenth of a program."""
    out = [("line", scale.start, y, scale.stop, y, "muted")]
    free = -math.inf  # where the words of the tick before end
    for tick in scale.ticks(about):
        at, half = scale(tick), _wide(_short(tick), 6.5) / 2
        if tick >= least and at - half > free:
            free = at + half + 4
            out += [("line", at, y, at, y + 4, "muted"), ("text", at, y + 17, _short(tick), "middle", "small muted halo")]
    return out


def number_line(picture):
    """Marks stand above the axis, each on its own level; spans lie below; limits cross all, and beyond them is shade."""
    low, high = picture.extent()
    low, high = (low if picture.low is None else picture.low), (high if picture.high is None else picture.high)
    room = (high - low or 1) * 0.04
    scale = Scale(low - room, high + room, 12, WIDTH - 12)
    axis = 24 + 26 * len(picture.marks) + 10
    bottom = axis + 30 + 36 * len(picture.spans)
    out = []
    limits = sorted(limit.at for limit in picture.limits)
    if len(limits) > 1:
        for start, stop in ((scale.start, scale(limits[0])), (scale(limits[-1]), scale.stop)):
            out.append(("rect", start, 20, round(stop - start, 1), bottom - 20, "faint"))
    for limit in picture.limits:
        at = scale(limit.at)
        out.append(("line", at, 20, at, bottom, "limit"))
        out.append(("text", at, 14, limit.label, _anchor(at), "small limit"))
    out += _axis(scale, axis, about=5)
    for i, mark in enumerate(picture.marks):
        out += _mark(scale, mark, 24 + 26 * i + 12, axis)
    for i, span in enumerate(picture.spans):
        style, y = _verdict(span.ok)[0], axis + 30 + 36 * i
        start, stop = scale(span.start), scale(span.stop)
        out.append(("rect", start, y + 16, round(max(stop - start, 2), 1), 12, style))
        words = f"{span.label}: {number(span.start)} to {number(span.stop)}"
        anchor = _anchor((start + stop) / 2)
        at = {"start": start, "end": stop, "middle": (start + stop) / 2}[anchor]
        out.append(("text", at, y + 11, words, anchor, "small halo"))
    return bottom + 6, out


def _mark(scale, mark, y, axis):
    style, symbol = _verdict(mark.ok)
    at = scale(mark.at)
    right = at < WIDTH * 0.55  # the words go where there is room
    out = [("line", at, y, at, axis, f"{style} dotted"), ("marks", "down", (at, axis - 5), 5, style)]
    if mark.wraps_from is not None:
        start = scale(mark.wraps_from)
        out.append(("line", start, y, at, y, f"{style} dashed"))
        out.append(("marks", "left" if start > at else "right", (at + (6 if start > at else -6), y), 5, style))
        right = start < at
        if right and at > WIDTH * 0.6 or not right and at < WIDTH * 0.4:
            right = not right
            y -= 9  # over the arrow, where the other side has no room
    beside = at + (12 if right else -12)
    if symbol:
        out.append(("marks", symbol, (beside + (3 if right else -3), y), 6, style))
        beside += 14 if right else -14
    words = f"{mark.label} {number(mark.at)}"
    out.append(("text", beside, y + 4, words, "start" if right else "end", "halo strong" if mark.ok is False else "halo"))
    return out


def cells(picture):
    """A square a cell, the index of the first cell of a row at the left, and a legend with counts."""
    n_rows, n_columns = picture.shape
    left = 12 + _wide(number(picture.first + n_rows * n_columns))
    size = min(22, math.floor((WIDTH - left - 4) / n_columns * 10) / 10)
    gap = 2 if size >= 9 else 0.5
    top, out = 20, []
    every = max(1, math.ceil(16 / size))
    for i in range(0, n_rows, every):
        index = picture.first + i * (n_columns if picture.folded else 1)
        out.append(("text", left - 8, round(top + (i + 0.5) * size + 4, 1), number(index), "end", "small muted"))
    stride = next(s for s in (1, 2, 4, 8, 16, 32, 64) if s * size >= 34)
    for j in range(0, n_columns, stride):
        out.append(("text", round(left + (j + 0.5) * size, 1), 13, f"+{j}" if picture.folded else str(j), "middle", "small muted"))
    for state, (style, symbol) in enumerate(_STATES):
        corners, middles = [], []
        for i, row in enumerate(picture.rows):
            for j, value in enumerate(row):
                if value == state:
                    corners += [round(left + j * size, 1), round(top + i * size, 1)]
                    middles += [round(left + (j + 0.5) * size - gap / 2, 1), round(top + (i + 0.5) * size - gap / 2, 1)]
        if corners:
            out.append(("squares", tuple(corners), size - gap, style))
            if symbol and size >= 8:
                out.append(("marks", symbol, tuple(middles), round(size * 0.24, 1), "paper"))
    y, x = top + n_rows * size + 16, left
    for state, name in enumerate(picture.names[:4]):
        if not picture.count(state):
            continue
        style, symbol = _STATES[state]
        out.append(("squares", (x, y - 7), 14, style))
        if symbol:
            out.append(("marks", symbol, (x + 7, y), 3.6, "paper"))
        words = f"{picture.count(state):,} {name}"
        out.append(("text", x + 20, y + 4, words, "start", "small"))
        x += 40 + _wide(words, 6.6)
    return round(y + 16, 1), out


def curve(picture):
    """Lines with symbols and their names at the right end, an upright line where the reader stands, the limit across."""
    low, high = picture.extent()
    low, high = (low if picture.low is None else picture.low), (high if picture.high is None else picture.high)
    if picture.y_scale == "log":
        low, high = low / 1.2, high * 1.2
    else:
        low = min(low, 0)
        high = high + (high - low or 1) * 0.06
    right = WIDTH - min(190, max(_wide(name) for name in picture.series) + 24)
    across = Scale(picture.x[0], picture.x[-1], 74, right, picture.x_scale == "log")
    up = Scale(low, high, 244, 24, picture.y_scale == "log")
    out = [("text", 4, 12, picture.y_label, "start", "small muted")] if picture.y_label else []
    for tick in up.ticks():
        y = up(tick)
        out += [("line", 74, y, right, y, "faint"), ("text", 66, y + 4, _short(tick), "end", "small muted")]
    out += _axis(across, 244, about=7)
    if picture.x_label:
        out.append(("text", (74 + right) / 2, 280, picture.x_label, "middle", "small muted"))
    if picture.limit:
        y = up(picture.limit.at)
        out += [("line", 74, y, right, y, "limit"), ("text", 80, y - 5, picture.limit.label, "start", "small limit")]
    if picture.at is not None:
        at = across(picture.at)
        out.append(("line", at, 24, at, 244, "ink dotted"))
    names = []
    for (style, symbol), (name, values) in zip(_SERIES, picture.series.items(), strict=False):
        colour = style.split()[0]
        known = [(across(x), up(v), x) for x, v in zip(picture.x, values, strict=True) if v is not None]
        out += [("path", run, style) for run in _runs(picture.x, values, across, up)]
        points = tuple(c for x, y, _ in known for c in (x, y))
        if points:
            out.append(("marks", symbol, points, 3 if len(known) < 40 else 1.5, colour))
        out += [("marks", symbol, (x, y), 6.5, colour) for x, y, value in known if value == picture.at]
        if known:
            names.append([known[-1][1], name, symbol, colour])
    names.sort()
    for i, entry in enumerate(names):
        y = entry[0] = max(entry[0], names[i - 1][0] + 16 if i else 0)
        out += [("marks", entry[2], (right + 10, y), 4, entry[3]), ("text", right + 18, y + 4, entry[1], "start", "small")]
    return 290 if picture.x_label else 270, out


def _runs(xs, values, across, up):
    """The stretches without a gap, as flat point lists of two points or more."""
    run = []
    for x, value in [*zip(xs, values, strict=True), (None, None)]:
        if value is not None:
            run += [across(x), up(value)]
        else:
            if len(run) > 2:
                yield tuple(run)
            run = []
