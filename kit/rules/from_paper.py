"""A Finding of a run on paper as a Note: the same sentence, with the size at which it was seen and what to do."""

from __future__ import annotations

from kit.rules.note import Note

WHAT_TO_DO = {
    "race in a program": "put tl.debug_barrier() between the two accesses",
    "race between programs": "let one program own the element, add with tl.atomic_add, or launch a second kernel",
    "wait between programs": "split the kernel in two launches: a launch begins when the one before has ended",
    "overflow": "cast one operand to tl.int64 before the operation",
    "out of bounds": "mask the access, or take the view's stride as an argument",
    "misaligned": "compute the offset in elements of the pointer's own type",
    "never written": "check the mask and the grid, or fill the output before the launch",
    "masked lane": "give the load an other= that is neutral for what follows",
    "index": "let make_args return real integers there",
}
LANES = "change it with an atomic such as tl.atomic_add or tl.atomic_max, or give each lane an index of its own"


def finding_note(subject, rule, finding, launch, *, verdict=None, before="", key=None, at=None):
    """The Note of `rule` on a Finding of the Report on `launch`: `before` stands in front of it, `at` in the place of the launch's size."""
    text = subject.told(finding.text.removeprefix(f"line {finding.line}: {finding.source}: "))
    where = at if at is not None else f"at {launch.told}: " if launch.told else ""
    lanes = finding.hazard == "race in a program" and "lanes of program" in text
    todo = LANES if lanes else WHAT_TO_DO.get(finding.hazard, "")
    line = subject.line(finding.line)
    numbers = {**launch.size, "grid": list(launch.grid), "program": finding.program, "other_program": finding.other}
    numbers |= {"true": finding.true, "wrapped": finding.wrapped, "argument": finding.argument}
    numbers["other_line"] = subject.line(finding.other_line)
    said = verdict or finding.verdict
    return Note(
        rule,
        said,
        f"{before}{where}{text}{f'; {todo}' if todo and said in ('wrong', 'fragile') else ''}",
        "simulated",
        key or finding.hazard,
        line,
        subject.source(line) if line else finding.source,
        {name: value for name, value in numbers.items() if value is not None},
    )


def once(notes):
    """The Notes without those that say the same of the same line again, at another size: the first stays."""
    seen = {}
    for note in notes:
        seen.setdefault((note.verdict, note.key, note.line, note.numbers.get("argument")), note)
    return list(seen.values())


def some(sizes):
    """The sizes, each once, in order."""
    return list({repr(size): size for size in sizes}.values())


def many(n, word):
    """ "1 program", "2 programs", "2 launches"."""
    return f"{n:,} {word}{'' if n == 1 else 'es' if word.endswith('ch') else 's'}"
