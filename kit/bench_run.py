"""The rounds of a benchmark: check, compile, warm up, then every contender in turns. Runs on a GPU only."""

from __future__ import annotations

import gc
import math

import torch

from kit import ceilings
from kit.bench import _ROUND_US, compare, copied, counted, outcome
from kit.clocks import Flush, Graph, by_events, by_profiler, host_seconds, warm_up
from kit.statistics import summary
from kit.timing import Row

_MOST_COPIES = 64


def measure(fns, args, shape, reference, bytes_, flop, method, cold, rounds, tolerance, progress):
    """([Row] of the contenders at one shape, whether the reader stopped it). Raises KitError when a contender is wrong."""
    counts = counted("bytes", bytes_, args), counted("flop", flop, args)
    if reference is not None:
        wanted = outcome(reference, args)
        for name, fn in fns.items():
            compare(name, outcome(fn, args), wanted, shape, tolerance)
        del wanted
    limits = _ceilings(args, counts)
    clocks, samples = {}, {name: [] for name in fns}
    collecting = gc.isenabled()
    gc.disable()  # a collection in the host's way is a gap in the GPU's
    try:
        for name, fn in fns.items():
            clocks[name] = _Clock(fn, args, method, cold)
        order = list(fns)
        for number in range(rounds):
            for name in order if number % 2 == 0 else reversed(order):
                samples[name] += clocks[name].round()
            progress.step(len(fns) / rounds, shape)
    except KeyboardInterrupt:
        return [], True
    finally:
        if collecting:
            gc.enable()
    common = {"method": method, "checked": reference is not None, "bytes": counts[0], "flop": counts[1], **limits}
    return [
        Row(name, dict(shape), tuple(samples[name]), cold=clocks[name].cold, host_us=clocks[name].host_us, **common) for name in fns
    ], False


def _ceilings(args, counts):
    """The ceilings that the counts are held against, measured now if they were not yet."""
    dtype = next((one.dtype for one in args if isinstance(one, torch.Tensor) and one.is_floating_point()), torch.float32)
    return {
        "copy_ceiling": ceilings.copy_ceiling() if counts[0] else None,
        "matrix_ceiling": ceilings.matrix_ceiling(dtype) if counts[1] else None,
    }


class _Clock:
    """One contender's clock, made ready: compiled, warm, with the number of calls that fill a round."""

    def __init__(self, fn, args, method, cold):
        self.cold, self.method = cold, method
        self.call = lambda: fn(*args)
        self.call()  # compiles, tunes
        warm_up(self.call)
        self.host_us = 1e6 * host_seconds(self.call, 5)
        self.lead = 2e-6 * self.host_us
        alone = max(summary(by_events(self.call, 5, Flush(False), 5 * self.lead)).median, 0.5)
        self.calls = max(3, min(100, math.ceil(_ROUND_US / alone)))
        if method == "graph":
            rotation = self._rotation(fn, args)
            self.graph = Graph(rotation, max(len(rotation), self.calls))
            return
        self.flush = Flush(cold)

    def _rotation(self, fn, args):
        if not self.cold:
            return [self.call]
        taken = sum(one.numel() * one.element_size() for one in args if isinstance(one, torch.Tensor))
        cache = torch.cuda.get_device_properties(0).L2_cache_size
        wanted = 1 if taken == 0 else math.ceil(2 * cache / taken) + 1
        room = torch.cuda.mem_get_info()[0] // 4 // max(1, taken)
        copies = max(1, min(wanted, _MOST_COPIES, room))
        self.cold = copies >= wanted  # else too small to leave the cache: told, not hidden
        sets = [args, *(copied(args) for _ in range(copies - 1))]
        return [lambda given=given: fn(*given) for given in sets]

    def round(self):
        """[µs a call], one number: the median of this round's calls."""
        if self.method == "graph":
            return self.graph(1)
        if self.method == "profiler":
            return by_profiler(self.call, min(self.calls, 20), self.flush)
        return [summary(by_events(self.call, self.calls, self.flush, self.calls * self.lead)).median]
