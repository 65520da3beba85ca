"""Zoo: products that the compiler fuses into sums, and those it does not, each against the roundings that the PTX shows."""

from __future__ import annotations

import torch
import triton
import triton.language as tl

from kit.tests.zoo_case import GUARD, Case, blank, normal, short

BLOCK = 128


@triton.jit
def fused_kernel(x_ptr, y_ptr, z_ptr, out_ptr, n, rounds, BLOCK: tl.constexpr):
    """Row k of out is the k-th of FUSED of x, y and z, in their dtype; `rounds` is 3, and the compiler does not know."""
    offs = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    mask = offs < n
    x = tl.load(x_ptr + offs, mask=mask)
    y = tl.load(y_ptr + offs, mask=mask)
    z = tl.load(z_ptr + offs, mask=mask)
    s = tl.load(x_ptr) * tl.load(y_ptr)
    out_ptrs = out_ptr + offs
    tl.store(out_ptrs, x * y + z * x, mask=mask)
    tl.store(out_ptrs + n, x * y - z * x, mask=mask)
    tl.store(out_ptrs + 2 * n, z - x * y * z, mask=mask)
    used_twice = y * y
    tl.store(out_ptrs + 3 * n, used_twice, mask=mask)
    tl.store(out_ptrs + 4 * n, used_twice + z * z, mask=mask)
    tl.store(out_ptrs + 5 * n, z + s, mask=mask)
    tl.store(out_ptrs + 6 * n, tl.where(x > 0, x * z, z) + y, mask=mask)
    horner = z
    for _ in range(rounds):
        horner = horner * x + y
    tl.store(out_ptrs + 7 * n, horner, mask=mask)
    hoisted = z
    for _ in range(rounds):
        hoisted = hoisted + x * x
    tl.store(out_ptrs + 8 * n, hoisted, mask=mask)


def once(value, dtype):
    """A float64 rounded to dtype, as float64: what one instruction leaves."""
    return value.to(dtype).double()


def thrice(step, start):
    for _ in range(3):
        start = step(start)
    return start


# Every `r` is one rounding; a product without one of its own is fused into the sum around it.
FUSED = {
    "two products": lambda x, y, z, s, r: r(x * y + r(z * x)),
    "difference of products": lambda x, y, z, s, r: r(x * y - r(z * x)),
    "chain": lambda x, y, z, s, r: r(z - r(x * y) * z),
    "used twice, alone": lambda x, y, z, s, r: r(y * y),
    "used twice, in a sum": lambda x, y, z, s, r: r(r(y * y) + z * z),
    "scalar product": lambda x, y, z, s, r: r(z + s),
    "behind a choice": lambda x, y, z, s, r: r(torch.where(x > 0, r(x * z), z) + y),
    "in a loop": lambda x, y, z, s, r: thrice(lambda h: r(h * x + y), z),
    "moved out of a loop": lambda x, y, z, s, r: thrice(lambda h: r(h + r(x * x)), z),
}


def fused_case(dtype):
    n = 257

    def run(x, y, z):
        out = blank(len(FUSED) * n + GUARD, like=x)
        fused_kernel[(triton.cdiv(n, BLOCK),)](x, y, z, out, n, 3, BLOCK=BLOCK)
        return dict(zip(FUSED, out[: len(FUSED) * n].reshape(-1, n), strict=True)) | {"guard": out[len(FUSED) * n :]}

    def reference(x, y, z):
        wide = [t.double() for t in (x, y, z)]
        rows = {name: f(*wide, wide[0][0] * wide[1][0], lambda v: once(v, dtype)).to(dtype) for name, f in FUSED.items()}
        return rows | {"guard": blank(GUARD, like=x)}

    def make(g):
        return {name: normal(g, n, dtype=dtype) for name in "xyz"}

    return Case(f"fused/{short(dtype)}", make, run, reference, 0.0)


CASES = [fused_case(dtype) for dtype in (torch.float32, torch.float16, torch.bfloat16)]
