"""Several learners' processes on one machine: benchmarks/many_learners.py with six of them, and what it would find."""

import importlib.util
from pathlib import Path

import pytest

_SPEC = importlib.util.spec_from_file_location("many_learners", Path(__file__).parents[2] / "benchmarks" / "many_learners.py")
many_learners = importlib.util.module_from_spec(_SPEC)
_SPEC.loader.exec_module(many_learners)


@pytest.mark.alone
@pytest.mark.slow
def test_one_who_hangs_fills_memory_or_dies_harms_nobody():
    reports, _, took = many_learners.run(6)
    assert many_learners.problems(reports, took) == []
    kinds = {cell["cell"]: cell["kind"] for report in reports for cell in report["cells"]}
    assert kinds == {"good": "ok", "hang": "hang", "memory": "out of memory", "crash": "crashed", "killer": "crashed"}
    assert sum(cell["cell"] == "good" for report in reports for cell in report["cells"]) == 8


def report(number, *cells, unharmed=True):
    names = ("cell", "kind", "right", "began", "ended")
    return {"number": number, "unharmed": unharmed, "cells": [dict(zip(names, cell, strict=True)) for cell in cells]}


@pytest.mark.parametrize(
    ("second", "took", "found"),
    [
        (report(2, ("good", "ok", True, 2.0, 3.0)), 4, []),
        (report(2, ("good", "hang", False, 2.0, 3.0)), 4, ["learner 2's cell good ended as hang"]),
        (report(2, ("good", "ok", True, 2.0, 3.0), unharmed=False), 4, ["learner 2's own tensor changed"]),
        (report(2, ("good", "ok", True, 1.5, 3.0)), 4, ["the cells of learners 1 and 2 ran at the same time"]),
        (report(2, ("good", "ok", True, 2.0, 3.0)), 400, ["all cells took 400 s, more than 28 s"]),
    ],
)
def test_harm_is_found(second, took, found):
    assert many_learners.problems([report(1, ("good", "ok", True, 1.0, 2.0)), second], took) == found


def test_everybody_has_a_part():
    assert [many_learners.kind_of(number, 6) for number in range(6)] == ["good", "hang", "memory", "crash", "killer", "good"]
    assert sorted(many_learners.kind_of(number, 20) for number in range(20)) == sorted([*many_learners.BAD, *["good"] * 16])
