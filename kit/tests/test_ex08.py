"""Exercise 08's graders: what they hold against the kernels, the recording, whatever GPU it is of, and the exercise's own text."""

import json
import math

import pytest
import torch
import triton

from kit import errors, machine, recording_file
from kit.graders import STEPS, ex08_norm, ex08_rule, grade
from kit.graders import ex08_decode_and_prefill as ex08
from kit.graders.noting import noted
from kit.graders.paper import on_paper
from kit.kernels.rope import rope, rope_kernel
from kit.tests.banks import cell_of

gpu = machine.start()


# ---- 08.1
def by_program(tokens, heads, size, BLOCK_T, BLOCK_H):
    """The bytes of the launch, program by program: what is not masked."""
    moved = programs = 0
    for t in range(0, tokens, BLOCK_T):
        for h in range(0, heads, BLOCK_H):
            n_t, n_h = min(BLOCK_T, tokens - t), min(BLOCK_H, heads - h)
            programs, moved = programs + 1, moved + ex08.ITEM * (2 * n_t * n_h * size + 2 * n_t * size // 2)
    return programs, moved


@pytest.mark.parametrize("numbers", [one for one in ex08.LAUNCHES if one[0] < 1000])
def test_the_bytes_of_a_launch_are_the_sum_over_its_programs(numbers):
    assert ex08.moved_by(*numbers) == by_program(*numbers)


def test_the_programs_are_those_that_rope_launches():
    with on_paper() as launches:
        for tokens, heads, size, *tile in ex08.LAUNCHES:
            x = torch.empty(tokens, heads, size, dtype=torch.float16, device="meta")
            cos = torch.empty(tokens, size // 2, dtype=torch.float16, device="meta")
            rope(x, cos, cos, tile)
    assert [launch.programs for launch in launches] == [ex08.moved_by(*numbers)[0] for numbers in ex08.LAUNCHES]
    assert {launch.kernel for launch in launches} == {rope_kernel}


def test_no_two_likely_mistakes_count_the_same_at_the_first_launch():
    tokens, heads, size, BLOCK_T, BLOCK_H = ex08.LAUNCHES[0]
    tiles = math.ceil(heads / BLOCK_H)
    assert tiles not in (1, heads) and BLOCK_T > 1 and tokens % BLOCK_T == heads % BLOCK_H == 0


# ---- 08.2
def test_the_limits_on_programs_are_those_of_1024_and_2048_elements():
    assert math.prod(ex08_norm.PREFILL) // ex08_norm.MOST_PROGRAMS == 1_024
    assert math.prod(ex08_norm.DECODE) // ex08_norm.LEAST_PROGRAMS == 2_048


def test_the_reference_is_that_of_the_kit():
    from kit.kernels.rms_norm import rms_norm_reference

    x, w = torch.randn(5, 3, 64), torch.rand(64)
    assert torch.allclose(ex08_norm.reference(x, w), rms_norm_reference(x, w, ex08_norm.EPS), rtol=1e-5, atol=1e-6)


def test_noted_keeps_what_a_launch_is_given_and_lets_it_run():
    x = torch.randn(4, 2, 64, device=gpu.device).half()
    cos = torch.ones(4, 32, device=gpu.device).half()
    before = type(rope_kernel).__getitem__
    with noted() as launches:
        y = rope(x, cos, torch.zeros_like(cos))
    assert type(rope_kernel).__getitem__ is before
    assert torch.equal(y, x) and [kernel for kernel, _, _ in launches] == [rope_kernel]
    assert launches[0][1][0] is x and launches[0][2]["num_warps"] == 4


# ---- 08.3, on recordings of other GPUs than the one at hand
def recording(folder, monkeypatch, took):
    """Write a recording whose times are `took(elements, tokens, heads, size)`, and let graders read it."""
    shapes = [(heads, size) for heads in (32, 8) for size in (128, 64)]
    us = {
        f"{h} x {s}": {
            str(n): {str(way): [took(s if way == "a head" else way, n, h, s)] * 3 for way in ("a head", *ex08_rule.TILES)}
            for n in (1, 16, 64, 256, 1_024, 8_192, 32_768)
        }
        for h, s in shapes
    }
    provenance = dict.fromkeys(("gpu", "driver", "torch", "triton", "cuda", "date"), "made up")
    run = {"arguments": {}, "data": {"copy": 1.0, "us": us}, "digest": "", "provenance": provenance}
    content = {"schema": recording_file.SCHEMA, "experiment": ex08_rule.NAME, "owner": "test", "runs": [run]}
    (folder / f"{ex08_rule.NAME}.json").write_text(json.dumps(content))
    monkeypatch.setenv("KIT_RECORDINGS", str(folder))


def by_programs(elements, tokens, heads, size):
    """As on the H200: a µs, what the copy takes, what it takes to start the programs."""
    return 1 + max(4 * tokens * heads * size / 4.1e6, 0.6e-3 * ex08_rule.programs_of(tokens, heads, size, elements))


def slow_memory(elements, tokens, heads, size):
    """A GPU with so little bandwidth that starting programs never shows."""
    return 1 + 4 * tokens * heads * size / 3e5


def best_of_16384(elements, tokens, heads, size):
    """A GPU on which the exercise's own rule is far from the best."""
    return by_programs(elements, tokens, heads, size) * (1 if elements == 16_384 else 1.7)


@pytest.mark.parametrize("took", [by_programs, slow_memory, best_of_16384])
def test_the_own_rule_passes_whatever_was_recorded(took, tmp_path, monkeypatch):
    recording(tmp_path, monkeypatch, took)
    told = grade("08.3", ex08_rule.rule)
    assert told["state"] == "passed", told["problems"]


def test_a_choice_is_slow_only_by_what_was_recorded(tmp_path, monkeypatch):
    def a_head(tokens, heads, size):
        return size

    recording(tmp_path, monkeypatch, by_programs)
    assert grade("08.3", a_head)["state"] == "wrong"
    recording(tmp_path, monkeypatch, slow_memory)
    assert grade("08.3", a_head)["state"] == "passed"


def test_between_two_recorded_numbers_of_tokens_either_side_will_do(tmp_path, monkeypatch):
    def late(tokens, heads, size):
        return ex08_rule.rule(tokens, heads, size) if tokens > 64 else size

    def later(tokens, heads, size):
        return ex08_rule.rule(tokens, heads, size) if tokens > 1_024 else size

    recording(tmp_path, monkeypatch, lambda e, n, h, s: 2.0 if e == s and n > 64 else 1.0)
    assert grade("08.3", late)["state"] == "passed"
    told = grade("08.3", later)
    assert told["state"] == "wrong" and "256 tokens" in told["problems"][0]["text"]


def test_a_missing_recording_is_told(tmp_path, monkeypatch):
    monkeypatch.setenv("KIT_RECORDINGS", str(tmp_path))
    with pytest.raises(errors.KitError, match="decode_to_prefill"):
        grade("08.3", ex08_rule.rule)


def test_programs_of_a_choice_are_those_of_the_lesson():
    for tokens, heads, size in ((1, 32, 128), (33, 8, 64), (1_000, 40, 128)):
        assert ex08_rule.programs_of(tokens, heads, size, size) == tokens * heads
        for elements in ex08_rule.TILES:
            BLOCK_H = min(triton.next_power_of_2(heads), elements // size)
            BLOCK_T = elements // size // BLOCK_H
            wanted = triton.cdiv(tokens, BLOCK_T) * triton.cdiv(heads, BLOCK_H)
            assert ex08_rule.programs_of(tokens, heads, size, elements) == wanted


def test_the_own_rule_is_the_solution_and_keeps_the_multiprocessors_busy():
    assert "4_096 * 4 * 132" in cell_of("08.3") and ex08_rule.MULTIPROCESSORS == 132
    for tokens in ex08_rule.TOKENS:
        for heads in (1, 8, 32, 40, 128):
            for size in (64, 128):
                programs = ex08_rule.programs_of(tokens, heads, size, ex08_rule.rule(tokens, heads, size))
                assert programs >= min(132, ex08_rule.programs_of(tokens, heads, size, 1_024))


def test_the_size_of_each_answer_is_what_its_stub_says():
    assert "about 12 lines" in STEPS["08.2"].size and "about 12 lines" in cell_of("08.2")
