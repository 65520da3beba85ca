"""A pytest plugin that makes nbval 0.11 sound, and counts what it did.

nbval by itself                                                        here
1  notices a dead kernel only after the cell's time limit              within a second, and the cell fails with that sentence
2  runs cells with store_history=False, so a trailing `;` shows        stored, so it hides the value as in JupyterLab
3  starts the kernel with PYTEST_CURRENT_TEST, on which ipykernel      the variable is hidden while the kernel starts
   stops to capture what child processes print
4  waits 5 s for a cell's next output                                  60 s
5  runs on after a failed cell, and every later cell fails too         the rest of that notebook is skipped: one clear failure
6  lets a cell run for 2000 s                                          180 s
7  passes when it has compared nothing                                 fails, naming the notebook
8  kernels listen on TCP ports, and two may be given the same one      socket files in a folder of their own (kernel_sockets.py)
The kernel gets KIT_NOTEBOOK (the notebook's stem, for the ledger of claims), an empty KIT_PROGRESS and one thread, as in `make fresh`. With
KIT_REQUIRE=gpu the run stops at once unless `kit.start()` finds one, and nbval_sanitize_gpu.cfg is read beside the sanitize file that was
named. With KIT_REGRESS=1 (scripts/regress.py) that file is read too, since versions differ in their line of `kit.start()`, and a notebook
runs on after a failed cell, so that one broken claim hides no other. Times and the ledger's cells: nbval_report.py.

Reaches into nbval's kernel.KernelManager, RunningKernel.execute_cell_input and .await_reply, IPyNbFile.setup and .get_sanitize_files, and
IPyNbCell's options and output_timeout; the tests in scripts/tests/test_nbval_sound.py run each case.
"""

import os
import subprocess
import sys
import tempfile
import time
from collections import Counter, defaultdict
from pathlib import Path
from queue import Empty

import nbval.kernel
import nbval_report
import pytest
from jupyter_client.manager import KernelManager
from kernel_sockets import SocketFiles
from nbval.kernel import RunningKernel
from nbval.plugin import IPyNbCell, IPyNbFile
from nbval_report import Cells, Times, own_ledger, relative

CELL_SECONDS = 180
OUTPUT_SECONDS = 60
_NBVAL_DEFAULT = 2000
GPU_SANITIZE = Path(__file__).with_name("nbval_sanitize_gpu.cfg")


class KernelDied(RuntimeError):
    """The kernel's process ended while a cell ran."""


class _Manager(SocketFiles, KernelManager):
    """What nbval starts its kernels with."""


def _execute_cell_input(self, source, allow_stdin=None):
    return self.kc.execute(source, store_history=True, allow_stdin=allow_stdin, stop_on_error=False)


def _await_reply(self, msg_id, timeout=None):
    """Wait for the reply to `msg_id`; Empty after `timeout` seconds, KernelDied within one second of the kernel's death."""
    deadline = time.monotonic() + (float("inf") if timeout is None else timeout)
    while (left := deadline - time.monotonic()) > 0:
        try:
            message = self.get_message(stream="shell", timeout=min(1.0, left))
        except Empty:
            if not self.is_alive():
                raise KernelDied("the kernel process died while running this cell") from None
            continue
        if message["parent_header"].get("msg_id") == msg_id:
            if message["content"]["status"] == "aborted":
                raise RuntimeError("the kernel aborted this cell")
            return
    raise Empty


def _setup(self):
    """IPyNbFile.setup, which starts the kernel, with the environment that the kernel is to have."""
    saved = dict(os.environ)
    os.environ.pop("PYTEST_CURRENT_TEST", None)
    self.progress = tempfile.TemporaryDirectory(prefix="kit-progress-")  # as long as the notebook; what its reader has solved is not ours
    os.environ.update(
        KIT_NOTEBOOK=self.path.stem,
        KIT_PROGRESS=f"{self.progress.name}/progress.json",
        KIT_LEDGER=own_ledger(self, self.progress.name),
        OMP_NUM_THREADS="1",
    )
    try:
        _nbval_setup(self)
    finally:
        os.environ.clear()
        os.environ.update(saved)


def _get_sanitize_files(self):
    return _nbval_sanitize_files(self) + ([str(GPU_SANITIZE)] if _gpu_required() or _regress() else [])


def _gpu_required():
    return os.environ.get("KIT_REQUIRE") == "gpu"


def _regress():
    return os.environ.get("KIT_REGRESS") == "1"


nbval.kernel.KernelManager = _Manager
RunningKernel.execute_cell_input = _execute_cell_input
RunningKernel.await_reply = _await_reply
_nbval_setup, IPyNbFile.setup = IPyNbFile.setup, _setup
_nbval_sanitize_files, IPyNbFile.get_sanitize_files = IPyNbFile.get_sanitize_files, _get_sanitize_files


def _is_worker(config):
    return hasattr(config, "workerinput")


def _runs_notebooks(config):
    return config.option.nbval or config.option.nbval_lax


def pytest_configure(config):
    config.pluginmanager.register(nbval_report)
    if config.option.nbval_cell_timeout == _NBVAL_DEFAULT:
        config.option.nbval_cell_timeout = CELL_SECONDS
    if _runs_notebooks(config) and not _is_worker(config) and _gpu_required():
        # In a process of its own: a CUDA context here would hold memory that the notebooks want.
        probe = "from kit import machine\ntry: print(machine.start(require='gpu'))\nexcept Exception as e: print(e); raise SystemExit(1)"
        found = subprocess.run([sys.executable, "-c", probe], capture_output=True, text=True)
        if found.returncode != 0:
            raise pytest.UsageError((found.stdout.strip() or found.stderr.strip()).splitlines()[-1])
        print(f"notebooks run live on {found.stdout.strip()}")


def pytest_collection_modifyitems(items):
    for item in items:
        if isinstance(item, IPyNbCell):
            item.output_timeout = OUTPUT_SECONDS


def pytest_runtest_setup(item):
    if isinstance(item, IPyNbCell) and not _regress() and (failed := getattr(item.parent, "failed_cell", None)):
        pytest.skip(f"not run: {failed} of {item.parent.path.name} failed")


def pytest_runtest_makereport(item, call):
    if not isinstance(item, IPyNbCell) or call.when != "call":
        return
    if call.excinfo is not None and not call.excinfo.errisinstance(pytest.skip.Exception):
        item.parent.failed_cell = item.name
    if call.excinfo is None or not call.excinfo.errisinstance(pytest.skip.Exception):
        compared = item.options["check"] and item.cell.execution_count is not None
        # Reports travel from xdist's workers to the process that sums up; their user_properties do too.
        item.user_properties.append(("nbval", (relative(item.parent.path), "compared" if compared else "run")))


class _Counts:
    """Cells run and compared, by notebook, from the reports of all workers."""

    def __init__(self, strict):
        self.strict, self.cells = strict, defaultdict(Counter)

    def pytest_runtest_logreport(self, report):
        if report.when == "call":
            for key, value in report.user_properties:
                if key == "nbval":
                    self.cells[value[0]][value[1]] += 1

    def total(self, what):
        return sum(count[what] for count in self.cells.values())

    def problems(self):
        """What makes a green run worthless: nothing ran, or (when strict) a notebook in which nothing was compared."""
        if not self.cells:
            return ["no notebook cell was run"]
        if self.strict:
            return [f"{name}: {count['run']} cells ran and none was compared; store its outputs with `make fresh`"
                    for name, count in sorted(self.cells.items()) if not count["compared"]]  # fmt: skip
        return [] if self.total("compared") else ["no cell was compared; tag those that must be equal everywhere nbval-check-output"]

    @pytest.hookimpl(trylast=True)
    def pytest_sessionfinish(self, session, exitstatus):
        if self.problems() and exitstatus in (pytest.ExitCode.OK, pytest.ExitCode.NO_TESTS_COLLECTED):
            session.exitstatus = pytest.ExitCode.TESTS_FAILED

    def pytest_terminal_summary(self, terminalreporter):
        compared = self.total("compared")
        terminalreporter.write_line(f"{len(self.cells)} notebooks: {compared + self.total('run')} cells run, {compared} compared")
        for problem in self.problems():
            terminalreporter.write_line(f"FAILED: {problem}", red=True)


@pytest.hookimpl(trylast=True)
def pytest_sessionstart(session):
    if _runs_notebooks(session.config) and not _is_worker(session.config):
        session.config.pluginmanager.register(Times(live=_gpu_required()), "kit-nbval-times")
        if path := os.environ.get("KIT_CELLS"):
            session.config.pluginmanager.register(Cells(path), "kit-nbval-cells")
        session.config.pluginmanager.register(_Counts(strict=session.config.option.nbval), "kit-nbval-counts")
