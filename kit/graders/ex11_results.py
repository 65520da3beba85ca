"""Exercise 11.3: which results to question before they are believed."""

from __future__ import annotations

import statistics

from kit.graders.step import Mistake, Step

WORDS = ("unchecked", "ceiling", "events", "spread", "host")
CEILING = 4e12  # bytes a second, of the GPU that the rows come from


def _row(samples, **more):
    row = {"method": "graph", "checked": True, "bytes": None, "ceiling": CEILING, "host_us": 5.0, "samples": list(samples)}
    return row | more


_TWENTY = 20


def _around(us, *odd):
    """Twenty samples of `us`, the last of them replaced by `odd`."""
    return (us,) * (_TWENTY - len(odd)) + odd


# (what the row is, the row). Held back from the reader; each tells two ways of judging apart.
ROWS = (
    ("nothing odd", _row(_around(100.0), bytes=320_000_000)),
    ("never checked", _row(_around(100.0), checked=False)),
    ("6 TB/s where a copy reaches 4", _row(_around(100.0), bytes=600_000_000)),
    ("at 1.02 of the ceiling", _row(_around(100.0), bytes=408_000_000)),
    ("at 1.2 of the ceiling by its median, one slow sample", _row(_around(100.0, 900.0), bytes=480_000_000)),
    ("under the ceiling by its median, one fast sample", _row(_around(100.0, 60.0), bytes=360_000_000)),
    ("8 µs by events", _row(_around(8.0), method="events")),
    ("10 µs by events", _row(_around(10.0), method="events")),
    ("8 µs by a graph", _row(_around(8.0))),
    ("8 µs by events, one sample of 300", _row(_around(8.0, 300.0), method="events")),
    ("two of twenty samples far off", _row(_around(100.0, 150.0, 150.0))),
    ("three of twenty samples far off", _row(_around(100.0, 150.0, 150.0, 150.0))),
    ("three of twenty samples far below", _row(_around(100.0, 70.0, 70.0, 70.0))),
    ("all within 10 %", _row((91.0, 109.0) * 9 + (100.0, 100.0))),
    ("the host slower than the GPU", _row(_around(12.0), host_us=40.0)),
    ("the host as fast as the GPU", _row(_around(12.0), host_us=12.0)),
    ("the host slower, but for two slow samples", _row(_around(30.0, 500.0, 500.0), host_us=40.0)),
    ("no bytes given", _row(_around(0.5))),
    ("everything at once", _row((4.0, 6.0) * 10, method="events", checked=False, bytes=40_000_000, host_us=60.0)),
)


def questions_of(row, middle=statistics.median, **other):
    """The set of WORDS that a row raises. `other` replaces one rule by a function of (row, middle µs), for the mistakes."""
    us = middle(row["samples"])
    rules = {"unchecked": _unchecked, "ceiling": _ceiling, "events": _events, "spread": _spread, "host": _host} | other
    return {word for word, rule in rules.items() if rule(row, us)}


def _unchecked(row, us):
    return not row["checked"]


def _ceiling(row, us):
    return row["bytes"] is not None and row["bytes"] / (1e-6 * us) > 1.03 * row["ceiling"]


def _events(row, us):
    return row["method"] == "events" and us < 10


def _spread(row, us, within=0.1, share=0.1):
    far = sum(abs(sample - us) > within * us for sample in row["samples"])
    return far > share * len(row["samples"])


def _host(row, us):
    return row["host_us"] > us


def grade_questions(answer, trial):
    """Judge `questions` on a table of results. All rows are asked first: a likely cause is another rule that explains them all."""
    got = [trial.call(answer, dict(row) | {"samples": list(row["samples"])}, ran=name) for name, row in ROWS]
    sets = [set(one) if isinstance(one, (set, frozenset, list, tuple)) and all(isinstance(w, str) for w in one) else one for one in got]
    for (name, row), said in zip(ROWS, sets, strict=True):
        wanted = questions_of(row)
        if said != wanted:
            facts = {"all": sets, "said": said}
            told = {"ran": name, "where": "what it returns", "got": _listed(said), "expected": _listed(wanted)}
            trial.problem("answer", f"{name}: got {_listed(said)}, expected {_listed(wanted)}", facts, picture=_picture(sets), **told)
        trial.case(name)


def _listed(said):
    if not isinstance(said, set):
        return f"{said!r:.40}"
    return ", ".join(sorted(said)) if said else "nothing"


def _picture(sets):
    """A row of cells for each result, a cell for each question."""
    if not all(isinstance(said, set) for said in sets):
        return None
    cells = []
    for (_, row), said in zip(ROWS, sets, strict=True):
        wanted = questions_of(row)
        cells.append([0 if (word in said) == (word in wanted) else 1 if word in wanted else 2 for word in WORDS])
    title = f"Results, and whether {', '.join(WORDS)} are asked"
    return {"kind": "Cells", "title": title, "rows": cells, "names": ("as it should be", "not asked", "asked for nothing"), "columns": 5}


def _judged_by(**how):
    """True when all answers are those of another rule."""

    def seen(facts):
        if "all" not in facts:
            return False
        try:
            return [questions_of(row, **how) for _, row in ROWS] == facts["all"]
        except TypeError:
            return False

    return seen


def _lacks(word):
    return lambda f: all(isinstance(said, set) and word not in said for said in f.get("all", [None]))


def _each_sample(row, us):
    return _ceiling(row, min(row["samples"]))


STEP_3 = Step(
    number="11.3",
    title="Which results to question",
    spec="Return the questions that a result raises, by the rules of the table.",
    answer="function",
    call="questions(row)",
    size="about 12 lines",
    grade=grade_questions,
    mistakes=(
        Mistake(
            "no set", lambda f: "all" in f and not isinstance(f["said"], set), "Return a set of words, empty when nothing is to be asked."
        ),
        Mistake(
            "other words",
            lambda f: isinstance(f.get("said"), set) and not f["said"] <= set(WORDS),
            f"The words are {', '.join(WORDS)}.",
        ),
        Mistake(
            "None",
            lambda f: "NoneType" in f.get("told", ""),
            "`bytes` is None where nothing was counted: then there is no ceiling to ask about.",
        ),
        Mistake(
            "mean", _judged_by(middle=statistics.fmean), "These are judged by the mean, which one disturbed sample moves. Take the median."
        ),
        Mistake("minimum", _judged_by(middle=min), "These are judged by the fastest sample. Take the median."),
        Mistake(
            "fastest sample",
            _judged_by(ceiling=_each_sample),
            "One fast sample is no rate: hold the bytes over the median against the ceiling.",
        ),
        Mistake(
            "no room",
            _judged_by(ceiling=lambda r, us: r["bytes"] is not None and r["bytes"] / (1e-6 * us) > r["ceiling"]),
            "The ceiling was measured too, and has a spread of its own: up to 1.03 of it nothing is asked.",
        ),
        Mistake(
            "any method",
            _judged_by(events=lambda r, us: us < 10),
            "Only events add their own few µs: under a graph a short time is no question.",
        ),
        Mistake("at 10", _judged_by(events=lambda r, us: r["method"] == "events" and us <= 10), "10 µs is not below 10 µs."),
        Mistake(
            "range",
            _judged_by(spread=lambda r, us: max(r["samples"]) - min(r["samples"]) > 0.1 * us),
            "The range follows a single sample. Count how many samples are far from the median.",
        ),
        Mistake(
            "any sample",
            _judged_by(spread=lambda r, us: _spread(r, us, share=0)),
            "One or two odd samples of twenty are usual: more than a tenth of them must be far off.",
        ),
        Mistake(
            "above only",
            _judged_by(spread=lambda r, us: sum(s > 1.1 * us for s in r["samples"]) > 0.1 * len(r["samples"])),
            "A sample can be too fast as well: far off is far in either direction.",
        ),
        Mistake(
            "a tenth itself",
            _judged_by(spread=lambda r, us: sum(abs(s - us) > 0.1 * us for s in r["samples"]) >= 0.1 * len(r["samples"])),
            "Two of twenty are a tenth, and not more than a tenth.",
        ),
        Mistake(
            "host, equal", _judged_by(host=lambda r, us: r["host_us"] >= us), "As fast as the GPU is fast enough: the host must be slower."
        ),
        Mistake(
            "host, other way",
            _judged_by(host=lambda r, us: r["host_us"] < us),
            "It is the slower one that decides: ask when the host takes longer.",
        ),
        Mistake("no ceiling", _lacks("ceiling"), "`ceiling` is never asked: it is in bytes a second, and the samples are in µs."),
        *(Mistake(f"no {word}", _lacks(word), f"`{word}` is never asked, in any row.") for word in WORDS if word != "ceiling"),
    ),
    hints=(
        "Take the median of the samples once; four of the five rules use it.",
        "rate = row['bytes'] / (1e-6 * us), and only when bytes is not None; far = how many samples have abs(s - us) > 0.1 * us.",
        "Start with asked = set() and add a word for each rule that applies: > 1.03 * ceiling, < 10 by events, far > len(samples) / 10, "
        "host_us > us.",
    ),
)
