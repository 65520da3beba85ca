"""One case of kit.shapes tried: first on paper, then, where nothing leaves its tensors, launched, and compared with the truth."""

from __future__ import annotations

import math
from dataclasses import dataclass, field

import torch

from kit.dry_run import dry_run
from kit.errors import KitError
from kit.rules.subject import MANY, Launch
from kit.rules.truth import copied, distance, expected, loose, shown

STOPS = ("out of bounds", "misaligned", "overflow", "assertion", "wait between programs", "undefined value")


@dataclass
class Trial:
    """What became of a case. `launch` is None where it could not be made. `findings` are those of paper, `wrong` what a launch showed:
    [(argument, sentence, numbers)]; `left` the written tensors."""

    case: object
    launch: Launch | None = None
    why: str = ""
    findings: list = field(default_factory=list)
    wrong: list = field(default_factory=list)
    left: dict = field(default_factory=dict)
    launched: bool = False
    checked: bool = False
    error: float = 0.0

    @property
    def view(self):
        return self.case.argument is not None


def tried(subject, case, bounds, beside=None):
    """The Trial of `case`. `bounds` is {argument: bound on the distance}; `beside` a Trial with the same values in plain tensors."""
    trial = Trial(case)
    try:
        trial.launch = _launch(subject, case)
    except Exception as error:  # make_args and grid are the reader's: a size they refuse is counted, and no finding
        trial.why = f"{type(error).__name__}: {error}"
        return trial
    launch = trial.launch
    if launch.programs == 0 or launch.bytes == 0 or any(tensor.numel() == 0 for tensor in launch.tensors.values()):
        return trial  # an empty grid does nothing; an empty tensor has no address to watch
    if launch.programs > MANY:
        trial.why = f"the launch has {launch.programs:,} programs"
        return trial
    want = _wanted(subject, case)
    trial.checked = want is not None
    report = dry_run(subject.kernel, launch.grid, *launch.args, **launch.meta)
    trial.findings = [f for f in report.findings if f.verdict != "remark"]
    if any(f.wrong and f.hazard in STOPS + ("grid",) for f in trial.findings):
        return trial
    subject.kernel[launch.grid](*launch.args, **launch.meta)
    trial.launched = True
    for damage in case.check().overwritten:
        trial.wrong.append((damage.argument, damage.text, {"cells": damage.count, "first": damage.first}))
    trial.left = {name: tensor.detach().clone() for name, tensor in case.outputs.items()}
    if want is None and beside is not None:
        want = beside.left
    for name, truth in (want or {}).items():
        if name in trial.left:
            _compare(trial, name, truth, bounds.get(name))
    return trial


def _launch(subject, case):
    """The Launch of a case: its own arguments and strides; grid and options as a launch of its size has them."""
    strides = case.plan.strided[case.argument].axes.values() if case.argument else ()
    changed = {key: case.constants[key] for key in strides if key in case.constants}
    return subject.launch_of(case.sizes, case.args, changed)


def _wanted(subject, case):
    """What the reference says of a case, in float64 where it takes that, since in 16 bits it would round more than the kernel does.

    None where there is no reference, or it refuses the size.
    """
    if subject.reference is None:
        return None
    args = [copied_like(value) for value in case.args]
    for dtype in (torch.float64, None):
        try:
            return expected(subject, args, dtype)
        except KitError:
            raise
        except Exception:  # the reader's reference may refuse float64, a size of 0, or a view
            continue
    return None


def copied_like(value):
    """A contiguous copy of a tensor: the reference is about values, not about layout."""
    return copied(value).contiguous() if isinstance(value, torch.Tensor) else value


def _compare(trial, name, truth, bound):
    got, buffer = trial.left[name], trial.case.buffers[name]
    apart = distance(got, truth)
    written = buffer.of_view(buffer.changed())
    if not bool(written.all()) and trial.case.plan.output(name):
        # What nobody wrote holds poison here, and held what make_args put there in the reader's launch: where that is right, it is right.
        made = dict(zip(trial.case.plan.kernel.arg_names, trial.case.plan.made(trial.case.sizes), strict=False)).get(name)
        if made is not None and tuple(made.shape) == tuple(got.shape):
            apart = torch.where(written, apart, torch.minimum(apart, distance(made, truth)))
    bound = loose(got.dtype) if bound is None else bound
    bad = apart > bound
    finite = apart[apart.isfinite()]
    trial.error = max(trial.error, float(apart.max()) if apart.numel() else 0.0)
    if not bool(bad.any()):
        return
    index = tuple(bad.nonzero()[0].tolist())
    place = f"element {', '.join(f'{i:,}' for i in index)} of {name}" if index else name
    unwritten = not bool(written[index])
    said = "was never written" if unwritten else f"is {shown(got[index])}"
    text = f"{place} {said}, expected {shown(truth[index])} ({int(bad.sum()):,} of {bad.numel():,} wrong)"
    numbers = {"index": list(index), "wrong": int(bad.sum()), "of": bad.numel(), "never_written": unwritten}
    numbers["distance"] = float(finite.max()) if finite.numel() else math.inf
    trial.wrong.append((name, text, numbers))
