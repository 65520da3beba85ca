"""The ledger of claims: who claimed what, where, and whether it held.

Each line of a ledger file is one JSON object: claim, notebook, holds, evidence, recording, elsewhere, machine, versions. `elsewhere` names
the GPU on which a claim about times held that does not hold on this one: such a claim counts apart, and is no failure.
"""

from __future__ import annotations

import json
import os
import re
import sys
from collections import Counter
from pathlib import Path

from kit.errors import KitError

WORDS = ("measured", "recorded", "compiled", "simulated")

entries_here: list[dict] = []  # what this process has claimed


def enter(entry):
    """Add a claim of this process; also to the file that KIT_LEDGER names. Raises KitError when that cannot be written."""
    entries_here.append(entry)
    if not (path := os.environ.get("KIT_LEDGER")):
        return
    line = json.dumps(entry, ensure_ascii=False, sort_keys=True) + "\n"
    try:  # one write of one line in append mode: processes that write at once do not mix their lines
        file = os.open(path, os.O_APPEND | os.O_CREAT | os.O_WRONLY, 0o644)
        try:
            os.write(file, line.encode())
        finally:
            os.close(file)
    except OSError as error:
        raise KitError(
            f"claim: the ledger {path} (KIT_LEDGER) cannot be written: {error.strerror}. Name a file that can, or unset it."
        ) from None


def notebook():
    """The name of the notebook that runs, without folder and ending; "unknown" where nothing says it.

    KIT_NOTEBOOK (set by our nbval fixes) comes first, then Jupyter Server's JPY_SESSION_NAME, then VS Code's variable, then the script.
    """
    ipython = shell()
    named = os.environ.get("KIT_NOTEBOOK") or os.environ.get("JPY_SESSION_NAME")
    if not named and ipython is not None:
        named = ipython.user_ns.get("__vsc_ipynb_file__")
    if not named and ipython is None:
        named = sys.argv[0]
    return re.sub(r"\.(ipynb|py)\b.*$", "", os.path.basename(named or "")) or "unknown"


def shell():
    ipython = sys.modules.get("IPython")
    return ipython.get_ipython() if ipython else None


class Summary:
    """How many claims were checked, by evidence word, and how many rest on recordings. True when all held and there was one.

    A claim made again in the same notebook counts once, with its latest outcome.
    """

    def __init__(self, entries):
        latest = {(e["notebook"], e["claim"]): e for e in entries}
        self.failed = [e for e in latest.values() if not e["holds"] and not e.get("elsewhere")]
        self.differ = [e for e in latest.values() if not e["holds"] and e.get("elsewhere")]
        self.held = Counter(e["evidence"] for e in latest.values() if e["holds"])
        self.recordings = sorted({e["recording"] for e in latest.values() if e["holds"] and e["recording"]})

    def __bool__(self):
        return not self.failed and self.held.total() > 0

    def __repr__(self):
        here = [f"{self.held[word]} {word}" for word in WORDS if word != "recorded" and self.held[word]]
        n_recorded = self.held["recorded"]
        parts = [f"{self.held.total() - n_recorded} claims checked here" + (f" ({', '.join(here)})" if here else "")]
        if n_recorded:
            where = f" ({'; '.join(r.removeprefix('on ') for r in self.recordings)})" if self.recordings else ""
            parts.append(f"{n_recorded} rest on recordings{where}")
        if self.differ:
            parts.append(f"{len(self.differ)} differ from {', '.join(sorted({e['elsewhere'] for e in self.differ}))}")
        if self.failed:
            parts.append(f"{len(self.failed)} DO NOT HOLD")
        return ", ".join(parts) + "."


def summary():
    """The Summary of the claims that this process has made."""
    return Summary(entries_here)


def read_ledger(path):
    """The entries of a ledger file. Raises KitError when it is missing, or a line is not an entry."""
    try:
        lines = Path(path).read_text(encoding="utf-8").splitlines()
    except OSError as error:
        raise KitError(f"evidence: the ledger {path} cannot be read: {error.strerror}. Run the notebooks with KIT_LEDGER={path}.") from None
    entries = []
    for number, line in enumerate(lines, 1):
        try:
            entry = json.loads(line)
            entry["claim"], entry["notebook"], entry["holds"], entry["evidence"], entry["machine"], entry["versions"]["triton"]
            WORDS.index(entry["evidence"])
        except (ValueError, TypeError, KeyError):
            raise KitError(f"evidence: line {number} of {path} is not a claim of the kit; delete the file and run again.") from None
        entries.append(entry)
    return entries


def table(entries):
    """Claims by machine, versions and notebook, as text. A claim that failed once in this ledger counts as failed."""
    rows: dict[tuple, dict[str, tuple[str, bool]]] = {}
    for e in entries:
        key = (e["machine"], e["versions"]["triton"], e["versions"].get("torch", "?"), e["notebook"])
        row = rows.setdefault(key, {})
        good = e["holds"] or bool(e.get("elsewhere"))
        row[e["claim"]] = (e["evidence"], good and row.get(e["claim"], ("", True))[1])
    columns = ("machine", "Triton", "torch", "notebook", *WORDS, "failed")
    body = []
    for key, claims in sorted(rows.items()):
        held = Counter(word for word, holds in claims.values() if holds)
        body.append((*key, *(held[word] for word in WORDS), len(claims) - held.total()))
    body.append(("all", "", "", "", *(sum(row[i] for row in body) for i in range(4, 9))))
    widths = [max(len(str(row[i])) for row in [columns, *body]) for i in range(len(columns))]
    lines = [
        "  ".join(str(cell).rjust(w) if i > 3 else str(cell).ljust(w) for i, (cell, w) in enumerate(zip(row, widths, strict=True))).rstrip()
        for row in [columns, *body]
    ]
    return "\n".join(lines)


def main(paths):
    """Print the table of the ledgers at `paths` and each claim that failed; return the exit status."""
    if not paths:
        print("usage: python -m kit.evidence LEDGER.jsonl ...", file=sys.stderr)
        return 2
    try:
        entries = [entry for path in paths for entry in read_ledger(path)]
    except KitError as error:
        print(error, file=sys.stderr)
        return 2
    if not entries:
        print("evidence: no claims in the ledger, so nothing was checked.", file=sys.stderr)
        return 1
    print(table(entries))
    for e in entries:
        if not e["holds"] and e.get("elsewhere"):
            print(f"≠ {e['notebook']}: {e['claim']} [{e['evidence']}] on {e['machine']}; it held on {e['elsewhere']}")
    failed = [e for e in entries if not e["holds"] and not e.get("elsewhere")]
    for e in failed:
        print(f"✗ {e['notebook']}: {e['claim']} [{e['evidence']}] Triton {e['versions']['triton']} on {e['machine']}")
    return 1 if failed else 0
