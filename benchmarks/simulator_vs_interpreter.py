"""Wall time of the simulator against Triton's interpreter, on the same launches, in one run: vector add and softmax.

    python benchmarks/simulator_vs_interpreter.py [--cap SECONDS] [--json OUT]

Each engine runs in a child process of its own (TRITON_INTERPRET is read when a kernel is decorated, and the interpreter patches
triton.language for the whole process), one after the other, never at the same time. A time is the best of several launches (up to
seven, or two seconds in all) after a small launch that is not counted, so neither compilation nor imports are in it; every launch's
values are checked, outside the time. A launch that the next smaller grid tells to pass the cap is not run: that grid's time is
scaled by the number of programs, and the row says "extrapolated". These are times of this machine's CPU, not of any GPU.
"""

from __future__ import annotations

import argparse
import json
import os
import subprocess
import sys
import time
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
PROGRAMS = (1, 100, 1_000, 10_000)
BLOCK = 1024


def launches():
    """{name: function(number of programs) -> (launch, are its values right)}. Kernels are decorated here, for this process's engine."""
    sys.path.insert(0, str(ROOT))
    import torch

    from kit.tests.zoo_elementwise import add_kernel
    from kit.tests.zoo_rows import softmax_kernel

    def add(programs):
        n = programs * BLOCK
        x, y, out = torch.randn(n), torch.randn(n), torch.empty(n)

        def launch():
            add_kernel[(programs,)](x, y, out, n, BLOCK=BLOCK)

        return launch, lambda: torch.equal(out, x + y)

    def softmax(programs):
        x = torch.randn(programs, BLOCK)
        out = torch.empty_like(x)

        def launch():
            softmax_kernel[(programs,)](x, out, BLOCK, x.stride(0), out.stride(0), BLOCK=BLOCK)

        return launch, lambda: torch.allclose(out, x.softmax(dim=1), atol=1e-6)

    return {"vector add": add, "softmax": softmax}


def best_of(launch, right, what):
    """Seconds of the fastest of up to seven launches, or of as many as fit two seconds; stops when values are wrong."""
    times = []
    while len(times) < 7 and sum(times) < 2:
        start = time.perf_counter()
        launch()
        times.append(time.perf_counter() - start)
        if not right():
            raise SystemExit(f"{what}: wrong values")
    return min(times)


def child(cap):
    """Time this process's engine; print one JSON line a measurement: kernel, programs, seconds (null when over the cap)."""
    if os.environ.get("TRITON_INTERPRET") != "1":
        sys.path.insert(0, str(ROOT))
        from kit import machine

        machine.start()
    for name, prepare in launches().items():
        prepare(2)[0]()
        a_program = 0.0
        for programs in PROGRAMS:
            seconds = None
            if a_program * programs <= cap:
                seconds = best_of(*prepare(programs), f"{name} at {programs} programs")
                a_program = seconds / programs
            print(json.dumps({"kernel": name, "programs": programs, "seconds": seconds}), flush=True)


def measured(interpret, cap):
    """{(kernel, programs): seconds or None} of one engine, from a child process."""
    environment = {key: value for key, value in os.environ.items() if key != "TRITON_INTERPRET"} | {"KIT_SIMULATE": "1"}
    if interpret:
        environment["TRITON_INTERPRET"] = "1"
    command = [sys.executable, __file__, "--child", "--cap", str(cap)]
    printed = subprocess.run(command, env=environment, cwd=ROOT, check=True, stdout=subprocess.PIPE, text=True).stdout
    rows = [json.loads(line) for line in printed.splitlines() if line.startswith("{")]
    return {(row["kernel"], row["programs"]): row["seconds"] for row in rows}


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--cap", type=float, default=60.0, help="seconds that one launch may take (default 60)")
    parser.add_argument("--json", help="where to write the table")
    parser.add_argument("--child", action="store_true", help=argparse.SUPPRESS)
    given = parser.parse_args()
    if given.child:
        child(given.cap)
        return
    simulator, interpreter = measured(False, given.cap), measured(True, given.cap)
    print(f"{'kernel':<12}{'programs':>9}{'simulator':>13}{'interpreter':>13}{'ratio':>8}")
    rows = []
    for (kernel, programs), seconds in simulator.items():
        other, note = interpreter[kernel, programs], ""
        if other is None:
            smaller = max(p for (k, p), s in interpreter.items() if k == kernel and s is not None)
            other, note = interpreter[kernel, smaller] * programs / smaller, f"  interpreter extrapolated from {smaller:,} programs"
        ratio = other / seconds if seconds else float("nan")
        print(f"{kernel:<12}{programs:>9,}{seconds * 1e3:>10.1f} ms{other * 1e3:>10.1f} ms{ratio:>7.0f}x{note}")
        rows.append(
            {"kernel": kernel, "programs": programs, "simulator_s": seconds, "interpreter_s": other, "ratio": ratio, "note": note.strip()}
        )
    if given.json:
        Path(given.json).write_text(json.dumps(rows, indent=1) + "\n")


if __name__ == "__main__":
    main()
