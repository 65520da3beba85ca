"""Zoo: kernels whose point is where they read and write: atomics, tables of indices, rotations in place, block pointers."""

from __future__ import annotations

import torch
import triton
import triton.language as tl

from kit.tests.zoo_case import GUARD, SIZES, Case, blank, integers, normal, short


@triton.jit
def histogram_kernel(x_ptr, counts_ptr, local_ptr, n, BINS: tl.constexpr, BLOCK: tl.constexpr):
    """counts[b] = how many x are b, by one atomic an element; local[b] the same, by one atomic a bin and block."""
    pid = tl.program_id(0)
    offs = pid * BLOCK + tl.arange(0, BLOCK)
    mask = offs < n
    x = tl.load(x_ptr + offs, mask=mask, other=0)
    tl.atomic_add(counts_ptr + x, 1, mask=mask)
    padding = tl.sum(tl.where(mask, 0, 1), axis=0)
    bins = tl.arange(0, BINS)
    local = tl.histogram(x, BINS)
    local = tl.where(bins == 0, local - padding, local)  # masked lanes were counted as 0
    tl.atomic_add(local_ptr + bins, local)


def histogram_case(n):
    def run(x):
        counts, local = (torch.zeros(16 + GUARD, dtype=torch.int32, device=x.device) for _ in range(2))
        histogram_kernel[(triton.cdiv(n, 128),)](x, counts, local, n, BINS=16, BLOCK=128)
        return {"counts": counts, "local": local}

    def reference(x):
        counts = torch.bincount(x.long(), minlength=16 + GUARD).int()
        return {"counts": counts, "local": counts}

    return Case(f"histogram/{n}", lambda g: {"x": integers(g, 0, 16, n)}, run, reference)


@triton.jit
def atomics_kernel(x_ptr, out_ptr, n, BLOCK: tl.constexpr):
    """out[k] = the k-th of ATOMICS over all x; all programs and lanes meet at one address each."""
    offs = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    mask = offs < n
    x = tl.load(x_ptr + offs, mask=mask, other=0)
    one = tl.zeros((BLOCK,), dtype=tl.int32)
    tl.atomic_add(out_ptr + one, x, mask=mask)
    tl.atomic_max(out_ptr + 1 + one, x, mask=mask)
    tl.atomic_min(out_ptr + 2 + one, x, mask=mask)
    tl.atomic_and(out_ptr + 3 + one, x, mask=mask)
    tl.atomic_or(out_ptr + 4 + one, x, mask=mask)
    tl.atomic_xor(out_ptr + 5 + one, x, mask=mask)


def atomics_case(dtype, n):
    start = [0, -(2**31) if dtype.is_signed else 0, 2**31 - 1, -1 if dtype.is_signed else 2**32 - 1, 0, 0]

    def make(g):
        low = -(2**20) if dtype.is_signed else 0
        return {"x": integers(g, low, 2**20, n, dtype=dtype)}

    def run(x):
        out = torch.tensor(start, dtype=dtype, device=x.device)
        atomics_kernel[(triton.cdiv(n, 64),)](x, out, n, BLOCK=64)
        return {"out": out}

    def reference(x):
        total, top, low, every, some, odd = start
        for value in x.tolist():
            total, top, low = total + value, max(top, value), min(low, value)
            every, some, odd = every & value, some | value, odd ^ value
        return {"out": torch.tensor([total, top, low, every, some, odd], dtype=dtype)}

    return Case(f"atomics/{short(dtype)}/{n}", make, run, reference)


@triton.jit
def float_atomics_kernel(x_ptr, sum_ptr, max_ptr, min_ptr, n, BINS: tl.constexpr, BLOCK: tl.constexpr):
    """Sum, maximum and minimum of the x of each bin (place modulo BINS), by float atomics."""
    offs = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    mask = offs < n
    x = tl.load(x_ptr + offs, mask=mask, other=0.0)
    tl.atomic_add(sum_ptr + offs % BINS, x, mask=mask)
    tl.atomic_max(max_ptr + offs % BINS, x.to(tl.float32), mask=mask)
    tl.atomic_min(min_ptr + offs % BINS, x.to(tl.float32), mask=mask)


def float_atomics_case(dtype, n):
    # Small whole numbers: their sums are exact in any order, and the order is nobody's choice.
    def make(g):
        return {"x": integers(g, -4, 5, n, dtype=dtype)}

    def run(x):
        total = torch.zeros(8, dtype=dtype, device=x.device)
        top, low = (torch.full((8,), value, dtype=torch.float32, device=x.device) for value in (-100.0, 100.0))
        float_atomics_kernel[(triton.cdiv(n, 64),)](x, total, top, low, n, BINS=8, BLOCK=64)
        return {"sum": total, "max": top, "min": low}

    def reference(x):
        bins = [x[i::8].double() for i in range(8)]
        top = [max([-100.0, *b.tolist()]) for b in bins]
        low = [min([100.0, *b.tolist()]) for b in bins]
        return {"sum": torch.stack([b.sum() for b in bins]).to(dtype), "max": torch.tensor(top), "min": torch.tensor(low)}

    return Case(f"float atomics/{short(dtype)}/{n}", make, run, reference, 0.0)


@triton.jit
def old_values_kernel(ticket_ptr, order_ptr, slot_ptr, taken_ptr, before_ptr, TICKETS: tl.constexpr):
    """Each program draws a ticket (an atomic whose old value is used), tries to take slot pid % TICKETS, and swaps its number in."""
    pid = tl.program_id(0)
    ticket = tl.atomic_add(ticket_ptr, 1)
    tl.store(order_ptr + ticket, 1)
    seen = tl.atomic_cas(slot_ptr + pid % TICKETS, -1, pid)
    tl.atomic_add(taken_ptr + pid % TICKETS, (seen == -1).to(tl.int32))
    before = tl.atomic_xchg(before_ptr + pid, pid * 10)
    tl.atomic_max(before_ptr + pid, before + pid)


def old_values_case(programs):
    tickets = 5

    def run(start):
        ticket = torch.zeros(1, dtype=torch.int32, device=start.device)
        order, taken = blank(programs, like=start), torch.zeros(tickets, dtype=torch.int32, device=start.device)
        slots, before = torch.full_like(taken, -1), start.clone()
        old_values_kernel[(programs,)](ticket, order, slots, taken, before, TICKETS=tickets)
        # Which program won a slot is nobody's choice; that exactly one of its own did is.
        places = torch.arange(tickets, device=start.device)
        fair = (slots == -1) | (slots % tickets == places)
        return {"ticket": ticket, "order": order, "taken": taken, "fair": fair.int(), "before": before}

    def reference(start):
        pid = torch.arange(programs, dtype=torch.int32)
        return {
            "ticket": torch.tensor([programs], dtype=torch.int32),
            "order": torch.ones(programs, dtype=torch.int32),
            "taken": (torch.arange(tickets) < programs).int(),
            "fair": torch.ones(tickets, dtype=torch.int32),
            "before": torch.maximum(pid * 10, start + pid),
        }

    return Case(f"old values/{programs}", lambda g: {"start": integers(g, 0, 1000, programs)}, run, reference)


@triton.jit
def paged_read_kernel(
    cache_ptr, table_ptr, lengths_ptr, out_ptr, stride_block, stride_token, stride_head, stride_table, N,
    D: tl.constexpr, PAGE: tl.constexpr,
):  # fmt: skip
    """out[s, h, t, :] = the cached row of token t: page table[s, t // PAGE], place t % PAGE; a program owns a sequence and head."""
    pid_s, pid_h = tl.program_id(0), tl.program_id(1)
    length = tl.load(lengths_ptr + pid_s)
    offs_t, offs_d = tl.arange(0, PAGE), tl.arange(0, D)
    for page in range(0, tl.cdiv(length, PAGE)):
        block = tl.load(table_ptr + pid_s * stride_table + page).to(tl.int64)
        mask = (page * PAGE + offs_t < length)[:, None]
        rows = cache_ptr + block * stride_block + pid_h * stride_head + offs_t[:, None] * stride_token + offs_d[None, :]
        x = tl.load(rows, mask=mask, other=0.0)
        out = out_ptr + ((pid_s * tl.num_programs(1) + pid_h) * N + page * PAGE + offs_t)[:, None] * D + offs_d[None, :]
        tl.store(out, x, mask=mask)


def paged_read_case(dtype):
    lengths, heads, d, page, blocks = [1, 16, 17, 0, 40], 2, 32, 16, 20
    width = 40

    def make(g):
        table = torch.randperm(blocks, generator=g)[: len(lengths) * 3].reshape(len(lengths), 3).to(torch.int32)
        return {
            "cache": normal(g, blocks, page, heads, d, dtype=dtype),
            "table": table,
            "lengths": torch.tensor(lengths, dtype=torch.int32),
        }

    def run(cache, table, lengths):
        out = blank(len(lengths), heads, width, d, like=cache)
        strides = (*cache.stride()[:3], table.stride(0))
        paged_read_kernel[(len(lengths), heads)](cache, table, lengths, out, *strides, width, D=d, PAGE=page)
        return {"out": out}

    def reference(cache, table, lengths):
        out = blank(len(lengths), heads, width, d, like=cache)
        for s, length in enumerate(lengths.tolist()):
            rows = torch.cat([cache[b] for b in table[s].long()])[:length]  # tokens, heads, d
            out[s, :, :length] = rows.transpose(0, 1)
        return {"out": out}

    return Case(f"paged read/{short(dtype)}", make, run, reference, 0.0)


@triton.jit
def rope_kernel(x_ptr, cos_ptr, sin_ptr, n_heads, stride_xt, stride_xh, HALF: tl.constexpr, BLOCK_H: tl.constexpr):
    """In place: the two halves of each head of token pid are rotated by the token's angles."""
    pid = tl.program_id(0)
    offs_h, offs_d = tl.arange(0, BLOCK_H), tl.arange(0, HALF)
    mask = (offs_h < n_heads)[:, None]
    cos = tl.load(cos_ptr + pid * HALF + offs_d)[None, :]
    sin = tl.load(sin_ptr + pid * HALF + offs_d)[None, :]
    x_ptrs = x_ptr + pid * stride_xt + offs_h[:, None] * stride_xh + offs_d[None, :]
    x1 = tl.load(x_ptrs, mask=mask).to(tl.float32)
    x2 = tl.load(x_ptrs + HALF, mask=mask).to(tl.float32)
    tl.store(x_ptrs, x1 * cos - x2 * sin, mask=mask)
    tl.store(x_ptrs + HALF, x2 * cos + x1 * sin, mask=mask)


def rope_case(dtype, heads):
    tokens, half = 9, 32

    def make(g):
        angles = torch.rand(tokens, half, generator=g) * 100
        return {"x": normal(g, tokens, heads + 1, 2 * half, dtype=dtype), "cos": angles.cos(), "sin": angles.sin()}

    def run(x, cos, sin):
        x = x.clone()
        rope_kernel[(tokens,)](x, cos, sin, heads, x.stride(0), x.stride(1), HALF=half, BLOCK_H=triton.next_power_of_2(heads))
        return {"x": x}

    def reference(x, cos, sin):
        x, cos, sin = x.clone(), cos.double()[:, None], sin.double()[:, None]
        x1, x2 = x[:, :heads, :half].double(), x[:, :heads, half:].double()
        x[:, :heads] = torch.cat([x1 * cos - x2 * sin, x2 * cos + x1 * sin], dim=-1).to(dtype)
        return {"x": x}  # the last head is not rotated

    # One product is fused in each half. Which of the two, the H200's code chooses otherwise in fp32: one unit in the last place.
    apart = 1e-7 if dtype is torch.float32 else 0.0
    return Case(f"rope/{short(dtype)}/{heads}", make, run, reference, apart=apart)


# Triton 3.9 removed them: "Block pointers have been removed in favor of the tensor descriptor API".
HAS_BLOCK_POINTERS = tuple(map(int, triton.__version__.split(".")[:2])) < (3, 9)


@triton.jit
def block_pointer_kernel(x_ptr, out_ptr, M, N, stride_xm, BLOCK_M: tl.constexpr, BLOCK_N: tl.constexpr):
    """out[n, m] = x[m, n], by block pointers that walk along the columns and check both bounds."""
    pid = tl.program_id(0)
    x_ptrs = tl.make_block_ptr(x_ptr, (M, N), (stride_xm, 1), (pid * BLOCK_M, 0), (BLOCK_M, BLOCK_N), (1, 0))
    out_ptrs = tl.make_block_ptr(out_ptr, (N, M), (M, 1), (0, pid * BLOCK_M), (BLOCK_N, BLOCK_M), (1, 0))
    for _ in range(0, N, BLOCK_N):
        x = tl.load(x_ptrs, boundary_check=(0, 1), padding_option="zero")
        tl.store(out_ptrs, tl.trans(x), boundary_check=(0, 1))
        x_ptrs = tl.advance(x_ptrs, (0, BLOCK_N))
        out_ptrs = tl.advance(out_ptrs, (BLOCK_N, 0))


def block_pointer_case(m, n):
    def run(x):
        out = blank(n * m + GUARD, like=x)
        block_pointer_kernel[(triton.cdiv(m, 16),)](x, out, m, n, x.stride(0), BLOCK_M=16, BLOCK_N=32)
        return {"out": out[: n * m].reshape(n, m), "guard": out[n * m :]}

    def reference(x):
        return {"out": x.T.contiguous(), "guard": blank(GUARD, like=x)}

    return Case(f"block pointers/{m}x{n}", lambda g: {"x": normal(g, m, n)}, run, reference, 0.0)


@triton.jit
def pointer_table_kernel(addresses_ptr, lengths_ptr, out_ptr, stride_om, BLOCK: tl.constexpr):
    """Row pid of out = the tensor whose address stands in addresses[pid]; pointers that are read from memory."""
    pid = tl.program_id(0)
    x_ptr = tl.load(addresses_ptr + pid).to(tl.pointer_type(tl.float32))
    offs = tl.arange(0, BLOCK)
    mask = offs < tl.load(lengths_ptr + pid)
    tl.store(out_ptr + pid * stride_om + offs, tl.load(x_ptr + offs, mask=mask), mask=mask)


def pointer_table_case():
    lengths = [5, 64, 1, 33]

    def make(g):
        return {f"x{i}": normal(g, n) for i, n in enumerate(lengths)}

    def run(**tensors):
        device = tensors["x0"].device
        addresses = torch.tensor([x.data_ptr() for x in tensors.values()], dtype=torch.int64, device=device)
        out = blank(len(lengths), 70, like=tensors["x0"])
        pointer_table_kernel[(len(lengths),)](addresses, torch.tensor(lengths, dtype=torch.int32, device=device), out, 70, BLOCK=64)
        return {"out": out}

    def reference(**tensors):
        out = blank(len(lengths), 70, like=tensors["x0"])
        for row, x in zip(out, tensors.values(), strict=True):
            row[: len(x)] = x
        return {"out": out}

    return Case("table of pointers", make, run, reference, 0.0)


CASES = [
    *(histogram_case(n) for n in SIZES),
    *(atomics_case(dtype, n) for dtype, n in ((torch.int32, 1), (torch.int32, 300), (torch.int64, 300), (torch.uint32, 300))),
    *(float_atomics_case(dtype, n) for dtype, n in ((torch.float32, 7), (torch.float32, 300), (torch.float16, 300), (torch.float64, 300))),
    *(old_values_case(programs) for programs in (1, 5, 40)),
    *(paged_read_case(dtype) for dtype in (torch.bfloat16, torch.float32)),
    *(rope_case(dtype, heads) for dtype, heads in ((torch.float32, 3), (torch.float16, 4), (torch.bfloat16, 3), (torch.bfloat16, 1))),
    *(block_pointer_case(m, n) for m, n in ((1, 1), (16, 32), (33, 65)) if HAS_BLOCK_POINTERS),
    pointer_table_case(),
]
