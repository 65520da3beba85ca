"""bench: the statistics, the judgement of rows, what it refuses; and on a GPU, that it times what it says."""

import json
import random

import pytest
import torch

from kit import machine
from kit.bench import METHODS, bench, compare, copied, counted, outcome
from kit.errors import BadInput, KitError, WrongType
from kit.statistics import ratio, summary
from kit.timing import Row, Timing


def double(x):
    return 2 * x


def doubled_in_place(x):
    x *= 2


def row(name="it", samples=(10.0, 11.0, 9.0), shape=None, **more):
    given = {"method": "events", "cold": True, "checked": True} | more
    return Row(name, shape or {}, tuple(samples), **given)


# ---- Statistics


def test_the_interval_of_twenty_rounds_is_the_tabulated_one():
    found = summary(range(1, 21))  # Conover's table: n = 20, 95 %: the 6th and the 15th
    assert (found.low, found.high) == (6, 15)
    assert found.median == 10.5


@pytest.mark.parametrize("n", [7, 12, 20, 41])
def test_the_interval_covers_the_median_as_often_as_it_says(n):
    generator = random.Random(n)
    hits = 0
    for _ in range(2_000):
        found = summary([generator.expovariate(1.0) for _ in range(n)])
        hits += found.low <= 0.6931 <= found.high
    assert 0.94 <= hits / 2_000 <= 1.0


def test_few_samples_give_the_range():
    found = summary([3.0, 1.0, 2.0])
    assert (found.low, found.median, found.high) == (1.0, 2.0, 3.0)


def test_drift_that_hits_both_of_a_round_leaves_the_ratio_alone():
    drift = [1.0 + 0.05 * i for i in range(20)]
    above, below = [2.0 * d for d in drift], [1.0 * d for d in drift]
    assert ratio(above, below).median == pytest.approx(2.0)
    assert ratio(above, below).high == pytest.approx(2.0)


# ---- Rows and their questions


def test_bytes_and_flop_give_rates_and_the_larger_share():
    found = row(samples=[100.0] * 9, bytes=1e8, flop=1e9, copy_ceiling=4e12, matrix_ceiling=1e15)
    assert found.bandwidth == pytest.approx(1e12)
    assert found.rate == pytest.approx(1e13)
    assert found.share == pytest.approx(0.25)


@pytest.mark.parametrize(
    ("more", "words"),
    [
        ({"bytes": 1e9, "copy_ceiling": 4e12}, "more than there is"),
        ({"bytes": 1e9, "copy_ceiling": 4e12, "cold": False}, "from the L2 cache"),
        ({"checked": False}, "not checked"),
        ({"samples": [5.0] * 9}, "events cannot tell 5.0 µs"),
        ({"samples": (20.0, 28.0, 20.0, 28.0, 20.0, 28.0)}, "spreads"),
    ],
)
def test_a_doubtful_row_is_questioned(more, words):
    timing = Timing((row(**({"samples": [12.0] * 9} | more)),))
    assert not timing
    assert words in timing.rows[0].questions[0]
    assert words in repr(timing)


@pytest.mark.parametrize(("share", "asked"), [(1.01, 0), (1.06, 1)])
def test_the_ceiling_has_a_little_room(share, asked):
    assert len(row(samples=[100.0] * 9, bytes=share * 4e8, copy_ceiling=4e12).questions) == asked


def test_a_sound_row_is_not_questioned():
    sound = row(samples=[12.0] * 9, host_us=3.0, bytes=1e7, copy_ceiling=4e12)
    assert not sound.questions
    assert Timing((sound,))


def test_under_graph_a_short_call_is_no_question():
    assert not row(samples=[1.5] * 9, method="graph").questions


def test_a_call_that_the_host_is_slower_to_queue_is_launch_bound():
    assert row(host_us=20.0).launch_bound
    assert not row(host_us=2.0).launch_bound


# ---- The Timing


@pytest.fixture
def swept():
    shapes = [{"n": n} for n in (64, 128, 256)]
    times = {"a": 2.0, "b": 1.0}
    return Timing(tuple(row(name, [t * s["n"]] * 7, s, bytes=1e3 * s["n"]) for s in shapes for name, t in times.items()))


def test_the_table_is_flat_and_the_data_is_json(swept):
    assert len(swept.table()) == 6
    assert all(not isinstance(value, (dict, list, tuple)) for one in swept.table() for value in one.values())
    data = json.loads(json.dumps(swept.data()))
    assert [one["ratio"] for one in data if one["name"] == "b"] == [0.5] * 3
    assert swept.ratio("a", "b", n=128).median == 2.0


def test_a_sweep_draws_as_curves_and_one_shape_as_bars(swept):
    curve = swept.picture("gb_s")
    assert curve.x == (64, 128, 256)
    assert set(curve.series) == {"a", "b"}
    assert len(Timing(swept.rows[:2]).picture().rows) == 2
    with pytest.raises(BadInput, match="give bytes= or flop="):
        swept.picture("tflop_s")


def test_rows_are_found_by_name_and_shape(swept):
    assert swept.row("a", n=64).us == 128.0
    with pytest.raises(BadInput, match="no contender 'c'; there are a, b"):
        swept["c"]
    with pytest.raises(BadInput, match="3 rows of a fit"):
        swept.row("a")


def test_the_html_escapes_names():
    assert "<script" not in Timing((row("<script>alert(1)</script>"),))._repr_html_()


# ---- Correctness comes first


def test_a_wrong_contender_is_named_with_its_shape():
    x = torch.arange(8.0)
    with pytest.raises(KitError, match=r"it is not the reference at n=8: Mismatched elements: 7 / 8 .*Wrong answers are not timed"):
        compare("it", [3 * x], [2 * x], {"n": 8}, None)
    compare("it", [2 * x], [2 * x], {"n": 8}, None)


def test_a_tolerance_of_your_own_counts():
    x = torch.ones(4)
    with pytest.raises(KitError):
        compare("it", [x + 1e-3], [x], {}, None)
    compare("it", [x + 1e-3], [x], {}, (0.0, 1e-2))


def test_a_function_in_place_is_judged_by_its_tensors_and_leaves_the_arguments_alone():
    x = torch.ones(4)
    (got,) = outcome(doubled_in_place, (x,))
    assert got.tolist() == [2.0] * 4
    assert x.tolist() == [1.0] * 4


@pytest.mark.parametrize("view", [lambda x: x[:, ::2], lambda x: x.T, lambda x: x[1:, 1:], lambda x: x[:1].expand(3, 8), lambda x: x[:0]])
def test_a_copy_keeps_strides_and_values(view):
    x = view(torch.arange(64.0).view(8, 8))
    (copy,) = copied((x,))
    assert copy.stride() == x.stride()
    assert torch.equal(copy, x)
    assert x.numel() == 0 or copy.data_ptr() != x.data_ptr()


def test_a_count_may_be_a_function_and_must_be_positive():
    x = torch.ones(4)
    assert counted("bytes", lambda x: 2 * x.nbytes, (x,)) == 32
    with pytest.raises(BadInput, match="bytes must be a positive number"):
        counted("bytes", 0, (x,))


# ---- What it refuses


@pytest.mark.parametrize(
    ("call", "error", "words"),
    [
        (lambda x: bench(double, x), BadInput, "reference is missing: give the function that double is checked against"),
        (lambda x: bench({}, x), WrongType, "contenders must be a function or a dict"),
        (lambda x: bench({"a": 3}, x), WrongType, "contenders must map names to functions"),
        (lambda x: bench({"a": double}, x, reference="b"), BadInput, "reference must be a function, None or one of a"),
        (lambda x: bench(double, x, reference=None, method="clock"), BadInput, "method must be one of events, graph, profiler"),
        (
            lambda x: bench(double, x, reference=None, make=lambda n: x, over={"n": [1]}),
            BadInput,
            "either the arguments or make=",
        ),
        (lambda x: bench(double, reference=None, make=lambda n: x), BadInput, "make= needs over="),
        (lambda x: bench(double, reference=None, over={"n": [1]}), BadInput, "over= needs make="),
        (lambda x: bench(double, reference=None, make=lambda n: x, over=[]), WrongType, "over must be"),
        (lambda x: bench(double, x, reference=None, rounds=0), BadInput, "rounds must be 1 or more"),
        (lambda x: bench(double, x, reference=None, cold="yes"), WrongType, "cold must be True or False"),
    ],
)
def test_bad_input_gets_a_sentence(call, error, words):
    with pytest.raises(error) as raised:
        call(torch.ones(4))
    assert words in str(raised.value)


def test_a_kernel_is_not_a_function_to_time():
    from kit.clocks import kit_flush_l2_kernel

    with pytest.raises(WrongType, match="flush is a kernel; give a function that launches it"):
        bench({"flush": kit_flush_l2_kernel}, torch.ones(4))


@pytest.mark.skipif(torch.cuda.is_available(), reason="a GPU is here")
def test_a_simulation_is_not_timed():
    machine.start()
    with pytest.raises(KitError, match="is simulated here, and a simulation has no times"):
        bench(double, torch.ones(4), reference=double)


# ---- The rounds, with a clock of our own in the GPU's place
@pytest.fixture
def turns(monkeypatch):
    """A machine that says it is live, and clocks that note their turns: a call of `name` takes as many µs as its name has letters."""
    from kit import bench_run, ceilings

    noted = []

    class Clock:
        def __init__(self, fn, args, method, cold):
            self.fn, self.cold, self.host_us = fn, cold, 1.0

        def round(self):
            noted.append(self.fn.__name__)
            return [20.0 * len(self.fn.__name__)]

    live = machine.Machine("cpu", "a GPU", True, "cuda:90", None, 10**9, 132, {"triton": "0", "torch": "0"})
    monkeypatch.setattr(machine, "_current", live)
    monkeypatch.setattr(bench_run, "_Clock", Clock)
    monkeypatch.setattr(ceilings, "copy_ceiling", lambda: 4e12)
    return noted


def twice(x):
    return x + x


def test_contenders_take_turns_and_the_order_alternates(turns):
    timing = bench({"double": double, "twice": twice}, torch.ones(4), rounds=4, bytes=1e6)
    assert turns == ["double", "twice", "twice", "double"] * 2
    assert timing.ratio("double", "twice").median == pytest.approx(6 / 5)
    assert timing.gpu == "a GPU" and timing and all(row.checked for row in timing)


def test_every_shape_is_checked_before_it_is_timed(turns):
    def wrong_from_8(x):
        return 2 * x if len(x) < 8 else x

    with pytest.raises(KitError, match="wrong_from_8 is not the reference at n=8"):
        bench({"double": double, "wrong_from_8": wrong_from_8}, make=lambda n: torch.ones(n), over={"n": [4, 8]}, rounds=1)
    assert turns == ["double", "wrong_from_8"]  # at n = 4 only


def test_a_sweep_has_a_row_for_each_shape_and_contender(turns):
    timing = bench({"double": double, "twice": twice}, make=lambda n, m: torch.ones(n, m), over={"n": [2, 4], "m": [1, 3]}, rounds=1)
    assert timing.shapes == [{"n": n, "m": m} for n in (2, 4) for m in (1, 3)]
    assert len(timing) == 8


def test_an_interrupt_keeps_the_shapes_that_are_done(turns, monkeypatch):
    from kit import bench_run

    step = bench_run._Clock.round

    def interrupted(clock):
        if len(turns) == 2:
            raise KeyboardInterrupt
        return step(clock)

    monkeypatch.setattr(bench_run._Clock, "round", interrupted)
    timing = bench({"double": double, "twice": twice}, make=lambda n: torch.ones(n), over={"n": [2, 4]}, rounds=1)
    assert timing.shapes == [{"n": 2}] and "stopped at 2 of 4" in repr(timing)


# ---- On a GPU


@pytest.fixture
def x():
    machine.start()
    return torch.randn(2**24, device="cuda")


@pytest.mark.gpu
@pytest.mark.parametrize("method", METHODS)
def test_twice_the_work_takes_twice_the_time(x, method):
    def quadruple(x):
        return 2 * (2 * x)

    timing = bench({"once": double, "twice": quadruple}, x, reference=None, method=method, bytes=2 * x.nbytes)
    assert 1.7 <= timing.ratio("twice", "once").median <= 2.3
    assert 0.5 <= timing.row("once").share <= 1.03


@pytest.mark.gpu
def test_a_wrong_contender_is_not_timed(x):
    with pytest.raises(KitError, match="triple is not the reference"):
        bench({"double": double, "triple": lambda x: 3 * x}, x)


@pytest.mark.gpu
def test_warm_is_faster_than_cold_for_what_fits_the_cache():
    machine.start()
    x = torch.randn(2**21, device="cuda")
    cold, warm = (bench(double, x, reference=double, cold=cold).row("double").us for cold in (True, False))
    assert warm < cold


@pytest.mark.gpu
def test_a_graph_of_tiny_tensors_says_that_it_is_warm():
    machine.start()
    timing = bench(double, torch.ones(16, device="cuda"), reference=double, method="graph")
    assert not timing.row("double").cold


@pytest.mark.gpu
def test_the_copies_of_a_graph_live_as_long_as_it():
    from kit.bench_run import _Clock

    machine.start()
    index, source = torch.arange(2**20, device="cuda"), torch.randn(2**20, device="cuda")
    clock = _Clock(lambda x, i: x[i], (source, index), "graph", True)
    filler = [torch.full((2**20,), -1, device="cuda") for _ in range(64)]  # takes whatever was freed
    assert len(clock.round()) == 1 and len(filler) == 64
    torch.cuda.synchronize()
