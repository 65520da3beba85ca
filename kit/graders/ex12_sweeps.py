"""Exercise 12: shapes at the limits, a gate for a change, and a rule judged on shapes that it was not fitted to."""

from __future__ import annotations

from kit.graders.ex12_edges import STEP_1
from kit.graders.ex12_gate import STEP_2
from kit.graders.ex12_table import WAYS, constant, fitted, halves, mark, regret, table
from kit.graders.step import Exercise, Mistake, Step

# Shapes as a server brings them, none of the sweep's: a rule answers there too.
OFF_THE_GRID = ((1, 3, 96, 2), (7, 1, 5_120, 4), (333, 40, 80, 2), (65_536, 128, 576, 4))
SLOW = 0.5  # of the best time; a shape that loses as much shows where a rule goes wrong
WIDE, FEW_ROWS = 1_024, 512


def grade_pick(answer, trial):
    """Judge `pick`: a name for any shape, then its regret on the half of the recorded sweep that the reader did not see."""
    trial.evidence = "recorded"
    for shape in OFF_THE_GRID:
        _judge_name(trial.call(answer, *shape, ran=_told(shape)), shape, trial)
    trial.case(f"{len(OFF_THE_GRID)} shapes off the grid")
    seen, held = halves(table())
    picks = {}
    for shape in (*seen, *held):
        picks[shape] = trial.call(answer, *shape, ran=_told(shape))
        _judge_name(picks[shape], shape, trial)
    trial.case(f"a name for each of {len(picks)} shapes")
    _judge_regret(picks, seen, held, trial)
    got = regret(picks, held)
    trial.case(f"{len(held)} shapes held back, where the regret is {got}")


def _judge_name(got, shape, trial):
    if not isinstance(got, str) or got not in WAYS:
        told = {"ran": _told(shape), "where": "pick({}, {}, {}, {})".format(*shape), "got": f"{got!r:.40}", "expected": " · ".join(WAYS)}
        trial.problem("answer", f"{_told(shape)}: got {got!r:.40}", {"returned": got}, **told)
        trial.case(_told(shape))


def _judge_regret(picks, seen, held, trial):
    got, wanted = regret(picks, held), mark(seen, held)
    if got.mean <= wanted.mean and got.worst <= wanted.worst:
        return
    what = "mean" if got.mean > wanted.mean else "worst"
    facts = {"picks": picks, "seen": seen, "held": held, "mark": wanted, "got": got, "what": what}
    ran = f"{len(held)} shapes held back"
    if what == "mean":
        said, expected = f"the regret is {got.mean:.1%} on average", f"at most {wanted.mean:.1%}"
    else:
        said, expected = f"the regret is {got.worst:.0%} at {_told(got.at)}", f"at most {wanted.worst:.0%} at every shape"
    text = f"{ran}: {said}; the best single choice has {wanted.single_regret}, a fitted rule {wanted.reference}"
    told = {"ran": ran, "where": f"the worst: {_told(got.at)}", "got": str(got), "expected": expected}
    trial.problem("answer", text, facts, picture=_picture(got, wanted, held, what), **told)


def _picture(got, wanted, held, what):
    """Bars of the regret that decides: the answer's, the fitted rule's, and each single choice's, against what is asked."""
    limit = round(100 * getattr(wanted, what), 2)
    all_of = {"pick": got, "a fitted rule": wanted.reference, **{f"always {way}": constant(way, held) for way in WAYS}}
    values = {name: round(100 * getattr(one, what), 2) for name, one in all_of.items()}
    rows = [{"label": name, "value": value, "limit": limit or None, "ok": value <= limit} for name, value in values.items()]
    words = {"mean": "Mean regret on the held-back half", "worst": "Regret at the worst shape of the held-back half"}
    return {"kind": "Bars", "title": words[what], "unit": "%", "rows": rows}


def _told(shape):
    return "{:,} × {} × {:,}, {} bytes an element".format(*shape)


# ---- What a rule looks like, from its picks


def _judged(f):
    return "picks" in f


def _explained_by(f, axis):
    """True when the pick follows from this axis alone, and there are several picks."""
    by = {}
    for shape, pick in f["picks"].items():
        by.setdefault(shape[axis], set()).add(pick)
    return len(set(f["picks"].values())) > 1 and all(len(picks) == 1 for picks in by.values())


def _alone(axis):
    return lambda f: _judged(f) and _explained_by(f, axis)


def _only_seen(f):
    """Better at the shapes that were handed out than the fitted rule by far, and not good enough at the others: it asks too much."""
    if not _judged(f):
        return False
    rule = fitted(f["seen"])
    return regret(f["picks"], f["seen"]).mean <= regret({shape: rule(shape) for shape in f["seen"]}, f["seen"]).mean / 2


def _worse_than_any(f):
    return _judged(f) and f["got"].mean > max(constant(way, f["held"]).mean for way in WAYS)


def _lost(f):
    """The shapes, of both halves, at which the pick is slow."""
    both = {**f["seen"], **f["held"]}
    return [shape for shape, of in both.items() if of[f["picks"][shape]] > (1 + SLOW) * min(of.values())]


def _mostly(where):
    """True when more than half of the shapes that are lost are such."""

    def seen(f):
        lost = _lost(f) if _judged(f) else []
        return bool(lost) and 2 * sum(map(where, lost)) > len(lost)

    return seen


STEP_3 = Step(
    number="12.3",
    title="A rule for shapes unseen",
    spec="Pick a contender by the shape; judged at the half of the sweep that is held back.",
    answer="function",
    call="pick(tokens, heads, size, itemsize)",
    size="about 5 lines",
    grade=grade_pick,
    mistakes=(
        Mistake("nothing returned", lambda f: "returned" in f and f["returned"] is None, "Is a return missing, for some shapes at least?"),
        Mistake(
            "a number of rows", lambda f: isinstance(f.get("returned"), int), "Return the contender's name, not how many rows it owns."
        ),
        Mistake("no name", lambda f: "returned" in f, 'Return one of the names "row", "eight" and "token".'),
        Mistake(
            "looked up",
            lambda f: isinstance(f.get("error"), (KeyError, IndexError, ValueError)),
            "A rule answers for every shape, those of the table and others: compare with thresholds, do not look up.",
        ),
        Mistake(
            "one for all",
            lambda f: _judged(f) and len(set(f["picks"].values())) == 1,
            "Every shape gets the same. That is the single choice which a rule has to beat.",
        ),
        Mistake(
            "memorised", _only_seen, "It knows the shapes that it was given, and not those beside them: too many questions, or a look-up."
        ),
        Mistake(
            "tokens alone",
            _alone(0),
            "Only the number of tokens decides. Compare shapes with the same tokens: what do heads and size change?",
        ),
        Mistake(
            "heads alone",
            _alone(1),
            "Only the number of heads decides. Compare shapes with the same heads: what do tokens and size change?",
        ),
        Mistake(
            "size alone", _alone(2), "Only the size decides, or its threshold is far off: at which size does the best contender change?"
        ),
        Mistake("dtype alone", _alone(3), "Only the dtype decides. Which axis makes the largest ratios in the table?"),
        Mistake(
            "exchanged",
            _worse_than_any,
            "It is worse than the worst single choice: are two answers exchanged, or is a comparison the other way round?",
        ),
        Mistake(
            "wide rows",
            _mostly(lambda s: s[2] > WIDE),
            "Most of the loss is at wide rows: how many elements does a program of eight of them own?",
        ),
        Mistake(
            "few rows",
            _mostly(lambda s: s[0] * s[1] <= FEW_ROWS),
            "Most of the loss is at few rows: are there programs enough to fill the GPU?",
        ),
        Mistake(
            "many short rows",
            _mostly(lambda s: s[0] * s[1] > FEW_ROWS),
            "Most of the loss is at many short rows: does a program do enough to be worth starting?",
        ),
        Mistake("not near enough", _judged, "Print the shapes at which it is far behind the best: what do they have in common?"),
    ),
    hints=(
        "Begin with the size: at which size does `eight` fall behind? Then look at the others, with few rows and with many.",
        "Two questions are enough: is a row wide, and are there many rows, tokens * heads? Read each threshold off the table.",
        "Three returns: `row` for size above a threshold; then one contender for tokens * heads up to a threshold, another above it. "
        "Try each threshold that occurs, as the lesson's `fit` does.",
    ),
)

EXERCISE = Exercise("12_sweeps", "Sweeps", (STEP_1, STEP_2, STEP_3))
