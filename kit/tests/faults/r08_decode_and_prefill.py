"""R8: one grid for decode and prefill. What is slow is right, and paper knows no time; what the tiling breaks on the way is seen."""

from __future__ import annotations

import torch
import triton
import triton.language as tl

from kit.ghosts import ghost
from kit.tests.faults.fault_case import Fault

NO_TIME = "every value is right, and paper knows no time"
BENCH = "programs times bytes a program; a benchmark on a GPU"


@triton.jit
def head_a_program_kernel(x_ptr, out_ptr, heads, D: tl.constexpr):
    """BUG: 256 bytes a program. out = x; a program owns one head of one token."""
    row = tl.program_id(0) * heads + tl.program_id(1)
    offs = row * D + tl.arange(0, D)
    tl.store(out_ptr + offs, tl.load(x_ptr + offs))


@triton.jit
def token_tile_kernel(x_ptr, out_ptr, tokens, WIDTH: tl.constexpr, BLOCK_T: tl.constexpr):
    """out = x; a program owns BLOCK_T tokens."""
    offs_t = tl.program_id(0) * BLOCK_T + tl.arange(0, BLOCK_T)
    offs = offs_t[:, None] * WIDTH + tl.arange(0, WIDTH)[None, :]
    mask = (offs_t < tokens)[:, None]
    tl.store(out_ptr + offs, tl.load(x_ptr + offs, mask=mask), mask=mask)


@triton.jit
def token_tile_no_mask_kernel(x_ptr, out_ptr, WIDTH: tl.constexpr, BLOCK_T: tl.constexpr):
    """BUG: the last tile may reach past the last token. out = x; a program owns BLOCK_T tokens."""
    offs_t = tl.program_id(0) * BLOCK_T + tl.arange(0, BLOCK_T)
    offs = offs_t[:, None] * WIDTH + tl.arange(0, WIDTH)[None, :]
    tl.store(out_ptr + offs, tl.load(x_ptr + offs))


@triton.jit
def row_a_program_kernel(x_ptr, out_ptr, D: tl.constexpr):
    """BUG: rows of 32 elements are too little work for a program. out = x; a program owns a row."""
    offs = tl.program_id(0) * D + tl.arange(0, D)
    tl.store(out_ptr + offs, tl.load(x_ptr + offs))


def f32(*shape):
    return ghost(shape, torch.float32)


def tiled(programs, tokens=37):
    return lambda: ((programs,), (f32(tokens, 128), f32(tokens, 128), tokens), {"WIDTH": 128, "BLOCK_T": 8})


FAULTS = [
    Fault(
        *("a program for each head", "R8", head_a_program_kernel, token_tile_kernel),
        lambda: ((64, 32), (f32(64, 32, 128), f32(64, 32, 128), 32), {"D": 128}),
        right_launch=lambda: ((64,), (f32(64, 4096), f32(64, 4096), 64), {"WIDTH": 4096, "BLOCK_T": 1}),
        why=NO_TIME,
        shows=BENCH,
    ),
    Fault(
        *("a program for each short row", "R8", row_a_program_kernel, token_tile_kernel),
        lambda: ((1000,), (f32(1000, 32), f32(1000, 32)), {"D": 32}),
        right_launch=lambda: ((16,), (f32(1000, 32), f32(1000, 32), 1000), {"WIDTH": 32, "BLOCK_T": 64}),
        why=NO_TIME,
        shows=BENCH,
    ),
    Fault(
        *("a tile past the last token", "R8", token_tile_no_mask_kernel, token_tile_kernel),
        *(lambda: ((5,), (f32(37, 128), f32(37, 128)), {"WIDTH": 128, "BLOCK_T": 8}), "out of bounds", "wrong", "tl.store"),
        right_launch=tiled(5),
        program=(4, 0, 0),
    ),
    Fault(
        *("a grid rounded down", "R8", token_tile_kernel, token_tile_kernel, tiled(37 // 8), "never written", "fragile", "tl.store"),
        right_launch=tiled(5),
    ),
]
