"""Make the parts of WORKSHOP.md that follow from the notebooks: `python scripts/workshop.py [--check]`.

Between `<!-- made: NAME -->` and `<!-- end -->` stand the plans, the table of lessons, and each lesson's facts: its minutes (from the
metadata `kit`), what it is for (its first cell), its exercise, and wrong answers that the exercise was tried with (kit/tests/banks), with
what the check says to them. A lesson that has no part yet gets one. `--check` writes nothing; it fails when the file would change, or when
a lesson's own lines, **Stuck** and **Cut**, have not been written. `--answers 06` prints all wrong answers of an exercise.
"""

from __future__ import annotations

import argparse
import json
import re
import sys
from dataclasses import dataclass
from pathlib import Path

from project import ROOT

PAGE = ROOT / "WORKSHOP.md"
SHOWN = 3  # wrong answers a step
TO_WRITE = "to be written"
# Answers that show that a reader has not begun, and no misunderstanding.
NOT_BEGUN = {"as it was", "left as it was", "nothing returned", "pasted", "nothing launched", "plain", "one kernel, as it was"}
# A plan is what happens in turn: minutes and words, or a lesson, with its exercise ("+") or without.
PLANS = {
    "half-day": [
        "10 Welcome, `make check` looked at",
        "00",
        "06+",
        "15 Break",
        "07+",
        "05+",
        "15 Break",
        "04",
        "15 Questions, and what to read next",
    ],
    "one-day": [
        "10 Welcome, `make check` looked at",
        "00",
        "01+",
        "15 Break",
        "06+",
        "07+",
        "60 Lunch",
        "05+",
        "15 Break",
        "04+",
        "08",
        "15 Break",
        "11",
        "15 Questions, and what to read next",
    ],
}
BEGINS_AT = 9 * 60  # o'clock, in minutes
BLOCK = re.compile(r"<!-- made: (?P<name>[^>]+?) -->\n(?P<body>.*?)<!-- end -->\n", re.DOTALL)


class Stop(Exception):
    """A sentence for the person who typed the command."""


@dataclass(frozen=True)
class Lesson:
    """What a lesson says of itself: minutes from its metadata, the rest from its first cell."""

    stem: str
    title: str
    without: str
    purpose: str
    gpu: str
    teaching: int
    exercises: int

    @property
    def number(self):
        return self.stem[:2]


def lesson_of(path):
    """The Lesson in the notebook file. Raises Stop where its metadata has no minutes, or its first cell no title."""
    notebook = json.loads(path.read_text(encoding="utf-8"))
    kit = notebook["metadata"].get("kit") or {}
    first = "".join(notebook["cells"][0]["source"])
    title = re.match(r"# (.+)", first)
    if not title or not all(isinstance(kit.get(key), int) for key in ("teaching", "exercises")):
        raise Stop(f"{path.name} needs a title and `kit: {{teaching, exercises, gpu}}` in its metadata, both in minutes.")
    without, purpose, gpu = (
        found[1] if (found := re.search(pattern, first)) else ""
        for pattern in (r"\*\*Without this rule\*\* (.+)", r"\*\*Time\*\* \d+ minutes, for (.+)", r"\*\*GPU\*\* (.+)")
    )
    return Lesson(path.stem, title[1], without, purpose, gpu, kit["teaching"], kit["exercises"])


def lessons(folder=ROOT / "notebooks"):
    """Every lesson of the folder, in order."""
    return [lesson_of(path) for path in sorted(Path(folder).glob("*.ipynb"))]


# ---- plans
def plan(name, there):
    """The table of a plan: when, what, how long. A lesson that is not there is left out."""
    by_number, now, rows = {lesson.number: lesson for lesson in there}, BEGINS_AT, []
    for entry in PLANS[name]:
        for what, minutes in _parts(entry, by_number):
            rows.append(f"| {now // 60}:{now % 60:02d} | {what} | {minutes} |")
            now += minutes
    total = now - BEGINS_AT
    head = ["| at | what | minutes |", "|---|---|---|"]
    return "\n".join([*head, *rows, f"| {now // 60}:{now % 60:02d} | end, after {total // 60} h {total % 60:02d} min | {total} |"])


def _parts(entry, by_number):
    if words := re.fullmatch(r"(\d+) (\D.*)", entry):
        return [(words[2], int(words[1]))]
    lesson = by_number.get(entry.removesuffix("+"))
    if lesson is None:
        return []
    parts = [(f"{lesson.number}: {lesson.title}", lesson.teaching)]
    return parts + ([(f"Exercise {lesson.number}", lesson.exercises)] if entry.endswith("+") else [])


def self_paced(there):
    """The table of all lessons: minutes to read, minutes for the exercise."""
    rows = [f"| {x.number} | [{x.title}](notebooks/{x.stem}.ipynb) | {x.teaching} | {x.exercises or ''} |" for x in there]
    teaching, exercises = (sum(getattr(lesson, name) for lesson in there) for name in ("teaching", "exercises"))
    hours = (teaching + exercises) / 60
    head = ["| | lesson | reading | exercise |", "|---|---|---|---|"]
    return "\n".join([*head, *rows, f"| | all: about {hours:.0f} hours | {teaching} | {exercises} |"])


# ---- a lesson's part
def facts(lesson, exercise, wrong):
    """The made lines of a lesson: goal, time, GPU, and for each step of its exercise some wrong answers with what the check says."""
    lines = [f"### {lesson.number} {lesson.title}", ""]
    time = f"{lesson.teaching} minutes" + (f", {lesson.exercises} for the exercise" if lesson.exercises else ", no exercise")
    lines.append(f"- **Goal** {_goal(lesson)}")
    lines.append(f"- **Time** {time}.")
    if lesson.gpu:
        lines.append(f"- **Without a GPU** {_capital(lesson.gpu)}")
    for step in exercise.steps if exercise else ():
        answers = [answer for answer in wrong if answer.step == step.number]
        lines.append(f"- **{step.number} {step.title}**, {step.size}; {len(answers)} wrong answers in its bank, such as")
        lines += [f"  - *{name}*: {said}" for name, said in _usual(step, answers)]
    return "\n".join(lines)


def _goal(lesson):
    if not lesson.without:
        return _capital(lesson.purpose or lesson.title)
    return f"To keep the rule, and to know what happens without it: {lesson.without}"


def _capital(words):
    return words[:1].upper() + words[1:]


def _usual(step, answers):
    """Up to SHOWN wrong answers with what the check says to them, no sentence twice; the first of the bank come first."""
    told = {}
    for answer in answers:
        said = _said(step, answer)
        if said and said not in told and answer.name not in NOT_BEGUN:
            told[said] = answer.name
    return [(name, said) for said, name in list(told.items())[:SHOWN]]


def _said(step, answer):
    """What the check says to a wrong answer: the likely cause whose words the bank expects."""
    return next((mistake.cause for mistake in step.mistakes if answer.cause and answer.cause in mistake.cause), "")


# ---- the page
def made(there):
    """{name: text} of every part that is made."""
    exercises, wrong = _exercises()
    parts = {f"plan {name}": plan(name, there) for name in PLANS} | {"lessons": self_paced(there)}
    return parts | {f"lesson {x.number}": facts(x, exercises.get(x.number), wrong) for x in there}


def _exercises():
    sys.path.insert(0, str(ROOT))
    from kit.graders import EXERCISES
    from kit.tests.banks import WRONG

    return {exercise.stem[:2]: exercise for exercise in EXERCISES}, WRONG


def written(page, parts):
    """The page with every part put between its markers; lessons without a part get one, in order. Raises Stop for a part nobody makes."""
    unknown = [match["name"] for match in BLOCK.finditer(page) if match["name"] not in parts]
    if unknown:
        raise Stop(f"WORKSHOP.md has a part that nothing makes: {', '.join(unknown)}. Remove it, or rename it.")
    page = BLOCK.sub(lambda match: _block(match["name"], parts[match["name"]]), page)
    for name in parts:
        if f"<!-- made: {name} -->" not in page:
            if not name.startswith("lesson "):
                raise Stop(f"WORKSHOP.md has no part `<!-- made: {name} -->` ... `<!-- end -->`: write one where it should stand.")
            page = _with_lesson(page, name, parts[name])
    return page


def _block(name, text):
    return f"<!-- made: {name} -->\n{text}\n<!-- end -->\n"


def _with_lesson(page, name, text):
    part = f"{_block(name, text)}- **Stuck** {TO_WRITE}\n- **Cut** {TO_WRITE}\n\n"
    later = [match.start() for match in BLOCK.finditer(page) if match["name"].startswith("lesson ") and match["name"] > name]
    return page[: later[0]] + part + page[later[0] :] if later else page.rstrip("\n") + "\n\n" + part.rstrip("\n") + "\n"


def unwritten(page):
    """Lessons whose **Stuck** and **Cut** nobody has written yet."""
    found = []
    for match in BLOCK.finditer(page):
        if match["name"].startswith("lesson "):
            own = re.match(r"\s*- \*\*Stuck\*\* (.+)\n- \*\*Cut\*\* (.+)\n", page[match.end() :])
            if not own or TO_WRITE in own[1] + own[2]:
                found.append(match["name"])
    return found


def print_answers(number):
    """Print every wrong answer of the bank for one exercise, with what the check says."""
    exercises, wrong = _exercises()
    if number not in exercises:
        raise Stop(f"there is no exercise {number}; there are {', '.join(sorted(exercises))}.")
    for step in exercises[number].steps:
        print(f"{step.number} {step.title}")
        for answer in wrong:
            if answer.step == step.number:
                print(f"  {answer.name}: {_said(step, answer) or 'the check says what it got, and what was expected.'}")


def main(arguments=None):
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--check", action="store_true", help="write nothing; fail when the page would change")
    parser.add_argument("--answers", metavar="NN", help="print all wrong answers of an exercise, such as 06")
    given = parser.parse_args(arguments)
    if given.answers:
        print_answers(given.answers)
        return 0
    page = PAGE.read_text(encoding="utf-8")
    there = lessons()
    if not there:
        raise Stop("no notebooks in notebooks/, so no plan can be made.")
    new, problems = written(page, made(there)), []
    if given.check and new != page:
        problems.append("WORKSHOP.md is not in step with the notebooks: run `python scripts/workshop.py`")
    if missing := unwritten(new):
        problems.append(f"WORKSHOP.md: {', '.join(missing)}: write where people get stuck and what to cut")
    if not given.check:
        PAGE.write_text(new, encoding="utf-8")
    print(*problems or [f"workshop: {len(there)} lessons, {len(PLANS)} plans, in step"], sep="\n")
    return 1 if problems else 0


if __name__ == "__main__":
    try:
        sys.exit(main())
    except Stop as stop:
        sys.exit(f"workshop: {stop}")
