"""The variants that the launches of all sizes need. Keys alone: nothing is compiled."""

from __future__ import annotations

from dataclasses import replace

from kit.specialization import launch_variant
from kit.variants import Variants


def needed(subject):
    """(Variants, [Launch on paper]) of all sizes, in their order; `launches` of a Variant are indices into `subject.sizes`."""
    launches = [subject.ghosts(size) for size in subject.sizes]
    found = [
        replace(launch_variant(subject.kernel, tuple(one.named.values()), options(subject, one), verb="examine"), launches=(i,))
        for i, one in enumerate(launches)
    ]
    return Variants(found), launches


def options(subject, launch):
    """The launch's options: what is in its `meta` and is no argument of the kernel."""
    return {name: value for name, value in launch.meta.items() if name not in subject.kernel.arg_names}


def count_without(variants, exempt):
    """How many of `variants` remain when the arguments `exempt` keep no class but the width of an integer."""
    keys = set()
    for one in variants:
        parts = []
        for name, part in one.exact.items():
            text = one.classes[name]
            width = "int32" if text == "= 1" else text.split(",")[0]
            parts.append(width if name in exempt else part)
        keys.add((one.owner, *parts, repr(one.written)))
    return len(keys)
