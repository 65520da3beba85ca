"""The recorded sweep of lesson 12 as a table, its two halves, and what a rule costs on them: exercise 12.3 hands out one half."""

from __future__ import annotations

import functools
import math
from collections import Counter
from dataclasses import dataclass

from kit.errors import KitError
from kit.recording_file import folder, read

NAME = "norm_sweep"  # the lesson's experiment
WAYS = ("row", "eight", "token")
_ITEMSIZE = {"float16": 2, "float32": 4}
_QUESTIONS = (lambda s: s[0], lambda s: s[1], lambda s: s[2], lambda s: s[0] * s[1])


def table():
    """{(tokens, heads, size, itemsize): {way: µs}} of the sweep's grid. Raises KitError when there is no recording of it.

    The recording holds pairs of boundary shapes as well. Their values occur once or twice, those of the grid's axes often.
    """
    path = folder() / f"{NAME}.json"
    if not path.exists():
        raise KitError(f"12.3: there is no recording of {NAME} ({path}); run `make record` on a GPU, or fetch the file anew.")
    recorded = read(path, NAME)["runs"][-1]["data"]["us"]
    times = {}
    for key, of in recorded.items():
        tokens, heads, size, dtype = key.split()
        times[int(tokens), int(heads), int(size), _ITEMSIZE[dtype]] = of
    counts = [Counter(shape[axis] for shape in times) for axis in range(3)]
    return {shape: of for shape, of in times.items() if all(count[n] > 2 for count, n in zip(counts, shape, strict=False))}


def halves(times):
    """(the half to fit a rule to, the half held back): like the fields of a chessboard, both dtypes in one half."""
    axes = [sorted({shape[axis] for shape in times}) for axis in range(3)]
    two = {}, {}
    for shape, of in times.items():
        two[sum(values.index(n) for values, n in zip(axes, shape, strict=False)) % 2][shape] = of
    return two


def shapes_to_fit():
    """{(tokens, heads, size, itemsize): {"row": µs, "eight": µs, "token": µs}}, the half of the sweep that a reader of exercise 12 sees."""
    return halves(table())[0]


@dataclass(frozen=True)
class Regret:
    """What picks cost: time over the best time, less 1; the geometric mean over shapes, and the worst with its shape."""

    mean: float
    worst: float
    at: tuple

    def __str__(self):
        return f"{self.mean:.1%} on average, {self.worst:.0%} at worst"


def regret(picks, times):
    """The Regret of {shape: way} over the shapes of `times`."""
    ratios = {shape: of[picks[shape]] / min(of.values()) for shape, of in times.items()}
    at = max(ratios, key=ratios.get)
    return Regret(math.exp(sum(map(math.log, ratios.values())) / len(ratios)) - 1, ratios[at] - 1, at)


def constant(way, times):
    """The Regret of one choice for all shapes."""
    return regret(dict.fromkeys(times, way), times)


# ---- The reference: a rule that asks at most two questions, fitted by trying all.


def fitted(times, depth=2):
    """A rule as a function of the shape: of all with at most `depth` questions in a row that with the smallest mean on `times`."""
    return functools.partial(_ask, _fit(times, depth)[1])


def _fit(times, depth):
    """(the sum of the logarithms of its ratios, the rule): a way, or (question, limit, rule up to it, rule above it)."""
    costs = {way: sum(math.log(of[way] / min(of.values())) for of in times.values()) for way in WAYS}
    way = min(WAYS, key=costs.get)
    best = costs[way], way
    for question in _QUESTIONS if depth else ():
        for limit in sorted(set(map(question, times)))[:-1]:
            low = _fit({shape: of for shape, of in times.items() if question(shape) <= limit}, depth - 1)
            high = _fit({shape: of for shape, of in times.items() if question(shape) > limit}, depth - 1)
            if low[0] + high[0] < best[0] - 1e-12:
                best = low[0] + high[0], (question, limit, low[1], high[1])
    return best


def _ask(rule, shape):
    while not isinstance(rule, str):
        question, limit, low, high = rule
        rule = low if question(shape) <= limit else high
    return rule


@dataclass(frozen=True)
class Mark:
    """What a rule has to reach on the held-back half, and the two that this comes from."""

    single: str  # the best single choice there
    single_regret: Regret
    reference: Regret
    mean: float
    worst: float


def mark(seen, held):
    """The Mark of the two halves: half of the way, in logarithms, from the best single choice to the reference rule.

    Where the reference is no better than the single choice, what the reference reaches is enough.
    """
    single = min(WAYS, key=lambda way: constant(way, held).mean)
    alone = constant(single, held)
    rule = fitted(seen)
    reference = regret({shape: rule(shape) for shape in held}, held)
    return Mark(single, alone, reference, _between(reference.mean, alone.mean), _between(reference.worst, alone.worst))


def _between(reference, single):
    return reference if single <= reference else math.sqrt((1 + reference) * (1 + single)) - 1
