"""R9, views: strides and offsets that a kernel takes for granted. A launch is given a view, and what lies round it is not its own."""

from __future__ import annotations

import torch
import triton
import triton.language as tl

from kit.ghosts import ghost
from kit.tests.faults.fault_case import Fault, normal


@triton.jit
def row_max_packed_kernel(x_ptr, out_ptr, V: tl.constexpr, BLOCK: tl.constexpr):
    """BUG: a row is taken to be V elements after the one before. out = the maximum of each row; a program owns a row."""
    row = tl.program_id(0)
    offs = tl.arange(0, BLOCK)
    x = tl.load(x_ptr + row * V + offs, mask=offs < V, other=-float("inf"))
    tl.store(out_ptr + row, tl.max(x, axis=0))


@triton.jit
def row_max_kernel(x_ptr, out_ptr, stride_xm, V: tl.constexpr, BLOCK: tl.constexpr):
    """out = the maximum of each row; a program owns a row."""
    row = tl.program_id(0)
    offs = tl.arange(0, BLOCK)
    x = tl.load(x_ptr + row * stride_xm + offs, mask=offs < V, other=-float("inf"))
    tl.store(out_ptr + row, tl.max(x, axis=0))


@triton.jit
def copy_flat_kernel(x_ptr, out_ptr, n, BLOCK: tl.constexpr):
    """BUG: elements are taken to lie side by side. out = x; a program owns BLOCK elements."""
    offs = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    mask = offs < n
    tl.store(out_ptr + offs, tl.load(x_ptr + offs, mask=mask), mask=mask)


@triton.jit
def copy_strided_kernel(x_ptr, out_ptr, n, stride_x, BLOCK: tl.constexpr):
    """out = x; a program owns BLOCK elements."""
    offs = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    mask = offs < n
    tl.store(out_ptr + offs, tl.load(x_ptr + offs * stride_x, mask=mask), mask=mask)


@triton.jit
def copy_plane_kernel(x_ptr, out_ptr, n, columns, stride_xm, stride_xn, BLOCK: tl.constexpr):
    """out = x, by rows and columns; a program owns BLOCK elements."""
    offs = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    mask = offs < n
    x = tl.load(x_ptr + offs // columns * stride_xm + offs % columns * stride_xn, mask=mask)
    tl.store(out_ptr + offs, x, mask=mask)


@triton.jit
def add_other_length_kernel(a_ptr, b_ptr, out_ptr, n_a, n_b, BLOCK: tl.constexpr):
    """BUG: the length of a masks b, which is shorter. out = a + b, with 0 past the end of b; one program owns it."""
    offs = tl.arange(0, BLOCK)
    mask = offs < n_a
    tl.store(out_ptr + offs, tl.load(a_ptr + offs, mask=mask) + tl.load(b_ptr + offs, mask=mask), mask=mask)


@triton.jit
def add_own_length_kernel(a_ptr, b_ptr, out_ptr, n_a, n_b, BLOCK: tl.constexpr):
    """out = a + b, with 0 past the end of b; one program owns it."""
    offs = tl.arange(0, BLOCK)
    mask = offs < n_a
    b = tl.load(b_ptr + offs, mask=offs < n_b, other=0.0)
    tl.store(out_ptr + offs, tl.load(a_ptr + offs, mask=mask) + b, mask=mask)


@triton.jit
def fill_rows_packed_kernel(out_ptr, V: tl.constexpr, BLOCK: tl.constexpr):
    """BUG: rows of the output are taken to be packed. out = 1; a program owns a row."""
    offs = tl.arange(0, BLOCK)
    tl.store(out_ptr + tl.program_id(0) * V + offs, 1.0, mask=offs < V)


@triton.jit
def fill_rows_kernel(out_ptr, stride_om, V: tl.constexpr, BLOCK: tl.constexpr):
    """out = 1; a program owns a row."""
    offs = tl.arange(0, BLOCK)
    tl.store(out_ptr + tl.program_id(0) * stride_om + offs, 1.0, mask=offs < V)


@triton.jit
def fill_no_mask_kernel(out_ptr, stride_om, V: tl.constexpr, BLOCK: tl.constexpr):
    """BUG: the tile is wider than the view's rows, and lands in what stands beside it. out = 1; a program owns a row."""
    offs = tl.arange(0, BLOCK)
    tl.store(out_ptr + tl.program_id(0) * stride_om + offs, 1.0)


def f32(shape, **view):
    return ghost(shape, torch.float32, **view)


PADDED = {"strides": (12, 1)}
STRAY = ("out of bounds", "wrong")
FAULTS = [
    Fault(
        *("rows of a padded buffer", "R9", row_max_packed_kernel, row_max_kernel),
        *(lambda: ((3,), (f32((3, 10), **PADDED), f32(3)), {"V": 10, "BLOCK": 16}), *STRAY, "tl.load"),
        right_launch=lambda: ((3,), (f32((3, 10), **PADDED), f32(3), 12), {"V": 10, "BLOCK": 16}),
    ),
    Fault(
        *("rows of a padded buffer, with values", "R9", row_max_packed_kernel, row_max_kernel),
        *(lambda: ((3,), (normal(3, 12)[:, :10], f32(3)), {"V": 10, "BLOCK": 16}), *STRAY, "tl.load"),
        right_launch=lambda: ((3,), (normal(3, 12)[:, :10], f32(3), 12), {"V": 10, "BLOCK": 16}),
    ),
    Fault(
        *("every second element", "R9", copy_flat_kernel, copy_strided_kernel),
        *(lambda: ((2,), (f32(50, strides=(2,)), f32(50), 50), {"BLOCK": 32}), *STRAY, "tl.load"),
        right_launch=lambda: ((2,), (f32(50, strides=(2,)), f32(50), 50, 2), {"BLOCK": 32}),
    ),
    Fault(
        *("a transposed matrix as flat", "R9", copy_flat_kernel, copy_plane_kernel),
        lambda: ((2,), (f32((5, 8), strides=(1, 5)), f32((5, 8)), 40), {"BLOCK": 32}),
        right_launch=lambda: ((2,), (f32((5, 8), strides=(1, 5)), f32((5, 8)), 40, 8, 1, 5), {"BLOCK": 32}),
        why="every address is an element of the view: only their order is not what was meant",
        shows="a reference on x.T, with more than one shape",
    ),
    Fault(
        *("a slice's neighbour", "R9", copy_flat_kernel, copy_flat_kernel),
        *(lambda: ((2,), (normal(80)[4:44], f32(48), 48), {"BLOCK": 32}), *STRAY, "tl.load"),
        right_launch=lambda: ((2,), (normal(80)[4:44], f32(40), 40), {"BLOCK": 32}),
    ),
    Fault(
        *("another tensor's length", "R9", add_other_length_kernel, add_own_length_kernel),
        *(lambda: ((1,), (f32(40), normal(60)[:30], f32(40), 40, 30), {"BLOCK": 64}), *STRAY, "b_ptr"),
    ),
    Fault(
        *("packed rows of an output view", "R9", fill_rows_packed_kernel, fill_rows_kernel),
        *(lambda: ((3,), (f32((3, 10), **PADDED),), {"V": 10, "BLOCK": 16}), *STRAY, "tl.store"),
        right_launch=lambda: ((3,), (f32((3, 10), **PADDED), 12), {"V": 10, "BLOCK": 16}),
    ),
    Fault(
        *("a tile beside an output view", "R9", fill_no_mask_kernel, fill_rows_kernel),
        *(lambda: ((3,), (f32((3, 10), strides=(16, 1)), 16), {"V": 10, "BLOCK": 16}), *STRAY, "tl.store"),
    ),
]
