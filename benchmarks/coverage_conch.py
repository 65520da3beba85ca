"""Conch's operations (conch-triton-kernels) beside torch: attention over a paged cache, quantization, vision. Forward only."""

from __future__ import annotations

import torch
import torch.nn.functional as F
from conch.ops.activation.gelu_tanh_and_mul import gelu_tanh_and_mul
from conch.ops.activation.silu_and_mul import silu_and_mul
from conch.ops.attention.paged_attention import paged_attention
from conch.ops.attention.varlen_attention import varlen_attention
from conch.ops.embedding.rotary_embedding import rotary_embedding
from conch.ops.normalization.gemma_rms_norm import gemma_rms_norm
from conch.ops.normalization.rms_norm import fused_add_rms_norm, rms_norm
from conch.ops.quantization.bitsandbytes.functional import dequantize_4bit, quantize_4bit
from conch.ops.quantization.fp8 import scaled_fp8_quant
from conch.ops.quantization.gemm import mixed_precision_gemm, scaled_gemm
from conch.ops.quantization.int8 import scaled_int8_quant
from conch.ops.vision.bev_pool import bev_pool, bev_pool_backward
from conch.ops.vision.nms import nms
from conch.ops.vision.voxelization import VoxelizationParameter, generate_voxels
from conch.ops.vllm.copy_blocks import copy_blocks
from conch.ops.vllm.reshape_and_cache import reshape_and_cache
from coverage_case import Case

LENGTHS = [5, 33, 16]
PAGE = 16


def n(*shape):
    return torch.randn(*shape)


def forward(make, run, reference, bound=2e-5):
    return Case(make, run, reference, bound=bound, backward=False)


def rms(x, w, eps=1e-6):
    return x * torch.rsqrt(x.pow(2).mean(-1, keepdim=True) + eps) * w


def cache():
    return {
        "k": n(12, PAGE, 2, 32).half(), "v": n(12, PAGE, 2, 32).half(),
        "table": torch.randperm(12)[:9].reshape(3, 3).to(torch.int32), "lengths": torch.tensor(LENGTHS, dtype=torch.int32),
    }  # fmt: skip


def sequence(pages, table, i):
    """The keys or values of sequence i: (heads of the queries, tokens, size)."""
    rows = torch.cat([pages[page] for page in table[i].long()])[: LENGTHS[i]]
    return rows.transpose(0, 1).repeat_interleave(2, dim=0)


def attend(q, k, v, table, lengths):
    outs = []
    for i in range(len(LENGTHS)):
        keys, values = sequence(k, table, i), sequence(v, table, i)
        outs.append(((q[i][:, None] @ keys.transpose(1, 2)) * 32**-0.5).softmax(-1) @ values)
    return torch.stack(outs)[:, :, 0]


def attend_all(q, k, v, table, lengths, starts):
    outs = []
    for i, length in enumerate(LENGTHS):
        keys, values = sequence(k, table, i), sequence(v, table, i)
        scores = q[starts[i] : starts[i + 1]].transpose(0, 1) @ keys.transpose(1, 2) * 32**-0.5
        keep = torch.ones(length, length, dtype=torch.bool).tril()
        outs.append((torch.where(keep, scores, -torch.inf).softmax(-1) @ values).transpose(0, 1))
    return torch.cat(outs)


def varlen(q, k, v, table, lengths, starts):
    return varlen_attention(q, k, v, starts, max(LENGTHS), lengths, max(LENGTHS), table, causal=True, scale=32**-0.5)


def rotated(positions, q, k, angles):
    cos, sin = (part[positions][:, None] for part in angles.chunk(2, -1))

    def turn(x):
        a, b = x.reshape(x.shape[0], -1, 32).chunk(2, -1)
        return torch.cat([a * cos - b * sin, b * cos + a * sin], -1).reshape(x.shape)

    return turn(q), turn(k)


def cached(key, value, slots):
    pages = [torch.zeros(4, PAGE, 2, 32, dtype=key.dtype) for _ in range(2)]
    for page, rows in zip(pages, (key, value)):
        page[slots // PAGE, slots % PAGE] = rows
    return pages


def cache_with(key, value, slots):
    pages = [torch.zeros(4, PAGE, 2, 32, dtype=key.dtype) for _ in range(2)]
    reshape_and_cache(key, value, *pages, slots)
    return pages


def copied(k, v, pairs, by):
    k, v = [k[0].clone(), k[1].clone()], [v[0].clone(), v[1].clone()]
    if by == "kernel":
        copy_blocks([x.flatten(1) for x in k], [x.flatten(1) for x in v], pairs)
    else:
        for pages in (*k, *v):
            for source, target in pairs.tolist():
                pages[target] = pages[source]
    return (*k, *v)


def boxes():
    corner = torch.rand(60, 2) * 20
    return {"boxes": torch.cat([corner, corner + 1 + torch.rand(60, 2) * 8], 1), "scores": torch.randperm(60) / 60}


def kept(boxes, scores, limit=0.4):
    order, chosen = scores.argsort(descending=True).tolist(), []
    while order:
        first = order.pop(0)
        chosen.append(first)
        order = [i for i in order if overlap(boxes[first], boxes[i]) <= limit]
    return torch.tensor(chosen)


def overlap(a, b):
    sides = (torch.minimum(a[2:], b[2:]) - torch.maximum(a[:2], b[:2])).clamp(min=0)
    shared = float(sides[0] * sides[1])
    return shared / (float((a[2:] - a[:2]).prod() + (b[2:] - b[:2]).prod()) - shared)


def intervals():
    return {
        "x": n(40, 24),
        "geometry": torch.stack([torch.arange(40) // 5 % 4, torch.arange(40) // 20, torch.zeros(40), torch.zeros(40)], 1).int(),
        "starts": torch.arange(0, 40, 5, dtype=torch.int32),
        "lengths": torch.full((8,), 5, dtype=torch.int32),
    }


def pooled(x, geometry, starts, lengths):
    out = torch.zeros(1, 1, 4, 2, x.shape[1], dtype=x.dtype)
    for start, length in zip(starts.tolist(), lengths.tolist()):
        a, b, c, d = geometry[start].tolist()
        out[d, c, a, b] = x[start : start + length].sum(0)
    return out


def spread(x, geometry, starts, lengths):
    out = torch.zeros(40, x.shape[-1], dtype=x.dtype)
    for start, length in zip(starts.tolist(), lengths.tolist()):
        a, b, c, d = geometry[start].tolist()
        out[start : start + length] = x[d, c, a, b]
    return out


VOXELS = VoxelizationParameter((0.0, 0.0, 0.0), (4.0, 4.0, 4.0), (1.0, 1.0, 1.0), 50)


def voxel_sums(points):
    """Per voxel, by place: how many points and their sum. The order of voxels and of points in them is the atomics' choice."""
    count, features, indices, per_voxel = generate_voxels(points, VOXELS)
    counts, sums = torch.zeros(64, dtype=torch.int32), torch.zeros(64, 4)
    for i in range(int(count)):
        x, y, z = indices[i, :3].tolist()
        counts[x * 16 + y * 4 + z] = per_voxel[i]
        sums[x * 16 + y * 4 + z] = features[i, : per_voxel[i]].sum(0)
    return counts, sums


def voxel_sums_reference(points):
    place = points[:, :3].floor().long()
    place = place[:, 0] * 16 + place[:, 1] * 4 + place[:, 2]
    counts = torch.bincount(place, minlength=64).int()
    return counts, torch.zeros(64, 4, dtype=points.dtype).index_add_(0, place, points)


def packed(w):
    """Eight 4-bit numbers of 8 rows in one int32."""
    w = w.reshape(w.shape[0] // 8, 8, w.shape[1])
    return sum(w[:, i].to(torch.int32) << 4 * i for i in range(8))


def through_4_bits(x, kind):
    quantized, state = quantize_4bit(x, blocksize=64, quant_type=kind)
    return dequantize_4bit(quantized, state, blocksize=64, quant_type=kind)


NF4 = [-1.0, -0.6961928, -0.52507305, -0.39491749, -0.28444138, -0.18477343, -0.09105004, 0.0,
       0.0795803, 0.1609302, 0.2461123, 0.33791524, 0.44070983, 0.5626170, 0.72295684, 1.0]  # fmt: skip


def nearest_nf4(x):
    blocks = x.reshape(-1, 64)
    largest = blocks.abs().amax(1, keepdim=True)
    codes = torch.tensor(NF4, dtype=x.dtype)
    return (codes[(blocks / largest)[..., None].sub(codes).abs().argmin(-1)] * largest).reshape(x.shape)


CASES = {
    "silu_and_mul": forward(lambda: {"x": n(9, 200)}, silu_and_mul, lambda x: F.silu(x[:, :100]) * x[:, 100:]),
    "gelu_tanh_and_mul": forward(
        lambda: {"x": n(9, 200)}, gelu_tanh_and_mul, lambda x: F.gelu(x[:, :100], approximate="tanh") * x[:, 100:]
    ),
    "rms_norm": forward(lambda: {"x": n(9, 100), "w": n(100)}, lambda x, w: rms_norm(x, w, 1e-6), rms),
    "fused_add_rms_norm": forward(
        lambda: {"x": n(9, 100), "r": n(9, 100), "w": n(100)},
        lambda x, r, w: fused_add_rms_norm(x, r, w, 1e-6),
        lambda x, r, w: (rms(x + r, w), x + r),
    ),
    "gemma_rms_norm": forward(lambda: {"x": n(9, 100), "w": n(100)}, lambda x, w: gemma_rms_norm(x, w, 1e-6), lambda x, w: rms(x, w + 1)),
    "rotary_embedding": forward(
        lambda: {"positions": torch.randint(0, 20, (7,)), "q": n(7, 128), "k": n(7, 64), "angles": n(20, 32)},
        lambda positions, q, k, angles: rotary_embedding(positions, q, k, 32, angles),
        rotated,
    ),
    "paged_attention": forward(
        lambda: {"q": n(3, 4, 32).half(), **cache()},
        lambda q, k, v, table, lengths: paged_attention(q, k, v, table, lengths, scale=32**-0.5),
        attend,
        bound=2e-3,
    ),
    "varlen_attention": forward(
        lambda: {"q": n(sum(LENGTHS), 4, 32).half(), **cache(), "starts": torch.tensor([0, 5, 38, 54], dtype=torch.int32)},
        varlen,
        attend_all,
        bound=2e-3,
    ),
    "scaled_fp8_quant": forward(
        lambda: {"x": n(9, 64), "scale": torch.tensor([0.02])},
        lambda x, scale: scaled_fp8_quant(x, scale)[0].float(),
        lambda x, scale: (x / scale).clamp(-448, 448).float().to(torch.float8_e4m3fn).double(),
        bound=2e-3,
    ),
    "scaled_int8_quant": forward(
        lambda: {"x": n(9, 64), "scale": torch.tensor([0.02])},
        lambda x, scale: scaled_int8_quant(x, scale)[0].float(),
        lambda x, scale: (x / scale).clamp(-128, 127).trunc(),
        bound=2e-3,
    ),
    "quantize_4bit nf4": forward(lambda: {"x": n(1024)}, lambda x: through_4_bits(x, "nf4"), nearest_nf4, bound=1e-4),
    "scaled_gemm int8": forward(
        lambda: {
            "a": torch.randint(-9, 9, (33, 64)).to(torch.int8),
            "b": torch.randint(-9, 9, (64, 64)).to(torch.int8),
            "sa": torch.rand(1),
            "sb": torch.rand(1),
        },
        lambda a, b, sa, sb: scaled_gemm(a, b, sa, sb, torch.float16).float(),
        lambda a, b, sa, sb: (a.double() @ b.double() * sa * sb).half().double(),
        bound=1e-3,
    ),
    "mixed_precision_gemm 4 bits": forward(
        lambda: {"x": n(33, 128).half(), "w": torch.randint(0, 16, (128, 64)), "s": torch.rand(1, 64).half()},
        lambda x, w, s: mixed_precision_gemm(x, packed(w), s, None, 4, 8, 128),
        lambda x, w, s: x @ ((w - 8).double() * s),
        bound=1e-3,
    ),
    "nms": forward(boxes, lambda boxes, scores: nms(boxes, scores, 0.4), kept),
    "bev_pool": forward(intervals, lambda x, geometry, starts, lengths: bev_pool(x, geometry, starts, lengths, 1, 1, 4, 2), pooled),
    "bev_pool backward": forward(
        lambda: {**intervals(), "x": n(1, 1, 4, 2, 24)},
        lambda x, geometry, starts, lengths: bev_pool_backward(x, geometry, starts, lengths),
        spread,
    ),
    "generate_voxels": forward(lambda: {"points": torch.rand(500, 4) * 4}, voxel_sums, voxel_sums_reference),
    "copy_blocks": forward(
        lambda: {"k": n(2, 8, PAGE, 2, 32).half(), "v": n(2, 8, PAGE, 2, 32).half(), "pairs": torch.tensor([[0, 5], [3, 7]])},
        lambda k, v, pairs: copied(k, v, pairs, "kernel"),
        lambda k, v, pairs: copied(k, v, pairs, "torch"),
        bound=0.0,
    ),
    "reshape_and_cache": forward(
        lambda: {"key": n(9, 2, 32).half(), "value": n(9, 2, 32).half(), "slots": torch.randperm(64)[:9]}, cache_with, cached, bound=0.0
    ),
}
