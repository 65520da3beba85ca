"""Exercise 03.2: an in-place kernel under a tuner, judged alone, at the call that tunes, and at the call after that."""

from __future__ import annotations

import contextlib

import torch

from kit import machine
from kit.graders.buffers import Buffer, compare
from kit.graders.step import Mistake, Step, counted
from kit.graders.tuners import emulated

BLOCKS = (64, 256, 1024)
LENGTHS = (1000, 1024, 257, 1, 5003)
RUNS = 3  # launches for timing, of each configuration


def grade_decay(answer, trial):
    """Judge `decay`: each configuration alone, then as the tuner's choice after launches of all of them, and at the call after that."""
    trial.evidence = machine.current().evidence
    with emulated() as tuners, _poisoned_empty():
        for n in LENGTHS:
            for number, BLOCK in enumerate(BLOCKS):
                tuners.start(number, 0)
                _one_call(answer, trial, tuners, n, BLOCK, f"{counted(n, 'element')}, BLOCK {BLOCK} alone", "alone")
                tuners.start(number, RUNS)
                ran = f"{counted(n, 'element')}, {RUNS} launches of each configuration, then BLOCK {BLOCK}"
                _one_call(answer, trial, tuners, n, BLOCK, ran, "tuning")
                _one_call(answer, trial, tuners, n, BLOCK, f"{counted(n, 'element')}, BLOCK {BLOCK}, the call after tuning", "after")


def _one_call(answer, trial, tuners, n, BLOCK, ran, when):
    values = torch.arange(1, n + 1, device=machine.current().device) % 97 + 32.0
    more = torch.arange(n, device=machine.current().device) % 13 + 1.0
    state, x = Buffer((n,), torch.float32, values=values), Buffer((n,), torch.float32, values=more)
    trial.call(answer, state.view, x.view, ran=ran)
    _expect_tuned(tuners, trial, ran)
    expected = values / 2 + more
    facts = {
        "when": when,
        "looks": looks_like(state.view, values, more),
        "n": n,
        "BLOCK": BLOCK,
        "x changed": not torch.equal(x.view, more),
    }
    right, inside = compare(trial, state, expected, name="state", axes=("element",), ran=ran, facts=facts)
    same, outside = compare(trial, x, more, name="x", axes=("element",), ran=ran, facts=facts)
    trial.case(ran, values=right and same, memory=inside and outside)


def _expect_tuned(tuners, trial, ran):
    """A problem where no tuner ran, or one with other configurations: then what follows would judge something else."""
    blocks = [sorted(config.kwargs.get("BLOCK", 0) for config in tuner.configs) for tuner in tuners.seen]
    if blocks != [list(BLOCKS)] and not trial.problems:
        got = "no tuner ran" if not blocks else f"{counted(len(blocks), 'tuner')}, with BLOCK {blocks[0]}"
        facts = {"untuned": not blocks, "tuners": len(blocks)}
        told = {"where": "the call", "got": got, "expected": f"one tuner, with BLOCK {list(BLOCKS)}"}
        trial.problem("answer", f"{ran}: {got}", facts, ran=ran, **told)
        trial.case(ran)


@contextlib.contextmanager
def _poisoned_empty():
    """Inside, torch.empty is filled with nan, so that an output that keeps an older result does not pass for a written one."""
    before, warn = torch.are_deterministic_algorithms_enabled(), torch.is_deterministic_algorithms_warn_only_enabled()
    fill = torch.utils.deterministic.fill_uninitialized_memory
    torch.use_deterministic_algorithms(True, warn_only=True)
    torch.utils.deterministic.fill_uninitialized_memory = True
    try:
        yield
    finally:
        torch.use_deterministic_algorithms(before, warn_only=warn)
        torch.utils.deterministic.fill_uninitialized_memory = fill


def looks_like(got, state, x):
    """What happened to a state, by its values: "many", "twice", "erased", "untouched", "partly", or ""."""
    once = state / 2 + x
    many = state
    for _ in range(RUNS * len(BLOCKS) + 1):
        many = many / 2 + x
    candidates = {"twice": once / 2 + x, "many": many, "erased": x, "untouched": state}
    for name, values in candidates.items():
        if torch.allclose(got, values):
            return name
    touched = ~torch.isclose(got, state)
    return "partly" if touched.any() and torch.allclose(got[touched], once[touched]) else ""


def _looks(name):
    return lambda f: f.get("looks") == name


STEP_2 = Step(
    number="03.2",
    title="In place, under a tuner",
    spec="Tune decay_kernel over three blocks, so that every call halves the state once: the call that tunes as well.",
    answer="function",
    call="decay(state, x)",
    size="about 1 line in tuner, 2 in decay",
    grade=grade_decay,
    mistakes=(
        Mistake(
            "untuned", lambda f: f.get("untuned"), "The step asks for the tuned kernel: launch tuner()[grid](...), and not decay_kernel."
        ),
        Mistake(
            "another tuner a call",
            lambda f: f.get("tuners", 0) > 1,
            "Is a new tuner made at every call? Then every call tunes. Make it once, in tuner().",
        ),
        Mistake("other configurations", lambda f: "untuned" in f, "Keep the three configurations: they are what is to be tuned."),
        Mistake("x changed", lambda f: f.get("x changed"), "x is an input, and was changed: which tensors does the kernel write to?"),
        Mistake(
            "not a name",
            lambda f: isinstance(f.get("error"), KeyError) or "not kernel arguments" in str(f.get("error", "")),
            "restore_value and key take names of the kernel's own arguments, as in its first line: new_ptr.",
        ),
        Mistake(
            "grid of one configuration",
            lambda f: f.get("looks") == "partly",
            "Part of the state is left as it was: does the grid follow BLOCK? lambda meta: (triton.cdiv(n, meta['BLOCK']),)",
        ),
        Mistake(
            "erased",
            _looks("erased"),
            "The old state is lost, new = 0 / 2 + x: does something set it to zero? reset_to_zero is for sums that begin at 0.",
        ),
        Mistake(
            "put back",
            _looks("untouched"),
            "The state is as it was before: is it put back after the real launch too, or is the result written elsewhere and left there?",
        ),
        Mistake("twice", _looks("twice"), "It is applied twice: is the kernel launched once more, to tune?"),
        Mistake(
            "many times",
            lambda f: f.get("when") == "tuning",
            "Only the call that tunes is wrong: the tuner launched every configuration on the real state. What puts it back?",
        ),
        Mistake("alone", lambda f: f.get("when") == "alone", "It is wrong without any tuning: is each tensor passed in its own place?"),
    ),
    hints=(
        "The call that tunes launches each configuration several times, on the state itself. What must the state be before each launch?",
        "triton.autotune takes restore_value, the arguments to put back after each try. The grid follows BLOCK: a function of meta.",
        'triton.autotune(configs, key=["n"], restore_value=["new_ptr"])(decay_kernel); '
        'tuner()[lambda meta: (triton.cdiv(n, meta["BLOCK"]),)](state, x, state, n)',
    ),
)
