"""The pre-flight check: it passes here, and each thing that is broken has its own sentence."""

import argparse
import importlib.metadata
import os
import subprocess
import sys

import check
import pytest
from project import ROOT

ONE = argparse.Namespace(learners=1)


@pytest.mark.slow
def test_this_machine_is_ready():
    environment = dict(os.environ, KIT_SIMULATE="1")
    done = subprocess.run([sys.executable, ROOT / "scripts" / "check.py"], capture_output=True, text=True, env=environment, cwd="/")
    assert done.returncode == 0, done.stdout + done.stderr
    lines = done.stdout.splitlines()
    assert [line.split()[1] for line in lines[: len(check.CHECKS)]] == [one.__name__ for one in check.CHECKS]
    assert lines[len(check.CHECKS)] == f"{len(check.CHECKS)} passed, 0 failed"
    assert "6 * 7" not in done.stdout and "simulated" in lines[5]


def said(one, options=ONE):
    good, sentence = check.told(one, options)
    assert not good and sentence.endswith(".") and "\n" not in sentence
    return sentence


def test_a_package_that_is_missing(monkeypatch):
    real = importlib.metadata.version

    def version(name):
        if name == "anywidget":
            raise importlib.metadata.PackageNotFoundError
        return real(name)

    monkeypatch.setattr(importlib.metadata, "version", version)
    assert "anywidget is not installed: run make lab once" in said(check.packages)


def test_a_package_that_is_too_new(monkeypatch):
    monkeypatch.setattr(importlib.metadata, "version", lambda name: "7.0.0" if name == "ipykernel" else importlib_version(name))
    assert said(check.packages) == "ipykernel 7.0.0 is installed, and <7,>=6.29 is needed: pip install 'ipykernel<7,>=6.29'."


importlib_version = importlib.metadata.version


def test_little_memory_for_many(monkeypatch):
    monkeypatch.setattr(check, "_free_memory", lambda: 8e9)
    assert check.told(check.memory, ONE) == (True, "8.0 GB free; one person needs 1")
    assert said(check.memory, argparse.Namespace(learners=20)).startswith("8.0 GB of memory are free, and 20 people need 20 GB")


def test_a_full_disk(monkeypatch):
    monkeypatch.setattr(check.shutil, "disk_usage", lambda _: argparse.Namespace(free=2e8))
    assert said(check.disk).startswith("0.2 GB are free for the project")


def test_no_front_end_for_widgets(monkeypatch, tmp_path):
    monkeypatch.setattr("jupyter_core.paths.jupyter_path", lambda *_: [str(tmp_path)])
    assert "JupyterLab has no front end for widgets (@jupyter-widgets/jupyterlab-manager)" in said(check.widgets)


def test_a_folder_that_cannot_be_written(monkeypatch):
    monkeypatch.setattr(check.os, "access", lambda folder, _: "triton" not in str(folder).lower())
    from triton import knobs

    monkeypatch.setattr(check, "_existing", lambda folder: folder)
    with knobs.cache.scope():  # which gives the folder back, whether it was set or came from the environment
        knobs.cache.dir = "/proc/triton-cache"
        told = said(check.folders)
    assert told == "/proc/triton-cache cannot be written by you (Triton's cache, TRITON_CACHE_DIR): make it yours, or name another folder."


def test_a_required_gpu_that_is_not_there(monkeypatch):
    from kit import machine

    monkeypatch.setenv("KIT_REQUIRE", "gpu")
    monkeypatch.delenv("KIT_SIMULATE", raising=False)
    monkeypatch.setattr(machine, "_gpu_here", lambda: None)
    assert "a GPU is required" in said(check.gpu)


def test_a_gpu_that_is_too_full_for_all(monkeypatch):
    from kit import machine

    class Full:
        live, name, free_memory = True, "RTX 3090", 6e9

    monkeypatch.setattr(machine, "start", Full)
    assert said(check.gpu, argparse.Namespace(learners=20)).startswith("RTX 3090 has 6.0 GB free, and 20 learners need 12 GB there")


def test_a_kernel_that_computes_nonsense(monkeypatch):
    import check_kernel

    class Idle:
        def __getitem__(self, grid):
            return lambda *args, **meta: None

    monkeypatch.setattr(check_kernel, "scale_kernel", Idle())
    assert "gave wrong numbers" in said(check.launch)


def test_a_sandbox_that_does_not_run(monkeypatch):
    from kit.errors import KitError

    def broken(*_, **__):
        raise KitError("sandbox: its server process did not start within 180 s (killed). Run the cell again.")

    import kit.sandbox  # noqa: F401  the module; as a name of the package it is the function

    monkeypatch.setattr(sys.modules["kit.sandbox"], "sandbox", broken)
    assert said(check.sandbox).startswith("sandbox: its server process did not start")


def test_what_nobody_foresaw_is_one_line_and_the_rest_goes_on(monkeypatch, capsys):
    def broken(_):
        raise ZeroDivisionError("by\nnothing")

    monkeypatch.setattr(check, "CHECKS", (broken, check.notebooks))
    assert check.main([]) == 1
    first, second, last = capsys.readouterr().out.splitlines()
    assert first.startswith("FAILED  broken     ZeroDivisionError: by. Nothing else is known")
    assert second.startswith("ok      notebooks") and last == "1 passed, 1 failed"
