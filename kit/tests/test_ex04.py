"""The truths that exercise 04's grader judges by, against Triton's own keys and the compiler."""

import itertools
import types

import pytest
import torch
import triton
import triton.language as tl

from kit import machine
from kit.build import build
from kit.graders import STEPS, ex04_exempt, ex04_ring
from kit.graders.ex04_count import CASES, class_of, variants_of
from kit.graders.ex04_exempt import TRACE
from kit.graders.step import Stop, Trial
from kit.tests.banks import RIGHT, WRONG, module_of
from kit.variants import classes


@pytest.fixture(autouse=True)
def simulated():
    machine.start()


@triton.jit
def three_kernel(x_ptr, n, step):
    tl.store(x_ptr + n, step)


def pointer(address):
    """What a launch needs of a tensor at this address."""
    return types.SimpleNamespace(dtype=torch.uint8, data_ptr=lambda: address)


@pytest.mark.parametrize("name", CASES)
def test_a_case_needs_as_many_variants_as_triton_has_keys(name):
    launches = [(pointer(address), n, step) for address, n, step in CASES[name]]
    keys = {tuple(classes(three_kernel, *launch).values()) for launch in launches}
    assert variants_of(CASES[name]) == len(keys)
    if launches:
        assert len(build(three_kernel, *launches[0]).variants(launches)) == len(keys)


def test_a_class_is_the_one_that_triton_gives():
    for n in (*range(-33, 34), *(sign * 2**31 + k for sign in (-1, 1) for k in (-17, -16, -1, 0, 1, 16)), 2**62, -(2**63)):
        text = classes(three_kernel, pointer(0), n, 5)["n"]
        wide_and_even = class_of(n)
        assert text == "= 1" if wide_and_even == "= 1" else text == f"int{64 if wide_and_even[0] else 32}{', ÷16' * wide_and_even[1]}"


SLIPS = ({"one": False}, {"zero": True}, {"by": 0}, {"by": 8}, {"width": False}, {"edge": 2**32}, {"align": 0}, {"align": 8}, {"align": 4})


def test_the_cases_tell_every_slip_from_the_truth_and_from_every_other():
    answers = [tuple(variants_of(launches, **slips) for launches in CASES.values()) for slips in ({}, {"together": False}, *SLIPS)]
    for (i, a), (j, b) in itertools.combinations(enumerate(answers), 2):
        assert a != b, (i, j)


def solution(number, name, folder):
    answer = next(answer for answer in [*RIGHT, *WRONG] if (answer.step, answer.name) == (number, name))
    return getattr(module_of(answer.source, folder), STEPS[number].name)


def test_plain_the_trace_needs_as_many_variants_as_the_exercise_says(tmp_path):
    kernel = solution("04.2", "plain", tmp_path)
    launches = [ex04_exempt._row_launch(*request) for request in TRACE]
    made = build(kernel, *launches[0], BLOCK=8192)
    found = made.variants(launches)
    assert (len(TRACE), len(found)) == (7, 6)
    assert set(found.arguments_that_vary) == {"end_ptr", "step", "n_rows"}
    assert made.bits("load") == [128] and max(made.bits("store")) == 128


def test_every_argument_that_must_keep_its_class_is_worth_it(tmp_path):
    """Exempt alone, each of the four makes a load or a store narrow: so each belongs to the step's mistakes."""
    body = solution("04.2", "plain", tmp_path).fn
    for name in ("x_ptr", "y_ptr", "stride_x", "row_size"):
        made = build(triton.jit(body, do_not_specialize=[name]), *ex04_exempt._row_launch(*TRACE[0]), BLOCK=8192)
        assert min(max(made.bits("load")), max(made.bits("store"))) < 128, name
    for name in ("step", "n_rows", "end_ptr"):
        made = build(triton.jit(body, do_not_specialize=[name]), *ex04_exempt._row_launch(*TRACE[0]), BLOCK=8192)
        assert min(max(made.bits("load")), max(made.bits("store"))) == 128, name


def test_a_listed_constexpr_is_told_also_where_the_disk_cache_would_let_it_pass(tmp_path):
    """Triton refuses it while it compiles, and the disk cache's key leaves the list out: after the plain kernel it runs."""
    body = solution("04.2", "plain", tmp_path).fn
    launch = ex04_exempt._row_launch(*TRACE[0])
    build(triton.jit(body), *launch, BLOCK=8192)
    listed = triton.jit(body, do_not_specialize=["BLOCK"])
    trial = Trial(STEPS["04.2"])
    with pytest.raises(Stop):
        ex04_exempt.grade_rows(listed, trial)
    assert "BLOCK is a constexpr" in trial.problems[0].text and trial.problems[0].cause


def test_the_ring_as_it_was_passes_the_tests_it_had(tmp_path):
    """What 04.3 says of its kernel: right at steps 1, 16 and 17 with rows of 48."""
    kernel = solution("04.3", "as it was", tmp_path)
    for step in (1, 16, 17):
        trial = Trial(STEPS["04.3"])
        ex04_ring._small_ring(kernel, trial, 16, 4, 48, 48, step)
        assert not trial.problems


def test_a_verdict_of_04_draws_its_picture(tmp_path):
    from kit.practice import check

    for number, name in (("04.1", "multiples of 8"), ("04.2", "plain"), ("04.2", "the stride too"), ("04.3", "clamped")):
        verdict = check(number, solution(number, name, tmp_path))
        assert verdict.state == "wrong" and verdict.cause
        assert "data:image/png;base64," in verdict._repr_html_()
