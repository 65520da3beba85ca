"""How a call is timed on a GPU: by events around it, by a CUDA graph of many calls, by the profiler's kernel times.

Each clock takes the contenders as functions without arguments and returns microseconds a call. `torch.cuda._sleep` is private to torch
(2.11 to 2.14): it keeps the GPU busy while the host queues work, so that events measure the GPU and not the host.
"""

from __future__ import annotations

import time

import torch
import triton
import triton.language as tl

_FLUSH_AT_LEAST = 256 * 2**20  # bytes, as triton.testing.do_bench clears
_CYCLES = 2e9  # of the GPU's clock in a second, about


@triton.jit
def kit_flush_l2_kernel(x_ptr, n, BLOCK: tl.constexpr):
    """x = 0. It has a name of its own so that the profiler's list can be read without it."""
    offs = tl.program_id(0).to(tl.int64) * BLOCK + tl.arange(0, BLOCK)
    tl.store(x_ptr + offs, tl.zeros([BLOCK], tl.int32), mask=offs < n)


class Flush:
    """Overwrites more memory than the L2 cache holds; nothing when `cold` is false."""

    def __init__(self, cold):
        self.buffer = None
        if cold:
            size = max(_FLUSH_AT_LEAST, 4 * torch.cuda.get_device_properties(0).L2_cache_size)
            self.buffer = torch.empty(size // 4, dtype=torch.int32, device="cuda")
            self()

    def __call__(self):
        if self.buffer is not None:
            n = self.buffer.numel()
            kit_flush_l2_kernel[(triton.cdiv(n, 4096),)](self.buffer, n, BLOCK=4096)


def by_events(call, calls, flush, lead=1e-3):
    """[µs] of `calls` calls, each with its own pair of events, after a sleep of about `lead` seconds that lets the host run ahead."""
    events = [(torch.cuda.Event(enable_timing=True), torch.cuda.Event(enable_timing=True)) for _ in range(calls)]
    torch.cuda._sleep(int(lead * _CYCLES))
    for start, end in events:
        flush()
        start.record()
        call()
        end.record()
    torch.cuda.synchronize()
    return [1e3 * start.elapsed_time(end) for start, end in events]


class Graph:
    """A CUDA graph of one call after another, `rotation` being functions that do the same on other memory.

    A graph knows addresses and owns nothing: the functions, and with them their tensors, live as long as it does.
    """

    def __init__(self, rotation, calls):
        self.rotation, self.calls = rotation, calls
        side = torch.cuda.Stream()
        side.wait_stream(torch.cuda.current_stream())
        with torch.cuda.stream(side):
            rotation[0]()
        torch.cuda.current_stream().wait_stream(side)
        self.graph = torch.cuda.CUDAGraph()
        with torch.cuda.graph(self.graph):
            for i in range(calls):
                rotation[i % len(rotation)]()
        self.graph.replay()
        torch.cuda.synchronize()

    def __call__(self, replays):
        """[µs a call] of `replays` replays."""
        found = []
        for _ in range(replays):
            start, end = torch.cuda.Event(enable_timing=True), torch.cuda.Event(enable_timing=True)
            start.record()
            self.graph.replay()
            end.record()
            end.synchronize()
            found.append(1e3 * start.elapsed_time(end) / self.calls)
        return found


def by_profiler(call, calls, flush):
    """[µs] of one call, averaged over `calls`: what its kernels, copies and fills take, without those of the flush."""
    from torch.autograd import DeviceType
    from torch.profiler import ProfilerActivity, profile

    with profile(activities=[ProfilerActivity.CUDA]) as seen:
        for _ in range(calls):
            flush()
            call()
        torch.cuda.synchronize()
    own = [one for one in seen.events() if one.device_type == DeviceType.CUDA and "kit_flush_l2_kernel" not in one.name]
    return [sum(one.time_range.elapsed_us() for one in own) / calls] if own else []


def host_seconds(call, calls):
    """Seconds of the host for one call: what it takes to queue it, not to run it."""
    torch.cuda.synchronize()
    torch.cuda._sleep(int(1e-2 * _CYCLES))
    began = time.perf_counter()
    for _ in range(calls):
        call()
    took = (time.perf_counter() - began) / calls
    torch.cuda.synchronize()
    return took


def warm_up(call, *, at_least=0.02, at_most=1.0, within=0.02):
    """Call until two batches in a row take the same within `within`, the clocks being up; return the batches that it took.

    Between `at_least` and `at_most` seconds.
    """
    torch.cuda.synchronize()
    began, before, batches = time.perf_counter(), None, 0
    while True:
        start, end = torch.cuda.Event(enable_timing=True), torch.cuda.Event(enable_timing=True)
        start.record()
        for _ in range(10):
            call()
        end.record()
        end.synchronize()
        now, batches = start.elapsed_time(end), batches + 1
        spent = time.perf_counter() - began
        stable = before is not None and abs(now - before) <= within * before
        if spent > at_most or (stable and spent > at_least):
            return batches
        before = now
