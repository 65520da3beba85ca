"""`examine` as a whole: the card, the child that dies, bad input. What each rule sees is tested beside the rules."""

from __future__ import annotations

import json
import os

import pytest
import torch

from kit.errors import BadInput, WrongType
from kit.examine import ReportCard, examine
from kit.rules import RULES
from kit.rules.note import VERDICTS
from kit.tests.scale_kernels import gpu, grid, make_args, reference, scale_kernel, second_axis, second_axis_kernel, sizes


@pytest.fixture(scope="module")
def card():
    return examine(scale_kernel, make_args, grid, reference=reference, sizes=sizes, BLOCK=1024)


def test_every_rule_says_something_with_a_known_verdict_and_evidence(card):
    assert {note.rule for note in card.notes} == {rule.number for rule in RULES}
    assert all(note.verdict in VERDICTS and note.text and note.evidence for note in card.notes)


def test_nothing_is_wrong_with_a_right_kernel(card):
    assert card, card.text
    assert not card.told("fragile"), card.text


def test_a_refused_grid_is_wrong_and_names_the_axis():
    found = examine(second_axis_kernel, make_args, second_axis, sizes=sizes, rules=6, BLOCK=1024)
    assert not found
    assert found.verdict(6) == "wrong"
    assert "65,535" in found.told("wrong")[0].text


def test_the_card_prints_as_one_line_as_text_and_as_a_table(card):
    assert "\n" not in repr(card)
    assert all(rule.title in card.text for rule in RULES)
    assert card._repr_html_().count("<tr>") == len(RULES) + 1


def test_a_saved_card_comes_back_whole(card, tmp_path):
    path = card.save(tmp_path / "card.json")
    assert ReportCard.load(path).data() == card.data()
    assert [rule["verdict"] for rule in json.loads(path.read_text())["rules"]] == [card.verdict(rule.number) for rule in RULES]
    assert os.listdir(tmp_path) == ["card.json"]


def test_load_refuses_what_is_no_card(tmp_path):
    (tmp_path / "other.json").write_text("{}")
    with pytest.raises(BadInput, match="no report card"):
        ReportCard.load(tmp_path / "other.json")
    with pytest.raises(BadInput, match="no report card"):
        ReportCard.load(tmp_path / "missing.json")


def test_what_a_team_accepts_is_left_out_by_rule_and_key():
    found = examine(second_axis_kernel, make_args, second_axis, sizes=sizes, rules=6, BLOCK=1024)
    accepted = found.without(*{f"6:{note.key}" for note in found.told("wrong")})
    assert accepted and not found
    with pytest.raises(BadInput, match="10:tf32"):
        found.without("tf32")


# ---- A child that dies


def dies_with_a_real_tensor(n):
    """Arguments whose making ends the process, but only when tensors are real: the paper rules are over by then."""
    x = torch.randn(n, device=gpu.device)
    if not x.is_meta:
        os._exit(7)
    return x, torch.empty(n, device=gpu.device), n


def test_a_child_that_dies_costs_one_rule_and_is_told():
    found = examine(scale_kernel, dies_with_a_real_tensor, grid, reference=reference, sizes={"n": [1000]}, rules=[6, 7, 9, 10], BLOCK=1024)
    assert found.verdict(6) == found.verdict(7) == "fine"
    assert ["child process" in note.text for note in found.of(9)] == ["child process" in note.text for note in found.of(10)] == [True]


def never_ends_with_a_real_tensor(n):
    x = torch.randn(n, device=gpu.device)
    while not x.is_meta:
        pass
    return x, torch.empty(n, device=gpu.device), n


def test_a_rule_that_does_not_end_is_told_and_the_time_named():
    found = examine(
        scale_kernel, never_ends_with_a_real_tensor, grid, reference=reference, sizes={"n": [1000]}, rules=[9], timeout=8, BLOCK=1024
    )
    assert "8 s" in found.of(9)[0].text


# ---- Bad input


def test_a_make_args_that_raises_is_named():
    def make_args(n):
        raise ValueError("no such size")

    with pytest.raises(BadInput, match=r"examine: .*no such size.* Nothing was looked at"):
        examine(scale_kernel, make_args, grid, sizes=sizes, BLOCK=1024)


def test_a_missing_constexpr_is_named():
    with pytest.raises(BadInput, match="needs BLOCK"):
        examine(scale_kernel, make_args, (1,), sizes=sizes)


@pytest.mark.parametrize(
    ("changed", "kind", "words"),
    [
        ({"kernel": reference}, WrongType, "kernel must be decorated"),
        ({"make_args": 3}, WrongType, "make_args must be"),
        ({"make_args": scale_kernel}, WrongType, "make_args must be"),
        ({"grid": "big"}, WrongType, "grid must be"),
        ({"grid": (1, 1, 1, 1)}, WrongType, "grid must be"),
        ({"reference": 1}, WrongType, "reference must be"),
        ({"sizes": []}, BadInput, "sizes must be"),
        ({"sizes": {"n": []}}, BadInput, "sizes must be"),
        ({"rules": [14]}, BadInput, "rules must be"),
        ({"tolerance": 1}, BadInput, "tolerance must be"),
        ({"timeout": 0}, BadInput, "examine: timeout must be"),
    ],
)
def test_bad_input_is_a_sentence_that_names_the_argument(changed, kind, words):
    given = {"kernel": scale_kernel, "make_args": make_args, "grid": grid, "sizes": sizes, "BLOCK": 1024, **changed}
    with pytest.raises(kind, match=words):
        examine(given.pop("kernel"), given.pop("make_args"), given.pop("grid"), **given)


def test_a_tensor_made_outside_make_args_is_refused_by_name():
    x = torch.zeros(4)

    def make_args(n):
        return x, torch.empty(n), n

    with pytest.raises(BadInput, match="does not see x"):
        examine(scale_kernel, make_args, grid, sizes=sizes, BLOCK=1024)
