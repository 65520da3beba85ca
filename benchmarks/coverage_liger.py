"""Liger-Kernel's operations beside torch: what each computes, from its documentation, in plain torch."""

from __future__ import annotations

import types

import torch
import torch.nn.functional as F
from coverage_case import Case
from liger_kernel import ops
from liger_kernel.ops import dyt as liger_dyt

# DyT's backward asks which GPU it is on, for the number of its multiprocessors. Told: an H200.
liger_dyt.infer_device = lambda: "cuda"
torch.cuda.get_device_properties = lambda device=None: types.SimpleNamespace(multi_processor_count=132)


def n(*shape):
    return torch.randn(*shape)


def rms(x, eps=1e-6):
    return x * torch.rsqrt(x.pow(2).mean(-1, keepdim=True) + eps)


def labels(rows, classes):
    target = torch.randint(0, classes, (rows,))
    target[1] = -100
    return target


def rotate(x, cos, sin):
    half = x.shape[-1] // 2
    return x * cos + torch.cat([-x[..., half:], x[..., :half]], -1) * sin


def angles(*shape):
    half = torch.rand(*shape[:-1], shape[-1] // 2) * 6
    both = torch.cat([half, half], -1)
    return {"cos": both.cos(), "sin": both.sin()}


def jsd(x, y, beta=0.5):
    mix = beta * y.exp() + (1 - beta) * x.exp()
    return (beta * y.exp() * (y - mix.log()) + (1 - beta) * x.exp() * (x - mix.log())).sum() / x.shape[0]


def heads(batch, head, tokens, dim):
    """Heads before tokens in the shape, tokens before heads in memory, as Liger's rotary kernels expect."""
    return n(batch, tokens, head, dim).transpose(1, 2)


def sparsemax(x):
    ordered = x.sort(-1, descending=True).values
    k = torch.arange(1, x.shape[-1] + 1, dtype=x.dtype)
    total = ordered.cumsum(-1)
    size = (1 + k * ordered > total).sum(-1, keepdim=True)
    return (x - (total.gather(-1, size - 1) - 1) / size).clamp(min=0)


def chosen(x, index):
    return x.gather(-1, index.clamp(min=0)[..., None])[..., 0]


def causal(x, fill):
    keep = torch.ones(x.shape[-2:], dtype=torch.bool).tril()
    return torch.where(keep, x, fill)


def neighbours(q, k, v, kernel_size=3):
    length = q.shape[2]
    near = (torch.arange(length)[:, None] - torch.arange(length)).abs() <= kernel_size // 2
    scores = q @ k.transpose(-1, -2) / q.shape[-1] ** 0.5
    return torch.where(near, scores, -torch.inf).softmax(-1) @ v


def mixture(x, up, down, index, weights):
    out = torch.zeros_like(x)
    for k in range(index.shape[1]):
        both = torch.einsum("th,tih->ti", x, up[index[:, k].long()])
        gate, linear = both.chunk(2, -1)
        out = out + weights[:, k, None] * torch.einsum("ti,thi->th", F.silu(gate) * linear, down[index[:, k].long()])
    return out


def attention_residual(v, w_query, w_norm, eps=1e-6):
    scores = (rms(v, eps) * w_norm * w_query).sum(-1)
    return (scores.softmax(0)[..., None] * v).sum(0)


def poly(x, w, b):
    return w[0] * rms(x**3) + w[1] * rms(x**2) + w[2] * rms(x) + b


def grpo(logits, old_logp, ref_logp, ids, advantages, mask, beta=0.04, low=0.2, high=0.2):
    logp = chosen(logits[:, :-1].log_softmax(-1), ids)
    ratio = (logp - old_logp).exp()
    loss = -torch.minimum(ratio * advantages[:, None], ratio.clamp(1 - low, 1 + high) * advantages[:, None])
    away = ref_logp - logp
    return ((loss + beta * (away.exp() - away - 1)) * mask).sum(-1).div(mask.sum(-1)).mean()


def rotate_pairs(x, turn):
    pair = torch.view_as_complex(x.reshape(*x.shape[:-1], -1, 2))
    return torch.view_as_real(pair * turn[None, :, None]).reshape(x.shape)


def sections(cos, sizes):
    return torch.cat([part[i % 3] for i, part in enumerate(cos.split(sizes * 2, dim=-1))], -1).unsqueeze(1)


TURN = torch.polar(torch.ones(6, 8), torch.rand(6, 8, generator=torch.Generator().manual_seed(0)) * 6)

CASES = {
    "rms_norm": Case(
        lambda: {"x": n(9, 100), "w": n(100)},
        lambda x, w: ops.LigerRMSNormFunction.apply(x, w, 1e-6, 0.0, "llama", False),
        lambda x, w: rms(x) * w,
    ),
    "rms_norm gemma": Case(
        lambda: {"x": n(9, 100), "w": n(100)},
        lambda x, w: ops.LigerRMSNormFunction.apply(x, w, 1e-6, 1.0, "gemma", True),
        lambda x, w: rms(x) * (w + 1),
    ),
    "rms_norm wide": Case(
        lambda: {"x": n(3, 5000), "w": n(5000)},
        lambda x, w: ops.LigerRMSNormFunction.apply(x, w, 1e-6, 0.0, "none", False),
        lambda x, w: rms(x) * w,
    ),
    "fused_add_rms_norm": Case(
        lambda: {"x": n(9, 100), "r": n(9, 100), "w": n(100)},
        lambda x, r, w: ops.LigerFusedAddRMSNormFunction.apply(x, r, w, 1e-6),
        lambda x, r, w: (rms(x + r) * w, x + r),
    ),
    "modulated_rms_norm": Case(
        lambda: {"x": n(2, 5, 64), "w": n(64), "scale": n(2, 64), "shift": n(2, 64)},
        lambda x, w, scale, shift: ops.LigerModulatedRMSNormFunction.apply(x, w, scale, shift, 1e-6, 0.0, "llama", False),
        lambda x, w, scale, shift: (1 + scale[:, None]) * (rms(x) * w) + shift[:, None],
    ),
    "layer_norm": Case(
        lambda: {"x": n(9, 100), "w": n(100), "b": n(100)},
        lambda x, w, b: ops.LigerLayerNormFunction.apply(x, w, b, 1e-5),
        lambda x, w, b: F.layer_norm(x, (100,), w, b, 1e-5),
    ),
    "group_norm": Case(
        lambda: {"x": n(3, 8, 20), "w": n(8), "b": n(8)},
        lambda x, w, b: ops.LigerGroupNormFunction.apply(x, w, b, 8, 4, 1e-5),
        lambda x, w, b: F.group_norm(x, 4, w, b, 1e-5),
    ),
    "poly_norm": Case(
        lambda: {"x": n(9, 60), "w": n(3), "b": torch.tensor(0.3)},
        lambda x, w, b: ops.LigerPolyNormFunction.apply(x, w, b, 1e-6, False),
        poly,
    ),
    "dyt": Case(
        lambda: {"x": n(7, 96), "alpha": n(1), "gamma": n(96), "beta": n(96)},
        lambda x, alpha, gamma, beta: ops.LigerDyTFunction.apply(x, alpha, gamma, beta),
        lambda x, alpha, gamma, beta: gamma * torch.tanh(alpha * x) + beta,
    ),
    "softmax": Case(lambda: {"x": n(9, 100)}, lambda x: ops.LigerSoftmaxFunction.apply(x), lambda x: x.softmax(-1)),
    "softmax long rows": Case(lambda: {"x": n(2, 40000)}, lambda x: ops.LigerSoftmaxFunction.apply(x), lambda x: x.softmax(-1)),
    "sparsemax": Case(lambda: {"x": n(9, 100)}, lambda x: ops.LigerSparsemaxFunction.apply(x, -1), sparsemax),
    "swiglu": Case(lambda: {"a": n(9, 100), "b": n(9, 100)}, lambda a, b: ops.LigerSiLUMulFunction.apply(a, b), lambda a, b: F.silu(a) * b),
    "swiglu gate and up": Case(
        lambda: {"y": n(9, 200)}, lambda y: ops.LigerFusedGateUpSiLUMulFunction.apply(y, False), lambda y: F.silu(y[:, :100]) * y[:, 100:]
    ),
    "geglu": Case(
        lambda: {"a": n(9, 100), "b": n(9, 100)},
        lambda a, b: ops.LigerGELUMulFunction.apply(a, b),
        lambda a, b: F.gelu(a, approximate="tanh") * b,
    ),
    "relu_squared": Case(lambda: {"x": n(9, 100)}, lambda x: ops.LigerReLUSquaredFunction.apply(x), lambda x: F.relu(x) ** 2),
    "cross_entropy": Case(
        lambda: {"x": n(9, 100), "y": labels(9, 100)},
        lambda x, y: ops.LigerCrossEntropyFunction.apply(x, y, None)[0],
        lambda x, y: F.cross_entropy(x, y),
    ),
    "cross_entropy smoothed, weighted": Case(
        lambda: {"x": n(9, 100), "y": labels(9, 100), "w": torch.rand(100)},
        lambda x, y, w: ops.LigerCrossEntropyFunction.apply(x, y, w, -100, 0.0, 0.1, "mean")[0],
        lambda x, y, w: F.cross_entropy(x, y, w, label_smoothing=0.1),
        fixed=("w",),
    ),
    "cross_entropy softcap, sum": Case(
        lambda: {"x": n(9, 100) * 5, "y": labels(9, 100)},
        lambda x, y: ops.LigerCrossEntropyFunction.apply(x, y, None, -100, 0.0, 0.0, "sum", 10.0)[0],
        lambda x, y: F.cross_entropy(10 * torch.tanh(x / 10), y, reduction="sum"),
    ),
    "fused_linear_cross_entropy": Case(
        lambda: {"x": n(9, 32), "w": n(100, 32) * 0.2, "y": labels(9, 100), "b": n(100)},
        lambda x, w, y, b: ops.LigerFusedLinearCrossEntropyFunction.apply(x, w, y, b)[0],
        lambda x, w, y, b: F.cross_entropy(x @ w.T + b, y),
    ),
    "kl_div": Case(
        lambda: {"x": n(9, 100).log_softmax(-1), "y": n(9, 100).softmax(-1)},
        lambda x, y: ops.LigerKLDivLossFunction.apply(x, y, "batchmean"),
        lambda x, y: F.kl_div(x, y, reduction="batchmean"),
        fixed=("y",),
    ),
    "jsd": Case(
        lambda: {"x": n(9, 100).log_softmax(-1), "y": n(9, 100).log_softmax(-1)},
        lambda x, y: ops.LigerJSDFunction.apply(x, y),
        jsd,
        fixed=("y",),
    ),
    "tvd": Case(
        lambda: {"x": n(9, 100).softmax(-1), "y": n(9, 100).softmax(-1)},
        lambda x, y: ops.LigerTVDLossFunction.apply(x, y, None, "batchmean"),
        lambda x, y: 0.5 * (x - y).abs().sum() / 9,
        fixed=("y",),
    ),
    "fused_ce_tvd": Case(
        lambda: {"x": n(9, 100), "y": n(9, 100), "t": torch.randint(0, 100, (9,))},
        lambda x, y, t: ops.LigerFusedCETVDFunction.apply(x, y, t),
        lambda x, y, t: (F.cross_entropy(x, t, reduction="none"), 0.5 * (x.softmax(-1) - y.softmax(-1)).abs().sum(-1)),
        fixed=("y",),
    ),
    "fused_linear_jsd": Case(
        lambda: {"x": n(9, 32), "w": n(100, 32) * 0.2, "tx": n(9, 48), "tw": n(100, 48) * 0.2},
        lambda x, w, tx, tw: ops.LigerFusedLinearJSDFunction.apply(x, w, tx, tw),
        lambda x, w, tx, tw: jsd((x @ w.T).log_softmax(-1), (tx @ tw.T).log_softmax(-1)),
        fixed=("tx", "tw"),
    ),
    "fused_linear_kl_div": Case(
        lambda: {"x": n(9, 32), "w": n(100, 32) * 0.2, "y": n(9, 100).softmax(-1)},
        lambda x, w, y: ops.LigerFusedLinearKLDivFunction.apply(x, w, y),
        lambda x, w, y: F.kl_div((x @ w.T).log_softmax(-1), y, reduction="batchmean"),
        fixed=("y",),
    ),
    "rope": Case(
        lambda: {"q": heads(2, 4, 6, 32), "k": heads(2, 2, 6, 32), **angles(1, 6, 32)},
        lambda q, k, cos, sin: ops.LigerRopeFunction.apply(
            q.transpose(1, 2).contiguous().transpose(1, 2), k.transpose(1, 2).contiguous().transpose(1, 2), cos, sin
        ),
        lambda q, k, cos, sin: (rotate(q, cos[:, None], sin[:, None]), rotate(k, cos[:, None], sin[:, None])),
        fixed=("cos", "sin"),
    ),
    "qwen2vl_mrope": Case(
        lambda: {"q": heads(2, 4, 6, 32), "k": heads(2, 2, 6, 32), **angles(3, 2, 6, 32)},
        lambda q, k, cos, sin: ops.LigerQwen2VLMRopeFunction.apply(q * 1, k * 1, cos, sin, [4, 6, 6]),
        lambda q, k, cos, sin: tuple(rotate(x, sections(cos, [4, 6, 6]), sections(sin, [4, 6, 6])) for x in (q, k)),
        fixed=("cos", "sin"),
    ),
    "llama4_rope": Case(
        lambda: {"q": n(2, 6, 4, 16), "k": n(2, 6, 2, 16)},
        lambda q, k: ops.LigerLlama4RopeFunction.apply(q * 1, k * 1, TURN),
        lambda q, k: (rotate_pairs(q, TURN), rotate_pairs(k, TURN)),
    ),
    "multi_token_attention": Case(
        lambda: {"s": n(2, 4, 16, 16), "w": n(4, 4, 3, 3)},
        lambda s, w: ops.LigerMultiTokenAttentionFunction.apply(s, w, None, 1, 1),
        lambda s, w: causal(F.conv2d(causal(s, -1e9).softmax(-1), w, padding=1), 0.0),
    ),
    "fused_neighborhood_attention": Case(
        lambda: {"q": n(1, 2, 40, 32), "k": n(1, 2, 40, 32), "v": n(1, 2, 40, 32)},
        lambda q, k, v: ops.LigerFusedNeighborhoodAttentionFunction.apply(q, k, v, 3, 1),
        neighbours,
        bound=2e-3,
    ),
    "attn_res": Case(
        lambda: {"v": n(4, 2, 5, 48), "w_query": n(48), "w_norm": n(48)},
        lambda v, w_query, w_norm: ops.LigerAttnResFunction.apply(v, w_query, w_norm, 1e-6),
        attention_residual,
    ),
    "grpo_loss": Case(
        lambda: {
            "logits": n(3, 8, 50),
            "old": -torch.rand(3, 7) * 3,
            "ref": -torch.rand(3, 7) * 3,
            "ids": torch.randint(0, 50, (3, 7)),
            "adv": n(3),
            "mask": torch.tensor([[1] * 7, [1] * 5 + [0] * 2, [1] * 6 + [0]], dtype=torch.int32),
        },
        lambda logits, old, ref, ids, adv, mask: ops.GrpoLossFunction.apply(logits, old, ref, ids, adv, mask, 1.0, 0.04, 0.2, 0.2, False)[
            0
        ],
        lambda logits, old, ref, ids, adv, mask: grpo(logits, old, ref, ids, adv, mask),
        fixed=("old", "ref", "adv"),
    ),
    "embedding": Case(
        lambda: {"table": n(20, 48), "index": torch.randint(0, 20, (3, 7))},
        lambda table, index: ops.LigerEmbeddingFunction.apply(table, index),
        lambda table, index: table[index],
    ),
    "fused_moe": Case(
        lambda: {
            "x": n(9, 64),
            "up": n(4, 2 * 32, 64) * 0.2,
            "down": n(4, 64, 32) * 0.2,
            "index": torch.stack([torch.randperm(4)[:2] for _ in range(9)]).to(torch.int32),
            "weights": torch.rand(9, 2),
        },
        lambda x, up, down, index, weights: ops.LigerFusedMoEFunction.apply(x, up, down, index, weights),
        mixture,
        bound=4e-3,
    ),  # two products in tf32, one behind the other
    "mhc_pre": Case(
        lambda: {"x": n(6, 4, 64), "h": torch.rand(6, 4)},
        lambda x, h: ops.LigerMHCPreFunction.apply(x, h),
        lambda x, h: (h[..., None] * x).sum(-2),
        bound=2e-3,
    ),
    "mhc_post_res": Case(
        lambda: {"x": n(6, 4, 64), "f": n(6, 64), "p": torch.rand(6, 4), "r": torch.rand(6, 4, 4)},
        lambda x, f, p, r: ops.LigerMHCPostResFunction.apply(x, f, p, r),
        lambda x, f, p, r: torch.einsum("nij,njc->nic", r, x) + p[..., None] * f[:, None],
        bound=2e-3,
    ),
}
