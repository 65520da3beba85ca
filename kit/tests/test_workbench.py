"""`sweep`: every combination told, refusals kept as rows, an interrupted sweep that keeps what it has, the panel over it."""

from __future__ import annotations

import pytest
import triton

from kit import workbench
from kit.errors import BadInput, KitError
from kit.tests.scale_kernels import grid, make_args, reference, scale_kernel
from kit.tests.untimed import untimed
from kit.workbench import sweep, times


@pytest.fixture(scope="module")
def tried():
    return sweep(scale_kernel, make_args, grid, sizes={"n": [1000, 2**20]}, BLOCK=[1024, 8192], num_warps=[1, 4])


def test_each_combination_is_a_row(tried):
    assert tried and len(tried) == 8
    assert tried.axes == {"n": [1000, 2**20], "BLOCK": [1024, 8192], "num_warps": [1, 4]}
    row = tried.row(n=2**20, BLOCK=1024, num_warps=4)
    assert row.programs == 1024 and row.loads == (128,) and not row.spills and row.resident > 0
    assert tried.row(n=1000, BLOCK=1024, num_warps=4).loads == (32,)
    assert [record["BLOCK"] for record in tried.table()[:4]] == [1024, 1024, 8192, 8192]


def test_variants_are_counted_over_sizes_and_knobs(tried):
    assert tried.variants == 8  # 1,000 is no multiple of 16, 2^20 is; each pair of knobs compiles both
    same = sweep(scale_kernel, make_args, grid, sizes={"n": [2**10, 2**20]}, BLOCK=1024)
    assert same.variants == 1


def test_spills_are_seen_and_the_panel_shows_where(tried):
    assert tried.row(n=2**20, BLOCK=8192, num_warps=1).spills > 0
    panel = tried.panel()
    panel.set(n=2**20, BLOCK=8192, num_warps=1)
    assert "✗ registers" in panel.sentence and "spilled" in repr(panel)
    panel.set(num_warps=4)
    assert "✓ registers" in panel.sentence


def test_a_combination_that_does_not_compile_is_a_row_that_says_why():
    found = sweep(scale_kernel, make_args, grid, sizes={"n": 100}, BLOCK=[100, 128])
    assert not found
    assert "power of 2" in found.row(BLOCK=100).refused
    assert found.row(BLOCK=128).registers
    assert "refused" in repr(found) and "power of 2" in found._repr_html_()
    assert "refused" in found.panel().sentence


def test_a_knob_that_is_computed_is_no_axis():
    found = sweep(scale_kernel, make_args, grid, sizes={"n": [100, 2000]}, BLOCK=lambda meta: triton.next_power_of_2(meta["n"]))
    assert list(found.axes) == ["n"]
    assert [row.programs for row in found] == [1, 1]


def test_an_interrupted_sweep_keeps_what_is_done(monkeypatch):
    calls = []

    def interrupted(*args):
        calls.append(args)
        if len(calls) == 4:
            raise KeyboardInterrupt
        return original(*args)

    original = workbench._tried
    monkeypatch.setattr(workbench, "_tried", interrupted)
    found = sweep(scale_kernel, make_args, grid, sizes={"n": [100, 200, 300]}, BLOCK=[128, 256])
    assert len(found) == 3
    assert found.note == "stopped at 3 of 6"


@pytest.mark.parametrize(
    ("changed", "words"),
    [
        ({"BLOCK": []}, "BLOCK has no values"),
        ({"BLOCK": list(range(3000))}, "at most 2,000"),
        ({"sizes": {}}, "sizes must be"),
        ({"BLOCKS": 3}, "takes no BLOCKS"),
    ],
)
def test_bad_input_names_the_argument(changed, words):
    given = {"sizes": {"n": [100]}, "BLOCK": 128, **changed}
    with pytest.raises(BadInput, match=words):
        sweep(scale_kernel, make_args, grid, **given)


def test_a_row_that_is_not_one_is_refused_by_name(tried):
    with pytest.raises(BadInput, match="2 combinations fit"):
        tried.row(n=1000, BLOCK=1024)


def test_what_does_not_vary_is_no_input_of_the_panel(tried):
    some = sweep(scale_kernel, make_args, grid, sizes={"n": 1000}, BLOCK=[1024, 8192], num_warps=4)
    assert list(some.panel().value) == ["BLOCK"]
    assert list(tried.panel().value) == ["n", "BLOCK", "num_warps"]
    assert list(sweep(scale_kernel, make_args, grid, sizes={"n": 1000}, BLOCK=1024).panel().value) == ["n"]


# ---- Times, which only a GPU has: what is asked for, with a bench that checks as kit.bench does and times nothing


def test_each_choice_is_timed_against_the_reference(monkeypatch):
    asked = untimed(monkeypatch)
    choices = [{"BLOCK": 128}, {"BLOCK": 256}]
    assert times(scale_kernel, make_args, grid, reference, {"n": 1000}, choices, {}) == [1.0, 2.0]
    assert times(scale_kernel, make_args, grid, None, {"n": 1000}, choices, {}) == [1.0, 2.0]
    assert asked == [["BLOCK = 128", "BLOCK = 256"]] * 2


def test_a_choice_that_is_wrong_is_not_timed(monkeypatch):
    untimed(monkeypatch)
    with pytest.raises(KitError, match="is not the reference"):
        times(scale_kernel, make_args, grid, lambda x, out, n: 3 * x, {"n": 1000}, [{"BLOCK": 128}], {})
