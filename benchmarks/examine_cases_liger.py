"""Liger-Kernel 0.8.5, forward: each through the function that a user of the library calls."""

from __future__ import annotations

import torch
import torch.nn.functional as F
from examine_case import TRUE, Foreign
from liger_kernel import ops
from liger_kernel.ops.cross_entropy import cross_entropy_forward, liger_cross_entropy_kernel
from liger_kernel.ops.dyt import _dyt_fwd_kernel
from liger_kernel.ops.experimental.embedding import LigerEmbeddingFunction, embedding_forward_kernel
from liger_kernel.ops.fused_add_rms_norm import _fused_add_rms_norm_forward_kernel
from liger_kernel.ops.geglu import _geglu_tanh_forward_kernel
from liger_kernel.ops.jsd import _jsd_kernel
from liger_kernel.ops.kl_div import _kldiv_kernel_forward
from liger_kernel.ops.layer_norm import _layer_norm_forward_kernel
from liger_kernel.ops.rms_norm import _rms_norm_forward_kernel
from liger_kernel.ops.rope import _triton_rope
from liger_kernel.ops.softmax import _softmax_single_block_forward_kernel
from liger_kernel.ops.sparsemax import _sparsemax_forward_kernel
from liger_kernel.ops.swiglu import _swiglu_forward_kernel

FULL = [{"tokens": tokens, "hidden": hidden} for tokens, hidden in ((1, 1000), (100, 1000), (8192, 4096), (1 << 20, 4096))]
WORDS = [{"tokens": 1, "vocabulary": 1000}, {"tokens": 64, "vocabulary": 1000}, {"tokens": 1 << 17, "vocabulary": 128_256}]


def rms(x):
    return x * torch.rsqrt(x.pow(2).mean(-1, keepdim=True) + 1e-6)


def rms_norm(tokens, hidden):
    ops.LigerRMSNormFunction.apply(torch.randn(tokens, hidden), torch.randn(hidden), 1e-6, 0.0, "llama", False)


def rms_norm_reference(y, ys, x, xs, w, *rest):
    return {"Y_ptr": rms(x) * w}


def add_rms_norm(tokens, hidden):
    ops.LigerFusedAddRMSNormFunction.apply(torch.randn(tokens, hidden), torch.randn(tokens, hidden), torch.randn(hidden), 1e-6)


def add_rms_norm_reference(y, ys, s, ss, x, xs, r, rs, w, *rest):
    return {"Y_ptr": rms(x + r) * w, "S_ptr": x + r}


def layer_norm(tokens, hidden):
    ops.LigerLayerNormFunction.apply(torch.randn(tokens, hidden), torch.randn(hidden), torch.randn(hidden), 1e-5)


def layer_norm_reference(y, ys, x, xs, w, ws, b, *rest):
    return {"Y_ptr": F.layer_norm(x, x.shape[-1:], w, b, 1e-5)}


def swiglu(tokens, hidden):
    ops.LigerSiLUMulFunction.apply(torch.randn(tokens, hidden), torch.randn(tokens, hidden))


def geglu(tokens, hidden):
    ops.LigerGELUMulFunction.apply(torch.randn(tokens, hidden), torch.randn(tokens, hidden))


def dyt(tokens, hidden):
    ops.LigerDyTFunction.apply(torch.randn(tokens, hidden), torch.randn(1), torch.randn(hidden), torch.randn(hidden))


def softmax(tokens, hidden):
    ops.LigerSoftmaxFunction.apply(torch.randn(tokens, hidden))


def sparsemax(tokens, hidden):
    ops.LigerSparsemaxFunction.apply(torch.randn(tokens, hidden), -1)


def rope(tokens, heads):
    q, k = torch.randn(1, tokens, heads, 128).transpose(1, 2), torch.randn(1, tokens, heads, 128).transpose(1, 2)
    ops.LigerRopeFunction.apply(q, k, torch.randn(1, tokens, 128), torch.randn(1, tokens, 128))


def rope_reference(q, qs, k, ks, cos, cs, sin, *rest):
    half = q.shape[-1] // 2
    cos, sin = cos[..., None, :half], sin[..., None, :half]
    turned = [torch.cat([x[..., :half] * cos - x[..., half:] * sin, x[..., half:] * cos + x[..., :half] * sin], -1) for x in (q, k)]
    return {"q_ptr": turned[0], "k_ptr": turned[1]}


def cross_entropy(tokens, vocabulary):
    target = torch.arange(tokens) % vocabulary
    cross_entropy_forward(torch.randn(tokens, vocabulary), target, None, -100, 0.0, 0.0, "mean", None, False)


def kl_div(tokens, vocabulary):
    y, truth = torch.randn(tokens, vocabulary), torch.rand(tokens, vocabulary)
    ops.LigerKLDivLossFunction.apply(y, truth, "batchmean")


def jsd(tokens, vocabulary):
    ops.LigerJSDFunction.apply(torch.randn(tokens, vocabulary), torch.randn(tokens, vocabulary))


def embedding(tokens, hidden):
    LigerEmbeddingFunction.apply(torch.randn(32_000, hidden), torch.arange(tokens) % 32_000)


COUNTS = (TRUE, "the counts of targets that are not ignored change with every batch, and only divide")

EMBEDDING = {
    "7:overflow": (TRUE, "offsets_m * embedding_dim is an int32 product: it wraps from 524,288 tokens of 4,096 on (as in Liger #803)"),
    "4:class for nothing": (TRUE, "n_elements, the tokens, bounds whole rows, and no access is wider for knowing it"),
}

CASES = {
    "rms_norm": Foreign(_rms_norm_forward_kernel, rms_norm, FULL, rms_norm_reference),
    "fused_add_rms_norm": Foreign(_fused_add_rms_norm_forward_kernel, add_rms_norm, FULL, add_rms_norm_reference),
    "layer_norm": Foreign(_layer_norm_forward_kernel, layer_norm, FULL, layer_norm_reference),
    "swiglu": Foreign(_swiglu_forward_kernel, swiglu, FULL, lambda a, b, c, *rest: {"c_ptr": F.silu(a) * b}),
    "geglu": Foreign(_geglu_tanh_forward_kernel, geglu, FULL, lambda a, b, c, *rest: {"c": F.gelu(a, approximate="tanh") * b}),
    "dyt": Foreign(
        *(_dyt_fwd_kernel, dyt, FULL),
        lambda x, y, alpha, gamma, beta, *rest: {"Y": gamma * torch.tanh(alpha * x) + beta},
        {"6:grid limit": (TRUE, "the launcher puts rows on axis 1, (cdiv(N, BLOCK_N), M): 65,536 tokens and more are refused")},
    ),
    "softmax": Foreign(_softmax_single_block_forward_kernel, softmax, FULL, lambda y, ys, x, *rest: {"Y_ptr": x.softmax(-1)}),
    "sparsemax": Foreign(_sparsemax_forward_kernel, sparsemax, FULL),
    "rope": Foreign(
        _triton_rope,
        rope,
        [{"tokens": 1, "heads": 8}, {"tokens": 100, "heads": 8}, {"tokens": 8192, "heads": 32}, {"tokens": 1 << 20, "heads": 32}],
        rope_reference,
        {"4:class for nothing": (TRUE, "sl, the sequence length, is a divisor alone, and comes with every request")},
    ),
    "cross_entropy": Foreign(liger_cross_entropy_kernel, cross_entropy, WORDS, None, {"4:class for nothing": COUNTS}),
    "kl_div": Foreign(_kldiv_kernel_forward, kl_div, WORDS),
    "jsd": Foreign(_jsd_kernel, jsd, WORDS, None, {"4:class for nothing": COUNTS}),
    "embedding": Foreign(
        *(embedding_forward_kernel, embedding, FULL, lambda table, index, out, *rest: {"output_ptr": table[index]}, EMBEDDING)
    ),
}
