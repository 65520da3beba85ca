"""Reads the texts a compiled kernel consists of (TTIR, TTGIR, PTX, SASS) into instructions that know their source lines.

Pure text in, plain records out: nothing here compiles, runs, or imports Triton. The forms read are those of Triton 3.6 to 3.9.
"""

from __future__ import annotations

import re
from collections import Counter
from dataclasses import dataclass


@dataclass(frozen=True)
class Instruction:
    """One line of IR or assembly, cleaned, and where it comes from: ((file, line), ...), the innermost inlined function first."""

    text: str
    frames: tuple = ()


@dataclass(frozen=True)
class Access:
    """`count` instructions of one kind in one source line: each thread moves `bits` bits to or from `space` with each of them.

    `op` is "load", "store" or "atomic". `bits` is 0 for a bulk copy, whose size is not in the instruction.
    """

    line: int | None
    source: str
    op: str
    bits: int
    count: int
    space: str = "global"

    def __repr__(self):
        width = f"{self.bits} bit" if self.bits else "bulk"
        return f"line {self.line}: {self.count} {self.op}{'s' if self.count > 1 else ''} of {width}, {self.space}: {self.source}"


@dataclass(frozen=True)
class Resources:
    """What one thread of a kernel holds, as ptxas laid it out: registers, and bytes of stack and of local memory."""

    registers: int
    stack: int
    local: int


# ---- MLIR: TTIR and TTGIR

_ALIAS = re.compile(r"^(#loc\d*) = loc\((.*)\)$", re.M)
_FILE_LINE = re.compile(r'"((?:[^"\\]|\\.)*)":(\d+):\d+')


def read_ir(text):
    """Return the Instructions of a TTIR or TTGIR module, in order, each without its `loc(...)`."""
    aliases = dict(_ALIAS.findall(text))
    found, opened = [], []
    for line in text.splitlines():
        line = line.strip()
        if not line or line.startswith(("#", "^")):
            continue
        cleaned, last = _without_locs(line)
        frames = tuple(_frames(last, aliases)) if last is not None else ()
        if cleaned.startswith("}") and opened:
            # An operation with regions (a loop, a reduction) carries its location behind its closing brace.
            start = opened.pop()
            found[start] = Instruction(found[start].text, found[start].frames or frames)
            frames = found[start].frames
            if cleaned.endswith("{"):
                opened.append(start)
        elif cleaned.endswith("{"):
            opened.append(len(found))
        found.append(Instruction(cleaned, frames))
    return found


def _without_locs(line):
    """(line without any `loc(...)`, the content of the one that ends the line or None)."""
    kept, last, at = [], None, 0
    while (start := line.find("loc(", at)) >= 0:
        if start and line[start - 1] not in " (":  # part of a longer name, such as local_alloc(
            kept.append(line[at : start + 4])
            at = start + 4
            continue
        end = _closing(line, start + 3)
        kept.append(line[at:start].rstrip(" "))
        last = line[start + 4 : end] if end == len(line) - 1 else None
        at = end + 1
    return ("".join(kept) + line[at:]).strip(), last


def _closing(text, start):
    """Index of the parenthesis that closes the one at `start`; parentheses in quoted names do not count."""
    depth, quoted = 0, False
    for i in range(start, len(text)):
        if text[i] == '"' and text[i - 1] != "\\":
            quoted = not quoted
        elif not quoted:
            depth += (text[i] == "(") - (text[i] == ")")
            if depth == 0:
                return i
    return len(text) - 1


def _frames(loc, aliases):
    """[(file, line)], innermost first, of a location: "file":line:column, a name around one, callsite, fused, or an alias."""
    loc = loc.strip()
    if loc.startswith("#"):
        return _frames(aliases[loc], aliases) if loc in aliases else []
    if loc.startswith("callsite("):
        callee, caller = _split(loc[len("callsite(") : -1], " at ")
        return _frames(callee, aliases) + _frames(caller, aliases)
    if loc.startswith("fused"):
        # Operations that were merged: their lines differ only in the column as a rule, so the first speaks for them.
        parts = _split(loc[loc.index("[") + 1 : -1], ", ")
        return next((frames for part in parts if (frames := _frames(part, aliases))), [])
    if match := _FILE_LINE.match(loc):
        return [(match[1], int(match[2]))]
    if loc.startswith('"'):
        name_end = re.match(r'"(?:[^"\\]|\\.)*"', loc).end()
        return _frames(loc[name_end + 1 : -1], aliases) if loc[name_end : name_end + 1] == "(" else []
    return []


def _split(text, separator):
    """Split `text` at `separator` where it stands outside brackets and quotes."""
    parts, depth, quoted, at = [], 0, False, 0
    for i, char in enumerate(text):
        if char == '"':
            quoted = not quoted
        elif not quoted:
            depth += (char in "([<") - (char in ")]>")
            if depth == 0 and text.startswith(separator, i):
                parts.append(text[at:i])
                at = i + len(separator)
    return [*parts, text[at:]]


# ---- PTX

_PTX_FILE = re.compile(r'^\s*\.file\s+(\d+)\s+"([^"]*)"(?:\s+"([^"]*)")?', re.M)
_PTX_LOC = re.compile(r"^\.loc\s+(\d+)\s+(\d+)\s+(\d+)(?:.*?inlined_at\s+(\d+)\s+(\d+)\s+(\d+))?")
_CALLED_AT = re.compile(r"@\[ (.+?):(\d+):\d+")


def read_ptx(text):
    """Return the Instructions and branch targets of a PTX text, in order."""
    files = {n: f"{first}/{second}" if second else first for n, first, second in _PTX_FILE.findall(text)}
    by_name = {path.rsplit("/", 1)[-1]: path for path in files.values()}
    found, frames, parents, inline = [], (), {}, False
    for line in text.splitlines():
        line = line.strip()
        if line.startswith(("// begin inline asm", "// end inline asm")):
            inline = "begin" in line
        elif inline and line.startswith(".loc"):
            # From 3.8 LLVM counts source lines on through the lines of an inline block, into statements below. The block is one place.
            continue
        elif match := _PTX_LOC.match(line):
            frames = _ptx_frames(match, line, files, by_name, parents)
        elif line.startswith(".section"):
            frames = ()
        elif line.startswith("$L__BB") or (line and line[0] not in "./$" and ";" in line):
            found.append(Instruction(" ".join(line.split("//")[0].split()), frames))
    return found


def _ptx_frames(match, line, files, by_name, parents):
    """The frames of a `.loc`. Through 3.7 the callers stand in its comment, `@[ file:line:column`; from 3.8 in `inlined_at`, one level
    a directive, where the caller's own position was given by an earlier directive (`parents`)."""
    here, caller = match.group(1, 2, 3), match.group(4, 5, 6)
    parents[here] = caller if caller[0] else None
    chain, at = [], here
    while at and at not in chain:
        chain.append(at)
        at = parents.get(at)
    frames = [(files.get(file, "?"), int(number)) for file, number, _ in chain]
    frames += [(by_name.get(name, name), int(number)) for name, number in _CALLED_AT.findall(line)]
    return tuple(frame for frame in frames if frame[1] > 0)


# ---- SASS

_SASS_LINE = re.compile(r'File "([^"]*)", line (\d+)(?: inlined at "([^"]*)", line (\d+))?')
_SASS_CODE = re.compile(r"^/\*[0-9a-f]{4,}\*/\s+(.*?)\s*;")


def read_sass(text):
    """Return the Instructions and branch targets of what `nvdisasm --print-line-info-inline` prints; padding is left out."""
    found, frames, fresh = [], (), False
    for line in text.splitlines():
        line = line.strip()
        if line.startswith("//##") and (match := _SASS_LINE.search(line)):
            chain = ((match[1], int(match[2])),) + (((match[3], int(match[4])),) if match[3] else ())
            # The levels of one inlined place follow each other, each beginning where the one before it ended.
            frames = frames + chain[1:] if fresh and frames[-1] == chain[0] else (frames if fresh else chain)
            fresh = True
        elif match := _SASS_CODE.match(line):
            fresh = False
            if not match[1].startswith("NOP"):
                found.append(Instruction(match[1], frames))
        elif re.match(r"^\.L_x_\d+:", line):
            found.append(Instruction(line, ()))
    return found


def with_callers(sass, ptx):
    """`sass` with the callers that `ptx` knows: through Triton 3.7 a cubin does not say where a function was inlined."""
    known = {}
    for instruction in ptx:
        if instruction.frames:
            known.setdefault(instruction.frames[0], set()).add(instruction.frames)
    full = {innermost: chains.pop() for innermost, chains in known.items() if len(chains) == 1}
    return [Instruction(one.text, full.get(one.frames[0], one.frames) if len(one.frames) == 1 else one.frames) for one in sass]


def read_resources(text, name):
    """Return the Resources of kernel `name` in what `cuobjdump --dump-resource-usage` prints."""
    pattern = re.compile(rf"Function {re.escape(name)}:\s*\n\s*REG:(\d+) STACK:(\d+) SHARED:\d+ LOCAL:(\d+)")
    match = pattern.search(text)
    return Resources(*map(int, match.groups())) if match else None


# ---- What the PTX does with memory

_OPCODE = re.compile(r"^(?:\{\s*)?(?:@!?%?\w+\s+)?([a-z][\w.:]*)")
_BARRIER = re.compile(r"^(bar|barrier)(\.cta|\.cluster)?\.(sync|arrive|red|wait)\b")
_OPS = {"ld": "load", "ldu": "load", "st": "store", "atom": "atomic", "red": "atomic", "ldmatrix": "load", "stmatrix": "store"}
_SPACES = ("global", "shared", "local")


def opcode(instruction):
    """The opcode of a PTX Instruction, without its predicate: "ld.global.v4.b32"."""
    match = _OPCODE.match(instruction.text)
    return match[1] if match else ""


def is_barrier(instruction):
    """True when every warp of the program waits at this PTX Instruction."""
    return bool(_BARRIER.match(opcode(instruction)))


def access_of(instruction):
    """(op, bits, space) of a PTX Instruction that reads or writes memory, else None. Parameters and constants do not count."""
    parts = opcode(instruction).split(".")
    if parts[:2] == ["cp", "async"]:
        return _copy(instruction.text, parts)
    op = _OPS.get(parts[0])
    if op is None:
        return None
    spaces = [part.split("::")[0] for part in parts]
    space = next((name for name in _SPACES if name in spaces), None)
    if space is None:
        return None if "param" in spaces or "const" in spaces else (op, _bits(parts), "generic")
    return op, _bits(parts), space


def _copy(text, parts):
    """An asynchronous copy from global to shared memory reads global memory; a bulk copy may go either way."""
    if parts[2:3] in (["ca"], ["cg"]):
        return "load", 8 * int(text.split("]")[2].split(",")[1].strip(" ;"), 0), "global"
    spaces = [part.split("::")[0] for part in parts]
    if "bulk" in parts and "global" in spaces and "shared" in spaces:
        # Destination first: cp.async.bulk.tensor.2d.shared::cluster.global reads, ...global.shared::cta writes.
        return ("load" if spaces.index("shared") < spaces.index("global") else "store"), 0, "global"
    return None


def _bits(parts):
    """Width of `.v4.b32`, `.x4.b16` (four 8x8 matrices: one 32-bit register each), `.bf16x2`, in bits a thread."""
    if parts[0] in ("ldmatrix", "stmatrix"):
        return 32 * int(next(part[1:] for part in parts if re.fullmatch(r"x\d", part)))
    vector = next((int(part[1:]) for part in parts if re.fullmatch(r"v\d+", part)), 1)
    kinds = [match for part in parts if (match := re.fullmatch(r"[busf](\d+)(?:x(\d))?|bf16(?:x(\d))?", part))]
    kind = kinds[-1] if kinds else None
    if kind is None:
        return 0
    return vector * int(kind[1] or 16) * int(kind[2] or kind[3] or 1)


def accesses(ptx, line_of, source_of):
    """[Access] of `ptx` (Instructions), by source line: `line_of(frames)` gives a line or None, `source_of(line)` its text."""
    counts = Counter()
    for instruction in ptx:
        if access := access_of(instruction):
            counts[(line_of(instruction.frames), *access)] += 1
    ordered = sorted(counts.items(), key=lambda item: item[0][0] or 0)
    return [Access(line, source_of(line), op, bits, count, space) for (line, op, bits, space), count in ordered]


def local_depot(ptx_text):
    """Bytes of stack that the PTX asks for by itself (local arrays, arguments of calls); ptxas adds what it spills."""
    return sum(int(size) for size in re.findall(r"\.local\s+\.align\s+\d+\s+\.b8\s+__local_depot\w*\[(\d+)\]", ptx_text))
