"""What a grader does with a kernel: compile it, run it on paper, launch it. Each tells the Trial what went wrong."""

from __future__ import annotations

import torch

from kit import machine
from kit.build import CompileError, build
from kit.dry_run import dry_run
from kit.graders.paper import tell_report
from kit.graders.step import Stop, stub_in


def launch(kernel, grid, *args):
    """Launch and wait, so that a kernel's own error surfaces here."""
    kernel[grid](*args)
    if machine.current().live:
        torch.cuda.synchronize()


def compiles(trial, kernel, args, ran, facts=None):
    """The Build for these arguments; where Triton refuses the kernel, end the trial with a problem that names the line."""
    try:
        return trial.call(build, kernel, *args, ran=ran, expect=CompileError)
    except CompileError as error:
        stub_in(error, trial.step)
        told, _, line = str(error).split(": ", 1)[1].rstrip(".").partition(", in line ")
        line = line.split(": ", 1)[-1] or kernel.__name__
        trial.problem("answer", f"{ran}: {told}", {**(facts or {}), "told": told, "line": line}, ran=ran, where=f"line: {line}", got=told)
        raise Stop from None


def on_paper(trial, kernel, grid, args, ran, facts):
    """A dry run of the launch, told; True when no memory is touched that is not the arguments'."""
    tell_report(trial, trial.call(dry_run, kernel, grid, *args, ran=ran), ran, facts)
    return not trial.problems
