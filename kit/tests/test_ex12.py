"""The truths of exercise 12's graders, and that 12.3 judges fairly whatever the recorded figures are."""

import itertools
import json
import math
import random
from pathlib import Path

import pytest

from kit import machine
from kit.errors import KitError
from kit.graders import STEPS, ex12_edges, ex12_gate, ex12_table, grade
from kit.graders.ex12_table import WAYS, constant, fitted, halves, mark, regret, shapes_to_fit, table
from kit.simulator.driver import SimulatedDriverError, check_grid
from kit.tests.banks import RIGHT, WRONG, module_of
from kit.verdict import drawn

LESSON = Path(__file__).parents[2] / "notebooks" / "12_sweeps.ipynb"
TOKENS, HEADS, SIZES, DTYPES = (1, 16, 128, 1_024, 4_096), (1, 8, 24, 64), (64, 128, 512, 4_096), ("float16", "float32")
GRID = [(t, h, s, d) for t, h, s, d in itertools.product(TOKENS, HEADS, SIZES, DTYPES) if h * s <= 32_768 and t * h * s <= 2**26]
EDGES = [(1_024, 24, 129, "float16"), (1_024, 9, 128, "float16"), (65_535, 1, 64, "float16"), (65_536, 1, 64, "float16")]


@pytest.fixture(autouse=True)
def simulated():
    machine.start()


# ---- 12.1
@pytest.mark.parametrize(("name", "given"), ex12_edges.CASES, ids=lambda one: one if isinstance(one, str) else "")
def test_each_limit_lies_between_its_two_sides(name, given):
    heads, size, itemsize, block, l2, _ = given
    allowed = {
        "one program": lambda n: n * heads <= block,
        "a grid axis": lambda n: n <= 65_535,
        "the L2 cache": lambda n: 2 * n * heads * size * itemsize <= l2,
        "int32 offsets": lambda n: n * heads * size - 1 <= 2**31 - 1,
    }
    lasts = ex12_edges.limits_of(*given[:5])
    assert lasts.keys() == allowed.keys()
    for limit, last in lasts.items():
        assert allowed[limit](last) and not allowed[limit](last + 1), limit


def test_the_grid_axis_is_the_driver_s():
    limits = machine.current().limits
    assert check_grid((1, ex12_edges.AXIS, 1), limits) is True
    with pytest.raises(SimulatedDriverError):
        check_grid((1, ex12_edges.AXIS + 1, 1), limits)


def test_every_other_way_of_counting_is_told_from_the_right_one_and_from_the_others():
    ways = {one.name: one.seen.counting for one in STEPS["12.1"].mistakes if hasattr(one.seen, "counting")}
    answers = {name: tuple(map(tuple, (way(*given) for _, given in ex12_edges.CASES))) for name, way in ways.items()}
    right = tuple(tuple(ex12_edges.edges_of(*given)) for _, given in ex12_edges.CASES)
    assert len(ways) >= 14
    assert ex12_edges._counted()(*ex12_edges.CASES[0][1]) == list(right[0])
    assert right not in answers.values() and len(set(answers.values())) == len(ways)


# ---- 12.2
def test_the_gate_s_values_on_a_change_and_on_its_inverse():
    for _, (before, after) in ex12_gate.CASES:
        (median, least, mean, _), (_, _, back, _) = ex12_gate.judged(before, after), ex12_gate.judged(after, before)
        assert mean * back == pytest.approx(1)
        assert least <= median and least <= mean
    verdicts = [ex12_gate.judged(*case)[3] for _, case in ex12_gate.CASES]
    assert 4 <= sum(verdicts) <= len(verdicts) - 4


def test_every_other_way_of_summing_up_is_told_from_the_right_one_and_from_the_others():
    ways = {one.name: one.seen.summing for one in STEPS["12.2"].mistakes if hasattr(one.seen, "summing")}
    answers = {name: (at, tuple(way(*case) for _, case in ex12_gate.CASES)) for name, (at, way) in ways.items()}
    right = [tuple(ex12_gate.judged(*case)[at] for _, case in ex12_gate.CASES) for at in range(4)]
    assert len(ways) >= 14
    for name, (at, values) in answers.items():
        assert not all(map(ex12_gate._same, right[at], values)), name
    assert len(set(answers.values())) == len(ways)


# ---- 12.3, on made-up tables
def by_size(t, h, s, way):
    """Two questions are enough here: wide rows, few rows."""
    best = "row" if s > 512 else "token" if t * h <= 128 else "eight"
    return 1.0 if way == best else 2.0


def in_steps(t, h, s, way):
    """What each way loses grows in steps that no rule of two questions follows exactly."""
    rows = {"row": 1, "eight": 8, "token": h}[way]
    return 2 + max(rows * s / 4_096, t * h / rows / 1_000) + 0.1 * math.log2(1 + abs(rows - 6))


def one_best(t, h, s, way):
    return {"row": 1.5, "eight": 1.0, "token": 1.2}[way]


def noise(t, h, s, way):
    return random.Random(f"{t} {h} {s} {way}").uniform(0.98, 1.02)


def exactly_equal(t, h, s, way):
    return 1.0


WORLDS = (by_size, in_steps, one_best, noise, exactly_equal)


@pytest.fixture
def recording(tmp_path, monkeypatch):
    monkeypatch.setenv("KIT_RECORDINGS", str(tmp_path))

    def write(world):
        us = {" ".join(map(str, shape)): {way: world(*shape[:3], way) for way in WAYS} for shape in [*GRID, *EDGES]}
        provenance = dict.fromkeys(("gpu", "driver", "torch", "triton", "cuda", "date"), "x")
        run = {"arguments": {}, "data": {"l2": 1, "us": us}, "digest": "", "provenance": provenance}
        content = {"schema": 1, "experiment": ex12_table.NAME, "owner": "12_sweeps", "runs": [run]}
        (tmp_path / f"{ex12_table.NAME}.json").write_text(json.dumps(content))

    return write


def judged(source_or_pick):
    return json.loads(json.dumps(grade("12.3", source_or_pick)))


def test_the_table_is_the_grid_without_the_edges(recording):
    recording(by_size)
    assert {(t, h, s, f"float{8 * i}") for t, h, s, i in table()} == set(GRID)


def test_halves_are_a_chessboard_with_both_dtypes_in_one(recording):
    recording(by_size)
    seen, held = halves(table())
    assert not seen.keys() & held.keys() and len(seen) + len(held) == len(GRID) and seen == shapes_to_fit()
    for t, h, s, i in seen:
        assert (t, h, s, 6 - i) in seen
        later = TOKENS[(TOKENS.index(t) + 1) % len(TOKENS)]
        if t < later and (later, h, s, i) in table():
            assert (later, h, s, i) in held


def test_regret_is_measured_against_the_best_of_each_shape():
    times = {(1, 1, 1, 2): {"row": 1.0, "eight": 2.0, "token": 4.0}, (2, 1, 1, 2): {"row": 3.0, "eight": 1.5, "token": 1.5}}
    got = regret(dict.fromkeys(times, "row"), times)
    assert (got.mean, got.worst, got.at) == (pytest.approx(math.sqrt(2) - 1), 1.0, (2, 1, 1, 2))
    assert constant("eight", times).mean == pytest.approx(math.sqrt(2) - 1) and constant("token", times).worst == 3.0


@pytest.mark.parametrize("world", WORLDS)
def test_the_fit_finds_the_smallest_regret_of_its_depth(recording, world):
    recording(world)
    seen = shapes_to_fit()
    rules = [fitted(seen, depth) for depth in (0, 1, 2)]
    found = [regret({shape: rule(shape) for shape in seen}, seen).mean for rule in rules]
    assert found[0] == pytest.approx(min(constant(way, seen).mean for way in WAYS))
    assert found[2] <= found[1] + 1e-9 and found[1] <= found[0] + 1e-9
    by_hand = min(  # depth 1, written out
        regret({s: low if question(s) <= limit else high for s in seen}, seen).mean
        for question in ex12_table._QUESTIONS
        for limit in set(map(question, seen))
        for low in WAYS
        for high in WAYS
    )
    assert found[1] == pytest.approx(by_hand)
    if world is by_size:
        assert found[2] == pytest.approx(0)


@pytest.mark.parametrize("world", WORLDS)
def test_the_fitted_rule_passes_whatever_the_figures_are(recording, world):
    recording(world)
    rule = fitted(shapes_to_fit())
    assert judged(lambda *shape: rule(shape))["state"] == "passed"


@pytest.mark.parametrize("world", WORLDS)
def test_a_single_choice_passes_only_where_the_fitted_rule_is_no_better(recording, world):
    recording(world)
    wanted = mark(*halves(table()))
    better = wanted.reference.mean < wanted.single_regret.mean
    states = {way: judged(lambda *shape, way=way: way)["state"] for way in WAYS}
    if better:
        assert set(states.values()) == {"wrong"}
    assert better or world is exactly_equal or states[wanted.single] == "passed"
    assert better == (world in (by_size, in_steps)) or world is noise


def test_half_of_the_way_is_enough_and_less_is_not(recording):
    recording(by_size)
    seen, held = halves(table())
    wanted, rule = mark(seen, held), fitted(seen)
    single = dict.fromkeys(table(), wanted.single)
    better = sorted(shape for shape in held if rule(shape) != wanted.single)

    def state(n):
        known = single | {shape: rule(shape) for shape in better[:n]}
        return judged(lambda *shape: known.get(shape, "row"))["problems"]

    needed = math.ceil(len(better) / 2)
    assert "on average" in state(needed - 1)[0]["text"]
    told = state(needed)[0]["text"]  # good enough on average, and still slow at single shapes
    assert "on average;" not in told and " at " in told


def test_without_a_recording_it_says_so(recording):
    with pytest.raises(KitError, match="no recording of norm_sweep"):
        shapes_to_fit()


def test_the_recorded_grid_is_the_lesson_s():
    """Of the recording in the package: the table that readers get has the lesson's shapes, and its halves."""
    cells = ["".join(cell["source"]) for cell in json.loads(LESSON.read_text())["cells"] if cell["cell_type"] == "code"]
    lines = [line for cell in cells for line in cell.splitlines() if line.startswith(("TOKENS,", "DTYPES,", "SHAPES ="))]
    black = next(cell for cell in cells if "def black" in cell).split("SEEN,")[0]
    lesson = {}
    exec("\n".join([*lines, black]), lesson)
    shapes = {(t, h, s, {"float16": 2, "float32": 4}[d]): lesson["black"]((t, h, s, d)) for t, h, s, d in lesson["SHAPES"]}
    seen, held = halves(table())
    assert seen.keys() == {shape for shape, side in shapes.items() if side == 0}
    assert held.keys() == {shape for shape, side in shapes.items() if side == 1}


# ---- Pictures
@pytest.mark.parametrize("name", ["only below", "0 tokens", "plain mean", "missing let through", "always eight", "rows up to many"])
def test_verdicts_have_their_picture(name, tmp_path):
    answer = next(one for one in WRONG if one.name == name and one.step.startswith("12"))
    told = grade(answer.step, getattr(module_of(answer.source, tmp_path), STEPS[answer.step].name))
    assert drawn(told["problems"][0]["picture"], told["evidence"])._repr_mimebundle_()


def test_12_3_says_that_its_times_are_recorded(tmp_path):
    answer = next(one for one in RIGHT if one.step == "12.3")
    assert grade("12.3", module_of(answer.source, tmp_path).pick)["evidence"] == "recorded"
