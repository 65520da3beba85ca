"""A kernel's programs, run on paper: which ones, and what was seen, as sentences."""

from __future__ import annotations

import contextlib
import math

import torch

from kit.simulator.atomics import _used
from kit.simulator.dependence import written_arguments
from kit.simulator.executor import Executor
from kit.simulator.footprints import Footprints
from kit.simulator.launch import bind, programs_at
from kit.simulator.operations import TABLE, DeviceAssert
from kit.simulator.paper_memory import PaperMemory, Waiting
from kit.simulator.program import Unsupported
from kit.simulator.undefined import Spotter, TwinMemory, Twins

# Elements of all blocks together that a dry run computes before it turns to a choice of programs.
WORK = 1 << 20
REAL_COPY = 1 << 28  # bytes of a GPU tensor that are copied to the CPU, for index tables


class PaperExecutor(Executor):
    """The Executor, telling its memory which operation is at work and whether it stands in a `while` loop.

    It prints nothing, and an assertion that fails is noted.
    """

    def step(self, frame, operation):
        if operation.name == "tt.print":
            return
        waits = operation.name == "scf.while"
        self.memory.loops += waits
        self.memory.op = operation
        try:
            super().step(frame, operation)
        except DeviceAssert as error:
            self.watch.failed.setdefault(id(operation), (operation, str(error)))
        finally:
            self.memory.loops -= waits


class Paper:
    """The launch of `program` on `grid`: `explore` runs it, `findings` tells what was seen."""

    def __init__(self, program, grid, arguments):
        self.program = program
        self.grid = (*grid, 1, 1)[:3]
        self.total = math.prod(self.grid)
        program.kernel.parameter_names = [name for name, _, _ in arguments]  # the IR has another one for an argument bound to a second name
        self.tensors, self.values = bind(program, [(name, kind, _on_paper(value)) for name, kind, value in arguments])
        largest = max([1, *(math.prod(kind.shape) for kind in program.types)])
        self.batch = max(1, (1 << 17) // largest)
        self.affordable = max(256, WORK // largest)
        self.waits = None
        self.begin(self.batch)

    def begin(self, batch, writes=False):
        """Forget what was seen, and set up a run of `batch` programs at a time."""
        self.batch = batch
        self.watch = Spotter(self.grid, self.program)
        self.memory = PaperMemory(self.tensors, self.watch, writes=writes)
        written = written_arguments(self.program)
        self.footprints = self.memory.footprints = Footprints(self.grid, self.memory.by_argument, written, _used(self.program))
        self.executor = PaperExecutor(self.program, TABLE, self.memory, self.grid, self.watch)
        self.parts = []
        self.ran = 0

    def explore(self, chosen=None):
        """Run the chosen programs; or all when that is affordable; else the corners, a spread, and where each finding begins."""
        whole = chosen is None and self.total <= self.affordable
        if chosen is None and not whole:
            numbers = self.spread()
        else:
            numbers = torch.arange(self.total) if whole else torch.tensor(chosen)
        try:
            self.begin(self.batch, writes=whole)
            self.run(numbers)
        except Waiting:
            self.one_by_one(numbers, whole)
        if chosen is None and not whole and self.waits is None:
            self.footprints.closed = True  # the programs of a search are no fair sample of pairs
            for book in (self.watch.wraps, self.watch.reached, self.memory.outside):
                for key in list(book):
                    self.trace_back(book, key)

    def one_by_one(self, numbers, writes):
        """Programs that take a lock from each other get through when each has finished before the next begins."""
        self.begin(1, writes)
        try:
            self.run(numbers[:256])
        except Waiting as waiting:
            self.waits = waiting

    def run(self, numbers):
        for part in numbers.split(self.batch):
            self.executor.run(programs_at(part, self.grid), self.values)
            self.parts.append(part)
            self.ran += len(part)

    def numbers(self):
        """The linear numbers of the programs that ran, ascending."""
        return tuple(torch.cat(self.parts).unique().tolist()) if self.parts else ()

    def spread(self):
        """Linear numbers: each axis at both ends, next to them, and evenly between."""
        per_axis = max(4, int(self.affordable ** (1 / sum(n > 1 for n in self.grid))) - 4)
        axes = []
        for n in self.grid:
            between = torch.linspace(0, n - 1, min(n, per_axis), dtype=torch.float64).round().to(torch.int64)
            ends = torch.tensor([0, 1, n - 2, n - 1]).clamp(0, n - 1)
            axes.append(torch.unique(torch.cat([between, ends])))
        x, y, z = torch.meshgrid(*axes, indexing="ij")
        return torch.unique(((z * self.grid[1] + y) * self.grid[0] + x).reshape(-1))

    def trace_back(self, book, key):
        """Move a sighting to the first program that shows it, axis by axis, z first: the order of the linear number.

        An axis is searched between a program that does not show it and one that does, with the axes after it at their far end,
        where offsets are largest.
        """
        for axis in (2, 1, 0):
            x, y, z = book[key].program
            fixed = {2: (self.grid[0] - 1, self.grid[1] - 1, z), 1: (self.grid[0] - 1, y, z), 0: (x, y, z)}[axis]
            low, high = -1, fixed[axis]
            while high - low > 1:
                tried = torch.unique(torch.linspace(low + 1, high, 64, dtype=torch.float64).round().to(torch.int64))
                programs = torch.tensor([fixed] * len(tried))
                programs[:, axis] = tried
                shows = self.shows(book, key, programs)
                if not bool(shows.any()):
                    break
                first = int(shows.nonzero()[0][0])
                high = int(tried[first])
                low = int(tried[first - 1]) if first else high - 1
                if first == 0:
                    break

    def shows(self, book, key, programs):
        """Which of `programs` (ascending along one axis) show the sighting: those from the first that does."""
        before = book.pop(key)
        self.run((programs[:, 2] * self.grid[1] + programs[:, 1]) * self.grid[0] + programs[:, 0])
        found = book.get(key)
        if found is None or before.number < found.number:
            book[key] = before
        if found is None:
            return torch.zeros(len(programs), dtype=torch.bool)
        numbers = (programs[:, 2] * self.grid[1] + programs[:, 1]) * self.grid[0] + programs[:, 0]
        return numbers >= found.number

    def leaks(self):
        """(Leaks of undefined values, the reductions on their way): from a second run of some of the programs that have any."""
        strange = list(self.watch.strange.values())
        if not strange:
            return [], {}
        twins = Twins(self.grid, strange)
        memory = TwinMemory(self.tensors, twins)
        with contextlib.suppress(Waiting, Unsupported):  # other values may lead a loop astray
            PaperExecutor(self.program, TABLE, memory, self.grid, twins).run(twins.programs(), self.values)
        through = {id(strange[i].operation): op for i, op in twins.through.items()}
        return list(twins.leaks.values()), through

    def rereads(self):
        """True when some argument's memory is both written and read: only there can a program's warps race."""
        return bool(self.footprints.stored & self.footprints.loaded)

    def findings(self):
        """Everything that was seen, worst first."""
        from kit.telling import Telling

        return Telling(self).findings()


class _Copied:
    """A tensor on a GPU, for a run on paper: its addresses, and the values it held when the run began."""

    def __init__(self, tensor):
        self.tensor, self.shape, self.dtype, self.stride = tensor, tensor.shape, tensor.dtype, tensor.stride
        storage = tensor.untyped_storage()
        self.base, self.bytes = storage.data_ptr(), storage.nbytes()
        self.values = storage.cpu() if self.bytes <= REAL_COPY else None

    def data_ptr(self):
        return self.tensor.data_ptr()

    def paper_extent(self):
        return self.base, self.bytes, self.values


def _on_paper(value):
    return _Copied(value) if isinstance(value, torch.Tensor) and value.is_cuda else value
