"""claim, the labels, and the ledger."""

import json
import re
import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor

import numpy as np
import pytest
import torch

from kit import evidence, ledger, machine
from kit.errors import BadInput, KitError, WrongType
from kit.evidence import WORDS, ClaimFailed, claim, label, label_html, summary

VERSIONS = {"triton": "3.7.1", "torch": "2.13.0", "python": "3.11"}


def some_machine(live=False, name="H200"):
    return machine.Machine("cuda" if live else "cpu", name, live, "cuda:90", None, 10**9, 132, VERSIONS)


@pytest.fixture(autouse=True)
def simulated_machine(monkeypatch):
    monkeypatch.setattr(machine, "_current", some_machine())
    monkeypatch.setattr(ledger, "entries_here", [])
    for name in ("KIT_LEDGER", "KIT_NOTEBOOK", "JPY_SESSION_NAME"):
        monkeypatch.delenv(name, raising=False)


class Result:
    def __init__(self, evidence, good=True):
        self.evidence, self.good = evidence, good

    def __bool__(self):
        return self.good


def test_the_four_words():
    assert WORDS == ("measured", "recorded", "compiled", "simulated") == tuple(evidence.MEANING)
    assert [label(word) for word in WORDS] == ["[measured]", "[recorded]", "[compiled]", "[simulated]"]
    assert label(Result("recorded"), "on NVIDIA H200") == "[recorded on NVIDIA H200]"
    for word in WORDS:
        assert f">{word}<" in label_html(word)
        assert evidence.MEANING[word].replace("'", "&#x27;") in label_html(word)
    for wrong in ("Measured", "live", "", None, 3, Result("guessed")):
        with pytest.raises(BadInput, match="must be one of measured, recorded, compiled, simulated"):
            label(wrong)


def test_a_claim_that_holds_shows_one_line(capsys):
    made = claim("(1, 65536) is refused.", True)
    assert capsys.readouterr().out == "✓ (1, 65536) is refused. [simulated]\n"
    assert made
    assert made.holds is True
    assert repr(made) == "✓ (1, 65536) is refused. [simulated]"
    assert "✓" in made._repr_html_() and ">simulated<" in made._repr_html_()


def test_a_claim_that_fails_raises_and_is_in_the_ledger(capsys):
    with pytest.raises(ClaimFailed, match=r'"two is three" does not hold here \(simulated, H200, Triton 3.7.1, torch 2.13.0\)') as failure:
        claim("two is three", 2 == 3)
    assert isinstance(failure.value, KitError)
    assert isinstance(failure.value, AssertionError)
    assert capsys.readouterr().out == "✗ two is three [simulated]\n"
    assert [(e["claim"], e["holds"]) for e in ledger.entries_here] == [("two is three", False)]


def test_evidence_is_the_machines_unless_given(monkeypatch):
    assert claim("a", True).evidence == "simulated"
    assert claim("b", True, evidence="compiled").evidence == "compiled"
    assert claim("c", Result("compiled"), evidence=Result("compiled")).evidence == "compiled"
    monkeypatch.setattr(machine, "_current", some_machine(live=True))
    assert claim("d", True).evidence == "measured"
    assert claim("e", True, evidence="simulated").evidence == "simulated"  # a dry run on a GPU machine


def test_words_that_would_not_be_true_are_refused():
    with pytest.raises(BadInput, match="nothing can be measured here, H200 is simulated"):
        claim("fast", True, evidence="measured")
    with pytest.raises(BadInput, match="pass the Recording itself"):
        claim("fast", True, evidence="recorded")
    with pytest.raises(BadInput, match="must be one of"):
        claim("fast", True, evidence="sure")
    assert ledger.entries_here == []


@pytest.mark.parametrize("holds", [True, np.True_, torch.tensor(True), torch.tensor([[1]]), np.array([True]), 1, Result("compiled")])
def test_one_truth_value_is_accepted(holds):
    assert claim("so", holds).holds is True


@pytest.mark.parametrize("holds", [False, np.False_, torch.tensor(False), 0, torch.tensor([0.0]), Result("compiled", good=False)])
def test_one_false_value_is_seen(holds):
    with pytest.raises(ClaimFailed):
        claim("so", holds)


@pytest.mark.parametrize(
    ("holds", "kind", "words"),
    [
        (torch.tensor([True, True]), BadInput, r"got a tensor \(2,\) bool on cpu. Reduce it with .all\(\) or .any\(\)"),
        (np.zeros((2, 2)), BadInput, r"Reduce it with .all"),
        (torch.zeros(0), BadInput, r"Reduce it"),
        (torch.zeros(1, device="meta"), BadInput, "It has no values"),
        (float("nan"), BadInput, "nan is neither"),
        (torch.tensor(float("nan")), BadInput, "nan is neither"),
        (None, WrongType, r"got None \(NoneType\). Pass a comparison"),
        ("yes", WrongType, r"got 'yes' \(str\)"),
        ([True], WrongType, r"got \[True\] \(list\)"),
        ({}, WrongType, "dict"),
        (bool, WrongType, "type"),
        (lambda: True, WrongType, "function"),
    ],
)
def test_what_is_no_truth_value(holds, kind, words):
    with pytest.raises(kind, match=words):
        claim("so", holds)
    assert ledger.entries_here == []


@pytest.mark.parametrize("text", ["", "  ", None, 3, b"x"])
def test_a_claim_needs_its_statement(text):
    with pytest.raises(WrongType, match="text must be the statement"):
        claim(text, True)


def test_html_is_escaped_and_backticks_are_code():
    made = claim("`a < b` & <script>", True)
    assert "<code>a &lt; b</code> &amp; &lt;script&gt;" in made._repr_html_()
    assert "`a < b` & <script>" in repr(made)


def test_ledger_file(tmp_path, monkeypatch):
    path = tmp_path / "ledger.jsonl"
    monkeypatch.setenv("KIT_LEDGER", str(path))
    monkeypatch.setenv("KIT_NOTEBOOK", "06_grid_limits")
    claim("a", True)
    with pytest.raises(ClaimFailed):
        claim("é\nb", False, evidence="compiled")
    first, second = map(json.loads, path.read_text(encoding="utf-8").splitlines())
    assert first == {
        "claim": "a",
        "notebook": "06_grid_limits",
        "holds": True,
        "elsewhere": None,
        "evidence": "simulated",
        "recording": None,
        "machine": "H200",
        "versions": VERSIONS,
    }
    assert (second["claim"], second["holds"], second["evidence"]) == ("é\nb", False, "compiled")
    assert ledger.read_ledger(path) == ledger.entries_here


def test_ledger_lines_of_many_writers_do_not_mix(tmp_path, monkeypatch, capsys):
    monkeypatch.setenv("KIT_LEDGER", str(tmp_path / "ledger.jsonl"))
    with ThreadPoolExecutor(8) as pool:
        list(pool.map(lambda i: claim(f"claim {i} " + "x" * 5000, True), range(80)))
    entries = ledger.read_ledger(tmp_path / "ledger.jsonl")
    assert sorted(int(e["claim"].split()[1]) for e in entries) == list(range(80))


def test_a_ledger_that_cannot_be_written(tmp_path, monkeypatch):
    monkeypatch.setenv("KIT_LEDGER", str(tmp_path / "no" / "ledger.jsonl"))
    with pytest.raises(KitError, match=r"the ledger .*no/ledger.jsonl \(KIT_LEDGER\) cannot be written: No such file"):
        claim("a", True)


def test_notebook_name(monkeypatch):
    monkeypatch.setenv("JPY_SESSION_NAME", "/home/me/notebooks/07_int64_offsets.ipynb-jvsc-1234")
    assert ledger.notebook() == "07_int64_offsets"
    monkeypatch.setenv("KIT_NOTEBOOK", "06_grid_limits.ipynb")
    assert ledger.notebook() == "06_grid_limits"


def test_summary_counts_by_word_and_by_recording():
    assert not summary()
    assert repr(summary()) == "0 claims checked here."
    claim("a", True)
    claim("a", True)  # the cell is run again
    claim("b", True, evidence="compiled")
    recording = Result("recorded")
    recording.detail = "on NVIDIA H200, 2026-11-30"
    claim("c", True, evidence=recording)
    assert summary()
    assert repr(summary()) == ("2 claims checked here (1 compiled, 1 simulated), 1 rest on recordings (NVIDIA H200, 2026-11-30).")
    with pytest.raises(ClaimFailed):
        claim("b", False)
    assert not summary()
    assert repr(summary()).endswith(", 1 DO NOT HOLD.")
    claim("b", True)  # mended and run again
    assert summary()


def test_command_line(tmp_path, monkeypatch):
    path = tmp_path / "ledger.jsonl"
    monkeypatch.setenv("KIT_LEDGER", str(path))
    monkeypatch.setenv("KIT_NOTEBOOK", "06_grid_limits")
    claim("a", True)
    claim("b", True, evidence="compiled")
    run = subprocess.run([sys.executable, "-m", "kit.evidence", str(path)], capture_output=True, text=True, check=False)
    assert run.returncode == 0, run.stderr
    header, line, total = run.stdout.splitlines()
    assert header.split() == ["machine", "Triton", "torch", "notebook", *WORDS, "failed"]
    assert line.split() == ["H200", "3.7.1", "2.13.0", "06_grid_limits", "0", "0", "1", "1", "0"]
    assert total.split() == ["all", "0", "0", "1", "1", "0"]


def test_report_of_a_failure_and_of_nothing(tmp_path, monkeypatch, capsys):
    path = tmp_path / "ledger.jsonl"
    monkeypatch.setenv("KIT_LEDGER", str(path))
    with pytest.raises(ClaimFailed):
        claim("a", False)
    claim("a", True)  # in one run, a later success does not mend a failure
    assert ledger.main([str(path)]) == 1
    assert "1\n✗ " in capsys.readouterr().out
    (tmp_path / "empty").write_text("")
    assert ledger.main([str(tmp_path / "empty")]) == 1
    assert "nothing was checked" in capsys.readouterr().err
    assert ledger.main([str(tmp_path / "none")]) == 2
    assert "cannot be read: No such file" in capsys.readouterr().err
    path.write_text('{"claim": "x"}\n')
    assert ledger.main([str(path)]) == 2
    assert f"line 1 of {path} is not a claim" in capsys.readouterr().err
    assert ledger.main([]) == 2


NOTEBOOK_CELLS = """
from IPython.core.interactiveshell import InteractiveShell
from kit import machine
versions = {"triton": "3.7.1", "torch": "2.13.0"}
machine._current = machine.Machine("cpu", "H200", False, "cuda:90", None, 10**9, 132, versions)
shell = InteractiveShell.instance()
cells = ["from kit.evidence import claim", "a = claim('one', True)", "claim('two', True)", "a", "claim('three', 1 > 2)"]
for cell in cells:
    shell.run_cell(cell, store_history=True)
"""


def test_in_ipython_each_claim_shows_once_and_a_failure_hides_the_kit(tmp_path):
    run = subprocess.run([sys.executable, "-c", NOTEBOOK_CELLS], capture_output=True, text=True, check=True)
    lines = run.stdout.splitlines()
    shown = [re.sub(r"^(Out\[\d\]: )+", "", line) for line in lines if "[simulated]" in line]  # a terminal has prompts
    assert shown == ["✓ one [simulated]", "✓ two [simulated]", "✓ one [simulated]", "✗ three [simulated]"]
    assert lines[-2].strip() == "line 1: claim('three', 1 > 2)"
    assert lines[-1].startswith('ClaimFailed: claim: "three" does not hold here (simulated, H200')
    assert not any("evidence.py" in line for line in lines)
