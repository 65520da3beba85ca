"""Exercise 14: the arguments of a call, small in guarded buffers, and at full size on paper."""

from __future__ import annotations

from dataclasses import dataclass

import torch

from kit import machine
from kit.graders.buffers import GUARD, Buffer
from kit.graders.ex14_arithmetic import hard_rows
from kit.graders.ex14_reference import Given
from kit.graders.paper import meta
from kit.graders.step import counted

ANGLES = 64  # rows of cos_sin in the small cases
FULL = 1_048_576  # tokens
BLOCKS, BLOCK_SIZE = 300_000, 16  # of the large caches


@dataclass(frozen=True)
class Case:
    """One call. `new` is what no earlier case had: where it fails first, that is where to look."""

    new: str
    tokens: int
    kv_heads: int = 2
    group: int = 4
    size: int = 64
    BLOCK_T: int = 4
    block_size: int = 8
    padding: tuple = ()  # tokens whose slot is below 0
    view: bool = False  # rows of qkv twice as far apart, from an odd address on
    heads_first: bool = False  # a cache block is [kv_heads, block_size, size] in memory
    eps: float = 1e-5

    @property
    def columns(self):
        return (self.group + 2) * self.kv_heads * self.size

    def __str__(self):
        heads = f"{self.group * self.kv_heads} and {counted(self.kv_heads, 'head')} of {self.size}, BLOCK_T {self.BLOCK_T}"
        more = [", a slice of a wider row"] * self.view + [", heads before places in the cache"] * self.heads_first
        padding = f", {len(self.padding)} of them padding" if self.padding else ""
        return f"{counted(self.tokens, 'token')}{padding}, {heads}" + "".join(more)


class Inputs:
    """The buffers of a case, with random and hard values, and the arguments of a call made of them: real, or on paper."""

    def __init__(self, case):
        device = machine.current().device
        heads = (case.group + 2) * case.kv_heads
        rows = hard_rows(max(1, case.tokens * heads), case.size, device)[: case.tokens * heads]
        stride = case.columns * (2 if case.view else 1)
        offset = GUARD + (case.columns + 3 if case.view else 0)
        shape = (case.tokens, heads, case.size)
        self.case = case
        self.qkv = Buffer(shape, torch.bfloat16, values=rows.view(shape), strides=(stride, case.size, 1), offset=offset)
        blocks = case.tokens // case.block_size + 3
        shape = (blocks, case.block_size, case.kv_heads, case.size)
        block = 2 * case.block_size * case.kv_heads * case.size  # a block's keys, then its values
        inner = (case.size, case.block_size * case.size) if case.heads_first else (case.kv_heads * case.size, case.size)
        self.k_cache, self.v_cache = (
            Buffer(shape, torch.bfloat16, values=torch.randn(shape, device=device).bfloat16(), strides=(block, *inner, 1)) for _ in range(2)
        )
        angle = torch.rand(ANGLES, case.size // 2, device=device) * 6
        self.cos_sin = Buffer((ANGLES, case.size), torch.float32, values=torch.cat((angle.cos(), angle.sin()), -1))
        self.weights = [
            Buffer((case.size,), torch.bfloat16, values=(torch.rand(case.size, device=device) * 2 + 0.25).bfloat16()) for _ in range(2)
        ]
        slots = torch.randperm(blocks * case.block_size)[: case.tokens]
        for i, token in enumerate(case.padding):
            slots[token] = -1 - 7 * i
        self.slots = Buffer((case.tokens,), torch.int32, values=slots.to(device))
        positions = torch.randint(ANGLES, (case.tokens,))
        self.positions = Buffer((case.tokens,), torch.int32, values=positions.to(device))

    def _tensors(self):
        heads = self.qkv
        flat = heads.parent.as_strided((self.case.tokens, self.case.columns), (heads.strides[0], 1), heads.offset)
        others = (self.positions, self.slots, self.cos_sin, *self.weights, self.k_cache, self.v_cache)
        return (flat, *(one.view for one in others))

    def given(self):
        """The Given as it is before the call."""
        return Given(*(x.clone() for x in self._tensors()), self.case.eps)

    def args(self):
        """The arguments of write_qkv, real tensors, without BLOCK_T."""
        return (*self._tensors(), self.case.eps)

    def paper(self):
        """The same without memory behind the floating tensors; integers keep their values."""
        return (*(_paper(x) for x in self._tensors()), self.case.eps)

    def outputs(self):
        """The three Buffers that the call writes, by name."""
        return {"qkv": self.qkv, "k_cache": self.k_cache, "v_cache": self.v_cache}


def _paper(x):
    return meta(tuple(x.shape), x.dtype, tuple(x.stride()), x.storage_offset() % 16) if x.is_floating_point() else x.clone()


def large_args(tokens, kv_heads=8, group=4, size=64):
    """The arguments of a call at full size, on paper: a slice of a wider row, caches past 2^32 elements, the last slots."""
    columns = (group + 2) * kv_heads * size
    device = machine.current().device
    qkv = meta((tokens, columns), torch.bfloat16, (2 * columns, 1), columns)
    inner = BLOCK_SIZE * kv_heads * size
    shape, strides = (BLOCKS, BLOCK_SIZE, kv_heads, size), (2 * inner, kv_heads * size, size, 1)
    caches = (meta(shape, torch.bfloat16, strides, 0), meta(shape, torch.bfloat16, strides, inner))
    count = torch.arange(tokens, dtype=torch.int32, device=device)
    weights = (meta((size,), torch.bfloat16), meta((size,), torch.bfloat16))
    return (qkv, count, count + (BLOCKS * BLOCK_SIZE - tokens), meta((FULL, size), torch.float32), *weights, *caches, 1e-6)
