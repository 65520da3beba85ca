"""The simulated GPU's memory: what a wrong address meets, and what is said of it."""

import linecache

import pytest
import torch
import triton
import triton.language as tl

import kit
from kit.errors import BadInput
from kit.simulator.driver import SimulatedDriverError
from kit.simulator.launch import DeviceAssert
from kit.simulator.memory import IllegalAccess, MisalignedAccess


@pytest.fixture(autouse=True, scope="module")
def machine():
    return kit.start()


@triton.jit
def copy_no_mask_kernel(x_ptr, y_ptr, BLOCK: tl.constexpr):
    pid = tl.program_id(0)
    offs = pid * BLOCK + tl.arange(0, BLOCK)
    x = tl.load(x_ptr + offs)
    tl.store(y_ptr + offs, x)


@triton.jit
def copy_far_kernel(x_ptr, y_ptr, stride, BLOCK: tl.constexpr):
    pid = tl.program_id(0).to(tl.int64)
    offs = pid * stride + tl.arange(0, BLOCK)
    far = tl.load(x_ptr + offs)
    tl.store(y_ptr + offs, far)


@triton.jit
def read_at_kernel(x_ptr, y_ptr, offset):
    tl.store(y_ptr, tl.load(x_ptr + offset))


def line_of(text):
    return next(i for i in range(1, 200) if text in linecache.getline(__file__, i))


def test_illegal_read_names_argument_line_program_offset():
    x, y = torch.zeros(100), torch.zeros(100)
    with pytest.raises(IllegalAccess) as error:
        copy_far_kernel[(3,)](x, y, 2**33, BLOCK=64)  # 32 GiB apart: nobody's memory, however much this process holds
    text = str(error.value)
    assert f"line {line_of('far = tl.load(x_ptr + offs)')}: far = tl.load(x_ptr + offs)" in text
    assert "x_ptr at element offset 8,589,934,592" in text and "program (1, 0, 0)" in text
    assert "100 elements of float32" in text and "simulated" in text


def test_a_wrong_address_reads_somebody_else():
    x, y = torch.zeros(4), torch.zeros(1)
    other = torch.full((4,), 42.0)  # never given to the kernel
    offset = (other.data_ptr() - x.data_ptr()) // 4
    read_at_kernel[(1,)](x, y, offset)
    assert y.item() == 42


def test_a_wrong_address_writes_somebody_else():
    pool = torch.zeros(256)
    source = torch.ones(256)
    copy_no_mask_kernel[(2,)](source[:130], pool[:130], BLOCK=128)
    assert pool[130:].eq(1).all()


def test_misaligned_address_is_named():
    data = torch.zeros(64, dtype=torch.uint8)
    x = data[1:61].view(torch.uint8)
    y = torch.zeros(1, dtype=torch.int32)

    with pytest.raises(MisalignedAccess, match="no multiple of the element's 4 bytes"):
        read_as_int32_kernel[(1,)](x, y)


@triton.jit
def read_as_int32_kernel(x_ptr, y_ptr):
    tl.store(y_ptr, tl.load(x_ptr.to(tl.pointer_type(tl.int32))))


def test_refused_grid_and_the_next_launch():
    x, y = torch.ones(256), torch.zeros(256)
    with pytest.raises(SimulatedDriverError, match=r"Triton Error \[CUDA\]: invalid argument"):
        copy_no_mask_kernel[(1, 65_536)](x, y, BLOCK=128)
    assert y.eq(0).all()
    copy_no_mask_kernel[(2,)](x, y, BLOCK=128)
    assert y.eq(1).all()


@pytest.mark.parametrize(
    "grid", [(65_535, 65_535), (46_341, 46_341), (65_536, 32_768), (1_048_576, 65_535), (0,), (1, 0), (65_536, 65_536)]
)
def test_skipped_grids(grid):
    y = torch.zeros(1)
    read_at_kernel[grid](torch.ones(1), y, 0)
    assert y.item() == 0


@pytest.mark.parametrize("grid", [(2**31,), (1, 2**31)])
def test_an_axis_that_is_no_int32(grid):
    with pytest.raises(OverflowError):
        read_at_kernel[grid](torch.ones(1), torch.zeros(1), 0)


@triton.jit
def assert_kernel(x_ptr):
    pid = tl.program_id(0)
    tl.device_assert(pid < 2, "three is too many")
    tl.store(x_ptr + pid, pid)


def test_device_assert_only_with_debug():
    x = torch.zeros(4, dtype=torch.int32)
    assert_kernel[(4,)](x)
    assert x.tolist() == [0, 1, 2, 3]
    with pytest.raises(DeviceAssert, match="three is too many"):
        assert_kernel[(4,)](x, debug=True)


def test_debug_checks_int32_products():
    with pytest.raises(DeviceAssert, match="int32 overflow detected for operation mul"):
        product_kernel[(3,)](torch.zeros(3, dtype=torch.int64), 2_000_000_000, debug=True)


@triton.jit
def product_kernel(y_ptr, stride):
    pid = tl.program_id(0)
    tl.store(y_ptr + pid, pid * stride)


def test_int32_products_wrap():
    y = torch.zeros(3, dtype=torch.int64)
    product_kernel[(3,)](y, 2_000_000_000)
    assert y.tolist() == [0, 2_000_000_000, 4_000_000_000 - 2**32]
    product_kernel[(3,)](y, 3_000_000_000)  # a stride over 2^31 arrives as an int64
    assert y.tolist() == [0, 3_000_000_000, 6_000_000_000]


def test_a_ghost_cannot_be_launched():
    with pytest.raises(BadInput, match="x_ptr is a ghost"):
        read_at_kernel[(1,)](kit.ghost(4, torch.float32), torch.zeros(1), 0)


def test_too_much_shared_memory_and_too_many_threads():
    x = torch.zeros(1)
    with pytest.raises(triton.runtime.errors.OutOfResources):
        read_at_kernel[(1,)](x, torch.zeros(1), 0, num_warps=64)


def test_thousands_of_launches_and_compiles_in_one_process():
    y = torch.zeros(1)
    for n in range(2_000):
        read_at_kernel[(1,)](torch.full((1,), float(n)), y, 0)
        assert y.item() == n
    for block in (16, 32, 64, 128):
        x, out = torch.rand(256), torch.zeros(256)
        copy_no_mask_kernel[(256 // block,)](x, out, BLOCK=block)
        assert torch.equal(x, out)


@triton.jit
def inline_kernel(x_ptr, BLOCK: tl.constexpr):
    offs = tl.arange(0, BLOCK)
    x = tl.load(x_ptr + offs)
    y = tl.inline_asm_elementwise("mov.b32 $0, $1;", "=r,r", [x], dtype=tl.int32, is_pure=True, pack=1)
    tl.store(x_ptr + offs, y)


def test_unsupported_operation_names_itself_and_its_line():
    with pytest.raises(kit.errors.KitError) as error:
        inline_kernel[(1,)](torch.zeros(32, dtype=torch.int32), BLOCK=32)
    assert "tt.elementwise_inline_asm" in str(error.value) and f"line {line_of('y = tl.inline_asm')}" in str(error.value)
