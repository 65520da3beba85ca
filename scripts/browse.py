"""Run notebooks in JupyterLab in a real browser and look at them: `python scripts/browse.py [NOTEBOOK ...]`; `make browser` calls it.

Every notebook of notebooks/, exercises/ and solutions/ unless some are named. For each: every cell runs without an error, each panel of
`kit.explore` is there and each of its inputs moves what it shows, by keyboard; the browser's console reports no error, and axe-core has no
serious finding in what the cells show. Prints a line a notebook; the exit status is 1 when something was found. About 20 s a notebook.
"""

from __future__ import annotations

import argparse
import re
import sys
import time
from pathlib import Path

import axe
from lab_browser import LabError, lab
from project import ROOT

FOLDERS = ("notebooks", "exercises", "solutions")
MOST_STEPS = 40  # of one input, until the picture has changed
STILL_SECONDS = 20  # for a picture that the kernel has to compute
# What a panel shows, whatever it is drawn with. An <img> is compared by its pixels: its address changes with every drawing.
SHOWN = """panel => [panel.querySelector('.kit-sentence')?.textContent, ...[...panel.querySelectorAll('svg, canvas, img')].map(node => {
    if (node.tagName === 'svg') return node.innerHTML;
    if (node.tagName === 'CANVAS') return node.toDataURL();
    const copy = document.createElement('canvas');
    [copy.width, copy.height] = [node.naturalWidth, node.naturalHeight];
    if (copy.width) copy.getContext('2d').drawImage(node, 0, 0);
    return copy.toDataURL();
})].join('|')"""
LABEL = """node => (node.tagName === 'FIELDSET' ? node.querySelector('legend')?.textContent : node.labels?.[0]?.textContent)?.trim()
                || node.getAttribute('aria-label') || ''"""
# How many values an input has, and at which it stands.
VALUES = """node => {
    if (node.tagName === 'SELECT') return [node.options.length, node.selectedIndex];
    if (node.tagName === 'INPUT') return [Number(node.max) + 1, Number(node.value)];
    const choices = [...node.querySelectorAll('input')];
    return [choices.length, choices.findIndex(choice => choice.checked)];
}"""
FORM = ".jp-OutputArea-output .widget-vbox:has(.widget-html-content)"  # kit.semantics_panel
INPUTS = "input[type=range], select, fieldset.kit-axis"


def look(page):
    """What is wrong with a NotebookPage whose cells have run: sentences."""
    widgets = made(page.code_cells())
    panels, forms = page.page.locator(".kit-panel"), page.page.locator(FORM)
    deadline = time.monotonic() + 20
    while panels.count() + forms.count() < widgets and time.monotonic() < deadline:
        page.page.wait_for_timeout(100)
    page.settle(0.3)
    there = panels.count() + forms.count()
    problems = [] if there == widgets else [f"{there} widgets are shown where the cells make {widgets}"]
    for number in range(panels.count()):
        problems += [f"panel {number + 1}: {problem}" for problem in moved(panels.nth(number))]
    for number in range(forms.count()):
        problems += [f"form {number + 1}: {problem}" for problem in typed(forms.nth(number))]
    page.page.wait_for_timeout(300)  # an error in a callback would arrive in this time
    problems += [f"code cell {number}: {text}" for number, text in page.errors()]
    problems += [f"the console: {text[:200]}" for text in page.console]
    return problems + axe.grave(axe.findings(page.page))


def made(cells):
    """How many widgets the code cells show."""
    return sum("application/vnd.jupyter.widget-view+json" in output.get("data", {}) for cell in cells for output in cell["outputs"])


def moved(panel):
    """Move every input of a panel by one step at a time, by keyboard, until what is shown changes; return what did not work."""
    problems, inputs = [], panel.locator(INPUTS)
    if not inputs.count():
        problems.append("it has no input")
    for number in range(inputs.count()):
        control = inputs.nth(number)
        control.scroll_into_view_if_needed()
        name = control.evaluate(LABEL)
        if not name:
            problems.append(f"input {number + 1} has no label that a screen reader could say")
        before = panel.evaluate(SHOWN)
        if not before:
            problems.append("it holds no picture")
        taken = 0
        for taken, last in stepped(control):
            if changed(panel, before, STILL_SECONDS if taken == last else 1):
                break
        else:
            problems.append(f"{name or f'input {number + 1}'} was moved through its values and the picture stayed the same")
        for _ in range(taken):  # back: what the next input does is looked at from where the panel began
            step(control, -1)
    if trouble := [text for text in panel.locator("[role=alert]").all_inner_texts() if text.strip()]:
        problems.append(f"it says: {trouble[0]}")
    return problems


def typed(form):
    """Type another number into the first line of a form of ipywidgets; return what did not work."""
    line, shown = form.locator(".widget-text input").first, form.locator(".widget-html-content")
    before = shown.inner_text()
    line.fill("5" if line.input_value() != "5" else "6")
    line.press("Enter")
    deadline = time.monotonic() + 20
    while shown.inner_text() == before:
        if time.monotonic() > deadline:
            return ["another value was typed and what it shows stayed the same"]
        time.sleep(0.05)
    return []


def stepped(control):
    """Step the input on, or back where it stands at its end, again and again; yields (steps so far, most steps)."""
    size, at = control.evaluate(VALUES)
    control.evaluate("(node, way) => { node.kitWay = way }", 1 if at < size - 1 else -1)
    last = min(MOST_STEPS, (size - 1 - at) if at < size - 1 else at)
    for taken in range(1, last + 1):
        step(control, 1)
        yield taken, last


def step(control, sign):
    """One step of the input: by the arrow keys, or, as the keys of an open menu are the browser's own, by choosing in the menu."""
    way, kind = control.evaluate("node => [node.kitWay ?? 1, node.tagName]")
    way *= sign
    if kind == "SELECT":
        control.select_option(index=control.evaluate("node => node.selectedIndex") + way)
        return
    target = control.locator("input:checked") if kind == "FIELDSET" else control
    target.focus()
    target.press("ArrowRight" if way > 0 else "ArrowLeft")


def changed(panel, before, seconds):
    """Whether what the panel shows differs from `before` within `seconds`."""
    deadline = time.monotonic() + seconds
    while (same := panel.evaluate(SHOWN) == before) and time.monotonic() < deadline:
        time.sleep(0.05)
    return not same


def visit(started, path, screenshots=None):
    """Open, run and look at one notebook in a Lab: (problems, seconds)."""
    began = time.monotonic()
    try:
        with started.notebook(path) as page:
            try:
                page.run_all()
                problems = look(page)
            except LabError as error:
                problems = [str(error)]
            if screenshots and problems:
                page.page.screenshot(path=Path(screenshots) / f"{path.parent.name}-{path.stem}.png")
    except LabError as error:  # it did not open
        problems = [str(error)]
    return problems, time.monotonic() - began


def main(arguments=None):
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("notebooks", nargs="*", type=Path)
    parser.add_argument("--screenshots", type=Path, metavar="FOLDER", help="photograph what was found")
    given = parser.parse_args(arguments)
    paths = [path.resolve() for path in given.notebooks] or [p for folder in FOLDERS for p in sorted((ROOT / folder).glob("*.ipynb"))]
    if not paths:
        sys.exit("browse: no notebooks found, so nothing was looked at")
    if given.screenshots:
        given.screenshots.mkdir(parents=True, exist_ok=True)
    bad = 0
    try:
        axe.source()
        with lab(ROOT) as started:
            for path in paths:
                problems, seconds = visit(started, path, given.screenshots)
                bad += bool(problems)
                print(f"{'FAILED' if problems else 'ok    '} {seconds:5.1f} s  {path.parent.name}/{path.name}", flush=True)
                for problem in problems:
                    print("       " + re.sub(r"\s+", " ", problem), flush=True)
    except (LabError, axe.AxeError) as error:
        sys.exit(f"browse: {error}")
    print(f"{len(paths)} notebooks in JupyterLab: {bad} with findings")
    return 1 if bad else 0


if __name__ == "__main__":
    sys.exit(main())
