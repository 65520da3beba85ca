"""Make exercises/NN_name.ipynb from solutions/NN_name.ipynb: `python scripts/exercises.py [--check]`.

In a solution, the author marks what the reader has to write, and says on the first marker what stands there instead:

    # BEGIN SOLUTION tl.static_assert(False, "Exercise 6.1: about 2 lines")
    ...
    # END SOLUTION

Cells tagged `solution` are left out; outputs and counts are dropped. `--check` writes nothing and fails when exercises/ is not what would
be made, when an exercise has no solution, and when there are no pairs at all.
"""

import argparse
import re
import sys
from pathlib import Path

import nbformat
from notebook_files import normalise, read, text
from project import ROOT

MARKER = re.compile(r"^(?P<indent>[ \t]*)#\s*(?P<which>BEGIN|END)\s+SOLUTION\b[ \t]*(?P<stub>.*)$", re.IGNORECASE)
NUMBERED = re.compile(r"Exercise (?P<lesson>\d+)\.\d+: about \d+ lines?\b")


class Markers(ValueError):
    """Markers that do not fit together; the message names the cell and what is wrong."""


def unsolved(source, where, lesson):
    """`source` with each marked block replaced by its stub. `where` names the cell in errors, `lesson` is the number that stubs must bear.

    Raises Markers when a block is not closed, not opened, nested, or when its stub does not say `Exercise N.M: about K lines`.
    """
    lines, begun = [], None
    for line in source.split("\n"):
        marker = MARKER.match(line)
        if marker is None:
            if begun is None:
                lines.append(line)
        elif marker["which"].upper() == "BEGIN":
            if begun is not None:
                raise Markers(f"{where}: BEGIN SOLUTION inside a solution that is not ended: close the first with # END SOLUTION")
            begun = marker
            lines += [f"{marker['indent']}# YOUR CODE HERE", marker["indent"] + _checked_stub(marker["stub"], where, lesson)]
        else:
            if begun is None:
                raise Markers(f"{where}: END SOLUTION without a BEGIN SOLUTION above it")
            if marker["stub"]:
                raise Markers(f"{where}: END SOLUTION takes nothing behind it; the stub stands behind BEGIN SOLUTION")
            begun = None
    if begun is not None:
        raise Markers(f"{where}: BEGIN SOLUTION is never ended: close it with # END SOLUTION")
    return "\n".join(lines)


def _checked_stub(stub, where, lesson):
    numbered = NUMBERED.search(stub)
    if not numbered:
        raise Markers(f'{where}: the stub behind BEGIN SOLUTION must say "Exercise {lesson}.1: about 2 lines" or the like; it is "{stub}"')
    if int(numbered["lesson"]) != lesson:
        raise Markers(f"{where}: the stub says {numbered[0].split(':')[0]}, and this is lesson {lesson}")
    return stub


def exercise(solution, name):
    """The exercise notebook made from the `solution` notebook of the file `name`. Raises Markers."""
    number = re.match(r"\d+", name)
    if not number:
        raise Markers(f"{name}: a solution's name begins with its lesson's number, as in 06_grid_limits.ipynb")
    cells, blocks = [], 0
    for position, cell in enumerate(solution.cells, 1):
        if "solution" in cell.metadata.get("tags", []):
            continue
        cell = nbformat.from_dict(cell)
        if cell.cell_type == "code":
            made = unsolved(cell.source, f"{name}, cell {position} (id {cell.id})", int(number[0]))
            blocks += made != cell.source
            cell.source, cell.outputs, cell.execution_count = made, [], None
        cells.append(cell)
    if not blocks:
        raise Markers(f"{name}: nothing is marked with # BEGIN SOLUTION, so there is nothing to solve")
    made = nbformat.v4.new_notebook(cells=cells, metadata={"kit": {"generated_from": f"solutions/{name}"}})
    return normalise(made)


def generate(root=ROOT, check=False):
    """Write every exercise, or with `check` only compare; return the list of problems, each a sentence."""
    solutions = sorted((root / "solutions").glob("*.ipynb"))
    if not solutions:
        return ["no solutions found in solutions/, so no exercise was made or compared"]
    problems = []
    for path in solutions:
        target = root / "exercises" / path.name
        try:
            wanted = text(exercise(read(path), path.name))
        except ValueError as error:
            problems.append(str(error))
            continue
        if not check:
            target.parent.mkdir(exist_ok=True)
            target.write_text(wanted, encoding="utf-8")
        elif not target.exists() or target.read_text(encoding="utf-8") != wanted:
            problems.append(f"exercises/{path.name} is not what solutions/{path.name} makes: run `make exercises`")
    names = {path.name for path in solutions}
    orphans = [path for path in sorted((root / "exercises").glob("*.ipynb")) if path.name not in names]
    return problems + [f"exercises/{path.name} has no solution of that name: write solutions/{path.name} or remove it" for path in orphans]


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--check", action="store_true", help="write nothing; fail when exercises/ is out of date")
    parser.add_argument("--root", type=Path, default=ROOT, help=argparse.SUPPRESS)
    options = parser.parse_args()
    if problems := generate(options.root, options.check):
        sys.exit("\n".join(f"exercises: {problem}" for problem in problems))
    print(f"exercises: {len(list((options.root / 'solutions').glob('*.ipynb')))} in step with their solutions")


if __name__ == "__main__":
    main()
