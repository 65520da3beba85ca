"""What a program does, counted on paper: bytes it loads and stores, and bytes that its neighbours load again."""

from __future__ import annotations

from dataclasses import dataclass, field

import torch

from kit.rules.ir import prepared
from kit.rules.traffic import Count, Counted
from kit.simulator.launch import largest_block, one_thread
from kit.simulator.values import common_shape

LANES = 1 << 19  # elements of all blocks together that are run
MOST_PROGRAMS = 256


@dataclass
class Work:
    """`programs` of a launch; `ran` of them, neighbours, were counted, and ask for `bytes` in all, masked lanes left out.

    `again` is {argument: bytes loaded over different bytes loaded}: 1 where nothing is loaded twice.
    """

    programs: int
    ran: int
    bytes: int
    again: dict = field(default_factory=dict)

    @property
    def bytes_a_program(self):
        """Bytes that a program asks for, on average."""
        return self.bytes / max(1, self.ran)


class _Places(Count):
    """Bytes added up, and for loads which ones they are."""

    def __init__(self, *args):
        super().__init__(*args)
        self.places = {}

    def record(self, op, kind, access, address, inside, itemsize, bits):
        super().record(op, kind, access, address, inside, itemsize, bits)
        if kind == "read" and bool(inside.any()):
            shape = common_shape(address.shape, inside.shape)
            place = address.expand(shape)[inside.expand(shape)].unique()
            self.places.setdefault(access.argument, []).append((place, itemsize))

    def again(self):
        """{argument: bytes loaded over different bytes loaded}."""
        different = {name: len(torch.cat([p for p, _ in parts]).unique()) * parts[0][1] for name, parts in self.places.items()}
        return {name: self.asked[name, "read"] / n for name, n in different.items()}


class _Neighbours(Counted):
    def begin(self, batch, writes=False):
        super().begin(batch, writes)
        self.footprints = self.memory.footprints = _Places(self.grid, self.memory.by_argument, set(), set())


def work_of(subject, launch):
    """The Work of a Launch on paper, from programs next to each other. Raises what dry_run raises."""
    _, program, arguments = prepared(subject, launch)
    paper = _Neighbours(program, launch.grid, arguments)
    numbers = neighbours(paper.grid, max(4, min(MOST_PROGRAMS, LANES // largest_block(program))))
    with one_thread():
        paper.explore(numbers.tolist())
    counted = paper.footprints
    return Work(launch.programs, counted.programs, sum(counted.asked.values()), counted.again())


def neighbours(grid, most):
    """Linear numbers of at most `most` programs next to each other on every axis: those that could load the same bytes."""
    x, y, z = grid
    if x * y * z <= most:
        return torch.arange(x * y * z)
    # The short axes first: programs along heads share the most, and what a short axis leaves over goes to the others.
    axes, side, left = sorted((axis for axis in range(3) if grid[axis] > 1), key=lambda axis: grid[axis]), [1, 1, 1], most
    for i, axis in enumerate(axes):
        side[axis] = max(1, min(grid[axis], int(left ** (1 / (len(axes) - i)) + 1e-9)))
        left = max(1, left // side[axis])
    c, b, a = torch.meshgrid(*(torch.arange(n) for n in side[::-1]), indexing="ij")
    return ((c * y + b) * x + a).reshape(-1)
