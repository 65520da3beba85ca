"""Compares the simulator's values with a GPU's, zoo case by zoo case.

    python scripts/compare_gpu.py run --out FILE.pt       every case on the machine that kit.start() gives; outputs saved with torch.save
    python scripts/compare_gpu.py diff A.pt B.pt --json OUT    the differences, by case and by dtype, as a table and as JSON
    python scripts/compare_gpu.py both --json OUT         on a GPU machine: a live and a KIT_SIMULATE=1 run, each in a process, and the diff
    python scripts/compare_gpu.py both --self-check --json OUT    the same with the simulator on both sides: every difference must be 0
    python scripts/compare_gpu.py pending [JSON]          which cases the recorded run, docs/compare_h200.json, does not have yet

A case is a kernel, its dtype, its shape and the number of warps: those of WARPS run with each of these, since the warps decide in which
order a GPU adds. The JSON holds, for every output, both sides' bound ("bitwise" where it is 0) and difference, and a summary by family of
kernels, from which documents take their tables. A case that cannot run on one side is listed with its error and does not stop the
others. Exit status: 0 when every case ran on both sides and its outputs lie within their bound of each other (with --self-check: are
equal), else 1.
"""

from __future__ import annotations

import argparse
import contextlib
import json
import os
import subprocess
import sys
import tempfile
from pathlib import Path

import torch

ROOT = Path(__file__).resolve().parent.parent
sys.path.insert(0, str(ROOT))

# Families whose values may depend on the number of warps, and the numbers tried beside Triton's default of 4.
WARPS = {
    family: (1, 2, 8)
    for family in (
        "reduce", "column sum", "softmax", "online softmax", "persistent softmax", "layer norm", "rms norm", "scan", "rearrange",
        "matmul", "grouped matmul", "attention", "histogram", "multiply add", "fused", "mathematics",
    )
}  # fmt: skip
MARK = " @warps="


def variants(only):
    """[(name, case, warps or None)] of all comparisons whose name begins with `only`."""
    from kit.tests.zoo import CASES

    found = []
    for case in CASES:
        if case.name.startswith(only):
            found += [(case.name, case, None)]
            found += [(f"{case.name}{MARK}{warps}", case, warps) for warps in WARPS.get(case.name.split("/")[0], ())]
    return found


@contextlib.contextmanager
def with_warps(warps):
    """Launches inside use this many warps. The zoo's launches do not say, so Triton's default of 4 is what they get otherwise."""
    from triton.runtime import JITFunction

    run = JITFunction.run
    if warps is not None:
        JITFunction.run = lambda self, *args, **options: run(self, *args, **{"num_warps": warps} | options)
    try:
        yield
    finally:
        JITFunction.run = run


def run(out, only, part=(0, 1)):
    """Run the cases whose name begins with `only`; save {"machine", "outputs": {case: {name: tensor}}, "errors": {case: text}}.

    `part` (k, n) takes every n-th case from the k-th on.
    """
    from kit import machine

    here = machine.start()
    print(here, flush=True)
    outputs, errors = {}, {}
    for label, case, warps in variants(only)[part[0] :: part[1]]:
        try:
            with with_warps(warps):
                made = case.run(**{name: tensor.to(here.device) for name, tensor in case.inputs().items()})
            outputs[label] = {name: tensor.cpu().clone() for name, tensor in made.items()}
        except Exception as error:  # whatever it is, the other cases still run, and the report names this one
            errors[label] = f"{type(error).__name__}: {' '.join(str(error).split())[:300]}"
            print(f"{label}: {errors[label]}", flush=True)
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
            plain, _, warps = name.partition(MARK)
            allowed = cases[plain].allowed_apart(left.dtype)
            row = {"case": name, "family": plain.split("/")[0], "warps": int(warps or 4), "output": output, "dtype": short(left.dtype)}
            row |= {"relative": apart.relative, "largest": apart.largest, "differing": apart.differing, "elements": apart.elements}
            rows.append(row | {"allowed": allowed, "bound": allowed or "bitwise"})
    return rows, missing


def by_family(rows):
    """{family of kernels: comparisons, outputs that are equal bit for bit, largest relative difference, largest bound}."""
    summary = {}
    for row in rows:
        one = summary.setdefault(row["family"], {"cases": set(), "outputs": 0, "equal": 0, "relative": 0.0, "bound": 0.0})
        one["cases"].add(row["case"])
        one["outputs"] += 1
        one["equal"] += not row["differing"]
        one["relative"], one["bound"] = max(one["relative"], row["relative"]), max(one["bound"], row["allowed"])
    return {family: one | {"cases": len(one["cases"]), "bound": one["bound"] or "bitwise"} for family, one in sorted(summary.items())}


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
    print(f"\n{'family':<32}{'cases':>6}{'outputs':>9}{'equal':>7}{'relative':>10}  bound")
    for family, one in by_family(rows).items():
        bound = one["bound"] if one["bound"] == "bitwise" else f"{one['bound']:.0e}"
        print(f"{family:<32}{one['cases']:>6}{one['outputs']:>9}{one['equal']:>7}{one['relative']:>10.1e}  {bound}")
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
        result = {
            "machines": [a["machine"], b["machine"]],
            "by_dtype": summary,
            "by_family": by_family(rows),
            "outputs": rows,
            "not_compared": missing,
        }
        Path(json_path).write_text(json.dumps(finite(result), indent=1) + "\n")
    ok = bool(rows) and not too_far and not missing
    print(f"\n{len(too_far)} outputs too far apart, {len(missing)} cases not compared: {'agree' if ok else 'DO NOT AGREE'}")
    return ok


def pending(path):
    """[line]: the families of the zoo with more cases than the recorded run at `path` has. It is no failure: it wants a run on a GPU."""
    recorded = json.loads(Path(path).read_text())
    now = {}
    for label, _, _ in variants(""):
        family = label.split("/")[0].partition(MARK)[0]
        now[family] = now.get(family, 0) + 1
    where = f"{recorded['machines'][0]['name']}, {recorded.get('date', 'no date')}"
    had = {family: one["cases"] for family, one in recorded["by_family"].items()}
    return [
        f"{family}: {count - had.get(family, 0)} of {count} cases not yet run on a GPU (recorded: {where})"
        for family, count in sorted(now.items())
        if count > had.get(family, 0)
    ]


def describe(side):
    facts = side["machine"]
    return f"{facts['name']} ({facts['evidence']}, Triton {facts['triton']}, torch {facts['torch']})"


def finite(value):
    if isinstance(value, dict):
        return {key: finite(one) for key, one in value.items()}
    if isinstance(value, list):
        return [finite(one) for one in value]
    return "inf" if isinstance(value, float) and value == float("inf") else value


def both(json_path, self_check, only, keep, jobs):
    """Run both sides in child processes, all at the same time, then compare them."""
    folder = Path(keep) if keep else Path(tempfile.mkdtemp(prefix="compare_gpu_"))
    folder.mkdir(parents=True, exist_ok=True)
    sides = {
        "simulated_again" if self_check else "live": {"KIT_SIMULATE": "1"} if self_check else {"KIT_REQUIRE": "gpu"},
        "simulated": {"KIT_SIMULATE": "1"},
    }
    children = []
    for name, settings in sides.items():
        environment = {key: value for key, value in os.environ.items() if key not in ("KIT_SIMULATE", "KIT_REQUIRE")} | settings
        environment["TRITON_CACHE_DIR"] = str(folder / f"cache_{name}")  # neither side finds the other's work
        for k in range(jobs):
            command = [sys.executable, __file__, "run", "--out", str(folder / f"{name}.{k}.pt"), "--only", only, "--part", f"{k}/{jobs}"]
            children.append(subprocess.Popen(command, env=environment, cwd=ROOT))
    for child in children:
        if child.wait():
            raise SystemExit(f"compare_gpu: a child ended with status {child.returncode}: {' '.join(child.args)}")
    for name in sides:
        torch.save(merged([torch.load(folder / f"{name}.{k}.pt", weights_only=True) for k in range(jobs)]), folder / f"{name}.pt")
    return diff(*(folder / f"{name}.pt" for name in sides), json_path, exact=self_check)


def merged(parts):
    """One saved run of several that ran a part each."""
    whole = {"machine": parts[0]["machine"], "outputs": {}, "errors": {}}
    for part in parts:
        whole["outputs"] |= part["outputs"]
        whole["errors"] |= part["errors"]
    return whole


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
    four = verbs.add_parser("pending", help="name the cases that the recorded run does not have")
    four.add_argument("recorded", nargs="?", default=ROOT / "docs" / "compare_h200.json")
    for verb in (two, three):
        verb.add_argument("--json", help="where to write the differences")
    one.add_argument("--part", default="0/1", help="k/n: every n-th case from the k-th on")
    three.add_argument("--jobs", type=int, default=max(1, min(6, (os.cpu_count() or 2) // 2)), help="processes for each side")
    for verb in (one, three):
        verb.add_argument("--only", default="", help="only cases whose name begins so")
    given = parser.parse_args()
    if given.verb == "run":
        run(given.out, given.only, tuple(map(int, given.part.split("/"))))
        return 0
    if given.verb == "pending":
        print("\n".join(pending(given.recorded)) or "every case has run on a GPU")
        return 0
    if given.verb == "diff":
        return 0 if diff(given.a, given.b, given.json, given.exact) else 1
    return 0 if both(given.json, given.self_check, given.only, given.keep, given.jobs) else 1


if __name__ == "__main__":
    sys.exit(main())
