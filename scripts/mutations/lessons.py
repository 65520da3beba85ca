"""A lesson's own code: a mask, a cast, a barrier or a bug taken away."""

from mutations import Mutation, nbval


def _in(lesson, name, old, new, plants):
    return Mutation(f"lesson {name}", f"notebooks/{lesson}.ipynb", old, new, plants, nbval(lesson))


MUTATIONS = [
    _in("00_start_here", "00 mask", "    mask = offs < n", "    mask = offs < n + 1000", "the first kernel's mask lets everything through"),
    _in(
        "01_semantics",
        "01 floor",
        "    return tl.where((r != 0) & ((r < 0) != (b < 0)), r + b, r)",
        "    return r",
        "the floored remainder is the plain one again",
    ),
    _in(
        "01_semantics",
        "01 wide square",
        "x = tl.load(x_ptr + offs).to(tl.int32)",
        "x = tl.load(x_ptr + offs)",
        "the square is computed in int8",
    ),
    _in("02_reading_inductor", "02 float32", "    x = x.to(tl.float32)", "    x = x.to(tl.float16)", "the sum of squares is in float16"),
    _in(
        "02_reading_inductor",
        "02 mask",
        "    w = tl.load(w_ptr + offs_n, mask=mask, other=0.0).to(tl.float32)",
        "    w = tl.load(w_ptr + offs_n).to(tl.float32)",
        "the weight is read past its end",
    ),
    _in(
        "02_reading_inductor",
        "02 int64",
        "start = row.to(tl.int64) * n_cols",
        "start = row * n_cols",
        "a kernel that was measured loses its cast, so its recording is of other code",
    ),
    _in(
        "03_block_sizes",
        "03 other",
        '    x = tl.load(x_ptrs, mask=mask, other=-float("inf")).to(tl.float32)  # exp(-inf) adds nothing',
        "    x = tl.load(x_ptrs, mask=mask, other=0.0).to(tl.float32)  # exp(-inf) adds nothing",
        "masked lanes add exp(0) to the softmax",
    ),
    _in("03_block_sizes", "03 tail of K", "mask_k = offs_k < K - k", "mask_k = offs_k < K", "the product's last block reads past K"),
    _in(
        "03_block_sizes",
        "03 the grid follows",
        "launch[(1_024 // 128,)](x, y, 2.0, 1_024, **meta)",
        'launch[(1_024 // (meta or {"BLOCK": 64}).get("BLOCK", 64),)](x, y, 2.0, 1_024, **meta)',
        "the fault that the cell shows is mended",
    ),
    _in(
        "04_specialization",
        "04 rest",
        "    mask_rest = (rest < n) & (pid == 0)",
        "    mask_rest = (rest < n - 1) & (pid == 0)",
        "the last element of the rest is not copied",
    ),
    _in("04_specialization", "04 rounding", "tl.store(page_ptr, (n - 8) // 2)", "tl.store(page_ptr, (n - 8) / 2)", "/ in place of //"),
    _in(
        "05_barriers",
        "05 barrier",
        'barrier = getattr(tl, "barrier", None) or tl.debug_barrier',
        "barrier = triton.jit(__import__('types').FunctionType((lambda: None).__code__, {}))",
        "the barrier of the fixed kernel is no barrier",
    ),
    _in("06_grid_limits", "06 mask", "mask_t = offs_t[:, None] < n_tokens", "mask_t = offs_t[:, None] <= n_tokens", "one token too many"),
    _in(
        "06_grid_limits", "06 flat", "    pid_t = pid // n_heads", "    pid_t = pid % n_heads", "token and head come from the wrong halves"
    ),
    _in(
        "07_int64_offsets",
        "07 late cast mended",
        "x = tl.load(cache_ptr + (block_id * stride_b).to(tl.int64) + offs)",
        "x = tl.load(cache_ptr + block_id * stride_b.to(tl.int64) + offs)",
        "the late cast that the cell shows is an early one",
    ),
    _in(
        "07_int64_offsets",
        "07 cast of the measured kernel",
        "pid = tl.program_id(0).to(tl.int64)",
        "pid = tl.program_id(0)",
        "the kernel that was measured has no cast any more",
    ),
    _in(
        "08_decode_and_prefill",
        "08 sign",
        "tl.store(y_ptrs + half, second * cos + first * sin, mask=mask_d)",
        "tl.store(y_ptrs + half, second * cos - first * sin, mask=mask_d)",
        "RoPE turns the other way in its second half",
    ),
    _in(
        "08_decode_and_prefill",
        "08 mask",
        "    first = tl.load(x_ptrs, mask=mask_d).to(tl.float32)",
        "    first = tl.load(x_ptrs).to(tl.float32)",
        "a load without its mask",
    ),
    _in("11_microbenchmarks", "11 mask", "    mask = offs < n", "    mask = offs < n + 1", "the kernel that was measured has another mask"),
    _in(
        "12_sweeps",
        "12 rows",
        "    mask_m = (offs_i < ROWS) & (offs_m < n_rows)",
        "    mask_m = offs_i < ROWS",
        "rows past the end are written",
    ),
    _in("13_cold_start", "13 mask", "mask_t = offs_t < n_tokens", "mask_t = offs_t <= n_tokens", "a slot of no token is written"),
]
