"""The mutation test itself: its set has not rotted, a change that lives is told, and results are kept."""

import json
import subprocess
import sys

import mutate
import pytest
from mutate import Results, Rotten, planted
from mutations import AREAS, Mutation, all_mutations
from project import ROOT

SET = all_mutations()


def test_there_are_at_least_sixty_each_with_a_name_of_its_own():
    assert len(SET) >= 60 and len({one.name for one in SET}) == len(SET)
    assert all(one.plants and one.old != one.new for one in SET)
    folder = ROOT / "scripts" / "mutations"
    assert sorted(AREAS) == sorted(path.stem for path in folder.glob("*.py") if path.stem != "__init__")


def test_no_mutation_has_rotted():
    """Each text stands in its file exactly once, what comes out still parses, and the check is a command on a file that is there."""
    problems = []
    for one in SET:
        try:
            text = planted(one)
            if one.file.endswith((".ipynb", ".json")):  # what must catch it is a test, and not the JSON parser
                json.loads(text)
            elif one.file.endswith(".py"):
                compile(text, one.file, "exec")
        except (ValueError, SyntaxError) as error:
            problems.append(f"{one.name}: {error}")
        kind, *arguments = one.check
        if not (mutate.COMMANDS[kind](*arguments) and kind in mutate.STEPS and all((ROOT / name).exists() for name in arguments[:1])):
            problems.append(f"{one.name}: no such check: {one.check}")
    assert problems == []


@pytest.mark.parametrize("text", ["", "x = 1\nx = 1\n"], ids=["gone", "twice"])
def test_a_mutation_whose_text_is_not_there_once_is_refused(tmp_path, text):
    (tmp_path / "a.py").write_text(text)
    with pytest.raises(Rotten, match="stands [02] times in a.py, not once"):
        planted(Mutation("a", "a.py", "x = 1", "x = 2", "another x", ("exercises",)), tmp_path)
    with pytest.raises(Rotten, match="there is no b.py"):
        planted(Mutation("b", "b.py", "x = 1", "x = 2", "another x", ("exercises",)), tmp_path)


def test_a_notebook_s_text_is_the_one_that_a_reader_sees(tmp_path):
    (tmp_path / "a.ipynb").write_text('{"source": ["say(\\"µs\\")"]}')
    changed = planted(Mutation("a", "a.ipynb", 'say("µs")', 'say("ms")', "another unit", ("exercises",)), tmp_path)
    assert changed == '{"source": ["say(\\"ms\\")"]}'


@pytest.fixture
def project(tmp_path, monkeypatch):
    """A project of two files and a check, under git, as mutate.py sees it; the change of `b` is one that the check does not see."""
    (tmp_path / "a.py").write_text("x = 1\n")
    (tmp_path / "b.py").write_text("y = 1\n")
    (tmp_path / "holds.py").write_text("import a, sys\nassert a.x == int(sys.argv[1])\n")
    subprocess.run(["git", "init", "-q"], cwd=tmp_path, check=True)
    copy_tree = mutate.copy_tree
    monkeypatch.setattr(mutate, "copy_tree", lambda target: copy_tree(target, tmp_path))
    monkeypatch.setattr(mutate, "key_of", lambda mutation: mutation.name)
    monkeypatch.setattr(mutate, "COMMANDS", {"python": lambda *arguments: arguments})
    return tmp_path


def mutations_of(project):
    check = ("python", "holds.py", "1")
    return [
        Mutation("caught", "a.py", "x = 1", "x = 2", "another x", check),
        Mutation("lives", "b.py", "y = 1", "y = 2", "another y", check),
        Mutation("unsound", "a.py", "x = 1", "x = 2", "another x", ("python", "holds.py", "3")),
    ]


def test_caught_survived_and_a_check_that_fails_anyway_are_told_apart_and_kept(project, monkeypatch):
    kept = project / "kept.json"
    expected = {"caught": "caught", "lives": "survived", "unsound": "unsound"}
    assert mutate.run_all(mutations_of(project), Results(kept), 1, full=False) == expected
    assert (project / "a.py").read_text() == "x = 1\n"  # only the copy was changed
    monkeypatch.setattr(mutate, "fails", lambda *_: pytest.fail("what is known is not run again"))
    known = {name: verdict for name, verdict in Results(kept).known.items() if name in expected}
    assert known == expected
    assert mutate.run_all(mutations_of(project)[:2], Results(kept), 1, full=False) == {"caught": "caught", "lives": "survived"}


def test_what_lives_is_run_against_the_whole_step_when_asked(project, monkeypatch):
    asked = []
    monkeypatch.setattr(mutate, "step_fails", lambda check, copy: asked.append(check) or True)
    found = mutate.run_all(mutations_of(project)[:2], Results(project / "kept.json"), 1, full=True)
    assert found == {"caught": "caught", "lives": "caught by the whole step"} and len(asked) == 1


def test_the_score_and_the_status(project, monkeypatch, capsys):
    monkeypatch.setattr(mutate, "all_mutations", lambda: mutations_of(project))
    monkeypatch.setattr(mutate, "planted", lambda mutation, root=None: planted(mutation, root or project))
    monkeypatch.setattr(mutate, "RESULTS", project / "kept.json")
    monkeypatch.setattr(mutate, "Results", lambda again: Results(project / "kept.json", again))
    assert mutate.main(["caught", "lives", "-j", "1"]) == 1
    said = capsys.readouterr().out
    assert "1 of 2 caught, 50%" in said and "survived: lives: another y (b.py)" in said
    assert mutate.main(["caught", "-j", "1"]) == 0


def test_a_name_that_nothing_bears_is_a_sentence():
    done = subprocess.run([sys.executable, "scripts/mutate.py", "no such"], cwd=ROOT, capture_output=True, text=True)
    assert done.returncode == 1 and done.stderr == "mutate: no mutation is called no such: python scripts/mutate.py --list shows them.\n"
