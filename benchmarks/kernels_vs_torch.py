"""The kernels of kit/kernels against eager torch, torch.compile and, where it has one, Liger-Kernel. Needs a GPU.

    python benchmarks/kernels_vs_torch.py [--json FILE] [--only NAME]

All in one process, contenders in turns, cold L2 cache, medians of CUDA graphs' calls where the tensors are larger than the cache can keep
and of events otherwise (kit.bench). Bytes and FLOP are the operation's: each datum once. Prints a table, and what falls short of the
project's goals: bandwidth-bound kernels at 90 % of the measured copy ceiling at prefill sizes and nowhere more than 5 % slower than
torch.compile; matmul in bfloat16 at 85 % of torch.matmul. Exit status 1 where one falls short. docs/kernels_h200.json is one run.
"""

import argparse
import functools
import json
import sys

import torch

import kit
from kit.bench import bench
from kit.kernels import copy, kv_cache, matmul, rms_norm, rope, softmax

TOKENS = (1, 16, 128, 1024, 8192, 32_768)
PREFILL = 8192
HIDDEN, HEADS, KV_HEADS, SIZE = 4096, 32, 8, 128
compiled = functools.partial(torch.compile, dynamic=False)


def half(*shape):
    return torch.randn(*shape, device="cuda", dtype=torch.float16)


def liger_rms_norm():
    """Liger's forward, or None where Liger is not installed."""
    try:
        from liger_kernel.ops.rms_norm import rms_norm_forward
    except ImportError:
        return None
    return lambda x, w: rms_norm_forward(x, w, 1e-6, 0.0, "llama", True)[0]


def cases():
    """{name: (contenders, make(tokens), bytes of the operation)}."""
    eager_rope = rope.rope_reference
    found = {
        "rms_norm": (
            {"triton": rms_norm.rms_norm, "eager": rms_norm.rms_norm_reference, "compile": compiled(rms_norm.rms_norm_reference)},
            lambda tokens: (half(tokens, HIDDEN), half(HIDDEN)),
            lambda x, w: 2 * x.nbytes + w.nbytes,
        ),
        "softmax": (
            {"triton": softmax.softmax, "eager": lambda x: torch.softmax(x, -1), "compile": compiled(softmax.softmax_reference)},
            lambda tokens: (half(tokens, HIDDEN),),
            lambda x: 2 * x.nbytes,
        ),
        "rope": (
            {"triton": rope.rope, "eager": eager_rope, "compile": compiled(eager_rope)},
            lambda tokens: (half(tokens, HEADS, SIZE), half(tokens, SIZE // 2), half(tokens, SIZE // 2)),
            lambda x, cos, sin: 2 * x.nbytes + cos.nbytes + sin.nbytes,
        ),
        "write_kv": (
            {
                "triton": kv_cache.write_kv,
                "eager": kv_cache.write_kv_reference,
                "compile": compiled(kv_cache.write_kv_reference),
            },
            make_kv,
            lambda k, v, kc, vc, slots: 2 * (k.nbytes + v.nbytes) + slots.nbytes,
        ),
        "copy": (
            {"triton": copy.copy, "eager": copy.copy_reference, "compile": compiled(lambda x: x + 0)},
            lambda tokens: (half(tokens * HIDDEN),),
            lambda x: 2 * x.nbytes,
        ),
    }
    if liger := liger_rms_norm():
        found["rms_norm"][0]["liger"] = liger
    return found


def make_kv(tokens):
    num_slots = max(4096, 2 * tokens)
    caches = [torch.zeros(num_slots, KV_HEADS, SIZE, device="cuda", dtype=torch.float16) for _ in range(2)]
    return half(tokens, KV_HEADS, SIZE), half(tokens, KV_HEADS, SIZE), *caches, torch.randperm(num_slots, device="cuda")[:tokens]


def measure(only=None):
    """{name: records} of the bandwidth-bound kernels, then of matmul."""
    found = {}
    for name, (contenders, make, count) in cases().items():
        if only in (None, name):
            timing = bench(contenders, make=make, over={"tokens": list(TOKENS)}, bytes=count, method="graph", tolerance=(2e-2, 2e-2))
            found[name] = timing.data()
            torch._dynamo.reset()
    if only in (None, "matmul"):
        contenders = {"torch": torch.matmul, "triton": matmul.matmul, "triton, TMA": matmul.matmul_tma}
        timing = bench(
            contenders,
            make=lambda n: tuple(torch.randn(n, n, device="cuda", dtype=torch.bfloat16) for _ in range(2)),
            over={"n": [4096, 8192]},
            flop=lambda a, b: 2 * a.shape[0] ** 3,
            method="graph",
            tolerance=(2e-2, 1.0),
        )
        found["matmul"] = timing.data()
    return found


def short_of(found):
    """What falls short of the goals, a sentence each."""
    said = []
    for name, records in found.items():
        at = {(one["name"], one.get("tokens", one.get("n"))): one for one in records}
        for (who, size), one in at.items():
            if name == "matmul":
                best = max(at["torch", size]["us"] / at[other, size]["us"] for other in ("triton", "triton, TMA"))
                if who == "torch" and best < 0.85:
                    said.append(f"matmul at {size}: {best:.2f} of torch.matmul")
            elif who == "triton":
                if size >= PREFILL and one["share"] < 0.9:
                    said.append(f"{name} at {size} tokens: {one['share']:.2f} of the copy ceiling")
                if one["us"] > 1.05 * at["compile", size]["us"]:
                    said.append(f"{name} at {size} tokens: {one['us'] / at['compile', size]['us']:.2f} times torch.compile's time")
    return said


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--json", help="write the records and the machine to this file")
    parser.add_argument("--only", help="one operation")
    options = parser.parse_args()
    here = kit.start(require="gpu")
    found = measure(options.only)
    print(here)
    for name, records in found.items():
        for one in records:
            size = one.get("tokens", one.get("n"))
            rate = f"{one['gb_s']:,.0f} GB/s" if one["gb_s"] else f"{one['tflop_s']:,.0f} TFLOP/s"
            cold = "" if one["cold"] else " (warm)"
            span = f"{one['us']:9.2f} µs ({one['low']:.2f} to {one['high']:.2f})"
            print(f"{name:>10} {size:>6} {one['name']:>12}: {span}, {rate}, {one['share']:.2f}{cold}")
    said = short_of(found)
    print("\n".join(said) or "All goals are met.")
    if options.json:
        with open(options.json, "w", encoding="utf-8") as file:
            json.dump({"machine": repr(here), "found": found, "short": said}, file, indent=1)
    sys.exit(1 if said else 0)


if __name__ == "__main__":
    main()
