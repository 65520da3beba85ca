"""Zoo: kernels that work along rows: reductions, scans, softmax, the norms, sorting and rearranging."""

from __future__ import annotations

import torch
import triton
import triton.language as tl

from kit.tests.zoo_case import GUARD, SIZES, Case, blank, integers, normal, short

HALVES = (torch.float32, torch.float16, torch.bfloat16)


@triton.jit
def reduce_kernel(x_ptr, sum_ptr, max_ptr, min_ptr, argmax_ptr, argmin_ptr, top_ptr, top_at_ptr, N, stride_xm, BLOCK: tl.constexpr):
    """Sum, extremes, and their places, of row pid of x."""
    pid = tl.program_id(0)
    offs = tl.arange(0, BLOCK)
    mask = offs < N
    x = tl.load(x_ptr + pid * stride_xm + offs, mask=mask, other=0)  # adds nothing to the sum
    lowest = tl.load(x_ptr + pid * stride_xm + offs, mask=mask, other=-1000)  # below every element
    highest = tl.load(x_ptr + pid * stride_xm + offs, mask=mask, other=1000)  # above every element
    tl.store(sum_ptr + pid, tl.sum(x, axis=0))
    tl.store(max_ptr + pid, tl.max(lowest, axis=0))
    tl.store(min_ptr + pid, tl.min(highest, axis=0))
    tl.store(argmax_ptr + pid, tl.argmax(lowest, axis=0))
    tl.store(argmin_ptr + pid, tl.argmin(highest, axis=0))
    top, top_at = tl.max(lowest, axis=0, return_indices=True)
    tl.store(top_ptr + pid, top)
    tl.store(top_at_ptr + pid, top_at)


def reduce_case(dtype, n):
    rows = 5

    def make(g):
        # Few different values, so that extremes tie: the first place wins.
        return {"x": integers(g, -50, 50, rows, n, dtype=dtype) if n % 2 else normal(g, rows, n, dtype=torch.float32).to(dtype)}

    def run(x):
        names = {"sum": x.dtype if x.dtype.itemsize >= 4 else torch.float32, "max": x.dtype, "min": x.dtype}
        places = dict.fromkeys(("argmax", "argmin"), torch.int32)
        outs = {name: blank(rows, like=x, dtype=kind) for name, kind in (names | places | {"top": x.dtype, "top at": torch.int32}).items()}
        reduce_kernel[(rows,)](x, *outs.values(), n, x.stride(0), BLOCK=triton.next_power_of_2(n))
        return outs

    def reference(x):
        wide = x.double() if dtype.is_floating_point else x.long()
        top, low = wide.max(dim=1).values, wide.min(dim=1).values
        # torch does not say which of several equal elements it names; the first is argmax of the comparison.
        first_top = (wide == top[:, None]).int().argmax(dim=1).int()
        first_low = (wide == low[:, None]).int().argmax(dim=1).int()
        total = wide.sum(dim=1)
        total = total.to(dtype if dtype.itemsize >= 4 else torch.float32)
        return {
            "sum": total,
            "max": top.to(dtype),
            "min": low.to(dtype),
            "argmax": first_top,
            "argmin": first_low,
            "top": top.to(dtype),
            "top at": first_top,
        }

    # A sum in a 16-bit float is kept in 16 bits after each step.
    tolerance = {torch.float16: 3e-3, torch.bfloat16: 2e-2}.get(dtype)
    return Case(f"reduce/{short(dtype)}/{n}", make, run, reference, tolerance)


@triton.jit
def column_sum_kernel(x_ptr, out_ptr, M, N, BLOCK_M: tl.constexpr, BLOCK_N: tl.constexpr):
    """out[n] = sum over m of x[m, n], in float32; a program owns BLOCK_N columns and walks down them."""
    offs_n = tl.program_id(0) * BLOCK_N + tl.arange(0, BLOCK_N)
    acc = tl.zeros((BLOCK_M, BLOCK_N), dtype=tl.float32)
    for start in range(0, M, BLOCK_M):
        offs_m = start + tl.arange(0, BLOCK_M)
        mask = (offs_m[:, None] < M) & (offs_n[None, :] < N)
        acc += tl.load(x_ptr + offs_m[:, None] * N + offs_n[None, :], mask=mask, other=0.0).to(tl.float32)  # adds nothing
    tl.store(out_ptr + offs_n, tl.sum(acc, axis=0), mask=offs_n < N)


def column_sum_case(dtype, m, n):
    def run(x):
        out = blank(n + GUARD, like=x, dtype=torch.float32)
        column_sum_kernel[(triton.cdiv(n, 32),)](x, out, m, n, BLOCK_M=16, BLOCK_N=32)
        return {"out": out[:n], "guard": out[n:]}

    def reference(x):
        return {"out": x.double().sum(dim=0).float(), "guard": blank(GUARD, like=x, dtype=torch.float32)}

    return Case(f"column sum/{short(dtype)}/{m}x{n}", lambda g: {"x": normal(g, m, n, dtype=dtype)}, run, reference)


@triton.jit
def softmax_kernel(x_ptr, out_ptr, N, stride_xm, stride_om, BLOCK: tl.constexpr):
    """out[m, :] = softmax(x[m, :]); a program owns a row."""
    pid = tl.program_id(0)
    offs = tl.arange(0, BLOCK)
    mask = offs < N
    x = tl.load(x_ptr + pid * stride_xm + offs, mask=mask, other=float("-inf")).to(tl.float32)  # exp(-inf) = 0
    e = tl.exp(x - tl.max(x, axis=0))
    tl.store(out_ptr + pid * stride_om + offs, e / tl.sum(e, axis=0), mask=mask)


def softmax_case(dtype, n):
    def run(x):
        out = blank(7, n + 3, like=x)
        softmax_kernel[(7,)](x, out, n, x.stride(0), out.stride(0), BLOCK=triton.next_power_of_2(n))
        return {"out": out}

    def reference(x):
        return {"out": torch.cat([x.double().softmax(dim=1).to(dtype), blank(7, 3, like=x)], dim=1)}

    return Case(f"softmax/{short(dtype)}/{n}", lambda g: {"x": normal(g, 7, n, dtype=dtype, scale=3.0)}, run, reference)


@triton.jit
def online_softmax_kernel(x_ptr, out_ptr, N, BLOCK: tl.constexpr):
    """out[m, :] = softmax(x[m, :]) in two passes of BLOCK columns, the maximum and the sum carried round the loop."""
    pid = tl.program_id(0)
    top = -float("inf")
    total = 0.0
    for start in range(0, N, BLOCK):
        offs = start + tl.arange(0, BLOCK)
        x = tl.load(x_ptr + pid * N + offs, mask=offs < N, other=float("-inf"))
        new_top = tl.maximum(top, tl.max(x, axis=0))
        total = total * tl.exp(top - new_top) + tl.sum(tl.exp(x - new_top), axis=0)
        top = new_top
    for start in range(0, N, BLOCK):
        offs = start + tl.arange(0, BLOCK)
        x = tl.load(x_ptr + pid * N + offs, mask=offs < N, other=float("-inf"))
        tl.store(out_ptr + pid * N + offs, tl.exp(x - top) / total, mask=offs < N)


def online_softmax_case(n):
    def run(x):
        out = blank(7, n, like=x)
        online_softmax_kernel[(7,)](x, out, n, BLOCK=64)
        return {"out": out}

    def reference(x):
        return {"out": x.double().softmax(dim=1).float()}

    return Case(f"online softmax/float32/{n}", lambda g: {"x": normal(g, 7, n, scale=3.0)}, run, reference)


@triton.jit
def layer_norm_kernel(x_ptr, weight_ptr, bias_ptr, out_ptr, mean_ptr, rstd_ptr, N, eps, BLOCK: tl.constexpr):
    """out[m, :] = (x[m, :] - mean) / sqrt(variance + eps) * weight + bias; a program owns a row."""
    pid = tl.program_id(0)
    offs = tl.arange(0, BLOCK)
    mask = offs < N
    x = tl.load(x_ptr + pid * N + offs, mask=mask, other=0.0).to(tl.float32)  # adds nothing to the mean
    mean = tl.sum(x, axis=0) / N
    centred = tl.where(mask, x - mean, 0.0)
    rstd = 1 / tl.sqrt(tl.sum(centred * centred, axis=0) / N + eps)
    weight = tl.load(weight_ptr + offs, mask=mask).to(tl.float32)
    bias = tl.load(bias_ptr + offs, mask=mask).to(tl.float32)
    tl.store(out_ptr + pid * N + offs, centred * rstd * weight + bias, mask=mask)
    tl.store(mean_ptr + pid, mean)
    tl.store(rstd_ptr + pid, rstd)


def layer_norm_case(dtype, n):
    def make(g):
        return {"x": normal(g, 5, n, dtype=dtype, scale=2.0) + 1, "weight": normal(g, n, dtype=dtype), "bias": normal(g, n, dtype=dtype)}

    def run(x, weight, bias):
        out = blank(5, n, like=x)
        mean, rstd = blank(5, like=x, dtype=torch.float32), blank(5, like=x, dtype=torch.float32)
        layer_norm_kernel[(5,)](x, weight, bias, out, mean, rstd, n, 1e-5, BLOCK=triton.next_power_of_2(n))
        return {"out": out, "mean": mean, "rstd": rstd}

    def reference(x, weight, bias):
        x = x.double()
        mean = x.mean(dim=1)
        centred = x - mean[:, None]
        rstd = ((centred**2).mean(dim=1) + 1e-5).rsqrt()
        out = centred * rstd[:, None] * weight.double() + bias.double()
        return {"out": out.to(dtype), "mean": mean.float(), "rstd": rstd.float()}

    return Case(f"layer norm/{short(dtype)}/{n}", make, run, reference)


@triton.jit
def rms_norm_kernel(x_ptr, weight_ptr, out_ptr, N, eps, BLOCK: tl.constexpr):
    """out[m, :] = x[m, :] / sqrt(mean(x[m, :]²) + eps) * weight; a program owns a row and walks along it."""
    pid = tl.program_id(0)
    acc = tl.zeros((BLOCK,), dtype=tl.float32)
    for start in range(0, N, BLOCK):
        offs = start + tl.arange(0, BLOCK)
        x = tl.load(x_ptr + pid * N + offs, mask=offs < N, other=0.0).to(tl.float32)  # adds nothing
        acc += x * x
    rstd = tl.rsqrt(tl.sum(acc, axis=0) / N + eps)
    for start in range(0, N, BLOCK):
        offs = start + tl.arange(0, BLOCK)
        mask = offs < N
        x = tl.load(x_ptr + pid * N + offs, mask=mask).to(tl.float32)
        weight = tl.load(weight_ptr + offs, mask=mask).to(tl.float32)
        tl.store(out_ptr + pid * N + offs, x * rstd * weight, mask=mask)


def rms_norm_case(dtype, n):
    def make(g):
        return {"x": normal(g, 5, n, dtype=dtype, scale=2.0), "weight": normal(g, n, dtype=dtype)}

    def run(x, weight):
        out = blank(5, n, like=x)
        rms_norm_kernel[(5,)](x, weight, out, n, 1e-6, BLOCK=128)
        return {"out": out}

    def reference(x, weight):
        x = x.double()
        return {"out": (x * ((x**2).mean(dim=1, keepdim=True) + 1e-6).rsqrt() * weight.double()).to(dtype)}

    return Case(f"rms norm/{short(dtype)}/{n}", make, run, reference)


@triton.jit
def compose(a_left, b_left, a_right, b_right):
    """h -> a·h + b, first the left step, then the right one."""
    return a_left * a_right, b_left * a_right + b_right


@triton.jit
def scan_kernel(a_ptr, b_ptr, sum_ptr, back_ptr, product_ptr, h_ptr, N, BLOCK: tl.constexpr):
    """Of row pid: cumulative sum of b (forward and backward), cumulative product of a, and h[n] = a[n]·h[n-1] + b[n]."""
    pid = tl.program_id(0)
    offs = tl.arange(0, BLOCK)
    mask = offs < N
    a = tl.load(a_ptr + pid * N + offs, mask=mask, other=1.0)  # multiplies by nothing
    b = tl.load(b_ptr + pid * N + offs, mask=mask, other=0.0)  # adds nothing
    out = pid * N + offs
    tl.store(sum_ptr + out, tl.cumsum(b, axis=0), mask=mask)
    tl.store(back_ptr + out, tl.cumsum(b, axis=0, reverse=True), mask=mask)
    tl.store(product_ptr + out, tl.cumprod(a, axis=0), mask=mask)
    _, h = tl.associative_scan((a, b), axis=0, combine_fn=compose)
    tl.store(h_ptr + out, h, mask=mask)


def scan_case(n):
    def make(g):
        return {"a": torch.rand(3, n, generator=g) * 0.3 + 0.75, "b": normal(g, 3, n)}

    def run(a, b):
        outs = {name: blank(3, n, like=a) for name in ("sum", "back", "product", "h")}
        scan_kernel[(3,)](a, b, *outs.values(), n, BLOCK=triton.next_power_of_2(n))
        return outs

    def reference(a, b):
        a, b = a.double(), b.double()
        h, steps = torch.zeros(3, dtype=torch.float64), []
        for i in range(n):
            h = a[:, i] * h + b[:, i]
            steps.append(h)
        outs = {"sum": b.cumsum(1), "back": b.flip(1).cumsum(1).flip(1), "product": a.cumprod(1), "h": torch.stack(steps, dim=1)}
        return {name: out.float() for name, out in outs.items()}

    return Case(f"scan/float32/{n}", make, run, reference)


@triton.jit
def integer_scan_kernel(x_ptr, sum_ptr, xor_ptr, BLOCK_M: tl.constexpr, BLOCK_N: tl.constexpr):
    """Along axis 0 of a tile: the cumulative sum, which wraps, and the exclusive or of all rows."""
    offs = tl.arange(0, BLOCK_M)[:, None] * BLOCK_N + tl.arange(0, BLOCK_N)[None, :]
    x = tl.load(x_ptr + offs)
    tl.store(sum_ptr + offs, tl.cumsum(x, axis=0))
    tl.store(xor_ptr + tl.arange(0, BLOCK_N), tl.xor_sum(x, axis=0))


def integer_scan_case():
    def run(x):
        total, parity = blank(16, 32, like=x), blank(32, like=x)
        integer_scan_kernel[(1,)](x, total, parity, BLOCK_M=16, BLOCK_N=32)
        return {"sum": total, "xor": parity}

    def reference(x):
        parity = torch.zeros(32, dtype=torch.int32)
        for row in x:
            parity = parity ^ row
        return {"sum": x.cumsum(0, dtype=torch.int64).to(torch.int32), "xor": parity}

    return Case("scan/int32", lambda g: {"x": integers(g, -(2**31), 2**31, 16, 32)}, run, reference)


@triton.jit
def rearrange_kernel(
    x_ptr, ups_ptr, downs_ptr, flip_ptr, trans_ptr, rows_ptr, pairs_ptr, halves_ptr, woven_ptr, cat_ptr, picked_ptr, BLOCK: tl.constexpr
):
    """One block sorted, flipped, transposed, reshaped, joined, split, interleaved, concatenated, and gathered."""
    offs = tl.arange(0, BLOCK)
    x = tl.load(x_ptr + offs)
    tl.store(ups_ptr + offs, tl.sort(x))
    tl.store(downs_ptr + offs, tl.sort(x, descending=True))
    tl.store(flip_ptr + offs, tl.flip(x, dim=0))
    tile = tl.reshape(x, (BLOCK // 8, 8))
    tile_offs = tl.arange(0, 8)[:, None] * (BLOCK // 8) + tl.arange(0, BLOCK // 8)[None, :]
    tl.store(trans_ptr + tile_offs, tl.trans(tile))
    tl.store(rows_ptr + tl.arange(0, BLOCK // 8), tl.sum(tile, axis=1))
    pair_offs = offs[:, None] * 2 + tl.arange(0, 2)[None, :]
    tl.store(pairs_ptr + pair_offs, tl.join(x, x + 1))
    left, right = tl.split(tl.reshape(x, (BLOCK // 2, 2)))
    tl.store(halves_ptr + tl.arange(0, BLOCK // 2), left - right)
    tl.store(woven_ptr + tl.arange(0, BLOCK), tl.interleave(right, left))
    # `cat` may put the elements in any order, so what is shown of it does not depend on the order.
    tl.store(cat_ptr + tl.arange(0, 2 * BLOCK), tl.sort(tl.cat(x, x * 2, can_reorder=True)))
    tl.store(picked_ptr + offs, tl.gather(x, (offs * 7 + 3) % BLOCK, axis=0))


def rearrange_case(dtype, block):
    def make(g):
        return {"x": integers(g, -1000, 1000, block, dtype=dtype)}

    def run(x):
        sizes = {"up": block, "down": block, "flip": block, "trans": block, "rows": block // 8, "pairs": 2 * block}
        sizes |= {"halves": block // 2, "woven": block, "cat": 2 * block, "picked": block}
        outs = {name: blank(size, like=x) for name, size in sizes.items()}
        rearrange_kernel[(1,)](x, *outs.values(), BLOCK=block)
        return outs

    def reference(x):
        left, right = x.reshape(-1, 2).unbind(1)
        return {
            "up": x.sort().values,
            "down": x.sort(descending=True).values,
            "flip": x.flip(0),
            "trans": x.reshape(-1, 8).T.reshape(-1),
            "rows": x.reshape(-1, 8).sum(dim=1).to(dtype),
            "pairs": torch.stack([x, x + 1], dim=1).reshape(-1),
            "halves": left - right,
            "woven": torch.stack([right, left], dim=1).reshape(-1),
            "cat": torch.cat([x, x * 2]).sort().values,
            "picked": x[(torch.arange(block) * 7 + 3) % block],
        }

    return Case(f"rearrange/{short(dtype)}/{block}", make, run, reference)


CASES = [
    *(reduce_case(dtype, n) for dtype in (torch.float32, torch.int32) for n in SIZES),
    *(reduce_case(dtype, n) for dtype in (torch.float16, torch.bfloat16) for n in (128, 129)),
    reduce_case(torch.int64, 129),
    *(column_sum_case(dtype, m, n) for dtype, m, n in ((torch.float32, 33, 65), (torch.bfloat16, 100, 31), (torch.float32, 1, 1))),
    *(softmax_case(torch.float32, n) for n in SIZES),
    *(softmax_case(dtype, n) for dtype in (torch.float16, torch.bfloat16) for n in (127, 1000)),
    *(online_softmax_case(n) for n in (1, 64, 65, 1000)),
    *(layer_norm_case(dtype, n) for dtype in HALVES for n in (1, 127, 128, 1000)),
    *(rms_norm_case(dtype, n) for dtype in HALVES for n in (1, 129, 1000)),
    *(scan_case(n) for n in (1, 127, 128, 129)),
    integer_scan_case(),
    *(rearrange_case(dtype, block) for dtype, block in ((torch.int32, 64), (torch.float32, 128), (torch.int16, 32))),
]
