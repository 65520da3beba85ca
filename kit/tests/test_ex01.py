"""Exercise 01's own truths: what its graders expect, and the pictures of a verdict."""

import numpy
import pytest
import torch

from kit import machine
from kit.graders import ex01_narrow, ex01_semantics, ex01_window, grade
from kit.tests.banks import WRONG, module_of
from kit.verdict import drawn


@pytest.fixture(autouse=True)
def simulated():
    machine.start()


@pytest.mark.parametrize("dtype", ex01_semantics.BITS)
def test_pairs_reach_both_ends_and_leave_out_what_nothing_defines(dtype):
    asked = ex01_semantics.pairs(dtype)
    info = numpy.iinfo(dtype)
    assert {info.min, info.max} <= {a for a, _ in asked} and info.max in {b for _, b in asked}
    assert all(b != 0 and not (a == info.min < 0 and b == -1) for a, b in asked)
    assert all(info.min <= n <= info.max for pair in asked for n in pair)
    a, b = (numpy.array(column, dtype) for column in zip(*asked, strict=True))
    assert (a // b).tolist() == [x // y for x, y in asked] and (a % b).tolist() == [x % y for x, y in asked]


@pytest.mark.parametrize("dtype", ["int8", "int32", "int64"])
def test_truncated_is_what_c_gives(dtype):
    for a, b in ex01_semantics.pairs(dtype):
        q, r = ex01_semantics.truncated(a, b)
        if abs(a) < 2**52 and abs(b) < 2**52:
            assert q == int(a / b)
        assert q * b + r == a and abs(r) < abs(b) and (r == 0 or (r < 0) == (a < 0))


@pytest.mark.parametrize(
    "value, dtype, kept", [(300, "int8", 44), (300, "uint8", 44), (-1, "uint16", 65535), (2**31, "int32", -(2**31)), (5, "int64", 5)]
)
def test_wrapped(value, dtype, kept):
    assert ex01_semantics.wrapped(value, dtype) == kept == int(numpy.array(value).astype(dtype))


def test_what_is_mixed_is_exact_in_float32_in_any_order():
    for n, bias, scale in ex01_narrow.MIXES:
        x, w = torch.randint(0, 256, (n,)), torch.randint(-128, 128, (n,))
        right = ex01_narrow.mixed(x, w, bias, scale)
        other = (w.float() * scale * (x.float() + bias)).clamp(-128, 127).trunc().to(torch.int8)
        assert torch.equal(right, other)
    assert {1, 0} < {bias for _, bias, _ in ex01_narrow.MIXES}


def test_windows_are_summed_over_their_columns_alone():
    values, weights = torch.arange(12.0).reshape(3, 4), torch.tensor([100.0, 1.0, 2.0, 100.0])
    assert ex01_window.windowed(values, weights, 1, 3).tolist() == [0.5 * (1 + 4), 0.5 * (5 + 12), 0.5 * (9 + 20)]
    assert ex01_window.windowed(values, weights, 2, 2).tolist() == [0.0, 0.0, 0.0]


@pytest.mark.parametrize("step", ["01.1", "01.2", "01.3"])
def test_a_wrong_value_is_shown(step, tmp_path):
    answer = next(answer for answer in WRONG if answer.step == step and answer.about == "values")
    kernel = {"01.1": "floor_kernel", "01.2": "mix_kernel", "01.3": "window_kernel"}[step]
    problem = grade(step, getattr(module_of(answer.source, tmp_path), kernel))["problems"][0]
    picture = drawn(problem["picture"], "simulated")
    assert picture.count(1) > 0 and "wrong" in picture.says


def test_float64_is_shown_as_a_bar(tmp_path):
    answer = next(answer for answer in WRONG if answer.name == "cast too late" and answer.step == "01.3")
    problem = grade("01.3", module_of(answer.source, tmp_path).window_kernel)["problems"][0]
    assert "float64" in problem["got"] and drawn(problem["picture"], "compiled").rows[0].value > 0
