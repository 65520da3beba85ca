"""TTIR text -> operations.

The text is read, not the bindings: it has the same form in Triton 3.6 to 3.9, and it alone carries attributes and source lines
in all of them. One operation stands on one line, with nested regions between braces. MLIR reuses SSA names in sibling regions,
so each definition gets a number of its own here.
"""

from __future__ import annotations

import functools
import re
from dataclasses import dataclass, field, replace

from kit.errors import KitError


class Unsupported(KitError):
    """The simulated GPU does not know an operation of this kernel."""


@dataclass(frozen=True)
class Type:
    """The type of a value: element ("i32", "f16", "ptr<f32>", ...) and block shape, () for a scalar."""

    element: str
    shape: tuple[int, ...] = ()

    @property
    def is_pointer(self):
        return self.element.startswith("ptr<")

    @property
    def pointee(self):
        return self.element[4:-1].split(",")[0].strip()

    def __str__(self):
        return "x".join([*map(str, self.shape), self.element])


@dataclass(frozen=True)
class Location:
    """Where an operation stands in the reader's source. `line` is the caller's when a function was inlined."""

    file: str | None = None
    line: int | None = None


@dataclass
class Operation:
    """One operation: what it reads and writes by value number, its attributes as text, its regions."""

    name: str
    results: list[int]
    operands: list[int]
    text: str
    types: list[Type]
    location: Location
    regions: list[Region] = field(default_factory=list)
    successors: list[tuple[str, list[int]]] = field(default_factory=list)

    def attribute(self, key):
        """The value of `key = value` in the operation's attributes, as text; None when it is not there."""
        match = re.search(rf'\b{key} = ("[^"]*"|-?[\w.]+)', self.text)
        return match and match[1].strip('"')


@dataclass
class Block:
    label: str
    arguments: list[int]
    operations: list[Operation] = field(default_factory=list)


@dataclass
class Region:
    blocks: list[Block]

    @property
    def entry(self):
        return self.blocks[0]


@dataclass
class Function:
    name: str
    parameters: list[int]
    parameter_names: list[str]
    body: Region


@dataclass
class Program:
    """A kernel as read: its functions (`kernel` is the entry), and the type of every value by number."""

    kernel: Function
    functions: dict[str, Function]
    types: list[Type]

    def operations(self):
        """Every operation, those in regions included."""
        todo = [function.body for function in self.functions.values()]
        while todo:
            for block in todo.pop().blocks:
                for operation in block.operations:
                    yield operation
                    todo += operation.regions


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


@functools.lru_cache(maxsize=256)
def _read(text, file):
    # One kernel is read many times by examine and by graders. What is read is never changed.
    return _Reader(text, file).module()


class _Reader:
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
        inside, _ = _balanced(match[2], ")")
        self.scopes.append({})
        names, parameters = [], []
        for piece in _split(inside):
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
            given = [piece.split(":", 1) for piece in _split(label[2])] if label[2] else []
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
        body, signature = (rest.rsplit(" : ", 1)[0], "") if name == "tt.print" else _signature(rest)
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
        _, signature = _signature(closing)
        return Operation(name, [], operands, rest, _types(_bare(signature.split("->", 1)[1])), location, [region])

    def read_for(self, name, rest, location):
        head, carried = (rest.split("iter_args(", 1) + [""])[:2]
        induction, low, high, step = _VALUE.findall(head)[:4]
        kinds, pairs = [], []
        if carried:
            inside, after = _balanced(carried, ")")
            pairs = [piece.split("=") for piece in _split(inside)]
            kinds = _types(_balanced(after.split("->", 1)[1].strip().removeprefix("("), ")")[0])
        counter = parse_type(rest.rstrip("{ ").rsplit(":", 1)[1]) if " : " in rest else Type("i32")
        operands = [self.use(v) for v in (low, high, step)] + [self.use(value.strip()) for _, value in pairs]
        arguments = [(induction, counter)] + [(given.strip(), kind) for (given, _), kind in zip(pairs, kinds)]
        region, closing = self.region(arguments)
        text, location = self.locations.strip(closing)
        return Operation(name, [], operands, head + text, kinds, location, [region])

    def read_if(self, name, rest, location):
        operands = [self.use(_VALUE.search(rest)[0])]
        kinds = _types(_balanced(rest.split("->", 1)[1].strip().removeprefix("("), ")")[0]) if "->" in rest else []
        then, closing = self.region()
        regions = [then]
        if closing.startswith("} else {"):
            other, closing = self.region()
            regions.append(other)
        _, location = self.locations.strip(closing)
        return Operation(name, [], operands, "", kinds, location, regions)

    def read_while(self, name, rest, location):
        carries = rest.strip().startswith("(")  # a loop that carries nothing has no list
        inside, after = _balanced(rest.strip().removeprefix("("), ")") if carries else ("", rest)
        pairs = [piece.split("=") for piece in _split(inside)]
        given, results = after.strip().removeprefix(":").rstrip("{ ").split("->", 1)
        kinds = _types(_bare(given))
        before, _ = self.region([(argument.strip(), kind) for (argument, _), kind in zip(pairs, kinds)])
        after, closing = self.region()
        _, location = self.locations.strip(closing)
        operands = [self.use(value.strip()) for _, value in pairs]
        return Operation(name, [], operands, "", _types(_bare(results)), location, [before, after])

    def result_types(self, name, body, signature):
        if not signature:  # `arith.constant true` is an i1 without saying so
            return [Type("i1")] if name == "arith.constant" else []
        if "->" in signature:
            kinds = _types(_bare(signature.split("->", 1)[1]))
            return kinds * 2 if name == "tt.split" else kinds  # both halves have the one type that is printed
        if " to " in signature:
            return [parse_type(signature.split(" to ", 1)[1])]
        kinds = _types(signature)
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


@functools.lru_cache(maxsize=1024)
def parse_type(text):
    """`tensor<128x!tt.ptr<f32>>` -> Type("ptr<f32>", (128,)). An encoding after a comma is left out."""
    text = text.strip()
    if not text.startswith("tensor<"):
        return Type(text.removeprefix("!tt."))
    inside = _split(text[len("tensor<") : -1])[0]
    shape = []
    while match := re.match(r"(\d+)x", inside):
        shape.append(int(match[1]))
        inside = inside[match.end() :]
    return Type(inside.removeprefix("!tt."), tuple(shape))


def _types(text):
    return [parse_type(piece) for piece in _split(re.sub(r"\*|->", ",", text) if " * " in text else text)]


def _bare(text):
    text = text.strip()
    return text[1:-1] if text.startswith("(") and text.endswith(")") else text


def _signature(text):
    """(what stands before the type signature, the signature): split at the last ` : ` outside all brackets."""
    depth = 0
    quoted = False
    last = -1
    for i, letter in enumerate(text):
        if letter == '"':
            quoted = not quoted
        elif quoted:
            continue
        elif letter in "({[<":
            depth += 1
        elif letter in ")}]" or (letter == ">" and text[i - 1] != "-"):
            depth -= 1
        elif letter == ":" and depth == 0 and text[i - 1 : i] == " ":
            last = i
            break  # the signature itself holds no colon at depth 0
    return (text, "") if last < 0 else (text[:last], text[last + 1 :].strip())


def _split(text, comma=","):
    """Split at commas that stand outside all brackets."""
    pieces, depth, start = [], 0, 0
    for i, letter in enumerate(text):
        if letter in "({[<":
            depth += 1
        elif letter in ")}]" or (letter == ">" and text[i - 1] != "-"):
            depth -= 1
        elif letter == comma and depth == 0:
            pieces.append(text[start:i].strip())
            start = i + 1
    if text[start:].strip():
        pieces.append(text[start:].strip())
    return pieces


def _balanced(text, closing):
    """(what stands before the bracket that closes `text`, what stands after it)."""
    depth = 0
    for i, letter in enumerate(text):
        if letter in "({[<":
            depth += 1
        elif letter in ")}]" or (letter == ">" and text[i - 1] != "-"):
            if depth == 0 and letter == closing:
                return text[:i], text[i + 1 :]
            depth -= 1
    raise Unsupported(f"the simulated GPU cannot read this line of the kernel's IR: {text[:120]}")
