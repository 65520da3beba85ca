"""`progress`: what a reader has passed, in one local file that notebooks share (kit.progress_file)."""

from __future__ import annotations

from dataclasses import dataclass

from kit import progress_file
from kit.errors import BadInput, KitError, WrongType, quoted
from kit.progress_file import Newer, path

__all__ = ["STATES", "Progress", "next_hint", "note_check", "path", "progress"]

STATES = ("passed", "wrong", "not done yet")
_unsaved = {}  # steps of a file that cannot be written, so that hints go on in this process


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

    @property
    def hints(self):
        """How many hints were given, of all steps."""
        return sum(step["hints"] for step in self.steps.values())

    def __bool__(self):
        return self.next is None

    def __repr__(self):
        said = f"{len(self.passed)} of {len(self.steps)} steps passed"
        if self.hints:
            said += f" with {self.hints} hint{'' if self.hints == 1 else 's'}"
        if self.next:
            step = self.steps[self.next]
            said += f"; next: {self.next}, {step['title']} (exercises/{step['notebook']}.ipynb)"
        return said + (f". {self.note}" if self.note else "")

    def _repr_html_(self):
        from kit.progress_page import drawn

        return drawn(self)

    @property
    def page(self):
        """The page as text, a line a step, for a terminal: `print(kit.progress().page)`."""
        from kit.progress_page import told

        return told(self)

    def export(self, path, learner=None):
        """Write the steps to `path`, a .json or .csv file, under the name `learner`, the file's own when left out; return the Path.

        One learner a file; `merge` makes one table of many. Raises BadInput for another suffix and for a file that is something else.
        """
        from kit.workshop import export

        return export(self, path, learner)

    @staticmethod
    def merge(*files):
        """The Workshop of many learners' exports: one table. `files` are paths of exports, or of folders of them. Raises BadInput."""
        from kit.workshop import merge

        return merge(*files)

    def reset(self, which=None):
        """Forget a step ("06.1"), a lesson's steps ("06") or all; return the Progress then. Its note says where the old file is kept.

        Raises BadInput for a step that does not exist.
        """
        numbers = _numbers(which)
        try:
            kept = progress_file.back_up()
            if numbers is None:
                if kept:
                    progress_file.begin_anew()
                _unsaved.clear()
            else:
                _forget(numbers, kept)
        except OSError as error:
            raise KitError(
                f"progress: {path()} cannot be reset ({error.strerror}); nothing is lost. Set KIT_PROGRESS to a file that you may write."
            ) from None
        except Newer as error:
            raise KitError(f"progress: {error}") from None
        now = progress()
        now.note = " ".join(filter(None, [f"What was there is kept as {kept}." if kept else "", now.note]))
        return now


def _forget(numbers, kept):
    for number in numbers:
        _unsaved.pop(number, None)
    if kept:
        with progress_file.locked() as held:
            for number in numbers:
                held.pop(number, None)


def _numbers(which):
    """The numbers of the steps that `which` names; None for all. Raises BadInput."""
    from kit.graders import STEPS

    if which is None:
        return None
    if not isinstance(which, str):
        raise WrongType(f'progress: reset takes a step as text, such as "06.1", or nothing for all; got {quoted(which)}.')
    lesson, _, part = which.strip().partition(".")
    wanted = f"{lesson.zfill(2)}.{part}"
    found = [number for number in STEPS if number == wanted or not part and number.startswith(wanted)]
    if not found:
        raise BadInput(f"progress: reset: there is no step or lesson {quoted(which)}. There are {', '.join(STEPS)}.")
    return found


def progress():
    """Return the Progress over all exercises: what is passed, the hints used, what is next; `.export(path)`, `.merge(*files)`, `.reset()`.

    A file that cannot be read is put aside, and the repr says where.
    """
    from kit.graders import EXERCISES

    steps, note = {}, ""
    try:
        with progress_file.locked(write=False) as held:
            for exercise in EXERCISES:
                for step in exercise.steps:
                    steps[step.number] = {"title": step.title, "notebook": exercise.stem, **entry_of(held, step.number)}
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


def _change(number, change):
    try:
        with progress_file.locked() as held:
            entry = entry_of(held, number)
            change(entry)
            held[number] = entry
            return entry, held.note
    except OSError as error:
        why = f"{path()} cannot be written ({error.strerror}). Set KIT_PROGRESS to a file that you may write."
    except Newer as error:
        why = str(error)
    entry = entry_of(_unsaved, number)
    change(entry)
    _unsaved[number] = entry
    return entry, f"Progress was not saved: {why}"


def entry_of(steps, number):
    """A step's entry, with each part that a hand has broken replaced by the one it begins with."""
    held = steps.get(number) if isinstance(steps.get(number), dict) else {}
    state = held.get("state") if held.get("state") in STATES else "not done yet"
    numbers = {key: held[key] if type(held.get(key)) is int and held[key] >= 0 else 0 for key in ("checks", "hints")}
    return {"state": state, **numbers}
