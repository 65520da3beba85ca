"""The Timeline: lanes of phases on one axis of time."""

import base64
import json

import pytest

from kit import drawing, machine
from kit.errors import BadInput, WrongType
from kit.explore import explore
from kit.picture_base import STYLES
from kit.pictures import Lane, Phase, Timeline

COLD = Lane("cold", [Phase("import", 2900), Phase("compile", 950.5), Phase("launch", 0.04)])
WARM = Lane("warm", [Phase("import", 2900), Phase("launch", 0.04)])


@pytest.fixture(autouse=True)
def simulated_machine(monkeypatch):
    versions = {"triton": "3.7.1", "torch": "2.13.0", "python": "3.11"}
    monkeypatch.setattr(machine, "_current", machine.Machine("cpu", "H200", False, "cuda:90", None, 10**9, 132, versions))


def rects(picture):
    return [shape for shape in picture.shapes()[1] if shape[0] == "rect"]


def test_phases_follow_each_other_on_one_scale():
    picture = Timeline("T", [COLD, WARM], "ms")
    (first, second, third), (again, last) = rects(picture)[:3], rects(picture)[3:]
    assert first[1] == again[1] and first[3] == again[3]  # the same phase at the same place in both lanes
    assert first[1] + first[3] == pytest.approx(second[1], abs=0.2) and second[1] + second[3] == pytest.approx(third[1], abs=0.2)
    assert last[1] == second[1]  # without a compilation the launch begins where that began
    assert second[3] / first[3] == pytest.approx(950.5 / 2900, rel=0.01)
    assert third[3] == 1  # what is too short for the scale is still there
    assert [shape[-1] for shape in (first, second, third, again, last)] == ["muted", "third", "bad", "muted", "bad"]


def test_what_it_says():
    picture = Timeline("T", [COLD, WARM], "ms")
    assert picture.described() == "cold 3,851 ms (import 2,900, compile 950.5, launch 0.04); warm 2,900 ms (import 2,900, launch 0.04)."
    assert picture.extent() == (0, COLD.total)
    texts = [shape[3] for shape in picture.shapes()[1] if shape[0] == "text"]
    assert {"cold", "warm", "3,851 ms", "1 import", "2 compile", "3 launch"} <= set(texts)
    assert texts.count("1") == 2 and texts.count("2") == 1


def test_numbers_that_would_touch_are_left_out():
    _, shapes = Timeline("T", [Lane("l", [Phase("a", 100), Phase("b", 0.1), Phase("c", 0.1), Phase("d", 100)])]).shapes()
    assert [shape[3] for shape in shapes if shape[0] == "text" and shape[3] in "1234"] == ["1", "2", "4"]


def test_it_shows_itself_and_stays_in_its_frame():
    picture = Timeline("T", [COLD, Lane("a label that is rather long", [Phase("x", 0)]), Lane("none", [])], sentence="So.")
    data, metadata = picture._repr_mimebundle_()
    assert data["text/plain"] == "T: So. [simulated]" and metadata["image/png"]["alt"] == f"T. {picture.described()}"
    assert base64.b64decode(data["image/png"]).startswith(b"\x89PNG")
    height, shapes = picture.shapes()
    json.dumps(shapes)
    for shape in shapes:
        hash(shape)
        assert shape[0] in drawing._DRAW and set(str(shape[-1]).split()) <= set(STYLES)
        if shape[0] == "rect":
            assert shape[1] >= 0 and shape[1] + shape[3] <= 720.5 and shape[2] + shape[4] < height


def test_many_names_wrap_in_the_legend():
    lane = Lane("l", [Phase(f"a phase with a long name {i}", 1) for i in range(6)])
    _, shapes = Timeline("T", [lane]).shapes()
    squares = [shape[1] for shape in shapes if shape[0] == "squares"]
    assert len(squares) == 6 and len({y for _, y in squares}) > 1 and all(x < 720 for x, _ in squares)


def test_panels_keep_one_scale():
    panel = explore(lambda n: Timeline("T", [Lane("l", [Phase("p", n)])]), n=[1, 10])
    assert [picture.high for picture in panel._table.pictures] == [10, 10]


@pytest.mark.parametrize(
    ("make", "words"),
    [
        (lambda: Phase("p", -1), "length of p must be 0 or more"),
        (lambda: Phase("p", "1"), "must be a finite number"),
        (lambda: Timeline("T", []), "no phases"),
        (lambda: Timeline("T", [Lane("l", [])]), "no phases"),
        (lambda: Timeline("T", [Lane("l", [Phase(str(i), 1) for i in range(7)])]), "7 different phases"),
    ],
)
def test_bad_timelines(make, words):
    with pytest.raises(BadInput, match=words):
        make()


@pytest.mark.parametrize("make", [lambda: Lane("l", [1]), lambda: Lane(1, []), lambda: Timeline("T", [1]), lambda: Phase(1, 1)])
def test_wrong_types(make):
    with pytest.raises(WrongType):
        make()
