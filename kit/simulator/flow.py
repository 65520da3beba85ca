"""Where values go in a kernel: which arguments a pointer can come from, and whose copies of a value matter."""

from __future__ import annotations

from functools import cached_property

UNKNOWN = "?"  # a pointer that was read from memory
READS = {"tt.load"}
WRITES = {"tt.store"}
UPDATES = {"tt.atomic_rmw", "tt.atomic_cas"}
MEMORY = READS | WRITES | UPDATES
# Operations after which another warp may need what this one holds.
_SPREADS = {
    *("tt.splat", "tt.unsplat", "tt.expand_dims", "tt.broadcast", "ttg.convert_layout", "tt.reshape", "tt.trans", "tt.join", "tt.split"),
    *("tt.cat", "tt.reduce", "tt.scan", "tt.gather", "tt.histogram", "tt.dot", "ttng.warp_group_dot", "ttg.local_alloc", "ttg.local_store"),
    *("scf.if", "scf.for", "scf.while", "scf.condition", "cf.cond_br", "cf.br", "tt.call", "tt.return"),
}


class Flow:
    """The flow of values in one Program, as its operations are written.

    `stays` tells of an operation that could hand values to other warps that it does not; left out, each that could does.
    """

    def __init__(self, program, stays=lambda op: False):
        self.program, self.stays = program, stays
        self.operations = list(program.operations())
        self.memory = [op for op in self.operations if op.name in MEMORY]

    @cached_property
    def edges(self):
        """[(value, value that it becomes, operation)]."""
        found = []
        for op in self.operations:
            found += [(source, target, op) for source, target in self._edges(op)]
        return found

    def _edges(self, op):
        if op.name == "scf.for":
            carried, body = op.operands[3:], op.regions[0].entry
            yielded = _yielded(body)
            yield from zip([*carried, *yielded] * 2, [*body.arguments[1:]] * 2 + [*op.results] * 2)
        elif op.name == "scf.while":
            before, after = (region.entry for region in op.regions)
            passed = _yielded(before)[1:]
            yield from zip([*op.operands, *_yielded(after)], before.arguments * 2)
            yield from zip(passed * 2, [*after.arguments, *op.results])
        elif op.name == "scf.if":
            for region in op.regions:
                yield from zip(_yielded(region.entry), op.results)
        elif op.name in ("cf.br", "cf.cond_br"):
            blocks = {block.label: block for block in self._blocks_beside(op)}
            for label, values in op.successors:
                yield from zip(values, blocks[label].arguments)
        elif op.name == "tt.call":
            function = next(f for name, f in self.program.functions.items() if f"@{name}(" in op.text or f'@"{name}"' in op.text)
            yield from zip(op.operands, function.parameters)
            for block in function.body.blocks:
                for inner in block.operations:
                    if inner.name == "tt.return":
                        yield from zip(inner.operands, op.results)
        else:
            sources = op.operands[:1] if op.name == "tt.addptr" else op.operands
            yield from ((source, result) for result in op.results for source in sources)

    def _blocks_beside(self, op):
        return next(
            f.body.blocks for f in self.program.functions.values() if any(one is op for block in f.body.blocks for one in block.operations)
        )

    # ---- pointers
    @cached_property
    def origins(self):
        """{value: the kernel's parameters (by place) that it can point into, or UNKNOWN}, of values that come from a pointer."""
        origins = {number: {i} for i, number in enumerate(self.program.kernel.parameters) if self._points(number)}
        for op in self.operations:
            if op.name in MEMORY and op.results and (op.types[0].is_pointer or op.types[0].element == "i64"):
                origins[op.results[0]] = {UNKNOWN}
        edges = [(a, b) for a, b, op in self.edges if op.name not in MEMORY]
        _spread(origins, edges)
        return origins

    def _points(self, number):
        kind = self.program.types[number]
        return kind.is_pointer or kind.element.startswith("tensordesc<")

    def touched(self, op):
        """The parameters, by place, that a memory operation can touch; UNKNOWN among them for an address read from memory."""
        return self.origins.get(op.operands[0]) or {UNKNOWN}

    @cached_property
    def access(self):
        """(what loads can touch, what stores can touch, what atomics can touch): sets of parameters by place."""
        return tuple(set().union(*(self.touched(op) for op in self.memory if op.name in names)) for names in (READS, WRITES, UPDATES))

    @cached_property
    def used(self):
        """Every value that some operation reads."""
        return {n for op in self.operations for n in (*op.operands, *(v for _, values in op.successors for v in values))}

    # ---- copies
    @cached_property
    def spread(self):
        """Values of which the copies that no store takes matter: they reach another layout, a branch, or the other warps."""
        needed = {}
        for op in self.operations:
            if op.name in _SPREADS and not self.stays(op):
                carries = {a for a, _ in self._edges(op)} if op.name.startswith(("scf.", "cf.")) else ()
                for number in op.operands[:1] if op.name == "scf.condition" else op.operands:
                    if number not in carries:
                        needed[number] = {True}
        edges = [(b, a) for a, b, op in self.edges if op.name not in UPDATES]
        _spread(needed, edges)
        return needed.keys()


def _yielded(block):
    last = block.operations[-1] if block.operations else None
    return list(last.operands) if last is not None and last.name in ("scf.yield", "scf.condition") else []


def _spread(marks, edges):
    """Hand each value's marks on along `edges`, until nothing changes."""
    following = {}
    for source, target in edges:
        following.setdefault(source, []).append(target)
    todo = list(marks)
    while todo:
        source = todo.pop()
        for target in following.get(source, ()):
            have = marks.setdefault(target, set())
            if not marks[source] <= have:
                have |= marks[source]
                todo.append(target)
