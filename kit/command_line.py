"""`python -m kit examine MODULE:KERNEL`: a report card in a terminal and in CI.

MODULE is an importable module or the path of a Python file. What `kit.examine` needs beside the kernel stands in the same module, under the
names that the options give: make_args, grid, and, where they are there, reference, sizes and meta. Exit status: 0 when nothing is wrong
(with `--fail-on fragile`: nothing is fragile either), 1 when something is, 2 when the command cannot be used.
"""

from __future__ import annotations

import argparse
import importlib
import importlib.util
import json
import sys
from pathlib import Path

from kit.errors import BadInput, KitError

__all__ = ["main"]

_EXAMPLE = "python -m kit examine my_kernels.py:scale_kernel --sizes '{\"n\": [1, 1000, 4194304]}' --meta BLOCK=1024"


def main(words=None):
    """Run the command and return its exit status."""
    options = _parser().parse_args(words)
    try:
        return _examine(options)
    except KitError as error:
        print(error, file=sys.stderr)
        return 2


def _parser():
    parser = argparse.ArgumentParser(prog="python -m kit", description="Triton, rule by rule: the kit in a terminal.")
    verbs = parser.add_subparsers(dest="verb", required=True, metavar="examine")
    one = verbs.add_parser(
        "examine",
        help="look at all thirteen rules for a kernel",
        description="Look at all thirteen rules for a kernel and print its report card.",
        epilog=f"Example: {_EXAMPLE}",
    )
    one.add_argument("kernel", metavar="MODULE:KERNEL", help="a module's name or a Python file, and the kernel in it")
    one.add_argument("--make-args", default="make_args", metavar="NAME", help="function of the sizes that returns arguments (make_args)")
    one.add_argument("--grid", default="grid", metavar="NAME", help="the grid: a tuple, or a function of the arguments (grid)")
    one.add_argument("--reference", metavar="NAME", help="function that returns what must come out (reference, where it is there)")
    one.add_argument("--sizes", metavar="JSON", help='{"name": [values]} or [{"name": value}] (sizes of the module, where it is there)')
    one.add_argument("--meta", action="append", default=[], metavar="NAME=VALUE", help="a constexpr or launch option; may be repeated")
    one.add_argument("--rules", metavar="N,N", help="these rules only, such as 6,7")
    one.add_argument("--target", metavar="TARGET", help="the GPU to simulate where there is none, such as cuda:80")
    one.add_argument("--timeout", type=float, default=90.0, metavar="SECONDS", help="for a group of rules (90)")
    one.add_argument("--json", metavar="FILE", help="also write the card to FILE")
    one.add_argument("--allow", action="append", default=[], metavar="RULE:KEY", help="leave this finding out, such as 10:tf32")
    one.add_argument("--fail-on", choices=("wrong", "fragile"), default="wrong", help="what makes the exit status 1 (wrong)")
    return parser


def _examine(options):
    from kit import machine
    from kit.examine import examine

    module, name = _module(options.kernel)
    kernel = _named(module, name, "kernel")
    make_args = _named(module, options.make_args, "--make-args")
    grid = _named(module, options.grid, "--grid")
    reference = _named(module, options.reference, "--reference") if options.reference else getattr(module, "reference", None)
    sizes = _json(options.sizes, "--sizes") if options.sizes else getattr(module, "sizes", None)
    rules = _rules(options.rules)
    if options.target:
        machine.start(options.target)
    meta = {**getattr(module, "meta", {}), **dict(map(_pair, options.meta))}
    card = examine(kernel, make_args, grid, reference=reference, sizes=sizes, rules=rules, timeout=options.timeout, **meta)
    card = card.without(*options.allow) if options.allow else card
    if options.json:
        card.save(options.json)
    print(card.text, end="")
    bad = card.told("wrong") or (options.fail_on == "fragile" and card.told("fragile"))
    return 1 if bad else 0


def _module(text):
    """(the module, the kernel's name) of MODULE:KERNEL."""
    place, _, name = text.rpartition(":")
    if not place or not name.isidentifier():
        raise BadInput(f'examine: name the kernel as MODULE:KERNEL, a module or a Python file and a name in it; got "{text}". {_EXAMPLE}')
    path = Path(place)
    if path.suffix == ".py":
        if not path.is_file():
            raise BadInput(f'examine: there is no file "{place}". Give the path of the Python file that holds {name}.')
        place = path.stem
        sys.path.insert(0, str(path.resolve().parent))  # the sandbox's child imports it by the same name
    else:
        sys.path.insert(0, "")
    try:
        return importlib.import_module(place), name
    except Exception as error:  # noqa: BLE001  whatever an import raises ends the command
        raise BadInput(f"examine: {place} cannot be imported: {type(error).__name__}: {error}.") from None


def _named(module, name, option):
    if not hasattr(module, name):
        hint = "Name another one" if option == "kernel" else f"Define it there, or name another one with {option}"
        raise BadInput(f"examine: {module.__name__} has no {name}. {hint}.")
    return getattr(module, name)


def _json(text, option):
    try:
        return json.loads(text)
    except ValueError as error:
        raise BadInput(f"examine: {option} must be JSON, such as '{{\"n\": [1, 1000]}}'; got {text!r} ({error}).") from None


def _pair(text):
    name, _, value = text.partition("=")
    if not name.isidentifier() or not value:
        raise BadInput(f'examine: --meta takes NAME=VALUE, such as BLOCK=1024; got "{text}".')
    try:
        return name, json.loads(value)
    except ValueError:
        return name, value


def _rules(text):
    if text is None:
        return None
    try:
        return [int(word) for word in text.split(",")]
    except ValueError:
        raise BadInput(f'examine: --rules takes numbers from 1 to 13 with commas between, such as 6,7; got "{text}".') from None
