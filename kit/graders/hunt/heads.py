"""Suspects that own heads and blocks. Their text is that of exercise 15's cells, and a test holds the two together."""

import triton
import triton.language as tl


@triton.jit
def scale_heads_kernel(
    x_ptr,  # float32, (num_seqs, num_heads, n)
    w_ptr,  # float32, (num_heads,)
    out_ptr,  # float32, (num_seqs, num_heads, n)
    num_heads,
    n,
    BLOCK: tl.constexpr,
):
    """out[s, h, :] = x[s, h, :] * w[h]; a program owns BLOCK elements of one head."""
    pid_h = tl.program_id(1).to(tl.int64)
    offs = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    mask = offs < n

    w = tl.load(w_ptr + pid_h % num_heads)
    x = tl.load(x_ptr + pid_h * n + offs, mask=mask)

    tl.store(out_ptr + pid_h * n + offs, x * w, mask=mask)


def scale_heads(x, w, out):
    """Write x * w to out, contiguous; 4,096 sequences of 128 heads of 65,536 at the most."""
    num_seqs, num_heads, n = x.shape
    grid = (triton.cdiv(n, 1024), num_seqs * num_heads)
    scale_heads_kernel[grid](x, w, out, num_heads, n, BLOCK=1024)


@triton.jit
def read_blocks_kernel(
    cache_ptr,  # float16, (num_blocks, block_size), blocks stride_cb apart
    table_ptr,  # int32, (n,), numbers of blocks
    out_ptr,  # float16, (n, block_size)
    stride_cb,
    block_size,
    BLOCK: tl.constexpr,
):
    """out[i, :] = cache[table[i], :]; a program owns BLOCK elements of one block."""
    row = tl.program_id(0).to(tl.int64)
    offs = tl.program_id(1) * BLOCK + tl.arange(0, BLOCK)
    mask = offs < block_size

    block = tl.load(table_ptr + row)
    start = (block * stride_cb).to(tl.int64)
    x = tl.load(cache_ptr + start + offs, mask=mask)

    tl.store(out_ptr + row * block_size + offs, x, mask=mask)


def read_blocks(cache, table, out):
    """Write the blocks that table names to out; up to 1,048,576 blocks of up to 65,536."""
    block_size = cache.shape[1]
    grid = (table.numel(), triton.cdiv(block_size, 1024))
    read_blocks_kernel[grid](cache, table, out, cache.stride(0), block_size, BLOCK=1024)


@triton.jit
def gate_heads_kernel(
    x_ptr,  # float16, (num_tokens, num_heads, size)
    g_ptr,  # float16, (num_tokens, num_heads)
    out_ptr,  # float16, (num_tokens, num_heads, size)
    num_heads,
    size,
    BLOCK: tl.constexpr,  # size or more
):
    """out[t, h, :] = x[t, h, :] * g[t, h]; one program owns one head of one token."""
    head = tl.program_id(0).to(tl.int64) * num_heads + tl.program_id(1)
    offs = tl.arange(0, BLOCK)
    mask = offs < size

    g = tl.load(g_ptr + head)
    x = tl.load(x_ptr + head * size + offs, mask=mask)

    tl.store(out_ptr + head * size + offs, x * g, mask=mask)


def gate_heads(x, g, out):
    """Write x * g to out, contiguous; 1 to 131,072 tokens of up to 128 heads of up to 256."""
    num_tokens, num_heads, size = x.shape
    BLOCK = triton.next_power_of_2(size)
    gate_heads_kernel[(num_tokens, num_heads)](x, g, out, num_heads, size, BLOCK, num_warps=1)
