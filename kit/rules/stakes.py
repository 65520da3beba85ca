"""What an argument's class is worth: the widths of loads and stores with it, and compiled again without it."""

from __future__ import annotations

from dataclasses import dataclass

from kit.build import build
from kit.rules.needed import options
from kit.specialization import StandIn


@dataclass(frozen=True)
class Stake:
    """What exempting `argument` costs at one launch: the widest access that gets narrower, in bits a thread, by source line.

    `op` is "" when none does.
    """

    argument: str
    op: str = ""
    before: int = 0
    after: int = 0
    line: int | None = None

    def __bool__(self):
        return bool(self.op)


def without_class(value):
    """A value of the same type as `value` that has no class: the key and the code of an exempt argument.

    An integer that is neither 1 nor a multiple of 16, in the same width; a pointer off 16 bytes.
    """
    if hasattr(value, "data_ptr"):
        return StandIn(value.dtype, value.dtype.itemsize)
    return 3 if -(2**31) <= value < 2**31 else 2**31 + 3


def compiled_as(subject, launch, values=None):
    """The Build of a launch whose arguments `values` ({name: value}) are others. Raises CompileError as `build` does."""
    named = {**launch.named, **(values or {})}
    return build(subject.kernel, *named.values(), **options(subject, launch))


def stake(subject, launch, arguments):
    """The Stake of exempting `arguments` together, at one launch, told of the last of them."""
    before = widths(compiled_as(subject, launch))
    after = widths(compiled_as(subject, launch, {name: without_class(launch.named[name]) for name in arguments}))
    worse = [(bits, place) for place, bits in before.items() if after.get(place, bits) < bits]
    if not worse:
        return Stake(arguments[-1])
    bits, (line, op) = max(worse, key=lambda one: (one[0], -(one[1][0] or 0)))
    return Stake(arguments[-1], op, bits, after[line, op], subject.line(line))


def widths(made):
    """{(line, op): bits} of a Build's accesses to global memory, the narrowest of each line and kind."""
    found = {}
    for one in made.accesses:
        if one.space in ("global", "generic") and one.bits:
            place = (one.line, one.op)
            found[place] = min(found.get(place, one.bits), one.bits)
    return found
