"""Run a notebook from the top in a kernel of this Python, as a reader without a GPU would."""

from __future__ import annotations

import contextlib
import os
import tempfile

import ipykernel.kernelspec
from jupyter_client.kernelspec import KernelSpecManager
from jupyter_client.manager import AsyncKernelManager
from jupyter_core.utils import run_sync
from kernel_sockets import SocketFiles
from nbclient import NotebookClient
from nbclient.exceptions import CellExecutionError, CellTimeoutError, DeadKernelError
from nbformat.v4 import new_code_cell
from traitlets import default

CELL_SECONDS = 180  # the same as under nbval, see conftest.py


class NotebookFailed(Exception):
    """A cell did not run; the message names it."""


class _ThisPython(KernelSpecManager):
    """The kernel is the Python that runs this, whatever kernels the machine has registered."""

    def get_kernel_spec(self, kernel_name):
        return self.kernel_spec_class(resource_dir=ipykernel.kernelspec.RESOURCES, **ipykernel.kernelspec.get_kernel_dict())


class _Manager(SocketFiles, AsyncKernelManager):
    """nbclient makes it, and so also ends its kernel; a manager that is handed to it keeps its kernel running."""

    @default("kernel_spec_manager")
    def _this_python(self):
        return _ThisPython()


def kernel_environment(stem, progress, simulate=True):
    """The environment of a notebook's kernel: one thread, so that sums come out alike everywhere, no ledger, and nobody's progress."""
    environment = dict(os.environ, KIT_NOTEBOOK=stem, KIT_PROGRESS=f"{progress}/progress.json", OMP_NUM_THREADS="1")
    for name in ("KIT_LEDGER", "KIT_RECORD", "KIT_REQUIRE", "PYTEST_CURRENT_TEST"):  # under the last, ipykernel captures less
        environment.pop(name, None)
    if simulate:
        environment["KIT_SIMULATE"] = "1"
    return environment


class OneKernel:
    """A kernel that runs one notebook after the other, each in an empty namespace: what it has imported, and its sandbox, stay warm.

    For tests that ask what a notebook does and not what it shows; a reader's kernel, and nbval's, is a new one.
    """

    def __init__(self):
        self.manager = _Manager(kernel_name="python3")

    def __enter__(self):
        return self

    def __exit__(self, *_):
        if self.manager.has_kernel:
            run_sync(self.manager.shutdown_kernel)(now=True)


@contextlib.contextmanager
def _emptied(kernel, notebook, environment):
    """With a OneKernel, a first cell that empties the namespace and tells the kernel which notebook it runs; gone afterwards."""
    if kernel is None:
        yield
        return
    new = {name: value for name, value in environment.items() if name.startswith("KIT_")}
    notebook.cells.insert(0, new_code_cell(f"get_ipython().run_line_magic('reset', '-f')\n__import__('os').environ.update({new!r})"))
    try:
        yield
    finally:
        del notebook.cells[0]


def run_notebook(notebook, path, simulate=True, kernel=None):
    """Execute `notebook` (read from `path`) in place, in the folder of `path`, in a kernel of its own or in `kernel`, a OneKernel.

    Raises NotebookFailed, naming the cell, when one fails.
    """
    running = [None]

    def entered(cell, cell_index):
        running[0] = cell

    client = NotebookClient(
        notebook,
        on_cell_execute=entered,
        km=kernel and kernel.manager,
        kernel_manager_class=_Manager,
        kernel_name="python3",
        timeout=CELL_SECONDS,
        record_timing=False,
        store_widget_state=False,
        resources={"metadata": {"path": str(path.parent)}},
    )
    try:
        with tempfile.TemporaryDirectory(prefix="kit-progress-") as progress:
            environment = kernel_environment(path.stem, progress, simulate)
            with _emptied(kernel, notebook, environment):
                client.execute(env=environment)
    except CellExecutionError as error:
        raise NotebookFailed(f"{path.name}: {_name(notebook, running[0])} raised {error.ename}: {error.evalue}") from None
    except CellTimeoutError:
        raise NotebookFailed(f"{path.name}: {_name(notebook, running[0])} did not end within {CELL_SECONDS} s") from None
    except DeadKernelError:
        raise NotebookFailed(f"{path.name}: the kernel died in {_name(notebook, running[0])}") from None
    return notebook


def _name(notebook, cell):
    if cell is None:
        return "no cell: its kernel did not start"
    code = [c.id for c in notebook.cells if c.cell_type == "code"]
    return f'code cell {code.index(cell.id) + 1} ("{cell.source.strip().splitlines()[0]}")'
