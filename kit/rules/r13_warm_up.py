"""Rule 13: the launches that a warm-up needs, and what it misses if it knows the typical size alone.

What a variant takes to compile on this machine's CPU stands in the numbers, and not in the text: it is no fact of the kernel.
"""

from __future__ import annotations

from kit.rules.compile_time import compile_seconds
from kit.rules.needed import needed
from kit.rules.note import Note
from kit.rules.tuning import tuner_of, tunings

RULE = 13
SHOWN = 6


def look(subject):
    """The Notes of rule 13."""
    variants, launches = needed(subject)
    seconds = compile_seconds(subject, subject.ghosts())
    told = [_list(subject, variants, launches, seconds)]
    told += _typical(subject, variants, launches, seconds)
    told += _views(subject)
    tuner = tuner_of(subject)
    if tuner is not None:
        told.append(_tuning(subject, tuner, launches, seconds))
    return told


def representatives(variants, launches):
    """One Launch for each variant: of those that need it, the one with the fewest bytes. No shorter list compiles them all."""
    return [min((launches[i] for i in one.launches), key=lambda launch: launch.bytes) for one in variants]


def _list(subject, variants, launches, seconds):
    chosen = representatives(variants, launches)
    told = "; ".join(one.told or "the launch given" for one in chosen[:SHOWN])
    more = f"; and {len(chosen) - SHOWN} more" if len(chosen) > SHOWN else ""
    count = len(chosen)
    text = (
        f"{count} launch{'' if count == 1 else 'es'} compile{'s' if count == 1 else ''} every variant that the sizes need: "
        f"{told}{more}; kernel.warmup(..., grid=(1,)) compiles without launching"
    )
    numbers = {"launches": [one.size for one in chosen], "variants": count, "CPU seconds a variant, here": round(seconds, 3)}
    return Note(RULE, "plan", text, "compiled", "warm-up list", numbers=numbers)


def _typical(subject, variants, launches, seconds):
    """A Note on the variants that a warm-up with the typical size alone leaves to the first requests."""
    at = subject.sizes.index(subject.typical)
    missed = [one for one in variants if at not in one.launches]
    if not missed:
        return []
    first = launches[missed[0].launches[0]]
    count = len(missed)
    text = (
        f"a warm-up at {launches[at].told} alone leaves {count} variant{'' if count == 1 else 's'} to the first requests, such "
        f"as {first.told}: each waits for the compiler"
    )
    numbers = {
        "CPU seconds a variant, here": round(seconds, 3),
        "missed": count,
        "sizes": [launches[one.launches[0]].size for one in missed],
    }
    return [Note(RULE, "plan", text, "compiled", "typical size alone", numbers=numbers)]


def _views(subject):
    """A Note on pointers whose alignment is part of the key: fresh allocations are always aligned, slices are not."""
    exempt = {p.name for p in subject.kernel.params if p.do_not_specialize or p.do_not_specialize_on_alignment}
    aligned = [name for name, value in subject.ghosts().tensors.items() if name not in exempt and value.data_ptr() % 16 == 0]
    if not aligned:
        return []
    few = ", ".join(aligned[:4]) + (", ..." if len(aligned) > 4 else "")
    text = (
        f"the alignment of {few} is part of the key, and a fresh allocation is always aligned: if a request passes a slice that "
        "begins off 16 "
        f"bytes, such as x[1:], warm that up too, for each set of pointers that can be off"
    )
    return [Note(RULE, "plan", text, "compiled", "offset views", numbers={"pointers": aligned})]


def _tuning(subject, tuner, launches, seconds):
    count, keys = len(tuner.configs), tunings(tuner, launches)
    text = (
        f"the tuner compiles and times {count} configurations for each of {keys} key{'' if keys == 1 else 's'}: {count * keys} "
        "compilations before any is timed; tune offline, or keep a default"
    )
    numbers = {"configurations": count, "keys": keys, "compilations": count * keys, "CPU seconds a variant, here": round(seconds, 3)}
    return Note(RULE, "plan", text, "compiled", "tuning", numbers=numbers)
