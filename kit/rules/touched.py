"""Which arguments a kernel reads and writes, and whether in blocks or one number at a time. Read off its IR; nothing runs."""

from __future__ import annotations

from dataclasses import dataclass, field

_WALK = {"tt.addptr", "tt.splat", "tt.unsplat", "tt.broadcast", "tt.bitcast", "tt.expand_dims", "tt.reshape", "tt.trans", "tt.cat"}
_FIRST = {  # the operand that is the address
    **{"tt.load": "loads", "tt.store": "stores", "tt.atomic_rmw": "atomics", "tt.atomic_cas": "atomics"},
    **{"tt.descriptor_load": "loads", "tt.descriptor_store": "stores", "tt.descriptor_gather": "loads"},
}


@dataclass
class Touch:
    """How one argument is used: the shapes of its loads, stores and atomics, () for one number at a time."""

    loads: list = field(default_factory=list)
    stores: list = field(default_factory=list)
    atomics: list = field(default_factory=list)

    @property
    def scalar_only(self):
        """True when it is used, and never in a block."""
        shapes = self.loads + self.stores + self.atomics
        return bool(shapes) and not any(shapes)


def touched(program):
    """{argument: Touch} of a Program (kit.simulator.reader). A pointer that may come from several arguments counts for each."""
    kernel = program.kernel
    roots = {number: {name} for number, name in zip(kernel.parameters, kernel.parameter_names, strict=True)}
    operations = list(program.operations())
    while _spread(program, operations, roots):
        pass
    found = {}
    for op in operations:
        kind = _FIRST.get(op.name)
        if kind is None:
            continue
        shape = program.types[op.operands[0]].shape if not op.name.startswith("tt.descriptor") else (1,)
        for name in roots.get(op.operands[0], ()):
            getattr(found.setdefault(name, Touch()), kind).append(shape)
    return found


def _spread(program, operations, roots):
    """Hand the arguments on by one step, through pointer arithmetic, branches, loops and calls; True when something was added."""
    before = sum(map(len, roots.values()))

    def hand(sources, targets):
        for source, target in zip(sources, targets, strict=False):
            if source in roots:
                roots.setdefault(target, set()).update(roots[source])

    for op in operations:
        if op.name in _WALK:
            hand(op.operands[:1] * len(op.results), op.results)
        elif op.name == "arith.select":
            hand(op.operands[1:2], op.results)
            hand(op.operands[2:3], op.results)
        elif op.name == "tt.make_tensor_descriptor":
            hand(op.operands[:1], op.results)
        elif op.name == "tt.call":
            callee = next((f for name, f in program.functions.items() if f"@{name}(" in op.text or f'@"{name}"(' in op.text), None)
            if callee is not None:
                hand(op.operands, callee.parameters)
        elif op.name == "scf.for":
            hand(op.operands[3:], op.regions[0].entry.arguments[1:])
            hand(op.operands[3:], op.results)
        elif op.name == "scf.while":
            hand(op.operands, op.regions[0].entry.arguments)
        for region in op.regions:
            _yields(op, region, hand)
        for label, values in op.successors:
            for function in program.functions.values():
                for block in function.body.blocks:
                    if block.label == label:
                        hand(values, block.arguments)
    return sum(map(len, roots.values())) > before


def _yields(op, region, hand):
    last = region.entry.operations[-1] if region.entry.operations else None
    if last is None:
        return
    if last.name == "scf.yield":
        hand(last.operands, op.results)
        hand(last.operands, op.regions[0].entry.arguments[1 if op.name == "scf.for" else 0 :] if op.name != "scf.if" else ())
    elif last.name == "scf.condition":
        hand(last.operands[1:], op.regions[1].entry.arguments)
        hand(last.operands[1:], op.results)
