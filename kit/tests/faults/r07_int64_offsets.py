"""R7: offsets that need 64 bits. Ghosts stand for tensors of many gigabytes."""

from __future__ import annotations

import torch
import triton
import triton.language as tl

from kit.ghosts import ghost
from kit.tests.faults.fault_case import Fault, numbers


@triton.jit
def rows_int32_kernel(x_ptr, out_ptr, stride_xm, BLOCK: tl.constexpr):
    """BUG: pid * stride is an int32. out[row] = x[row, :BLOCK]; a program owns a row."""
    pid = tl.program_id(0)
    offs = tl.arange(0, BLOCK)
    tl.store(out_ptr + pid.to(tl.int64) * BLOCK + offs, tl.load(x_ptr + pid * stride_xm + offs))


@triton.jit
def rows_late_cast_kernel(x_ptr, out_ptr, stride_xm, BLOCK: tl.constexpr):
    """BUG: the cast comes after the product has wrapped. out[row] = x[row, :BLOCK]; a program owns a row."""
    pid = tl.program_id(0)
    offs = tl.arange(0, BLOCK)
    tl.store(out_ptr + pid.to(tl.int64) * BLOCK + offs, tl.load(x_ptr + (pid * stride_xm).to(tl.int64) + offs))


@triton.jit
def rows_narrowed_kernel(x_ptr, out_ptr, stride_xm, BLOCK: tl.constexpr):
    """BUG: the offset is 64 bits wide and cut to 32. out[row] = x[row, :BLOCK]; a program owns a row."""
    pid = tl.program_id(0).to(tl.int64)
    offs = tl.arange(0, BLOCK)
    start = (pid * stride_xm).to(tl.int32)
    tl.store(out_ptr + pid * BLOCK + offs, tl.load(x_ptr + start + offs))


@triton.jit
def rows_kernel(x_ptr, out_ptr, stride_xm, BLOCK: tl.constexpr):
    """out[row] = x[row, :BLOCK]; a program owns a row."""
    pid = tl.program_id(0).to(tl.int64)
    offs = tl.arange(0, BLOCK)
    tl.store(out_ptr + pid * BLOCK + offs, tl.load(x_ptr + pid * stride_xm + offs))


def rows(n=40_000, stride=65_536):
    return lambda: ((n,), (ghost((n, stride), torch.int8), ghost((n, 128), torch.int8), stride), {"BLOCK": 128})


@triton.jit
def paged_int32_kernel(cache_ptr, table_ptr, out_ptr, stride_b, BLOCK: tl.constexpr):
    """BUG: a page number times its stride is an int32. out[i] = cache[table[i]]; a program owns a page."""
    pid = tl.program_id(0)
    offs = tl.arange(0, BLOCK)
    page = tl.load(table_ptr + pid)
    tl.store(out_ptr + pid * BLOCK + offs, tl.load(cache_ptr + page * stride_b + offs))


@triton.jit
def paged_kernel(cache_ptr, table_ptr, out_ptr, stride_b, BLOCK: tl.constexpr):
    """out[i] = cache[table[i]]; a program owns a page."""
    pid = tl.program_id(0)
    offs = tl.arange(0, BLOCK)
    page = tl.load(table_ptr + pid).to(tl.int64)
    tl.store(out_ptr + pid * BLOCK + offs, tl.load(cache_ptr + page * stride_b + offs))


def pages():
    cache, out = ghost((40_000, 65_536), torch.int8), ghost((3, 128), torch.int8)
    return (3,), (cache, numbers([7, 32_768, 39_999]), out, 65_536), {"BLOCK": 128}


@triton.jit
def add_int32_mask_kernel(x_ptr, out_ptr, n, BLOCK: tl.constexpr):
    """BUG: past 2^31 the offset is negative, and so below n. out = x + 1; a program owns BLOCK elements."""
    offs = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    mask = offs < n
    tl.store(out_ptr + offs, tl.load(x_ptr + offs, mask=mask) + 1, mask=mask)


@triton.jit
def add_kernel(x_ptr, out_ptr, n, BLOCK: tl.constexpr):
    """out = x + 1; a program owns BLOCK elements."""
    offs = tl.program_id(0).to(tl.int64) * BLOCK + tl.arange(0, BLOCK)
    mask = offs < n
    tl.store(out_ptr + offs, tl.load(x_ptr + offs, mask=mask) + 1, mask=mask)


def large(n):
    return lambda: ((triton.cdiv(n, 1024),), (ghost(n, torch.float32), ghost(n, torch.float32), n), {"BLOCK": 1024})


@triton.jit
def head_int32_kernel(x_ptr, out_ptr, stride_t, stride_h, D: tl.constexpr):
    """BUG: token * stride + head * stride is an int32 sum. out = x for each token and head; a program owns one."""
    token, head = tl.program_id(0), tl.program_id(1)
    offs = token * stride_t + head * stride_h + tl.arange(0, D)
    tl.store(out_ptr + offs, tl.load(x_ptr + offs))


@triton.jit
def head_kernel(x_ptr, out_ptr, stride_t, stride_h, D: tl.constexpr):
    """out = x for each token and head; a program owns one."""
    token, head = tl.program_id(0).to(tl.int64), tl.program_id(1)
    offs = token * stride_t + head * stride_h + tl.arange(0, D)
    tl.store(out_ptr + offs, tl.load(x_ptr + offs))


def heads():
    x = ghost((600_000, 32, 128), torch.float16)
    return (600_000, 32), (x, ghost((600_000, 32, 128), torch.float16), 4096, 128), {"D": 128}


@triton.jit
def store_int32_kernel(out_ptr, stride_om, BLOCK: tl.constexpr):
    """BUG: the store's offset is an int32. out[row, :BLOCK] = 1; a program owns a row."""
    pid = tl.program_id(0)
    tl.store(out_ptr + pid * stride_om + tl.arange(0, BLOCK), tl.full((BLOCK,), 1, tl.int8))


@triton.jit
def store_kernel(out_ptr, stride_om, BLOCK: tl.constexpr):
    """out[row, :BLOCK] = 1; a program owns a row."""
    pid = tl.program_id(0).to(tl.int64)
    tl.store(out_ptr + pid * stride_om + tl.arange(0, BLOCK), tl.full((BLOCK,), 1, tl.int8))


@triton.jit
def atomic_int32_kernel(out_ptr, stride_om):
    """BUG: the atomic's offset is an int32. out[row, 0] += 1; a program owns a row."""
    tl.atomic_add(out_ptr + tl.program_id(0) * stride_om, 1)


@triton.jit
def atomic_kernel(out_ptr, stride_om):
    """out[row, 0] += 1; a program owns a row."""
    tl.atomic_add(out_ptr + tl.program_id(0).to(tl.int64) * stride_om, 1)


@triton.jit
def columns_int32_kernel(x_ptr, out_ptr, stride_xn, STEPS: tl.constexpr):
    """BUG: the loop's column * stride is an int32. out = the sum over columns of x; a program owns a row."""
    pid = tl.program_id(0)
    acc = 0.0
    for column in range(0, STEPS):
        acc += tl.load(x_ptr + pid + column * stride_xn)
    tl.store(out_ptr + pid, acc)


@triton.jit
def columns_kernel(x_ptr, out_ptr, stride_xn, STEPS: tl.constexpr):
    """out = the sum over columns of x; a program owns a row."""
    pid = tl.program_id(0)
    acc = 0.0
    x_ptr += pid
    for _ in range(0, STEPS):
        acc += tl.load(x_ptr)
        x_ptr += stride_xn
    tl.store(out_ptr + pid, acc)


@triton.jit
def backwards_int32_kernel(x_ptr, out_ptr, stride_xm):
    """BUG: -pid * stride passes -2^31. out[i] = x[-i], counted from the end of x; a program owns a row."""
    pid = tl.program_id(0)
    rows = tl.num_programs(0)
    last = (rows.to(tl.int64) - 1) * stride_xm
    tl.store(out_ptr + pid, tl.load(x_ptr + last - pid * stride_xm))


@triton.jit
def backwards_kernel(x_ptr, out_ptr, stride_xm):
    """out[i] = x[-i], counted from the end of x; a program owns a row."""
    pid = tl.program_id(0)
    rows = tl.num_programs(0)
    tl.store(out_ptr + pid, tl.load(x_ptr + (rows - 1 - pid).to(tl.int64) * stride_xm))


WRAP = ("overflow", "wrong")
FAULTS = [
    Fault("pid * stride", "R7", rows_int32_kernel, rows_kernel, rows(), *WRAP, "pid * stride_xm", program=(32_768, 0, 0)),
    Fault("a cast too late", "R7", rows_late_cast_kernel, rows_kernel, rows(), *WRAP, "pid * stride_xm", program=(32_768, 0, 0)),
    Fault("an offset cut to 32 bits", "R7", rows_narrowed_kernel, rows_kernel, rows(), *WRAP, "tl.int32", program=(32_768, 0, 0)),
    Fault("pid * stride, 87,383 rows", "R7", rows_int32_kernel, rows_kernel, rows(90_000, 24_576), *WRAP, program=(87_382, 0, 0)),
    Fault("page * stride", "R7", paged_int32_kernel, paged_kernel, pages, *WRAP, "page * stride_b", program=(1, 0, 0)),
    Fault("a mask past 2^31", "R7", add_int32_mask_kernel, add_kernel, large(2**31 + 5_000), *WRAP),
    Fault("a mask at 10^10", "R7", add_int32_mask_kernel, add_kernel, large(10**10), *WRAP),
    Fault("token * stride + head * stride", "R7", head_int32_kernel, head_kernel, heads, *WRAP),
    Fault(
        *("a store past 2^31", "R7", store_int32_kernel, store_kernel),
        *(lambda: ((40_000,), (ghost((40_000, 128), torch.int8, strides=(65_536, 1)), 65_536), {"BLOCK": 128}), *WRAP, "tl.store"),
    ),
    Fault(
        *("an atomic past 2^31", "R7", atomic_int32_kernel, atomic_kernel),
        *(lambda: ((40_000,), (ghost((40_000, 65_536), torch.int32), 65_536), {}), *WRAP, "tl.atomic_add"),
    ),
    Fault(
        *("column * stride in a loop", "R7", columns_int32_kernel, columns_kernel),
        *(lambda: ((4,), (ghost((64, 50_000_000), torch.float32), ghost(4, torch.float32), 50_000_000), {"STEPS": 64}), *WRAP, "column"),
    ),
    Fault(
        *("backwards past -2^31", "R7", backwards_int32_kernel, backwards_kernel),
        *(lambda: ((40_000,), (ghost((40_000, 65_536), torch.int8), ghost(40_000, torch.int8), 65_536), {}), *WRAP, "stride_xm"),
    ),
]
