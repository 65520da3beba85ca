"""`captured`: the launch that a launcher makes of one kernel, caught instead of run. So a reader's own wrapper can be examined as it is.

A launch ends in `run(*args, grid=..., warmup=..., **keywords)` of the kernel, or of the autotuner or heuristics around it: in Triton 3.6 to
3.9 the three classes of triton.runtime that are patched here, for the time of one call.
"""

from __future__ import annotations

import contextlib
from dataclasses import dataclass

import torch
from torch.overrides import TorchFunctionMode
from triton.runtime import Autotuner, Heuristics, JITFunction

from kit.errors import BadInput
from kit.specialization import innermost

_CLASSES = (JITFunction, Autotuner, Heuristics)


@dataclass(frozen=True)
class Captured:
    """A launch that was caught: the kernel as launched, positional arguments, the grid as given, and what the kernel takes by keyword.

    `dense` names the arguments that the launcher passed through Tensor.contiguous(): a caller's view never reaches the kernel there.
    """

    given: object
    args: tuple
    grid: object
    meta: dict
    dense: tuple = ()


class _Contiguous(TorchFunctionMode):
    """Inside, what Tensor.contiguous() returns is kept in `made`."""

    def __init__(self):
        super().__init__()
        self.made = []

    def __torch_function__(self, func, types, args=(), kwargs=None):
        found = func(*args, **(kwargs or {}))
        if getattr(func, "__name__", "") == "contiguous":
            self.made.append(found)
        return found

    def holds(self, value):
        """True for such a tensor, and for a view of one that is contiguous itself."""
        if not isinstance(value, torch.Tensor) or not value.is_contiguous():
            return False
        return any(_shares(value, one) for one in self.made)


def _shares(value, other):
    """Whether one is a view of the other, or both of one tensor."""
    bases = [tensor if tensor._base is None else tensor._base for tensor in (value, other)]
    return bases[0] is bases[1]


class _Caught(BaseException):
    """Leaves the launcher: what it would do after the launch is not needed. No `except Exception` of its own stops it."""


def captured(kernel, call, *, others):
    """The first launch of `kernel` (a JITFunction) that `call()` makes. `others`: whether other kernels' launches run, or do nothing.

    Raises BadInput when `call` ends without launching the kernel; what `call` itself raises is raised.
    """
    caught = []

    def catch(owner, args, keywords):
        if innermost(owner) is not kernel:
            return others
        caught.append((owner, args, keywords))
        raise _Caught

    with _patched(catch), contextlib.suppress(_Caught), _Contiguous() as contiguous:
        call()
    if not caught:
        words = f"grid was left out, so make_args must launch the kernel, and it launched no {kernel.__name__}"
        raise BadInput(f"examine: {words}. Call the function that launches it.")
    owner, args, keywords = caught[0]
    grid = keywords.pop("grid")
    keywords.pop("warmup", None)
    args, grid, meta = _split(kernel, args, keywords, grid)
    dense = tuple(name for name, value in zip(kernel.arg_names, args, strict=False) if contiguous.holds(value))
    return Captured(owner, args, grid, meta, dense)


def _split(kernel, args, keywords, grid):
    """(positional arguments, grid, meta): arguments given by name move to their place, as far as all before them are there."""
    args, meta = list(args), dict(keywords)
    for param in kernel.params[len(args) :]:
        if param.name in meta and not param.is_constexpr:
            args.append(meta.pop(param.name))
        else:
            break
    return tuple(args), grid, meta


@contextlib.contextmanager
def _patched(catch):
    """Inside, each launch first asks `catch(owner, args, keywords)`; where that is false, nothing is launched."""
    originals = {owner: owner.__dict__["run"] for owner in _CLASSES}

    def wrapped(original):
        def run(self, *args, **keywords):
            return original(self, *args, **keywords) if catch(self, args, keywords) else None

        return run

    for owner, original in originals.items():
        owner.run = wrapped(original)
    try:
        yield
    finally:
        for owner, original in originals.items():
            owner.run = original
