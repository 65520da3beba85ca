"""Answers to exercise 15, the bug hunt."""

from __future__ import annotations

import re
from pathlib import Path

from kit.graders import hunt
from kit.tests.banks import Answer

WITHOUT_KERNEL = ("15.1", "15.2")

KEY = {
    "last_tokens": 1,
    "bias_relu": 2,
    "softmax_rows": 3,
    "mask_tail": 4,
    "smooth_rows": 5,
    "scale_heads": 6,
    "read_blocks": 7,
    "gate_heads": 8,
    "gate_rows": 9,
    "mean_square": 10,
}
RIGHT_ONES = ("scale_columns", "norm_rows", "mirror_rows")


def _accused(name, changed=(), cause="", default="right", text=None):
    given = {**KEY, **dict(changed)}
    return Answer("15.1", name, (text or f"return {given!r}.get(name, {default!r})",), cause)


# Inputs that show each fault, as source text: not those of the solution.
INPUTS = {
    "gate_rows": "(torch.randn(5, 64, device=device), torch.randn(5, 100, device=device)[:, 7:71])",
    "smooth_rows": "(torch.randn(1, 600, device=device),)",
    "last_tokens": "(torch.arange(9, dtype=torch.int32, device=device), 0, 1)",
    "read_blocks": "(kit.ghost((70_000, 40_000), torch.float16), torch.tensor([3, 69_999], dtype=torch.int32, device=device))",
    "mean_square": "(torch.full((1, 3), -1000.0, dtype=torch.float16, device=device),)",
    "bias_relu": "(torch.ones(2, 3, device=device), torch.arange(3.0, device=device))",
    "softmax_rows": "(torch.empty((1, 30_000), device='meta'),)",
    "scale_heads": "(torch.empty((4096, 16, 1024), device='meta'), torch.empty(16, device='meta'))",
    "mask_tail": "(torch.zeros(64, device=device), 1)",
    "gate_heads": "(kit.ghost((100_000, 8, 64), torch.float16), kit.ghost((100_000, 8), torch.float16))",
}


def _shown(name, changed=(), cause="", whole=False):
    """`changed` are texts of inputs, by kernel; the others are left open, or with `whole` those of INPUTS. None leaves one out."""
    given = {**(INPUTS if whole or not cause else {}), **dict(changed)}
    rows = [f"    {key!r}: lambda: {text}," for key, text in given.items() if text is not None]
    return Answer("15.2", name, ("\n".join(["made = {", *rows, "}", "return made[name]() if name in made else None"]),), cause)


# ---- 15.3
def _cell(name):
    """The cell of a suspect, from the module whose text the exercise shows."""
    for module in ("flat", "rows", "heads"):
        source = (Path(hunt.__file__).parent / f"{module}.py").read_text(encoding="utf-8")
        found = re.search(rf"^@triton\.jit[^\n]*\ndef {name}_kernel\(.*?^def {name}\(.*?(?=\n\n\n|\n\Z)", source, re.MULTILINE | re.DOTALL)
        if found:
            return found[0]
    raise AssertionError(name)


def _changed(name, *replace):
    text = _cell(name)
    for old, new in replace:
        assert old in text, old
        text = text.replace(old, new)
    return text


def _mended(title, *cells, cause="", about="", returned=None):
    """`cells`: (name, replacements...) of each kernel that is mended; `returned` another body of `mended`."""
    names = [cell[0] for cell in cells]
    kernels = "\n\n\n".join(_changed(*cell) for cell in cells)
    text = returned or "return {" + ", ".join(f"{name!r}: {name}" for name in names) + "}.get(name)"
    return Answer("15.3", title, (kernels, text), cause, about)


BARRIER = ("    before =", "    tl.debug_barrier()\n    before =")
SMOOTH = ("smooth_rows", BARRIER)
SQUARE = ("mean_square", ("acc += x * x", "acc += x.to(tl.float32) * x"))
SLOTS = ("last_tokens", ("(pos - n + offs) % size", "(pos + size - n + offs) % size"))
COLUMNS = (
    "bias_relu",
    ("xnumel, XBLOCK:", "xnumel, ks0, XBLOCK:"),
    ("% 768", "% ks0"),
    ("x.numel(), XBLOCK", "x.numel(), bias.numel(), XBLOCK"),
)
WARPS = ("softmax_rows", ("num_warps=4", "num_warps=max(4, BLOCK // 2048)"))
LENGTH = ("mask_tail", ('["n"]', '["n", "length"]'), ("length: tl.constexpr,", "length,"))
AXES = (
    "scale_heads",
    ("tl.program_id(1).to", "tl.program_id(OTHER).to"),
    ("tl.program_id(0) *", "tl.program_id(1) *"),
    ("OTHER", "0"),
    ("(triton.cdiv(n, 1024), num_seqs * num_heads)", "(num_seqs * num_heads, triton.cdiv(n, 1024))"),
)
CAST = ("read_blocks", ("(block * stride_cb).to(tl.int64)", "block.to(tl.int64) * stride_cb"))
STRIDE = (
    "gate_rows",
    ("    stride_m,  # from", "    stride_m,\n    stride_um,  # from"),
    ("up_ptr + row * stride_m", "up_ptr + row * stride_um"),
    ("gate.stride(0), out", "gate.stride(0), up.stride(0), out"),
)


def _tiles(rows):
    """gate_heads with a loop over `rows` heads of one token a program."""
    return (
        "gate_heads",
        ("    BLOCK: tl.constexpr,  # size or more", "    HEADS: tl.constexpr,\n    BLOCK: tl.constexpr,"),
        ("    head = tl.program_id(0).to(tl.int64) * num_heads + tl.program_id(1)\n", ""),
        ("    mask = offs < size\n", "    for i in range(HEADS):\n        pid_h = tl.program_id(1) * HEADS + i\n"),
        ("    g = tl.load(g_ptr + head)", "        head = tl.program_id(0).to(tl.int64) * num_heads + pid_h\n"
            "        real = pid_h < num_heads\n"
         "        mask = (offs < size) & real\n        g = tl.load(g_ptr + head, mask=real)"),
        ("    x = tl.load", "        x = tl.load"),
        ("    tl.store", "        tl.store"),
        ("    gate_heads_kernel[(num_tokens, num_heads)](x, g, out, num_heads, size, BLOCK, num_warps=1)",
         f"    HEADS = {rows}\n    grid = (num_tokens, triton.cdiv(num_heads, HEADS))\n"
         "    gate_heads_kernel[grid](x, g, out, num_heads, size, HEADS, BLOCK)"),
    )  # fmt: skip


WRONG = [
    _accused("nothing returned", text="KEY = {}", cause="Is the return missing"),
    _accused("a rule as text", {"gate_rows": "9"}, "A rule is a number"),
    _accused("a set", {"gate_rows": {9}}, "one whole number from 1 to 10"),
    _accused("rule 13", {"gate_rows": 13}, "one whole number from 1 to 10"),
    _accused("all right", text='return "right"', cause="Nobody is accused yet"),
    _accused("all accused", dict(zip(RIGHT_ONES, (2, 3, 5))), "Every kernel is accused"),
    _accused("a generator's names", {"scale_columns": 2}, "names are no fault"),
    _accused("other=0 taken for a leak", {"norm_rows": 9}, "What do its masked lanes hold"),
    _accused("reads what it wrote", {"mirror_rows": 5}, "whether the order is kept"),
    _accused("the view missed", {"gate_rows": "right"}, "In its test the two inputs lie in memory in the same way"),
    _accused("the race missed", {"smooth_rows": "right"}, "Its test launches one warp"),
    _accused("the remainder taken for a mask", {"last_tokens": 9}, "Take a small ring"),
    _accused("a late cast missed", {"read_blocks": "right"}, "Run kit.dry_run at the largest size"),
    _accused("an fp32 sum believed", {"mean_square": "right"}, "Read the dtype of every intermediate"),
    _accused("the literal missed", {"bias_relu": "right"}, "Its test has one shape"),
    _accused("the spill missed", {"softmax_rows": "right"}, "Ask kit.build what the compiler made of it"),
    _accused("the grid taken for prefill", {"scale_heads": 8}, "Look at its launch with the largest sizes"),
    _accused("the constexpr missed", {"mask_tail": "right"}, "inside kit.watch"),
    _accused("the small programs missed", {"gate_heads": "right"}, "Count the programs"),
    _accused("half way", text='return {"last_tokens": 1, "bias_relu": 2}.get(name)', cause="Those answered are right"),
    Answer("15.2", "nothing returned", ("pass",), "Is the return missing"),
    _shown("no tuple", {"smooth_rows": "torch.randn(1, 600, device=device)"}, "Return a tuple, (x,)"),
    _shown("with out", {"mean_square": "(torch.ones(1, 3, device=device).half(), torch.ones(1, device=device))"}, "out is the grader's"),
    _shown(
        "a right kernel", {"norm_rows": "(torch.ones(1, 3, device=device).half(), torch.ones(3, device=device).half())"}, "at fault at all"
    ),
    _shown(
        "a right kernel with the wrong dtype",
        {"scale_columns": "(torch.ones(2, 3, device=device), torch.ones(4, device=device))"},
        "at fault",
    ),
    _shown(
        "a view that is not served",
        {"bias_relu": "(torch.randn(3, 1000, device=device)[:, :768], torch.ones(768, device=device))"},
        "it serves",
    ),
    _shown("one missing", {"gate_heads": None}, "Those given are right", whole=True),
    _shown("its own test", {"smooth_rows": "(torch.randn(4, 200, device=device),)"}, "the sizes of its own test"),
    _shown(
        "a table of zeros",
        {"read_blocks": "(kit.ghost((70_000, 40_000), torch.float16), kit.ghost(2, torch.int32))"},
        "A ghost's integers are zeros",
    ),
    _shown("one warp still", {"smooth_rows": "(torch.randn(9, 256, device=device),)"}, "Its test launches one warp"),
    _shown("both halves again", {"gate_rows": "torch.randn(3, 300, device=device).split(150, dim=1)"}, "in the same way"),
    _shown(
        "a small cache",
        {"read_blocks": "(torch.ones(99, 9, device=device).half(), torch.ones(3, dtype=torch.int32, device=device))"},
        "at the largest size",
    ),
    _shown("no hard values", {"mean_square": "(torch.full((9, 2000), 200.0, dtype=torch.float16, device=device),)"}, "try hard inputs"),
    _shown("a multiple of 768 rows", {"bias_relu": "(torch.ones(1536, 768, device=device), torch.ones(768, device=device))"}, "one shape"),
    _shown("a short row", {"softmax_rows": "(torch.randn(99, 4096, device=device),)"}, "at both ends"),
    _shown(
        "just under the limit", {"scale_heads": "(kit.ghost((65_535, 1, 1024), torch.float32), kit.ghost(1, torch.float32))"}, "its launch"
    ),
    _shown("the same length", {"mask_tail": "(torch.zeros(64, device=device), 40)"}, "sizes of its own test"),
    _shown(
        "decode", {"gate_heads": "(torch.ones(1, 32, 128, device=device).half(), torch.ones(1, 32, device=device).half())"}, "both ends"
    ),
    _mended("nothing returned", SMOOTH, SQUARE, returned="smooth_rows, mean_square", cause="Is the return missing"),
    _mended("one only", SMOOTH, cause="One more"),
    _mended("three", SMOOTH, SQUARE, SLOTS, cause="None for all but two"),
    _mended("a right one", SMOOTH, ("norm_rows",), cause="There is nothing to mend"),
    _mended(
        "the kernels",
        SMOOTH,
        SQUARE,
        returned='return {"smooth_rows": smooth_rows_kernel, "mean_square": mean_square_kernel}.get(name)',
        cause="not the kernel",
    ),
    _mended("called", SMOOTH, SQUARE, returned='return {"smooth_rows": 1, "mean_square": 2}.get(name)', cause="without calling it"),
    _mended(
        "other arguments", ("smooth_rows", BARRIER, ("(x, out):", "(x, tmp, out):")), SQUARE, cause="the same arguments", about="answer"
    ),
    _mended(
        "a barrier too early",
        ("smooth_rows", ("    tl.store(tmp", "    tl.debug_barrier()\n    tl.store(tmp")),
        SQUARE,
        cause="Does a barrier stand between",
        about="memory",
    ),
    _mended(
        "cast after the square",
        SMOOTH,
        ("mean_square", ("x * x", "(x * x).to(tl.float32)")),
        cause="In which dtype is the square",
        about="values",
    ),
    _mended("another literal", SMOOTH, ("bias_relu", ("768", "1024")), cause="still a number in the body", about="memory"),
    _mended("size added after the remainder", SMOOTH, ("last_tokens", ("% size", "% size + size")), cause="What is % of a negative number"),
    _mended(
        "cast of the sum",
        SMOOTH,
        ("read_blocks", ("stride_cb).to(tl.int64)", "stride_cb + 0).to(tl.int64)")),
        cause="Which product",
        about="memory",
    ),
    _mended("up's stride for both", SQUARE, ("gate_rows", ("gate.stride(0)", "up.stride(0)")), cause="does each pointer use its own"),
    _mended(
        "axes 1 and 2",
        SQUARE,
        ("scale_heads", ("tl.program_id(1)", "tl.program_id(2)"), ("1024), num", "1024), 1, num")),
        cause="still on axis 1 or 2",
        about="launch",
    ),
    _mended(
        "fewer warps",
        SQUARE,
        ("softmax_rows", ("num_warps=4", "num_warps=max(1, BLOCK // 8192)")),
        cause="More warps, or a loop",
        about="launch",
    ),
    _mended(
        "a plain integer", SQUARE, ("mask_tail", ("length: tl.constexpr,", "length,")), cause="a plain integer by its class", about="launch"
    ),
    _mended("two heads a program", SQUARE, _tiles(2), cause="still own one small head", about="launch"),
    _mended("all heads, always", SQUARE, _tiles("num_heads"), cause="too few programs", about="launch"),
]

RIGHT = [
    _accused("a list, by rule", text=f'order = {list(KEY)!r}\nreturn order.index(name) + 1 if name in order else "right"'),
    _accused("with ifs", text="\n".join(f'if name == "{name}":\n    return {rule}' for name, rule in KEY.items()) + '\nreturn "right"'),
    _shown("other inputs"),
    _shown("on the meta device", {"gate_heads": "(torch.empty((9000, 16, 64), device='meta'), torch.empty((9000, 16), device='meta'))"}),
    _shown("a few columns more", {"bias_relu": "(torch.randn(3, 769, device=device), torch.randn(769, device=device))"}),
    _mended("slots and columns", SLOTS, COLUMNS),
    _mended("strides and barrier", STRIDE, SMOOTH),
    _mended("warps and axes", WARPS, AXES),
    _mended("cast and length", CAST, LENGTH),
    _mended("tiles and squares", _tiles("max(1, min(num_heads, triton.next_power_of_2(num_tokens * num_heads // 2048)))"), SQUARE),
]
