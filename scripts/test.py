"""Everything that CI runs: `python scripts/test.py [--only NAME ...]`, where NAME is the first word of a step. `make test` calls it.

A step that fails does not keep the others from running; the exit status is 1 when one did. The notebooks run simulated, also where a GPU
is: that is what their stored outputs show. `make record` runs them live.
"""

import argparse
import sys

from project import FOLDERS, ROOT
from steps import CLAIMS, LEDGER, NBVAL, environment, finish, new_ledger, require, step

PYTEST = ["-m", "pytest", "-p", "no:cacheprovider", "-ra"]
PARALLEL = ["-n", "2", "--dist", "loadscope"]  # a notebook's cells stay together
STEPS = {
    "lint: ruff": ["-m", "ruff", "check", "."],
    "lint: layout": ["-m", "ruff", "format", "--check", "."],
    "lint: notebooks": ["scripts/lint_notebooks.py"],
    "lint: workshop": ["scripts/workshop.py", "--check"],
    "lint: slides": ["scripts/slides.py", "--check"],
    "exercises: in step with their solutions": ["scripts/exercises.py", "--check"],
    "kit: pytest": [*PYTEST, *PARALLEL, "-m", "not browser and not alone", "kit", "scripts"],
    "learners: many on one machine": [*PYTEST, "-m", "alone", "kit/tests/test_many_learners.py"],
    "notebooks: nbval": [*NBVAL, *PARALLEL, "--nbval", *FOLDERS],
    "browser: JupyterLab in Chromium": [*PYTEST, "-m", "browser", "kit", "scripts"],
    "claims: from the notebooks": [*CLAIMS, LEDGER],
}


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    words = sorted({name.split(":")[0] for name in STEPS})
    parser.add_argument("--only", nargs="+", choices=words, help="these steps only")
    options = parser.parse_args()
    require(["ruff", "pytest", "xdist", "nbval", "nbclient", "playwright", "yaml"], "test")
    wanted = {name: arguments for name, arguments in STEPS.items() if not options.only or name.split(":")[0] in options.only}
    if empty := [folder for folder in (*FOLDERS, "exercises") if not list((ROOT / folder).glob("*.ipynb"))]:
        message = f"test: no notebooks in {', '.join(empty)}, so nothing there would be tested"
        if not options.only:
            sys.exit(message)
        print(message, file=sys.stderr)
    if "notebooks: nbval" in wanted:
        new_ledger()
    # A sandbox's server takes as long to start as torch to import, and half of the notebooks need none.
    env = environment(KIT_SIMULATE="1", KIT_WARM="0")
    results = []
    for name, arguments in wanted.items():
        # Claims are counted where the notebooks run under nbval, and nowhere else.
        ledger = {} if name.startswith("notebooks") else {"KIT_LEDGER": ""}
        results.append(step(name, arguments, env | ledger))
    finish(results)


if __name__ == "__main__":
    main()
