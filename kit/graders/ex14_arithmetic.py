"""Exercise 14.1: RMSNorm and RoPE of the halves of heads, as a function that a kernel calls."""

from __future__ import annotations

from dataclasses import dataclass

import torch
import triton
import triton.language as tl

from kit import machine
from kit.graders.buffers import Buffer, compare
from kit.graders.ex14_reference import ARITHMETIC, norm_rope, roughly, same
from kit.graders.launching import compiles, launch
from kit.graders.step import Mistake, Step

FLOAT32 = 2e-5  # relative, of sums of 128 squares in any order and of a root


@dataclass(frozen=True)
class Case:
    """Blocks of [rows, heads, lanes of a half]; rank 2 leaves the axis of heads away. Heads have `size` elements."""

    rows: int
    heads: int
    size: int
    eps: float
    rank: int = 3

    @property
    def half(self):
        return triton.next_power_of_2(self.size // 2)

    def __str__(self):
        shape = f"[{self.rows}, {self.heads}, {self.half}]" if self.rank == 3 else f"[{self.rows}, {self.half}]"
        return f"heads of {self.size} in blocks of {shape}, eps {self.eps:g}"


CASES = (Case(4, 2, 64, 1e-6), Case(2, 1, 80, 1e-5), Case(4, 1, 128, 1e-3, rank=2))


def hard_rows(n, size, device):
    """bfloat16 (n, size), n of 1 or more: by turns ordinary, tiny so that eps counts, one outlier among small ones, zeros, large."""
    x = torch.randn(n, size, device=device)
    kind = torch.arange(n, device=device) % 5
    x[kind == 1] *= 1e-3
    x[kind == 2] *= 0.01
    x[kind == 2, size // 3] = 300.0
    x[kind == 3] = 0.0
    x[kind == 4] *= 1e4
    return x.bfloat16()


@triton.jit
def _call_kernel(x_ptr, w_ptr, cos_ptr, y_ptr, size, eps, FN: tl.constexpr, ROWS: tl.constexpr, HEADS: tl.constexpr, HALF: tl.constexpr):
    """y = FN of the halves of x; the answer is called as a kernel of the capstone calls it."""
    offs_d = tl.arange(0, HALF)[None, None, :]
    row, head = tl.arange(0, ROWS)[:, None, None], tl.arange(0, HEADS)[None, :, None]
    half = size // 2
    mask = offs_d < half
    x_ptrs = (row * HEADS + head) * size + offs_d
    cos_ptrs = cos_ptr + row * size + offs_d
    first = tl.load(x_ptr + x_ptrs, mask=mask, other=0.0)
    second = tl.load(x_ptr + half + x_ptrs, mask=mask, other=0.0)
    w_first = tl.load(w_ptr + offs_d, mask=mask, other=0.0)
    w_second = tl.load(w_ptr + half + offs_d, mask=mask, other=0.0)
    cos = tl.load(cos_ptrs, mask=mask, other=0.0)
    sin = tl.load(cos_ptrs + half, mask=mask, other=0.0)
    first, second = FN(first, second, w_first, w_second, cos, sin, size, eps)
    tl.store(y_ptr + x_ptrs, first, mask=mask)
    tl.store(y_ptr + half + x_ptrs, second, mask=mask)


@triton.jit
def _call_rows_kernel(x_ptr, w_ptr, cos_ptr, y_ptr, size, eps, FN: tl.constexpr, ROWS: tl.constexpr, HALF: tl.constexpr):
    """The same for blocks of two axes."""
    row, offs_d = tl.arange(0, ROWS)[:, None], tl.arange(0, HALF)[None, :]
    half = size // 2
    mask = offs_d < half
    offs = row * size + offs_d
    first = tl.load(x_ptr + offs, mask=mask, other=0.0)
    second = tl.load(x_ptr + half + offs, mask=mask, other=0.0)
    w_first = tl.load(w_ptr + offs_d, mask=mask, other=0.0)
    w_second = tl.load(w_ptr + half + offs_d, mask=mask, other=0.0)
    cos = tl.load(cos_ptr + offs, mask=mask, other=0.0)
    sin = tl.load(cos_ptr + half + offs, mask=mask, other=0.0)
    first, second = FN(first, second, w_first, w_second, cos, sin, size, eps)
    tl.store(y_ptr + offs, first, mask=mask)
    tl.store(y_ptr + half + offs, second, mask=mask)


def grade_arithmetic(answer, trial):
    """Judge `norm_rope` on ordinary and hard heads, in blocks of three and of two axes, with lanes past the end of a head."""
    trial.evidence = machine.current().evidence
    for case in CASES:
        _judge(answer, trial, case)


def _judge(answer, trial, case):
    ran, device = str(case), machine.current().device
    x = hard_rows(case.rows * case.heads, case.size, device).view(case.rows, case.heads, case.size)
    w = (torch.rand(case.size, device=device) * 2 + 0.25).bfloat16()
    angle = torch.rand(case.rows, case.size // 2, device=device) * 6
    turns = torch.cat((angle.cos(), angle.sin()), -1)
    y = Buffer(x.shape, torch.float32)
    blocks = (case.rows, case.heads, case.half) if case.rank == 3 else (case.rows, case.half)
    args = (x, w, turns, y.view, case.size, case.eps, answer, *blocks)
    kernel = _call_kernel if case.rank == 3 else _call_rows_kernel
    compiles(trial, kernel, args, ran, {"rank": case.rank})
    trial.call(launch, kernel, (1,), *args, ran=ran)

    def wanted(slip=""):
        half = case.size // 2
        halves = (x[..., :half], x[..., half:], w[:half], w[half:], turns[:, None, :half], turns[:, None, half:])
        return torch.cat(norm_rope(*halves, case.eps, slip, 2 * case.half), -1)

    right = same(y.view, wanted(), FLOAT32)
    facts = {"case": case}
    if not right.all():
        facts["slip"] = next((slip for slip in ARITHMETIC if same(y.view, wanted(slip), FLOAT32).all()), "")
        facts["rounded"] = roughly(y.view, wanted())
    expected = torch.where(right, y.view.double(), wanted())
    values, inside = compare(trial, y, expected, name="y", axes=("row", "head", "element"), ran=ran, facts=facts)
    trial.case(ran, values=values, memory=inside)


def slip_mistakes(causes):
    """A Mistake for each slip that explains all that was got."""
    return tuple(Mistake(name, lambda f, name=name: f.get("slip") == name, cause) for name, cause in causes.items())


STEP_1 = Step(
    number="14.1",
    title="The arithmetic",
    spec="Normalise, weight and rotate the halves of heads, in float32.",
    answer="kernel",
    call="norm_rope(first, second, w_first, w_second, cos, sin, size, eps)",
    size="about 6 lines",
    grade=grade_arithmetic,
    mistakes=(
        *slip_mistakes(ARITHMETIC),
        Mistake(
            "axis",
            lambda f: f.get("rank") == 2 and "told" in f,
            "The number of axes may be any: sum along axis=-1, with keep_dims=True.",
        ),
        Mistake(
            "not two",
            lambda f: any(words in f.get("told", "") for words in ("unpack", "iterable", "None", "attribute 'values'")),
            "Two blocks are asked for: return first, second.",
        ),
        Mistake(
            "shapes",
            lambda f: any(words in f.get("told", "") for words in ("broadcast", "shape", "rank", "dimensions")),
            "Does the sum lose its axis? keep_dims=True keeps it, so that it broadcasts against the halves.",
        ),
        Mistake(
            "the formula",
            lambda f: f.get("about") == "values" and not f.get("rounded"),
            "y = x / sqrt(mean(x²) + eps) * weight, rotated. Is the sum taken along the last axis alone, and over both halves?",
        ),
        Mistake(
            "rounded",
            lambda f: f.get("rounded"),
            "The values are near, and not float32: is something computed in bfloat16? Cast to tl.float32 before the squares, and never "
            "back.",
        ),
    ),
    hints=(
        "The mean is over the elements of a head, in both halves: add the squares of the halves, then sum along the last axis.",
        "first.to(tl.float32), second as well; tl.sum(..., axis=-1, keep_dims=True) / size + eps; tl.rsqrt of that is the factor. Then the "
        "weights, then the rotation.",
        "scale = tl.rsqrt(tl.sum(first * first + second * second, axis=-1, keep_dims=True) / size + eps); the last line is "
        "return first * cos - second * sin, second * cos + first * sin",
    ),
)
