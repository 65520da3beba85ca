"""`examine`: all thirteen rules looked at for a kernel of your own, in the sandbox. The report card says what each rule saw."""

from __future__ import annotations

import inspect
import json
import time

from triton.runtime import JITFunction

from kit import machine
from kit.errors import BadInput, WrongType, quoted
from kit.report_card import ReportCard, lost
from kit.rules import GROUPS, RULES
from kit.rules.child import MARK
from kit.rules.note import Note
from kit.rules.subject import all_sizes
from kit.sandbox import run_cell
from kit.specialization import innermost

__all__ = ["ReportCard", "examine"]

TIMEOUT = 90.0  # seconds a group of rules may take
_CALL = "__import__('kit.rules.child').rules.child.look({}, {}, __import__('json').loads({!r}))"


def examine(kernel, make_args, grid=None, *, reference=None, sizes=None, tolerance=None, rules=None, timeout=TIMEOUT, **meta):
    """Return the ReportCard of `kernel`: each of the thirteen rules looked at, in the sandbox's child process, never in this one.

    `make_args(**size)` returns the positional arguments of a launch; `grid` is a tuple or a function of the named arguments, as in a
    launch. Without `grid`, `make_args` instead calls the function that launches the kernel: the launch is caught, and read. `sizes` is
    {name: values} (all combinations) or a list of dicts; the large ones are looked at on paper, so give the full size too.
    `reference(*args)` returns what the written arguments must hold: a tensor, a tuple of them in the order of the arguments, or
    {argument: tensor}; without it, rules 9 and 10 see less. `tolerance` is (rtol, atol), else one that follows from dtype and length.
    `meta` takes constexprs and launch options, each a value or a function of the named arguments, as in
    BLOCK=lambda meta: triton.next_power_of_2(meta["n_cols"]); an autotuned kernel is looked at under its first configuration.
    `rules` keeps some rules only. What the functions use is sent along, as in `sandbox`; tensors made outside them are not.

    Raises BadInput and WrongType for arguments that cannot be used; whatever the kernel does is on the card.
    """
    here = machine.current()
    inner = _kernel(kernel)
    _expect_function(make_args, "make_args", "a function of the sizes that returns the launch's arguments")
    if reference is not None:
        _expect_function(reference, "reference", "a function of the launch's arguments, or None")
    _expect_grid(grid)
    points = [{}] if sizes is None else all_sizes(sizes)
    numbers = _numbers(rules)
    _expect_tolerance(tolerance)
    namespace = {**sendable("given", kernel, make_args, grid, reference), **meta_sendable(meta)}
    notes, seconds = [], {}
    for group in GROUPS:
        asked = [rule.number for rule in RULES if rule.group == group and rule.number in numbers]
        if asked:
            begun = time.perf_counter()
            notes += _look(namespace, {"sizes": points, "tolerance": tolerance}, asked, timeout)
            seconds[group] = round(time.perf_counter() - begun, 2)
    return ReportCard(
        inner.__name__,
        sorted(notes, key=lambda note: note.rule),
        points,
        {name: "computed" if inspect.isfunction(value) else str(value) for name, value in meta.items()},
        here.name,
        dict(here.versions),
        inner.fn.__code__.co_filename,
        inner.starting_line_number,
        seconds,
    )


_META = "examined_meta_"


def sendable(prefix, *values):
    """`values` under names that the reader's own code does not use: what is sent to a child keeps its names there."""
    return {f"examined_{prefix}_{i}": value for i, value in enumerate(values)}


def meta_sendable(meta):
    """`meta` as names that the sandbox can send, functions among them."""
    return {_META + name: value for name, value in meta.items()}


def meta_text(namespace):
    """The expression that puts `meta` together again in the child."""
    names = [name for name in namespace if name.startswith(_META)]
    return "dict(" + ", ".join(f"{name.removeprefix(_META)}={name}" for name in names) + ")"


def _look(namespace, payload, asked, timeout):
    """The Notes of the rules `asked`. Where the child dies in one of them, that is its Note, and another child looks at the rest."""
    notes, left = [], list(asked)
    while left:
        given = ", ".join(name for name in namespace if not name.startswith(_META))
        text = _CALL.format(given, meta_text(namespace), json.dumps({**payload, "rules": left})) + "\n"
        outcome = run_cell(text, namespace, timeout=timeout, verb="examine")
        told = [json.loads(line.removeprefix(MARK)) for line in outcome.stdout.splitlines() if line.startswith(MARK)]
        done = {one["rule"]: one["notes"] for one in told if "notes" in one}
        notes += [Note(**note) for found in done.values() for note in found]
        if outcome:
            break
        begun = [one["rule"] for one in told if "begun" in one]
        if not begun:  # the child could not even begin: the reader's functions do not run
            raise BadInput(f"examine: {_how(outcome)}. Nothing was looked at.")
        if begun[-1] not in done:
            notes.append(_ended(begun[-1], outcome, timeout))
        left = [number for number in left if number not in done and number != begun[-1]]
    return notes


def _ended(number, outcome, timeout):
    """The Note on a child that ended inside a rule."""
    if outcome.kind in ("illegal access", "assert"):
        text = (
            f"a launch ended in {'an illegal memory access' if outcome.kind == 'illegal access' else 'a device assertion'}: {_how(outcome)}"
        )
        return Note(number, "wrong", text, machine.current().evidence, outcome.kind)
    if outcome.kind == "hang":
        return lost(number, f"it did not end within {timeout:g} s; give timeout= more, or smaller sizes")
    return lost(number, _how(outcome))


def _how(outcome):
    words = (outcome.error if outcome.kind == "error" else outcome.message) or outcome.kind
    words = words.removeprefix("BadInput: ").removeprefix("WrongType: ").removeprefix("examine: ").strip().split("\n")[0].rstrip(".")
    return f"{words} ({outcome.line})" if outcome.line and outcome.line.function else words


# ---- Arguments


def _kernel(kernel):
    inner = innermost(kernel)
    if not isinstance(inner, JITFunction):
        kind = "a plain function; decorate it with @triton.jit" if callable(kernel) else type(kernel).__name__
        raise WrongType(f"examine: kernel must be decorated with @triton.jit; got {quoted(kernel)}, {kind}.")
    return inner


def _expect_function(value, name, what):
    if not callable(value) or isinstance(value, type) or isinstance(innermost(value), JITFunction):
        raise WrongType(f"examine: {name} must be {what}; got {quoted(value)} ({type(value).__name__}).")


def _expect_grid(grid):
    tuple_of_numbers = isinstance(grid, (tuple, list)) and 1 <= len(grid) <= 3 and all(type(n) is int and n >= 0 for n in grid)
    if grid is not None and not tuple_of_numbers and not callable(grid):
        allowed = "a tuple of one to three whole numbers, a function of the arguments, or left out"
        raise WrongType(f"examine: grid must be {allowed}; got {quoted(grid)}.")


def _expect_tolerance(tolerance):
    if tolerance is None:
        return
    pair = isinstance(tolerance, (tuple, list)) and len(tolerance) == 2
    if not pair or any(isinstance(n, bool) or not isinstance(n, (int, float)) or n < 0 for n in tolerance):
        raise BadInput(f"examine: tolerance must be (rtol, atol), two numbers of zero or more; got {quoted(tolerance)}.")


def _numbers(rules):
    if rules is None:
        return {rule.number for rule in RULES}
    asked = [rules] if isinstance(rules, int) else rules
    known = {rule.number for rule in RULES}
    if not isinstance(asked, (list, tuple, set, range)) or not asked or not all(type(n) is int and n in known for n in asked):
        raise BadInput(f"examine: rules must be numbers from 1 to {len(RULES)}; got {quoted(rules)}.")
    return set(asked)
