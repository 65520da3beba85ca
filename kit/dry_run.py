"""`dry_run`: a launch on paper. The grid against its limits, and the kernel's own IR executed with nothing behind the pointers."""

from __future__ import annotations

import html
import math
from dataclasses import dataclass, field

import torch

from kit import compiling, machine
from kit.errors import BadInput, expect_kernel, quoted
from kit.simulator.driver import live_arguments, wrapped_product
from kit.simulator.executor import Executor
from kit.simulator.hazards import PaperMemory, Watch
from kit.simulator.launch import bind, one_thread, programs_at, read_program
from kit.simulator.memory import source_line
from kit.simulator.operations import TABLE

# Elements of all blocks together that a dry run computes before it turns to a choice of programs.
WORK = 1 << 20
REAL_COPY = 1 << 28  # bytes of a GPU tensor that are copied to the CPU, for index tables


@dataclass(frozen=True)
class Finding:
    """One thing a dry run saw. `hazard`: "grid", "overflow" or "out of bounds"; `wrong` False marks a remark that breaks nothing."""

    hazard: str
    text: str
    wrong: bool = True
    line: int | None = None
    source: str = ""
    program: tuple | None = None
    true: int | None = None
    wrapped: int | None = None


@dataclass(frozen=True)
class Report:
    """What a launch on paper showed. True when nothing is wrong."""

    kernel: str
    grid: tuple
    findings: list[Finding] = field(default_factory=list)
    programs: int = 0
    ran: int = 0
    evidence: str = "simulated"

    @property
    def errors(self):
        """The findings that make a launch wrong."""
        return [finding for finding in self.findings if finding.wrong]

    def __bool__(self):
        return not self.errors

    def of(self, hazard):
        """The errors of one hazard: "grid", "overflow" or "out of bounds"."""
        return [finding for finding in self.errors if finding.hazard == hazard]

    @property
    def scope(self):
        """How much of the launch was run, as a phrase."""
        if self.ran == self.programs:
            return f"all {self.programs:,} program{'s' if self.programs != 1 else ''} on paper"
        return f"{self.ran:,} of {self.programs:,} programs on paper, corners and a spread between"

    def __repr__(self):
        head = f"{self.kernel} on {self.grid}"
        if self:
            return f"{head}: nothing wrong in {self.scope} [{self.evidence}]"
        more = f" (and {len(self.errors) - 1} more)" if len(self.errors) > 1 else ""
        return f"{head}: {self.errors[0].text}{more} [{self.evidence}]"

    def _repr_html_(self):
        from kit.evidence import label_html

        mark = {True: ("✗", "wrong"), False: ("·", "remark")}
        rows = "".join(
            f"<tr><td>{mark[f.wrong][0]} {mark[f.wrong][1]}</td><td>{html.escape(f.hazard)}</td>"
            f"<td style='text-align:left'>{html.escape(f.text)}</td></tr>"
            for f in self.findings
        )
        verdict = "nothing wrong" if self else f"{len(self.errors)} wrong"
        head = f"<p><b>{html.escape(self.kernel)}</b> on {self.grid}: {verdict}, {self.scope}. {label_html(self.evidence)}</p>"
        return head + (f"<table>{rows}</table>" if rows else "")


def dry_run(kernel, grid, *args, **meta):
    """Return a Report on the launch `kernel[grid](*args, **meta)`, without launching it: it needs no GPU and no memory.

    `grid` is a tuple of one to three whole numbers, or a function of the constexprs as in a launch. `args` are tensors, ghosts
    and numbers; `meta` are constexprs and launch options. Found: a grid that the target refuses or silently skips, int32
    overflow that reaches an address, a mask or a branch, and addresses outside their own argument. Nothing is written: a tensor
    keeps its values, and a load reads what is there before the launch; a ghost reads as zeros, so an index loaded from one is 0.
    Launches too large to run in full are run at the corners of the grid, at a spread of programs between, and where a finding
    begins. Raises BadInput or CompileError as `build` does.
    """
    here = machine.current()
    expect_kernel(kernel, verb="dry_run")
    values, options = compiling.bind(kernel, args, meta, verb="dry_run", device=here.device)
    grid = _checked_grid(grid, dict(zip(kernel.arg_names, values, strict=True)))
    findings = _grid_findings(grid, here.limits)
    compiled = compiling.compiled(kernel, values, options, verb="dry_run")
    program = read_program(compiled.asm["ttir"], kernel.fn.__code__.co_filename)
    paper = _Paper(program, grid, live_arguments(list(compiled.src.signature.items()), values))
    if paper.total:
        with one_thread():
            paper.explore()
        findings += paper.findings()
    return Report(kernel.__name__, grid, findings, paper.total, paper.ran)


def _checked_grid(grid, arguments):
    given = grid(arguments) if callable(grid) else grid
    given = (given,) if isinstance(given, int) else given
    whole = isinstance(given, (tuple, list)) and 1 <= len(given) <= 3
    if not whole or any(isinstance(n, bool) or not isinstance(n, int) or n < 0 for n in given):
        raise BadInput(f"dry_run: grid must be a tuple of one to three whole numbers, zero or more; got {quoted(given)}.")
    return tuple(given)


def _grid_findings(grid, limits):
    """The grid alone: what the driver refuses, what Triton's launcher skips, what has no work."""
    axes = "xyz"
    full = (*grid, 1, 1)[:3]
    product = math.prod(full)
    findings = []
    for axis, n, limit in zip(range(3), full, limits.grid, strict=True):
        if n > limit:
            findings.append(
                Finding("grid", f"grid[{axis}] is {n:,}, over the limit of {limit:,} for axis {axes[axis]}: the launch is refused", true=n)
            )
    if product > limits.programs and all(n <= limits.grid[0] for n in full):
        wrapped = wrapped_product(full)
        # The launcher looks at the product before the driver sees the axes: a skipped launch is never refused.
        if wrapped <= 0:
            text = (
                f"the product of the axes is {product:,}, which is {wrapped:,} in the launcher's 32 bits: the launch is skipped in silence"
            )
            findings = [Finding("grid", text, true=product, wrapped=wrapped)]
        else:
            text = (
                f"the product of the axes is {product:,}, over 2^31 - 1; it happens to wrap to the positive {wrapped:,}, so the launch runs"
            )
            findings.append(Finding("grid", text, wrong=False, true=product, wrapped=wrapped))
    if product == 0:
        findings.append(Finding("grid", "an axis is 0: no program runs, and nothing says so", wrong=False))
    return findings


class _Paper:
    """The kernel's programs, run on paper, with what was seen."""

    def __init__(self, program, grid, arguments):
        self.grid = (*grid, 1, 1)[:3]
        self.total = math.prod(self.grid)
        self.watch = Watch(self.grid)
        tensors, self.values = bind(program, [(name, kind, _on_paper(value)) for name, kind, value in arguments])
        self.memory = PaperMemory(tensors, self.watch)
        self.executor = Executor(program, TABLE, self.memory, self.grid, self.watch)
        largest = max([1, *(math.prod(kind.shape) for kind in program.types)])
        self.batch = max(1, (1 << 17) // largest)
        self.affordable = max(256, WORK // largest)
        self.ran = 0
        self.clean = set()

    def explore(self):
        """Run all programs when that is affordable; else the corners, a spread, and where each finding begins."""
        if self.total <= self.affordable:
            return self.run(torch.arange(self.total))
        self.run(self.spread())
        for book in (self.watch.wraps, self.watch.reached, self.memory.outside):
            for key in list(book):
                self.trace_back(book, key)

    def run(self, numbers):
        for part in numbers.split(self.batch):
            self.executor.run(programs_at(part, self.grid), self.values)
        self.ran += len(numbers)

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

    # ---- sightings to sentences
    def findings(self):
        reached = [(sighting.operation, sighting) for sighting in self.watch.reached.values()]
        harmful = {id(operation) for operation, _ in reached}
        harmless = {}
        for sighting in self.watch.wraps.values():
            if id(sighting.operation) not in harmful:
                harmless.setdefault(sighting.operation.location.line, []).append(sighting)
        remarks = [self.remark(sightings) for sightings in harmless.values()]
        errors = []
        for operation in {id(op): op for op, _ in reached}.values():
            errors.append(self.sentence(operation, [s for op, s in reached if op is operation]))
        return errors + [self.stray(sighting) for sighting in self.memory.outside.values()] + remarks

    def sentence(self, op, sinks):
        """A wrap that something depends on: told with the numbers of the first program where it matters."""
        line = source_line(op.location)
        width = {"i8": 8, "i16": 16, "i32": 32}.get(op.types[0].element, 64)
        first = min(sinks, key=lambda s: s.number)
        wrap = self.watch.wraps.get(id(op))
        if wrap is not None and wrap.number == first.number:
            what = {"arith.muli": "product", "arith.addi": "sum", "arith.subi": "difference"}.get(op.name, "value")
        else:  # it wrapped before it did harm, as an unsigned product does between 2^31 and 2^32
            wrap, what = first, "offset" if first.argument else "value"
        ends = sorted({s.reaches + (f" in line {s.sink.line}" if s.sink.line != op.location.line else "") for s in sinks})
        text = (
            f"line {op.location.line}: {line}: int{width} overflow: the {what} {wrap.true:,} becomes {wrap.wrapped:,}, "
            f"first in program {first.program}; it reaches {'; and '.join(ends)}"
        )
        return Finding("overflow", text, True, op.location.line, line, first.program, wrap.true, wrap.wrapped)

    def remark(self, sightings):
        """Integers that wrap on one line and decide nothing: as hashes and random numbers do on purpose."""
        first = min(sightings, key=lambda s: s.number)
        location = first.operation.location
        line = source_line(location)
        n = len(sightings)
        where = f"in {n} operations" if n > 1 else "in one operation"
        text = f"line {location.line}: {line}: integers wrap {where}, and no address, comparison or branch depends on it"
        return Finding("overflow", text, False, location.line, line, first.program, first.true, first.wrapped)

    def stray(self, sighting):
        line = source_line(sighting.sink)
        tensor = self.memory.tensors[sighting.argument]
        n = math.prod(tensor.shape)
        text = (
            f"line {sighting.sink.line}: {line}: {sighting.reaches} {sighting.argument} at element offset {sighting.true:,}, outside its "
            f"memory ({n:,} elements), first in program {sighting.program}"
        )
        return Finding("out of bounds", text, True, sighting.sink.line, line, sighting.program, sighting.true)


class _Copied:
    """A tensor on a GPU, for a run on paper: its addresses, and the values it held when the run began."""

    def __init__(self, tensor):
        self.tensor, self.shape, self.dtype = tensor, tensor.shape, tensor.dtype
        storage = tensor.untyped_storage()
        self.base, self.bytes = storage.data_ptr(), storage.nbytes()
        self.values = storage.cpu() if self.bytes <= REAL_COPY else None

    def data_ptr(self):
        return self.tensor.data_ptr()

    def paper_extent(self):
        return self.base, self.bytes, self.values


def _on_paper(value):
    return _Copied(value) if isinstance(value, torch.Tensor) and value.is_cuda else value
