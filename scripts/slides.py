"""Mark what is a slide in the lessons, by rule: `python scripts/slides.py [--check] [NOTEBOOK ...]`; `make slides` calls it.

    the first cell, and a text that begins with a heading of the first two levels     slide
    a text that asks to predict, and a folded answer                                  subslide: the next cell is not seen yet
    a text of other headings                                                          subslide
    code, and any other text                                                          fragment: it comes when the speaker goes on
    a cell of setting up (the first code cell), and one tagged `notes`                none: part of the slide it stands on; notes

Only the metadata `slideshow` of cells is changed; sources, outputs and ids stay as they are. After MOST code cells a slide is full, and
what comes next begins a subslide. `--check` writes nothing and fails when a mark would change.
"""

from __future__ import annotations

import argparse
import re
import sys
from pathlib import Path

import nbformat
from notebook_files import read, text
from project import ROOT

MOST = 2  # code cells on one slide: more do not fit a screen


def marks(cells):
    """The slide type of each cell, by rule; "" for a cell that is simply part of the slide it stands on."""
    found, on_slide, setting_up = [], 0, True
    for number, cell in enumerate(cells):
        mark = "slide" if number == 0 else _mark(cell)
        if cell.cell_type == "code" and setting_up:
            mark, setting_up = "", False
        elif mark == "fragment" and on_slide >= MOST:
            mark = "subslide"
        if mark in ("slide", "subslide"):
            on_slide = 0
        on_slide += cell.cell_type == "code"
        found.append(mark)
    return found


def _mark(cell):
    if "notes" in cell.metadata.get("tags", []):
        return "notes"
    if cell.cell_type == "markdown":
        if re.match(r"##? ", cell.source):
            return "slide"
        if cell.source.startswith("#") or "<details>" in cell.source or re.search(r"\*\*Predict\.?\*\*", cell.source):
            return "subslide"
    return "fragment"


def mark(notebook):
    """Set the marks in `notebook`, in place; return how many cells changed."""
    changed = 0
    for cell, wanted in zip(notebook.cells, marks(notebook.cells), strict=True):
        had = cell.metadata.get("slideshow", {}).get("slide_type", "")
        if had != wanted:
            changed += 1
            cell.metadata.pop("slideshow", None)
            if wanted:
                cell.metadata["slideshow"] = nbformat.from_dict({"slide_type": wanted})
    return changed


def main(arguments=None):
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("notebooks", nargs="*", type=Path, help="these only (all of notebooks/)")
    parser.add_argument("--check", action="store_true", help="write nothing; fail when a mark would change")
    given = parser.parse_args(arguments)
    paths = [path.resolve() for path in given.notebooks] or sorted((ROOT / "notebooks").glob("*.ipynb"))
    if not paths:
        sys.exit("slides: no notebooks found, so nothing was marked")
    stale = 0
    for path in paths:
        notebook = read(path)
        changed = mark(notebook)
        stale += bool(changed)
        if changed and not given.check:
            path.write_text(text(notebook), encoding="utf-8")
        if changed:
            print(f"{path.name}: {changed} cells {'would be' if given.check else ''} marked".replace("  ", " "))
    print(f"slides: {len(paths)} notebooks, {stale} {'not in step: run `make slides`' if given.check else 'changed'}")
    return 1 if given.check and stale else 0


if __name__ == "__main__":
    sys.exit(main())
