"""`bench`: a microbenchmark that first checks, then times: contenders in turns, compiled and warm, from a cold L2 cache."""

from __future__ import annotations

import itertools
import math

import torch
from triton.runtime import KernelInterface

from kit import machine
from kit.errors import BadInput, KitError, WrongType, expect_type, no_times, quoted
from kit.timing import METHODS, Row, Timing

__all__ = ["METHODS", "Row", "Timing", "bench"]

_UNGIVEN = object()
_ROUNDS = {"events": 20, "graph": 20, "profiler": 7}
_ROUND_US = 4_000  # a round of a contender takes about this long on the GPU


def bench(
    contenders,
    *args,
    make=None,
    over=None,
    reference=_UNGIVEN,
    bytes=None,
    flop=None,
    method="events",
    cold=True,
    rounds=None,
    tolerance=None,
):
    """Time one function, or several against each other, on this machine's GPU; return a Timing.

    `contenders` is a function or {name: function}; each is called with `args`, or, for every shape in `over`, with what `make(**shape)`
    returns (a tuple). `over` is {axis: values}, all combinations, or a list of dicts. Before anything is timed each contender is checked
    at that shape against `reference`: a function, or a contender's name; left out, the first of several. `reference=None` times unchecked
    and says so. A function that returns None is judged by its tensors afterwards. `tolerance` is (rtol, atol), else that of
    torch.testing.assert_close for the dtype. `bytes` and `flop` are the operation's own, each a number or a function of the arguments.

    `method`: "events", "graph" or "profiler" (METHODS says what each contains). `cold` empties the L2 cache before each call; under "graph"
    copies of the arguments take turns instead. Compiling, tuning and warming up come before. A round times every contender, in turns.
    Raises KitError on a simulated GPU, which has no times, and BadInput for arguments that cannot be used.
    """
    here = machine.current()
    fns = _contenders(contenders)
    shapes = _shapes(args, make, over)
    reference = _reference(fns, reference)
    expect_type(cold, bool, verb="bench", argument="cold", what="True or False")
    if method not in METHODS:
        raise BadInput(f"bench: method must be one of {', '.join(METHODS)}; got {quoted(method)}.")
    rounds = _ROUNDS[method] if rounds is None else expect_type(rounds, int, verb="bench", argument="rounds", what="a whole number")
    if rounds < 1:
        raise BadInput(f"bench: rounds must be 1 or more; got {rounds}.")
    if not here.live:
        raise no_times("bench", here.name)
    from kit.bench_progress import Progress
    from kit.bench_run import measure

    rows = []
    with Progress(len(shapes) * len(fns)) as progress:
        for shape in shapes:
            given = args if make is None else _made(make, shape)
            found, interrupted = measure(fns, given, shape, reference, bytes, flop, method, cold, rounds, tolerance, progress)
            rows += found
            if interrupted:
                return Timing(
                    tuple(rows), note=f"stopped at {len(rows)} of {len(shapes) * len(fns)}", gpu=here.name, versions=here.versions
                )
    return Timing(tuple(rows), gpu=here.name, versions=here.versions)


def _contenders(contenders):
    if callable(contenders):
        return {getattr(contenders, "__name__", "it"): contenders}
    if not isinstance(contenders, dict) or not contenders:
        raise WrongType(f"bench: contenders must be a function or a dict {{name: function}}; got {quoted(contenders)}.")
    for name, fn in contenders.items():
        if not isinstance(name, str) or not callable(fn):
            raise WrongType(f"bench: contenders must map names to functions; got {quoted(name)}: {quoted(fn)}.")
        if isinstance(fn, KernelInterface):
            raise WrongType(f"bench: {name} is a kernel; give a function that launches it, such as lambda *args: {name}[grid](*args).")
    return dict(contenders)


def _shapes(args, make, over):
    if make is None and over is None:
        return [{}]
    if args:
        raise BadInput("bench: give either the arguments or make= and over=, not both.")
    if make is None or over is None:
        missing, there = ("make", "over") if make is None else ("over", "make")
        raise BadInput(f"bench: {there}= needs {missing}=: make(**shape) returns the arguments for every shape in over.")
    if isinstance(over, dict):
        axes = [values if isinstance(values, (list, tuple, range)) else [values] for values in over.values()]
        over = [dict(zip(over, point, strict=True)) for point in itertools.product(*axes)]
    if not isinstance(over, (list, tuple)) or not over or not all(isinstance(shape, dict) for shape in over):
        raise WrongType(f"bench: over must be {{axis: values}} or a list of dicts, not empty; got {quoted(over)}.")
    return list(over)


def _reference(fns, reference):
    if reference is _UNGIVEN:
        if len(fns) == 1:
            name = next(iter(fns))
            raise BadInput(
                f"bench: reference is missing: give the function that {name} is checked against, or reference=None to time it unchecked."
            )
        return next(iter(fns.values()))
    if reference is None or callable(reference):
        return reference
    if reference in fns:
        return fns[reference]
    raise BadInput(f"bench: reference must be a function, None or one of {', '.join(fns)}; got {quoted(reference)}.")


def _made(make, shape):
    made = make(**shape)
    return tuple(made) if isinstance(made, (list, tuple)) else (made,)


# ---- What the runner asks for


def counted(what, value, args):
    """A count of the operation, bytes or FLOP: a number, or a function of the arguments. Raises BadInput when it is no positive number."""
    count = value(*args) if callable(value) else value
    if count is None:
        return None
    if isinstance(count, bool) or not isinstance(count, (int, float)) or not math.isfinite(count) or count <= 0:
        raise BadInput(f"bench: {what} must be a positive number or a function of the arguments that returns one; got {quoted(count)}.")
    return count


def copied(args):
    """The arguments with a copy of each tensor, strides kept."""
    return tuple(_copied(one.detach()) if isinstance(one, torch.Tensor) else one for one in args)


def _copied(x):
    """A copy with x's strides, whatever they are: clone() makes a view of every second element dense."""
    if x.numel() == 0:
        return x.clone()
    extent = 1 + sum((n - 1) * stride for n, stride in zip(x.shape, x.stride(), strict=True))
    return torch.as_strided(torch.as_strided(x, (extent,), (1,)).clone(), x.shape, x.stride(), 0)


def outcome(fn, args):
    """What a call gives, on copies of the arguments: the tensors it returns, or those it was given, when it returns None."""
    args = copied(args)
    result = fn(*args)
    if result is None:
        return [one for one in args if isinstance(one, torch.Tensor)]
    return [one for one in (result if isinstance(result, (list, tuple)) else [result]) if isinstance(one, torch.Tensor)]


def compare(name, got, wanted, shape, tolerance):
    """Raise KitError naming the contender and the shape when the tensors differ by more than the tolerance."""
    rtol, atol = tolerance or (None, None)
    at = f" at {', '.join(f'{key}={value}' for key, value in shape.items())}" if shape else ""
    if len(got) != len(wanted):
        raise KitError(f"bench: {name} gives {len(got)} tensors{at}, the reference {len(wanted)}. Nothing was timed.")
    for one, truth in zip(got, wanted, strict=True):
        try:
            torch.testing.assert_close(one, truth.to(one.dtype), rtol=rtol, atol=atol, equal_nan=True)
        except AssertionError as error:
            lines = [line.strip() for line in str(error).splitlines() if line.strip()]
            words = "; ".join(line.rstrip("!.") for line in lines if line.startswith(("Mismatched", "Greatest", "The values", "Scalars")))
            raise KitError(f"bench: {name} is not the reference{at}: {words or lines[0]}. Wrong answers are not timed.") from None
