"""Softmax over rows.

`softmax_reference`  the truth, in float32
`softmax`            one program a row, read once; the maximum is taken off first
"""

import torch
import triton
import triton.language as tl


def softmax_reference(x):
    """softmax over the last axis, in x's dtype, computed in float32."""
    return torch.softmax(x.float(), dim=-1).to(x.dtype)


@triton.jit
def softmax_kernel(
    x_ptr,  # (n_rows, n_cols), rows stride_xm apart
    y_ptr,  # (n_rows, n_cols), rows stride_ym apart
    stride_xm,
    stride_ym,
    n_rows,
    n_cols,
    BLOCK_M: tl.constexpr,  # rows a program owns
    BLOCK_N: tl.constexpr,  # n_cols or more
):
    """y = exp(x - max(x)) / sum(exp(x - max(x))); one program owns BLOCK_M whole rows."""
    pid = tl.program_id(0).to(tl.int64)

    offs_m = pid * BLOCK_M + tl.arange(0, BLOCK_M)
    offs_n = tl.arange(0, BLOCK_N)

    mask = (offs_m < n_rows)[:, None] & (offs_n < n_cols)[None, :]  # [BLOCK_M, BLOCK_N]

    x = tl.load(x_ptr + offs_m[:, None] * stride_xm + offs_n[None, :], mask=mask, other=float("-inf")).to(tl.float32)
    e = tl.exp(x - tl.max(x, axis=1)[:, None])
    y = e / tl.sum(e, axis=1)[:, None]

    tl.store(y_ptr + offs_m[:, None] * stride_ym + offs_n[None, :], y, mask=mask)


def softmax(x):
    """Softmax over the last axis of x, up to 32,768 columns; the last axis of x is contiguous."""
    n_cols = x.shape[-1]
    rows = x.reshape(-1, n_cols)
    y = torch.empty_like(rows)
    BLOCK_N = triton.next_power_of_2(n_cols)
    BLOCK_M = max(1, 2048 // BLOCK_N)
    num_warps = min(16, max(4, BLOCK_M * BLOCK_N // 512))
    grid = (triton.cdiv(rows.shape[0], BLOCK_M),)
    softmax_kernel[grid](rows, y, rows.stride(0), y.stride(0), rows.shape[0], n_cols, BLOCK_M=BLOCK_M, BLOCK_N=BLOCK_N, num_warps=num_warps)
    return y.view(x.shape)
