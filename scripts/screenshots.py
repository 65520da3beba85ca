"""Photograph a notebook as JupyterLab shows it: `python scripts/screenshots.py NOTEBOOK OUTDIR [--run]`.

Writes OUTDIR/STEM-01.png, -02.png, ... from top to bottom. Without --run the stored outputs are shown, as a reader sees them who only
opens the file; with --run every cell runs first, so widgets are live. The notebook on disk is not changed. Exit status 1 when a cell
failed (the pictures are taken all the same).
"""

import argparse
import sys
from pathlib import Path

from lab_browser import LabError, notebook_page


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("notebook", type=Path)
    parser.add_argument("outdir", type=Path)
    parser.add_argument("--run", action="store_true", help="run every cell first")
    parser.add_argument("--width", type=int, default=1100, help="pixels (1100)")
    parser.add_argument("--height", type=int, default=1400, help="pixels of one picture (1400)")
    parser.add_argument("--lab", action="store_true", help="with JupyterLab's file browser, tabs and menus, one picture")
    options = parser.parse_args()
    failed = None
    try:
        with notebook_page(options.notebook, single=not options.lab, width=options.width, height=options.height) as notebook:
            if options.run:
                try:
                    notebook.run_all()
                except LabError as error:
                    failed = error
            notebook.settle()
            if options.lab:
                options.outdir.mkdir(parents=True, exist_ok=True)
                paths = [options.outdir / f"{options.notebook.stem}-lab.png"]
                notebook.page.screenshot(path=paths[0])
            else:
                paths = notebook.save_screenshots(options.outdir, options.notebook.stem)
    except LabError as error:
        sys.exit(f"screenshots: {error}")
    print(*paths, sep="\n")
    if failed:
        sys.exit(f"screenshots: {failed}")


if __name__ == "__main__":
    main()
