"""Launches in a chosen order of warps and of programs. A GPU promises neither order, so a right kernel is right in all of them.

A plain launch on the simulated GPU takes one order, the unkindest that it knows for warps. Here the order is an argument; the programs run
one after the other or in small groups, so that none finds by luck what a later one writes. On a GPU the run is a simulation too, on copies.
"""

from __future__ import annotations

import contextlib

import torch
from triton.runtime import JITFunction

from kit import compiling, machine
from kit.errors import BadInput, expect_kernel, quoted
from kit.simulator import launch, races
from kit.simulator.driver import live_arguments, warp_plan
from kit.simulator.memory import Memory
from kit.simulator.operations import TABLE
from kit.simulator.schedule import ORDERS, run_warps

__all__ = ["PROGRAMS", "WARPS", "run_in_order", "simulated_in"]

WARPS = tuple(ORDERS)  # "last first", "odd first", "first first"
PROGRAMS = ("last first", "middle first", "first first")
GROUPS = 64  # groups that the programs of a larger launch run in; the members of one go through the kernel together


def run_in_order(kernel, grid, *args, warps="last first", programs="last first", **meta):
    """Simulate `kernel[grid](*args, **meta)` with its `warps` and `programs` in this order; the tensors are written, as in a launch.

    `warps` is one of WARPS, between barriers; `programs` one of PROGRAMS. Raises BadInput for an unknown order and for arguments that the
    kernel does not take, CompileError as `build` does, Unsupported for a kernel whose warps cannot be run one after the other.
    """
    expect_kernel(kernel, verb="run_in_order")
    for name, value, allowed in (("warps", warps, WARPS), ("programs", programs, PROGRAMS)):
        if value not in allowed:
            raise BadInput(f"run_in_order: {name} must be one of {', '.join(allowed)}; got {quoted(value)}.")
    values, options = compiling.bind(kernel, args, meta, verb="run_in_order", device=machine.current().device)
    grid = grid(dict(zip(kernel.arg_names, values, strict=True))) if callable(grid) else grid
    grid = (*((grid,) if isinstance(grid, int) else grid), 1, 1)[:3]
    compiled = compiling.compiled(kernel, values, options, verb="run_in_order")
    arguments = live_arguments(list(compiled.src.signature.items()), values)
    with _on_this_cpu(arguments) as here, launch.one_thread():
        _run(compiled, kernel, grid, here, warps, programs)


def _run(compiled, kernel, grid, arguments, warps, programs):
    file, metadata = kernel.fn.__code__.co_filename, compiled.metadata
    program = launch.read_program(compiled.asm["ttir"], file)
    program.fuses = getattr(metadata, "enable_fp_fusion", True)
    tensors, values = launch.bind(program, arguments)
    groups = _groups(program, grid, programs)
    if metadata.num_warps == 1 or not races.needed(program, [tensors.get(name) for name, _, _ in arguments]):
        executor = launch.Executor(program, TABLE, Memory(tensors), grid)
        for numbers in groups:
            executor.run(launch.programs_at(numbers, grid), values)
        return
    plan = warp_plan(compiled.asm["ttgir"], compiled.asm["ptx"], compiled.src, metadata, file)
    values = launch.bind(plan.program, arguments)[1]
    for numbers in groups:
        run_warps(plan, Memory(tensors), grid, launch.programs_at(numbers, grid), values, warps)


def _groups(program, grid, order):
    """The linear program numbers in `order`, in tensors of those that run together; programs that may wait run as in a launch."""
    total = grid[0] * grid[1] * grid[2]
    if launch.waits(program):
        return list(launch.batches(program, total))
    numbers = torch.arange(total)
    if order == "last first":
        numbers = numbers.flip(0)
    elif order == "middle first":
        numbers = numbers.roll(-(total // 2))
    return list(numbers.split(max(1, -(-total // GROUPS)))) if total else []


def _on_a_gpu(value):
    return getattr(value, "is_cuda", False)


@contextlib.contextmanager
def _on_this_cpu(arguments, elsewhere=_on_a_gpu):
    """The arguments with their tensors in this process's memory: those of a GPU are copied, storage by storage, and copied back."""
    copies, moved = {}, []
    for name, kind, value in arguments:
        if elsewhere(value):
            storage = value.untyped_storage()
            copy, _ = copies.setdefault(storage.data_ptr(), (storage.cpu().clone(), storage))
            value = torch.empty(0, dtype=value.dtype).set_(copy, value.storage_offset(), value.shape, value.stride())
        moved.append((name, kind, value))
    yield moved
    for copy, storage in copies.values():
        storage.copy_(copy)


@contextlib.contextmanager
def simulated_in(warps="last first", programs="last first"):
    """Inside, `kernel[grid](...)` is run_in_order, in this process. For wrappers, whose launches are their own.

    `kernel[grid]` is the language's own way to launch, so its special method is replaced (as kit.graders.paper does).
    """
    own = vars(JITFunction).get("__getitem__")

    def launched(kernel, grid):
        return lambda *args, **meta: run_in_order(kernel, grid, *args, warps=warps, programs=programs, **meta)

    JITFunction.__getitem__ = launched
    try:
        yield
    finally:
        if own is None:
            del JITFunction.__getitem__
        else:
            JITFunction.__getitem__ = own
