"""Which arguments a kernel reads and writes, and whether in blocks or one number at a time. Read off its IR; nothing runs."""

from __future__ import annotations

from dataclasses import dataclass, field

from kit.simulator.flow import UNKNOWN, Flow

_KINDS = {  # of operations whose first operand is the address
    **dict.fromkeys(("tt.load", "tt.descriptor_load", "tt.descriptor_gather"), "loads"),
    **dict.fromkeys(("tt.store", "tt.descriptor_store", "tt.descriptor_scatter"), "stores"),
    **dict.fromkeys(("tt.atomic_rmw", "tt.atomic_cas", "tt.descriptor_reduce"), "atomics"),
}


@dataclass
class Touch:
    """How one argument is used: the shapes of its loads, stores and atomics, () for one number at a time."""

    loads: list = field(default_factory=list)
    stores: list = field(default_factory=list)
    atomics: list = field(default_factory=list)

    @property
    def read(self):
        """Whether the kernel reads from it, by a load or an atomic."""
        return bool(self.loads or self.atomics)

    @property
    def written(self):
        """Whether the kernel writes to it, by a store or an atomic."""
        return bool(self.stores or self.atomics)

    @property
    def scalar_only(self):
        """True when it is used, and never in a block."""
        shapes = self.loads + self.stores + self.atomics
        return bool(shapes) and not any(shapes)


def touched(program, names):
    """{argument: Touch} of a Program (kit.simulator.program), of those that it touches; `names` are its parameters' names, in order.

    The IR's own names will not do: an argument that is bound to a second name takes that one. A pointer that may come from several
    arguments counts for each; one that was itself loaded from memory belongs to none.
    """
    flow, found = Flow(program), {}
    for op in flow.operations:
        kind = _KINDS.get(op.name)
        if kind is None:
            continue
        shape = (1,) if op.name.startswith("tt.descriptor") else program.types[op.operands[0]].shape
        for place in flow.touched(op) - {UNKNOWN}:
            getattr(found.setdefault(names[place], Touch()), kind).append(shape)
    return found
