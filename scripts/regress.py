"""The kit's tests on several Triton versions: `python scripts/regress.py [VERSION ...]`; `make regress TRITON="3.6.0 3.9.0"` calls it.

Each version has a virtual environment of its own in .kit/regress/, made once: Triton is installed into it, and everything else, torch
too, is taken from the Python that runs this. Prints a table of versions, with what failed, and ends with status 1 when something did, or
when a version could not be installed. Without arguments: the versions of kit/versions.py.
"""

from __future__ import annotations

import argparse
import json
import platform
import re
import shutil
import site
import subprocess
import sys
import tempfile
import time
import xml.etree.ElementTree as ElementTree
from dataclasses import dataclass, field
from pathlib import Path

from project import ROOT
from setup import NETWORK, explain
from steps import environment, require

CACHE = ROOT / ".kit" / "regress"
TESTS = ROOT / "kit" / "tests"
# What does not depend on Triton's version: pictures, files, progress, the browser.
LEFT_OUT = {"test_browser.py", "test_evidence.py", "test_explore.py", "test_public_names.py", "test_recorded.py"}


class Stop(Exception):
    """A sentence for the person who typed the command."""


@dataclass
class Result:
    """What one version gave: {outcome: number of tests}, the tests that failed, and, when it did not run, why."""

    version: str
    counts: dict = field(default_factory=dict)
    failed: list = field(default_factory=list)
    seconds: float = 0.0
    note: str = ""

    @property
    def good(self):
        return not self.failed and not self.note and self.counts.get("passed", 0) > 0


# ---- arguments
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


# ---- environments
def folder(version, cache=None):
    """Where the environment of a version lies; one for each Python, since wheels are."""
    return (cache or CACHE) / f"triton-{version}-py{platform.python_version()}"


def python_of(path):
    return path / "bin" / "python"


def holds(path, version):
    """Whether the environment at `path` starts and has this Triton and a torch."""
    probe = "import torch, triton; print(triton.__version__)"
    try:
        found = subprocess.run([python_of(path), "-c", probe], capture_output=True, text=True, timeout=300)
    except (OSError, subprocess.TimeoutExpired):
        return False
    return found.returncode == 0 and found.stdout.strip().split("+")[0] == version


def prepare(version):
    """Make the environment of a version, or find it made; return its Python. Raises Stop with what pip could not do."""
    path = folder(version)
    if python_of(path).exists():
        borrow(path)
        if holds(path, version):
            return python_of(path)
    CACHE.mkdir(parents=True, exist_ok=True)
    print(f"Triton {version}: making {path.relative_to(ROOT)}, about 700 MB", flush=True)
    with tempfile.TemporaryDirectory(dir=CACHE) as unfinished:
        new = Path(unfinished) / "venv"
        run([sys.executable, "-m", "venv", "--without-pip", "--symlinks", new], version)
        (packages,) = new.glob("lib/python*/site-packages")
        pip = [sys.executable, "-m", "pip", "--disable-pip-version-check", "install", "--quiet", "--retries", "1"]
        run([*pip, "--no-deps", "--target", packages, f"triton=={version}"], version)
        borrow(new)
        shutil.rmtree(path, ignore_errors=True)
        new.rename(path)
    if not holds(path, version):
        raise Stop(f"the environment {path} was made and does not start with Triton {version}: remove it and run this again.")
    return python_of(path)


def borrow(path):
    """Let the environment at `path` use the packages of this Python: after its own, so that torch is borrowed and Triton is not.

    site.PREFIXES too, so that site.getsitepackages() names their folder; kit/sources.py tells libraries by it.
    """
    (packages,) = path.glob("lib/python*/site-packages")
    entries = [entry for entry in (*site.getsitepackages(), site.getusersitepackages()) if Path(entry).is_dir()]
    lines = [f"import site; site.PREFIXES += {list(site.PREFIXES)!r}", *(f"import site; site.addsitedir({entry!r})" for entry in entries)]
    (packages / "borrowed.pth").write_text("\n".join(lines) + "\n")


def run(command, version):
    done = subprocess.run([str(part) for part in command], capture_output=True, text=True, cwd=ROOT)
    if done.returncode != 0:
        raise Stop(why(done.stderr or done.stdout, version))


def why(stderr, version):
    """One sentence for what kept a version from being installed."""
    missing = re.search(r"from versions: ([^)]*)\)", stderr)
    if missing and not re.search(NETWORK, stderr):
        there = [name for name in missing[1].split(", ") if name != "none"]
        has = f"; it has {', '.join(there[-6:])}" if there else ""
        return f"the package index has no Triton {version} for Python {platform.python_version()} on {platform.machine()}{has}."
    return explain(stderr)


# ---- tests
def suite(tests=None):
    """The test files that run: all of kit/tests but those left out, so that a new file is not forgotten."""
    tests = tests or TESTS
    if absent := sorted(name for name in LEFT_OUT if not (tests / name).exists()):
        raise Stop(f"{', '.join(absent)} is left out of this run by name and is no longer in {tests}: correct LEFT_OUT.")
    return sorted(path for path in tests.glob("test_*.py") if path.name not in LEFT_OUT)


def measure(version, python, extra):
    """Run the suite on one version."""
    began = time.monotonic()
    with tempfile.TemporaryDirectory() as scratch:
        report = Path(scratch) / "report.xml"
        env = environment(KIT_SIMULATE="1", KIT_LEDGER="", TRITON_CACHE_DIR=str(Path(scratch) / "triton"))
        command = [python, "-m", "pytest", "-q", "-p", "no:cacheprovider", "-n", "2", "--dist", "loadscope", "-m", "not browser"]
        done = subprocess.run(
            [str(part) for part in (*command, f"--junitxml={report}", *extra, *suite())], cwd=ROOT, env=env, capture_output=True, text=True
        )
        result = Result(version)
        if report.exists():
            result.counts, result.failed = outcomes(report.read_text(encoding="utf-8"))
        if not report.exists() or (done.returncode and not result.failed) or not result.counts:
            last = [line for line in (done.stdout + done.stderr).splitlines() if line.strip()][-1:] or ["no output"]
            result.note = f"pytest ended with status {done.returncode}: {last[0].strip()}"
    result.seconds = time.monotonic() - began
    return result


def outcomes(xml):
    """({"passed": n, "failed": n, "skipped": n}, [(test, first line of why)]) of a JUnit report."""
    counts, failed = {"passed": 0, "failed": 0, "skipped": 0}, []
    for case in ElementTree.fromstring(xml).iter("testcase"):
        bad = [child for child in case if child.tag in ("failure", "error")]
        if bad:
            counts["failed"] += 1
            message = (bad[0].get("message") or "").strip().splitlines()[:1] or [""]
            failed.append((f"{case.get('classname', '').split('.')[-1]}::{case.get('name')}", message[0]))
        else:
            counts["skipped" if case.find("skipped") is not None else "passed"] += 1
    return counts, failed


# ---- the table: one line a version. A column is (title, what a Result shows in it); claims will be further columns.
COLUMNS = [
    ("Triton", lambda result: result.version),
    ("passed", lambda result: str(result.counts.get("passed", "-"))),
    ("failed", lambda result: str(result.counts.get("failed", "-"))),
    ("skipped", lambda result: str(result.counts.get("skipped", "-"))),
    ("time", lambda result: f"{result.seconds:.0f} s"),
    ("", lambda result: "ok" if result.good else "FAILED"),
]
SHOWN = 20  # failures a version


def table(results):
    """The lines to print: the table, then what failed."""
    rows = [[title for title, _ in COLUMNS], *([show(result) for _, show in COLUMNS] for result in results)]
    widths = [max(len(row[i]) for row in rows) for i in range(len(COLUMNS))]
    lines = [
        "  ".join(cell.ljust(width) if i == 0 else cell.rjust(width) for i, (cell, width) in enumerate(zip(row, widths))) for row in rows
    ]
    for result in results:
        if result.note:
            lines.append(f"\nTriton {result.version}: {result.note}")
        if result.failed:
            lines.append(f"\nTriton {result.version}: {len(result.failed)} failed")
            lines += [f"  {name}: {message[:160]}" for name, message in result.failed[:SHOWN]]
            if len(result.failed) > SHOWN:
                lines.append(f"  and {len(result.failed) - SHOWN} more")
    return [line.rstrip() for line in lines]


def main(arguments=None):
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("versions", nargs="*", metavar="VERSION", help="Triton versions (default: those of kit/versions.py)")
    parser.add_argument("-k", metavar="EXPRESSION", help="pytest's choice of tests")
    parser.add_argument("--json", type=Path, help="where to write the results")
    given = parser.parse_args(arguments)
    require(["torch", "triton", "pytest", "xdist", "pip", "venv"], "regress")
    results = []
    for version in versions_of(given.versions) or tested():
        try:
            python = prepare(version)
        except Stop as stop:
            results.append(Result(version, note=str(stop)))
            continue
        print(f"Triton {version}: running the tests", flush=True)
        results.append(measure(version, python, ["-k", given.k] if given.k else []))
    print("\n" + "\n".join(table(results)))
    if given.json:
        given.json.write_text(json.dumps([vars(result) for result in results], indent=1) + "\n")
    return 0 if all(result.good for result in results) else 1


if __name__ == "__main__":
    try:
        sys.exit(main())
    except Stop as stop:
        sys.exit(f"regress: {stop}")
    except OSError as error:
        sys.exit(f"regress: {error}.")
    except KeyboardInterrupt:
        sys.exit("regress: stopped; run it again to go on.")
