"""Does `kit.bench` agree with triton.testing.do_bench and with the profiler? Needs a GPU.

    python benchmarks/bench_agrees.py [--json FILE]

For kernels from 2 µs to 10 ms, cold L2 cache: the median of kit.bench by each of its methods, and of do_bench, all in one process. Ends
with exit status 1 when a bound is broken. The bounds, on kernels of 20 µs and more: events against do_bench 5 %, graph against profiler
5 % where the graph leaves the cache, events against profiler 10 % plus 4 µs for the gaps that only events contain; for matmul 15 %, since
the GPU lowers its clock at full power, and how far depends on the pauses between the calls. docs/bench_agrees_h200.json is one run.
"""

import argparse
import functools
import json
import sys

import torch
import triton

import kit
from kit.bench import bench


def cases():
    """{name: (fn, args)} from launch-bound to far larger than the cache, bandwidth and compute."""
    for log in (12, 18, 22, 25, 28):
        x = torch.randn(2**log, device="cuda", dtype=torch.float16)
        yield f"add 2^{log}", lambda x: x + x, (x,)
    for n in (512, 2048, 4096):
        a, b = (torch.randn(n, n, device="cuda", dtype=torch.float16) for _ in range(2))
        yield f"matmul {n}", torch.matmul, (a, b)
    for rows, columns in ((64, 4096), (8192, 4096)):
        x = torch.randn(rows, columns, device="cuda", dtype=torch.float16)
        yield f"softmax {rows}x{columns}", lambda x: torch.softmax(x, -1), (x,)


def measure():
    rows = []
    for name, fn, args in cases():
        row = {"case": name}
        for method in ("events", "graph", "profiler"):
            timed = bench({"fn": fn}, *args, reference=fn, method=method).row("fn")
            row |= {method: timed.us, f"{method}_spread": timed.time.spread, f"{method}_cold": timed.cold}
        row["host"] = timed.host_us
        row["do_bench"] = 1e3 * triton.testing.do_bench(functools.partial(fn, *args), return_mode="median")
        rows.append(row)
    return rows


def broken(row):
    """The bounds that a row breaks."""
    found = []
    if row["do_bench"] < 20:
        return found
    bound = 0.15 if row["case"].startswith("matmul") else 0.05
    if abs(row["events"] / row["do_bench"] - 1) > bound:
        found.append("events against do_bench")
    if row["graph_cold"] and abs(row["graph"] / row["profiler"] - 1) > bound:
        found.append("graph against profiler")
    if abs(row["events"] - row["profiler"]) > 0.1 * row["profiler"] + 4:
        found.append("events against profiler")
    return found


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--json", help="write the rows and the machine to this file")
    options = parser.parse_args()
    here = kit.start(require="gpu")
    rows = measure()
    print(here)
    for row in rows:
        figures = ", ".join(f"{key} {row[key]:.2f}" for key in ("events", "graph", "profiler", "do_bench", "host"))
        print(f"{row['case']:>20}: {figures} µs{'' if row['graph_cold'] else ' (graph warm)'}  {'; '.join(broken(row))}")
    if options.json:
        with open(options.json, "w", encoding="utf-8") as file:
            json.dump({"machine": repr(here), "rows": rows}, file, indent=1)
    sys.exit(1 if any(broken(row) for row in rows) else 0)


if __name__ == "__main__":
    main()
