"""Launches on paper: run a wrapper at full size without memory, and see every launch it makes."""

from __future__ import annotations

import contextlib
import math
import re
from dataclasses import dataclass

import torch
from triton.runtime import JITFunction

from kit.dry_run import Report, dry_run
from kit.ghosts import ghost
from kit.graders.noting import launches_through


@dataclass
class Launch:
    """One launch on paper: the kernel, its grid as three axes, the Report."""

    kernel: JITFunction
    grid: tuple
    report: Report

    @property
    def programs(self):
        return math.prod(self.grid)


@contextlib.contextmanager
def on_paper():
    """Inside, `kernel[grid](...)` is a dry run. Yields the list of Launches. Tensors on the meta device become ghosts."""
    launches = []

    def launched(kernel, grid, before):
        def run(*args, **meta):
            args = [_ghost(value) for value in args]
            meta = {key: _ghost(value) for key, value in meta.items()}
            report = dry_run(kernel, grid, *args, **meta)
            launches.append(Launch(kernel, (*report.grid, 1, 1)[:3], report))

        return run

    with launches_through(launched):
        yield launches


def meta(shape, dtype, strides=None, offset=0):
    """A tensor of this layout without memory: it can be sliced and asked for its strides, and a launch on paper takes it."""
    strides = strides or tuple(math.prod(max(n, 1) for n in shape[i + 1 :]) for i in range(len(shape)))
    span = offset + 1 + sum((n - 1) * s for n, s in zip(shape, strides, strict=True)) if math.prod(shape) else offset
    return torch.empty(span, dtype=dtype, device="meta").as_strided(shape, strides, offset)


def _ghost(value):
    if isinstance(value, torch.Tensor) and value.is_meta:
        return ghost(tuple(value.shape), value.dtype, tuple(value.stride()), value.storage_offset())
    return value


_DRAWN = ("grid", "overflow", "out of bounds")  # told with numbers and a picture; a dry run's other hazards with their sentence


def tell_report(trial, report, ran, facts=None):
    """Note the first error of each hazard of a Report: a refused or skipped grid is a problem of the launch, all else one of memory."""
    hazards = dict.fromkeys([*_DRAWN, *(finding.hazard for finding in report.errors)])
    for hazard in hazards:
        about = "launch" if hazard == "grid" else "memory"
        found = report.of(hazard)
        if not found or (about == "memory" and any(problem.about == "memory" for problem in trial.problems)):
            continue
        finding = found[0]
        known = {**(facts or {}), "about": about, "finding": finding, "hazard": hazard, "grid": report.grid, "findings": found}
        if hazard not in _DRAWN:
            trial.problem(about, f"{ran}: {finding.text}", known, ran=ran, where=f"line: {finding.source}", got=finding.hazard)
            continue
        trial.problem(
            about,
            f"{ran}: {_short(finding, report)}",
            known,
            ran=ran,
            where=f"line: {finding.source}" if finding.source else f"grid {report.grid}",
            got=_got(finding),
            expected=_expected(finding),
            picture=_picture(finding, report),
        )


def _short(finding, report):
    if finding.hazard == "grid":
        return finding.text
    program = report.grid and f"first in program {finding.program}"
    if finding.hazard == "overflow":
        return f"`{finding.source}` wraps: {finding.true:,} becomes {finding.wrapped:,}, {program}"
    words = finding.text.split(f"{finding.source}: ", 1)[-1].split(", first in program")[0]
    return f"`{finding.source}` {words}, {program}"


def _got(finding):
    return f"{finding.wrapped:,}" if finding.wrapped is not None and finding.hazard == "overflow" else f"{finding.true:,}"


def _expected(finding):
    if finding.hazard == "overflow":
        return f"{finding.true:,}"
    return "an axis or product within the limits" if finding.hazard == "grid" else "an offset inside the argument"


def _picture(finding, report):
    if finding.hazard == "grid":
        return grid_picture(report.grid)
    if finding.hazard == "overflow":
        marks = [
            {"at": finding.true, "label": f"meant: {finding.true:,}", "ok": True},
            {"at": finding.wrapped, "label": f"got: {finding.wrapped:,}", "ok": False, "wraps_from": finding.true},
        ]
        return {"kind": "NumberLine", "title": "The offset that wraps", "marks": marks, "unit": "elements"}
    size = re.search(r"outside its memory \(([\d,]+) element", finding.text)
    if size is None:
        return None
    n = int(size[1].replace(",", ""))
    spans = [{"start": 0, "stop": n, "label": f"the argument, {n:,} elements"}]
    marks = [{"at": finding.true, "label": f"offset {finding.true:,}", "ok": False}]
    return {
        "kind": "NumberLine",
        "title": "The offset that leaves its argument",
        "marks": marks,
        "spans": spans,
        "limits": (),
        "unit": "elements",
    }


def grid_picture(grid):
    """Bars of a grid's axes and of their product against the limits."""
    from kit import machine

    limits = machine.current().limits
    full = (*grid, 1, 1)[:3]
    rows = [
        {"label": f"grid[{axis}]", "value": max(0, n), "limit": limit, "ok": 0 <= n <= limit}
        for axis, (n, limit) in enumerate(zip(full, limits.grid, strict=True))
    ]
    product = math.prod(full)
    rows.append({"label": "product", "value": max(0, product), "limit": limits.programs, "ok": 0 <= product <= limits.programs})
    return {"kind": "Bars", "title": "The grid against its limits", "unit": "programs", "rows": rows, "scale": "log"}
