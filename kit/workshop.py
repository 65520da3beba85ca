"""A workshop's progress: each learner exports a file, and whoever leads it makes one table of them.

kit.progress().export("ada.json")                    # each learner
kit.progress().merge("exports")                      # the leader: a folder, or files
python -m kit.workshop exports --out table.csv       # the same in a terminal
"""

from __future__ import annotations

import argparse
import csv
import datetime
import html
import io
import json
import sys
from collections import Counter
from dataclasses import dataclass, field
from pathlib import Path

from kit import progress_file
from kit.errors import BadInput, KitError, WrongType, quoted
from kit.progress import STATES, entry_of
from kit.progress_page import MARKS, hints_of

_FORMULAS = ("=", "+", "-", "@", "\t", "\r")
KIND, VERSION = "triton-rule-by-rule progress", 1
COLUMNS = ("learner", "step", "title", "notebook", "state", "checks", "hints", "exported")


def export(progress, path, learner=None):
    """Write `progress` to `path`; see Progress.export."""
    path = _path(path, "export")
    learner = path.stem if learner is None else learner
    if not isinstance(learner, str) or not learner.strip():
        raise WrongType(f"progress: export: learner must be a name as text; got {quoted(learner)}.")
    now = datetime.datetime.now(datetime.UTC).isoformat(timespec="seconds")
    rows = [{"learner": learner, "step": number, **step, "exported": now} for number, step in progress.steps.items()]
    if path.suffix == ".json":
        content = {"kind": KIND, "version": VERSION, "learner": learner, "exported": now, "steps": progress.steps}
        return _write(path, json.dumps(content, indent=1, ensure_ascii=False) + "\n", "export")
    return _write(path, _csv(rows), "export")


def _path(path, verb):
    if not isinstance(path, (str, Path)):
        raise WrongType(f"progress: {verb}: path must be a file's name; got {quoted(path)}.")
    path = Path(path).expanduser()
    if path.suffix not in (".json", ".csv"):
        raise BadInput(f"progress: {verb}: the file's name must end in .json or .csv; got {quoted(str(path))}.")
    return path


def _write(path, text, verb):
    try:
        if path.exists() and not _ours(path):
            raise BadInput(f"progress: {verb}: {path} is there and is no export, so it is left as it is. Give another name.")
        path.parent.mkdir(parents=True, exist_ok=True)
        progress_file.replace(path, text.encode())
    except OSError as error:
        raise KitError(f"progress: {verb}: {path} cannot be written ({error.strerror}).") from None
    return path


def _ours(path):
    held = path.read_bytes()
    return held.startswith(b",".join(name.encode() for name in COLUMNS)) or f'"kind": "{KIND}"'.encode() in held[:200]


def _csv(rows):
    text = io.StringIO(newline="")
    writer = csv.DictWriter(text, COLUMNS, extrasaction="ignore")
    writer.writeheader()
    writer.writerows({key: _plain(value) for key, value in row.items()} for row in rows)
    return text.getvalue()


def _plain(value):
    """A text that a spreadsheet would run as a formula, with the quote in front that makes it a text."""
    return f"'{value}" if isinstance(value, str) and value.startswith(_FORMULAS) else value


def _meant(value):
    return value[1:] if value.startswith("'") and value[1:].startswith(_FORMULAS) else value


# ---- Many learners
@dataclass
class Workshop:
    """The progress of many learners: `learners` is {name: {step: entry}}, `unread` {file: why}. True when every learner has passed all."""

    learners: dict
    titles: dict
    exported: dict = field(default_factory=dict)
    unread: dict = field(default_factory=dict)

    @property
    def passed(self):
        """{step: how many learners have passed it}."""
        return {number: sum(steps[number]["state"] == "passed" for steps in self.learners.values()) for number in self.titles}

    @property
    def stuck(self):
        """{step: how many learners have checked it and not passed}, the most first."""
        found = Counter(number for steps in self.learners.values() for number, step in steps.items() if step["state"] == "wrong")
        return dict(found.most_common())

    def __bool__(self):
        return bool(self.learners) and not self.unread and all(n == len(self.learners) for n in self.passed.values())

    def __len__(self):
        return len(self.learners)

    def __repr__(self):
        n, done = len(self), sum(self.passed.values())
        said = f"{n} learner{'' if n == 1 else 's'}, {done} of {n * len(self.titles)} steps passed"
        if self.stuck:
            number, count = next(iter(self.stuck.items()))
            said += f"; most are stuck at {number}, {self.titles[number]['title']} ({count})"
        if self.unread:
            said += f"; not read: {'; '.join(f'{file} ({why})' for file, why in self.unread.items())}"
        return said

    def rows(self):
        """A list of flat dicts, one for each learner and step: `pandas.DataFrame(workshop.rows())`."""
        return [
            {"learner": learner, "step": number, **self.titles[number], **step, "exported": self.exported.get(learner, "")}
            for learner, steps in self.learners.items()
            for number, step in steps.items()
        ]

    def export(self, path):
        """Write the table to `path`: .csv with a line for each learner and step, or .json with the same. Returns the Path."""
        path = _path(path, "export")
        if path.suffix == ".csv":
            return _write(path, _csv(self.rows()), "export")
        content = {"kind": KIND, "version": VERSION, "rows": self.rows()}
        return _write(path, json.dumps(content, indent=1, ensure_ascii=False) + "\n", "export")

    def _repr_html_(self):
        left = "style='text-align:left'"
        heads = "".join(f"<th scope='col' title='{html.escape(self.titles[n]['title'])}'>{n}</th>" for n in self.titles)
        rows = "".join(self._row(learner, steps) for learner, steps in self.learners.items())
        count = "".join(f"<td>{n}</td>" for n in self.passed.values())
        caption = f"<caption {left}>✓ passed, ✗ wrong, · not done yet; a number is the hints used</caption>"
        table = f"<table>{caption}<thead><tr><th scope='col' {left}>learner</th>{heads}<th scope='col'>passed</th></tr></thead>"
        foot = f"<tfoot><tr><th scope='row' {left}>passed by</th>{count}<td>{sum(self.passed.values())}</td></tr></tfoot>"
        table = f"<div style='overflow-x:auto'>{table}<tbody>{rows}</tbody>{foot}</table></div>"
        return f"<div><p><b>{html.escape(repr(self))}</b></p>{table}</div>"

    def _row(self, learner, steps):
        cells = "".join(
            f"<td aria-label='{step['state']}, {hints_of(step['hints'])}'>{MARKS[step['state']]}{step['hints'] or ''}</td>"
            for step in steps.values()
        )
        done = sum(step["state"] == "passed" for step in steps.values())
        return f"<tr><th scope='row' style='text-align:left'>{html.escape(learner)}</th>{cells}<td>{done}</td></tr>"

    @property
    def page(self):
        """The table as text: a line a learner, a mark a step."""
        width = max([9, *map(len, self.learners)])
        lines = [repr(self), "", f"{'':<{width}}  {'  '.join(self.titles)}"]
        for learner, steps in self.learners.items():
            marks = [MARKS[step["state"]] for step in steps.values()]
            lines.append(f"{learner:<{width}}  {'  '.join(f'{mark:^4}' for mark in marks)}")
        return "\n".join([*lines, f"{'passed by':<{width}}  {'  '.join(f'{n:^4}' for n in self.passed.values())}"])


def merge(*files):
    """The Workshop of `files`: exports, or folders of them; a learner's progress.json itself will do, too.

    Files of the same learner are told apart by their path. A file that cannot be read is named in `unread`. Raises BadInput when there is
    none that can be.
    """
    found = _files(files)
    steps = _steps()
    learners, exported, unread = {}, {}, {}
    for file in found:
        try:
            for learner, held, when in _learners_of(file):
                entries = {number: entry_of(held, number) for number in steps}
                if when and (exported.get(learner), learners.get(learner)) == (when, entries):
                    continue  # the same export again, such as in a merged table that lies beside it
                name = learner if learner not in learners else f"{learner} ({file})"
                learners[name] = entries
                exported[name] = when
        except OSError as error:
            unread[str(file)] = error.strerror
        except progress_file.Newer:
            unread[str(file)] = "of a newer version of the kit"
        except (ValueError, KeyError, TypeError, AttributeError):
            unread[str(file)] = "no export"
    if not learners:
        raise BadInput(f"progress: merge: no export among {quoted([str(file) for file in found])}. Learners make one with export(path).")
    return Workshop(dict(sorted(learners.items())), steps, exported, unread)


def _steps():
    from kit.graders import EXERCISES

    return {step.number: {"title": step.title, "notebook": exercise.stem} for exercise in EXERCISES for step in exercise.steps}


def _files(files):
    if not files or not all(isinstance(file, (str, Path)) for file in files):
        raise WrongType(f"progress: merge: give files or folders of exports; got {quoted(files)}.")
    found = []
    for file in (Path(file).expanduser() for file in files):
        if not file.exists():
            raise BadInput(f"progress: merge: there is no {file}.")
        found += sorted(f for f in file.iterdir() if f.suffix in (".json", ".csv")) if file.is_dir() else [file]
    return found


def _learners_of(file):
    """[(learner, {step: entry}, when exported)] of one file. Raises ValueError, KeyError or TypeError for what is no export."""
    held = file.read_bytes()
    if file.suffix == ".csv":
        rows = list(csv.DictReader(io.StringIO(held.decode("utf-8-sig"))))
        if not rows:
            raise ValueError
        numbers = [{"learner": _meant(row["learner"]), "checks": int(row["checks"]), "hints": int(row["hints"])} for row in rows]
        return _by_learner([{**row, **own} for row, own in zip(rows, numbers, strict=True)])
    content = json.loads(held)
    if content.get("kind") != KIND:
        return [(file.stem, progress_file.parsed(held), "")]
    if content["version"] > VERSION:
        raise progress_file.Newer
    if "rows" in content:
        return _by_learner(content["rows"])
    return [(str(content["learner"]), dict(content["steps"]), str(content["exported"]))]


def _by_learner(rows):
    found = {}
    for row in rows:
        if row["state"] not in STATES:
            raise ValueError
        found.setdefault(row["learner"], ({}, row["exported"]))[0][row["step"]] = row
    return [(learner, steps, when) for learner, (steps, when) in found.items()]


def main(arguments=None):
    """The command: print the table of the files given; `--out` writes it."""
    parser = argparse.ArgumentParser(prog="python -m kit.workshop", description="One table of many learners' exports.")
    parser.add_argument("files", nargs="+", help="exports (kit.progress().export), or folders of them")
    parser.add_argument("--out", help="write the table to this .csv or .json file")
    options = parser.parse_args(arguments)
    try:
        table = merge(*options.files)
        print(table.page)
        if options.out:
            print(f"written: {table.export(options.out)}")
    except KitError as error:
        sys.exit(str(error))


if __name__ == "__main__":
    main()
