"""Each rule of the notebook lint, shown on a notebook that breaks it alone; and this project's notebooks, which keep them all."""

import copy

import lint_notebooks
import pytest
from lint_notebooks import FOLDERS, lint
from nbformat.v4 import new_code_cell, new_markdown_cell, new_notebook, new_output
from notebook_files import WIDGET_VIEW, normalise, text
from project import ROOT

PNG = "iVBORw0KGgo="


def lesson(cells=26):
    """A notebook in which nothing is wrong."""
    made = [
        new_markdown_cell("# Rule\n\n[first](other.md) ![a grid](grid.png)"),
        new_code_cell("import kit\n\ngpu = kit.start()", execution_count=1),
    ]
    while len(made) < cells:
        made += [new_markdown_cell("One sentence."), new_code_cell("1 + 1", execution_count=len(made) // 2 + 1)]
    picture = {"image/png": PNG, "text/plain": "Bars"}
    made[3].outputs = [new_output("display_data", data=picture, metadata={"image/png": {"alt": "two bars"}})]
    return normalise(new_notebook(cells=made[:cells]))


def problems(tmp_path, notebook, folder="notebooks", name="06_grid.ipynb"):
    path = tmp_path / folder / name
    path.parent.mkdir(exist_ok=True)
    (path.parent / "other.md").write_text("")
    (path.parent / "grid.png").write_text("")
    path.write_text(text(notebook), encoding="utf-8")
    return lint(path)


def test_a_good_lesson_has_no_problems(tmp_path):
    assert problems(tmp_path, lesson()) == []


def output(**data):
    return new_output("display_data", data={key.replace("_", "/"): value for key, value in data.items()})


def set_source(position, source):
    def change(notebook):
        notebook.cells[position].source = source

    return change


def set_output(*outputs):
    def change(notebook):
        notebook.cells[5].outputs = list(outputs)

    return change


def unrun(notebook):
    notebook.cells[5].execution_count = None


def out_of_order(notebook):
    notebook.cells[5].execution_count = 40


def widget_state(notebook):
    notebook.metadata["widgets"] = {}


def other_kernel(notebook):
    notebook.metadata["kernelspec"] = {"name": "conda", "display_name": "c", "language": "python"}


BROKEN = {
    "have not been run": unrun,
    "not run once from top to bottom": out_of_order,
    "shows an error, ValueError": set_output(new_output("error", ename="ValueError", evalue="no", traceback=[])),
    "prints to stderr": set_output(new_output("stream", name="stderr", text="warning")),
    "a widget view is stored": set_output(new_output("display_data", data={WIDGET_VIEW: {"model_id": "1"}})),
    "widget state is stored": widget_state,
    "the kernelspec is not": other_kernel,
    "its output names a folder of one machine, /work/main/kit": set_output(new_output("stream", name="stdout", text="in /work/main/kit\n")),
    "its output names a folder of one machine, /tmp/x": set_output(output(text_html="<p>/tmp/x</p>")),
    "its output holds a memory address": set_output(output(text_plain="<W at 0x7f12345678>")),
    "its output has an <img> without alt": set_output(output(text_html='<img src="x" alt="">')),
    "a picture without alt text: show it": set_output(output(image_png=PNG, text_plain="<Figure size 1x1>")),
    "cell 6: names a folder of one machine, /home/me/x.py": set_source(5, "open('/home/me/x.py')"),
    "141 words of text": set_source(4, "word " * 141),
    "a picture without alt text": set_source(4, "![ ](grid.png)"),
    "an <img> without alt text": set_source(4, '<img src="grid.png">'),
    "pasted into the text as base64": set_source(4, "![grid](data:image/png;base64,AAAA)"),
    "the link to gone.ipynb leads nowhere": set_source(4, "[next](gone.ipynb#part)"),
    "16 lines of code": set_source(5, "x = 1\n" * 16),
    "the first code cell does not hold": set_source(1, "import kit"),
    "24 cells; a lesson has 25 to 35": lambda notebook: notebook.cells.__delitem__(slice(24, None)),
    "36 cells; a lesson has 25 to 35": lambda notebook: notebook.cells.extend(lesson(12).cells[2:]),
}


@pytest.mark.parametrize("expected", BROKEN)
def test_each_rule_finds_what_breaks_it(tmp_path, expected):
    notebook = copy.deepcopy(lesson())
    BROKEN[expected](notebook)
    if expected.startswith("36 cells"):
        for number, cell in enumerate((c for c in notebook.cells if c.cell_type == "code"), 1):
            cell.execution_count = number
        for number, cell in enumerate(notebook.cells):
            cell.id = f"cell-{number}"
    found = problems(tmp_path, notebook)
    assert len(found) == 1 and expected in found[0], found


def test_code_in_text_is_no_link_and_no_words(tmp_path):
    notebook = lesson()
    notebook.cells[4].source = "Launch `kernel[grid](x)`:\n```\n" + "kernel[grid](y) " * 150 + "\n```"
    assert problems(tmp_path, notebook) == []


def test_a_kernel_may_be_longer_and_a_comment_is_no_code(tmp_path):
    notebook = lesson()
    notebook.cells[5].source = "@triton.jit\ndef kernel():\n" + "    x = 1\n" * 20
    notebook.cells[7].source = "# a comment\n" * 20 + "1 + 1"
    assert problems(tmp_path, notebook) == []


def test_the_start_notebook_may_have_other_lengths(tmp_path):
    assert problems(tmp_path, lesson(12), name="00_start_here.ipynb") == []


def test_text_without_code_between_is_noted_and_does_not_fail(tmp_path, monkeypatch, capsys):
    notebook = lesson()
    for cell in notebook.cells[4:20]:
        if cell.cell_type == "code":
            cell.cell_type, cell.source = "markdown", "More text."
            for key in ("outputs", "execution_count"):
                del cell[key]
    for number, cell in enumerate((c for c in notebook.cells if c.cell_type == "code"), 1):
        cell.execution_count = number
    (found,) = problems(tmp_path, notebook)
    assert found.startswith("note: text and code alternate at 0.3")
    with pytest.raises(SystemExit) as left:
        lint_notebooks.main([str(tmp_path / "notebooks/06_grid.ipynb")])
    assert left.value.code == 0 and "0 problems" in capsys.readouterr().out


def test_exercises_hold_no_outputs_and_no_markers(tmp_path):
    notebook = lesson()
    for cell in notebook.cells:
        if cell.cell_type == "code":
            cell.outputs, cell.execution_count = [], None
    assert problems(tmp_path, notebook, "exercises") == []
    notebook.cells[3].execution_count = 1
    notebook.cells[5].source = "# BEGIN SOLUTION"
    assert [p.split(":")[1].strip() for p in problems(tmp_path, notebook, "exercises")] == [
        "an exercise holds no outputs",
        "a solution marker is left",
    ]


def test_a_solution_shows_that_each_of_its_checks_passed(tmp_path):
    notebook = lesson()
    assert problems(tmp_path, notebook, "solutions") == ["no kit.check in this solution"]
    notebook.cells[5].source = 'kit.check("06.1", plan)'
    for shown, found in {"06.1: passed: 9 cases": [], "06.1: wrong: no": ["cell 6: its check does not show that it passed"]}.items():
        notebook.cells[5].outputs = [output(text_plain=shown)]
        assert problems(tmp_path, notebook, "solutions") == found


def test_a_large_or_broken_file_is_a_problem(tmp_path, monkeypatch):
    monkeypatch.setattr(lint_notebooks, "MOST_BYTES", 1000)
    assert "draw smaller" in problems(tmp_path, lesson())[0]
    (tmp_path / "notebooks/broken.ipynb").write_text("{")
    assert "is not a notebook" in lint(tmp_path / "notebooks/broken.ipynb")[0]


def test_finding_no_notebooks_is_a_failure(tmp_path, monkeypatch):
    monkeypatch.setattr(lint_notebooks, "ROOT", tmp_path)
    with pytest.raises(SystemExit, match="no notebooks found"):
        lint_notebooks.main([])


@pytest.mark.parametrize("folder", FOLDERS)
def test_the_notebooks_of_this_project_keep_every_rule(folder):
    paths = sorted((ROOT / folder).glob("*.ipynb"))
    assert paths, f"no notebooks in {folder}/"
    assert {path.name: found for path in paths if (found := [p for p in lint(path) if not p.startswith("note:")])} == {}
