"""How much memory each notebook takes without a GPU: what Binder's 2 GB, or a hub's limit, has to hold.

    python benchmarks/notebook_memory.py [--json OUT] [NOTEBOOK ...]

Runs each notebook from the top and looks ten times a second at all processes it started: the kernel, its sandbox server, the sandbox's
children. Memory that several of them share counts once (PSS, of /proc/PID/smaps_rollup). Prints the peak and the time of each, and what a
JupyterLab server takes besides.
"""

from __future__ import annotations

import argparse
import contextlib
import json
import os
import sys
import threading
import time
from pathlib import Path

import psutil

ROOT = Path(__file__).resolve().parent.parent
sys.path.insert(0, str(ROOT / "scripts"))

from lab_browser import lab_server  # noqa: E402
from notebook_files import read  # noqa: E402
from project import written_notebooks  # noqa: E402
from run_notebook import NotebookFailed, run_notebook  # noqa: E402

EVERY = 0.1  # seconds between two looks


def held(process):
    """Bytes that the processes below `process` hold, shared pages counted once."""
    total = 0
    for child in process.children(recursive=True):
        with contextlib.suppress(psutil.Error):
            total += child.memory_full_info().pss
    return total


class Peak:
    """The most that the processes below this one held while the `with` block ran: `bytes`."""

    def __enter__(self):
        self.bytes, self._end = 0, threading.Event()
        self._thread = threading.Thread(target=self._watch, daemon=True)
        self._thread.start()
        return self

    def _watch(self):
        me = psutil.Process()
        while not self._end.wait(EVERY):
            self.bytes = max(self.bytes, held(me))

    def __exit__(self, *_):
        self._end.set()
        self._thread.join()


def measure(path):
    """(peak bytes, seconds, "" or why it failed) of one notebook, run from the top."""
    began, why = time.monotonic(), ""
    with Peak() as peak:
        try:
            run_notebook(read(path), path)
        except NotebookFailed as failed:
            why = str(failed)
    return peak.bytes, time.monotonic() - began, why


def server():
    """Bytes that a JupyterLab server holds when it has started."""
    with lab_server(ROOT):
        time.sleep(2)
        return held(psutil.Process())


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("notebooks", nargs="*", type=Path)
    parser.add_argument("--json", type=Path, help="where to write the figures")
    given = parser.parse_args()
    os.environ["PYTHONPATH"] = os.pathsep.join(filter(None, [str(ROOT), os.environ.get("PYTHONPATH")]))
    rows, failed = {}, 0
    for path in [path.resolve() for path in given.notebooks] or written_notebooks():
        peak, seconds, why = measure(path)
        name = path.relative_to(ROOT).as_posix()
        rows[name] = {"megabytes": round(peak / 1e6), "seconds": round(seconds, 1)}
        failed += bool(why)
        print(f"{name:<44} {peak / 1e6:7.0f} MB {seconds:6.1f} s  {why}", flush=True)
    base = server()
    print(f"{'JupyterLab itself':<44} {base / 1e6:7.0f} MB")
    worst = max(row["megabytes"] for row in rows.values()) + base / 1e6
    print(f"{'the largest, and JupyterLab':<44} {worst:7.0f} MB")
    if given.json:
        given.json.write_text(json.dumps({"notebooks": rows, "jupyterlab": round(base / 1e6)}, indent=1) + "\n")
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
