"""Offsets and masks that are described instead of computed give what the plain operations give, faults included."""

import pytest
import torch
import triton
import triton.language as tl

from kit import machine
from kit.simulator import launch, operations, strides
from kit.simulator.lanes import Box, Lanes
from kit.simulator.memory import IllegalAccess, Memory, MisalignedAccess
from kit.simulator.values import Value, take_rows


@pytest.fixture(scope="module", autouse=True)
def started():
    return machine.start()


@pytest.fixture
def by_both(monkeypatch):
    """Run a launch with the described table and with the plain one, on equal memory; gives (described, plain) results."""

    def run(make, go):
        results = []
        for table in (strides.TABLE, operations.TABLE):
            monkeypatch.setattr(launch, "TABLE", table)
            tensors = make()
            error = None
            try:
                go(*tensors)
            except (IllegalAccess, MisalignedAccess) as caught:
                error = str(caught)
            results.append((tensors, error))
        return results

    return run


@pytest.fixture
def addresses(monkeypatch):
    """Counts the loads and stores that went lane by lane."""
    seen = []
    for name in ("load", "store"):
        plain = getattr(Memory, name)
        monkeypatch.setattr(
            Memory, name, lambda self, address, *rest, plain=plain: seen.append(address.shape) or plain(self, address, *rest)
        )
    return seen


def same(results):
    (described, error), (plain, other) = results
    assert error == other
    for a, b in zip(described, plain, strict=True):
        assert torch.equal(a, b)
    return error


@triton.jit
def copy_kernel(
    x_ptr, out_ptr, M, N, stride_xm, stride_xn, stride_om, stride_on, shift,
    BLOCK_M: tl.constexpr, BLOCK_N: tl.constexpr, OTHER: tl.constexpr,
):  # fmt: skip
    """out[m, n] = x[m, n + shift] for any strides, -1 where x has no such column; a program owns a tile."""
    offs_m = tl.program_id(0) * BLOCK_M + tl.arange(0, BLOCK_M)
    offs_n = tl.program_id(1) * BLOCK_N + tl.arange(0, BLOCK_N)
    there = (offs_m[:, None] < M) & (offs_n[None, :] + shift < N) & (offs_n[None, :] + shift >= 0)
    x_ptrs = x_ptr + offs_m[:, None] * stride_xm + (offs_n[None, :] + shift) * stride_xn
    x = tl.load(x_ptrs, mask=there, other=OTHER) if OTHER is not None else tl.load(x_ptrs, mask=there)
    tl.store(out_ptr + offs_m[:, None] * stride_om + offs_n[None, :] * stride_on, x, mask=(offs_m[:, None] < M) & (offs_n[None, :] < N))


VIEWS = {
    "rows": lambda x: x,
    "transposed": lambda x: x.T,
    "every second": lambda x: x[1::2, 3::2],
    "one row for all": lambda x: x[:1].expand(40, 90),
    "one column for all": lambda x: x[:, :1].expand(40, 90),
    "a corner": lambda x: x[-7:, -9:],
    "one element": lambda x: x[3:4, 5:6],
}


@pytest.mark.parametrize("view", VIEWS)
@pytest.mark.parametrize(
    "shift, dtype, other", [(0, torch.float32, -1), (-2, torch.float64, None), (3, torch.int8, -1), (200, torch.bool, None)]
)
def test_copies(by_both, view, shift, dtype, other):
    def make():
        x = VIEWS[view]((torch.arange(40 * 90).reshape(40, 90) % 127).to(dtype))
        return x, torch.zeros(x.shape, dtype=dtype).T.contiguous().T

    def go(x, out):
        grid = (triton.cdiv(x.shape[0], 16), triton.cdiv(x.shape[1], 32))
        copy_kernel[grid](x, out, *x.shape, *x.stride(), *out.stride(), shift, BLOCK_M=16, BLOCK_N=32, OTHER=other)

    results = by_both(make, go)
    assert same(results) is None
    x, out = results[0][0]
    expected = torch.full(x.shape, 0 if other is None else other, dtype=torch.float64)
    for n in range(x.shape[1]):
        if 0 <= n + shift < x.shape[1]:
            expected[:, n] = x[:, n + shift].double()
    assert torch.equal(out.double(), expected)


@triton.jit
def add_kernel(x_ptr, y_ptr, out_ptr, n, BLOCK: tl.constexpr):
    offs = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    mask = offs < n
    tl.store(out_ptr + offs, tl.load(x_ptr + offs, mask=mask) + tl.load(y_ptr + offs, mask=mask), mask=mask)


def test_contiguous_blocks_are_no_addresses(by_both, addresses):
    n = 5 * 128 + 1

    def make():
        return torch.rand(n, generator=torch.Generator().manual_seed(1)), torch.ones(n), torch.zeros(n)

    results = by_both(make, lambda x, y, out: add_kernel[(6,)](x, y, out, n, BLOCK=128))
    assert same(results) is None
    described, plain = addresses[:3], addresses[3:]
    assert [shape[0] for shape in described] == [1, 1, 1]  # the last program alone, whose masked lanes lie outside
    assert [shape[0] for shape in plain] == [6, 6, 6]
    addresses.clear()
    by_both(make, lambda x, y, out: add_kernel[(5,)](x, y, out, n, BLOCK=128))
    assert [shape[0] for shape in addresses] == [5, 5, 5]  # by the plain table; the described one asks for none


@pytest.mark.parametrize("n, block", [(1000, 1024), (1024, 1024), (1, 16)])
def test_a_mask_that_is_the_same_for_all_programs(by_both, addresses, n, block):
    def make():
        return torch.rand(7, n + 3, generator=torch.Generator().manual_seed(2)), torch.full((7, n), -1.0)

    def go(x, out):
        copy_kernel[(7, 1)](x, out, 7, n, *x.stride(), *out.stride(), 0, BLOCK_M=1, BLOCK_N=block, OTHER=None)

    assert same(by_both(make, go)) is None
    assert len(addresses) == 2  # those of the plain table


@pytest.mark.parametrize("grid", [1, 3, 200])
def test_faults_are_told_alike(by_both, grid):
    pool = torch.zeros(1)

    def make():
        return torch.zeros(10), pool

    def go(x, out):
        far_kernel[(grid,)](x, out, 2**28, BLOCK=16)

    assert "x_ptr at element offset" in same(by_both(make, go))


@triton.jit
def far_kernel(x_ptr, out_ptr, stride, BLOCK: tl.constexpr):
    offs = (tl.program_id(0).to(tl.int64) + 1) * stride + tl.arange(0, BLOCK)
    tl.store(out_ptr, tl.sum(tl.load(x_ptr + offs), axis=0))


@triton.jit
def odd_kernel(x_ptr, out_ptr, BLOCK: tl.constexpr):
    offs = tl.arange(0, BLOCK)
    tl.store(out_ptr + offs, tl.load((x_ptr + offs * 4 + 1).to(tl.pointer_type(tl.int32))))


def test_misaligned_lanes_are_told_alike(by_both):
    text = same(
        by_both(
            lambda: (torch.zeros(256, dtype=torch.uint8), torch.zeros(16, dtype=torch.int32)),
            lambda x, out: odd_kernel[(1,)](x, out, BLOCK=16),
        )
    )
    assert "no multiple of the element's 4 bytes" in text


@triton.jit
def odd_start_kernel(x_ptr, out_ptr, stride, BLOCK: tl.constexpr):
    pid = tl.program_id(0)
    offs = tl.arange(0, BLOCK)
    x = tl.load((x_ptr + pid * stride + offs * 4).to(tl.pointer_type(tl.int32)))
    tl.store(out_ptr + pid * BLOCK + offs, x)


@pytest.mark.parametrize("stride, refused", [(64, False), (66, True)])
def test_misaligned_programs_are_told_alike(by_both, stride, refused):
    def make():
        return torch.arange(256, dtype=torch.uint8), torch.zeros(48, dtype=torch.int32)

    text = same(by_both(make, lambda x, out: odd_start_kernel[(3,)](x, out, stride, BLOCK=16)))
    assert ("no multiple" in text) if refused else (text is None)


@pytest.mark.parametrize("programs", [2, 64])
def test_many_evenly_spaced_blocks(by_both, programs):
    """Large enough for one copy of all programs, which run from the last to the first."""
    n = programs * 8192

    def make():
        return torch.arange(n, dtype=torch.float32), torch.ones(n), torch.zeros(n)

    results = by_both(make, lambda x, y, out: add_kernel[(programs,)](x, y, out, n, BLOCK=8192))
    assert same(results) is None
    assert torch.equal(results[0][0][2], torch.arange(n) + 1.0)


@triton.jit
def wrapped_kernel(out_ptr, small_ptr, factor, BLOCK: tl.constexpr):
    """Offsets whose int32 product wraps: what they become, how they compare, and what they are as 64 bits."""
    pid = tl.program_id(0)
    offs = tl.arange(0, BLOCK)
    product = (pid * BLOCK + offs) * factor
    tl.store(out_ptr + pid * BLOCK + offs, product.to(tl.int64))
    tl.store(small_ptr + pid * BLOCK + offs, (product < 1000).to(tl.int8) + 2 * (5 - offs * factor >= -factor).to(tl.int8))


@pytest.mark.parametrize("factor", [3, 50_000_000, 2**30, -7, 2**31 - 1, -(2**31) + 2])
def test_int32_wraps_alike(by_both, factor):
    results = by_both(
        lambda: (torch.zeros(96, dtype=torch.int64), torch.zeros(96, dtype=torch.int8)),
        lambda out, small: wrapped_kernel[(3,)](out, small, factor, BLOCK=32),
    )
    assert same(results) is None
    exact = torch.arange(96) * factor
    assert torch.equal(results[0][0][0], (exact + 2**31) % 2**32 - 2**31)


@triton.jit
def reversed_kernel(x_ptr, out_ptr, length_ptr, BLOCK: tl.constexpr):
    """Steps that go down, a mask that differs from program to program, and several programs that write one place."""
    pid = tl.program_id(0)
    offs = tl.arange(0, BLOCK)
    length = tl.load(length_ptr + pid)
    x = tl.load(x_ptr + pid * BLOCK + BLOCK - 1 - offs, mask=offs < length, other=9)
    tl.store(out_ptr + pid * BLOCK + offs, x, mask=(offs <= length) & (pid < 4))
    tl.store(out_ptr + 5 * BLOCK + offs, offs)


def test_downward_ragged_and_together(by_both):
    def make():
        lengths = torch.tensor([0, 5, 31, 32, 40], dtype=torch.int32)
        return torch.arange(160, dtype=torch.int32), torch.full((192,), -1, dtype=torch.int32), lengths

    results = by_both(make, lambda x, out, lengths: reversed_kernel[(5,)](x, out, lengths, BLOCK=32))
    assert same(results) is None
    out = results[0][0][1].reshape(6, 32)
    assert out[0].tolist() == [9] + [-1] * 31 and out[3].tolist() == list(range(127, 95, -1)) and out[4].eq(-1).all()
    assert out[5].tolist() == list(range(32))


@triton.jit
def overlapping_kernel(x_ptr, out_ptr, BLOCK: tl.constexpr):
    """Each program writes BLOCK elements, of which all but one are the next program's too: with equal values."""
    pid = tl.program_id(0)
    offs = pid + tl.arange(0, BLOCK)
    tl.store(out_ptr + offs, tl.load(x_ptr + offs))


def test_blocks_that_overlap(by_both):
    def make():
        return torch.arange(1000, dtype=torch.int16), torch.zeros(1200, dtype=torch.int16)

    results = by_both(make, lambda x, out: overlapping_kernel[(873,)](x, out, BLOCK=128))
    assert same(results) is None
    assert torch.equal(results[0][0][1][:1000], results[0][0][0])


def test_rows_of_a_description():
    starts = torch.tensor([5, 7, 9])
    lanes = Lanes(torch.int64, 100, starts, (2, 0), (4, 1), "x_ptr")
    assert lanes.data.shape == (3, 4, 1) and lanes.data[1, :, 0].tolist() == [107, 109, 111, 113]
    part = take_rows(lanes, torch.tensor([2, 0]))
    assert torch.equal(part.data, lanes.data[[2, 0]]) and part.argument == "x_ptr"
    box = Box((torch.tensor([0, 2, 4]), None), (4, 1), ((0, 4), (1, 1)))
    assert box.data[:, :, 0].sum(1).tolist() == [0, 2, 4]
    assert torch.equal(take_rows(box, torch.tensor([1])).data, box.data[1:2])
    assert isinstance(take_rows(Value(starts), torch.tensor([True, False, False])), Value)
