"""The HeatMap: a cell has the colour of its side of 1, and fills with the distance from 1."""

import base64
import json

import pytest

from kit import drawing, machine
from kit.errors import BadInput, WrongType
from kit.explore import explore
from kit.heat_map import ratio_words
from kit.picture_base import STYLES
from kit.pictures import HeatMap


@pytest.fixture(autouse=True)
def simulated_machine(monkeypatch):
    versions = {"triton": "3.7.1", "torch": "2.13.0", "python": "3.11"}
    monkeypatch.setattr(machine, "_current", machine.Machine("cpu", "H200", False, "cuda:90", None, 10**9, 132, versions))


def made(values, **more):
    given = {"row_label": "size", "column_label": "tokens", "above": "b is faster", "below": "a is faster"} | more
    rows, columns = range(len(values)), [16 * (i + 1) for i in range(len(values[0]))]
    return HeatMap("a / b", list(rows), columns, values, **given)


def rects(picture):
    return [shape for shape in picture.shapes()[1] if shape[0] == "rect"]


def test_a_ratio_and_its_inverse_fill_equally_in_two_colours():
    ground, above, other_ground, below = rects(made([[4.0, 0.25]]))
    assert (above[5], below[5]) == ("bad", "ok") and above[4] == below[4] == ground[4] == other_ground[4]
    assert above[1] == ground[1] and below[1] == other_ground[1]


def test_the_level_is_the_logarithm_and_stands_on_the_ground():
    shapes = rects(made([[4.0, 2.0, 1.0]]))
    assert len(shapes) == 5  # 1 has no level
    ground, full, _, half, _ = shapes
    assert half[4] == pytest.approx(full[4] / 2, abs=0.1)
    assert half[2] + half[4] == pytest.approx(ground[2] + ground[4], abs=0.1)


def test_noise_alone_does_not_fill_a_cell():
    ground, level = rects(made([[1.01]]))[:2]
    assert level[4] < ground[4] / 5


def test_what_is_missing_is_a_dash():
    picture = made([[2.0, None], [None, 0.5]])
    assert len(rects(picture)) == 4
    assert [shape[3] for shape in picture.shapes()[1] if shape[0] == "text"].count("–") == 2
    assert [value for *_, value in picture.cells()] == [2.0, 0.5]


def test_what_it_says():
    picture = made([[2.0, 0.8], [1.5, 0.5]])
    assert picture.described() == "4 ratios from 0.50 (tokens 32, size 1) to 2.00 (tokens 16, size 0), median 1.15; above 1 in 2."
    assert picture.extent() == (0.5, 2.0)
    texts = {shape[3] for shape in picture.shapes()[1] if shape[0] == "text"}
    assert {"2.00", "0.80", "16", "32", "tokens", "size", "above 1: b is faster", "a full cell: 2.00 or 0.50"} <= texts


@pytest.mark.parametrize(
    ("value", "words"), [(0.0421, "0.04"), (1, "1.00"), (9.99, "9.99"), (9.996, "10.0"), (99.96, "100"), (1234.5, "1,234")]
)
def test_words_of_a_ratio(value, words):
    assert ratio_words(value) == words


def test_it_shows_itself_and_stays_in_its_frame():
    picture = made([[1.0 + i] * 12 for i in range(14)], sentence="So.")
    data, metadata = picture._repr_mimebundle_()
    assert data["text/plain"] == "a / b: So. [simulated]" and metadata["image/png"]["alt"].startswith("a / b. 168 ratios")
    assert base64.b64decode(data["image/png"]).startswith(b"\x89PNG")
    height, shapes = picture.shapes()
    json.dumps(shapes)
    for shape in shapes:
        hash(shape)
        assert shape[0] in drawing._DRAW and set(str(shape[-1]).split()) <= set(STYLES)
        if shape[0] == "rect":
            assert shape[1] >= 0 and shape[1] + shape[3] <= 720 and shape[2] > 0 and shape[2] + shape[4] < height


def test_panels_keep_one_scale():
    panel = explore(lambda n: made([[n, 1.0]]), n=[2, 8])
    assert [picture.high for picture in panel._table.pictures] == [8, 8]
    levels = [rects(picture)[1][4] for picture in panel._table.pictures]
    assert levels[0] == pytest.approx(levels[1] / 3, abs=0.1)


@pytest.mark.parametrize(
    ("make", "words"),
    [
        (lambda: made([[1.0, 0.0]]), "more than 0; leave it out as None"),
        (lambda: made([[-1.0]]), "more than 0"),
        (lambda: made([[float("nan")]]), "finite number"),
        (lambda: made([["1.0"]]), "finite number"),
        (lambda: made([[None]]), "no values"),
        (lambda: HeatMap("T", [1, 2], [1], [[1.0]]), "2 rows of 1; got 1"),
        (lambda: HeatMap("T", [1], [1, 2], [[1.0]]), "1 rows of 2; got 1 of"),
        (lambda: HeatMap("T", [], [1], []), "rows must have 1 to 40"),
        (lambda: HeatMap("T", [1], range(15), [[1.0] * 15]), "columns must have 1 to 14"),
        (lambda: made([[1.0]], low=0), "low must be more than 0"),
    ],
)
def test_bad_heat_maps(make, words):
    with pytest.raises(BadInput, match=words):
        make()


@pytest.mark.parametrize(
    "make",
    [
        lambda: HeatMap("T", "rows", [1], [[1.0]]),
        lambda: HeatMap("T", [1], [None], [[1.0]]),
        lambda: HeatMap("T", [1], [1], [1.0]),
        lambda: HeatMap("T", [1], [1], 1.0),
        lambda: HeatMap("T", [1], [1], [[1.0]], row_label=3),
        lambda: HeatMap(1, [1], [1], [[1.0]]),
    ],
)
def test_wrong_types(make):
    with pytest.raises(WrongType):
        make()
