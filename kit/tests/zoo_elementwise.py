"""Zoo: kernels in which each element is on its own: arithmetic, mathematics, copies, random numbers."""

from __future__ import annotations

import math

import torch
import triton
import triton.language as tl
from triton.language.extra import libdevice

from kit.tests.zoo_case import GUARD, SIZES, Case, blank, guarded, integers, normal, short, wrapped

BLOCK = 128


@triton.jit
def add_kernel(x_ptr, y_ptr, out_ptr, n, BLOCK: tl.constexpr):
    """out = x + y; a program owns BLOCK elements."""
    pid = tl.program_id(0)
    offs = pid * BLOCK + tl.arange(0, BLOCK)
    mask = offs < n
    x = tl.load(x_ptr + offs, mask=mask)
    y = tl.load(y_ptr + offs, mask=mask)
    tl.store(out_ptr + offs, x + y, mask=mask)


def add_case(dtype, n):
    def make(g):
        draw = normal if dtype.is_floating_point else lambda g, n, dtype: integers(g, -(2**30), 2**30, n, dtype=dtype)
        return {"x": draw(g, n, dtype=dtype), "y": draw(g, n, dtype=dtype)}

    def run(x, y):
        out = blank(n + GUARD, like=x)
        add_kernel[(triton.cdiv(n, BLOCK),)](x, y, out, n, BLOCK=BLOCK)
        return {"out": out}

    return Case(f"add/{short(dtype)}/{n}", make, run, lambda x, y: {"out": guarded(x + y)}, 0.0)


@triton.jit
def copy_2d_kernel(x_ptr, out_ptr, M, N, stride_xm, stride_xn, stride_om, stride_on, BLOCK_M: tl.constexpr, BLOCK_N: tl.constexpr):
    """out[m, n] = x[m, n] for any strides; a program owns a tile."""
    offs_m = tl.program_id(0) * BLOCK_M + tl.arange(0, BLOCK_M)
    offs_n = tl.program_id(1) * BLOCK_N + tl.arange(0, BLOCK_N)
    mask = (offs_m[:, None] < M) & (offs_n[None, :] < N)
    x = tl.load(x_ptr + offs_m[:, None] * stride_xm + offs_n[None, :] * stride_xn, mask=mask)
    tl.store(out_ptr + offs_m[:, None] * stride_om + offs_n[None, :] * stride_on, x, mask=mask)


# The parent's shape, and the view of it that is copied.
VIEWS = {
    "rows": ((33, 65), lambda x: x),
    "transposed": ((65, 33), lambda x: x.T),
    "sliced": ((70, 140), lambda x: x[1:67:2, 5:135:2]),
    "one row for all": ((1, 65), lambda x: x.expand(33, 65)),
    "single": ((1, 1), lambda x: x),
}


def copy_2d_case(view, dtype, debug=False):
    shape, see = VIEWS[view]

    def run(x):
        x = see(x)
        out = blank(x.shape[0], x.shape[1] + 3, like=x)  # a row is wider than what is written of it
        grid = (triton.cdiv(x.shape[0], 16), triton.cdiv(x.shape[1], 32))
        copy_2d_kernel[grid](x, out, *x.shape, *x.stride(), *out.stride(), BLOCK_M=16, BLOCK_N=32, debug=debug)
        return {"out": out}

    def reference(x):
        x = see(x)
        return {"out": torch.cat([x, blank(x.shape[0], 3, like=x)], dim=1)}

    name = f"copy 2d/{view}{' debug' if debug else ''}/{short(dtype)}"
    return Case(name, lambda g: {"x": normal(g, *shape, dtype=dtype)}, run, reference, 0.0)


@triton.jit
def integer_kernel(a_ptr, b_ptr, s_ptr, out_ptr, n, BLOCK: tl.constexpr):
    """Row k of out is the k-th operation of INTEGER_OPS on a and b, or on a and the shift s."""
    offs = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    mask = offs < n
    a = tl.load(a_ptr + offs, mask=mask, other=1)  # 1: no masked lane divides by zero
    b = tl.load(b_ptr + offs, mask=mask, other=1)
    s = tl.load(s_ptr + offs, mask=mask, other=0)
    out_ptrs = out_ptr + offs
    tl.store(out_ptrs, a + b, mask=mask)
    tl.store(out_ptrs + n, a - b, mask=mask)
    tl.store(out_ptrs + 2 * n, a * b, mask=mask)
    tl.store(out_ptrs + 3 * n, a // b, mask=mask)
    tl.store(out_ptrs + 4 * n, a % b, mask=mask)
    tl.store(out_ptrs + 5 * n, a & b, mask=mask)
    tl.store(out_ptrs + 6 * n, a | b, mask=mask)
    tl.store(out_ptrs + 7 * n, a ^ b, mask=mask)
    tl.store(out_ptrs + 8 * n, ~a, mask=mask)
    tl.store(out_ptrs + 9 * n, a << s, mask=mask)
    tl.store(out_ptrs + 10 * n, a >> s, mask=mask)
    tl.store(out_ptrs + 11 * n, tl.minimum(a, b), mask=mask)
    tl.store(out_ptrs + 12 * n, tl.maximum(a, b), mask=mask)
    tl.store(out_ptrs + 13 * n, a < b, mask=mask)
    tl.store(out_ptrs + 14 * n, tl.where(a == b, a, b), mask=mask)


def toward_zero(a, b):
    quotient = abs(a) // abs(b)
    return quotient if (a < 0) == (b < 0) else -quotient


# On Python integers, which never overflow; the result is wrapped to the dtype afterwards.
INTEGER_OPS = {
    "a + b": lambda a, b, s: a + b,
    "a - b": lambda a, b, s: a - b,
    "a * b": lambda a, b, s: a * b,
    "a // b": lambda a, b, s: toward_zero(a, b),
    "a % b": lambda a, b, s: a - b * toward_zero(a, b),
    "a & b": lambda a, b, s: a & b,
    "a | b": lambda a, b, s: a | b,
    "a ^ b": lambda a, b, s: a ^ b,
    "~a": lambda a, b, s: ~a,
    "a << s": lambda a, b, s: a << s,
    "a >> s": lambda a, b, s: a >> s,
    "min": lambda a, b, s: min(a, b),
    "max": lambda a, b, s: max(a, b),
    "a < b": lambda a, b, s: int(a < b),
    "where": lambda a, b, s: a if a == b else b,
}


def integer_case(dtype):
    bits, n = 8 * dtype.itemsize, 257
    signed = dtype.is_signed

    def make(g):
        # Every magnitude, so that products overflow and quotients are not all zero. The bits are drawn, then read as dtype.
        def draw():
            raw = [int(v) for v in torch.randint(0, 2**62, (n,), generator=g)]
            cut = [int(v) for v in torch.randint(1, bits - 1, (n,), generator=g)]
            sign = [1 - 2 * int(v) if signed else 1 for v in torch.randint(0, 2, (n,), generator=g)]
            return [s * (v % (1 << c)) for v, c, s in zip(raw, cut, sign, strict=True)]

        b = [value or 1 for value in draw()]
        shifts = torch.randint(0, bits, (n,), generator=g)
        return {"a": torch.tensor(draw(), dtype=dtype), "b": torch.tensor(b, dtype=dtype), "s": shifts.to(dtype)}

    def run(a, b, s):
        out = blank(len(INTEGER_OPS) * n, like=a)
        integer_kernel[(triton.cdiv(n, BLOCK),)](a, b, s, out, n, BLOCK=BLOCK)
        return dict(zip(INTEGER_OPS, out.reshape(-1, n), strict=True))

    def reference(a, b, s):
        rows = list(zip(a.tolist(), b.tolist(), s.tolist(), strict=True))
        return {name: torch.tensor([wrapped(f(*row), dtype) for row in rows], dtype=dtype) for name, f in INTEGER_OPS.items()}

    return Case(f"integer operations/{short(dtype)}", make, run, reference)


@triton.jit
def math_kernel(x_ptr, y_ptr, out_ptr, n, BLOCK: tl.constexpr):
    """Row k of out is the k-th function of MATH of x (any sign) and y (positive)."""
    offs = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    mask = offs < n
    x = tl.load(x_ptr + offs, mask=mask, other=1.0)
    y = tl.load(y_ptr + offs, mask=mask, other=1.0)
    out_ptrs = out_ptr + offs
    tl.store(out_ptrs, tl.exp(x), mask=mask)
    tl.store(out_ptrs + n, tl.exp2(x), mask=mask)
    tl.store(out_ptrs + 2 * n, tl.log(y), mask=mask)
    tl.store(out_ptrs + 3 * n, tl.log2(y), mask=mask)
    tl.store(out_ptrs + 4 * n, tl.sqrt(y), mask=mask)
    tl.store(out_ptrs + 5 * n, tl.rsqrt(y), mask=mask)
    tl.store(out_ptrs + 6 * n, tl.sin(x), mask=mask)
    tl.store(out_ptrs + 7 * n, tl.cos(x), mask=mask)
    tl.store(out_ptrs + 8 * n, tl.sigmoid(x), mask=mask)
    tl.store(out_ptrs + 9 * n, tl.erf(x), mask=mask)
    tl.store(out_ptrs + 10 * n, tl.abs(x), mask=mask)
    tl.store(out_ptrs + 11 * n, tl.floor(x), mask=mask)
    tl.store(out_ptrs + 12 * n, tl.ceil(x), mask=mask)
    tl.store(out_ptrs + 13 * n, tl.where(x > 0, x, -x * 0.5), mask=mask)
    tl.store(out_ptrs + 14 * n, tl.minimum(x, y), mask=mask)
    tl.store(out_ptrs + 15 * n, tl.maximum(x, y), mask=mask)
    tl.store(out_ptrs + 16 * n, tl.clamp(x, -1.0, 1.0), mask=mask)
    tl.store(out_ptrs + 17 * n, tl.fma(x, y, x), mask=mask)
    tl.store(out_ptrs + 18 * n, x / y, mask=mask)
    tl.store(out_ptrs + 19 * n, libdevice.tanh(x), mask=mask)
    tl.store(out_ptrs + 20 * n, libdevice.pow(y, x), mask=mask)
    tl.store(out_ptrs + 21 * n, libdevice.log1p(y), mask=mask)
    tl.store(out_ptrs + 22 * n, libdevice.rint(x * 4), mask=mask)


MATH = {
    "exp": lambda x, y: x.exp(),
    "exp2": lambda x, y: x.exp2(),
    "log": lambda x, y: y.log(),
    "log2": lambda x, y: y.log2(),
    "sqrt": lambda x, y: y.sqrt(),
    "rsqrt": lambda x, y: y.rsqrt(),
    "sin": lambda x, y: x.sin(),
    "cos": lambda x, y: x.cos(),
    "sigmoid": lambda x, y: x.sigmoid(),
    "erf": lambda x, y: x.erf(),
    "abs": lambda x, y: x.abs(),
    "floor": lambda x, y: x.floor(),
    "ceil": lambda x, y: x.ceil(),
    "where": lambda x, y: torch.where(x > 0, x, -x * 0.5),
    "minimum": lambda x, y: torch.minimum(x, y),
    "maximum": lambda x, y: torch.maximum(x, y),
    "clamp": lambda x, y: x.clamp(-1, 1),
    "fma": lambda x, y: x * y + x,
    "x / y": lambda x, y: x / y,
    "tanh": lambda x, y: x.tanh(),
    "pow": lambda x, y: y**x,
    "log1p": lambda x, y: y.log1p(),
    "rint": lambda x, y: (x * 4).round(),
}


def math_case(n):
    def make(g):
        y = normal(g, n).abs() * 3 + 0.05
        return {"x": normal(g, n, scale=2.0), "y": y}

    def run(x, y):
        out = blank(len(MATH) * n, like=x)
        math_kernel[(triton.cdiv(n, BLOCK),)](x, y, out, n, BLOCK=BLOCK)
        return dict(zip(MATH, out.reshape(-1, n), strict=True))

    def reference(x, y):
        return {name: f(x.double(), y.double()).float() for name, f in MATH.items()}

    return Case(f"mathematics/float32/{n}", make, run, reference)


@triton.jit
def libdevice_kernel(x_ptr, y_ptr, k_ptr, out_ptr, whole_ptr, n, BLOCK: tl.constexpr):
    """Row k of out is the k-th function of LIBDEVICE of x (any sign) and y (positive); of whole, that of LIBDEVICE_WHOLE."""
    offs = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    mask = offs < n
    x = tl.load(x_ptr + offs, mask=mask, other=0.5)
    y = tl.load(y_ptr + offs, mask=mask, other=0.5)
    k = tl.load(k_ptr + offs, mask=mask, other=1)
    out_ptrs, whole_ptrs = out_ptr + offs, whole_ptr + offs
    tl.store(out_ptrs, libdevice.cbrt(x), mask=mask)
    tl.store(out_ptrs + n, libdevice.asinh(x), mask=mask)
    tl.store(out_ptrs + 2 * n, libdevice.hypot(x, y), mask=mask)
    tl.store(out_ptrs + 3 * n, libdevice.erfc(x), mask=mask)
    tl.store(out_ptrs + 4 * n, libdevice.tgamma(y), mask=mask)
    tl.store(out_ptrs + 5 * n, libdevice.fdim(x, y), mask=mask)
    tl.store(out_ptrs + 6 * n, libdevice.round(x * 2), mask=mask)
    tl.store(out_ptrs + 7 * n, libdevice.normcdf(x), mask=mask)
    tl.store(out_ptrs + 8 * n, libdevice.sinpi(x), mask=mask)
    tl.store(out_ptrs + 9 * n, libdevice.exp10(x), mask=mask)
    tl.store(out_ptrs + 10 * n, libdevice.ldexp(x, k % 8), mask=mask)
    tl.store(out_ptrs + 11 * n, libdevice.atan2(x, y), mask=mask)
    tl.store(out_ptrs + 12 * n, libdevice.saturatef(x), mask=mask)
    tl.store(out_ptrs + 13 * n, libdevice.div_rn(x, y), mask=mask)
    tl.store(out_ptrs + 14 * n, libdevice.rcbrt(x), mask=mask)
    tl.store(whole_ptrs, libdevice.popc(k), mask=mask)
    tl.store(whole_ptrs + n, libdevice.clz(k), mask=mask)
    tl.store(whole_ptrs + 2 * n, libdevice.ffs(k), mask=mask)
    tl.store(whole_ptrs + 3 * n, libdevice.float2int_rn(x * 3), mask=mask)
    tl.store(whole_ptrs + 4 * n, libdevice.float2int_rd(x), mask=mask)
    tl.store(whole_ptrs + 5 * n, libdevice.float_as_int(x), mask=mask)
    tl.store(whole_ptrs + 6 * n, libdevice.signbit(x), mask=mask)
    tl.store(whole_ptrs + 7 * n, libdevice.mulhi(k, k), mask=mask)


LIBDEVICE = {
    "cbrt": lambda x, y, k: torch.tensor([math.cbrt(v) for v in x.tolist()], dtype=x.dtype),
    "asinh": lambda x, y, k: x.asinh(),
    "hypot": lambda x, y, k: (x * x + y * y).sqrt(),
    "erfc": lambda x, y, k: x.erfc(),
    "tgamma": lambda x, y, k: torch.tensor([math.gamma(v) for v in y.tolist()], dtype=x.dtype),
    "fdim": lambda x, y, k: (x - y).clamp(min=0),
    "round": lambda x, y, k: torch.tensor([math.copysign(math.floor(abs(2 * v) + 0.5), v) for v in x.tolist()], dtype=x.dtype),
    "normcdf": lambda x, y, k: 0.5 * (-x / math.sqrt(2)).erfc(),
    "sinpi": lambda x, y, k: (x * math.pi).sin(),
    "exp10": lambda x, y, k: 10**x,
    "ldexp": lambda x, y, k: x * 2.0 ** (k % 8),
    "atan2": lambda x, y, k: torch.tensor([math.atan2(a, b) for a, b in zip(x.tolist(), y.tolist())], dtype=x.dtype),
    "saturate": lambda x, y, k: x.clamp(0, 1),
    "div_rn": lambda x, y, k: x / y,
    "rcbrt": lambda x, y, k: torch.tensor([1 / math.cbrt(v) for v in x.tolist()], dtype=x.dtype),
}
LIBDEVICE_WHOLE = {
    "popc": lambda x, k: k.bit_count(),
    "clz": lambda x, k: 32 - k.bit_length(),
    "ffs": lambda x, k: (k & -k).bit_length(),
    "to int, nearest": lambda x, k: round(float(torch.tensor(x) * 3)),
    "to int, down": lambda x, k: math.floor(x),
    "bits": lambda x, k: int(torch.tensor(x).view(torch.int32)),
    "sign": lambda x, k: int(math.copysign(1, x) < 0),
    "mulhi": lambda x, k: k * k >> 32,
}


def libdevice_case():
    n = 200

    def make(g):
        y = normal(g, n).abs() * 2 + 0.05
        return {"x": normal(g, n, scale=2.0), "y": y, "k": integers(g, 0, 2**31 - 1, n) >> integers(g, 0, 31, n)}

    def run(x, y, k):
        out, whole = blank(len(LIBDEVICE) * n, like=x), blank(len(LIBDEVICE_WHOLE) * n, like=k)
        libdevice_kernel[(triton.cdiv(n, BLOCK),)](x, y, k, out, whole, n, BLOCK=BLOCK)
        rows = zip(LIBDEVICE, out.reshape(-1, n), strict=True), zip(LIBDEVICE_WHOLE, whole.reshape(-1, n), strict=True)
        return dict(rows[0]) | dict(rows[1])

    def reference(x, y, k):
        pairs = list(zip(x.tolist(), k.tolist()))
        outs = {name: f(x.double(), y.double(), k.double()).float() for name, f in LIBDEVICE.items()}
        return outs | {name: torch.tensor([f(*pair) for pair in pairs], dtype=torch.int32) for name, f in LIBDEVICE_WHOLE.items()}

    return Case("libdevice/float32", make, run, reference)


@triton.jit
def multiply_add_kernel(x_ptr, y_ptr, out_ptr, n, BLOCK: tl.constexpr):
    """out = x * y + x in the dtype of x: fused by the compiler, so rounded once."""
    offs = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    mask = offs < n
    x = tl.load(x_ptr + offs, mask=mask)
    y = tl.load(y_ptr + offs, mask=mask)
    tl.store(out_ptr + offs, x * y + x, mask=mask)


def multiply_add_case(dtype):
    def run(x, y):
        out = blank(257 + GUARD, like=x)
        multiply_add_kernel[(3,)](x, y, out, 257, BLOCK=BLOCK)
        return {"out": out}

    def reference(x, y):
        return {"out": guarded((x.double() * y.double() + x.double()).to(dtype))}

    def make(g):
        return {"x": normal(g, 257, dtype=dtype), "y": normal(g, 257, dtype=dtype)}

    return Case(f"multiply add/{short(dtype)}", make, run, reference, 0.0)


@triton.jit
def special_kernel(x_ptr, y_ptr, out_ptr, n, BLOCK: tl.constexpr):
    """Row k of out is the k-th of SPECIAL of x and y, which hold NaN, infinities and zeros of both signs."""
    offs = tl.arange(0, BLOCK)
    mask = offs < n
    x = tl.load(x_ptr + offs, mask=mask)
    y = tl.load(y_ptr + offs, mask=mask)
    out_ptrs = out_ptr + offs
    tl.store(out_ptrs, tl.minimum(x, y), mask=mask)
    tl.store(out_ptrs + n, tl.maximum(x, y), mask=mask)
    tl.store(out_ptrs + 2 * n, tl.minimum(x, y, propagate_nan=tl.PropagateNan.ALL), mask=mask)
    tl.store(out_ptrs + 3 * n, tl.maximum(x, y, propagate_nan=tl.PropagateNan.ALL), mask=mask)
    tl.store(out_ptrs + 4 * n, x + y, mask=mask)
    tl.store(out_ptrs + 5 * n, x * y, mask=mask)
    tl.store(out_ptrs + 6 * n, x < y, mask=mask)
    tl.store(out_ptrs + 7 * n, x >= y, mask=mask)
    tl.store(out_ptrs + 8 * n, x == y, mask=mask)
    tl.store(out_ptrs + 9 * n, x != y, mask=mask)
    tl.store(out_ptrs + 10 * n, tl.exp(x), mask=mask)
    tl.store(out_ptrs + 11 * n, tl.sqrt(x), mask=mask)
    tl.store(out_ptrs + 12 * n, tl.where(x != x, 0.0, x), mask=mask)


SPECIAL = {
    "minimum": torch.fmin,
    "maximum": torch.fmax,
    "minimum, NaN wins": torch.minimum,
    "maximum, NaN wins": torch.maximum,
    "x + y": torch.add,
    "x * y": torch.mul,
    "x < y": torch.lt,
    "x >= y": torch.ge,
    "x == y": torch.eq,
    "x != y": torch.ne,
    "exp": lambda x, y: x.exp(),
    "sqrt": lambda x, y: x.sqrt(),
    "where": lambda x, y: x.nan_to_num(nan=0.0, posinf=float("inf"), neginf=-float("inf")),
}


def special_case():
    values = torch.tensor([0.0, -0.0, 1.0, -2.5, float("inf"), -float("inf"), float("nan"), 3e38])
    pairs = torch.cartesian_prod(values, values)

    def run(x, y):
        out = blank(len(SPECIAL) * 64, like=x)
        special_kernel[(1,)](x, y, out, 64, BLOCK=64)
        return dict(zip(SPECIAL, out.reshape(-1, 64), strict=True))

    def reference(x, y):
        return {name: f(x, y).to(torch.float32) for name, f in SPECIAL.items()}

    return Case("special values/float32", lambda g: {"x": pairs[:, 0].contiguous(), "y": pairs[:, 1].contiguous()}, run, reference)


@triton.jit
def random_kernel(seed, uniform_ptr, whole_ptr, normal_ptr, n, BLOCK: tl.constexpr):
    """Philox numbers 0..n-1 of `seed`: uniform in [0, 1), 32-bit integers, and standard normal."""
    offs = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    mask = offs < n
    tl.store(uniform_ptr + offs, tl.rand(seed, offs), mask=mask)
    tl.store(whole_ptr + offs, tl.randint(seed, offs), mask=mask)
    tl.store(normal_ptr + offs, tl.randn(seed, offs), mask=mask)


def philox(seed, n):
    """The first two words of Philox4x32-10 for counters 0..n-1 (Salmon et al., "Parallel random numbers", 2011), as lists."""
    low32, words = 2**32 - 1, ([], [])
    for counter in range(n):
        c0, c1, c2, c3, k0, k1 = counter, 0, 0, 0, seed & low32, seed >> 32
        for _ in range(10):
            product_a, product_b = 0xD2511F53 * c0, 0xCD9E8D57 * c2
            c0, c1, c2, c3 = (product_b >> 32) ^ c1 ^ k0, product_b & low32, (product_a >> 32) ^ c3 ^ k1, product_a & low32
            k0, k1 = (k0 + 0x9E3779B9) & low32, (k1 + 0xBB67AE85) & low32
        words[0].append(wrapped(c0, torch.int32))
        words[1].append(wrapped(c1, torch.int32))
    return words


def random_case(seed):
    n = 200

    def run(anchor):
        uniform, whole, bell = blank(n, like=anchor), blank(n, like=anchor, dtype=torch.int32), blank(n, like=anchor)
        random_kernel[(triton.cdiv(n, BLOCK),)](seed, uniform, whole, bell, n, BLOCK=BLOCK)
        return {"uniform": uniform, "integers": whole, "normal": bell}

    def reference(anchor):
        # triton/language/random.py: an int32 is folded to 0..2^31-1 and scaled; two of them make a normal number (Box and Muller).
        c0, c1 = (torch.tensor(word, dtype=torch.int64) for word in philox(seed, n))
        u0, u1 = (torch.where(c < 0, -c - 1, c).float() * torch.tensor(4.6566127342e-10) for c in (c0, c1))
        bell = torch.sqrt(-2 * u0.double().clamp(min=1e-7).log()) * torch.cos(6.283185307179586 * u1.double())
        return {"uniform": u0, "integers": c0.to(torch.int32), "normal": bell.float()}

    return Case(f"random/{seed}", lambda g: {"anchor": torch.zeros(1)}, run, reference, 1e-6)


CASES = [
    *(add_case(dtype, n) for dtype in (torch.float32, torch.bfloat16) for n in SIZES),
    *(add_case(dtype, 129) for dtype in (torch.float16, torch.float64, torch.int32, torch.int64)),
    *(copy_2d_case(view, torch.float32) for view in VIEWS),
    copy_2d_case("sliced", torch.bfloat16),
    copy_2d_case("sliced", torch.float32, debug=True),
    *(integer_case(getattr(torch, kind)) for kind in ("int8", "int16", "int32", "int64", "uint8", "uint16", "uint32", "uint64")),
    math_case(1000),
    libdevice_case(),
    *(multiply_add_case(dtype) for dtype in (torch.float32, torch.float16, torch.bfloat16)),
    special_case(),
    *(random_case(seed) for seed in (0, 12345, 2**40 + 7)),
]
