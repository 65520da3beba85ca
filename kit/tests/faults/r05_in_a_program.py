"""R5, inside one program: warps that read what other warps of it wrote, with no barrier between, and lanes that meet at one element."""

from __future__ import annotations

import torch
import triton
import triton.language as tl

from kit.tests.faults.fault_case import Fault, filled, normal, numbers


@triton.jit
def reverse_no_barrier_kernel(x_ptr, BLOCK: tl.constexpr):
    """BUG: no barrier between the store and the load. x[N:] = 2 x[:N] reversed, through x[:N]; one program owns all of it."""
    offs = tl.arange(0, BLOCK)
    tl.store(x_ptr + offs, tl.load(x_ptr + offs) * 2)
    tl.store(x_ptr + BLOCK + offs, tl.load(x_ptr + BLOCK - 1 - offs))


@triton.jit
def reverse_kernel(x_ptr, BLOCK: tl.constexpr):
    """x[N:] = 2 x[:N] reversed, through x[:N]; one program owns all of it."""
    offs = tl.arange(0, BLOCK)
    tl.store(x_ptr + offs, tl.load(x_ptr + offs) * 2)
    tl.debug_barrier()
    tl.store(x_ptr + BLOCK + offs, tl.load(x_ptr + BLOCK - 1 - offs))


@triton.jit
def reverse_in_place_no_barrier_kernel(x_ptr, BLOCK: tl.constexpr):
    """BUG: a warp overwrites what another one has yet to read. x = x reversed; one program owns all of it."""
    offs = tl.arange(0, BLOCK)
    x = tl.load(x_ptr + BLOCK - 1 - offs)
    tl.store(x_ptr + offs, x)


@triton.jit
def reverse_in_place_kernel(x_ptr, BLOCK: tl.constexpr):
    """x = x reversed; one program owns all of it."""
    offs = tl.arange(0, BLOCK)
    x = tl.load(x_ptr + BLOCK - 1 - offs)
    tl.debug_barrier()
    tl.store(x_ptr + offs, x)


@triton.jit
def norm_halves_no_barrier_kernel(x_ptr, D: tl.constexpr):
    """BUG: the halves are reloaded with another layout, and no barrier. x = rotate(x / |x|); one program owns a row."""
    offs = tl.arange(0, D)
    x = tl.load(x_ptr + offs)
    tl.store(x_ptr + offs, x * tl.rsqrt(tl.sum(x * x, axis=0)))
    half = tl.arange(0, D // 2)
    a, b = tl.load(x_ptr + half), tl.load(x_ptr + D // 2 + half)
    tl.debug_barrier()
    tl.store(x_ptr + half, -b)
    tl.store(x_ptr + D // 2 + half, a)


@triton.jit
def norm_halves_kernel(x_ptr, D: tl.constexpr):
    """x = rotate(x / |x|); one program owns a row."""
    offs = tl.arange(0, D)
    x = tl.load(x_ptr + offs)
    tl.store(x_ptr + offs, x * tl.rsqrt(tl.sum(x * x, axis=0)))
    tl.debug_barrier()
    half = tl.arange(0, D // 2)
    a, b = tl.load(x_ptr + half), tl.load(x_ptr + D // 2 + half)
    tl.debug_barrier()
    tl.store(x_ptr + half, -b)
    tl.store(x_ptr + D // 2 + half, a)


@triton.jit
def two_loops_no_barrier_kernel(scratch_ptr, out_ptr, TILES: tl.constexpr, BLOCK: tl.constexpr):
    """BUG: the second loop reads tiles that other warps write in the first. out = scratch backwards; one program owns all of it."""
    offs = tl.arange(0, BLOCK)
    for tile in range(0, TILES):
        tl.store(scratch_ptr + tile * BLOCK + offs, offs + tile)
    for tile in range(0, TILES):
        x = tl.load(scratch_ptr + TILES * BLOCK - 1 - tile * BLOCK - offs)
        tl.store(out_ptr + tile * BLOCK + offs, x)


@triton.jit
def two_loops_kernel(scratch_ptr, out_ptr, TILES: tl.constexpr, BLOCK: tl.constexpr):
    """out = scratch backwards; one program owns all of it."""
    offs = tl.arange(0, BLOCK)
    for tile in range(0, TILES):
        tl.store(scratch_ptr + tile * BLOCK + offs, offs + tile)
    tl.debug_barrier()
    for tile in range(0, TILES):
        x = tl.load(scratch_ptr + TILES * BLOCK - 1 - tile * BLOCK - offs)
        tl.store(out_ptr + tile * BLOCK + offs, x)


@triton.jit
def scatter_add_kernel(index_ptr, out_ptr, BLOCK: tl.constexpr):
    """BUG: lanes with one index read the same old value. out[index] += 1; one program owns all of it."""
    offs = tl.arange(0, BLOCK)
    index = tl.load(index_ptr + offs)
    tl.store(out_ptr + index, tl.load(out_ptr + index) + 1)


@triton.jit
def scatter_add_atomic_kernel(index_ptr, out_ptr, BLOCK: tl.constexpr):
    """out[index] += 1; one program owns all of it."""
    offs = tl.arange(0, BLOCK)
    index = tl.load(index_ptr + offs)
    tl.atomic_add(out_ptr + index, 1)


@triton.jit
def scatter_lanes_kernel(index_ptr, x_ptr, out_ptr, BLOCK: tl.constexpr):
    """BUG: lanes with one index write different values. out[index] = the largest x of that index; one program owns all of it."""
    offs = tl.arange(0, BLOCK)
    index = tl.load(index_ptr + offs)
    tl.store(out_ptr + index, tl.load(x_ptr + offs))


@triton.jit
def scatter_max_kernel(index_ptr, x_ptr, out_ptr, BLOCK: tl.constexpr):
    """out[index] = the largest x of that index; one program owns all of it."""
    offs = tl.arange(0, BLOCK)
    index = tl.load(index_ptr + offs)
    tl.atomic_max(out_ptr + index, tl.load(x_ptr + offs))


def block(n, size):
    return lambda: ((1,), (normal(n),), {"BLOCK": size, "num_warps": 4})


INDEX = [0, 3, 1, 3, 2, 3, 0, 1]
RACE = ("race in a program", "wrong")
FAULTS = [
    Fault("store, then load reversed", "R5", reverse_no_barrier_kernel, reverse_kernel, block(2048, 1024), *RACE),
    Fault("load reversed, then store", "R5", reverse_in_place_no_barrier_kernel, reverse_in_place_kernel, block(1024, 1024), *RACE),
    Fault(
        *("reload halves in another layout", "R5", norm_halves_no_barrier_kernel, norm_halves_kernel),
        *(lambda: ((1,), (normal(1024),), {"D": 1024, "num_warps": 8}), *RACE),
    ),
    Fault(
        *("scratch between two loops", "R5", two_loops_no_barrier_kernel, two_loops_kernel),
        lambda: ((1,), (filled((4096,), dtype=torch.int32), filled((4096,), dtype=torch.int32)), {"TILES": 4, "BLOCK": 1024}),
        *RACE,
    ),
    Fault(
        *("scatter-add without atomics", "R5", scatter_add_kernel, scatter_add_atomic_kernel),
        *(lambda: ((1,), (numbers(INDEX), filled((4,), dtype=torch.int32)), {"BLOCK": 8}), *RACE, "tl.store"),
    ),
    Fault(
        *("lanes that meet", "R5", scatter_lanes_kernel, scatter_max_kernel),
        lambda: ((1,), (numbers(INDEX), numbers(range(8)), filled((4,), dtype=torch.int32)), {"BLOCK": 8}),
        *(*RACE, "tl.store"),
    ),
]
