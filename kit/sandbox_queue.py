"""One machine, many learners: a turn is a lock on a file that everybody on this machine can see.

A GPU has one turn. Where no GPU is there is no queue, unless KIT_QUEUE names a folder: then simulated runs queue too, a turn for each core,
so that a time limit is not used up by waiting for a core. The locks are `flock`, which the system takes back when a holder dies.
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
def turn(name, limit=WAIT_LIMIT, turns=1):
    """Hold one of the `turns` of what is called `name` for a sandbox run; wait at most `limit` seconds. Raises KitError after that."""
    path = os.path.join(folder(), f"kit-sandbox-{name}")
    paths = [path] + [f"{path}-{number}" for number in range(1, turns)]
    descriptors = []
    try:
        for one in paths:
            descriptors.append(_open(one))
        held = _locked(descriptors, limit)
        try:
            yield
        finally:
            fcntl.flock(held, fcntl.LOCK_UN)  # now, even where a fork of this process holds a copy
    finally:
        for descriptor in descriptors:
            os.close(descriptor)


def folder():
    """Where the locks lie: KIT_QUEUE, or /tmp, which users share even where each has a TMPDIR."""
    return os.environ.get("KIT_QUEUE") or ("/tmp" if os.access("/tmp", os.W_OK) else tempfile.gettempdir())


def cores():
    """How many simulated runs may go on at once under KIT_QUEUE: one for each core that this process may use."""
    return len(os.sched_getaffinity(0))


def _locked(descriptors, limit):
    """Lock one of them and return it. Raises KitError when none was free for `limit` seconds."""
    deadline = time.monotonic() + limit
    while True:
        for descriptor in descriptors:
            with contextlib.suppress(BlockingIOError):
                fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
                return descriptor
        if time.monotonic() > deadline:
            raise KitError(
                f"sandbox: other sandbox runs have held the machine for {limit:g} s. Run the cell again when they have ended."
            ) from None
        time.sleep(0.05)


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
        f"sandbox: its queue needs {path}.lock, which cannot be opened. Ask whoever runs this machine, or set KIT_QUEUE to a folder."
    )
