"""Divisions and remainders of negative integers, where Triton's result is not Python's and something depends on it; unsigned wraps.

The launch runs on paper. Each program in which a quotient or a remainder has another value than Python's runs a second time with
Python's value in its place (kit.simulator.undefined's twins): what it then reads, writes or decides otherwise depends on the sign.
"""

from __future__ import annotations

import contextlib
from dataclasses import dataclass

import torch

from kit.paper import Paper, PaperExecutor
from kit.simulator.driver import live_arguments
from kit.simulator.hazards import Watch
from kit.simulator.launch import one_thread, read_program
from kit.simulator.memory import source_line
from kit.simulator.operations import TABLE
from kit.simulator.paper_memory import Waiting
from kit.simulator.program import Unsupported
from kit.simulator.undefined import EACH, Strange, TwinMemory, Twins
from kit.simulator.values import Value

_UNSIGNED = {"arith.extui", "arith.uitofp", "arith.divui", "arith.remui"}
_NARROW = {"arith.addi", "arith.muli"}
_DIVIDES = {"arith.divsi": "//", "arith.remsi": "%"}


@dataclass
class Division:
    """The first program in which a division's sign matters: `dividend`, `divisor`, Triton's result and Python's, what depends on it."""

    sign: str
    line: int | None
    source: str
    program: tuple
    dividend: int
    divisor: int
    got: int
    python: int
    reaches: str


@dataclass
class Wrap:
    """The first lane in which an unsigned sum or product of 8 or 16 bits wraps: its true value, and the one it became."""

    line: int | None
    source: str
    bits: int
    true: int
    wrapped: int


def divisions_and_wraps(build, launch):
    """([Division], [Wrap]) of a launch on paper (kit.rules.subject.Launch, with its Build), one for each operation that shows any.

    Nothing is run where neither can be.
    """
    program = read_program(build.ttir, build.kernel.fn.__code__.co_filename)
    narrow = _unsigned_narrow(program)
    if not narrow and not _may_be_negative(program, launch):
        return [], []
    arguments = live_arguments(list(build.compiled.src.signature.items()), list(launch.named.values()))
    paper = _SignPaper(program, launch.grid, arguments)
    paper.narrow = narrow
    with one_thread():
        if paper.total:
            paper.explore()
        return (_mattering(paper) if paper.watch.strange else []), list(paper.watch.unsigned.values())


def _unsigned_narrow(program):
    """The ids of sums and products of 8 or 16 bits whose results are later read as unsigned: the IR's integers have no sign."""
    readers = {n for op in program.operations() if op.name in _UNSIGNED for n in op.operands}
    made = (op for op in program.operations() if op.name in _NARROW and program.types[op.results[0]].element in ("i8", "i16"))
    return {id(op) for op in made if op.results[0] in readers}


def _may_be_negative(program, launch):
    """False when there is no division, or nothing in the kernel can be below zero: no difference, no data, no negative number."""
    names = {op.name for op in program.operations()}
    if not names & _DIVIDES.keys():
        return False
    if names & {"arith.subi", "arith.fptosi", "arith.trunci", "arith.xori", "tt.bitcast", "arith.bitcast"}:
        return True
    if any(isinstance(value, int) and value < 0 for value in launch.named.values()):
        return True
    loads = any(op.name == "tt.load" and op.types and op.types[0].element.startswith("i") for op in program.operations())
    return loads or any(op.name == "arith.constant" and "-" in op.text.split(":")[0] for op in program.operations())


class _SignPaper(Paper):
    """A Paper that watches the signs of divisions, and nothing else."""

    def begin(self, batch, writes=False):
        super().begin(batch, writes)
        self.watch = self.memory.watch = self.executor.watch = _Signs(self.grid, getattr(self, "narrow", ()))


class _Signs(Watch):
    """The Watch of the first run: in which programs a division has not Python's result, and the first numbers seen."""

    def __init__(self, grid, narrow):
        super().__init__(grid)
        self.strange, self.numbers, self.unsigned, self.narrow = {}, {}, {}, narrow

    def after(self, executor, frame, op, results):
        if op.name in _DIVIDES:
            a, b, got = (value.data for value in (*(frame[number] for number in op.operands), results[0]))
            lanes = differing(a, b)
            if bool(lanes.any()):
                rows = lanes.reshape(lanes.shape[0], -1).any(1)
                programs = frame.programs if len(rows) == 1 else frame.programs[rows]
                self.strange.setdefault(id(op), Strange(op, "sign", {})).add(programs)
                self.numbers.setdefault(id(op), _first(lanes, a, b, got, python_result(op.name, a, b)))
        if id(op) in self.narrow and id(op) not in self.unsigned:
            self._note_wrap(op, *(frame[number].data for number in op.operands), results[0].data)
        return results

    def _note_wrap(self, op, a, b, got):
        top = 1 << 8 * got.element_size()
        a, b, got = (one.to(torch.int64) % top for one in (a, b, got))
        exact = a + b if op.name == "arith.addi" else a * b
        lanes = exact != got
        if bool(lanes.any()):
            true, wrapped = _first(lanes, exact, got)
            bits = top.bit_length() - 1
            self.unsigned[id(op)] = Wrap(op.location.line, source_line(op.location), bits, true, wrapped)


def differing(a, b):
    """The lanes in which C's quotient and remainder of a by b are not Python's: signs differ, and it does not divide."""
    safe = torch.where(b == 0, torch.ones_like(b), b)
    return (b != 0) & ((a < 0) != (b < 0)) & (torch.remainder(a, safe) != 0)


def python_result(name, a, b):
    """Python's a // b or a % b; where b is 0, 0."""
    safe = torch.where(b == 0, torch.ones_like(b), b)
    return torch.div(a, safe, rounding_mode="floor") if name == "arith.divsi" else torch.remainder(a, safe)


def _first(lanes, *data):
    lanes, *data = torch.broadcast_tensors(lanes, *data)
    at = tuple(lanes.nonzero()[0].tolist())
    return [int(one[at]) for one in data]


class _SignTwins(Twins):
    """The Watch of the second run: Python's result in the other variants."""

    def _replaced(self, frame, op, result, i):
        a, b = (frame[number].data for number in op.operands)
        variants = frame.programs[:, 3].reshape(-1, *(1,) * (result.data.dim() - 1))
        mine = (variants - 1).div(EACH, rounding_mode="floor") == i
        return Value(torch.where(mine & differing(a, b), python_result(op.name, a, b).to(result.data.dtype), result.data), result.argument)


def _mattering(paper):
    strange = list(paper.watch.strange.values())
    twins = _SignTwins(paper.grid, strange)
    memory = TwinMemory(paper.tensors, twins)
    with contextlib.suppress(Waiting, Unsupported):  # other values may lead a loop astray
        PaperExecutor(paper.program, TABLE, memory, paper.grid, twins).run(twins.programs(), paper.values)
    found = {}
    for leak in twins.leaks.values():
        op = leak.operation
        known = found.get(id(op))
        if known is None or leak.program < known.program:
            numbers = paper.watch.numbers[id(op)]
            reaches = f"the {leak.what} with which it {leak.access.verb} {leak.access.argument or 'memory'}"
            line = op.location.line
            found[id(op)] = Division(_DIVIDES[op.name], line, source_line(op.location), leak.program, *numbers, reaches)
    return list(found.values())
