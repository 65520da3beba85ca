"""A kernel's TTGIR as its warps run it: who touches which element, and where all warps of a program meet.

The plan of a kernel is read once. Each operation that moves values from warp to warp is one at which all warps meet; whether a
barrier stands there is then looked up in the PTX, by source line, because the plan is ours and the PTX is what runs.
"""

from __future__ import annotations

import functools
import re
from collections import Counter
from dataclasses import dataclass, field, replace

import torch

from kit import assembly
from kit.simulator import collective, reader
from kit.simulator.executor import CONTROL
from kit.simulator.flow import MEMORY, READS, UPDATES, Flow
from kit.simulator.ir_text import balanced, parse_type, split
from kit.simulator.layouts import Layouts
from kit.simulator.memory import source_line
from kit.simulator.operations import TABLE
from kit.simulator.program import Unsupported
from kit.simulator.values import Value, in_full

BARRIERS = {"gpu.barrier", "ttg.barrier", "ttg.local_barrier", "tt.debug_barrier"}
# They read shared memory that other warps have written, so a barrier stands between.
_CONSUMERS = {"ttg.local_load", "ttng.warp_group_dot"}
# They put a block into shared memory: the warps' parts become one value.
_SHARERS = {"ttg.local_alloc"}
_ALONG_AXIS = {"tt.reduce", "tt.scan"}
# They may take an element of the result from one warp's elements alone.
_LOCAL = {"tt.reduce", "tt.splat", "tt.expand_dims", "tt.broadcast", "ttg.convert_layout"}
_CROSSING = {"tt.gather", "tt.histogram", "tt.cat"}
# Told once for all warps; no barrier is needed for it.
_ONCE = {"tt.print"}
# What a barrier in a line of its own account may belong to.
_MAY_WAIT = {*MEMORY, *_CONSUMERS, *_SHARERS, *_ALONG_AXIS, *_CROSSING, "ttg.convert_layout", "tt.dot"}


# ---- what TTGIR has and TTIR has not
def _passed_on(executor, frame, op):
    return [frame[number] for number in op.operands[: len(op.results)]]


def _group_dot(executor, frame, op):
    a, b, acc = (in_full(frame[number].data, executor.kind(number).shape) for number in op.operands[:3])
    if len(op.operands) > 3:  # whether the accumulator counts
        acc = torch.where(frame[op.operands[3]].data.reshape(-1, 1, 1), acc, torch.zeros_like(acc))
    precision = {"0": "tf32", "1": "tf32x3", "2": "ieee"}.get(op.attribute("inputPrecision"), op.attribute("inputPrecision") or "ieee")
    return [Value(collective.dot(a, b, acc, precision))]


WARP_TABLE = TABLE | {
    "tt.approx_divf": TABLE["arith.divf"],
    "ttg.local_alloc": _passed_on,
    "ttg.local_load": _passed_on,
    "ttg.memdesc_trans": TABLE["tt.trans"],
    "ttg.local_dealloc": lambda executor, frame, op: [],
    "ttg.local_barrier": lambda executor, frame, op: [],
    "ttng.fence_async_shared": lambda executor, frame, op: [],
    "ttng.warp_group_dot": _group_dot,
    "ttng.warp_group_dot_wait": _passed_on,
}


class _BlockReader(reader.Reader):
    """The reader of TTIR, which also keeps the blocks of each operation's signature: [(shape, encoding)]."""

    def __init__(self, text, file):
        # A block in shared memory is read as a block; and this operation prints one type for operands and results.
        text = re.sub(r"!ttg\.memdesc<([\dx]+)x(\w+), (#[\w$]+), #\w+>", r"tensor<\1x\2, \3>", text)
        text = re.sub(r"(warp_group_dot_wait .* : )(tensor<.*>)( loc|$)", r"\1(\2) -> (\2)\3", text, flags=re.M)
        super().__init__(text, file)

    def operation(self, line):
        start = self.at
        found = super().operation(line)
        written = self.lines[self.at - 1] if self.at > start else line  # a region's signature follows its closing brace
        found.blocks = _blocks(self.locations.strip(written)[0])
        return found


@functools.lru_cache(maxsize=64)
def _read(text, file):
    return _BlockReader(text, file).module()


def _blocks(text):
    found = []
    while (at := text.find("tensor<")) >= 0:
        inside, text = balanced(text[at + len("tensor<") :], ">")
        parts = split(inside)
        found.append((parse_type(f"tensor<{parts[0]}>").shape, parts[1] if len(parts) > 1 else ""))
    return found


@dataclass
class Step:
    """What the warps do at one operation that is not theirs alone.

    `holders`, `owner` for a memory operation: (warps, *shape) booleans, and the warp that stores each element. `merge` is the layout of
    each operand, where all warps meet and hand over their parts; None where they do not meet. `barrier`: True where the PTX has the
    barrier that is planned here, False where it has none, None where none is planned; `before`: one more stands before the operation.
    `perhaps`: the PTX has a barrier in this line that the plan does not explain.
    """

    owner: torch.Tensor | None = None
    holders: torch.Tensor | None = None
    merge: list | None = None
    barrier: bool | None = None
    before: bool = False
    perhaps: bool = False
    copies: bool = True  # whether a warp's copy of a loaded element matters where another warp owns it


@dataclass
class Plan:
    """How the warps of a kernel run it. Raises Unsupported, naming what is not known here, before anything runs."""

    ttgir: str
    ptx: str
    num_warps: int
    file: str | None = None
    steps: dict = field(default_factory=dict)
    places: dict = field(default_factory=dict)  # by warp and operation, where its own elements are
    raced: str | None = None  # the order of warps that a race seen in an earlier launch asks for

    def __post_init__(self):
        self.program = replace(_read(self.ttgir, self.file))
        self.layouts = Layouts(self.ttgir, self.num_warps)
        self.flow = Flow(self.program, self._stays)
        for op in self.flow.operations:
            _check_known(op)
            if step := self._step(op):
                self.steps[id(op)] = step
        self._look_up_barriers()

    @property
    def operations(self):
        """The operations that have a Step."""
        return [op for op in self.flow.operations if id(op) in self.steps]

    def _step(self, op):
        if op.name in MEMORY:
            return self._memory_step(op)
        if op.name in BARRIERS or op.name in _CONSUMERS:
            return Step(merge=[], barrier=False)
        if op.name in _SHARERS and op.operands:
            return Step(merge=self._operand_layouts(op))
        if op.name in _ONCE:
            return Step(merge=self._operand_layouts(op))
        if op.name == "tt.assert":
            shape, encoding = op.blocks[0] if op.blocks else ((), "")
            return Step(owner=self.layouts.owner(encoding, shape), holders=self.layouts.holders(encoding, shape))
        if self._crosses(op):
            return Step(merge=self._operand_layouts(op), barrier=False)
        return None

    def _memory_step(self, op):
        shape, encoding = op.blocks[0] if op.blocks else ((), "")
        holders, owner = self.layouts.holders(encoding, shape), self.layouts.owner(encoding, shape)
        step = Step(owner, holders)
        if op.name in READS:
            step.copies = op.results[0] in self.flow.spread
        if op.name in UPDATES:
            used = op.results[0] in self.flow.used
            copied = bool((holders.sum(0) > 1).any())
            if used and copied:  # one thread updates, the others are told the old value through shared memory
                step.merge, step.barrier = self._operand_layouts(op), False
            elif op.name == "tt.atomic_cas" and shape:
                step.merge = self._operand_layouts(op)
        return step

    def _stays(self, op):
        """Whether what a warp would store of the result comes from what the same warp would store of the operands.

        Other warps' copies of the operands then end in their copies of the result, which no store takes. So it is where a block has
        fewer elements than the program has threads, and a sum over it goes back into a block like it.
        """
        if op.name not in _LOCAL or self._crosses(op):
            return False
        try:
            tensors = [self.layouts.owner(encoding, shape) for shape, encoding in op.blocks]
        except Unsupported:  # an operand of a matrix product
            return False
        scalar = self.layouts.owner("", ())
        before = scalar if op.name == "tt.splat" else tensors[0]
        after = tensors[-1] if op.name == "tt.splat" or len(tensors) > len(op.operands) else scalar
        if op.name == "tt.reduce" and after.ndim:
            after = after.unsqueeze(int(op.attribute("axis")))
        elif op.name == "tt.expand_dims":
            before = before.unsqueeze(int(op.attribute("axis")))
        return bool((before == after).all())

    def _crosses(self, op):
        if op.name in _ALONG_AXIS:
            shape, encoding = op.blocks[0]
            holders, axis = self.layouts.holders(encoding, shape), 1 + int(op.attribute("axis"))
            return bool((holders.any(axis) != holders.all(axis)).any())
        if op.name == "ttg.convert_layout":
            (shape, source), (_, target) = op.blocks
            try:
                source, target = self.layouts.holders(source, shape), self.layouts.holders(target, shape)
            except Unsupported:  # an operand of a matrix product, which every warp is given in full
                return True
            return bool((target & ~source).any())
        return op.name in _CROSSING

    def _operand_layouts(self, op):
        """[the owner of each element] by operand; None where every warp has the same."""
        blocks, found = list(op.blocks), []
        for number in op.operands:
            shape = self.program.types[number].shape
            if not shape:
                found.append(self.layouts.owner("", ()))
                continue
            at = next((i for i, (size, _) in enumerate(blocks) if size == shape), None)
            _, encoding = blocks.pop(at) if at is not None else op.blocks[0]
            found.append(None if "dot_op" in self.layouts.resolve(encoding) else self.layouts.owner(encoding, shape))
        return found

    # ---- the PTX
    def _look_up_barriers(self):
        """Compare the barriers planned with those in the PTX, line by line."""
        instructions = assembly.read_ptx(self.ptx)
        self.in_ptx = Counter(one.frames[-1][1] if one.frames else None for one in instructions if assembly.is_barrier(one))
        planned = Counter(op.location.line for op in self.operations if self.steps[id(op)].barrier is not None)
        for op in self.flow.operations:
            step, n = self.steps.get(id(op)), self.in_ptx[op.location.line]
            if step is not None and step.barrier is not None:
                step.barrier = n >= planned[op.location.line]
                step.before = step.barrier and op.name in UPDATES and n >= 2
            elif step is not None and op.name in UPDATES and n >= 2 and not planned[op.location.line]:
                step.barrier = step.before = True  # Triton 3.9 puts one before and one behind each ordered atomic
        explained = planned.keys() | {op.location.line for op in self.operations if self.steps[id(op)].before}
        for line in self.in_ptx.keys() - explained:
            here = [op for op in self.flow.operations if op.location.line == line and op.name not in CONTROL]
            for op in [op for op in here if op.name in _MAY_WAIT] or here:
                self.steps.setdefault(id(op), Step()).perhaps = True
        lines = {op.location.line for op in self.flow.operations}
        # A barrier in a line that no operation comes from could stand anywhere.
        self.stray = sum(n for line, n in self.in_ptx.items() if line not in lines)
        short = {line for line, n in planned.items() if self.in_ptx[line] < n}
        self.disagree = sorted(line or 0 for line in short | (self.in_ptx.keys() - explained))


def _check_known(op):
    known = op.name in WARP_TABLE or op.name in CONTROL or op.name == "tt.extern_elementwise"
    if not known or (op.name == "ttg.local_alloc" and not op.operands):
        where = f"line {op.location.line}: {source_line(op.location)}" if op.location.line else "a line of Triton's own library"
        raise Unsupported(f"the simulated GPU cannot run {op.name} warp by warp, which this kernel uses at {where}.")
