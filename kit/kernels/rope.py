"""Rotary embedding: each head's first and second half are turned by an angle that depends on the token.

`rope_reference`  the truth, in float32
`rope`            a program turns a tile of tokens and heads, and reads each cosine and sine once

A program a head, which reads them anew for each, is the faulty version: lesson 08 has it.
"""

import torch
import triton
import triton.language as tl


def rope_reference(x, cos, sin):
    """x (tokens, heads, size), cos and sin (tokens, size // 2); y in x's dtype, computed in float32."""
    first, second = x.float().chunk(2, dim=-1)
    cos, sin = cos.float()[:, None], sin.float()[:, None]
    return torch.cat((first * cos - second * sin, second * cos + first * sin), dim=-1).to(x.dtype)


@triton.jit
def rope_kernel(
    x_ptr,  # (tokens, heads, 2 * half)
    cos_ptr,  # (tokens, half), contiguous
    sin_ptr,  # (tokens, half), contiguous
    y_ptr,  # (tokens, heads, 2 * half), contiguous
    stride_xt,
    stride_xh,
    n_tokens,
    n_heads,
    half,  # elements of half a head
    BLOCK_T: tl.constexpr,  # tokens a program owns
    BLOCK_H: tl.constexpr,  # heads a program owns
    BLOCK_D: tl.constexpr,  # half or more
):
    """y = x turned by (cos, sin); one program owns BLOCK_H heads of BLOCK_T tokens."""
    pid_t = tl.program_id(0).to(tl.int64)
    pid_h = tl.program_id(1)

    offs_t = pid_t * BLOCK_T + tl.arange(0, BLOCK_T)
    offs_h = pid_h * BLOCK_H + tl.arange(0, BLOCK_H)
    offs_d = tl.arange(0, BLOCK_D)

    mask_td = (offs_t < n_tokens)[:, None, None] & (offs_d < half)[None, None, :]  # [BLOCK_T, 1, BLOCK_D]
    mask = mask_td & (offs_h < n_heads)[None, :, None]  # [BLOCK_T, BLOCK_H, BLOCK_D]
    offs_cos = offs_t[:, None, None] * half + offs_d[None, None, :]
    x_ptrs = x_ptr + offs_t[:, None, None] * stride_xt + offs_h[None, :, None] * stride_xh + offs_d[None, None, :]
    y_ptrs = y_ptr + (offs_t[:, None, None] * n_heads + offs_h[None, :, None]) * 2 * half + offs_d[None, None, :]

    cos = tl.load(cos_ptr + offs_cos, mask=mask_td).to(tl.float32)
    sin = tl.load(sin_ptr + offs_cos, mask=mask_td).to(tl.float32)
    first = tl.load(x_ptrs, mask=mask).to(tl.float32)
    second = tl.load(x_ptrs + half, mask=mask).to(tl.float32)

    tl.store(y_ptrs, first * cos - second * sin, mask=mask)
    tl.store(y_ptrs + half, second * cos + first * sin, mask=mask)


def rope_tile(tokens, heads, size):
    """(BLOCK_T, BLOCK_H) for `rope`: 1,024 elements a program in decode, so that there are programs enough, 4,096 from 512 tokens on."""
    elements = (1024 if tokens < 512 else 4096) // triton.next_power_of_2(size)
    BLOCK_H = min(triton.next_power_of_2(heads), max(1, elements))
    BLOCK_T = max(1, elements // BLOCK_H)
    return BLOCK_T, BLOCK_H


def rope(x, cos, sin, tile=None):
    """The rotary embedding in tiles of (BLOCK_T, BLOCK_H); the last axis of x, and cos and sin, are contiguous."""
    tokens, heads, size = x.shape
    y = torch.empty(x.shape, dtype=x.dtype, device=x.device)
    BLOCK_T, BLOCK_H = tile or rope_tile(tokens, heads, size)
    BLOCK_D = triton.next_power_of_2(size // 2)
    grid = (triton.cdiv(tokens, BLOCK_T), triton.cdiv(heads, BLOCK_H))
    rope_kernel[grid](
        *(x, cos, sin, y, x.stride(0), x.stride(1), tokens, heads, size // 2),
        **{"BLOCK_T": BLOCK_T, "BLOCK_H": BLOCK_H, "BLOCK_D": BLOCK_D, "num_warps": 4},
    )
    return y
