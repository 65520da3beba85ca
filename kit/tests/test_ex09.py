"""What exercise 09 says of itself: its cases tell its mistakes apart, and its faulty kernels are right where it says they are."""

import itertools

import pytest
import torch

from kit import machine
from kit.graders import STEPS, ex09_list, ex09_rows
from kit.graders.ex09_memory import CASES, INSIDE, count_of, memory_of
from kit.graders.step import Trial
from kit.tests.banks import RIGHT, WRONG, module_of


@pytest.fixture(autouse=True)
def gpu():
    return machine.start()


def answer_of(number, name, folder):
    answer = next(answer for answer in [*RIGHT, *WRONG] if (answer.step, answer.name) == (number, name))
    return getattr(module_of(answer.source, folder), STEPS[number].name)


@pytest.mark.parametrize("case", CASES, ids=lambda case: case[0])
def test_what_is_overwritten_is_what_was_planted(case):
    before, after = memory_of(*case[1:])
    assert count_of(before, after, *case[1:4]) == len(case[5])


def test_the_cases_tell_every_way_of_counting_from_every_other():
    ways = [{"inside": inside} for inside in INSIDE] + [{"nan_differs": True}]  # with NaN all of them have one cause
    answers = [tuple(count_of(*memory_of(*case[1:]), *case[1:4], **way) for case in CASES) for way in ways]
    for (i, a), (j, b) in itertools.combinations(enumerate(answers), 2):
        assert a != b, (ways[i], ways[j])


def pair(gpu, *shape):
    x = torch.randn(*shape, device=gpu.device)
    return x, torch.empty_like(x)


@pytest.mark.parametrize("fault", ["", *ex09_list.FAULTS])
def test_every_kernel_is_right_for_random_numbers_in_whole_blocks(fault, gpu):
    for shape in ((8, 32), (3, 128), (0, 32)):
        assert ex09_list.passes(Trial(STEPS["09.3"]), fault, *pair(gpu, *shape))


def test_each_fault_shows_at_its_own_input_alone(gpu):
    low, many = -1 - pair(gpu, 3, 31)[0].abs(), pair(gpu, 3, 35)[0]
    many[:, 33] = 9.0  # the maximum lies in the tail
    none = torch.full((3, 32), -torch.inf, device=gpu.device)
    wide = pair(gpu, 3, 64)[0]
    inputs = {
        "padding": (low, torch.empty_like(low)),
        "tail": (many, torch.empty_like(many)),
        "infinity": (none, torch.empty_like(none)),
        "columns": (wide[:, ::2], wide.clone()[:, ::2]),
        "out strides": (wide[:, :32], torch.empty(3, 32, device=gpu.device)),
    }
    for (of, given), fault in itertools.product(inputs.items(), ["", *ex09_list.FAULTS]):
        assert ex09_list.passes(Trial(STEPS["09.3"]), fault, *given) == (fault != of), (of, fault)


def test_the_kernel_of_09_2_passed_the_test_it_had(gpu, tmp_path):
    """What 09.2 says of its kernel: right at new tensors, rows of exactly BLOCK."""
    kernel = answer_of("09.2", "as it was", tmp_path)
    x, out, *rest = ex09_rows.make_rows(4, 64)
    kernel[(4,)](x, out, *rest, BLOCK=64)
    assert torch.allclose(out, ex09_rows.farthest_of(x), rtol=1e-5)


def test_a_verdict_of_09_draws_its_picture(tmp_path):
    from kit.practice import check

    for number, name in (("09.1", "values compared"), ("09.2", "the padding leaks"), ("09.3", "no −inf")):
        verdict = check(number, answer_of(number, name, tmp_path))
        assert verdict.state == "wrong" and verdict.cause
        assert "data:image/png;base64," in verdict._repr_html_()
