"""Which program touched which element, and where two of them meet: races between programs, lanes that meet, elements never written.

Every access to an argument that is written somewhere is kept as it was made: programs, addresses, lanes, values. Nothing is compared
until the run is over. Programs whose stretches of memory are apart cannot meet, and most kernels end there; for the others the
lanes are sorted by element and each element's readers and writers compared.

Two programs are ordered by nothing but atomics. Where the one that wrote has made an atomic afterwards, and the other one had
used the result of an atomic before its access, the kernel may have ordered them on purpose, as a lock or a ticket does: such a pair is
told apart, since whether these atomics order it is not decided here.
"""

from __future__ import annotations

import copy
from dataclasses import dataclass

import torch

from kit.simulator.values import common_shape

_FAR = 1 << 62


@dataclass
class Footprint:
    """One execution of one access: `kind` is "read", "write" or "atomic"; `inside` marks the lanes that count."""

    op: object
    kind: str
    argument: str
    location: object
    numbers: torch.Tensor
    address: torch.Tensor
    inside: torch.Tensor
    itemsize: int
    bits: torch.Tensor | None
    turn: int


@dataclass
class Meeting:
    """Elements at which two lanes meet that must not: the first of them, told by two accesses, each (program number, Footprint).

    `kind`: "write, write", "write, read", "write, atomic", "atomic, read", or "lanes" (of one store in one program) and "lost" (of one
    read, change and store). `same`: all values are equal. `ordered`: atomics stand between.
    """

    kind: str
    argument: str
    address: int
    elements: int
    first: tuple
    second: tuple
    same: bool = False
    ordered: bool = False


class Footprints:
    """The accesses of a run. `arguments`: {name: Allocation}; `written`: what `written_arguments` said."""

    LANES = 1 << 23  # kept at most: 64 MB of addresses

    def __init__(self, grid, arguments, written, used):
        self.grid = grid
        self.arguments = arguments
        self.used = used
        places = None if written is None else {id(arguments[name]) for name in written if name in arguments}
        self.kept = {name for name, home in arguments.items() if places is None or id(home) in places}
        self.prints = []
        self.stored, self.loaded = set(), set()
        self.lanes = 0
        self.turn = 0
        self.closed = False

    @property
    def full(self):
        """True when accesses were left out: there were too many."""
        return self.lanes > self.LANES

    def record(self, op, kind, access, address, inside, itemsize, bits):
        """Keep one access."""
        if self.closed:
            return
        home = id(self.arguments[access.argument])
        (self.stored if kind == "write" else self.loaded).add(home)
        if access.argument not in self.kept:
            return
        self.lanes += inside.numel()
        if self.full:
            self.prints.clear()
            return
        numbers = (access.programs[:, 2] * self.grid[1] + access.programs[:, 1]) * self.grid[0] + access.programs[:, 0]
        self.prints.append(Footprint(op, kind, access.argument, access.location, numbers, address, inside, itemsize, bits, self.turn))
        self.turn += 1

    def outputs(self):
        """{argument: (itemsize, which elements of its allocation were written)} of arguments stored to and never loaded."""
        found = {}
        for name, home in self.arguments.items():
            if id(home) not in self.stored or id(home) in self.loaded or id(home) in [id(self.arguments[other]) for other in found]:
                continue
            prints = [p for p in self.prints if self.arguments[p.argument] is home]
            sizes = {p.itemsize for p in prints}
            if len(sizes) == 1 and home.size // min(sizes) <= self.LANES:
                size = sizes.pop()
                written = torch.zeros(home.size // size, dtype=torch.bool)
                for p in prints:
                    written[((p.address - home.base) // size).expand(p.inside.shape)[p.inside]] = True
                found[name] = (size, written)
        return found

    def meetings(self, unknown=()):
        """The Meetings, allocation by allocation. Accesses by operations in `unknown` (ids) are left out."""
        homes = {id(self.arguments[p.argument]): self.arguments[p.argument] for p in self.prints if p.kind != "read"}
        found, order = [], _Order(self.prints, self.used)
        for home in homes.values():
            prints = [p for p in self.prints if self.arguments[p.argument] is home and id(p.op) not in unknown]
            lanes = _Lanes(prints, home, order) if any(p.kind != "read" for p in prints) else None
            if lanes is not None and lanes.n:
                found += lanes.within_programs()
                if lanes.may_meet():
                    found += lanes.between_programs()
        return found


def lanes_of(p):
    """(shape of a Footprint with all its programs, the lanes that count, their program numbers, flat)."""
    shape = common_shape(p.address.shape, p.inside.shape, *(() if p.bits is None else (p.bits.shape,)))
    shape = (max(len(p.numbers), shape[0]), *shape[1:])
    inside = p.inside.expand(shape)
    return shape, inside, p.numbers.reshape(-1, *(1,) * (len(shape) - 1)).expand(shape)[inside]


class _Order:
    """When each program first used the result of an atomic, and when it made its last: turns of the run."""

    def __init__(self, prints, used):
        atomics = [(p, lanes_of(p)[2]) for p in prints if p.kind == "atomic"]
        number = torch.cat([numbers for _, numbers in atomics]) if atomics else torch.empty(0, dtype=torch.int64)
        turn = torch.cat([torch.full_like(numbers, p.turn) for p, numbers in atomics]) if atomics else number
        drawn = torch.cat([torch.full_like(numbers, bool(set(p.op.results) & used)) for p, numbers in atomics]) if atomics else number
        programs, row = torch.unique(number, return_inverse=True)
        self.programs = torch.cat([programs, torch.tensor([_FAR])])  # the last place stands for all other programs
        self.last = torch.full((len(self.programs),), -1).scatter_reduce(0, row, turn, "amax")
        self.first = torch.full((len(self.programs),), _FAR).scatter_reduce(0, row[drawn > 0], turn[drawn > 0], "amin")

    def of(self, programs):
        """(first, last) of each of these programs; one without atomics has first after everything and last before."""
        at = torch.searchsorted(self.programs, programs)
        at = torch.where(self.programs[at] == programs, at, len(self.programs) - 1)
        return self.first[at], self.last[at]


class _Lanes:
    """The lanes of some Footprints on one allocation, flat."""

    def __init__(self, prints, home, order):
        self.prints, self.home = prints, home
        self.unit = min(p.itemsize for p in prints)
        parts = [self._flat(i, p) for i, p in enumerate(prints)]
        self.element, self.number, self.value, self.index = (torch.cat(column) for column in zip(*parts, strict=True))
        kinds = torch.tensor([("read", "write", "atomic").index(p.kind) for p in prints])
        self.kind = kinds[self.index]
        self.n = len(self.element)
        self.programs, self.row = torch.unique(self.number, return_inverse=True)
        turn = torch.tensor([p.turn for p in prints])[self.index]
        first, last = order.of(self.programs)
        self.acquired, self.released = turn > first[self.row], turn < last[self.row]

    def _flat(self, i, p):
        shape, inside, number = lanes_of(p)
        address = p.address.expand(shape)[inside]
        value = torch.zeros_like(address) if p.bits is None else p.bits.expand(shape)[inside].to(torch.int64)
        return (address - self.home.base) // self.unit, number, value, torch.full_like(address, i)

    def may_meet(self):
        """Whether the stretches of two programs overlap: only then can they touch one element."""
        low = torch.full((len(self.programs),), _FAR).scatter_reduce(0, self.row, self.element, "amin")
        high = torch.full((len(self.programs),), -_FAR).scatter_reduce(0, self.row, self.element, "amax")
        order = torch.argsort(low)
        return bool((low[order][1:] <= torch.cummax(high[order], 0).values[:-1]).any())

    # ---- between programs
    def between_programs(self):
        touched_by_several = self._shared()
        return self._only(touched_by_several)._pairs() if bool(touched_by_several.any()) else []

    def _shared(self):
        """Which lanes touch an element that another program touches, too. Few do, and pairing is the costly part."""
        element, group = torch.unique(self.element, return_inverse=True)
        low, high = self._ends(group, len(element), slice(None))
        return (low != high)[group]

    def _only(self, chosen):
        """These lanes alone, to be paired."""
        few = copy.copy(self)
        for column in ("element", "number", "value", "index", "kind", "acquired", "released"):
            setattr(few, column, getattr(self, column)[chosen])
        return few

    def _pairs(self):
        element, group = torch.unique(self.element, return_inverse=True)
        write, read, atomic = (self.kind == kind for kind in (1, 0, 2))
        settled = self.acquired & self.released
        found = [
            self._pair("write, write", element, group, write & ~settled, write, self._values_equal(group, len(element), write)),
            self._pair("write, read", element, group, write, read, unordered=(~self.released, ~self.acquired)),
            self._pair("write, atomic", element, group, write & ~settled, atomic),
            self._pair("atomic, read", element, group, atomic, read & ~self.acquired),
        ]
        return [meeting for meeting in found if meeting is not None]

    def _values_equal(self, group, n, chosen):
        low = torch.full((n,), _FAR * 2 - 1).scatter_reduce(0, group[chosen], self.value[chosen], "amin")
        high = torch.full((n,), -_FAR * 2).scatter_reduce(0, group[chosen], self.value[chosen], "amax")
        return low >= high

    def _pair(self, kind, element, group, one, two, equal=None, unordered=None):
        """The Meeting of lanes `one` with lanes `two` of other programs, or None.

        `unordered` are, of the one and of the other, those that atomics cannot have put in order: pairs with neither are told only
        when there are no others.
        """
        if unordered is not None:
            meets = self._meets(group, len(element), one & unordered[0], two) | self._meets(group, len(element), one, two & unordered[1])
            ordered = not bool(meets.any())
            meets = self._meets(group, len(element), one, two) if ordered else meets
        else:
            meets, ordered = self._meets(group, len(element), one, two), False
        if not bool(meets.any()):
            return None
        differ = meets & ~equal if equal is not None else meets
        same = equal is not None and not bool(differ.any())
        at = int((meets if same else differ).nonzero()[0][0])
        here = group == at
        first, second = self._two(here & one, here & two, need_unequal=equal is not None and not same)
        count = int((meets if same else differ).sum())
        address = self.home.base + int(element[at]) * self.unit
        first, second = ((number, self.prints[i]) for number, _, i in (first, second))
        return Meeting(kind, first[1].argument, address, count, first, second, same, ordered)

    def _meets(self, group, n, one, two):
        """Which elements have a lane of `one` and a lane of `two` that are of different programs."""
        a_low, a_high = self._ends(group, n, one)
        b_low, b_high = self._ends(group, n, two)
        return (a_high >= 0) & (b_high >= 0) & ~((a_low == a_high) & (b_low == b_high) & (a_low == b_low))

    def _ends(self, group, n, chosen):
        low = torch.full((n,), _FAR).scatter_reduce(0, group[chosen], self.number[chosen], "amin")
        high = torch.full((n,), -1).scatter_reduce(0, group[chosen], self.number[chosen], "amax")
        return low, high

    def _two(self, one, two, need_unequal):
        """(program number, value, index of the print) of a lane of `one` and of a lane of `two` of another program."""
        ones, twos = (self._some_of(chosen) for chosen in (one, two))
        pairs = [(a, b) for a in ones for b in twos if a[0] != b[0]]
        fitting = [pair for pair in pairs if not (need_unequal and pair[0][1] == pair[1][1])]
        return min(fitting or pairs, key=lambda pair: (max(pair[0][0], pair[1][0]), pair), default=(ones[0], twos[-1]))

    def _some_of(self, chosen, kept=64):
        """(program number, value, index) of the first and the last of these lanes."""
        lanes = chosen.nonzero()[:, 0]
        lanes = lanes if len(lanes) <= 2 * kept else torch.cat([lanes[:kept], lanes[-kept:]])
        return list(zip(*(column[lanes].tolist() for column in (self.number, self.value, self.index)), strict=True))

    # ---- between the lanes of one program
    def within_programs(self):
        """Lanes of one store that meet: with different values some lane wins; after a read of the same elements, changes are lost."""
        found = []
        for i, p in enumerate(self.prints):
            if p.kind != "write":
                continue
            mine = self.index == i
            twice = self._twice(mine)
            if twice is None:
                continue
            element, number, unequal = twice
            lost = [j for j in range(i) if self.prints[j].kind == "read" and self._twice(self.index == j, element, number) is not None]
            if unequal or lost:
                other = lost[-1] if lost else i
                count = int((self.element[mine] == element).sum())
                kind = "lost" if lost else "lanes"
                address = self.home.base + element * self.unit
                found.append(Meeting(kind, p.argument, address, count, (number, self.prints[other]), (number, p)))
        return found

    def _twice(self, chosen, element=None, number=None):
        """(element, program, values differ) of the first element that two of these lanes of one program share; None without."""
        if element is not None:
            chosen = chosen & (self.element == element) & (self.number == number)
            return (element, number, False) if int(chosen.sum()) > 1 else None
        e, n, v = self.element[chosen], self.number[chosen], self.value[chosen]
        if len(e) < 2:
            return None
        order = _by_two(n, e)
        e, n, v = e[order], n[order], v[order]
        same = (e[1:] == e[:-1]) & (n[1:] == n[:-1])
        if not bool(same.any()):
            return None
        unequal = same & (v[1:] != v[:-1])
        at = int((unequal if bool(unequal.any()) else same).nonzero()[0][0])
        return int(e[at]), int(n[at]), bool(unequal.any())


def _by_two(major, minor):
    """The stable order by `major`, then by `minor`: integers, sorted as one where both fit into one."""
    low, span = int(minor.min()), int(minor.max() - minor.min()) + 1
    if (int(major.max()) + 1) * span < _FAR:
        return torch.argsort(major * span + (minor - low), stable=True)
    order = torch.argsort(minor, stable=True)
    return order[torch.argsort(major[order], stable=True)]
