"""The simulator against Triton's interpreter, on the same launches, in one run: vector add, softmax, RMSNorm, KV gather, matmul.

    python benchmarks/simulator_vs_interpreter.py [--programs 100 10000] [--cap SECONDS] [--kernel NAME ...] [--json OUT]

Each engine runs in a child process of its own (TRITON_INTERPRET is read when a kernel is decorated, and the interpreter patches
triton.language for the whole process), one after the other, never at the same time, on one thread. Times are medians of up to seven
launches, or of as many as fit ten seconds, after one that is not counted; each launch's values are checked, outside the time. Shown are
wall time and, in brackets, the process's CPU time, which other work on the machine disturbs less. A launch that a smaller one tells to
pass the cap is not run by the interpreter: it then runs as many programs as fit, the row says how many, and the ratio is that of the
times per program. Nothing is scaled up. These are times of this machine's CPU, not of any GPU.
"""

from __future__ import annotations

import argparse
import json
import os
import statistics
import subprocess
import sys
import time
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
PROBE = 16  # programs of the launch that tells how long a larger one takes


def launches():
    """{name: function(number of programs) -> (launch, are its values right)}. Kernels are decorated here, for this process's engine."""
    sys.path.insert(0, str(ROOT))
    import torch
    import triton.language as tl

    from kit.tests.zoo_elementwise import add_kernel
    from kit.tests.zoo_memory import paged_read_kernel
    from kit.tests.zoo_products import matmul_kernel
    from kit.tests.zoo_rows import rms_norm_kernel, softmax_kernel

    generator = torch.Generator().manual_seed(0)

    def normal(*shape, dtype=torch.float32):
        return torch.randn(*shape, generator=generator).to(dtype)

    def add(programs, block=1024):
        n = programs * block
        x, y, out = normal(n), normal(n), torch.empty(n)
        return lambda: add_kernel[(programs,)](x, y, out, n, BLOCK=block), lambda: torch.equal(out, x + y)

    def softmax(programs, n=1000):
        x, out = normal(programs, n), torch.empty(programs, n)

        def launch():
            softmax_kernel[(programs,)](x, out, n, x.stride(0), out.stride(0), BLOCK=1024)

        return launch, lambda: torch.allclose(out, x.softmax(dim=1), atol=1e-6)

    def rms_norm(programs, n=1024):
        x, weight, out = normal(programs, n), normal(n), torch.empty(programs, n)

        def right():
            return torch.allclose(out, x * (x.square().mean(dim=1, keepdim=True) + 1e-6).rsqrt() * weight, atol=1e-4)

        return lambda: rms_norm_kernel[(programs,)](x, weight, out, n, 1e-6, BLOCK=256), right

    def kv_gather(programs, page=16, d=64, longest=128):
        pages = longest // page
        cache = normal(4096, page, 1, d, dtype=torch.float16)
        table = torch.randint(0, len(cache), (programs, pages), generator=generator, dtype=torch.int32)
        lengths = torch.randint(0, longest + 1, (programs,), generator=generator, dtype=torch.int32)
        out = torch.zeros(programs, 1, longest, d, dtype=torch.float16)
        strides = (*cache.stride()[:3], table.stride(0))

        def right():
            there = (torch.arange(longest) < lengths[:, None])[:, :, None]
            return torch.equal(out[:, 0], torch.where(there, cache[table.long()].reshape(programs, longest, d), 0))

        return lambda: paged_read_kernel[(programs, 1)](cache, table, lengths, out, *strides, longest, D=d, PAGE=page), right

    def matmul(programs, block=64, k=256):
        rows = next(n for n in range(int(programs**0.5), 0, -1) if programs % n == 0)
        m, n = rows * block, programs // rows * block
        a, b, out = normal(m, k, dtype=torch.float16), normal(k, n, dtype=torch.float16), torch.empty(m, n)
        blocks = {"BLOCK_M": block, "BLOCK_N": block, "BLOCK_K": 32}
        strides = (*a.stride(), *b.stride(), *out.stride())

        def launch():
            matmul_kernel[(rows, programs // rows)](a, b, out, m, n, k, *strides, PRECISION="ieee", ACC=tl.float32, **blocks)

        return launch, lambda: torch.allclose(out, a.float() @ b.float(), atol=1e-3)

    return {"vector add": add, "softmax": softmax, "RMSNorm": rms_norm, "KV gather": kv_gather, "matmul": matmul}


def timed(launch, right, what):
    """(median wall, median CPU) seconds of the launches; stops when values are wrong."""
    launch()
    walls, times = [], []
    while len(walls) < 7 and sum(walls) < 10:
        wall, cpu = time.perf_counter(), time.process_time()
        launch()
        walls.append(time.perf_counter() - wall)
        times.append(time.process_time() - cpu)
        if not right():
            raise SystemExit(f"{what}: wrong values")
    return statistics.median(walls), statistics.median(times)


def child(programs, cap, kernels):
    """Time this process's engine; print one JSON line a measurement."""
    if os.environ.get("TRITON_INTERPRET") != "1":
        sys.path.insert(0, str(ROOT))
        from kit import machine

        machine.start()
    import torch

    torch.set_num_threads(1)
    for name, prepare in launches().items():
        if kernels and name not in kernels:
            continue
        prepare(2)[0]()
        start = time.perf_counter()
        prepare(PROBE)[0]()
        a_program = (time.perf_counter() - start) / PROBE
        for wanted in programs:
            ran = max(1, min(wanted, int(cap / a_program)))
            wall, cpu = timed(*prepare(ran), f"{name} at {ran} programs")
            print(json.dumps({"kernel": name, "programs": wanted, "ran": ran, "wall": wall, "cpu": cpu}), flush=True)


def measured(interpret, given):
    """{(kernel, programs): measurement} of one engine, from a child process. Only the interpreter is capped."""
    environment = {key: value for key, value in os.environ.items() if key != "TRITON_INTERPRET"}
    environment |= {"KIT_SIMULATE": "1", "OMP_NUM_THREADS": "1"} | ({"TRITON_INTERPRET": "1"} if interpret else {})
    command = [sys.executable, __file__, "--child", "--cap", str(given.cap if interpret else 1e9), "--programs", *map(str, given.programs)]
    command += ["--kernel", *given.kernel] if given.kernel else []
    printed = subprocess.run(command, env=environment, cwd=ROOT, check=True, stdout=subprocess.PIPE, text=True).stdout
    rows = [json.loads(line) for line in printed.splitlines() if line.startswith("{")]
    return {(row["kernel"], row["programs"]): row for row in rows}


def shown(row):
    return f"{row['wall'] * 1e3:,.1f} ms ({row['cpu'] * 1e3:,.1f})"


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--programs", type=int, nargs="+", default=[1, 100, 10_000], help="grid sizes (default 1 100 10000)")
    parser.add_argument("--cap", type=float, default=20.0, help="seconds that one launch of the interpreter may take (default 20)")
    parser.add_argument("--kernel", nargs="+", help="only these kernels")
    parser.add_argument("--json", help="where to write the table")
    parser.add_argument("--child", action="store_true", help=argparse.SUPPRESS)
    given = parser.parse_args()
    if given.child:
        child(given.programs, given.cap, given.kernel)
        return
    simulator, interpreter = measured(False, given), measured(True, given)
    print(f"{'kernel':<12}{'programs':>9}{'simulator (CPU)':>24}{'interpreter (CPU)':>28}{'ratio':>8}{'CPU':>8}")
    rows = []
    for (kernel, programs), ours in simulator.items():
        theirs = interpreter[kernel, programs]
        ratio, cpu = (theirs[key] / theirs["ran"] / (ours[key] / ours["ran"]) for key in ("wall", "cpu"))
        note = f"  per program; the interpreter ran {theirs['ran']:,}" if theirs["ran"] < programs else ""
        print(f"{kernel:<12}{programs:>9,}{shown(ours):>24}{shown(theirs):>28}{ratio:>7.0f}x{cpu:>7.0f}x{note}")
        rows.append({"kernel": kernel, "programs": programs, "simulator": ours, "interpreter": theirs, "ratio": ratio, "cpu_ratio": cpu})
    if given.json:
        Path(given.json).write_text(json.dumps(rows, indent=1) + "\n")


if __name__ == "__main__":
    main()
