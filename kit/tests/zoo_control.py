"""Zoo: control flow that differs from program to program, and functions that kernels call."""

from __future__ import annotations

import torch
import triton
import triton.language as tl

from kit.tests.zoo_case import GUARD, Case, blank, integers, normal

# How often each program goes round: not at all, once, and more often than the others.
TRIPS = [0, 1, 2, 7, 3, 0, 31, 1, 4, 5, 0]


@triton.jit
def for_kernel(x_ptr, trips_ptr, sum_ptr, last_ptr, written_ptr, stride_xm):
    """Program pid sums its first trips[pid] elements, keeps the last, and writes each place it visited."""
    pid = tl.program_id(0)
    trips = tl.load(trips_ptr + pid)
    total = 0.0
    last = -1.0
    for i in range(trips):
        x = tl.load(x_ptr + pid * stride_xm + i)
        total += x
        last = x
        tl.store(written_ptr + pid * stride_xm + i, i)
    tl.store(sum_ptr + pid, total)
    tl.store(last_ptr + pid, last)


def for_case():
    rows, width = len(TRIPS), 32

    def make(g):
        return {"x": normal(g, rows, width), "trips": torch.tensor(TRIPS, dtype=torch.int32)}

    def run(x, trips):
        total, last, written = blank(rows, like=x), blank(rows, like=x), blank(rows, width, like=trips)
        for_kernel[(rows,)](x, trips, total, last, written, width)
        return {"sum": total, "last": last, "written": written}

    def reference(x, trips):
        total = torch.tensor([x[m, :t].double().sum() for m, t in enumerate(TRIPS)]).float()
        last = torch.tensor([x[m, t - 1] if t else -1.0 for m, t in enumerate(TRIPS)])
        written = blank(rows, width, like=trips)
        for m, t in enumerate(TRIPS):
            written[m, :t] = torch.arange(t)
        return {"sum": total, "last": last, "written": written}

    return Case("for/trips per program", make, run, reference)


@triton.jit
def range_kernel(low_ptr, high_ptr, out_ptr, STEP: tl.constexpr):
    """Program pid adds up range(low, high, STEP)."""
    pid = tl.program_id(0)
    total = tl.full((), 0, dtype=tl.int64)
    for i in range(tl.load(low_ptr + pid), tl.load(high_ptr + pid), STEP):
        total += i
    tl.store(out_ptr + pid, total)


def range_case(step):
    bounds = [(0, 0), (5, 5), (5, 4), (-7, 12), (0, 100), (3, 4), (-20, -3)]

    def run(low, high):
        out = blank(len(bounds), like=low, dtype=torch.int64)
        range_kernel[(len(bounds),)](low, high, out, STEP=step)
        return {"out": out}

    def make(g):
        low, high = zip(*bounds, strict=True)
        return {"low": torch.tensor(low, dtype=torch.int32), "high": torch.tensor(high, dtype=torch.int32)}

    def reference(low, high):
        return {"out": torch.tensor([sum(range(a, b, step)) for a, b in bounds])}

    return Case(f"for/range step {step}", make, run, reference)


@triton.jit
def nested_kernel(counts_ptr, out_ptr, N):
    """Program pid counts the pairs (i, j), j < counts[i] + pid, of which i + j is odd."""
    pid = tl.program_id(0)
    pairs = 0
    for i in range(N):
        for j in range(tl.load(counts_ptr + i) + pid):
            if (i + j) % 2 == 1:
                pairs += 1
    tl.store(out_ptr + pid, pairs)


def nested_case():
    counts = [0, 3, 1, 5]

    def run(counts):
        out = blank(6, like=counts)
        nested_kernel[(6,)](counts, out, len(counts))
        return {"out": out}

    def reference(counts):
        odd = [sum((i + j) % 2 for i, c in enumerate(counts.tolist()) for j in range(c + pid)) for pid in range(6)]
        return {"out": torch.tensor(odd, dtype=torch.int32)}

    return Case("for/nested", lambda g: {"counts": torch.tensor(counts, dtype=torch.int32)}, run, reference)


@triton.jit
def if_kernel(x_ptr, out_ptr, seen_ptr, n, BLOCK: tl.constexpr):
    """Programs of three kinds: pid % 3 == 0 doubles, 1 squares and says so in seen, 2 negates when its first element is positive."""
    pid = tl.program_id(0)
    offs = pid * BLOCK + tl.arange(0, BLOCK)
    mask = offs < n
    x = tl.load(x_ptr + offs, mask=mask)
    if pid % 3 == 0:
        y = x * 2
    elif pid % 3 == 1:
        y = x * x
        tl.store(seen_ptr + pid, pid)
    else:
        first = tl.load(x_ptr + pid * BLOCK)
        if first > 0:
            y = -x
        else:
            y = x
    tl.store(out_ptr + offs, y, mask=mask)


def if_case(n):
    block = 16
    programs = triton.cdiv(n, block)

    def run(x):
        out, seen = blank(n + GUARD, like=x), blank(programs, like=x, dtype=torch.int32)
        if_kernel[(programs,)](x, out, seen, n, BLOCK=block)
        return {"out": out, "seen": seen}

    def reference(x):
        out, seen = blank(n + GUARD, like=x), blank(programs, like=x, dtype=torch.int32)
        for pid in range(programs):
            part = x[pid * block : (pid + 1) * block]
            negated = -part if part[0] > 0 else part
            out[pid * block : pid * block + len(part)] = (part * 2, part * part, negated)[pid % 3]
            if pid % 3 == 1:
                seen[pid] = pid
        return {"out": out, "seen": seen}

    return Case(f"if/{n}", lambda g: {"x": normal(g, n)}, run, reference, 0.0)


@triton.jit
def collatz_kernel(x_ptr, steps_ptr, peak_ptr):
    """Program pid counts the steps from x[pid] to 1 (halve, or triple and add one), and the highest number on the way."""
    pid = tl.program_id(0)
    x = tl.load(x_ptr + pid)
    steps = 0
    peak = x
    while x != 1:
        if x % 2 == 0:
            x = x // 2
        else:
            x = x * 3 + 1
        peak = tl.maximum(peak, x)
        steps += 1
    tl.store(steps_ptr + pid, steps)
    tl.store(peak_ptr + pid, peak)


def collatz_case():
    def run(x):
        steps, peak = blank(len(x), like=x, dtype=torch.int32), blank(len(x), like=x)
        collatz_kernel[(len(x),)](x, steps, peak)
        return {"steps": steps, "peak": peak}

    def reference(x):
        steps, peaks = [], []
        for value in x.tolist():
            path = [value]
            while path[-1] != 1:
                path.append(path[-1] // 2 if path[-1] % 2 == 0 else 3 * path[-1] + 1)
            steps.append(len(path) - 1)
            peaks.append(max(path))
        return {"steps": torch.tensor(steps, dtype=torch.int32), "peak": torch.tensor(peaks)}

    return Case("while/collatz", lambda g: {"x": torch.arange(1, 60)}, run, reference)


@triton.jit
def search_kernel(sorted_ptr, wanted_ptr, found_ptr, N, n, BLOCK: tl.constexpr):
    """found[i] = how many of the N sorted numbers are below wanted[i], by halving an interval for BLOCK numbers at once."""
    offs = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    mask = offs < n
    wanted = tl.load(wanted_ptr + offs, mask=mask, other=0)
    low = tl.zeros((BLOCK,), dtype=tl.int32)
    high = tl.zeros((BLOCK,), dtype=tl.int32) + N
    width = N
    while width > 0:
        middle = (low + high) // 2
        here = tl.load(sorted_ptr + middle, mask=mask & (low < high), other=0)
        below = here < wanted
        low = tl.where((low < high) & below, middle + 1, low)
        high = tl.where((low <= middle) & ~below, middle, high)
        width = width // 2
    tl.store(found_ptr + offs, low, mask=mask)


def search_case():
    def make(g):
        return {"ordered": integers(g, 0, 500, 200).sort().values, "wanted": integers(g, -10, 520, 150)}

    def run(ordered, wanted):
        found = blank(150 + GUARD, like=wanted)
        search_kernel[(2,)](ordered, wanted, found, 200, 150, BLOCK=128)
        return {"found": found}

    def reference(ordered, wanted):
        found = torch.searchsorted(ordered, wanted).int()
        return {"found": torch.cat([found, blank(GUARD, like=wanted)])}

    return Case("while/binary search", make, run, reference)


@triton.jit
def early_return_kernel(x_ptr, keep_ptr, out_ptr, n, BLOCK: tl.constexpr):
    """Copies the blocks that keep names, and leaves at once for the others."""
    pid = tl.program_id(0)
    if tl.load(keep_ptr + pid) == 0:
        return
    offs = pid * BLOCK + tl.arange(0, BLOCK)
    if pid * BLOCK + BLOCK <= n:
        tl.store(out_ptr + offs, tl.load(x_ptr + offs))
        return
    mask = offs < n
    tl.store(out_ptr + offs, tl.load(x_ptr + offs, mask=mask), mask=mask)


def early_return_case(name, keep):
    block = 32
    n = block * len(keep) - 5

    def run(x, keep):
        out = blank(n + GUARD, like=x)
        early_return_kernel[(len(keep),)](x, keep, out, n, BLOCK=block)
        return {"out": out}

    def reference(x, keep):
        out = blank(n + GUARD, like=x)
        for pid, kept in enumerate(keep.tolist()):
            if kept:
                out[pid * block : min((pid + 1) * block, n)] = x[pid * block : (pid + 1) * block]
        return {"out": out}

    return Case(f"early return/{name}", lambda g: {"x": normal(g, n), "keep": torch.tensor(keep, dtype=torch.int32)}, run, reference, 0.0)


@triton.jit
def mean_and_spread(x, mask, n):
    """Mean of the n elements of x that mask names, and how far they reach."""
    mean = tl.sum(tl.where(mask, x, 0.0), axis=0) / n
    high = tl.max(tl.where(mask, x, float("-inf")), axis=0)
    low = tl.min(tl.where(mask, x, float("inf")), axis=0)
    return mean, high - low


@triton.jit(noinline=True)
def polynomial(x):
    """3x² + 2x + 1, by a call that stays a call."""
    return (3.0 * x + 2.0) * x + 1.0


@triton.jit(noinline=True)
def store_if_larger(out_ptr, x, limit):
    """Stores x where it is above limit; a function that returns nothing."""
    if x > limit:
        tl.store(out_ptr, x)


@triton.jit
def functions_kernel(x_ptr, mean_ptr, spread_ptr, poly_ptr, large_ptr, N, BLOCK: tl.constexpr):
    """Mean, spread, and a polynomial of row pid, by functions that are inlined, return two values, or stay calls."""
    pid = tl.program_id(0)
    offs = tl.arange(0, BLOCK)
    mask = offs < N
    x = tl.load(x_ptr + pid * N + offs, mask=mask)
    mean, spread = mean_and_spread(x, mask, N)
    tl.store(mean_ptr + pid, mean)
    tl.store(spread_ptr + pid, spread)
    tl.store(poly_ptr + pid, polynomial(polynomial(mean) - 1.0))
    store_if_larger(large_ptr + pid, spread, 4.0)


def functions_case(n):
    def run(x):
        outs = {name: blank(9, like=x) for name in ("mean", "spread", "poly", "large")}
        functions_kernel[(9,)](x, *outs.values(), n, BLOCK=triton.next_power_of_2(n))
        return outs

    def reference(x):
        x = x.double()
        mean, spread = x.mean(dim=1), x.max(dim=1).values - x.min(dim=1).values
        inner = (3 * mean + 2) * mean
        large = torch.where(spread > 4.0, spread, float("nan"))
        outs = {"mean": mean, "spread": spread, "poly": (3 * inner + 2) * inner + 1, "large": large}
        return {name: out.float() for name, out in outs.items()}

    return Case(f"functions/{n}", lambda g: {"x": normal(g, 9, n)}, run, reference, 2e-6)


@triton.jit
def unrolled_kernel(x_ptr, out_ptr, ORDER: tl.constexpr, BLOCK: tl.constexpr):
    """out = x + x²/2 + ... + x^ORDER/ORDER, the terms unrolled; a scaled copy when ORDER is 0."""
    offs = tl.arange(0, BLOCK)
    x = tl.load(x_ptr + offs)
    if ORDER == 0:
        out = x * 0.5
    else:
        out = tl.zeros((BLOCK,), dtype=tl.float32)
        power = x
        for i in tl.static_range(1, ORDER + 1):
            out += power / i
            power *= x
    tl.store(out_ptr + offs, out)


def unrolled_case(order):
    def run(x):
        out = blank(64, like=x)
        unrolled_kernel[(1,)](x, out, ORDER=order, BLOCK=64)
        return {"out": out}

    def reference(x):
        x = x.double()
        return {"out": (sum(x**i / i for i in range(1, order + 1)) if order else x * 0.5).float()}

    return Case(f"static range/{order}", lambda g: {"x": normal(g, 64, scale=0.5)}, run, reference)


@triton.jit
def grid_kernel(out_ptr, BLOCK: tl.constexpr):
    """out[x, y, z] = the program's place in the grid and the grid's size, in one number."""
    x, y, z = tl.program_id(0), tl.program_id(1), tl.program_id(2)
    n_x, n_y, n_z = tl.num_programs(0), tl.num_programs(1), tl.num_programs(2)
    place = (x * n_y + y) * n_z + z
    tl.store(out_ptr + place * BLOCK + tl.arange(0, BLOCK), ((x * 100 + y) * 100 + z) * 1000 + n_x * 100 + n_y * 10 + n_z)


def grid_case(grid):
    total = grid[0] * grid[1] * grid[2]

    def run(anchor):
        out = blank(total * 4, like=anchor)
        grid_kernel[grid](out, BLOCK=4)
        return {"out": out}

    def reference(anchor):
        size = grid[0] * 100 + grid[1] * 10 + grid[2]
        places = [((x * 100 + y) * 100 + z) * 1000 + size for x in range(grid[0]) for y in range(grid[1]) for z in range(grid[2])]
        return {"out": torch.tensor(places, dtype=torch.int32).repeat_interleave(4)}

    return Case(f"grid/{'x'.join(map(str, grid))}", lambda g: {"anchor": torch.zeros(1, dtype=torch.int32)}, run, reference)


CASES = [
    for_case(),
    *(range_case(step) for step in (1, 3)),
    nested_case(),
    *(if_case(n) for n in (1, 16, 150)),
    collatz_case(),
    search_case(),
    early_return_case("some", [1, 0, 1, 1, 0, 1]),
    early_return_case("none stay", [0, 0, 0]),
    early_return_case("all stay", [1, 1]),
    *(functions_case(n) for n in (1, 100)),
    *(unrolled_case(order) for order in (0, 1, 5)),
    *(grid_case(grid) for grid in ((1, 1, 1), (3, 4, 5), (9, 1, 2))),
]
