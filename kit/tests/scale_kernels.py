"""A kernel as a reader would have it examined, and one with its programs on the wrong axis; `python -m kit examine` takes the file."""

from __future__ import annotations

import torch
import triton
import triton.language as tl

import kit

gpu = kit.start()


@triton.jit
def scale_kernel(x_ptr, out_ptr, n, BLOCK: tl.constexpr):
    """out = 2 x; a program owns BLOCK elements."""
    offs = tl.program_id(0).to(tl.int64) * BLOCK + tl.arange(0, BLOCK)
    mask = offs < n
    tl.store(out_ptr + offs, tl.load(x_ptr + offs, mask=mask) * 2, mask=mask)


@triton.jit
def second_axis_kernel(x_ptr, out_ptr, n, BLOCK: tl.constexpr):
    """BUG: the programs lie on the second axis. out = 2 x."""
    offs = tl.program_id(1).to(tl.int64) * BLOCK + tl.arange(0, BLOCK)
    mask = offs < n
    tl.store(out_ptr + offs, tl.load(x_ptr + offs, mask=mask) * 2, mask=mask)


def make_args(n):
    return torch.randn(n, device=gpu.device), torch.empty(n, device=gpu.device), n


def grid(meta):
    return (triton.cdiv(meta["n"], meta["BLOCK"]),)


def second_axis(meta):
    return (1, triton.cdiv(meta["n"], meta["BLOCK"]))


def reference(x, out, n):
    return 2 * x


sizes = {"n": [1, 1000, 2**33]}
meta = {"BLOCK": 1024}
