"""What a launch must leave behind, by the reader's reference, and how far what it left is from that."""

from __future__ import annotations

import math

import torch

from kit.errors import BadInput

# Of elements that were computed in other orders: relative to the element and the mean magnitude. Gross enough that no right kernel of
# ordinary rows fails, fine enough that a missing or foreign element shows.
LOOSE = {torch.float64: 1e-9, torch.float32: 1e-4, torch.float16: 4e-3, torch.bfloat16: 3e-2}


def copied(value, dtype=None):
    """A copy of an argument with memory and values of its own; floating tensors in `dtype` if given."""
    if not isinstance(value, torch.Tensor):
        return value
    copy = value.detach().clone()
    return copy.to(dtype) if dtype is not None and copy.is_floating_point() else copy


def expected(subject, args, dtype=None):
    """{written argument: tensor} by the reference on copies of `args`, floating ones in `dtype` if given. Lets what it raises pass.

    A reference that returns None has changed its copies in place, as the kernel does. Raises BadInput for what fits no argument.
    """
    given = [copied(value, dtype) for value in args]
    found = subject.reference(*given)
    names = subject.written
    if found is None:
        named = dict(zip(subject.kernel.arg_names, given, strict=False))
        found = {name: named[name] for name in names if name in named}
    elif isinstance(found, torch.Tensor):
        found = {names[0]: found} if names else {}
    elif isinstance(found, (tuple, list)):
        found = dict(zip(names, found, strict=False))
    if not isinstance(found, dict):
        raise BadInput(f"examine: reference must return a tensor, a tuple or a dict of them; got {type(found).__name__}.")
    wanted = dict(zip(subject.kernel.arg_names, args, strict=False))
    return {name: _shaped(value, name, wanted) for name, value in found.items() if isinstance(value, torch.Tensor) and name in wanted}


def for_bench(subject, args):
    """(places of the arguments that the reference speaks of, the reference as `kit.bench` takes it): both give tensors in one order.

    Without a reference, no place and None.
    """
    if subject.reference is None:
        return [], None
    places = [subject.kernel.arg_names.index(name) for name in expected(subject, args)]
    return places, lambda *given: list(expected(subject, given).values())


def _shaped(value, name, wanted):
    shape = tuple(wanted[name].shape)
    if tuple(value.shape) != shape and value.numel() == math.prod(shape):
        value = value.reshape(shape)
    if tuple(value.shape) != shape:
        raise BadInput(f"examine: reference must return {shape} for {name}, as the argument has; got {tuple(value.shape)}.")
    return value.detach()


def distance(got, want):
    """Each element's distance from the truth over (its magnitude + the mean magnitude), float64; inf where one is nan or inf alone."""
    if not got.dtype.is_floating_point:
        return torch.where(got == want.to(got.device), 0.0, math.inf).double()
    a, b = got.double(), want.to(got.device).to(got.dtype).double()
    finite = b[b.isfinite()]
    mean = float(finite.abs().mean()) if finite.numel() else 0.0
    apart = (a - b).abs() / (b.abs() + mean + torch.finfo(got.dtype).tiny)
    same = (a == b) | (a.isnan() & b.isnan())
    return torch.where(same, 0.0, torch.where(apart.isnan(), math.inf, apart))


def loose(dtype):
    """The bound on `distance` below which two ways of computing the same are not told apart."""
    return LOOSE.get(dtype, 0.25) if dtype.is_floating_point else 0.0


def shown(value):
    """An element as text."""
    value = value.item()
    return f"{value:.5g}" if isinstance(value, float) else f"{value:,}" if isinstance(value, int) else str(value)
