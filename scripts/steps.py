"""What `make test` and `make record` share: one step after another, each timed, and the claims at the end."""

from __future__ import annotations

import os
import subprocess
import sys
import time
from importlib.util import find_spec

from project import ROOT

LEDGER = ROOT / ".ledger" / "claims.jsonl"
CLAIMS = ["-W", "ignore::RuntimeWarning:runpy", "-m", "kit.evidence"]  # the kit imports that module too, which runpy warns of
_NOT_INHERITED = ("KIT_RECORD", "KIT_REQUIRE", "KIT_SIMULATE", "PYTHONDONTWRITEBYTECODE")
NBVAL = ["-m", "pytest", "-p", "no:cacheprovider", "--nbval-current-env", "--nbval-sanitize-with", "scripts/nbval_sanitize.cfg"]


def require(modules, verb):
    """Leave with a sentence when this Python lacks one of `modules`."""
    if missing := [module for module in modules if find_spec(module) is None]:
        sys.exit(
            f"{verb}: {sys.executable} has no {', '.join(missing)}: pip install them there, or leave PYTHON out to let make set up .venv."
        )


def environment(**more):
    """The environment of a step: the kit found from any folder, one thread in each of several processes, a new ledger to write to.

    Python may write its bytecode: hundreds of processes import the kit, and pytest compiles each test module.
    """
    path = os.pathsep.join(filter(None, [str(ROOT), os.environ.get("PYTHONPATH")]))
    inherited = {name: value for name, value in os.environ.items() if name not in _NOT_INHERITED}
    return inherited | {"PYTHONPATH": path, "KIT_LEDGER": str(LEDGER), "OMP_NUM_THREADS": "1"} | more


def new_ledger():
    """An empty ledger for this run's claims."""
    LEDGER.parent.mkdir(exist_ok=True)
    LEDGER.unlink(missing_ok=True)


def step(name, arguments, env):
    """Run this Python with `arguments` in the project's folder; return (name, whether it succeeded, seconds)."""
    print(f"\n== {name}", flush=True)
    began = time.monotonic()
    done = subprocess.run([sys.executable, *map(str, arguments)], cwd=ROOT, env=env)
    return name, done.returncode == 0, time.monotonic() - began


def finish(results):
    """Print how long each step took and what failed; leave with status 1 when one did."""
    print("\n== Summary")
    for name, good, seconds in results:
        print(f"{'ok    ' if good else 'FAILED'} {seconds:6.1f} s  {name}")
    failed = [name for name, good, _ in results if not good]
    print(f"{len(results) - len(failed)} passed, {len(failed)} failed")
    sys.exit(1 if failed else 0)
