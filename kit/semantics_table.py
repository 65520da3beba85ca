"""`table`: the rules of Triton's semantics that surprise, each asked here and now in Triton, Python, NumPy and torch (semantics.py)."""

from __future__ import annotations

import functools
import html
import re
from dataclasses import dataclass

import torch
import triton
import triton.language as tl

from kit import machine
from kit.errors import BadInput, quoted
from kit.semantics import Given, Probe, parsed, probe
from kit.semantics_rows import CASES, GROUPS, PAGE, Case
from kit.semantics_worlds import Answer, same, shown, world_answer


@triton.jit
def store_kernel(x_ptr, out_ptr):
    """out[0] = x[0], in the dtype of out."""
    tl.store(out_ptr, tl.load(x_ptr))


def _stored(case):
    """The Probe of a store through a pointer of another dtype: what the kernel left, and what an assignment leaves elsewhere."""
    here, (value, dtype) = machine.current(), case.values["x"]
    x = torch.tensor([value], dtype=getattr(torch, dtype), device=here.device)
    out = torch.zeros(1, dtype=getattr(torch, case.stored), device=here.device)
    store_kernel[(1,)](x, out)
    given = (Given("x", value, "tensor", dtype), Given("out", 0, "tensor", case.stored))
    answers = {"Triton": Answer(case.code, out[0].item(), case.stored)}
    answers["Python"] = Answer()  # a name has no dtype
    answers["NumPy"] = world_answer("NumPy", parsed("out[...] = x\nout"), given, "own")
    answers["torch"] = world_answer("torch", parsed("out.copy_(x)\nout"), given, "own")
    return Probe(case.code, given, answers, here.evidence)


@dataclass(frozen=True)
class Row:
    """A Case and the Probe of it."""

    case: Case
    probe: Probe

    @property
    def as_expected(self):
        """True when Triton gave what a reader expects; False for everything whose result nothing defines."""
        answer, case = self.probe.triton, self.case
        if case.undefined or not answer.ok:
            return not case.undefined and case.expect == "an error"
        shape = (len(case.expect),) if isinstance(case.expect, list) else ()
        return case.expect != "an error" and same(answer, Answer("", case.expect, "x", shape)) and case.dtype in ("", answer.dtype)

    @property
    def expected(self):
        if isinstance(self.case.expect, str):
            return self.case.expect
        return f"{shown(self.case.expect, 'float64')} {self.case.dtype}".strip()


class Table:
    """All rows, in groups. `table["% of a tensor"]` is one row's Probe; `only` keeps some groups."""

    def __init__(self, rows, groups):
        self.rows, self.groups = rows, groups

    def __getitem__(self, name):
        """The Probe of the row called `name`."""
        if name not in self.rows:
            raise BadInput(f"table: there is no row {quoted(name)}; there are {', '.join(self.rows)}.")
        return self.rows[name].probe

    def __len__(self):
        return len(self.rows)

    def __iter__(self):
        return iter(self.rows.values())

    @property
    def surprises(self):
        """The rows in which Triton does not give what a reader expects, or what nothing defines."""
        return [row for row in self if not row.as_expected]

    @property
    def evidence(self):
        return machine.current().evidence

    def __repr__(self):
        unlike = {world: sum(world in row.probe.differing for row in self) for world in ("Python", "NumPy", "torch")}
        told = ", ".join(f"{n} from {world}" for world, n in unlike.items())
        return f"{len(self)} expressions; Triton surprises in {len(self.surprises)}; it differs in {told} [{self.evidence}]"

    def _repr_html_(self):
        head = ("", "code", "expected", "Triton", "Python", "NumPy", "torch", "how known, on which Triton")
        names = "".join(f'<th style="{_CELL};width:{width}%">{name}</th>' for name, width in zip(head, _WIDTHS, strict=True))
        body = "".join(_group_html(group, self.rows) for group in self.groups)
        table = f'<table style="table-layout:fixed;width:100%;min-width:820px"><tr>{names}</tr>{body}</table>'
        return f'<div style="overflow-x:auto"><p>{html.escape(repr(self))}</p>{table}</div>'


_WIDTHS = (12, 21, 10, 17, 10, 10, 10, 10)  # of the columns, in percent
_CELL = "text-align:left;vertical-align:top;padding:.25em .4em;white-space:normal;overflow-wrap:anywhere"
_FAINT = "opacity:.75;font-weight:normal"


def _group_html(group, rows):
    link = f'<a href="{PAGE}#{group.section}">page</a>'
    says = re.sub(r"`([^`]+)`", r"<code>\1</code>", html.escape(group.says))
    told = f'<tr><td colspan="8" style="{_CELL}"><b>{group.name}.</b> {says} ({link})</td></tr>'
    return told + "".join(_row_html(rows[case.name]) for case in group.cases)


def _row_html(row):
    case, asked = row.case, row.probe
    given = "".join(f'<div style="{_FAINT}">{html.escape(one.short)}</div>' for one in asked.given)
    code = f'<pre style="margin:0;background:none;font-size:inherit;white-space:pre-wrap">{html.escape(asked.code)}</pre>{given}'
    mark = "undefined:" if case.undefined else "✓" if row.as_expected else "✗"
    cells = [html.escape(case.name), code, html.escape(row.expected), f"<b>{mark} {_told(asked.triton, 90)}</b>"]
    cells += [("≠ " if world in asked.differing else "") + _told(answer, 0) for world, answer in asked.others.items()]
    cells += [f'<span style="{_FAINT}">{asked.evidence}, {case.versions}</span>']
    return "<tr>" + "".join(f'<td style="{_CELL}">{cell}</td>' for cell in cells) + "</tr>"


def _told(answer, room):
    """An answer in a cell: the value and its dtype, or the refusal in `room` characters; the whole of it on hovering."""
    if not answer.asked:
        return ""
    if answer.ok:
        return f'{html.escape(answer.told)}<div style="{_FAINT}">{html.escape(answer.kind)}</div>'
    words = answer.error if len(answer.error) <= room else answer.error[: room - 3] + "..." if room else ""
    return f'<span title="{html.escape(answer.error)}">refuses{": " if words else ""}{html.escape(words)}</span>'


def table(*groups):
    """The Table of these groups' rows ("Division and remainder", ...), all by default, asked here and now. Takes about ten seconds.

    Raises BadInput for a group that does not exist.
    """
    names = [group.name for group in GROUPS]
    for name in groups:
        if name not in names:
            raise BadInput(f"table: there is no group {quoted(name)}; there are {', '.join(names)}.")
    chosen = tuple(group for group in GROUPS if not groups or group.name in groups)
    return Table({case.name: Row(case, ask(case.name)) for group in chosen for case in group.cases}, chosen)


@functools.cache
def _asked(name, here):
    case = CASES[name]
    return _stored(case) if case.stored else probe(case.code, **case.own, **case.values)


def ask(name):
    """The Probe of the row called `name`, asked once on each machine."""
    if name not in CASES:
        raise BadInput(f"ask: there is no row {quoted(name)}; there are {', '.join(CASES)}.")
    return _asked(name, id(machine.current()))
