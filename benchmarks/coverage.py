"""Coverage of the simulated GPU: kernels of public libraries, run from their packages and compared with torch.

    python benchmarks/coverage.py                    Liger-Kernel and Conch, each in a virtual environment that is made on the first run
    python benchmarks/coverage.py --only liger/rms --json FILE

Each operation runs (Liger's forward and backward) on CPU tensors under the simulated GPU, with the same inputs as a torch reference in
float64, in a child process with a time limit. The table says: equal within its bound, differs, refused (an operation that the
simulated GPU does not know), or failed. Exit status: 0 when nothing differs and nothing failed.
"""

from __future__ import annotations

import argparse
import json
import os
import signal
import subprocess
import sys
import time
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
HOME = Path.home() / ".cache" / "kit_coverage"
# Their kernels need torch and triton alone, which come from this environment.
PACKAGES = {"liger": ["liger-kernel==0.8.5", "packaging"], "conch": ["conch-triton-kernels==1.3", "numpy"]}
LIMIT = 120  # seconds for one operation, forward and backward


def cases(library):
    """The cases of a library, {name: Case}, from the module beside this one."""
    sys.path.insert(0, str(Path(__file__).parent))
    if library == "liger":
        from coverage_liger import CASES
    else:
        from coverage_conch import CASES
    return CASES


# ---- in the child
def run_case(case):
    """{"verdict", "difference", "detail", "seconds"} of one case."""
    import torch

    from kit.simulator.reader import Unsupported

    start = time.perf_counter()
    row = {"verdict": "equal", "difference": None, "detail": ""}
    try:
        torch.manual_seed(0)
        row["difference"], row["detail"] = case.compare()
        if not row["difference"] <= case.bound:
            row["verdict"] = "differs"
    except Unsupported as error:
        row |= {"verdict": "refused", "detail": " ".join(str(error).split())}
    except TimeoutError as error:
        row |= {"verdict": "failed", "detail": str(error)}
    except Exception as error:  # whatever a library raises is a row of the table
        row |= {"verdict": "failed", "detail": f"{type(error).__name__}: {' '.join(str(error).split())[:300]}"}
    return row | {"seconds": round(time.perf_counter() - start, 1)}


def child(library, only, skip):
    """Run the cases one after the other, a JSON line before and after each."""
    sys.path.insert(0, str(ROOT))
    import warnings

    from kit import machine

    warnings.simplefilter("ignore")
    machine.start()

    def too_long(*_):
        raise TimeoutError(f"more than {LIMIT} s")

    signal.signal(signal.SIGALRM, too_long)
    for name, case in cases(library).items():
        if not f"{library}/{name}".startswith(only) or name in skip:
            continue
        print(json.dumps({"begins": name}), flush=True)
        signal.alarm(LIMIT)
        row = run_case(case)
        signal.alarm(0)
        print(json.dumps({"case": name, **row}), flush=True)


# ---- in the parent
def environment(library):
    """The python of a virtual environment with the library in it, and the variables under which it finds torch and triton here."""
    python = HOME / library / "bin" / "python"
    if not python.exists():
        subprocess.run([sys.executable, "-m", "venv", str(HOME / library)], check=True)
        command = [str(python), "-m", "pip", "install", "--quiet", "--disable-pip-version-check", "--no-deps", *PACKAGES[library]]
        subprocess.run(command, check=True)
    import torch

    paths = []
    if os.environ.get("PYTHONPATH"):  # another Triton, put in front
        paths.append(os.environ["PYTHONPATH"])
    paths.append(str(Path(torch.__file__).parent.parent))
    # Liger's own switch: one configuration a kernel, where compiling all of them takes minutes.
    variables = os.environ | {"PYTHONPATH": os.pathsep.join(map(str, paths)), "KIT_SIMULATE": "1", "LIGER_FUSED_MOE_AUTOTUNE": "0"}
    return python, variables


def run_library(library, only):
    """The rows of one library. A child that dies takes one case with it; the next child goes on behind it."""
    python, variables = environment(library)
    rows, skip = [], []
    while True:
        command = [str(python), __file__, "--child", library, "--only", only, "--skip", ",".join(skip)]
        process = subprocess.Popen(command, env=variables, cwd=ROOT, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
        running = None
        for line in process.stdout:
            if not line.startswith("{"):
                continue
            message = json.loads(line)
            if running := message.get("begins"):
                continue
            rows.append({"library": library, **message})
            skip.append(message["case"])
            print(as_line(rows[-1]), flush=True)
        errors = process.stderr.read()
        if process.wait() == 0:
            return rows
        if running is None:
            raise SystemExit(f"coverage: the child for {library} did not start: {errors[-800:]}")
        detail = f"the process ended with status {process.returncode}"
        rows.append({"library": library, "case": running, "verdict": "failed", "difference": None, "detail": detail, "seconds": 0.0})
        skip.append(running)
        print(as_line(rows[-1]), flush=True)


def as_line(row):
    difference = "" if row["difference"] is None else f"{row['difference']:.1e}"
    return f"{row['library'] + '/' + row['case']:<44}{row['verdict']:<9}{difference:>9}{row['seconds']:>7.1f} s  {row['detail'][:150]}"


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--only", default="", help="only cases whose library/name begins so")
    parser.add_argument("--json", help="where to write the rows")
    parser.add_argument("--child", help=argparse.SUPPRESS)
    parser.add_argument("--skip", default="", help=argparse.SUPPRESS)
    given = parser.parse_args()
    if given.child:
        child(given.child, given.only, set(given.skip.split(",")))
        return 0
    rows = []
    for library in PACKAGES:
        if library.startswith(given.only.split("/")[0]):
            rows += run_library(library, given.only)
    for library in dict.fromkeys(row["library"] for row in rows):
        mine = [row for row in rows if row["library"] == library]
        counts = {verdict: sum(row["verdict"] == verdict for row in mine) for verdict in ("equal", "differs", "refused", "failed")}
        print(f"{library}: {len(mine)} operations; " + ", ".join(f"{n} {verdict}" for verdict, n in counts.items()))
    if given.json:
        Path(given.json).write_text(json.dumps(rows, indent=1) + "\n")
    return 0 if rows and all(row["verdict"] in ("equal", "refused") for row in rows) else 1


if __name__ == "__main__":
    sys.exit(main())
