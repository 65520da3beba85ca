"""Many people on one machine at once: does what one of them does harm another?

    python benchmarks/many_learners.py [N] [--json OUT]

Starts N (20) Python processes, each as a learner's kernel has it: the kit, a tensor of its own, a sandbox server. When all are ready, all
run a sandboxed cell at the same moment, and then a second one. One learner's first cell never ends, one takes too much memory, one dies by
a segmentation fault, one ends its whole process group; the others launch a kernel and compare what it wrote. Sandbox runs take turns, one
at a time: on the GPU where there is one, else by KIT_QUEUE. Exit status 1 when a cell did not end as it should, when two ran at once, when
a tensor changed, or when it took longer than the cells' time limits allow.
"""

from __future__ import annotations

import argparse
import json
import os
import statistics
import subprocess
import sys
import tempfile
import time
from pathlib import Path

import psutil

ROOT = Path(__file__).resolve().parent.parent
sys.path.insert(0, str(ROOT / "benchmarks"))

from notebook_memory import held  # noqa: E402

GOOD = """
import torch, triton
import triton.language as tl

@triton.jit
def add_kernel(x_ptr, y_ptr, n, number, BLOCK: tl.constexpr):
    offs = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    mask = offs < n
    tl.store(y_ptr + offs, tl.load(x_ptr + offs, mask=mask, other=0) + number, mask=mask)

from kit import machine
x = torch.arange(10_000, device=machine.current().device)
y = torch.empty_like(x)
add_kernel[(triton.cdiv(10_000, 128),)](x, y, 10_000, NUMBER, BLOCK=128)
assert torch.equal(y, x + NUMBER)
int(y[-1]) - 9_999
"""
# What a learner's first cell is, and the kind of Outcome that it has to have.
HANG_SECONDS, MEMORY = 5.0, 300_000_000
CELLS = {
    "good": (GOOD, "ok"),
    "hang": ("while True:\n    pass", "hang"),
    "memory": ("held = []\nwhile True:\n    held.append(b'x' * 20_000_000)", "out of memory"),
    "crash": ("import ctypes\nctypes.string_at(0)", "crashed"),
    "killer": ("import os, signal\nos.killpg(0, signal.SIGKILL)", "crashed"),
}
BAD = ("hang", "memory", "crash", "killer")
GOOD_SECONDS = 120.0  # the limit of a good cell; on a busy machine it takes a second
START_SECONDS = 600  # for all to be ready: each loads torch and Triton twice, kernel and sandbox server


# ---- one learner, a process of its own
def learn(number, kind, folder):
    """Be learner `number`: get ready, wait for all, run two cells, write down how they ended."""
    import torch

    from kit import machine, sandbox_queue
    from kit.sandbox import run_source

    here = machine.start()
    sandbox_queue.cores = lambda: 1  # as on a GPU: one turn
    own = torch.full((1000,), number, device=here.device)
    assert run_source("1 + 1", timeout=GOOD_SECONDS).value == 2  # the server is up
    (folder / f"{number}.ready").touch()
    while not (folder / "go").exists():
        time.sleep(0.05)
    cells = []
    for what in (kind, "good"):
        asked = time.time()
        text = CELLS[what][0].replace("NUMBER", str(number + 1))
        limit = HANG_SECONDS if what == "hang" else GOOD_SECONDS
        outcome = run_source(text, timeout=limit, memory=MEMORY if what == "memory" else None)
        ended = time.time()
        wanted = CELLS[what][1]
        right = outcome.kind == wanted and (wanted != "ok" or outcome.value == number + 1)
        cells.append({"cell": what, "kind": outcome.kind, "right": right, "asked": asked, "began": ended - outcome.seconds, "ended": ended})
    unharmed = bool((own == number).all())
    told = {"number": number, "cells": cells, "unharmed": unharmed, "machine": repr(here)}
    (folder / f"{number}.part").write_text(json.dumps(told))
    (folder / f"{number}.part").rename(folder / f"{number}.json")


# ---- all of them
def run(n, timeout=START_SECONDS):
    """Run `n` learners; return (reports, seconds until all were ready, seconds from there to the end). RuntimeError when one fails."""
    with tempfile.TemporaryDirectory(prefix="kit-learners-") as name:
        folder = Path(name)
        environment = dict(os.environ, KIT_QUEUE=name, OMP_NUM_THREADS="1", KIT_LEDGER="")
        environment["PYTHONPATH"] = os.pathsep.join(filter(None, [str(ROOT), os.environ.get("PYTHONPATH")]))
        began, learners = time.monotonic(), []
        try:
            for number in range(n):
                command = [sys.executable, __file__, "--learner", str(number), "--kind", kind_of(number, n), "--folder", name]
                learners.append(subprocess.Popen(command, env=environment, cwd="/"))
            _await(lambda: len(list(folder.glob("*.ready"))) == n, learners, timeout, "get ready")
            ready, memory = time.monotonic() - began, held(psutil.Process())
            (folder / "go").touch()
            _await(lambda: len(list(folder.glob("*.json"))) == n, learners, timeout, "end")
            took = time.monotonic() - began - ready
            return [json.loads(path.read_text()) | {"memory": memory} for path in sorted(folder.glob("*.json"))], ready, took
        finally:
            for learner in learners:
                learner.kill()
                learner.wait()


def kind_of(number, n):
    """Spread the misbehaving learners among the others; the first and the last behave."""
    places = {1 + i * max(1, (n - 2) // len(BAD)): kind for i, kind in enumerate(BAD)}
    return places.get(number, "good")


def _await(done, learners, seconds, what):
    deadline = time.monotonic() + seconds
    while not done():
        if failed := [i for i, learner in enumerate(learners) if learner.poll() not in (None, 0)]:
            raise RuntimeError(f"learner {failed[0]} ended with status {learners[failed[0]].returncode} and did not {what}")
        if time.monotonic() > deadline:
            raise RuntimeError(f"not all learners did {what} within {seconds} s")
        time.sleep(0.1)


def problems(reports, took):
    """What is not as it should be, as sentences."""
    cells = [cell | {"number": report["number"]} for report in reports for cell in report["cells"]]
    found = [f"learner {cell['number']}'s cell {cell['cell']} ended as {cell['kind']}" for cell in cells if not cell["right"]]
    found += [f"learner {report['number']}'s own tensor changed" for report in reports if not report["unharmed"]]
    in_turn = sorted(cells, key=lambda cell: cell["began"])
    for first, second in zip(in_turn, in_turn[1:], strict=False):
        if second["began"] < first["ended"] - 0.1:  # `ended` is read after the turn was given back
            found.append(f"the cells of learners {first['number']} and {second['number']} ran at the same time")
    if took > (allowed := 15 + HANG_SECONDS + 4 * len(cells)):
        found.append(f"all cells took {took:.0f} s, more than {allowed:.0f} s")
    return found


def figures(reports, ready, took):
    """The figures to print and keep."""
    cells = [cell for report in reports for cell in report["cells"]]
    waits = [cell["began"] - cell["asked"] for cell in cells]
    runs = [cell["ended"] - cell["began"] for cell in cells if cell["cell"] == "good"]
    return {
        "learners": len(reports),
        "machine": reports[0]["machine"],
        "gigabytes when all were ready": round(reports[0]["memory"] / 1e9, 1),
        "cells": len(cells),
        "as they should": sum(cell["right"] for cell in cells),
        "seconds until all were ready": round(ready, 1),
        "seconds for all cells": round(took, 1),
        "median wait": round(statistics.median(waits), 2),
        "longest wait": round(max(waits), 2),
        "median run of a good cell": round(statistics.median(runs), 2),
    }


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("learners", nargs="?", type=int, default=20)
    parser.add_argument("--json", type=Path, help="where to write the figures")
    for name, kind in (("--learner", int), ("--kind", str), ("--folder", Path)):  # of a learner, which this starts
        parser.add_argument(name, type=kind, help=argparse.SUPPRESS)
    given = parser.parse_args()
    if given.learner is not None:
        learn(given.learner, given.kind, given.folder)
        return 0
    reports, ready, took = run(given.learners)
    told = figures(reports, ready, took)
    for name, value in told.items():
        print(f"{name:<30} {value}")
    for kind in BAD:
        print(f"{kind:<30} {', '.join(cell['kind'] for report in reports for cell in report['cells'] if cell['cell'] == kind)}")
    found = problems(reports, took)
    print(*found or ["nobody was harmed"], sep="\n")
    if given.json:
        given.json.write_text(json.dumps(told, indent=1) + "\n")
    return 1 if found else 0


if __name__ == "__main__":
    sys.exit(main())
