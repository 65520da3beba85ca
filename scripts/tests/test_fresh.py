"""`make fresh` stores what a run shows, in one form, and a second run changes nothing."""

import base64
import io

import fresh
import matplotlib.figure
import nbformat
import psutil
import pytest
from nbformat.v4 import new_code_cell, new_markdown_cell, new_notebook, new_output
from notebook_files import WIDGET_VIEW, normalise, text, without_pictures, without_words
from run_notebook import NotebookFailed

DRAW = """import matplotlib.pyplot as plt
figure, axes = plt.subplots(figsize=(2, 1))
_ = axes.plot([1, 2])"""


def png(**metadata):
    figure = matplotlib.figure.Figure(figsize=(1, 1))
    figure.add_subplot().plot([1, 2])
    file = io.BytesIO()
    figure.savefig(file, format="png", metadata=metadata)
    return file.getvalue()


def test_a_run_stores_outputs_and_a_second_one_changes_nothing(tmp_path):
    path = tmp_path / "06_small.ipynb"
    cells = [
        new_markdown_cell("# Small"),
        new_code_cell("import os\nprint(os.environ['KIT_NOTEBOOK'], os.environ['KIT_SIMULATE'], os.path.basename(os.getcwd()))"),
        new_code_cell("object()"),
        new_code_cell(DRAW, metadata={"execution": {"start": "now"}, "tags": ["kept"]}),
        new_code_cell("import ipywidgets\nipywidgets.IntSlider()"),
    ]
    nbformat.write(new_notebook(cells=cells, metadata={"widgets": {"state": {}}, "kit": {"teaching": 10}}), path)
    ids = [cell.id for cell in cells]

    assert fresh.refresh(path, check=True) == "would change"
    assert fresh.refresh(path) == "rewritten"
    stored = path.read_bytes()
    notebook = nbformat.read(path, as_version=4)
    assert [cell.id for cell in notebook.cells] == ids
    assert [cell.get("execution_count") for cell in notebook.cells] == [None, 1, 2, 3, 4]
    assert notebook.cells[1].outputs[0].text == f"06_small 1 {tmp_path.name}\n"
    assert notebook.cells[2].outputs[0].data["text/plain"] == "<object at 0x0>"
    assert notebook.cells[3].metadata == {"tags": ["kept"]}
    assert WIDGET_VIEW not in stored.decode() and set(notebook.metadata) == {"kernelspec", "language_info", "kit"}
    assert stored.endswith(b"}\n") and b"Software" not in base64.b64decode(notebook.cells[3].outputs[0].data["image/png"])

    assert fresh.refresh(path) == "fresh" and path.read_bytes() == stored
    assert fresh.refresh(path, check=True) == "fresh"


@pytest.mark.parametrize(
    "source, words",
    [("1 / 0", 'code cell 2 ("1 / 0") raised ZeroDivisionError'), ("import os; os._exit(1)", 'the kernel died in code cell 2 ("import os')],
)
def test_a_notebook_that_fails_keeps_its_file_and_names_the_cell(tmp_path, source, words):
    path = tmp_path / "06_fails.ipynb"
    nbformat.write(new_notebook(cells=[new_code_cell("1"), new_code_cell(source), new_code_cell("2")]), path)
    before = path.read_bytes()
    with pytest.raises(NotebookFailed) as raised:
        fresh.refresh(path)
    assert words in str(raised.value) and path.read_bytes() == before
    assert not [child for child in psutil.Process().children(recursive=True) if "ipykernel" in " ".join(child.cmdline())]


def test_pictures_lose_their_words_and_nothing_else():
    a, b = png(Software="matplotlib 1", Description="words"), png(Software="matplotlib 2")
    assert a != b and without_words(a) == without_words(b)
    assert without_words(without_words(a)) == without_words(a) and without_words(b"no picture") == b"no picture"
    import matplotlib.image

    assert (matplotlib.image.imread(io.BytesIO(a)) == matplotlib.image.imread(io.BytesIO(without_words(a)))).all()


def test_streams_join_and_only_pictures_are_left_out_of_account():
    def notebook(words, picture):
        streams = [new_output("stream", name=name, text=text) for name, text in (("stdout", "a"), ("stdout", words), ("stderr", "c"))]
        drawn = new_output("display_data", data={"image/png": base64.b64encode(picture).decode(), "text/plain": "Bars"})
        return normalise(new_notebook(cells=[new_code_cell("x", id="a", outputs=[*streams, drawn])]))

    one = notebook("b", png())
    assert [output.get("text") for output in one.cells[0].outputs] == ["ab", "c", None]
    assert without_pictures(one) == without_pictures(notebook("b", b"another")) != without_pictures(notebook("B", png()))
    assert "image/png" in text(one)  # left out of the comparison, not of the notebook
