"""Lesson 10's kernels: sums that stall, fma on and off, products in tf32 and into float16, and rows of hard inputs."""

from __future__ import annotations

import torch
import triton
import triton.language as tl
from triton.language.extra import libdevice

from kit.numbers import hard_inputs
from kit.tests.zoo_case import Case, blank, normal, short
from kit.tests.zoo_rows import rms_norm_kernel


@triton.jit
def running_sum_kernel(x_ptr, out_ptr, n, BLOCK: tl.constexpr):
    """out[lane] = the lane's sum of x, kept in x's dtype; one program."""
    offs = tl.arange(0, BLOCK)
    acc = tl.zeros([BLOCK], x_ptr.dtype.element_ty)
    for start in range(0, n, BLOCK):
        acc += tl.load(x_ptr + start + offs, mask=start + offs < n, other=0.0)  # adds nothing
    tl.store(out_ptr + offs, acc)


def running_sum_case(name, dtype, make):
    """Lanes add in order here and there, one rounding each: bit for bit."""

    def run(x):
        out = blank(16, like=x)
        running_sum_kernel[(1,)](x, out, x.numel(), BLOCK=16)
        return {"out": out}

    def reference(x):
        acc = torch.zeros(16, dtype=dtype)
        for part in torch.cat([x, torch.zeros(-len(x) % 16, dtype=dtype)]).split(16):
            acc = acc + part
        return {"out": acc}

    return Case(f"running sum/{short(dtype)}/{name}", lambda g: {"x": make(g).to(dtype)}, run, reference, tolerance=0.0)


@triton.jit
def rest_kernel(a_ptr, b_ptr, c_ptr, out_ptr, BLOCK: tl.constexpr):
    """out = a * b - c; one program."""
    offs = tl.arange(0, BLOCK)
    tl.store(out_ptr + offs, tl.load(a_ptr + offs) * tl.load(b_ptr + offs) - tl.load(c_ptr + offs))


def rest_case(fusion):
    """What the product lost: its rounding error where it is fused, 0 where it is not. Bit for bit."""

    def make(g):
        a, b = normal(g, 2, 256)
        return {"a": a, "b": b, "c": a * b}

    def run(a, b, c):
        out = blank(256, like=a)
        rest_kernel[(1,)](a, b, c, out, BLOCK=256, enable_fp_fusion=fusion)
        return {"out": out}

    def reference(a, b, c):
        exact = a.double() * b.double()  # 48 bits: exact
        return {"out": (exact - c.double()).float() if fusion else torch.zeros(256)}

    return Case(f"rest of a product/{'fused' if fusion else 'rounded twice'}", make, run, reference, tolerance=0.0)


@triton.jit
def product_kernel(a_ptr, b_ptr, c_ptr, PRECISION: tl.constexpr, ACC: tl.constexpr, N: tl.constexpr):
    """c = a @ b of N x N, with operands read as PRECISION and added in ACC; one program."""
    offs = tl.arange(0, N)
    tile = offs[:, None] * N + offs[None, :]
    c = tl.dot(tl.load(a_ptr + tile), tl.load(b_ptr + tile), input_precision=PRECISION, out_dtype=ACC)
    tl.store(c_ptr + tile, c)


def identity_case(precision):
    """12 significant bits times the identity: tf32 keeps 11 of them. Exact, cut or rounded."""

    def run(a):
        c = blank(32, 32, like=a)
        product_kernel[(1,)](a, torch.eye(32, device=a.device), c, PRECISION=precision, ACC=tl.float32, N=32)
        return {"c": c}

    def reference(a):
        return {"c": torch.ones(32, 32) if precision == "tf32" else a}

    return Case(f"twelve bits/{precision}", lambda g: {"a": torch.full((32, 32), 1 + 2**-11)}, run, reference, tolerance=0.0)


def half_product_case():
    """Small whole numbers: every sum fits float16's 11 bits, so any order is exact."""

    def make(g):
        return {name: torch.randint(-4, 5, (32, 32), generator=g).half() for name in "ab"}

    def run(a, b):
        c = blank(32, 32, like=a)
        product_kernel[(1,)](a, b, c, PRECISION="ieee", ACC=tl.float16, N=32)
        return {"c": c}

    return Case("product into float16", make, run, lambda a, b: {"c": (a.double() @ b.double()).half()}, tolerance=0.0)


@triton.jit
def safe_softmax_kernel(x_ptr, out_ptr, N, BLOCK: tl.constexpr):
    """out = softmax(x), 0 in a row of -inf; a program owns a row."""
    pid = tl.program_id(0)
    offs = tl.arange(0, BLOCK)
    x = tl.load(x_ptr + pid * N + offs, mask=offs < N, other=float("-inf")).to(tl.float32)
    top = tl.max(x, axis=0)
    e = tl.exp(x - tl.where(top == float("-inf"), 0.0, top))
    total = tl.sum(e, axis=0)
    tl.store(out_ptr + pid * N + offs, e / tl.where(total == 0, 1.0, total), mask=offs < N)


@triton.jit
def two_pass_kernel(x_ptr, out_ptr, N, BLOCK: tl.constexpr):
    """out = the variance of each row; a program owns a row."""
    pid = tl.program_id(0)
    offs = tl.arange(0, BLOCK)
    x = tl.load(x_ptr + pid * N + offs, mask=offs < N, other=0.0).to(tl.float32)  # adds nothing to the mean
    d = tl.where(offs < N, x - tl.sum(x, axis=0) / N, 0.0)
    tl.store(out_ptr + pid, tl.sum(d * d, axis=0) / N)


@triton.jit
def softcap_kernel(x_ptr, out_ptr, cap, N, BLOCK: tl.constexpr):
    """out = cap * tanh(x / cap); a program owns a row."""
    pid = tl.program_id(0)
    offs = tl.arange(0, BLOCK)
    x = tl.load(x_ptr + pid * N + offs, mask=offs < N).to(tl.float32)
    tl.store(out_ptr + pid * N + offs, cap * libdevice.tanh(x / cap), mask=offs < N)


def _softmax(x):
    out = blank(*x.shape, like=x, dtype=torch.float32)
    safe_softmax_kernel[(len(x),)](x, out, x.shape[1], BLOCK=512)
    return out


def _variance(x):
    out = blank(len(x), like=x, dtype=torch.float32)
    two_pass_kernel[(len(x),)](x, out, x.shape[1], BLOCK=512)
    return out


def _softcap(x):
    out = blank(*x.shape, like=x, dtype=torch.float32)
    softcap_kernel[(len(x),)](x, out, 50.0, x.shape[1], BLOCK=512)
    return out


def _norm(x):
    out = blank(*x.shape, like=x)
    rms_norm_kernel[(len(x),)](x, torch.ones(x.shape[1], device=x.device, dtype=x.dtype), out, x.shape[1], 1e-6, BLOCK=128)
    return out


def _softmax_reference(x):
    return torch.where(x.isneginf().all(-1, keepdim=True), 0.0, x.double().softmax(-1)).float()


def _norm_reference(x):
    return (x.double() / (x.double().pow(2).mean(-1, keepdim=True) + 1e-6).sqrt()).to(x.dtype)


# kernel, reference, hard inputs left out, tolerance. A variance of equal elements is 0, or the square of the mean's error: no norm tells.
HARD = {
    "softmax": (_softmax, _softmax_reference, (), 1e-5),
    "variance": (_variance, lambda x: x.double().var(-1, correction=0).float(), ("all equal", "subnormal"), 1e-5),
    "softcap": (_softcap, lambda x: (50 * (x.double() / 50).tanh()).float(), (), 1e-6),
    "norm": (_norm, _norm_reference, (), 2e-4),
}


def hard_case(name, hard):
    run, reference, _, tolerance = HARD[name]

    def make(generator):
        return {"x": hard_inputs((3, 300), torch.float16, "cpu")[hard]}

    return Case(f"hard {name}/{hard}", make, lambda x: {"out": run(x)}, lambda x: {"out": reference(x)}, tolerance)


NAMES = ("one outlier", "all equal", "mean 1e4", "mean -1e4", "scale 1e-6", "subnormal", "near max", "half -inf", "all -inf", "one +inf")
CASES = [
    running_sum_case("ones", torch.bfloat16, lambda g: torch.ones(5_000)),
    running_sum_case("normal", torch.bfloat16, lambda g: normal(g, 2_001)),
    running_sum_case("normal", torch.float16, lambda g: normal(g, 2_001)),
    running_sum_case("overflow", torch.float16, lambda g: torch.full((160,), 1e4)),
    rest_case(True),
    rest_case(False),
    *(identity_case(precision) for precision in ("tf32", "tf32x3", "ieee")),
    half_product_case(),
    *(hard_case(name, hard) for name, (_, _, left_out, _) in HARD.items() for hard in NAMES if hard not in left_out),
]
