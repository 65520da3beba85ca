"""`make regress`: its arguments, its environments' names, what it says when something is missing, and its table."""

import subprocess
import sys

import pytest
import regress
from project import ROOT
from regress import Result, Stop


@pytest.mark.parametrize(
    "words, expected",
    [
        (["3.6.0 3.9.0"], ["3.6.0", "3.9.0"]),
        (["3.6.0", "3.9.0", "3.6.0"], ["3.6.0", "3.9.0"]),
        (["3.6.0,3.7.1"], ["3.6.0", "3.7.1"]),
        (["3.10.0rc1"], ["3.10.0rc1"]),
        ([], []),
    ],
)
def test_versions(words, expected):
    assert regress.versions_of(words) == expected


@pytest.mark.parametrize("word", ["3", "3.9", "newest", "3.9.0; rm -rf .", "==3.9.0", "3.9.0 latest"])
def test_what_is_no_version(word):
    with pytest.raises(Stop, match="is no Triton version: write all three numbers"):
        regress.versions_of([word])


@pytest.mark.parametrize("word", ["", "  "])
def test_an_empty_list(word):
    with pytest.raises(Stop, match="TRITON is empty"):
        regress.versions_of([word])


def test_a_bad_argument_ends_with_a_sentence():
    done = subprocess.run([sys.executable, "scripts/regress.py", "3.x"], cwd=ROOT, capture_output=True, text=True)
    assert done.returncode == 1
    assert done.stderr == "regress: '3.x' is no Triton version: write all three numbers, as in make regress TRITON=\"3.6.0 3.9.0\".\n"


def test_the_versions_are_those_of_the_kit():
    from kit.versions import TESTED

    assert regress.tested() == list(TESTED)


def test_make_passes_the_versions_on():
    def recipe(*arguments):
        return subprocess.run(
            ["make", "-n", "--no-print-directory", "regress", "PYTHON=python3", *arguments], cwd=ROOT, capture_output=True, text=True
        ).stdout

    assert recipe("TRITON=3.6.0 3.9.0").split("regress.py")[1].strip() == '"3.6.0 3.9.0"'
    assert recipe("TRITON=").split("regress.py")[1].strip() == '""'


def test_what_pip_could_not_do():
    pip = "ERROR: Could not find a version that satisfies the requirement triton==9.9.9 (from versions: 3.8.0, 3.9.0)\nERROR: No matching"
    assert "no Triton 9.9.9 for Python" in regress.why(pip, "9.9.9") and "it has 3.8.0, 3.9.0." in regress.why(pip, "9.9.9")
    offline = (
        "WARNING: Retrying: NewConnectionError\nERROR: Could not find a version (from versions: none)\nERROR: No matching distribution"
    )
    assert "check the network" in regress.why(offline, "3.9.0")
    assert "The disk became full" in regress.why("OSError: [Errno 28] No space left on device", "3.9.0")


def test_a_version_that_cannot_be_installed_fails_and_the_others_run(monkeypatch, capsys):
    def prepare(version):
        if version == "3.5.9":
            raise Stop("the package index has no Triton 3.5.9.")
        return "python"

    monkeypatch.setattr(regress, "prepare", prepare)
    monkeypatch.setattr(regress, "measure", lambda version, python, extra: Result(version, {"passed": 3, "failed": 0, "skipped": 1}))
    assert regress.main(["3.5.9", "3.9.0"]) == 1
    shown = capsys.readouterr().out
    assert "Triton 3.5.9: the package index has no Triton 3.5.9." in shown
    assert [line.split() for line in shown.splitlines() if line.startswith("3.9.0")] == [["3.9.0", "3", "0", "1", "0", "s", "ok"]]
    assert regress.main(["3.9.0"]) == 0


XML = """<testsuites><testsuite>
<testcase classname="kit.tests.test_a" name="test_right"/>
<testcase classname="kit.tests.test_a" name="test_wrong[1]"><failure message="assert 1 == 2&#10;more">...</failure></testcase>
<testcase classname="kit.tests.test_a" name="test_setup"><error message="failed on setup">...</error></testcase>
<testcase classname="kit.tests.test_a" name="test_gpu"><skipped message="needs a GPU"/></testcase>
</testsuite></testsuites>"""


def test_outcomes_of_a_report():
    counts, failed = regress.outcomes(XML)
    assert counts == {"passed": 1, "failed": 2, "skipped": 1}
    assert failed == [("test_a::test_wrong[1]", "assert 1 == 2"), ("test_a::test_setup", "failed on setup")]


def test_table():
    counts, failed = regress.outcomes(XML)
    lines = regress.table([Result("3.6.0", {"passed": 10, "failed": 0, "skipped": 0}, seconds=61.4), Result("3.10.0", counts, failed, 5)])
    assert lines[0].split() == ["Triton", "passed", "failed", "skipped", "time"]
    assert lines[1].split() == ["3.6.0", "10", "0", "0", "61", "s", "ok"]
    assert lines[2].split() == ["3.10.0", "1", "2", "1", "5", "s", "FAILED"]
    assert lines[3:] == ["\nTriton 3.10.0: 2 failed", "  test_a::test_wrong[1]: assert 1 == 2", "  test_a::test_setup: failed on setup"]


def test_nothing_run_is_no_success():
    assert not Result("3.9.0", {"passed": 0, "failed": 0, "skipped": 5}).good
    assert not Result("3.9.0", {"passed": 5}, note="pytest ended with status 2").good


def test_the_suite_leaves_out_only_what_it_names(tmp_path):
    names = {path.name for path in regress.suite()}
    assert names | regress.LEFT_OUT == {path.name for path in regress.TESTS.glob("test_*.py")}
    assert {"test_memory.py", "test_simulator_values.py", "test_dry_run.py", "test_build.py", "test_graders.py"} <= names
    with pytest.raises(Stop, match="correct LEFT_OUT"):
        regress.suite(tmp_path)


def test_an_environment_that_does_not_start_is_made_again(tmp_path):
    assert not regress.holds(tmp_path / "absent", "3.9.0")
    assert regress.folder("3.9.0", tmp_path) != regress.folder("3.8.0", tmp_path)
