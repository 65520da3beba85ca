"""Races between the warps of a program: wrong values as on the hardware, pairs of lines whatever the order, and no false alarm."""

from __future__ import annotations

import inspect
import re
import warnings

import pytest
import torch

from kit import compiling, ghost, machine
from kit.simulator import launch, races, schedule
from kit.simulator.driver import live_arguments, warp_plan
from kit.simulator.memory import Memory
from kit.simulator.program import Unsupported
from kit.simulator.warps import Plan
from kit.tests import race_kernels as kernels
from kit.tests.zoo import CASES
from kit.tests.zoo_case import difference

gpu = machine.current()
pytestmark = pytest.mark.skipif(gpu.live, reason="the schedule under test is the simulated GPU's")
N = 1024


def compiled(kernel, *args, **meta):
    """(compiled kernel, live arguments) of a launch."""
    values, options = compiling.bind(kernel, args, meta, verb="test", device="cpu")
    found = compiling.compiled(kernel, values, options, verb="test")
    return found, live_arguments(list(found.src.signature.items()), values)


def find(kernel, grid, *args, programs=None, **meta):
    found, arguments = compiled(kernel, *args, **meta)
    return races.find(found, kernel, grid, arguments, programs)


def line(kernel, text, nth=0):
    """The number of the nth line of the kernel that holds `text`."""
    lines, first = inspect.getsourcelines(kernel.fn)
    return [first + i for i, one in enumerate(lines) if text in one][nth]


def told(pairs):
    return {(pair.first_line, pair.second_line, pair.kind) for pair in pairs if pair.certain}


def run(kernel, grid, *args, **meta):
    """Launch on copies; returns the tensors after it."""
    args = [a.clone() if isinstance(a, torch.Tensor) else a for a in args]
    kernel[grid](*args, **meta)
    return [a for a in args if isinstance(a, torch.Tensor)]


def start(n=2 * N):
    return torch.randperm(n, generator=torch.Generator().manual_seed(n)).to(torch.float32)


# ---- the faulty ones, and their twins with the barrier: (kernel, grid, inputs, what is right)


def _reversed_case():
    x = start()
    return (x,), lambda x0: torch.cat([x0[:N] + 1, (x0[:N] + 1).flip(0)])


def _scan_case():
    x = torch.arange(N)
    return (x,), lambda x0: x0.cumsum(0)


FAULTY = {
    "reverse": (kernels.reverse_kernel, _reversed_case, {"N": N}, ("tl.store(x_ptr + offs", "tl.store(x_ptr + N"), "store then load", 512),
    "reverse in place": (
        kernels.in_place_kernel,
        lambda: ((start(N),), lambda x: x.flip(0)),
        {"N": N},
        ("x = tl.load", "tl.store"),
        "load then store",
        512,
    ),
    "scan through memory": (kernels.scan_kernel, _scan_case, {"N": N}, ("tl.store(", "before = tl.load"), "store then load", None),
    "scalar read by all": (
        kernels.scalar_kernel,
        lambda: ((torch.zeros(1, dtype=torch.int32), torch.zeros(N, dtype=torch.int32)), lambda flag, out: torch.arange(N).int() + 7),
        {"N": N},
        ("tl.store(flag_ptr", "tl.load(flag_ptr"),
        "store then load",
        768,
    ),
    "divide by the first": (
        kernels.divide_kernel,
        lambda: ((start(N) + 5,), lambda x: x - x[0]),
        {"N": N},
        ("first = tl.load", "tl.store"),
        "load then store",
        None,
    ),
    "aliased views": (kernels.views_kernel, None, {"N": N}, ("tl.store(a_ptr", "tl.load(b_ptr"), "store then load", 512),
    "atomic between": (
        kernels.atomic_between_kernel,
        lambda: ((start(), torch.zeros(1, dtype=torch.int32)), lambda x0, c: torch.cat([x0[:N] + 1, (x0[:N] + 1).flip(0)])),
        {"N": N},
        ("tl.store(x_ptr + offs", "tl.store(x_ptr + N"),
        "store then load",
        512,
    ),
    "atomics read back": (
        kernels.atomic_read_kernel,
        lambda: ((torch.arange(N), torch.zeros(N, dtype=torch.int64)), lambda x, out: (x + 1).flip(0)),
        {"N": N},
        ("tl.atomic_add", "tl.load(x_ptr"),
        "store then load",
        None,
    ),
}


def case_of(name):
    kernel, make, meta, lines, kind, wrong = FAULTY[name]
    if name == "aliased views":
        x = torch.zeros(2 * N)
        args = (x[:N], x[:N], x[N:])
        return kernel, args, meta, lines, kind, wrong
    return kernel, make()[0], meta, lines, kind, wrong


def outcome(name, **meta):
    """How many elements of the last tensor are wrong after a launch."""
    kernel, args, constants, *_ = case_of(name)
    if name == "aliased views":
        kernel[(1,)](*args, **constants, **meta)
        return int((args[2] != torch.arange(N, 0, -1)).sum())
    expected = FAULTY[name][1]()[1](*args)
    args = [a.clone() for a in args]
    kernel[(1,)](*args, **constants, **meta)
    got = args[0] if expected.shape == args[0].shape and name not in ("atomics read back",) else args[-1]
    return int(((got - expected).abs() > 1e-6).sum())


@pytest.mark.parametrize("name", FAULTY)
def test_a_missing_barrier_gives_wrong_values_and_one_that_is_there_does_not(name):
    wrong = FAULTY[name][-1]
    assert outcome(name, BAR=False, num_warps=1) == 0
    bad = outcome(name, BAR=False, num_warps=4)
    assert bad == wrong if wrong is not None else bad > 0
    for warps in (1, 2, 4, 8):
        assert outcome(name, BAR=True, num_warps=warps) == 0


@pytest.mark.parametrize("warps", [2, 8])
@pytest.mark.parametrize("name", ["reverse", "reverse in place"])
def test_half_is_wrong_at_any_number_of_warps(name, warps):
    assert outcome(name, BAR=False, num_warps=warps) == 512


@pytest.mark.parametrize("name", FAULTY)
def test_the_pair_of_lines_is_told(name):
    kernel, args, meta, lines, kind, _ = case_of(name)
    first, second = (line(kernel, text) for text in lines)
    before = [a.clone() for a in args]
    pairs = find(kernel, (1,), *args, **meta, BAR=False, num_warps=4)
    assert (first, second, kind) in told(pairs), pairs
    assert all(torch.equal(a, b) for a, b in zip(args, before, strict=True))  # nothing is written
    assert find(kernel, (1,), *args, **meta, BAR=False, num_warps=1) == []
    assert find(kernel, (1,), *args, **meta, BAR=True, num_warps=4) == []


@pytest.mark.parametrize(("warps", "races_here"), [(4, False), (8, True)])
def test_a_race_at_one_number_of_warps_only(warps, races_here):
    """At 4 warps the halves are held by the threads that stored them; at 8 they are not."""
    q = torch.ones(N)
    expected = torch.cat([torch.zeros(N // 2), torch.full((N // 2,), 2 / N)])
    (got,) = run(kernels.halves_kernel, (1,), q, D=N, BAR=False, num_warps=warps)
    assert bool((got != expected).any()) == races_here
    first, second = line(kernels.halves_kernel, "tl.store(q_ptr + offs"), line(kernels.halves_kernel, "low, high")
    pairs = told(find(kernels.halves_kernel, (1,), q, D=N, BAR=False, num_warps=warps))
    assert ((first, second, "store then load") in pairs) == races_here and bool(pairs) == races_here
    assert torch.equal(run(kernels.halves_kernel, (1,), q, D=N, BAR=True, num_warps=warps)[0], expected)
    assert find(kernels.halves_kernel, (1,), q, D=N, BAR=True, num_warps=warps) == []


@pytest.mark.parametrize("bar", [False, True])
def test_a_block_that_is_loaded_and_stored_in_different_layouts(bar):
    a, c = torch.eye(64, dtype=torch.bfloat16), torch.zeros(64 * 64)
    got = run(kernels.update_kernel, (1,), a, a, c, N=64, STEPS=3, BAR=bar)[2]
    assert torch.equal(got.reshape(64, 64), 3 * torch.eye(64)) == bar
    first, second = (line(kernels.update_kernel, text) for text in ("tl.store(c_ptr", "c = tl.load"))
    pairs = find(kernels.update_kernel, (1,), a, a, c, N=64, STEPS=3, BAR=bar)
    assert told(pairs) == (set() if bar else {(first, second, "store then load")})


@pytest.mark.parametrize("order", schedule.ORDERS)
def test_pairs_do_not_depend_on_the_order_and_values_do(order, monkeypatch):
    seen = []
    play = races.play

    def spy(*args):
        args[0].raced = None
        seen.append(play(*args[:6], order))
        return seen[-1]

    monkeypatch.setattr(races, "play", spy)
    flag, out = torch.zeros(1, dtype=torch.int32), torch.zeros(N, dtype=torch.int32)
    kernels.scalar_kernel[(1,)](flag, out, N=N, BAR=False, num_warps=4)
    assert len(seen[0]) == 1
    wrong = int((out != torch.arange(N) + 7).sum())
    assert wrong == {"first first": 0, "odd first": 512, "last first": 768}[order]


def test_the_example_of_a_pair():
    (pair,) = find(kernels.reverse_kernel, (3,), start(6 * N), N=N, BAR=False, num_warps=4, programs=[1, 2])
    assert (pair.program, pair.argument, pair.element) == ((1, 0, 0), "x_ptr", 2 * N)
    assert pair.warps == (0, 3) and pair.certain and pair.number == 2 * N
    assert "store then load" in repr(pair) and "tl.store(x_ptr + offs" in repr(pair) and "element offset 2,048" in repr(pair)


def test_stores_of_different_values_to_one_element():
    pairs = find(kernels.twice_kernel, (1,), torch.zeros(N, dtype=torch.int32), N=N, BAR=False, num_warps=4)
    assert [pair.kind for pair in pairs] == ["store then store"]
    assert find(kernels.twice_kernel, (1,), torch.zeros(N, dtype=torch.int32), N=N, BAR=True, num_warps=4) == []


# ---- loops, branches, many programs


@pytest.mark.parametrize("bar", [False, True])
def test_scratch_buffers_of_many_programs(bar):
    programs, tile = 40, 256
    scratch, out = torch.zeros(programs * N, dtype=torch.int32), torch.zeros(programs * N, dtype=torch.int32)
    kernels.two_loops_kernel[(programs,)](scratch, out, N=N, TILE=tile, BAR=bar, num_warps=4)
    expected = torch.arange(programs * N).reshape(programs, N).flip(1).reshape(-1)
    wrong = (out != expected).reshape(programs, -1).sum(1)
    assert torch.equal(wrong > 0, torch.full((programs,), not bar))
    pairs = find(kernels.two_loops_kernel, (programs,), scratch, out, N=N, TILE=tile, BAR=bar, num_warps=4)
    assert len(pairs) == (0 if bar else 1)


def test_only_programs_that_take_the_branch_go_wrong():
    kinds = torch.tensor([0, 1, 0, 0, 1], dtype=torch.int32)
    x = torch.arange(5 * 2 * N, dtype=torch.float32)
    after, _ = run(kernels.branch_kernel, (5,), x, kinds, N=N, BAR=False, num_warps=4)
    low, high = after.reshape(5, 2, N).unbind(1)
    assert torch.equal(low, x.reshape(5, 2, N)[:, 0] + 1)
    wrong = torch.where(kinds[:, None] == 1, high != low.flip(1), high != low).sum(1)
    assert wrong.tolist() == [0, 512, 0, 0, 512]
    (pair,) = find(kernels.branch_kernel, (5,), x, kinds, N=N, BAR=False, num_warps=4)
    assert pair.program == (1, 0, 0) and pair.number == 2 * N
    right, _ = run(kernels.branch_kernel, (5,), x, kinds, N=N, BAR=True, num_warps=4)
    low, high = right.reshape(5, 2, N).unbind(1)
    assert bool(torch.where(kinds[:, None] == 1, high == low.flip(1), high == low).all())


def test_warps_that_take_different_branches_are_told():
    flag, out = torch.zeros(1, dtype=torch.int32), torch.zeros(N, dtype=torch.int32)
    with pytest.raises(schedule.Parted, match="wait at different barriers"):
        run(kernels.parted_kernel, (1,), flag, out, N=N, BAR=False, num_warps=4)
    assert torch.equal(run(kernels.parted_kernel, (1,), flag, out, N=N, BAR=True, num_warps=4)[1], torch.arange(N).int())


def test_programs_that_wait_for_a_lock():
    lock, x = torch.zeros(1, dtype=torch.int32), torch.zeros(64, dtype=torch.int32)
    lock, x = run(kernels.lock_kernel, (5,), lock, x, N=64, num_warps=4)
    assert lock.tolist() == [0] and x.unique().tolist() == [5]


def test_views_that_overlap_in_part():
    x = torch.zeros(4 * N)
    pairs = find(kernels.views_kernel, (1,), x[:N], x[N // 2 : N // 2 + N], x[2 * N :], N=N, BAR=False, num_warps=4)
    assert [pair.kind for pair in pairs] == ["store then load"]
    assert find(kernels.views_kernel, (1,), x[:N], x[N : 2 * N], x[2 * N :], N=N, BAR=False, num_warps=4) == []
    assert find(kernels.views_kernel, (1,), torch.zeros(N), torch.zeros(N), x, N=N, BAR=False, num_warps=4) == []


def test_a_launch_on_paper():
    far = ghost((1 << 33,), torch.float32)
    (pair,) = find(kernels.reverse_kernel, (1 << 20,), far, N=N, BAR=False, num_warps=4)
    assert pair.kind == "store then load" and pair.program == (0, 0, 0)


def test_barriers_round_an_atomic_let_all_warps_see_it():
    """Triton 3.9 puts one before and one behind each ordered atomic, earlier ones none: here they are put into the PTX."""
    count, y = torch.zeros(1, dtype=torch.int32), torch.full((N,), -1, dtype=torch.int32)
    found, arguments = compiled(kernels.count_and_load_kernel, count, y, N=N, num_warps=4)
    bare = re.sub(r"[^\n]*bar\.sync[^\n]*\n", "", found.asm["ptx"])
    around = re.sub(r"([^\n]*\batom\.[^\n]*\n)", r"bar.sync 0;\n\1bar.sync 0;\n", bare, count=1)
    seen = {}
    for name, ptx in (("bare", bare), ("around", around)):
        count.zero_()
        plan = Plan(found.asm["ttgir"], ptx, 4)
        tensors, values = launch.bind(plan.program, arguments)
        schedule.run_warps(plan, Memory(tensors), (1, 1, 1), torch.zeros(1, 3, dtype=torch.int64), values)
        seen[name] = y.unique().tolist()
    assert seen == {"bare": [0, 1], "around": [1]}


# ---- no false alarm


@pytest.mark.parametrize("warps", [2, 4, 8])
def test_right_kernels_are_clean(warps):
    x = torch.ones(2 * N)
    one, ints = torch.zeros(1, dtype=torch.int32), torch.zeros(64, dtype=torch.int32)
    assert find(kernels.same_thread_kernel, (1,), x, N=N, num_warps=warps) == []
    assert find(kernels.reduction_kernel, (1,), x, N=N, num_warps=warps) == []
    assert find(kernels.copies_kernel, (1,), x, N=16, num_warps=warps) == []
    assert find(kernels.softmax_kernel, (2,), x, 100, N, BLOCK=128, num_warps=warps) == []
    assert find(kernels.matrix_kernel, (1,), x, N=32, num_warps=warps) == []
    assert find(kernels.lock_kernel, (3,), one, ints, N=64, num_warps=warps, programs=[0]) == []


@pytest.mark.parametrize("warps", [2, 4, 8])
def test_a_warps_copies_of_a_small_block_are_no_race(warps):
    """Only the first warp that holds an element stores it, and what the others make of their copies is lost."""
    for n in (8, 16, 32, 64, 128):
        assert find(kernels.scale_row_kernel, (1,), torch.ones(n), N=n, num_warps=warps) == []
        for rows in (1, 2, 4):
            assert find(kernels.scale_rows_kernel, (1,), torch.ones(rows, n), ROWS=rows, N=n, num_warps=warps) == []
    (got,) = run(kernels.scale_row_kernel, (1,), torch.ones(32), N=32)
    assert torch.equal(got, torch.full((32,), 1 / 32))


def test_copies_that_reach_another_warps_elements_are_a_race():
    (pair,) = find(kernels.sum_over_a_wider_block_kernel, (1,), torch.ones(256), N=32, WIDE=256, num_warps=4)
    assert pair.kind == "load then store"
    (got,) = run(kernels.sum_over_a_wider_block_kernel, (1,), torch.ones(256), N=32, WIDE=256, num_warps=4)
    assert not torch.equal(got, torch.full((256,), 32.0))
    assert find(kernels.sum_over_a_wider_block_kernel, (1,), torch.ones(256), N=32, WIDE=32, num_warps=4) == []


def test_right_kernels_have_right_values():
    x = torch.arange(2 * N, dtype=torch.float32)
    assert torch.equal(run(kernels.same_thread_kernel, (1,), x, N=N)[0][:N], (x[:N] + 1) * 2)
    (got,) = run(kernels.reduction_kernel, (1,), x, N=N)
    assert torch.equal(got[N:], (x[:N] + 1).flip(0) + (x[:N] + 1).sum())
    (got,) = run(kernels.matrix_kernel, (1,), x, N=32)
    assert torch.equal(got[:N].reshape(32, 32), x[:N].reshape(32, 32).T)


@pytest.mark.parametrize("case", CASES, ids=lambda case: case.name)
def test_the_zoo_has_no_pair_and_runs_warp_by_warp(case, monkeypatch):
    """Every kernel of the zoo: none races, and run warp by warp each has the values it has otherwise."""
    unplanned = []

    def play(plan, programs, grid, memory, values, arguments):
        ledger = races.Ledger(plan, memory, [races._tensor(v) for _, _, v in arguments], [n for n, _, _ in arguments], grid, True)
        for numbers in programs:
            ids = launch.programs_at(numbers, grid)
            ledger.begin(numbers)
            lookout = races.Lookout(plan, memory, grid, ledger)
            lookout.run(ids, values)
            ledger.compare()
            lookout.restore()
            schedule.run_warps(plan, memory, grid, ids, values, "odd first")
        assert not ledger.pairs, ledger.pairs

    monkeypatch.setattr(races, "needed", lambda *given: True)
    monkeypatch.setattr(races, "play", play)
    inputs = case.inputs()
    with warnings.catch_warnings(record=True) as seen:
        warnings.simplefilter("always")
        got = case.run(**{name: tensor.clone() for name, tensor in inputs.items()})
    unplanned += [str(one.message) for one in seen if "ran in step" in str(one.message)]
    assert not unplanned or case.name.startswith(UNPLANNED), unplanned
    for name, expected in case.reference(**inputs).items():
        apart = difference(got[name], expected)
        assert apart.relative <= case.allowed(expected.dtype), f"{case.name}, {name}: {apart}"


# Loops that ask for pipelining themselves, descriptors, inline PTX: told in a warning, and run in step.
UNPLANNED = ("persistent softmax", "descriptor", "matmul/float8", "matmul/float32 tf32x3", "twelve bits/tf32x3")


# ---- the PTX has the last word


def test_a_barrier_that_the_ptx_does_not_have_hides_nothing():
    found, arguments = compiled(kernels.reduction_kernel, torch.ones(2 * N), N=N, num_warps=4)
    assert races.find(found, kernels.reduction_kernel, (1,), arguments) == []
    without = found.asm["ptx"].replace("bar.sync", "// bar.sync")

    class Changed:
        asm, src, metadata = {**found.asm, "ptx": without}, found.src, found.metadata

    (pair,) = races.find(Changed, kernels.reduction_kernel, (1,), arguments)
    assert pair.kind == "store then load" and not pair.certain and "not certain" in repr(pair)


def test_a_barrier_that_is_not_planned_makes_a_pair_uncertain():
    found, arguments = compiled(kernels.reverse_kernel, start(), N=N, BAR=False, num_warps=4)
    store = next(one for one in found.asm["ptx"].splitlines() if "st.global" in one)
    more = found.asm["ptx"].replace(store, f"{store}\n\tbar.sync 0;", 1)

    class Changed:
        asm, src, metadata = {**found.asm, "ptx": more}, found.src, found.metadata

    (pair,) = races.find(Changed, kernels.reverse_kernel, (1,), arguments)
    assert not pair.certain


def test_planned_barriers_are_those_of_the_ptx():
    h, f = torch.ones(64 * 64, dtype=torch.bfloat16), torch.ones(64 * 64)
    x = torch.ones(2 * N)
    for kernel, args, meta in (
        (kernels.reduction_kernel, (x,), {"N": N}),
        (kernels.scan_kernel, (torch.arange(N),), {"N": N, "BAR": True}),
        (kernels.halves_kernel, (x,), {"D": N, "BAR": True}),
        (kernels.softmax_kernel, (x, 100, N), {"BLOCK": 128}),
    ):
        found, _ = compiled(kernel, *args, **meta)
        plan = warp_plan(found.asm["ttgir"], found.asm["ptx"], found.src, found.metadata)
        assert plan.disagree == [] and plan.stray == 0 and sum(plan.in_ptx.values()) > 0, kernel
    found, _ = compiled(kernels.update_kernel, h, h, f, N=64, STEPS=3, BAR=True)
    assert warp_plan(found.asm["ttgir"], found.asm["ptx"], found.src, found.metadata).stray == 0


# ---- what is not raced


def test_kernels_that_do_not_read_what_they_write_are_not_planned(monkeypatch):
    monkeypatch.setattr(races, "play", lambda *args: pytest.fail("raced"))
    x, out = torch.ones(N), torch.zeros(N)
    kernels.views_kernel[(1,)](x, torch.ones(N), out, N=N, BAR=False)
    assert torch.equal(out, torch.ones(N))
    with pytest.raises(pytest.fail.Exception):
        kernels.views_kernel[(1,)](x, x, out, N=N, BAR=False)


def test_an_operation_that_cannot_be_planned_is_named():
    found, _ = compiled(kernels.reduction_kernel, torch.ones(2 * N), N=N, num_warps=4)
    strange = found.asm["ttgir"].replace("arith.addf %x", "ttg.strange %x", 1)
    with pytest.raises(Unsupported, match=r"ttg.strange warp by warp, which this kernel uses at line"):
        Plan(strange, found.asm["ptx"], 4)


def test_a_launch_that_fails_in_one_warp_ends_all_of_them():
    found, arguments = compiled(kernels.reverse_kernel, start(), N=N, BAR=False, num_warps=4)
    plan = warp_plan(found.asm["ttgir"], found.asm["ptx"], found.src, found.metadata)
    tensors, values = launch.bind(plan.program, arguments)

    class Broken(Memory):
        def store(self, *args):
            raise ZeroDivisionError

    with pytest.raises(ZeroDivisionError):
        schedule.run_warps(plan, Broken(tensors), (1, 1, 1), torch.zeros((1, 3), dtype=torch.int64), values)
