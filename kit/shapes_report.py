"""What became of a Case's memory: cells overwritten outside its tensors, elements never written, and the tables that show them."""

from __future__ import annotations

import html
from dataclasses import dataclass

import torch

from kit import machine
from kit.shapes_buffer import BITS
from kit.shapes_layouts import bare


@dataclass(frozen=True)
class Damage:
    """One thing that happened to one argument's memory. `kind`: "overwritten" (cells outside the tensor, or in one that the kernel does
    not store to), "never written" or "wrong" (elements). `first` is an element offset for cells, an index for elements."""

    argument: str
    kind: str
    count: int
    of: int
    first: object
    where: str = ""
    got: str = ""
    expected: str = ""

    @property
    def text(self):
        name = bare(self.argument)
        if self.kind == "overwritten":
            cells = f"{self.count:,} cell{'s' if self.count > 1 else ''}"
            if self.where == "inside":
                return f"{cells} of {name} changed, which the kernel is not seen to store to, the first at element offset {self.first:,}"
            return f"{cells} {self.where} {name} overwritten, the first at element offset {self.first:,}"
        index = ", ".join(f"{i:,}" for i in self.first)
        place = f"element {index} of {name}" if index else name
        if self.kind == "never written":
            return f"{place} was never written ({self.count:,} of {self.of:,})"
        return f"{place} is {self.got}, expected {self.expected} ({self.count:,} of {self.of:,} wrong)"


@dataclass(frozen=True)
class Checked:
    """What `case.check()` saw. True when no cell outside a tensor was overwritten, every element of the outputs written, and none wrong."""

    kernel: str
    case: str
    damage: tuple
    evidence: str
    states: dict

    def __bool__(self):
        return not self.damage

    def of(self, kind):
        """The damage of one kind: "overwritten", "never written" or "wrong"."""
        return [one for one in self.damage if one.kind == kind]

    @property
    def overwritten(self):
        """The cells outside the tensors that were overwritten, a Damage for each argument and side."""
        return self.of("overwritten")

    @property
    def unwritten(self):
        """The elements of outputs that were never written, a Damage for each argument."""
        return self.of("never written")

    def __repr__(self):
        head = f"{self.kernel} at {self.case}"
        if self:
            return f"{head}: every element written, nothing else touched [{self.evidence}]"
        return f"{head}: {'; '.join(one.text for one in self.damage)} [{self.evidence}]"

    def picture(self, argument=None):
        """Cells of the first damaged argument, or of `argument`, round the first cell that is not right."""
        from kit.pictures import Cells

        name = argument or (self.damage[0].argument if self.damage else next(iter(self.states)))
        states, offset = self.states[name]
        bad = states.nonzero()
        start = max(0, (int(bad[0, 0]) if len(bad) else offset) // 32 * 32 - 128)
        names = ("right, or not to be written", "overwritten or wrong", "never written")
        rows = states[start : start + 512].tolist()
        return Cells(f"{bare(name)} and the cells round it", rows=rows, names=names, first=start - offset, evidence=self.evidence)

    def _repr_html_(self):
        from kit.evidence import label_html

        text = html.escape(repr(self).rsplit(" [", 1)[0])
        return f"<p>{'✓' if self else '✗'} {text} {label_html(self.evidence)}</p>"


def inspect_case(case, expected):
    """The Checked of a Case whose kernel has run."""
    damage, states, done = [], {}, set()
    for name, buffer in case.buffers.items():
        if id(buffer) in done:
            continue
        done.add(id(buffer))
        shared = [other for other, its in case.buffers.items() if its is buffer]
        wanted = next((expected[other] for other in shared if other in expected), None)
        found, cells = _of_buffer(name, buffer, any(n in case.plan.stored for n in shared), case.plan.output(name), wanted)
        damage += found
        states[name] = (cells.cpu(), buffer.offset)
    return Checked(case.plan.kernel.__name__, case.name, tuple(damage), machine.current().evidence, states)


def _of_buffer(name, buffer, stored, output, wanted):
    """([Damage], state of each cell: 0, 1 overwritten or wrong, 2 never written) of one argument."""
    changed, outside = buffer.changed(), buffer.outside()
    stray = changed & outside
    damage = []
    last = buffer.offset + buffer.span
    cell = torch.arange(len(changed), device=changed.device)
    sides = (("in front of", cell < buffer.offset), ("between the elements of", (cell >= buffer.offset) & (cell < last)))
    for where, side in (*sides, ("behind", cell >= last)):
        at = (stray & side).nonzero()
        if len(at):
            damage.append(Damage(name, "overwritten", len(at), len(changed), int(at[0, 0]) - buffer.offset, where))
    states = stray.to(torch.uint8)
    inside = buffer.of_view(changed)
    if not stored and bool(inside.any()):
        at = (changed & ~outside).nonzero()
        damage.append(Damage(name, "overwritten", len(at), len(changed), int(at[0, 0]) - buffer.offset, "inside"))
        states |= changed.to(torch.uint8)
    if not stored or not buffer.view.numel():
        return damage, states
    missing = ~inside if output else torch.zeros_like(inside)
    wrong = torch.zeros_like(inside)
    if wanted is not None:
        wrong = ~_close(buffer.view, wanted)
        missing &= wrong
        wrong &= ~missing
    for kind, mask in (("never written", missing), ("wrong", wrong)):
        at = mask.nonzero()
        if len(at):
            index = tuple(at[0].tolist())
            got, right = _shown(buffer.view[index]), "" if wanted is None else _shown(wanted.expand(buffer.shape)[index])
            damage.append(Damage(name, kind, len(at), buffer.view.numel(), index, got=got, expected=right))
    view = buffer.of_view(states)
    view.copy_(torch.where(missing, 2, torch.where(wrong, 1, view.long())).to(torch.uint8))
    return damage, states


def _close(got, wanted):
    """Element by element, with the tolerance of torch.testing.assert_close for the dtype."""
    wanted = wanted.to(got.device)
    if not got.dtype.is_floating_point:
        return (got.view(BITS[got.dtype.itemsize]) if got.dtype is torch.bool else got) == wanted
    rtol, atol = {
        torch.float64: (1e-7, 1e-7),
        torch.float32: (1.3e-6, 1e-5),
        torch.float16: (1e-3, 1e-5),
        torch.bfloat16: (1.6e-2, 1e-5),
    }.get(got.dtype, (0.125, 1e-2))
    return torch.isclose(got.double(), wanted.double(), rtol=rtol, atol=atol, equal_nan=True)


def _shown(value):
    value = value.item()
    return (
        f"{value:.4g}"
        if isinstance(value, float)
        else f"{value:,}"
        if isinstance(value, int) and not isinstance(value, bool)
        else f"{value}"
    )


def cases_html(cases):
    """The table of a Cases: a row each, the sizes, and the tensor that is a view."""
    left = '<td style="text-align:left">'
    names = list(cases[0].sizes)
    head = "".join(f"<th>{html.escape(name)}</th>" for name in names)
    rows = ""
    for number, case in enumerate(cases):
        sizes = "".join(f"<td>{case.sizes[name]:,}</td>" for name in names)
        view = "" if case.argument is None else f"{bare(case.argument)}: {case.layout}"
        rows += f"<tr><td>{number}</td>{sizes}{left}{html.escape(case.size)}</td>{left}{html.escape(view)}</td></tr>"
    table = f'<table><tr><th></th>{head}<th style="text-align:left">which size</th><th style="text-align:left">view</th></tr>{rows}</table>'
    notes = "".join(f"<p>{html.escape(note)}.</p>" for note in cases.notes)
    return f"<p>{html.escape(repr(cases).split(';')[0])}</p>{table}{notes}"
