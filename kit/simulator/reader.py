"""TTIR text -> operations.

The text is read, not the bindings: it has the same form in Triton 3.6 to 3.9, and it alone carries attributes and source lines
in all of them. One operation stands on one line, with nested regions between braces. MLIR reuses SSA names in sibling regions,
so each definition gets a number of its own here.
"""

from __future__ import annotations

import functools
import re
from dataclasses import replace

from kit.simulator.ir_text import balanced, bare, parse_type, signature_of, split, types_of
from kit.simulator.program import Block, Function, Location, Operation, Program, Region, Type, Unsupported

_LOC_LINE = re.compile(r"^#(loc\d*) = loc\((.*)\)$")
_RESULTS = re.compile(r"^(%[\w$.\-]+(?::\d+)?(?:, %[\w$.\-]+(?::\d+)?)*) = ")
_VALUE = re.compile(r"%[\w$.\-]+(?:#\d+)?")
_LABEL = re.compile(r"^(\^\w+)(?:\((.*)\))?:")
_FUNC = re.compile(r"^tt\.func (?:public |private )?@([\w.$\-]+|\"[^\"]+\")\((.*)$")
_NAME = re.compile(r'^"?([a-z_]+\.[\w.]+)"?')


def read_program(text, file=None):
    """Return the Program of a TTIR module's text. Raises Unsupported, with the line, for text of an unknown form.

    `file` is where the kernel's source is now. Triton's disk cache has no file names in its keys, so the text may name the file
    of an earlier process, such as a notebook's cell that is gone.
    """
    return replace(_read(text, file))  # what a caller notes on its Program is not for the next one to see


@functools.lru_cache(maxsize=64)
def _read(text, file):
    # One kernel is read many times by examine and by graders. What is read is never changed.
    return Reader(text, file).module()


class Reader:
    def __init__(self, text, file=None):
        self.locations = _Locations(text, file)
        self.lines = [line.strip() for line in text.splitlines() if line.strip() and not line.startswith("#loc")]
        self.at = 0
        self.types = []
        self.scopes = []

    # ---- names and types
    def define(self, name, kind):
        self.types.append(kind)
        self.scopes[-1][name] = len(self.types) - 1
        return len(self.types) - 1

    def use(self, name):
        for scope in reversed(self.scopes):
            if name in scope:
                return scope[name]
        raise Unsupported(f"the simulated GPU cannot read this kernel's IR: {name} is used before it is defined.")

    def next(self):
        line = self.lines[self.at]
        self.at += 1
        return line

    # ---- structure
    def module(self):
        functions = {}
        kernel = None
        while self.at < len(self.lines):
            line = self.next()
            match = _FUNC.match(line)
            if match:
                function = self.function(match)
                functions[function.name] = function
                if " public " in line or kernel is None:
                    kernel = function
        if kernel is None:
            raise Unsupported("the simulated GPU found no function in this kernel's IR.")
        return Program(kernel, functions, self.types)

    def function(self, match):
        inside, _ = balanced(match[2], ")")
        self.scopes.append({})
        names, parameters = [], []
        for piece in split(inside):
            name, kind = piece.split(":", 1)
            kind = kind.split(" loc(")[0].split(" {")[0]
            parameters.append(self.define(name.strip(), parse_type(kind)))
            names.append(name.strip().removeprefix("%"))
        body, _ = self.region()
        self.scopes.pop()
        return Function(match[1].strip('"'), parameters, names, body)

    def region(self, arguments=()):
        """Read up to the closing brace. Returns the region and the closing line, which may open the next region."""
        self.scopes.append({})
        blocks = [Block("^entry", [self.define(name, kind) for name, kind in arguments])]
        # A branch may use values of blocks that stand before it, so one scope serves all blocks of a region.
        while not (line := self.next()).startswith("}"):
            label = _LABEL.match(line)
            if not label:
                blocks[-1].operations.append(self.operation(line))
                continue
            given = [piece.split(":", 1) for piece in split(label[2])] if label[2] else []
            defined = [self.define(name.strip(), parse_type(kind.split(" loc(")[0])) for name, kind in given]
            if len(blocks) == 1 and not blocks[0].operations and not blocks[0].arguments:
                blocks = []
            blocks.append(Block(label[1], defined))
        self.scopes.pop()
        return Region(blocks), line

    def operation(self, line):
        results = _RESULTS.match(line)
        rest = line[results.end() :] if results else line
        match = _NAME.match(rest)
        if not match:
            raise Unsupported(f"the simulated GPU cannot read this line of the kernel's IR: {line[:120]}")
        name, rest = match[1], rest[match.end() :]
        rest, location = self.locations.strip(rest)
        read = {"scf.for": self.read_for, "scf.while": self.read_while, "scf.if": self.read_if}.get(name)
        if read is None:
            read = self.read_generic if rest.endswith("({") else self.read_plain
        operation = read(name, rest, location)
        if results:
            names = _result_names(results[1])
            if len(operation.types) != len(names):
                raise Unsupported(f"the simulated GPU cannot read the result types of {name} in this kernel's IR: {line[:120]}")
            operation.results = [self.define(name, kind) for name, kind in zip(names, operation.types, strict=True)]
        return operation

    def read_plain(self, name, rest, location):
        # tt.print stands apart: its operands follow its attributes and a colon.
        body, signature = (rest.rsplit(" : ", 1)[0], "") if name == "tt.print" else signature_of(rest)
        successors = []
        if name in ("cf.br", "cf.cond_br"):
            for target, values in re.findall(r"(\^\w+)(?:\(([^)]*)\))?", rest):
                successors.append((target, [self.use(v) for v in _VALUE.findall(values.split(" : ")[0])]))
            body = rest.split("^")[0]
        body_values = re.sub(r'"[^"]*"', "", body)  # a message of tt.assert or tt.print may hold a percent sign
        operands = [self.use(v) for v in _VALUE.findall(body_values)]
        return Operation(name, [], operands, body, self.result_types(name, body, signature), location, successors=successors)

    def read_generic(self, name, rest, location):
        operands = [self.use(v) for v in _VALUE.findall(rest)]
        region, closing = self.region()
        closing, location = self.locations.strip(closing.removeprefix("})"))
        _, signature = signature_of(closing)
        return Operation(name, [], operands, rest, types_of(bare(signature.split("->", 1)[1])), location, [region])

    def read_for(self, name, rest, location):
        head, carried = (rest.split("iter_args(", 1) + [""])[:2]
        induction, low, high, step = _VALUE.findall(head)[:4]
        kinds, pairs = [], []
        if carried:
            inside, after = balanced(carried, ")")
            pairs = [piece.split("=") for piece in split(inside)]
            kinds = types_of(balanced(after.split("->", 1)[1].strip().removeprefix("("), ")")[0])
        counter = parse_type(rest.rstrip("{ ").rsplit(":", 1)[1]) if " : " in rest else Type("i32")
        operands = [self.use(v) for v in (low, high, step)] + [self.use(value.strip()) for _, value in pairs]
        arguments = [(induction, counter)] + [(given.strip(), kind) for (given, _), kind in zip(pairs, kinds)]
        region, closing = self.region(arguments)
        text, location = self.locations.strip(closing)
        return Operation(name, [], operands, head + text, kinds, location, [region])

    def read_if(self, name, rest, location):
        operands = [self.use(_VALUE.search(rest)[0])]
        kinds = types_of(balanced(rest.split("->", 1)[1].strip().removeprefix("("), ")")[0]) if "->" in rest else []
        then, closing = self.region()
        regions = [then]
        if closing.startswith("} else {"):
            other, closing = self.region()
            regions.append(other)
        _, location = self.locations.strip(closing)
        return Operation(name, [], operands, "", kinds, location, regions)

    def read_while(self, name, rest, location):
        carries = rest.strip().startswith("(")  # a loop that carries nothing has no list
        inside, after = balanced(rest.strip().removeprefix("("), ")") if carries else ("", rest)
        pairs = [piece.split("=") for piece in split(inside)]
        given, results = after.strip().removeprefix(":").rstrip("{ ").split("->", 1)
        kinds = types_of(bare(given))
        before, _ = self.region([(argument.strip(), kind) for (argument, _), kind in zip(pairs, kinds)])
        after, closing = self.region()
        _, location = self.locations.strip(closing)
        operands = [self.use(value.strip()) for _, value in pairs]
        return Operation(name, [], operands, "", types_of(bare(results)), location, [before, after])

    def result_types(self, name, body, signature):
        if not signature:  # `arith.constant true` is an i1 without saying so
            return [Type("i1")] if name == "arith.constant" else []
        if "->" in signature:
            kinds = types_of(bare(signature.split("->", 1)[1]))
            return kinds * 2 if name == "tt.split" else kinds  # both halves have the one type that is printed
        if " to " in signature:
            return [parse_type(signature.split(" to ", 1)[1])]
        kinds = types_of(signature)
        if name == "tt.make_tensor_descriptor":
            return [Type("tensordesc" + kinds[-1].element)]
        if name in ("arith.cmpi", "arith.cmpf"):
            return [Type("i1", kinds[0].shape)]
        if name == "tt.load":
            return [Type(kinds[0].pointee, kinds[0].shape)]
        if name == "arith.select":
            return kinds[-1:]
        return kinds[:1]


def _result_names(text):
    """`%a, %b:2` -> %a, %b#0, %b#1."""
    names = []
    for piece in text.split(", "):
        name, _, count = piece.partition(":")
        names += [f"{name}#{i}" for i in range(int(count))] if count else [name]
    return names


class _Locations:
    """The `#loc` table of a module. Chains of inlined calls end at the outermost caller."""

    def __init__(self, text, file):
        self.table = dict(match.groups() for line in text.splitlines() if (match := _LOC_LINE.match(line)))
        self.known = {}
        self.file = file
        own = re.match(r'^"([^"]*)"', self.table.get("loc", ""))  # #loc is where the kernel itself stands
        self.written = own and own[1]

    def strip(self, line):
        """`line` without its trailing loc(...), and the Location it named."""
        cut = line.rfind(" loc(")
        if cut < 0 or not line.endswith(")"):
            opening = line.endswith("{") or line == "}"
            return (line, Location()) if opening or cut < 0 else (line[:cut], Location())
        return line[:cut], self.resolve(line[cut + 5 : -1])

    def resolve(self, text):
        if text not in self.known:
            self.known[text] = self._resolve(text)
        return self.known[text]

    def _resolve(self, text):
        if text.startswith("#"):
            return self.resolve(self.table.get(text[1:], "unknown"))
        if text.startswith("callsite("):
            return self.resolve(text[len("callsite(") : -1].rsplit(" at ", 1)[1])
        if match := re.match(r'^"([^"]*)":(\d+)(?::\d+)?', text):
            return Location(self.file if self.file and match[1] == self.written else match[1], int(match[2]))
        if match := re.match(r'^"[^"]*"\((.*)\)$', text):
            return self.resolve(match[1])
        if match := re.match(r"^fused(?:<[^>]*>)?\[(.*?)[,\]]", text):
            return self.resolve(match[1])
        return Location()
