"""How Progress is drawn in a notebook and told in a terminal: a line a step, by exercise, with the next one marked and linked."""

from __future__ import annotations

import html
import itertools
import os
from pathlib import Path

EXERCISES = Path(__file__).resolve().parent.parent / "exercises"
MARKS = {"passed": "✓", "wrong": "✗", "not done yet": "·"}


def drawn(progress):
    """The page as HTML: no script, no colour that carries meaning alone, nothing from elsewhere."""
    said = html.escape(f"{len(progress.passed)} of {len(progress.steps)} steps passed, {hints_of(progress.hints)}.")
    bar = f"<progress max='{len(progress.steps)}' value='{len(progress.passed)}' style='width:20em' aria-hidden='true'></progress>"
    note = f"<p role='status'>{html.escape(progress.note)}</p>" if progress.note else ""
    left = "style='text-align:left'"
    head = "".join(f"<th scope='col' {left}>{name}</th>" for name in ("step", "what it asks", "state", "checks", "hints"))
    body = "".join(_group(progress, stem, numbers) for stem, numbers in _groups(progress))
    table = f"<table><caption {left}>Each step of each exercise</caption><thead><tr>{head}</tr></thead>{body}</table>"
    return f"<div><p><b>{said}</b> {bar}</p><p>{_next(progress)}</p>{note}{table}</div>"


def _next(progress):
    if progress.next is None:
        return "All of them: nothing is left to do here."
    step = progress.steps[progress.next]
    stem = step["notebook"]
    return f"Next: <b>{progress.next}</b>, {html.escape(step['title'])}, in {_link(stem, f'exercises/{stem}.ipynb')}"


def _group(progress, stem, numbers):
    done = sum(progress.steps[number]["state"] == "passed" for number in numbers)
    head = f"<tr><th scope='rowgroup' colspan='5' style='text-align:left'>{_link(stem, stem)}: {done} of {len(numbers)}</th></tr>"
    return f"<tbody>{head}{''.join(_row(progress, number) for number in numbers)}</tbody>"


def _row(progress, number):
    step, left = progress.steps[number], "style='text-align:left'"
    here = number == progress.next
    current = ' aria-current="step"' if here else ""
    state = f"{MARKS[step['state']]} {step['state']}" + (" <b>← next</b>" if here else "")
    return (
        f"<tr{current}><th scope='row' {left}>{number}</th><td {left}>{html.escape(step['title'])}</td>"
        f"<td {left}>{state}</td><td>{step['checks']}</td><td>{step['hints']} of 3</td></tr>"
    )


def _link(stem, words):
    """A link to the exercise from the folder that the notebook runs in, where the file is there; else the words."""
    file = EXERCISES / f"{stem}.ipynb"
    if not file.exists():
        return html.escape(words)
    return f"<a href='{html.escape(Path(os.path.relpath(file, Path.cwd())).as_posix())}'>{html.escape(words)}</a>"


def hints_of(n):
    """ "no hints", "1 hint", "7 hints"."""
    return "no hints" if n == 0 else "1 hint" if n == 1 else f"{n} hints"


def told(progress):
    """The page as text."""
    lines = [repr(progress)]
    width = max((len(step["title"]) for step in progress.steps.values()), default=0)
    for stem, numbers in _groups(progress):
        lines += ["", f"exercises/{stem}.ipynb"]
        for number in numbers:
            step = progress.steps[number]
            tail = f"  {hints_of(step['hints'])}" if step["hints"] else ""
            state = step["state"] + ("  <- next" if number == progress.next else "")
            lines.append(f"  {MARKS[step['state']]} {number}  {step['title']:<{width}}  {state}{tail}")
    return "\n".join(lines)


def _groups(progress):
    """(notebook, [step numbers]) in order."""
    by = itertools.groupby(progress.steps.items(), key=lambda item: item[1]["notebook"])
    return [(stem, [number for number, _ in items]) for stem, items in by]
