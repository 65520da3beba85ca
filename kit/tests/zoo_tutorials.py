"""Zoo: the operations of Triton's tutorials 02 to 05 and 09, in kernels of our own: persistent softmax, grouped matrix product, seeded
dropout, layer norm with locks in its backward pass, tensor descriptors."""

from __future__ import annotations

import torch
import triton
import triton.language as tl

from kit.tests.zoo_case import GUARD, Case, blank, normal, short
from kit.tests.zoo_elementwise import philox


@triton.jit
def persistent_softmax_kernel(x_ptr, out_ptr, stride_xm, stride_om, M, N, BLOCK: tl.constexpr, STAGES: tl.constexpr):
    """Every num_programs-th row, from row pid on: out = softmax(x)."""
    offs = tl.arange(0, BLOCK)
    mask = offs < N
    for m in tl.range(tl.program_id(0), M, tl.num_programs(0), num_stages=STAGES):
        x = tl.load(x_ptr + m * stride_xm + offs, mask=mask, other=-float("inf"))  # exp of it is 0
        top = tl.exp(x - tl.max(x, axis=0))
        tl.store(out_ptr + m * stride_om + offs, top / tl.sum(top, axis=0), mask=mask)


def persistent_softmax_case(m, n, programs):
    def run(x):
        out = blank(m, n, like=x)
        persistent_softmax_kernel[(programs,)](x, out, n, n, m, n, BLOCK=triton.next_power_of_2(n), STAGES=2)
        return {"out": out}

    name = f"persistent softmax/{m}x{n}/{programs}"
    return Case(name, lambda g: {"x": normal(g, m, n)}, run, lambda x: {"out": x.double().softmax(1).float()})


@triton.jit
def leaky_relu(x):
    return tl.where(x >= 0, x, 0.01 * x)


@triton.jit
def grouped_matmul_kernel(
    a_ptr, b_ptr, out_ptr, M, N, K, stride_am, stride_ak, stride_bk, stride_bn, stride_om, stride_on,
    BLOCK_M: tl.constexpr, BLOCK_N: tl.constexpr, BLOCK_K: tl.constexpr, GROUP: tl.constexpr, ACTIVATION: tl.constexpr,
):  # fmt: skip
    """out = act(a @ b); programs take GROUP rows of tiles column by column, and rows and columns past the end wrap round."""
    pid = tl.program_id(0)
    tiles_m, tiles_n = tl.cdiv(M, BLOCK_M), tl.cdiv(N, BLOCK_N)
    group, within = pid // (GROUP * tiles_n), pid % (GROUP * tiles_n)
    rows = min(tiles_m - group * GROUP, GROUP)
    pid_m, pid_n = group * GROUP + within % rows, within // rows
    tl.assume(pid_m >= 0)
    offs_m = (pid_m * BLOCK_M + tl.arange(0, BLOCK_M)) % M
    offs_n = (pid_n * BLOCK_N + tl.arange(0, BLOCK_N)) % N
    offs_k = tl.arange(0, BLOCK_K)
    a_ptrs = a_ptr + offs_m[:, None] * stride_am + offs_k[None, :] * stride_ak
    b_ptrs = b_ptr + offs_k[:, None] * stride_bk + offs_n[None, :] * stride_bn
    acc = tl.zeros((BLOCK_M, BLOCK_N), dtype=tl.float32)
    for k in range(tl.cdiv(K, BLOCK_K)):
        a = tl.load(a_ptrs, mask=offs_k[None, :] < K - k * BLOCK_K, other=0.0)  # adds nothing to the product
        b = tl.load(b_ptrs, mask=offs_k[:, None] < K - k * BLOCK_K, other=0.0)
        acc = tl.dot(a, b, acc)
        a_ptrs += BLOCK_K * stride_ak
        b_ptrs += BLOCK_K * stride_bk
    if ACTIVATION == "leaky_relu":
        acc = leaky_relu(acc)
    offs_m, offs_n = pid_m * BLOCK_M + tl.arange(0, BLOCK_M), pid_n * BLOCK_N + tl.arange(0, BLOCK_N)
    mask = (offs_m[:, None] < M) & (offs_n[None, :] < N)
    tl.store(out_ptr + offs_m[:, None] * stride_om + offs_n[None, :] * stride_on, acc.to(out_ptr.dtype.element_ty), mask=mask)


def grouped_matmul_case(dtype, m, n, k, group):
    def make(g):
        return {"a": normal(g, m, k, dtype=dtype, scale=0.5), "b": normal(g, n, k, dtype=dtype, scale=0.5).T}

    def run(a, b):
        out = blank(m, n, like=a, dtype=torch.float16)
        grid = (triton.cdiv(m, 32) * triton.cdiv(n, 32),)
        strides = (*a.stride(), *b.stride(), *out.stride())
        grouped_matmul_kernel[grid](a, b, out, m, n, k, *strides, BLOCK_M=32, BLOCK_N=32, BLOCK_K=32, GROUP=group, ACTIVATION="leaky_relu")
        return {"out": out}

    def reference(a, b):
        product = a.double() @ b.double()
        return {"out": torch.where(product >= 0, product, 0.01 * product).half()}

    return Case(f"grouped matmul/{short(dtype)}/{m}x{n}x{k}/{group}", make, run, reference)


@triton.jit
def dropout_kernel(x_ptr, keep_ptr, out_ptr, kept_ptr, n, p, seed, BLOCK: tl.constexpr):
    """out = x / (1 - p) where the seed's random number is above p, else 0; kept the same for the mask in keep."""
    offs = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    mask = offs < n
    x = tl.load(x_ptr + offs, mask=mask)
    keep = tl.load(keep_ptr + offs, mask=mask)
    tl.store(kept_ptr + offs, tl.where(keep, x / (1 - p), 0.0), mask=mask)
    tl.store(out_ptr + offs, tl.where(tl.rand(seed, offs) > p, x / (1 - p), 0.0), mask=mask)


def dropout_case(n, p, seed):
    def make(g):
        return {"x": normal(g, n), "keep": torch.rand(n, generator=g) > p}

    def run(x, keep):
        out, kept = blank(n + GUARD, like=x), blank(n + GUARD, like=x)
        dropout_kernel[(triton.cdiv(n, 128),)](x, keep, out, kept, n, p, seed, BLOCK=128)
        return {"out": out, "kept": kept}

    def reference(x, keep):
        words = torch.tensor(philox(seed, n)[0], dtype=torch.float64)
        drawn = torch.where(words < 0, -words - 1, words) * 4.6566127342e-10  # as tl.rand makes a number in [0, 1) of 32 bits
        tail = blank(GUARD, like=x)
        scaled = (x.double() / (1 - p)).float()
        return {"out": torch.cat([torch.where(drawn > p, scaled, 0.0), tail]), "kept": torch.cat([torch.where(keep, scaled, 0.0), tail])}

    return Case(f"dropout/{n}/seed {seed}", make, run, reference)


@triton.jit
def layer_norm_backward_kernel(
    dx_ptr, dy_ptr, dw_ptr, db_ptr, x_ptr, w_ptr, mean_ptr, rstd_ptr, locks_ptr, N, GROUP: tl.constexpr, BLOCK: tl.constexpr,
):  # fmt: skip
    """Row pid of dx; and its share of dw and db, added into row pid % GROUP of them under that row's lock."""
    pid = tl.program_id(0)
    offs = tl.arange(0, BLOCK)
    mask = offs < N
    x = tl.load(x_ptr + pid * N + offs, mask=mask, other=0.0)
    dy = tl.load(dy_ptr + pid * N + offs, mask=mask, other=0.0)
    w = tl.load(w_ptr + offs, mask=mask, other=0.0)
    x_hat = tl.where(mask, (x - tl.load(mean_ptr + pid)) * tl.load(rstd_ptr + pid), 0.0)
    wdy = w * dy
    c1 = tl.sum(x_hat * wdy, axis=0) / N
    c2 = tl.sum(wdy, axis=0) / N
    tl.store(dx_ptr + pid * N + offs, (wdy - (x_hat * c1 + c2)) * tl.load(rstd_ptr + pid), mask=mask)
    row = pid % GROUP
    dw, db = dy * x_hat, dy
    while tl.atomic_cas(locks_ptr + row, 0, 1) == 1:
        pass
    count = tl.load(locks_ptr + GROUP + row)
    tl.debug_barrier()  # every thread has read it before one of them changes it
    if count == 0:  # the first to come
        tl.atomic_xchg(locks_ptr + GROUP + row, 1)
    else:
        dw += tl.load(dw_ptr + row * N + offs, mask=mask)
        db += tl.load(db_ptr + row * N + offs, mask=mask)
    tl.store(dw_ptr + row * N + offs, dw, mask=mask)
    tl.store(db_ptr + row * N + offs, db, mask=mask)
    tl.debug_barrier()  # every thread has stored before one of them opens the lock
    tl.atomic_xchg(locks_ptr + row, 0)


@triton.jit
def column_totals_kernel(parts_ptr, out_ptr, M, N, BLOCK_M: tl.constexpr, BLOCK_N: tl.constexpr):
    """out = the sum of all rows of parts; a program owns BLOCK_N columns."""
    offs_n = tl.program_id(0) * BLOCK_N + tl.arange(0, BLOCK_N)
    acc = tl.zeros((BLOCK_M, BLOCK_N), dtype=tl.float32)
    for m in range(0, M, BLOCK_M):
        offs_m = m + tl.arange(0, BLOCK_M)
        mask = (offs_m[:, None] < M) & (offs_n[None, :] < N)
        acc += tl.load(parts_ptr + offs_m[:, None] * N + offs_n[None, :], mask=mask, other=0.0)
    tl.store(out_ptr + offs_n, tl.sum(acc, axis=0), mask=offs_n < N)


def layer_norm_backward_case(m, n, group):
    def make(g):
        return {"x": normal(g, m, n), "dy": normal(g, m, n), "w": normal(g, n)}

    def run(x, dy, w):
        mean, rstd = x.mean(1), (x.var(1, unbiased=False) + 1e-5).rsqrt()
        dx, parts_w, parts_b = blank(m, n, like=x), blank(group, n, like=x), blank(group, n, like=x)
        locks = torch.zeros(2 * group, dtype=torch.int32, device=x.device)
        layer_norm_backward_kernel[(m,)](dx, dy, parts_w, parts_b, x, w, mean, rstd, locks, n, GROUP=group, BLOCK=triton.next_power_of_2(n))
        dw, db = blank(n, like=x), blank(n, like=x)
        for parts, total in ((parts_w, dw), (parts_b, db)):
            column_totals_kernel[(triton.cdiv(n, 32),)](parts, total, group, n, BLOCK_M=8, BLOCK_N=32)
        return {"dx": dx, "dw": dw, "db": db}

    def reference(x, dy, w):
        x, w, b = x.double().requires_grad_(), w.double().requires_grad_(), torch.zeros(n, dtype=torch.float64, requires_grad=True)
        torch.nn.functional.layer_norm(x, (n,), w, b, 1e-5).backward(dy.double())
        return {"dx": x.grad.float(), "dw": w.grad.float(), "db": b.grad.float()}

    return Case(f"layer norm backward with locks/{m}x{n}/{group}", make, run, reference, 2e-6)


@triton.jit
def descriptor_kernel(x_ptr, out_ptr, padded_ptr, M, N, BLOCK_M: tl.constexpr, BLOCK_N: tl.constexpr):
    """out = 2 x through tensor descriptors; padded is what a load past the edge gives."""
    pid_m, pid_n = tl.program_id(0) * BLOCK_M, tl.program_id(1) * BLOCK_N
    x_desc = tl.make_tensor_descriptor(x_ptr, shape=[M, N], strides=[N, 1], block_shape=[BLOCK_M, BLOCK_N])
    out_desc = tl.make_tensor_descriptor(out_ptr, shape=[M, N], strides=[N, 1], block_shape=[BLOCK_M, BLOCK_N])
    x = x_desc.load([pid_m, pid_n])
    out_desc.store([pid_m, pid_n], x * 2)
    offs = tl.arange(0, BLOCK_M)[:, None] * BLOCK_N + tl.arange(0, BLOCK_N)[None, :]
    tile = tl.program_id(0) * tl.num_programs(1) + tl.program_id(1)
    tl.store(padded_ptr + tile * BLOCK_M * BLOCK_N + offs, x)


def descriptor_case(dtype, m, n):
    tiles = (triton.cdiv(m, 16), triton.cdiv(n, 32))

    def run(x):
        # On a GPU the descriptors themselves need memory, which Triton asks its allocator for.
        triton.set_allocator(lambda size, alignment, stream: torch.empty(size, dtype=torch.int8, device=x.device))
        out, padded = blank(m * n + GUARD, like=x), blank(*tiles, 16, 32, like=x)
        descriptor_kernel[tiles](x, out, padded, m, n, BLOCK_M=16, BLOCK_N=32)
        return {"out": out, "padded": padded}

    def reference(x):
        whole = torch.zeros(tiles[0] * 16, tiles[1] * 32, dtype=dtype)
        whole[:m, :n] = x
        padded = whole.reshape(tiles[0], 16, tiles[1], 32).transpose(1, 2).contiguous()
        return {"out": torch.cat([(2 * x).reshape(-1), blank(GUARD, like=x)]), "padded": padded}

    return Case(f"descriptors/{short(dtype)}/{m}x{n}", lambda g: {"x": normal(g, m, n, dtype=dtype)}, run, reference, 0.0)


CASES = [
    *(persistent_softmax_case(m, n, programs) for m, n, programs in ((1, 1, 1), (37, 129, 8), (64, 128, 64), (5, 1000, 8))),
    *(grouped_matmul_case(torch.float16, m, n, k, group) for m, n, k, group in ((96, 64, 64, 2), (100, 70, 50, 3), (33, 127, 129, 8))),
    *(dropout_case(n, p, seed) for n, p, seed in ((127, 0.5, 123), (1000, 0.2, 512))),
    *(descriptor_case(dtype, m, n) for dtype, m, n in ((torch.float32, 33, 68), (torch.float16, 16, 32), (torch.bfloat16, 100, 8))),
    *(layer_norm_backward_case(m, n, group) for m, n, group in ((1, 64, 1), (23, 100, 4), (40, 129, 16))),
]
