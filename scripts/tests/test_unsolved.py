"""An exercise that nobody has solved yet runs to its end, and each of its checks says so."""

import re

import pytest
from nbformat.v4 import new_code_cell, new_notebook
from notebook_files import read
from project import ROOT
from run_notebook import NotebookFailed, OneKernel, run_notebook

EXERCISES = sorted((ROOT / "exercises").glob("*.ipynb"))
NOT_YET, PASSED = re.compile(r"\d\d\.\d+: not done yet"), re.compile(r"\d\d\.\d+: passed")


def shown(cell):
    """The text that a cell's outputs show, whatever their kind."""
    texts = [output.get("text", "") for output in cell.outputs]
    texts += [value for output in cell.outputs for mime, value in output.get("data", {}).items() if mime.startswith("text/")]
    return "\n".join(texts)


def test_there_are_exercises():
    assert EXERCISES


@pytest.fixture(scope="module")
def kernel():
    with OneKernel() as one:
        yield one


def test_one_kernel_gives_each_notebook_an_empty_namespace(kernel, tmp_path):
    def run(*sources, name="06_x"):
        notebook = run_notebook(new_notebook(cells=list(map(new_code_cell, sources))), tmp_path / f"{name}.ipynb", kernel=kernel)
        return [shown(cell).strip() for cell in notebook.cells]

    assert run("x = 1; import os; os.environ['KIT_NOTEBOOK']") == ["'06_x'"]
    with pytest.raises(NotebookFailed, match=r'code cell 1 \("print\(os\)"\) raised NameError'):
        run("print(os)")
    assert run("'x' in globals()", "__import__('os').environ['KIT_NOTEBOOK']", name="07_y") == ["False", "'07_y'"]


@pytest.mark.slow
@pytest.mark.parametrize("path", EXERCISES, ids=lambda path: path.stem)
def test_run_all_reaches_the_end_and_every_check_says_not_done_yet(path, kernel):
    notebook = run_notebook(read(path), path, kernel=kernel)
    checks = [cell for cell in notebook.cells if cell.cell_type == "code" and re.search(r"\bkit\.check\(", cell.source)]
    assert checks, "this exercise has no kit.check"
    assert [cell.source for cell in checks if not NOT_YET.search(shown(cell))] == []
    assert not [cell.source for cell in notebook.cells if cell.cell_type == "code" and PASSED.search(shown(cell))]
