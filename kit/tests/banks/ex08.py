"""Answers to exercise 08, decode and prefill."""

from kit.tests.banks import Answer

WITHOUT_KERNEL = ("08.1", "08.3")


def _launch(name, text, cause=""):
    return Answer("08.1", name, (text,), cause)


def _norm(name, kernel, launch, cause="", about=""):
    return Answer("08.2", name, (kernel, launch), cause, about)


def _pick(name, text, cause=""):
    return Answer("08.3", name, (text,), cause)


TILES = "tiles_t, tiles_h = triton.cdiv(tokens, BLOCK_T), triton.cdiv(heads, BLOCK_H)\n"
BYTES = "2 * (2 * tokens * heads * size + tiles_h * tokens * size)"

# The kernel of 08.2 in its beats, each of which an answer may replace.
BEATS = {
    "rows": "rows = tl.program_id(0).to(tl.int64) * BLOCK_M + tl.arange(0, BLOCK_M)",
    "token": "offs_t, offs_h = rows // n_heads, rows % n_heads",
    "d": "offs_d = tl.arange(0, BLOCK_D)\nmask_d = offs_d < size",
    "mask": "mask = (rows < n_tokens * n_heads)[:, None] & mask_d[None, :]",
    "x_ptrs": "x_ptrs = x_ptr + (offs_t * stride_xt + offs_h * stride_xh)[:, None] + offs_d[None, :]",
    "y_ptrs": "y_ptrs = y_ptr + (offs_t * stride_yt + offs_h * stride_yh)[:, None] + offs_d[None, :]",
    "x": "x = tl.load(x_ptrs, mask=mask, other=0.0).to(tl.float32)",
    "w": "w = tl.load(w_ptr + offs_d, mask=mask_d, other=0.0)",
    "rms": "rms = tl.sqrt(tl.sum(x * x, axis=1) / size + 1e-6)[:, None]",
    "store": "tl.store(y_ptrs, x / rms * w[None, :], mask=mask)",
}


def _kernel(**beats):
    return "\n".join((BEATS | beats).values())


ARGS = "stride_xt, stride_xh, stride_yt, stride_yh, tokens, heads, size, BLOCK_M=BLOCK_M, BLOCK_D=BLOCK_D"
SIZES = "BLOCK_D = triton.next_power_of_2(size)\nBLOCK_M = 2_048 // BLOCK_D\n"
GRID = "(triton.cdiv(tokens * heads, BLOCK_M),)"


def _call(before="", sizes=SIZES, grid=GRID, x="x", y="y", options="", args=ARGS):
    return f"{before}{sizes}head_norm_kernel[{grid}]({x}, w, {y}, {args}{options})"


LOOP = """
offs_d = tl.arange(0, BLOCK_D)
mask_d = offs_d < size
w = tl.load(w_ptr + offs_d, mask=mask_d, other=0.0)
for i in range(BLOCK_M):
    row = tl.program_id(0).to(tl.int64) * BLOCK_M + i
    mask = mask_d & (row < n_tokens * n_heads)
    x_ptrs = x_ptr + row // n_heads * stride_xt + row % n_heads * stride_xh + offs_d
    x = tl.load(x_ptrs, mask=mask, other=0.0).to(tl.float32)
    rms = tl.sqrt(tl.sum(x * x, axis=0) / size + 1e-6)
    tl.store(y_ptr + row // n_heads * stride_yt + row % n_heads * stride_yh + offs_d, x / rms * w, mask=mask)
"""
OF_A_TOKEN = """
pid = tl.program_id(0).to(tl.int64)
offs_h, offs_d = tl.arange(0, BLOCK_M), tl.arange(0, BLOCK_D)
mask_d = offs_d < size
mask = (offs_h < n_heads)[:, None] & mask_d[None, :]
x_ptrs = x_ptr + pid * stride_xt + offs_h[:, None] * stride_xh + offs_d[None, :]
x = tl.load(x_ptrs, mask=mask, other=0.0).to(tl.float32)
w = tl.load(w_ptr + offs_d, mask=mask_d, other=0.0)
rms = tl.sqrt(tl.sum(x * x, axis=1) / size + 1e-6)[:, None]
tl.store(y_ptr + pid * stride_yt + offs_h[:, None] * stride_yh + offs_d[None, :], x / rms * w[None, :], mask=mask)
"""
TILE_OF_TOKENS = """
offs_t = tl.program_id(0).to(tl.int64) * BLOCK_M + tl.arange(0, BLOCK_M)
offs_d = tl.arange(0, BLOCK_D)
mask_d = offs_d < size
mask = (offs_t < n_tokens)[:, None] & mask_d[None, :]
x_ptrs = x_ptr + offs_t[:, None] * stride_xt + tl.program_id(1) * stride_xh + offs_d[None, :]
y_ptrs = y_ptr + offs_t[:, None] * stride_yt + tl.program_id(1) * stride_yh + offs_d[None, :]
x = tl.load(x_ptrs, mask=mask, other=0.0).to(tl.float32)
w = tl.load(w_ptr + offs_d, mask=mask_d, other=0.0)
scale = tl.rsqrt(tl.sum(x * x, axis=1) / size + 1e-6)
tl.store(y_ptrs, x * scale[:, None] * w[None, :], mask=mask)
"""
TILE_OF_HEADS = """
offs_h = tl.program_id(1) * BLOCK_M + tl.arange(0, BLOCK_M)
offs_d = tl.arange(0, BLOCK_D)
mask_d = offs_d < size
mask = (offs_h < n_heads)[:, None] & mask_d[None, :]
x_ptrs = x_ptr + tl.program_id(0).to(tl.int64) * stride_xt + offs_h[:, None] * stride_xh + offs_d[None, :]
y_ptrs = y_ptr + tl.program_id(0).to(tl.int64) * stride_yt + offs_h[:, None] * stride_yh + offs_d[None, :]
x = tl.load(x_ptrs, mask=mask, other=0.0).to(tl.float32)
w = tl.load(w_ptr + offs_d, mask=mask_d, other=0.0)
scale = tl.rsqrt(tl.sum(x * x, axis=1) / size + 1e-6)
tl.store(y_ptrs, x * scale[:, None] * w[None, :], mask=mask)
"""

WRONG = [
    _launch("rounded down", f"tiles_h = heads // BLOCK_H\nreturn tokens // BLOCK_T * tiles_h, {BYTES}", "triton.cdiv rounds up"),
    _launch(
        "over the product",
        TILES + f"return triton.cdiv(tokens * heads, BLOCK_T * BLOCK_H), {BYTES}",
        "Are tokens and heads multiplied before the division",
    ),
    _launch("heads not tiled", TILES + f"return tiles_t * heads, {BYTES}", "Does each head have a program of its own"),
    _launch("tokens not tiled", TILES + f"return tokens * tiles_h, {BYTES}", "How many tiles cover the tokens"),
    _launch(
        "cos and sin once",
        TILES + "return tiles_t * tiles_h, 2 * (2 * tokens * heads * size + tokens * size)",
        "Are cos and sin counted once",
    ),
    _launch(
        "cos and sin for each head",
        TILES + "return tiles_t * tiles_h, 2 * (2 * tokens * heads * size + heads * tokens * size)",
        "Are cos and sin counted for each head",
    ),
    _launch("no cos and sin", TILES + "return tiles_t * tiles_h, 4 * tokens * heads * size", "Are the cosines and sines left out"),
    _launch(
        "only cos",
        TILES + "return tiles_t * tiles_h, 2 * (2 * tokens * heads * size + tiles_h * tokens * size // 2)",
        "are both counted",
    ),
    _launch(
        "full rows of cos",
        TILES + "return tiles_t * tiles_h, 2 * (2 * tokens * heads * size + 2 * tiles_h * tokens * size)",
        "Does a row of cos have size numbers",
    ),
    _launch(
        "not written",
        TILES + "return tiles_t * tiles_h, 2 * (tokens * heads * size + tiles_h * tokens * size)",
        "Is only what is read counted",
    ),
    _launch(
        "elements", TILES + "return tiles_t * tiles_h, 2 * tokens * heads * size + tiles_h * tokens * size", "A float16 has two bytes."
    ),
    _launch("float32", TILES + f"return tiles_t * tiles_h, 2 * {BYTES}", "A float16 has two bytes, not four."),
    _launch(
        "masked lanes",
        TILES + "programs = tiles_t * tiles_h\nreturn programs, programs * BLOCK_T * size * (4 * BLOCK_H + 2)",
        "Masked lanes move nothing",
    ),
    _launch("a program's bytes", TILES + "return tiles_t * tiles_h, BLOCK_T * size * (4 * BLOCK_H + 2)", "x is read and y written once"),
    _launch("divided by /", f"tiles_h = -(-heads // BLOCK_H)\nreturn tokens / BLOCK_T * tiles_h, {BYTES}", "gives a float"),
    _launch("only the programs", TILES + "return tiles_t * tiles_h", "Two whole numbers are asked for"),
    _launch("nothing returned", TILES + f"both = tiles_t * tiles_h, {BYTES}", "Is the return missing"),
    _norm(
        "a head a program", None, _call(sizes="BLOCK_D, BLOCK_M = triton.next_power_of_2(size), 1\n"), "Does each head still have", "launch"
    ),
    _norm("four heads a program", None, _call(sizes="BLOCK_D, BLOCK_M = triton.next_power_of_2(size), 4\n"), "The tile is small", "launch"),
    _norm(
        "a token a program",
        OF_A_TOKEN,
        _call(sizes="BLOCK_D, BLOCK_M = triton.next_power_of_2(size), triton.next_power_of_2(heads)\n", grid="(tokens,)"),
        "One program has all heads of the token",
        "launch",
    ),
    _norm(
        "tiles of 4,096",
        None,
        _call(sizes="BLOCK_D = triton.next_power_of_2(size)\nBLOCK_M = 4_096 // BLOCK_D\n"),
        "The tile is large",
        "launch",
    ),
    _norm("a loop over heads", LOOP, None, "Is there a loop over single heads", "answer"),
    _norm("32 warps", None, _call(options=", num_warps=32"), "are there more warps than the tile has work for", "answer"),
    _norm(
        "reshaped",
        None,
        _call(before="x = x.reshape(-1, heads, size).contiguous()\nstride_xt, stride_xh = heads * size, size\n"),
        "Does reshape or contiguous copy the tensor",
        "answer",
    ),
    _norm(
        "flattened",
        None,
        _call(before="x = x.view(tokens * heads, size)\nstride_xt, stride_xh = heads * size, size\n"),
        "x.view cannot flatten a view",
        "answer",
    ),
    _norm(
        "rows unmasked",
        _kernel(mask="mask = tl.full([BLOCK_M, 1], True, tl.int1) & mask_d[None, :]"),
        None,
        "leave out the rows past",
        "memory",
    ),
    _norm("only the store masked", _kernel(x="x = tl.load(x_ptrs).to(tl.float32)"), None, "leave out the rows past", "memory"),
    _norm(
        "elements unmasked",
        _kernel(d="offs_d = tl.arange(0, BLOCK_D)\nmask_d = offs_d < BLOCK_D"),
        None,
        "leave out the lanes past size",
        "memory",
    ),
    _norm("grid rounded down", None, _call(grid="(tokens * heads // BLOCK_M,)"), "does the grid round down", "values"),
    _norm("a grid of tokens", None, _call(grid="(triton.cdiv(tokens, BLOCK_M),)"), "does the grid count tokens * heads rows", "values"),
    _norm(
        "a tile cut to the rows",
        None,
        _call(sizes=SIZES + "BLOCK_M = min(BLOCK_M, triton.next_power_of_2(tokens * heads))\n"),
        "With 0 tokens there is nothing to do",
        "answer",
    ),
    _norm(
        "contiguous x",
        _kernel(x_ptrs="x_ptrs = x_ptr + (rows * size)[:, None] + offs_d[None, :]"),
        None,
        "Only views are wrong",
        "memory",
    ),
    _norm(
        "contiguous y",
        _kernel(y_ptrs="y_ptrs = y_ptr + (rows * size)[:, None] + offs_d[None, :]"),
        None,
        "does y have strides of its own",
        "values",
    ),
    _norm(
        "mean over the block",
        _kernel(rms="rms = tl.sqrt(tl.sum(x * x, axis=1) / BLOCK_D + 1e-6)[:, None]"),
        None,
        "mean taken over",
        "values",
    ),
    _norm("one mean for the tile", _kernel(rms="rms = tl.sqrt(tl.sum(x * x) / size + 1e-6)"), None, "taken over each row alone", "values"),
    _norm(
        "tokens and heads exchanged",
        _kernel(token="offs_h, offs_t = rows // n_tokens, rows % n_heads"),
        None,
        "is row r head r % n_heads",
    ),
    _norm("no weight", _kernel(store="tl.store(y_ptrs, x / rms, mask=mask)"), None, "", "values"),
    _norm(
        "no launch for small inputs", None, "if tokens > 1_000:\n    " + _call().replace("\n", "\n    "), "Does a condition skip", "launch"
    ),
    _pick("always a head", "return size", "A head a program is right in decode only"),
    _pick("always 16,384", "return 16_384", "Is it the same tile for every shape"),
    _pick("always 4,096", "return 4_096", "Is it the same tile for every shape"),
    _pick("the other way round", "return 16_384 if tokens < 512 else 1_024", "Is it the other way round"),
    _pick("from 64 tokens", "return 4_096 if tokens >= 64 else 1_024", "Does the rule look at tokens alone"),
    _pick("from a few elements", "return 4_096 if tokens * heads * size > 30_000 else 1_024", "Large tiles begin too early"),
    _pick("a head below 10,000 tokens", "return size if tokens < 10_000 else 4_096", "kept for too many tokens"),
    _pick(
        "a head past 32,768",
        "return size if tokens > 32_768 else 4_096 if tokens * heads * size >= 4_096 * 4 * 132 else 1_024",
        "Does a long prompt fall back",
    ),
    _pick(
        "a table", "return {1: size, 16: 1_024, 64: 1_024, 256: 1_024, 1_024: 4_096, 8_192: 4_096, 32_768: 4_096}[tokens]", "Is it a table"
    ),
    _pick("another tile", "return 2_048", "Only four ways were recorded"),
    _pick("the programs", "return tokens * heads * size // 4_096", "Only four ways were recorded"),
    _pick("divided by /", "return 4_096 / 4", "gives a float"),
    _pick("a pair", "return 1, 32", "how they are cut follows"),
    _pick("a name", 'return "a head" if tokens < 64 else 4_096', "A head a program is the number"),
    _pick("one branch", "if tokens * heads * size >= 4_096 * 4 * 132:\n    return 4_096", "missing on one branch"),
]

RIGHT = [
    _launch(
        "per tile", "tiles_h = -(-heads // BLOCK_H)\nreturn -(-tokens // BLOCK_T) * tiles_h, tokens * size * (4 * heads + 2 * tiles_h)"
    ),
    _launch(
        "summed",
        "programs = moved = 0\n"
        "for t in range(0, tokens, BLOCK_T):\n"
        "    for h in range(0, heads, BLOCK_H):\n"
        "        n_t, n_h = min(BLOCK_T, tokens - t), min(BLOCK_H, heads - h)\n"
        "        programs, moved = programs + 1, moved + 2 * n_t * size * (2 * n_h + 1)\n"
        "    if tokens > 1_000:\n"
        "        n = triton.cdiv(tokens, BLOCK_T)\n"
        "        tiles_h = triton.cdiv(heads, BLOCK_H)\n"
        "        return n * tiles_h, 2 * tokens * size * (2 * heads + tiles_h)\n"
        "return programs, moved",
    ),
    _norm("eight heads", None, _call(sizes="BLOCK_D = triton.next_power_of_2(size)\nBLOCK_M = 1_024 // BLOCK_D\n")),
    _norm(
        "rsqrt",
        _kernel(rms="scale = tl.rsqrt(tl.sum(x * x, axis=1) / size + 1e-6)[:, None]", store="tl.store(y_ptrs, x * scale * w, mask=mask)"),
        None,
    ),
    _norm(
        "tiles of heads of a token",
        TILE_OF_HEADS,
        _call(grid="(tokens, triton.cdiv(heads, BLOCK_M))"),
    ),
    _norm("tiles of tokens of a head", TILE_OF_TOKENS, _call(grid="(triton.cdiv(tokens, BLOCK_M), heads)")),
    _norm("nothing to do", None, "if tokens * heads == 0:\n    return\n" + _call()),
    _pick("by programs", "programs = tokens * heads * size // 4_096\nreturn 1_024 if programs < 528 else 4_096"),
    _pick(
        "the largest that leaves enough",
        "return next((n for n in (4_096, 1_024) if tokens * heads * size // n >= 4 * 132), 1_024)",
    ),
    _pick("in bits", "share = tokens * heads * size // 528\nreturn min(4_096, max(1_024, 1_024 if share < 4_096 else 4_096))"),
]
