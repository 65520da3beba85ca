"""Which values a size should have: at the edges of the blocks that cut it, and at a prime."""

from __future__ import annotations

import re
from dataclasses import dataclass

_BLOCK = re.compile(r"BLOCK|TILE|^B[A-Z]$|^B$", re.IGNORECASE)


@dataclass(frozen=True)
class Size:
    """A value of one size, and what it is: "n = BLOCK + 1 = 1025"."""

    name: str
    value: int
    how: str = ""

    @property
    def text(self):
        if self.how and not self.how.isdigit() and not self.how.startswith(","):
            return f"{self.name} = {self.how} = {self.value}"
        return f"{self.name} = {self.value}{self.how if self.how.startswith(',') else ''}"


def blocks_of(constants, sizes):
    """{size: {constexpr: value}} of the integer constants that look like a block: BLOCK for all, BLOCK_M and TILE_M for M.

    Where no name looks like one, every power of two from 4 is taken for one.
    """
    whole = {name: value for name, value in constants.items() if isinstance(value, int) and not isinstance(value, bool) and value > 0}
    named = {name: value for name, value in whole.items() if _BLOCK.search(name)}
    named = named or {name: value for name, value in whole.items() if value >= 4 and value & (value - 1) == 0}
    own = {size: {name: value for name, value in named.items() if _suffix(name) == size.lower()} for size in sizes}
    claimed = {name for found in own.values() for name in found}
    free = {name: value for name, value in named.items() if name not in claimed}
    return {size: own[size] or free for size in sizes}


def _suffix(name):
    """The size that a block's name ends in: BLOCK_SIZE_M and BLOCK_M and BM are of m; BLOCK is of none."""
    rest = re.sub(r"BLOCK|TILE|SIZE|_", "", name, flags=re.IGNORECASE)
    return rest.lower() if rest != name else name[1:].lower() if re.fullmatch(r"B[A-Z]", name) else rest.lower()


def proposed(name, typical, allowed, blocks):
    """[Size] of one size, each value once: as given, 0, 1, round every block, past two of them, and a prime."""
    found = [Size(name, typical, ", as given"), Size(name, 0), Size(name, 1)]
    for block, value in blocks.items():
        edges = ((f"{block} - 1", value - 1), (block, value), (f"{block} + 1", value + 1), (f"2 * {block} + 3", 2 * value + 3))
        found += [Size(name, edge, how) for how, edge in edges]
    if not blocks:
        found += [Size(name, value) for value in (15, 16, 17, 35)]
    found.append(Size(name, prime(typical), ", a prime"))
    once = {}
    for size in found:
        if allowed is None or size.value in allowed:
            once.setdefault(size.value, size)
    return list(once.values())


def odd_size(name, typical, allowed):
    """The Size that goes with views: a prime, or the typical value where that is not allowed."""
    value = prime(typical)
    return Size(name, value, ", a prime") if allowed is None or value in allowed else Size(name, typical, ", as given")


def prime(most):
    """The largest odd prime up to `most`, or 3."""
    for n in range(most, 3, -1):
        if n % 2 and all(n % d for d in range(3, int(n**0.5) + 1, 2)):
            return n
    return 3
