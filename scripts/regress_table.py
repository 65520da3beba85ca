"""The result of `make regress` as data, Markdown and JUnit XML, and what changed from another result."""

from __future__ import annotations

import json
import xml.etree.ElementTree as ElementTree
from collections import Counter

from regress_claims import BAD, BROKEN, CHANGED, DIFFERS, HOLDS, NOT_APPLICABLE, NOT_REACHED, RECORDED, STATES

MARK = {HOLDS: "✓", RECORDED: "✓ recorded", CHANGED: "changed text", BROKEN: "**broken**", NOT_REACHED: "**not reached**"}
MARK |= {DIFFERS: "differs", NOT_APPLICABLE: "—"}


def gather(columns, files=()):
    """The result as JSON can hold it, from [(column, outcome)] and the notebooks that ran.

    A column is a dict with its key, an outcome as regress_claims gives it.
    """
    rows = {}
    for column, found in columns:
        for claim, (state, detail) in found:
            row = rows.setdefault((claim["file"], claim["cell"], claim["claim"]), dict(claim, states={}))
            row["states"][column["key"]] = [state, detail] if detail else [state]
    order = {"notebooks": 0, "solutions": 1}
    claims = sorted(rows.values(), key=lambda row: (order.get(row["file"].split("/")[0], 2), row["file"], row["cell"]))
    return {"files": sorted(files), "columns": [column for column, _ in columns], "claims": claims}


def to_json(result):
    """One claim a line, so that a difference between two results can be read."""
    head = json.dumps({"files": result["files"], "columns": result["columns"]}, indent=1, ensure_ascii=False)
    lines = ",\n".join("  " + json.dumps(claim, ensure_ascii=False, sort_keys=True) for claim in result["claims"])
    return head.removesuffix("\n}") + f',\n "claims": [\n{lines}\n ]\n}}\n'


def counts(result, key):
    """How many claims are in each state in the column `key`."""
    return Counter(row["states"][key][0] for row in result["claims"] if key in row["states"])


def bad(result):
    """Whether anything is broken: a claim, an adapter, a cell, or a column that could not be run."""
    return any(column["note"] or column["cells_failed"] or any(column["adapters"].values()) for column in result["columns"]) or any(
        state[0] in BAD for row in result["claims"] for state in row["states"].values()
    )


def changes(old, new):
    """What is otherwise in `new` than in `old`, one sentence a line; of columns and notebooks that both ran."""
    found = []
    keys = [column["key"] for column in new["columns"] if column["key"] in {column["key"] for column in old["columns"]}]
    adapters = {column["key"]: column["adapters"] for column in old["columns"]}
    for column in new["columns"]:
        for module, why in column["adapters"].items():
            if column["key"] in adapters and bool(why) != bool(adapters[column["key"]].get(module)):
                found.append(f"{module} on {column['key']}: {'works again' if not why else 'no longer works: ' + why}")
    both = set(old["files"]) & set(new["files"])
    before = {_identity(row): row for row in old["claims"] if row["file"] in both}
    for row in (row for row in new["claims"] if row["file"] in both):
        was = before.pop(_identity(row), None)
        if was is None:
            found.append(f"{_where(row)}: new: {row['claim']}")
            continue
        for key in keys:
            a, b = was["states"].get(key, ["not made"])[0], row["states"].get(key, ["not made"])[0]
            if a != b:
                found.append(f"{_where(row)}: {row['claim']}: {a} → {b} on {key}")
    return found + [f"{_where(row)}: gone: {row['claim']}" for row in before.values()]


def _identity(row):
    return row["file"], row["cell_id"], row["claim"]  # a cell that moved keeps its id


def _where(row):
    return f'{row["file"]}, code cell {row["cell"]} ("{row["cell_id"]}")'


# ---- Markdown
def markdown(result, against=()):
    """The table for people. `against` is [(name, older result)]."""
    return "\n".join([*_summary(result), *_broken(result), *_changed_from(result, against), *_all(result)]) + "\n"


def _summary(result):
    lines = ["# Claims by Triton version", ""]
    lines += ["| | holds here | rests on a recording | changed text | broken | not reached | differs | not applicable | adapters | time |"]
    lines += ["|---|" + "---:|" * (len(STATES) + 2)]
    for column in result["columns"]:
        found = counts(result, column["key"])
        failed = sum(map(bool, column["adapters"].values()))
        adapters = f"{len(column['adapters']) - failed} of {len(column['adapters'])}"
        cells = " | ".join(str(found[state]) for state in STATES)
        lines.append(f"| {column['key']} | {cells} | {adapters} | {column['seconds']:.0f} s |")
    return [*lines, ""]


def _broken(result):
    lines = []
    for column in result["columns"]:
        told = [f"- {column['note']}"] if column["note"] else []
        told += [f"- adapter `{module}` does not work: {why}" for module, why in column["adapters"].items() if why]
        for row in result["claims"]:
            state, *detail = row["states"].get(column["key"], [HOLDS])
            if state in BAD:
                told.append(f"- {_where(row)}: {row['claim']}: {state}" + (f" ({detail[0]})" if detail else ""))
        told += [f"- {cell['file']}, code cell {cell['cell']}, failed: {cell['why']}" for cell in column["cells_failed"]]
        if told:
            lines += [f"## Broken on {column['key']}", "", *told, ""]
        read = [f"- {cell['file']}, code cell {cell['cell']}: {cell['why']}" for cell in column["cells_changed"]]
        if read:
            lines += [f"## Outputs that read differently on {column['key']}", "", *read, ""]
    return lines


def _changed_from(result, against):
    lines = []
    for name, old in against:
        lines += [f"## Changed from {name}", "", *([f"- {one}" for one in changes(old, result)] or ["Nothing."]), ""]
    return lines


def _all(result):
    keys = [column["key"] for column in result["columns"]]
    lines, file = ["## Every claim", ""], None
    for row in result["claims"]:
        if row["file"] != file:
            file = row["file"]
            lines += ["", f"### {file}", "", f"| cell | claim | {' | '.join(keys)} |", "|---:|---|" + "---|" * len(keys)]
        marks = [MARK.get(row["states"].get(key, [""])[0], "—") for key in keys]
        text = row["claim"].replace("|", "\\|")
        lines.append(f"| {row['cell']} | {text} | {' | '.join(marks)} |")
    return lines


# ---- JUnit
def junit(result):
    """The result as JUnit XML: a suite a column, a case an adapter and a claim; not applicable is skipped, what is broken failed."""
    suites = ElementTree.Element("testsuites", name="regress")
    for column in result["columns"]:
        suite = ElementTree.SubElement(suites, "testsuite", name=f"Triton {column['key']}", time=f"{column['seconds']:.1f}")
        if column["note"]:
            _case(suite, "run", column["key"], BROKEN, column["note"])
        for module, why in column["adapters"].items():
            _case(suite, "adapters", module, BROKEN if why else HOLDS, why)
        for cell in column["cells_failed"]:
            _case(suite, cell["file"], f"code cell {cell['cell']}", BROKEN, cell["why"])
        for row in result["claims"]:
            if state := row["states"].get(column["key"]):
                _case(suite, row["file"], f"cell {row['cell']} ({row['cell_id']}): {row['claim']}", *state)
        cases = list(suite)
        suite.set("tests", str(len(cases)))
        suite.set("failures", str(sum(case.find("failure") is not None for case in cases)))
        suite.set("skipped", str(sum(case.find("skipped") is not None for case in cases)))
    ElementTree.indent(suites)
    return ElementTree.tostring(suites, encoding="unicode", xml_declaration=True) + "\n"


def _case(suite, where, name, state, detail=""):
    case = ElementTree.SubElement(suite, "testcase", classname=where, name=name)
    if state in BAD:
        ElementTree.SubElement(case, "failure", message=f"{state}: {detail}" if detail else state)
    elif state == NOT_APPLICABLE:
        ElementTree.SubElement(case, "skipped", message=state)
    elif state != HOLDS:
        ElementTree.SubElement(case, "system-out").text = f"{state}: {detail}" if detail else state
