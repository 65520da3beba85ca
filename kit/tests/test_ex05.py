"""What lesson and exercise 05 rest on: chosen orders of warps and programs, who touches what, its picture, and barriers taken out."""

import inspect

import pytest
import torch
import triton
import triton.language as tl

from kit import ghost, machine
from kit.drawing import png
from kit.errors import BadInput, WrongType
from kit.graders.barriers import barrier_calls, meeting_picture, races, superfluous, without
from kit.simulator import orders
from kit.simulator.orders import PROGRAMS, WARPS, run_in_order, simulated_in
from kit.simulator.touches import touches
from kit.strips import Marked, Strip, Strips, runs
from kit.tests import race_kernels as kernels

gpu = machine.start()
barrier = getattr(tl, "barrier", None) or tl.debug_barrier
N = 1024


@triton.jit
def many_barriers_kernel(x_ptr, N: tl.constexpr, FLAG: tl.constexpr):
    """x = x reversed, in place, with more barriers than it needs."""
    offs = tl.arange(0, N)
    barrier()
    x = tl.load(x_ptr + N - 1 - offs)
    tl.debug_barrier()  # the one that counts
    tl.store(x_ptr + offs, x)
    if FLAG:
        tl.debug_barrier()


@triton.jit
def next_kernel(x_ptr, out_ptr, BLOCK: tl.constexpr):
    """BUG: reads what the next program stores."""
    pid = tl.program_id(0)
    offs = tl.arange(0, BLOCK)
    tl.store(x_ptr + pid * BLOCK + offs, pid + 1)
    other = (pid + 1) % tl.num_programs(0)
    tl.store(out_ptr + pid * BLOCK + offs, tl.load(x_ptr + other * BLOCK + offs))


@triton.jit
def scalar_kernel(x_ptr, n):
    tl.store(x_ptr + n, 1.0, mask=n < 4)


# ---- orders
def test_the_order_of_warps_decides_what_is_wrong():
    wrong = {}
    for order in WARPS:
        flag, out = (torch.zeros(n, dtype=torch.int32, device=gpu.device) for n in (1, N))
        run_in_order(kernels.scalar_kernel, (1,), flag, out, N=N, BAR=False, num_warps=4, warps=order)
        wrong[order] = int((out.cpu() != torch.arange(N) + 7).sum())
    assert wrong == {"first first": 0, "odd first": 512, "last first": 768}


def test_with_the_barrier_no_order_is_wrong():
    for order in WARPS:
        for warps in (1, 2, 8):
            x = torch.arange(2 * N, dtype=torch.float32, device=gpu.device)
            expected = torch.cat([x[:N] + 1, (x[:N] + 1).flip(0)])
            run_in_order(kernels.reverse_kernel, (1,), x, N=N, BAR=True, num_warps=warps, warps=order)
            assert torch.equal(x, expected), (order, warps)


@pytest.mark.parametrize("programs", PROGRAMS)
def test_the_order_of_programs_decides_what_they_read(programs):
    n = 6
    x, out = (torch.zeros(n * 16, dtype=torch.int32, device=gpu.device) for _ in range(2))
    with simulated_in(programs=programs):
        next_kernel[(n,)](x, out, BLOCK=16)
    right = ((out.view(n, 16)[:, 0].cpu() - 1) == (torch.arange(n) + 1) % n).tolist()
    first, middle = [False] * 5 + [True], [False, False, True, False, False, False]
    assert right == {"first first": first, "last first": [True] * 5 + [False], "middle first": middle}[programs]
    assert torch.equal(x.view(n, 16)[:, 0].cpu(), torch.arange(1, n + 1, dtype=torch.int32))


def test_tensors_of_a_gpu_are_copied_with_what_they_share_and_copied_back():
    """As it happens to tensors of a GPU; here to those of this CPU, which must stay as they are until the end."""
    base = torch.arange(12.0)
    views = [("a", "*fp32", base[2:6]), ("b", "*fp32", base[4:8]), ("n", "i32", 3)]
    with orders._on_this_cpu(views, elsewhere=torch.is_tensor) as moved:
        (_, _, a), (_, _, b), (_, _, n) = moved
        a[2] = -1.0
        assert n == 3 and b[0] == -1 and base[4] == 4 and a.stride() == (1,) and b.storage_offset() == 4
    assert base[4] == -1 and base.sum() == 66 - 4 - 1


def test_launching_is_put_back():
    before = triton.runtime.JITFunction.__getitem__
    with pytest.raises(BadInput), simulated_in():
        next_kernel[(2,)](1, 2, 3, 4, BLOCK=16)
    assert triton.runtime.JITFunction.__getitem__ is before


def test_an_order_that_there_is_not():
    with pytest.raises(BadInput, match="warps must be one of last first, odd first"):
        run_in_order(scalar_kernel, (1,), torch.zeros(4, device=gpu.device), 3, warps="backwards")
    with pytest.raises(BadInput, match="programs must be one of"):
        run_in_order(scalar_kernel, (1,), torch.zeros(4, device=gpu.device), 3, programs=7)


def test_an_empty_grid_runs_nothing():
    x = torch.zeros(4, device=gpu.device)
    run_in_order(scalar_kernel, (0,), x, 3)
    run_in_order(scalar_kernel, lambda meta: (1,), x, 2)
    assert x.tolist() == [0, 0, 1, 0]


# ---- touches
def test_who_stores_and_who_loads():
    x = ghost(2 * N, torch.float32)
    _, stored, read, last = touches(kernels.reverse_kernel, x, N=N, BAR=False, num_warps=4)
    assert [t.kind for t in (stored, read, last)] == ["store", "load", "store"]
    assert torch.equal(stored.elements, torch.arange(N)) and torch.equal(read.elements, torch.arange(N))
    assert torch.equal(last.elements, torch.arange(N, 2 * N))
    assert [warp for *_, warp in runs(stored.warps.tolist())] == [0, 1, 2, 3] * 2
    assert [warp for *_, warp in runs(read.warps.tolist())] == [3, 2, 1, 0] * 2
    assert read.source.startswith("tl.store(x_ptr + N + offs, tl.load") and read.argument == "x_ptr"
    assert {t.warps.unique().numel() for t in touches(kernels.reverse_kernel, x, N=N, BAR=False, num_warps=1)} == {1}


def test_the_touches_of_another_program_and_of_masked_lanes():
    x = ghost(8 * N, torch.float32)
    stored = touches(kernels.reverse_kernel, x, N=N, BAR=False, num_warps=2, grid=(3,), program=2)[1]
    assert (int(stored.elements[0]), int(stored.elements[-1])) == (4 * N, 5 * N - 1)
    (one,) = touches(scalar_kernel, torch.zeros(4, device=gpu.device), 3)
    assert one.elements.tolist() == [3] and one.kind == "store"
    (none,) = touches(scalar_kernel, torch.zeros(4, device=gpu.device), 5)
    assert not len(none.elements)


def test_touches_refuses():
    with pytest.raises(BadInput, match="inside the grid"):
        touches(scalar_kernel, torch.zeros(4, device=gpu.device), 3, program=1)
    with pytest.raises(BadInput, match="has no elements"):
        touches(scalar_kernel, torch.float32, 3)


# ---- the picture
def test_strips_draws_each_stretch_and_the_marks():
    picture = Strips("t", (Strip("a", [0, 0, 1, 1, 5]), Strip("b", torch.tensor([1, 1, 1, 1, 0]))), (Marked("m", [0, 1, 1, 0, 0]),))
    assert runs((0, 0, 1, 1, 5)) == [(0, 2, 0), (2, 4, 1), (4, 5, 5)]
    assert picture.described() == "a: 3 warps in 3 stretches; b: 2 warps in 2 stretches; m: 2 of 5 elements."
    height, shapes = picture.shapes()
    rects = [shape for shape in shapes if shape[0] == "rect"]
    assert [style for *_, style in rects] == ["ok", "fourth", "fourth", "fourth", "ok", "faint", "bad"]
    assert all(x >= 0 and x + w <= 720 and y + h <= height for _, x, y, w, h, _ in rects)
    numbers = [shape[3] for shape in shapes if shape[0] == "text" and "strong" in shape[5]]
    assert numbers == ["0", "1", "5", "1", "0", "2"]
    assert png(picture).startswith(b"\x89PNG")


def test_strips_in_the_browser_are_those_of_the_still():
    from kit import explore

    panel = explore(lambda n: Strips("t", (Strip("a", [0, n]),), (Marked("m", [False, True]),)), n=[1, 2])
    assert "2 warps in 2 stretches" in repr(panel)
    assert panel._table.pictures[1].rows[0].warps == (0, 2)


@pytest.mark.parametrize(
    ("make", "error"),
    [
        (lambda: Strips("t", ()), BadInput),
        (lambda: Strips("t", (Strip("a", [0, 1]), Strip("b", [0]))), BadInput),
        (lambda: Strip("a", []), WrongType),
        (lambda: Strip("a", [0.5]), WrongType),
        (lambda: Strips("t", ([0, 1],)), WrongType),
    ],
)
def test_strips_refuses(make, error):
    with pytest.raises(error):
        make()


# ---- barriers in a source
def test_barrier_calls_by_name_and_by_attribute():
    calls = barrier_calls(many_barriers_kernel)
    lines, first = inspect.getsourcelines(many_barriers_kernel.fn)
    assert [lines[call.line - first].strip().split("(")[0] for call in calls] == ["barrier", "tl.debug_barrier", "tl.debug_barrier"]
    assert [call.branch for call in calls] == [False, False, True]
    assert calls[1].before == "x = tl.load(x_ptr + N - 1 - offs)" and calls[1].place.startswith("barrier 2 of 3, behind `x = tl.load")
    assert calls[2].place == "barrier 3 of 3, alone,"


def test_a_kernel_without_one_of_its_barriers():
    x = ghost(N, torch.float32)
    first, middle, _ = barrier_calls(many_barriers_kernel)
    meta = {"N": N, "FLAG": False, "num_warps": 4}
    assert races(many_barriers_kernel, (1,), (x,), **meta) == []
    assert races(without(many_barriers_kernel, first), (1,), (x,), **meta) == []
    (race,) = races(without(many_barriers_kernel, middle), (1,), (x,), **meta)
    assert race.kind == "load then store"
    assert len(barrier_calls(many_barriers_kernel)) == 3  # the kernel itself is as it was


def test_the_barrier_that_nothing_needs():
    launches = [((1,), (ghost(N, torch.float32),), {"N": N, "FLAG": False, "num_warps": w}) for w in (2, 8)]
    assert superfluous(many_barriers_kernel, launches).number == 1
    needed = [((1,), (ghost(2 * N, torch.float32),), {"N": N, "BAR": True, "num_warps": 4})]
    assert superfluous(kernels.reverse_kernel, needed) is None


def test_the_picture_of_a_race():
    x, meta = ghost(4 * N, torch.float32), {"N": N, "BAR": False, "num_warps": 4}
    race = races(kernels.reverse_kernel, (2,), (x,), **meta)[0]
    picture = meeting_picture(kernels.reverse_kernel, (2,), (x,), meta, race, N)
    assert sum(picture["rows"]) == N and picture["names"][1] == "store then load, by two warps"
    shifted = races(kernels.scan_kernel, (1,), (ghost(N, torch.float32),), **meta)
    picture = meeting_picture(kernels.scan_kernel, (1,), (ghost(N, torch.float32),), meta, shifted[0], N)
    assert 0 < sum(picture["rows"]) < N
