"""Zoo: every dtype turned into every other, inside the range and outside it."""

from __future__ import annotations

import torch
import triton
import triton.language as tl

from kit.tests.zoo_case import GUARD, Case, blank, guarded, normal, short, wrapped

BLOCK = 128
CASTS = (torch.int8, torch.int16, torch.int32, torch.int64, torch.uint8, torch.float16, torch.bfloat16, torch.float32, torch.float64)


@triton.jit
def cast_kernel(x_ptr, i8_ptr, i16_ptr, i32_ptr, i64_ptr, u8_ptr, f16_ptr, bf16_ptr, f32_ptr, f64_ptr, n, BLOCK: tl.constexpr):
    """Every output is x in the output's dtype."""
    offs = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    mask = offs < n
    x = tl.load(x_ptr + offs, mask=mask)
    tl.store(i8_ptr + offs, x.to(tl.int8), mask=mask)
    tl.store(i16_ptr + offs, x.to(tl.int16), mask=mask)
    tl.store(i32_ptr + offs, x.to(tl.int32), mask=mask)
    tl.store(i64_ptr + offs, x.to(tl.int64), mask=mask)
    tl.store(u8_ptr + offs, x.to(tl.uint8), mask=mask)
    tl.store(f16_ptr + offs, x.to(tl.float16), mask=mask)
    tl.store(bf16_ptr + offs, x.to(tl.bfloat16), mask=mask)
    tl.store(f32_ptr + offs, x.to(tl.float32), mask=mask)
    tl.store(f64_ptr + offs, x.to(tl.float64), mask=mask)


def cast_case(dtype):
    n = 300

    def make(g):
        if dtype.is_floating_point:  # what every integer dtype can hold: beyond that C and PTX promise nothing
            return {"x": (torch.rand(n, generator=g, dtype=torch.float64) * 127.9).to(dtype)}
        bits = min(8 * dtype.itemsize - 1, 40)
        low = -(2**bits) if dtype.is_signed else 0
        return {"x": torch.randint(low, 2**bits, (n,), generator=g).to(dtype)}

    def run(x):
        outs = {short(to): blank(n + GUARD, like=x, dtype=to) for to in CASTS}
        cast_kernel[(triton.cdiv(n, BLOCK),)](x, *outs.values(), n, BLOCK=BLOCK)
        return outs

    def reference(x):
        def cast(to):
            # An integer becomes a small float by way of float32; a float reaches a small integer without passing another.
            return x.to(torch.float32).to(to) if to.is_floating_point and to.itemsize == 2 else x.to(to)

        return {short(to): guarded(cast(to)) for to in CASTS}

    return Case(f"cast/{short(dtype)}", make, run, reference, 0.0)


@triton.jit
def saturate_kernel(x_ptr, i8_ptr, i16_ptr, i32_ptr, i64_ptr, u8_ptr, u32_ptr, u64_ptr, n, BLOCK: tl.constexpr):
    """Every output is x in the output's dtype, also where it does not fit."""
    offs = tl.arange(0, BLOCK)
    mask = offs < n
    x = tl.load(x_ptr + offs, mask=mask)
    tl.store(i8_ptr + offs, x.to(tl.int8), mask=mask)
    tl.store(i16_ptr + offs, x.to(tl.int16), mask=mask)
    tl.store(i32_ptr + offs, x.to(tl.int32), mask=mask)
    tl.store(i64_ptr + offs, x.to(tl.int64), mask=mask)
    tl.store(u8_ptr + offs, x.to(tl.uint8), mask=mask)
    tl.store(u32_ptr + offs, x.to(tl.uint32), mask=mask)
    tl.store(u64_ptr + offs, x.to(tl.uint64), mask=mask)


def saturated(value, dtype):
    """What PTX `cvt.rzi` gives: the nearest end of the range; for NaN 0, or in 64 bits the highest bit alone (PTX ISA, "cvt").

    There is no conversion to 8 bits: it is to 16, and the low byte is kept.
    """
    bits = max(8 * dtype.itemsize, 16)
    low, high = (-(2 ** (bits - 1)), 2 ** (bits - 1) - 1) if dtype.is_signed else (0, 2**bits - 1)
    if value != value:
        return wrapped(2**63 if bits == 64 else 0, dtype)
    return wrapped(low if value <= low else high if value >= high else int(value), dtype)


def saturate_case():
    values = [0.0, -0.0, 0.9, -0.9, 1.5, -1.5, 127.9, 128.0, -129.0, 255.5, 256.0, 300.0, 32768.0, -40000.0, 65536.0, 70000.0]
    values += [2.0**31, -(2.0**31), 3e9, -3e9, 2.0**32, 1e12, 2.0**63, -(2.0**63), 1e20, -1e20, float("inf"), -float("inf"), float("nan")]
    to = (torch.int8, torch.int16, torch.int32, torch.int64, torch.uint8, torch.uint32, torch.uint64)

    def run(x):
        outs = {short(dtype): blank(len(values), like=x, dtype=dtype) for dtype in to}
        saturate_kernel[(1,)](x, *outs.values(), len(values), BLOCK=32)
        return outs

    def reference(x):
        return {short(dtype): torch.tensor([saturated(v, dtype) for v in x.tolist()], dtype=dtype) for dtype in to}

    return Case("cast/float32 out of range", lambda g: {"x": torch.tensor(values)}, run, reference)


@triton.jit
def fp8_kernel(x_ptr, fp8_ptr, back_ptr, n, BLOCK: tl.constexpr):
    """fp8 = x rounded to the dtype of fp8_ptr; back = that in float32."""
    offs = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    mask = offs < n
    x = tl.load(x_ptr + offs, mask=mask)
    y = x.to(fp8_ptr.dtype.element_ty)
    tl.store(fp8_ptr + offs, y, mask=mask)
    tl.store(back_ptr + offs, y.to(tl.float32), mask=mask)


def fp8_case(dtype):
    def run(x):
        small, back = blank(300, like=x, dtype=dtype), blank(300, like=x)
        fp8_kernel[(3,)](x, small, back, 300, BLOCK=BLOCK)
        return {"fp8": small, "back": back}

    def reference(x):
        return {"fp8": x.to(dtype), "back": x.to(dtype).to(torch.float32)}

    return Case(f"cast/{short(dtype)}", lambda g: {"x": normal(g, 300, scale=20.0)}, run, reference, 0.0)


CASES = [
    *(cast_case(dtype) for dtype in CASTS),
    saturate_case(),
    *(fp8_case(dtype) for dtype in (torch.float8_e4m3fn, torch.float8_e5m2)),
]
