"""The suspects of exercise 15, in the exercise's order: ten kernels with one fault each, one a rule, and three without."""

from __future__ import annotations

import torch

from kit.ghosts import ghost
from kit.graders.hunt import flat, heads, inputs, mended, rows
from kit.graders.hunt.suspect import Sign, Suspect, given, is_paper, signs

__all__ = ["RULES", "SUSPECTS", "Sign", "Suspect", "given", "is_paper", "signs"]
RULES = range(1, 11)


def _as_first(*args):
    return tuple(args[0].shape), args[0].dtype


def _norm(x, w):
    x = x.double()
    return x * (x.square().mean(-1, keepdim=True) + 1e-6).rsqrt() * w


def _smooth(x):
    e = x.double().exp()
    return (e + torch.nn.functional.pad(e[:, :-1], (1, 0))) / 2


_LISTED = (
    Suspect(
        "gate_rows",
        9,
        rows.gate_rows,
        lambda gate, up: torch.nn.functional.silu(gate.double()) * up,
        _as_first,
        lambda device: inputs.gates(device, 4, 100),
        inputs.gate_row_cases,
        look="In its test the two inputs lie in memory in the same way: give it inputs that do not, and compare with the reference.",
        mended=mended.gate_rows,
        shown=lambda device: inputs.gate_row_cases(device)["up in a tensor of its own"],
    ),
    Suspect(
        "scale_columns",
        "right",
        flat.scale_columns,
        lambda x, gamma: x.double() * gamma,
        _as_first,
        lambda device: inputs.columns(device, 4, 768),
        inputs.column_cases,
        look="Its names are a generator's, and names are no fault: is there a number in its body that belongs to one shape?",
    ),
    Suspect(
        "smooth_rows",
        5,
        rows.smooth_rows,
        _smooth,
        _as_first,
        lambda device: (inputs.normal(device, 4, 200),),
        inputs.real_rows(inputs.contiguous_row_cases),
        look="Its test launches one warp: run kit.dry_run, or the kernel itself, at a size that launches several.",
        mended=mended.smooth_rows,
        shown=lambda device: (inputs.normal(device, 4, 2000),),
    ),
    Suspect(
        "last_tokens",
        1,
        flat.last_tokens,
        lambda ring, pos, n: ring[(pos - n + torch.arange(n, device=ring.device)) % ring.numel()],
        lambda ring, pos, n: ((n,), ring.dtype),
        lambda device: inputs.ring(device, 128, 100, 40),
        inputs.ring_cases,
        look="Take a small ring, write down the slots by hand for every kind of pos, and ask kit.dry_run which ones the kernel reads.",
        mended=mended.last_tokens,
        shown=lambda device: inputs.ring(device, 128, 7, 20),
    ),
    Suspect(
        "norm_rows",
        "right",
        rows.norm_rows,
        _norm,
        _as_first,
        lambda device: inputs.norm(device, 4, 100),
        inputs.norm_cases,
        look="What do its masked lanes hold, what does it divide by, in which dtype does it add? Ask kit.build at its largest row.",
    ),
    Suspect(
        "read_blocks",
        7,
        heads.read_blocks,
        lambda cache, table: cache[table.long()],
        lambda cache, table: ((table.numel(), cache.shape[1]), cache.dtype),
        lambda device: inputs.blocks(device, 64, 256, [5, 0, 63]),
        inputs.block_cases,
        look="Its test is small. Run kit.dry_run at the largest size that it serves: a kit.ghost needs no memory.",
        mended=mended.read_blocks,
        shown=lambda device: inputs.block_cases(device)["block 32,768 of 65,536 on paper"],
    ),
    Suspect(
        "mean_square",
        10,
        rows.mean_square,
        lambda x: x.double().square().mean(-1),
        lambda x: ((x.shape[0],), torch.float32),
        lambda device: (inputs.normal(device, 3, 200, dtype=torch.float16),),
        inputs.mean_square_cases,
        look="Its test draws well-scaled numbers. Read the dtype of every intermediate in kit.build(...).ttir, and try hard inputs.",
        mended=mended.mean_square,
        shown=lambda device: inputs.mean_square_cases(device)["elements of 300"],
    ),
    Suspect(
        "bias_relu",
        2,
        flat.bias_relu,
        lambda x, bias: (x.double() + bias).clamp(min=0),
        _as_first,
        lambda device: inputs.columns(device, 4, 768),
        inputs.column_cases,
        look="Its test has one shape. Give it others, and compare with the reference.",
        mended=mended.bias_relu,
        shown=lambda device: inputs.columns(device, 4, 1024),
    ),
    Suspect(
        "softmax_rows",
        3,
        rows.softmax_rows,
        lambda x: x.double().softmax(-1),
        _as_first,
        lambda device: (inputs.normal(device, 2, 1000),),
        inputs.softmax_cases,
        look="Its values are right at every size. Ask kit.build what the compiler made of it at both ends of the sizes that it serves.",
        mended=mended.softmax_rows,
        shown=lambda device: (ghost((2, 32_768), torch.float32),),
        cost=("spills",),
    ),
    Suspect(
        "scale_heads",
        6,
        heads.scale_heads,
        lambda x, w: x.double() * w[:, None],
        _as_first,
        lambda device: inputs.heads(device, 2, 4, 1024),
        inputs.head_cases,
        look="Look at its launch with the largest sizes that it serves: kit.dry_run takes a kit.ghost, which needs no memory.",
        mended=mended.scale_heads,
        shown=lambda device: inputs.head_cases(device)["512 x 128 x 1024 on paper"],
    ),
    Suspect(
        "mirror_rows",
        "right",
        rows.mirror_rows,
        lambda x: x.double() + x.flip(-1),
        _as_first,
        lambda device: (inputs.normal(device, 4, 200),),
        inputs.contiguous_row_cases,
        look="It does read what it wrote: ask kit.dry_run, at a size with several warps, whether the order is kept.",
    ),
    Suspect(
        "mask_tail",
        4,
        flat.mask_tail,
        lambda x, length: x.where(torch.arange(x.numel(), device=x.device) < length, float("-inf")),
        _as_first,
        lambda device: inputs.tails(device, 64, 40),
        inputs.tail_cases,
        look="Its values are right at every size. Launch it as decoding would, token by token, inside kit.watch.",
        mended=mended.mask_tail,
        shown=lambda device: inputs.tails(device, 64, 41),
        cost=("variants",),
    ),
    Suspect(
        "gate_heads",
        8,
        heads.gate_heads,
        lambda x, g: x.double() * g[:, :, None],
        _as_first,
        lambda device: inputs.gated(device, 4, 32, 128),
        inputs.gate_head_cases,
        look="Its values are right at every size. Count the programs, and the elements of one, at both ends of the tokens that it serves.",
        mended=mended.gate_heads,
        shown=lambda device: inputs.gate_head_cases(device)["8,192 x 32 x 128 on paper"],
        cost=("programs",),
    ),
)
SUSPECTS = {suspect.name: suspect for suspect in _LISTED}
