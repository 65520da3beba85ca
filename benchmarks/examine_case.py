"""A kernel of others to examine: the kernel, a call of the function that launches it, sizes, a reference, what its notes were judged."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field

TRUE, FALSE = "true", "false alarm"


@dataclass(frozen=True)
class Foreign:
    """`call(**size)` makes tensors and calls the library's own launcher. `reference(*args)` takes the launch's arguments.

    `judged` is {"RULE:key": (TRUE or FALSE, why)}, or "RULE:key@argument" for one argument's: each wrong or fragile note, read by hand.
    A note that is not in it counts as not yet judged.
    """

    kernel: object
    call: Callable
    sizes: object
    reference: Callable | None = None
    judged: dict = field(default_factory=dict)
    meta: dict = field(default_factory=dict)
    tolerance: tuple | None = None


def judgement(case, note):
    """(verdict, why) of a Note (as data); ("", "") where nobody has judged it."""
    key = f"{note['rule']}:{note['key']}"
    argument = note["numbers"].get("argument") or note["numbers"].get("argument_viewed")
    return case.judged.get(f"{key}@{argument}") or case.judged.get(key) or ("", "")
