"""`dry_run` and `ghost`: what is found on paper, what is not called an error, and where the first program is."""

import pytest
import torch
import triton
import triton.language as tl

import kit
from kit.errors import BadInput, WrongType
from kit.simulator.dependence import written_arguments
from kit.simulator.launch import read_program


@pytest.fixture(autouse=True, scope="module")
def machine():
    return kit.start()


@triton.jit
def read_int32_kernel(x_ptr, y_ptr, stride, BLOCK: tl.constexpr):
    pid = tl.program_id(0)
    offs = tl.arange(0, BLOCK)
    x = tl.load(x_ptr + pid * stride + offs)
    tl.store(y_ptr + pid.to(tl.int64) * BLOCK + offs, x)


@triton.jit
def read_late_cast_kernel(x_ptr, y_ptr, stride, BLOCK: tl.constexpr):
    pid = tl.program_id(0)
    offs = tl.arange(0, BLOCK)
    x = tl.load(x_ptr + (pid * stride).to(tl.int64) + offs)
    tl.store(y_ptr + pid.to(tl.int64) * BLOCK + offs, x)


@triton.jit
def read_int64_kernel(x_ptr, y_ptr, stride, BLOCK: tl.constexpr):
    pid = tl.program_id(0).to(tl.int64)
    offs = tl.arange(0, BLOCK)
    x = tl.load(x_ptr + pid * stride + offs)
    tl.store(y_ptr + pid * BLOCK + offs, x)


@triton.jit
def read_uint32_kernel(x_ptr, y_ptr, stride, BLOCK: tl.constexpr):
    pid = tl.program_id(0).to(tl.uint32)
    offs = tl.arange(0, BLOCK)
    x = tl.load(x_ptr + pid * stride.to(tl.uint32) + offs)
    tl.store(y_ptr + pid.to(tl.int64) * BLOCK + offs, x)


@triton.jit
def read_through_integer_kernel(x_ptr, y_ptr, stride, BLOCK: tl.constexpr):
    pid = tl.program_id(0)
    offs = tl.arange(0, BLOCK)
    start = (x_ptr + pid * stride).to(tl.int64)
    x = tl.load(start.to(tl.pointer_type(tl.int8)) + offs)
    tl.store(y_ptr + pid.to(tl.int64) * BLOCK + offs, x)


@triton.jit
def masked_int32_kernel(x_ptr, y_ptr, n, BLOCK: tl.constexpr):
    pid = tl.program_id(0)
    offs = pid * BLOCK + tl.arange(0, BLOCK)
    mask = offs < n
    tl.store(y_ptr + offs, tl.load(x_ptr + offs, mask=mask), mask=mask)


@triton.jit
def scatter_hash_kernel(y_ptr, N: tl.constexpr, BLOCK: tl.constexpr):
    pid = tl.program_id(0)
    offs = pid * BLOCK + tl.arange(0, BLOCK)
    slot = (offs.to(tl.uint32) * 2654435761) % N
    noise = tl.rand(7, offs)
    tl.store(y_ptr + slot, noise)


@triton.jit
def wraps_back_kernel(x_ptr, y_ptr, stride, less):
    pid = tl.program_id(0)
    offset = pid * stride - pid * less
    tl.store(y_ptr + pid, tl.load(x_ptr + offset))


@triton.jit
def grid_2d_kernel(x_ptr, y_ptr, stride_t, stride_h):
    pid_h = tl.program_id(0)
    pid_t = tl.program_id(1)
    tl.store(y_ptr, tl.load(x_ptr + pid_t * stride_t + pid_h * stride_h))


@triton.jit
def through_table_kernel(x_ptr, table_ptr, y_ptr, stride):
    pid = tl.program_id(0)
    block_id = tl.load(table_ptr + pid)
    tl.store(y_ptr + pid, tl.load(x_ptr + block_id * stride))


CACHE = (40_000, 65_536)


def report(kernel, n=40_000, cache=CACHE):
    return kit.dry_run(kernel, (n,), kit.ghost(cache, torch.int8), kit.ghost((n, 1_024), torch.int8), 65_536, BLOCK=1_024)


@pytest.mark.parametrize("kernel", [read_int32_kernel, read_late_cast_kernel, read_through_integer_kernel])
def test_overflow_with_line_program_and_values(kernel):
    found = report(kernel).of("overflow")
    assert len(found) == 1 and not report(kernel)
    (overflow,) = found
    assert overflow.program == (32_768, 0, 0)
    assert (overflow.true, overflow.wrapped) == (2**31, -(2**31))
    assert "pid * stride" in overflow.source and "x_ptr" in overflow.text


def test_a_correct_kernel_is_not_flagged():
    assert report(read_int64_kernel)
    assert report(read_int64_kernel).findings == []


def test_uint32_is_right_up_to_two_to_the_32_and_wrong_from_there():
    assert report(read_uint32_kernel)
    found = report(read_uint32_kernel, 70_000, (70_000, 65_536)).of("overflow")
    assert [f.program for f in found] == [(65_536, 0, 0)]


def test_wrap_around_on_purpose_is_no_error():
    hashed = kit.dry_run(scatter_hash_kernel, (1_000,), kit.ghost(1_024, torch.float32), N=1_024, BLOCK=256)
    assert not hashed.of("overflow") and any(finding.hazard == "overflow" for finding in hashed.told("remark"))
    assert [f.hazard for f in hashed.errors] == ["race between programs"]  # 256,000 numbers, hashed to 1,024 places


def test_a_sum_that_wraps_back_is_no_error():
    x = kit.ghost(8, torch.float32)
    back = kit.dry_run(wraps_back_kernel, (3,), x, x, 2_000_000_001, 2_000_000_000)
    assert back and "integers wrap" in back.findings[0].text


def test_a_mask_that_is_decided_by_a_wrapped_offset():
    n = 2**31 + 5_000
    x = kit.ghost(n, torch.float32)
    found = kit.dry_run(masked_int32_kernel, (triton.cdiv(n, 1_024),), x, x, n, BLOCK=1_024)
    assert not found and "comparison" in found.errors[0].text
    assert kit.dry_run(masked_int32_kernel, (1_000,), x, x, 1_000_000, BLOCK=1_024)


def test_first_program_in_two_axes():
    x = kit.ghost((200_000, 64, 256), torch.float16)
    found = kit.dry_run(grid_2d_kernel, (64, 60_000), x, kit.ghost(1, torch.float16), 64 * 1_024, 256).of("overflow")
    assert (0, 32_768, 0) in [f.program for f in found]


def test_index_tables_are_read():
    cache, out = kit.ghost(CACHE, torch.int8), kit.ghost(3, torch.int8)
    device = kit.start().device
    good = torch.tensor([0, 5, 32_767], dtype=torch.int32, device=device)
    assert kit.dry_run(through_table_kernel, (3,), cache, good, out, 65_536)
    bad = torch.tensor([0, 32_768, 3], dtype=torch.int32, device=device)
    assert kit.dry_run(through_table_kernel, (3,), cache, bad, out, 65_536).errors[0].program == (1, 0, 0)


def test_addresses_outside_their_argument():
    found = report(read_int64_kernel, 40_001).of("out of bounds")
    assert [f.program for f in found] == [(40_000, 0, 0)] and "x_ptr" in found[0].text


def test_nothing_is_written():
    device = kit.start().device
    x, y = torch.ones(2, 1_024, dtype=torch.int8, device=device), torch.zeros(2, 1_024, dtype=torch.int8, device=device)
    assert kit.dry_run(read_int64_kernel, (2,), x, y, 1_024, BLOCK=1_024)
    assert y.eq(0).all()


@pytest.mark.parametrize(
    "grid, hazards",
    [
        ((65_536,), []),
        ((1, 65_535), []),
        ((1, 65_536), ["refused"]),
        ((1, 1, 65_538), ["refused"]),
        ((65_536, 32_768), ["skipped in silence"]),
        ((46_341, 46_341), ["skipped in silence"]),
        ((2**31,), ["refused"]),
    ],
)
def test_grids(grid, hazards):
    found = kit.dry_run(mark_kernel, grid, kit.ghost(1, torch.int32)).of("grid")
    assert len(found) == len(hazards) and all(word in f.text for word, f in zip(hazards, found, strict=True))


@triton.jit
def mark_kernel(x_ptr):
    tl.store(x_ptr, 1)


def test_zero_programs_is_a_remark():
    empty = kit.dry_run(mark_kernel, (0,), kit.ghost(1, torch.int32))
    assert empty and empty.ran == 0 and "no program runs" in empty.findings[0].text


def test_grid_as_a_function():
    x = kit.ghost(5_000, torch.float32)
    assert kit.dry_run(masked_int32_kernel, lambda meta: (triton.cdiv(meta["n"], meta["BLOCK"]),), x, x, 5_000, BLOCK=256).programs == 20


def test_views_by_strides_and_offset():
    view = kit.ghost((4, 8), torch.float32, strides=(100, 1), offset=3)
    assert view.data_ptr() % 16 == 12 and view.stride() == (100, 1)
    assert view.ghost_extent()[1] == (3 + 3 * 100 + 7 + 1) * 4


@pytest.mark.parametrize(
    "arguments, error, words",
    [
        (((-1,), torch.float32), BadInput, "shape must be whole numbers"),
        (((4,), "float32"), WrongType, "dtype must be a torch dtype"),
        (((4, 4), torch.float32, (1,)), BadInput, "one number of elements"),
        (((4,), torch.float32, None, -1), BadInput, "offset"),
        (((2**50,), torch.float32), BadInput, "16 TiB"),
    ],
)
def test_ghost_bad_input(arguments, error, words):
    with pytest.raises(error, match=words):
        kit.ghost(*arguments)


@pytest.mark.parametrize(
    "call, error, words",
    [
        (lambda x: kit.dry_run(print, (1,), x), WrongType, "decorated with @triton.jit"),
        (lambda x: kit.dry_run(mark_kernel, "big", x), BadInput, "grid must be a tuple"),
        (lambda x: kit.dry_run(mark_kernel, (1, 1, 1, 1), x), BadInput, "one to three"),
        (lambda x: kit.dry_run(mark_kernel, (-1,), x), BadInput, "zero or more"),
        (lambda x: kit.dry_run(mark_kernel, (1,)), BadInput, "x_ptr"),
        (lambda x: kit.dry_run(mark_kernel, (1,), "x"), WrongType, "x_ptr"),
        (lambda x: kit.dry_run(mark_kernel, (1,), x, BLOCK=3), BadInput, "BLOCK"),
    ],
)
def test_dry_run_bad_input(call, error, words):
    with pytest.raises(error, match=words):
        call(kit.ghost(1, torch.int32))


@triton.jit
def chosen_kernel(a_ptr, b_ptr, flag, n, BLOCK: tl.constexpr):
    if flag > 3:
        out_ptr = a_ptr
    else:
        out_ptr = b_ptr
    offs = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    tl.store(out_ptr + offs, 1.0, mask=offs < n)


def test_an_argument_bound_to_a_second_name_is_told_by_its_own():
    report = kit.dry_run(chosen_kernel, (1,), torch.zeros(100), torch.zeros(100), 7, 99, BLOCK=128)
    assert [(finding.hazard, finding.argument, finding.true) for finding in report.findings] == [("never written", "a_ptr", 1)]


def test_an_output_of_no_elements_is_written_outside_and_nothing_else():
    report = kit.dry_run(chosen_kernel, (1,), torch.zeros(128)[64:64], torch.zeros(100), 7, 2, BLOCK=128)
    assert [finding.hazard for finding in report.errors] == ["out of bounds"]
    assert kit.dry_run(chosen_kernel, (1,), torch.zeros(128)[64:64], torch.zeros(100), 7, 0, BLOCK=128)


@triton.jit
def loaded_pointer_kernel(table_ptr, out_ptr):
    tl.store(tl.load(table_ptr).to(tl.pointer_type(tl.float32)), 1.0)
    tl.store(out_ptr, 1.0)


@triton.jit
def given_address_kernel(address, out_ptr):
    tl.store(address.to(tl.pointer_type(tl.float32)), 1.0)
    tl.store(out_ptr, 1.0)


def test_a_kernel_that_writes_through_an_address_may_write_anything():
    for kernel, first in ((loaded_pointer_kernel, torch.int64), (given_address_kernel, 1 << 40)):
        made = kit.build(kernel, first, torch.float32)
        assert written_arguments(read_program(made.ttir, __file__)) is None
    made = kit.build(chosen_kernel, torch.float32, torch.float32, 7, 99, BLOCK=128)
    assert len(written_arguments(read_program(made.ttir, __file__))) == 2
