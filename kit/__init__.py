"""Triton, rule by rule: the helpers behind the notebooks. These names are all that a reader needs; a test holds the list."""

from kit.bench import bench
from kit.build import build
from kit.dry_run import dry_run
from kit.evidence import claim
from kit.examine import examine
from kit.explore import explore
from kit.generated import generated
from kit.ghosts import ghost
from kit.machine import start
from kit.practice import check, hint
from kit.progress import progress
from kit.recording import recorded
from kit.sandbox import register_magics, sandbox
from kit.shapes import shapes
from kit.watch import watch

__all__ = [
    "bench",
    "build",
    "check",
    "claim",
    "dry_run",
    "examine",
    "explore",
    "generated",
    "ghost",
    "hint",
    "progress",
    "recorded",
    "sandbox",
    "shapes",
    "start",
    "watch",
]


def _in_a_notebook():
    """The IPython shell that is importing the kit, or None. IPython is not imported for it."""
    import sys

    module = sys.modules.get("IPython")
    return module.get_ipython() if module else None


if (_shell := _in_a_notebook()) is not None:
    register_magics(_shell)
