"""Exercise 01.2: narrow types, an argument of 1, and a store that casts."""

from __future__ import annotations

import torch

from kit import machine
from kit.ghosts import ghost
from kit.graders.buffers import Buffer, compare
from kit.graders.launching import compiles, launch, on_paper
from kit.graders.step import Mistake, Step, counted

BLOCK = 128
# (elements, bias, scale): a bias of 1 is a constant of the kernel; scales are powers of two, so that every order rounds alike.
MIXES = ((300, 7, 0.25), (300, 0, 0.03125), (300, 1, 0.125), (300, -300, 0.5), (300, 300, 1.0), (1, 1, 2.0), (257, 1, 0.0078125))


def mixed(x, w, bias, scale):
    """What `mix_kernel` should store: (x + bias) * w * scale, clamped to int8, then truncated. int64 inputs."""
    return ((x + bias) * w * scale).clamp(-128, 127).to(torch.int8)


def grade_mix(kernel, trial):
    """Judge `mix_kernel` on values that reach both ends of every type on the way."""
    trial.evidence = machine.current().evidence
    for n, bias, scale in MIXES:
        _mix_case(kernel, trial, n, bias, scale)


def _mix_case(kernel, trial, n, bias, scale):
    ran = f"{counted(n, 'element')}, bias {bias}, scale {scale:g}"
    x = torch.randint(0, 256, (n,))
    w = torch.randint(-128, 128, (n,))
    edges = [(255, 127), (255, -128), (0, -128), (200, 100), (255, -1), (254, 1), (0, 0), (128, -3)][: n if n > 1 else 1]
    for i, (one, two) in enumerate(edges):
        x[i], w[i] = one, two
    held = [Buffer((n,), torch.int8, values=x.to(torch.uint8).view(torch.int8)), Buffer((n,), torch.int8, values=w.to(torch.int8))]
    y = Buffer((n,), torch.int8)
    scalars, grid = (n, bias, scale, BLOCK), (-(-n // BLOCK),)
    facts = {"kernel": kernel, "x": x, "w": w, "bias": bias, "scale": scale}
    paper = (ghost((n,), torch.uint8), ghost((n,), torch.int8), ghost((n,), torch.int8), *scalars)
    compiles(trial, kernel, paper, ran, facts)
    memory = on_paper(trial, kernel, grid, paper, ran, facts)
    as_bytes = held[0].parent.view(torch.uint8)[held[0].offset : held[0].offset + n]
    trial.call(launch, kernel, grid, as_bytes, held[1].view, y.view, *scalars, ran=ran)
    facts["y"] = y.view.cpu()
    right, inside = compare(trial, y, mixed(x, w, bias, scale), name="y", axes=("element",), ran=ran, facts=facts)
    trial.case(ran, values=right, memory=memory and inside)


def _low_bits(values):
    """int8 of the lower bits, as a cast of an integer keeps them."""
    return ((values.long() + 128) % 256 - 128).to(torch.int8)


def _mixes(formula):
    """True when `formula(x, w, bias, scale)` gives every element of the failing case."""
    return lambda f: "y" in f and torch.equal(formula(f["x"], f["w"], f["bias"], f["scale"]).to(torch.int8), f["y"])


def _byte_sum(x, w, bias, scale):
    if bias != 1:
        return mixed(x, w, bias, scale)
    return ((x + 1) % 256 * w % 256 * scale).clamp(-128, 127)


STEP_2 = Step(
    number="01.2",
    title="Narrow types",
    spec="Compute (x + bias) * w * scale so that nothing wraps, and store it as int8 within its range.",
    answer="kernel",
    call="mix_kernel(x_ptr, w_ptr, y_ptr, n, bias, scale, BLOCK)",
    size="about 3 lines",
    grade=grade_mix,
    mistakes=(
        Mistake("outside", lambda f: f.get("outside"), "It writes past the end: does the mask still hold?"),
        Mistake(
            "not compiled",
            lambda f: "has no attribute 'to'" in f.get("told", ""),
            "A bias of 1 is a Python number in the kernel, and has no .to(): cast x instead.",
        ),
        Mistake("not compiled, other", lambda f: "told" in f, "Triton refuses it: read its words, and look at the types of that line."),
        Mistake(
            "no clamp",
            _mixes(lambda x, w, bias, scale: _low_bits(((x + bias) * w * scale).trunc())),
            "Is the result clamped? A store to int8 keeps the lower bits of what is too large.",
        ),
        Mistake(
            "late clamp",
            lambda f: "y" in f and (f["y"] != mixed(f["x"], f["w"], f["bias"], f["scale"])).any() and _late(f),
            "Is it clamped after the cast? By then the value has wrapped, and is within the range.",
        ),
        Mistake(
            "one end",
            lambda f: "y" in f and _one_end(f),
            "Is it clamped at both ends? int8 goes from -128 to 127.",
        ),
        Mistake(
            "other range",
            _mixes(lambda x, w, bias, scale: _low_bits(((x + bias) * w * scale).clamp(0, 255).trunc())),
            "0 to 255 is uint8's range, and y is int8.",
        ),
        Mistake(
            "symmetric",
            _mixes(lambda x, w, bias, scale: ((x + bias) * w * scale).clamp(-127, 127).to(torch.int8)),
            "int8 goes down to -128, one further than it goes up.",
        ),
        Mistake(
            "clamped too early",
            _mixes(lambda x, w, bias, scale: ((x + bias) * w).clamp(-128, 127) * scale),
            "Is the product clamped before it is scaled? Only what is stored must fit int8.",
        ),
        Mistake(
            "rounded down",
            _mixes(lambda x, w, bias, scale: ((x + bias) * w * scale).clamp(-128, 127).floor()),
            "Truncation goes toward zero, as the cast does by itself: is there a floor?",
        ),
        Mistake(
            "to nearest",
            _mixes(lambda x, w, bias, scale: ((x + bias) * w * scale + 0.5).clamp(-128, 127).floor()),
            "Truncation goes toward zero, as the cast does by itself: is something rounded to nearest?",
        ),
        Mistake(
            "bias of one",
            lambda f: "y" in f and f["bias"] == 1,
            "Only a bias of 1 goes wrong: it is a constant of the kernel then, and takes the narrow type of x. Widen x before the sum.",
        ),
        Mistake(
            "signed bytes",
            _mixes(lambda x, w, bias, scale: mixed(_low_bits(x).long(), w, bias, scale)),
            "x goes to 255. Is it read as int8, where 200 is -56?",
        ),
        Mistake(
            "unsigned",
            lambda f: "y" in f and _unsigned(f),
            "Only negative weights go wrong. An unsigned type has no negative numbers: is w, or a product, made unsigned?",
        ),
        Mistake(
            "half",
            lambda f: "y" in f and abs((f["x"] + f["bias"]) * f["w"]).max() > 2048,
            "Does the type on the way hold 555 * 128, exactly? int32 and float32 do; float16, bfloat16 and the narrow integers do not.",
        ),
    ),
    hints=(
        "What is the type of x + bias when bias is 2, and when it is 1? Of a product of that with an int8?",
        "Make x an int32 before the sum. Clamp the scaled value to -128 .. 127 as a float: the store truncates it then, and it fits.",
        "y = (x.to(tl.int32) + bias) * w * scale, then tl.clamp(y, -128.0, 127.0)",
    ),
)


def _late(f):
    """The cast came first: what is outside the range holds lower bits that nothing has cut off at an end of int8 or uint8."""
    plain = _low_bits(((f["x"] + f["bias"]) * f["w"] * f["scale"]).trunc())
    return bool((plain == f["y"]).float().mean() > 0.4) and not _one_end(f)


def _one_end(f):
    """Right at one end of int8 and the lower bits at the other."""
    meant = (f["x"] + f["bias"]) * f["w"] * f["scale"]
    bits = _low_bits(meant.trunc())
    over, under = meant > 127, meant < -128
    inside_right = torch.equal(f["y"][~over & ~under], meant[~over & ~under].to(torch.int8))
    high, low = bool((f["y"][over] == 127).all()), bool((f["y"][under] == -128).all())
    return inside_right and (high != low) and torch.equal(f["y"][under if high else over], bits[under if high else over])


def _unsigned(f):
    wrong = f["y"] != mixed(f["x"], f["w"], f["bias"], f["scale"])
    product = (f["x"] + f["bias"]) * f["w"]
    return bool(wrong.any()) and bool((product[wrong] < 0).all() or (f["w"][wrong] < 0).all())
