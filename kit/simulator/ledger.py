"""Who touched which element of a program's memory between which barriers, and where two warps meet.

While a batch of programs runs with its warps in step, a table holds for each element the warp that touched it last, and since which
barrier. Few elements are ever touched by two warps between two barriers; the accesses of those are compared one by one.
"""

from __future__ import annotations

import bisect
from dataclasses import dataclass, replace

import torch

from kit.simulator.flow import READS, UNKNOWN
from kit.simulator.memory import extent, source_line
from kit.simulator.operations import element_size
from kit.simulator.values import BY_SIZE, common_shape

SHADOW = 1 << 26  # up to this many elements, who touched each last is kept in a table
KEPT = 1 << 23  # lanes whose accesses are kept before they are compared


@dataclass(frozen=True)
class RacePair:
    """Two accesses of one element by two warps of one program, at least one of them a store, with no barrier between.

    `kind`: "store then load", "load then store" or "store then store", in the order of the source. `element` counts from the start
    of `argument`. `certain` is False when a barrier may stand between: where the compiler's PTX and our reading of the IR disagree.
    `number` says how many such elements were seen.
    """

    first_line: int
    second_line: int
    kind: str
    program: tuple
    argument: str
    element: int
    warps: tuple
    certain: bool = True
    number: int = 1
    first_source: str = ""
    second_source: str = ""

    def __repr__(self):
        first, second = (f"line {n}: {text}" if text else f"line {n}" for n, text in self._ends())
        doubt = "" if self.certain else ", not certain: a barrier may stand between"
        return (
            f"{self.kind} with no barrier between ({first}; {second}): program {self.program}, {self.argument} at element offset "
            f"{self.element:,}, warps {self.warps[0]} and {self.warps[1]}{doubt}"
        )

    def _ends(self):
        return (self.first_line, self.first_source), (self.second_line, self.second_source)


class Ledger:
    """Who touched which element between which barriers, for one batch of programs; and the pairs found in all batches."""

    def __init__(self, plan, memory, tensors, names, grid, stores_alone=False):
        self.plan, self.tensors, self.grid = plan, tensors, grid
        self.allocations, watched = _contested(plan.flow, memory, names, stores_alone)
        self.watched = {id(op) for op in watched}
        sizes = [element_size(plan.program.types[op.operands[0]]) for op in watched]
        self.grain = min(sizes, default=1)
        self.shift = self.grain.bit_length() - 1
        self.starts, total = [], 0
        for allocation in self.allocations:
            self.starts.append(total)
            total += allocation.size // self.grain
        self.total = total
        small = total <= SHADOW and set(sizes) == {self.grain}
        self.shadow = torch.full((total,), -1, dtype=torch.int32) if small else None
        self.suspect = torch.zeros(total, dtype=torch.bool) if small else None
        self.suspects = False
        self.epoch = 0
        self.pairs = {}
        self.ahead = 0  # pairs whose second access is by a later warp, less those whose is by an earlier one

    @property
    def order(self):
        """The order of warps in which most pairs go wrong: that of the second access runs first."""
        return "last first" if self.ahead >= 0 else "first first"

    def begin(self, numbers):
        """A new batch: the linear numbers of its programs."""
        self.numbers = torch.sort(numbers).values
        self.sure = torch.zeros(len(numbers), dtype=torch.int32)  # barriers passed that the PTX has
        self.maybe = torch.zeros_like(self.sure)  # barriers passed, those that only may be there included
        self.notes = []
        self.lanes, self.limit = 0, KEPT
        self.found = False
        if self.suspects:
            self.suspect.zero_()
            self.suspects = False

    def rows(self, frame):
        """The batch's rows that a frame's programs are; None when they are all of them, in order."""
        if not hasattr(frame, "batch_rows"):
            p = frame.programs
            numbers = (p[:, 2] * self.grid[1] + p[:, 1]) * self.grid[0] + p[:, 0]
            frame.batch_rows = torch.searchsorted(self.numbers, numbers)
        return frame.batch_rows

    def barrier(self, frame, sure):
        rows = self.rows(frame)
        self.maybe[rows] += 1
        if sure:
            self.sure[rows] += 1

    def note(self, frame, op, step, address, mask, stored):
        index, inside = self.place(address)
        keep = mask if inside is None else inside if mask is None else inside & mask
        low, high = _warps(op, step)
        rows = self.rows(frame)
        if self.shadow is not None:
            self.look(index, keep, torch.where(low == high, low, _SEVERAL).to(torch.int32), self.sure[rows])
        bits = torch.zeros((1,) * (1 + low.dim()), dtype=torch.int8) if stored is None else _bits(stored)
        width = element_size(self.plan.program.types[op.operands[0]]) // self.grain
        self.notes.append(_Note(op, rows, self.sure[rows], self.maybe[rows], index, keep, low, high, bits, width))
        self.lanes += self.notes[-1].size
        if self.lanes > self.limit:
            self.compare(final=False)

    def place(self, address):
        """(index of each address among the contested elements, which of them are inside; None: all)."""
        if len(self.allocations) == 1:
            home = self.allocations[0]
            index = (address - home.base) >> self.shift
            low, high = (int(x) for x in torch.aminmax(index)) if index.numel() else (0, 0)
            if low >= 0 and high < self.total:
                return index, None
            inside = (index >= 0) & (index < self.total)
            return torch.where(inside, index, 0), inside
        index, inside = torch.zeros_like(address), torch.zeros_like(address, dtype=torch.bool)
        for home, start in zip(self.allocations, self.starts):
            here = (address >= home.base) & (address < home.base + home.size // self.grain * self.grain)
            index = torch.where(here, start + ((address - home.base) >> self.shift), index)
            inside |= here
        return index, inside

    def look(self, index, keep, code, epochs):
        """Mark the elements that more than one warp has touched since a barrier: `suspect`, few of them as a rule, are compared later.

        `epochs` numbers, by program row, the stretches between barriers. The shadow holds the epoch and the warp of the last access.
        """
        floor = (self.epoch + epochs) * _WARPS
        low, high = (int(x) for x in torch.aminmax(floor)) if len(floor) else (0, 0)
        floor = low if low == high else floor.reshape(-1, *(1,) * code.dim())
        code = code + floor
        shape = common_shape(index.shape, code.shape) if keep is None else common_shape(index.shape, code.shape, keep.shape)
        index, code = index.expand(shape), code.expand(shape)
        if keep is not None and not bool(keep.view(torch.uint8).amin()):
            keep = keep.expand(shape)
            index, code = index.masked_select(keep), code.masked_select(keep)
        index, code = index.reshape(-1), code.reshape(-1)
        before = self.shadow.index_select(0, index)
        self.shadow.scatter_(0, index, code)
        met = ((before >= low) & (before != code)) | (self.shadow.index_select(0, index) != code)
        if met.numel() and bool(met.view(torch.uint8).amax()):
            self.suspect[index[met]] = True
            self.suspects = True

    # ---- the comparison
    def compare(self, final=True, few=False):
        """Find the pairs among the accesses noted; keep those that a later access could still meet. True when there are any.

        `few`: look at a few of the programs first, and at all of them only when these show nothing.
        """
        if few and self.suspects and len(self.numbers) > FEW:
            if (records := self.records(few)) is not None:
                self.match(records)
            if self.found:
                self.epoch += 1 + int(self.sure.max())
                return True
        records = self.records() if self.shadow is None or self.suspects else None
        if records is not None:
            self.match(records)
        if final:
            self.epoch += 1 + int(self.sure.max())
        kept = [] if final else [note for note in self.notes if bool((note.sure == self.sure[note.rows]).any())]
        self.notes, self.lanes = kept, sum(note.size for note in kept)
        self.limit = max(KEPT, 2 * self.lanes)
        return self.found

    def records(self, few=False):
        """The accesses of suspect elements, one a row; None when there are none.

        The columns: program row, element, barriers passed that the PTX has, those that may be there included, first and last warp,
        bits stored, place of the access in `notes`. `few`: those of some programs only.
        """
        parts = []
        for place, note in enumerate(self.notes):
            shape = (len(note.rows), *note.low.shape)
            chosen = torch.ones(shape, dtype=torch.bool) if note.keep is None else note.keep.expand(shape)
            if few:
                chosen = chosen & (note.rows < FEW).reshape(-1, *(1,) * note.low.dim())
                if not bool(chosen.any()):
                    continue
            if self.shadow is not None:
                chosen = chosen & self.suspect[note.index]
            row = chosen.nonzero()[:, 0]
            if not len(row):
                continue
            columns = [note.rows[row], note.index, note.sure[row], note.maybe[row], note.low, note.high, note.bits]
            columns = [c if c.shape == row.shape and i in (0, 2, 3) else c.expand(shape)[chosen] for i, c in enumerate(columns)]
            part = torch.stack([c.to(torch.int64) for c in columns] + [torch.full_like(row, place)], 1)
            parts.append(part)
            for _ in range(1, note.width):  # an access of several grains
                part = part.clone()
                part[:, 1] += 1
                parts.append(part)
        return torch.cat(parts) if parts else None

    def match(self, records):
        """Compare the records of each (program, element, stretch between barriers) with each other."""
        key = records[:, 0] * (self.total + 1) + records[:, 1]
        order = torch.argsort(key, stable=True)
        records, key = records[order], key[order]
        group = torch.zeros_like(key)
        group[1:] = ((key[1:] != key[:-1]) | (records[1:, 2] != records[:-1, 2])).cumsum(0)
        kinds = torch.tensor([_KIND[note.op.name] for note in self.notes])
        _, _, _, maybe, low, high, bits, place = records.unbind(1)
        kind = kinds[place]
        for distance in range(1, MOST_APART):
            first, second = slice(None, -distance), slice(distance, None)
            together = group[first] == group[second]
            if not bool(together.any()):
                break
            a, b = kind[first], kind[second]
            alone = (low[first] == high[first]) & (low[second] == high[second]) & (low[first] == low[second])
            same = (a == b) & ((a != 1) | (bits[first] == bits[second]))  # loads, atomics, and stores of one value go together
            hits = (together & ~alone & ~same).nonzero()[:, 0]
            if len(hits):
                ahead = low[second][hits] + high[second][hits] - low[first][hits] - high[first][hits]
                self.ahead += int(torch.sign(ahead).sum())
                self.keep_pairs(records, hits, hits + distance)

    def keep_pairs(self, records, first, second):
        """Enter these pairs of records: for each two operations how many, and the earliest program as the example."""
        self.found = True
        places = records[first, 7] * len(self.notes) + records[second, 7]
        for both in places.unique().tolist():
            here = (places == both).nonzero()[:, 0]
            i, j = records[first[here]], records[second[here]]
            sure = i[:, 3] == j[:, 3]
            certain = bool(sure.any()) and not self.plan.stray
            if bool(sure.any()):
                i, j = i[sure], j[sure]
            lowest = int((self.numbers[i[:, 0]] * (self.total + 1) + i[:, 1]).argmin())
            a, b = (self.notes[n] for n in divmod(both, len(self.notes)))
            self.enter(a, b, i[lowest].tolist(), j[lowest].tolist(), certain, len(here))

    def enter(self, a, b, i, j, certain, number):
        words = [("load", "store", "store")[_KIND[note.op.name]] for note in (a, b)]
        linear = int(self.numbers[i[0]])
        program = (linear % self.grid[0], linear // self.grid[0] % self.grid[1], linear // (self.grid[0] * self.grid[1]))
        warps = (i[4], j[4] if j[4] != i[4] else j[5])
        warps = warps if warps[0] != warps[1] else (i[5], j[4])
        argument, element = self.name(i[1], a.op)
        lines = [note.op.location for note in (a, b)]
        pair = RacePair(
            lines[0].line, lines[1].line, " then ".join(words), program, argument, element, warps, certain, number, *map(source_line, lines)
        )
        key = (pair.first_line, pair.second_line, pair.kind)
        old = self.pairs.get(key)
        if old is not None:
            best = min((pair, old), key=lambda one: (not one.certain, one.program[::-1], one.element))
            pair = replace(best, certain=pair.certain or old.certain, number=pair.number + old.number)
        self.pairs[key] = pair

    def name(self, index, op):
        """(argument, element offset in it) of a contested element."""
        at = bisect.bisect_right(self.starts, index) - 1
        address = self.allocations[at].base + (index - self.starts[at]) * self.grain
        touched = self.plan.flow.touched(op)
        places = [i for i, tensor in enumerate(self.tensors) if tensor is not None and _holds(tensor, address)]
        place = next((i for i in places if i in touched), places[0])
        size = element_size(self.plan.program.types[op.operands[0]])
        return self.plan.program.kernel.parameter_names[place], (address - self.tensors[place].data_ptr()) // size


_WARPS = 128  # an epoch's codes in the shadow: the number of a warp, or _SEVERAL
_SEVERAL = 127
FEW = 4
_KIND = {"tt.load": 0, "tt.store": 1, "tt.atomic_rmw": 2, "tt.atomic_cas": 2}
MOST_APART = 256  # accesses of one element between two barriers that are compared with each other


@dataclass
class _Note:
    """One access of a batch: by program row the barriers passed, by lane the element and the first and last warp that touch it."""

    op: object
    rows: torch.Tensor
    sure: torch.Tensor
    maybe: torch.Tensor
    index: torch.Tensor
    keep: torch.Tensor | None
    low: torch.Tensor
    high: torch.Tensor
    bits: torch.Tensor
    width: int

    @property
    def size(self):
        return len(self.rows) * self.low.numel() * self.width


def _bits(stored):
    return stored.to(torch.uint8) if stored.dtype is torch.bool else stored.contiguous().view(BY_SIZE[stored.element_size()])


def _holds(tensor, address):
    base, size = extent(tensor)[:2]
    return base <= address < base + size


def _contested(flow, memory, names, stores_alone):
    """([allocations reached by accesses that may meet], [memory operations that can touch them])."""

    def homes(places):
        known = [names[i] for i in range(len(names)) if UNKNOWN in places or i in places]
        return {id(memory.by_argument[name]) for name in known if name in memory.by_argument}

    loads, stores, updates = map(homes, flow.access)
    contested = (loads & (stores | updates)) | (updates & stores) | (stores if stores_alone else set())
    allocations = [a for a in memory.allocations if id(a) in contested]
    return allocations, [op for op in flow.memory if homes(flow.touched(op)) & contested]


def _warps(op, step):
    """(first, last warp that touches each lane). Copies in other warps count only where they matter."""
    if op.name not in READS or not step.copies:
        return step.owner, step.owner
    holders = step.holders.to(torch.uint8)
    return step.owner, len(holders) - 1 - holders.flip(0).argmax(0)
