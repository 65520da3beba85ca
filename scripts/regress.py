"""Every claim on several Triton versions: `python scripts/regress.py [VERSION ...]`; `make regress TRITON="3.6.0 3.9.0"` calls it.

For each version: the acts of regress_probes.py, which say what module of the kit it breaks, then all notebooks under nbval, simulated, and
live too where a GPU is. What became of each claim is read off the ledger (regress_claims.py). Written to .kit/regress/: last.md, last.json
and last.xml (JUnit); printed: the summary, what is broken, and what changed from the last run and from docs/regression.json, the result
that is committed. `--keep` puts this result there. Ends with status 1 when a claim, a module or a notebook is broken, or a version could
not be run. Without versions: those of kit/versions.py. docs/regression.md says how to read the table.
"""

from __future__ import annotations

import argparse
import json
import os
import platform
import re
import subprocess
import sys
import tempfile
import time
from pathlib import Path

from project import FOLDERS, ROOT
from regress_claims import expected, outcome
from regress_overlays import CACHE, Stop, path_with, prepare, tested, versions_of
from regress_table import bad, gather, junit, markdown, to_json
from steps import NBVAL, environment, require

KEPT = ROOT / "docs" / "regression.json"
VERDICT = re.compile(r"now: .*\b\d\d\.\d+: (?:wrong|not done yet)\b", re.S)  # kit.verdict's words
PROBE_SECONDS = 600  # for all acts of one version; each takes seconds


def column_of(version, machine, note=""):
    """What is told of one version on one machine, before anything ran."""
    key = f"{version} {machine}"
    return {"key": key, "triton": version, "machine": machine, "note": note, "adapters": {}, "cells_failed": [], "cells_changed": []} | {
        "seconds": 0.0,
        "python": platform.python_version(),
    }


# ---- adapters
def probe(env, begin=()):
    """{module: why its act failed, "" when it did not}. An act that ends its process is its failure, and the rest go on in another one."""
    command, found = [sys.executable, "scripts/regress_probes.py", *begin], {}
    try:
        done = subprocess.run(command, cwd=ROOT, env=env, capture_output=True, text=True, timeout=PROBE_SECONDS)
        lines, end = done.stdout.splitlines(), f"its process ended with status {done.returncode}"
    except subprocess.TimeoutExpired as error:
        lines, end = (error.stdout or b"").decode().splitlines(), f"no answer within {PROBE_SECONDS} s"
    running = None
    for told in (json.loads(line) for line in lines if line.startswith("{")):
        running = told.get("begins")
        if not running:
            found[told["module"]] = told["why"]
    if running:
        from regress_probes import PROBES

        found[running] = end
        if left := [name for name in PROBES if name not in found and (not begin or name in begin)]:
            found |= probe(env, left)
    return found or {"regress_probes.py": end + (f": {done.stderr.strip().splitlines()[-1]}" if lines == [] and done.stderr else "")}


# ---- notebooks
def run_notebooks(env, scratch, live, folders):
    """Run the notebooks; return (ledger's entries, {(file, cell): why it failed}, [cells that read differently], note)."""
    ledger, cells = scratch / "claims.jsonl", scratch / "cells.json"
    more = {"KIT_LEDGER": str(ledger), "KIT_CELLS": str(cells), "KIT_REGRESS": "1", "KIT_NOTEBOOK_SECONDS": "100000"}
    how = ["--nbval-lax"] if live else ["-n", "2", "--dist", "loadscope", "--nbval"]
    command = [sys.executable, *NBVAL, "-q", "--tb=no", *how, *map(str, folders)]
    done = subprocess.run(command, cwd=ROOT, env=env | more, capture_output=True, text=True)
    if not cells.exists():
        last = [line for line in (done.stdout + done.stderr).splitlines() if line.strip()][-1:] or ["no output"]
        return [], {}, [], f"the notebooks did not run (pytest ended with status {done.returncode}): {last[0].strip()}"
    told = json.loads(cells.read_text(encoding="utf-8"))
    wrong = [cell for cell in told if cell["outcome"] == "failed"]
    # An exercise's check that no longer passes raises nothing: it shows another verdict.
    broken = [cell for cell in wrong if not cell["differs"] or VERDICT.search(cell["why"])]
    failed = {(cell["file"], cell["cell"]): cell["why"] for cell in broken}
    differ = [cell for cell in wrong if cell not in broken]
    lines = ledger.read_text(encoding="utf-8").splitlines() if ledger.exists() else []
    return [json.loads(line) for line in lines], failed, differ, ""


def measure(version, overlay, live, folders):
    """(column, what became of each claim) of one version; `live` runs on the GPU, and otherwise all is simulated."""
    began = time.monotonic()
    machine = "on the GPU" if live else "simulated"
    column = column_of(version, machine)
    with tempfile.TemporaryDirectory() as name:
        scratch = Path(name)
        # A cache of its own, so that a compilation that no longer works does not pass for one by an older run's result.
        env = environment(
            KIT_LEDGER="", TRITON_CACHE_DIR=str(scratch / "triton"), **({"KIT_REQUIRE": "gpu"} if live else {"KIT_SIMULATE": "1"})
        )
        env["PYTHONPATH"] = path_with(overlay)
        column["adapters"] = probe(env)
        entries, failed, column["cells_changed"], column["note"] = run_notebooks(env, scratch, live, folders)
    if live and entries:
        column["key"] = f"{version} on {entries[0]['machine']}"
    wanted = [claim for path in notebooks(folders) for claim in expected(path)]
    found = outcome(wanted, entries, failed, version)
    claimed = {(claim["file"], claim["cell"]) for claim, _ in found}
    column["cells_failed"] = [
        {"file": file, "cell": cell, "why": why} for (file, cell), why in sorted(failed.items()) if (file, cell) not in claimed
    ]
    column["seconds"] = round(time.monotonic() - began, 1)
    return column, found


def notebooks(folders):
    """The notebook files in `folders`, each of which may be one itself."""
    paths = [ROOT / folder for folder in folders]
    return [file for path in paths for file in ([path] if path.suffix == ".ipynb" else sorted(path.glob("*.ipynb")))]


def has_gpu():
    """Whether this machine's GPU can be used, found out in a process of its own: a CUDA context here would hold memory."""
    code = "from kit import machine; raise SystemExit(0 if machine.start().live else 1)"
    env = environment(PYTHONPATH=path_with(None))
    return subprocess.run([sys.executable, "-c", code], env=env, cwd=ROOT, capture_output=True).returncode == 0


# ---- the whole
def against():
    """[(name, result)] to compare with: the last run on this machine, and the one that is committed."""
    paths = [("the last run here", CACHE / "last.json"), ("docs/regression.json", KEPT)]
    return [(name, json.loads(path.read_text(encoding="utf-8"))) for name, path in paths if path.exists()]


def write(result, text, keep):
    """Put the three files in .kit/regress/, and with `keep` two of them in docs/."""
    CACHE.mkdir(parents=True, exist_ok=True)
    (CACHE / "last.md").write_text(text, encoding="utf-8")
    (CACHE / "last.json").write_text(to_json(result), encoding="utf-8")
    (CACHE / "last.xml").write_text(junit(result), encoding="utf-8")
    if keep:
        KEPT.write_text(to_json(result), encoding="utf-8")


def regress(versions, overlays, folders, live):
    """[(column, outcome)] of all versions; one that cannot be had is a column with a note."""
    columns = []
    for version in versions:
        try:
            overlay = prepare(version, overlays.get(version))
        except Stop as stop:
            columns.append((column_of(version, "simulated", note=str(stop)), []))
            continue
        for on_gpu in (False, True)[: 2 if live else 1]:
            print(f"Triton {version}: adapters and notebooks, {'on the GPU' if on_gpu else 'simulated'}", flush=True)
            columns.append(measure(version, overlay, on_gpu, folders))
    return columns


def main(arguments=None):
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("versions", nargs="*", metavar="VERSION", help="Triton versions (default: those of kit/versions.py)")
    parser.add_argument("--overlay", action="append", default=[], metavar="VERSION=FOLDER", help="a folder that holds that Triton already")
    parser.add_argument("--only", nargs="+", default=list(FOLDERS), metavar="NOTEBOOK", help="these notebooks or folders only")
    parser.add_argument("--keep", action="store_true", help="commit to this result: write docs/regression.json")
    given = parser.parse_args(arguments)
    require(["torch", "triton", "pytest", "xdist", "nbval", "pip"], "regress")
    overlays = dict(pair.split("=", 1) for pair in given.overlay)
    versions = versions_of(given.versions) or tested()
    if not notebooks(given.only):
        raise Stop(f"there is no notebook in {', '.join(given.only)}.")
    older = against()
    files = [f"{path.parent.name}/{path.name}" for path in notebooks(given.only)]
    result = gather(regress(versions, overlays, given.only, has_gpu()), files)
    text = markdown(result, older)
    write(result, text, given.keep)
    print("\n" + text.split("\n## Every claim")[0])
    print(f"Every claim: {os.path.relpath(CACHE / 'last.md')}; the same as last.json and last.xml.")
    return 1 if bad(result) else 0


if __name__ == "__main__":
    try:
        sys.exit(main())
    except Stop as stop:
        sys.exit(f"regress: {stop}")
    except OSError as error:
        sys.exit(f"regress: {error}.")
    except KeyboardInterrupt:
        sys.exit("regress: stopped; run it again to go on.")
