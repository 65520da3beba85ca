"""WORKSHOP.md follows the notebooks: the plans add up, a new lesson gets its part, and what is not in step is said."""

import json
import re

import pytest
import workshop
from project import ROOT

FIRST = "# Cast\n\n**Without this rule** it is wrong.\n\n**Time** 25 minutes, and 20.\n**GPU** not needed."


def lesson(number="07", teaching=25, exercises=20, without="it is wrong."):
    return workshop.Lesson(f"{number}_x", f"Title {number}", without, "", "not needed.", teaching, exercises)


def notebook(folder, name, first=FIRST, kit=(("teaching", 25), ("exercises", 20))):
    path = folder / name
    path.write_text(json.dumps({"metadata": {"kit": dict(kit)}, "cells": [{"cell_type": "markdown", "source": [first]}]}))
    return path


def test_the_page_is_in_step_with_the_notebooks():
    page = workshop.PAGE.read_text(encoding="utf-8")
    assert workshop.written(page, workshop.made(workshop.lessons())) == page, "run `python scripts/workshop.py`"
    assert workshop.unwritten(page) == [], "write where people get stuck and what to cut"


def test_a_lesson_is_read_from_its_file(tmp_path):
    (one,) = [notebook(tmp_path, "07_x.ipynb")] and workshop.lessons(tmp_path)
    assert (one.title, one.without, one.gpu, one.teaching, one.exercises) == ("Cast", "it is wrong.", "not needed.", 25, 20)


@pytest.mark.parametrize("broken", [{"first": "No title"}, {"kit": ()}, {"kit": (("teaching", "25"), ("exercises", 20))}])
def test_a_lesson_without_minutes_or_title_is_named(tmp_path, broken):
    with pytest.raises(workshop.Stop, match="07_x.ipynb needs a title and"):
        workshop.lesson_of(notebook(tmp_path, "07_x.ipynb", **broken))


def minutes(table):
    return [int(row) for row in re.findall(r"\| (\d+) \|$", table, re.MULTILINE)]


@pytest.mark.parametrize("name", workshop.PLANS)
def test_a_plan_adds_up_and_leaves_out_what_is_not_there(name):
    there = [lesson(f"{number:02d}", 30, 20) for number in range(15)]
    *parts, total = minutes(workshop.plan(name, there))
    assert sum(parts) == total
    fewer = workshop.plan(name, [one for one in there if one.number != "06"])
    assert "Title 06" not in fewer and "Exercise 06" not in fewer and minutes(fewer)[-1] == total - 50


@pytest.mark.parametrize(("name", "longest"), [("half-day", 4 * 60), ("one-day", 8 * 60)])
def test_a_plan_is_no_longer_than_it_says(name, longest):
    assert minutes(workshop.plan(name, workshop.lessons()))[-1] <= longest


def test_nobody_sits_longer_than_two_hours():
    for name in workshop.PLANS:
        sitting = 0
        for row in workshop.plan(name, workshop.lessons()).splitlines()[2:-1]:
            sitting = 0 if "Break" in row or "Lunch" in row else sitting + minutes(row)[0]
            assert sitting <= 120, row


def page(*names):
    return "".join(f"<!-- made: {name} -->\nold\n<!-- end -->\n" for name in names)


def test_a_new_lesson_gets_its_part_in_order_and_its_own_lines_are_asked_for():
    parts = {f"lesson {number}": f"text {number}" for number in ("06", "07", "09")}
    new = workshop.written(page("lesson 06") + "- **Stuck** a\n- **Cut** b\n\n" + page("lesson 09") + "- **Stuck** a\n- **Cut** b\n", parts)
    assert re.findall(r"text \d\d", new) == ["text 06", "text 07", "text 09"] and "old" not in new
    assert workshop.unwritten(new) == ["lesson 07"]
    assert workshop.written(new, parts) == new


def test_a_part_that_nothing_makes_or_that_is_missing_is_named():
    with pytest.raises(workshop.Stop, match="nothing makes: lesson 99"):
        workshop.written(page("lesson 99"), {})
    with pytest.raises(workshop.Stop, match="has no part `<!-- made: lessons -->`"):
        workshop.written("", {"lessons": "x"})


def test_every_step_of_every_exercise_names_answers_with_what_the_check_says():
    text = workshop.PAGE.read_text(encoding="utf-8")
    from kit.graders import EXERCISES

    stems = {path.stem for path in (ROOT / "notebooks").glob("*.ipynb")}
    for exercise in EXERCISES:
        if exercise.stem in stems:
            for step in exercise.steps:
                part = text.split(f"- **{step.number} ", 1)[1].split("\n- **", 1)[0]
                assert part.count("\n  - *") == workshop.SHOWN, step.number


def test_check_says_what_to_run(monkeypatch, tmp_path, capsys):
    copy = tmp_path / "WORKSHOP.md"
    copy.write_text(workshop.PAGE.read_text(encoding="utf-8").replace("| 9:00 |", "| 8:00 |"), encoding="utf-8")
    monkeypatch.setattr(workshop, "PAGE", copy)
    before = copy.read_text()
    assert workshop.main(["--check"]) == 1 and copy.read_text() == before
    assert "run `python scripts/workshop.py`" in capsys.readouterr().out
