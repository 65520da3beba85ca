"""How many bytes a launch has to move: of each argument what it asks for on paper, but no more than there is of it.

A byte that several programs ask for counts once, as the operation needs it once (kit.bench asks for the same count). For a launch that
is too large to run in full on paper, what some of its programs ask for stands for all.
"""

from __future__ import annotations

import torch

from kit.errors import KitError
from kit.paper import Paper
from kit.rules.stakes import compiled_as, without_class
from kit.simulator.driver import live_arguments
from kit.simulator.footprints import Footprints
from kit.simulator.launch import one_thread, read_program
from kit.simulator.values import common_shape

PROGRAMS = 48  # that stand for all of a large launch


def moved(subject, launch):
    """(bytes, {argument: (read, written)}, True when it was looked at on paper) of a Launch on paper.

    False: the kernel could not be followed, and the bytes are those of all tensors.
    """
    try:
        asked = _asked(subject, launch)
    except KitError:
        return launch.bytes, {}, False
    found = {}
    for (name, kind), count in asked.items():
        held = launch.tensors[name].numel() * launch.tensors[name].element_size()
        read, written = found.get(name, (0, 0))
        count = min(int(count), held)
        found[name] = (read, max(written, count)) if kind == "write" else (count, count if kind == "atomic" else written)
    total = sum(read + written for read, written in found.values())
    return (total, found, True) if total else (launch.bytes, {}, False)


def _asked(subject, launch):
    """{(argument, "read" | "write" | "atomic"): bytes} that the launch's programs ask for."""
    # Without classes one variant serves all sizes: an integer of 1, say, is a plain argument in it.
    plain = {p.name: launch.named[p.name] for p in subject.kernel.params if not p.is_constexpr and type(launch.named[p.name]) is int}
    build = compiled_as(subject, launch, {name: without_class(value) for name, value in plain.items()})
    program = read_program(build.ttir, subject.kernel.fn.__code__.co_filename)
    paper = Counted(program, launch.grid, live_arguments(list(build.compiled.src.signature.items()), list(launch.named.values())))
    with one_thread():
        if paper.total > PROGRAMS:
            paper.explore(torch.linspace(0, paper.total - 1, PROGRAMS, dtype=torch.float64).round().to(torch.int64).unique().tolist())
        elif paper.total:
            paper.explore()
    scale = paper.total / max(1, paper.footprints.programs)
    return {key: count * scale for key, count in paper.footprints.asked.items()}


class Counted(Paper):
    """A Paper that counts bytes, and keeps no access."""

    def begin(self, batch, writes=False):
        super().begin(batch, writes)
        self.footprints = self.memory.footprints = Count(self.grid, self.memory.by_argument, set(), set())

    def run(self, numbers):
        if not self.footprints.closed:
            self.footprints.programs += len(numbers)
        super().run(numbers)


class Count(Footprints):
    """Footprints that are added up."""

    def __init__(self, *args):
        super().__init__(*args)
        self.asked, self.programs = {}, 0

    def record(self, op, kind, access, address, inside, itemsize, bits):
        if self.closed:
            return
        shape = common_shape(address.shape, inside.shape)
        shape = (max(len(access.programs), shape[0]), *shape[1:])
        key = (access.argument, kind)
        self.asked[key] = self.asked.get(key, 0) + itemsize * int(inside.expand(shape).sum())
