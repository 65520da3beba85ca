"""R1: Triton's semantics are not Python's. Most of these give defined, unmeant numbers: paper sees no hazard in them."""

from __future__ import annotations

import torch
import triton
import triton.language as tl

from kit.ghosts import ghost
from kit.tests.faults.fault_case import Fault, filled, numbers

MEANT = "the result is defined, and only a reference says that another one was meant"


@triton.jit
def floor_div_trunc_kernel(x_ptr, out_ptr, BLOCK: tl.constexpr):
    """BUG: // truncates toward zero. out = floor(x / 4); one program owns all of it."""
    offs = tl.arange(0, BLOCK)
    tl.store(out_ptr + offs, tl.load(x_ptr + offs) // 4)


@triton.jit
def floor_div_kernel(x_ptr, out_ptr, BLOCK: tl.constexpr):
    """out = floor(x / 4); one program owns all of it."""
    offs = tl.arange(0, BLOCK)
    x = tl.load(x_ptr + offs)
    tl.store(out_ptr + offs, (x - ((x % 4 + 4) % 4)) // 4)


@triton.jit
def mod_sign_kernel(x_ptr, out_ptr, BLOCK: tl.constexpr):
    """BUG: % takes the sign of x. out = x mod 4, from 0 to 3; one program owns all of it."""
    offs = tl.arange(0, BLOCK)
    tl.store(out_ptr + offs, tl.load(x_ptr + offs) % 4)


@triton.jit
def mod_kernel(x_ptr, out_ptr, BLOCK: tl.constexpr):
    """out = x mod 4, from 0 to 3; one program owns all of it."""
    offs = tl.arange(0, BLOCK)
    tl.store(out_ptr + offs, (tl.load(x_ptr + offs) % 4 + 4) % 4)


@triton.jit
def ceil_div_negative_kernel(x_ptr, out_ptr, BLOCK: tl.constexpr):
    """BUG: tl.cdiv is right for x >= 0 only. out = ceil(x / 4); one program owns all of it."""
    offs = tl.arange(0, BLOCK)
    tl.store(out_ptr + offs, tl.cdiv(tl.load(x_ptr + offs), 4))


@triton.jit
def ceil_div_kernel(x_ptr, out_ptr, BLOCK: tl.constexpr):
    """out = ceil(x / 4) = -floor(-x / 4); one program owns all of it."""
    offs = tl.arange(0, BLOCK)
    x = -tl.load(x_ptr + offs)
    tl.store(out_ptr + offs, -((x - ((x % 4 + 4) % 4)) // 4))


def signed():
    return (1,), (numbers([-8, -7, -5, -1, 0, 1, 5, 7]), filled((8,), dtype=torch.int32)), {"BLOCK": 8}


@triton.jit
def narrow_sum_kernel(x_ptr, out_ptr, BLOCK: tl.constexpr):
    """BUG: uint8 + 200 stays uint8. out = x + 200; one program owns all of it."""
    offs = tl.arange(0, BLOCK)
    tl.store(out_ptr + offs, (tl.load(x_ptr + offs) + 200).to(tl.int32))


@triton.jit
def wide_sum_kernel(x_ptr, out_ptr, BLOCK: tl.constexpr):
    """out = x + 200; one program owns all of it."""
    offs = tl.arange(0, BLOCK)
    tl.store(out_ptr + offs, tl.load(x_ptr + offs).to(tl.int32) + 200)


def bytes_to_sum():
    return (1,), (numbers([0, 55, 56, 200], torch.uint8), filled((4,), dtype=torch.int32)), {"BLOCK": 4}


@triton.jit
def counter_after_loop_kernel(x_ptr, last_ptr, n):
    """BUG: the loop's variable has no value after the loop. last = the index of the last element; one program owns it."""
    for i in range(0, n):
        tl.store(x_ptr + i, 1)
    tl.store(last_ptr, i)


@triton.jit
def last_index_kernel(x_ptr, last_ptr, n):
    """last = the index of the last element; one program owns it."""
    for i in range(0, n):
        tl.store(x_ptr + i, 1)
    tl.store(last_ptr, n - 1)


@triton.jit
def store_narrows_kernel(a_ptr, b_ptr, out_ptr, BLOCK: tl.constexpr):
    """BUG: a store casts to the pointer's type in silence. out = a * b in int32; one program owns all of it."""
    offs = tl.arange(0, BLOCK)
    product = tl.load(a_ptr + offs).to(tl.int32) * tl.load(b_ptr + offs).to(tl.int32)
    tl.store(out_ptr + offs, product)


def int8_products(dtype):
    x = numbers([10, 12, 16, 20], torch.int8)
    return lambda: ((1,), (x, x, filled((4,), dtype=dtype)), {"BLOCK": 4})


@triton.jit
def outer_by_accident_kernel(x_ptr, y_ptr, out_ptr, BLOCK: tl.constexpr):
    """BUG: (N, 1) times (N,) is (N, N). out = sum(x * y); one program owns it."""
    offs = tl.arange(0, BLOCK)
    x, y = tl.load(x_ptr + offs)[:, None], tl.load(y_ptr + offs)
    tl.store(out_ptr, tl.sum(tl.sum(x * y, axis=1), axis=0))


@triton.jit
def inner_kernel(x_ptr, y_ptr, out_ptr, BLOCK: tl.constexpr):
    """out = sum(x * y); one program owns it."""
    offs = tl.arange(0, BLOCK)
    tl.store(out_ptr, tl.sum(tl.load(x_ptr + offs) * tl.load(y_ptr + offs), axis=0))


def two_rows():
    return (1,), (ghost(8, torch.float32), ghost(8, torch.float32), ghost(1, torch.float32)), {"BLOCK": 8}


@triton.jit
def mask_precedence_kernel(x_ptr, out_ptr, n, BLOCK: tl.constexpr):
    """BUG: & binds before <, so every lane is masked. out[1:n] = x[1:n]; a program owns BLOCK elements."""
    offs = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    mask = offs < n & (offs > 0)
    tl.store(out_ptr + offs - 1, tl.load(x_ptr + offs, mask=mask), mask=mask)


@triton.jit
def mask_in_brackets_kernel(x_ptr, out_ptr, n, BLOCK: tl.constexpr):
    """out[1:n] = x[1:n]; a program owns BLOCK elements."""
    offs = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    mask = (offs < n) & (offs > 0)
    tl.store(out_ptr + offs - 1, tl.load(x_ptr + offs, mask=mask), mask=mask)


def all_but_the_first():
    return (3,), (ghost(40, torch.float32), ghost(39, torch.float32), 40), {"BLOCK": 16}


@triton.jit
def divide_by_zero_kernel(x_ptr, y_ptr, out_ptr, BLOCK: tl.constexpr):
    """BUG: y may hold 0. out = x // y; one program owns all of it."""
    offs = tl.arange(0, BLOCK)
    tl.store(out_ptr + offs, tl.load(x_ptr + offs) // tl.load(y_ptr + offs))


@triton.jit
def divide_or_zero_kernel(x_ptr, y_ptr, out_ptr, BLOCK: tl.constexpr):
    """out = x // y, and 0 where y is 0; one program owns all of it."""
    offs = tl.arange(0, BLOCK)
    y = tl.load(y_ptr + offs)
    quotient = tl.load(x_ptr + offs) // y
    tl.store(out_ptr + offs, tl.where(y == 0, 0, quotient))


@triton.jit
def wheel_of_zero_kernel(x_ptr, out_ptr, size, BLOCK: tl.constexpr):
    """BUG: size may be 0, and % 0 decides an address. out[i] = x[i mod size]; one program owns all of it."""
    offs = tl.arange(0, BLOCK)
    tl.store(out_ptr + offs, tl.load(x_ptr + offs % size))


@triton.jit
def wheel_kernel(x_ptr, out_ptr, size, BLOCK: tl.constexpr):
    """out[i] = x[i mod size], 0 for a size of 0; one program owns all of it."""
    offs = tl.arange(0, BLOCK)
    mask = (offs < BLOCK) & (size > 0)
    tl.store(out_ptr + offs, tl.load(x_ptr + offs % tl.maximum(size, 1), mask=mask, other=0))


@triton.jit
def folded_floor_kernel(out_ptr, A: tl.constexpr):
    """BUG: constexprs follow Python, tensors C: this is -2, and the tensor's -1. out = A // 4 as the kernels beside it compute it."""
    tl.store(out_ptr, A // 4)


@triton.jit
def unfolded_floor_kernel(out_ptr, A: tl.constexpr):
    """out = A // 4 as the kernels beside it compute it."""
    tl.store(out_ptr, tl.full((), A, tl.int32) // 4)


@triton.jit
def bind_late_kernel(out_ptr, cond):
    """BUG: one branch never sets the value. out = 1 when cond, else 2; one program owns it."""
    value = 2
    for i in range(0, cond):
        value = i
    tl.store(out_ptr, i + value)


@triton.jit
def bind_first_kernel(out_ptr, cond):
    """out = twice the last trip's number, or 2 without trips; one program owns it."""
    value = 1
    for i in range(0, cond):
        value = i
    tl.store(out_ptr, value + value)


FAULTS = [
    Fault("// of negatives", "R1", floor_div_trunc_kernel, floor_div_kernel, signed, why=MEANT, shows="a reference at negative inputs"),
    Fault("% of negatives", "R1", mod_sign_kernel, mod_kernel, signed, why=MEANT, shows="a reference at negative inputs"),
    Fault("cdiv of negatives", "R1", ceil_div_negative_kernel, ceil_div_kernel, signed, why=MEANT, shows="a reference at -8 and -5"),
    Fault("uint8 sum", "R1", narrow_sum_kernel, wide_sum_kernel, bytes_to_sum, why=MEANT, shows="the remark on the wrap; a reference"),
    Fault(
        *("store narrows to int8", "R1", store_narrows_kernel, store_narrows_kernel, int8_products(torch.int8)),
        right_launch=int8_products(torch.int32),
        why=MEANT,
        shows="arith.trunci in kit.build(...).ttir; a reference",
    ),
    Fault("outer product by accident", "R1", outer_by_accident_kernel, inner_kernel, two_rows, why=MEANT, shows="a reference"),
    Fault(
        *("// of a constexpr", "R1", folded_floor_kernel, unfolded_floor_kernel, lambda: ((1,), (ghost(1, torch.int32),), {"A": -7})),
        why=MEANT,
        shows="kit.build(...).ttir beside the tensor's",
    ),
    Fault(
        *("loop variable after the loop", "R1", counter_after_loop_kernel, last_index_kernel),
        *(lambda: ((1,), (ghost(5, torch.int32), ghost(1, torch.int32), 5), {}), "undefined value", "wrong", ""),
    ),
    Fault(
        *("loop variable in a sum", "R1", bind_late_kernel, bind_first_kernel, lambda: ((1,), (ghost(1, torch.int32), 3), {})),
        *("undefined value", "wrong", ""),
    ),
    Fault(
        *("& before <", "R1", mask_precedence_kernel, mask_in_brackets_kernel, all_but_the_first),
        *("never written", "fragile", "tl.store"),
    ),
    Fault(
        *("integer / 0", "R1", divide_by_zero_kernel, divide_or_zero_kernel),
        lambda: ((1,), (numbers([1, 2, 3, 4]), numbers([1, 0, 3, 0]), filled((4,), dtype=torch.int32)), {"BLOCK": 4}),
        *("division by zero", "wrong", "//"),
    ),
    Fault(
        *("% 0 in an address", "R1", wheel_of_zero_kernel, wheel_kernel),
        *(lambda: ((1,), (ghost(16, torch.float32), ghost(16, torch.float32), 0), {"BLOCK": 16}), "division by zero", "wrong", "%"),
    ),
]
