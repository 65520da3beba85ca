"""What became of each claim on one Triton: the claims that the stored notebooks show, held against the ledger of a run.

A claim is found again by its words in its cell. Words that changed are paired by their order in the cell, since what is left over on both
sides is most likely the same statement with another number in it.
"""

from __future__ import annotations

import re
from collections import defaultdict

from notebook_files import read

HOLDS, RECORDED, CHANGED, BROKEN = "holds", "holds, recorded", "changed text", "broken"
NOT_REACHED, DIFFERS, NOT_APPLICABLE = "not reached", "differs on this GPU", "not applicable"
STATES = (HOLDS, RECORDED, CHANGED, BROKEN, NOT_REACHED, DIFFERS, NOT_APPLICABLE)
BAD = (BROKEN, NOT_REACHED)
SHOWN = re.compile(r"^[✓✗≠] (?P<text>.*) \[(?P<word>measured|recorded|compiled|simulated)(?: [^\]]*)?\]", re.M)
SINCE = re.compile(r"\bsince Triton (\d+)\.(\d+)")
UNTIL = re.compile(r"\b(?:before|until) Triton (\d+)\.(\d+)")


def expected(path):
    """The claims that the stored notebook at `path` shows: [{file, cell, cell_id, claim}], `cell` counting code cells from 1."""
    claims, number = [], 0
    for cell in read(path).cells:
        if cell.cell_type != "code":
            continue
        number += 1
        for output in cell.outputs:
            for found in SHOWN.finditer(output.get("text") or output.get("data", {}).get("text/plain") or ""):
                claims.append({"file": f"{path.parent.name}/{path.name}", "cell": number, "cell_id": cell.id, "claim": found["text"]})
    return claims


def applies(text, version):
    """Whether a claim is about this Triton: one that says "since Triton 3.8" is not about 3.7, nor "until Triton 3.8" about 3.8."""
    here = tuple(int(n) for n in re.findall(r"\d+", version)[:2])
    since, until = SINCE.search(text), UNTIL.search(text)
    return not (since and here < tuple(map(int, since.groups()))) and not (until and here >= tuple(map(int, until.groups())))


def state_of(entry):
    """(state, detail) of a ledger's entry."""
    if not entry["holds"]:
        return (DIFFERS, f"it held on {entry['elsewhere']}") if entry.get("elsewhere") else (BROKEN, "it does not hold")
    return (RECORDED, entry.get("recording") or "") if entry["evidence"] == "recorded" else (HOLDS, "")


def outcome(wanted, entries, cells, version):
    """[(claim, (state, detail))]: every claim of `wanted`, then each that only this run made.

    `entries` are the ledger's, with file and cell; `cells` is {(file, cell): why it failed}, {} when none did.
    """
    made, places = defaultdict(list), defaultdict(list)
    for entry in {(e["file"], e["cell"], e["claim"]): e for e in _worst_last(entries)}.values():
        made[entry["file"], entry["cell"]].append(entry)
    for claim in wanted:
        places[claim["file"], claim["cell"]].append(claim)
    found = []
    for place in sorted({*made, *places}):
        found += _of_cell(places[place], made[place], _reason(cells, place), version)
    return found


def _worst_last(entries):
    """A claim made twice in one cell counts once, and one that failed counts as failed: the entries with those at the end."""
    return sorted(entries, key=lambda entry: not entry["holds"])


def _reason(cells, place):
    """Why nothing was claimed at `place`: its own cell failed, or else an earlier one of that notebook did."""
    if place in cells:
        return cells[place]
    earlier = sorted(cell for file, cell in cells if file == place[0] and cell < place[1])
    return f"after cell {earlier[-1]} failed: {cells[place[0], earlier[-1]]}" if earlier else "the cell ran, and did not make it"


def _of_cell(wanted, entries, reason, version):
    by_text = {entry["claim"]: entry for entry in entries}
    known = {claim["claim"] for claim in wanted}
    others = [entry for entry in entries if entry["claim"] not in known]
    found = []
    for claim in wanted:
        entry = by_text.get(claim["claim"])
        if entry is not None:
            found.append((claim, state_of(entry)))
        elif not applies(claim["claim"], version):
            found.append((claim, (NOT_APPLICABLE, "")))
        elif others:
            now = others.pop(0)
            state, detail = state_of(now)
            found.append((claim, (state, f"{detail}: {now['claim']}") if state in BAD else (CHANGED, now["claim"])))
        else:
            found.append((claim, (NOT_REACHED, reason)))
    more = [{key: entry[key] for key in ("file", "cell", "cell_id", "claim")} for entry in others]
    return found + [(claim, state_of(entry)) for claim, entry in zip(more, others)]
