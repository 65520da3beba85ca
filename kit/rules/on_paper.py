"""Arguments of any size without memory: inside `OnPaper`, the reader's own make_args makes torch's meta tensors, which become ghosts."""

from __future__ import annotations

import math

import torch
from torch.overrides import TorchFunctionMode

from kit.ghosts import ghost

REAL_INTEGERS = 256 << 20  # bytes: integer tensors up to this size are made for real, since block tables and indices are read on paper
_FACTORIES = ("empty", "zeros", "ones", "full", "rand", "randn", "empty_strided", "normal", "linspace", "randint", "arange")
_INTEGERS = ("randint", "arange", "full")  # without a dtype, their arguments decide
_PLACING = ("to", "cuda", "cpu", "pin_memory")
# What gives a tensor of the same layout, element by element. For meta tensors torch would import half of its compiler to say so.
_ALIKE = {
    *("rand_like", "randn_like", "empty_like", "zeros_like", "ones_like"),
    *("cos", "sin", "tanh", "exp", "exp2", "log", "log2", "sqrt", "rsqrt", "sigmoid", "abs", "neg", "__neg__", "square", "clamp", "relu"),
    *("add", "sub", "rsub", "mul", "div", "true_divide", "pow", "__add__", "__radd__", "__sub__", "__rsub__", "__mul__", "__rmul__"),
    *("__truediv__", "__rtruediv__", "__rdiv__", "__pow__", "__rpow__", "reciprocal"),
}


class OnPaper(TorchFunctionMode):
    """Inside, floating tensors are made without memory (torch's meta device), wherever the maker wants them; small integers for real."""

    active = False

    def __enter__(self):
        self.outer, OnPaper.active = OnPaper.active, True
        return super().__enter__()

    def __exit__(self, *failed):
        OnPaper.active = self.outer
        return super().__exit__(*failed)

    def __torch_function__(self, func, types, args=(), kwargs=None):
        kwargs = dict(kwargs or {})
        name = getattr(func, "__name__", "")
        if name in _PLACING and args and isinstance(args[0], torch.Tensor) and args[0].is_meta:
            return _placed(func, name, args, kwargs)
        if "device" in kwargs or name in _FACTORIES:
            return _made(func, name, args, kwargs)
        like = _like(args) if name in _ALIKE and not kwargs.keys() - {"min", "max"} else None
        return func(*args, **kwargs) if like is None else like


def _placed(func, name, args, kwargs):
    """`tensor.to(...)` and its kind on a meta tensor: another dtype counts, another place does not."""
    kwargs.pop("device", None)
    args = tuple(one for one in args if not isinstance(one, (str, torch.device)))
    to_nowhere = name != "to" or (len(args) == 1 and not kwargs)
    return args[0] if to_nowhere else func(*args, **kwargs)


def _made(func, name, args, kwargs):
    """A new tensor: on the meta device if it is floating or too large to be made."""
    unreal = {**kwargs, "device": "meta"}
    unreal.pop("generator", None)
    unreal.pop("pin_memory", None)
    on_paper = _PLAIN.get(name, func)
    if _floating(name, args, kwargs):
        return on_paper(*args, **unreal)
    if name in _FACTORIES and (large := on_paper(*args, **unreal)).nbytes > REAL_INTEGERS:
        return large
    return func(*args, **kwargs)


def _range(*bounds, start=0, end=None, step=1, dtype=None, **where):
    """A tensor as torch.arange makes it, without its values."""
    if len(bounds) == 1:
        end = bounds[0]
    elif bounds:
        start, end, step = (*bounds, step)[:3]
    floating = any(isinstance(one, float) for one in (start, end, step))
    dtype = dtype or (torch.get_default_dtype() if floating else torch.int64)
    return torch.empty(math.ceil((end - start) / step), dtype=dtype, **where)


def _integers(*given, size=None, dtype=torch.int64, low=0, high=None, **where):
    """A tensor as torch.randint makes it, without its values."""
    size = size if size is not None else next(one for one in given if not isinstance(one, int))
    return torch.empty(size, dtype=dtype, **where)


# What makes the same shape and dtype where torch's meta device would import sympy, for a second of each rule's process.
_PLAIN = {"rand": torch.empty, "randn": torch.empty, "arange": _range, "randint": _integers}


def _floating(name, args, kwargs):
    dtype = kwargs.get("dtype")
    if dtype is not None:
        return dtype.is_floating_point
    if name in _INTEGERS:
        given = [*args, *kwargs.values()]
        return name != "randint" and any(isinstance(one, float) for one in given)
    return name in _FACTORIES  # torch's default dtype is floating


def _like(args):
    """The result of an operation element by element on meta tensors of one layout and on numbers; None where it is not as simple."""
    tensors = [one for one in args if isinstance(one, torch.Tensor)]
    first = tensors[0] if tensors else None
    if first is None or not first.is_meta or not first.is_floating_point() or not first.is_contiguous():
        return None
    alike = all(one.is_meta and one.shape == first.shape and one.dtype == first.dtype and one.is_contiguous() for one in tensors)
    numbers = all(isinstance(one, (torch.Tensor, int, float)) for one in args)
    return torch.empty(first.shape, dtype=first.dtype, device="meta") if alike and numbers else None


def as_ghost(value):
    """A ghost in the place of a tensor without memory; anything else as it is."""
    if isinstance(value, torch.Tensor) and value.is_meta:
        return ghost(tuple(value.shape), value.dtype, strides=tuple(value.stride()), offset=value.storage_offset())
    return value
