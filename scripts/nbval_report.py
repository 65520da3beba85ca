"""What nbval_sound.py reports of the notebooks that ran: the time of each, held to a limit, and in the ledger the cell of each claim.

A notebook's time is the CPU time of its kernel and of every process that the kernel started, sandboxes and compilers too, so that a busy
machine changes it little. With KIT_REQUIRE=gpu it is the time on the clock, since a kernel that waits for the GPU is waited for too.
KIT_TIMES names a file that gets the table as JSON, KIT_CELLS one that gets what became of each cell, KIT_NOTEBOOK_SECONDS another limit.
"""

from __future__ import annotations

import json
import os
import re
from pathlib import Path

import psutil
import pytest
from nbval.plugin import IPyNbCell

CPU_SECONDS = 60  # of one notebook, without a GPU
GPU_SECONDS = 90  # of one notebook on a GPU, on the clock


def relative(path):
    """A notebook as people name it: notebooks/06_grid_limits.ipynb."""
    return f"{path.parent.name}/{path.name}"


# ---- the ledger
def own_ledger(notebook, folder):
    """The ledger of this notebook's kernel, in `folder`, or "" where KIT_LEDGER names none; both are remembered on it, an IPyNbFile."""
    notebook.ledger = os.environ.get("KIT_LEDGER", "")
    notebook.own_ledger = Path(folder) / "claims.jsonl" if notebook.ledger else None
    return str(notebook.own_ledger or "")


def hand_on(notebook, cell_num, cell):
    """Move the claims of the cell that has just run to the ledger, each with the file, the code cell's number from 1, and its id."""
    if not notebook.ledger or not notebook.own_ledger.exists():
        return
    lines = notebook.own_ledger.read_text(encoding="utf-8").splitlines()
    notebook.own_ledger.unlink()
    where = {"file": relative(notebook.path), "cell": cell_num + 1, "cell_id": cell.get("id", "")}
    text = "".join(json.dumps(json.loads(line) | where, ensure_ascii=False, sort_keys=True) + "\n" for line in lines)
    file = os.open(notebook.ledger, os.O_APPEND | os.O_CREAT | os.O_WRONLY, 0o644)
    try:  # one write: two workers do not mix their lines
        os.write(file, text.encode())
    finally:
        os.close(file)


# ---- times
def cpu_seconds(pid):
    """CPU seconds of the process, of those it has started and of those of them that have ended; 0 when it is gone."""
    total = 0.0
    try:
        process = psutil.Process(pid)
        tree = [process, *process.children(recursive=True)]
    except psutil.NoSuchProcess:
        return total
    for one in tree:
        try:
            spent = one.cpu_times()
        except psutil.NoSuchProcess:
            continue
        total += spent.user + spent.system + spent.children_user + spent.children_system
    return total


def pytest_collection_modifyitems(items):
    last = {item.parent: item for item in items if isinstance(item, IPyNbCell)}
    for item in last.values():
        item.ends_notebook = True


def pytest_runtest_makereport(item, call):
    if not isinstance(item, IPyNbCell) or call.when != "call":
        return
    notebook = item.parent
    hand_on(notebook, item.cell_num, item.cell)
    notebook.wall = getattr(notebook, "wall", 0.0) + call.duration
    if getattr(item, "ends_notebook", False) and notebook.kernel.is_alive():
        spent = cpu_seconds(notebook.kernel.km.provisioner.pid)
        item.user_properties.append(("nbval-time", (relative(notebook.path), round(spent, 1), round(notebook.wall, 1))))


class Times:
    """The time of each notebook, from the reports of all workers, and those that passed the limit."""

    def __init__(self, live, limit=None):
        self.rows, self.live = {}, live
        self.limit = limit or float(os.environ.get("KIT_NOTEBOOK_SECONDS") or (GPU_SECONDS if live else CPU_SECONDS))

    def pytest_runtest_logreport(self, report):
        for key, value in report.user_properties:
            if key == "nbval-time" and report.when == "call":
                self.rows[value[0]] = {"cpu": value[1], "wall": value[2]}

    def problems(self):
        which, words = ("wall", "on the clock") if self.live else ("cpu", "of CPU time")
        return [
            f"{name} took {row[which]:.0f} s {words}; a notebook may take {self.limit:.0f} s: give it smaller inputs"
            for name, row in sorted(self.rows.items())
            if row[which] > self.limit
        ]

    @pytest.hookimpl(trylast=True)
    def pytest_sessionfinish(self, session, exitstatus):
        if path := os.environ.get("KIT_TIMES"):
            Path(path).write_text(json.dumps(self.rows, indent=1, sort_keys=True) + "\n", encoding="utf-8")
        if self.problems() and exitstatus == pytest.ExitCode.OK:
            session.exitstatus = pytest.ExitCode.TESTS_FAILED

    def pytest_terminal_summary(self, terminalreporter):
        if self.rows:
            terminalreporter.write_line(f"{'seconds of':<44} CPU   clock")
        for name, row in sorted(self.rows.items(), key=lambda item: -item[1]["cpu"]):
            terminalreporter.write_line(f"{name:<42} {row['cpu']:5.1f}   {row['wall']:5.1f}")
        for problem in self.problems():
            terminalreporter.write_line(f"FAILED: {problem}", red=True)


# ---- cells
class Cells:
    """What became of each cell, for the file that KIT_CELLS names: [{file, cell, outcome, differs, why}], `cell` counting from 1."""

    _COLOURS = re.compile(r"\x1b\[[0-9;]*m")

    def __init__(self, path):
        self.path, self.cells = Path(path), []

    def pytest_runtest_logreport(self, report):
        file, _, cell = report.nodeid.partition("::Cell ")
        if not cell or (report.when != "call" and not report.failed):
            return
        file = next((value[0] for key, value in report.user_properties if key == "nbval"), "/".join(Path(file).parts[-2:]))
        text = self._COLOURS.sub("", str(report.longrepr or "")) if report.failed else ""
        differs = "Cell outputs differ" in text
        self.cells.append(
            {
                "file": file,
                "cell": int(cell) + 1,
                "outcome": report.outcome,
                "differs": differs,
                "why": (self._difference(text) if differs else self._error(text))[:300],
            }
        )

    @staticmethod
    def _difference(text):
        """The first words that were stored, and what stands there now: pytest's own "- new" and "+ stored" lines."""
        found = {sign: next((line.strip()[2:] for line in text.splitlines() if line.strip().startswith(f"{sign} ")), "") for sign in "+-"}
        return f"stored: {found['+']!r}, now: {found['-']!r}"

    @staticmethod
    def _error(text):
        """The last line that names an exception, else the first line."""
        lines = [line.strip() for line in text.splitlines() if line.strip()] or ["no reason given"]
        return next(
            (line for line in reversed(lines) if re.match(r"[A-Za-z_.]+(Error|Failed|Died|Exception|Interrupt|Access|Assert)\b", line)),
            lines[0],
        )

    def pytest_sessionfinish(self):
        self.path.write_text(json.dumps(self.cells), encoding="utf-8")
