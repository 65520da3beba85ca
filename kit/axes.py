"""The named axes of `explore`: checked values, positions on them, and how they are spelled."""

from __future__ import annotations

import inspect
import math
from dataclasses import dataclass

from kit.errors import BadInput, WrongType, quoted
from kit.picture_base import number

MOST_VALUES = 1000


@dataclass(frozen=True)
class Axis:
    """A named list of values: numbers on a slider, names to choose from."""

    name: str
    values: tuple

    @property
    def label(self):
        return self.name.replace("_", " ")

    @property
    def kind(self):
        return "choice" if isinstance(self.values[0], (str, bool)) else "range"

    @property
    def texts(self):
        return [number(value) for value in self.values]


def checked_axes(axes):
    """A list of Axis from {name: values}. Raises BadInput, naming the axis, for what cannot be one."""
    if not axes:
        raise BadInput("explore: no axis given; name at least one and its values, as in explore(view, tokens=[1, 64, 4096]).")
    return [Axis(name, _checked_values(f"explore: axis {name}", values)) for name, values in axes.items()]


def _kind(value):
    return bool if isinstance(value, bool) else float if isinstance(value, (int, float)) else type(value)


def _checked_values(axis, values):
    if not isinstance(values, (list, tuple, range)):
        raise WrongType(f"{axis} must be a list, tuple or range of values; got {quoted(values)} ({type(values).__name__}).")
    if not len(values):
        raise BadInput(f"{axis} is empty; give it at least one value.")
    if len(values) > MOST_VALUES:
        raise BadInput(f"{axis} has {len(values):,} values, too many for a slider; take every tenth, or powers of two.")
    values = tuple(values)
    kinds = {_kind(value) for value in values}
    odd = [value for value in values if _kind(value) not in (bool, str, float)]
    if odd:
        raise WrongType(f"{axis} holds {quoted(odd[0])} ({type(odd[0]).__name__}); a value must be a number or a name.")
    if len(kinds) > 1:
        raise BadInput(f"{axis} mixes numbers and names: {quoted(values)}; use one kind.")
    if float in kinds and not all(math.isfinite(value) for value in values):
        raise BadInput(f"{axis} holds a value that is not finite: {quoted(values)}; leave it out.")
    if len(set(values)) != len(values):
        raise BadInput(f"{axis} holds a value twice: {quoted(values)}; give each once.")
    return values


def expect_parameters(view, axes):
    """Raise BadInput when `view` cannot be called with one value of each axis by name."""
    names = [axis.name for axis in axes]
    try:
        inspect.signature(view).bind(**dict.fromkeys(names))
    except TypeError as error:
        spelled_names = ", ".join(f"{name}=" for name in names)
        raise BadInput(f"explore: view cannot be called with {spelled_names}: {error}. Name its parameters as the axes.") from None
    except ValueError:
        return  # a builtin that tells no signature: calling it will show


def start_position(axes, start):
    """The position of the values in `start`, a dict or None; the first value of every axis that it leaves out."""
    if start is not None and not isinstance(start, dict):
        example = {axes[0].name: axes[0].values[0]}
        raise WrongType(f"explore: start must be a dict of values to begin with, such as {example}; got {quoted(start)}.")
    return moved(axes, (0,) * len(axes), start or {}, "explore: start")


def moved(axes, position, values, where):
    """`position` with some axes at other values. Raises BadInput for an unknown axis or a value that it does not have."""
    names = [axis.name for axis in axes]
    position = list(position)
    for name, value in values.items():
        if name not in names:
            raise BadInput(f"{where} names {quoted(name)}, and the axes are {', '.join(names)}.")
        axis = axes[names.index(name)]
        if value not in axis.values:
            near = ", ".join(axis.texts[:12]) + (", ..." if len(axis.texts) > 12 else "")
            raise BadInput(f"{where} gives {name}={quoted(value)}, and the values of {name} are {near}.")
        position[names.index(name)] = axis.values.index(value)
    return tuple(position)


def values_at(axes, position):
    """The values at a position, by axis."""
    return {axis.name: axis.values[index] for axis, index in zip(axes, position, strict=True)}


def flat(axes, position):
    """The number of a position when all are counted, the last axis fastest."""
    total = 0
    for axis, index in zip(axes, position, strict=True):
        total = total * len(axis.values) + index
    return total


def standing(axes, position):
    """A position in words: "tokens 8,192 · heads 32"."""
    return " · ".join(f"{axis.label} {axis.texts[index]}" for axis, index in zip(axes, position, strict=True))
