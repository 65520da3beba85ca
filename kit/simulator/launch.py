"""A launch: read the kernel, bind its arguments, run its programs in batches."""

from __future__ import annotations

import contextlib
import math

import torch

from kit.errors import BadInput
from kit.simulator import arithmetic, descriptors, races
from kit.simulator.atomics import waits
from kit.simulator.executor import CONTROL, Executor
from kit.simulator.memory import Memory, source_line
from kit.simulator.operations import DeviceAssert
from kit.simulator.program import Unsupported
from kit.simulator.reader import read_program as _read
from kit.simulator.strides import TABLE  # the plain operations, with descriptions of offsets where they pay
from kit.simulator.values import Value, dtype_of

__all__ = ["DeviceAssert", "batches", "bind", "one_thread", "programs_at", "read_program", "run"]

# Elements of the largest block that one batch holds: the values of a batch then stay in the processor's cache.
BATCH_ELEMENTS = 1 << 17


def read_program(text, file=None):
    """The Program of a kernel's TTIR, whose source is in `file` now.

    Raises Unsupported, naming operation and source line, before anything has run.
    """
    program = _read(text, file)
    for op in program.operations():
        known = op.name in TABLE or op.name in CONTROL
        if op.name == "tt.extern_elementwise":
            known = arithmetic.libdevice(op.attribute("symbol")) is not None
        if not known:
            what = f"{op.name} ({op.attribute('symbol')})" if op.name == "tt.extern_elementwise" else op.name
            line = f"line {op.location.line}: {source_line(op.location)}" if op.location.line else "a line of Triton's own library"
            raise Unsupported(f"the simulated GPU does not know the operation {what}, which this kernel uses at {line}. It runs on a GPU.")
    return program


def run(program, grid, arguments, loaded=None):
    """Run every program of `grid`. `arguments` are (name, Triton type, value) in the order of the kernel's parameters.

    When the kernel reads memory that it also writes, its warps run as `loaded.plan` says, so that a missing barrier shows.
    """
    tensors, values = bind(program, arguments)
    if ghost := next((name for name, tensor in tensors.items() if hasattr(tensor, "ghost_extent")), None):
        raise BadInput(f"launch: {ghost} is a ghost and has no memory behind it. Use kit.dry_run for it, or pass a real tensor.")
    total = grid[0] * grid[1] * grid[2]
    if loaded is not None and races.needed(program, [tensors.get(name) for name, _, _ in arguments]) and loaded.plan is not None:
        with one_thread():
            plan = loaded.plan
            return races.play(plan, batches(plan.program, total), grid, Memory(tensors), bind(plan.program, arguments)[1], arguments)
    executor = Executor(program, TABLE, Memory(tensors), grid)
    # From the last program to the first where none waits: no order is promised, and this one is not the order that a test expects.
    with one_thread():
        for numbers in batches(program, total):
            executor.run(programs_at(numbers, grid), values)


@contextlib.contextmanager
def one_thread():
    """Run torch on one thread: a batch is small, and handing it to several costs more than it saves."""
    before = torch.get_num_threads()
    torch.set_num_threads(1)
    try:
        yield
    finally:
        torch.set_num_threads(before)


def batches(program, total):
    """The linear program numbers, last first, in tensors small enough to run at once.

    Programs that may wait for others run one at a time, the first one first.
    """
    if waits(program):
        yield from (torch.tensor([number]) for number in range(total))
        return
    step = max(1, BATCH_ELEMENTS // largest_block(program))
    for stop in range(total, 0, -step):
        yield torch.arange(stop - 1, max(0, stop - step) - 1, -1)


def batches_of(program, numbers):
    """Chosen program numbers in tensors small enough to run at once."""
    return numbers.split(max(1, BATCH_ELEMENTS // largest_block(program)))


def largest_block(program):
    """Elements of the largest block that a program holds."""
    return max([1, *(math.prod(kind.shape) for kind in program.types)])


def programs_at(numbers, grid):
    """Program ids (n, 3) of linear numbers; x runs fastest, as on the hardware."""
    x, y = grid[0], grid[1]
    return torch.stack([numbers % x, numbers // x % y, numbers // (x * y)], dim=1)


def bind(program, arguments):
    """({name: tensor} of the pointer arguments, the parameters' Values). Scalars become one number for all programs."""
    parameters = program.kernel.parameters
    if len(arguments) != len(parameters):
        raise Unsupported(
            f"the simulated GPU expected {len(parameters)} arguments for {program.kernel.name} and was given {len(arguments)}: "
            f"an argument of this kind is not supported."
        )
    tensors, values = {}, []
    for (name, _, given), number in zip(arguments, parameters):
        kind = program.types[number]
        if kind.element.startswith("tensordesc"):
            tensors[name] = given.base
            values.append(descriptors.host(name, given))
        elif kind.is_pointer:
            tensors[name] = given
            values.append(Value(torch.tensor([given.data_ptr()], dtype=torch.int64), name))
        elif kind.shape or kind.element not in _SCALARS:
            raise Unsupported(f"the simulated GPU does not take an argument of type {kind} ({name}). It runs on a GPU.")
        else:
            values.append(Value(_scalar(given, dtype_of(kind))))
    return tensors, values


_SCALARS = ("i1", "i8", "i16", "i32", "i64", "f16", "bf16", "f32", "f64")


def _scalar(given, dtype):
    if dtype is torch.int64 and given >= 2**63:
        given -= 2**64  # an unsigned argument keeps its bits
    return torch.tensor([given], dtype=dtype)
