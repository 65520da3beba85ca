"""Rule 3: what the block sizes cost: registers, spills, shared memory, occupancy; a row that they do not cover; the autotuner."""

from __future__ import annotations

import math

from kit.errors import KitError
from kit.occupancy import occupancy
from kit.rules.code import codes
from kit.rules.coverage import short_blocks
from kit.rules.note import Note
from kit.rules.tuning import hooked, leanest, tuner_of, tunings
from kit.simulator.launch import read_program

RULE = 3
SPILLED = 64  # bytes a thread: below, a few values that are used rarely
MANY = 100  # configurations for each key


def look(subject):
    """The Notes of rule 3."""
    build, launches = subject.build(), [subject.ghosts(size) for size in subject.sizes]
    program = _program(subject, build)
    told = too_large(subject, build) + spills(subject, build, program)
    told += [_short(subject, one) for one in short_blocks(codes(subject.kernel)[0], launches)[:2]]
    told += autotuned(subject, program, launches)
    return [*told, _resources(subject, build, program)]


def _program(subject, build):
    try:
        return read_program(build.ttir, subject.kernel.fn.__code__.co_filename)
    except KitError:
        return None


def too_large(subject, build):
    """A Note when a program asks for more shared memory than it can have."""
    limit = subject.machine.limits.shared_memory
    if build.shared_memory <= limit:
        return []
    text = (
        f"a program takes {build.shared_memory:,} bytes of shared memory, and {subject.machine.name} gives it {limit:,}: the "
        "launch is refused; "
        f"use smaller blocks or a smaller num_stages{_at(subject)}"
    )
    return [Note(RULE, "wrong", text, "compiled", "shared memory", numbers={"shared": build.shared_memory, "limit": limit})]


def spills(subject, build, program):
    """A Note when registers run out."""
    other = leanest(subject)
    if build.spills < SPILLED or (other and subject.build(**other).spills < SPILLED):  # tuning may choose one that spills nothing
        return []
    elements, threads = _largest(program), 32 * build.num_warps
    held = f", for a block of {elements:,} elements on {threads} threads" if elements else ""
    way = "more warps (num_warps) or a smaller block" if build.num_warps < 16 else "a smaller block"
    text = f"each thread has {build.registers} registers and spills {build.spills:,} bytes to local memory{held}: take {way}{_at(subject)}"
    numbers = {"registers": build.registers, "spills": build.spills, "num_warps": build.num_warps, "elements": elements}
    return [Note(RULE, "fragile", text, "compiled", "spills", numbers=numbers)]


def _at(subject):
    told = subject.ghosts().told
    return f" (at {told})" if told else ""


def _largest(program):
    """Elements of the largest block of the kernel; 0 when it is not known."""
    return max((math.prod(kind.shape) for kind in program.types if kind.shape), default=1) if program else 0


def _resources(subject, build, program):
    threads, elements = 32 * build.num_warps, _largest(program)
    numbers = {
        **{"registers": build.registers, "spills": build.spills, "shared": build.shared_memory, "num_warps": build.num_warps},
        **{"elements": elements, "elements a thread": elements / threads},
    }
    text = f"{build.num_warps} warp{'' if build.num_warps == 1 else 's'}, {build.registers} registers a thread"
    text += f", {build.spills:,} bytes spilled" if build.spills else ", no spills"
    text += f", {build.shared_memory:,} bytes of shared memory"
    text += f", {elements / threads:.3g} elements of the largest block a thread" if elements else ""
    try:
        held = occupancy(build)
    except KitError:
        return Note(RULE, "fine", text + _at(subject), "compiled", "resources", numbers=numbers)
    numbers |= {"programs a multiprocessor": held.programs, "occupancy": held.share, "limited by": held.limited_by}
    plural = "" if held.programs == 1 else "s"
    each = f"{held.programs} program{plural} a multiprocessor ({100 * held.share:.0f} % of its warps, limited by {held.limited_by})"
    return Note(RULE, "fine", f"{text}; {each}{_at(subject)}", "compiled", "resources", numbers=numbers)


def _short(subject, one):
    line = one.node.lineno
    text = (
        f"a program covers {one.block:,} elements ({one.block_name}) and no more, and {one.argument} is {one.given:,} at "
        f"{one.launch.told}: "
        f"{one.given - one.block:,} are left out; take triton.next_power_of_2({one.argument}), or a loop over the row"
    )
    if _pieces(subject, one):
        return Note(
            RULE,
            "not visible here",
            f"{text}, unless other programs own the rest",
            "compiled",
            "block too small",
            line,
            subject.source(line),
        )
    numbers = {"block": one.block, "argument": one.argument, "given": one.given}
    return Note(RULE, "wrong", text, "compiled", "block too small", line, subject.source(line), numbers)


def _pieces(subject, one):
    """True when the launch has several programs for each row of `given` elements, so that others may own the rest."""
    elements = max((value.numel() for value in one.launch.tensors.values()), default=0)
    return one.launch.programs * one.block >= elements > 0


# ---- The autotuner


def autotuned(subject, program, launches):
    """Notes on the use of @triton.autotune."""
    tuner = tuner_of(subject)
    if tuner is None:
        return []
    count, keys = len(tuner.configs), tunings(tuner, launches)
    numbers = {"configurations": count, "key": list(tuner.keys), "keys": keys}
    told = _not_restored(subject, tuner) if program else []
    varying = [
        name
        for name, parameter in zip(subject.kernel.arg_names, subject.kernel.params, strict=True)
        if len({one.named[name] for one in launches if type(one.named[name]) is int}) > 1
        and name not in tuner.keys
        and not parameter.is_constexpr
    ]
    if varying and not tuner.keys:
        text = (
            f"the tuner's key is empty, and {_and(varying)} var{'ies' if len(varying) == 1 else 'y'} over the sizes: what is "
            "fastest at the first "
            f"size serves all; put the sizes that change the best block in key=[...]"
        )
        told.append(Note(RULE, "fragile", text, "compiled", "tuner's key", 1, subject.source(1), numbers | {"missing": varying}))
    elif varying:
        text = (
            f"key={list(tuner.keys)} leaves out {_and(varying)}, which var{'ies' if len(varying) == 1 else 'y'} over the sizes: "
            "benchmark whether "
            f"the best configuration changes with it"
        )
        told.append(Note(RULE, "plan", text, "compiled", "tuner's key", 1, subject.source(1), numbers | {"missing": varying}))
    if count > MANY:
        text = (
            f"{count} configurations are compiled and timed for each key, {keys} time{'' if keys == 1 else 's'} over the sizes "
            f"given: prune them, or keep a fixed default"
        )
        told.append(Note(RULE, "fragile", text, "compiled", "many configurations", 1, subject.source(1), numbers))
    return told


def _not_restored(subject, tuner):
    """Notes on arguments that a tuning changes: read and written ones, and those that atomics add to."""
    if hooked(tuner):
        return []
    found = []
    restored, zeroed = set(tuner.restore_value), set(tuner.reset_to_zero)
    for name, touch in subject.touched.items():
        times = f"each of the {len(tuner.configs)} configurations is launched many times on the live tensor"
        if touch.stores and touch.loads and name not in restored | zeroed:
            text = f'{name} is read and written in place, and while tuning {times}: restore_value=["{name}"] keeps it as it was'
        elif touch.atomics and name not in restored | zeroed:
            text = f'atomics add to {name}, and while tuning {times}: reset_to_zero=["{name}"], or restore_value, keeps the sum right'
        else:
            continue
        found.append(Note(RULE, "wrong", text, "compiled", "tuned in place", 1, subject.source(1), {"argument": name}))
    return found


def _and(names):
    return names[0] if len(names) == 1 else ", ".join(names[:-1]) + " and " + names[-1]
