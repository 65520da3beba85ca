"""Answers to exercise 14, the capstone. Most are the solution with one place of it changed, as a slip would."""

from kit.tests.banks import BLOCK, Answer, cell_of, solved

WITHOUT_KERNEL = ()


def _changed(text, *changes):
    """`text` with each (old, new) put in its place; an old that is not there is an error of the bank."""
    for old, new in changes:
        assert old in text, old
        text = text.replace(old, new)
    return text


def _body(step, number=0):
    """The solution's text of a marked block, its indent taken off as the markers have it."""
    return [match["body"] for match in BLOCK.finditer(cell_of(step))][number]


ARITHMETIC, KERNEL, LAUNCH = _body("14.1"), _body("14.2"), _body("14.2", 1)


def _norm(name, cause, *changes, about="values"):
    return Answer("14.1", name, (_changed(ARITHMETIC, *changes),), cause, about)


def _kernel(name, cause, *changes, about="", launch=None):
    return Answer("14.2", name, (_changed(KERNEL, *changes), launch), cause, about)


def _launch(name, cause, *changes, about=""):
    return Answer("14.2", name, (None, _changed(LAUNCH, *changes)), cause, about)


def _other_norm(name, cause, *changes):
    """An answer to 14.2 on top of a changed 14.1."""
    return Answer("14.2", name, (None, None), cause, "values", before=_changed(solved("14.1"), *changes))


def _serve(name, rule, cause="", about=""):
    call = "write_qkv(qkv, positions, slots, cos_sin, q_weight, k_weight, k_cache, v_cache, eps, BLOCK_T)"
    return Answer("14.3", name, (f"{rule}\n{call}",), cause, about)


def _served(name, cause, *changes):
    """An answer to 14.3 on top of a changed 14.2."""
    return Answer("14.3", name, (None,), cause, before=solved("14.1") + _changed(solved("14.2"), *changes))


SCALE = "scale = tl.rsqrt(squares / size + eps)"
SQUARES = "squares = tl.sum(first * first + second * second, axis=-1, keep_dims=True)"
ROTATED = "return first * cos - second * sin, second * cos + first * sin"
WEIGHTS = "first = first * scale * w_first.to(tl.float32)\n    second = second * scale * w_second.to(tl.float32)"
WEIGHT_LAST = "return (first * cos - second * sin) * w_first.to(tl.float32), (second * cos + first * sin) * w_second.to(tl.float32)"
# Each query head as a whole, with its partners half a head further on, which other threads hold.
WHOLE_HEADS = """    size_d = tl.arange(0, 2 * HALF)[None, None, :]
    mask_w = mask_t[:, None, None] & (size_d < size) & (offs_g < group)
    heads = qkv_ptr + offs_t[:, None, None] * stride_t + (kv_head * group + offs_g) * size
    partner = (size_d + half) % size
    x = tl.load(heads + size_d, mask=mask_w, other=0.0).to(tl.float32)
    y = tl.load(heads + partner, mask=mask_w, other=0.0).to(tl.float32)
    turn_ptrs = cos_sin_ptr + position[:, None, None] * size + size_d % half
    turn_cos = tl.load(turn_ptrs, mask=mask_w, other=0.0)
    turn_sin = tl.load(turn_ptrs + half, mask=mask_w, other=0.0)
    w_x = tl.load(q_weight_ptr + size_d, mask=size_d < size, other=0.0).to(tl.float32)
    w_y = tl.load(q_weight_ptr + partner, mask=size_d < size, other=0.0).to(tl.float32)
    scale = tl.rsqrt(tl.sum(x * x, axis=-1, keep_dims=True) / size + eps)
    turned = x * scale * w_x * turn_cos + tl.where(size_d < half, -1.0, 1.0) * y * scale * w_y * turn_sin
    BARRIER
    tl.store(heads + size_d, turned, mask=mask_w)

"""
PAIRWISE_QUERIES = KERNEL[KERNEL.index("    q_first = tl.load(q_ptrs") : KERNEL.index("    k_first = tl.load")]
STORES = "    tl.store(q_ptrs, q_first, mask=mask_q)\n    tl.store(q_ptrs + half, q_second, mask=mask_q)\n"
# Stored the wrong way round, read back, and put right: through memory, and so from other threads.
SWAPPED = """    tl.store(q_ptrs, q_second, mask=mask_q)
    tl.store(q_ptrs + half, q_first, mask=mask_q)
    BARRIER
    size_d = tl.arange(0, 2 * HALF)[None, None, :]
    mask_w = mask_t[:, None, None] & (size_d < size) & (offs_g < group)
    heads = qkv_ptr + offs_t[:, None, None] * stride_t + (kv_head * group + offs_g) * size
    x = tl.load(heads + (size_d + half) % size, mask=mask_w, other=0.0)
    BARRIER
    tl.store(heads + size_d, x, mask=mask_w)
"""
EIGHT_WARPS = _changed(LAUNCH, ("**blocks)", "**blocks, num_warps=8)"))
READ_BACK = """    size_d = tl.arange(0, 2 * HALF)[None, None, :]
    mask_w = mask_t[:, None, None] & (size_d < size) & (offs_g < group)
    heads = qkv_ptr + offs_t[:, None, None] * stride_t + (kv_head * group + offs_g) * size + size_d
    x = tl.load(heads, mask=mask_w, other=0.0).to(tl.float32)
    w = tl.load(q_weight_ptr + size_d, mask=size_d < size, other=0.0).to(tl.float32)
    tl.store(heads, x * tl.rsqrt(tl.sum(x * x, axis=-1, keep_dims=True) / size + eps) * w, mask=mask_w)
    BARRIER
    q_first = tl.load(q_ptrs, mask=mask_q, other=0.0).to(tl.float32)
    q_second = tl.load(q_ptrs + half, mask=mask_q, other=0.0).to(tl.float32)
    tl.store(q_ptrs, q_first * cos - q_second * sin, mask=mask_q)
    tl.store(q_ptrs + half, q_second * cos + q_first * sin, mask=mask_q)

"""
NEIGHBOURS = (
    ("* stride_t + offs_d", "* stride_t + 2 * offs_d"),
    ("_ptrs + half", "_ptrs + 1"),
    ("cos_ptrs + 1", "cos_ptrs + half"),
    ("weight_ptr + offs_d", "weight_ptr + 2 * offs_d"),
    ("weight_ptr + half + offs_d", "weight_ptr + 2 * offs_d + 1"),
    ("* stride_ch + offs_d", "* stride_ch + 2 * offs_d"),
    ("offs_cache + half", "offs_cache + 1"),
)


def _all_heads(text):
    """The kernel's text with one program for all key heads of its tokens: a loop over them."""
    head, _, tail = text.partition("    row_ptrs =")
    tail = "    row_ptrs =" + tail
    return (
        head.replace("    kv_head = tl.program_id(1)\n", "")
        + "    for kv_head in range(kv_heads):\n"
        + "\n".join(f"    {line}" if line.strip() else line for line in tail.splitlines())
    )


CELL = solved("14.2")
ONE_PROGRAM = (_all_heads(CELL[: CELL.index("def write_qkv(")].rstrip() + "\n") + "\n\n\n" + CELL[CELL.index("def write_qkv(") :]).replace(
    "(triton.cdiv(tokens, BLOCK_T), kv_heads)", "(triton.cdiv(tokens, BLOCK_T),)"
)

WRONG = [
    _norm("eps outside", "It stands inside", (SCALE, "scale = 1 / (tl.sqrt(squares / size) + eps)")),
    _norm("no eps", "Is eps left out", (SCALE, "scale = tl.rsqrt(squares / size)")),
    _norm("the sum", "Is the sum of the squares taken", (SCALE, "scale = tl.rsqrt(squares + eps)")),
    _norm("mean over the block", "over the lanes of the block", ("/ size", "/ (2 * first.shape[-1])")),
    _norm(
        "half a mean",
        "Is the mean taken over the first half only",
        (SQUARES, SQUARES.replace(" + second * second", "")),
        ("/ size", "/ size * 2"),
    ),
    _norm(
        "a mean for each half",
        "Has each half a mean of its own",
        (SQUARES, SQUARES.replace(" + second * second", "") + "\n    other = tl.sum(second * second, axis=-1, keep_dims=True)"),
        ("second = second * scale", "second = second * tl.rsqrt(other / size * 2 + eps)"),
        ("squares / size", "squares / size * 2"),
    ),
    _norm("no root", "Is the root missing", (SCALE, "scale = 1 / (squares / size + eps)")),
    _norm("no weight", "Is the weight left out", (" * w_first.to(tl.float32)", ""), (" * w_second.to(tl.float32)", "")),
    _norm(
        "weights exchanged",
        "Are the weights of the halves exchanged",
        ("w_first.", "w_none."),
        ("w_second.", "w_first."),
        ("w_none.", "w_second."),
    ),
    _norm(
        "norm after rope",
        "normalise and weight first, then rotate",
        (WEIGHTS, "first, second = first * scale, second * scale"),
        (ROTATED, WEIGHT_LAST),
    ),
    _norm(
        "the other way round",
        "Is the rotation the other way round",
        (ROTATED, "return first * cos + second * sin, second * cos - first * sin"),
    ),
    _norm("cos and sin exchanged", "Are cos and sin exchanged", (ROTATED, "return first * sin - second * cos, second * sin + first * cos")),
    _norm("not rotated", "Is the rotation missing", (ROTATED, "return first, second")),
    _norm(
        "first overwritten",
        "Does the second half take the first half's new value",
        (ROTATED, "first = first * cos - second * sin\n    return first, second * cos + first * sin"),
    ),
    _norm("halves exchanged", "returned in the other order", (ROTATED, "return second * cos + first * sin, first * cos - second * sin")),
    _norm(
        "squares in bfloat16",
        "is something computed in bfloat16",
        ("(first * first + second * second,", "((first * first + second * second).to(tl.bfloat16),"),
    ),
    _norm(
        "bfloat16 returned",
        "is something computed in bfloat16",
        (ROTATED, "return (first * cos - second * sin).to(tl.bfloat16), (second * cos + first * sin).to(tl.bfloat16)"),
    ),
    _norm("one mean for all", "along the last axis alone", ("axis=-1, keep_dims=True", "axis=None"), ("/ size", "/ size")),
    _norm("axis 2", "sum along axis=-1", ("axis=-1", "axis=2"), about="answer"),
    _norm("axis lost", "keep_dims=True keeps it", (", keep_dims=True", ""), about="answer"),
    _norm("one block", "Two blocks are asked for", (ROTATED, "return first * cos - second * sin"), about="answer"),
    # ---- 14.2
    _kernel("int32 slot offset", "One offset has its cast and another has not", ("slot.to(tl.int64) //", "slot //"), about="memory"),
    _kernel(
        "int32 rows", "One offset has its cast and another has not", ("tl.program_id(0).to(tl.int64)", "tl.program_id(0)"), about="memory"
    ),
    _kernel(
        "no cast",
        "int32 times int32 is int32",
        ("tl.program_id(0).to(tl.int64)", "tl.program_id(0)"),
        ("slot.to(tl.int64) //", "slot //"),
        (".to(tl.int64)", ""),
        about="memory",
    ),
    _kernel(
        "cast too late",
        "cast one factor, before the multiply",
        ("slot.to(tl.int64) //", "slot //"),
        ("(block * stride_cb + place", "((block * stride_cb).to(tl.int64) + place"),
        about="memory",
    ),
    _kernel("padding not skipped", "A slot below 0 is padding", ("mask_t = slot >= 0", "mask_t = offs_t < n_tokens"), about="memory"),
    _kernel(
        "padding of the queries not skipped",
        "A slot below 0 is padding",
        ("mask_q = mask & (offs_g < group)", "mask_q = (offs_t < n_tokens)[:, None, None] & mask_d & (offs_g < group)"),
        about="values",
    ),
    _kernel("bound one too far", "The last tile is partial", ("offs_t < n_tokens", "offs_t <= n_tokens"), about="memory"),
    _kernel("no bound", "The last tile is partial", (", mask=offs_t < n_tokens, other=-1", ""), about="memory"),
    _kernel(
        "tokens on axis 1",
        "grid[1] and grid[2] end at 65,535",
        ("tl.program_id(0)", "tl.program_id(2)"),
        ("tl.program_id(1)", "tl.program_id(0)"),
        ("tl.program_id(2)", "tl.program_id(1)"),
        about="launch",
        launch=_changed(LAUNCH, ("(triton.cdiv(tokens, BLOCK_T), kv_heads)", "(kv_heads, triton.cdiv(tokens, BLOCK_T))")),
    ),
    _other_norm(
        "accumulated in bfloat16",
        "float32 throughout",
        ("(first * first + second * second,", "((first * first + second * second).to(tl.bfloat16),"),
    ),
    _other_norm("eps outside, in the kernel", "It stands inside", (SCALE, "scale = 1 / (tl.sqrt(squares / size) + eps)")),
    _other_norm(
        "norm after rope, in the kernel",
        "normalise and weight first",
        (WEIGHTS, "first, second = first * scale, second * scale"),
        (ROTATED, WEIGHT_LAST),
    ),
    _kernel("rounded between norm and rope", "float32 throughout", (PAIRWISE_QUERIES, READ_BACK.replace("BARRIER", "tl.debug_barrier()"))),
    _kernel(
        "read back without a barrier",
        "load all that is needed before the first store",
        (STORES, SWAPPED.replace("BARRIER", "")),
        about="memory",
        launch=EIGHT_WARPS,
    ),
    _kernel("neighbours", "Are neighbours rotated with each other", *NEIGHBOURS, about="values"),
    _kernel("stride assumed contiguous", "Only a slice of a wider row is wrong", ("* stride_t +", "* ((group + 2) * kv_heads * size) +")),
    _kernel(
        "blocks assumed contiguous",
        "a block begins at block * k_cache.stride(0)",
        ("block * stride_cb", "block * (block_size * kv_heads * size)"),
    ),
    _kernel("heads assumed contiguous", "block, place and head each take their own stride", ("kv_head * stride_ch", "kv_head * size")),
    _kernel(
        "grouped rows",
        "they are not grouped by key head",
        ("(kv_head * group + offs_g) * size", "(kv_head * (group + 2) + offs_g) * size"),
        ("(kv_heads * group + kv_head) * size", "(kv_head * (group + 2) + group) * size"),
        ("k_ptrs + kv_heads * size", "k_ptrs + size"),
        about="values",
    ),
    _kernel("the queries' weight for keys", "Do the keys take the queries' weight", ("k_weight_ptr", "q_weight_ptr"), about="values"),
    _kernel(
        "keys as they are",
        "Are the keys written as they are",
        ("k_first, k_second = norm_rope(k_first, k_second, w_first, w_second, cos, sin, size, eps)", ""),
        about="values",
    ),
    _kernel(
        "values normalised",
        "Values go into the cache as they are",
        (
            "    tl.store(v_cache_ptr + offs_cache, v",
            "    v_first, v_second = norm_rope(v_first, v_second, w_first, w_second, cos, sin, size, eps)\n"
            "    tl.store(v_cache_ptr + offs_cache, v",
        ),
        ("v_ptrs, mask=mask", "v_ptrs, mask=mask, other=0.0"),
        about="values",
    ),
    _kernel(
        "keys back in place",
        "Keys and values in qkv stay as they are",
        (
            "    v_first = tl.load",
            "    tl.store(k_ptrs, k_first, mask=mask)\n    tl.store(k_ptrs + half, k_second, mask=mask)\n    v_first = tl.load",
        ),
        about="values",
    ),
    _kernel(
        "another key head",
        "to the cache's head of the same number",
        ("+ kv_head * stride_ch", "+ (kv_head + 1) % kv_heads * stride_ch"),
        about="values",
    ),
    _kernel(
        "the token's number as its position",
        "It is in positions_ptr",
        ("position = tl.load(positions_ptr + offs_t, mask=mask_t, other=0).to(tl.int64)", "position = offs_t"),
        about="values",
    ),
    _kernel(
        "the token's number as its slot",
        "It is in slots_ptr",
        ("slot.to(tl.int64) // block_size, slot % block_size", "offs_t // block_size, offs_t % block_size"),
        about="values",
    ),
    _kernel(
        "every second of cos_sin",
        "they do not alternate",
        ("* size + offs_d", "* size + 2 * offs_d"),
        ("cos_ptrs + half", "cos_ptrs + 1"),
        about="values",
    ),
    _kernel("lanes unmasked", "does every mask have offs_d < size // 2", ("mask_d = offs_d < half", "mask_d = offs_d < HALF")),
    _kernel("the second half after the block", "does the second half begin at size // 2", ("half = size // 2", "half = HALF")),
    _kernel(
        "weights unmasked, a block for 128",
        "A weight has `size` elements",
        (", mask=mask_d, other=0.0", ""),
        about="memory",
        launch=_changed(LAUNCH, ("triton.next_power_of_2(size // 2)", "64")),
    ),
    _kernel("group unmasked", "is the fourth masked", ("mask & (offs_g < group)", "mask & (offs_g < GROUP)")),
    _launch(
        "qkv copied",
        "Does contiguous, reshape or as_strided make another",
        ("(qkv, positions", "(qkv.contiguous(), positions"),
        ("(qkv.stride(0),", "(qkv.shape[1],"),
    ),
    _launch(
        "the view's offset ignored",
        "Does contiguous, reshape or as_strided make another",
        ("(qkv, positions", "(qkv.as_strided(qkv.shape, qkv.stride(), 0), positions"),
    ),
    _launch("grid rounded down", "does the grid round down", ("triton.cdiv(tokens, BLOCK_T)", "tokens // BLOCK_T"), about="values"),
    _launch(
        "a tile cut to the tokens",
        "With 0 tokens there is nothing to do",
        ("grid =", "BLOCK_T = min(BLOCK_T, tokens)\n    grid ="),
        about="answer",
    ),
    _launch(
        "no launch for few",
        "Does a condition skip the launch",
        ("    write_qkv_kernel", "    if tokens > 10_000:\n        write_qkv_kernel"),
        about="launch",
    ),
    # ---- 14.3
    _serve("always 1", "BLOCK_T = 1", "A long prompt needs more work a program", "launch"),
    _serve("always 16", "BLOCK_T = 16", "64 tokens should keep 132 multiprocessors busy", "launch"),
    _serve("as many as there are", "BLOCK_T = triton.next_power_of_2(max(1, qkv.shape[0] // 64))", "Each value of a constexpr is compiled"),
    _serve("a tile too large", "BLOCK_T = 1 if qkv.shape[0] < 512 else 64", "The tile does not fit the registers"),
    _served("n_tokens in its classes", "gets a variant for 1", ('(do_not_specialize=["n_tokens"])', "")),
    _served(
        "n_tokens a constexpr",
        "Each value of a constexpr is compiled",
        ('(do_not_specialize=["n_tokens"])', ""),
        ("    n_tokens,\n", "    n_tokens: tl.constexpr,\n"),
    ),
    Answer(
        "14.3", "a program for all heads", (None,), "cut its heads among several programs", "launch", before=solved("14.1") + ONE_PROGRAM
    ),
    _served("int32 slot offset, at full size", "lesson 07 explains it", ("slot.to(tl.int64) //", "slot //")),
    _served("padding not skipped, served", "A slot below 0 is padding", ("mask_t = slot >= 0", "mask_t = offs_t < n_tokens")),
]

EARLY = """    if tokens == 0:
        return
"""
RIGHT = [
    _norm(
        "halves summed apart",
        "",
        (SQUARES, "squares = tl.sum(first * first, -1, keep_dims=True) + tl.sum(second * second, -1, keep_dims=True)"),
        (SCALE, "scale = 1.0 / tl.sqrt(squares / size + eps)"),
    ),
    _norm(
        "axis of the block",
        "",
        (SQUARES, "squares = tl.expand_dims(tl.sum(first * first + second * second, axis=len(first.shape) - 1), len(first.shape) - 1)"),
    ),
    _kernel("partners, with a barrier", "", (PAIRWISE_QUERIES, WHOLE_HEADS.replace("BARRIER", "tl.debug_barrier()")), launch=EIGHT_WARPS),
    _kernel("read back, with barriers", "", (STORES, SWAPPED.replace("BARRIER", "tl.debug_barrier()")), launch=EIGHT_WARPS),
    Answer("14.2", "a program for all heads", (_all_heads(KERNEL), _changed(LAUNCH, ("BLOCK_T), kv_heads)", "BLOCK_T),)")))),
    _kernel(
        "a grid of one axis",
        "",
        ("pid_t = tl.program_id(0).to(tl.int64)", "pid_t = (tl.program_id(0) // kv_heads).to(tl.int64)"),
        ("tl.program_id(1)", "tl.program_id(0) % kv_heads"),
        launch=_changed(LAUNCH, ("(triton.cdiv(tokens, BLOCK_T), kv_heads)", "(triton.cdiv(tokens, BLOCK_T) * kv_heads,)")),
    ),
    _launch("eight warps, nothing to do", "", ("    grid =", EARLY + "    grid ="), ("**blocks)", "**blocks, num_warps=8)")),
    _serve("by programs", "BLOCK_T = 1 if qkv.shape[0] * k_cache.shape[2] < 4 * 132 * 8 else 2"),
    _serve("three tiles", "tokens = qkv.shape[0]\nBLOCK_T = 1 if tokens < 128 else 4 if tokens < 4_096 else 8"),
    _served("tl.cast", "", ("pid_t = tl.program_id(0).to(tl.int64)", "pid_t = tl.cast(tl.program_id(0), tl.int64)")),
    _served("names of its own", "", ("qkv_ptr", "x_ptr"), ("cos_sin_ptr", "turns_ptr"), ("k_cache_ptr", "keys_ptr")),
]
