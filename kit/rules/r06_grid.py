"""Rule 6: the grid over all sizes against the limits of its axes, and how far each size may grow until one is passed."""

from __future__ import annotations

from kit.dry_run import grid_findings
from kit.rules.from_paper import many
from kit.rules.growth import Growing, growing, times
from kit.rules.note import Note

RULE = 6
ENOUGH = 4  # a size may still grow by this factor
MOST = 1 << 20
WHY = "users configure 32K tokens and more where tests have 8K"


def look(subject):
    """The Notes of rule 6. Only grids are computed: nothing runs."""
    grids = [(size, subject.ghosts(size)) for size in subject.sizes]
    notes = []
    for _, launch in sorted(grids, key=lambda one: one[1].programs):
        notes += [_refused(subject, launch, finding) for finding in _wrong(subject, launch)]
    if notes:
        return _first_by_cause(notes)
    rooms = [room for room in (_room(subject, name) for name in growing(subject, subject.largest)) if room]
    tight = [room for room in rooms if room["factor"] is not None and room["factor"] < ENOUGH]
    return [_tight(room) for room in tight] or [_fine(subject, grids, rooms)]


def _wrong(subject, launch):
    return [finding for finding in grid_findings(launch.grid, subject.machine.limits) if finding.wrong]


def _first_by_cause(notes):
    seen = {}
    for note in notes:
        seen.setdefault((note.key, note.numbers.get("axis")), note)
    return list(seen.values())


def _axis(finding):
    return int(finding.text[5]) if finding.text.startswith("grid[") else None


def _refused(subject, launch, finding):
    axis = _axis(finding)
    where = f"at {launch.told}, " if launch.told else ""
    key = "grid limit" if axis is not None else "grid product"
    numbers = {**launch.size, "grid": list(launch.grid), "programs": launch.programs}
    if axis is not None:
        numbers |= {"axis": axis, "limit": subject.machine.limits.grid[axis]}
    return Note(RULE, "wrong", f"{where}{finding.text}; {_todo(axis)}", "simulated", key, numbers=numbers)


def _todo(axis):
    return "put it in grid[0], or give a program a tile" if axis else "give each program a larger tile"


def _room(subject, name):
    """How far the size `name` may grow: {name, start, factor or None, value, axis, refused, tried}; None when it is in no grid."""
    size, start = subject.largest, subject.largest[name]
    growth = Growing(subject, size, name)
    doubled = growth.at(2 * start)
    if doubled is None or doubled.grid == subject.ghosts(size).grid:
        return None
    found = {}

    def fails(value):
        launch = growth.at(value)
        if launch is None:
            return None
        findings = _wrong(subject, launch)
        if findings:
            found[value] = launch, findings[0]
        return bool(findings)

    low, high = growth.first(fails, MOST)
    room = {"name": name, "start": start, "factor": None, "value": high, "axis": None, "tried": low // start}
    if high is not None:
        launch, finding = found[high]
        room |= {"factor": high / start, "axis": _axis(finding), "grid": list(launch.grid), "text": finding.text}
    return room


def _tight(room):
    name = room["name"]
    text = (
        f"{name} may grow by less than {times(room['factor'])}: at {name} = {room['value']:,}, {room['text']}; {WHY}: {_todo(room['axis'])}"
    )
    numbers = {key: value for key, value in room.items() if key != "text" and value is not None}
    return Note(RULE, "fragile", text, "simulated", "grid headroom", numbers=numbers)


def _fine(subject, grids, rooms):
    largest = max((launch for _, launch in grids), key=lambda launch: launch.programs)
    text = f"no grid of {many(len(grids), 'size')} passes a limit; the largest, {largest.grid}, has {many(largest.programs, 'program')}"
    told = []
    for room in rooms:
        limit = f"axis {'xyz'[room['axis']]}" if room["axis"] is not None else "the product of the axes"
        if room["factor"] is None:
            told.append(f"{room['name']} may grow by {times(room['tried'])} and perhaps more")
        else:
            told.append(f"{room['name']} may grow by less than {times(room['factor'])}, then {limit} passes its limit")
    if told:
        text += f"; {'; '.join(told)}"
    elif subject.largest:
        text += "; no size is seen to change it"
    empty = [launch.told for _, launch in grids if launch.programs == 0]
    if empty:
        text += f"; at {empty[0]} it is empty: no program runs, and nothing says so"
    numbers = {"grid": list(largest.grid), "programs": largest.programs, "sizes": len(grids)}
    numbers["headroom"] = {room["name"]: room["factor"] for room in rooms}
    return Note(RULE, "fine", text, "simulated", "grid", numbers=numbers)
