"""`progress`: what a reader has passed, in one local file that notebooks share.

{"version": 1, "steps": {"06.1": {"state": "passed", "checks": 3, "hints": 1}}}. Written under a lock, to a new file
that then takes the old one's place. A file that cannot be read is put aside, never overwritten.
"""

from __future__ import annotations

import contextlib
import fcntl
import html
import json
import os
import tempfile
from dataclasses import dataclass
from pathlib import Path

from kit.errors import KitError

STATES = ("passed", "wrong", "not done yet")
VERSION = 1


def path():
    """Where progress is kept: KIT_PROGRESS, or progress.json in the user's data folder (XDG_DATA_HOME, else ~/.local/share)."""
    if given := os.environ.get("KIT_PROGRESS"):
        return Path(given).expanduser()
    data = os.environ.get("XDG_DATA_HOME") or Path.home() / ".local" / "share"
    return Path(data) / "triton-rule-by-rule" / "progress.json"


@dataclass
class Progress:
    """Each step's state, checks and hints, in order; `next` is the first that is not passed. True when all are passed."""

    steps: dict
    note: str = ""

    @property
    def passed(self):
        """The numbers of the steps that are passed."""
        return [number for number, step in self.steps.items() if step["state"] == "passed"]

    @property
    def next(self):
        """The number of the first step that is not passed, or None."""
        return next((number for number, step in self.steps.items() if step["state"] != "passed"), None)

    def __bool__(self):
        return self.next is None

    def reset(self):
        """Forget all progress; return the empty Progress."""
        with _locked() as held:
            held.clear()
        return progress()

    def __repr__(self):
        said = f"{len(self.passed)} of {len(self.steps)} steps passed"
        if self.next:
            step = self.steps[self.next]
            said += f"; next: {self.next}, {step['title']} (exercises/{step['notebook']}.ipynb)"
        return said + (f". {self.note}" if self.note else "")

    def _repr_html_(self):
        mark = {"passed": "✓", "wrong": "✗", "not done yet": "·"}
        left = "<td style='text-align:left'>"
        rows = "".join(
            f"<tr><td>{number}</td>{left}{html.escape(step['title'])}</td>{left}{mark[step['state']]} {step['state']}</td>"
            f"<td>{step['hints']}</td><td>{'next' if number == self.next else ''}</td></tr>"
            for number, step in self.steps.items()
        )
        head = "<tr><th>step</th><th style='text-align:left'>title</th><th style='text-align:left'>state</th><th>hints</th><th></th></tr>"
        return f"<div>{html.escape(repr(self))}<table>{head}{rows}</table></div>"


def progress():
    """Return the Progress over all exercises; `.reset()` forgets it. A file that cannot be read is put aside, and the repr says where."""
    from kit.graders import EXERCISES

    steps, note = {}, ""
    try:
        with _locked(write=False) as held:
            for exercise in EXERCISES:
                for step in exercise.steps:
                    steps[step.number] = {"title": step.title, "notebook": exercise.stem, **_entry(held, step.number)}
            note = held.note
    except OSError as error:
        raise KitError(f"progress: {path()} cannot be read ({error.strerror}). Set KIT_PROGRESS to a file that you may write.") from None
    return Progress(steps, note)


def note_check(number, state):
    """Note a check of a step; a step once passed stays passed. Returns a sentence when the file could not be kept, else ""."""

    def change(entry):
        entry["checks"] += 1
        entry["state"] = "passed" if "passed" in (state, entry["state"]) else state

    return _change(number, change)[1]


def next_hint(number, of):
    """Note that the next of `of` hints is given; return (its number from 1, a sentence when the file could not be kept)."""

    def change(entry):
        entry["hints"] = min(entry["hints"] + 1, of)

    entry, note = _change(number, change)
    return entry["hints"], note


_unsaved = {}  # steps of a file that cannot be written, so that hints go on in this process


def _change(number, change):
    try:
        with _locked() as held:
            entry = _entry(held, number)
            change(entry)
            held[number] = entry
            return entry, held.note
    except OSError as error:
        entry = _entry(_unsaved, number)
        change(entry)
        _unsaved[number] = entry
        return (
            entry,
            f"Progress was not saved: {path()} cannot be written ({error.strerror}). Set KIT_PROGRESS to a file that you may write.",
        )


def _entry(steps, number):
    """A step's entry, with each part that a hand has broken replaced by the one it begins with."""
    held = steps.get(number) if isinstance(steps.get(number), dict) else {}
    state = held.get("state") if held.get("state") in STATES else "not done yet"
    numbers = {key: held[key] if type(held.get(key)) is int and held[key] >= 0 else 0 for key in ("checks", "hints")}
    return {"state": state, **numbers}


class _Steps(dict):
    note = ""


@contextlib.contextmanager
def _locked(write=True):
    """The steps of the file, under the lock of all notebooks; what they are at the end is written. Raises OSError."""
    file = path()
    if not write and not file.exists():
        yield _Steps()
        return
    if write:
        file.parent.mkdir(parents=True, exist_ok=True)
    with _lock(file):
        steps = _read(file)
        yield steps
        if write:
            _write(file, steps)


@contextlib.contextmanager
def _lock(file):
    """Hold the lock beside `file`. In a folder that cannot be written nobody writes, and reading goes on without it."""
    try:
        held = open(file.with_name(file.name + ".lock"), "w")  # noqa: SIM115  closed below
    except OSError:
        if os.access(file.parent, os.W_OK):
            raise
        yield
        return
    with held:
        fcntl.flock(held, fcntl.LOCK_EX)
        yield


def _read(file):
    steps = _Steps()
    try:
        text = file.read_text(encoding="utf-8")
    except FileNotFoundError:
        return steps
    except UnicodeDecodeError:
        text = ""
    try:
        held = json.loads(text)
        if held["version"] != VERSION or not isinstance(held["steps"], dict):
            raise ValueError
        steps.update(held["steps"])
    except (ValueError, KeyError, TypeError):
        aside = next(name for n in range(1, 1_000_000) if not (name := file.with_name(f"{file.stem}.unreadable-{n}{file.suffix}")).exists())
        with contextlib.suppress(OSError):
            os.rename(file, aside)
            steps.note = f"The progress file could not be read and is kept as {aside.name}; a new one begins."
    return steps


def _write(file, steps):
    handle, part = tempfile.mkstemp(dir=file.parent, prefix=file.name, suffix=".part")
    try:
        with open(handle, "w", encoding="utf-8") as opened:
            json.dump({"version": VERSION, "steps": steps}, opened, indent=1, sort_keys=True)
            opened.write("\n")
        os.replace(part, file)
    except BaseException:
        with contextlib.suppress(OSError):
            os.unlink(part)
        raise
