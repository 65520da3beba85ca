"""What a kernel's IR tells before it runs: which arguments it may write, and which of its stores depend on data it loads."""

from __future__ import annotations

from kit.simulator.flow import UNKNOWN, UPDATES, WRITES, Flow

_DATA = {"tt.load", "tt.atomic_rmw", "tt.atomic_cas", "tt.descriptor_load"}


def written_arguments(program):
    """Names of the arguments that a kernel may write; None when a pointer that it writes through was read from memory."""
    flow = Flow(program)
    places = set().union(*(flow.touched(op) for op in flow.memory if op.name in WRITES | UPDATES))
    return None if UNKNOWN in places else {program.kernel.parameter_names[place] for place in places}


def data_dependent(program):
    """The ids of the stores whose address, mask, or execution depends on loaded values. Computed once for a Program."""
    if not hasattr(program, "data_dependent"):
        walk = _Walk(program)
        while walk.again():
            pass
        program.data_dependent = walk.stores
    return program.data_dependent


class _Walk:
    """Values that come from data, found by going over the kernel until nothing is added."""

    def __init__(self, program):
        self.program = program
        self.values, self.stores = set(), set()

    def again(self):
        """Go over the kernel once; True when something was added."""
        before = len(self.values), len(self.stores)
        for function in self.program.functions.values():
            self.region(function.body, len(self.program.functions) > 1 and function is not self.program.kernel)
        return before != (len(self.values), len(self.stores))

    def hand(self, sources, targets):
        self.values.update(target for source, target in zip(sources, targets, strict=False) if source in self.values)

    def region(self, region, under):
        """Walk a region; `under` says that whether it runs depends on data."""
        blocks = {block.label: block for block in region.blocks}
        for block in region.blocks:
            for op in block.operations:
                if op.name == "tt.store" and (under or self.values.intersection((op.operands[0], *op.operands[2:]))):
                    self.stores.add(id(op))
                self.operation(op, under)
                for label, values in op.successors:
                    self.hand(values, blocks[label].arguments)
                # What stands behind a branch on data, an early return for one, runs for some programs only.
                under = under or (op.name == "cf.cond_br" and op.operands[0] in self.values)

    def operation(self, op, under):
        if op.name in _DATA:
            self.values.update(op.results)
        elif op.name == "scf.for":
            body = op.regions[0]
            self.hand(op.operands[3:], body.entry.arguments[1:])
            self.hand(op.operands[:1], body.entry.arguments[:1])
            self.inside(op, [body], body.entry.arguments[1:], under or bool(self.values.intersection(op.operands[:3])))
            self.hand(op.operands[3:], op.results)
        elif op.name == "scf.if":
            self.inside(op, op.regions, (), under or op.operands[0] in self.values)
            if op.operands[0] in self.values:
                self.values.update(op.results)
        elif op.name == "scf.while":
            self.loop(op, under)
        else:
            if self.values.intersection(op.operands):
                self.values.update(op.results)
            if op.name in ("tt.reduce", "tt.scan"):
                return
            for region in op.regions:
                self.region(region, under)

    def inside(self, op, regions, carried, under):
        """Walk the regions of a loop or branch; what they yield becomes the results, and is carried on."""
        for region in regions:
            self.region(region, under)
            last = region.entry.operations[-1] if region.entry.operations else None
            if last is not None and last.name == "scf.yield":
                self.hand(last.operands, op.results)
                self.hand(last.operands, carried)

    def loop(self, op, under):
        before, after = op.regions
        self.hand(op.operands, before.entry.arguments)
        self.region(before, under)
        test, *passed = before.entry.operations[-1].operands
        self.hand(passed, after.entry.arguments)
        self.hand(passed, op.results)
        self.inside(op, [after], before.entry.arguments, under or test in self.values)
