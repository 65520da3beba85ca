"""The kit's public names are a promise: a name more or less is a decision, not an accident."""

import inspect

import kit

NAMES = [
    "bench",
    "build",
    "check",
    "claim",
    "dry_run",
    "examine",
    "explore",
    "generated",
    "ghost",
    "hint",
    "progress",
    "recorded",
    "sandbox",
    "shapes",
    "start",
    "watch",
]


def test_the_list():
    assert sorted(kit.__all__) == NAMES


def test_each_is_a_function_with_a_docstring():
    for name in NAMES:
        verb = getattr(kit, name)
        assert inspect.isfunction(verb) and verb.__doc__ and verb.__doc__.strip().endswith("."), name
