"""Exercise 13.1: the classes of an integer argument, and one value of each."""

from __future__ import annotations

from kit.graders.step import Mistake, Step

INT32 = range(-(2**31), 2**31)

# What an argument may be. Each tells two ways of sorting apart: 0, 1, negative numbers, the two ends of int32.
RANGES = (
    ("1 to 512", range(1, 513)),
    ("0 to 40", range(41)),
    ("16, 32, 48", (16, 32, 48)),
    ("only 1", (1,)),
    ("2 to 15", range(2, 16)),
    ("strides of both signs", (-32, -17, -16, -1, 1, 3)),
    ("without 1", (-1, 3, 16)),
    ("0 and 2", (0, 2)),
    ("0 and 16", (0, 16)),
    ("the end of int32", (2**31 - 16, 2**31 - 1, 2**31, 2**31 + 1)),
    ("its other end", (-(2**31), -(2**31) - 1, -(2**31) - 16, -3)),
    ("far past int32", (3, 2**40 + 1, 2**40)),
    ("nothing", ()),
)


def class_of(value):
    """The class that Triton puts an integer argument into, for integers of 64 bits: (width, "= 1", "÷16" or "other").

    Source: triton/python/src/specialize.cc, the same in 3.6 to 3.9.
    """
    width = "int32" if value in INT32 else "int64"
    return width, "= 1" if value == 1 else "÷16" if value % 16 == 0 else "other"


def grade_representatives(answer, trial):
    """Judge `representatives`: each class that a list's values have once, by a value of that list.

    All lists are asked before the first is judged: a likely cause is another way of sorting that explains every answer.
    """
    asked = [(values, _as_list(trial.call(answer, list(values), ran=name))) for name, values in RANGES]
    for (name, values), (_, got) in zip(RANGES, asked, strict=True):
        wanted = list(dict.fromkeys(map(class_of, values)))
        problem = _wrong_choice(values, got, wanted)
        if problem:
            told = {
                "ran": name,
                "where": "what it returns",
                "got": f"{got!r:.60}",
                "expected": " · ".join(map(_class_text, wanted)) or "[]",
            }
            facts = {"asked": asked, "got": got, "values": values}
            trial.problem("answer", f"{name}: {problem}", facts, picture=_classes_picture(values, got, wanted), **told)
        trial.case(name)


def _as_list(got):
    return list(got) if isinstance(got, (list, tuple, set, range)) else got


def _wrong_choice(values, got, wanted):
    if not isinstance(got, list):
        return f"got {got!r:.40}, expected a list"
    if strange := [value for value in got if type(value) is not int or value not in values]:
        return f"{strange[0]!r:.30} is not among the values"
    classes = list(map(class_of, got))
    if left_out := [kind for kind in wanted if kind not in classes]:
        return f"no value of the class {_class_text(left_out[0])}"
    if len(classes) > len(wanted):
        twice = next(kind for kind in wanted if classes.count(kind) > 1)
        both = [value for value in got if class_of(value) == twice]
        return f"{both[0]:,} and {both[1]:,} have one class, {_class_text(twice)}"
    return ""


def _class_text(kind):
    width, word = kind
    return word if word == "= 1" else width if word == "other" else f"{width}, ÷16"


def _classes_picture(values, got, wanted):
    """Bars of how many values were chosen in each class, against the one that is needed."""
    chosen = [class_of(v) for v in got if type(v) is int and v in values] if isinstance(got, list) else []
    rows = [{"label": _class_text(k), "value": chosen.count(k), "limit": 1, "ok": chosen.count(k) == 1} for k in wanted]
    return {"kind": "Bars", "title": "Values chosen in each class", "rows": rows} if rows else None


def _sorted_by(sorting):
    """True when every answer holds exactly one value for each class of another way of sorting."""

    def seen(facts):
        for values, got in facts.get("asked", ()):
            if not isinstance(got, list) or any(type(v) is not int or v not in values for v in got):
                return False
            classes = [sorting(v) for v in got]
            if len(classes) != len(set(classes)) or set(classes) != {sorting(v) for v in values}:
                return False
        return "asked" in facts

    seen.sorting = sorting
    return seen


def _kind(value):
    return class_of(value)[1]


def _with(**other):
    """`class_of` with another rule for `one`, `sixteen` or `width`, each a function of the value."""

    def sorting(value):
        width = other.get("width", lambda v: class_of(v)[0])(value)
        one = other.get("one", lambda v: v == 1)(value)
        return width, "= 1" if one else other.get("sixteen", lambda v: v % 16 == 0)(value)

    return sorting


STEP_1 = Step(
    number="13.1",
    title="One value of each class",
    spec="Return one of the given values for each class that Triton puts them into.",
    answer="function",
    call="representatives(values)",
    size="about 5 lines",
    grade=grade_representatives,
    mistakes=(
        Mistake("no list", lambda f: "got" in f and not isinstance(f["got"], list), "Return a list of values. Is the return missing?"),
        Mistake(
            "made up",
            lambda f: isinstance(f.get("got"), list) and any(v not in f["values"] for v in f["got"]),
            "Choose from the values given: the argument never takes another, and a class that never comes need not be compiled.",
        ),
        Mistake(
            "every value",
            lambda f: "asked" in f and all(got == list(values) for values, got in f["asked"]),
            "Every value is its own here. How many classes are there for numbers that fit 32 bits?",
        ),
        Mistake("width forgotten", _sorted_by(_kind), "A number outside −2^31 to 2^31 − 1 is passed as an int64, which is a class too."),
        Mistake(
            "no class for 1",
            _sorted_by(_with(one=lambda v: False)),
            "1 is a class of its own: Triton puts it into the code as a constant.",
        ),
        Mistake(
            "no class for 16",
            _sorted_by(_with(sixteen=lambda v: False)),
            "Multiples of 16 are a class: the compiler may then load several elements at once.",
        ),
        Mistake(
            "0 apart", _sorted_by(_with(sixteen=lambda v: v == 0 or v % 16 == 0 and "16")), "0 is a multiple of 16, and no class apart."
        ),
        Mistake(
            "0 and 1 together",
            _sorted_by(_with(one=lambda v: v in (0, 1))),
            "0 and 1 are two classes: 1 is a constant, 0 is a multiple of 16.",
        ),
        Mistake("0 left", _sorted_by(_with(sixteen=lambda v: v != 0 and v % 16 == 0)), "0 is a multiple of 16: it belongs to ÷16."),
        Mistake("-1", _sorted_by(_with(one=lambda v: abs(v) == 1)), "Only 1 itself is a constant; −1 is an integer like others."),
        Mistake(
            "negatives",
            _sorted_by(_with(sixteen=lambda v: v >= 0 and v % 16 == 0)),
            "A negative multiple of 16 is a multiple of 16.",
        ),
        Mistake("eight", _sorted_by(_with(sixteen=lambda v: v % 8 == 0)), "Is this divided by 8? The class is ÷16."),
        Mistake(
            "the edge",
            _sorted_by(_with(width=lambda v: "int32" if -(2**31) <= v <= 2**31 else "int64")),
            "2^31 is one more than an int32 holds: the range is −2^31 to 2^31 − 1.",
        ),
        Mistake(
            "unsigned",
            _sorted_by(_with(width=lambda v: "int32" if -(2**32) < v < 2**32 else "int64")),
            "int32 has a sign: it ends at 2^31 − 1, not at 2^32.",
        ),
        Mistake(
            "negative edge",
            _sorted_by(_with(width=lambda v: "int32" if v < 2**31 else "int64")),
            "int32 has a lower end too: a number below −2^31 is an int64.",
        ),
    ),
    hints=(
        "Three questions sort an integer: does it fit int32, is it 1, is it a multiple of 16?",
        "Make a key from the answers, and keep the first value of each key in a dict. 0 and −16 are multiples of 16.",
        'key = (-(2**31) <= v < 2**31, "1" if v == 1 else v % 16 == 0), and then chosen.setdefault(key, v).',
    ),
)
