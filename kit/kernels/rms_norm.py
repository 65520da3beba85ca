"""RMSNorm, y = x / sqrt(mean(x²) + eps) * w over rows.

`rms_norm_reference`  the truth, in float32
`rms_norm`            one program a row, read once into registers; several short rows a program
"""

import torch
import triton
import triton.language as tl


def rms_norm_reference(x, w, eps=1e-6):
    """y in x's dtype; x (..., n_cols), w (n_cols,). Squares, mean and product in float32."""
    x32 = x.float()
    return (x32 * torch.rsqrt(x32.pow(2).mean(-1, keepdim=True) + eps) * w.float()).to(x.dtype)


@triton.jit
def rms_norm_kernel(
    x_ptr,  # (n_rows, n_cols), rows stride_xm apart
    w_ptr,  # (n_cols,)
    y_ptr,  # (n_rows, n_cols), rows stride_ym apart
    stride_xm,
    stride_ym,
    n_rows,
    n_cols,
    eps,
    BLOCK_M: tl.constexpr,  # rows a program owns
    BLOCK_N: tl.constexpr,  # n_cols or more
):
    """y = x * rsqrt(mean(x²) + eps) * w; one program owns BLOCK_M whole rows."""
    pid = tl.program_id(0).to(tl.int64)

    offs_m = pid * BLOCK_M + tl.arange(0, BLOCK_M)
    offs_n = tl.arange(0, BLOCK_N)

    mask_n = offs_n < n_cols
    mask = (offs_m < n_rows)[:, None] & mask_n[None, :]  # [BLOCK_M, BLOCK_N]

    x = tl.load(x_ptr + offs_m[:, None] * stride_xm + offs_n[None, :], mask=mask, other=0.0).to(tl.float32)
    w = tl.load(w_ptr + offs_n, mask=mask_n, other=0.0).to(tl.float32)
    scale = tl.rsqrt(tl.sum(x * x, axis=1) / n_cols + eps)
    y = x * scale[:, None] * w[None, :]

    tl.store(y_ptr + offs_m[:, None] * stride_ym + offs_n[None, :], y, mask=mask)


def rms_norm(x, w, eps=1e-6):
    """RMSNorm over the last axis of x, up to 32,768 columns; the last axis of x is contiguous."""
    n_cols = x.shape[-1]
    rows = x.reshape(-1, n_cols)
    y = torch.empty_like(rows)
    BLOCK_N = triton.next_power_of_2(n_cols)
    BLOCK_M = max(1, 2048 // BLOCK_N)
    num_warps = min(16, max(4, BLOCK_M * BLOCK_N // 512))
    grid = (triton.cdiv(rows.shape[0], BLOCK_M),)
    rms_norm_kernel[grid](
        rows, w, y, rows.stride(0), y.stride(0), rows.shape[0], n_cols, eps, BLOCK_M=BLOCK_M, BLOCK_N=BLOCK_N, num_warps=num_warps
    )
    return y.view(x.shape)
