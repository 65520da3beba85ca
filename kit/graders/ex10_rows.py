"""How exercise 10 judges a kernel that works on rows: on plain rows of edge lengths first, then on every hard input, against float64."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import torch

from kit import machine
from kit.ghosts import ghost
from kit.graders.buffers import OUTSIDE, RIGHT, UNWRITTEN, WRONG, Buffer, compare
from kit.graders.launching import compiles, launch, on_paper
from kit.graders.step import counted
from kit.numbers import close, hard_inputs, roundoff

N_ROWS, HARD_LENGTH = 3, 300  # a length that is no multiple of a block


@dataclass(frozen=True)
class Task:
    """What a step's kernel is given and should give.

    `args(x, out, n)` are those of a launch, `out_shape(rows, n)` and `out_dtype(dtype)` those of its output `out`; `reference(x)` is the
    truth in float64, `scale(x, want)` the magnitudes that were added up or None, `within(dtype, n)` the Tolerance. `sizes` are the lengths
    of the plain cases, `left_out(dtype)` the hard inputs that are left out for a dtype, `more` further rows, (name, value) each.
    """

    out: str
    axes: tuple
    args: Callable
    out_shape: Callable
    out_dtype: Callable
    reference: Callable
    within: Callable
    sizes: tuple
    dtypes: tuple
    left_out: Callable
    scale: Callable = lambda x, want: None
    more: tuple = ()


@dataclass
class Run:
    """One launch: input, output, truth, as float64 on the CPU, and the worst error in units of its bound."""

    name: str
    ran: str
    x: torch.Tensor
    got: torch.Tensor
    want: torch.Tensor
    error: float
    buffer: Buffer

    @property
    def wrong(self):
        return self.error > 1


class Judged(Buffer):
    """An output Buffer whose elements are right where `kit.numbers.close` says so."""

    def __init__(self, shape, dtype, within, scale):
        super().__init__(shape, dtype)
        self.within, self.scale = within, scale

    def judgement(self, expected):
        return close(self.view, expected, within=self.within, scale=self.scale)

    def states(self, expected=None):
        changed = self.changed()
        states = torch.where(changed, OUTSIDE, RIGHT)
        inside = self.of_view(states)
        wrong = self.judgement(expected).errors > 1
        inside.copy_(torch.where(~wrong, RIGHT, torch.where(self.of_view(changed), WRONG, UNWRITTEN)))
        return states.cpu()


def grade_rows(kernel, trial, task):
    """Judge `kernel` on the plain cases of `task`, each on paper first, then on the hard inputs in each dtype, then on one element."""
    trial.evidence = machine.current().evidence
    for n in task.sizes:
        _plain(kernel, trial, task, n, torch.float32)
    for dtype in task.dtypes:
        _hard(kernel, trial, task, dtype)
        _plain(kernel, trial, task, 1, dtype)


def _short(dtype):
    return str(dtype).removeprefix("torch.")


def _plain(kernel, trial, task, n, dtype):
    ran = f"{N_ROWS} rows of {counted(n, 'element')} in {_short(dtype)}"
    x = torch.randn(N_ROWS, n, generator=torch.Generator().manual_seed(n)).to(dtype)
    facts = {"kernel": kernel, "plain": True, "n": n, "dtype": dtype}
    paper = task.args(ghost((N_ROWS, n), dtype), ghost(task.out_shape(N_ROWS, n), task.out_dtype(dtype)), n)
    compiles(trial, kernel, paper, ran, facts)
    memory = on_paper(trial, kernel, (N_ROWS,), paper, ran, facts)
    run = _run(kernel, trial, task, "normal", x, ran)
    facts["runs"] = {"normal": run}
    right, inside = compare(trial, run.buffer, run.want.to(run.buffer.view.device), name=task.out, axes=task.axes, ran=ran, facts=facts)
    trial.case(ran, values=right, memory=memory and inside)


def _hard(kernel, trial, task, dtype):
    """All hard inputs run before the first is judged: the likely cause is read off which fail, and how."""
    inputs = dict(hard_inputs((2, HARD_LENGTH), dtype, "cpu").but(*task.left_out(dtype)))
    inputs |= {name: torch.full((2, HARD_LENGTH), value, dtype=dtype) for name, value in task.more}
    runs = {}
    for name, x in inputs.items():
        runs[name] = _run(kernel, trial, task, name, x, f"{name}, 2 rows of {HARD_LENGTH} in {_short(dtype)}")
    facts = {"kernel": kernel, "plain": False, "n": HARD_LENGTH, "dtype": dtype, "runs": runs}
    for run in runs.values():
        told = len(trial.problems)
        want = run.want.to(run.buffer.view.device)
        right, inside = compare(trial, run.buffer, want, name=task.out, axes=task.axes, ran=run.ran, facts=facts)
        for problem in trial.problems[told:]:
            if problem.about == "values":
                problem.picture = errors_picture(runs, dtype)
        trial.case(run.ran, values=right, memory=inside)


def _run(kernel, trial, task, name, x, ran):
    rows, n = x.shape
    given = Buffer(x.shape, x.dtype, values=x)
    want = task.reference(x)
    scale = task.scale(x.double(), want)
    scale = scale if scale is None else scale.to(given.view.device)
    dtype = task.out_dtype(x.dtype)
    out = Judged(task.out_shape(rows, n), dtype, task.within(dtype, n), scale)
    trial.call(launch, kernel, (rows,), *task.args(given.view, out.view, n), ran=ran)
    judged = out.judgement(want.to(out.view.device))
    return Run(name, ran, x.double(), out.view.cpu().double(), want, judged.error, out)


def errors_picture(runs, dtype):
    """Bars: the worst error of each input in units of its bound, from a hundredth to a thousand times."""
    rows = []
    for run in runs.values():
        value, note = min(max(run.error, 0.01), 1e3), "" if run.error < 1e3 else "or more"
        rows.append({"label": run.name, "value": value, "limit": 1.0, "ok": not run.wrong, "note": note})
    wrong = [run.name for run in runs.values() if run.wrong]
    says = f"Past the bound: {', '.join(wrong)}. 0.01 stands for less."
    title = f"Worst error in {_short(dtype)}"
    return {"kind": "Bars", "title": title, "sentence": says, "unit": "of its bound", "rows": rows, "scale": "log"}


# ---- what a mistake looks at
def wrong_in(f):
    """The names of the inputs that came out wrong."""
    return {name for name, run in f.get("runs", {}).items() if run.wrong}


def hard_only(f):
    """True where plain rows were right and hard inputs are not."""
    return "runs" in f and not f["plain"] and f.get("about") == "values"


def gives(formula):
    """True when `formula(x)` explains every wrong output, up to the roundings of its type; x is (rows, n) in float64."""

    def seen(f):
        wrong = [run for run in f.get("runs", {}).values() if run.wrong]
        made = [formula(run.x) for run in wrong]
        tells = any(not _near(run, run.want, one) and bool(one.isfinite().any()) for run, one in zip(wrong, made, strict=True))
        return tells and all(_near(run, run.got, one) for run, one in zip(wrong, made, strict=True))

    return seen


def _near(run, one, other):
    within = max(2e-5, 4 * roundoff(run.buffer.dtype))
    return torch.allclose(one, other.to(run.buffer.dtype).double(), rtol=within, atol=1e-30, equal_nan=True)


def ratios(f):
    """Of the wrong runs, got / want where both are finite and the truth is not 0, by row: a list of tensors."""
    found = []
    for run in f.get("runs", {}).values():
        if run.wrong:
            both = run.got.isfinite() & run.want.isfinite() & (run.want.abs() > 1e-3)
            found += [g[b] / w[b] for g, w, b in zip(run.got, run.want, both, strict=True) if b.sum() > 1]
    return found
