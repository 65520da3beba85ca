"""Kernels that race between warps, or look as if they did, for test_races.py. `BAR` puts the missing barrier in."""

from __future__ import annotations

import triton
import triton.language as tl


@triton.jit
def reverse_kernel(x_ptr, N: tl.constexpr, BAR: tl.constexpr):
    """BUG: the upper half of x is read in reverse while other warps still store the lower half."""
    offs = tl.program_id(0) * 2 * N + tl.arange(0, N)
    tl.store(x_ptr + offs, tl.load(x_ptr + offs) + 1)
    if BAR:
        tl.debug_barrier()
    tl.store(x_ptr + N + offs, tl.load(x_ptr + tl.program_id(0) * 2 * N + N - 1 - tl.arange(0, N)))


@triton.jit
def in_place_kernel(x_ptr, N: tl.constexpr, BAR: tl.constexpr):
    """BUG: x is reversed in place; a warp that is ahead overwrites what a warp behind has yet to read."""
    offs = tl.arange(0, N)
    x = tl.load(x_ptr + N - 1 - offs)
    if BAR:
        tl.debug_barrier()
    tl.store(x_ptr + offs, x)


@triton.jit
def scan_kernel(x_ptr, N: tl.constexpr, BAR: tl.constexpr):
    """BUG: running sums by doubling through global memory, with nothing between one step's stores and the next step's loads."""
    offs = tl.arange(0, N)
    step = 1
    while step < N:
        here = tl.load(x_ptr + offs)
        before = tl.load(x_ptr + offs - step, mask=offs >= step, other=0)
        if BAR:
            tl.debug_barrier()
        tl.store(x_ptr + offs, here + before)
        if BAR:
            tl.debug_barrier()
        step *= 2


@triton.jit
def scalar_kernel(flag_ptr, out_ptr, N: tl.constexpr, BAR: tl.constexpr):
    """BUG: one thread stores the number that all of them read back."""
    tl.store(flag_ptr, 7)
    if BAR:
        tl.debug_barrier()
    tl.store(out_ptr + tl.arange(0, N), tl.load(flag_ptr) + tl.arange(0, N))


@triton.jit
def divide_kernel(x_ptr, N: tl.constexpr, BAR: tl.constexpr):
    """BUG: every warp divides by x[0], which the first warp overwrites."""
    offs = tl.arange(0, N)
    first = tl.load(x_ptr)
    x = tl.load(x_ptr + offs)
    if BAR:
        tl.debug_barrier()
    tl.store(x_ptr + offs, x - first)


@triton.jit
def two_loops_kernel(scratch_ptr, out_ptr, N: tl.constexpr, TILE: tl.constexpr, BAR: tl.constexpr):
    """BUG: one loop fills a program's scratch buffer, the next one reads it in another order."""
    base = tl.program_id(0) * N
    offs = tl.arange(0, TILE)
    for i in range(0, N, TILE):
        tl.store(scratch_ptr + base + i + offs, base + i + offs)
    if BAR:
        tl.debug_barrier()
    for i in range(0, N, TILE):
        tl.store(out_ptr + base + i + offs, tl.load(scratch_ptr + base + N - 1 - i - offs))


@triton.jit
def branch_kernel(x_ptr, kinds_ptr, N: tl.constexpr, BAR: tl.constexpr):
    """BUG: only programs of kind 1 read in reverse what they stored."""
    base = tl.program_id(0) * 2 * N
    offs = tl.arange(0, N)
    tl.store(x_ptr + base + offs, tl.load(x_ptr + base + offs) + 1)
    if tl.load(kinds_ptr + tl.program_id(0)) == 1:
        if BAR:
            tl.debug_barrier()
        tl.store(x_ptr + base + N + offs, tl.load(x_ptr + base + N - 1 - offs))
    else:
        tl.store(x_ptr + base + N + offs, tl.load(x_ptr + base + offs))


@triton.jit
def views_kernel(a_ptr, b_ptr, out_ptr, N: tl.constexpr, BAR: tl.constexpr):
    """BUG when a and b are views of one tensor: stores through one, loads through the other."""
    offs = tl.arange(0, N)
    tl.store(a_ptr + offs, offs.to(tl.float32) + 1)
    if BAR:
        tl.debug_barrier()
    tl.store(out_ptr + offs, tl.load(b_ptr + N - 1 - offs))


@triton.jit
def atomic_between_kernel(x_ptr, count_ptr, N: tl.constexpr, BAR: tl.constexpr):
    """BUG: an atomic whose result nobody uses is no barrier."""
    offs = tl.arange(0, N)
    tl.store(x_ptr + offs, tl.load(x_ptr + offs) + 1)
    tl.atomic_add(count_ptr, 1, sem="relaxed")
    if BAR:
        tl.debug_barrier()
    tl.store(x_ptr + N + offs, tl.load(x_ptr + N - 1 - offs))


@triton.jit
def atomic_read_kernel(x_ptr, out_ptr, N: tl.constexpr, BAR: tl.constexpr):
    """BUG: what the atomics of other warps have added is read back too early."""
    offs = tl.arange(0, N)
    tl.atomic_add(x_ptr + offs, 1, sem="relaxed")
    if BAR:
        tl.debug_barrier()
    tl.store(out_ptr + offs, tl.load(x_ptr + N - 1 - offs))


@triton.jit
def halves_kernel(q_ptr, D: tl.constexpr, BAR: tl.constexpr):
    """BUG: normalised in place, then read back as two halves, whose elements other threads hold. The reduction's barrier comes before."""
    offs = tl.arange(0, D)
    q = tl.load(q_ptr + offs)
    tl.store(q_ptr + offs, q * (1 / tl.sum(q * q, 0)))
    if BAR:
        tl.debug_barrier()
    half = tl.arange(0, D // 2)
    low, high = tl.load(q_ptr + half), tl.load(q_ptr + D // 2 + half)
    if BAR:
        tl.debug_barrier()
    tl.store(q_ptr + half, low - high)
    tl.store(q_ptr + D // 2 + half, low + high)


@triton.jit
def twice_kernel(x_ptr, N: tl.constexpr, BAR: tl.constexpr):
    """BUG: two stores of different values to one element, by different warps."""
    offs = tl.arange(0, N)
    tl.store(x_ptr + offs, offs)
    if BAR:
        tl.debug_barrier()
    tl.store(x_ptr + N - 1 - offs, offs)


@triton.jit
def update_kernel(a_ptr, b_ptr, c_ptr, N: tl.constexpr, STEPS: tl.constexpr, BAR: tl.constexpr):
    """BUG: c += a·b in place, several times; c is stored in another layout than it is loaded in."""
    i = tl.arange(0, N)
    offs = i[:, None] * N + i[None, :]
    for _ in range(STEPS):
        c = tl.load(c_ptr + offs)
        c = tl.dot(tl.load(a_ptr + offs), tl.load(b_ptr + offs), c)
        tl.store(c_ptr + offs, c)
        if BAR:
            tl.debug_barrier()


@triton.jit
def parted_kernel(flag_ptr, out_ptr, N: tl.constexpr, BAR: tl.constexpr):
    """BUG: whether a warp comes to the barrier hangs on a number that races."""
    tl.store(flag_ptr, 1)
    if BAR:
        tl.debug_barrier()
    if tl.load(flag_ptr) == 1:
        tl.debug_barrier()
        tl.store(out_ptr + tl.arange(0, N), tl.arange(0, N))


# ---- right, though they read what they write


@triton.jit
def same_thread_kernel(x_ptr, N: tl.constexpr):
    """Each thread reads back its own."""
    offs = tl.arange(0, N)
    tl.store(x_ptr + offs, tl.load(x_ptr + offs) + 1)
    tl.store(x_ptr + offs, tl.load(x_ptr + offs) * 2)


@triton.jit
def reduction_kernel(x_ptr, N: tl.constexpr):
    """The reduction between store and load brings its own barrier."""
    offs = tl.arange(0, N)
    x = tl.load(x_ptr + offs) + 1
    tl.store(x_ptr + offs, x)
    total = tl.sum(x, 0)
    tl.store(x_ptr + N + offs, tl.load(x_ptr + N - 1 - offs) + total)


@triton.jit
def copies_kernel(x_ptr, N: tl.constexpr):
    """A block smaller than the threads: some hold copies, which are loaded and never stored."""
    offs = tl.arange(0, N)
    tl.store(x_ptr + offs, tl.load(x_ptr + offs) + 1)
    tl.store(x_ptr + N, tl.load(x_ptr + N) + 1)


@triton.jit
def softmax_kernel(x_ptr, n, stride_xm, BLOCK: tl.constexpr):
    """Softmax of each row in place."""
    offs = tl.arange(0, BLOCK)
    mask = offs < n
    x = tl.load(x_ptr + tl.program_id(0) * stride_xm + offs, mask=mask, other=-float("inf"))
    e = tl.exp(x - tl.max(x, 0))
    tl.store(x_ptr + tl.program_id(0) * stride_xm + offs, e / tl.sum(e, 0), mask=mask)


@triton.jit
def matrix_kernel(x_ptr, N: tl.constexpr):
    """A matrix is transposed in place; between load and store the compiler changes the layout, through shared memory and a barrier."""
    i = tl.arange(0, N)
    x = tl.load(x_ptr + i[:, None] * N + i[None, :])
    tl.store(x_ptr + i[None, :] * N + i[:, None], x)


@triton.jit
def lock_kernel(lock_ptr, x_ptr, N: tl.constexpr):
    """Each program adds 1 to x under a lock."""
    offs = tl.arange(0, N)
    while tl.atomic_cas(lock_ptr, 0, 1) == 1:
        pass
    tl.store(x_ptr + offs, tl.load(x_ptr + offs) + 1)
    tl.debug_barrier()
    tl.atomic_xchg(lock_ptr, 0)


# ---- fewer elements than threads: warps hold copies
@triton.jit
def scale_row_kernel(x_ptr, N: tl.constexpr):
    at = x_ptr + tl.arange(0, N)
    x = tl.load(at)
    tl.store(at, x / tl.sum(x, axis=0))


@triton.jit
def scale_rows_kernel(x_ptr, ROWS: tl.constexpr, N: tl.constexpr):
    at = x_ptr + tl.arange(0, ROWS)[:, None] * N + tl.arange(0, N)[None, :]
    x = tl.load(at)
    tl.store(at, x / tl.sum(x, axis=1, keep_dims=True))


@triton.jit
def sum_over_a_wider_block_kernel(x_ptr, N: tl.constexpr, WIDE: tl.constexpr):
    """Each warp stores the sum of what it loaded itself, and the first warp's stores change what the others load."""
    total = tl.sum(tl.load(x_ptr + tl.arange(0, N)), axis=0)
    tl.store(x_ptr + tl.arange(0, WIDE), total + tl.zeros([WIDE], tl.float32))


@triton.jit
def count_and_load_kernel(count_ptr, y_ptr, N: tl.constexpr):
    """One warp counts, and all load the count behind it."""
    offs = tl.arange(0, N)
    tl.atomic_add(count_ptr, 1, sem="acq_rel")
    tl.store(y_ptr + offs, tl.load(count_ptr + 0 * offs))
