"""Rule 5: a program's warps that meet at an element with no barrier between, and programs that meet or wait for each other."""

from __future__ import annotations

from kit.rules.from_paper import finding_note, many, once, some
from kit.rules.ir import prepared
from kit.rules.note import Note
from kit.simulator.races import needed

RULE = 5
HAZARDS = ("race in a program", "race between programs", "wait between programs")
OTHER_WARPS = (4, 8)  # one warp is in step with itself and hides a race; most launches have 4 or 8
BARRIERS = ("ttg.barrier", "gpu.barrier")


def look(subject):
    """The Notes of rule 5: at the smallest and the typical size, with the launch's warps and with others."""
    sizes = some([subject.smallest, subject.typical])
    notes, ran = [], 0
    for size in sizes:
        launch, report = subject.ghosts(size), subject.report(size)
        ran += report.ran
        notes += [finding_note(subject, RULE, finding, launch) for finding in _told(report)]
    own = _warps(subject)
    rereads = _rereads(subject, sizes[-1])
    tried = sorted({*own, *OTHER_WARPS} - {own[0]}) if rereads and not _wrong(notes) else []
    for warps in tried:
        notes += _with(subject, sizes[-1], warps, warps in own)
    return once(notes) if notes else [_fine(subject, sizes, ran, [own[0], *tried], rereads)]


def _told(report):
    return [finding for finding in report.findings if finding.hazard in HAZARDS and finding.verdict != "remark"]


def _wrong(notes):
    return any(note.verdict == "wrong" for note in notes)


def _warps(subject):
    """The numbers of warps that this kernel is launched with: that of the launch first, then those of a tuner's configurations."""
    found, around = [subject.ghosts().meta.get("num_warps") or 4], subject.given
    while around is not subject.kernel:
        found += [configuration.num_warps for configuration in getattr(around, "configs", ()) if configuration.num_warps]
        around = around.fn
    return list(dict.fromkeys(found))


def _rereads(subject, size):
    """Whether some memory is both read and written: only there can warps race."""
    _, program, arguments = prepared(subject, subject.ghosts(size))
    return needed(program, [value if hasattr(value, "data_ptr") else None for _, _, value in arguments])


def _with(subject, size, warps, launched):
    """Races that another number of warps shows: of a configuration that is launched, or of one that may be."""
    launch, report = subject.ghosts(size, num_warps=warps), subject.report(size, num_warps=warps)
    found = [finding for finding in _told(report) if finding.hazard == "race in a program" and finding.verdict == "wrong"]
    before = f"with num_warps={warps}, {'one of its configurations' if launched else 'which this launch does not have'}, "
    return [
        finding_note(subject, RULE, finding, launch, verdict="wrong" if launched else "fragile", before=before, key="race in a program")
        for finding in found
    ]


def _fine(subject, sizes, ran, warps, rereads):
    _, program, _ = prepared(subject, subject.ghosts(sizes[-1]))
    lines = sorted({subject.line(op.location.line) or 0 for op in program.operations() if op.name in BARRIERS})
    at = " and ".join(f"at {size}" for size in (subject.ghosts(size).told for size in sizes) if size)
    text = f"no warps and no programs meet at an element in {many(ran, 'program')} on paper{f', {at}' if at else ''}"
    if rereads:
        text += f", with {', '.join(map(str, warps))} warps"
    else:
        text += "; no program reads memory that it writes"
    if lines and not rereads:
        where = f"line{'s' if len(lines) > 1 else ''} {', '.join(map(str, lines))}"
        text += f", so the tl.debug_barrier() of {where} orders nothing in memory and can go"
    numbers = {"programs": ran, "num_warps": warps, "rereads": rereads, "barrier_lines": lines}
    return Note(RULE, "fine", text, "simulated", "barriers", lines[0] if lines and not rereads else None, "", numbers)
