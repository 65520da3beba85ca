"""How good `kit.examine` is: on kernels of others, and on the faulty kernels of kit/tests/faults with their right twins.

    python benchmarks/examine_foreign.py --site FOLDER --tutorials TRITON --attorch ATTORCH --json docs/examine.json
    python benchmarks/examine_foreign.py --only liger/rms --site FOLDER          one case, its card printed
    python benchmarks/examine_foreign.py --table                                 the tables of docs/examine.md, from docs/examine.json

FOLDER holds Liger-Kernel and flash-linear-attention (pip install --no-deps --target FOLDER liger-kernel==0.8.5 fla-core==0.6.0
flash-linear-attention==0.6.0 packaging einops). TRITON and ATTORCH are checkouts of triton-lang/triton and BobMcDear/attorch. A library
whose folder is not given is left out, and what the JSON file holds of it stays. Each case goes through kit.examine as a reader's kernel
would: without `grid`, the library's own launcher is called and its launch is caught. Cases run one after the other.

Exit status: 0 when every wrong or fragile note has been judged (examine_cases_*.py) and no fault is missed that was found before.
"""

from __future__ import annotations

import argparse
import datetime
import json
import os
import platform
import sys
import tempfile
import time
import warnings
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
sys.path[:0] = [str(ROOT), str(Path(__file__).parent)]
DATA, PAGE = ROOT / "docs" / "examine.json", ROOT / "docs" / "examine.md"
LIBRARIES = {
    "liger": "Liger-Kernel 0.8.5",
    "fla": "flash-linear-attention 0.6.0",
    "tutorials": "Triton's tutorials",
    "attorch": "attorch",
}
TIMEOUT = 240.0  # seconds for a group of rules: the machine may be busy


def cases_of(library, given, folder):
    """{name: Foreign} of a library, or None where its files were not named."""
    from examine_sources import write_packages, write_tutorial

    if library in ("liger", "fla"):
        if not given.site:
            return None
        sys.path.append(given.site)
        if library == "fla":
            write_packages(folder, "fla", Path(given.site, "fla"))
    elif library == "tutorials":
        if not given.tutorials:
            return None
        place = Path(given.tutorials, "python", "tutorials")
        files = sorted((place if place.is_dir() else Path(given.tutorials)).glob("0[1-6]-*.py"))
        for path in files:
            write_tutorial(folder, path)
    else:
        if not given.attorch:
            return None
        write_packages(folder, "attorch", Path(given.attorch, "attorch"))
    return __import__(f"examine_cases_{library}").CASES


def examined(library, name, case):
    """A row of the JSON: the notes with their judgements, and the time."""
    from examine_case import judgement

    from kit.errors import KitError
    from kit.examine import examine

    begun, load = time.perf_counter(), os.getloadavg()[0]
    row = {"library": library, "case": name, "error": "", "notes": []}
    try:
        card = examine(
            case.kernel, case.call, sizes=case.sizes, reference=case.reference, tolerance=case.tolerance, timeout=TIMEOUT, **case.meta
        )
    except KitError as error:
        return row | {"error": str(error), "wall": round(time.perf_counter() - begun, 1), "load": round(load, 1)}
    row |= {"kernel": card.kernel, "sizes": card.sizes, "seconds": card.seconds, "text": card.text, "reference": case.reference is not None}
    for note in card.notes:
        told = note.data()
        told.pop("evidence")
        judged, why = judgement(case, told) if note.verdict in ("wrong", "fragile") else ("", "")
        code = told["numbers"].pop("code", None)
        row["notes"].append({**told, "judged": judged, "why": why} if code is None else told)
    return row | {"wall": round(time.perf_counter() - begun, 1), "load": round(load, 1)}


def foreign(given, kept):
    """The rows of the libraries that are at hand; `kept` are those of an earlier run, {(library, case): row}."""
    rows = dict(kept)
    with tempfile.TemporaryDirectory(prefix="kit-examine-") as folder:
        sys.path.insert(0, folder)
        for library in LIBRARIES:
            if not library.startswith(given.only.split("/")[0]):
                continue
            for name, case in (cases_of(library, given, folder) or {}).items():
                if not f"{library}/{name}".startswith(given.only) or (given.missing and (library, name) in kept):
                    continue
                row = rows[library, name] = examined(library, name, case)
                print(as_line(row), flush=True)
                if given.only.count("/"):
                    print(row.get("text", row["error"]))
                if given.json:
                    save(given.json, rows=list(rows.values()))
    return list(rows.values())


def as_line(row):
    told = [n for n in row["notes"] if n["verdict"] in ("wrong", "fragile")]
    keys = ", ".join(f"{n['rule']}:{n['key']}{'' if n['judged'] else '?'}" for n in told)
    return f"{row['library'] + '/' + row['case']:<36}{row['wall']:>7.1f} s  {row['error'] or keys or 'nothing wrong or fragile'}"


def rejudged(given, rows):
    """The rows with the judgements that the case files hold now, so that a note judged later needs no new run."""
    from examine_case import judgement

    with tempfile.TemporaryDirectory(prefix="kit-examine-") as folder:
        sys.path.insert(0, folder)
        for library in LIBRARIES:
            cases = cases_of(library, given, folder) or {}
            for row in rows:
                if row["library"] != library or row["case"] not in cases:
                    continue
                for note in row["notes"]:
                    if note["verdict"] in ("wrong", "fragile"):
                        note["judged"], note["why"] = judgement(cases[row["case"]], note)
    return rows


# ---- The file and the page


def load(path):
    """What the JSON file holds: {"rows": [...], "faults": [...], "machine": {...}}."""
    return json.loads(Path(path).read_text(encoding="utf-8")) if Path(path).exists() else {"rows": [], "faults": []}


def save(path, **changed):
    """Put `changed` into the JSON file, whole or not at all."""
    import torch
    import triton

    held = load(path) | changed
    held["machine"] = {
        "processor": processor(),
        "cores": os.cpu_count(),
        "python": platform.python_version(),
        "torch": torch.__version__,
        "triton": triton.__version__,
        "date": datetime.date.today().isoformat(),
    }
    for row in held["rows"]:
        row.pop("text", None)
    part = Path(f"{path}.part")
    part.write_text(json.dumps(held, indent=1, ensure_ascii=False) + "\n", encoding="utf-8")
    part.replace(path)


def processor():
    """The processor's name."""
    lines = Path("/proc/cpuinfo").read_text().splitlines() if Path("/proc/cpuinfo").exists() else []
    names = [line.split(":", 1)[1].strip() for line in lines if line.startswith("model name")]
    return names[0] if names else platform.processor() or platform.machine()


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--only", default="", help='only cases whose library/name begins so; "faults" for the faults alone')
    parser.add_argument("--site", help="folder with Liger-Kernel and flash-linear-attention")
    parser.add_argument("--tutorials", help="a checkout of triton-lang/triton, or a folder with its tutorials")
    parser.add_argument("--attorch", help="a checkout of BobMcDear/attorch")
    parser.add_argument("--missing", action="store_true", help="only cases that the JSON file does not hold yet")
    parser.add_argument("--judge", action="store_true", help="run nothing: put the judgements of the case files into the JSON file")
    parser.add_argument("--json", help="where to keep the rows")
    parser.add_argument("--table", action="store_true", help="write the tables of docs/examine.md from docs/examine.json, and run nothing")
    parser.add_argument("--check", action="store_true", help="with --table: write nothing, fail when the page would change")
    given = parser.parse_args()
    if given.table:
        from examine_tables import write

        return write(PAGE, load(DATA), given.check)
    warnings.simplefilter("ignore")
    from kit import machine

    machine.start()
    held = load(given.json) if given.json else {"rows": [], "faults": []}
    kept = {(row["library"], row["case"]): row for row in held["rows"]}
    if given.judge:
        save(given.json, rows=rejudged(given, list(kept.values())))
        return 0
    if given.only in ("", "faults"):
        from kit.tests.examined_faults import measured

        faults = []
        for one in measured(print, held["faults"] if given.missing else ()):
            faults.append(one)
            if given.json:
                save(given.json, faults=faults)
    rows = foreign(given, kept) if given.only != "faults" else list(kept.values())
    unjudged = [n for row in rows for n in row["notes"] if n["verdict"] in ("wrong", "fragile") and not n["judged"]]
    print(f"{len(rows)} kernels of others, {len(unjudged)} notes that nobody has judged")
    return 1 if unjudged or any(row["error"] for row in rows) else 0


if __name__ == "__main__":
    sys.exit(main())
