"""`try_it`: the four worlds asked from a form: an expression as text, and a value and a kind for each name in it."""

from __future__ import annotations

import ast
import functools
import html
import os

from kit.errors import BadInput, KitError
from kit.semantics import probe
from kit.semantics_worlds import DTYPES

__all__ = ["Form", "try_it"]

KINDS = (*DTYPES, "scalar", "constexpr", *(f"scalar {dtype}" for dtype in ("int32", "int64", "float32", "float64")))
_VIEW = "application/vnd.jupyter.widget-view+json"
_NUMBERS = {"inf": float("inf"), "nan": float("nan")}


def try_it(code, /, **values):
    """Return a Form that stands at `probe(code, **values)`, with an input for the code and for each value. Raises as probe does."""
    return Form(code, values)


class Form:
    """A form over `probe`. `probe` is what it shows; `set(code=..., x=(..., ...))` changes it. True as its Probe is.

    In a running notebook a form to type into; on the web, or without ipywidgets, the table of where it stands.
    """

    def __init__(self, code, values):
        self.code, self.values = code, {name: spec if isinstance(spec, tuple) else (spec, "scalar") for name, spec in values.items()}
        self.probe = probe(code, **self.values)
        self.widget = None
        if (widgets := _widgets()) and os.environ.get("KIT_STILL") != "1":
            self._lay_out(widgets)

    def set(self, code=None, **values):
        """Ask something else. Raises BadInput, and stays where it is, for what cannot be asked."""
        if unknown := set(values) - set(self.values):
            raise BadInput(f"set: the form has no value {', '.join(sorted(unknown))}; it has {', '.join(self.values) or 'none'}.")
        self._ask(self.code if code is None else code, self.values | values)
        if self.widget:
            self._fill()

    def _ask(self, code, values):
        self.probe = probe(code, **values)
        self.code, self.values = code, values

    def _lay_out(self, widgets):
        wide = {"style": {"description_width": "6em"}, "continuous_update": False}
        self._text = widgets.Textarea(description="expression", layout={"width": "98%", "height": "3.6em"}, **wide)
        self._inputs = {
            name: (
                widgets.Text(description=f"{name} =", layout={"width": "50%"}, **wide),
                widgets.Dropdown(description="kind", options=KINDS, layout={"width": "40%"}),
            )
            for name in self.values
        }
        self._shown = widgets.HTML()
        rows = [widgets.HBox(pair) for pair in self._inputs.values()]
        self.widget = widgets.VBox([self._text, *rows, self._shown])
        self._fill()
        for one in (self._text, *(one for pair in self._inputs.values() for one in pair)):
            one.observe(self._changed, "value")

    def _fill(self):
        self._filling = True
        try:
            self._text.value = self.code
            for name, (value, kind) in self.values.items():
                self._inputs[name][0].value, self._inputs[name][1].value = str(value), kind
            self._shown.value = self.probe._repr_html_()
        finally:
            self._filling = False

    def _changed(self, _):
        """An input of the browser changed: ask again. What cannot be asked is said below the form, which a callback's error is not."""
        if self._filling:
            return
        try:
            values = {name: (_number(name, text.value), kind.value) for name, (text, kind) in self._inputs.items()}
            self._ask(self._text.value, values)
            self._shown.value = self.probe._repr_html_()
        except KitError as error:
            self._shown.value = f"<div>{html.escape(str(error))}</div>"

    def __bool__(self):
        return bool(self.probe)

    def __repr__(self):
        return repr(self.probe)

    def _repr_mimebundle_(self, include=None, exclude=None):
        data = {"text/plain": repr(self), "text/html": self.probe._repr_html_()}
        if self.widget:
            # By hand: the widgets of ipywidgets 7, which Colab has, make no bundle of their own.
            data[_VIEW] = {"version_major": 2, "version_minor": 0, "model_id": self.widget.model_id}
        return data


def _number(name, text):
    """The number or list of numbers that was typed; inf and nan are numbers."""
    try:
        tree = ast.parse(text.strip(), mode="eval")
        named = {node.id for node in ast.walk(tree) if isinstance(node, ast.Name)}
        allowed = (ast.Expression, ast.Constant, ast.Name, ast.Load, ast.List, ast.Tuple, ast.UnaryOp, ast.UAdd, ast.USub, ast.BinOp)
        allowed += (ast.Add, ast.Sub, ast.Mult, ast.Pow)
        if named <= set(_NUMBERS) and all(isinstance(node, allowed) for node in ast.walk(tree)):
            return eval(compile(tree, "<value>", "eval"), {"__builtins__": {}}, dict(_NUMBERS))
    except (SyntaxError, ValueError, TypeError, OverflowError):
        pass
    raise BadInput(f"try_it: {name} = {text!r:.40} is no number and no list of numbers; write -7, 0.5, nan, 2**31 or [1, 2].")


@functools.cache
def _widgets():
    """The module ipywidgets; None where it is not installed, and the table has to do."""
    try:
        import ipywidgets
    except ImportError:
        return None
    return ipywidgets
