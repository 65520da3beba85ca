"""Progress: its page, a file that no crash leaves broken, resets that keep what was there, exports and the table of a workshop."""

import csv
import json
import multiprocessing
import os
import re
import signal
import sys
from html.parser import HTMLParser

import pytest

from kit import progress_file, workshop
from kit.errors import BadInput, KitError, WrongType
from kit.graders import EXERCISES, STEPS
from kit.practice import hint, progress
from kit.progress_page import EXERCISES as FOLDER

store = sys.modules["kit.progress"]  # kit.progress is the verb


@pytest.fixture(autouse=True)
def own_progress(tmp_path, monkeypatch):
    monkeypatch.setenv("KIT_PROGRESS", str(tmp_path / "own" / "progress.json"))
    monkeypatch.setattr(store, "_unsaved", {})


def files():
    return sorted(file.name for file in store.path().parent.iterdir() if not file.name.endswith(".lock"))


# ---- the page
class Tags(HTMLParser):
    """The tags of a page and their attributes; an unbalanced one fails."""

    def __init__(self, text):
        super().__init__()
        self.open, self.seen = [], []
        self.feed(text)
        assert not self.open

    def handle_starttag(self, tag, attrs):
        self.open.append(tag)
        self.seen.append((tag, dict(attrs)))

    def handle_endtag(self, tag):
        assert self.open.pop() == tag

    def of(self, name):
        return [attrs for tag, attrs in self.seen if tag == name]


def test_the_page_says_what_is_done_the_hints_and_what_is_next(monkeypatch):
    monkeypatch.chdir(FOLDER.parent / "notebooks")
    store.note_check("06.1", "passed")
    store.note_check("06.2", "wrong")
    hint("06.2"), hint("06.2")
    now = progress()
    page, tags = now._repr_html_(), Tags(now._repr_html_())
    assert f"1 of {len(STEPS)} steps passed, 2 hints." in page and "with 2 hints; next: " in repr(now) and "\n" not in repr(now)
    assert "✗ wrong" in page and "✓ passed" in page and "06_grid_limits</a>: 1 of 3" in page
    links = [attrs["href"] for attrs in tags.of("a")]
    assert links[0] == f"../exercises/{STEPS[now.next].number[:2]}{now.steps[now.next]['notebook'][2:]}.ipynb"
    assert len(links) == 1 + len(EXERCISES)
    current = [attrs for attrs in tags.of("tr") if attrs.get("aria-current")]
    assert len(current) == 1 and tags.of("caption")
    assert {attrs.get("scope") for attrs in tags.of("th")} == {"col", "row", "rowgroup"}
    assert not re.search(r"<script|https?:|src=", page)


def test_the_page_as_text():
    store.note_check("06.1", "passed")
    hint("06.2")
    now = progress()
    lines = now.page.splitlines()
    assert lines[0] == repr(now)
    assert any(line.startswith("  ✓ 06.1  ") and line.endswith("passed") for line in lines)
    assert any(line.startswith("  · 06.2  ") and line.endswith("not done yet  1 hint") for line in lines)
    assert sum("<- next" in line for line in lines) == 1 and f"exercises/{EXERCISES[0].stem}.ipynb" in lines


def test_all_passed():
    for number in STEPS:
        store.note_check(number, "passed")
    now = progress()
    assert now and repr(now) == f"{len(STEPS)} of {len(STEPS)} steps passed" and "nothing is left" in now._repr_html_()
    assert "aria-current" not in now._repr_html_() and "next" not in now.page


def test_a_page_without_the_exercises_has_no_dead_links(monkeypatch, tmp_path):
    monkeypatch.setattr("kit.progress_page.EXERCISES", tmp_path)
    assert "<a " not in progress()._repr_html_() and f"exercises/{EXERCISES[0].stem}.ipynb" in progress()._repr_html_()


# ---- a writer that is killed
def _write_and_die(n, steps):
    """Write the file, and be killed at the n-th call of the system on the way; where there is none, tell how many there are."""
    calls = 0

    def dying(fn):
        def call(*args, **kwargs):
            nonlocal calls
            calls += 1
            if calls == n:
                os.kill(os.getpid(), signal.SIGKILL)
            return fn(*args, **kwargs)

        return call

    with progress_file.locked() as held:
        held["06.1"] = {"state": "passed", "checks": 2, "hints": 0}
        for name in ("open", "fsync", "link", "replace", "close"):
            setattr(os, name, dying(getattr(os, name)))
        progress_file.open = dying(open)
    steps.value = calls


def dies_at(n):
    """(exit code, calls of the system) of a writer that is killed at its n-th."""
    context = multiprocessing.get_context("fork")
    steps = context.Value("i", 0)
    writer = context.Process(target=_write_and_die, args=(n, steps))
    writer.start()
    writer.join(60)
    return writer.exitcode, steps.value


def test_a_writer_killed_at_any_step_leaves_the_old_file_or_the_new_one():
    store.note_check("06.1", "wrong")
    old = store.path().read_text()
    code, steps = dies_at(0)
    new = store.path().read_text()
    assert code == 0 and steps >= 5 and old != new
    found = set()
    for n in range(1, steps + 1):
        store.path().write_text(old)
        assert dies_at(n)[0] == -signal.SIGKILL
        left = store.path().read_text()
        assert left in (old, new)
        found.add(left)
        now = progress()
        assert not now.note and now.steps["06.1"]["state"] == ("passed" if left == new else "wrong")
    assert found == {old, new}
    store.note_check("06.1", "wrong")
    assert not [name for name in files() if name.endswith(".part")]  # what they left is cleared away


def test_the_content_is_on_the_disk_before_it_takes_the_name(monkeypatch):
    order = []

    def noting(name, real):
        return lambda *given: (order.append(name), real(*given))[1]

    for name in ("fsync", "link", "replace"):
        monkeypatch.setattr(os, name, noting(name, getattr(os, name)))
    store.note_check("06.1", "wrong")
    store.note_check("06.1", "wrong")
    assert order == ["fsync", "replace", "fsync", "fsync", "link", "replace", "replace", "fsync"]


def _note(number):
    for _ in range(15):
        store.note_check(number, "wrong")


def test_eight_writers_at_once_lose_nothing():
    context = multiprocessing.get_context("fork")
    numbers = [*STEPS][:4] * 2
    workers = [context.Process(target=_note, args=(number,)) for number in numbers]
    for worker in workers:
        worker.start()
    for worker in workers:
        worker.join(60)
    assert [worker.exitcode for worker in workers] == [0] * 8
    assert [progress().steps[number]["checks"] for number in numbers[:4]] == [30] * 4
    assert files() == ["progress.json", "progress.previous.json"]


# ---- a file that is broken, or newer
def test_a_broken_file_is_kept_and_the_copy_before_it_takes_its_place():
    store.note_check("06.1", "passed")
    store.note_check("06.2", "passed")
    whole = store.path().read_bytes()
    store.path().write_bytes(whole[: len(whole) // 2])
    now = progress()
    assert now.passed == ["06.1"]
    assert "kept as progress.unreadable-1.json; progress.previous.json took its place" in repr(now)
    assert (store.path().parent / "progress.unreadable-1.json").read_bytes() == whole[: len(whole) // 2]
    assert progress().passed == ["06.1"] and not progress().note


def test_where_the_copy_before_is_broken_too_a_new_file_begins():
    store.note_check("06.1", "passed")
    store.path().write_text("{")
    progress_file.previous(store.path()).write_text('{"version": 1')
    assert "a new one begins" in store.note_check("06.2", "passed")
    assert progress().passed == ["06.2"]


def test_a_newer_file_is_left_alone_and_hints_go_on():
    file = store.path()
    file.parent.mkdir(parents=True)
    newer = json.dumps({"version": 2, "steps": {"06.1": {"state": "passed"}}, "more": 1})
    file.write_text(newer)
    assert "newer version of the kit" in repr(progress())
    assert "was not saved" in store.note_check("06.1", "passed")
    assert [hint("06.2").number for _ in range(2)] == [1, 2]
    assert file.read_text() == newer and files() == ["progress.json"]
    with pytest.raises(KitError, match="newer version"):
        progress().reset("06.1")
    assert "kept as" in progress().reset().note
    assert json.loads(file.read_text())["steps"] == {}
    assert newer in [one.read_text() for one in file.parent.glob("progress.before-reset-*.json")]


# ---- reset
def test_reset_forgets_a_step_a_lesson_or_all_and_keeps_the_file():
    for number in ("06.1", "06.2", "07.1", "07.2"):
        store.note_check(number, "passed")
    before = store.path().read_bytes()
    now = progress().reset("6.1")
    assert now.passed == ["06.2", "07.1", "07.2"]
    kept = store.path().parent / "progress.before-reset-1.json"
    assert f"What was there is kept as {kept}." in repr(now) and kept.read_bytes() == before
    assert progress().reset("07").passed == ["06.2"]
    assert not progress().reset().passed
    assert files() == ["progress.before-reset-1.json", "progress.before-reset-2.json", "progress.before-reset-3.json", "progress.json"]
    os.replace(kept, store.path())
    assert len(progress().passed) == 4


def test_reset_of_nothing_makes_no_file():
    assert progress().reset().note == "" and not store.path().parent.exists()


def test_reset_forgets_hints_that_could_not_be_saved(monkeypatch, tmp_path):
    (tmp_path / "a file").write_text("")
    monkeypatch.setenv("KIT_PROGRESS", str(tmp_path / "a file" / "progress.json"))
    assert hint("06.1").number == 1
    progress().reset("06.1")
    assert hint("06.1").number == 1


@pytest.mark.parametrize("which, kind", [("06.9", BadInput), ("", BadInput), ("1", None), (6.1, WrongType)])
def test_reset_of_what_there_is_not(which, kind):
    store.note_check("06.1", "passed")
    if kind is None:
        assert progress().reset(which).passed == ["06.1"]
        return
    with pytest.raises(kind, match="^progress: reset"):
        progress().reset(which)
    assert progress().passed == ["06.1"] and files() == ["progress.json"]


# ---- exports and a workshop
@pytest.fixture
def exports(tmp_path):
    """Files of three learners: ada has passed one and is stuck, bob has a hint, =cmd() nothing."""
    folder = tmp_path / "exports"
    store.note_check("06.1", "passed")
    store.note_check("06.2", "wrong")
    progress().export(folder / "ada.json")
    progress().reset()
    hint("06.1")
    progress().export(folder / "two.csv", learner="bob")
    progress().reset()
    progress().export(folder / "three.csv", learner="=cmd()")
    return folder


def test_an_export_holds_each_step_once(exports):
    held = json.loads((exports / "ada.json").read_text())
    assert held["learner"] == "ada" and list(held["steps"]) == list(STEPS)
    assert held["steps"]["06.1"]["state"] == "passed" and held["steps"]["06.2"]["checks"] == 1
    rows = list(csv.DictReader((exports / "two.csv").open(newline="")))
    assert [row["step"] for row in rows] == list(STEPS) and {row["learner"] for row in rows} == {"bob"}
    assert "\n=cmd" not in (exports / "three.csv").read_text()


def test_merge_makes_one_table(exports):
    table = progress().merge(exports)
    assert list(table.learners) == ["=cmd()", "ada", "bob"] and len(table) == 3 and not table
    assert table.passed["06.1"] == 1 and table.stuck == {"06.2": 1}
    assert repr(table).startswith(f"3 learners, 1 of {3 * len(STEPS)} steps passed; most are stuck at 06.2, ")
    assert len(table.rows()) == 3 * len(STEPS)
    row = next(row for row in table.rows() if (row["learner"], row["step"]) == ("bob", "06.1"))
    assert row["hints"] == 1 and row["state"] == "not done yet" and row["title"] == STEPS["06.1"].title and row["exported"]
    tags = Tags(table._repr_html_())
    assert len(tags.of("tr")) == 5 and {"aria-label": "not done yet, 1 hint"} in tags.of("td")
    assert [line.split()[0] for line in table.page.splitlines()[3:]] == ["=cmd()", "ada", "bob", "passed"]


@pytest.mark.parametrize("name", ["table.csv", "table.json"])
def test_a_merged_table_can_be_written_and_lies_beside_its_sources(exports, name):
    table = progress().merge(exports)
    written = table.export(exports / name)
    assert progress().merge(written).rows() == table.rows()
    assert progress().merge(exports).rows() == table.rows()


def test_all_who_passed_all_make_it_true(tmp_path):
    for number in STEPS:
        store.note_check(number, "passed")
    assert progress().merge(progress().export(tmp_path / "a.json"))
    assert progress().merge(store.path())  # the file itself will do


def test_two_of_one_name_and_files_that_cannot_be_read_are_said(exports):
    store.note_check("07.1", "passed")
    progress().export(exports / "again.json", learner="ada")
    (exports / "x.json").write_text("{")
    (exports / "y.csv").write_text("a,b\n1,2\n")
    (exports / "z.json").write_text(json.dumps({"kind": workshop.KIND, "version": 99}))
    table = progress().merge(exports)
    assert len(table) == 4 and sum(name.startswith("ada (") for name in table.learners) == 1
    assert {file.rsplit("/", 1)[1]: why for file, why in table.unread.items()} == {
        "x.json": "no export",
        "y.csv": "no export",
        "z.json": "of a newer version of the kit",
    }
    assert "not read: " in repr(table)


def test_an_export_takes_no_other_file_s_place(tmp_path):
    other = tmp_path / "data.csv"
    other.write_text("a,b\n1,2\n")
    with pytest.raises(BadInput, match="is no export, so it is left as it is"):
        progress().export(other)
    assert other.read_text() == "a,b\n1,2\n"
    own = progress().export(tmp_path / "own.csv")
    assert progress().export(own) == own and progress().export(tmp_path / "own.json") == tmp_path / "own.json"
    assert progress().export(tmp_path / "own.json")


@pytest.mark.parametrize(
    "call, words",
    [
        (lambda p: p.export("own.txt"), "must end in .json or .csv; got 'own.txt'"),
        (lambda p: p.export(5), "path must be a file's name; got 5"),
        (lambda p: p.export("own.json", learner=" "), "learner must be a name"),
        (lambda p: p.merge(), "give files or folders"),
        (lambda p: p.merge("nowhere"), "there is no nowhere"),
        (lambda p: p.merge(FOLDER), "no export among"),
    ],
)
def test_bad_input_is_one_sentence(call, words):
    with pytest.raises(BadInput, match=words) as raised:
        call(progress())
    assert str(raised.value).startswith("progress: ")


def test_a_place_that_cannot_be_written(tmp_path):
    (tmp_path / "a file").write_text("")
    with pytest.raises(KitError, match="cannot be written"):
        progress().export(tmp_path / "a file" / "own.json")


def test_the_command(exports, capsys):
    workshop.main([str(exports), "--out", str(exports / "table.csv")])
    said = capsys.readouterr().out
    assert "3 learners" in said and "written: " in said and (exports / "table.csv").exists()
    with pytest.raises(SystemExit, match="there is no nowhere"):
        workshop.main(["nowhere"])
