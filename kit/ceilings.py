"""What this GPU can do at best, measured in this process: bytes a second of a copy, FLOP a second of a matrix product.

A data sheet gives peaks that no program reaches; a share of what torch itself reaches here says more. Measured once a process.
"""

from __future__ import annotations

import functools

import torch

from kit.clocks import Flush, by_events, warm_up
from kit.statistics import summary

_COPY_BYTES = 2**30  # 1 GiB, or a quarter of what is free


@functools.cache
def copy_ceiling():
    """Bytes a second that `y.copy_(x)` moves, read and write counted, for tensors far larger than the L2 cache."""
    free, _ = torch.cuda.mem_get_info()
    n = min(_COPY_BYTES, free // 4) // 4
    x = torch.ones(n, dtype=torch.float32, device="cuda")
    y = torch.empty_like(x)
    return 2 * 4 * n / (1e-6 * _best(lambda: y.copy_(x)))


@functools.cache
def matrix_ceiling(dtype):
    """FLOP a second of `torch.matmul` on square matrices of this dtype: the better of 4096 and, where they fit, 8192 rows."""
    found = []
    for n in (4096, 8192):
        if 3 * n * n * dtype.itemsize > torch.cuda.mem_get_info()[0] // 2:
            continue
        a, b = (torch.randn(n, n, device="cuda").to(dtype) for _ in range(2))
        out = torch.empty_like(a)
        found.append(2 * n**3 / (1e-6 * _best(lambda a=a, b=b, out=out: torch.matmul(a, b, out=out))))
    return max(found)


def _best(call):
    """µs a call, warm and stable: the median of 20."""
    call()
    warm_up(call)
    return summary(by_events(call, 20, Flush(False))).median
