"""`python -m kit examine`: what it prints, writes and exits with."""

from __future__ import annotations

import json
import shutil
import subprocess
import sys

import pytest

from kit.command_line import main
from kit.tests import scale_kernels


@pytest.fixture(scope="module")
def kernels(tmp_path_factory):
    path = tmp_path_factory.mktemp("work") / "kernels_from_work.py"
    shutil.copy(scale_kernels.__file__, path)
    return str(path)


def test_a_kernel_of_a_file_is_examined_and_the_status_is_0(kernels):
    run = subprocess.run(
        [sys.executable, "-m", "kit", "examine", f"{kernels}:scale_kernel", "--rules", "6,7"], capture_output=True, text=True, timeout=300
    )
    assert run.returncode == 0, run.stdout + run.stderr
    assert "scale_kernel at 3 sizes on" in run.stdout
    assert run.stderr == ""


def test_what_is_wrong_makes_the_status_1_and_names_file_and_card(kernels, tmp_path, capsys):
    card = tmp_path / "card.json"
    words = ["examine", f"{kernels}:second_axis_kernel", "--grid", "second_axis", "--rules", "6", "--json", str(card)]
    assert main(words) == 1
    assert "65,535" in capsys.readouterr().out
    found = json.loads(card.read_text())
    key = next(note["key"] for note in found["notes"] if note["verdict"] == "wrong")
    assert main([*words, "--allow", f"6:{key}"]) == 0


def test_fail_on_fragile_is_stricter(kernels):
    words = ["examine", f"{kernels}:second_axis_kernel", "--grid", "second_axis", "--sizes", '{"n": [1, 60000000]}', "--rules", "6"]
    assert main(words) == 0
    assert main([*words, "--fail-on", "fragile"]) == 1


@pytest.mark.parametrize(
    ("words", "told"),
    [
        (["scale_kernel"], "MODULE:KERNEL"),
        (["no_such_module:k"], "no_such_module cannot be imported"),
        (["missing.py:k"], 'no file "missing.py"'),
        (["FILE:nothing"], "has no nothing"),
        (["FILE:scale_kernel", "--make-args", "nothing"], "with --make-args"),
        (["FILE:scale_kernel", "--sizes", "{n: 1}"], "--sizes must be JSON"),
        (["FILE:scale_kernel", "--meta", "BLOCK"], "--meta takes NAME=VALUE"),
        (["FILE:scale_kernel", "--rules", "six"], "--rules takes numbers"),
        (["FILE:scale_kernel", "--rules", "6", "--allow", "grid"], "10:tf32"),
        (["FILE:scale_kernel", "--target", "cuda:1"], "start: target must be"),
        (["FILE:make_args"], "kernel must be decorated"),
    ],
)
def test_a_command_that_cannot_be_used_says_why_and_the_status_is_2(kernels, words, told, capsys):
    assert main(["examine", *(word.replace("FILE", kernels) for word in words)]) == 2
    assert told in capsys.readouterr().err
