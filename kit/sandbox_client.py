"""The notebook's side of a sandbox run: hand the server a job, watch the child, end it in time, collect what it left."""

from __future__ import annotations

import contextlib
import hashlib
import json
import os
import selectors
import shutil
import sys
import tempfile
import threading
import time
from dataclasses import dataclass, field

from kit import sandbox_process
from kit.errors import KitError
from kit.sandbox_memory import default_limit, taken
from kit.sandbox_process import cwd

START_LIMIT = 180.0  # seconds: torch from a cold network disk
DUMP_LIMIT = 10.0  # seconds for a child whose time is up to write down where it is, on a busy machine
END_LIMIT = 30.0  # seconds from the kill to the end: a GPU's driver may have to free much
_KEPT = 1 << 17  # bytes of output kept from the start, and as many from the end


@dataclass
class Text:
    """A source that the child runs: its name (of a function or constant, or "cell"), its text, its `__future__` flags."""

    name: str
    text: str
    flags: int = 0
    file: str = ""


@dataclass
class Job:
    """What a child runs: texts in order, the cell last; what the cell must not expect to see; the machine it stands on."""

    texts: list[Text]
    target: str
    live: bool
    hidden: dict = field(default_factory=dict)
    origins: dict = field(default_factory=dict)
    payload: object = None
    has_payload: bool = False


@dataclass
class Ended:
    """How a child ended: its own result or None, the wait status, why it was killed ("time", "memory" or None), its output."""

    result: dict | None
    status: int
    killed_for: str | None
    stdout: str
    stderr: str
    faults: str
    seconds: float


def run(job, timeout, memory=None):
    """Run a Job in a child; return how it Ended. The child, and all that it started, is gone then. Raises KitError."""
    folder = tempfile.mkdtemp(prefix="kit-sandbox-")
    try:
        _write(job, folder, timeout)
        watch = _Watch(sandbox_process.running(), folder, timeout, memory or default_limit())
        watch.run()
        result, faults = _read(folder, "result.json"), _read(folder, "fault.txt")
        stdout, stderr = (_decoded(watch.kept[name]) for name in ("stdout", "stderr"))
        seconds = watch.ended - watch.began
        return Ended(json.loads(result) if result else None, watch.status, watch.killed_for, stdout, stderr, faults, seconds)
    finally:
        shutil.rmtree(folder, ignore_errors=True)


def _write(job, folder, timeout):
    for text in job.texts:
        text.file = _stored(text, folder)
    whole = {
        **vars(job),
        "texts": [vars(text) for text in job.texts],
        "timeout": timeout,
        "env": dict(os.environ),
        "cwd": cwd(),
        "path": [path or cwd() for path in sys.path],
    }
    with open(os.path.join(folder, "job.json"), "w", encoding="utf-8") as file:
        json.dump(whole, file)


def _read(folder, name):
    try:
        with open(os.path.join(folder, name), encoding="utf-8", errors="replace") as file:
            return file.read()
    except FileNotFoundError:
        return ""


class _Watch:
    """One run: its pipes, its deadline, its memory."""

    def __init__(self, server, folder, timeout, limit):
        self.server, self.timeout, self.limit = server, timeout, limit
        self.pid = self.status = self.killed_for = self.base = None
        self.began = self.ended = time.monotonic()
        self.kept = {"stdout": [b"", b"", 0], "stderr": [b"", b"", 0]}
        self.told = b""
        self.faults, self.fault_size = os.path.join(folder, "fault.txt"), 0
        self.selector = selectors.DefaultSelector()
        theirs = []
        for name in ("stdout", "stderr", "status"):
            ours, end = os.pipe()
            self.selector.register(ours, selectors.EVENT_READ, name)
            theirs.append(end)
        try:
            server.send(f"run {folder}", theirs)
        except OSError:
            self.close()
            raise KitError(f"sandbox: its server process could not be reached ({server.last_words()}). Run the cell again.") from None
        finally:
            for end in theirs:
                os.close(end)

    def run(self):
        """Watch until the child and its group are gone. An interrupt kills the child first."""
        try:
            self.until(lambda: self.pid is not None, START_LIMIT)
            if self.pid is None:
                self.give_up("did not start within 180 s")
            if not self.until(lambda: self.status is not None, self.timeout, self.over_memory):
                self.killed_for = "memory" if self.over_memory() else "time"
                if self.killed_for == "time":  # the child writes down where it is
                    self.until(lambda: self.status is not None or self.dumped(), DUMP_LIMIT)
            self.kill()
            self.until(lambda: self.status is not None, END_LIMIT)
            if self.status is None:
                self.give_up("could not end the child within 30 s of killing it")
            self.ended = time.monotonic()
            self.until(lambda: len(self.selector.get_map()) == 0, 0.5)
        except BaseException:
            self.kill()
            raise
        finally:
            self.close()

    def kill(self):
        if self.pid is not None and self.status is None:
            with contextlib.suppress(OSError):
                self.server.send(f"kill {self.pid}")

    def until(self, done, seconds, broken=lambda: False):
        """Read what comes until `done()`, True; False after `seconds`, or when `broken()`."""
        deadline = time.monotonic() + seconds
        while not done():
            left = deadline - time.monotonic()
            if left <= 0 or broken():
                return False
            for key, _ in self.selector.select(min(left, 0.03)):
                self.read(key)
        return True

    def read(self, key):
        data = os.read(key.fd, 1 << 16)
        if not data:
            self.selector.unregister(key.fd)
            os.close(key.fd)
            if key.data == "status" and self.status is None:
                self.give_up("ended while the cell ran")
        elif key.data == "status":
            self.hear(data)
        else:
            kept = self.kept[key.data]
            room = _KEPT - len(kept[0])
            kept[0] += data[:room]
            rest = kept[1] + data[room:]
            kept[2] += max(0, len(rest) - _KEPT)
            kept[1] = rest[-_KEPT:] if len(rest) > _KEPT else rest

    def hear(self, data):
        *lines, self.told = (self.told + data).split(b"\n")
        for line in lines:
            word, number = line.split()
            if word == b"pid":
                self.pid, self.began = int(number), time.monotonic()
                self.base = taken(self.pid)
            else:
                self.status = int(number)

    def dumped(self):
        """True when the stack has been written: the file has grown, and grows no more."""
        before, self.fault_size = self.fault_size, os.path.getsize(self.faults) if os.path.exists(self.faults) else 0
        return 0 < before == self.fault_size

    def over_memory(self):
        return taken(self.pid) - self.base > self.limit

    def give_up(self, what):
        raise KitError(f"sandbox: its server process {what} ({self.server.last_words()}). Run the cell again.")

    def close(self):
        for key in list(self.selector.get_map().values()):
            self.selector.unregister(key.fd)
            os.close(key.fd)
        self.selector.close()


def _decoded(kept):
    head, tail, lost = kept
    gap = f"\n... {lost} bytes left out ...\n".encode() if lost else b""
    return (head + gap + tail).decode(errors="replace")


def _stored(text, folder):
    """Write a text where the same text always lies, and return the path.

    Triton's disk cache does not key on a kernel's file, and a compiled kernel names the file it was first compiled from: in
    error messages, and for the simulated GPU. So the sources lie beside that cache, under their hash, and stay.
    """
    from triton import knobs

    name = hashlib.sha256(text.text.encode()).hexdigest()[:16]
    for base in (os.path.join(knobs.cache.dir, "kit-sandbox"), folder):
        path = os.path.join(base, name, f"{text.name}.py")
        with contextlib.suppress(OSError):
            if not os.path.exists(path):
                os.makedirs(os.path.dirname(path), exist_ok=True)
                part = f"{path}.{os.getpid()}.{threading.get_ident()}"
                with open(part, "w", encoding="utf-8") as file:
                    file.write(text.text)
                os.rename(part, path)
            return path
    raise KitError(
        f"sandbox: neither {knobs.cache.dir} nor {folder} can be written. Free some disk space, or set TRITON_CACHE_DIR and TMPDIR."
    )
