"""The planted changes of scripts/mutate.py, as data: one module an area, each with a list MUTATIONS.

A Mutation names a file, the exact text in it that is changed (it must stand there once), what it becomes, what that plants, and the
narrowest command of `make test` that must fail because of it. In a notebook the text is of one line, as the reader sees it.
"""

from __future__ import annotations

from dataclasses import dataclass
from importlib import import_module

AREAS = ("lessons", "claims", "recordings", "exercises", "graders", "simulator", "kit", "workbench", "tools")


@dataclass(frozen=True)
class Mutation:
    """One planted change. `check` is a command in the words of mutate.py's COMMANDS; `name` is unique in the whole set."""

    name: str
    file: str
    old: str
    new: str
    plants: str
    check: tuple


def nbval(notebook):
    """The check that runs one notebook: "07_int64_offsets" of notebooks/, or a path."""
    return "nbval", notebook if "/" in notebook else f"notebooks/{notebook}.ipynb"


def pytest(file, only=""):
    """The check that runs one test file of kit/tests, or of the path given, or those tests in it that `only` (pytest's -k) picks."""
    return ("pytest", file if "/" in file else f"kit/tests/{file}", *(["-k", only] if only else []))


def all_mutations():
    """Every Mutation, in the order of AREAS."""
    return [one for area in AREAS for one in import_module(f"mutations.{area}").MUTATIONS]
