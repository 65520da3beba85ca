"""What a zoo case is: seeded inputs, a launch, a reference, and how far the two may be apart."""

from __future__ import annotations

import zlib
from collections.abc import Callable
from dataclasses import dataclass

import torch

SIZES = (1, 127, 128, 129, 1000)  # one, a block less one, a block, a block and one, several blocks
GUARD = 32  # elements behind an output that no program may write

# Norm-wise relative difference that rounding explains, for outputs of this dtype against a reference rounded to it.
TOLERANCE = {torch.float64: 1e-14, torch.float32: 1e-6, torch.float16: 2e-4, torch.bfloat16: 1e-3}


@dataclass(frozen=True)
class Case:
    """One kernel on one kind of input.

    `make(generator)` gives the inputs, a dict of CPU tensors; `run(**inputs)`, with tensors of any device, launches the kernel and
    gives its outputs, a dict of tensors; `reference(**inputs)` computes the same in torch, exactly or in float64. Outputs start as
    NaN (integers: a number that stands out), so an element that was never written shows. Integers must agree exactly.
    `tolerance` is how far from the reference, `apart` how far a GPU and the simulator may be from each other where that is less:
    0.0 means bit for bit.
    """

    name: str
    make: Callable
    run: Callable
    reference: Callable
    tolerance: float | None = None
    apart: float | None = None

    def inputs(self):
        """The inputs, the same in every process."""
        return self.make(torch.Generator().manual_seed(zlib.crc32(self.name.encode())))

    def allowed(self, dtype):
        """The norm-wise relative difference that an output of `dtype` may have."""
        if not dtype.is_floating_point:
            return 0.0
        return TOLERANCE.get(dtype, 0.0) if self.tolerance is None else self.tolerance

    def allowed_apart(self, dtype):
        """The norm-wise relative difference that a GPU's and the simulator's outputs of `dtype` may have from each other."""
        if self.apart is not None and dtype.is_floating_point:
            return self.apart
        return self.allowed(dtype)


def normal(generator, *shape, dtype=torch.float32, scale=1.0):
    return (torch.randn(*shape, generator=generator, dtype=torch.float64) * scale).to(dtype)


def integers(generator, low, high, *shape, dtype=torch.int32):
    """Whole numbers from low up to, and without, high."""
    return torch.randint(low, high, shape, generator=generator).to(dtype)


def blank(*shape, like, dtype=None):
    """An output that nobody has written yet, on the device of `like`."""
    dtype = dtype or like.dtype
    fill = float("nan") if dtype.is_floating_point else 77
    return torch.full(shape, fill, dtype=torch.float64, device=like.device).to(dtype)


def guarded(values):
    """`values` (1-D) as an output buffer should hold them: followed by GUARD elements that were never written."""
    return torch.cat([values, blank(GUARD, like=values)])


def wrapped(value, dtype):
    """`value` in the bits of `dtype`."""
    bits = 8 * dtype.itemsize
    value &= (1 << bits) - 1
    return value - (1 << bits) if dtype.is_signed and value >> (bits - 1) else value


def short(dtype):
    return str(dtype).removeprefix("torch.")


@dataclass(frozen=True)
class Difference:
    """How two outputs differ: norm-wise relative, largest absolute, and how many elements are not equal of how many."""

    relative: float
    largest: float
    differing: int
    elements: int


def difference(got, expected):
    """The Difference of two tensors of equal shape and dtype. NaN equals NaN; a NaN or infinity on one side only is infinitely far."""
    if got.shape != expected.shape or got.dtype != expected.dtype:
        raise AssertionError(f"got {tuple(got.shape)} {got.dtype}, expected {tuple(expected.shape)} {expected.dtype}")
    if not got.dtype.is_floating_point:
        unequal = got.cpu() != expected.cpu()
        apart = (got.cpu().to(torch.float64) - expected.cpu().to(torch.float64)).abs()
        n = int(unequal.sum())
        return Difference(float("inf") if n else 0.0, float(apart.max()) if n else 0.0, n, got.numel())
    got, expected = got.cpu().to(torch.float64), expected.cpu().to(torch.float64)
    same = (got == expected) | (got.isnan() & expected.isnan())
    n = int((~same).sum())
    if not n:
        return Difference(0.0, 0.0, 0, got.numel())
    apart = torch.where(same, 0.0, got - expected)
    if not bool(apart.isfinite().all()):
        return Difference(float("inf"), float("inf"), n, got.numel())
    size = torch.where(expected.isfinite(), expected, 0.0).norm()
    return Difference(float(apart.norm() / size) if size > 0 else float("inf"), float(apart.abs().max()), n, got.numel())
