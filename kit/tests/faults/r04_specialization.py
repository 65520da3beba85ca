"""R4: variants that nobody meant to compile. A dry run is one launch, so it sees an unaligned pointer and no second variant."""

from __future__ import annotations

import torch
import triton
import triton.language as tl

from kit.ghosts import ghost
from kit.tests.faults.fault_case import Fault

VARIANTS = "each launch is right: the fault is how many variants many launches compile"
KEYS = "the keys of the compiled variants (kernel.device_caches), or the JIT hook, over a sweep"


@triton.jit
def copy_kernel(x_ptr, out_ptr, n, BLOCK: tl.constexpr):
    """out = x; a program owns BLOCK elements."""
    offs = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    mask = offs < n
    tl.store(out_ptr + offs, tl.load(x_ptr + offs, mask=mask), mask=mask)


@triton.jit(do_not_specialize_on_alignment=["end_ptr"])
def mark_end_generic_kernel(end_ptr):
    """end = 1 for each program: a scalar store, for which alignment buys nothing."""
    tl.store(end_ptr + tl.program_id(0), 1)


@triton.jit
def mark_end_kernel(end_ptr):
    """BUG: an offset view of a buffer compiles again, for a store of one number. end = 1 for each program."""
    tl.store(end_ptr + tl.program_id(0), 1)


@triton.jit
def words_of_bytes_kernel(x_ptr, out_ptr, BLOCK: tl.constexpr):
    """BUG: reads 4 bytes at addresses that are odd when x_ptr + 1 is. out = the 32-bit words behind the first byte."""
    offs = tl.arange(0, BLOCK)
    words = (x_ptr + 1).to(tl.pointer_type(tl.int32))
    tl.store(out_ptr + offs, tl.load(words + offs))


@triton.jit
def words_kernel(x_ptr, out_ptr, BLOCK: tl.constexpr):
    """out = the 32-bit words behind the first four bytes."""
    offs = tl.arange(0, BLOCK)
    words = (x_ptr + 4).to(tl.pointer_type(tl.int32))
    tl.store(out_ptr + offs, tl.load(words + offs))


@triton.jit
def write_words_of_bytes_kernel(out_ptr, BLOCK: tl.constexpr):
    """BUG: writes 2 bytes at odd addresses. A header of one byte, then BLOCK numbers of 16 bits."""
    offs = tl.arange(0, BLOCK)
    tl.store((out_ptr + 1).to(tl.pointer_type(tl.int16)) + offs, offs.to(tl.int16))


@triton.jit
def write_words_kernel(out_ptr, BLOCK: tl.constexpr):
    """A header of two bytes, then BLOCK numbers of 16 bits."""
    offs = tl.arange(0, BLOCK)
    tl.store(out_ptr + tl.arange(0, 2), tl.zeros((2,), tl.int8))
    tl.store((out_ptr + 2).to(tl.pointer_type(tl.int16)) + offs, offs.to(tl.int16))


@triton.jit
def rows_constexpr_kernel(out_ptr, M: tl.constexpr):
    """BUG: M is a batch size, and each one compiles. out = M for each of M programs."""
    tl.store(out_ptr + tl.program_id(0), M)


@triton.jit(do_not_specialize=["m"])
def rows_kernel(out_ptr, m):
    """out = m for each of m programs."""
    tl.store(out_ptr + tl.program_id(0), m)


@triton.jit
def unused_argument_kernel(out_ptr, m, extra):
    """BUG: nothing reads `extra`, and its class is part of the key. out = m for each of m programs."""
    tl.store(out_ptr + tl.program_id(0), m)


@triton.jit
def used_arguments_kernel(out_ptr, m):
    """out = m for each of m programs."""
    tl.store(out_ptr + tl.program_id(0), m)


@triton.jit
def specialized_count_kernel(out_ptr, m):
    """BUG: a count of 1, of a multiple of 16 and of neither are three variants. out = m for each of m programs."""
    tl.store(out_ptr + tl.program_id(0), m)


@triton.jit(do_not_specialize=["x_ptr", "out_ptr", "n"])
def copy_generic_kernel(x_ptr, out_ptr, n, BLOCK: tl.constexpr):
    """BUG: without alignment every load is of one element. out = x; a program owns BLOCK elements."""
    offs = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    mask = offs < n
    tl.store(out_ptr + offs, tl.load(x_ptr + offs, mask=mask), mask=mask)


def copying(offset):
    x, out = ghost(1000, torch.float32, offset=offset), ghost(1000, torch.float32, offset=offset)
    return lambda: ((4,), (x, out, 1000), {"BLOCK": 256})


def marking():
    return (60,), (ghost(60, torch.int32, offset=1),), {}


def rows(kernel_takes):
    return lambda: ((7,), (ghost(7, torch.int32), *([7, 5][:kernel_takes])), {} if kernel_takes else {"M": 7})


def words(dtype, n):
    return lambda: ((1,), (ghost(68, torch.int8), ghost(n, dtype)), {"BLOCK": 16})


FAULTS = [
    Fault("a view after an aligned warm-up", "R4", copy_kernel, copy_kernel, copying(1), "alignment", "remark", right_launch=copying(0)),
    Fault("a view for a scalar store", "R4", mark_end_kernel, mark_end_generic_kernel, marking, "alignment", "remark"),
    Fault("words read at odd bytes", "R4", words_of_bytes_kernel, words_kernel, words(torch.int32, 16), "misaligned", "wrong", "tl.load"),
    Fault(
        *("words written at odd bytes", "R4", write_words_of_bytes_kernel, write_words_kernel),
        *(lambda: ((1,), (ghost(34, torch.int8),), {"BLOCK": 16}), "misaligned", "wrong", "tl.store"),
    ),
    Fault("a size as constexpr", "R4", rows_constexpr_kernel, rows_kernel, rows(0), right_launch=rows(1), why=VARIANTS, shows=KEYS),
    Fault(
        *("an argument nobody reads", "R4", unused_argument_kernel, used_arguments_kernel, rows(2)),
        right_launch=rows(1),
        why=VARIANTS,
        shows=KEYS,
    ),
    Fault("a count in three classes", "R4", specialized_count_kernel, rows_kernel, rows(1), why=VARIANTS, shows=KEYS),
    Fault(
        *("no alignment anywhere", "R4", copy_generic_kernel, copy_kernel, copying(0)),
        why="the values are right, and paper knows no time",
        shows="kit.build: one element a load instead of four; a benchmark on a GPU",
    ),
]
