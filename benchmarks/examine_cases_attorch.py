"""attorch's kernels (BobMcDear/attorch): softmax, RMSNorm, LayerNorm, an activation. The launches are ours, after attorch's layers."""

from __future__ import annotations

import torch
from attorch.act_kernels import act_func_forward_kernel
from attorch.layer_norm_kernels import layer_norm_forward_kernel
from attorch.rms_norm_kernels import rms_norm_forward_kernel
from attorch.softmax_kernels import softmax_forward_kernel
from examine_case import TRUE, Foreign
from triton import cdiv

FULL = [{"rows": 1, "columns": 1000}, {"rows": 100, "columns": 1000}, {"rows": 8192, "columns": 4096}, {"rows": 1 << 20, "columns": 4096}]


def softmax(rows, columns):
    x = torch.randn(rows, columns)
    softmax_forward_kernel[lambda meta: (cdiv(rows, meta["BLOCK_SIZE_BATCH"]),)](
        x, torch.empty_like(x), rows, columns, *x.stride(), log=False
    )


def rms_norm(rows, columns):
    x, w, y = torch.randn(rows, columns), torch.randn(columns), torch.empty(rows, columns)
    rms_norm_forward_kernel[lambda meta: (cdiv(rows, meta["BLOCK_SIZE_BATCH"]),)](
        x, w, torch.empty(rows), y, rows, columns, *x.stride(), *y.stride(), 1e-6, scale_by_weight=True, save_stats=True
    )


def layer_norm(rows, columns):
    x, w, b, y = torch.randn(rows, columns), torch.randn(columns), torch.randn(columns), torch.empty(rows, columns)
    layer_norm_forward_kernel[lambda meta: (cdiv(rows, meta["BLOCK_SIZE_BATCH"]),)](
        *(x, w, b, torch.empty(rows), torch.empty(rows), y, rows, columns, *x.stride(), *y.stride(), 1e-5),
        **{"scale_by_weight": True, "add_bias": True, "save_stats": True},
    )


def gelu(n):
    x = torch.randn(n)
    act_func_forward_kernel[lambda meta: (cdiv(n, meta["BLOCK_SIZE"]),)](x, torch.empty_like(x), n, 0.0, 0, act_func="gelu", dropout=False)


def rms_norm_reference(x, w, rms, y, *rest):
    return {"output_pointer": x * torch.rsqrt(x.pow(2).mean(-1, keepdim=True) + 1e-6) * w}


def layer_norm_reference(x, w, b, *rest):
    return {"output_pointer": torch.nn.functional.layer_norm(x, x.shape[-1:], w, b, 1e-5)}


ROW = (TRUE, "row * stride is an int32 product: past 524,288 rows of 4,096 it wraps, and the launcher does not refuse them")
COUNT = (TRUE, "batch_dim bounds the rows alone, whole rows are masked by it, and no access is wider for knowing it")
LANES = (TRUE, "the load has no other=, and its masked lanes are summed: undefined by the documentation, 0 as compiled today")
JUDGED = {"7:overflow": ROW, "4:class for nothing": COUNT, "9:masked lane": LANES}

CASES = {
    "softmax": Foreign(softmax_forward_kernel, softmax, FULL, lambda x, *rest: x.softmax(-1), JUDGED),
    "rms_norm": Foreign(rms_norm_forward_kernel, rms_norm, FULL, rms_norm_reference, JUDGED),
    "layer_norm": Foreign(layer_norm_forward_kernel, layer_norm, FULL, layer_norm_reference, JUDGED),
    "gelu": Foreign(
        *(act_func_forward_kernel, gelu, {"n": [10, 1 << 22, 3 << 30]}, lambda x, *rest: torch.nn.functional.gelu(x)),
        {"7:overflow": (TRUE, "pid * BLOCK_SIZE is an int32 product: past 2^31 elements it wraps, 12 GiB of float32")},
    ),
}
