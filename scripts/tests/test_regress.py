"""`make regress`: arguments, overlays, what becomes of a claim, the acts of the adapters, and the forms of the result."""

import json
import subprocess
import sys
import xml.etree.ElementTree as ElementTree

import pytest
import regress
import regress_overlays
import regress_probes
import regress_table
from nbformat import write
from nbformat.v4 import new_code_cell, new_notebook, new_output
from project import ROOT, written_notebooks
from regress_claims import BROKEN, CHANGED, DIFFERS, HOLDS, NOT_APPLICABLE, NOT_REACHED, RECORDED, applies, expected, outcome
from regress_overlays import Stop


# ---- arguments and overlays
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
    assert regress_overlays.versions_of(words) == expected


@pytest.mark.parametrize("word", ["3", "3.9", "newest", "3.9.0; rm -rf .", "==3.9.0", "3.9.0 latest"])
def test_what_is_no_version(word):
    with pytest.raises(Stop, match="is no Triton version: write all three numbers"):
        regress_overlays.versions_of([word])


@pytest.mark.parametrize("word", ["", "  "])
def test_an_empty_list(word):
    with pytest.raises(Stop, match="TRITON is empty"):
        regress_overlays.versions_of([word])


def test_a_bad_argument_ends_with_a_sentence():
    done = subprocess.run([sys.executable, "scripts/regress.py", "3.x"], cwd=ROOT, capture_output=True, text=True)
    assert done.returncode == 1
    assert done.stderr == "regress: '3.x' is no Triton version: write all three numbers, as in make regress TRITON=\"3.6.0 3.9.0\".\n"


def test_the_versions_are_those_of_the_kit():
    from kit.versions import TESTED

    assert regress_overlays.tested() == list(TESTED)


def test_make_passes_the_versions_on():
    def recipe(*arguments):
        return subprocess.run(
            ["make", "-n", "--no-print-directory", "regress", "PYTHON=python3", *arguments], cwd=ROOT, capture_output=True, text=True
        ).stdout

    assert recipe("TRITON=3.6.0 3.9.0").split("regress.py")[1].strip() == '"3.6.0 3.9.0"'
    assert recipe("TRITON=").split("regress.py")[1].strip() == '""'
    assert recipe("TRITON=3.9.0", "KEEP=1").split("regress.py")[1].strip() == '"3.9.0" --keep'
    assert recipe().split("regress.py")[1].strip() == ""


def test_what_pip_could_not_do():
    why = regress_overlays.why
    pip = "ERROR: Could not find a version that satisfies the requirement triton==9.9.9 (from versions: 3.8.0, 3.9.0)\nERROR: No matching"
    assert "no Triton 9.9.9 for Python" in why(pip, "9.9.9") and "it has 3.8.0, 3.9.0." in why(pip, "9.9.9")
    offline = (
        "WARNING: Retrying: NewConnectionError\nERROR: Could not find a version (from versions: none)\nERROR: No matching distribution"
    )
    assert "check the network" in why(offline, "3.9.0")
    assert "The disk became full" in why("OSError: [Errno 28] No space left on device", "3.9.0")


def test_the_version_that_is_here_needs_no_overlay(monkeypatch, tmp_path):
    started = []
    monkeypatch.setattr(regress_overlays, "holds", lambda overlay, version: started.append(overlay) or version == "3.7.1")
    assert regress_overlays.prepare("3.7.1") is None and started == [None]
    with pytest.raises(Stop, match="does not start with Triton 3.8.0"):
        regress_overlays.prepare("3.8.0", given=tmp_path)
    assert regress_overlays.folder("3.9.0", tmp_path) != regress_overlays.folder("3.8.0", tmp_path)


# ---- what becomes of a claim
PLACE = {"file": "notebooks/06_x.ipynb", "cell": 3, "cell_id": "c"}


def claim(text, **more):
    return PLACE | {"claim": text} | more


def entry(text, holds=True, evidence="simulated", **more):
    return claim(text) | {"holds": holds, "evidence": evidence} | more


@pytest.mark.parametrize(
    "wanted, entries, cells, expected",
    [
        ("a", [entry("a")], {}, (HOLDS, "")),
        ("a", [entry("a", evidence="recorded", recording="on H200")], {}, (RECORDED, "on H200")),
        ("a", [entry("a", False)], {}, (BROKEN, "it does not hold")),
        ("a", [entry("a", False), entry("a")], {}, (BROKEN, "it does not hold")),  # once is enough
        ("a", [entry("a", False, elsewhere="H200")], {}, (DIFFERS, "it held on H200")),
        ("takes 664 bytes", [entry("takes 480 bytes")], {}, (CHANGED, "takes 480 bytes")),
        ("takes 664 bytes", [entry("takes 480 bytes", False)], {}, (BROKEN, "it does not hold: takes 480 bytes")),
        ("a", [], {(PLACE["file"], 3): "ValueError: no"}, (NOT_REACHED, "ValueError: no")),
        ("a", [], {(PLACE["file"], 2): "ValueError: no"}, (NOT_REACHED, "after cell 2 failed: ValueError: no")),
        ("a", [], {(PLACE["file"], 4): "ValueError: no"}, (NOT_REACHED, "the cell ran, and did not make it")),
        ("a is refused, since Triton 3.9", [], {}, (NOT_APPLICABLE, "")),
        ("a is refused, since Triton 3.7", [], {}, (NOT_REACHED, "the cell ran, and did not make it")),
    ],
)
def test_what_became_of_a_claim_on_triton_3_8(wanted, entries, cells, expected):
    assert outcome([claim(wanted)], entries, cells, "3.8.0") == [(claim(wanted), expected)]


def test_a_claim_that_only_this_version_makes_is_told_too():
    found = outcome([claim("a")], [entry("a"), entry("b")], {}, "3.9.0")
    assert found == [(claim("a"), (HOLDS, "")), (claim("b"), (HOLDS, ""))]


def test_which_versions_a_claim_is_about():
    assert [applies("so since Triton 3.8", v) for v in ("3.7.1", "3.8.0", "3.10.0")] == [False, True, True]
    assert [applies("so until Triton 3.9", v) for v in ("3.8.0", "3.9.0")] == [True, False]
    assert applies("refused from Triton 3.9 on", "3.6.0")  # says something of both sides


def test_the_claims_that_a_stored_notebook_shows(tmp_path):
    (tmp_path / "notebooks").mkdir()
    path = tmp_path / "notebooks" / "06_x.ipynb"
    shown = "✓ a [b] holds [simulated]\n✓ c [recorded on NVIDIA H200, 2026-11-30]"
    outputs = [new_output("display_data", data={"text/plain": shown}), new_output("stream", text="✓ no claim\n")]
    write(new_notebook(cells=[new_code_cell("1"), new_code_cell("2", id="two", outputs=outputs)]), path)
    assert [(one["file"], one["cell"], one["cell_id"], one["claim"]) for one in expected(path)] == [
        ("notebooks/06_x.ipynb", 2, "two", text) for text in ("a [b] holds", "c")
    ]


def test_every_lesson_shows_claims():
    assert [path.name for path in written_notebooks() if path.parent.name == "notebooks" and not expected(path)] == []


# ---- the acts
def test_every_act_is_of_a_module_of_the_kit():
    assert [name for name in regress_probes.PROBES if not (ROOT / name).is_file()] == []


def test_an_act_that_fails_or_dies_is_told_and_the_others_go_on(tmp_path, monkeypatch):
    fake = tmp_path / "scripts" / "regress_probes.py"
    fake.parent.mkdir()
    fake.write_text(
        "import sys, os, json\n"
        "for name in sys.argv[1:] or ['kit/machine.py', 'kit/build.py', 'kit/watch.py']:\n"
        "    print(json.dumps({'begins': name}), flush=True)\n"
        "    if name == 'kit/build.py': os.abort()\n"
        "    print(json.dumps({'module': name, 'why': 'ImportError: gone' if 'watch' in name else ''}), flush=True)\n"
    )
    monkeypatch.setattr(regress, "ROOT", tmp_path)
    monkeypatch.setattr(regress_probes, "PROBES", dict.fromkeys(["kit/machine.py", "kit/build.py", "kit/watch.py"]))
    found = regress.probe({})
    assert found == {"kit/machine.py": "", "kit/build.py": "its process ended with status -6", "kit/watch.py": "ImportError: gone"}


def test_a_triton_without_a_private_name_names_the_adapter(tmp_path):
    # What a new Triton may do: a private function that one adapter replaces is gone.
    (tmp_path / "sitecustomize.py").write_text("from triton.runtime import jit\ndel jit.serialize_specialization_data\n")
    env = regress.environment(KIT_SIMULATE="1", KIT_LEDGER="", PYTHONPATH=f"{tmp_path}:{ROOT}:{ROOT / 'scripts'}")
    found = regress.probe(env, ["kit/simulator/driver.py", "kit/watch.py"])
    assert found["kit/simulator/driver.py"] == "" and "serialize_specialization_data" in found["kit/watch.py"], found


# ---- the result
@pytest.fixture
def result():
    column = regress.column_of("3.9.0", "simulated") | {"adapters": {"kit/watch.py": "", "kit/build.py": "KeyError: 'x'"}, "seconds": 61.4}
    found = [(claim("a"), (HOLDS, "")), (claim("b | c"), (BROKEN, "it does not hold")), (claim("d"), (CHANGED, "e"))]
    return regress_table.gather([(column, found)], [PLACE["file"]])


def test_the_summary_counts_and_what_is_broken_names_notebook_and_cell(result):
    text = regress_table.markdown(result)
    assert "| 3.9.0 simulated | 1 | 0 | 1 | 1 | 0 | 0 | 0 | 1 of 2 | 61 s |" in text
    assert '- notebooks/06_x.ipynb, code cell 3 ("c"): b | c: broken (it does not hold)' in text
    assert "- adapter `kit/build.py` does not work: KeyError: 'x'" in text and "kit/watch.py" not in text
    assert "| 3 | b \\| c | **broken** |" in text and "| 3 | d | changed text |" in text


def test_json_comes_back_with_a_claim_a_line(result):
    text = regress_table.to_json(result)
    assert json.loads(text) == result and sum('"claim": ' in line for line in text.splitlines()) == 3


def test_junit(result):
    (suite,) = ElementTree.fromstring(regress_table.junit(result))
    assert (suite.get("name"), suite.get("tests"), suite.get("failures")) == ("Triton 3.9.0 simulated", "5", "2")
    failing = [(case.get("classname"), case.get("name")) for case in suite if case.find("failure") is not None]
    assert failing == [("adapters", "kit/build.py"), ("notebooks/06_x.ipynb", "cell 3 (c): b | c")]


def test_what_changed_from_another_result(result):
    old = json.loads(regress_table.to_json(result))
    assert regress_table.changes(old, result) == []
    old["claims"][1]["states"]["3.9.0 simulated"] = [HOLDS]
    old["claims"][2]["claim"] = "gone by now"
    old["columns"][0]["adapters"]["kit/build.py"] = ""
    told = "\n".join(regress_table.changes(old, result))
    assert "kit/build.py on 3.9.0 simulated: no longer works: KeyError" in told
    assert "b | c: holds → broken on 3.9.0 simulated" in told and ": new: d" in told and ": gone: gone by now" in told
    assert len(told.splitlines()) == 4
    old["files"] = ["notebooks/07_another.ipynb"]  # a run of other notebooks says nothing of these claims
    assert [one.split(" on ")[0] for one in regress_table.changes(old, result)] == ["kit/build.py"]


def test_good_is_good_and_each_kind_of_trouble_is_bad(result):
    good = regress_table.gather(
        [(regress.column_of("3.9.0", "simulated") | {"adapters": {"kit/watch.py": ""}}, [(claim("a"), (HOLDS, ""))])]
    )
    assert regress_table.bad(result) and not regress_table.bad(good)
    for trouble in ({"note": "no"}, {"adapters": {"kit/watch.py": "no"}}, {"cells_failed": [{"file": "x", "cell": 1, "why": "no"}]}):
        assert regress_table.bad({"columns": [good["columns"][0] | trouble], "claims": good["claims"]})
    for state in (BROKEN, NOT_REACHED):
        assert regress_table.bad({"columns": good["columns"], "claims": [claim("a", states={"3.9.0 simulated": [state]})]})


def test_a_version_that_cannot_be_installed_fails_and_the_others_run(monkeypatch, capsys, tmp_path):
    def prepare(version, given):
        if version == "3.5.9":
            raise Stop("the package index has no Triton 3.5.9.")

    def measure(version, overlay, live, folders):
        return regress.column_of(version, "on the GPU" if live else "simulated") | {"adapters": {"kit/watch.py": ""}}, [
            (claim("a"), (HOLDS, ""))
        ]

    monkeypatch.setattr(regress, "prepare", prepare)
    monkeypatch.setattr(regress, "measure", measure)
    monkeypatch.setattr(regress, "has_gpu", lambda: True)
    monkeypatch.setattr(regress, "CACHE", tmp_path)
    monkeypatch.setattr(regress, "KEPT", tmp_path / "kept.json")
    assert regress.main(["3.5.9", "3.9.0", "--keep"]) == 1
    shown = capsys.readouterr().out
    assert "the package index has no Triton 3.5.9." in shown and "| 3.9.0 on the GPU | 1 |" in shown
    assert regress.main(["3.9.0"]) == 0
    assert "## Changed from the last run here\n\nNothing." in (tmp_path / "last.md").read_text()
    assert json.loads((tmp_path / "kept.json").read_text())["columns"][0]["note"]


def test_the_notebooks_of_a_run_are_read_cell_by_cell(tmp_path):
    (tmp_path / "notebooks").mkdir()
    path = tmp_path / "notebooks" / "06_x.ipynb"
    say = "import json, os\ndef claim(text, holds):\n    entry = dict(claim=text, holds=holds, evidence='simulated')\n"
    say += "    print(json.dumps(entry), file=open(os.environ['KIT_LEDGER'], 'a'))\n    assert holds, text"
    sources = [(say, ""), ("claim('a', True)", ""), ("claim('b', False)", ""), ("print('new')", "old\n"), ("claim('c', True)", "")]
    sources += [("print('✗ 06.1: wrong: too many')", "✓ 06.1: passed\n")]
    cells = [
        new_code_cell(source, execution_count=n, outputs=[new_output("stream", text=text)] if text else [])
        for n, (source, text) in enumerate(sources, 1)
    ]
    write(new_notebook(cells=cells), path)
    env = regress.environment(KIT_LEDGER="", KIT_SIMULATE="1", PYTEST_ADDOPTS="-p nbval_sound")  # conftest.py is not above this folder
    env["PYTHONPATH"] = str(ROOT / "scripts")
    entries, failed, differ, note = regress.run_notebooks(env, tmp_path, False, [path])
    assert [(e["cell"], e["claim"], e["holds"]) for e in entries] == [(2, "a", True), (3, "b", False), (5, "c", True)] and not note
    verdict = "stored: '✓ 06.1: passed', now: '✗ 06.1: wrong: too many'"
    assert failed == {("notebooks/06_x.ipynb", 3): "AssertionError: b", ("notebooks/06_x.ipynb", 6): verdict}
    assert [(cell["cell"], cell["why"]) for cell in differ] == [(4, "stored: 'old', now: 'new'")]
