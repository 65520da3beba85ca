"""Which sizes rule 9 may change: those that the kernel or its grid follows, and how far; the others stay as they are given."""

from __future__ import annotations

import re
from dataclasses import dataclass

from kit.rules.growth import growing
from kit.rules.ir import prepared

SEVERAL = 5  # of a size that may be larger than the smallest given: several programs, and no multiple of a block
FAR = 16
BYTES = 256 << 10  # of the tensors of a case
_BLOCK = re.compile(r"BLOCK|TILE", re.IGNORECASE)


@dataclass(frozen=True)
class Varied:
    """A size that may be changed. `most`: what it may be at most, None: anything. `masked`: an argument that follows it is compared."""

    name: str
    most: int | None
    masked: bool


def varied(subject):
    """({name: Varied}, {name: why it is not varied}) of the sizes of `subject`."""
    start, found, left = subject.smallest, {}, {}
    for name in growing(subject, start):
        one = _varied(subject, start, name)
        if isinstance(one, str):
            left[name] = one
        else:
            found[name] = one
    return found, left


def _varied(subject, start, name):
    """The Varied of one size, or why it is none."""
    if isinstance(subject.grid, (tuple, list, int)) and subject.ghosts(start).programs != 1:
        return "the grid is a tuple, and does not follow it"
    given = sorted({size[name] for size in subject.sizes if isinstance(size.get(name), int)})
    first = subject.ghosts(start)
    other = tried(subject, {**start, name: start[name] + 1}) or tried(subject, {**start, name: 2 * start[name]})
    if other is None:
        return "make_args takes no other value"
    tied = [key for key in first.meta if first.meta[key] == start[name] == other.meta.get(key) and not _BLOCK.search(key)]
    tied = [key for key in tied if key in subject.kernel.arg_names]
    if tied and len(given) == 1:
        return f"{tied[0]} has its value and does not follow it"
    arguments = [key for key in _integers(first) if first.named[key] == start[name] and other.named.get(key) == other.size[name]]
    most, far = (tried(subject, {**start, name: value}) for value in (given[-1], FAR * given[-1]))
    grows = far is not None and most is not None and (far.grid != most.grid or _blocks(far) != _blocks(most))
    if not arguments and not grows:
        return "no argument is equal to it and no grid follows it"
    return Varied(name, None if grows else given[-1], bool(arguments) and _compared(subject, other, arguments))


def tried(subject, size):
    """The Launch on paper of `size`; None where make_args or the grid, which are the reader's, refuse it."""
    try:
        return subject.ghosts(size)
    except Exception:
        return None


def _blocks(launch):
    return {key: value for key, value in launch.meta.items() if not hasattr(value, "data_ptr")}


def _integers(launch):
    """The arguments that are whole numbers and no stride."""
    whole = {key for key, value in launch.named.items() if isinstance(value, int) and not isinstance(value, bool)}
    return [key for key in launch.named if key in whole and "stride" not in key.lower()]


def _compared(subject, launch, arguments):
    """Whether one of the arguments reaches a comparison in the kernel, as the bound of a mask does."""
    _, program, live = prepared(subject, launch)
    values = {number for number, (name, _, _) in zip(program.kernel.parameters, live, strict=True) if name in arguments}
    operations = list(program.operations())
    before = -1
    while before != len(values):
        before = len(values)
        for op in operations:
            if values.intersection(op.operands):
                if op.name in ("arith.cmpi", "tt.call"):
                    return True
                if op.name.startswith(("arith.", "tt.splat", "tt.broadcast", "tt.expand_dims")):
                    values.update(op.results)
    return False


def base(subject, found):
    """The size that cases start from: the smallest given, raised to SEVERAL where it may be, or lowered where it is large."""
    size = dict(subject.smallest)
    for name, one in found.items():
        most = one.most or max(SEVERAL, size[name])
        size[name] = max(size[name], min(SEVERAL, most))
    while (launch := tried(subject, size)) is not None and launch.bytes > BYTES:
        large = [name for name in found if size[name] > SEVERAL]
        if not large:
            break
        name = max(large, key=lambda name: size[name])
        size[name] = max(SEVERAL, size[name] // 2)
    return size if launch is not None else dict(subject.smallest)
