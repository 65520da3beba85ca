"""Which Triton versions the kit has been tested on, and what is said on a newer one."""

from __future__ import annotations

import re
import warnings

TESTED = ("3.6.0", "3.7.1", "3.8.0", "3.9.0")  # `make regress` runs the simulator's tests on these


class UntestedTriton(UserWarning):
    """This Triton is newer than any that the kit has been tested on."""


def minor(version):
    """(3, 9) of "3.9.0" or "3.9.0+git1234"; None for what is no version."""
    match = re.match(r"(\d+)\.(\d+)", str(version))
    return (int(match[1]), int(match[2])) if match else None


def newer_than_tested(version):
    """Whether `version` is of a minor release after the last one tested: 3.10.0 is, 3.9.5 is not."""
    here = minor(version)
    return here is not None and here > minor(TESTED[-1])


_told = set()


def warn_when_newer(version):
    """Warn, once a process and version, when this Triton is newer than those tested. `machine.start` calls it."""
    if not newer_than_tested(version) or version in _told:
        return
    _told.add(version)
    warnings.warn(
        f"start: this is Triton {version}, and the kit has been tested on {', '.join(TESTED[:-1])} and {TESTED[-1]}: what it shows here "
        f'may be wrong. Run make regress TRITON="{version}" to see what still holds, or install triton=={TESTED[-1]}.',
        UntestedTriton,
        stacklevel=3,
    )
