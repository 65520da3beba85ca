"""Wall time of a launch whose warps are watched and, where they race, run one by one, against the plain run of the same launch.

    python benchmarks/race_mode.py [--json OUT]

Plain: all warps in step, nothing noted. Clean: the kernel reads what it writes and no two warps meet. Racing: a barrier is missing,
so the programs run warp by warp; the first launch, which finds that out, is not counted. The last line says what a launch of a kernel
that does not read what it writes spends on finding that out. A time is the best of several launches; the modes take turns, so that a
busy machine slows all of them. These are times of this machine's CPU, not of any GPU.
"""

from __future__ import annotations

import argparse
import json
import os
import sys
import time
from pathlib import Path

os.environ.setdefault("KIT_SIMULATE", "1")
sys.path.insert(0, str(Path(__file__).resolve().parent.parent))

import torch  # noqa: E402

from kit import machine  # noqa: E402
from kit.simulator import races  # noqa: E402
from kit.tests import race_kernels as kernels  # noqa: E402
from kit.tests.zoo_elementwise import add_kernel  # noqa: E402
from kit.tests.zoo_memory import rope_kernel  # noqa: E402

N = 1024
NEEDED = races.needed


def launches():
    """[(name, is it a race, launch)]."""
    x = torch.rand(500 * 2 * N)
    rows = x.reshape(-1, N)
    scratch, out = torch.zeros(200 * N, dtype=torch.int32), torch.zeros(200 * N, dtype=torch.int32)
    tokens = torch.rand(500, 8, 128).to(torch.bfloat16)
    angles = torch.rand(500, 64)
    a, c = torch.rand(64, 64).to(torch.bfloat16), torch.zeros(64, 64)

    def loops(bar, warps):
        kernels.two_loops_kernel[(200,)](scratch, out, N=N, TILE=256, BAR=bar, num_warps=warps)

    return [
        ("softmax in place, 1000 rows", False, lambda: kernels.softmax_kernel[(1000,)](rows, N, N, BLOCK=N)),
        ("rope in place, 500 tokens", False, lambda: rope_kernel[(500,)](tokens, angles, angles, 8, 1024, 128, HALF=64, BLOCK_H=8)),
        ("reverse, barrier, 500 programs", False, lambda: kernels.reverse_kernel[(500,)](x, N=N, BAR=True)),
        ("scratch loops, barrier, 200 programs", False, lambda: loops(True, 4)),
        ("c += a·b, barrier, 20 steps", False, lambda: kernels.update_kernel[(1,)](a, a, c, N=64, STEPS=20, BAR=True)),
        ("reverse, 1 program, 4 warps", True, lambda: kernels.reverse_kernel[(1,)](x, N=N, BAR=False)),
        ("reverse, 500 programs, 4 warps", True, lambda: kernels.reverse_kernel[(500,)](x, N=N, BAR=False)),
        ("reverse, 500 programs, 8 warps", True, lambda: kernels.reverse_kernel[(500,)](x, N=N, BAR=False, num_warps=8)),
        ("scratch loops, 200 programs, 4 warps", True, lambda: loops(False, 4)),
        ("scan through memory, 4 warps", True, lambda: kernels.scan_kernel[(1,)](out, N=N, BAR=False)),
        ("c += a·b, 20 steps, 4 warps", True, lambda: kernels.update_kernel[(1,)](a, a, c, N=64, STEPS=20, BAR=False)),
    ]


def timed(launch, times=7):
    """(plain seconds, seconds in race mode): the best of `times` each, in turns."""
    best = [float("inf")] * 2
    for turn in range(2 * (times + 1)):
        races.needed = NEEDED if turn % 2 else lambda *given: False
        start = time.perf_counter()
        launch()
        if turn > 1:
            best[turn % 2] = min(best[turn % 2], time.perf_counter() - start)
    races.needed = NEEDED
    return best


def cost_of_asking(times=2000):
    """(seconds that a launch of a kernel without reads of its own writes spends on finding that out, seconds of that launch)."""
    x, y, out = torch.rand(N), torch.rand(N), torch.empty(N)
    asked = []
    races.needed = lambda *given: asked.append(given) or NEEDED(*given)
    add_kernel[(1,)](x, y, out, N, BLOCK=N)
    races.needed = NEEDED
    start = time.perf_counter()
    for _ in range(times):
        NEEDED(*asked[0])
    asking = (time.perf_counter() - start) / times
    best = float("inf")
    for _ in range(50):
        start = time.perf_counter()
        add_kernel[(1,)](x, y, out, N, BLOCK=N)
        best = min(best, time.perf_counter() - start)
    return asking, best


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--json", help="where to write the table")
    given = parser.parse_args()
    machine.start(target="cuda:90")
    print(f"{'launch':<40}{'':<8}{'plain':>11}{'race mode':>13}{'ratio':>8}")
    rows = []
    for name, racing, launch in launches():
        plain, watched = timed(launch)
        kind = "racing" if racing else "clean"
        print(f"{name:<40}{kind:<8}{plain * 1e3:>8.2f} ms{watched * 1e3:>10.2f} ms{watched / plain:>7.1f}x", flush=True)
        rows.append({"launch": name, "kind": kind, "plain_s": plain, "race_mode_s": watched, "ratio": watched / plain})
    asking, whole = cost_of_asking()
    print(f"asking whether race mode is needed: {asking * 1e6:.1f} us of a launch of {whole * 1e6:.0f} us ({asking / whole:.1%})")
    if given.json:
        Path(given.json).write_text(json.dumps(rows, indent=1) + "\n")


if __name__ == "__main__":
    main()
