"""Rule 10: sums kept in 16 bits and products in tf32, from the IR; then hard inputs through small launches against the reference."""

from __future__ import annotations

from kit import machine
from kit.rules.from_paper import many
from kit.rules.hard_trials import OWN, Hard
from kit.rules.ir import prepared
from kit.rules.narrow import narrow
from kit.rules.note import Note
from kit.rules.subject import MANY, SMALL
from kit.rules.trials import STOPS
from kit.rules.varied import base, varied
from kit.simulator.launch import one_thread

RULE = 10
BYTES = 512 << 10  # of tensors: some tens of launches, and the reference twice for each
TF32 = 5e-3  # products of tf32 are cut to 11 significant bits
TOLD = {
    "sum": "{terms} are added in {dtype}",
    "running sum": "a loop adds up in {dtype}",
    "scan": "a running sum over {terms} is kept in {dtype}",
    "dot": "the product is accumulated in {dtype}",
    "tf32": "tl.dot rounds float32 operands to tf32, 11 significant bits, which is its default",
}


def look(subject):
    """The Notes of rule 10. Launches for real, at a small size, what is legal on paper."""
    size = _size(subject)
    launch = subject.ghosts(size)
    _, program, _ = prepared(subject, launch)
    facts = narrow(program)
    notes = [_fact(subject, fact) for fact in facts]
    if launch.bytes > SMALL or not 0 < launch.programs <= MANY or not subject.report(size):
        stopped = [finding for finding in subject.report(size).errors if finding.hazard in STOPS]
        why = "it is wrong on paper already" if stopped else "no small launch can be made"
        text = f"hard inputs were not tried at {launch.told or 'the launch'}: {why}"
        return [*notes, Note(RULE, "not visible here", text, "simulated", "hard inputs")]
    with one_thread():
        hard = Hard(subject, size, TF32 if any(fact.kind == "tf32" for fact in facts) else 0.0)
        missed = hard.all()
    return notes + _misses(subject, launch, hard, missed, facts) or [_fine(subject, launch, hard)]


def _size(subject):
    """The largest size that is quick to try; else a small one of rule 9's making."""
    quick = [size for size in subject.sizes if subject.ghosts(size).bytes <= BYTES]
    return max(quick, key=lambda size: subject.ghosts(size).bytes) if quick else base(subject, varied(subject)[0])


def _fact(subject, fact):
    terms = f"{fact.length:,} terms" if fact.length else "terms"
    said = TOLD[fact.kind].format(terms=terms, dtype=fact.dtype)
    line = subject.line(fact.line)
    if fact.kind == "tf32":
        text = f'{said}; where float32 is meant, write input_precision="ieee", and in any case name the precision'
    else:
        most = {"float16": "integers past 2,048 are rounded, and past 65,504 it is inf", "bfloat16": "integers past 256 are rounded"}
        text = f"{said}, where {most[fact.dtype]}; add in float32 and cast the result"
    numbers = {"kind": fact.kind, "dtype": fact.dtype, "terms": fact.length}
    key = "tf32" if fact.kind == "tf32" else "narrow sum"
    return Note(RULE, "fragile", text, "compiled", key, line, subject.source(line), numbers)


def _misses(subject, launch, hard, missed, facts):
    if not missed:
        return []
    evidence = machine.current().evidence
    plain = [miss for miss in missed if miss.given == "normal"]
    own = [miss for miss in missed if miss.given == OWN]
    if plain and own and not facts:
        text = f"hard inputs tell nothing yet: with {OWN} {own[0].text} already: rule 9, or the reference, comes first"
        return [Note(RULE, "not visible here", text, evidence, "values", numbers=_numbers(launch, hard, own))]
    notes = []
    for infinite in (False, True):
        group = [miss for miss in missed if miss.infinite is infinite]
        if group:
            notes.append(_note(subject, launch, hard, group, infinite, evidence))
    return notes


def _note(subject, launch, hard, group, infinite, evidence):
    miss = group[0]
    sets = list(dict.fromkeys(one.given for one in group))
    where = f'"{miss.given}" in {miss.name}' if miss.name else miss.given
    units = "" if miss.units == float("inf") or subject.reference is None else f", {miss.units:,.0f} times the tolerance"
    others = f"; also {', '.join(sets[1:])}" if len(sets) > 1 else ""
    text = f"with {where}: {miss.text}{units}{others}; {_cause(sets)}"
    verdict = "fragile" if infinite or subject.reference is None else "wrong"
    key = "nan" if subject.reference is None else "hard inputs"
    return Note(RULE, verdict, text, evidence, key, numbers=_numbers(launch, hard, group))


def _cause(sets):
    if {"all -inf", "half -inf"}.intersection(sets):
        return "subtract a maximum only where it is finite, and divide only by a sum that is not 0"
    if {"mean 1e4", "mean -1e4"}.intersection(sets):
        return "subtract the mean or the maximum before squares and exponentials"
    if {"one outlier", "near max"}.intersection(sets):
        return "compute squares and sums in float32"
    if {"zeros", "scale 1e-6", "subnormal"}.intersection(sets):
        return "look at what is divided by, and at its eps"
    return "accumulate in float32"


def _numbers(launch, hard, group):
    worst = max(group, key=lambda miss: miss.units)
    told = {"inputs": sorted({one.given for one in group}), "argument": group[0].name, "output": worst.output}
    told |= {"units": None if worst.units == float("inf") else worst.units, "wrong": worst.wrong, "of": worst.of}
    return {**launch.size, **told, "launches": hard.tried, "unchecked": hard.unchecked}


def _fine(subject, launch, hard):
    where = f" at {launch.told}" if launch.told else ""
    what = "agree with the reference in float64" if subject.reference is not None else "give no nan"
    inputs = hard.inputs()
    if not inputs:
        text = f"no floating input is loaded: nothing to make hard; {many(hard.tried, 'launch')}{where}"
    else:
        text = f"no sum is kept in 16 bits; {many(hard.tried, 'launch')} with hard inputs in {' and '.join(inputs)}{where} {what}"
    if hard.unchecked:
        text += f", {hard.unchecked} of them could not be compared: the reference refuses them"
    if subject.reference is None and inputs:
        text += "; how near they are to the truth only a reference would show"
    numbers = {**launch.size, "launches": hard.tried, "inputs": inputs, "unchecked": hard.unchecked}
    return Note(RULE, "fine", text, machine.current().evidence, "numbers", numbers=numbers)
