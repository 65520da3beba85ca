"""How long a sandboxed cell takes from the call to its Outcome: cold (the server starts too) and warm.

    python benchmarks/sandbox_start.py [COLD_RUNS] [WARM_RUNS]

Prints the median and the range of each. "kernel" launches a kernel that Triton's disk cache holds already.
"""

from __future__ import annotations

import statistics
import sys
import time

import torch  # noqa: F401  a notebook has these loaded before its first sandbox
import triton
import triton.language as tl

from kit import machine, sandbox_process
from kit.sandbox import sandbox

gpu = machine.start()


@triton.jit
def scale_kernel(x_ptr, n, BLOCK: tl.constexpr):
    offs = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    mask = offs < n
    tl.store(x_ptr + offs, tl.load(x_ptr + offs, mask=mask) * 2, mask=mask)


KERNEL = """
x = torch.ones(1000, device=gpu.device)
scale_kernel[(8,)](x, 1000, BLOCK=128)
assert x.sum().item() == 2000
"""
CELLS = {"trivial": "1 + 1", "exception": "1 / 0", "segfault": "import ctypes\nctypes.string_at(0)", "kernel": KERNEL}


def seconds(code):
    began = time.perf_counter()
    sandbox(code, timeout=120)
    return time.perf_counter() - began


def line(name, times):
    median, low, high = (1e3 * t for t in (statistics.median(times), min(times), max(times)))
    return f"{name:<18} median {median:7.1f} ms   range {low:7.1f} .. {high:7.1f} ms   {len(times)} runs"


def main(cold_runs=3, warm_runs=40):
    print(machine.current())
    cold = []
    for _ in range(cold_runs):
        sandbox_process.stop()
        cold.append(seconds("1 + 1"))
    print(line("cold, trivial", cold))
    for name, code in CELLS.items():
        seconds(code)  # the kernel's first compilation
        print(line(f"warm, {name}", [seconds(code) for _ in range(warm_runs)]))


if __name__ == "__main__":
    main(*map(int, sys.argv[1:]))
