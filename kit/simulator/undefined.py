"""Values that nothing defines, and whether anything depends on them.

A masked lane loaded without `other=`, an integer divided by zero, a value the compiler calls poison, an element of a ghost: the kernel
runs again with other values in their place, and what it reads, writes and decides is compared. One run does it for all of them: each
program is repeated, with its variant in a fourth column of its id. So no rule is needed about what operations hand on, and a kernel
whose masked lanes are multiplied by zero, chosen away or stored under the same mask is clean.
"""

from __future__ import annotations

from dataclasses import dataclass

import torch

from kit.simulator.hazards import Watch
from kit.simulator.memory import Access
from kit.simulator.paper_memory import PaperMemory
from kit.simulator.values import Value

_UNDEFINED = {name: "division by zero" for name in ("arith.divsi", "arith.remsi", "arith.divui", "arith.remui")}
_UNDEFINED["ub.poison"] = "undefined value"
EACH = 3
COLLECTIVE = {"tt.reduce", "tt.scan", "tt.dot", "tt.histogram"}


@dataclass
class Leak:
    """An undefined value that something depends on: the "mask", "address" or "value" of the access `sink`, first in `program`."""

    kind: str
    operation: object
    what: str
    sink: object
    program: tuple
    access: object


def masks_without_other(program):
    """The loads of a kernel that have a mask and no `other=`."""
    return {id(op): op for op in program.operations() if op.name == "tt.load" and len(op.operands) == 2}


class Spotter(Watch):
    """The Watch of the first run: it also notes where undefined values come into being, and in which programs."""

    def __init__(self, grid, program):
        super().__init__(grid)
        self.bare = masks_without_other(program)
        self.strange = {}

    def after(self, executor, frame, op, results):
        kind = "masked lane" if id(op) in self.bare else _UNDEFINED.get(op.name)
        if kind is not None:
            self.spot(kind, op, frame, undefined_lanes(kind, frame, op, results[0]))
        return super().after(executor, frame, op, results)

    def spot(self, kind, op, frame, lanes):
        """Note that `op` has lanes without a defined value."""
        if not bool(lanes.any()):
            return
        rows = lanes.reshape(lanes.shape[0], -1).any(1)
        programs = frame.programs if len(rows) == 1 else frame.programs[rows]
        self.strange.setdefault((id(op), kind), Strange(op, kind, {})).add(programs)

    def ghostly(self, op, programs):
        if op is not None:
            self.strange.setdefault((id(op), "ghost"), Strange(op, "ghost", {})).add(programs)


@dataclass
class Strange:
    """An operation that has no defined result in some lanes, and some of the programs that have such lanes."""

    operation: object
    kind: str
    programs: dict
    KEPT = 6

    def add(self, programs):
        """Keep the first programs of a batch and the last."""
        for program in (*programs[: self.KEPT].tolist(), *programs[-self.KEPT :].tolist()):
            if len(self.programs) < 4 * self.KEPT:
                self.programs[tuple(program)] = None


class Twins(Watch):
    """The Watch of the second run: puts other values in place of undefined ones, and compares the variants of each program.

    The undefined values of `strange` number i are others in `variants_of(i)`. Variant 0 is what they are compared with.
    """

    def __init__(self, grid, strange):
        super().__init__(grid)
        self.strange = strange
        self.leaks = {}
        self.through = {}
        self.at = {}
        for i, one in enumerate(strange):
            self.at.setdefault(id(one.operation), []).append(i)

    def programs(self):
        """Program ids with the variant in the fourth column, variants of a program together."""
        return torch.tensor([(*p, v) for i, one in enumerate(self.strange) for p in one.programs for v in (0, *variants_of(i))]).unique(
            dim=0
        )

    def after(self, executor, frame, op, results):
        for i in self.at.get(id(op), ()) if results else ():
            results = [self._replaced(frame, op, results[0], i), *results[1:]]
        if op.name in ("tt.atomic_rmw", "tt.atomic_cas"):
            self._compare_atomic(frame, op)
        if op.name in COLLECTIVE:
            for result in results:
                for row in self._differing(frame.programs, result.data):
                    self.through.setdefault((row[3] - 1) // EACH, op)
        return results

    def _replaced(self, frame, op, result, i):
        lanes = undefined_lanes(self.strange[i].kind, frame, op, result)
        variants = frame.programs[:, 3].reshape(-1, *(1,) * (result.data.dim() - 1))
        data = result.data
        if self.strange[i].kind == "masked lane":  # 0 would hide that it is multiplied by a masked lane of another load
            data = torch.where(lanes, torch.ones((), dtype=data.dtype), data)
        for variant, other in zip(variants_of(i), other_values(data.dtype, self.strange[i].kind), strict=True):
            data = torch.where(lanes & (variants == variant), other, data)
        return Value(data, result.argument)

    def compare(self, op, access, address, mask, bits):
        """Compare what the variants of each program read or write here: which lanes, at which address, what."""
        mask = torch.ones((1,) * address.dim(), dtype=torch.bool) if mask is None else mask
        data = {"mask": mask, "address": torch.where(mask, address, 0)}
        if bits is not None:
            data["value"] = torch.where(mask, bits, 0)
        for what, values in data.items():
            for row in self._differing(access.programs, values):
                self._leak(row, what, op, access)

    def _compare_atomic(self, frame, op):
        pointer, value = frame[op.operands[0]], frame[op.operands[-1 if op.name == "tt.atomic_cas" else 1]]
        mask = frame[op.operands[2]].data if op.name == "tt.atomic_rmw" and len(op.operands) > 2 else None
        access = Access("updates", op.location, frame.programs, pointer.argument, pointer)
        self.compare(op, access, pointer.data, mask, _bits(value.data))

    def _leak(self, row, what, op, access):
        i = (row[3] - 1) // EACH
        key = (i, id(op), what)
        if key not in self.leaks or tuple(row[:3]) < self.leaks[key].program:
            one = self.strange[i]
            self.leaks[key] = Leak(one.kind, one.operation, what, op, tuple(row[:3]), access)

    def _differing(self, programs, data):
        """The (x, y, z, variant) at which `data` are not those of variant 0 of the same program, or which are not here when it is."""
        rows = programs.tolist()
        at = {tuple(row): i for i, row in enumerate(rows)}
        bases = {row[:3] for row in at}
        found = [row for row in self._all(bases) if (row in at) != ((*row[:3], 0) in at)]
        if data.shape[0] > 1:
            flat = _bits(data.reshape(len(rows), -1))
            partner = torch.tensor([at.get((*row[:3], 0), i) for i, row in enumerate(rows)])
            found += [tuple(rows[i]) for i in (flat != flat[partner]).any(1).nonzero()[:, 0].tolist()]
        return found

    def _all(self, programs):
        """Every variant but 0 of these programs."""
        return [
            (*program, v) for i, one in enumerate(self.strange) for program in programs if program in one.programs for v in variants_of(i)
        ]


def undefined_lanes(kind, frame, op, result):
    """Which lanes of an operation's result nothing defines, in the shape of the result."""
    ones = torch.ones((1,) * result.data.dim(), dtype=torch.bool)
    if kind == "masked lane":
        return ~frame[op.operands[1]].data
    return frame[op.operands[1]].data == 0 if kind == "division by zero" else ones


def _bits(data):
    if not data.dtype.is_floating_point:
        return data
    size = {1: torch.uint8, 2: torch.int16, 4: torch.int32, 8: torch.int64}[data.element_size()]
    return data.contiguous().view(size)


def variants_of(i):
    """The numbers of the variants in which the undefined values of strange operation `i` are others."""
    return range(EACH * i + 1, EACH * i + 1 + EACH)


def other_values(dtype, kind):
    """EACH values that a use of an undefined one would show: 0, which stands there today, and one far on each side."""
    if dtype is torch.bool:
        return [torch.tensor(flag) for flag in (False, True, False)]
    if not dtype.is_floating_point:
        # In place of a ghost's integers: near 0, as indices are.
        return [torch.tensor(n, dtype=dtype) for n in ((0, 1, 2) if kind == "ghost" else (0, 101, -101))]
    top = min(float(torch.finfo(dtype).max), 1e30) / 4
    return [torch.tensor(x, dtype=torch.float32).to(dtype) for x in (0.0, top, -top)]


class TwinMemory(PaperMemory):
    """Memory of the second run: nothing is written or noted, every access is compared between the variants."""

    def load(self, address, mask, itemsize, access):
        self.watch.compare(self.op, access, address, mask, None)
        return super().load(address, mask, itemsize, access)

    def store(self, address, mask, bits, access):
        self.watch.compare(self.op, access, address, mask, bits)

    def lanes(self, address, mask, itemsize, access):
        return []  # Twins.after compares them, with their programs whole
