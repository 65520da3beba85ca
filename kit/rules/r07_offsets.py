"""Rule 7: offsets at the largest size on paper, and how far each size may grow until an offset overflows."""

from __future__ import annotations

import itertools

from kit.dry_run import dry_run
from kit.errors import KitError
from kit.rules.from_paper import finding_note, once
from kit.rules.growth import Growing, growing, times
from kit.rules.note import Note

RULE = 7
ENOUGH = 8  # a size may still grow by this factor
MOST_BYTES = 1 << 40
INT32 = 1 << 31


def look(subject):
    """The Notes of rule 7: the largest size on ghosts, then multiples of each size."""
    launch, report = subject.ghosts(subject.largest), subject.report(subject.largest)
    notes = [finding_note(subject, RULE, finding, launch) for finding in _told(subject, report)]
    if notes:
        return once(notes)
    rooms = [_room(subject, name) for name in growing(subject, subject.largest)]
    tight = [room for room in rooms if room["factor"] is not None and room["factor"] <= ENOUGH]
    return [_tight(subject, room) for room in tight] or [_fine(subject, launch, report, rooms)]


def _told(subject, report):
    """What is wrong at the largest size: overflows, and addresses outside that no smaller size shows (those are rule 9's)."""
    found = [finding for finding in report.errors if finding.hazard == "overflow"]
    stray = [finding for finding in report.errors if finding.hazard in ("out of bounds", "misaligned")]
    if not stray or subject.smallest == subject.largest:
        return found + [finding for finding in stray if abs(finding.true) >= INT32]
    small = {(f.hazard, f.line, f.argument) for size in (subject.smallest, subject.typical) for f in subject.report(size).errors}
    return found + [finding for finding in stray if (finding.hazard, finding.line, finding.argument) not in small]


def _room(subject, name):
    """{name, factor, value, finding, launch, tried}: the first multiple at which an offset overflows; factor None: none seen."""
    size, start = subject.largest, subject.largest[name]
    growth, found = Growing(subject, size, name), {}

    def fails(value):
        launch = growth.at(value)
        if launch is None or launch.bytes > MOST_BYTES:
            return None
        try:
            errors = dry_run(subject.kernel, launch.grid, *launch.args, **launch.meta, programs=_far(launch.grid)).of("overflow")
        except KitError:
            return None
        if errors:
            found[value] = launch, errors[0]
        return bool(errors)

    tried, high = growth.first_power(fails)
    room = {"name": name, "start": start, "tried": tried, "factor": None, "value": high}
    if high is not None:
        launch, finding = found[high]
        room |= {"factor": high // start, "launch": launch, "finding": finding}
    return room


def _far(grid):
    """The programs where offsets are largest, and a few between, for page numbers that come from a table."""
    axes = [sorted({0, n // 3, 2 * n // 3, max(0, n - 2), n - 1}) for n in (*grid, 1, 1)[:3] if n]
    return [program for program in itertools.product(*axes)] if len(axes) == 3 else [0]


def _tight(subject, room):
    before = f"{room['name']} may grow by less than {times(room['factor'])}: "
    # The whole search once, so that the program it names is the first.
    finding = next(iter(subject.report(room["launch"].size).of("overflow")), room["finding"])
    note = finding_note(subject, RULE, finding, room["launch"], verdict="fragile", before=before, key="overflow headroom")
    note.numbers.update({"size": room["name"], "factor": room["factor"], "value": room["value"], "from": room["start"]})
    return note


def _fine(subject, launch, report, rooms):
    where = f" at {launch.told}" if launch.told else ""
    text = f"no offset overflows{where} ({_bytes(launch.bytes)} of tensors, {report.scope})"
    told = []
    for room in rooms:
        if room["factor"] is not None:
            line = subject.line(room["finding"].line)
            place = f" in line {line}" if line else ""
            told.append(f"{room['name']} may grow by less than {times(room['factor'])}, then an int32 overflows{place}")
        elif room["tried"] > 1:
            told.append(f"{room['name']} may grow by {times(room['tried'])} and perhaps more")
    text += f"; {'; '.join(told)}" if told else ""
    numbers = {"bytes": launch.bytes, "programs": report.programs, "ran": report.ran}
    numbers |= {"headroom": {r["name"]: r["factor"] for r in rooms}, "tried": {r["name"]: r["tried"] for r in rooms}}
    return Note(RULE, "fine", text, "simulated", "offsets", numbers=numbers)


def _bytes(n):
    for unit, word in ((1 << 40, "TiB"), (1 << 30, "GiB"), (1 << 20, "MiB"), (1 << 10, "KiB")):
        if n >= unit:
            return f"{n / unit:.3g} {word}"
    return f"{n} bytes"
