"""Is an answer near enough to the truth? `hard_inputs`, `tolerance`, `close`, and `proves`, the test of the test.

A tolerance is derived, not chosen. u is the unit roundoff of a type, half the distance from 1 to the next number, and
γ(k) = k·u / (1 - k·u). A sum in which no term passes through more than k additions, in whatever order, is wrong by at most γ(k) times
the sum of the magnitudes of its terms (N. J. Higham, Accuracy and Stability of Numerical Algorithms, 2nd ed., SIAM 2002, section 4.2;
products and dot products: section 3.1). Rounding into the output's type adds that type's u times the result.
"""

from __future__ import annotations

import html
import math
from dataclasses import dataclass, field

import torch

from kit.errors import BadInput, WrongType, expect_type, quoted
from kit.hard_inputs import HardInputs, hard_inputs

__all__ = ["HardInputs", "Judgement", "Proof", "Tolerance", "close", "hard_inputs", "proves", "roundoff", "tolerance"]


def roundoff(dtype):
    """The unit roundoff of a float dtype: 2^-11 for float16, 2^-8 for bfloat16, 2^-24 for float32, 2^-53 for float64."""
    _expect_float(dtype, "roundoff", "dtype")
    return torch.finfo(dtype).eps / 2


def _expect_float(dtype, verb, argument):
    expect_type(dtype, torch.dtype, verb=verb, argument=argument, what="a float dtype, such as torch.float16")
    if not dtype.is_floating_point:
        raise BadInput(f"{verb}: {argument} must be a float dtype, such as torch.float16; got {dtype}. Integers must agree exactly.")


def _short(dtype):
    return str(dtype).removeprefix("torch.")


@dataclass(frozen=True)
class Tolerance:
    """How far an element may be from the truth: `summed` x its scale + `rounded` x its own size + `absolute`.

    The scale of an element is the sum of the magnitudes that were added up for it; its own size where all of them have one sign.
    """

    dtype: torch.dtype
    length: int
    acc: torch.dtype
    summed: float
    rounded: float
    absolute: float

    def allowed(self, want, scale=None):
        """A tensor of bounds, of `want`'s shape; `scale` is a number or a tensor that broadcasts to it."""
        size = want.double().abs()
        scale = size if scale is None else torch.as_tensor(scale, dtype=torch.float64, device=want.device).abs()
        # inf * 0 is nan: where the sum has no bound, nothing is promised, whatever its size
        summed = torch.full_like(size, math.inf) if math.isinf(self.summed) else self.summed * scale
        return summed + self.rounded * size + self.absolute

    def __repr__(self):
        if math.isinf(self.summed):
            return f"tolerance: none: {self.length:,} additions in {_short(self.acc)} have no bound"
        why = f"{self.length:,} additions in {_short(self.acc)}, stored as {_short(self.dtype)}"
        return f"tolerance: {self.summed:.1e} of what is added + {self.rounded:.1e} of the result + {self.absolute:.1e} ({why})"


def tolerance(dtype, length, acc=torch.float32, *, roundings=8, terms=0.0):
    """The Tolerance of a result stored as `dtype`, of `length` terms added in `acc`.

    `length` is the number of terms, which holds for every order of addition; where a tree adds, the longest way through it, such as
    n / 32 + 5 for one warp and tl.sum, bounds it more closely. `roundings` is how many other roundings in `acc` a result has gone through:
    8 cover a division, a root and an approximate exp; for exp of arguments to -88, whose own rounding exp multiplies by them, take 200.
    `terms` is the relative error that each term came with: 2**-9 for products of tf32, whose operands are cut to 11 significant bits.
    `absolute` is half a step at 0, or the smallest normal number of `acc`: approximations flush what is smaller. Raises BadInput for a
    length or a dtype that cannot be used.
    """
    _expect_float(dtype, "tolerance", "dtype")
    _expect_float(acc, "tolerance", "acc")
    for name, value in (("length", length), ("roundings", roundings)):
        if isinstance(value, bool) or not isinstance(value, int) or value < 0:
            raise BadInput(f"tolerance: {name} must be a whole number of 0 or more; got {quoted(value)} ({type(value).__name__}).")
    if not isinstance(terms, (int, float)) or not 0 <= terms < 1:
        raise BadInput(f"tolerance: terms must be a relative error from 0 to below 1; got {quoted(terms)}.")
    ku = (max(length - 1, 0) + roundings) * roundoff(acc)
    gamma = ku / (1 - ku) if ku < 1 else math.inf
    step = torch.finfo(dtype)
    absolute = max(step.tiny * step.eps / 2, torch.finfo(acc).tiny)
    return Tolerance(dtype, length, acc, gamma + terms * (1 + gamma) if gamma < math.inf else gamma, roundoff(dtype), absolute)


@dataclass(frozen=True)
class Judgement:
    """What `close` found; true when every element is within its bound.

    `index`, `got`, `want` are of the worst element, `error` its distance in units of its bound (inf for a nan, or an infinity where none
    belongs), `errors` those of all, `wrong` how many are past 1.
    """

    error: float
    index: tuple
    got: float
    want: float
    wrong: int
    of: int
    errors: torch.Tensor = field(repr=False)

    def __bool__(self):
        return self.wrong == 0

    def __repr__(self):
        if not self.of:
            return "close: nothing to compare"
        word = "within the bound" if self else f"{self.wrong:,} of {self.of:,} past the bound"
        place = f"element {self.index[0] if len(self.index) == 1 else self.index}"
        return f"close: {word}; the worst, {place}, is {self.got:.6g} for {self.want:.6g}: {self.error:.2g} of its bound"

    def _repr_html_(self):
        mark, colour = ("✓", "#0072B2") if self else ("✗", "#D55E00")
        return f'<div><b style="color:{colour}">{mark}</b> {html.escape(repr(self))}</div>'


def close(got, want, *, within, scale=None):
    """The Judgement of `got`, an answer of any float dtype, against `want`, the truth in float64 of the same shape.

    `within` is a Tolerance, `scale` the magnitudes that were added up (see Tolerance). A truth too large for got's type is that type's
    infinity; nan asks for nan, an infinity for the same one. Raises WrongType or BadInput for tensors that cannot be compared.
    """
    for name, value in (("got", got), ("want", want)):
        expect_type(value, torch.Tensor, verb="close", argument=name, what="a tensor")
    expect_type(within, Tolerance, verb="close", argument="within", what="a Tolerance", then="Use tolerance(dtype, length).")
    _expect_float(got.dtype, "close", "got's dtype")
    if want.dtype != torch.float64:
        raise BadInput(f"close: want must be computed in float64; got {_short(want.dtype)}. Compute the reference from x.double().")
    if got.shape != want.shape:
        raise BadInput(f"close: got and want must have one shape; got {tuple(got.shape)} and {tuple(want.shape)}.")
    want = want.to(got.device)
    errors = _errors(got, want, within, scale)
    wrong = int((errors > 1).sum())
    if not errors.numel():
        return Judgement(0.0, (), math.nan, math.nan, 0, 0, errors)
    flat = int(errors.reshape(-1).argmax())
    index = tuple(int(i) for i in torch.unravel_index(torch.tensor(flat), errors.shape)) if errors.dim() else (0,)
    return Judgement(
        float(errors.reshape(-1)[flat]), index, float(got.reshape(-1)[flat]), float(want.reshape(-1)[flat]), wrong, errors.numel(), errors
    )


def _errors(got, want, within, scale):
    """Each element's distance in units of its bound, in float64."""
    held, said = want.to(got.dtype).double(), got.double()
    same = (held == said) | (held.isnan() & said.isnan())
    bound = within.allowed(want, scale)
    ratio = (said - want).abs() / bound
    ratio = torch.where(bound.isinf() & said.isfinite() & want.isfinite(), 0.0, ratio)  # no bound: any number will do
    return torch.where(same, 0.0, torch.where(ratio.isnan(), math.inf, ratio))


@dataclass(frozen=True)
class Proof:
    """What `proves` found; true when at least one wrong answer could be tried, and every one failed.

    `passed` names the wrong answers that the test lets through, `failed` those it does not, `equal` those that are the truth on this input
    and prove nothing.
    """

    passed: tuple
    failed: tuple
    equal: tuple

    def __bool__(self):
        return bool(self.failed) and not self.passed

    def __repr__(self):
        if not self.failed and not self.passed:
            return f"proves: nothing: {', '.join(self.equal)} would be right here; take another input"
        told = f"passes {', '.join(self.passed)}" if self.passed else f"{', '.join(self.failed)} fail, as they must"
        return f"proves: {'no: it ' if self.passed else 'yes: '}{told}"


def proves(test, want, *inputs, scale=None, also=None):
    """The Proof of a test: wrong answers that need no computing must fail it. They are zeros, a copy of an input, an answer off by one.

    `test` is a Tolerance, used as `close` uses it with `scale`, or a function of an answer that is true when it passes. `want` is the truth
    in float64. A copy is tried of each of `inputs` that has want's shape; off by one is `want` moved by one element along its last axis
    that has two or more. `also` is {name: tensor} of further wrong answers. They are rounded to the Tolerance's dtype first.
    """
    expect_type(want, torch.Tensor, verb="proves", argument="want", what="a tensor")
    if want.dtype != torch.float64:
        raise BadInput(f"proves: want must be computed in float64; got {_short(want.dtype)}. Compute the reference from x.double().")
    if not isinstance(test, Tolerance) and not callable(test):
        raise WrongType(f"proves: test must be a Tolerance or a function of an answer; got {quoted(test)} ({type(test).__name__}).")
    dtype = test.dtype if isinstance(test, Tolerance) else want.dtype
    passes = (lambda answer: close(answer, want, within=test, scale=scale)) if isinstance(test, Tolerance) else test
    told = {"passed": [], "failed": [], "equal": []}
    for name, answer in {**_controls(want, inputs), **(also or {})}.items():
        answer = answer.to(dtype)
        equal = torch.equal(answer.nan_to_num(nan=0.125), want.to(dtype).nan_to_num(nan=0.125))
        told["equal" if equal else "passed" if passes(answer) else "failed"].append(name)
    return Proof(**{key: tuple(names) for key, names in told.items()})


def _controls(want, inputs):
    """{name: wrong answer} that cost nothing to make."""
    made = {"zeros": torch.zeros_like(want)}
    copies = [x for x in inputs if isinstance(x, torch.Tensor) and x.shape == want.shape]
    for number, x in enumerate(copies):
        made["a copy of the input" if len(copies) == 1 else f"a copy of input {number + 1}"] = x
    axes = [axis for axis in range(want.dim()) if want.shape[axis] > 1]
    if axes:
        made["off by one"] = want.roll(1, axes[-1])
    return made
