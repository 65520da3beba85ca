"""The tables of docs/examine.md, made from docs/examine.json between `<!-- made: NAME -->` and `<!-- end -->`."""

from __future__ import annotations

import re
import statistics
from collections import Counter, defaultdict

from examine_case import FALSE, TRUE

ALARM = ("wrong", "fragile")
BLOCK = re.compile(r"(<!-- made: (?P<name>[a-z ]+) -->\n)(.*?)(<!-- end -->\n)", re.DOTALL)
NAMES = {"liger": "Liger-Kernel", "fla": "flash-linear-attention", "tutorials": "Triton's tutorials", "attorch": "attorch"}


def write(page, data, check=False):
    """Put the tables into the page and return 0; with `check`, write nothing and return 1 where it would change."""
    text = page.read_text(encoding="utf-8")
    made = BLOCK.sub(lambda found: found[1] + TABLES[found["name"]](data) + found[4], text)
    if check:
        return int(made != text)
    page.write_text(made, encoding="utf-8")
    return 0


def table(head, rows):
    """A Markdown table."""
    lines = [head, ["---"] * len(head), *rows]
    return "".join(f"| {' | '.join(str(cell).replace('|', '/') for cell in line)} |\n" for line in lines)


def alarms(row):
    """The wrong and fragile notes of a row."""
    return [note for note in row["notes"] if note["verdict"] in ALARM]


# ---- Faults


def faults(data):
    """By rule: faulty kernels, found by the rule itself, found by another rule alone, missed; twins, false alarms."""
    by_rule = defaultdict(Counter)
    for one in data["faults"]:
        row = by_rule[one["rule"]]
        row["all"] += 1
        row["own" if one["found"] else "elsewhere" if one["elsewhere"] else "missed"] += 1
        row["alarms"] += bool(one["alarms"])
    total = sum(by_rule.values(), Counter())
    rows = [[name, row["all"], row["own"], row["elsewhere"], row["missed"], row["all"], row["alarms"]] for name, row in by_rule.items()]
    rows.append(["all", total["all"], total["own"], total["elsewhere"], total["missed"], total["all"], total["alarms"]])
    return table(["rule", "faulty kernels", "found by it", "by another alone", "missed", "right twins", "with a false alarm"], rows)


def misses(data):
    """Each fault that its own rule does not find, and each twin with an alarm."""
    rows, true = [], defaultdict(list)
    for one in data["faults"]:
        if not one["found"]:
            seen = f"found as {', '.join(f'`{key}`' for key in one['elsewhere'])}" if one["elsewhere"] else "missed"
            rows.append([one["rule"], one["fault"], seen, one["why"]])
        if one["alarms"]:
            rows.append([one["rule"], f"{one['fault']}, the twin", f"alarm {', '.join(one['alarms'])}", one["alarm_text"]])
        for text in one["beside"]:
            true[one["rule"], text].append(one["fault"])
    for (rule, text), names in true.items():
        who = f"{len(names)} twins" if len(names) > 2 else f"{' and '.join(names)}, the twin{'s' if len(names) > 1 else ''}"
        key, _, why = text.partition(": ")
        key, _, rest = (f"{key}:{why.partition(': ')[0]}", "", why.partition(": ")[2]) if key.isdigit() else (key, "", why)
        rows.append([rule, who, f"true: `{key}`", rest])
    return table(["rule", "fault", "what happened", "why"], rows)


# ---- Kernels of others


def libraries(data):
    """By library: kernels, those without a note, notes judged true and false, seconds."""
    rows = []
    for library, name in NAMES.items():
        mine = [row for row in data["rows"] if row["library"] == library]
        if not mine:
            continue
        notes = [note for row in mine for note in alarms(row)]
        judged = Counter(note["judged"] for note in notes)
        walls = [row["wall"] for row in mine if not row["error"]]
        clean = sum(not alarms(row) for row in mine if not row["error"])
        rows.append([name, len(mine), clean, judged[TRUE], judged[FALSE], f"{statistics.median(walls):.0f} s", f"{max(walls):.0f} s"])
    head = ["library", "kernels", "nothing told", "true notes", "false alarms", "time, median", "time, longest"]
    return table(head, rows)


def by_rule(data):
    """By rule: notes judged true and false, wrong and fragile."""
    counts = defaultdict(Counter)
    for row in data["rows"]:
        for note in alarms(row):
            counts[note["rule"]][note["verdict"], note["judged"]] += 1
    rows = [
        [rule, row["wrong", TRUE], row["wrong", FALSE], row["fragile", TRUE], row["fragile", FALSE], sum(row.values())]
        for rule, row in sorted(counts.items())
    ]
    return table(["rule", "wrong, true", "wrong, false", "fragile, true", "fragile, false", "all"], rows)


def kernels(data):
    """Each kernel: what was told, and the time."""
    rows = []
    for row in sorted(data["rows"], key=lambda row: list(NAMES).index(row["library"])):
        told = ", ".join(dict.fromkeys(f"{note['rule']}:{note['key']}" for note in alarms(row))) or "nothing"
        blind = ", ".join(sorted({f"{note['rule']}:{note['key']}" for note in row["notes"] if note["verdict"] == "not visible here"}))
        name = f"{NAMES[row['library']]}: {row['case']}"
        rows.append([name, row["error"] or told, blind, f"{row['wall']:.0f} s", f"{row['load']:.0f}"])
    return table(["kernel", "wrong or fragile", "not visible here", "time", "load"], rows)


def judgements(data):
    """Each wrong or fragile note, with the judgement; equal ones of a library together."""
    groups = defaultdict(list)
    for row in data["rows"]:
        for note in alarms(row):
            groups[row["library"], note["rule"], note["key"], note["judged"], note["why"]].append(row["case"])
    rows = [
        [NAMES[library], f"{rule}:{key}", ", ".join(dict.fromkeys(cases)), judged or "not judged", why]
        for (library, rule, key, judged, why), cases in sorted(groups.items())
    ]
    return table(["library", "note", "kernels", "judged", "why"], rows)


TABLES = {
    "faults": faults,
    "misses": misses,
    "libraries": libraries,
    "by rule": by_rule,
    "kernels": kernels,
    "judgements": judgements,
}
