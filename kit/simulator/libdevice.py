"""NVIDIA's libdevice: the functions that `triton.language.extra.libdevice` calls, by symbol (libdevice user's guide).

Values are torch's, in the operand's own precision. A GPU's may differ from them in the last places, and those of the `fast_` functions in
more than that (CUDA C++ programming guide, "Mathematical functions"). Roundings other than to nearest are not here, save those
to integers: `__nv_fadd_rd` and its like are refused by name.
"""

from __future__ import annotations

import math

import torch

from kit.simulator.arithmetic import bits_of, float_to_integer, fused, mulhi_unsigned

_WITH_FLOAT_TWIN = {
    "abs": torch.abs,
    "acos": torch.acos,
    "acosh": torch.acosh,
    "asin": torch.asin,
    "asinh": torch.asinh,
    "atan": torch.atan,
    "atan2": torch.atan2,
    "atanh": torch.atanh,
    "cbrt": lambda a: torch.copysign(a.double().abs().pow(1 / 3), a.double()).to(a.dtype),
    "ceil": torch.ceil,
    "copysign": torch.copysign,
    "cos": torch.cos,
    "cosh": torch.cosh,
    "cospi": lambda a: torch.cos(torch.remainder(a.double(), 2) * math.pi).to(a.dtype),
    "cyl_bessel_i0": torch.special.i0,
    "cyl_bessel_i1": torch.special.i1,
    "erf": torch.erf,
    "erfc": torch.erfc,
    "erfcx": torch.special.erfcx,
    "erfinv": torch.erfinv,
    "exp": torch.exp,
    "exp10": lambda a: torch.pow(10.0, a.double()).to(a.dtype),
    "exp2": torch.exp2,
    "expm1": torch.expm1,
    "fabs": torch.abs,
    "fdim": lambda a, b: torch.where(a > b, a - b, torch.where(a.isnan() | b.isnan(), a + b, 0.0)),
    "floor": torch.floor,
    "fma": fused,
    "fmax": torch.fmax,
    "fmin": torch.fmin,
    "fmod": torch.fmod,
    "hypot": torch.hypot,
    "j0": torch.special.bessel_j0,
    "j1": torch.special.bessel_j1,
    "ldexp": lambda a, n: torch.ldexp(a.double(), n).to(a.dtype),
    "lgamma": torch.lgamma,
    "llrint": lambda a: float_to_integer(torch.round(a), torch.int64, signed=True),
    "llround": lambda a: float_to_integer(_away_from_zero(a), torch.int64, signed=True),
    "log": torch.log,
    "log10": torch.log10,
    "log1p": torch.log1p,
    "log2": torch.log2,
    "nearbyint": torch.round,
    "nextafter": torch.nextafter,
    "norm3d": lambda a, b, c: _norm(a, b, c),
    "norm4d": lambda a, b, c, d: _norm(a, b, c, d),
    "normcdf": lambda a: torch.special.ndtr(a.double()).to(a.dtype),
    "normcdfinv": torch.special.ndtri,
    "pow": torch.pow,
    "powi": lambda a, n: torch.pow(a.double(), n).to(a.dtype),
    "rcbrt": lambda a: torch.copysign(a.double().abs().pow(-1 / 3), a.double()).to(a.dtype),
    "rhypot": lambda a, b: _norm(a, b).reciprocal(),
    "rint": torch.round,
    "rnorm3d": lambda a, b, c: _norm(a, b, c).reciprocal(),
    "rnorm4d": lambda a, b, c, d: _norm(a, b, c, d).reciprocal(),
    "round": lambda a: _away_from_zero(a),
    "rsqrt": torch.rsqrt,
    "scalbn": lambda a, n: torch.ldexp(a.double(), n).to(a.dtype),
    "sin": torch.sin,
    "sinh": torch.sinh,
    "sinpi": lambda a: torch.sin(torch.remainder(a.double(), 2) * math.pi).to(a.dtype),
    "sqrt": torch.sqrt,
    "tan": torch.tan,
    "tanh": torch.tanh,
    "tgamma": lambda a: _gamma(a.double()).to(a.dtype),
    "trunc": torch.trunc,
    "y0": torch.special.bessel_y0,
    "y1": torch.special.bessel_y1,
}
_BY_FULL_NAME = {
    "fast_cosf": torch.cos,
    "fast_exp10f": lambda a: torch.pow(10.0, a),
    "fast_expf": torch.exp,
    "fast_fdividef": torch.div,
    "fast_log10f": torch.log10,
    "fast_log2f": torch.log2,
    "fast_logf": torch.log,
    "fast_powf": torch.pow,
    "fast_sinf": torch.sin,
    "fast_tanf": torch.tan,
    "finitef": lambda a: torch.isfinite(a).to(torch.int32),
    "isfinited": lambda a: torch.isfinite(a).to(torch.int32),
    "signbitf": lambda a: torch.signbit(a).to(torch.int32),
    "signbitd": lambda a: torch.signbit(a).to(torch.int32),
    "saturatef": lambda a: torch.nan_to_num(a, nan=0.0).clamp(0, 1),
    "float_as_int": lambda a: a.contiguous().view(torch.int32),
    "float_as_uint": lambda a: a.contiguous().view(torch.int32),
    "int_as_float": lambda a: a.contiguous().view(torch.float32),
    "uint_as_float": lambda a: a.contiguous().view(torch.float32),
    "double_as_longlong": lambda a: a.contiguous().view(torch.int64),
    "longlong_as_double": lambda a: a.contiguous().view(torch.float64),
    "llabs": torch.abs,
    "mulhi": lambda a, b: ((a.to(torch.int64) * b.to(torch.int64)) >> 32).to(torch.int32),
    "umulhi": mulhi_unsigned,
    "umul64hi": mulhi_unsigned,
    "popc": lambda a: _bits(a).sum(-1, dtype=torch.int32),
    "popcll": lambda a: _bits(a).sum(-1, dtype=torch.int32),
    "clz": lambda a: _leading_zeros(a),
    "clzll": lambda a: _leading_zeros(a),
    "ffs": lambda a: _lowest_bit(a),
    "ffsll": lambda a: _lowest_bit(a),
}
for _letter, _kind in (("f", "f"), ("d", "d")):
    _BY_FULL_NAME[f"isnan{_kind}"] = lambda a: torch.isnan(a).to(torch.int32)
    _BY_FULL_NAME[f"isinf{_kind}"] = lambda a: torch.isinf(a).to(torch.int32)
    _BY_FULL_NAME |= {
        f"{_letter}{name}_rn": function
        for name, function in {"add": torch.add, "sub": torch.sub, "mul": torch.mul, "div": torch.div, "sqrt": torch.sqrt}.items()
    }
    _BY_FULL_NAME[f"{_letter}rcp_rn"] = torch.reciprocal
_BY_FULL_NAME |= {"fma_rn": fused, "fmaf_rn": fused, "frsqrt_rn": torch.rsqrt}
for _source in ("float", "double"):
    for _target, _dtype, _signed in (
        ("int", torch.int32, True),
        ("uint", torch.int32, False),
        ("ll", torch.int64, True),
        ("ull", torch.int64, False),
    ):
        for _mode, _round in (("rn", torch.round), ("rd", torch.floor), ("ru", torch.ceil), ("rz", torch.trunc)):
            _BY_FULL_NAME[f"{_source}2{_target}_{_mode}"] = lambda a, r=_round, t=_dtype, s=_signed: float_to_integer(r(a), t, s)
_BY_FULL_NAME |= {
    "int2float_rn": lambda a: a.double().float(),
    "int2double_rn": lambda a: a.double(),
    "double2float_rn": lambda a: a.float(),
}


def find(symbol):
    """The function behind "__nv_expf" or "__nv_exp", or None."""
    name = symbol.removeprefix("__nv_")
    return _BY_FULL_NAME.get(name) or _WITH_FLOAT_TWIN.get(name) or _WITH_FLOAT_TWIN.get(name.removesuffix("f"))


def names():
    """Every name under which a function is known, without __nv_ and without the f of its fp32 twin."""
    return sorted(_WITH_FLOAT_TWIN | _BY_FULL_NAME)


def _away_from_zero(a):
    """To the nearest integer; a half away from zero."""
    whole = torch.trunc(a)
    return torch.copysign(torch.where((a - whole).abs() >= 0.5, whole + torch.sign(a), whole), a)


def _norm(*parts):
    return sum(part.double() ** 2 for part in parts).sqrt().to(parts[0].dtype)


def _gamma(a):
    """Gamma by its logarithm, and by reflection below zero."""
    mirrored = math.pi / (torch.sin(math.pi * a) * torch.lgamma(1 - a).exp())
    whole = (a <= 0) & (a == a.floor())
    return torch.where(a > 0, torch.lgamma(a).exp(), torch.where(whole, torch.nan, mirrored))


def _bits(a):
    return (a.to(torch.int64)[..., None] >> torch.arange(bits_of(a))) & 1


def _leading_zeros(a):
    return (_bits(a).flip(-1).cumsum(-1) == 0).sum(-1, dtype=torch.int32)


def _lowest_bit(a):
    """Place of the lowest bit that is set, counted from 1; 0 when none is."""
    bits = _bits(a)
    return torch.where(bits.any(-1), bits.argmax(-1) + 1, 0).to(torch.int32)
