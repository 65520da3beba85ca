"""The capstone's solution against the same in torch and what torch.compile makes of that. Needs a GPU.

    python benchmarks/capstone.py [--json FILE]

The three are cells of solutions/14_your_kernel.ipynb. From decode to prefill, and for two models' heads; all in one process, contenders in
turns, cold L2 cache, medians (kit.bench), each checked against the composed torch version first. Bytes are the operation's: each element of
qkv read once, queries and both caches written once. Prints a table and the ratios; exit status 1 where the solution is more than 5 % slower
than torch.compile.
"""

import argparse
import json
import sys
import tempfile
from pathlib import Path

import torch

import kit
from kit.bench import bench
from kit.tests.banks import HEAD, SOLUTIONS, module_of, solved

TOKENS = (1, 16, 64, 256, 1_024, 8_192, 32_768)
MODELS = ((32, 8, 128), (32, 8, 64))  # query heads, key heads, size
SLOWER = 1.05


def of_the_notebook():
    """(composed, serve_qkv) from the solution notebook's cells."""
    cells = json.loads((SOLUTIONS / "14_your_kernel.ipynb").read_text(encoding="utf-8"))["cells"]
    composed = ["".join(cell["source"]) for cell in cells if cell["id"] in ("arithmetic", "composed")]
    text = "\n\n".join([solved("14.1"), solved("14.2"), solved("14.3"), *composed])
    folder = Path(tempfile.mkdtemp())  # Triton reads a kernel's source from its file while it runs
    module = module_of(f"{HEAD}{text}\n", folder)
    return module.composed, module.serve_qkv


def make(tokens, heads, kv_heads, size):
    """The arguments of a call: a slice of a wider row, the caches' halves of one allocation, no padding."""
    columns = (heads + 2 * kv_heads) * size
    wide = torch.randn(tokens, 2 * columns, device="cuda", dtype=torch.bfloat16)
    cache = torch.zeros(tokens // 8 + 256, 2, 16, kv_heads, size, device="cuda", dtype=torch.bfloat16)
    slots = torch.randperm(cache.shape[0] * 16, device="cuda")[:tokens].int()
    weights = [torch.rand(size, device="cuda").bfloat16() for _ in range(2)]
    turns, positions = torch.rand(tokens, size, device="cuda"), torch.arange(tokens, device="cuda", dtype=torch.int32)
    return wide[:, columns:], positions, slots, turns, *weights, cache[:, 0], cache[:, 1], 1e-6


def moved(qkv, positions, slots, cos_sin, q_weight, k_weight, k_cache, v_cache, eps):
    """Bytes of the operation."""
    tokens, columns = qkv.shape
    return 2 * qkv.element_size() * tokens * columns + cos_sin.nbytes + positions.nbytes + slots.nbytes


def measure():
    """The Timing over all shapes."""
    composed, serve_qkv = of_the_notebook()
    contenders = {"composed": composed, "compiled": torch.compile(composed, dynamic=False), "solution": serve_qkv}
    torch._dynamo.config.cache_size_limit = 64
    shapes = [{"tokens": n, "heads": h, "kv_heads": kv, "size": size} for h, kv, size in MODELS for n in TOKENS]
    return bench(contenders, make=make, over=shapes, bytes=moved, tolerance=(2e-2, 2e-2))


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--json", help="write the records and the machine to this file")
    options = parser.parse_args()
    here = kit.start(require="gpu")
    timing = measure()
    print(here)
    slow = []
    for shape in timing.shapes:
        row = timing.row("solution", **shape)
        composed, compiled = (timing.ratio(other, "solution", **shape).median for other in ("composed", "compiled"))
        told = f"{shape['tokens']:>6} tokens, {shape['heads']} and {shape['kv_heads']} heads of {shape['size']}"
        print(f"{told}: {row.us:8.2f} µs, {row.share:.2f} of the copy ceiling; {composed:.2f} and {compiled:.2f} times as fast")
        if compiled < 1 / SLOWER:
            slow.append(f"{told}: {1 / compiled:.2f} times torch.compile's time")
    print("times as fast: as the composed torch version, as torch.compile's")
    if options.json:
        Path(options.json).write_text(json.dumps({"machine": repr(here), "rows": timing.data()}, indent=1) + "\n")
    sys.exit("\n".join(slow))


if __name__ == "__main__":
    main()
