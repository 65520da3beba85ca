"""R6: grid[1] and grid[2] up to 65,535, and a product that fits 31 bits. The fault is in the launch, or in the axis a kernel asks for."""

from __future__ import annotations

import torch
import triton
import triton.language as tl

from kit.ghosts import ghost
from kit.tests.faults.fault_case import Fault


@triton.jit
def mark_axis_1_kernel(out_ptr):
    """BUG: tokens lie on axis 1. out[token] = 1; a program owns a token."""
    tl.store(out_ptr + tl.program_id(1), 1)


@triton.jit
def mark_axis_0_kernel(out_ptr):
    """out[token] = 1; a program owns a token."""
    tl.store(out_ptr + tl.program_id(0), 1)


@triton.jit
def mark_axis_2_kernel(out_ptr):
    """BUG: batch and heads lie on axis 2. out[b * heads + h] = 1; a program owns one."""
    tl.store(out_ptr + tl.program_id(2), 1)


@triton.jit
def mark_plane_kernel(out_ptr):
    """BUG: rows * columns may pass 2^31 - 1. Nothing is stored twice: out[0] = 1 from program (0, 0)."""
    first = (tl.program_id(0) == 0) & (tl.program_id(1) == 0)
    tl.store(out_ptr, 1, mask=first)


@triton.jit
def mark_line_kernel(out_ptr):
    """out[0] = 1 from program 0."""
    tl.store(out_ptr, 1, mask=tl.program_id(0) == 0)


def on(*grid, n=None):
    n = n or max(grid)
    return lambda: (grid, (ghost(n, torch.int32),), {})


FAULTS = [
    Fault("tokens on axis 1", "R6", mark_axis_1_kernel, mark_axis_0_kernel, on(1, 65_536), "grid", "wrong", right_launch=on(65_536)),
    Fault(
        "tokens on axis 1, many", "R6", mark_axis_1_kernel, mark_axis_0_kernel, on(1, 200_000), "grid", "wrong", right_launch=on(200_000)
    ),
    Fault(
        *("batch and heads on axis 2", "R6", mark_axis_2_kernel, mark_axis_0_kernel, on(1, 1, 10_923 * 6), "grid", "wrong"),
        right_launch=on(10_923 * 6),
    ),
    Fault(
        "a product of 2^31",
        "R6",
        mark_plane_kernel,
        mark_line_kernel,
        on(65_536, 32_768, n=1),
        "grid",
        "wrong",
        right_launch=on(65_536, n=1),
    ),
    Fault(
        *("a product past 2^31", "R6", mark_plane_kernel, mark_line_kernel, on(46_341, 46_341, n=1), "grid", "wrong"),
        right_launch=on(46_341, n=1),
    ),
    Fault("an axis of 2^31", "R6", mark_line_kernel, mark_line_kernel, on(2**31, n=1), "grid", "wrong", right_launch=on(2**31 - 1, n=1)),
]
