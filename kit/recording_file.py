"""The files that hold recordings: `recordings/NAME.json`, one an experiment.

{"schema": 1, "experiment": NAME, "owner": the notebook or module that records it, "runs": [...]}. A run holds the arguments, the data, the
digest of the code and the arguments, and the provenance: gpu, driver, torch, triton, cuda, date. Writes are atomic and take turns.
"""

from __future__ import annotations

import fcntl
import hashlib
import json
import os
import tempfile
from contextlib import contextmanager
from pathlib import Path

from kit.errors import KitError

SCHEMA = 1
_PROVENANCE = ("gpu", "driver", "torch", "triton", "cuda", "date")


def folder():
    """Where recordings lie: KIT_RECORDINGS, or kit/recordings beside this file."""
    return Path(os.environ.get("KIT_RECORDINGS") or Path(__file__).parent / "recordings")


def digest(code, arguments):
    return hashlib.sha256(f"{code}\n{json.dumps(arguments, sort_keys=True)}".encode()).hexdigest()


def read(path, name):
    """The content of a recording file. Raises KitError when it is not one."""
    do = "Delete it (or `git checkout` it) and run `make record` on a GPU."
    try:
        content = json.loads(path.read_text(encoding="utf-8"))
    except OSError as error:
        raise KitError(
            f"recorded: {path} cannot be read: {error.strerror}. Make it readable, or name another folder in KIT_RECORDINGS."
        ) from None
    except ValueError as error:
        raise KitError(f"recorded: {path} is not valid JSON ({error}). {do}") from None
    if isinstance(content, dict) and isinstance(content.get("schema"), int) and content["schema"] != SCHEMA:
        raise KitError(f"recorded: {path} has schema {content['schema']}, and this kit reads {SCHEMA}. {do}")
    if not _is_recording(content, name):
        raise KitError(f"recorded: {path} is not a recording of {name}. {do}")
    return content


def _is_recording(content, name):
    return (
        isinstance(content, dict)
        and content.get("schema") == SCHEMA
        and content.get("experiment") == name
        and isinstance(content.get("owner"), str)
        and isinstance(content.get("runs"), list)
        and all(isinstance(run, dict) and {"arguments", "data", "digest", "provenance"} <= run.keys() for run in content["runs"])
        and all(isinstance(run["provenance"], dict) and set(_PROVENANCE) <= run["provenance"].keys() for run in content["runs"])
    )


def _cannot_write(error):
    return KitError(
        f"recorded: the recordings folder {folder()} cannot be written: {error.strerror or error}. "
        f"Make it writable, or name another in KIT_RECORDINGS."
    )


def expect_room(name, owner):
    """Raise KitError when the recording could not be saved: the folder, the file that is there, or another notebook's experiment."""
    try:
        folder().mkdir(parents=True, exist_ok=True)
        with tempfile.NamedTemporaryFile(dir=folder(), prefix=".room"):
            pass
    except OSError as error:
        raise _cannot_write(error) from None
    _existing(name, owner)


def _existing(name, owner):
    path = folder() / f"{name}.json"
    if not path.exists():
        return {"schema": SCHEMA, "experiment": name, "owner": owner, "runs": []}
    content = read(path, name)
    if content["owner"] != owner and "unknown" not in (content["owner"], owner):
        raise KitError(
            f"recorded: {path} belongs to {content['owner']}, and {owner} would overwrite it. "
            f"Give this experiment another name, @recorded(name=...), or delete the file if it has moved."
        )
    return content | {"owner": owner}


def save(name, owner, code, run):
    """Put `run` in place of the run with the same arguments. Runs that other code made are dropped: nothing could replay them fresh."""
    run = run | {"digest": digest(code, run["arguments"])}
    with _locked(folder()):
        content = _existing(name, owner)
        kept = [r for r in content["runs"] if r["arguments"] != run["arguments"] and r["digest"] == digest(code, r["arguments"])]
        content["runs"] = sorted([*kept, run], key=lambda r: json.dumps(r["arguments"], sort_keys=True))
        text = json.dumps(content, indent=2, ensure_ascii=False) + "\n"
        try:
            _replace(folder() / f"{name}.json", text)
        except OSError as error:
            raise _cannot_write(error) from None


@contextmanager
def _locked(path):
    """Hold the folder against other processes; the lock is on the folder itself and leaves no file."""
    try:
        handle = os.open(path, os.O_RDONLY)
    except OSError as error:
        raise _cannot_write(error) from None
    try:
        fcntl.flock(handle, fcntl.LOCK_EX)
        yield
    finally:
        os.close(handle)


def _replace(path, text):
    with tempfile.NamedTemporaryFile("w", encoding="utf-8", dir=path.parent, prefix=".writing", delete=False) as file:
        try:
            file.write(text)
            file.flush()
            os.fchmod(file.fileno(), 0o644)
            os.replace(file.name, path)
        except BaseException:
            os.unlink(file.name)
            raise
