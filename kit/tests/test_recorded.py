"""recorded: measure, save, replay, and go stale."""

import errno
import json
import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor

import pytest
import torch
import triton
import triton.language as tl

from kit import ledger, machine, recording, recording_file
from kit.errors import BadInput, KitError, WrongType
from kit.evidence import ClaimFailed, claim
from kit.recording import recorded

FACTOR = 3
VERSIONS = {"triton": "3.7.1", "torch": "2.13.0", "python": "3.11"}


def some_machine(live=False, name="H200"):
    return machine.Machine("cuda" if live else "cpu", name, live, "cuda:90", None, 10**9, 132, VERSIONS)


def helper(x):
    return x * FACTOR


@triton.jit
def touched_kernel(x_ptr):
    tl.store(x_ptr, 1)


@recorded
def doubling(*, n, times=2):
    """An experiment."""
    _ = touched_kernel
    return {"n": helper(n) * times, "pairs": [(1, 2.5)]}


@pytest.fixture
def here(tmp_path, monkeypatch):
    """A recordings folder, and the switch between a GPU machine and one without."""
    monkeypatch.setenv("KIT_RECORDINGS", str(tmp_path / "recordings"))
    monkeypatch.setattr(ledger, "entries_here", [])
    monkeypatch.setattr(recording, "_driver", lambda: "580.95")
    monkeypatch.delenv("KIT_LEDGER", raising=False)

    class Here:
        folder = tmp_path / "recordings"
        file = folder / "doubling.json"

        def gpu(self, record=True, name="NVIDIA H200"):
            monkeypatch.setattr(machine, "_current", some_machine(live=True, name=name))
            monkeypatch.setenv("KIT_RECORD", "1" if record else "0")

        def no_gpu(self):
            monkeypatch.setattr(machine, "_current", some_machine())
            monkeypatch.delenv("KIT_RECORD", raising=False)

        def content(self):
            return json.loads(self.file.read_text(encoding="utf-8"))

    return Here()


def test_measured_saved_and_replayed(here, monkeypatch):
    here.gpu()
    fresh = doubling(n=5)
    assert (fresh.evidence, fresh.data) == ("measured", {"n": 30, "pairs": [[1, 2.5]]})
    here.no_gpu()
    monkeypatch.setattr(recording, "_plain", lambda value, where: value)  # nothing runs on replay but the look-up
    replayed = doubling(n=5)
    assert (replayed.evidence, replayed.data, replayed.stale) == ("recorded", fresh.data, False)
    assert replayed.provenance == fresh.provenance
    assert set(replayed.provenance) == {"gpu", "driver", "torch", "triton", "cuda", "date"}
    assert replayed.provenance["driver"] == "580.95"
    date = fresh.provenance["date"]
    where, data = f"on NVIDIA H200, {date}, torch 2.13.0, Triton 3.7.1", '{"n": 30, "pairs": [[1, 2.5]]}'
    assert repr(replayed) == f"doubling: {data} [recorded {where}]"
    assert repr(fresh) == f"doubling: {data} [measured {where}]"
    assert "<tr><th>n</th><td>30</td></tr>" in replayed._repr_html_()
    assert f"recorded on NVIDIA H200, {date}" in replayed._repr_html_()


def test_replay_does_not_run_the_experiment(here):
    calls = []

    @recorded
    def doubling(n):
        calls.append(n)
        return n

    calls.clear()
    here.gpu()
    assert doubling(n=1).data == 1
    here.no_gpu()
    assert doubling(n=1).data == 1
    assert calls == [1]


def test_a_recording_reads_like_its_data(here):
    here.gpu()
    r = doubling(n=5)
    assert r["n"] == 30
    assert ("n" in r, len(r), sorted(r), sorted(r.keys()), dict(r.items()), bool(r)) == (
        True,
        2,
        ["n", "pairs"],
        ["n", "pairs"],
        r.data,
        True,
    )


def test_without_kit_record_nothing_is_saved(here):
    here.gpu(record=False)
    assert doubling(n=5).evidence == "measured"
    assert not here.folder.exists()


def test_file_is_pretty_and_one_per_experiment(here):
    here.gpu()
    doubling(n=5)
    doubling(n=4, times=1)
    doubling(n=5, times=2)  # the same as the first: the default is spelled out
    text = here.file.read_text(encoding="utf-8")
    assert text.endswith("}\n")
    assert text == json.dumps(json.loads(text), indent=2, ensure_ascii=False) + "\n"
    assert [run["arguments"] for run in here.content()["runs"]] == [{"n": 4, "times": 1}, {"n": 5, "times": 2}]
    assert [path.name for path in here.folder.iterdir()] == ["doubling.json"]


@pytest.mark.parametrize("change", ["constant", "kernel", "arguments", "itself"])
def test_stale_when_the_code_changed(here, monkeypatch, change):
    here.gpu()
    doubling(n=5)
    here.no_gpu()
    assert not doubling(n=5).stale
    if change == "constant":  # reached through the helper
        monkeypatch.setitem(globals(), "FACTOR", 4)
    elif change == "kernel":

        @triton.jit
        def touched_kernel(x_ptr):
            tl.store(x_ptr, 2)

        monkeypatch.setitem(globals(), "touched_kernel", touched_kernel)
    elif change == "arguments":  # somebody edited the file by hand
        content = here.content()
        content["runs"][0]["arguments"]["n"] = 6
        here.file.write_text(json.dumps(content))
    else:

        @recorded(name="doubling")
        def other(*, n, times=2):
            return {"n": n}

        monkeypatch.setitem(globals(), "doubling", other)
    stale = globals()["doubling"](n=6 if change == "arguments" else 5)
    assert stale.stale
    assert not stale
    assert repr(stale).endswith("STALE: the code changed since]")
    assert "STALE" in stale._repr_html_()
    with pytest.raises(ClaimFailed, match='"it doubles" rests on a stale recording .*make record'):
        claim("it doubles", True, evidence=stale)
    assert ledger.entries_here[0]["holds"] is False


def test_a_claim_rests_on_a_fresh_recording(here, capsys):
    here.gpu()
    doubling(n=5)
    here.no_gpu()
    r = doubling(n=5)
    made = claim("it doubles", r["n"] == 30, evidence=r)
    assert repr(made) == f"✓ it doubles [recorded on NVIDIA H200, {r.provenance['date']}]"
    assert ledger.entries_here[0]["recording"] == r.detail


def test_recording_anew_drops_runs_of_older_code(here, monkeypatch):
    here.gpu()
    doubling(n=5)
    doubling(n=6)
    monkeypatch.setitem(globals(), "FACTOR", 4)
    doubling(n=5)
    assert [run["arguments"]["n"] for run in here.content()["runs"]] == [5]
    here.no_gpu()
    assert doubling(n=5)["n"] == 40
    with pytest.raises(KitError, match="holds no run of doubling with n=6, times=2"):
        doubling(n=6)


def test_no_recording(here):
    here.no_gpu()
    with pytest.raises(KitError, match=r"there is no recording of doubling \(.*doubling.json\) and no GPU here.*`make record` on a GPU"):
        doubling(n=5)


def test_asked_to_record_without_a_gpu(here, monkeypatch):
    here.no_gpu()
    monkeypatch.setenv("KIT_RECORD", "1")
    with pytest.raises(KitError, match="KIT_RECORD=1 asks to measure doubling, and H200 is simulated"):
        doubling(n=5)


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("<<<<<<< HEAD\n{}", r"doubling.json is not valid JSON \(.*\). Delete it \(or `git checkout` it\) and run `make record`"),
        ("", "is not valid JSON"),
        ("[]", "is not a recording of doubling"),
        ('{"schema": 9}', "has schema 9, and this kit reads 1"),
        ('{"schema": 1, "experiment": "other", "owner": "x", "runs": []}', "is not a recording of doubling"),
        ('{"schema": 1, "experiment": "doubling", "owner": "x", "runs": [{"data": 1}]}', "is not a recording of doubling"),
        ('{"schema": 1, "experiment": "doubling", "owner": "x", "runs": 3}', "is not a recording of doubling"),
    ],
)
@pytest.mark.parametrize("live", [True, False])
def test_a_file_that_cannot_be_used(here, text, words, live):
    here.folder.mkdir()
    here.file.write_text(text)
    here.gpu() if live else here.no_gpu()
    with pytest.raises(KitError, match=words):
        doubling(n=5)
    assert here.file.read_text() == text


def test_a_file_that_is_not_text(here):
    here.folder.mkdir()
    here.file.write_bytes(b"\xff\xfe\x00")
    here.no_gpu()
    with pytest.raises(KitError, match="is not valid JSON"):
        doubling(n=5)


def test_a_folder_that_cannot_be_written_is_told_before_the_experiment_runs(here, monkeypatch):
    def refuse(*_, **__):
        raise OSError(errno.EROFS, "Read-only file system")

    def not_reached(**_):
        raise AssertionError("the experiment ran")

    here.gpu()
    monkeypatch.setattr(recording_file.tempfile, "NamedTemporaryFile", refuse)
    monkeypatch.setattr(recording, "_provenance", not_reached)
    with pytest.raises(KitError, match="the recordings folder .* cannot be written: Read-only file system. Make it writable"):
        doubling(n=5)


def test_a_folder_that_is_a_file(here):
    here.folder.write_text("")
    here.gpu()
    with pytest.raises(KitError, match="cannot be written: (File exists|Not a directory)"):
        doubling(n=5)
    here.no_gpu()
    with pytest.raises(KitError, match="there is no recording"):
        doubling(n=5)


def test_a_write_that_fails_leaves_the_old_file(here, monkeypatch):
    here.gpu()
    doubling(n=5)
    before = here.file.read_text()

    def refuse(*_):
        raise OSError(errno.ENOSPC, "No space left on device")

    monkeypatch.setattr(recording_file.os, "replace", refuse)
    with pytest.raises(KitError, match="No space left"):
        doubling(n=6)
    assert here.file.read_text() == before
    assert [path.name for path in here.folder.iterdir()] == ["doubling.json"]


def test_two_experiments_of_one_name_do_not_overwrite_each_other(here):
    here.gpu()
    doubling(n=5)

    @recorded(name="doubling")
    def elsewhere(n):
        return n

    elsewhere.__wrapped__.__module__ = "kit.kernels.other"
    with pytest.raises(KitError, match="belongs to .*test_recorded, and kit.kernels.other would overwrite it"):
        elsewhere(n=5)


def test_many_at_once_lose_nothing(here):
    here.gpu()
    with ThreadPoolExecutor(8) as pool:
        list(pool.map(lambda n: doubling(n=n), range(24)))
    assert [run["arguments"]["n"] for run in here.content()["runs"]] == sorted(range(24), key=lambda n: json.dumps({"n": n, "times": 2}))


TWO_PROCESSES = """
import sys
from kit import recording_file
for n in range(15):
    recording_file.save("both", "test", "code", {"arguments": {"who": sys.argv[1], "n": n}, "data": n, "provenance": dict.fromkeys(
        ("gpu", "driver", "torch", "triton", "cuda", "date"), "x")})
"""


def test_two_processes_at_once_lose_nothing(here):
    here.folder.mkdir()
    processes = [subprocess.Popen([sys.executable, "-c", TWO_PROCESSES, who]) for who in "ab"]
    assert [p.wait(60) for p in processes] == [0, 0]
    assert len(recording_file.read(here.folder / "both.json", "both")["runs"]) == 30


@pytest.mark.parametrize(
    ("value", "words"),
    [
        (
            {"x": torch.ones(2)},
            r"value returned \['x'\]: a tensor \(2,\) float32 on cpu \(Tensor\), which .*; use .item\(\) or .tolist",
        ),
        ([1, float("nan")], r"value returned \[1\]: nan, which JSON cannot hold"),
        ({1: 2}, "make its keys strings"),
        ({"a": {3}}, r"\(set\), which JSON cannot hold; use plain values"),
    ],
)
def test_data_that_json_cannot_hold(value, words):
    with pytest.raises(BadInput, match=words):
        recording._plain(value, "recorded: value returned")


@pytest.mark.parametrize(
    ("call", "words"),
    [
        (lambda: doubling(5), "doubling takes keyword arguments only.*got 5 without one"),
        (lambda: doubling(m=5), r"doubling\(\*, n, times=2\) cannot be called so: missing"),
        (lambda: doubling(n=torch.ones(1)), r"doubling was given n= a tensor"),
        (lambda: recorded(3), "put it on a function"),
        (lambda: recorded("name"), "put it on a function"),
        (lambda: recorded(lambda: 1, name="../x"), r"name must be letters, digits, - and _.*got '../x'"),
        (lambda: recorded(lambda: 1), "name must be letters"),
        (lambda: recorded(name=3)(lambda: 1), "name must be letters"),
    ],
)
def test_bad_input(here, call, words):
    here.no_gpu()
    with pytest.raises(BadInput, match=words):
        call()


def test_wrong_type_is_a_type_error(here):
    with pytest.raises(WrongType):
        doubling(5)


def test_the_committed_recordings_are_sound():
    """Every file that ships can be read; whether it is fresh, the notebook that replays it shows."""
    for path in (recording_file.Path(recording_file.__file__).parent / "recordings").glob("*.json"):
        assert recording_file.read(path, path.stem)["runs"], f"{path} holds no run"


# ---- another GPU than the one it was recorded on
def test_a_claim_on_times_may_differ_on_another_gpu_and_says_so(here, capsys):
    here.gpu()
    assert not doubling(n=5).elsewhere
    here.gpu(record=False, name="NVIDIA L4")
    other = doubling(n=5)
    assert other.elsewhere == "NVIDIA H200"
    made = claim("twice as fast", False, evidence=other)
    assert not made and "not on this GPU; it held on NVIDIA H200" in capsys.readouterr().out
    assert "not on this GPU" in made._repr_html_()
    assert claim("at least once as fast", True, evidence=other).elsewhere == ""
    assert repr(ledger.summary()) == "1 claims checked here (1 measured), 1 differ from NVIDIA H200."
    assert ledger.summary()


def test_on_the_gpu_of_the_recording_the_claim_must_hold(here):
    here.gpu()
    doubling(n=5)
    here.gpu(record=False)
    with pytest.raises(ClaimFailed):
        claim("twice as fast", False, evidence=doubling(n=5))


def test_without_any_recording_the_claim_must_hold(here):
    here.gpu(record=False, name="NVIDIA L4")
    with pytest.raises(ClaimFailed):
        claim("twice as fast", False, evidence=doubling(n=5))


def test_what_differs_is_listed_and_is_no_failure(here, tmp_path, monkeypatch, capsys):
    here.gpu()
    doubling(n=5)
    here.gpu(record=False, name="NVIDIA L4")
    monkeypatch.setenv("KIT_LEDGER", str(tmp_path / "claims.jsonl"))
    claim("twice as fast", False, evidence=doubling(n=5))
    assert ledger.main([tmp_path / "claims.jsonl"]) == 0
    assert "twice as fast [measured] on NVIDIA L4; it held on NVIDIA H200" in capsys.readouterr().out
