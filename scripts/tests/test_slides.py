"""What is a slide, by rule; marking changes nothing else; the stored lessons are marked."""

import nbformat
import pytest
import slides
from nbformat.v4 import new_code_cell, new_markdown_cell, new_notebook
from notebook_files import KEPT_CELL_METADATA, normalise, read
from project import ROOT


def text(source):
    return new_markdown_cell(source)


def code(source="1", **metadata):
    return new_code_cell(source, metadata=metadata)


CELLS = [
    text("# Title"),
    code("import kit"),
    text("Words."),
    code(),
    code(),
    text("More words."),
    code(),
    text("**Predict.** What?\n\n<details>42</details>"),
    code(),
    text("## Next"),
    code(),
    text("### Below"),
    code(tags=["notes"]),
]
WANTED = [
    "slide",
    "",
    "fragment",
    "fragment",
    "subslide",
    "fragment",
    "fragment",
    "subslide",
    "fragment",
    "slide",
    "fragment",
    "subslide",
    "notes",
]


def test_the_rule():
    assert slides.marks(CELLS) == WANTED


def test_marking_is_all_that_changes_and_is_kept_by_make_fresh():
    notebook = new_notebook(cells=nbformat.from_dict(CELLS))
    before = [(cell.id, cell.source, cell.get("outputs")) for cell in notebook.cells]
    assert slides.mark(notebook) == 12
    assert [(cell.id, cell.source, cell.get("outputs")) for cell in notebook.cells] == before
    assert notebook.cells[12].metadata["tags"] == ["notes"]
    assert slides.mark(notebook) == 0  # again changes nothing
    assert "slideshow" in KEPT_CELL_METADATA and slides.mark(normalise(notebook)) == 0
    del notebook.cells[3]
    assert slides.mark(notebook) > 0


def test_check_writes_nothing_and_says_what_is_not_in_step(tmp_path, capsys):
    path = tmp_path / "01_a.ipynb"
    nbformat.write(new_notebook(cells=nbformat.from_dict(CELLS)), path)
    before = path.read_text()
    assert slides.main(["--check", str(path)]) == 1 and path.read_text() == before
    assert slides.main([str(path)]) == 0 and path.read_text() != before
    assert slides.main(["--check", str(path)]) == 0
    assert "not in step: run `make slides`" in capsys.readouterr().out


@pytest.mark.parametrize("path", sorted((ROOT / "notebooks").glob("*.ipynb")), ids=lambda path: path.stem)
def test_a_stored_lesson_is_marked(path):
    assert slides.mark(read(path)) == 0, "run `make slides`"
