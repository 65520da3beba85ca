"""How much memory a sandboxed cell takes, and may take.

RLIMIT_AS and RLIMIT_DATA count address space, of which CUDA and the simulated GPU reserve far more than they use; so the pages
that are really held are looked at, from outside.
"""

from __future__ import annotations

import contextlib
import re

CEILING = 4 * 2**30


def default_limit():
    """Bytes that a cell may take: half of what is free on this machine (or in its container), 4 GiB at most."""
    free = CEILING * 2
    with contextlib.suppress(OSError):
        free = int(re.search(r"MemAvailable:\s+(\d+)", _text("/proc/meminfo"))[1]) * 1024
    with contextlib.suppress(OSError, ValueError):  # "max" where there is no limit
        free = min(free, int(_text("/sys/fs/cgroup/memory.max")) - int(_text("/sys/fs/cgroup/memory.current")))
    return max(min(CEILING, free // 2), 256 * 2**20)


def taken(pid):
    """Bytes that a process and the processes it started hold in memory and swap, files and shared libraries apart."""
    total = 0
    with contextlib.suppress(OSError):
        for kilobytes in re.findall(r"^(?:RssAnon|RssShmem|VmSwap):\s+(\d+)", _text(f"/proc/{pid}/status"), re.MULTILINE):
            total += int(kilobytes) * 1024
        for child in _text(f"/proc/{pid}/task/{pid}/children").split():
            total += taken(child)
    return total


def _text(path):
    with open(path, encoding="ascii", errors="replace") as file:
        return file.read()
