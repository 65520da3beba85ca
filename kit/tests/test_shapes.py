"""`kit.shapes`: which sizes and views it proposes, how the views lie, and what a case says of the memory after a launch."""

import pytest
import torch
import triton
import triton.language as tl

from kit import machine
from kit.dry_run import dry_run
from kit.errors import BadInput, WrongType
from kit.shapes import laid_out, shapes
from kit.shapes_layouts import LAYOUTS, read_poison, strided, written_poison
from kit.shapes_sizes import blocks_of, prime, proposed
from kit.tests.faults import r09_boundaries, r09_views


@pytest.fixture(autouse=True)
def gpu():
    return machine.start()


@triton.jit
def add_rows_kernel(x_ptr, out_ptr, M, N, stride_xm, stride_xn, stride_om, stride_on, BLOCK_M: tl.constexpr, BLOCK_N: tl.constexpr):
    """out = x + 1; a program owns a tile."""
    offs_m = tl.program_id(0) * BLOCK_M + tl.arange(0, BLOCK_M)[:, None]
    offs_n = tl.program_id(1) * BLOCK_N + tl.arange(0, BLOCK_N)[None, :]
    mask = (offs_m < M) & (offs_n < N)
    x = tl.load(x_ptr + offs_m * stride_xm + offs_n * stride_xn, mask=mask)
    tl.store(out_ptr + offs_m * stride_om + offs_n * stride_on, x + 1, mask=mask)


@triton.jit
def add_rows_wrong_stride_kernel(
    x_ptr, out_ptr, M, N, stride_xm, stride_xn, stride_om, stride_on, BLOCK_M: tl.constexpr, BLOCK_N: tl.constexpr
):
    """BUG: the strides of x are taken for those of out. out = x + 1; a program owns a tile."""
    offs_m = tl.program_id(0) * BLOCK_M + tl.arange(0, BLOCK_M)[:, None]
    offs_n = tl.program_id(1) * BLOCK_N + tl.arange(0, BLOCK_N)[None, :]
    mask = (offs_m < M) & (offs_n < N)
    x = tl.load(x_ptr + offs_m * stride_xm + offs_n * stride_xn, mask=mask)
    tl.store(out_ptr + offs_m * stride_xm + offs_n * stride_xn, x + 1, mask=mask)


@triton.jit
def add_in_place_kernel(x_ptr, n, BLOCK: tl.constexpr):
    """x += 1; a program owns BLOCK elements, and walks them with its pointer."""
    x_ptrs = x_ptr + tl.program_id(0) * BLOCK + tl.arange(0, 4)
    for i in range(0, BLOCK, 4):
        mask = tl.program_id(0) * BLOCK + i + tl.arange(0, 4) < n
        tl.store(x_ptrs, tl.load(x_ptrs, mask=mask) + 1, mask=mask)
        x_ptrs += 4


def make_flat(n, dtype=torch.float32):
    x = torch.randn(n, device=machine.current().device).to(dtype)
    return x, torch.empty_like(x), n


def make_rows(M, N):
    x = torch.randn(M, N, device=machine.current().device)
    out = torch.empty_like(x)
    return x, out, M, N, *x.stride(), *out.stride()


BLOCKS = {"BLOCK_M": 4, "BLOCK_N": 8}


def row_grid(case):
    return triton.cdiv(case.sizes["M"], 4), triton.cdiv(case.sizes["N"], 8)


def failing(kernel, cases, grid, expected):
    """The names of the cases that show something."""
    found = []
    for case in cases:
        case.launch(grid(case))
        if not case.check(expected(case)):
            found.append(case.name)
    return found


# ---- sizes


def test_sizes_lie_at_the_edges_of_the_block():
    cases = shapes(r09_boundaries.copy_kernel, make_flat, {"n": 100}, BLOCK=32)
    assert [case.sizes["n"] for case in cases if case.argument is None] == [100, 0, 1, 31, 32, 33, 67, 97]
    assert "n = BLOCK + 1 = 33" in [case.name for case in cases]
    assert "n = 97, a prime, x offset by 1 element" in [case.name for case in cases]


def test_a_block_belongs_to_the_size_that_it_is_named_for():
    assert blocks_of({"BLOCK_M": 4, "BLOCK_SIZE_N": 8, "BK": 16, "EVEN": True}, ["M", "N", "K"]) == {
        "M": {"BLOCK_M": 4},
        "N": {"BLOCK_SIZE_N": 8},
        "K": {"BK": 16},
    }
    assert blocks_of({"BLOCK": 64, "V": 10}, ["n", "rows"]) == {"n": {"BLOCK": 64}, "rows": {"BLOCK": 64}}
    assert blocks_of({"WIDTH": 64, "V": 10}, ["n"]) == {"n": {"WIDTH": 64}}


def test_a_range_keeps_sizes_inside_it_and_no_block_means_sixteen():
    assert max(size.value for size in proposed("n", 16, range(0, 17), {"BLOCK": 16})) == 16
    assert {15, 16, 17} <= {size.value for size in proposed("n", 100, None, {})}
    assert [prime(n) for n in (0, 3, 10, 100, 1000)] == [3, 3, 7, 97, 997]


def test_one_size_moves_at_a_time_and_then_all():
    cases = shapes(add_rows_kernel, make_rows, {"M": 10, "N": 20}, **BLOCKS)
    moved = [sum(case.sizes[name] != typical for name, typical in (("M", 10), ("N", 20))) for case in cases if case.argument is None]
    assert moved[0] == 0 and moved[-1] == 2 and set(moved[1:-1]) == {1}
    assert {"M = BLOCK_M - 1 = 3", "N = 2 * BLOCK_N + 3 = 19"} <= {case.name for case in cases}


# ---- views


@pytest.mark.parametrize("layout", LAYOUTS)
@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16, torch.float8_e4m3fn, torch.int8, torch.uint8, torch.int64, torch.bool])
def test_a_tensor_laid_out_keeps_its_values_and_has_poison_between(layout, dtype, gpu):
    x = torch.arange(15, device=gpu.device).reshape(3, 5).to(dtype)
    y = laid_out(x, layout)
    assert torch.equal(y.float(), x.float()) and y.dtype == dtype
    strides = {"every second element": (10, 2), "transposed": (1, 3), "padded rows": (8, 1)}
    assert y.stride() == strides.get(layout, (5, 1))
    assert (y.data_ptr() % 16 == 0) == (layout != "offset by 1 element" or dtype.itemsize == 16)
    around = torch.tensor([], dtype=dtype, device=gpu.device).set_(y.untyped_storage(), 0, (2048,), (1,))
    ends = read_poison(dtype).float()
    assert all(bool((around.float() == end).any() or (end.isnan() and around.float().isnan().any())) for end in ends)


def test_poison_of_outputs_is_told_from_what_a_kernel_stores():
    for dtype in (torch.float64, torch.float32, torch.float16, torch.bfloat16):
        poison = written_poison(dtype)
        assert poison.isnan() and not torch.equal(poison.view(torch.int8), torch.tensor([float("nan")], dtype=dtype).view(torch.int8))
    assert written_poison(torch.int32).item() == -(2**31) + 77


def test_strides_belong_to_tensors_by_name_and_value(gpu):
    x = torch.empty(3, 5, device=gpu.device)
    given = {"x_ptr": x, "out_ptr": x, "n": 3, "stride_xm": 5, "stride_xn": 1, "stride_om": 5}
    found = strided(given)
    assert found["x_ptr"].axes == {0: "stride_xm", 1: "stride_xn"} and not found["x_ptr"].why
    assert found["out_ptr"].axes == {0: "stride_om"} and "1 of 2 axes" in found["out_ptr"].why
    assert found["out_ptr"].accepts("padded rows", 2) and not found["out_ptr"].accepts("transposed", 2)
    assert "not its strides" in strided(given | {"stride_xm": 6})["x_ptr"].why
    lone = strided({"X": x, "row_stride": 5})["X"]
    assert not lone.axes and "row_stride" in lone.why
    assert strided({"X": x, "X_row_stride": 5})["X"].axes == {0: "X_row_stride"}


def test_views_need_strides_and_the_table_says_why():
    flat = shapes(r09_boundaries.copy_kernel, make_flat, {"n": 100}, BLOCK=32)
    assert {case.layout for case in flat} == {"aligned", "offset by 1 element"}
    assert "takes no stride" in repr(flat) and "takes no stride" in flat._repr_html_()
    rows = shapes(add_rows_kernel, make_rows, {"M": 10, "N": 20}, **BLOCKS)
    assert {(case.argument, case.layout) for case in rows if case.argument} == {(p, v) for p in ("x_ptr", "out_ptr") for v in LAYOUTS[1:]}
    assert not rows.notes and repr(rows).startswith(f"{len(rows)} cases for add_rows_kernel")


def test_the_strides_of_a_launch_are_those_of_the_view():
    for case in shapes(add_rows_kernel, make_rows, {"M": 10, "N": 20}, **BLOCKS):
        x, out, _, _, *strides = case.args
        assert tuple(strides) == (*x.stride(), *out.stride())
        assert torch.equal(x, case.fresh().args[0]) and x is not case.fresh().args[0]


# ---- what a case says


def test_the_right_kernels_pass_every_case():
    cases = shapes(add_rows_kernel, make_rows, {"M": 10, "N": 20}, **BLOCKS)
    assert failing(add_rows_kernel, cases, row_grid, lambda case: case.tensors["x_ptr"] + 1) == []
    case = shapes(r09_views.copy_strided_kernel, lambda n: (*make_flat(n), 1), {"n": 40}, BLOCK=32)[-2]
    assert case.layout == "every second element" and case.launch((2,))
    assert torch.equal(case.outputs["out_ptr"], case.tensors["x_ptr"])


def test_another_tensors_strides_show_in_views_alone():
    cases = shapes(add_rows_wrong_stride_kernel, make_rows, {"M": 10, "N": 20}, **BLOCKS)
    found = failing(add_rows_wrong_stride_kernel, cases, row_grid, lambda case: case.tensors["x_ptr"] + 1)
    assert found == [case.name for case in cases if case.layout in LAYOUTS[2:]]


def test_a_finding_says_which_cells_and_which_elements():
    def one(kernel, value):
        case = next(c for c in shapes(kernel, make_flat, {"n": 100}, BLOCK=32) if c.sizes["n"] == value and c.argument is None)
        return case.launch((triton.cdiv(value, 32),))

    found = one(r09_boundaries.copy_store_no_mask_kernel, 33)
    assert not found and [(d.argument, d.count, d.first, d.where) for d in found.overwritten] == [("out_ptr", 31, 33, "behind")]
    assert "31 cells behind out overwritten, the first at element offset 33" in repr(found)
    found = one(r09_boundaries.copy_one_too_few_kernel, 33)
    assert [(d.argument, d.count, d.first) for d in found.unwritten] == [("out_ptr", 1, (32,))]
    assert found.picture().count(2) == 1 and "never written" in found._repr_html_()
    assert one(r09_boundaries.copy_kernel, 33) and one(r09_boundaries.copy_kernel, 0)


def test_a_wrong_value_is_told_with_what_it_should_be(gpu):
    case = shapes(
        r09_boundaries.sum_kernel, lambda n: (torch.ones(n, device=gpu.device), torch.empty(1, device=gpu.device), n), {"n": 10}, BLOCK=16
    )[0]
    case.launch((1,))
    assert case.check(torch.full((1,), 10.0)) and case.check({"out_ptr": torch.full((1,), 10.0)})
    found = case.check(torch.full((1,), 11.0))
    assert "element 0 of out is 10, expected 11" in repr(found)


def test_what_is_read_and_written_keeps_its_values():
    cases = shapes(add_in_place_kernel, lambda n: make_flat(n)[::2], {"n": 40}, BLOCK=16)
    for case in cases:
        before = case.tensors["x_ptr"].clone()
        assert case.launch((triton.cdiv(case.sizes["n"], 16),))
        assert torch.equal(case.tensors["x_ptr"], before + 1)


def test_a_tensor_given_twice_stays_one():
    case = shapes(r09_boundaries.copy_kernel, lambda n: (make_flat(n)[0],) * 2 + (n,), {"n": 40}, BLOCK=16)[0]
    x, out, _ = case.args
    assert x.data_ptr() == out.data_ptr() and not x.isnan().any() and case.launch((3,))


def test_a_read_outside_reaches_poison_and_paper_sees_it():
    ones = lambda n: (torch.ones(n, device=machine.current().device), torch.empty(1, device=machine.current().device), n)  # noqa: E731
    case = next(c for c in shapes(r09_boundaries.k_tail_kernel, ones, {"n": 40}, BLOCK=16) if c.sizes["n"] == 17)
    case.launch((1,))
    assert not case.outputs["out_ptr"].isfinite().all()
    assert dry_run(r09_boundaries.k_tail_kernel, (1,), *case.fresh().args, **case.constants).of("out of bounds")


def test_an_input_that_changes_is_told():
    case = shapes(r09_boundaries.copy_kernel, make_flat, {"n": 40}, BLOCK=16)[0]
    x, out, n = case.args
    case.plan.kernel[(3,)](x, x, n, BLOCK=16)  # its own values: nothing changes
    assert not case.check().overwritten
    case.plan.kernel[(3,)](out, x, n, BLOCK=16)
    found = case.check().overwritten
    assert [d.argument for d in found] == ["x_ptr"] and found[0].where == "inside" and "not seen to store" in found[0].text


# ---- what is refused


def sentence(*args, error=BadInput, **constants):
    with pytest.raises(error) as found:
        shapes(*args, **constants)
    assert len(str(found.value).splitlines()) == 1
    return str(found.value)


def test_bad_input_is_told_in_one_sentence(gpu):
    kernel = r09_boundaries.copy_kernel
    assert "decorated with @triton.jit" in sentence(len, make_flat, {"n": 4}, error=WrongType)
    assert "sizes must be a dict" in sentence(kernel, make_flat, 4, error=WrongType)
    assert "sizes must be a dict" in sentence(kernel, make_flat, {}, error=WrongType)
    for value in (-1, True, 1.5, range(0)):
        assert "sizes['n'] must be a whole number" in sentence(kernel, make_flat, {"n": value}, BLOCK=32)
    assert "make_args must be a function" in sentence(kernel, (1, 2), {"n": 4}, error=WrongType)
    assert "make_args is called with m=" in sentence(kernel, make_flat, {"m": 4}, BLOCK=32)
    assert "must return a tuple" in sentence(kernel, lambda n: torch.ones(n), {"n": 4}, error=WrongType, BLOCK=32)
    assert "also needs BLOCK" in sentence(kernel, make_flat, {"n": 4})
    assert "takes no BLOK" in sentence(kernel, make_flat, {"n": 4}, BLOK=32)
    case = shapes(add_in_place_kernel, lambda n: make_flat(n)[::2], {"n": 40}, BLOCK=16)[0]
    with pytest.raises(WrongType, match="expected must be a tensor"):
        case.check(7)
    for layout, dims, words in (
        ("sideways", 1, "layout must be one of"),
        ("transposed", 1, "needs 2 axes or more"),
        ("padded rows", 0, "needs 2"),
    ):
        with pytest.raises(BadInput, match=words):
            laid_out(torch.ones((2,) * dims, device=gpu.device), layout)
    with pytest.raises(WrongType, match="must be a tensor"):
        laid_out([1, 2], "aligned")
    with pytest.raises(WrongType, match="complex"):
        laid_out(torch.ones(2, dtype=torch.complex64), "aligned")


# ---- roles


@triton.jit(noinline=True)
def store_one(ptr, value):
    tl.store(ptr, value)


@triton.jit
def winding_kernel(a_ptr, b_ptr, c_ptr, flag_ptr, n):
    """Pointers through a branch, a while loop and a call: a and b are loaded from, c stored to, flag both."""
    if tl.load(flag_ptr) > 0:
        x_ptr = a_ptr
    else:
        x_ptr = b_ptr
    i = 0
    while i < n:
        store_one(c_ptr + i, tl.load(x_ptr))
        x_ptr += 1
        i += 1
    tl.atomic_add(flag_ptr, 1.0)


def test_pointers_are_followed_through_branches_loops_and_calls(gpu):
    ones = lambda n: (*(torch.ones(n + 1, device=gpu.device) for _ in range(4)), n)  # noqa: E731
    plan = shapes(winding_kernel, ones, {"n": 3})[0].plan
    assert plan.loaded == {"a_ptr", "b_ptr", "flag_ptr"} and plan.stored == {"c_ptr", "flag_ptr"}
