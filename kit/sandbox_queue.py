"""One GPU, many learners: a turn on the GPU is a lock on a file that everybody on this machine can see.

The lock is `flock`, which the system takes back when its holder dies.
"""

from __future__ import annotations

import contextlib
import fcntl
import getpass
import os
import tempfile
import time

from kit.errors import KitError

WAIT_LIMIT = 300.0


@contextlib.contextmanager
def turn(gpu, limit=WAIT_LIMIT):
    """Hold the GPU named `gpu` for sandbox runs; wait for it at most `limit` seconds. Raises KitError after that."""
    descriptor = _open(os.path.join(tempfile.gettempdir(), f"kit-sandbox-{gpu}"))
    try:
        deadline = time.monotonic() + limit
        while True:
            try:
                fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
                break
            except BlockingIOError:
                if time.monotonic() > deadline:
                    raise KitError(
                        f"sandbox: other sandbox runs have held the GPU for {limit:g} s. Run the cell again when they have ended."
                    ) from None
                time.sleep(0.05)
        yield
        fcntl.flock(descriptor, fcntl.LOCK_UN)  # now, even where a fork of this process holds a copy
    finally:
        os.close(descriptor)


def _open(path):
    """Open the lock file, making it for all users; where another user's cannot be opened, one of our own."""
    for name in (f"{path}.lock", f"{path}-{getpass.getuser()}.lock"):
        with contextlib.suppress(PermissionError):
            # Opened before it is made: Linux refuses O_CREAT on another user's file in /tmp (fs.protected_regular).
            try:
                return os.open(name, os.O_RDWR | os.O_CLOEXEC)
            except FileNotFoundError:
                descriptor = os.open(name, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o666)
                os.fchmod(descriptor, 0o666)
                return descriptor
    raise KitError(
        f"sandbox: the queue for the GPU needs {path}.lock, which cannot be opened. Ask whoever runs this machine, or set TMPDIR."
    )
