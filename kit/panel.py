"""The Panel that `explore` returns: where it stands, what it shows there, and its widget."""

from __future__ import annotations

import base64
import functools
import os
from collections import OrderedDict
from dataclasses import dataclass
from pathlib import Path

from kit.axes import flat, moved, standing, values_at
from kit.drawing import RENDER, figure_png, png
from kit.errors import KitError, WrongType, quoted
from kit.evidence import MEANING
from kit.picture_base import WIDTH, Picture

_VIEW = "application/vnd.jupyter.widget-view+json"
_KEPT = 128  # results of the view that are kept where it is called live


@dataclass(frozen=True)
class Table:
    """Every picture of a panel, in the order of the positions; `spec` is what travels to the browser."""

    pictures: list
    spec: dict


@dataclass(frozen=True)
class Drawn:
    """A reader's own figure, drawn: its PNG and what is said beside it. Reads like a Picture."""

    png: bytes
    title: str
    says: str
    word: str

    @property
    def tag(self):
        return self.word

    @property
    def alt(self):
        return self.says


def spelled(axes, position):
    """The call of the view at a position, for messages."""
    return f"view({', '.join(f'{name}={value!r}' for name, value in values_at(axes, position).items())})"


def call(view, axes, position):
    """What the view shows at a position: a Picture or a Drawn. Raises KitError when it raises, WrongType when it returns another thing.

    The view may draw, so it runs under the lock.
    """
    with RENDER:
        try:
            shown = view(**values_at(axes, position))
        except Exception as error:
            raise KitError(f"explore: {spelled(axes, position)} raised {type(error).__name__}: {error}") from error
        if isinstance(shown, Picture):
            return shown
        figure, sentence = shown if isinstance(shown, tuple) and len(shown) == 2 else (shown, "")
        if not hasattr(figure, "savefig") or not hasattr(figure, "get_suptitle") or not isinstance(sentence, str):
            raise WrongType(
                f"explore: {spelled(axes, position)} returned {quoted(shown)} ({type(shown).__name__}); a view must return Bars, "
                f"NumberLine, Cells, Curve, a matplotlib Figure, or (Figure, sentence)."
            )
        return _drawn(figure, sentence)


def _drawn(figure, sentence):
    from kit import machine

    titles = [title for title in (figure.get_suptitle(), *(axes.get_title() for axes in figure.axes)) if title]
    word = machine.current().evidence
    title = titles[0] if titles else "Figure"
    return Drawn(figure_png(figure, word), title, sentence or ". ".join(titles) or "A figure without a title.", word)


class Panel:
    """A picture with inputs. `value` is where they stand, `set(tokens=4096)` moves them, `sentence` says what is seen there.

    As the last value of a cell it is the live panel; on the web, or without ipywidgets and anywidget, a still picture of where it stands.
    """

    def __init__(self, view, axes, position, first, table=None):
        self._view, self._axes, self._position, self._table = view, axes, position, table
        self._kept = OrderedDict({position: first})
        self.widget = None
        if (widget := _widget_class()) and os.environ.get("KIT_STILL") != "1":
            self.widget = widget(spec=self._spec(), position=list(position))
            self._send()
            self.widget.observe(self._moved_in_browser, "position")

    @property
    def value(self):
        """The values where the panel stands, by axis."""
        return values_at(self._axes, self._position)

    @property
    def picture(self):
        """The Picture where the panel stands; None where the view returns figures."""
        here = self._shown(self._position)
        return here if isinstance(here, Picture) else None

    @property
    def sentence(self):
        """What is seen where the panel stands."""
        return self._shown(self._position).says

    @property
    def png(self):
        """The still picture of where the panel stands, as PNG bytes."""
        here = self._shown(self._position)
        return here.png if isinstance(here, Drawn) else png(here, standing(self._axes, self._position))

    @property
    def in_browser(self):
        """True when every picture was computed beforehand, and the browser draws them without the kernel."""
        return self._table is not None

    def set(self, **values):
        """Move the panel to other values of some axes, and redraw it. Raises BadInput for a value that the axis does not have."""
        self._move(moved(self._axes, self._position, values, "set:"))

    def _move(self, position):
        with RENDER:
            self._shown(position)  # a view that raises leaves the panel where it stands
            self._position = position
            if self.widget:
                self._send()

    def _shown(self, position):
        if self._table:
            return self._table.pictures[flat(self._axes, position)]
        with RENDER:
            if position not in self._kept:
                self._kept[position] = call(self._view, self._axes, position)
                while len(self._kept) > _KEPT:
                    self._kept.popitem(last=False)
            self._kept.move_to_end(position)
            return self._kept[position]

    def _send(self):
        """Tell the widget where the panel stands; without a table also what it shows there."""
        with self.widget.hold_sync():
            self.widget.error = ""
            self.widget.position = list(self._position)
            if not self._table:
                here = self._shown(self._position)
                said = {"title": here.title, "sentence": here.says, "alt": here.alt, "evidence": here.word, "tag": here.tag}
                height, shapes = here.shapes() if isinstance(here, Picture) else (0, None)
                self.widget.image = here.png if isinstance(here, Drawn) else b""
                self.widget.drawn = said | {"position": list(self._position), "height": height, "shapes": shapes}

    def _moved_in_browser(self, change):
        position = tuple(change["new"])
        if position == self._position:
            self.widget.error = ""  # back from a position that raised
            return
        if not self._possible(position):
            return
        try:
            self._move(position)
        except KitError as error:  # an exception in a callback is lost to the reader: the panel says it
            self.widget.error = str(error)

    def _possible(self, position):
        sizes = [len(axis.values) for axis in self._axes]
        return len(position) == len(sizes) and all(type(i) is int and 0 <= i < n for i, n in zip(position, sizes, strict=True))

    def _spec(self):
        axes = [{"name": axis.name, "label": axis.label, "kind": axis.kind, "texts": axis.texts} for axis in self._axes]
        return {"axes": axes, "table": self._table and self._table.spec, "meaning": MEANING, "width": WIDTH}

    def __repr__(self):
        here = self._shown(self._position)
        return f"{here.title} ({standing(self._axes, self._position)}): {here.says} [{here.tag}]"

    def _repr_mimebundle_(self, include=None, exclude=None):
        data = {"text/plain": repr(self), "image/png": base64.b64encode(self.png).decode()}
        if self.widget:
            data[_VIEW] = self.widget._repr_mimebundle_()[0][_VIEW]
        alt = f"{standing(self._axes, self._position)}: {self._shown(self._position).alt}"
        return data, {"image/png": {"alt": alt, "width": WIDTH}}


@functools.cache
def _widget_class():
    """The anywidget class of the panels; None where ipywidgets or anywidget is not installed, and the still picture has to do."""
    try:
        import anywidget
        import traitlets
    except ImportError:
        return None

    here = Path(__file__).parent

    class ExplorePanel(anywidget.AnyWidget):
        _esm = (here / "explore.js").read_text(encoding="utf-8")
        _css = (here / "explore.css").read_text(encoding="utf-8")
        spec = traitlets.Dict().tag(sync=True)
        position = traitlets.List().tag(sync=True)
        image = traitlets.Bytes().tag(sync=True)
        drawn = traitlets.Dict().tag(sync=True)
        error = traitlets.Unicode().tag(sync=True)

    return ExplorePanel
