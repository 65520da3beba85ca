"""`check`, `hint`, `progress`, and what a verdict shows."""

import json
import multiprocessing
import os
import stat
import sys
import time

import pytest
import torch
import triton
import triton.language as tl

from kit import machine, practice
from kit import progress as progress_of_kit  # noqa: F401  the module or, once the kit's __init__ has it, the verb
from kit.errors import BadInput, KitError, WrongType
from kit.graders import EXERCISES, STEPS
from kit.practice import check, hint, progress
from kit.tests.banks import RIGHT, WRONG, Answer, module_of, unsolved
from kit.verdict import Verdict

store = sys.modules["kit.progress"]


@pytest.fixture(autouse=True)
def own_progress(tmp_path, monkeypatch):
    monkeypatch.setenv("KIT_PROGRESS", str(tmp_path / "progress" / "progress.json"))
    monkeypatch.setenv("HOME", str(tmp_path / "home"))
    monkeypatch.setattr(store, "_unsaved", {})
    machine.start()


def answer_of(number, name, folder):
    bank = [*WRONG, *RIGHT]
    answer = next(answer for answer in bank if (answer.step, answer.name) == (number, name))
    return getattr(module_of(answer.source, folder), STEPS[number].name)


def legal_grid(num_tokens, num_heads, num_seqs, BLOCK):
    programs = triton.cdiv(num_tokens, BLOCK) * num_heads * num_seqs
    if programs > MOST:
        raise ValueError
    return (programs,)


MOST = 2**31 - 1


def endless(num_tokens, num_heads, num_seqs, BLOCK):
    while True:
        pass


def dying(num_tokens, num_heads, num_seqs, BLOCK):
    os.abort()


def leaving(num_tokens, num_heads, num_seqs, BLOCK):
    sys.exit("bye")


outside = torch.ones(3)


def unsendable(num_tokens, num_heads, num_seqs, BLOCK):
    return (int(outside.sum()),)


@triton.jit
def some_kernel(x_ptr):
    tl.store(x_ptr, 0)


# ---- check
def test_a_right_answer_with_all_it_uses():
    verdict = check("06.1", legal_grid)
    assert verdict and verdict.state == "passed"
    assert repr(verdict).startswith("06.1: passed: 15 cases") and repr(verdict).endswith("[simulated]") and "\n" not in repr(verdict)
    assert check("6.1", legal_grid)


def test_a_kernel_passes_with_two_verdicts(tmp_path):
    verdict = check("07.2", answer_of("07.2", "the stride cast", tmp_path))
    assert verdict and (verdict.values, verdict.memory) == (True, True)
    assert "values right, memory legal" in repr(verdict)


def test_a_wrong_answer_says_what_ran_where_got_expected_cause_and_shows_it(tmp_path):
    verdict = check("06.2", answer_of("06.2", "clamped", tmp_path))
    assert not verdict and verdict.state == "wrong"
    assert (verdict.values, verdict.memory) == (False, True)
    problem = verdict.problem
    assert problem.ran == "65,536 tokens of 2 heads" and problem.where == "out at token 65,535, head 0, element 0"
    assert problem.got == "never written" and "cut at 65,535" in verdict.cause
    assert repr(verdict).startswith("06.2: wrong: 65,536 tokens") and "\n" not in repr(verdict)
    shown = verdict._repr_html_()
    assert '<img alt="out: right and wrong elements' in shown and "data:image/png;base64,iVBOR" in shown
    assert verdict.picture.count(2) == 10


def test_illegal_memory_with_right_values_is_told_as_such(tmp_path):
    verdict = check("06.3", answer_of("06.3", "no tail mask", tmp_path))
    assert (verdict.state, verdict.values, verdict.memory) == ("wrong", True, False)
    assert "Values right, memory illegal." in repr(verdict)


@pytest.mark.parametrize("number", STEPS)
def test_an_unsolved_step_says_how_long_the_answer_is(number, tmp_path):
    verdict = check(number, getattr(module_of(unsolved(number), tmp_path), STEPS[number].name))
    assert not verdict and verdict.state == "not done yet"
    assert repr(verdict) == f'{number}: not done yet: write {STEPS[number].size}; kit.hint("{number}") gives a hint'
    assert "not done yet" in verdict._repr_html_()


def test_every_picture_of_every_wrong_answer_can_be_drawn(tmp_path):
    from kit.graders import grade

    for answer in (a for a in WRONG if a.step in ("06.1", "07.1")):
        told = grade(answer.step, getattr(module_of(answer.source, tmp_path), STEPS[answer.step].name))
        verdict = practice._verdict(STEPS[answer.step], type("Outcome", (), {"kind": "ok", "value": told}))
        assert verdict.picture is None or repr(verdict.picture)


# ---- answers that would hurt the notebook
def test_an_endless_answer_ends(monkeypatch):
    monkeypatch.setattr(practice, "TIMEOUT", 2.0)
    began = time.monotonic()
    verdict = check("06.1", endless)
    assert time.monotonic() - began < 60
    assert verdict.state == "wrong" and "does not end within 2 s" in repr(verdict) and "never ends" in verdict.cause


def test_a_dying_answer_is_told():
    verdict = check("06.1", dying)
    assert verdict.state == "wrong" and "SIGABRT" in repr(verdict)


def test_an_answer_that_leaves_python_does_not_pass():
    verdict = check("06.1", leaving)
    assert verdict.state == "wrong"
    verdict._repr_html_()


def test_an_answer_that_raises_names_its_line(tmp_path):
    failing = Answer("06.1", "raises", ("return (num_tokens.blocks,)",))
    verdict = check("06.1", module_of(failing.source, tmp_path).legal_grid)
    assert "it raises AttributeError: 'int' object has no attribute 'blocks'" in repr(verdict)
    assert verdict.problem.where == "line: return (num_tokens.blocks,)"


def test_a_kernel_that_does_not_compile_is_told(tmp_path):
    failing = Answer("07.2", "no such name", ("x_ptrs = cache_ptr + block * stride_block + offs",))
    verdict = check("07.2", module_of(failing.source, tmp_path).read_blocks_kernel)
    assert verdict.state == "wrong" and "Triton cannot compile read_blocks_kernel" in repr(verdict) and "block" in repr(verdict)


# ---- bad input
@pytest.mark.parametrize(
    "exercise, answer, kind, words",
    [
        ("06.9", legal_grid, BadInput, "no exercise '06.9'. Did you mean 06.1 or 06.2 or 06.3? There are "),
        ("grid", legal_grid, BadInput, f"There are {', '.join(STEPS)}"),
        (6.1, legal_grid, WrongType, "a step's number as text"),
        ("06.1", (8, 1), WrongType, "takes the function legal_grid itself; got (8, 1) (tuple). Pass legal_grid, without calling it"),
        ("06.1", some_kernel, WrongType, "got the kernel some_kernel"),
        ("06.1", dict, WrongType, "takes the function legal_grid itself"),
        (
            "06.1",
            lambda n: (n,),
            WrongType,
            "06.1 calls legal_grid(num_tokens, num_heads, num_seqs, BLOCK); the one given takes (n)",
        ),
        ("06.1", unsendable, BadInput, "uses outside, which was made outside it"),
        ("07.2", legal_grid, WrongType, "must be decorated with @triton.jit"),
        ("07.2", 5, WrongType, "takes the kernel read_blocks_kernel itself"),
        ("07.2", some_kernel, WrongType, "the one given takes (x_ptr)"),
    ],
)
def test_what_cannot_be_checked_is_one_sentence(exercise, answer, kind, words):
    with pytest.raises(kind) as raised:
        check(exercise, answer)
    assert str(raised.value).startswith("check: ") and words in str(raised.value)
    assert not progress().passed and not store.path().exists()


def test_hint_of_an_unknown_exercise():
    with pytest.raises(BadInput, match="hint: there is no exercise '99.1'"):
        hint("99.1")


# ---- hints
def test_three_hints_each_once_then_the_third():
    given = [hint("07.2") for _ in range(4)]
    assert [h.number for h in given] == [1, 2, 3, 3]
    assert [h.text for h in given[:3]] == list(STEPS["07.2"].hints)
    assert repr(given[0]).startswith("07.2, hint 1 of 3: ") and repr(given[3]).startswith("07.2, hint 3 of 3 (the last one): ")
    assert hint("7.1").number == 1
    assert progress().steps["07.2"]["hints"] == 3


# ---- progress
def test_progress_remembers_and_a_pass_stays():
    first = next(iter(STEPS))
    said = f"0 of {len(STEPS)} steps passed; next: {first}, {STEPS[first].title} (exercises/{EXERCISES[0].stem}.ipynb)"
    assert repr(progress()) == said
    check("06.1", legal_grid)
    store.note_check("06.1", "wrong")
    store.note_check("06.2", "wrong")
    now = progress()
    assert now.passed == ["06.1"] and now.next == first and not now
    assert now.steps["06.1"]["checks"] == 2 and now.steps["06.2"]["state"] == "wrong"
    for number in STEPS:
        assert progress().next != "06.1"
        store.note_check(number, "passed")
    assert progress() and progress().next is None
    assert not progress().reset().passed


@pytest.mark.parametrize(
    "text", ["{", "[]", '{"version": 1}', '{"version": 1, "steps": []}', '{"version": "x", "steps": {}}', "[" * 9999, "\xff"]
)
def test_an_unreadable_file_is_put_aside_and_said(text):
    file = store.path()
    file.parent.mkdir(parents=True)
    file.write_bytes(text.encode("latin-1"))
    said = progress()
    assert "progress.unreadable-1.json" in repr(said) and not said.passed
    assert (file.parent / "progress.unreadable-1.json").read_bytes() == text.encode("latin-1")
    file.write_text("again")
    verdict = check("06.1", legal_grid)
    assert "progress.unreadable-2.json" in verdict.note and verdict
    assert progress().passed == ["06.1"] and not progress().note


def test_odd_entries_of_a_file_do_no_harm():
    file = store.path()
    file.parent.mkdir(parents=True)
    file.write_text(json.dumps({"version": 1, "steps": {"06.1": 5, "06.2": {"state": "done", "hints": "2"}, "99.9": {"state": "passed"}}}))
    assert not progress().passed
    assert hint("06.2").number == 1
    assert "99.9" in json.loads(file.read_text())["steps"]  # a later version's, kept


def test_a_place_that_cannot_be_written_is_said_and_hints_go_on(monkeypatch, tmp_path):
    blocked = tmp_path / "a file"
    blocked.write_text("")
    monkeypatch.setenv("KIT_PROGRESS", str(blocked / "progress.json"))
    verdict = check("06.1", legal_grid)
    assert verdict and "Progress was not saved" in repr(verdict) and "KIT_PROGRESS" in verdict.note
    assert [hint("06.1").number for _ in range(2)] == [1, 2]


@pytest.mark.skipif(os.geteuid() == 0, reason="the root user may write everywhere")
def test_a_read_only_folder_can_still_be_read():
    store.note_check("06.1", "passed")
    folder = store.path().parent
    folder.chmod(stat.S_IRUSR | stat.S_IXUSR)
    try:
        assert progress().passed == ["06.1"]
        assert "not saved" in store.note_check("06.2", "passed")
    finally:
        folder.chmod(stat.S_IRWXU)


def _note_many(number):
    for _ in range(20):
        store.note_check(number, "wrong")


def test_notebooks_that_note_at_once_lose_nothing():
    context = multiprocessing.get_context("fork")
    workers = [context.Process(target=_note_many, args=(number,)) for number in ("06.1", "06.1", "06.2", "07.1")]
    for worker in workers:
        worker.start()
    for worker in workers:
        worker.join()
    steps = progress().steps
    assert [steps[n]["checks"] for n in ("06.1", "06.2", "07.1")] == [40, 20, 20]
    assert not list(store.path().parent.glob("*.part"))


def test_the_home_folder_is_where_progress_goes_and_no_test_touches_it(monkeypatch, tmp_path):
    assert not (tmp_path / "home").exists()
    monkeypatch.delenv("KIT_PROGRESS")
    monkeypatch.delenv("XDG_DATA_HOME", raising=False)
    assert store.path() == tmp_path / "home" / ".local" / "share" / "triton-rule-by-rule" / "progress.json"
    assert not progress().passed
    assert not (tmp_path / "home").exists()  # looking makes nothing
    hint("06.1")
    assert store.path().exists()


def test_a_verdict_escapes_what_an_answer_says():
    problem = {"about": "answer", "text": "<script>", "ran": "<b>", "cause": "a `b<c` d"}
    verdict = Verdict("06.1", "wrong", "", problems=(practice.Problem(**problem),))
    shown = verdict._repr_html_()
    assert "<script>" not in shown and "<b>" not in shown.replace("<b style", "") and "<code>b&lt;c</code>" in shown


def test_progress_that_cannot_be_read_is_one_sentence(monkeypatch, tmp_path):
    folder = tmp_path / "progress.json"
    folder.mkdir()
    monkeypatch.setenv("KIT_PROGRESS", str(folder))
    with pytest.raises(KitError, match="progress: .* cannot be read"):
        progress()
