"""The exercises are made from the solutions: markers, stubs, and what `--check` finds."""

import subprocess
import sys

import nbformat
import pytest
from nbformat.v4 import new_code_cell, new_markdown_cell, new_notebook, new_output
from notebook_files import normalise, read, text
from project import ROOT

from exercises import Markers, exercise, generate, unsolved

STUB = 'tl.static_assert(False, "Exercise 6.1: about 2 lines")'
SOLVED = f"def kernel():\n    pid = 0\n    # BEGIN SOLUTION {STUB}\n    a = 1\n    b = 2\n    # END SOLUTION\n    return a + b"
UNSOLVED = f"def kernel():\n    pid = 0\n    # YOUR CODE HERE\n    {STUB}\n    return a + b"


def solution(source=SOLVED):
    output = new_output("stream", name="stdout", text="the answer\n")
    cells = [
        new_markdown_cell("# Grid limits"),
        new_markdown_cell("How it works, once you have it", metadata={"tags": ["solution"]}),
        new_code_cell(source, outputs=[output], execution_count=1, metadata={"collapsed": True}),
        new_code_cell("print('the answer')", metadata={"tags": ["solution"]}),
    ]
    return normalise(new_notebook(cells=cells))


@pytest.fixture
def project(tmp_path):
    """A project with one solution and its exercise in step."""
    (tmp_path / "solutions").mkdir()
    (tmp_path / "solutions/06_grid.ipynb").write_text(text(solution()), encoding="utf-8")
    assert generate(tmp_path) == []
    return tmp_path


def test_a_block_becomes_its_stub_with_the_same_indentation():
    assert unsolved(SOLVED, "cell 1", 6) == UNSOLVED


def test_two_blocks_in_one_cell_and_code_without_any():
    twice = SOLVED + "\n" + SOLVED.replace("6.1", "6.2")
    assert unsolved(twice, "cell 1", 6) == UNSOLVED + "\n" + UNSOLVED.replace("6.1", "6.2")
    assert unsolved("x = 1\n\n# SOLUTIONS are elsewhere", "cell 1", 6) == "x = 1\n\n# SOLUTIONS are elsewhere"


@pytest.mark.parametrize(
    "source, problem",
    [
        (SOLVED.replace("    # END SOLUTION\n", ""), "never ended"),
        (SOLVED.replace(f"    # BEGIN SOLUTION {STUB}\n", ""), "without a BEGIN"),
        (SOLVED.replace("    # END SOLUTION", "    # BEGIN SOLUTION x"), "inside a solution"),
        (SOLVED.replace("# END SOLUTION", "# END SOLUTION here"), "takes nothing behind it"),
        (SOLVED.replace(STUB, ""), 'must say "Exercise 6.1: about 2 lines"'),
        (SOLVED.replace(STUB, "..."), 'it is "..."'),
        (SOLVED.replace("6.1", "7.1"), "Exercise 7.1, and this is lesson 6"),
    ],
)
def test_markers_that_do_not_fit_are_named_with_their_cell(source, problem):
    with pytest.raises(Markers, match=problem) as raised:
        unsolved(source, "06_grid.ipynb, cell 3", 6)
    assert str(raised.value).startswith("06_grid.ipynb, cell 3: ")


def test_an_exercise_holds_nothing_of_the_solution():
    made = exercise(solution(), "06_grid.ipynb")
    assert [cell.source for cell in made.cells] == ["# Grid limits", UNSOLVED]
    assert made.cells[1].outputs == [] and made.cells[1].execution_count is None and made.cells[1].metadata == {}
    assert "the answer" not in text(made)
    assert made.metadata.kit.generated_from == "solutions/06_grid.ipynb"
    nbformat.validate(made)


def test_cell_ids_are_those_of_the_solution():
    source = solution()
    assert [cell.id for cell in exercise(source, "06_grid.ipynb").cells] == [source.cells[0].id, source.cells[2].id]


def test_in_step_is_no_problem_and_a_second_run_changes_nothing(project):
    before = (project / "exercises/06_grid.ipynb").read_bytes()
    assert generate(project, check=True) == [] and generate(project) == []
    assert (project / "exercises/06_grid.ipynb").read_bytes() == before


def test_an_edit_inside_a_block_keeps_it_in_step_and_one_outside_does_not(project):
    path = project / "solutions/06_grid.ipynb"
    path.write_text(path.read_text().replace("b = 2", "b = 3"))
    assert generate(project, check=True) == []
    path.write_text(path.read_text().replace("pid = 0", "pid = 1"))
    assert generate(project, check=True) == ["exercises/06_grid.ipynb is not what solutions/06_grid.ipynb makes: run `make exercises`"]


def test_missing_orphaned_and_no_pairs_are_problems(project):
    (project / "exercises/06_grid.ipynb").rename(project / "exercises/07_old.ipynb")
    missing, orphan = generate(project, check=True)
    assert "06_grid.ipynb is not what" in missing and "07_old.ipynb has no solution" in orphan
    (project / "solutions/06_grid.ipynb").unlink()
    assert generate(project, check=True) == ["no solutions found in solutions/, so no exercise was made or compared"]


def test_a_solution_without_markers_or_number_is_a_problem():
    with pytest.raises(Markers, match="nothing is marked"):
        exercise(solution("x = 1"), "06_grid.ipynb")
    with pytest.raises(Markers, match="begins with its lesson's number"):
        exercise(solution(), "grid.ipynb")


def test_the_command_tells_success_and_failure_by_its_status(project):
    def command():
        done = subprocess.run([sys.executable, ROOT / "scripts/exercises.py", "--check", "--root", project], capture_output=True, text=True)
        return done.returncode, done.stdout + done.stderr

    assert command() == (0, "exercises: 1 in step with their solutions\n")
    (project / "exercises/06_grid.ipynb").write_text("{}")
    status, output = command()
    assert status == 1 and output.startswith("exercises: exercises/06_grid.ipynb is not what")


def test_every_exercise_of_this_project_is_in_step():
    assert generate(ROOT, check=True) == []


def test_no_exercise_of_this_project_leaks_its_solution():
    for path in sorted((ROOT / "exercises").glob("*.ipynb")):
        assert "SOLUTION" not in text(read(path)), path.name
