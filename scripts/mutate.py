"""Plant each change of scripts/mutations/ in a copy of the tree; `make test` must fail: `python scripts/mutate.py [NAME ...]`.

The narrowest command that must fail is run first, once on the copy as it is (where it must pass) and once with the change. One that lives
has survived; with `--full`, the whole step of `make test` is then run as well. Prints caught or survived for each and the score; ends with
status 1 when one survived. Results are kept in .kit/mutations.json, so that a run that was stopped goes on; `--again` begins anew. Two at a
time (`-j`). NAME picks those whose name holds the word; `--list` shows them.
"""

from __future__ import annotations

import argparse
import hashlib
import json
import os
import shutil
import subprocess
import sys
import tempfile
import threading
import time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

from mutations import all_mutations
from project import ROOT
from steps import NBVAL

RESULTS = ROOT / ".kit" / "mutations.json"
SECONDS = 900  # of one narrow command: a change that makes it hang is caught
COMMANDS = {
    "nbval": lambda *a: [*NBVAL, "-x", "-q", "--tb=no", "--nbval", *a],
    "pytest": lambda *a: ["-m", "pytest", "-p", "no:cacheprovider", "-x", "-q", "--tb=no", *a],
    "lint": lambda *a: ["scripts/lint_notebooks.py", *a],
    "exercises": lambda: ["scripts/exercises.py", "--check"],
}
STEPS = {"nbval": "notebooks", "pytest": "kit", "lint": "lint", "exercises": "exercises"}  # of make test


class Rotten(ValueError):
    """A mutation whose text is not in its file exactly once; the message names it."""


def written(text, path):
    """`text` as it stands in the file: in a notebook it is inside a JSON string."""
    return json.dumps(text, ensure_ascii=False)[1:-1] if str(path).endswith(".ipynb") else text


def planted(mutation, root=ROOT):
    """The text of the mutation's file with the change in it. Raises Rotten when the old text does not stand there exactly once."""
    path = root / mutation.file
    if not path.exists():
        raise Rotten(f"{mutation.name}: there is no {mutation.file} any more: correct or remove it in scripts/mutations/.")
    text, old = path.read_text(encoding="utf-8"), written(mutation.old, path)
    count = text.count(old)
    if count != 1:
        raise Rotten(
            f"{mutation.name}: {mutation.old!r} stands {count} times in {mutation.file}, not once: correct it in scripts/mutations/."
        )
    return text.replace(old, written(mutation.new, path))


# ---- copies
def copy_tree(target, root=ROOT):
    """Copy what git knows or would take up, without what it ignores, to the folder `target`; return a digest of it."""
    digest = hashlib.sha256()
    listed = subprocess.run(["git", "ls-files", "-co", "--exclude-standard", "-z"], cwd=root, capture_output=True, check=True)
    for name in filter(None, listed.stdout.decode().split("\0")):
        if (root / name).is_file():
            (target / name).parent.mkdir(parents=True, exist_ok=True)
            shutil.copy2(root / name, target / name)
            digest.update(name.encode() + b"\0" + (target / name).read_bytes())
    return digest.hexdigest()[:12]


def environment(copy):
    """The environment of a check: the copy's kit and tools, no ledger, one thread, and no bytecode, which would outlive a change."""
    kept = {name: value for name, value in os.environ.items() if not name.startswith(("KIT_", "PYTEST_"))}
    more = {"PYTHONPATH": str(copy), "KIT_SIMULATE": "1", "KIT_LEDGER": "", "OMP_NUM_THREADS": "1", "PYTHONDONTWRITEBYTECODE": "1"}
    return kept | more


def fails(check, copy):
    """Whether the check fails in this copy. One that does not end in time does."""
    kind, *arguments = check
    command = [sys.executable, *map(str, COMMANDS[kind](*arguments))]
    try:
        return subprocess.run(command, cwd=copy, env=environment(copy), capture_output=True, timeout=SECONDS).returncode != 0
    except subprocess.TimeoutExpired:
        return True


def step_fails(check, copy):
    """Whether the whole step of `make test` that the check belongs to fails in this copy."""
    command = [sys.executable, "scripts/test.py", "--only", STEPS[check[0]]]
    return subprocess.run(command, cwd=copy, env=environment(copy), capture_output=True).returncode != 0


# ---- results
class Results:
    """What became of each mutation and of each check without one, kept in a file after every change."""

    def __init__(self, path=RESULTS, again=False):
        self.path, self.lock = path, threading.Lock()
        self.known = {} if again or not path.exists() else json.loads(path.read_text(encoding="utf-8"))

    def get(self, key):
        return self.known.get(key)

    def put(self, key, value):
        with self.lock:
            self.known[key] = value
            self.path.parent.mkdir(parents=True, exist_ok=True)
            new = self.path.with_suffix(".new")
            new.write_text(json.dumps(self.known, indent=1, ensure_ascii=False, sort_keys=True) + "\n", encoding="utf-8")
            new.replace(self.path)


def key_of(mutation, root=ROOT):
    """What a result is valid for: the mutation and the file that it changes."""
    content = (root / mutation.file).read_bytes()
    return f"{mutation.name} {hashlib.sha256(repr(mutation).encode() + content).hexdigest()[:12]}"


def judge(mutation, copy, tree, results, full):
    """ "caught", "caught by the whole step", "survived", or "unsound": the check fails without the change too."""
    clean = f"clean {tree}: {' '.join(mutation.check)}"
    if results.get(clean) is None:
        results.put(clean, "fails" if fails(mutation.check, copy) else "passes")
    if results.get(clean) == "fails":
        return "unsound"
    path = copy / mutation.file
    before = path.read_text(encoding="utf-8")
    path.write_text(planted(mutation, copy), encoding="utf-8")
    try:
        if fails(mutation.check, copy):
            return "caught"
        return "caught by the whole step" if full and step_fails(mutation.check, copy) else "survived"
    finally:
        path.write_text(before, encoding="utf-8")


def run_all(mutations, results, workers, full):
    """Judge the mutations that have no result yet, `workers` at a time, each in a copy of its own; return {name: verdict}."""
    copies = []

    def one(mutation):
        key = key_of(mutation)
        if (known := results.get(key)) is None or known == "unsound":
            with copies_lock:
                copy = copies.pop()
            began = time.monotonic()
            try:
                known = judge(mutation, copy, tree, results, full)
            finally:
                copies.append(copy)
            results.put(key, known)
            print(
                f"{known.upper() if known in ('survived', 'unsound') else known:9} {time.monotonic() - began:6.1f} s  {mutation.name}",
                flush=True,
            )
        return mutation.name, known

    copies_lock = threading.Lock()
    with tempfile.TemporaryDirectory(prefix="kit-mutate-") as folder:
        for number in range(workers):
            copies.append(Path(folder) / str(number))
            tree = copy_tree(copies[-1])
        with ThreadPoolExecutor(workers) as pool:
            # Those with the same check one after the other, so that its clean run is made once.
            return dict(pool.map(one, sorted(mutations, key=lambda one: one.check)))


def main(arguments=None):
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("names", nargs="*", metavar="NAME", help="mutations whose name holds this word (all)")
    parser.add_argument("-j", type=int, default=2, metavar="N", help="how many at a time (2)")
    parser.add_argument("--full", action="store_true", help="run the whole step of make test for what survives its narrow command")
    parser.add_argument("--again", action="store_true", help="forget earlier results")
    parser.add_argument("--list", action="store_true", help="show the mutations, run nothing")
    given = parser.parse_args(arguments)
    chosen = [one for one in all_mutations() if not given.names or any(word in one.name for word in given.names)]
    if not chosen:
        sys.exit(f"mutate: no mutation is called {', '.join(given.names)}: python scripts/mutate.py --list shows them.")
    try:
        for one in chosen:
            planted(one)
    except Rotten as rotten:
        sys.exit(f"mutate: {rotten}")
    if given.list:
        for one in chosen:
            print(f"{one.name:28} {one.plants} [{' '.join(one.check)}]")
        return 0
    began = time.monotonic()
    found = run_all(chosen, Results(again=given.again), given.j, given.full)
    caught = [name for name, verdict in found.items() if verdict.startswith("caught")]
    for one in chosen:
        if found[one.name] not in ("caught", "caught by the whole step"):
            print(f"{found[one.name]}: {one.name}: {one.plants} ({one.file}); {' '.join(one.check)} did not tell")
    print(f"{len(caught)} of {len(chosen)} caught, {len(caught) / len(chosen):.0%}, in {time.monotonic() - began:.0f} s")
    return 0 if len(caught) == len(chosen) else 1


if __name__ == "__main__":
    try:
        sys.exit(main())
    except KeyboardInterrupt:
        sys.exit("mutate: stopped; run it again to go on.")
