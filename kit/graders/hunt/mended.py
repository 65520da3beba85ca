"""The faulty suspects, each with its one fault mended: what an input must leave right to count as one that shows the fault."""

import torch
import triton
import triton.language as tl

from kit.graders.ex08_rule import rule
from kit.graders.hunt.rows import softmax_rows_kernel


@triton.jit(do_not_specialize=["pos", "n"])
def last_tokens_kernel(ring_ptr, out_ptr, pos, n, size, BLOCK: tl.constexpr):
    """out = the last n tokens of a ring buffer, the oldest first; + size keeps the dividend from being negative."""
    offs = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    mask = offs < n
    slots = (pos - n + size + offs) % size
    tl.store(out_ptr + offs, tl.load(ring_ptr + slots, mask=mask), mask=mask)


def last_tokens(ring, pos, n, out):
    """Write the n tokens in front of slot pos to out."""
    grid = (triton.cdiv(n, 256),)
    last_tokens_kernel[grid](ring, out, pos, n, ring.numel(), BLOCK=256)


@triton.jit(do_not_specialize=["xnumel"])
def bias_relu_kernel(in_ptr0, in_ptr1, out_ptr0, xnumel, ks0, XBLOCK: tl.constexpr):
    """out = max(x + bias, 0), ks0 columns; a program owns XBLOCK elements of x."""
    xindex = tl.program_id(0).to(tl.int64) * XBLOCK + tl.arange(0, XBLOCK)
    xmask = xindex < xnumel
    tmp0 = tl.load(in_ptr0 + xindex, xmask)
    tmp1 = tl.load(in_ptr1 + xindex % ks0, xmask)
    tl.store(out_ptr0 + xindex, tl.maximum(tmp0 + tmp1, 0.0), xmask)


def bias_relu(x, bias, out):
    """Write max(x + bias, 0) to out."""
    grid = (triton.cdiv(x.numel(), 1024),)
    bias_relu_kernel[grid](x, bias, out, x.numel(), bias.numel(), XBLOCK=1024)


def softmax_rows(x, out):
    """Write softmax(x) to out, with warps enough to hold the row in registers."""
    n_rows, n_cols = x.shape
    BLOCK = triton.next_power_of_2(n_cols)
    warps = min(16, max(4, BLOCK // 1024))
    softmax_rows_kernel[(n_rows,)](x, out, x.stride(0), out.stride(0), n_cols, BLOCK, num_warps=warps)


@triton.jit(do_not_specialize=["n", "length"])
def mask_tail_kernel(x_ptr, out_ptr, n, length, BLOCK: tl.constexpr):
    """out = x up to length and -inf from there on; a program owns BLOCK elements."""
    offs = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    mask = offs < n
    x = tl.load(x_ptr + offs, mask=mask)
    tl.store(out_ptr + offs, tl.where(offs < length, x, float("-inf")), mask=mask)


def mask_tail(x, length, out):
    """Write the scores x to out, -inf from length on."""
    grid = (triton.cdiv(x.numel(), 1024),)
    mask_tail_kernel[grid](x, out, x.numel(), length, BLOCK=1024)


@triton.jit
def smooth_rows_kernel(x_ptr, tmp_ptr, out_ptr, n_cols, BLOCK: tl.constexpr):
    """out[i] = (e[i - 1] + e[i]) / 2 with e = exp(x) and e[-1] = 0; one program owns one row."""
    row = tl.program_id(0).to(tl.int64) * n_cols
    offs = tl.arange(0, BLOCK)
    mask = offs < n_cols
    e = tl.exp(tl.load(x_ptr + row + offs, mask=mask))
    tl.store(tmp_ptr + row + offs, e, mask=mask)
    tl.debug_barrier()
    before = tl.load(tmp_ptr + row + offs - 1, mask=mask & (offs > 0), other=0.0)
    tl.store(out_ptr + row + offs, (before + e) / 2, mask=mask)


def smooth_rows(x, out):
    """Write exp(x), smoothed along the row, to out."""
    n_rows, n_cols = x.shape
    tmp = torch.empty(x.shape, dtype=x.dtype, device=x.device)
    BLOCK = triton.next_power_of_2(n_cols)
    warps = min(8, max(1, BLOCK // 256))
    smooth_rows_kernel[(n_rows,)](x, tmp, out, n_cols, BLOCK, num_warps=warps)


@triton.jit
def scale_heads_kernel(x_ptr, w_ptr, out_ptr, num_heads, n, BLOCK: tl.constexpr):
    """out[s, h, :] = x[s, h, :] * w[h]; heads on axis 0."""
    pid_h = tl.program_id(0).to(tl.int64)
    offs = tl.program_id(1) * BLOCK + tl.arange(0, BLOCK)
    mask = offs < n
    w = tl.load(w_ptr + pid_h % num_heads)
    x = tl.load(x_ptr + pid_h * n + offs, mask=mask)
    tl.store(out_ptr + pid_h * n + offs, x * w, mask=mask)


def scale_heads(x, w, out):
    """Write x * w to out."""
    num_seqs, num_heads, n = x.shape
    grid = (num_seqs * num_heads, triton.cdiv(n, 1024))
    scale_heads_kernel[grid](x, w, out, num_heads, n, BLOCK=1024)


@triton.jit
def read_blocks_kernel(cache_ptr, table_ptr, out_ptr, stride_cb, block_size, BLOCK: tl.constexpr):
    """out[i, :] = cache[table[i], :]; cast before the product."""
    row = tl.program_id(0).to(tl.int64)
    offs = tl.program_id(1) * BLOCK + tl.arange(0, BLOCK)
    mask = offs < block_size
    block = tl.load(table_ptr + row).to(tl.int64)
    x = tl.load(cache_ptr + block * stride_cb + offs, mask=mask)
    tl.store(out_ptr + row * block_size + offs, x, mask=mask)


def read_blocks(cache, table, out):
    """Write the blocks of cache that table names to out."""
    block_size = cache.shape[1]
    grid = (table.numel(), triton.cdiv(block_size, 1024))
    read_blocks_kernel[grid](cache, table, out, cache.stride(0), block_size, BLOCK=1024)


@triton.jit(do_not_specialize=["rows"])
def gate_heads_kernel(x_ptr, g_ptr, out_ptr, rows, size, BLOCK_M: tl.constexpr, BLOCK: tl.constexpr):
    """out[t, h, :] = x[t, h, :] * g[t, h]; one program owns BLOCK_M heads, of one token or of several."""
    offs_m = tl.program_id(0).to(tl.int64) * BLOCK_M + tl.arange(0, BLOCK_M)
    offs = tl.arange(0, BLOCK)
    mask = (offs_m < rows)[:, None] & (offs < size)[None, :]
    g = tl.load(g_ptr + offs_m, mask=offs_m < rows)
    tile = offs_m[:, None] * size + offs[None, :]
    tl.store(out_ptr + tile, tl.load(x_ptr + tile, mask=mask) * g[:, None], mask=mask)


def gate_heads(x, g, out):
    """Write x * g to out; the tile is small where tokens are few."""
    num_tokens, num_heads, size = x.shape
    BLOCK = triton.next_power_of_2(size)
    BLOCK_M = max(1, rule(num_tokens, num_heads, size) // BLOCK)
    rows = num_tokens * num_heads
    gate_heads_kernel[(triton.cdiv(rows, BLOCK_M),)](x, g, out, rows, size, BLOCK_M, BLOCK)


@triton.jit
def gate_rows_kernel(gate_ptr, up_ptr, out_ptr, stride_gm, stride_um, stride_om, n_cols, BLOCK: tl.constexpr):
    """out = gate * sigmoid(gate) * up; each pointer has its own stride."""
    row = tl.program_id(0).to(tl.int64)
    offs = tl.program_id(1) * BLOCK + tl.arange(0, BLOCK)
    mask = offs < n_cols
    gate = tl.load(gate_ptr + row * stride_gm + offs, mask=mask)
    up = tl.load(up_ptr + row * stride_um + offs, mask=mask)
    tl.store(out_ptr + row * stride_om + offs, gate * tl.sigmoid(gate) * up, mask=mask)


def gate_rows(gate, up, out):
    """Write silu(gate) * up to out."""
    n_rows, n_cols = gate.shape
    grid = (n_rows, triton.cdiv(n_cols, 1024))
    strides = (gate.stride(0), up.stride(0), out.stride(0))
    gate_rows_kernel[grid](gate, up, out, *strides, n_cols, BLOCK=1024)


@triton.jit
def mean_square_kernel(x_ptr, out_ptr, stride_xm, n_cols, BLOCK: tl.constexpr):
    """out = mean(x^2) along the row, squared in float32; one program owns one row."""
    row = tl.program_id(0).to(tl.int64)
    acc = tl.zeros((BLOCK,), tl.float32)
    for start in range(0, n_cols, BLOCK):
        offs = start + tl.arange(0, BLOCK)
        x = tl.load(x_ptr + row * stride_xm + offs, mask=offs < n_cols, other=0.0).to(tl.float32)
        acc += x * x
    tl.store(out_ptr + row, tl.sum(acc, axis=0) / n_cols)


def mean_square(x, out):
    """Write the mean square of each row of x to out."""
    n_rows, n_cols = x.shape
    mean_square_kernel[(n_rows,)](x, out, x.stride(0), n_cols, BLOCK=1024)
