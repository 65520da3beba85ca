"""A matrix product, c = a @ b, in float16 or bfloat16 with float32 sums.

`matmul_reference`  torch.matmul
`matmul`            tiles in groups, so that programs that run together share rows and columns in the L2 cache
`matmul_tma`        the same, its tiles fetched by tensor descriptors (TMA on Hopper and newer)
"""

import torch
import triton
import triton.language as tl
from triton.tools.tensor_descriptor import TensorDescriptor

CONFIG = {"BLOCK_M": 128, "BLOCK_N": 256, "BLOCK_K": 64, "GROUP_M": 8, "num_warps": 8, "num_stages": 3}


def matmul_reference(a, b):
    """a @ b."""
    return torch.matmul(a, b)


@triton.jit
def tile_of(pid, n_tiles_m, n_tiles_n, GROUP_M: tl.constexpr):
    """(row, column) of the tile that program pid owns: GROUP_M rows of tiles at a time, column by column."""
    width = GROUP_M * n_tiles_n
    first_m = (pid // width) * GROUP_M
    rows = tl.minimum(n_tiles_m - first_m, GROUP_M)
    return first_m + (pid % width) % rows, (pid % width) // rows


@triton.jit
def matmul_kernel(
    a_ptr,  # (M, K)
    b_ptr,  # (K, N)
    c_ptr,  # (M, N), contiguous
    M,
    N,
    K,
    stride_am,
    stride_ak,
    stride_bk,
    stride_bn,
    BLOCK_M: tl.constexpr,
    BLOCK_N: tl.constexpr,
    BLOCK_K: tl.constexpr,
    GROUP_M: tl.constexpr,  # rows of tiles whose programs follow each other
):
    """c = a @ b; one program owns a BLOCK_M x BLOCK_N tile of c."""
    pid_m, pid_n = tile_of(tl.program_id(0), tl.cdiv(M, BLOCK_M), tl.cdiv(N, BLOCK_N), GROUP_M)

    # Rows past the end are read as earlier ones, and not stored: no mask in the loop for them.
    offs_m = ((pid_m * BLOCK_M + tl.arange(0, BLOCK_M)) % M).to(tl.int64)
    offs_n = ((pid_n * BLOCK_N + tl.arange(0, BLOCK_N)) % N).to(tl.int64)
    offs_k = tl.arange(0, BLOCK_K)
    a_ptrs = a_ptr + offs_m[:, None] * stride_am + offs_k[None, :] * stride_ak
    b_ptrs = b_ptr + offs_k[:, None] * stride_bk + offs_n[None, :] * stride_bn

    acc = tl.zeros([BLOCK_M, BLOCK_N], tl.float32)
    for k in range(0, tl.cdiv(K, BLOCK_K)):
        mask_k = offs_k < K - k * BLOCK_K
        a = tl.load(a_ptrs, mask=mask_k[None, :], other=0.0)
        b = tl.load(b_ptrs, mask=mask_k[:, None], other=0.0)
        acc = tl.dot(a, b, acc)
        a_ptrs += BLOCK_K * stride_ak
        b_ptrs += BLOCK_K * stride_bk

    offs_m = pid_m.to(tl.int64) * BLOCK_M + tl.arange(0, BLOCK_M)
    offs_n = pid_n * BLOCK_N + tl.arange(0, BLOCK_N)
    mask = (offs_m < M)[:, None] & (offs_n < N)[None, :]
    tl.store(c_ptr + offs_m[:, None] * N + offs_n[None, :], acc.to(c_ptr.dtype.element_ty), mask=mask)


@triton.jit
def matmul_tma_kernel(
    a_desc,  # (M, K), in tiles of BLOCK_M x BLOCK_K
    b_desc,  # (K, N), in tiles of BLOCK_K x BLOCK_N
    c_desc,  # (M, N), in tiles of BLOCK_M x BLOCK_N
    M,
    N,
    K,
    BLOCK_M: tl.constexpr,
    BLOCK_N: tl.constexpr,
    BLOCK_K: tl.constexpr,
    GROUP_M: tl.constexpr,
):
    """c = a @ b; one program owns a BLOCK_M x BLOCK_N tile of c. What a tile has past the edge reads as 0 and is not stored."""
    pid_m, pid_n = tile_of(tl.program_id(0), tl.cdiv(M, BLOCK_M), tl.cdiv(N, BLOCK_N), GROUP_M)
    start_m, start_n = pid_m * BLOCK_M, pid_n * BLOCK_N

    acc = tl.zeros([BLOCK_M, BLOCK_N], tl.float32)
    for k in range(0, tl.cdiv(K, BLOCK_K)):
        a = a_desc.load([start_m, k * BLOCK_K])
        b = b_desc.load([k * BLOCK_K, start_n])
        acc = tl.dot(a, b, acc)

    c_desc.store([start_m, start_n], acc.to(c_desc.dtype))


def matmul(a, b, config=None):
    """a @ b, for a (M, K) and b (K, N) of any strides."""
    (M, K), N = a.shape, b.shape[1]
    c = torch.empty(M, N, dtype=a.dtype, device=a.device)
    config = config or CONFIG
    grid = (triton.cdiv(M, config["BLOCK_M"]) * triton.cdiv(N, config["BLOCK_N"]),)
    matmul_kernel[grid](a, b, c, M, N, K, *a.stride(), *b.stride(), **config)
    return c


def matmul_tma(a, b, config=None):
    """a @ b, for contiguous a (M, K) and b (K, N) whose rows are multiples of 16 bytes."""
    (M, K), N = a.shape, b.shape[1]
    c = torch.empty(M, N, dtype=a.dtype, device=a.device)
    config = config or CONFIG
    BLOCK_M, BLOCK_N, BLOCK_K = (config[name] for name in ("BLOCK_M", "BLOCK_N", "BLOCK_K"))
    described = (
        TensorDescriptor.from_tensor(a, [BLOCK_M, BLOCK_K]),
        TensorDescriptor.from_tensor(b, [BLOCK_K, BLOCK_N]),
        TensorDescriptor.from_tensor(c, [BLOCK_M, BLOCK_N]),
    )
    grid = (triton.cdiv(M, BLOCK_M) * triton.cdiv(N, BLOCK_N),)
    matmul_tma_kernel[grid](*described, M, N, K, **config)
    return c
