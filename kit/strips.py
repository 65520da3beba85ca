"""`Strips`: the elements of a block from left to right, coloured by the warp that touches each; one strip an access, marks below."""

from __future__ import annotations

from dataclasses import dataclass

from kit.errors import BadInput, WrongType, quoted
from kit.picture_base import WIDTH, Picture, expect_all, expect_text, number

# A warp's colour is one of four in turn; its number stands in it, and says the same without colour.
_STYLES = ("ok", "fourth", "muted", "ink")
MOST_ELEMENTS = 65_536


@dataclass(frozen=True)
class Strip:
    """One access: its label, and the warp of each element in the order of the elements."""

    label: str
    warps: tuple[int, ...]

    def __post_init__(self):
        expect_text(self.label, "Strip: label")
        object.__setattr__(self, "warps", _whole(self.warps, f"Strip: warps of {self.label}"))


@dataclass(frozen=True)
class Marked:
    """A strip of marks: its label, and for each element whether it has one."""

    label: str
    marks: tuple[bool, ...]

    def __post_init__(self):
        expect_text(self.label, "Marked: label")
        object.__setattr__(self, "marks", tuple(map(bool, _whole(self.marks, f"Marked: marks of {self.label}"))))

    @property
    def count(self):
        """How many elements have a mark."""
        return sum(self.marks)


def _whole(items, where):
    items = items.tolist() if hasattr(items, "tolist") else items
    if not isinstance(items, (list, tuple)) or not items or not all(isinstance(item, int) and item >= 0 for item in items):
        raise WrongType(f"{where} must be a list of whole numbers, 0 or more, one an element; got {quoted(items)}.")
    return tuple(items)


@dataclass(frozen=True, repr=False)
class Strips(Picture):
    """Accesses over the same elements, and marks below them. `first` is the number of the first element."""

    title: str
    rows: tuple[Strip, ...] = ()
    marked: tuple[Marked, ...] = ()
    first: int = 0

    def __post_init__(self):
        self._check()
        object.__setattr__(self, "rows", expect_all(self.rows, Strip, "Strips: rows"))
        object.__setattr__(self, "marked", expect_all(self.marked, Marked, "Strips: marked"))
        if not self.rows:
            raise BadInput(f'Strips: rows is empty; give "{self.title}" at least one Strip.')
        lengths = {len(row.warps) for row in self.rows} | {len(row.marks) for row in self.marked}
        if len(lengths) != 1 or max(lengths) > MOST_ELEMENTS:
            raise BadInput(f"Strips: every strip must be over the same elements, at most {MOST_ELEMENTS:,}; got lengths {sorted(lengths)}.")

    @property
    def length(self):
        """How many elements there are."""
        return len(self.rows[0].warps)

    def described(self):
        parts = []
        for row in self.rows:
            n = len(set(row.warps))
            stretches = len(runs(row.warps))
            parts.append(f"{row.label}: {n} warp{'s' if n > 1 else ''} in {stretches:,} stretch{'es' if stretches > 1 else ''}")
        parts += [f"{row.label}: {row.count:,} of {self.length:,} elements" for row in self.marked]
        return "; ".join(parts) + "."

    def extent(self):
        return None

    def shapes(self):
        return _strips(self)


def runs(values):
    """[(start, stop, value)] of the stretches of equal values."""
    found, start = [], 0
    for i in range(1, len(values) + 1):
        if i == len(values) or values[i] != values[start]:
            found.append((start, i, values[start]))
            start = i
    return found


def _strips(picture):
    from kit.layout import Scale, _axis, _wide

    labels = [row.label for row in (*picture.rows, *picture.marked)]
    left = min(200, max(map(_wide, labels)) + 16)
    counts = [number(row.count) for row in picture.marked]
    right = WIDTH - max([12, *(_wide(words, 8.8) + 34 for words in counts)])
    scale = Scale(picture.first, picture.first + picture.length, left, right)
    out, y = [], 6
    for row in picture.rows:
        out.append(("text", left - 10, y + 19, row.label, "end", ""))
        for start, stop, warp in runs(row.warps):
            at, end = scale(picture.first + start), scale(picture.first + stop)
            out.append(("rect", at, y + 2, round(max(end - at - (1 if end - at > 4 else 0), 0.5), 1), 26, _STYLES[warp % len(_STYLES)]))
            if end - at >= 8 + 6 * len(str(warp)):
                out.append(("text", round((at + end) / 2, 1), y + 19, str(warp), "middle", "small strong paper"))
        y += 34
    for row, words in zip(picture.marked, counts, strict=True):
        out.append(("text", left - 10, y + 16, row.label, "end", ""))
        out.append(("rect", left, y + 2, round(right - left, 1), 20, "faint"))
        for start, stop, mark in runs(row.marks):
            if mark:
                at, end = scale(picture.first + start), scale(picture.first + stop)
                out.append(("rect", at, y + 2, round(max(end - at, 1), 1), 20, "bad"))
                if end - at >= 14:
                    out.append(("marks", "cross", (round((at + end) / 2, 1), y + 12), 4.5, "paper"))
        if row.count:
            out.append(("marks", "cross", (right + 14, y + 12), 5, "bad"))
        else:
            out.append(("marks", "tick", (right + 14, y + 12), 6, "ok"))
        out.append(("text", right + 26, y + 16, words, "start", "strong" if row.count else ""))
        y += 28
    out += _axis(scale, y + 4, about=6, least=picture.first)
    return y + 28, out
