"""Exercise 03's grader: what it holds against the tuner, the compiler, and the exercise's own text."""

import pytest
import torch
import triton
import triton.language as tl
from triton.runtime.autotuner import Autotuner

from kit import machine
from kit.graders import ex03_in_place, ex03_key, ex03_rule
from kit.graders.tuners import emulated, tunings
from kit.tests.banks import cell_of

gpu = machine.start()


@triton.jit
def add_one_kernel(x_ptr, n, BLOCK: tl.constexpr):
    offs = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    mask = offs < n
    tl.store(x_ptr + offs, tl.load(x_ptr + offs, mask=mask) + 1, mask=mask)


def tuned(**how):
    return triton.autotune([triton.Config({"BLOCK": block}) for block in (32, 64)], key=["n"], **how)(add_one_kernel)


def grid(meta):
    return (triton.cdiv(100, meta["BLOCK"]),)


# ---- the tuner, emulated
@pytest.mark.parametrize("choice, block", [(0, 32), (1, 64)])
def test_every_configuration_is_launched_and_the_wanted_one_is_chosen(choice, block):
    x, tuner = torch.zeros(100, device=gpu.device), tuned()
    with emulated() as tuners:
        tuners.start(choice, 3)
        tuner[grid](x, 100)
        assert (x == 2 * 3 + 1).all() and tuner.best_config.kwargs == {"BLOCK": block}
        tuner[grid](x, 100)
        assert (x == 8).all()  # the choice is kept
        tuners.start(1 - choice, 0)
        tuner[grid](x, 100)
        assert (x == 9).all() and tuner.best_config.kwargs == {"BLOCK": 96 - block}
    assert tuners.seen == [tuner]


def test_a_restored_value_and_a_benchmark_of_ones_own():
    x, tuner = torch.zeros(100, device=gpu.device), tuned(restore_value=["x_ptr"], do_bench=lambda launch, quantiles: [1.0] * 3)
    with emulated() as tuners:
        tuners.start(0, 3)
        tuner[grid](x, 100)
    assert (x == 1).all()


def test_the_tuner_is_put_back():
    before = Autotuner.run, vars(Autotuner)["do_bench"]
    with pytest.raises(ZeroDivisionError), emulated():
        raise ZeroDivisionError
    assert (Autotuner.run, vars(Autotuner)["do_bench"]) == before


def test_tunings_are_counted_by_the_key_and_by_dtype():
    half, single = torch.zeros(4).half(), torch.zeros(4)
    arguments = [{"x_ptr": x, "n": n} for x, n in ((half, 1), (half, 2), (half, 1), (single, 1))]
    assert tunings(add_one_kernel, ["n"], arguments) == 3
    assert tunings(add_one_kernel, [], arguments) == 2


# ---- 03.1
def test_the_kernel_of_03_1_spills_with_few_warps_and_not_with_the_rule():
    few = ex03_rule.norm_of(32_768, 32_768, 4)
    assert few.spills > 0 and few.registers <= ex03_rule.REGISTERS
    assert not ex03_rule.norm_of(32_768, 32_768, 16).spills


def test_both_sides_of_each_power_of_two_up_to_the_widest_row_are_asked():
    assert set(ex03_rule.COMPILED) <= set(ex03_rule.WIDTHS) and max(ex03_rule.WIDTHS) == ex03_rule.MOST_COLUMNS
    assert {128, 129, 1_024, 1_025, 16_384, 16_385} <= set(ex03_rule.WIDTHS)


# ---- 03.2
def test_what_happened_is_told_from_the_values():
    state, x = torch.arange(8.0, 16.0), torch.arange(1.0, 9.0)
    once = state / 2 + x
    assert ex03_in_place.looks_like(once / 2 + x, state, x) == "twice"
    assert ex03_in_place.looks_like(x, state, x) == "erased"
    assert ex03_in_place.looks_like(state, state, x) == "untouched"
    assert ex03_in_place.looks_like(torch.cat((once[:4], state[4:])), state, x) == "partly"
    assert ex03_in_place.looks_like(torch.full((8,), 1000.0), state, x) == ""
    many = state
    for _ in range(ex03_in_place.RUNS * len(ex03_in_place.BLOCKS) + 1):
        many = many / 2 + x
    assert ex03_in_place.looks_like(many, state, x) == "many"


def test_empty_tensors_are_nan_while_an_answer_is_judged():
    with ex03_in_place._poisoned_empty():
        assert torch.empty(1000).isnan().all()
    assert not torch.are_deterministic_algorithms_enabled()


def test_the_blocks_are_those_of_the_exercise():
    assert f"for block in {ex03_in_place.BLOCKS}".replace(",)", ")") in cell_of("03.2")


# ---- 03.3
def test_the_arguments_are_those_that_the_exercise_names():
    from kit.tests.banks import SOLUTIONS

    text = (SOLUTIONS / "03_block_sizes.ipynb").read_text(encoding="utf-8")
    assert f"norm_dropout_kernel({', '.join(ex03_key.norm_dropout_kernel.arg_names)})" in text


def test_powers_of_two_are_few_enough_buckets_and_narrow_enough():
    buckets = {}
    for n in ex03_key.ROWS:
        buckets.setdefault(triton.next_power_of_2(n), []).append(n)
    assert len(buckets) <= ex03_key.MOST_TUNINGS and ex03_key.ROWS[0] == 1 and ex03_key.ROWS[-1] == ex03_key.MOST_ROWS
    assert all(max(rows) <= 4 * min(rows) for rows in buckets.values())


def test_the_usual_launch_takes_every_argument_but_the_block():
    names = [name for name in ex03_key.norm_dropout_kernel.arg_names if name != "BLOCK"]

    class Called:
        def call(self, answer, n_rows, ran):
            return answer(n_rows)

    pool = [torch.zeros(1) for _ in range(6)]
    assert list(ex03_key._launch(lambda n: ([], n), Called(), pool, tensors=1)) == names
