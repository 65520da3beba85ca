"""R5, between programs: nothing orders them, so what one writes no other may read or write."""

from __future__ import annotations

import torch
import triton
import triton.language as tl

from kit.ghosts import ghost
from kit.tests.faults.fault_case import Fault, filled, numbers


@triton.jit
def shift_in_place_kernel(x_ptr, n, BLOCK: tl.constexpr):
    """BUG: the last lane reads what the next program writes. x[i] = x[i + 1]; a program owns BLOCK elements."""
    offs = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    mask = offs < n - 1
    tl.store(x_ptr + offs, tl.load(x_ptr + offs + 1, mask=mask), mask=mask)


@triton.jit
def shift_kernel(x_ptr, n, BLOCK: tl.constexpr):
    """The right half of x = its left half, shifted; a program owns BLOCK elements."""
    offs = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    mask = offs < n // 2 - 1
    tl.store(x_ptr + n // 2 + offs, tl.load(x_ptr + offs + 1, mask=mask), mask=mask)


@triton.jit
def transpose_in_place_kernel(x_ptr, stride, BLOCK: tl.constexpr):
    """BUG: program (a, b) reads the tile that (b, a) writes. x = x transposed; a program owns a tile."""
    offs_m = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    offs_n = tl.program_id(1) * BLOCK + tl.arange(0, BLOCK)
    x = tl.load(x_ptr + offs_m[:, None] * stride + offs_n[None, :])
    tl.store(x_ptr + offs_n[:, None] * stride + offs_m[None, :], tl.trans(x))


@triton.jit
def swap_tiles_kernel(x_ptr, stride, BLOCK: tl.constexpr):
    """x = x transposed; program (a, b) with a <= b owns the tiles (a, b) and (b, a)."""
    pid_m, pid_n = tl.program_id(0), tl.program_id(1)
    if pid_m <= pid_n:
        offs_m = pid_m * BLOCK + tl.arange(0, BLOCK)
        offs_n = pid_n * BLOCK + tl.arange(0, BLOCK)
        upper = x_ptr + offs_m[:, None] * stride + offs_n[None, :]
        lower = x_ptr + offs_n[:, None] * stride + offs_m[None, :]
        a, b = tl.load(upper), tl.load(lower)
        tl.debug_barrier()
        tl.store(lower, tl.trans(a))
        tl.debug_barrier()
        tl.store(upper, tl.trans(b))


@triton.jit
def rows_without_pid_kernel(x_ptr, out_ptr, BLOCK: tl.constexpr):
    """BUG: the store forgets the row. out[row] = x[row]; a program owns a row."""
    pid = tl.program_id(0)
    offs = tl.arange(0, BLOCK)
    tl.store(out_ptr + offs, tl.load(x_ptr + pid * BLOCK + offs))


@triton.jit
def rows_kernel(x_ptr, out_ptr, BLOCK: tl.constexpr):
    """out[row] = x[row]; a program owns a row."""
    pid = tl.program_id(0)
    offs = tl.arange(0, BLOCK)
    tl.store(out_ptr + pid * BLOCK + offs, tl.load(x_ptr + pid * BLOCK + offs))


@triton.jit
def tiles_overlap_kernel(out_ptr, n, BLOCK: tl.constexpr):
    """BUG: tiles are BLOCK long and BLOCK - 1 apart. out[i] = the tile of i; a program owns a tile."""
    pid = tl.program_id(0)
    offs = pid * (BLOCK - 1) + tl.arange(0, BLOCK)
    tl.store(out_ptr + offs, pid, mask=offs < n)


@triton.jit
def tiles_kernel(out_ptr, n, BLOCK: tl.constexpr):
    """out[i] = the tile of i; a program owns a tile."""
    pid = tl.program_id(0)
    offs = pid * BLOCK + tl.arange(0, BLOCK)
    tl.store(out_ptr + offs, pid, mask=offs < n)


@triton.jit
def histogram_no_atomics_kernel(x_ptr, counts_ptr, BINS: tl.constexpr, BLOCK: tl.constexpr):
    """BUG: programs read, add and write the same counts. counts[b] = how many x are b; a program owns BLOCK elements."""
    offs = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    bins = tl.arange(0, BINS)
    local = tl.histogram(tl.load(x_ptr + offs), BINS)
    tl.store(counts_ptr + bins, tl.load(counts_ptr + bins) + local)


@triton.jit
def histogram_kernel(x_ptr, counts_ptr, BINS: tl.constexpr, BLOCK: tl.constexpr):
    """counts[b] = how many x are b; a program owns BLOCK elements."""
    offs = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    bins = tl.arange(0, BINS)
    local = tl.histogram(tl.load(x_ptr + offs), BINS)
    tl.atomic_add(counts_ptr + bins, local)


@triton.jit
def sum_with_reset_kernel(x_ptr, sum_ptr, BLOCK: tl.constexpr):
    """BUG: program 0 sets the sum to 0 after others may have added to it. sum = the sum of x; a program owns BLOCK elements."""
    pid = tl.program_id(0)
    if pid == 0:
        tl.store(sum_ptr, 0.0)
    tl.atomic_add(sum_ptr, tl.sum(tl.load(x_ptr + pid * BLOCK + tl.arange(0, BLOCK)), axis=0))


@triton.jit
def sum_kernel(x_ptr, sum_ptr, BLOCK: tl.constexpr):
    """sum += the sum of x; a program owns BLOCK elements."""
    pid = tl.program_id(0)
    tl.atomic_add(sum_ptr, tl.sum(tl.load(x_ptr + pid * BLOCK + tl.arange(0, BLOCK)), axis=0))


@triton.jit
def read_own_share_kernel(x_ptr, sum_ptr, out_ptr, BLOCK: tl.constexpr):
    """BUG: the sum is read while others still add to it. out = x / sum(x); a program owns BLOCK elements."""
    offs = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    x = tl.load(x_ptr + offs)
    tl.atomic_add(sum_ptr, tl.sum(x, axis=0))
    tl.debug_barrier()
    tl.store(out_ptr + offs, x / tl.load(sum_ptr))


@triton.jit
def read_given_share_kernel(x_ptr, sum_ptr, out_ptr, BLOCK: tl.constexpr):
    """out = x / sum, a sum that another launch made; a program owns BLOCK elements."""
    offs = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    tl.store(out_ptr + offs, tl.load(x_ptr + offs) / tl.load(sum_ptr))


@triton.jit
def partials_no_counter_kernel(x_ptr, partial_ptr, out_ptr, PROGRAMS: tl.constexpr, BLOCK: tl.constexpr):
    """BUG: the last program reads partial sums that nobody waited for. out = the sum of x; a program owns BLOCK elements."""
    pid = tl.program_id(0)
    tl.store(partial_ptr + pid, tl.sum(tl.load(x_ptr + pid * BLOCK + tl.arange(0, BLOCK)), axis=0))
    tl.debug_barrier()
    if pid == PROGRAMS - 1:
        tl.store(out_ptr, tl.sum(tl.load(partial_ptr + tl.arange(0, PROGRAMS)), axis=0))


@triton.jit
def partials_counter_kernel(x_ptr, partial_ptr, out_ptr, PROGRAMS: tl.constexpr, BLOCK: tl.constexpr):
    """partial[program] = its sum of x; a second launch adds them. A program owns BLOCK elements."""
    pid = tl.program_id(0)
    tl.store(partial_ptr + pid, tl.sum(tl.load(x_ptr + pid * BLOCK + tl.arange(0, BLOCK)), axis=0))
    tl.store(out_ptr, 0.0, mask=pid == 0)


@triton.jit
def wait_for_next_kernel(flag_ptr, out_ptr, PROGRAMS: tl.constexpr):
    """BUG: a program waits for the one after it, which may not have begun. out[program] = 1 in descending order."""
    pid = tl.program_id(0)
    if pid < PROGRAMS - 1:
        while tl.atomic_add(flag_ptr + pid + 1, 0) == 0:
            pass
    tl.store(out_ptr + pid, 1)
    tl.atomic_xchg(flag_ptr + pid, 1)


@triton.jit
def wait_for_nobody_kernel(flag_ptr, out_ptr, PROGRAMS: tl.constexpr):
    """out[program] = 1; a program sets its own flag."""
    pid = tl.program_id(0)
    tl.store(out_ptr + pid, 1)
    tl.atomic_xchg(flag_ptr + pid, 1)


@triton.jit
def stencil_in_place_kernel(x_ptr, n, BLOCK: tl.constexpr):
    """BUG: the halo belongs to other programs, which overwrite it. x = the mean of three neighbours; a program owns BLOCK elements."""
    offs = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    mask = (offs > 0) & (offs < n - 1)
    left, right = tl.load(x_ptr + offs - 1, mask=mask), tl.load(x_ptr + offs + 1, mask=mask)
    x = tl.load(x_ptr + offs, mask=mask)
    tl.debug_barrier()
    tl.store(x_ptr + offs, (left + x + right) / 3, mask=mask)


@triton.jit
def scale_in_place_kernel(x_ptr, n, BLOCK: tl.constexpr):
    """x = x / 3; a program owns BLOCK elements."""
    offs = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    mask = offs < n
    tl.store(x_ptr + offs, tl.load(x_ptr + offs, mask=mask) / 3, mask=mask)


@triton.jit
def take_slot_kernel(counter_ptr, slots_ptr):
    """BUG: the counter is read and written without an atomic. slots[ticket] = program; a program owns a ticket."""
    ticket = tl.load(counter_ptr)
    tl.store(counter_ptr, ticket + 1)
    tl.store(slots_ptr + ticket, tl.program_id(0))


@triton.jit
def take_slot_atomic_kernel(counter_ptr, slots_ptr):
    """slots[ticket] = program; a program owns a ticket."""
    ticket = tl.atomic_add(counter_ptr, 1)
    tl.store(slots_ptr + ticket, tl.program_id(0))


def f32(*shape):
    return ghost(shape, torch.float32)


def shifting():
    return (4,), (f32(64), 64), {"BLOCK": 16}


def summing():
    return (8,), (f32(128), filled((1,))), {"BLOCK": 16}


RACE = ("race between programs", "wrong")
FAULTS = [
    Fault("shift in place", "R5", shift_in_place_kernel, shift_kernel, shifting, *RACE),
    Fault("stencil in place", "R5", stencil_in_place_kernel, scale_in_place_kernel, shifting, *RACE),
    Fault(
        *("transpose in place", "R5", transpose_in_place_kernel, swap_tiles_kernel),
        *(lambda: ((4, 4), (f32(64, 64), 64), {"BLOCK": 16}), *RACE),
    ),
    Fault(
        *("rows without their row", "R5", rows_without_pid_kernel, rows_kernel, lambda: ((4,), (f32(4, 17), f32(16)), {"BLOCK": 16})),
        *(*RACE, "tl.store"),
        right_launch=lambda: ((4,), (f32(4, 16), f32(4, 16)), {"BLOCK": 16}),
    ),
    Fault(
        *("tiles that overlap", "R5", tiles_overlap_kernel, tiles_kernel, lambda: ((4,), (ghost(61, torch.int32), 61), {"BLOCK": 16})),
        *(*RACE, "tl.store"),
    ),
    Fault(
        *("histogram without atomics", "R5", histogram_no_atomics_kernel, histogram_kernel),
        *(lambda: ((8,), (ghost(256, torch.int32), ghost(16, torch.int32)), {"BINS": 16, "BLOCK": 32}), *RACE),
    ),
    Fault("a reset beside atomics", "R5", sum_with_reset_kernel, sum_kernel, summing, *RACE, "tl.store"),
    Fault(
        *("a sum read too early", "R5", read_own_share_kernel, read_given_share_kernel),
        *(lambda: ((8,), (f32(128), filled((1,), 1.0), f32(128)), {"BLOCK": 16}), *RACE),
    ),
    Fault(
        *("partial sums nobody waits for", "R5", partials_no_counter_kernel, partials_counter_kernel),
        *(lambda: ((8,), (f32(128), filled((8,)), f32(1)), {"PROGRAMS": 8, "BLOCK": 16}), *RACE),
    ),
    Fault(
        *("waiting for a later program", "R5", wait_for_next_kernel, wait_for_nobody_kernel),
        lambda: ((4,), (filled((4,), dtype=torch.int32), filled((4,), dtype=torch.int32)), {"PROGRAMS": 4}),
        *("wait between programs", "wrong", "while"),
    ),
    Fault(
        *("a counter without an atomic", "R5", take_slot_kernel, take_slot_atomic_kernel),
        *(lambda: ((4,), (numbers([0]), filled((4,), dtype=torch.int32)), {}), *RACE),
    ),
]
