"""A suspect of the hunt, and what a run of it shows: signs, read off a run on paper, the values, and what the compiler made of it."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

import torch

from kit import machine
from kit.build import build
from kit.ghosts import ghost
from kit.graders.buffers import OUTSIDE, Buffer
from kit.graders.ex08_rule import MULTIPROCESSORS, TILES, rule
from kit.graders.noting import noted
from kit.graders.paper import meta, on_paper

RTOL, ATOL = 2e-3, 1e-6  # float16 rounds to 5e-4; no fault of the hunt is that small


@dataclass(frozen=True)
class Suspect:
    """A kernel of the hunt, with its launch.

    `rule` is the rule that it breaks, or "right"; `mended` the wrapper without the fault. A wrapper takes the inputs, then `out`;
    `reference` takes the inputs, and `out_of` them gives (shape, dtype) of `out`. `usual(device)` are the inputs of the exercise's own
    test, `cases(device)` is {title: inputs} that a right kernel passes, and `shown(device)` one input that shows the fault. `cost` names
    the instruments besides paper and values: "spills", "variants", "programs". `look` says which tool to look with.
    """

    name: str
    rule: int | str
    wrapper: Any
    reference: Any
    out_of: Any
    usual: Any
    cases: Any
    look: str
    mended: Any = None
    shown: Any = None
    cost: tuple = ()


@dataclass
class Sign:
    """One thing that a run showed. `kind`: a hazard of dry_run, "values", "outside", "spills", "variants", "programs" or "idle"."""

    kind: str
    text: str
    got: str = ""
    expected: str = ""
    picture: dict | None = field(default=None, repr=False)

    @property
    def memory(self):
        """True when it is about memory that is not the kernel's own, or in no order."""
        return self.kind not in ("grid", "values", "spills", "variants", "programs", "idle")


def given(inputs):
    """The inputs in short, as a reader would call them: (2, 768) float32, 5."""
    return ", ".join(map(_shown, inputs))


def _shown(value):
    if hasattr(value, "shape") and hasattr(value, "dtype"):
        kind = "ghost " if is_paper(value) else ""
        spread = "" if _packed(value) else f" with strides {tuple(value.stride())}"
        return f"{kind}{tuple(value.shape)} {str(value.dtype).removeprefix('torch.')}{spread}"
    return f"{value!r:.40}"


def _packed(value):
    wanted = 1
    for n, stride in reversed(list(zip(value.shape, value.stride()))):
        if n > 1 and stride != wanted:
            return False
        wanted *= max(n, 1)
    return True


def is_paper(value):
    """True for what has a shape and no memory: a ghost, a tensor on the meta device."""
    return hasattr(value, "shape") and (not isinstance(value, torch.Tensor) or value.is_meta)


def signs(suspect, wrapper, inputs, call=None):
    """[Sign] of `wrapper` on `inputs`: first on paper, then, where that is clean and all inputs have memory, by its values.

    `call(function, *args)` calls the wrapper (a grader's own way); an exception is raised as it is. What paper finds is never launched.
    """
    call = call or (lambda function, *args: function(*args))
    shape, dtype = suspect.out_of(*inputs)
    with on_paper() as launches, noted() as noticed:
        call(wrapper, *inputs, meta(shape, dtype))
    found = [_of_finding(one) for launch in launches for one in launch.report.errors[:1]]
    if not launches:
        return [Sign("grid", "no kernel is launched", "0 launches", "1")]
    found += [sign for cost in suspect.cost for sign in _COSTS[cost](suspect, wrapper, inputs, noticed, launches)]
    if not any(sign.memory or sign.kind == "grid" for sign in found) and not any(map(is_paper, inputs)):
        found += values(suspect, wrapper, inputs, call)
    return found


def _of_finding(finding):
    words = finding.text if finding.hazard == "grid" else finding.text.split(": ", 1)[-1]
    return Sign(finding.hazard, words, finding.hazard, "nothing found on paper")


def values(suspect, wrapper, inputs, call):
    """The Signs of a real launch: wrong values, and guard cells of `out` that were overwritten."""
    shape, dtype = suspect.out_of(*inputs)
    out = Buffer(shape, dtype)
    call(wrapper, *inputs, out.view)
    wanted = suspect.reference(*inputs).to(out.view.device)
    same = torch.isclose(out.view.double(), wanted.double(), rtol=RTOL, atol=ATOL, equal_nan=True)
    found = []
    if not same.all():
        index = tuple(int(n) for n in (~same).nonzero()[0])
        got, want = out.view[index].item(), wanted[index].item()
        wrong = int((~same).sum())
        text = f"out[{', '.join(map(str, index))}] is {got:.6g}, expected {want:.6g} ({wrong:,} of {same.numel():,} wrong)"
        cells = (~same).flatten()[: 32 * 16].int().tolist()
        picture = {"kind": "Cells", "title": f"{suspect.name}: right and wrong elements", "rows": cells, "names": ("right", "wrong")}
        found.append(Sign("values", text, f"{got:.6g}", f"{want:.6g}", picture))
    if (out.states(wanted) == OUTSIDE).any():
        found.append(Sign("outside", "cells outside out are overwritten", "overwritten", "untouched"))
    return found


# ---- what a launch costs
def _spills(suspect, wrapper, inputs, noticed, launches):
    for kernel, args, options in noticed:
        made = build(kernel, *map(_ghostly, args), **{name: _ghostly(value) for name, value in options.items()})
        if made.spills:
            yield Sign("spills", f"{made.spills:,} bytes a thread are spilled", f"{made.spills:,} bytes", "no spills")


def _variants(suspect, wrapper, inputs, noticed, launches):
    """A Sign where these inputs need another compiled variant than the usual ones do."""
    usual = suspect.usual(machine.current().device)
    with on_paper(), noted() as warm:
        wrapper(*usual, meta(*suspect.out_of(*usual)))
    for (kernel, args, options), (_, now, other) in zip(warm, noticed):
        made = build(kernel, *map(_ghostly, args), **options)
        known = made.variants([(tuple(map(_ghostly, args)), options)])
        new = made.variants([(tuple(map(_ghostly, now)), other)]) - known
        if new:
            yield Sign("variants", f"compiled again after {given(usual)}", f"{len(new)} new variant", "the variant of before")


def _programs(suspect, wrapper, inputs, noticed, launches):
    """A Sign where programs are too small for many tokens, or too few for few; by the rule of exercise 08.3."""
    tokens, heads, size = inputs[0].shape
    programs = sum(launch.programs for launch in launches)
    elements = tokens * heads * size
    most, least = elements // TILES[0], min(MULTIPROCESSORS, -(-elements // TILES[0]))
    if rule(tokens, heads, size) > TILES[0] and programs > 1.5 * most:
        text = f"{programs:,} programs of {elements // programs:,} elements, where {most:,} of 1,024 would do"
        yield Sign("programs", text, f"{programs:,} programs", f"about {most:,} or fewer")
    elif programs < least:
        text = f"{programs:,} programs, where {least} would keep as many multiprocessors busy"
        yield Sign("idle", text, f"{programs:,} programs", f"{least} or more")


_COSTS = {"spills": _spills, "variants": _variants, "programs": _programs}


def _ghostly(value):
    """A tensor on the meta device as a ghost; all else as it is."""
    if isinstance(value, torch.Tensor) and value.is_meta:
        return ghost(tuple(value.shape), value.dtype, tuple(value.stride()), value.storage_offset())
    return value
