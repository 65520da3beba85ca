"""Tritons to test with: each in a folder of its own that is put first on PYTHONPATH, an overlay over the Python that runs this.

An overlay, and not a virtual environment: every process of a run, kernels and sandboxes too, finds it through one variable, torch and
Jupyter need no second copy, and nothing has to be told where the borrowed packages lie. It is Triton alone, 640 to 1,000 MB; the version
that this Python has needs none.
"""

from __future__ import annotations

import os
import platform
import re
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path

from project import ROOT
from setup import NETWORK, explain

CACHE = ROOT / ".kit" / "regress"


class Stop(Exception):
    """A sentence for the person who typed the command."""


def versions_of(words):
    """The versions asked for, each once. Raises Stop for what is no version."""
    asked = list(dict.fromkeys(version for word in words for version in word.replace(",", " ").split()))
    for version in asked:
        if not re.fullmatch(r"\d+\.\d+\.\d+(\.?[a-z]+\d+)?", version):
            raise Stop(f'{version!r} is no Triton version: write all three numbers, as in make regress TRITON="3.6.0 3.9.0".')
    if words and not asked:
        raise Stop('TRITON is empty: name one version or more, as in make regress TRITON="3.6.0 3.9.0", or leave it out.')
    return asked


def tested():
    """The versions of kit/versions.py, read without importing the kit."""
    line = re.search(r"^TESTED = \((.*?)\)", (ROOT / "kit" / "versions.py").read_text(encoding="utf-8"), re.M)
    return re.findall(r'"([^"]+)"', line[1])


def folder(version, cache=None):
    """Where the overlay of a version lies; one for each Python, since wheels are."""
    return (cache or CACHE) / f"triton-{version}-py{platform.python_version()}"


def path_with(overlay):
    """PYTHONPATH for a run: the overlay ("" for none), the project, and what was there."""
    return os.pathsep.join(filter(None, [str(overlay or ""), str(ROOT), os.environ.get("PYTHONPATH")]))


def holds(overlay, version):
    """Whether this Python, with the overlay first (None: without one), starts and has this Triton and a torch."""
    probe = "import torch, triton; print(triton.__version__)"
    try:
        found = subprocess.run(
            [sys.executable, "-c", probe], capture_output=True, text=True, timeout=300, env=os.environ | {"PYTHONPATH": path_with(overlay)}
        )
    except (OSError, subprocess.TimeoutExpired):
        return False
    return found.returncode == 0 and found.stdout.strip().split("+")[0] == version


def prepare(version, given=None):
    """The overlay of a version: the folder `given` for it, None where this Python has it, one found made, or one made now.

    Raises Stop with what pip could not do, or when what is there does not start with that version.
    """
    if given is not None:
        if not holds(given, version):
            raise Stop(f"{given} does not start with Triton {version}: name a folder that pip install --target filled with it.")
        return Path(given)
    if holds(None, version):
        return None
    path = folder(version)
    if path.exists() and holds(path, version):
        return path
    CACHE.mkdir(parents=True, exist_ok=True)
    print(f"Triton {version}: making {path}, up to 1 GB", flush=True)
    with tempfile.TemporaryDirectory(dir=CACHE) as unfinished:
        new = Path(unfinished) / "overlay"
        pip = [sys.executable, "-m", "pip", "--disable-pip-version-check", "install", "--quiet", "--retries", "1"]
        done = subprocess.run([*pip, "--no-deps", "--target", str(new), f"triton=={version}"], capture_output=True, text=True, cwd=ROOT)
        if done.returncode != 0:
            raise Stop(why(done.stderr or done.stdout, version))
        shutil.rmtree(path, ignore_errors=True)
        new.rename(path)
    if not holds(path, version):
        raise Stop(f"the overlay {path} was made and does not start with Triton {version}: remove it and run this again.")
    return path


def why(stderr, version):
    """One sentence for what kept a version from being installed."""
    missing = re.search(r"from versions: ([^)]*)\)", stderr)
    if missing and not re.search(NETWORK, stderr):
        there = [name for name in missing[1].split(", ") if name != "none"]
        has = f"; it has {', '.join(there[-6:])}" if there else ""
        return f"the package index has no Triton {version} for Python {platform.python_version()} on {platform.machine()}{has}."
    return explain(stderr)
