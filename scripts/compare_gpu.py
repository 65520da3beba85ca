"""Compares the simulator's values with a GPU's, zoo case by zoo case.

    python scripts/compare_gpu.py run --out FILE.pt       every case on the machine that kit.start() gives; outputs saved with torch.save
    python scripts/compare_gpu.py diff A.pt B.pt --json OUT    the differences, by case and by dtype, as a table and as JSON
    python scripts/compare_gpu.py both --json OUT         on a GPU machine: a live and a KIT_SIMULATE=1 run, each in a process, and the diff
    python scripts/compare_gpu.py both --self-check --json OUT    the same with the simulator on both sides: every difference must be 0

A case that cannot run on one side is listed with its error and does not stop the others. Exit status: 0 when every case ran on both
sides and its outputs lie within its tolerance of each other (with --self-check: are equal), else 1.
"""

from __future__ import annotations

import argparse
import json
import os
import subprocess
import sys
import tempfile
from pathlib import Path

import torch

ROOT = Path(__file__).resolve().parent.parent
sys.path.insert(0, str(ROOT))


def run(out, only):
    """Run the cases whose name begins with `only`; save {"machine", "outputs": {case: {name: tensor}}, "errors": {case: text}}."""
    from kit import machine
    from kit.tests.zoo import CASES

    here = machine.start()
    print(here, flush=True)
    outputs, errors = {}, {}
    for case in CASES:
        if not case.name.startswith(only):
            continue
        try:
            made = case.run(**{name: tensor.to(here.device) for name, tensor in case.inputs().items()})
            outputs[case.name] = {name: tensor.cpu().clone() for name, tensor in made.items()}
        except Exception as error:  # whatever it is, the other cases still run, and the report names this one
            errors[case.name] = f"{type(error).__name__}: {' '.join(str(error).split())[:300]}"
            print(f"{case.name}: {errors[case.name]}", flush=True)
    facts = {"name": here.name, "target": here.target, "live": here.live, "evidence": here.evidence, **here.versions}
    torch.save({"machine": facts, "outputs": outputs, "errors": errors}, out)
    print(f"{len(outputs)} cases run, {len(errors)} could not; written to {out}")


def compared(a, b):
    """[row] of two saved runs, and [text] of what could not be compared. A row is one output of one case."""
    from kit.tests.zoo import CASES
    from kit.tests.zoo_case import difference, short

    cases = {case.name: case for case in CASES}
    rows, missing = [], []
    for name in sorted(a["outputs"].keys() | a["errors"].keys() | b["outputs"].keys() | b["errors"].keys()):
        if name not in a["outputs"] or name not in b["outputs"]:
            why = [f"{side['machine']['name']} ({side['machine']['evidence']}): {side['errors'].get(name, 'not run')}" for side in (a, b)
                   if name not in side["outputs"]]  # fmt: skip
            missing.append(f"{name}: {'; '.join(why)}")
            continue
        for output, left in a["outputs"][name].items():
            right = b["outputs"][name][output]
            apart = difference(left, right)
            row = {"case": name, "output": output, "dtype": short(left.dtype), "relative": apart.relative, "largest": apart.largest}
            rows.append(row | {"differing": apart.differing, "elements": apart.elements, "allowed": cases[name].allowed(left.dtype)})
    return rows, missing


def by_dtype(rows):
    """{dtype: the largest differences of its rows, and the case that has the largest relative one}."""
    summary = {}
    for row in rows:
        one = summary.setdefault(row["dtype"], {"relative": 0.0, "largest": 0.0, "differing": 0, "elements": 0, "outputs": 0, "case": ""})
        if row["relative"] > one["relative"]:
            one["relative"], one["case"] = row["relative"], f"{row['case']}, {row['output']}"
        one["largest"] = max(one["largest"], row["largest"])
        for key in ("differing", "elements"):
            one[key] += row[key]
        one["outputs"] += 1
    return summary


def diff(first, second, json_path, exact):
    """Print and write the differences of two runs; True when all are small enough (`exact`: zero)."""
    a, b = (torch.load(path, weights_only=True) for path in (first, second))
    rows, missing = compared(a, b)
    summary = by_dtype(rows)
    print(f"{describe(a)} against {describe(b)}: {len(rows)} outputs of {len({row['case'] for row in rows})} cases")
    print(f"\n{'dtype':<15}{'relative':>10}{'largest':>12}{'differing':>11}{'of':>9}  case with the largest relative difference")
    for dtype, one in sorted(summary.items()):
        print(f"{dtype:<15}{one['relative']:>10.1e}{one['largest']:>12.3g}{one['differing']:>11,}{one['elements']:>9,}  {one['case']}")
    too_far = [row for row in rows if row["relative"] > (0.0 if exact else row["allowed"])]
    print(f"\n{'output':<60}{'dtype':<10}{'relative':>10}{'largest':>12}{'differing':>11}{'of':>8}")
    for row in sorted(rows, key=lambda row: -row["relative"]):
        if row["differing"]:
            mark = "  <- more than allowed" if row in too_far else ""
            name = f"{row['case']}, {row['output']}"
            print(
                f"{name:<60}{row['dtype']:<10}{row['relative']:>10.1e}{row['largest']:>12.3g}{row['differing']:>11,}{row['elements']:>8,}{mark}"
            )
    for text in missing:
        print(f"not compared: {text}")
    if json_path:
        # JSON has no infinity: an output that is infinitely far off is written as the text "inf".
        result = {"machines": [a["machine"], b["machine"]], "by_dtype": summary, "outputs": rows, "not_compared": missing}
        Path(json_path).write_text(json.dumps(finite(result), indent=1) + "\n")
    ok = bool(rows) and not too_far and not missing
    print(f"\n{len(too_far)} outputs too far apart, {len(missing)} cases not compared: {'agree' if ok else 'DO NOT AGREE'}")
    return ok


def describe(side):
    facts = side["machine"]
    return f"{facts['name']} ({facts['evidence']}, Triton {facts['triton']}, torch {facts['torch']})"


def finite(value):
    if isinstance(value, dict):
        return {key: finite(one) for key, one in value.items()}
    if isinstance(value, list):
        return [finite(one) for one in value]
    return "inf" if isinstance(value, float) and value == float("inf") else value


def both(json_path, self_check, only, keep):
    """Run both sides in child processes, then compare them."""
    folder = Path(keep) if keep else Path(tempfile.mkdtemp(prefix="compare_gpu_"))
    folder.mkdir(parents=True, exist_ok=True)
    sides = {
        "simulated_again" if self_check else "live": {"KIT_SIMULATE": "1"} if self_check else {"KIT_REQUIRE": "gpu"},
        "simulated": {"KIT_SIMULATE": "1"},
    }
    for name, settings in sides.items():
        environment = {key: value for key, value in os.environ.items() if key not in ("KIT_SIMULATE", "KIT_REQUIRE")} | settings
        command = [sys.executable, __file__, "run", "--out", str(folder / f"{name}.pt"), "--only", only]
        subprocess.run(command, env=environment, cwd=ROOT, check=True)
    return diff(*(folder / f"{name}.pt" for name in sides), json_path, exact=self_check)


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    verbs = parser.add_subparsers(dest="verb", required=True)
    one = verbs.add_parser("run", help="run every case here")
    one.add_argument("--out", required=True)
    two = verbs.add_parser("diff", help="compare two saved runs")
    two.add_argument("a")
    two.add_argument("b")
    two.add_argument("--exact", action="store_true", help="allow no difference")
    three = verbs.add_parser("both", help="run live and simulated, then compare")
    three.add_argument("--self-check", action="store_true", help="simulate both sides")
    three.add_argument("--keep", help="folder for the saved outputs")
    for verb in (two, three):
        verb.add_argument("--json", help="where to write the differences")
    for verb in (one, three):
        verb.add_argument("--only", default="", help="only cases whose name begins so")
    given = parser.parse_args()
    if given.verb == "run":
        run(given.out, given.only)
        return 0
    if given.verb == "diff":
        return 0 if diff(given.a, given.b, given.json, given.exact) else 1
    return 0 if both(given.json, given.self_check, given.only, given.keep) else 1


if __name__ == "__main__":
    sys.exit(main())
