"""Exercise 15: the bug hunt. Thirteen kernels, each right in its own test: which break a rule, on which input, and how are they mended?"""

from __future__ import annotations

from kit.graders import ex15_mended, ex15_shown
from kit.graders.hunt import RULES, SUSPECTS
from kit.graders.step import Exercise, Mistake, Step, counted


# ---- 15.1: what each is accused of
def grade_accused(answer, trial):
    """Judge `accused`: for each kernel the number of the rule that it breaks, or "right". All are asked before the first is judged."""
    trial.evidence = "simulated"
    asked = {}
    for name in SUSPECTS:
        asked[name] = got = trial.call(answer, name, ran=name)
        if not (got is None or got == "right" or (isinstance(got, int) and not isinstance(got, bool) and got in RULES)):
            said = f"{got!r:.40}"
            told = {"ran": name, "where": "what it returns", "got": said, "expected": 'a rule, 1 to 10, or "right"'}
            trial.problem("answer", f'{name}: it returns {said}, and not a rule or "right"', {"what": "type", "got": got}, **told)
            trial.case(name)
    found = {name: _finding(name, got) for name, got in asked.items()}
    picture = _hunt_picture(asked, found)
    rightly = sum(finding == "found" for finding in found.values())
    head = f"{rightly} of {counted(len(found), 'kernel')} judged rightly"
    for finding in ("wrongly accused", "missed", "another rule", "open"):
        names = [name for name, one in found.items() if one == finding]
        for name in names if finding != "open" else names[:1]:
            facts = {"what": finding, "name": name, "asked": asked}
            text = f"{head}; {_TOLD[finding].format(name=name, got=asked[name], n=len(names))}"
            told = {"where": "the answer", "got": _said(asked[name]), "expected": _EXPECTED[finding], "picture": picture}
            if finding != "open" or not trial.problems:
                trial.problem("answer", text, facts, ran=name, **told)
    for name in SUSPECTS:
        trial.case(name)


_TOLD = {
    "wrongly accused": "{name} is accused of breaking rule {got}, and keeps all ten",
    "missed": "{name} is called right, and breaks a rule",
    "another rule": "{name} keeps rule {got}, and breaks another",
    "open": "{n} left open, the first is {name}",
}
_EXPECTED = {"wrongly accused": "no rule", "missed": "a rule", "another rule": "another rule", "open": 'a rule or "right"'}


def _finding(name, got):
    """What the answer for a suspect is: "found", "wrongly accused", "missed", "another rule" or "open"."""
    rule = SUSPECTS[name].rule
    if got is None or got == rule:
        return "open" if got is None else "found"
    return "missed" if got == "right" else "wrongly accused" if rule == "right" else "another rule"


def _said(got):
    return "open" if got is None else got if got == "right" else f"rule {got}"


def _hunt_picture(asked, found):
    """The hunt so far: of each kernel, what was said and what became of it."""
    rows = [
        {"label": name, "value": int(one == "found"), "ok": None if one == "open" else one == "found", "note": _note(one, asked[name])}
        for name, one in found.items()
    ]
    return {"kind": "Bars", "title": "The hunt: 1 where the answer is right", "rows": rows}


def _note(finding, got):
    return "open" if finding == "open" else f"{_said(got)}: {finding}"


def _at(name):
    return lambda f: f.get("name") == name and f["what"] != "open"


STEP_1 = Step(
    number="15.1",
    title="Who breaks which rule?",
    spec='For the name of a kernel, return the number of the rule that it breaks, or "right".',
    answer="function",
    call="accused(name)",
    size="about 8 lines",
    grade=grade_accused,
    mistakes=(
        Mistake(
            "nothing returned",
            lambda f: "asked" in f and all(got is None for got in f["asked"].values()),
            "Is the return missing? Every name gives None.",
        ),
        Mistake(
            "text",
            lambda f: f.get("what") == "type" and isinstance(f["got"], str),
            'A rule is a number, such as 5; the only text is "right".',
        ),
        Mistake("type", lambda f: f.get("what") == "type", 'Return one whole number from 1 to 10, or "right"; None leaves a kernel open.'),
        Mistake(
            "all right",
            lambda f: "asked" in f and all(got in (None, "right") for got in f["asked"].values()) and f["what"] != "open",
            "Nobody is accused yet: that a kernel passes its own test says nothing about other sizes, views and values.",
        ),
        Mistake(
            "all accused",
            lambda f: f.get("what") == "wrongly accused" and "right" not in f["asked"].values() and None not in f["asked"].values(),
            "Every kernel is accused, and some only look suspicious. Before you accuse, find an input that shows it.",
        ),
        *(Mistake(name, _at(name), suspect.look) for name, suspect in SUSPECTS.items()),
        Mistake(
            "open",
            lambda f: f.get("what") == "open",
            "Those answered are right. For the others, run each at sizes, views and values that its test leaves out.",
        ),
    ),
    hints=(
        "Sort them first. Which have wrong values at some input, which are refused or read outside, and which are right and only cost "
        "too much? The three kinds need different tools.",
        "For each: kit.dry_run with kit.ghost at the largest sizes; its reference at odd sizes, other shapes, views and hard values; "
        "kit.build at both ends of its sizes; kit.watch over a few launches. A kernel that all of these leave alone is right.",
        "One kernel breaks each rule and three break none. Values show rules 1, 2, 9 and 10; kit.dry_run 5, 6 and 7; kit.build's spills 3; "
        "kit.watch 4; counting programs at many tokens 8.",
    ),
)

EXERCISE = Exercise("15_bug_hunt", "Bug hunt", (STEP_1, ex15_shown.STEP_2, ex15_mended.STEP_3))
