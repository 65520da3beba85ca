"""explore, the panel, and the pictures."""

import base64
import html
import io
import itertools
import json
import re
import subprocess
import sys
import threading
import time

import numpy as np
import pytest
from matplotlib.figure import Figure
from PIL import Image

from kit import drawing, machine, panel
from kit.drawing import RENDER, png
from kit.errors import BadInput, KitError, WrongType
from kit.explore import explore
from kit.picture_base import WIDTH
from kit.pictures import INT32, Bar, Bars, Cells, Curve, Limit, Mark, NumberLine, Span, number
from kit.recording import Recording

VIEW = "application/vnd.jupyter.widget-view+json"


@pytest.fixture(autouse=True)
def simulated_machine(monkeypatch):
    versions = {"triton": "3.7.1", "torch": "2.13.0", "python": "3.11"}
    monkeypatch.setattr(machine, "_current", machine.Machine("cpu", "H200", False, "cuda:90", None, 10**9, 132, versions))
    monkeypatch.delenv("KIT_STILL", raising=False)


def grids(tokens, head_count=32):
    rows = [Bar("axis 0", head_count, 2**31 - 1), Bar("axis 1", tokens, 65535, ok=tokens <= 65535)]
    refused = "refused" if tokens > 65535 else "legal"
    return Bars("A grid of heads and tokens", "programs", rows, scale="log", sentence=f"{tokens:,} tokens: {refused}.")


def saw(n):
    figure = Figure(figsize=(3, 2))
    axes = figure.add_subplot()
    axes.plot([(i * n) % 7 for i in range(20)])
    axes.set_title(f"n = {n}")
    return figure


def pixels(data):
    return np.asarray(Image.open(io.BytesIO(data)).convert("RGB"))


TOKENS = [1024, 65_535, 65_536]


def test_table_mode_holds_what_the_view_returns():
    p = explore(grids, tokens=TOKENS, head_count=range(8, 33, 8))
    assert p.in_browser
    for (tokens, heads), frame in zip(itertools.product(TOKENS, range(8, 33, 8)), p._table.spec["frames"], strict=True):
        direct = grids(tokens, heads).fixed_to(8, 2**31 - 1)
        assert [p._table.spec["pool"][i] for i in frame["shapes"]] == direct.shapes()[1]
        assert (frame["sentence"], frame["evidence"], frame["alt"]) == (direct.sentence, "simulated", direct.alt)
        p.set(tokens=tokens, head_count=heads)
        assert p.value == {"tokens": tokens, "head_count": heads}
        assert p.picture == direct
        assert p.sentence == direct.sentence
    json.dumps(p.widget.spec)


def test_the_view_is_called_once_for_each_combination():
    calls = []

    def view(**values):
        calls.append(tuple(values.values()))
        return Cells("A", [values["a"]])

    p = explore(view, a=[0, 1], b=["x", "y", "z"], start={"b": "z"})
    p.set(a=1)
    assert sorted(calls) == sorted(itertools.product([0, 1], "xyz"))
    assert p.value == {"a": 1, "b": "z"}


def test_the_scale_does_not_move_with_the_slider():
    p = explore(grids, tokens=TOKENS)
    frames = [[tuple(p._table.spec["pool"][i]) for i in frame["shapes"]] for frame in p._table.spec["frames"]]
    limits = [[shape for shape in frame if "limit" in str(shape[-1]).split()] for frame in frames]
    assert limits[0] == limits[1] == limits[2] != []
    bars = [[shape for shape in frame if shape[0] == "rect"] for frame in frames]
    assert bars[0][0] == bars[2][0]  # the heads stay
    assert bars[0][1][3] < bars[2][1][3]  # the tokens grow
    assert (bars[1][1][-1], bars[2][1][-1]) == ("ok", "bad")


def test_set_redraws_and_repr_says_it():
    p = explore(grids, tokens=TOKENS, start={"tokens": 65_535})
    assert repr(p) == "A grid of heads and tokens (tokens 65,535): 65,535 tokens: legal. [simulated]"
    before = p.png
    assert p.png == before
    p.set(tokens=65_536)
    assert repr(p) == "A grid of heads and tokens (tokens 65,536): 65,536 tokens: refused. [simulated]"
    assert (pixels(p.png) != pixels(before)).any()
    assert p.widget.position == [2]


def test_the_browser_moves_the_panel():
    p = explore(grids, tokens=TOKENS)
    p.widget.position = [2]
    assert p.value == {"tokens": 65_536}
    assert "refused" in p.sentence
    for nonsense in ([7], [], [0, 0], ["x"], [-1], [1.0]):
        p.widget.position = nonsense
        assert p.value == {"tokens": 65_536}


def test_mimebundle_has_the_live_view_the_still_and_the_sentence():
    p = explore(grids, tokens=TOKENS)
    data, metadata = p._repr_mimebundle_()
    assert set(data) == {"text/plain", "image/png", VIEW}
    assert data["text/plain"] == repr(p)
    assert base64.b64decode(data["image/png"]) == p.png
    assert data[VIEW]["model_id"] == p.widget.model_id
    assert metadata["image/png"]["alt"].startswith(
        "tokens 1,024: A grid of heads and tokens. ✓ axis 0 32 programs (limit 2,147,483,647), ✓"
    )


def test_still_only_when_asked_or_without_the_packages(monkeypatch):
    monkeypatch.setenv("KIT_STILL", "1")
    p = explore(grids, tokens=TOKENS)
    assert set(p._repr_mimebundle_()[0]) == {"text/plain", "image/png"}
    p.set(tokens=65_536)
    assert "refused" in p.sentence
    monkeypatch.delenv("KIT_STILL")
    monkeypatch.setitem(sys.modules, "anywidget", None)
    panel._widget_class.cache_clear()
    try:
        assert set(explore(saw, n=[1, 2])._repr_mimebundle_()[0]) == {"text/plain", "image/png"}
    finally:
        panel._widget_class.cache_clear()


def test_figures_are_sent_as_images():
    p = explore(saw, n=[1, 2, 3])
    assert not p.in_browser
    assert p.picture is None
    first = p.widget.image
    assert first == p.png
    assert p.widget.drawn["shapes"] is None
    assert p.sentence == "n = 1"
    p.widget.position = [2]  # the reader lets go of the slider
    assert p.value == {"n": 3}
    assert (pixels(p.widget.image) != pixels(first)).any()
    assert (p.widget.drawn["position"], p.widget.drawn["alt"], p.widget.drawn["evidence"]) == ([2], "n = 3", "simulated")
    p.set(n=1)
    assert p.widget.image == first


def test_a_figure_may_bring_its_sentence_and_pyplot_figures_are_closed():
    from matplotlib import pyplot

    def view(n):
        pyplot.figure().add_subplot().plot([n])
        return pyplot.gcf(), f"n is {n}."

    p = explore(view, n=[1, 2])
    p.set(n=2)
    assert p.sentence == "n is 2."
    assert repr(p) == "Figure (n 2): n is 2. [simulated]"
    assert pyplot.get_fignums() == []


def test_live_pictures_are_computed_when_needed_and_kept():
    calls = []

    def view(tokens):
        calls.append(tokens)
        return grids(tokens)

    p = explore(view, live=True, tokens=range(1, 1001))
    assert calls == [1]
    p.set(tokens=7)
    p.set(tokens=1)
    p.widget.position = [6]
    assert calls == [1, 7]
    assert p.widget.drawn["shapes"] == grids(7).shapes()[1]
    assert p.widget.drawn["sentence"] == "7 tokens: legal."


def test_a_view_that_raises_is_told_with_its_values():
    def view(tokens, kind):
        if tokens == 65_536 and kind == "b":
            raise ZeroDivisionError("by nothing")
        return grids(tokens)

    with pytest.raises(KitError, match=r"explore: view\(tokens=65536, kind='b'\) raised ZeroDivisionError: by nothing"):
        explore(view, tokens=TOKENS, kind=["a", "b"])
    p = explore(view, live=True, tokens=TOKENS, kind=["a", "b"], start={"kind": "b"})
    with pytest.raises(KitError, match="tokens=65536"):
        p.set(tokens=65_536)
    assert p.value == {"tokens": 1024, "kind": "b"}
    p.widget.position = [2, 1]  # in the browser there is nobody to raise at
    assert "view(tokens=65536, kind='b') raised ZeroDivisionError" in p.widget.error
    assert p.value == {"tokens": 1024, "kind": "b"}
    p.widget.position = [0, 1]
    assert p.widget.error == ""


@pytest.mark.parametrize(
    ("call", "words"),
    [
        (lambda: explore(grids(1), tokens=[1]), r"view must be a function of the axes that returns a picture"),
        (lambda: explore(grids), "no axis given"),
        (lambda: explore(grids, tokens=[]), "axis tokens is empty"),
        (lambda: explore(grids, tokens=5), r"axis tokens must be a list, tuple or range of values; got 5 \(int\)"),
        (lambda: explore(grids, tokens="abc"), r"axis tokens must be a list"),
        (lambda: explore(grids, tokens=range(10**9)), "axis tokens has 1,000,000,000 values"),
        (lambda: explore(grids, tokens=[1, "x"]), "axis tokens mixes numbers and names"),
        (lambda: explore(grids, tokens=[1, None]), r"axis tokens holds None \(NoneType\); a value must be a number or a name"),
        (lambda: explore(grids, tokens=[np.int64(3)]), r"axis tokens holds .*\(int64\)"),
        (lambda: explore(grids, tokens=[1.0, float("inf")]), "not finite"),
        (lambda: explore(grids, tokens=[2, 1, 2]), "holds a value twice"),
        (lambda: explore(grids, heads=[1]), "view cannot be called with heads=: .*'tokens'. Name its parameters as the axes"),
        (lambda: explore(grids, tokens=[1], start={"tokens": 3}), "explore: start gives tokens=3, and the values of tokens are 1."),
        (lambda: explore(grids, tokens=[1], start={"heads": 3}), "explore: start names 'heads', and the axes are tokens."),
        (lambda: explore(grids, tokens=[1], start=3), "start must be a dict of values"),
        (lambda: explore(grids, tokens=[1]).set(tokens=2), "set: gives tokens=2, and the values of tokens are 1"),
        (lambda: explore(lambda n: n, n=[5]), r"view\(n=5\) returned 5 \(int\); a view must return Bars"),
        (lambda: explore(lambda n: None, n=[5]), r"view\(n=5\) returned None"),
        (lambda: explore(lambda n: (saw(n), 3), n=[5]), r"a view must return"),
        (
            lambda: explore(lambda n: grids(1) if n < 2 else Cells("c", [1]), n=[1, 2]),
            r"view\(n=2\) returned a Cells and view\(n=1\) a Bars",
        ),
        (lambda: explore(lambda n: grids(1) if n < 2 else saw(1), n=[1, 2]), r"view\(n=2\) returned a Figure and"),
        (lambda: explore(grids, tokens=range(1, 101), head_count=range(1, 101)), "100 x 100 = 10,000 combinations, and at most 4,000"),
    ],
)
def test_bad_input(call, words):
    with pytest.raises(BadInput, match=words) as failure:
        call()
    assert str(failure.value).startswith(("explore: ", "set: "))


def test_a_table_too_large_to_send(monkeypatch):
    monkeypatch.setattr(sys.modules["kit.explore"], "MOST_BYTES", 20_000)
    assert explore(grids, tokens=TOKENS).in_browser
    with pytest.raises(BadInput, match="explore: the pictures of 100 combinations take more than the .* MB that are sent to the browser"):
        explore(grids, tokens=range(1, 101))


def test_every_render_and_every_view_takes_the_lock(monkeypatch):
    held = []
    owned = RENDER._is_owned
    original = Figure.savefig
    monkeypatch.setattr(Figure, "savefig", lambda self, *a, **k: held.append(("savefig", owned())) or original(self, *a, **k))

    def view(n):
        held.append(("view", owned()))
        return saw(n)

    p = explore(view, n=[1, 2])
    p.widget.position = [1]
    explore(grids, tokens=TOKENS)._repr_mimebundle_()
    grids(1)._repr_mimebundle_()
    drawing.figure_png(saw(1), "simulated")
    assert len(held) == 7
    assert all(is_held for _, is_held in held)


def test_a_render_waits_for_the_lock():
    done = threading.Event()
    with RENDER:
        thread = threading.Thread(target=lambda: (png(grids(1)), done.set()))
        thread.start()
        assert not done.wait(0.3)
    thread.join(20)
    assert done.is_set()


def test_threads_that_draw_at_once_do_no_harm():
    p = explore(saw, n=list(range(1, 9)))
    wrong = []

    def drag(seed):
        for i in range(6):
            p.set(n=1 + (seed * 3 + i) % 8)
            if not png(grids(1024)).startswith(b"\x89PNG"):
                wrong.append(seed)

    threads = [threading.Thread(target=drag, args=(seed,)) for seed in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(60)
    assert wrong == []
    assert p.widget.drawn["alt"] == p.sentence


def test_javascript_is_labelled_and_local():
    js, css = panel._widget_class()._esm, panel._widget_class()._css
    js, css = getattr(js, "default_value", js), getattr(css, "default_value", css)
    for needed in (
        'type: "range"',
        'setAttribute("aria-valuetext"',
        'element("label", { for: id }',
        "legend",
        '"aria-live": "polite"',
        '"role", "img"',
        "aria-label",
        'role: "alert"',
        "aria-busy",
        "data-lm-suppress-shortcuts",
    ):
        assert needed in js, needed
    assert not re.search(r"https?://(?!www\.w3\.org)", js + css)
    assert not re.search(r"^\s*import\b|\bimport\(", js, re.M)
    assert ":focus-visible" in css
    for style in ("ok", "bad", "third", "fourth", "ink", "muted", "faint", "paper", "limit"):
        assert f".kit-panel svg .{style} " in css
        if style not in ("ink", "muted", "paper", "limit"):  # those follow the theme
            assert f"--kit-{style}: {drawing.COLOURS[style].lower()}" in css


def test_browser_and_matplotlib_know_the_same_shapes_and_symbols():
    js = (panel.Path(panel.__file__).parent / "explore.js").read_text(encoding="utf-8")
    markup = js[js.index("const MARKUP") : js.index("function element")]
    assert set(re.findall(r"^  (\w+)(?::|,$)", markup, re.M)) == set(drawing._DRAW)
    symbols = set(re.findall(r"(\w+): \"M", js)) | set(
        re.findall(r"(\w+): [\d.]+[,\s}]", js[js.index("const ROUND") : js.index("const RADIO")])
    )
    assert symbols == set(drawing.SYMBOLS) | {"circle", "dot", "ring"}


PICTURES = {
    "bars": grids(65_536),
    "common limit": Bars("B", "programs", [Bar("a", 0, 10), Bar("b", 12.5, 10, ok=False, note="too many"), Bar("c", 3, 10, ok=None)]),
    "no limit": Bars("B", rows=[Bar("a", 0), Bar("b", 0)], scale="log"),
    "line": NumberLine("L", [Mark(2**31, "true", True), Mark(-(2**31), "int32", False, wraps_from=2**31)], [Span(0, 2**32, "cache")]),
    "one point": NumberLine("L", [Mark(5, "x")], limits=()),
    "cells": Cells("C", [0, 1, 2, 3] * 40),
    "matrix": Cells("C", np.arange(64 * 8).reshape(8, 64) % 2),
    "curve": Curve("K", [1, 2, 4], {"a": [1, None, 3], "b": [2.5, 2, 1]}, at=2, limit=Limit(2, "roof"), x_label="tokens", y_label="TB/s"),
    "log curve": Curve("K", [0, 1, 2], {"a": [1, 10, 1000], "b": [None] * 3}, x_scale="linear", y_scale="log"),
}


@pytest.mark.parametrize("name", PICTURES)
def test_a_picture_shows_itself(name):
    picture = PICTURES[name]
    data, metadata = picture._repr_mimebundle_()
    assert data["text/plain"] == repr(picture) == f"{picture.title}: {picture.says} [simulated]"
    assert metadata["image/png"]["alt"] == f"{picture.title}. {picture.described()}"
    image = pixels(base64.b64decode(data["image/png"]))
    assert image.shape[1] == 1036 or image.shape[1] == 1037
    assert len(np.unique(image.reshape(-1, 3), axis=0)) > 10
    height, shapes = picture.shapes()
    json.dumps(shapes)
    for shape in shapes:
        hash(shape)  # the pool needs it
        for word in str(shape[-1]).split():
            assert word in (
                "ok",
                "bad",
                "third",
                "fourth",
                "ink",
                "muted",
                "faint",
                "limit",
                "paper",
                "small",
                "strong",
                "halo",
                "dashed",
                "dotted",
            )
        if shape[0] == "rect":
            assert shape[1] >= 0 and shape[1] + shape[3] <= 720.5 and 0 <= shape[2] < height and shape[3] >= 0


def test_a_picture_of_a_recording_names_the_gpu_and_the_date():
    where = {"gpu": "NVIDIA H200", "driver": "580", "torch": "2.11.0", "triton": "3.6.0", "cuda": "12.8", "date": "2026-11-30"}
    fresh, stale = (Recording("r", {}, "recorded", where, stale) for stale in (False, True))
    picture = Bars("Time", "us", [Bar("a", 3)], evidence=fresh)
    assert (picture.word, repr(picture)) == ("recorded", "Time: ✓ a 3 us. [recorded on NVIDIA H200, 2026-11-30]")
    assert picture.fixed_to(0, 10).tag == picture.tag
    assert repr(Bars("Time", "us", [Bar("a", 3)], evidence=stale)).endswith("[recorded on NVIDIA H200, 2026-11-30, STALE]")
    p = explore(lambda n: Bars("Time", "us", [Bar("a", n)], evidence=fresh), n=[1, 2])
    assert repr(p) == "Time (n 1): ✓ a 1 us. [recorded on NVIDIA H200, 2026-11-30]"
    assert p.widget.spec["table"]["frames"][1]["tag"] == picture.tag


def test_described_in_words():
    assert grids(65_536).described() == "✓ axis 0 32 programs (limit 2,147,483,647), ✗ axis 1 65,536 programs (limit 65,535)."
    assert PICTURES["line"].described() == (
        "✓ true at 2,147,483,648, ✗ int32 at -2,147,483,648, cache from 0 to 4,294,967,296, limit -2³¹, limit 2³¹ - 1."
    )
    assert PICTURES["cells"].described() == "40 right, 40 wrong, 40 never written, 40 not compared."
    assert PICTURES["curve"].described() == "a has no value at 2, b 2 at 2, limit roof (TB/s)."
    assert [number(v) for v in (65536, 0.123456, 12345.6, 3.0, True, "x", 1e20)] == [
        "65,536",
        "0.1235",
        "12,346",
        "3",
        "True",
        "x",
        "100,000,000,000,000,000,000",
    ]
    assert [limit.at for limit in INT32] == [-2147483648, 2147483647]


def test_wrong_elements_are_where_they_are():
    shapes = Cells("C", [0, 1, 0, 0, 1, 0], columns=3).shapes()[1]
    bad = next(shape for shape in shapes if shape[0] == "squares" and shape[3] == "bad")
    x = sorted(bad[1][::2])
    y = sorted(bad[1][1::2])
    assert len(bad[1]) == 4
    assert x[0] == x[1]  # both in the second column
    assert y[1] - y[0] == 22  # one row apart
    assert any(shape[0] == "marks" and shape[1] == "cross" and len(shape[2]) == 4 for shape in shapes)  # not by colour alone


@pytest.mark.parametrize(
    ("make", "words"),
    [
        (lambda: Bars("t", rows=[]), "rows is empty"),
        (lambda: Bars("t", rows=[3]), r"rows must be a list of Bar; got \[3\]"),
        (lambda: Bars(3, rows=[Bar("a", 1)]), "title must be a string"),
        (lambda: Bars("t", rows=[Bar("a", 1)], scale="cubic"), '"linear" or "log"'),
        (lambda: Bars("t", rows=[Bar("a", 1)], evidence="live"), "must be one of measured"),
        (lambda: Bars("t", rows=[Bar("a", 1)], low=3, high=2), "low must be smaller"),
        (lambda: Bar("a", -1), "value must be 0 or more"),
        (lambda: Bar("a", "x"), "must be a finite number; got 'x'"),
        (lambda: Bar("a", float("nan")), "must be a finite number; got nan"),
        (lambda: Bar("a", np.ones(2)), "must be a finite number"),
        (lambda: Bar("a", 1, limit=0), "limit must be more than 0"),
        (lambda: Bar(1, 1), "label must be a string"),
        (lambda: Span(2, 1, "s"), "start must not be after stop"),
        (lambda: NumberLine("t"), "neither marks nor spans"),
        (lambda: NumberLine("t", [3]), "must be a list of Mark"),
        (lambda: Cells("t", []), "rows must be a list"),
        (lambda: Cells("t", [[0], [0, 1]]), "same length"),
        (lambda: Cells("t", [4]), "state must be 0 to 3"),
        (lambda: Cells("t", [1], names=("only",)), "state must be 0 to 0"),
        (lambda: Cells("t", [0] * 20_000), "20,000 cells"),
        (lambda: Curve("t", [1], {"a": [1]}), "two or more growing numbers"),
        (lambda: Curve("t", [1, 1], {"a": [1, 2]}), "two or more growing numbers"),
        (lambda: Curve("t", [1, 2], {}), "one to four"),
        (lambda: Curve("t", [1, 2], {"a": [1]}), "has 1 values and x has 2"),
        (lambda: Curve("t", [0, 2], {"a": [1, 2]}), "log scale cannot show"),
        (lambda: Curve("t", [1, 2], {"a": [0, 2]}, y_scale="log"), "log scale cannot show"),
        (lambda: Curve("t", [1, 2], {"a": [None, None]}), "has no values"),
        (lambda: Curve("t", [1, 2], {"a": [1, 2]}, limit=3), "limit must be a Limit"),
    ],
)
def test_bad_pictures(make, words):
    with pytest.raises(BadInput, match=words):
        make()


def test_wrong_types_are_type_errors():
    with pytest.raises(WrongType):
        explore(grids, tokens=5)


def test_importing_explore_draws_nothing_and_loads_no_widgets():
    code = "import sys, kit.explore; print([m for m in ('matplotlib', 'ipywidgets', 'anywidget') if m in sys.modules])"
    assert subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True).stdout == "[]\n"


def test_four_thousand_combinations_in_a_few_seconds():
    begun = time.perf_counter()
    p = explore(grids, tokens=range(1, 401), head_count=range(1, 11))
    assert len(p._table.pictures) == 4000
    assert time.perf_counter() - begun < 20  # 2 s on one quiet core; the bound is for a busy CI machine


def test_a_picture_has_its_words_in_jupyterlab_and_the_png_alone_where_it_is_stored(monkeypatch):
    picture = grids(65_536)
    monkeypatch.delenv("KIT_NOTEBOOK", raising=False)
    data, _ = picture._repr_mimebundle_()
    assert set(data) == {"text/plain", "image/png", "text/html"}
    words, width, png_of = re.fullmatch(r'<img alt="([^"]+)" width="(\d+)" src="data:image/png;base64,(\S+)">', data["text/html"]).groups()
    assert html.unescape(words) == picture.alt and int(width) == WIDTH and png_of == data["image/png"]
    monkeypatch.setenv("KIT_NOTEBOOK", "06_grid_limits")  # under nbval and `make fresh`
    assert set(picture._repr_mimebundle_()[0]) == {"text/plain", "image/png"}
