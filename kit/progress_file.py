"""The file that progress is kept in: read and written under a lock, whole or not at all, with the copy before it beside it.

{"version": 1, "steps": {"06.1": {"state": "passed", "checks": 3, "hints": 1}}}. A write goes to a new file, is forced to the disk, and then
takes the old one's place; the old one stays as progress.previous.json. A file that cannot be read is put aside, never overwritten, and the
copy before it takes its place. A file of a newer version of the kit is left as it is: nothing is written then.
"""

from __future__ import annotations

import contextlib
import fcntl
import glob
import json
import os
import tempfile
from pathlib import Path

VERSION = 1


def path():
    """Where progress is kept: KIT_PROGRESS, or progress.json in the user's data folder (XDG_DATA_HOME, else ~/.local/share)."""
    if given := os.environ.get("KIT_PROGRESS"):
        return Path(given).expanduser()
    data = os.environ.get("XDG_DATA_HOME") or Path.home() / ".local" / "share"
    return Path(data) / "triton-rule-by-rule" / "progress.json"


class Newer(Exception):
    """The file is of a later version of the kit; the message is a sentence."""


class Steps(dict):
    """{number: entry}, with a `note` for the reader where something had to be put aside."""

    note = ""


@contextlib.contextmanager
def locked(write=True):
    """The Steps of the file, under the lock of all notebooks; what they are at the end is written. Raises OSError and, to write, Newer."""
    file = path()
    if not write and not file.exists():
        yield Steps()
        return
    if write:
        file.parent.mkdir(parents=True, exist_ok=True)
    with lock(file):
        steps = _read(file, write)
        yield steps
        if write:
            replace(file, _text(steps), keep=previous(file))


@contextlib.contextmanager
def lock(file):
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


def back_up():
    """Keep the file as it is under a name of its own; return that name's path, or None where there is no file. Raises OSError."""
    file = path()
    if not file.exists():
        return None
    with lock(file):
        kept = _free(file, "before-reset")
        replace(kept, file.read_bytes())
    return kept


def begin_anew():
    """Put an empty file in the place of whatever is there, a newer version's too: `back_up` first. Raises OSError."""
    with lock(path()):
        replace(path(), _text({}))
        previous(path()).unlink(missing_ok=True)  # else a crash of the disk would bring back what was to be forgotten


def previous(file):
    """The path of the copy before `file`."""
    return file.with_name(f"{file.stem}.previous{file.suffix}")


def _read(file, write):
    steps = Steps()
    try:
        held = file.read_bytes()
    except FileNotFoundError:
        return steps
    try:
        steps.update(parsed(held))
    except Newer as error:
        if write:
            raise
        steps.note = str(error)
    except ValueError:
        _put_aside(file, steps)
    return steps


def parsed(held):
    """The steps that the bytes of a progress file hold. Raises ValueError for what is none, Newer for a later version's."""
    try:
        content = json.loads(held)
        version, steps = content["version"], content["steps"]
    except (KeyError, TypeError, RecursionError):
        raise ValueError("no progress file") from None
    if isinstance(version, int) and version > VERSION:
        raise Newer(f"{path()} was written by a newer version of the kit and is left as it is. Set KIT_PROGRESS to another file.")
    if version != VERSION or not isinstance(steps, dict):
        raise ValueError("no progress file")
    return steps


def _put_aside(file, steps):
    """Rename a file that cannot be read, and put the copy before it in its place, or nothing where that cannot be read either."""
    aside = _free(file, "unreadable")
    try:
        os.rename(file, aside)
    except OSError:
        return  # a folder that cannot be written: nobody overwrites it there
    steps.note = f"The progress file could not be read and is kept as {aside.name}; "
    try:
        held = previous(file).read_bytes()
        steps.update(parsed(held))
        replace(file, held)
        steps.note += f"{previous(file).name} took its place."
    except (OSError, ValueError, Newer):
        steps.clear()
        steps.note += "a new one begins."


def _free(file, what):
    """The first name such as progress.unreadable-1.json that nothing has."""
    return next(name for n in range(1, 1_000_000) if not (name := file.with_name(f"{file.stem}.{what}-{n}{file.suffix}")).exists())


def _text(steps):
    return (json.dumps({"version": VERSION, "steps": steps}, indent=1, sort_keys=True) + "\n").encode()


def replace(file, content, keep=None):
    """Put `content` (bytes) in the place of `file`, whole or not at all, also where the machine stops in the middle. Raises OSError.

    `keep` is a path for the content before it. Of a caller that holds the lock: what a killed writer left is cleared away.
    """
    for part in file.parent.glob(f"{glob.escape(file.name)}*.part"):
        part.unlink(missing_ok=True)
    handle, part = tempfile.mkstemp(dir=file.parent, prefix=file.name, suffix=".part")
    try:
        with open(handle, "wb") as opened:
            opened.write(content)
            opened.flush()
            os.fsync(opened.fileno())  # before it takes the name: else the name may outlive the content
        if keep is not None and file.exists():
            before = f"{part}.before.part"
            with contextlib.suppress(OSError):  # a file system without links has no copy before
                os.link(file, before)
                os.replace(before, keep)
        os.replace(part, file)
        _sync_folder(file.parent)
    except BaseException:
        with contextlib.suppress(OSError):
            os.unlink(part)
        raise


def _sync_folder(folder):
    """Force the folder's names to the disk, where the file system can."""
    with contextlib.suppress(OSError):
        handle = os.open(folder, os.O_RDONLY)
        try:
            os.fsync(handle)
        finally:
            os.close(handle)
