"""How fast the simulator is by itself: many small programs, a full-size launch on paper, and the cost of a launch around its programs.

    python benchmarks/simulator_speed.py [--rounds N]

One thread; medians of N rounds (default 7) after one that is not counted, wall time and, in brackets, CPU time. The overhead is a launch
of one program through Triton's JIT against the same program run by launch.run alone, and that against the executor alone.
"""

from __future__ import annotations

import argparse
import os
import statistics
import sys
import time
from pathlib import Path

os.environ["KIT_SIMULATE"] = "1"
sys.path.insert(0, str(Path(__file__).resolve().parent.parent))

import torch  # noqa: E402
import triton  # noqa: E402

import kit  # noqa: E402
from kit.simulator import launch as launching  # noqa: E402
from kit.simulator.driver import live_arguments  # noqa: E402
from kit.simulator.executor import Executor  # noqa: E402
from kit.simulator.memory import Memory  # noqa: E402
from kit.tests.zoo_elementwise import add_kernel  # noqa: E402


def medians(run, rounds):
    """(wall, CPU) seconds."""
    run()
    walls, times = [], []
    for _ in range(rounds):
        wall, cpu = time.perf_counter(), time.process_time()
        run()
        walls.append(time.perf_counter() - wall)
        times.append(time.process_time() - cpu)
    return statistics.median(walls), statistics.median(times)


def line(name, times, unit=1e3, mark="ms"):
    wall, cpu = times
    print(f"{name:<58}{wall * unit:>10,.1f} {mark} ({cpu * unit:,.1f})", flush=True)


def many_small(rounds):
    block, programs = 128, 65_536
    n = block * programs
    x, y, out = torch.randn(n), torch.randn(n), torch.empty(n)
    line("65,536 programs of a vector add, block 128", medians(lambda: add_kernel[(programs,)](x, y, out, n, BLOCK=block), rounds))
    if not torch.equal(out, x + y):
        raise SystemExit("vector add: wrong values")


def on_paper(rounds):
    n, block = 10**10, 1024
    x, y, out = (kit.ghost(n, torch.bfloat16) for _ in range(3))
    grid = (triton.cdiv(n, block),)
    reports = []

    def run():
        reports.append(kit.dry_run(add_kernel, grid, x, y, out, n, BLOCK=block))

    line("dry run of 10^10 elements (int32 offsets: an overflow)", medians(run, rounds))
    report = reports[-1]
    print(f"  {report.ran:,} of {report.programs:,} programs: {report!r}")


def overhead(rounds):
    """A launch of one program, from the outside in."""
    x, y, out = torch.randn(128), torch.randn(128), torch.empty(128)
    arguments = (x, y, out, 128)
    compiled = add_kernel[(1,)](*arguments, BLOCK=128)
    function = compiled.function
    live = live_arguments(list(compiled.src.signature.items()), (*arguments, 128))
    tensors, values = launching.bind(function.program, live)
    programs = launching.programs_at(torch.zeros(1, dtype=torch.int64), (1, 1, 1))
    memory = Memory(tensors)

    def fifty(run):
        return lambda: [run() for _ in range(50)]

    bare = fifty(lambda: Executor(function.program, launching.TABLE, memory, (1, 1, 1)).run(programs, values))
    whole = fifty(lambda: launching.run(function.program, (1, 1, 1), live))
    through = fifty(lambda: add_kernel[(1,)](*arguments, BLOCK=128))
    for name, run in (("one program: kernel[grid](...)", through), ("  of that, launch.run", whole), ("  of that, the executor", bare)):
        line(name, [t / 50 for t in medians(run, rounds)], 1e6, "µs")


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--rounds", type=int, default=7)
    given = parser.parse_args()
    torch.set_num_threads(1)
    print(kit.start())
    overhead(given.rounds)
    many_small(given.rounds)
    on_paper(given.rounds)


if __name__ == "__main__":
    main()
