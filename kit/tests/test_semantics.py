"""`probe`, its table and its form: each world's own answer, what is refused as a sentence, and what differs between Triton versions."""

import json
import math

import pytest
import triton

from kit import machine
from kit.errors import BadInput, KitError
from kit.semantics import probe
from kit.semantics_panel import try_it
from kit.semantics_rows import CASES, GROUPS
from kit.semantics_table import ask, table
from kit.versions import minor

NEW = minor(triton.__version__) >= (3, 9)
# What Triton gives for every row that the documentation defines: (value, dtype), or words of the refusal.
TOLD = {
    "// of a tensor": (-1, "int32"),
    "// of an argument": (-1, "int32"),
    "// of a constexpr": (-2, "int"),
    "// of literals": (-2, "int"),
    "// of a named literal": (-1, "int32"),
    "% of a tensor": (-3, "int32"),
    "% of an argument": (-3, "int32"),
    "% of a constexpr": (1, "int"),
    "% of floats": (-3.5, "float32"),
    "an argument of 3": (-2, "int32"),
    "an argument of 1": (-4, "int"),
    "a shift": (-2, "int32"),
    "tl.cdiv": ([0, 0, -1, -1], "int32"),
    "// of mixed signedness": "different signedness",
    "int32 and int64": (14, "int64"),
    "uint8 and int8": (44, "uint8"),
    "int32 and uint32": (2**32 - 1, "uint32"),
    "compared with unsigned": (False, "bool"),
    "float16 and bfloat16": (1.00390625, "float16"),
    "int8 and bfloat16": (3.5, "float32"),
    "int32 by int32": (2.0**24, "float32"),
    "float16 by float16": (0.25, "float32"),
    "the larger of two kinds of 16 bits": (math.inf, "float16") if NEW else (70144.0, "float32"),
    "bool and bool": (True, "bool"),
    "int8 and an argument of 2": (129, "int32"),
    "int8 and an argument of 1": (-128, "int8"),
    "int8 and a constexpr": (-127, "int8"),
    "int8 and a named literal": (129, "int32"),
    "a literal out of range": "out of range for type int8",
    "a negative literal": "unsigned tensor and a negative scalar",
    "int8 and a float literal": (1.5, "float32"),
    "float16 and a float literal": (1.5, "float16"),
    "float8 by a literal": (0.75, "float32") if NEW else "",
    "float16 and an argument": (1.5, "float32"),
    "float32 and a float64 argument": (1.5, "float64"),
    "float32 and a tiny literal": (1.0, "float32"),
    "float32 and a tiny named literal": (1.0, "float64"),
    "uint8 wraps": (44, "uint8"),
    "int8 wraps": (-56, "int8"),
    "minus an unsigned": (255, "uint8"),
    "tl.sum of int8": (400, "int32"),
    "int32 cast to int8": (44, "int8"),
    "int32 stored as int8": (44, "int8"),
    "float stored as int8": (2, "int8"),
    "float cast to int": ([2, -2], "int32"),
    "clamped before": ([127, -128], "int8"),
    "(4, 1) with (4,)": ([[1.0, 2.0, 3.0, 4.0], [2.0, 4.0, 6.0, 8.0], [3.0, 6.0, 9.0, 12.0], [4.0, 8.0, 12.0, 16.0]], "float32"),
    "a comparison kept as a column": (6, "int32"),
    "& without brackets": ([True, True, False, False], "bool"),
    "& with brackets": ([False, False, True, False], "bool"),
    "and": ([False, False, True, False], "bool"),
    "not": "Cannot bitcast",
    "~ of a bool": (False, "bool"),
    "~ of an integer": (-2, "int32"),
    "a chain": (True, "bool") if NEW else "multiple comparison is not supported",
    "a power": "",
    "first bound in a loop": "v is not defined",
    "bound before the loop": (7, "int32"),
    "first bound in an if": "v is not defined",
    "a type that changes": "initial type int32",
}


@pytest.fixture(autouse=True)
def simulated():
    machine.start()


def test_every_row_is_told_or_undefined():
    assert set(TOLD) == {name for name, case in CASES.items() if not case.undefined}
    assert len(CASES) == sum(len(group.cases) for group in GROUPS)


@pytest.mark.parametrize("name", TOLD)
def test_what_triton_gives(name):
    answer = ask(name).triton
    told = TOLD[name]
    if isinstance(told, str):
        assert not answer.ok and told in answer.error, answer
    else:
        assert (answer.value, answer.dtype) == told
        assert answer.constant == (answer.dtype == "int")


def test_undefined_rows_are_asked_and_never_as_expected():
    shown = table("Narrow integers and casts")
    undefined = [row for row in shown if row.case.undefined]
    assert len(undefined) == 5 and all(row.probe.triton.ok and not row.as_expected for row in undefined)
    assert shown["out of int32"].triton.dtype == "int32"


def test_three_rows_changed_in_3_9_and_say_so():
    assert {name for name, case in CASES.items() if "3.9.0" in case.versions and "from" in case.versions} == {
        "a chain",
        "float8 by a literal",
        "the larger of two kinds of 16 bits",
    }


def test_the_worlds_answer_in_their_own_words():
    asked = probe("x.to(tl.int16) + tl.abs(y)", x=([1, -2], "int8"), y=([3, -4], "int8"))
    assert asked["NumPy"].text == "x.astype(np.int16) + np.abs(y)" and asked["torch"].text == "x.to(torch.int16) + torch.abs(y)"
    assert asked["Python"].text == "int(x) + abs(y)"
    assert {world: answer.value for world, answer in asked.answers.items()} == dict.fromkeys(asked.answers, [4, 2])
    assert asked and asked.differing == [] and asked["NumPy"].dtype == "int16" and asked["Python"].dtype == "int"


@pytest.mark.parametrize(
    "dtype", ["bool", "int8", "int16", "int32", "int64", "uint8", "uint16", "uint32", "uint64", "float16", "bfloat16", "float32", "float64"]
)
def test_a_value_comes_back_as_it_was(dtype):
    values = [0, 1, 1, 0] if dtype == "bool" else [0, 1, 100, 127]
    answer = probe("x", x=(values, dtype)).triton
    assert answer.value == values and answer.dtype == dtype and answer.shape == (4,)


def test_the_ends_of_64_bits_come_back():
    assert probe("x", x=(2**64 - 1, "uint64")).triton.value == 2**64 - 1
    assert probe("x", x=(-(2**63), "int64")).triton.value == -(2**63)


def test_a_probe_differs_where_values_do():
    asked = probe("x // 4", x=(-7, "int32"))
    assert not asked and asked.differing == ["Python", "NumPy", "torch"]
    assert probe("x // 4", x=(7, "int32"))
    assert "≠ -2" in asked._repr_html_() and "Triton -1 int32" in repr(asked)
    assert asked.evidence == "simulated" and probe("v").evidence == "compiled"


@pytest.mark.parametrize(
    "code, words",
    [
        ("foo(x)", "foo is not defined"),
        ("x.dtype", "no number"),
        ("x, x", "no number"),
        ("x + 'a'", ""),
        ("x.shape[7]", ""),
        ("tl.nothing(x)", "nothing"),
    ],
)
def test_nonsense_is_an_answer(code, words, capfd):
    asked = probe(code, x=(1, "int32"))
    assert not asked.triton.ok and asked.triton.error and words in asked.triton.error
    assert all(answer.error for answer in asked.others.values())
    assert "\n" not in repr(asked) and capfd.readouterr().err == ""


def test_what_a_pass_refuses_is_one_clause_and_not_a_dump(capfd):
    answer = probe("x + x", x=(1.5, "float8_e5m2")).triton
    assert not answer.ok and len(answer.error) < 160
    assert "module" not in capfd.readouterr().err


def test_a_result_may_be_large_but_not_huge():
    x = (list(range(64)), "int32")
    assert len(probe("x[:, None] + x[None, :]", x=x).triton.value) == 64
    assert "4,096" in probe("x[:, None, None] + x[None, :, None] + x[None, None, :]", x=x).triton.error


@pytest.mark.parametrize(
    "code, values, words",
    [
        ("x //", {"x": 1}, "is not Python"),
        ("y = 1", {}, "does not end in an expression"),
        ("", {}, "does not end in an expression"),
        (3, {}, "code must be text"),
        ("x", {"x": (300, "int8")}, "does not fit int8"),
        ("x", {"x": (1.5, "int8")}, "does not fit int8"),
        ("x", {"x": (1, "int9")}, "it must be a dtype"),
        ("x", {"x": ([1, 2, 3], "int8")}, "a list of 3"),
        ("x", {"x": ([1, 2], "scalar")}, "a list of 2"),
        ("x", {"x": "a"}, "must be a number"),
        ("x", {"x": (1, 2)}, "a pair of value and kind"),
        ("tl", {"tl": 1}, "cannot be called tl"),
        ("x", {"x": 2**70}, "does not fit"),
    ],
)
def test_what_cannot_be_asked_is_refused_in_one_sentence(code, values, words):
    with pytest.raises(BadInput) as caught:
        probe(code, **values)
    assert words in str(caught.value) and str(caught.value).startswith("probe: ") and "\n" not in str(caught.value)


def test_a_world_may_be_left_out_or_told():
    asked = probe("tl.sigmoid(x)", x=(0.0, "float32"), python="1 / (1 + math.exp(-x))", numpy=None)
    assert asked["Python"].value == 0.5 and not asked["NumPy"].asked and asked["torch"].value == 0.5
    with pytest.raises(BadInput):
        asked["Numpy"]


def test_the_table_draws_itself():
    shown = table("Variables")
    text = shown._repr_html_()
    assert len(shown) == 5 and "refuses: v is not defined" in text and "triton-semantics.html" in text
    assert "Triton surprises in" in repr(shown) and "\n" not in repr(shown)
    with pytest.raises(BadInput):
        table("Nothing")
    with pytest.raises(BadInput):
        shown["nothing"]


# ---- the form
def test_the_form_asks_what_is_typed():
    form = try_it("x // y", x=(-7, "int32"), y=(2, "scalar"))
    form._text.value = "x % y"
    assert form.probe.triton.value == -1 and "≠ 1" in form._shown.value
    form._inputs["x"][0].value = "[2**3, -3]"
    assert form.probe.triton.value == [0, -1]
    form._inputs["y"][1].value = "constexpr"
    assert form.values["y"] == (2, "constexpr")


@pytest.mark.parametrize("typed", ["[1,", "a", "__import__('os')", "1 if 1 else 2", "''", "2**"])
def test_the_form_says_what_is_no_number_and_stays(typed):
    form = try_it("x + 1", x=(1, "int32"))
    form._inputs["x"][0].value = typed
    assert "is no number" in form._shown.value or "must be a number" in form._shown.value
    assert form.probe.triton.value == 2


def test_the_form_says_what_is_no_expression_and_stays():
    form = try_it("x + 1", x=(1, "int32"))
    form._text.value = "x +"
    assert "is not Python" in form._shown.value and form.code == "x + 1"
    form.set("x + 2", x=(5, "int8"))
    assert form.probe.triton.value == 7 and form._text.value == "x + 2" and form._inputs["x"][0].value == "5"
    with pytest.raises(KitError):
        form.set(z=(1, "int8"))


def test_the_form_is_a_table_where_no_widget_is_live(monkeypatch):
    monkeypatch.setenv("KIT_STILL", "1")
    form = try_it("x + 1", x=(1, "int32"))
    data = form._repr_mimebundle_()
    assert form.widget is None and set(data) == {"text/plain", "text/html"} and json.dumps(data)
    assert bool(form) is True
