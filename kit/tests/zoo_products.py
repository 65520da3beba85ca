"""Zoo: kernels built on `tl.dot`: matrix products in each precision, and attention."""

from __future__ import annotations

import torch
import triton
import triton.language as tl

from kit.tests.zoo_case import Case, blank, integers, normal, short


@triton.jit
def matmul_kernel(
    a_ptr, b_ptr, out_ptr, M, N, K, stride_am, stride_ak, stride_bk, stride_bn, stride_om, stride_on,
    PRECISION: tl.constexpr, ACC: tl.constexpr, BLOCK_M: tl.constexpr, BLOCK_N: tl.constexpr, BLOCK_K: tl.constexpr,
):  # fmt: skip
    """out = a @ b, accumulated in ACC; a program owns a tile of out."""
    offs_m = tl.program_id(0) * BLOCK_M + tl.arange(0, BLOCK_M)
    offs_n = tl.program_id(1) * BLOCK_N + tl.arange(0, BLOCK_N)
    offs_k = tl.arange(0, BLOCK_K)
    acc = tl.zeros((BLOCK_M, BLOCK_N), dtype=ACC)
    for k in range(tl.cdiv(K, BLOCK_K)):
        mask_k = offs_k < K - k * BLOCK_K
        a_ptrs = a_ptr + offs_m[:, None] * stride_am + (k * BLOCK_K + offs_k)[None, :] * stride_ak
        b_ptrs = b_ptr + (k * BLOCK_K + offs_k)[:, None] * stride_bk + offs_n[None, :] * stride_bn
        a = tl.load(a_ptrs, mask=(offs_m[:, None] < M) & mask_k[None, :], other=0.0)  # adds nothing to the product
        b = tl.load(b_ptrs, mask=mask_k[:, None] & (offs_n[None, :] < N), other=0.0)
        acc = tl.dot(a, b, acc, input_precision=PRECISION, out_dtype=ACC)
    out_ptrs = out_ptr + offs_m[:, None] * stride_om + offs_n[None, :] * stride_on
    tl.store(out_ptrs, acc.to(out_ptr.dtype.element_ty), mask=(offs_m[:, None] < M) & (offs_n[None, :] < N))


# Tolerances of float32 products: tf32 keeps 10 bits of the fraction, tf32x3 and ieee all of them.
PRECISIONS = {"ieee": 1e-6, "tf32": 1e-3, "tf32x3": 2e-6}


def matmul_case(dtype, shape, out_dtype, precision="ieee"):
    m, n, k = shape

    def make(g):
        if dtype is torch.int8:
            return {"a": integers(g, -128, 128, m, k, dtype=dtype), "b": integers(g, -128, 128, k, n, dtype=dtype)}
        return {"a": normal(g, m, k, dtype=dtype), "b": normal(g, n, k, dtype=dtype).T}

    def run(a, b):
        out = blank(m, n + 3, like=a, dtype=out_dtype)
        acc = tl.int32 if dtype is torch.int8 else tl.float32
        grid = (triton.cdiv(m, 32), triton.cdiv(n, 32))
        strides = (*a.stride(), *b.stride(), *out.stride())
        matmul_kernel[grid](a, b, out, m, n, k, *strides, PRECISION=precision, ACC=acc, BLOCK_M=32, BLOCK_N=32, BLOCK_K=32)
        return {"out": out}

    def reference(a, b):
        out = a.double() @ b.double()
        return {"out": torch.cat([out.to(out_dtype), blank(m, 3, like=a, dtype=out_dtype)], dim=1)}

    name = f"matmul/{short(dtype)}{f' {precision}' if dtype is torch.float32 else ''} to {short(out_dtype)}/{m}x{n}x{k}"
    tolerance = PRECISIONS[precision] if dtype is torch.float32 else None
    if dtype.itemsize == 1 and dtype.is_floating_point:
        tolerance = 1e-3  # the tensor core adds fp8 products in fewer bits than float32 has
    return Case(name, make, run, reference, tolerance)


@triton.jit
def batched_dot_kernel(a_ptr, b_ptr, out_ptr, B: tl.constexpr, M: tl.constexpr):
    """out[i] = a[i] @ b[i], all of the batch in one three-dimensional dot."""
    offs_b, offs_m, offs_n = tl.arange(0, B)[:, None, None], tl.arange(0, M)[None, :, None], tl.arange(0, M)[None, None, :]
    offs = offs_b * M * M + offs_m * M + offs_n
    tl.store(out_ptr + offs, tl.dot(tl.load(a_ptr + offs), tl.load(b_ptr + offs)))


def batched_dot_case():
    def make(g):
        return {"a": normal(g, 4, 16, 16, dtype=torch.float16), "b": normal(g, 4, 16, 16, dtype=torch.float16)}

    def run(a, b):
        out = blank(4, 16, 16, like=a, dtype=torch.float32)
        batched_dot_kernel[(1,)](a, b, out, B=4, M=16)
        return {"out": out}

    def reference(a, b):
        return {"out": (a.double() @ b.double()).float()}

    return Case("batched dot/float16", make, run, reference)


@triton.jit
def attention_kernel(
    q_ptr, k_ptr, v_ptr, out_ptr, scale, N, D: tl.constexpr, CAUSAL: tl.constexpr, BLOCK_M: tl.constexpr, BLOCK_N: tl.constexpr
):
    """out[h, m] = softmax(q[h, m] · k[h]ᵀ · scale) · v[h], over earlier positions only when CAUSAL; a program owns BLOCK_M queries."""
    pid_m, pid_h = tl.program_id(0), tl.program_id(1)
    offs_m = pid_m * BLOCK_M + tl.arange(0, BLOCK_M)
    offs_d = tl.arange(0, D)
    base = pid_h * N * D
    q = tl.load(q_ptr + base + offs_m[:, None] * D + offs_d[None, :], mask=offs_m[:, None] < N, other=0.0)
    top = tl.full((BLOCK_M,), float("-inf"), dtype=tl.float32)
    total = tl.zeros((BLOCK_M,), dtype=tl.float32)
    acc = tl.zeros((BLOCK_M, D), dtype=tl.float32)
    end = tl.minimum((pid_m + 1) * BLOCK_M, N) if CAUSAL else N
    for start in range(0, end, BLOCK_N):
        offs_n = start + tl.arange(0, BLOCK_N)
        mask_n = offs_n < N
        k = tl.load(k_ptr + base + offs_n[None, :] * D + offs_d[:, None], mask=mask_n[None, :], other=0.0)
        v = tl.load(v_ptr + base + offs_n[:, None] * D + offs_d[None, :], mask=mask_n[:, None], other=0.0)
        scores = tl.dot(q, k) * scale
        seen = mask_n[None, :] & (offs_m[:, None] >= offs_n[None, :]) if CAUSAL else mask_n[None, :]
        scores = tl.where(seen, scores, float("-inf"))
        new_top = tl.maximum(top, tl.max(scores, axis=1))
        p = tl.exp(scores - new_top[:, None])
        shrink = tl.exp(top - new_top)
        total = total * shrink + tl.sum(p, axis=1)
        acc = acc * shrink[:, None] + tl.dot(p.to(v.dtype), v)
        top = new_top
    out_ptrs = out_ptr + base + offs_m[:, None] * D + offs_d[None, :]
    tl.store(out_ptrs, (acc / total[:, None]).to(out_ptr.dtype.element_ty), mask=offs_m[:, None] < N)


def attention_case(dtype, n, causal):
    heads, d = 2, 32

    def make(g):
        return {name: normal(g, heads, n, d, dtype=dtype) for name in ("q", "k", "v")}

    def run(q, k, v):
        out = blank(heads, n, d, like=q)
        attention_kernel[(triton.cdiv(n, 32), heads)](q, k, v, out, d**-0.5, n, D=d, CAUSAL=causal, BLOCK_M=32, BLOCK_N=32)
        return {"out": out}

    def reference(q, k, v):
        scores = q.double() @ k.double().transpose(1, 2) * d**-0.5
        if causal:
            scores = scores.masked_fill(torch.ones(n, n, dtype=torch.bool).triu(1), float("-inf"))
        return {"out": (scores.softmax(dim=-1) @ v.double()).to(dtype)}

    # The probabilities are rounded to the 16-bit type before the second product.
    tolerance = {torch.float16: 5e-4, torch.bfloat16: 4e-3}[dtype]
    return Case(f"attention/{short(dtype)}/{n}{' causal' if causal else ''}", make, run, reference, tolerance)


SHAPES = ((1, 1, 1), (33, 65, 31), (64, 32, 128), (1, 127, 129))

CASES = [
    *(matmul_case(torch.float32, shape, torch.float32, "ieee") for shape in SHAPES),
    *(matmul_case(torch.float32, (33, 65, 31), torch.float32, precision) for precision in ("tf32", "tf32x3")),
    *(matmul_case(torch.float16, shape, torch.float32) for shape in SHAPES[1:]),
    matmul_case(torch.float16, (33, 65, 31), torch.float16),
    *(matmul_case(torch.bfloat16, shape, torch.float32) for shape in SHAPES[1:]),
    matmul_case(torch.bfloat16, (1, 127, 129), torch.bfloat16),
    matmul_case(torch.int8, (33, 65, 64), torch.int32),
    matmul_case(torch.float8_e4m3fn, (33, 65, 64), torch.float32),
    matmul_case(torch.float8_e5m2, (64, 32, 128), torch.float32),
    batched_dot_case(),
    attention_case(torch.float16, 70, False),
    attention_case(torch.bfloat16, 70, True),
    attention_case(torch.float16, 1, True),
]
