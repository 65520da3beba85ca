"""R10: numbers that are defined and too far from the truth. None of these is a hazard of the launch: paper sees none of them."""

from __future__ import annotations

import torch
import triton
import triton.language as tl

from kit.tests.faults.fault_case import Fault, filled, normal

ROUNDING = "every operation is defined and rounds as it should; only a reference in higher precision tells that too much is lost"


@triton.jit
def sum_fp16_kernel(x_ptr, out_ptr, STEPS: tl.constexpr, BLOCK: tl.constexpr):
    """BUG: the accumulator is fp16 and stalls at 2048. out = the sum of x; one program owns it."""
    acc = tl.zeros((BLOCK,), tl.float16)
    for step in range(STEPS):
        acc += tl.load(x_ptr + step * BLOCK + tl.arange(0, BLOCK))
    tl.store(out_ptr, tl.sum(acc.to(tl.float32), axis=0))


@triton.jit
def sum_fp32_kernel(x_ptr, out_ptr, STEPS: tl.constexpr, BLOCK: tl.constexpr):
    """out = the sum of x; one program owns it."""
    acc = tl.zeros((BLOCK,), tl.float32)
    for step in range(STEPS):
        acc += tl.load(x_ptr + step * BLOCK + tl.arange(0, BLOCK))
    tl.store(out_ptr, tl.sum(acc, axis=0))


@triton.jit
def squares_fp16_kernel(x_ptr, out_ptr, BLOCK: tl.constexpr):
    """BUG: squares overflow in fp16. out = the sum of x * x; one program owns it."""
    x = tl.load(x_ptr + tl.arange(0, BLOCK))
    tl.store(out_ptr, tl.sum(x * x, axis=0).to(tl.float32))


@triton.jit
def squares_fp32_kernel(x_ptr, out_ptr, BLOCK: tl.constexpr):
    """out = the sum of x * x; one program owns it."""
    x = tl.load(x_ptr + tl.arange(0, BLOCK)).to(tl.float32)
    tl.store(out_ptr, tl.sum(x * x, axis=0))


@triton.jit
def softmax_of_nothing_kernel(x_ptr, out_ptr, BLOCK: tl.constexpr):
    """BUG: a row of -inf gives nan. out = softmax(x), 0 for a row without a finite element; one program owns it."""
    offs = tl.arange(0, BLOCK)
    x = tl.load(x_ptr + offs)
    e = tl.exp(x - tl.max(x, axis=0))
    tl.store(out_ptr + offs, e / tl.sum(e, axis=0))


@triton.jit
def softmax_kernel(x_ptr, out_ptr, BLOCK: tl.constexpr):
    """out = softmax(x), 0 for a row without a finite element; one program owns it."""
    offs = tl.arange(0, BLOCK)
    x = tl.load(x_ptr + offs)
    top = tl.max(x, axis=0)
    e = tl.exp(x - tl.where(top == -float("inf"), 0.0, top))
    total = tl.sum(e, axis=0)
    tl.store(out_ptr + offs, e / tl.where(total == 0, 1.0, total))


@triton.jit
def softcap_exp_kernel(x_ptr, out_ptr, cap, BLOCK: tl.constexpr):
    """BUG: inf / inf for large x. out = cap * tanh(x / cap); one program owns it."""
    offs = tl.arange(0, BLOCK)
    s = tl.load(x_ptr + offs) / cap
    p, q = tl.exp(s), tl.exp(-s)
    tl.store(out_ptr + offs, cap * (p - q) / (p + q))


@triton.jit
def softcap_kernel(x_ptr, out_ptr, cap, BLOCK: tl.constexpr):
    """out = cap * tanh(x / cap); one program owns it."""
    offs = tl.arange(0, BLOCK)
    s = tl.load(x_ptr + offs) / cap
    q = tl.exp(-2 * tl.abs(s))
    tl.store(out_ptr + offs, cap * tl.where(s < 0, -1.0, 1.0) * (1 - q) / (1 + q))


@triton.jit
def variance_one_pass_kernel(x_ptr, out_ptr, BLOCK: tl.constexpr):
    """BUG: E[x^2] - E[x]^2 cancels for a large mean. out = the variance of x; one program owns it."""
    x = tl.load(x_ptr + tl.arange(0, BLOCK))
    mean = tl.sum(x, axis=0) / BLOCK
    tl.store(out_ptr, tl.sum(x * x, axis=0) / BLOCK - mean * mean)


@triton.jit
def variance_two_pass_kernel(x_ptr, out_ptr, BLOCK: tl.constexpr):
    """out = the variance of x; one program owns it."""
    x = tl.load(x_ptr + tl.arange(0, BLOCK))
    d = x - tl.sum(x, axis=0) / BLOCK
    tl.store(out_ptr, tl.sum(d * d, axis=0) / BLOCK)


@triton.jit
def product_tf32_kernel(a_ptr, b_ptr, out_ptr, BLOCK: tl.constexpr):
    """BUG: tl.dot rounds fp32 to tf32 unless told. out = a @ b in fp32; one program owns it."""
    offs = tl.arange(0, BLOCK)
    tile = offs[:, None] * BLOCK + offs[None, :]
    tl.store(out_ptr + tile, tl.dot(tl.load(a_ptr + tile), tl.load(b_ptr + tile)))


@triton.jit
def product_fp32_kernel(a_ptr, b_ptr, out_ptr, BLOCK: tl.constexpr):
    """out = a @ b in fp32; one program owns it."""
    offs = tl.arange(0, BLOCK)
    tile = offs[:, None] * BLOCK + offs[None, :]
    tl.store(out_ptr + tile, tl.dot(tl.load(a_ptr + tile), tl.load(b_ptr + tile), input_precision="ieee"))


def one(x, outputs=1):
    return lambda: ((1,), (x(), filled((outputs,))), {"BLOCK": 16})


def miss(name, faulty, right, launch, shows):
    return Fault(name, "R10", faulty, right, launch, why=ROUNDING, shows=shows)


FAULTS = [
    miss(
        *("a sum in fp16", sum_fp16_kernel, sum_fp32_kernel),
        lambda: ((1,), (filled((16 * 64,), 1, torch.float16), filled((1,))), {"STEPS": 64, "BLOCK": 16}),
        "a reference in fp64 at 2,049 additions a lane",
    ),
    miss(
        *("squares in fp16", squares_fp16_kernel, squares_fp32_kernel, one(lambda: filled((16,), 100, torch.float16))),
        "a reference at elements of 256 and more",
    ),
    miss(
        *("a softmax of -inf", softmax_of_nothing_kernel, softmax_kernel, one(lambda: filled((16,), -float("inf")), 16)),
        "a reference at a fully masked row",
    ),
    miss(
        *("a tanh by exponentials", softcap_exp_kernel, softcap_kernel),
        lambda: ((1,), (filled((16,), 1e4), filled((16,)), 50.0), {"BLOCK": 16}),
        "a reference at |x| of 10,000",
    ),
    miss(
        *("a variance in one pass", variance_one_pass_kernel, variance_two_pass_kernel, one(lambda: normal(16) + 1e4)),
        "a reference in fp64 at a mean of 10,000",
    ),
    miss(
        *("a product in tf32", product_tf32_kernel, product_fp32_kernel),
        lambda: ((1,), (normal(16, 16), normal(16, 16), filled((16, 16))), {"BLOCK": 16}),
        "tf32 in kit.build(...).ttir; a reference in fp64",
    ),
]
