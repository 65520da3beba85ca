"""The kernels that regress_probes.py launches."""

import torch
import triton
import triton.language as tl
from triton.language.extra import libdevice


@triton.jit
def double_kernel(x_ptr, n, BLOCK: tl.constexpr):
    offs = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    tl.store(x_ptr + offs, 2 * tl.load(x_ptr + offs, mask=offs < n), mask=offs < n)


@triton.jit
def loop_kernel(x_ptr, n, BLOCK: tl.constexpr):
    total = 0.0
    for start in range(0, n, BLOCK):
        offs = start + tl.arange(0, BLOCK)
        total += tl.sum(tl.load(x_ptr + offs, mask=offs < n, other=0.0))
    tl.store(x_ptr, total)


@triton.autotune([triton.Config({"BLOCK": 8}), triton.Config({"BLOCK": 16})], key=["n"])
@triton.jit
def tuned_kernel(x_ptr, out_ptr, n, BLOCK: tl.constexpr):
    offs = tl.arange(0, BLOCK)
    tl.store(out_ptr + offs, 2 * tl.load(x_ptr + offs, mask=offs < n), mask=offs < n)


@triton.jit
def described_kernel(x_ptr, out_ptr, n, BLOCK: tl.constexpr):
    block = tl.make_tensor_descriptor(x_ptr, shape=[n], strides=[1], block_shape=[BLOCK]).load([0])
    tl.store(out_ptr + tl.arange(0, BLOCK), block)


@triton.jit
def rint_kernel(x_ptr, BLOCK: tl.constexpr):
    offs = tl.arange(0, BLOCK)
    tl.store(x_ptr + offs, libdevice.rint(tl.load(x_ptr + offs)))


@triton.jit
def wrong_kernel(x_ptr):
    tl.store(x_ptr, tl.arange(0, 3))  # 3 is no power of two


def fresh(kernel):
    """The same kernel with nothing compiled yet."""
    return triton.jit(kernel.fn)


def softplus_of_sum(x, y):
    return torch.nn.functional.softplus(x + y)
