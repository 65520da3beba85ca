"""Suspects that go through memory element by element. Their text is that of exercise 15's cells, and a test holds the two together."""

import triton
import triton.language as tl


@triton.jit(do_not_specialize=["pos", "n"])
def last_tokens_kernel(
    ring_ptr,  # int32, (size,)
    out_ptr,  # int32, (n,)
    pos,  # the slot that is written next, 0 to size - 1
    n,  # 1 to size
    size,
    BLOCK: tl.constexpr,
):
    """out = the last n tokens of a ring buffer, the oldest first; a program owns BLOCK of them."""
    offs = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    mask = offs < n

    slots = (pos - n + offs) % size
    tokens = tl.load(ring_ptr + slots, mask=mask)

    tl.store(out_ptr + offs, tokens, mask=mask)


def last_tokens(ring, pos, n, out):
    """Write the n tokens in front of slot pos to out. A ring has 1 to 65,536 slots."""
    grid = (triton.cdiv(n, 256),)
    last_tokens_kernel[grid](ring, out, pos, n, ring.numel(), BLOCK=256)


@triton.jit(do_not_specialize=["xnumel"])
def scale_columns_kernel(in_ptr0, in_ptr1, out_ptr0, xnumel, ks0, XBLOCK: tl.constexpr):
    """out = x * gamma, ks0 columns; a program owns XBLOCK elements of x."""
    xoffset = tl.program_id(0).to(tl.int64) * XBLOCK
    xindex = xoffset + tl.arange(0, XBLOCK)
    xmask = xindex < xnumel

    x0 = xindex % ks0
    tmp0 = tl.load(in_ptr0 + xindex, xmask)
    tmp1 = tl.load(in_ptr1 + x0, xmask)

    tl.store(out_ptr0 + xindex, tmp0 * tmp1, xmask)


def scale_columns(x, gamma, out):
    """Write x * gamma to out; x and out (rows, columns), gamma (columns,), contiguous."""
    grid = (triton.cdiv(x.numel(), 1024),)
    scale_columns_kernel[grid](x, gamma, out, x.numel(), gamma.numel(), XBLOCK=1024)


@triton.jit(do_not_specialize=["xnumel"])
def bias_relu_kernel(in_ptr0, in_ptr1, out_ptr0, xnumel, XBLOCK: tl.constexpr):
    """out = max(x + bias, 0); a program owns XBLOCK elements of x."""
    xoffset = tl.program_id(0).to(tl.int64) * XBLOCK
    xindex = xoffset + tl.arange(0, XBLOCK)
    xmask = xindex < xnumel

    x0 = xindex % 768
    tmp0 = tl.load(in_ptr0 + xindex, xmask)
    tmp1 = tl.load(in_ptr1 + x0, xmask)

    tl.store(out_ptr0 + xindex, tl.maximum(tmp0 + tmp1, 0.0), xmask)


def bias_relu(x, bias, out):
    """Write max(x + bias, 0) to out; x and out (rows, columns), bias (columns,), contiguous."""
    grid = (triton.cdiv(x.numel(), 1024),)
    bias_relu_kernel[grid](x, bias, out, x.numel(), XBLOCK=1024)


@triton.jit(do_not_specialize=["n"])
def mask_tail_kernel(
    x_ptr,  # float32, (n,)
    out_ptr,  # float32, (n,)
    n,
    length: tl.constexpr,  # the tokens of the sequence so far
    BLOCK: tl.constexpr,
):
    """out = x up to length and -inf from there on; a program owns BLOCK elements."""
    offs = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    mask = offs < n

    x = tl.load(x_ptr + offs, mask=mask)
    y = tl.where(offs < length, x, float("-inf"))

    tl.store(out_ptr + offs, y, mask=mask)


def mask_tail(x, length, out):
    """Write 1 to 65,536 scores to out, -inf from length on; length grows token by token."""
    grid = (triton.cdiv(x.numel(), 1024),)
    mask_tail_kernel[grid](x, out, x.numel(), length, BLOCK=1024)
