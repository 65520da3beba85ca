"""The server of exercise 13: its kernel, its buffers, the requests that arrive, and how a request is launched."""

from __future__ import annotations

from dataclasses import dataclass

import torch
import triton
import triton.language as tl

from kit import machine
from kit.graders.step import counted

SIZE, MOST_TOKENS, SLOTS = 128, 512, 1024


@triton.jit
def write_keys_kernel(k_ptr, slot_ptr, cache_ptr, n_tokens, SIZE: tl.constexpr, BLOCK_T: tl.constexpr):
    """cache[slot[t], :] = k[t, :]; a program owns BLOCK_T tokens."""
    pid = tl.program_id(0)

    offs_t = pid * BLOCK_T + tl.arange(0, BLOCK_T)
    offs_d = tl.arange(0, SIZE)

    mask_t = offs_t < n_tokens

    slot = tl.load(slot_ptr + offs_t, mask=mask_t, other=0)
    k = tl.load(k_ptr + offs_t[:, None] * SIZE + offs_d, mask=mask_t[:, None])

    tl.store(cache_ptr + slot[:, None] * SIZE + offs_d, k, mask=mask_t[:, None])


@dataclass(frozen=True)
class Request:
    """What arrives: `n` tokens of a step's batch from number `first` on, with keys of `dtype`."""

    dtype: torch.dtype
    first: int
    n: int

    def __str__(self):
        kind = str(self.dtype).removeprefix("torch.")
        return f"{counted(self.n, 'token')} of {kind}, the slots from number {self.first}"


F16, F32 = torch.float16, torch.float32
# Held back from the reader. Both dtypes; 1 token, multiples of 16 and others; slots that begin at a multiple of 4 (aligned) and not.
TRACE = tuple(
    Request(dtype, first, n)
    for first, n in ((0, 37), (37, 1), (0, 80), (81, 16), (0, 1), (38, 5), (0, 512), (64, 1), (43, 3), (12, 144), (2, 1), (7, 48))
    for dtype in (F16, F32)
)


class Server:
    """Buffers as a server has them, and the requests' views of them."""

    def __init__(self):
        device = machine.current().device
        self.slots = torch.randperm(SLOTS)[: MOST_TOKENS + 128].to(device, torch.int32)
        self.keys = {dtype: torch.randn(MOST_TOKENS + 128, SIZE, device=device).to(dtype) for dtype in (F16, F32)}
        self.caches = {dtype: torch.zeros(SLOTS, SIZE, dtype=dtype, device=device) for dtype in (F16, F32)}

    def arguments(self, request):
        """(k, slots, cache) of a request; its slots are a view, at their own offset."""
        stop = request.first + request.n
        return self.keys[request.dtype][: request.n], self.slots[request.first : stop], self.caches[request.dtype]

    def is_right(self, request):
        """Whether the cache holds the request's keys in their slots."""
        k, slots, cache = self.arguments(request)
        return torch.equal(cache[slots.long()], k)


def launch(kernel, k, slots, cache):
    """Write the keys of a request by one launch of `kernel`."""
    kernel[(triton.cdiv(len(slots), 4),)](k, slots, cache, len(slots), SIZE=SIZE, BLOCK_T=4)


def trace_picture(missed):
    """A picture of the trace: which of its requests are served, and which of them, the missed, would compile."""
    states = [int(request in missed) for request in TRACE]
    return {"kind": "Cells", "title": "The requests of the trace", "rows": states, "names": ("served", "would compile"), "columns": 12}
