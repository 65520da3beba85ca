"""Control flow over all programs at once.

A Frame holds the values of some programs. A branch, a loop or an early return that not all of them take gets a child frame with
the rows that do; a value from outside is cut down to those rows when it is first asked for. So a kernel's operations run only for
programs that reach them, and finished programs cost nothing.
"""

from __future__ import annotations

import re

import torch

from kit.simulator.program import Unsupported
from kit.simulator.values import Value, dtype_of, merge, take_rows


class Frame:
    """The values of `n` programs by number; `rows` says which of the parent's programs these are (None: all)."""

    def __init__(self, n, parent=None, rows=None):
        self.n = n
        self.parent = parent
        self.rows = rows
        self.values = {}
        self._programs = None

    def __getitem__(self, number):
        value = self.values.get(number)
        if value is None:
            value = self.parent[number]
            if self.rows is not None:
                value = take_rows(value, self.rows)
            self.values[number] = value
        return value

    def __setitem__(self, number, value):
        self.values[number] = value

    @property
    def programs(self):
        """The program ids of the rows: (n, 3)."""
        if self._programs is None:
            programs = self.parent.programs
            self._programs = programs if self.rows is None else programs[self.rows]
        return self._programs

    @programs.setter
    def programs(self, programs):
        self._programs = programs


class Executor:
    """Runs a Program's operations. `operations` is the table name -> function(executor, frame, operation) -> values."""

    def __init__(self, program, table, memory, grid, watch=None):
        self.program = program
        self.table = table
        self.memory = memory
        self.grid = grid
        self.watch = watch
        self.constants = {}

    def kind(self, number):
        return self.program.types[number]

    def run(self, programs, arguments):
        """Run the kernel for `programs` (n, 3) with `arguments`, the parameters' values in order."""
        frame = Frame(len(programs))
        frame.programs = programs
        self.call(self.program.kernel, frame, arguments)

    def call(self, function, frame, arguments):
        """Run a function for the programs of `frame`; returns its results."""
        inner = Frame(frame.n, frame)
        for number, value in zip(function.parameters, arguments):
            inner[number] = value
        return self.flow(function.body, function.body.entry, inner)

    def flow(self, region, block, frame):
        """Run `block` and what it branches to, until each program has returned. Returns the merged results."""
        for operation in block.operations:
            if operation.name == "tt.return":
                return [frame[number] for number in operation.operands]
            if operation.name == "cf.br":
                label, values = operation.successors[0]
                return self.flow(region, *self.enter(region, label, values, frame))
            if operation.name == "cf.cond_br":
                return self.branch(region, operation, frame)
            self.step(frame, operation)
        return []

    def enter(self, region, label, values, frame):
        block = next(block for block in region.blocks if block.label == label)
        inner = Frame(frame.n, frame)
        for number, value in zip(block.arguments, values):
            inner[number] = frame[value]
        return block, inner

    def branch(self, region, operation, frame):
        parts = []
        for rows, (label, values) in zip(self.split(frame, frame[operation.operands[0]]), operation.successors):
            if len(rows):
                inner = frame if len(rows) == frame.n else Frame(len(rows), frame, rows)
                parts.append((rows, self.flow(region, *self.enter(region, label, values, inner))))
        return self.gather(frame, parts)

    def split(self, frame, condition):
        """(rows where it holds, rows where it does not)."""
        flags = condition.data.reshape(-1).expand(frame.n)
        return flags.nonzero()[:, 0], (~flags).nonzero()[:, 0]

    def gather(self, frame, parts):
        """Merge [(rows, values)] into one list of values for all of the frame's programs."""
        if len(parts) == 1:
            return parts[0][1]
        return [merge(frame.n, [(rows, values[i]) for rows, values in parts]) for i in range(len(parts[0][1]))]

    def step(self, frame, operation):
        """Run one operation and keep its results."""
        structured = _STRUCTURED.get(operation.name)
        if structured:
            results = structured(self, frame, operation)
        else:
            results = self.table[operation.name](self, frame, operation)
            if self.watch is not None:
                results = self.watch.after(self, frame, operation, results)
        for number, value in zip(operation.results, results):
            frame[number] = value

    def inside(self, block, frame, arguments):
        """Run a region's only block in its own frame; returns that frame and the values it yields, none when it yields nothing."""
        inner = Frame(frame.n, frame)
        for number, value in zip(block.arguments, arguments):
            inner[number] = value
        for operation in block.operations:
            if operation.name in _YIELDS:  # left out of the text when there is nothing to yield
                return inner, [inner[number] for number in operation.operands]
            self.step(inner, operation)
        return inner, []

    # ---- structured control flow
    def if_(self, frame, operation):
        parts = []
        regions = operation.regions + [None] * (2 - len(operation.regions))
        condition = frame[operation.operands[0]]
        self.decide(frame, operation, condition)
        for rows, region in zip(self.split(frame, condition), regions):
            if len(rows) and region is not None:
                inner = frame if len(rows) == frame.n else Frame(len(rows), frame, rows)
                parts.append((rows, self.inside(region.entry, inner, [])[1]))
        return self.gather(frame, parts) if operation.types else []

    def for_(self, frame, operation):
        low, high, step, *carried = (frame[number] for number in operation.operands)
        for bound in (low, high, step):
            self.decide(frame, operation, bound)
        block = operation.regions[0].entry
        dtype = dtype_of(self.kind(block.arguments[0]))
        first, last, stride = (bound.data.reshape(-1).to(torch.int64) for bound in (low, high, step))
        if bool((stride <= 0).any()):
            line = operation.location.line
            raise Unsupported(f"the simulated GPU does not run a loop with a step of {int(stride.min())} (line {line}).")
        trips = ((last - first + stride - 1) // stride).clamp(min=0).expand(frame.n)
        # Programs leave the loop as they finish: `rows` are those still in it.
        rows, inner, finished = torch.arange(frame.n), frame, []
        for trip in range(int(trips.max()) + 1 if frame.n else 0):
            done = trips[rows] == trip
            if bool(done.any()):
                finished.append((rows[done], [take_rows(value, done) for value in carried]))
                rows = rows[~done]
                if not len(rows):
                    break
                carried = [take_rows(value, ~done) for value in carried]
                inner = Frame(len(rows), frame, rows)
            counter = first + trip * stride
            counter = counter if counter.shape[0] == 1 else counter[rows]
            _, carried = self.inside(block, inner, [Value(counter.to(dtype)), *carried])
        return self.gather(frame, finished) if operation.types else []

    def while_(self, frame, operation):
        before, after = (region.entry for region in operation.regions)
        carried = [frame[number] for number in operation.operands]
        rows, inner, finished = torch.arange(frame.n), frame, []
        while True:
            tested, (condition, *passed) = self.inside(before, inner, carried)
            self.decide(inner, operation, condition)
            stay, leave = self.split(inner, condition)
            if len(leave):
                finished.append((rows[leave], [take_rows(value, leave) for value in passed]))
                rows = rows[stay]
                if not len(rows):
                    break
                passed = [take_rows(value, stay) for value in passed]
                inner = Frame(len(rows), frame, rows)
            _, carried = self.inside(after, inner, passed)
        return self.gather(frame, finished) if operation.types else []

    def call_(self, frame, operation):
        name = re.search(r'@("[^"]+"|[^(]+)', operation.text)[1].strip('"')
        return self.call(self.program.functions[name], frame, [frame[number] for number in operation.operands])

    def decide(self, frame, operation, value):
        """Tell the watch that control flow depends on `value`."""
        if self.watch is not None and value.exact is not None:
            self.watch.reaches(self, frame, operation, value, "a branch or a loop bound")


_STRUCTURED = {"scf.if": Executor.if_, "scf.for": Executor.for_, "scf.while": Executor.while_, "tt.call": Executor.call_}
_YIELDS = {"scf.yield", "scf.condition", "tt.reduce.return", "tt.scan.return"}
CONTROL = {*_STRUCTURED, *_YIELDS, "cf.br", "cf.cond_br", "tt.return"}
