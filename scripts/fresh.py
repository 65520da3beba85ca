"""Run notebooks/ and solutions/ from the top and store their outputs in one form: `python scripts/fresh.py [--check] [NOTEBOOK ...]`.

Every kernel simulates, also on a machine with a GPU: the stored outputs are what a reader without one sees. A notebook that fails keeps
its file. A second run changes nothing. `--check` writes nothing and fails when a file would change, pictures left out of account.
"""

import argparse
import sys
from pathlib import Path

from notebook_files import normalise, read, text, without_pictures
from project import ROOT, written_notebooks
from run_notebook import NotebookFailed, run_notebook


def refresh(path, check=False):
    """Run the notebook at `path` and store it, unless `check`; return "fresh", or what changed: "rewritten" or "would change"."""
    stored = read(path)
    notebook = read(path)
    for cell in notebook.cells:  # so that an unfinished run can't pass for a finished one
        if cell.cell_type == "code":
            cell.outputs, cell.execution_count = [], None
    normalise(run_notebook(notebook, path))
    if check:
        return "fresh" if without_pictures(notebook) == without_pictures(stored) else "would change"
    if text(notebook) == path.read_text(encoding="utf-8"):
        return "fresh"
    path.write_text(text(notebook), encoding="utf-8")
    return "rewritten"


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("notebooks", nargs="*", type=Path, help="these only (all of notebooks/ and solutions/)")
    parser.add_argument("--check", action="store_true", help="write nothing; fail when a file would change")
    options = parser.parse_args()
    paths = [path.resolve() for path in options.notebooks] or written_notebooks()
    if not paths:
        sys.exit("fresh: no notebooks in notebooks/ or solutions/")
    failed = 0
    for path in paths:
        try:
            result = refresh(path, options.check)
        except (NotebookFailed, ValueError, OSError) as error:
            result = f"FAILED: {error}"
        failed += result not in ("fresh", "rewritten")
        name = path.relative_to(ROOT) if path.is_relative_to(ROOT) else path
        print(f"{name}: {result}", flush=True)
    sys.exit(1 if failed else 0)


if __name__ == "__main__":
    main()
