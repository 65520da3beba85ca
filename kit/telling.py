"""What a run on paper saw, as Findings: one sentence each, with its line, the first program, and the numbers."""

from __future__ import annotations

import math

from kit.report import VERDICTS, Finding
from kit.simulator.dependence import data_dependent
from kit.simulator.memory import source_line

WIDTHS = {"i8": 8, "i16": 16, "i32": 32}


class Telling:
    """The Findings of one Paper."""

    def __init__(self, paper):
        self.paper = paper
        self.watch, self.memory, self.footprints = paper.watch, paper.memory, paper.footprints
        self.tensors = paper.tensors

    def findings(self):
        """All of them: what is wrong, fragile, not visible here, and remarks."""
        leaks, through = self.paper.leaks()
        unknown = {id(leak.sink) for leak in leaks if leak.kind == "ghost" and leak.what != "value"}
        found = self.overflows()
        found += [self.stray(sighting) for sighting in self.memory.outside.values()]
        found += [self.foreign(sighting) for sighting in self.memory.between.values()]
        found += [self.misaligned(sighting) for sighting in self.memory.misaligned.values()]
        found += [self.failed(*failure) for failure in self.watch.failed.values()]
        if self.paper.waits is not None:
            found.append(self.waiting(self.paper.waits))
        found += [self.meeting(meeting) for meeting in self.footprints.meetings(unknown)]
        found += self.unwritten(unknown)
        found += self.undefined(leaks, through)
        found += self.unseen()
        return sorted(found, key=lambda finding: VERDICTS.index(finding.verdict))

    # ---- int32 overflow
    def overflows(self):
        reached = [(sighting.operation, sighting) for sighting in self.watch.reached.values()]
        harmful = {id(operation) for operation, _ in reached}
        harmless = {}
        for sighting in self.watch.wraps.values():
            if id(sighting.operation) not in harmful:
                harmless.setdefault(sighting.operation.location.line, []).append(sighting)
        errors = []
        for operation in {id(op): op for op, _ in reached}.values():
            errors.append(self.sentence(operation, [s for op, s in reached if op is operation]))
        return errors + [self.remark(sightings) for sightings in harmless.values()]

    def sentence(self, op, sinks):
        """A wrap that something depends on: told with the numbers of the first program where it matters."""
        line = source_line(op.location)
        width = WIDTHS.get(op.types[0].element, 64)
        first = min(sinks, key=lambda s: s.number)
        wrap = self.watch.wraps.get(id(op))
        if wrap is not None and wrap.number == first.number:
            what = {"arith.muli": "product", "arith.addi": "sum", "arith.subi": "difference"}.get(op.name, "value")
        else:  # it wrapped before it did harm, as an unsigned product does between 2^31 and 2^32
            wrap, what = first, "offset" if first.argument else "value"
        ends = sorted({s.reaches + (f" in line {s.sink.line}" if s.sink.line != op.location.line else "") for s in sinks})
        text = (
            f"line {op.location.line}: {line}: int{width} overflow: the {what} {wrap.true:,} becomes {wrap.wrapped:,}, "
            f"first in program {first.program}; it reaches {'; and '.join(ends)}"
        )
        return Finding("overflow", text, "wrong", op.location.line, line, first.program, wrap.true, wrap.wrapped, first.argument)

    def remark(self, sightings):
        """Integers that wrap on one line and decide nothing: as hashes and random numbers do on purpose."""
        first = min(sightings, key=lambda s: s.number)
        location = first.operation.location
        line = source_line(location)
        n = len(sightings)
        where = f"in {n} operations" if n > 1 else "in one operation"
        text = f"line {location.line}: {line}: integers wrap {where}, and no address, comparison or branch depends on it"
        return Finding("overflow", text, "remark", location.line, line, first.program, first.true, first.wrapped)

    # ---- addresses
    def at(self, sighting, text, hazard):
        line = source_line(sighting.sink)
        head = f"line {sighting.sink.line}: {line}: {sighting.reaches} {sighting.argument} {text}, first in program {sighting.program}"
        return Finding(hazard, head, "wrong", sighting.sink.line, line, sighting.program, sighting.true, argument=sighting.argument)

    def stray(self, sighting):
        n = math.prod(self.tensors[sighting.argument].shape)
        return self.at(sighting, f"at element offset {sighting.true:,}, outside its memory ({n:,} elements)", "out of bounds")

    def foreign(self, sighting):
        """In the storage, and not in the view: memory that the launch was not given."""
        tensor = self.tensors[sighting.argument]
        view = self.memory.views[sighting.argument]
        inside = 0 <= sighting.true * tensor.dtype.itemsize < view.span
        where = "between the elements of the view" if inside else "past the view, in the storage it is cut from"
        strides = tuple(tensor.stride())
        return self.at(
            sighting,
            f"at element offset {sighting.true:,}, {where} (shape {tuple(tensor.shape)}, strides {strides})",
            "out of bounds",
        )

    def misaligned(self, sighting):
        return self.at(sighting, f"at byte offset {sighting.true:,}, which is no multiple of the element's size", "misaligned")

    def failed(self, op, words):
        line = source_line(op.location)
        message = words.removeprefix("device-side assert: ").split("; line ")[0]
        program = tuple(int(n) for n in words.rsplit("program (", 1)[1].split(")")[0].split(", ")[:3])
        text = f"line {op.location.line}: {line}: the assertion fails ({message}), first seen in program {program}"
        return Finding("assertion", text, "wrong", op.location.line, line, program)

    # ---- programs that meet
    def meeting(self, meeting):
        first, second = meeting.first[1], meeting.second[1]
        tensor = self.tensors[meeting.argument]
        offset = (meeting.address - tensor.data_ptr()) // tensor.dtype.itemsize
        one, other = (self.program_id(side[0]) for side in (meeting.first, meeting.second))
        line = source_line(first.location)
        place = f"element offset {offset:,} of {meeting.argument}" + (f" and {meeting.elements - 1:,} more" if meeting.elements > 1 else "")
        hazard, verdict = "race between programs", "wrong"
        if meeting.kind == "lanes":
            hazard = "race in a program"
            text = f"two lanes of program {one} write different values at {place}, and nothing says which stays"
        elif meeting.kind == "lost":
            hazard = "race in a program"
            text = (
                f"several lanes of program {one} read {place} in line {first.location.line} and write it in line "
                f"{second.location.line}: one change stays, the others are lost"
            )
        elif meeting.same:
            verdict = "remark"
            text = f"programs {one} and {other} both write the same value at {place}"
        else:
            verbs = {"read": "reads", "write": "writes", "atomic": "updates"}
            text = (
                f"program {one} {verbs[first.kind]} {place}, and program {other} {verbs[second.kind]} it in line {second.location.line}: "
                f"no order of programs is promised"
            )
            if meeting.ordered:
                verdict = "not visible here"
                text += "; atomics stand between, and whether they order it is not decided on paper: many launches on a GPU may show it"
        return Finding(
            hazard,
            f"line {first.location.line}: {line}: {text}",
            verdict,
            first.location.line,
            line,
            one,
            offset,
            argument=meeting.argument,
            other=other,
            other_line=second.location.line,
        )

    def program_id(self, number):
        x, y, _ = self.paper.grid
        return (number % x, number // x % y, number // (x * y))

    def waiting(self, waiting):
        op = waiting.operation
        line = source_line(op.location)
        program = tuple(waiting.programs[0, :3].tolist())
        text = (
            f"line {op.location.line}: {line}: program {program} waits for a change that no program before it makes: it ends only if a "
            f"later one runs at the same time, which nothing promises"
        )
        return Finding("wait between programs", text, "wrong", op.location.line, line, program)

    def unwritten(self, unknown):
        """Elements of outputs that no program wrote. Only a run of all programs can tell."""
        if self.paper.ran != self.paper.total or self.footprints.full or self.paper.waits is not None:
            return []
        stores = {id(p.op): p for p in self.footprints.prints if p.kind == "write"}
        if any(op in unknown for op in stores):
            return []
        found = []
        for name, (size, written) in self.footprints.outputs().items():
            tensor = self.tensors[name]
            if size != tensor.dtype.itemsize or not tensor.numel():
                continue
            start = (tensor.data_ptr() - self.memory.by_argument[name].base) // size
            seen = written.as_strided(tuple(tensor.shape), tuple(tensor.stride()), start)
            if bool(seen.all()):
                continue
            missing = int((~seen).sum())
            first = tuple((~seen).nonzero()[0].tolist()) if seen.dim() else ()
            where = ", ".join(f"{n:,}" for n in first)
            last = next(p for p in reversed(list(stores.values())) if p.argument == name)
            line = source_line(last.location)
            text = (
                f"line {last.location.line}: {line}: {missing:,} of {seen.numel():,} elements of {name} are never written, the first at "
                f"[{where}]: they keep what was there before"
            )
            # A scatter, or a store under a condition on data, leaves elements out on purpose.
            mine = [op for op, p in stores.items() if self.memory.by_argument[p.argument] is self.memory.by_argument[name]]
            verdict = "remark" if data_dependent(self.paper.program).intersection(mine) else "fragile"
            found.append(Finding("never written", text, verdict, last.location.line, line, None, missing, argument=name))
        return found

    # ---- undefined values
    def undefined(self, leaks, through):
        by_source = {}
        for leak in leaks:
            if leak.kind != "ghost" or leak.what != "value":
                by_source.setdefault((leak.kind, id(leak.operation)), []).append(leak)
        return [self.leak(min(group, key=lambda leak: leak.program[::-1]), through) for group in by_source.values()]

    def leak(self, leak, through):
        op, place = leak.operation, leak.operation.location
        line = source_line(place)
        argument = leak.access.argument or "memory"
        end = f"the {leak.what} with which it {leak.access.verb} {argument}" + (
            f" in line {leak.sink.location.line}" if leak.sink.location.line != place.line else ""
        )
        way = through.get(id(op))
        way = f" through the {way.name.split('.')[1]} of line {way.location.line}" if way is not None else ""
        head = f"line {place.line}: {line}: "
        told = {
            "masked lane": ("masked lane", "fragile", "masked lanes have no other=: undefined, 0 on sm_90 today; they reach"),
            "division by zero": (
                "division by zero",
                "wrong",
                "an integer is divided by zero, which has no defined result; it reaches",
            ),
            "undefined value": ("undefined value", "wrong", "a value that the program never sets here (the compiler's poison) reaches"),
        }
        if leak.kind == "ghost":
            text = f"{end} depends on integers read from a ghost, which are 0 here: a real tensor in its place would show it"
            return Finding("index", head + text, "not visible here", place.line, line, leak.program, argument=argument)
        hazard, verdict, words = told[leak.kind]
        text = f"{head}{words} {end}{way}, first in program {leak.program}"
        return Finding(hazard, text, verdict, place.line, line, leak.program, argument=argument, other_line=leak.sink.location.line)

    # ---- what paper cannot show
    def unseen(self):
        found = []
        for location in self.memory.unknown.values():
            line = source_line(location)
            why = "the pointer was loaded from memory, or may lead into either of two arguments, and its target is not known"
            text = f"line {location.line}: {line}: {why}: a run would show it"
            found.append(Finding("out of bounds", text, "not visible here", location.line, line))
        if self.footprints.full:
            text = "races between programs were not looked for, there are too many accesses: programs=[...] of a few would show them"
            found.append(Finding("race between programs", text, "not visible here"))
        return found
