"""The fork server as the notebook's process holds it: one a process, started on first use or by `warm()`.

It ends when this process does, however that happens: its socket is then closed.
"""

from __future__ import annotations

import atexit
import contextlib
import os
import socket
import subprocess
import sys
import tempfile
import threading

_BOOT = "import sys; sys.path[:] = {path!r}; from kit.sandbox_server import main; main({fd})"


def warm():
    """Start the server without waiting for it, unless it runs or this is a sandbox itself."""
    if not os.environ.get("KIT_IN_SANDBOX"):
        running()


def stop():
    """End the server, if there is one, and wait for it."""
    global _running
    with _lock:
        if _running is not None and _running.owner == os.getpid():
            _running.close()
        _running = None


class Server:
    """The server process, and the socket to it."""

    def __init__(self):
        self.owner = os.getpid()
        self.control, theirs = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
        path = [os.path.dirname(os.path.dirname(os.path.abspath(__file__))), *(path or cwd() for path in sys.path)]
        environment = {**os.environ, "KIT_IN_SANDBOX": "1"}
        self.log = tempfile.TemporaryFile()  # noqa: SIM115  open as long as the server
        command = [sys.executable, "-c", _BOOT.format(path=path, fd=theirs.fileno())]
        self.process = subprocess.Popen(
            command,
            stdin=subprocess.DEVNULL,
            stdout=self.log,
            stderr=self.log,
            pass_fds=[theirs.fileno()],
            start_new_session=True,
            env=environment,
            cwd="/",
        )
        theirs.close()
        self.sending = threading.Lock()

    def alive(self):
        return self.process.poll() is None

    def send(self, message, descriptors=()):
        with self.sending:
            socket.send_fds(self.control, [message.encode()], descriptors)

    def last_words(self):
        self.log.seek(0)
        lines = self.log.read().decode(errors="replace").strip().splitlines()
        return lines[-1] if lines else f"exit status {self.process.poll()}"

    def close(self):
        self.control.close()
        with contextlib.suppress(subprocess.TimeoutExpired):
            self.process.wait(5)
        if self.alive():
            self.process.kill()
            self.process.wait()
        self.log.close()


_lock = threading.Lock()
_running: Server | None = None


def running():
    """The Server of this process, started if there is none or it has died."""
    global _running
    with _lock:
        if _running is None or _running.owner != os.getpid() or not _running.alive():
            _running = Server()
        return _running


def _leave_to_parent():
    """In a fork of the notebook: close its copy of the socket, so that the server sees the notebook's end."""
    global _running, _lock
    _lock = threading.Lock()
    if _running is not None:
        _running.control.close()
        _running = None


atexit.register(stop)
os.register_at_fork(after_in_child=_leave_to_parent)


def cwd():
    """The working folder, or / where it has been deleted."""
    try:
        return os.getcwd()
    except FileNotFoundError:
        return "/"
