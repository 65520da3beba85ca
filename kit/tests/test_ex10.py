"""Exercise 10's truths and bounds; which faults of rule 10 the lesson's list, hard_inputs with a derived tolerance, catches."""

import functools

import pytest
import torch
import triton
import triton.language as tl

from kit import machine
from kit.graders import ex10_numerics, ex10_rows, ex10_softmax, ex10_variance, grade
from kit.numbers import close, hard_inputs, proves, tolerance
from kit.tests.banks import module_of
from kit.tests.banks.ex10 import WRONG
from kit.tests.faults import r10_numerics as r10
from kit.verdict import drawn

gpu = machine.start()
N = 1024


# ---- the list against the faults
@triton.jit
def decay_kernel(x_ptr, out_ptr, N: tl.constexpr):
    """BUG: the difference of two rounded sums may pass 0. out = exp(cs[i] - cs[-1]) of a falling cs; one program owns it."""
    offs = tl.arange(0, N)
    cs = tl.cumsum(-tl.abs(tl.load(x_ptr + offs).to(tl.float32)), axis=0)
    last = -tl.sum(tl.abs(tl.load(x_ptr + offs).to(tl.float32)), axis=0)
    tl.store(out_ptr + offs, tl.exp(last - cs))


@triton.jit
def filled_softmax_kernel(x_ptr, out_ptr, BLOCK: tl.constexpr):
    """BUG: a row of nothing weighs 1. out = softmax(x) with -inf replaced by the most negative number; one program owns it."""
    offs = tl.arange(0, BLOCK)
    x = tl.maximum(tl.load(x_ptr + offs), -3.4e38)
    e = tl.exp(x - tl.max(x, axis=0))
    tl.store(out_ptr + offs, e / tl.sum(e, axis=0))


@triton.jit
def rope_bf16_kernel(x_ptr, out_ptr, HALF: tl.constexpr, NARROW: tl.constexpr):
    """out = x turned by the angles i / HALF, pairs HALF apart; BUG with NARROW: cos and sin are bfloat16. One program owns it."""
    offs = tl.arange(0, HALF)
    a, b = tl.load(x_ptr + offs), tl.load(x_ptr + HALF + offs)
    angle = offs.to(tl.float32) / HALF
    c, s = tl.cos(angle), tl.sin(angle)
    if NARROW:
        c, s = c.to(tl.bfloat16).to(tl.float32), s.to(tl.bfloat16).to(tl.float32)
    tl.store(out_ptr + offs, a * c - b * s)
    tl.store(out_ptr + HALF + offs, b * c + a * s)


@triton.jit
def product_kernel(a_ptr, b_ptr, out_ptr, BLOCK: tl.constexpr, NARROW: tl.constexpr):
    """out = a @ b; BUG with NARROW: the product is rounded to bfloat16. One program owns it."""
    offs = tl.arange(0, BLOCK)
    tile = offs[:, None] * BLOCK + offs[None, :]
    c = tl.dot(tl.load(a_ptr + tile), tl.load(b_ptr + tile), input_precision="ieee")
    tl.store(out_ptr + tile, c.to(tl.bfloat16).to(tl.float32) if NARROW else c)


def one_row(kernel, size, **meta):
    """A row's answer: a function of x (N,) to `size` float32."""

    def run(x):
        out = torch.zeros(size, device=gpu.device)
        kernel[(1,)](x, out, **meta)
        return out

    return run


def capped(kernel):
    def run(x):
        out = torch.zeros(N, device=gpu.device)
        kernel[(1,)](x, out, 50.0, BLOCK=N)
        return out

    return run


def product(kernel, **meta):
    def run(x):
        a, out = x.view(32, 32), torch.zeros(32, 32, device=gpu.device)
        kernel[(1,)](a, a.T.contiguous(), out, BLOCK=32, **meta)
        return out

    return run


def whole(reference):
    return lambda x: reference(x.double())


def turned(x):
    a, b = x.double().view(2, -1)
    angle = (torch.arange(N // 2) / (N // 2)).double()
    return torch.cat([a * angle.cos() - b * angle.sin(), b * angle.cos() + a * angle.sin()])


def softmax_truth(x):
    return ex10_softmax.reference(x[None])[0]


FP16, FP32 = torch.float16, torch.float32
TOTAL = dict(scale=whole(lambda x: x.abs().sum().view(1)))
PRODUCT = dict(scale=whole(lambda x: x.view(32, 32).abs() @ x.view(32, 32).T.abs()))
SPREAD = dict(scale=lambda x: ex10_variance.scale(x.double()[None], ex10_variance.reference(x[None])))
TURN = dict(scale=lambda x: x.double().view(2, -1).abs().sum(0).repeat(2))
# number in CASES.md: (dtype, faulty, right, truth, more). "near max" of float32 overflows any float32 sum or square.
LIST = {
    "S10.1 a sum in fp16": (FP16, one_row(r10.sum_fp16_kernel, 1, STEPS=64, BLOCK=16), one_row(r10.sum_fp32_kernel, 1, STEPS=64, BLOCK=16),
                            whole(lambda x: x.sum().view(1)), TOTAL),
    "R10-04 squares in fp16": (FP16, one_row(r10.squares_fp16_kernel, 1, BLOCK=N), one_row(r10.squares_fp32_kernel, 1, BLOCK=N),
                               whole(lambda x: x.pow(2).sum().view(1)), {}),
    "R10-08 a softmax of -inf": (FP32, one_row(r10.softmax_of_nothing_kernel, N, BLOCK=N), one_row(r10.softmax_kernel, N, BLOCK=N),
                                 softmax_truth, {}),
    "R10-08 -inf filled": (FP32, one_row(filled_softmax_kernel, N, BLOCK=N), one_row(r10.softmax_kernel, N, BLOCK=N), softmax_truth, {}),
    "R10-02 a softcap by two exps": (FP32, capped(r10.softcap_exp_kernel), None, whole(lambda x: 50 * (x / 50).tanh()), {}),
    "S10.5 a variance in one pass": (FP32, one_row(r10.variance_one_pass_kernel, 1, BLOCK=N),
                                     one_row(r10.variance_two_pass_kernel, 1, BLOCK=N), lambda x: ex10_variance.reference(x[None]), SPREAD),
    "S10.7 a product in tf32": (FP32, product(r10.product_tf32_kernel), product(r10.product_fp32_kernel),
                                whole(lambda x: x.view(32, 32) @ x.view(32, 32).T), PRODUCT),
    "R10-11 a product in bf16": (FP32, product(product_kernel, NARROW=True), product(product_kernel, NARROW=False),
                                 whole(lambda x: x.view(32, 32) @ x.view(32, 32).T), PRODUCT),
    "R10-07 cos and sin in bf16": (FP32, one_row(rope_bf16_kernel, N, HALF=N // 2, NARROW=True),
                                   one_row(rope_bf16_kernel, N, HALF=N // 2, NARROW=False), turned, TURN),
}  # fmt: skip


def caught_by(answer, dtype, truth, scale=None):
    """The hard inputs on which `answer` is past the bound."""
    found = []
    for name, x in hard_inputs((N,), dtype, gpu.device).items():
        if name == "near max" and dtype == FP32:
            continue
        size = scale and scale(x.cpu()).to(gpu.device)
        within = tolerance(FP32, 64, roundings=200)
        if not close(answer(x), truth(x.cpu()).to(gpu.device), within=within, scale=size):
            found.append(name)
    return found


@pytest.mark.parametrize("number", LIST)
def test_the_list_catches_the_fault_and_passes_the_right_kernel(number):
    dtype, faulty, right, truth, more = LIST[number]
    caught = caught_by(faulty, dtype, truth, **more)
    print(f"{number}: {', '.join(caught)}")
    assert caught
    if right:
        assert caught_by(right, dtype, truth, **more) == []


def test_what_ordinary_numbers_do_not_catch():
    """The hard input is what catches these; float32's one-pass variance and both softmaxes are right on normal rows."""
    for number in ("R10-08 a softmax of -inf", "R10-08 -inf filled", "S10.5 a variance in one pass"):
        dtype, faulty, _, truth, more = LIST[number]
        assert "normal" not in caught_by(faulty, dtype, truth, **more)


def test_the_softcap_with_one_exp_is_right_for_large_numbers_and_not_for_small_ones():
    """r10's right twin: the list finds what it loses, 1 - exp(-tiny)."""
    caught = caught_by(capped(r10.softcap_kernel), FP32, whole(lambda x: 50 * (x / 50).tanh()))
    assert "scale 1e-6" in caught and not {"mean 1e4", "mean -1e4", "all -inf"} & set(caught)


def test_r10_05_fused_or_not_both_are_within_the_bound():
    from kit.tests.zoo_numerics import rest_kernel

    a, b, c = torch.randn(3, 256, generator=torch.Generator().manual_seed(0)).to(gpu.device)
    want = a.double() * b.double() - c.double()
    made = []
    for fusion in (True, False):
        made.append(torch.empty_like(a))
        rest_kernel[(1,)](a, b, c, made[-1], BLOCK=256, enable_fp_fusion=fusion)
        assert close(made[-1], want, within=tolerance(FP32, 2, roundings=1), scale=(a * b).abs() + c.abs())
    assert not torch.equal(*made)


def test_r10_01_is_not_caught():
    """Its exp overflows where one sum of falling numbers, in one order, ends above another: no hard input is such a row."""
    for x in hard_inputs((N,), FP32, gpu.device).but("near max", "half -inf", "all -inf", "one +inf").values():
        assert one_row(decay_kernel, N, N=N)(x).isfinite().all()


def test_r10_10_a_tolerance_wider_than_its_output_is_told():
    x = hard_inputs((2, 4096), FP32, "cpu")["normal"]
    want = x.double().softmax(-1)
    assert proves(lambda y: torch.allclose(y, want, atol=1e-2), want, x).passed == ("zeros", "off by one")
    assert proves(tolerance(FP32, 4096, roundings=200), want, x)


# ---- the exercise's own truths
@pytest.mark.parametrize("task", [ex10_numerics.TASK, ex10_softmax.TASK, ex10_variance.TASK])
@pytest.mark.parametrize("dtype", [FP32, FP16])
def test_every_bound_of_the_exercise_fails_wrong_answers(task, dtype):
    """On ordinary rows, and on rows with a large mean. (Variances of rows with one outlier are too equal for one to be off by.)"""
    out = task.out_dtype(dtype)
    for name in ("normal", "mean 1e4"):
        x = hard_inputs((2, 300), dtype, "cpu")[name]
        want = task.reference(x)
        if (want.abs() > torch.finfo(out).tiny).any():
            told = proves(task.within(out, 300), want, x, scale=task.scale(x.double(), want))
            assert "zeros" in told.failed and "off by one" not in told.passed, (name, told)


def test_the_weights_of_the_norm_are_in_its_truth():
    x = torch.ones(1, 4)
    assert torch.allclose(ex10_numerics.reference(x), torch.linspace(0.5, 2, 4).double(), atol=1e-6)


@pytest.mark.parametrize("step, kernel", [("10.1", "rms_norm_kernel"), ("10.2", "softmax_kernel"), ("10.3", "variance_kernel")])
def test_a_wrong_value_is_shown_with_the_errors_of_all_inputs(step, kernel, tmp_path):
    answer = next(answer for answer in WRONG if answer.step == step and answer.name == "as it was")
    problem = grade(step, getattr(module_of(answer.source, tmp_path), kernel))["problems"][0]
    picture = drawn(problem["picture"], "simulated")
    assert {row.ok for row in picture.rows} == {True, False} and "mean 1e4" in {row.label for row in picture.rows}


def test_a_formula_that_is_right_anyway_explains_nothing():
    x = torch.ones(2, 8, dtype=torch.float64)
    buffer = ex10_rows.Judged((2,), FP32, tolerance(FP32, 8), None)
    run = ex10_rows.Run("one", "", x, torch.full((2,), 8.5).double(), torch.full((2,), 8.0).double(), 10.0, buffer)
    seen = functools.partial(lambda formula: ex10_rows.gives(formula)({"runs": {"one": run}}))
    assert seen(lambda x: x.sum(-1) + 0.5) and not seen(lambda x: x.sum(-1)) and not seen(lambda x: x.sum(-1) + 1)
