"""Setting up: each thing that can be missing gets one sentence that says what to do, and no traceback."""

import os
import shutil
import stat
import subprocess
import sys

import pytest
import setup
from project import ROOT

DEBIAN = ("glibc", "2.36")


@pytest.mark.parametrize(
    "machine, words",
    [
        (("Windows", "AMD64", ("", "")), "no build for Windows: run this inside WSL 2"),
        (("MSYS_NT-10.0", "x86_64", ("", "")), "no build for Windows"),
        (("Darwin", "arm64", ("", "")), "no build for macOS: run this on Linux"),
        (("FreeBSD", "amd64", ("", "")), "no build for FreeBSD"),
        (("Linux", "riscv64", DEBIAN), "no build for Linux on riscv64"),
        (("Linux", "x86_64", ("", "")), "need glibc"),
        (("Linux", "x86_64", ("glibc", "2.17")), "need glibc 2.28 or newer, and this Linux has 2.17"),
    ],
)
def test_a_platform_without_triton_is_named(machine, words):
    with pytest.raises(setup.Stop, match=words):
        setup.check_platform(*machine)


@pytest.mark.parametrize("machine", ["x86_64", "aarch64", "AMD64", "arm64"])
def test_a_platform_with_triton_passes(machine):
    setup.check_platform("Linux", machine, DEBIAN)


@pytest.mark.parametrize("version", [(2, 7), (3, 8), (3, 10), (3, 15), (4, 0)])
def test_a_python_that_does_not_fit_is_named(version, monkeypatch):
    monkeypatch.setattr(shutil, "which", lambda name: None)
    with pytest.raises(
        setup.Stop, match=rf"Python 3.11 to 3.14 is needed, and /usr/bin/python3 is Python {version[0]}.{version[1]}: install"
    ):
        setup.check_python(version, "/usr/bin/python3")


def test_another_python_on_the_path_is_taken_when_it_runs(monkeypatch):
    monkeypatch.setattr(shutil, "which", lambda name: {"python3.12": sys.executable, "python3.13": "/bin/false"}.get(name))
    assert setup.check_python((3, 9), "/usr/bin/python3") == sys.executable
    assert setup.check_python((3, 11), "/usr/bin/python3") == "/usr/bin/python3"


def test_a_python_without_venv_is_named(tmp_path):
    python = tmp_path / "python3"
    python.write_text('#!/bin/sh\ncase "$2" in *ensurepip*) exit 1;; *) echo 11;; esac\n')
    python.chmod(0o755)
    with pytest.raises(setup.Stop, match="its venv module is missing: install it .*apt-get install python3.11-venv"):
        setup.check_venv(str(python))
    setup.check_venv(sys.executable)


def test_a_full_disk_and_a_folder_of_somebody_else_are_named(tmp_path, monkeypatch):
    with pytest.raises(setup.Stop, match="2.0 GB are free in .*, and the environment needs 2.5"):
        setup.check_folder(str(tmp_path), 2e9)
    assert "about 9 GB are needed" in setup.check_folder(str(tmp_path), 5e9)
    assert setup.check_folder(str(tmp_path), 50e9) is None
    monkeypatch.setattr(os, "access", lambda path, mode: False)  # root may write anywhere
    with pytest.raises(setup.Stop, match="cannot be written by you: clone"):
        setup.check_folder(str(tmp_path), 50e9)


@pytest.mark.parametrize(
    "stderr, words",
    [
        (
            "WARNING: Retrying ... [Errno -3] Temporary failure in name resolution\nERROR: No matching distribution found for x",
            "could not reach",
        ),
        ("pip._vendor.urllib3.exceptions.ReadTimeoutError: Read timed out.", "could not reach the package index: check the network"),
        ("ERROR: Could not install packages due to an OSError: [Errno 28] No space left on device", "The disk became full"),
        ("ERROR: [Errno 13] Permission denied: '/x'", "may not write into"),
        ("ERROR: No matching distribution found for torch==2.13.0", "has no torch==2.13.0 for this Python"),
        ("Traceback ...\nValueError: odd\n", "pip failed: ValueError: odd"),
        ("", "pip failed: no message"),
    ],
)
def test_what_made_pip_fail_is_one_sentence(stderr, words):
    said = setup.explain(stderr)
    assert words in said and "\n" not in said


def copy_of_project(folder):
    (folder / "scripts").mkdir(parents=True)
    for name in ("Makefile", "requirements.txt", "pyproject.toml", "scripts/setup.py"):
        shutil.copy(ROOT / name, folder / name)
    return folder


def make(folder, *arguments, **environment):
    done = subprocess.run(["make", "-C", folder, *arguments], capture_output=True, text=True, env=os.environ | environment)
    return done.returncode, done.stdout + done.stderr


def test_no_network_is_one_sentence(tmp_path):
    folder = copy_of_project(tmp_path / "clone")
    index = {"PIP_INDEX_URL": "http://127.0.0.1:9/simple", "PIP_EXTRA_INDEX_URL": "http://127.0.0.1:9/more", "PIP_FIND_LINKS": ""}
    nowhere = index | {"PIP_CONFIG_FILE": os.devnull, "PIP_RETRIES": "1", "PIP_DEFAULT_TIMEOUT": "2"}
    status, output = make(folder, "test", **nowhere)
    assert status != 0 and "Traceback" not in output
    assert [line for line in output.splitlines() if line.startswith("setup:")] == [
        "setup: pip could not reach the package index: check the network (and the proxy settings) and run this again."
    ]
    assert not (folder / ".venv/.ready").exists()  # the next call tries again


def test_no_python_at_all_is_one_sentence(tmp_path):
    folder = copy_of_project(tmp_path / "clone")
    status, output = make(folder, "lab", "BASE_PYTHON=python-that-is-not-there")
    assert status != 0 and "setup: no python-that-is-not-there on this machine: install Python 3.11 or newer" in output


def test_a_second_call_skips_what_is_done_and_a_changed_pin_does_not(tmp_path):
    folder = copy_of_project(tmp_path / "clone")
    (folder / ".venv/bin").mkdir(parents=True)
    python = folder / ".venv/bin/python"
    python.symlink_to(sys.executable)
    (folder / ".venv/.ready").touch()
    setup_was_called = "echo SETUP WAS CALLED; exit 1"
    (folder / "python3").write_text(f"#!/bin/sh\n{setup_was_called}\n")
    (folder / "python3").chmod((folder / "python3").stat().st_mode | stat.S_IXUSR)
    base = f"BASE_PYTHON={folder}/python3"
    assert make(folder, ".venv/.ready", base)[0] == 0
    os.utime(folder / "requirements.txt", (2e9, 2e9))
    assert "SETUP WAS CALLED" in make(folder, ".venv/.ready", base)[1]
    os.utime(folder / "requirements.txt", (1e9, 1e9))
    python.unlink()  # the Python that it was made from is gone
    assert "SETUP WAS CALLED" in make(folder, ".venv/.ready", base)[1]


def test_an_old_python_can_read_the_script():
    source = (ROOT / "scripts/setup.py").read_bytes()
    assert source.isascii()
    code = source.decode()
    for newer in (' f"', "(f'", '(f"', ":=", " -> ", "nonlocal ", "yield from", "async "):
        assert newer not in code, f"Python 2.7 does not understand {newer!r}, and scripts/setup.py has to tell it that it is too old"
