"""`touches`: which warp of a program loads and stores which element, by the layouts that the compiler chose. Nothing is written."""

from __future__ import annotations

import contextlib
import io
from dataclasses import dataclass, field

import torch

from kit import compiling, machine
from kit.errors import BadInput, expect_kernel, quoted
from kit.simulator import launch, races
from kit.simulator.driver import live_arguments, warp_plan
from kit.simulator.executor import Executor
from kit.simulator.flow import MEMORY, READS
from kit.simulator.memory import source_line
from kit.simulator.operations import element_size
from kit.simulator.values import common_shape, in_full
from kit.simulator.warps import WARP_TABLE

__all__ = ["Touch", "touches"]


@dataclass(frozen=True, eq=False)
class Touch:
    """One load, store or atomic of one program. `elements` are the offsets in `argument` that it reaches, in elements, ascending, and
    `warps` the warp that each belongs to: the one that stores it; of several that load copies, the first. Evidence: compiled."""

    kind: str
    line: int
    source: str
    argument: str
    elements: torch.Tensor = field(repr=False)
    warps: torch.Tensor = field(repr=False)
    evidence: str = "compiled"


def touches(kernel, *args, program=0, grid=(1,), **meta):
    """[Touch] of a program of `kernel`, in the order in which it runs: `args` and `meta` as in a launch, `program` a number in `grid`.

    Tensors keep their values, and ghosts may stand for them. Raises BadInput and CompileError as `build` does, Unsupported for a layout
    that is not known.
    """
    expect_kernel(kernel, verb="touches")
    grid = (*grid, 1, 1)[:3]
    if not isinstance(program, int) or isinstance(program, bool) or not 0 <= program < grid[0] * grid[1] * grid[2]:
        raise BadInput(f"touches: program must be a number inside the grid {grid}; got {quoted(program)}.")
    values, options = compiling.bind(kernel, args, meta, verb="touches", device=machine.current().device)
    if any(isinstance(value, compiling.Pointer) for value in values):
        raise BadInput("touches: a dtype has no elements; give a tensor, or kit.ghost(shape, dtype), which needs no memory.")
    compiled = compiling.compiled(kernel, values, options, verb="touches")
    arguments = live_arguments(list(compiled.src.signature.items()), values)
    arguments = [(name, kind, races._Elsewhere(value) if getattr(value, "is_cuda", False) else value) for name, kind, value in arguments]
    plan = warp_plan(compiled.asm["ttgir"], compiled.asm["ptx"], compiled.src, compiled.metadata, kernel.fn.__code__.co_filename)
    tensors, bound = launch.bind(plan.program, arguments)
    watcher = _Watcher(plan, races._Paper(tensors), grid, tensors)
    with launch.one_thread(), contextlib.redirect_stdout(io.StringIO()):
        watcher.run(launch.programs_at(torch.tensor([program]), grid), bound)
    return watcher.seen


class _Watcher(Executor):
    """The executor that takes all warps in step and keeps what each memory operation touches."""

    def __init__(self, plan, memory, grid, tensors):
        super().__init__(plan.program, WARP_TABLE, memory, grid)
        self.plan, self.tensors, self.seen = plan, tensors, []

    def step(self, frame, op):
        if op.name in MEMORY:
            self.keep(frame, op)
        return super().step(frame, op)

    def keep(self, frame, op):
        pointer, shape = frame[op.operands[0]], self.kind(op.operands[0]).shape
        mask_at = {"tt.load": 1, "tt.store": 2, "tt.atomic_rmw": 2}.get(op.name, 99)
        chosen = in_full(frame[op.operands[mask_at]].data, shape) if len(op.operands) > mask_at else None
        address = in_full(pointer.data, shape)
        owner = self.plan.steps[id(op)].owner
        whole = common_shape(address.shape, (1, *owner.shape))
        chosen = torch.ones(whole, dtype=torch.bool) if chosen is None else chosen.expand(whole)
        address, owner = address.expand(whole)[chosen], owner.expand(whole)[chosen]
        tensor = self.tensors.get(pointer.argument)
        if tensor is None:
            return  # reached through a pointer that was loaded from memory: it belongs to no argument
        elements = (address - tensor.data_ptr()) // element_size(self.kind(op.operands[0]))
        order = torch.argsort(elements, stable=True)
        kind = "load" if op.name in READS else "store" if op.name == "tt.store" else "atomic"
        argument = pointer.argument
        self.seen.append(Touch(kind, op.location.line, source_line(op.location), argument, elements[order], owner[order]))
