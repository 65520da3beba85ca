"""Kernels listen on socket files, so that two started at once cannot be given one port; nbval's are in test_nbval_sound.py."""

import re
from pathlib import Path

import pytest
from kernel_sockets import LONGEST, socket_folder
from nbformat.v4 import new_code_cell, new_notebook
from run_notebook import run_notebook

# The kernel's own word on how it is reached: the connection file that it was started with.
SAY = """from ipykernel.connect import get_connection_info
said = get_connection_info(unpack=True)
print(said['transport'], said['ip'])"""


@pytest.fixture(params=["", "a_long_name_" * 9], ids=["usual folder", "deep folder"])
def temporary(request, tmp_path, monkeypatch):
    """Where temporary files go: a folder that leaves room for a socket's path, and one that does not."""
    folder = tmp_path / request.param if request.param else Path("/tmp")
    folder.mkdir(exist_ok=True)
    monkeypatch.setenv("TMPDIR", str(folder))
    monkeypatch.setattr("tempfile.tempdir", None)
    return folder


def test_a_socket_has_a_short_path_in_a_folder_of_its_own(temporary):
    with socket_folder() as one, socket_folder() as other:
        assert one != other and not list(Path(one).iterdir())
        assert len(f"{one}/k-5".encode()) <= LONGEST


def test_a_kernel_that_runs_a_notebook_has_no_port(tmp_path, temporary):
    notebook = run_notebook(new_notebook(cells=[new_code_cell(SAY)]), tmp_path / "06_sockets.ipynb")
    transport, ip = notebook.cells[0].outputs[0].text.split()
    assert transport == "ipc" and re.fullmatch(r"/.*/kit-k-\w+/k", ip)
    assert not Path(ip).parent.exists()  # the sockets go with the kernel
