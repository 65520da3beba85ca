"""The warps of a program, one after the other from barrier to barrier.

Each warp runs the kernel in a thread of its own, and one thread runs at a time: a warp goes on until it reaches an operation at which
all warps meet, then the next one runs. Values that go from warp to warp are put together there, each element from its owner.
"""

from __future__ import annotations

import threading

import torch

from kit.errors import KitError
from kit.simulator.executor import Executor, Frame
from kit.simulator.flow import READS
from kit.simulator.program import Type
from kit.simulator.values import Value, common_shape, dtype_of, in_full
from kit.simulator.warps import WARP_TABLE

# The order in which warps run between two barriers. The hardware promises none.
ORDERS = {
    "last first": lambda n: list(range(n))[::-1],
    "odd first": lambda n: [*range(1, n, 2), *range(0, n, 2)],
    "first first": lambda n: list(range(n)),
}


class Parted(KitError, RuntimeError):
    """The warps of one program reached different barriers: after a race, they took different branches."""


class _Ended(BaseException):
    """Another warp has failed: this one ends too."""


def run_warps(plan, memory, grid, programs, values, order="last first"):
    """Run `programs` (n, 3) warp by warp, in one of ORDERS. Raises what a warp raises, and Parted."""
    turn = _Turns(ORDERS[order](plan.num_warps))
    warps = [_Warp(plan, memory, grid, turn, warp) for warp in range(plan.num_warps)]
    threads = [threading.Thread(target=turn.work, args=(w.warp, lambda w=w: w.run(programs, values)), daemon=True) for w in warps]
    for thread in threads:
        thread.start()
    turn.begin()
    try:
        for thread in threads:
            thread.join()
    except BaseException as interrupt:  # from the keyboard: no warp goes on behind the reader's back
        turn.fail(interrupt)
        raise
    if turn.failure is not None:
        raise turn.failure


class _Turns:
    """Whose turn it is. `at` holds what the warps that wait have brought with them."""

    def __init__(self, order):
        self.order = order
        self.next = {a: b for a, b in zip(order, order[1:] + order[:1])}
        self.go = {warp: threading.Semaphore(0) for warp in order}
        self.at = {}
        self.given = None  # what the last meeting gave
        self.failure = None

    def begin(self):
        self.go[self.order[0]].release()

    def work(self, warp, run):
        torch.set_num_threads(1)  # a setting of each thread
        self.go[warp].acquire()
        try:
            if self.failure is None:
                run()
                self.arrive(warp, "the end", None)
                if warp != self.order[-1]:
                    self.go[self.next[warp]].release()
        except _Ended:
            pass
        except BaseException as error:
            self.fail(error)

    def fail(self, error):
        """Let every warp end at its next meeting."""
        self.failure = self.failure or error
        for warp in self.order:
            self.go[warp].release()

    def arrive(self, warp, place, frame):
        """Note that a warp waits at `place`. The last one to come finds all of them there, or raises Parted."""
        self.at[warp] = (place, frame)
        if warp == self.order[-1]:
            (first, start), *others = self.at.values()
            if any(place != first or not _same_programs(start, frame) for place, frame in others):
                raise Parted("the warps of one program wait at different barriers: after a race they took different branches. (simulated)")

    def meet(self, warp, place, frame, exchange=lambda frames: None):
        """Wait until all warps are at `place`; returns what `exchange` gives for {warp: frame}, the same for each warp."""
        self.arrive(warp, place, frame)
        if warp == self.order[-1]:
            self.given = exchange({w: frame for w, (_, frame) in self.at.items()})
        self.go[self.next[warp]].release()
        self.go[warp].acquire()
        if self.failure is not None:
            raise _Ended
        return self.given


def _same_programs(a, b):
    return a is b or (a.n == b.n and torch.equal(a.programs, b.programs))


class _Warp(Executor):
    """The executor of one warp. It computes whole blocks, of which its own elements are right, and loads and stores only those."""

    def __init__(self, plan, memory, grid, turn, warp):
        super().__init__(plan.program, WARP_TABLE, memory, grid)
        self.plan, self.turn, self.warp = plan, turn, warp
        self.own = plan.places.setdefault(warp, {})

    def step(self, frame, op):
        step = self.plan.steps.get(id(op))
        if step is None:
            return super().step(frame, op)
        if step.before or step.perhaps:
            self.turn.meet(self.warp, (id(op), "before"), frame)
        if step.merge is None and step.holders is None:
            super().step(frame, op)
        elif step.merge == []:  # each for itself, behind a barrier
            self.turn.meet(self.warp, id(op), frame)
            return super().step(frame, op)
        elif step.merge is not None:
            self.define(frame, op, self.turn.meet(self.warp, id(op), frame, lambda frames: self.together(frames, op, step)))
        else:
            self.define(frame, op, self.alone(frame, op, step))
        if (step.barrier and step.merge is None) or step.perhaps:
            self.turn.meet(self.warp, (id(op), "after"), frame)
        return None

    def define(self, frame, op, results):
        for number, value in zip(op.results, results):
            frame[number] = value

    def together(self, frames, op, step):
        """The operation's results, for all warps: on operands of which each element comes from the warp that owns it."""
        frame = frames[self.warp]
        inner = Frame(frame.n, frame)
        for number, owner in zip(op.operands, step.merge):
            inner[number] = merged({warp: f[number] for warp, f in frames.items()}, owner, self.kind(number).shape)
        return self.table[op.name](self, inner, op)

    def alone(self, frame, op, step):
        """A memory operation or an assertion, on the warp's own elements. In the others a load gives zero."""
        places = self.places(op, step)
        kinds = op.types[: len(op.results)]
        if places == "none":
            return [Value(torch.zeros((1,) * (1 + len(kind.shape)), dtype=dtype_of(kind))) for kind in kinds]
        if places == "all":
            return self.table[op.name](self, frame, op)
        inner = Frame(frame.n, frame)
        for number in op.operands:
            value, shape = frame[number], self.kind(number).shape
            inner[number] = Value(_cut(value.data, shape, places), value.argument) if shape else value
        results = self.table[op.name](_Narrowed(self, len(places[0])), inner, op)
        return [Value(_spread(value.data, kind.shape, places), value.argument) for value, kind in zip(results, kinds)]

    def places(self, op, step):
        """The indices of the warp's own elements, an index tensor for each axis; "all" or "none" of them."""
        if id(op) not in self.own:
            whole = op.name in READS or op.name == "tt.assert"
            mine = step.holders[self.warp] if whole else step.owner == self.warp
            some = mine.nonzero(as_tuple=True) if mine.dim() else ()
            self.own[id(op)] = "all" if bool(mine.all()) else some if bool(mine.any()) else "none"
        return self.own[id(op)]


class _Narrowed:
    """An executor as an operation sees it whose blocks were cut down to `n` elements."""

    def __init__(self, executor, n):
        self._executor, self._n = executor, n

    def kind(self, number):
        kind = self._executor.kind(number)
        return Type(kind.element, (self._n,)) if kind.shape else kind

    def __getattr__(self, name):
        return getattr(self._executor, name)


def _cut(data, shape, places):
    """(rows, n): the elements of a block at `places`."""
    if data[0].numel() == 1:
        return data.reshape(-1, 1)
    if len(shape) == 1:
        return data.index_select(1, places[0])
    return in_full(data, shape)[(slice(None), *places)]


def _spread(data, shape, places):
    """The reverse of _cut, zero elsewhere."""
    whole = torch.zeros((data.shape[0], *shape), dtype=data.dtype)
    whole[(slice(None), *places)] = data.expand(-1, len(places[0]))
    return whole


def merged(values, owner, shape):
    """One Value from {warp: Value}: each element from its owner; `owner` None means that every warp has all of them."""
    first = values[min(values)]
    if owner is None or all(v is first or (v.data.shape == first.data.shape and _equal(v.data, first.data)) for v in values.values()):
        return first
    if not shape:
        return values[0]
    datas = {warp: in_full(value.data, shape) for warp, value in values.items()}
    rows = common_shape(*(data.shape for data in datas.values()))
    result = datas[0].expand(rows)
    for warp, data in datas.items():
        if warp:
            result = torch.where(owner == warp, data, result)
    return Value(result, first.argument)


def _equal(a, b):
    return a is b or (a.dtype == b.dtype and torch.equal(_plain(a), _plain(b)))


def _plain(data):
    return data if data.dtype.itemsize > 1 or not data.dtype.is_floating_point else data.view(torch.uint8)
