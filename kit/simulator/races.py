"""Races inside a program: an element that one warp stores and another warp loads or stores, with no barrier between.

A kernel that reads memory it also writes is run twice over, batch by batch. The first run takes the program's warps in step and
notes who touches what; a program without a pair gives these values under every schedule, and is done. A program with a pair is
undone and run again warp by warp, in an order that the hardware may choose and a test does not expect.
"""

from __future__ import annotations

import contextlib
import io

import torch

from kit.simulator.executor import Executor
from kit.simulator.flow import MEMORY, READS, UNKNOWN, Flow
from kit.simulator.ledger import Ledger, RacePair
from kit.simulator.memory import Access, Memory, extent
from kit.simulator.operations import element_size
from kit.simulator.schedule import run_warps
from kit.simulator.values import BY_SIZE, common_shape, in_full
from kit.simulator.warps import WARP_TABLE

__all__ = ["Ledger", "Lookout", "RacePair", "find", "needed", "play"]


def needed(program, tensors):
    """True when some memory is reached both by a load and by a store or an atomic of the kernel, by its arguments' provenance.

    `program` is the kernel's TTIR as read, `tensors` its arguments in order, None for one that is no tensor.
    """
    if not hasattr(program, "_access"):
        program._access = Flow(program).access
    loads, stores, updates = program._access
    if not stores and not (loads and updates):
        return False
    return _overlap(loads, stores | updates, tensors) or _overlap(updates, stores, tensors)


def _overlap(some, others, tensors):
    if not some or not others:
        return False
    if some & others or UNKNOWN in some or UNKNOWN in others:
        return True
    spans = [[extent(tensors[i])[:2] for i in places if tensors[i] is not None] for places in (some, others)]
    return any(a < b + m and b < a + n for a, n in spans[0] for b, m in spans[1])


class Lookout(Executor):
    """The executor that takes all warps in step, and notes accesses in a Ledger. `undo` keeps what stores overwrite."""

    def __init__(self, plan, memory, grid, ledger, keep=True):
        super().__init__(plan.program, WARP_TABLE, memory, grid)
        self.plan, self.ledger, self.keep = plan, ledger, keep
        self.undo = []

    def step(self, frame, op):
        step = self.plan.steps.get(id(op))
        if step is None:
            return super().step(frame, op)
        if step.before or step.perhaps:
            self.ledger.barrier(frame, step.before)
        if op.name in MEMORY and id(op) in self.ledger.watched:
            self.note(frame, op, step)
        if self.keep and op.name in MEMORY and op.name not in READS:
            self.save(frame, op)
        super().step(frame, op)
        if step.barrier is not None or step.perhaps:
            self.ledger.barrier(frame, bool(step.barrier))
        return None

    def operands(self, frame, op):
        """(address, mask or None, bits that are stored or None) of a memory operation, at full size."""
        shape = self.kind(op.operands[0]).shape
        mask_at = {"tt.load": 1, "tt.store": 2, "tt.atomic_rmw": 2}.get(op.name, 99)
        address = in_full(frame[op.operands[0]].data, shape)
        mask = in_full(frame[op.operands[mask_at]].data, shape) if len(op.operands) > mask_at else None
        return address, mask, in_full(frame[op.operands[1]].data, shape) if op.name == "tt.store" else None

    def note(self, frame, op, step):
        address, mask, stored = self.operands(frame, op)
        self.ledger.note(frame, op, step, address, mask, stored)

    def save(self, frame, op):
        address, mask, _ = self.operands(frame, op)
        pointer, size = frame[op.operands[0]], element_size(self.kind(op.operands[0]))
        access = Access("writes", op.location, frame.programs, pointer.argument, pointer)
        rows = max(address.shape[0], 1 if mask is None else mask.shape[0])
        address = address.expand(rows, *address.shape[1:])
        self.undo.append((address, mask, self.memory.load(address, mask, size, access), access))

    def restore(self):
        """Put back what the stores of this batch have overwritten."""
        for address, mask, bits, access in reversed(self.undo):
            self.memory.store(address, mask, bits, access)
        self.undo = []


# ---- a launch, and a search
def play(plan, programs, grid, memory, values, arguments, order=None):
    """Run batches of programs ([linear numbers]) as the warps of a GPU may; returns the [RacePair] seen on the way.

    Programs of which no two warps meet run in step; from the first that race on, in this launch and in later ones, they run warp by
    warp in `order`, one of schedule.ORDERS, or, left out, in the one that shows most.
    """
    from kit.simulator.launch import programs_at

    ledger = Ledger(plan, memory, [_tensor(value) for _, _, value in arguments], [name for name, _, _ in arguments], grid)
    for numbers in programs:
        ids = programs_at(numbers, grid)
        if plan.raced is None and not _races(plan, ledger, Lookout(plan, memory, grid, ledger), numbers, ids, values):
            continue
        plan.raced = plan.raced or ledger.order
        run_warps(plan, memory, grid, ids, values, order or plan.raced)
    return list(ledger.pairs.values())


def _races(plan, ledger, lookout, numbers, ids, values):
    """Run a batch with its warps in step. True when two warps meet: then its stores are undone, and nothing it printed is shown."""
    printed = io.StringIO()
    ledger.begin(numbers)
    try:
        with contextlib.redirect_stdout(printed):
            lookout.run(ids, values)
    except BaseException:
        print(printed.getvalue(), end="")
        raise
    if ledger.compare(few=True) and any(pair.certain for pair in ledger.pairs.values()):
        lookout.restore()
        return True
    print(printed.getvalue(), end="")
    return False


def _tensor(value):
    return value if hasattr(value, "data_ptr") else None


WORK = 1 << 22  # elements of all blocks together that a search runs when nobody chose the programs
MOST_PROGRAMS = 256
COPIED = 1 << 28  # bytes


def find(compiled, kernel, grid, arguments, programs=None):
    """[RacePair] of a launch, sorted by line; nothing is written, and ghosts read as zeros.

    `compiled` is what Triton's compiler gave, `kernel` the @triton.jit function, `grid` one to three numbers, `arguments` the live
    ones, [(name, Triton type, value)] in the order of the compiled kernel. `programs` are linear numbers; left out, all of them run when
    that is affordable, else the first, the last and some between. One warp is in step with itself: then nothing can be found. Raises
    Unsupported, naming the operation or the layout, for a kernel that cannot be run warp by warp.
    """
    from kit.simulator.driver import warp_plan
    from kit.simulator.launch import batches_of, bind, largest_block, one_thread, programs_at

    if compiled.metadata.num_warps == 1:
        return []
    file = kernel.fn.__code__.co_filename if kernel is not None else None
    plan = warp_plan(compiled.asm["ttgir"], compiled.asm["ptx"], compiled.src, compiled.metadata, file)
    grid = (*grid, 1, 1)[:3]
    total = grid[0] * grid[1] * grid[2]
    if programs is None:
        affordable = min(MOST_PROGRAMS, max(16, WORK // largest_block(plan.program)))
        programs = torch.linspace(0, total - 1, min(total, affordable), dtype=torch.float64).round().to(torch.int64).unique()
    arguments = [(name, kind, _Elsewhere(value) if getattr(value, "is_cuda", False) else value) for name, kind, value in arguments]
    tensors, values = bind(plan.program, arguments)
    memory = _Paper(tensors)
    ledger = Ledger(plan, memory, [_tensor(value) for _, _, value in arguments], [name for name, _, _ in arguments], grid, True)
    with one_thread(), contextlib.redirect_stdout(io.StringIO()):
        for numbers in batches_of(plan.program, torch.as_tensor(programs, dtype=torch.int64)):
            ledger.begin(numbers)
            Lookout(plan, memory, grid, ledger, keep=False).run(programs_at(numbers, grid), values)
            ledger.compare()
    return sorted(ledger.pairs.values(), key=lambda pair: (not pair.certain, pair.second_line or 0, pair.first_line or 0))


class _Elsewhere:
    """A tensor on a GPU: its addresses, and a copy of its storage, for index tables; a large one reads as zeros."""

    def __init__(self, tensor):
        self.tensor, self.shape, self.dtype = tensor, tensor.shape, tensor.dtype
        storage = tensor.untyped_storage()
        self.extent = storage.data_ptr(), storage.nbytes(), storage.cpu() if storage.nbytes() <= COPIED else None

    def data_ptr(self):
        return self.tensor.data_ptr()

    def paper_extent(self):
        return self.extent


class _Paper(Memory):
    """Memory that is only read, and where nothing lies outside an argument: there, and in ghosts, everything is zero."""

    def load(self, address, mask, itemsize, access):
        shape = address.shape if mask is None else common_shape(address.shape, mask.shape)
        home = self.by_argument.get(access.argument)
        if home is None or home.storage is None:
            return torch.zeros(shape, dtype=BY_SIZE[itemsize])
        inside = (address >= home.base) & (address + itemsize <= home.end)
        inside = inside if mask is None else inside & mask
        index = torch.where(inside, torch.div(address - home.base, itemsize, rounding_mode="floor"), 0)
        return torch.where(inside, home.elements(itemsize)[index], 0)

    def store(self, address, mask, bits, access):
        pass

    def lanes(self, address, mask, itemsize, access):
        return []
