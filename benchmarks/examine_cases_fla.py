"""flash-linear-attention 0.6.0: norms, rotary, an activation, cross entropy, and two kernels that work by chunks."""

from __future__ import annotations

import torch
from examine_case import TRUE, Foreign
from fla.modules.activations.ops import swiglu_fwd, swiglu_fwd_kernel
from fla.modules.fused_cross_entropy.ops import cross_entropy_fwd, cross_entropy_fwd_kernel
from fla.modules.norm.l2norm import l2norm_fwd, l2norm_fwd_kernel
from fla.modules.norm.layernorm import layer_norm_fwd, layer_norm_fwd_kernel_row
from fla.modules.rotary.ops import rotary_embedding_fwdbwd, rotary_embedding_kernel
from fla.ops.common.chunk_o import chunk_fwd_kernel_o, chunk_fwd_o
from fla.ops.utils.cumsum import chunk_local_cumsum_scalar, chunk_local_cumsum_scalar_kernel

FULL = [{"tokens": tokens, "hidden": hidden} for tokens, hidden in ((1, 1000), (100, 1000), (8192, 4096), (1 << 20, 4096))]
HALF = torch.float16


def layer_norm(tokens, hidden):
    layer_norm_fwd(torch.randn(tokens, hidden, dtype=HALF), torch.randn(hidden, dtype=HALF), torch.randn(hidden, dtype=HALF), 1e-5)


def layer_norm_reference(x, y, w, b, *rest):
    return {"y": torch.nn.functional.layer_norm(x, x.shape[-1:], w, b, 1e-5)}


def l2norm(tokens, dim):
    l2norm_fwd(torch.randn(tokens, dim, dtype=HALF), 1e-6)


def l2norm_reference(x, y, *rest):
    return {"y": x * torch.rsqrt(x.pow(2).sum(-1, keepdim=True) + 1e-6)}


def rotary(tokens, heads):
    x, cos, sin = (torch.randn(*shape, dtype=HALF) for shape in ((1, tokens, heads, 128), (tokens, 64), (tokens, 64)))
    rotary_embedding_fwdbwd(x, cos, sin)


def rotary_reference(x, cos, sin, *rest):
    a, b = x.chunk(2, -1)
    cos, sin = cos[None, :, None], sin[None, :, None]
    return {"y": torch.cat([a * cos - b * sin, a * sin + b * cos], -1)}


def swiglu(tokens, hidden):
    swiglu_fwd(torch.randn(tokens, hidden, dtype=HALF), torch.randn(tokens, hidden, dtype=HALF))


def swiglu_reference(x, y, *rest):
    return {"z": torch.nn.functional.silu(x) * y}


def cross_entropy(tokens, vocabulary):
    cross_entropy_fwd(torch.randn(tokens, vocabulary, dtype=HALF), torch.arange(tokens) % vocabulary)


def cross_entropy_reference(logits, target, *rest):
    return {"lse": (logits.float() if logits.dtype == HALF else logits).logsumexp(-1)}


def cumsum(tokens, heads):
    chunk_local_cumsum_scalar(torch.randn(1, tokens, heads), 64)


def cumsum_reference(s, o, *rest):
    padded = torch.nn.functional.pad(s, (0, 0, 0, -s.shape[1] % 64))
    return {"o": padded.unflatten(1, (-1, 64)).cumsum(2).flatten(1, 2)[:, : s.shape[1]]}


def chunk_o(tokens, heads):
    q, k, v = (torch.randn(1, tokens, heads, 64, dtype=HALF) for _ in range(3))
    h = torch.randn(1, -(-tokens // 64), heads, 64, 64, dtype=HALF)
    chunk_fwd_o(q, k, v, h, torch.randn(1, tokens, heads))


CHUNKS = [{"tokens": 1, "heads": 4}, {"tokens": 100, "heads": 4}, {"tokens": 8192, "heads": 32}, {"tokens": 1 << 20, "heads": 32}]
WORDS = [{"tokens": 1, "vocabulary": 1000}, {"tokens": 64, "vocabulary": 1000}, {"tokens": 1 << 17, "vocabulary": 128_256}]

EMPTY = (TRUE, "a row of -inf alone gives nan where logsumexp is -inf: its maximum is subtracted from itself")
CHUNK = (TRUE, "one head of one chunk a program: 64 numbers are read and 64 written")
FLOAT16 = (TRUE, "q·k is cast to float16 before the second product: past 65,504 it is inf, and inf - inf in the sum is nan")

CASES = {
    "layer_norm": Foreign(layer_norm_fwd_kernel_row, layer_norm, FULL, layer_norm_reference),
    "l2norm": Foreign(
        l2norm_fwd_kernel,
        l2norm,
        [{"tokens": 1, "dim": 128}, {"tokens": 100, "dim": 100}, {"tokens": 8192, "dim": 128}, {"tokens": 32 << 20, "dim": 128}],
        l2norm_reference,
    ),
    "rotary": Foreign(
        *(rotary_embedding_kernel, rotary, CHUNKS, rotary_reference),
        {
            "4:constexpr varies": (
                TRUE,
                "TR is the length of the cosine cache, which grows with the longest sequence: each length compiles",
            )
        },
    ),
    "swiglu": Foreign(swiglu_fwd_kernel, swiglu, FULL, swiglu_reference),
    "cross_entropy": Foreign(cross_entropy_fwd_kernel, cross_entropy, WORDS, cross_entropy_reference, {"10:hard inputs": EMPTY}),
    "chunk cumsum": Foreign(chunk_local_cumsum_scalar_kernel, cumsum, CHUNKS, cumsum_reference, {"8:tiny programs": CHUNK}),
    "chunk output": Foreign(chunk_fwd_kernel_o, chunk_o, CHUNKS, None, {"10:nan": FLOAT16}),
}
