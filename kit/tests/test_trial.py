"""The two verdicts of a step, values and memory: one that was lost stays lost, and each goes with the problem that was told."""

import dataclasses

import pytest

from kit import machine
from kit.graders import STEPS, ex06_legal_grid, ex12_edges, grade
from kit.graders.step import Stop, Trial
from kit.tests.banks import WRONG, module_of
from kit.verdict import Verdict

NAMED = {
    ("05.1", "past the row"),
    ("05.1", "x in tmp"),
    ("05.2", "the upper half of the next row"),
    ("06.2", "one head"),
    ("06.3", "no tail mask"),
    ("06.3", "rounded down"),
}
SOME = [answer for answer in WRONG if (answer.step, answer.name) in NAMED]


def test_a_verdict_that_was_lost_stays_lost():
    trial = Trial(STEPS["06.2"])
    assert (trial.values, trial.memory) == (None, None)
    trial.case("first", values=True, memory=True)
    assert (trial.values, trial.memory) == (True, True)
    trial.case("second", values=False)
    trial.case("third", values=True, memory=False)
    trial.case("fourth", values=True, memory=True)
    assert (trial.values, trial.memory) == (False, False) and trial.ran == ["first", "second", "third", "fourth"]


def test_a_case_with_a_problem_is_the_last():
    trial = Trial(dataclasses.replace(STEPS["06.2"], mistakes=()))
    trial.problem("values", "one element is wrong")
    with pytest.raises(Stop):
        trial.case("first", values=False, memory=True)
    assert (trial.values, trial.memory) == (False, True)


def test_the_named_answers_are_in_the_banks():
    assert len(SOME) == len(NAMED)


@pytest.mark.parametrize("answer", SOME, ids=lambda a: f"{a.step} {a.name}")
def test_what_was_told_and_the_verdict_agree(answer, tmp_path):
    machine.start()
    told = grade(answer.step, getattr(module_of(answer.source, tmp_path), STEPS[answer.step].name))
    about = told["problems"][0]["about"]
    assert about == answer.about in ("values", "memory") and told[about] is False
    if about == "values" and not any(problem["about"] == "memory" for problem in told["problems"]):
        assert told["memory"] is True


@pytest.mark.parametrize(
    "values, memory, words",
    [
        (True, False, "values right, memory illegal"),
        (False, True, "values wrong, memory legal"),
        (False, None, "values wrong"),
        (None, None, ""),
    ],
)
def test_the_two_verdicts_in_words(values, memory, words):
    assert Verdict("06.2", "wrong", "", values, memory).two == words


def test_the_largest_grid_is_no_grid_too_large():
    machine.start()
    most = machine.current().limits.programs
    for wanted, problems in ((most, []), (most + 1, ["launch"])):
        trial = Trial(dataclasses.replace(STEPS["06.1"], mistakes=()))
        ex06_legal_grid._judge_grid((wanted,), trial, "all of one", {"wanted": wanted, "most": most})
        assert [problem.about for problem in trial.problems] == problems


@pytest.mark.parametrize(
    "got, said",
    [
        ([2, 3], "the list lacks 1"),
        ([1, 3], "the list lacks 2"),
        ([1, 2, 3, 4], "the list has 4"),
        ([1, 2, 2, 3], "twice"),
        ([2, 1, 3], "sorted"),
    ],
)
def test_what_is_wrong_with_a_list_of_edges(got, said):
    assert said in ex12_edges._wrong(got, [1, 2, 3]) and not ex12_edges._wrong([1, 2, 3], [1, 2, 3])
