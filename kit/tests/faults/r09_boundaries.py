"""R9, boundaries: sizes that are no multiple of the block, masks that are not there, too wide or too narrow, values that fill them."""

from __future__ import annotations

import torch
import triton
import triton.language as tl

from kit.ghosts import ghost
from kit.tests.faults.fault_case import Fault, filled, normal, numbers


@triton.jit
def copy_no_mask_kernel(x_ptr, out_ptr, n, BLOCK: tl.constexpr):
    """BUG: the last tile has no mask. out = x; a program owns BLOCK elements."""
    offs = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    x = tl.load(x_ptr + offs)
    tl.store(out_ptr + offs, x, mask=offs < n)


@triton.jit
def copy_store_no_mask_kernel(x_ptr, out_ptr, n, BLOCK: tl.constexpr):
    """BUG: the load has a mask and the store has none. out = x; a program owns BLOCK elements."""
    offs = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    x = tl.load(x_ptr + offs, mask=offs < n, other=0.0)
    tl.store(out_ptr + offs, x)


@triton.jit
def copy_one_too_many_kernel(x_ptr, out_ptr, n, BLOCK: tl.constexpr):
    """BUG: <= for <. out = x; a program owns BLOCK elements."""
    offs = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    mask = offs <= n
    tl.store(out_ptr + offs, tl.load(x_ptr + offs, mask=mask), mask=mask)


@triton.jit
def copy_one_too_few_kernel(x_ptr, out_ptr, n, BLOCK: tl.constexpr):
    """BUG: n - 1 for n. out = x; a program owns BLOCK elements."""
    offs = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    mask = offs < n - 1
    tl.store(out_ptr + offs, tl.load(x_ptr + offs, mask=mask), mask=mask)


@triton.jit
def copy_kernel(x_ptr, out_ptr, n, BLOCK: tl.constexpr):
    """out = x; a program owns BLOCK elements."""
    offs = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    mask = offs < n
    tl.store(out_ptr + offs, tl.load(x_ptr + offs, mask=mask), mask=mask)


def f32(*shape):
    return ghost(shape, torch.float32)


def copying(programs=4, n=100):
    return lambda: ((programs,), (f32(n), f32(n), n), {"BLOCK": 32})


@triton.jit
def sum_no_other_kernel(x_ptr, out_ptr, n, BLOCK: tl.constexpr):
    """BUG: masked lanes have no other= and are summed. out = the sum of x; one program owns it."""
    offs = tl.arange(0, BLOCK)
    x = tl.load(x_ptr + offs, mask=offs < n)
    tl.store(out_ptr, tl.sum(x, axis=0))


@triton.jit
def sum_kernel(x_ptr, out_ptr, n, BLOCK: tl.constexpr):
    """out = the sum of x; one program owns it."""
    offs = tl.arange(0, BLOCK)
    x = tl.load(x_ptr + offs, mask=offs < n, other=0.0)  # 0 adds nothing
    tl.store(out_ptr, tl.sum(x, axis=0))


@triton.jit
def max_no_other_kernel(x_ptr, out_ptr, n, BLOCK: tl.constexpr):
    """BUG: masked lanes have no other= and compete for the maximum. out = max x; one program owns it."""
    offs = tl.arange(0, BLOCK)
    tl.store(out_ptr, tl.max(tl.load(x_ptr + offs, mask=offs < n), axis=0))


@triton.jit
def max_kernel(x_ptr, out_ptr, n, BLOCK: tl.constexpr):
    """out = max x; one program owns it."""
    offs = tl.arange(0, BLOCK)
    tl.store(out_ptr, tl.max(tl.load(x_ptr + offs, mask=offs < n, other=-float("inf")), axis=0))


@triton.jit
def count_no_other_kernel(x_ptr, out_ptr, n, BLOCK: tl.constexpr):
    """BUG: masked lanes are compared. out = how many x are 0; one program owns it."""
    offs = tl.arange(0, BLOCK)
    x = tl.load(x_ptr + offs, mask=offs < n)
    tl.store(out_ptr, tl.sum((x == 0).to(tl.int32), axis=0))


@triton.jit
def count_kernel(x_ptr, out_ptr, n, BLOCK: tl.constexpr):
    """out = how many x are 0; one program owns it."""
    offs = tl.arange(0, BLOCK)
    mask = offs < n
    x = tl.load(x_ptr + offs, mask=mask)
    tl.store(out_ptr, tl.sum(((x == 0) & mask).to(tl.int32), axis=0))


@triton.jit
def store_wider_kernel(x_ptr, out_ptr, n, BLOCK: tl.constexpr):
    """BUG: loaded under one mask, stored without. out = x, then zeros up to BLOCK; one program owns it."""
    offs = tl.arange(0, BLOCK)
    tl.store(out_ptr + offs, tl.load(x_ptr + offs, mask=offs < n))


@triton.jit
def store_padded_kernel(x_ptr, out_ptr, n, BLOCK: tl.constexpr):
    """out = x, then zeros up to BLOCK; one program owns it."""
    offs = tl.arange(0, BLOCK)
    tl.store(out_ptr + offs, tl.load(x_ptr + offs, mask=offs < n, other=0.0))


@triton.jit
def gather_no_other_kernel(index_ptr, x_ptr, out_ptr, n, BLOCK: tl.constexpr):
    """BUG: masked indices are undefined, and the second load has no mask. out = x[index]; one program owns it."""
    offs = tl.arange(0, BLOCK)
    mask = offs < n
    index = tl.load(index_ptr + offs, mask=mask)
    tl.store(out_ptr + offs, tl.load(x_ptr + index), mask=mask)


@triton.jit
def gather_kernel(index_ptr, x_ptr, out_ptr, n, BLOCK: tl.constexpr):
    """out = x[index]; one program owns it."""
    offs = tl.arange(0, BLOCK)
    mask = offs < n
    index = tl.load(index_ptr + offs, mask=mask)
    tl.store(out_ptr + offs, tl.load(x_ptr + index, mask=mask), mask=mask)


@triton.jit
def dot_no_other_kernel(a_ptr, b_ptr, out_ptr, K, BLOCK: tl.constexpr):
    """BUG: the tail of K is masked and undefined, and multiplied. out = a @ b; one program owns it."""
    offs = tl.arange(0, BLOCK)
    a = tl.load(a_ptr + offs[:, None] * K + offs[None, :], mask=offs[None, :] < K)
    b = tl.load(b_ptr + offs[:, None] * BLOCK + offs[None, :], mask=offs[:, None] < K)
    tl.store(out_ptr + offs[:, None] * BLOCK + offs[None, :], tl.dot(a, b))


@triton.jit
def dot_kernel(a_ptr, b_ptr, out_ptr, K, BLOCK: tl.constexpr):
    """out = a @ b; one program owns it."""
    offs = tl.arange(0, BLOCK)
    a = tl.load(a_ptr + offs[:, None] * K + offs[None, :], mask=offs[None, :] < K, other=0.0)
    b = tl.load(b_ptr + offs[:, None] * BLOCK + offs[None, :], mask=offs[:, None] < K, other=0.0)
    tl.store(out_ptr + offs[:, None] * BLOCK + offs[None, :], tl.dot(a, b))


@triton.jit
def k_tail_kernel(x_ptr, out_ptr, K, BLOCK: tl.constexpr):
    """BUG: the last step of the loop has no mask. out = the sum of x in BLOCK lanes; one program owns it."""
    acc = tl.zeros((BLOCK,), tl.float32)
    for k in range(0, K, BLOCK):
        acc += tl.load(x_ptr + k + tl.arange(0, BLOCK))
    tl.store(out_ptr, tl.sum(acc, axis=0))


@triton.jit
def k_masked_kernel(x_ptr, out_ptr, K, BLOCK: tl.constexpr):
    """out = the sum of x in BLOCK lanes; one program owns it."""
    acc = tl.zeros((BLOCK,), tl.float32)
    for k in range(0, K, BLOCK):
        offs = k + tl.arange(0, BLOCK)
        acc += tl.load(x_ptr + offs, mask=offs < K, other=0.0)
    tl.store(out_ptr, tl.sum(acc, axis=0))


@triton.jit
def rows_without_pid_kernel(x_ptr, out_ptr, V: tl.constexpr, BLOCK: tl.constexpr):
    """out = the maximum of each row of x; a program owns a row."""
    row = tl.program_id(0)
    offs = tl.arange(0, BLOCK)
    x = tl.load(x_ptr + row * V + offs, mask=offs < V, other=-float("inf"))
    tl.store(out_ptr + row, tl.max(x, axis=0))


@triton.jit
def skip_column_kernel(x_ptr, out_ptr, V: tl.constexpr, BLOCK: tl.constexpr):
    """BUG: the last column is left out. out = x + 1; a program owns a row."""
    row = tl.program_id(0)
    offs = tl.arange(0, BLOCK)
    mask = offs < V - 1
    tl.store(out_ptr + row * V + offs, tl.load(x_ptr + row * V + offs, mask=mask) + 1, mask=mask)


@triton.jit
def each_column_kernel(x_ptr, out_ptr, V: tl.constexpr, BLOCK: tl.constexpr):
    """out = x + 1; a program owns a row."""
    row = tl.program_id(0)
    offs = tl.arange(0, BLOCK)
    mask = offs < V
    tl.store(out_ptr + row * V + offs, tl.load(x_ptr + row * V + offs, mask=mask) + 1, mask=mask)


@triton.jit
def pick_target_kernel(x_ptr, target_ptr, out_ptr, V: tl.constexpr):
    """BUG: the target -100 of an ignored row is used as an index. out[row] = x[row, target]; a program owns a row."""
    row = tl.program_id(0)
    target = tl.load(target_ptr + row)
    tl.store(out_ptr + row, tl.load(x_ptr + row * V + target))


@triton.jit
def pick_known_target_kernel(x_ptr, target_ptr, out_ptr, V: tl.constexpr):
    """out[row] = x[row, target], 0 where there is none; a program owns a row."""
    row = tl.program_id(0)
    target = tl.load(target_ptr + row)
    known = (target >= 0) & (target < V)
    tl.store(out_ptr + row, tl.load(x_ptr + row * V + target, mask=known, other=0.0))


@triton.jit
def left_neighbour_kernel(x_ptr, out_ptr, n, BLOCK: tl.constexpr):
    """BUG: element -1 is read. out[i] = x[i] - x[i - 1]; a program owns BLOCK elements."""
    offs = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    mask = offs < n
    tl.store(out_ptr + offs, tl.load(x_ptr + offs, mask=mask) - tl.load(x_ptr + offs - 1, mask=mask), mask=mask)


@triton.jit
def left_neighbour_masked_kernel(x_ptr, out_ptr, n, BLOCK: tl.constexpr):
    """out[i] = x[i] - x[i - 1], with 0 before the first; a program owns BLOCK elements."""
    offs = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    mask = offs < n
    left = tl.load(x_ptr + offs - 1, mask=mask & (offs > 0), other=0.0)
    tl.store(out_ptr + offs, tl.load(x_ptr + offs, mask=mask) - left, mask=mask)


@triton.jit
def max_of_zeros_kernel(x_ptr, out_ptr, n, BLOCK: tl.constexpr):
    """BUG: 0 is not neutral under a maximum. out = max x; one program owns it."""
    offs = tl.arange(0, BLOCK)
    tl.store(out_ptr, tl.max(tl.load(x_ptr + offs, mask=offs < n, other=0.0), axis=0))


@triton.jit
def variance_of_padding_kernel(x_ptr, out_ptr, n, BLOCK: tl.constexpr):
    """BUG: the padding is 0 - mean after the subtraction, and counted. out = the variance of x; one program owns it."""
    offs = tl.arange(0, BLOCK)
    x = tl.load(x_ptr + offs, mask=offs < n, other=0.0)
    d = x - tl.sum(x, axis=0) / n
    tl.store(out_ptr, tl.sum(d * d, axis=0) / n)


@triton.jit
def variance_kernel(x_ptr, out_ptr, n, BLOCK: tl.constexpr):
    """out = the variance of x; one program owns it."""
    offs = tl.arange(0, BLOCK)
    mask = offs < n
    x = tl.load(x_ptr + offs, mask=mask, other=0.0)
    d = tl.where(mask, x - tl.sum(x, axis=0) / n, 0.0)
    tl.store(out_ptr, tl.sum(d * d, axis=0) / n)


def one(n=10):
    return lambda: ((1,), (f32(n), f32(1), n), {"BLOCK": 16})


def rows(programs):
    return lambda: ((programs,), (f32(5, 10), f32(5)), {"V": 10, "BLOCK": 16})


NEUTRAL = "every lane has a value that the kernel defines; that it is not neutral only a reference says"
FAULTS = [
    Fault(
        "a load without a mask", "R9", copy_no_mask_kernel, copy_kernel, copying(), "out of bounds", "wrong", "tl.load", program=(3, 0, 0)
    ),
    Fault("a store without a mask", "R9", copy_store_no_mask_kernel, copy_kernel, copying(), "out of bounds", "wrong", "tl.store"),
    Fault("<= for <", "R9", copy_one_too_many_kernel, copy_kernel, copying(), "out of bounds", "wrong", "tl.load"),
    Fault("n - 1 for n", "R9", copy_one_too_few_kernel, copy_kernel, copying(), "never written", "fragile", "tl.store"),
    Fault(
        *("a grid rounded down", "R9", copy_kernel, copy_kernel, copying(3), "never written", "fragile", "tl.store"),
        right_launch=copying(4),
    ),
    Fault("a sum of masked lanes", "R9", sum_no_other_kernel, sum_kernel, one(), "masked lane", "fragile", "tl.load"),
    Fault("a maximum of masked lanes", "R9", max_no_other_kernel, max_kernel, one(), "masked lane", "fragile", "tl.load"),
    Fault(
        *("masked lanes compared", "R9", count_no_other_kernel, count_kernel),
        *(lambda: ((1,), (f32(10), ghost(1, torch.int32), 10), {"BLOCK": 16}), "masked lane", "fragile", "tl.load"),
    ),
    Fault(
        *("masked lanes stored", "R9", store_wider_kernel, store_padded_kernel),
        *(lambda: ((1,), (f32(10), f32(16), 10), {"BLOCK": 16}), "masked lane", "fragile", "tl.load"),
    ),
    Fault(
        *("masked lanes as indices", "R9", gather_no_other_kernel, gather_kernel),
        *(lambda: ((1,), (numbers(range(10)), normal(10), filled((10,)), 10), {"BLOCK": 16}), "masked lane", "fragile", "tl.load"),
    ),
    Fault(
        *("masked lanes multiplied", "R9", dot_no_other_kernel, dot_kernel),
        *(lambda: ((1,), (f32(16, 10), f32(10, 16), f32(16, 16), 10), {"BLOCK": 16}), "masked lane", "fragile", "tl.load"),
    ),
    Fault(
        *("the tail of K", "R9", k_tail_kernel, k_masked_kernel),
        *(lambda: ((1,), (f32(40), f32(1), 40), {"BLOCK": 16}), "out of bounds", "wrong", "tl.load"),
    ),
    Fault(
        *("a grid of one program", "R9", rows_without_pid_kernel, rows_without_pid_kernel, rows(1), "never written", "fragile", "tl.store"),
        right_launch=rows(5),
    ),
    Fault(
        *("a column left out", "R9", skip_column_kernel, each_column_kernel),
        *(lambda: ((5,), (f32(5, 10), f32(5, 10)), {"V": 10, "BLOCK": 16}), "never written", "fragile", "tl.store"),
    ),
    Fault(
        *("a sentinel as an index", "R9", pick_target_kernel, pick_known_target_kernel),
        *(lambda: ((4,), (normal(4, 10), numbers([-100, 9, 3, 10]), filled((4,))), {"V": 10}), "out of bounds", "wrong", "target"),
    ),
    Fault(
        *("element -1", "R9", left_neighbour_kernel, left_neighbour_masked_kernel, copying(), "out of bounds", "wrong", "offs - 1"),
        program=(0, 0, 0),
    ),
    Fault("0 under a maximum", "R9", max_of_zeros_kernel, max_kernel, one(), why=NEUTRAL, shows="a reference at an all-negative row"),
    Fault("padding in a variance", "R9", variance_of_padding_kernel, variance_kernel, one(), why=NEUTRAL, shows="a reference at n < BLOCK"),
]
