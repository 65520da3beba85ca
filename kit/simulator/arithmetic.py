"""Element-wise operations: the name in the IR -> a function of torch tensors.

Integers wrap as on the hardware. Where C or PTX leave a result undefined, the choice is stated beside it. Unsigned operations
work on the same bits as signed ones, because the IR has one integer type of each width.
"""

from __future__ import annotations

import torch

LARGEST = {8: 2**7 - 1, 16: 2**15 - 1, 32: 2**31 - 1, 64: 2**63 - 1}
MIN64 = -(2**63)


def bits_of(data):
    return 1 if data.dtype is torch.bool else 8 * data.element_size()


def unsigned(data):
    """The bits read as an unsigned number, in int64. Only for widths under 64."""
    return data.to(torch.int64) & ((1 << bits_of(data)) - 1)


def _wide(function):
    """Compute in int64 and wrap to the operands' width, so that no intermediate overflows in C."""

    def run(a, b):
        return function(a.to(torch.int64), b.to(torch.int64)).to(a.dtype)

    return run


def _divsi(a, b):
    """Toward zero, as C. By zero, which C leaves undefined, what the H200 gives (_by_zero)."""
    zero = b == 0
    overflow = (a == MIN64) & (b == -1)  # traps on x86; wraps here
    quotient = torch.div(a, torch.where(zero | overflow, torch.ones_like(b), b), rounding_mode="trunc")
    return torch.where(zero, _by_zero(a), quotient)


def _by_zero(a):
    """a // 0 in 64 bits: all ones; only 32 of them where a fits in 32, since LLVM then divides in 32 bits (BypassSlowDivision)."""
    return torch.where(a >> 32 == 0, 0xFFFFFFFF, -1)


def _remsi(a, b):
    zero = (b == 0) | (b == -1)  # x % -1 is 0 for every x, and traps on x86 for the smallest
    remainder = torch.fmod(a, torch.where(zero, torch.ones_like(b), b))
    return torch.where(b == 0, a.expand_as(remainder), remainder)


def _divui64(a, b):
    """Unsigned 64-bit division from signed pieces (Hacker's Delight, 2nd ed., section 9-3)."""
    safe = torch.where(b == 0, torch.ones_like(b), b)
    half = torch.div((a >> 1) & (2**63 - 1), torch.where(safe < 0, torch.ones_like(safe), safe), rounding_mode="trunc") << 1
    quotient = half + _uge(a - half * safe, safe).to(torch.int64)
    quotient = torch.where(safe < 0, _uge(a, safe).to(torch.int64), quotient)
    return torch.where(b == 0, _by_zero(a), quotient)


def _uge(a, b):
    return (a ^ MIN64) >= (b ^ MIN64)


def _divui(a, b):
    if bits_of(a) == 64:
        return _divui64(a, b)
    zero = b == 0
    quotient = torch.div(unsigned(a), torch.where(zero, torch.ones_like(b, dtype=torch.int64), unsigned(b)), rounding_mode="trunc")
    return torch.where(zero, torch.full_like(quotient, -1), quotient).to(a.dtype)


def _remui(a, b):
    wide_a, wide_b = (a, b) if bits_of(a) == 64 else (unsigned(a), unsigned(b))
    quotient = _divui64(wide_a, wide_b)
    return torch.where(wide_b == 0, wide_a, wide_a - quotient * wide_b).to(a.dtype)


def _shift(function):
    """A shift by the width or more gives what PTX gives: zero, or the sign."""

    def run(a, b):
        width = bits_of(a)
        by = torch.where((b < 0) | (b >= width), torch.full_like(b, width), b).to(torch.int64)
        return function(a, by, width).to(a.dtype)

    return run


def _shl(a, by, width):
    return torch.where(by >= 64, torch.zeros_like(by), a.to(torch.int64) << by.clamp(max=63))


def _shrsi(a, by, width):
    return a.to(torch.int64) >> by.clamp(max=63)


def _shrui(a, by, width):
    if width < 64:
        return unsigned(a) >> by
    logical = (a >> by.clamp(max=63)) & torch.where(by == 0, torch.full_like(a, -1), (torch.ones_like(a) << (64 - by.clamp(1, 63))) - 1)
    return torch.where(by >= 64, torch.zeros_like(a), logical)


def _by_unsigned(function):
    """A comparison or choice made on the operands read as unsigned numbers."""

    def run(a, b):
        flip = MIN64 if bits_of(a) == 64 else None
        left, right = (a ^ flip, b ^ flip) if flip else (unsigned(a), unsigned(b))
        return function(left, right, a, b)

    return run


def mulhi_unsigned(a, b):
    """The upper half of the unsigned product."""
    if bits_of(a) < 64:
        return ((unsigned(a) * unsigned(b)) >> bits_of(a)).to(a.dtype)
    low, high = a & 0xFFFFFFFF, (a >> 32) & 0xFFFFFFFF
    other_low, other_high = b & 0xFFFFFFFF, (b >> 32) & 0xFFFFFFFF
    cross = high * other_low + (((low * other_low) >> 32) & 0xFFFFFFFF)
    second = low * other_high + (cross & 0xFFFFFFFF)
    return high * other_high + ((cross >> 32) & 0xFFFFFFFF) + ((second >> 32) & 0xFFFFFFFF)


def _unordered(a, b):
    return torch.isnan(a) | torch.isnan(b)


COMPARE_INTEGERS = {
    "eq": torch.eq,
    "ne": torch.ne,
    "slt": torch.lt,
    "sle": torch.le,
    "sgt": torch.gt,
    "sge": torch.ge,
    "ult": _by_unsigned(lambda x, y, a, b: x < y),
    "ule": _by_unsigned(lambda x, y, a, b: x <= y),
    "ugt": _by_unsigned(lambda x, y, a, b: x > y),
    "uge": _by_unsigned(lambda x, y, a, b: x >= y),
}
COMPARE_FLOATS = {
    "false": lambda a, b: torch.zeros_like(a == b),
    "oeq": torch.eq,
    "ogt": torch.gt,
    "oge": torch.ge,
    "olt": torch.lt,
    "ole": torch.le,
    "one": lambda a, b: (a < b) | (a > b),
    "ord": lambda a, b: ~_unordered(a, b),
    "ueq": lambda a, b: (a == b) | _unordered(a, b),
    "ugt": lambda a, b: ~(a <= b),
    "uge": lambda a, b: ~(a < b),
    "ult": lambda a, b: ~(a >= b),
    "ule": lambda a, b: ~(a > b),
    "une": torch.ne,
    "uno": _unordered,
    "true": lambda a, b: torch.ones_like(a == b),
}

# Sums and products of int32 wrap in torch as they do on the hardware.
BINARY = {
    "arith.addi": torch.add,
    "arith.subi": torch.sub,
    "arith.muli": torch.mul,
    "arith.divsi": _wide(_divsi),
    "arith.remsi": _wide(_remsi),
    "arith.divui": _divui,
    "arith.remui": _remui,
    "arith.andi": torch.bitwise_and,
    "arith.ori": torch.bitwise_or,
    "arith.xori": torch.bitwise_xor,
    "arith.shli": _shift(_shl),
    "arith.shrsi": _shift(_shrsi),
    "arith.shrui": _shift(_shrui),
    "arith.minsi": torch.minimum,
    "arith.maxsi": torch.maximum,
    "arith.minui": _by_unsigned(lambda x, y, a, b: torch.where(x <= y, a, b)),
    "arith.maxui": _by_unsigned(lambda x, y, a, b: torch.where(x >= y, a, b)),
    "arith.addf": torch.add,
    "arith.subf": torch.sub,
    "arith.mulf": torch.mul,
    "arith.divf": torch.div,
    "arith.remf": torch.fmod,
    "arith.minnumf": torch.fmin,
    "arith.maxnumf": torch.fmax,
    "arith.minimumf": torch.minimum,
    "arith.maximumf": torch.maximum,
    "math.powf": torch.pow,
    "math.atan2": torch.atan2,
    "math.copysign": torch.copysign,
    "tt.precise_divf": torch.div,
    "tt.mulhiui": mulhi_unsigned,
}
UNARY = {
    "arith.negf": torch.neg,
    "math.absf": torch.abs,
    "math.absi": torch.abs,
    "math.exp": torch.exp,
    "math.exp2": torch.exp2,
    "math.expm1": torch.expm1,
    "math.log": torch.log,
    "math.log2": torch.log2,
    "math.log10": torch.log10,
    "math.log1p": torch.log1p,
    "math.sqrt": torch.sqrt,
    "math.rsqrt": torch.rsqrt,
    "math.sin": torch.sin,
    "math.cos": torch.cos,
    "math.tan": torch.tan,
    "math.tanh": torch.tanh,
    "math.erf": torch.erf,
    "math.floor": torch.floor,
    "math.ceil": torch.ceil,
    "math.round": lambda a: torch.sign(a) * torch.floor(torch.abs(a) + 0.5),
    "math.roundeven": torch.round,
    "math.trunc": torch.trunc,
    "tt.precise_sqrt": torch.sqrt,
}


def fused(a, b, c):
    """a·b + c with one rounding. Up to fp32 the product is exact in fp64, and so is all but the last rounding: it is taken from a
    number already rounded to 53 bits, which changes it once in about 2^29 (fp32) to 2^42 (fp16) results."""
    if a.dtype is not torch.float64:
        return torch.addcmul(c.to(torch.float64), a.to(torch.float64), b.to(torch.float64)).to(a.dtype)
    product = a * b
    low = _product_error(a, b, product)
    total = product + c
    back = total - product
    left_out = (product - (total - back)) + (c - back)  # of the sum (Knuth's two-sum)
    return torch.where(torch.isfinite(total) & torch.isfinite(low), total + (left_out + low), total)


def _product_error(a, b, product):
    """a·b - product, exactly, where nothing overflows (Dekker 1971, halves by Veltkamp)."""

    def halves(x):
        scaled = x * 134217729.0
        high = scaled - (scaled - x)
        return high, x - high

    (a_high, a_low), (b_high, b_low) = halves(a), halves(b)
    return ((a_high * b_high - product) + a_high * b_low + a_low * b_high) + a_low * b_low


def libdevice(symbol):
    """The function behind "__nv_expf", or None."""
    from kit.simulator.libdevice import find  # which computes with what stands here

    return find(symbol)


def float_to_integer(data, dtype, signed):
    """Toward zero, saturating: PTX cvt.rzi. As seen on an H200: to 8 bits it converts to 16 and keeps the low byte; NaN gives 0, and
    in 64 bits the bits of -2^63."""
    wide = data.to(torch.float64)
    if dtype.itemsize == 8:
        return _float_to_64(wide, signed)
    width = max(8 * dtype.itemsize, 16)
    low, high = (-LARGEST[width] - 1, LARGEST[width]) if signed else (0, 2 * LARGEST[width] + 1)
    return torch.nan_to_num(wide, nan=0.0).clamp(low, high).to(torch.int64).to(dtype)


def _float_to_64(wide, signed):
    top = 2.0**63  # torch converts only what lies within int64
    inside = torch.where(wide.abs() < top, wide, 0.0).to(torch.int64)
    if signed:
        result = torch.where(wide >= top, LARGEST[64], torch.where(wide <= -top, MIN64, inside))
    else:
        upper = torch.where((wide >= top) & (wide < 2 * top), wide - top, 0.0).to(torch.int64) + MIN64
        result = torch.where(wide >= top, torch.where(wide >= 2 * top, -1, upper), inside.clamp(min=0))
    return torch.where(wide.isnan(), MIN64, result)


def to_float(data, dtype):
    """Round to nearest even. To fp8, values beyond the largest become the largest (PTX cvt.rn.satfinite)."""
    if dtype in (torch.float8_e4m3fn, torch.float8_e5m2):
        largest = torch.finfo(dtype).max
        return data.to(torch.float32).clamp(-largest, largest).to(dtype)
    return data.to(torch.float32).to(dtype) if data.element_size() == 1 else data.to(dtype)


def to_tf32(data):
    """fp32 as the tensor core reads it for tf32: the lowest 13 bits of the fraction are cut off."""
    return (data.contiguous().view(torch.int32) & -8192).view(torch.float32)
