"""Exercise 14: what the page of the capstone asks for, in float64, and the same with each likely slip.

A wrong answer is compared with what each slip would give: the slip that gives just that is the likely cause.
"""

from __future__ import annotations

from dataclasses import dataclass

import torch


@dataclass(frozen=True)
class Given:
    """The inputs of a call, on any device: `qkv` (tokens, (group + 2) * kv_heads * size), caches (blocks, block_size, kv_heads, size)."""

    qkv: torch.Tensor
    positions: torch.Tensor
    slots: torch.Tensor
    cos_sin: torch.Tensor
    q_weight: torch.Tensor
    k_weight: torch.Tensor
    k_cache: torch.Tensor
    v_cache: torch.Tensor
    eps: float

    @property
    def group(self):
        """Query heads of each key head."""
        return self.qkv.shape[1] // (self.k_cache.shape[2] * self.k_cache.shape[3]) - 2


def norm_rope(first, second, w_first, w_second, cos, sin, eps, slip="", padded=0):
    """(first, second), float64, of y = rotated(x / sqrt(mean(x²) + eps) * w); halves (..., size // 2).

    `padded` is how many lanes a block has for a head, for the slip that takes the mean over them.
    """
    first, second, w_first, w_second, cos, sin = (x.double() for x in (first, second, w_first, w_second, cos, sin))
    if slip == "weight last":
        first, second = _rotated(first, second, cos, sin)
    squares = first.square() + second.square()
    count = {"sum": 1, "mean over the block": padded or 2 * first.shape[-1]}.get(slip, 2 * first.shape[-1])
    mean = squares.sum(-1, keepdim=True) / count
    scales = {
        "eps outside": 1 / (mean.sqrt() + eps),
        "no eps": mean.rsqrt(),
        "no norm": torch.ones_like(mean),
        "no root": 1 / (mean + eps),
        "half a mean": (first.square().mean(-1, keepdim=True) + eps).rsqrt(),
    }
    scale = scales.get(slip, (mean + eps).rsqrt())
    first, second = first * scale, second * scale
    if slip == "a mean for each half":
        unscaled = (first / scale, second / scale)
        first, second = (x * (x.square().mean(-1, keepdim=True) + eps).rsqrt() for x in unscaled)
    if slip == "weights exchanged":
        w_first, w_second = w_second, w_first
    if slip == "one half's weight":
        w_second = w_first
    if slip == "weight + 1":
        w_first, w_second = w_first + 1, w_second + 1
    if slip != "no weight":
        first, second = first * w_first, second * w_second
    if slip in ("weight last", "no rotation"):
        return first, second
    if slip == "sign":
        sin = -sin
    if slip == "cos and sin exchanged":
        cos, sin = sin, cos
    first, second = _rotated(first, second, cos, sin, slip)
    return (second, first) if slip == "halves exchanged" else (first, second)


def _rotated(first, second, cos, sin, slip=""):
    turned = first * cos - second * sin
    if slip == "first half overwritten":
        return turned, second * cos + turned * sin
    return turned, second * cos + first * sin


# Slips of the arithmetic: what is wrong, and the sentence for the reader.
ARITHMETIC = {
    "eps outside": "Is eps added to the root? It stands inside: x / sqrt(mean(x²) + eps).",
    "no eps": "Is eps left out? A head of zeros then divides by 0.",
    "sum": "Is the sum of the squares taken for their mean? Divide by size.",
    "mean over the block": "Is the mean taken over the lanes of the block? A head has `size` elements; the other lanes are 0.",
    "half a mean": "Is the mean taken over the first half only? A head is both halves.",
    "a mean for each half": "Has each half a mean of its own? One mean is taken over both: add the squares of the halves first.",
    "no norm": "Is the division by sqrt(mean(x²) + eps) missing?",
    "no root": "Is the root missing? y = x / sqrt(mean(x²) + eps), which is x * tl.rsqrt(mean + eps).",
    "no weight": "Is the weight left out?",
    "weight + 1": "The weight is a factor as it stands, without 1 added.",
    "weights exchanged": "Are the weights of the halves exchanged?",
    "one half's weight": "Does the second half take the first half's weight?",
    "weight last": "The order matters: normalise and weight first, then rotate. Each element takes its own weight, not its partner's.",
    "sign": "Is the rotation the other way round? (a, b) → (a cos - b sin, b cos + a sin).",
    "cos and sin exchanged": "Are cos and sin exchanged?",
    "no rotation": "Is the rotation missing?",
    "first half overwritten": "Does the second half take the first half's new value? Both are made of the old ones.",
    "halves exchanged": "Are the two halves returned in the other order?",
}


def written(x, slip="", padded=0):
    """(qkv, k_cache, v_cache) in float64 after the call on the Given `x`; `slip` is a name of ARITHMETIC or WRITING."""
    _, block_size, kv, size = x.k_cache.shape
    heads, tokens = x.group * kv, x.qkv.shape[0]
    rows = x.qkv.double().reshape(tokens, heads + 2 * kv, size)
    order = torch.arange(heads + 2 * kv, device=rows.device)
    if slip == "grouped rows":
        by_key = order.reshape(kv, x.group + 2)
        order = torch.cat((by_key[:, : x.group].flatten(), by_key[:, x.group], by_key[:, x.group + 1]))
    q, k, v = rows[:, order].split((heads, kv, kv), dim=1)
    if slip == "k and v exchanged":
        k, v = v, k
    cos, sin = _turns(x, slip, size)
    w_q, w_k = x.q_weight, x.k_weight
    if slip == "q and k weights exchanged":
        w_q, w_k = w_k, w_q
    elif slip == "the queries' weight for keys":
        w_k = w_q
    done_q = q if slip == "queries as they are" else _heads(q, w_q, cos, sin, x.eps, slip, padded)
    done_k = k if slip == "keys as they are" else _heads(k, w_k, cos, sin, x.eps, slip, padded)
    done_v = _heads(v, w_k, cos, sin, x.eps, slip, padded) if slip == "values normalised" else v
    live = x.slots >= 0
    qkv, k_cache, v_cache = x.qkv.double().clone(), x.k_cache.double().clone(), x.v_cache.double().clone()
    after = rows.clone()
    after[:, order[:heads]] = done_q
    if slip == "keys back in place":
        after[:, order[heads : heads + kv]] = done_k
    qkv[live] = after.reshape(qkv.shape)[live]
    if slip == "the next key head":
        done_k, done_v = done_k.roll(1, 1), done_v.roll(1, 1)
    block, place = _places(x, slip, block_size, live)
    k_cache[block, place], v_cache[block, place] = done_k[live], done_v[live]
    return qkv, k_cache, v_cache


def _turns(x, slip, size):
    """cos and sin of each token, (tokens, 1, size // 2)."""
    tokens, rows = len(x.positions), len(x.cos_sin)
    number = torch.arange(tokens, device=x.positions.device) % rows if slip == "the token's number for its position" else x.positions.long()
    table = x.cos_sin[number][:, None]
    if slip == "every second of cos_sin":
        return table[..., 0::2], table[..., 1::2]
    return table[..., : size // 2], table[..., size // 2 :]


def _heads(x, w, cos, sin, eps, slip, padded):
    """norm_rope of whole heads, (tokens, heads, size)."""
    half = x.shape[-1] // 2
    if slip == "pairs of neighbours":
        first, second = norm_rope(x[..., 0::2], x[..., 1::2], w[0::2], w[1::2], cos, sin, eps)
        return torch.stack((first, second), -1).flatten(-2)
    first, second = norm_rope(x[..., :half], x[..., half:], w[:half], w[half:], cos, sin, eps, slip, padded)
    return torch.cat((first, second), -1)


def _places(x, slip, block_size, live):
    slots = x.slots.long()
    if slip == "the token's number for its slot":
        slots = torch.arange(len(slots), device=slots.device)
    slots = slots[live]
    if slip == "block and place exchanged":
        return slots % block_size % len(x.k_cache), slots // block_size % block_size
    return slots // block_size, slots % block_size


# Slips of the kernel around the arithmetic.
WRITING = {
    "pairs of neighbours": "Are neighbours rotated with each other? Element i of the first half goes with element i of the second.",
    "every second of cos_sin": "A row of cos_sin has all its cosines first, then its sines: they do not alternate.",
    "the token's number for its position": "Is the token's number taken for its position? It is in positions_ptr.",
    "the token's number for its slot": "Is the token's number taken for its slot? It is in slots_ptr.",
    "block and place exchanged": "Are block and place exchanged? Slot s is place s % block_size of block s // block_size.",
    "q and k weights exchanged": "Are the weights of queries and keys exchanged?",
    "the queries' weight for keys": "Do the keys take the queries' weight? They have one of their own.",
    "queries as they are": "Are the queries left as they are? They are normalised and rotated, too.",
    "keys as they are": "Are the keys written as they are? They are normalised and rotated, as queries are.",
    "values normalised": "Values go into the cache as they are: neither normalised nor rotated.",
    "k and v exchanged": "Are keys and values exchanged? A row of qkv holds all query heads, then all key heads, then all value heads.",
    "keys back in place": "Keys and values in qkv stay as they are: only queries are written back.",
    "grouped rows": "A row of qkv holds all query heads first, then all key heads, then all value heads: they are not grouped by key head.",
    "the next key head": "Do keys and values go to the cache's head of the same number?",
}
SLIPS = {**ARITHMETIC, **WRITING}


def same(got, wanted, step):
    """Where `got` is `wanted` (float64) up to a relative `step`, or up to what float32 loses where large numbers cancel: 1e-5 of the
    largest of the last axis. A NaN is a NaN."""
    got, largest = got.double(), wanted.abs().nan_to_num(0.0).amax(-1, keepdim=True) if wanted.numel() else 0.0
    return ((got - wanted).abs() <= wanted.abs() * step + largest * 1e-5) | (got.isnan() & wanted.isnan())


def roughly(got, wanted):
    """True when `got` is `wanted` up to 2 % of the largest of its last axis: what rounding on the way gives, and no other formula."""
    largest = wanted.abs().amax(-1, keepdim=True) if wanted.numel() else 0.0
    return bool(((got.double() - wanted).abs() <= 0.02 * largest).all())
