"""The rules that notebooks keep: `python scripts/lint_notebooks.py [NOTEBOOK ...]`. Prints one line a problem.

The exit status is 1 when there is one; notes (lines that begin with "note:") do not fail.
"""

from __future__ import annotations

import re
import sys
from pathlib import Path

import nbformat
from notebook_files import KERNELSPEC, WIDGET_VIEW, read
from project import ROOT

FOLDERS = ("notebooks", "solutions", "exercises")
MOST_BYTES = 1_500_000  # what GitHub still renders quickly
MOST_WORDS = 140  # in one text cell
MOST_LINES = 15  # of code in one cell that holds no kernel
LESSON_CELLS = range(25, 36)
ALTERNATION = 0.7  # of neighbouring cells, how many should be of different kinds
# A folder of this machine: of the author's clone, home or temporary files, in text that a reader elsewhere sees.
ABSOLUTE = re.compile(r"(?<![\w.:/])/(?:work|home|tmp|root|Users|usr/lib|usr/local|opt)/[^\s'\"<>)]*")
ADDRESS = re.compile(r"\bat 0x(?!0\b)[0-9a-f]{6,16}\b")
IMAGE = re.compile(r"!\[(?P<alt>[^\]]*)\]\(")
LINK = re.compile(r"\]\((?!https?:|mailto:|#|attachment:|data:)(?P<target>[^)#\s]+)")
TAG = re.compile(r"<img\b[^>]*>", re.IGNORECASE)
ALT = re.compile(r"\balt\s*=\s*([\"'])\s*[^\"'\s]", re.IGNORECASE)


def lint(path):
    """The problems of the notebook file at `path`, each as "cell N: sentence", and notes, each beginning with "note:".

    The rules depend on the folder that it is in: exercises/ holds no outputs, notebooks/ and solutions/ hold all of them.
    """
    path = Path(path)
    try:
        notebook = read(path)
        nbformat.validate(notebook)
    except Exception as error:  # whatever makes the file no notebook is the problem
        return [str(error).splitlines()[0]]
    problems = _of_file(path, notebook) + _of_source(path, notebook)
    if path.parent.name == "exercises":
        return problems + _of_unsolved(notebook)
    return problems + _of_outputs(notebook) + (_of_solved(notebook) if path.parent.name == "solutions" else [])


def _numbered(notebook, kind=None):
    return [(n, cell) for n, cell in enumerate(notebook.cells, 1) if kind in (None, cell.cell_type)]


def _code(notebook):
    return [(n, cell) for n, cell in _numbered(notebook, "code") if cell.source.strip()]


def _of_file(path, notebook):
    found = []
    if path.stat().st_size > MOST_BYTES:
        found.append(f"the file has {path.stat().st_size / 1e6:.1f} MB, more than {MOST_BYTES / 1e6} MB: draw smaller or fewer pictures")
    if notebook.metadata.get("kernelspec") != KERNELSPEC:
        found.append("the kernelspec is not the plain python3: run `make fresh`")
    if "widgets" in notebook.metadata:
        found.append("widget state is stored, which GitHub may refuse to show: run `make fresh`")
    lesson = path.parent.name == "notebooks" and not path.name.startswith("00_")
    if lesson and len(notebook.cells) not in LESSON_CELLS:
        found.append(f"{len(notebook.cells)} cells; a lesson has {LESSON_CELLS.start} to {LESSON_CELLS.stop - 1}")
    kinds = [cell.cell_type for cell in notebook.cells]
    differ = sum(a != b for a, b in zip(kinds, kinds[1:], strict=False)) / max(1, len(kinds) - 1)
    if lesson and differ < ALTERNATION:
        found.append(f"note: text and code alternate at {differ:.2f} of the places; aim at {ALTERNATION} or more")
    return found


def _of_source(path, notebook):
    found = []
    for number, cell in _numbered(notebook):
        if folder := ABSOLUTE.search(cell.source):
            found.append(f"cell {number}: names a folder of one machine, {folder[0]}")
        if cell.cell_type == "markdown":
            found += [f"cell {number}: {problem}" for problem in _of_text(cell.source, path)]
        elif cell.cell_type == "code" and not re.search(r"@triton\.jit|@jit\b", cell.source):
            lines = [line for line in cell.source.splitlines() if line.strip() and not line.strip().startswith("#")]
            if len(lines) > MOST_LINES:
                found.append(f"cell {number}: {len(lines)} lines of code; at most {MOST_LINES} in a cell without a kernel")
    code = _code(notebook)
    if not code:
        found.append("no code cell")
    elif not re.search(r"^gpu = kit\.start\(", code[0][1].source, re.MULTILINE):
        found.append(f"cell {code[0][0]}: the first code cell does not hold `gpu = kit.start()`")
    return found


def _of_text(source, path):
    source = re.sub(r"```.*?```", "", source, flags=re.DOTALL)
    if (words := len(source.split())) > MOST_WORDS:
        yield f"{words} words of text; at most {MOST_WORDS}"
    source = re.sub(r"`[^`\n]*`", "", source)  # kernel[grid](x) is no link
    for image in IMAGE.finditer(source):
        if not image["alt"].strip():
            yield "a picture without alt text"
    for tag in TAG.findall(source):
        if not ALT.search(tag):
            yield "an <img> without alt text"
    if "data:image/" in source:
        yield "a picture pasted into the text as base64; draw it in a code cell"
    for link in LINK.finditer(source):
        if not (path.parent / link["target"]).exists():
            yield f"the link to {link['target']} leads nowhere"


def _of_unsolved(notebook):
    found = []
    for number, cell in _numbered(notebook, "code"):
        if cell.outputs or cell.execution_count is not None:
            found.append(f"cell {number}: an exercise holds no outputs: run `make exercises`")
        if re.search(r"(BEGIN|END) SOLUTION", cell.source):
            found.append(f"cell {number}: a solution marker is left: run `make exercises`")
    return found


def _of_solved(notebook):
    """A solution's checks: each shows a verdict, and the verdict is that it passed."""
    checks = [(number, cell) for number, cell in _code(notebook) if re.search(r"\bkit\.check\(", cell.source)]
    if not checks:
        return ["no kit.check in this solution"]
    failing = [number for number, cell in checks if not re.search(r"\d\d\.\d+: passed", str(cell.outputs))]
    return [f"cell {number}: its check does not show that it passed" for number in failing]


def _of_outputs(notebook):
    found, code = [], _code(notebook)
    unrun = [number for number, cell in code if cell.execution_count is None]
    if unrun:
        found.append(f"cells {', '.join(map(str, unrun))} have not been run: run `make fresh`")
    elif [cell.execution_count for _, cell in code] != list(range(1, len(code) + 1)):
        found.append("the cells were not run once from top to bottom: run `make fresh`")
    for number, cell in code:
        found += [f"cell {number}: {problem}" for output in cell.outputs for problem in _of_output(output)]
    return found


def _of_output(output):
    if output.output_type == "error":
        yield f"shows an error, {output.ename}: show a failure as a result, and assert it"
        return
    if output.output_type == "stream" and output.name == "stderr":
        yield f'prints to stderr: "{output.text.strip().splitlines()[0][:60] if output.text.strip() else ""}"'
    data = output.get("data", {})
    if WIDGET_VIEW in data:
        yield "a widget view is stored, which shows nothing without its kernel: run `make fresh`"
    texts = [output.get("text", "")] + [value for mime, value in data.items() if isinstance(value, str) and not mime.startswith("image/")]
    for text in texts:
        if folder := ABSOLUTE.search(text):
            yield f"its output names a folder of one machine, {folder[0]}"
        if address := ADDRESS.search(text):
            yield f"its output holds a memory address ({address[0]}): end the cell in something worth showing"
    if any(not ALT.search(tag) for tag in TAG.findall(data.get("text/html", ""))):
        yield "its output has an <img> without alt text"
    if "image/png" in data and not _picture_has_words(output):
        yield "a picture without alt text: show it with the kit's drawing, or with Image(..., alt=...)"


def _picture_has_words(output):
    """Whether a PNG comes with words: `alt` in its metadata, or HTML that shows it as an <img> with one."""
    alt = output.get("metadata", {}).get("image/png", {}).get("alt", "")
    return bool(alt.strip()) or any(ALT.search(tag) for tag in TAG.findall(output.data.get("text/html", "")))


def main(arguments):
    paths = [Path(a) for a in arguments] or [path for folder in FOLDERS for path in sorted((ROOT / folder).glob("*.ipynb"))]
    if not paths:
        sys.exit("lint_notebooks: no notebooks found, so no rule was checked")
    failed = 0
    for path in paths:
        for problem in lint(path):
            failed += not problem.startswith("note:")
            print(f"{path.parent.name}/{path.name}: {problem}")
    print(f"lint_notebooks: {len(paths)} notebooks, {failed} problems")
    sys.exit(1 if failed else 0)


if __name__ == "__main__":
    main(sys.argv[1:])
