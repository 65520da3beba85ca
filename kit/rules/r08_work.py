"""Rule 8: what a program does from the smallest size to the largest. Counted on paper and in the compiled code; never a time."""

from __future__ import annotations

from kit.errors import BadInput
from kit.occupancy import occupancy
from kit.rules.from_paper import many, some
from kit.rules.ir import prepared
from kit.rules.note import Note
from kit.rules.tuning import widest
from kit.rules.work import work_of

RULE = 8
# Lesson 08 and docs/kernels_h200.json, an H200: RoPE with 768 bytes a program took 4.1 times the tiled time from 32,768 programs on (7.8
# waves), a KV write with 1,024 bytes 2.2 times at 65,536; programs of 4,096 bytes and more kept up with a copy.
SMALL_BYTES, MANY_WAVES = 2_048, 4
# The same lesson: 4 programs of 66,560 bytes on 132 multiprocessors took 1.4 to 1.7 times the best.
LARGE_BYTES, FEW = 65_536, 4


def look(subject):
    """The Notes of rule 8, at the smallest and the largest size."""
    sizes = some([subject.smallest, subject.largest])
    rows = [row for row in (_row(subject, size) for size in sizes) if row is not None]
    if not rows:
        return [Note(RULE, "not visible here", "no grid has a program, so there is no work to count", "compiled", "no programs")]
    notes = []
    if rows[-1]["bytes_a_program"] < SMALL_BYTES and rows[-1]["waves"] > MANY_WAVES and rows[-1]["block"] <= SMALL_BYTES // 2:
        notes.append(_tiny(subject, rows))
    few = rows[0]["programs"] * FEW <= subject.machine.multiprocessors and rows[0]["bytes_a_program"] >= LARGE_BYTES
    if few and not rows[0]["dot"]:
        notes.append(_lonely(subject, rows))
    return notes or [_fine(subject, rows)]


def _row(subject, size):
    """The numbers of one size; None for an empty grid."""
    options = widest(subject)
    launch = subject.ghosts(size, **options)
    if launch.programs == 0:
        return None
    work, build = work_of(subject, launch), subject.build(size, **options)
    _, program, _ = prepared(subject, launch)
    held = _held(build) * subject.machine.multiprocessors
    again = {name: round(factor, 2) for name, factor in work.again.items() if factor > 1.01}
    return {
        "told": launch.told,
        "size": launch.size,
        "programs": work.programs,
        "bytes_a_program": round(work.bytes_a_program),
        "waves": round(work.programs / held, 2),
        "busy": min(work.programs, subject.machine.multiprocessors),
        "again": again,
        "counted": work.ran,
        "block": max([1, *(_elements(kind) for kind in program.types)]),
        "dot": any(op.name == "tt.dot" for op in program.operations()),
    }


def _held(build):
    """Programs that a multiprocessor holds at once; where the GPU is not known, what 64 warps are."""
    try:
        return max(1, occupancy(build).programs)
    except BadInput:
        return max(1, 64 // build.num_warps)


def _elements(kind):
    n = 1
    for side in kind.shape:
        n *= side
    return n


def _line(subject, row):
    where = f"at {row['told']}: " if row["told"] else ""
    busy = f"{row['busy']} of {subject.machine.multiprocessors} multiprocessors"
    text = f"{where}{many(row['programs'], 'program')} of {many(row['bytes_a_program'], 'byte')}, {row['waves']:,} waves, {busy}"
    if row["again"]:
        most = max(row["again"], key=row["again"].get)
        text += f", {most} loaded {row['again'][most]:.3g} times over by {many(row['counted'], 'neighbour')}"
    return text


def _numbers(rows):
    return {"sizes": [{key: value for key, value in row.items() if key != "told"} for row in rows]}


def _tiny(subject, rows):
    row = rows[-1]
    text = (
        f"{_line(subject, row)}: starting a program is much of what it takes; give a program several rows or heads, about 4,096 bytes and "
        f"more, where there are programs enough (on an H200, 768 bytes a program took 4 times the time of a tile: lesson 08)"
    )
    return Note(RULE, "fragile", text, "simulated", "tiny programs", numbers=_numbers(rows))


def _lonely(subject, rows):
    row = rows[0]
    text = (
        f"{_line(subject, row)}: the other multiprocessors have nothing to do; cut the work of a program smaller where there are few, or "
        f"split it and add up in a second launch"
    )
    return Note(RULE, "fragile", text, "simulated", "few programs", numbers=_numbers(rows))


def _fine(subject, rows):
    return Note(RULE, "fine", "; ".join(_line(subject, row) for row in rows), "simulated", "work", numbers=_numbers(rows))
