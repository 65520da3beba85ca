"""The capstone's grader: its truth against torch, its slips against each other, and what it gives the rules to look at."""

import ast

import pytest
import torch

from kit import machine
from kit.graders import STEPS, ex14_arithmetic, ex14_inputs, ex14_reference, ex14_rules, ex14_values, ex14_write
from kit.graders.ex14_reference import SLIPS, norm_rope, same, written
from kit.kernels.rms_norm import rms_norm_reference
from kit.kernels.rope import rope_reference
from kit.tests.banks import BLOCK, WRONG, cell_of

gpu = machine.start()


@pytest.fixture(params=ex14_write.CASES, ids=lambda case: case.new)
def inputs(request):
    torch.manual_seed(1)
    return ex14_inputs.Inputs(request.param)


def test_the_reference_is_made_of_the_kit_s_references(inputs):
    """RMSNorm, RoPE and an indexed write, each as kit/kernels has it."""
    given, case = inputs.given(), inputs.case
    tokens, heads = case.tokens, case.group * case.kv_heads
    rows = given.qkv.float().reshape(tokens, heads + 2 * case.kv_heads, case.size)
    turns = given.cos_sin[given.positions.long()]
    cos, sin = turns[:, : case.size // 2], turns[:, case.size // 2 :]
    q = rope_reference(rms_norm_reference(rows[:, :heads], given.q_weight, case.eps), cos, sin)
    k = rope_reference(rms_norm_reference(rows[:, heads : heads + case.kv_heads], given.k_weight, case.eps), cos, sin)
    qkv, k_cache, v_cache = given.qkv.clone(), given.k_cache.clone(), given.v_cache.clone()
    for token, slot in enumerate(given.slots.tolist()):
        if slot >= 0:
            qkv[token, : heads * case.size] = q[token].flatten().bfloat16()
            k_cache[slot // case.block_size, slot % case.block_size] = k[token].bfloat16()
            v_cache[slot // case.block_size, slot % case.block_size] = rows[token, heads + case.kv_heads :].bfloat16()
    for got, wanted in zip((qkv, k_cache, v_cache), written(given), strict=True):
        assert same(got, wanted, ex14_values.BFLOAT16).all()


def test_every_slip_gives_something_else_than_the_truth_and_than_the_others():
    case = ex14_inputs.Case("all", 6, kv_heads=2, group=3, size=80, padding=(2,), eps=1e-3)
    given = ex14_inputs.Inputs(case).given()
    padded = {"padded": 128}
    outputs = {slip: torch.cat([one.flatten() for one in written(given, slip, **padded)]) for slip in ("", *SLIPS)}
    names = list(outputs)
    for i, one in enumerate(names):
        for other in names[i + 1 :]:
            a, b = outputs[one], outputs[other]
            differ = (a - b).abs() > 2e-2 * a.abs().clamp(min=1e-3)
            assert differ.any() or (a.isnan() != b.isnan()).any(), (one, other)


def test_one_rounding_is_right_and_two_are_not():
    torch.manual_seed(0)
    x, w = torch.randn(64, 64).bfloat16(), torch.rand(64).bfloat16()
    angle = torch.rand(64, 32) * 6
    halves = (x[:, :32], x[:, 32:], w[:32], w[32:], angle.cos(), angle.sin())
    wanted = torch.cat(norm_rope(*halves, 1e-6), -1)
    assert same(wanted.float().bfloat16(), wanted, ex14_values.BFLOAT16).all()
    normed = torch.cat(norm_rope(*halves, 1e-6, "no rotation"), -1).bfloat16().double()
    first, second = normed.chunk(2, -1)
    twice = torch.cat((first * angle.cos() - second * angle.sin(), second * angle.cos() + first * angle.sin()), -1).bfloat16()
    assert not same(twice, wanted, ex14_values.BFLOAT16).all()


def test_hard_rows_are_hard():
    x = ex14_arithmetic.hard_rows(10, 64, gpu.device).float()
    assert (x[3] == 0).all() and x[4].abs().max() > 3e3 and x[1].square().mean() < 1e-5
    assert x[2].abs().max() == 300 and x[2].abs().median() < 0.1


def test_each_case_brings_one_new_thing():
    assert len({case.new for case in ex14_write.CASES}) == len(ex14_write.CASES)
    by = {case.new: case for case in ex14_write.CASES}
    assert by["plain"].tokens % by["plain"].BLOCK_T == 0 and by["tail"].tokens % by["tail"].BLOCK_T
    assert by["no tokens"].tokens == 0 and by["lanes"].size // 2 & (by["lanes"].size // 2 - 1)


def test_the_views_of_a_case_are_views_from_an_odd_address():
    inputs = ex14_inputs.Inputs(next(case for case in ex14_write.CASES if case.view))
    qkv = inputs.args()[0]
    assert qkv.stride(0) == 2 * qkv.shape[1] and qkv.data_ptr() % 16 and qkv.stride(1) == 1
    assert inputs.paper()[0].stride() == qkv.stride() and inputs.paper()[0].storage_offset() % 8 == qkv.storage_offset() % 8


def test_full_size_passes_2_31_in_a_row_s_offset_and_in_a_block_s():
    qkv, positions, slots, cos_sin, *_, k_cache, v_cache, _ = ex14_inputs.large_args(ex14_inputs.FULL)
    assert (qkv.shape[0] - 1) * qkv.stride(0) > 2**32 and int(slots[-1]) // ex14_inputs.BLOCK_SIZE * k_cache.stride(0) > 2**32
    assert int(slots[-1]) == k_cache.shape[0] * k_cache.shape[1] - 1 and len(positions) == len(cos_sin) == ex14_inputs.FULL
    assert v_cache.storage_offset() == k_cache.stride(0) // 2


def test_what_the_rules_are_given_is_what_the_page_says():
    qkv, positions, slots, cos_sin, q_weight, k_weight, k_cache, v_cache, eps = ex14_rules.make(33, **ex14_rules.HEADS)
    assert qkv.shape == (33, 48 * 128) and qkv.stride(0) == 2 * qkv.shape[1] and qkv.storage_offset()
    assert k_cache.untyped_storage().data_ptr() == v_cache.untyped_storage().data_ptr() and k_cache.stride() == v_cache.stride()
    assert len(set(slots.tolist())) == 33 and int(slots.max()) == k_cache.shape[0] * k_cache.shape[1] - 1
    assert cos_sin.dtype == torch.float32 and int(positions.max()) < len(cos_sin)
    assert {x.dtype for x in (qkv, q_weight, k_weight, k_cache, v_cache)} == {torch.bfloat16}


def test_the_reference_of_the_rules_takes_the_kernel_s_own_arguments():
    tree = ast.parse(BLOCK.sub("    pass", cell_of("14.2")))
    names = [argument.arg for argument in tree.body[0].args.args]
    assert set(ex14_rules._NAMES) <= set(names) and "eps" in names
    args = ex14_rules.make(5, **ex14_rules.SMALL)
    kernel = type("Kernel", (), {"arg_names": [*ex14_rules._NAMES, "eps"]})
    order = ("qkv", "positions", "slots", "cos_sin", "q_weight", "k_weight", "k_cache", "v_cache")
    assert tuple(ex14_rules._NAMES.values()) == order
    told = ex14_rules._reference(kernel, args)
    assert list(told) == ["qkv_ptr", "k_cache_ptr", "v_cache_ptr"] and told["qkv_ptr"].dtype == torch.bfloat16
    assert not torch.equal(told["qkv_ptr"], args[0]) and torch.equal(told["qkv_ptr"][:, 512:], args[0][:, 512:])


def test_the_limits_on_programs_are_those_of_the_page():
    """At BLOCK_T 1 and 4: a program for a token's key head in decode, 3,072 elements and more of a long prompt."""
    for tokens, limit, most in ex14_rules.PROGRAMS:
        own = -(-tokens // (1 if tokens < 512 else 4)) * 8
        assert own <= limit if most else own >= limit
    assert 8_192 * 8 > 32_768 and 64 // 4 * 8 < 132


def test_slips_that_the_bank_has():
    """Each slip that a kernel can make is made by a wrong answer, or is a formula that the others of 14.1 are told from."""
    causes = {mistake.cause for number in ("14.1", "14.2") for mistake in STEPS[number].mistakes}
    made = {cause for answer in WRONG if answer.step in ("14.1", "14.2") for cause in causes if answer.cause and answer.cause in cause}
    assert len(made) >= 40, len(made)
    assert ex14_reference.SLIPS.keys() == ex14_reference.ARITHMETIC.keys() | ex14_reference.WRITING.keys()
