"""Exercise 12.2: the summary of a sweep, and the gate that a change has to pass."""

from __future__ import annotations

import math
import statistics

from kit.graders.step import Mistake, Step

HELPS, HURTS = 1.05, 0.97
NAMES = ("median", "least", "mean", "accepted")


def _case(*pairs):
    return {f"shape {i}": pair[0] for i, pair in enumerate(pairs)}, {f"shape {i}": pair[1] for i, pair in enumerate(pairs)}


def _other_order(before, after):
    return before, dict(reversed(after.items()))


# (before, after) in µs. Each tells two ways of summing up apart.
CASES = (
    ("faster everywhere", _case((10, 5), (20, 16), (40, 32))),
    ("one shape, 8 times faster", _case((80, 10), (20, 20), (30, 30), (41, 40), (10, 10))),
    ("one shape, half as fast", _case((20, 10), (30, 15), (40, 20), (10, 20), (8, 4))),
    ("twice and half as fast", _case((20, 10), (10, 20))),
    ("four shapes", _case((10, 10), (11, 10), (30, 20), (80, 20))),
    ("after in another order", _other_order(*_case((10, 5), (100, 40), (1000, 250), (50, 10)))),
    ("a shape that after lacks", ({"a": 10, "b": 30, "c": 20}, {"b": 15, "a": 5})),
    ("a shape that before lacks", ({"a": 10, "c": 20}, {"a": 5, "b": 90, "c": 10})),
    ("on the two limits", _case((1.05, 1.0), (0.97, 1.0), (2.0, 1.0))),
    ("just below the median's", _case((1.049, 1.0), (1.0, 1.0), (2.0, 1.0))),
    ("just below the minimum's", _case((1.2, 1.0), (0.969, 1.0), (2.0, 1.0))),
    ("one long shape", _case((1000, 900), (10, 5), (10, 5), (12, 5))),
    ("no faster anywhere", _case((10, 10), (20, 20), (30, 30))),
    ("one shape 2 % slower", _case((10, 8), (9.8, 10), (30, 24))),
    ("one shape alone", _case((21, 10))),
    ("2,000 shapes", _case(*((20, 10), (30, 10)) * 1000)),
)


def ratios_of(before, after):
    """The speed-ups at the shapes that both have."""
    return [before[shape] / after[shape] for shape in before if shape in after]


def judged(before, after):
    """What `gate` has to return: (median, least, geometric mean, accepted)."""
    ratios = ratios_of(before, after)
    median, least = statistics.median(ratios), min(ratios)
    accepted = median >= HELPS and least >= HURTS and before.keys() <= after.keys()
    return median, least, statistics.geometric_mean(ratios), accepted


def grade_gate(answer, trial):
    """Judge `gate`: its four values, on each case. All cases are asked first, so that a cause can be one that explains all answers."""
    asked = [(given, _plain(trial.call(answer, *map(dict, given), ran=name))) for name, given in CASES]
    for (name, given), (_, got) in zip(CASES, asked, strict=True):
        wanted = judged(*given)
        what = _what_is_wrong(got, wanted)
        if what:
            told = {
                "ran": name,
                "where": "what it returns",
                "got": f"{got!r:.60}",
                "expected": "({:.4g}, {:.4g}, {:.4g}, {})".format(*wanted),
            }
            said = f"got {got!r:.40}, expected four values" if what == "type" else _said(what, got, wanted)
            facts = {"asked": asked, "got": got, "what": what, "name": name}
            trial.problem("answer", f"{name}: {said}", facts, picture=_picture(given), **told)
        trial.case(name)


def _plain(got):
    return tuple(got) if isinstance(got, (tuple, list)) else got


def _number(value):
    return isinstance(value, (int, float)) and not isinstance(value, bool)


def _what_is_wrong(got, wanted):
    """The name of the first value that is wrong, "type", or ""."""
    if not isinstance(got, tuple) or len(got) != 4 or not all(map(_number, got[:3])):
        return "type"
    wrong = [name for name, a, b in zip(NAMES[:3], got, wanted, strict=False) if not _close(a, b)]
    if wrong:
        return wrong[0]
    return "" if got[3] is wanted[3] else "accepted"


def _close(a, b):
    return math.isclose(a, b, rel_tol=1e-9)


def _said(what, got, wanted):
    at = NAMES.index(what)
    if what == "accepted":
        return f"accepted is {got[at]!r:.20}, expected {wanted[at]}"
    return f"the {what} is {got[at]:.4g}, expected {wanted[at]:.4g}"


def _picture(given):
    """Bars of the speed-ups, the first ten, those below the minimum's limit marked."""
    before, after = given
    both = [shape for shape in before if shape in after][:10]
    rows = [
        {"label": shape, "value": round(before[shape] / after[shape], 4), "ok": before[shape] / after[shape] >= HURTS} for shape in both
    ]
    return {"kind": "Bars", "title": "Speed-up at each shape", "unit": "times", "rows": rows}


def _value(what, summing):
    """True when another way of summing up explains this value in every answer."""
    at = NAMES.index(what)

    def seen(facts):
        if facts.get("what") != what:
            return False
        given = [(case, got[at]) for case, got in facts["asked"] if isinstance(got, tuple) and len(got) == 4]
        return all(_same(got, summing(*case)) for case, got in given)

    seen.summing = (at, summing)
    return seen


def _same(a, b):
    return a is b if isinstance(b, bool) else _number(a) and _close(a, b)


def _over(summing):
    """A way of summing up, as a function of the speed-ups."""
    return lambda before, after: summing(ratios_of(before, after))


def _accepts(*, helps=HELPS, hurts=HURTS, centre=statistics.median, complete=True, strict=False):
    """Another gate: other limits, another value in the median's place, shapes that are missing let through, > for >=."""

    def accepted(before, after):
        ratios = ratios_of(before, after)
        pairs = [(centre(ratios), helps), (min(ratios), hurts)]
        if not all(value > limit if strict else value >= limit for value, limit in pairs if limit is not None):
            return False
        return before.keys() <= after.keys() if complete else True

    return accepted


def _upside_down(before, after):
    return statistics.median(after[shape] / before[shape] for shape in before if shape in after)


def _in_order(before, after):
    return statistics.median(b / a for b, a in zip(before.values(), after.values(), strict=False))


def _of_times(before, after):
    both = [shape for shape in before if shape in after]
    return sum(before[shape] for shape in both) / sum(after[shape] for shape in both)


def _is(what, *kinds):
    return lambda f: f.get("what") == what and (not kinds or isinstance(f.get("got"), kinds))


STEP_2 = Step(
    number="12.2",
    title="A gate that cannot be talked up",
    spec="Return the median, the least and the geometric mean of the speed-ups, and whether the change goes in.",
    answer="function",
    call="gate(before, after)",
    size="about 5 lines",
    grade=grade_gate,
    mistakes=(
        Mistake("nothing returned", lambda f: "got" in f and f["got"] is None, "Is the return missing?"),
        Mistake("not four", _is("type"), "Four values are asked for: return median, least, mean, accepted."),
        Mistake(
            "a key that is missing",
            lambda f: isinstance(f.get("error"), KeyError),
            "A shape may be in one of the two only. Take the speed-ups at the shapes that both have.",
        ),
        Mistake(
            "overflow",
            lambda f: isinstance(f.get("error"), OverflowError) or (_is("mean")(f) and not math.isfinite(f["got"][2])),
            "The product of so many ratios leaves the range of a float: add logarithms, or take statistics.geometric_mean.",
        ),
        Mistake(
            "upside down",
            _value("median", _upside_down),
            "Is the ratio upside down? A speed-up is the time before over the time after.",
        ),
        Mistake("zipped", _value("median", _in_order), "The two dicts need not have one order: look each shape up in both."),
        Mistake(
            "upper median",
            _value("median", _over(lambda r: sorted(r)[len(r) // 2])),
            "With an even number of shapes the median is half of the way between the two in the middle: statistics.median.",
        ),
        Mistake(
            "lower median",
            _value("median", _over(lambda r: sorted(r)[(len(r) - 1) // 2])),
            "With an even number of shapes the median is half of the way between the two in the middle: statistics.median.",
        ),
        Mistake(
            "mean as median", _value("median", _over(statistics.mean)), "That is the mean: one large speed-up moves it, and not the median."
        ),
        Mistake("most", _value("least", _over(max)), "That is the largest speed-up, the headline. The gate asks for the smallest."),
        Mistake(
            "plain mean",
            _value("mean", _over(statistics.mean)),
            "That is the plain mean: a change that doubles one speed and halves another then comes out as a gain.",
        ),
        Mistake("harmonic mean", _value("mean", _over(statistics.harmonic_mean)), "That is the harmonic mean, the plain mean upside down."),
        Mistake(
            "total time",
            _value("mean", _of_times),
            "That is the ratio of the summed times: the longest shape decides it alone.",
        ),
        Mistake("median as mean", _value("mean", _over(statistics.median)), "The third value is the geometric mean, not the median again."),
        Mistake(
            "the headline decides",
            _value("accepted", lambda b, a: max(ratios_of(b, a)) >= HELPS and b.keys() <= a.keys()),
            "The largest speed-up decides here. It is the median that has to reach 1.05, and the least 0.97.",
        ),
        Mistake(
            "missing let through",
            _value("accepted", _accepts(complete=False)),
            "A shape that `after` lacks could not run: such a change does not go in.",
        ),
        Mistake("the minimum not asked", _value("accepted", _accepts(hurts=None)), "It may hurt somewhere: the least has to reach 0.97."),
        Mistake("the median not asked", _value("accepted", _accepts(helps=None)), "It has to help: the median has to reach 1.05."),
        Mistake("the mean decides", _value("accepted", _accepts(centre=statistics.geometric_mean)), "The median decides, not the mean."),
        Mistake("strict", _value("accepted", _accepts(strict=True)), "1.05 and 0.97 themselves are enough: >=."),
        Mistake("no slower at all", _value("accepted", _accepts(hurts=1.0)), "Down to 0.97 a shape may be slower: that much is noise."),
        Mistake(
            "not a bool",
            lambda f: _is("accepted")(f) and not isinstance(f["got"][3], bool),
            "accepted is True or False.",
        ),
    ),
    hints=(
        "First a list of before / after, at the shapes that both dicts have. Python's statistics has two of the four values.",
        "statistics.median, min, statistics.geometric_mean. Accepted takes three conditions, the third: no shape of `before` is missing.",
        "ratios = [before[s] / after[s] for s in before if s in after]; accepted = median >= 1.05 and least >= 0.97 and "
        "before.keys() <= after.keys()",
    ),
)
