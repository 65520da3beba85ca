"""A kernel as the simulator has it: operations in blocks, blocks in regions, each value a number with a type."""

from __future__ import annotations

import re
from dataclasses import dataclass, field

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
