"""A stand-in for torch.cuda: a GPU whose true times are known, so that a benchmark can be judged where no GPU is.

Two clocks in µs. The host's moves on with each thing it asks; the GPU takes what is queued in turn, and waits where nothing is. A kernel
takes its true time when its inputs come from memory, and less when they lie in the L2 cache. Everything asked is in the log.
"""

from __future__ import annotations

from collections import OrderedDict
from dataclasses import dataclass, field

import torch

LAUNCH, RECORD, WAIT = 10.0, 1.0, 5.0  # of the host: to queue a kernel, an event, to wake after a wait
COMPILE, FLUSH, MAKE = 250_000.0, 200.0, 30.0  # of the host; of the GPU; of the GPU for one input
WARM = 0.45  # of the true time, when all inputs lie in the cache
_CACHE = 65_536  # bytes; an input here has 4,096
N = 1_024


@dataclass
class Entry:
    """One thing that was asked: "op", "reference", "make", "flush", "sync", "record". An op's `cold_us` is its true time."""

    what: str
    compiled: bool = False
    warm: bool = False
    cold_us: float = 0.0
    inputs: tuple = ()


@dataclass
class StandIn:
    """The machine. `pairs` are the places in the log between which `elapsed_time` was asked, with the µs that it said."""

    host: float = 0.0
    gpu: float = 0.0  # when it is done with all that is queued
    log: list = field(default_factory=list)
    pairs: list = field(default_factory=list)
    _cached: OrderedDict = field(default_factory=OrderedDict)
    _kept: list = field(default_factory=list)  # so that no two tensors of a run have one address

    def queue(self, entry, us):
        """Queue a kernel that takes `us` on the GPU."""
        self.host += LAUNCH
        self.gpu = max(self.host, self.gpu) + us
        self.log.append(entry)

    def wait(self):
        self.host = max(self.host, self.gpu) + WAIT
        self.log.append(Entry("sync"))

    def touch(self, tensors):
        """Read tensors through the cache; return which share of them was not there. The oldest leave when it is full."""
        missed = [tensor for tensor in tensors if tensor.data_ptr() not in self._cached]
        for tensor in tensors:
            self._kept.append(tensor)
            self._cached[tensor.data_ptr()] = tensor.nbytes
            self._cached.move_to_end(tensor.data_ptr())
        while sum(self._cached.values()) > _CACHE:
            self._cached.popitem(last=False)
        return len(missed) / len(tensors)

    # ---- what an answer is given
    def make(self):
        """New random inputs, two kernels; what they wrote lies in the cache."""
        made = torch.randn(N), torch.randn(N)
        for _ in made:
            self.queue(Entry("make"), MAKE)
        self.touch(made)
        return made

    def flush(self):
        """Overwrite the L2 cache."""
        self.queue(Entry("flush"), FLUSH)
        self._cached.clear()

    def reference(self, x, y):
        """x + y, by torch."""
        self.queue(Entry("reference", inputs=(x.data_ptr(), y.data_ptr())), 40.0)
        self.touch((x, y))
        return x + y

    @property
    def cuda(self):
        """What stands where torch.cuda would: Event and synchronize."""
        return _Cuda(self)


class Operation:
    """out = x + y on the stand-in: compiled at its first call, `us` from a cold cache give or take 2 %, six times that now and then.

    `spoil` changes the result, for an operation that is wrong.
    """

    def __init__(self, machine, us, spoil=None):
        self._machine, self._us, self._spoil, self._calls = machine, us, spoil, 0

    def __call__(self, x, y):
        if not all(isinstance(one, torch.Tensor) and one.shape == (N,) for one in (x, y)):
            raise TypeError(f"op takes the two tensors of ({N},) that make() gives")
        first, self._calls = self._calls == 0, self._calls + 1
        if first:
            self._machine.host += COMPILE
        disturbed = 6.0 if self._calls % 5 == 3 else 1.0  # another program, for a moment
        cold = self._us * disturbed * (1 + 0.02 * (self._calls * 7 % 11 - 5) / 5)
        missing = self._machine.touch((x, y))
        inputs = (x.data_ptr(), y.data_ptr())
        took = cold * (WARM + (1 - WARM) * missing)
        self._machine.queue(Entry("op", compiled=first, warm=missing < 1, cold_us=cold, inputs=inputs), took)
        out = (x.double() + y.double()).float() * (1 + 2e-7)  # right, and not to the bit what torch gives
        return out if self._spoil is None else self._spoil(out)


class _Cuda:
    def __init__(self, machine):
        self._machine = machine

    def Event(self, enable_timing=False):  # noqa: N802  torch's name
        return _Event(self._machine, enable_timing)

    def synchronize(self, device=None):
        self._machine.wait()


class _Event:
    """torch.cuda.Event, with its errors (torch/csrc/cuda/Event.cpp and c10's CUDAEvent.h)."""

    def __init__(self, machine, timing):
        self._machine, self._timing, self._at, self._place = machine, timing, None, None

    def record(self, stream=None):
        machine = self._machine
        machine.host += RECORD
        machine.gpu = self._at = max(machine.host, machine.gpu)
        self._place = len(machine.log)
        machine.log.append(Entry("record"))

    def query(self):
        return self._at is None or self._at <= self._machine.host

    def synchronize(self):
        self._machine.host = max(self._machine.host, self._at or 0.0) + WAIT
        self._machine.log.append(Entry("sync"))

    def elapsed_time(self, end):
        if not (self._timing and end._timing):
            raise RuntimeError("Both events must be created with argument 'enable_timing=True'.")
        if self._at is None or end._at is None:
            raise RuntimeError("Both events must be recorded before calculating elapsed time.")
        if not (self.query() and end.query()):
            raise RuntimeError("Both events must be completed before calculating elapsed time.")
        us = end._at - self._at
        self._machine.pairs.append((self._place, end._place, us))
        return us / 1e3
