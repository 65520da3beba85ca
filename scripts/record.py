"""On a GPU: run all notebooks live and write kit/recordings/. `make record` calls it, also with PYTHON=python3 where there is no Jupyter.

Needs torch, triton, pytest, nbval and ipykernel; not JupyterLab, ruff or a browser. Outputs are compared where cells are tagged
nbval-check-output. Fails when no GPU is there, when a notebook fails, when nothing was measured, and when a recording was not written.
"""

import sys
import time

from project import FOLDERS, ROOT, written_notebooks
from steps import CLAIMS, LEDGER, NBVAL, environment, finish, new_ledger, require, step

RECORDINGS = ROOT / "kit" / "recordings"


def check_recordings(began):
    """Whether this run wrote every recording that is in the folder; says which are older, because no notebook makes them any more."""
    paths = sorted(RECORDINGS.glob("*.json"))
    old = [path.name for path in paths if path.stat().st_mtime < began - 1]
    print(f"\n== {len(paths) - len(old)} recordings written to {RECORDINGS.relative_to(ROOT)}, {len(old)} older ones")
    for name in old:
        print(f"not written by any notebook: {name}. Remove it, or find out why its experiment did not run.")
    return not old and bool(paths)


def check_measured():
    """Whether the ledger holds measured claims: that the run was live, seen from what the notebooks claimed."""
    from kit.ledger import read_ledger

    measured = [entry for entry in read_ledger(LEDGER) if entry["evidence"] == "measured"] if LEDGER.exists() else []
    print(f"\n== {len(measured)} claims were measured on {', '.join(sorted({entry['machine'] for entry in measured})) or 'no machine'}")
    return bool(measured)


def main():
    require(["torch", "triton", "pytest", "nbval", "ipykernel"], "record")
    if not written_notebooks():
        sys.exit(f"record: no notebooks in {' or '.join(FOLDERS)}, so there is nothing to record")
    sys.path.insert(0, str(ROOT))
    RECORDINGS.mkdir(exist_ok=True)
    new_ledger()
    began = time.time()
    env = environment(KIT_REQUIRE="gpu", KIT_RECORD="1")
    # One after the other: two notebooks that measure at once would time each other.
    results = [step("notebooks: nbval, live", [*NBVAL, "--nbval-lax", "-ra", *FOLDERS], env)]
    results.append(("live: claims measured", check_measured(), 0.0))
    results.append(("recordings: written", check_recordings(began), 0.0))
    if LEDGER.exists():
        results.append(step("claims", [*CLAIMS, LEDGER], env | {"KIT_LEDGER": ""}))
    finish(results)


if __name__ == "__main__":
    main()
