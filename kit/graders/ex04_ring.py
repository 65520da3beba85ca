"""Exercise 04.3: a kernel that is right in every class of its arguments: the slot of a ring, before and after its delay."""

from __future__ import annotations

import torch

from kit import machine
from kit.dry_run import dry_run
from kit.ghosts import ghost
from kit.graders.buffers import Buffer, compare
from kit.graders.launching import compiles, launch, on_paper
from kit.graders.paper import tell_report
from kit.graders.step import Mistake, Step

RING_STEPS = (3, 0, 1, 2, 4, 5, 15, 16, 17, 31, 32, 33, 100)


def grade_ring(kernel, trial):
    """Judge `read_ring_kernel` at every class of step and of the stride, in guarded buffers; then a ring past 2^31 elements on paper."""
    trial.evidence = machine.current().evidence
    for ring, delay, row_size, stride in ((16, 4, 48, 48), (16, 4, 33, 41), (12, 12, 20, 32), (8, 1, 1, 1)):
        for step in RING_STEPS:
            _small_ring(kernel, trial, ring, delay, row_size, stride, step)
        trial.case(f"a ring of {ring} rows of {row_size}, {stride} apart, delay {delay}, steps 0 to 100", values=True, memory=True)
    ran = "a ring of 4,096 rows of 2^20, on paper"
    for step in (1, 2, 4099):
        at = f"{ran}, step {step:,}"
        args = (ghost((4096, 2**20), torch.float16), ghost((1000,), torch.float16), step, 2**20, 1000, 4, 4096, 1024)
        on_paper(trial, kernel, (1,), args, at, {"kernel": kernel})
    trial.case(ran, memory=not trial.problems)


def _small_ring(kernel, trial, ring, delay, row_size, stride, step):
    """One step; its case ends only where it shows a problem, so that a ring counts as one case."""
    ran = f"step {step}, delay {delay}, a ring of {ring} rows of {row_size}, {stride} apart"
    device = machine.current().device
    values = torch.arange(ring, device=device).half()[:, None] + torch.rand(ring, row_size, device=device).half() / 2
    rows = Buffer((ring, row_size), torch.float16, values=values, wider=(ring, stride))
    out = Buffer((row_size,), torch.float16)
    args = (step, stride, row_size, delay, ring, 64)
    facts = {"kernel": kernel, "step": step, "delay": delay, "stride": stride, "ring": ring}
    paper = (ghost((ring, row_size), torch.float16, (stride, 1)), ghost((row_size,), torch.float16), *args)
    compiles(trial, kernel, paper, ran, facts)
    report = trial.call(dry_run, kernel, (1,), *paper, ran=ran)
    tell_report(trial, report, ran, facts | {"memory": True})
    memory = not trial.problems
    trial.call(launch, kernel, (1,), rows.view, out.view, *args, ran=ran)
    slot = (step - delay) % ring  # Python's: from 0 to ring - 1
    near = [i for i in range(ring) if torch.equal(out.view, values[i])]
    facts |= {"read": near[0] if near else None, "slot": slot}
    right, inside = compare(trial, out, values[slot], name="out", axes=("element",), ran=ran, facts=facts)
    if trial.problems:
        trial.case(ran, values=right, memory=memory and inside)


def _breaks(f):
    return "no attribute 'to'" in f.get("told", "")


def _early(f):
    """A problem at a step before the delay, where the number of the slot is computed from one below zero."""
    return "step" in f and f["step"] < f["delay"]


STEP_3 = Step(
    number="04.3",
    title="Right in every class",
    spec="Make the slot and its address right at every step, and for every stride.",
    answer="kernel",
    call="read_ring_kernel(ring_ptr, out_ptr, step, stride_r, row_size, DELAY, RING, BLOCK)",
    size="about 2 lines",
    grade=grade_ring,
    mistakes=(
        Mistake(
            "the cast of an argument of 1",
            lambda f: _breaks(f) and ("stride_r.to(" in f["line"] or "step.to(" in f["line"]),
            "An argument of 1 is a number of the compiler's, which has no .to(). Cast what is computed and has a name, or use tl.cast.",
        ),
        Mistake(
            "the cast of what folds",
            _breaks,
            "At step 1 the whole expression is a constant, a number of the compiler's without .to(). Give it a name first, or use tl.cast.",
        ),
        Mistake(
            "no power of two",
            lambda f: "step" in f and f["ring"] == 12 and "&" in f["kernel"].src and not f.get("memory"),
            "A bitwise and is a remainder only where RING is a power of two.",
        ),
        Mistake(
            "masked",
            lambda f: _early(f) and bool(f.get("unwritten")),
            "Before the delay nothing is stored: the slot exists at every step, so there is nothing to mask.",
        ),
        Mistake(
            "clamped",
            lambda f: _early(f) and f.get("read") == 0,
            "Is a slot below zero made 0? The ring goes round: before slot 0 comes the last one.",
        ),
        Mistake(
            "mirrored",
            lambda f: _early(f) and f.get("read") == f["delay"] - f["step"],
            "Is the sign dropped? The ring goes round: one before slot 0 is the last slot, not slot 1.",
        ),
        Mistake(
            "added",
            lambda f: "read" in f and f["read"] == (f["step"] + f["delay"]) % f["ring"] and f["read"] != f["slot"],
            "Is DELAY added? The row is from DELAY steps ago.",
        ),
        Mistake(
            "no cast",
            lambda f: f.get("hazard") == "overflow",
            "A ring of 4,096 rows of 2^20 is past 2^31 elements: the product needs an int64 factor, as in lesson 07.",
        ),
        Mistake(
            "C's remainder",
            lambda f: _early(f) and bool(f.get("memory")) and f["step"] != 1,
            "Before the delay the difference is below zero, and so is its remainder: % is C's in a kernel. Only at step 1, where it is "
            "folded, is it Python's.",
        ),
        Mistake(
            "never round",
            lambda f: bool(f.get("memory")) and f["step"] >= f["delay"],
            "This slot is past the end of the ring: is the remainder taken last?",
        ),
        Mistake("values", lambda f: "slot" in f, "Another row was read: is it the row of step - DELAY, counted round the ring?"),
    ),
    hints=(
        "Try steps 0, 1, 2, 3 by hand: what is (0 - 4) % 16 in C, and in Python? And what is stride_r when a row is one number?",
        "A remainder of a number that is not below zero is the same in both: add RING before it is taken. As for the cast: an argument "
        "that may be 1 has no .to(), a value with a name of its own has.",
        "slot = (step + RING - DELAY) % RING\nrow_ptr = ring_ptr + slot.to(tl.int64) * stride_r",
    ),
)
