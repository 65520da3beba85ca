"""The kernels of Triton's tutorials 01 to 06 (python/tutorials of triton-lang/triton). The launches are ours, after the tutorials' own."""

from __future__ import annotations

import torch
import triton
from examine_case import TRUE, Foreign
from tutorial_01 import add_kernel
from tutorial_02 import softmax_kernel
from tutorial_03 import matmul_kernel
from tutorial_04 import _dropout, _seeded_dropout
from tutorial_05 import _layer_norm_bwd_dwdb, _layer_norm_bwd_dx_fused, _layer_norm_fwd_fused
from tutorial_06 import _attn_fwd

FULL = [{"rows": 1, "columns": 781}, {"rows": 1823, "columns": 781}, {"rows": 8192, "columns": 4096}, {"rows": 1 << 20, "columns": 4096}]
# A program of the persistent softmax loops over its rows, on paper too: 1,048,576 of them do not end in minutes.
LOOPED = [*FULL[:2], {"rows": 8192, "columns": 4096}]


def add(n):
    x, y = torch.randn(n), torch.randn(n)
    add_kernel[lambda meta: (triton.cdiv(n, meta["BLOCK_SIZE"]),)](x, y, torch.empty_like(x), n, BLOCK_SIZE=1024)


def softmax(rows, columns):
    x = torch.randn(rows, columns)
    y = torch.empty_like(x)
    programs = min(132 * 8, rows)  # the tutorial asks the compiler how many programs fit
    block = triton.next_power_of_2(columns)
    softmax_kernel[(programs, 1, 1)](y, x, x.stride(0), y.stride(0), rows, columns, BLOCK_SIZE=block, num_stages=4, num_warps=8)


def matmul(m, n, k):
    a, b = torch.randn(m, k, dtype=torch.float16), torch.randn(k, n, dtype=torch.float16)
    c = torch.empty((m, n), dtype=torch.float16)
    strides = (*a.stride(), *b.stride(), *c.stride())
    matmul_kernel[lambda meta: (triton.cdiv(m, meta["BLOCK_SIZE_M"]) * triton.cdiv(n, meta["BLOCK_SIZE_N"]),)](
        a, b, c, m, n, k, *strides, ACTIVATION=""
    )


def dropout(n):
    x, keep = torch.randn(n), torch.ones(n, dtype=torch.int32)
    _dropout[lambda meta: (triton.cdiv(n, meta["BLOCK_SIZE"]),)](x, keep, torch.empty_like(x), n, 0.5, BLOCK_SIZE=1024)


def seeded_dropout(n):
    x = torch.randn(n)
    _seeded_dropout[lambda meta: (triton.cdiv(n, meta["BLOCK_SIZE"]),)](x, torch.empty_like(x), n, 0.5, 123, BLOCK_SIZE=1024)


def layer_norm(rows, columns):
    x, w, b = torch.randn(rows, columns), torch.rand(columns), torch.rand(columns)
    block = min(65536 // 4, triton.next_power_of_2(columns))
    warps = min(max(block // 256, 1), 8)
    _layer_norm_fwd_fused[(rows,)](
        x, torch.empty_like(x), w, b, torch.empty(rows), torch.empty(rows), columns, columns, 1e-5, BLOCK_SIZE=block, num_warps=warps
    )


def layer_norm_backward(rows, columns):
    x, w, dy = torch.randn(rows, columns), torch.rand(columns), torch.randn(rows, columns)
    block = min(65536 // 4, triton.next_power_of_2(columns))
    group = 256 if columns <= 1024 else 128 if columns <= 4096 else 96
    dw, db, locks = torch.zeros(group, columns), torch.zeros(group, columns), torch.zeros(2 * group, dtype=torch.int32)
    _layer_norm_bwd_dx_fused[(rows,)](
        *(torch.empty_like(x), dy, dw, db, x, w, torch.randn(rows), torch.rand(rows), locks, columns, columns),
        **{"GROUP_SIZE_M": group, "BLOCK_SIZE_N": block, "num_warps": min(max(block // 256, 1), 8)},
    )


def layer_norm_sums(groups, columns):
    dw, db = torch.randn(groups, columns), torch.randn(groups, columns)
    out = torch.empty(columns), torch.empty(columns)
    _layer_norm_bwd_dwdb[lambda meta: [triton.cdiv(columns, meta["BLOCK_SIZE_N"])]](
        dw, db, *out, groups, columns, BLOCK_SIZE_M=32, BLOCK_SIZE_N=128, num_ctas=1
    )


def attention(context, heads):
    q, k, v = (torch.randn(1, heads, context, 64, dtype=torch.float16) for _ in range(3))
    out, m = torch.empty_like(q), torch.empty(1, heads, context)
    strides = (*q.stride(), *k.stride(), *v.stride(), *out.stride())
    _attn_fwd[lambda meta: (triton.cdiv(context, meta["BLOCK_M"]), heads, 1)](
        q, k, v, 0.5, m, out, *strides, 1, heads, context, HEAD_DIM=64, STAGE=3
    )


def attention_reference(q, k, v, scale, m, out, *rest):
    s = q @ k.transpose(-1, -2) * scale
    s = s.masked_fill(~torch.ones(s.shape[-2:], dtype=torch.bool, device=s.device).tril(), -torch.inf)
    return {"Out": s.softmax(-1) @ v}


def layer_norm_reference(x, y, w, b, *rest):
    return {"Y": torch.nn.functional.layer_norm(x, x.shape[-1:], w, b, 1e-5)}


def sums_reference(dw, db, *rest):
    return {"FINAL_DW": dw.sum(0), "FINAL_DB": db.sum(0)}


FLAT = {"7:overflow": (TRUE, "pid * BLOCK_SIZE is an int32 product: past 2^31 elements it wraps")}
LOOP = {"4:class for nothing": (TRUE, "n_rows ends a loop, and no access is wider for knowing it")}
ROWS = (TRUE, "row * stride is an int32 product: past 524,288 rows of 4,096 it wraps")

CASES = {
    "01 add": Foreign(add_kernel, add, {"n": [1, 98432, 1 << 28, 3 << 30]}, lambda x, y, *rest: x + y, FLAT),
    "02 softmax": Foreign(softmax_kernel, softmax, LOOPED, lambda y, x, *rest: x.softmax(-1), LOOP),
    "03 matmul": Foreign(
        matmul_kernel,
        matmul,
        [{"m": 1, "n": 512, "k": 512}, {"m": 100, "n": 512, "k": 500}, {"m": 8192, "n": 512, "k": 512}],
        lambda a, b, *rest: a @ b,
    ),
    "04 dropout": Foreign(
        *(_dropout, dropout, {"n": [10, 1 << 24, 3 << 30]}, lambda x, keep, *rest: torch.where(keep != 0, x * 2, 0.0), FLAT)
    ),
    "04 seeded dropout": Foreign(_seeded_dropout, seeded_dropout, {"n": [10, 1 << 24, 3 << 30]}, None, FLAT),
    "05 layer norm": Foreign(_layer_norm_fwd_fused, layer_norm, FULL, layer_norm_reference, {"7:overflow": ROWS}),
    "05 layer norm, backward": Foreign(_layer_norm_bwd_dx_fused, layer_norm_backward, FULL, None, {"7:overflow": ROWS}),
    "05 layer norm, sums": Foreign(
        *(_layer_norm_bwd_dwdb, layer_norm_sums, [{"groups": 256, "columns": 781}, {"groups": 128, "columns": 4096}]),
        sums_reference,
        {"8:few programs": (TRUE, "seven programs read all partial sums of 781 columns, 262 KB each, and 125 multiprocessors wait")},
    ),
    "06 attention": Foreign(
        _attn_fwd,
        attention,
        [{"context": 128, "heads": 2}, {"context": 1024, "heads": 8}, {"context": 4096, "heads": 32}],
        attention_reference,
        {
            "9:out of bounds": (TRUE, "no load or store checks a boundary, and nothing refuses a context that is no multiple of BLOCK_M"),
            "4:class for nothing": (TRUE, "H, the heads, divides the program's number and makes no access wider"),
        },
    ),
}
