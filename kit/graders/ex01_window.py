"""Exercise 01.3: a kernel that reads like Python, repaired: brackets, names, shapes, and a float64 that nobody asked for."""

from __future__ import annotations

import ast
import re

import torch
from triton.runtime import JITFunction

from kit import machine
from kit.ghosts import ghost
from kit.graders.buffers import Buffer, compare
from kit.graders.launching import compiles, launch, on_paper
from kit.graders.step import Mistake, Step, counted

# (rows, columns, first, last): less than a tile, tiles and a rest, no column at all, a window of none, first = 1.
WINDOWS = ((5, 40, 3, 37), (16, 16, 0, 16), (33, 70, 1, 70), (17, 100, 40, 41), (3, 0, 0, 0), (4, 20, 9, 9))
TILE = 16


def grade_window(kernel, trial):
    """Judge `window_kernel`: values and memory of six windows, then its PTX, which must compute nothing in float64."""
    trial.evidence = machine.current().evidence
    for case in WINDOWS:
        _window_case(kernel, trial, *case)
    _no_doubles(kernel, trial)


def _window_case(kernel, trial, n_rows, n_cols, first, last):
    ran = f"{counted(n_rows, 'row')} of {n_cols}, columns {first} to {last}"
    values, weights = torch.randn(n_rows, n_cols), torch.randn(n_cols)
    x = Buffer((n_rows, n_cols), torch.float32, values=values, wider=(n_rows, n_cols + 5))
    w, out = Buffer((n_cols,), torch.float32, values=weights), Buffer((n_rows,), torch.float32)
    scalars, grid = (n_rows, n_cols, n_cols + 5, first, last, 0.5, TILE), (-(-n_rows // TILE),)
    facts = {"kernel": kernel, "values": values, "weights": weights, "window": (first, last), "out": out}
    paper = (ghost(x.shape, torch.float32, x.strides), ghost(w.shape, torch.float32), ghost(out.shape, torch.float32), *scalars)
    compiles(trial, kernel, paper, ran, facts)
    memory = on_paper(trial, kernel, grid, paper, ran, facts)
    trial.call(launch, kernel, grid, x.view, w.view, out.view, *scalars, ran=ran)
    expected = windowed(values, weights, first, last)
    right, inside = compare(trial, out, expected, name="out", axes=("row",), ran=ran, facts=facts)
    trial.case(ran, values=right, memory=memory and inside)


def windowed(values, weights, first, last):
    """What `window_kernel` should store for a scale of 0.5."""
    return 0.5 * (values[:, first:last].double() @ weights[first:last].double()).float()


def _no_doubles(kernel, trial):
    ran = "the PTX of 1,000 rows of 1,000"
    x, w, out = ghost((1000, 1000), torch.float32), ghost((1000,), torch.float32), ghost((1000,), torch.float32)
    made = compiles(trial, kernel, (x, w, out, 1000, 1000, 1000, 3, 900, 0.5, TILE), ran)
    # Loading the argument and one conversion to float32 is what a float64 argument costs at least.
    found = [line.strip() for line in made.ptx.splitlines() if re.search(r"^\s*(?!cvt\.rn\.f32)\S+\.f64", line) and "ld.param" not in line]
    if found:
        loops = sum(line.startswith(("add", "fma")) for line in found)
        text = f"{ran}: {counted(len(found), 'instruction')} in float64, the first: {found[0]}"
        rows = [{"label": "instructions in float64", "value": len(found), "ok": False}]
        picture = {"kind": "Bars", "title": "What the compiled kernel computes in float64", "rows": rows}
        facts = {"doubles": len(found), "added": loops}
        trial.problem("answer", text, facts, ran=ran, where="its PTX", got=f"{len(found)} in float64", expected="none", picture=picture)
    trial.case(ran)


def _looks(formula):
    """True when `formula(values, weights, first, last)` gives the rows of the failing case."""

    def seen(f):
        if "out" not in f or f.get("about") != "values":
            return False
        told = 0.5 * formula(f["values"], f["weights"], *f["window"])
        return torch.allclose(f["out"].view.cpu(), told.float(), rtol=1e-4, atol=1e-4)

    return seen


def _brackets(f):
    return "told" not in f and _unbracketed(f.get("kernel"))


def _unbracketed(kernel):
    """True where the source compares with an `&`: `a >= b & (c)` is `a >= (b & (c))`."""
    if not isinstance(kernel, JITFunction):
        return False
    compared = [
        side for node in ast.walk(ast.parse(kernel.src)) if isinstance(node, ast.Compare) for side in (node.left, *node.comparators)
    ]
    return any(isinstance(side, ast.BinOp) and isinstance(side.op, ast.BitAnd) for side in compared)


def _row_weights(values, weights, first, last):
    """Each row multiplied by the weight of its own place in the tile, in each tile of columns."""
    total = torch.zeros(len(values))
    for start in range(0, len(weights), TILE):
        cols = torch.arange(start, start + TILE)
        used = (cols >= first) & (cols < last)
        w = torch.zeros(TILE)
        w[used] = weights[cols[used]]
        here = torch.zeros(len(values), TILE)
        here[:, used] = values[:, cols[used]]
        total += here.sum(1) * w[torch.arange(len(values)) % TILE]
    return total


def _last_tile(values, weights, first, last):
    start = max(0, (len(weights) - 1) // TILE * TILE)
    first = max(first, start)
    return values[:, first:last] @ weights[first:last] if first < last else torch.zeros(len(values))


STEP_3 = Step(
    number="01.3",
    title="It reads like Python",
    spec="Repair the kernel: right values, and nothing computed in float64.",
    answer="kernel",
    call="window_kernel(x_ptr, w_ptr, out_ptr, n_rows, n_cols, stride_x, first, last, scale, BLOCK)",
    size="about 9 lines",
    grade=grade_window,
    mistakes=(
        Mistake(
            "brackets",
            _brackets,
            "& binds tighter than >= and <: put brackets round each comparison.",
        ),
        Mistake(
            "first bound in the loop",
            lambda f: "is not defined" in f.get("told", ""),
            "A name first bound in the loop is unknown after it: give it a value before the loop.",
        ),
        Mistake(
            "type changes",
            lambda f: "Loop-carried variable" in f.get("told", ""),
            "The sum has one type before the loop and another in it: begin with tl.zeros([BLOCK], tl.float32).",
        ),
        Mistake("compile", lambda f: "told" in f, "Triton refuses it: read its words, and look at the shapes and types of that line."),
        Mistake(
            "doubles in the loop",
            lambda f: f.get("added"),
            "The sum itself is made in float64: is it begun as one, or is scale in the loop?",
        ),
        Mistake(
            "doubles",
            lambda f: "doubles" in f,
            "scale is float64 here, and makes the product float64 as well. Cast scale, not the product: a cast afterwards comes too late.",
        ),
        Mistake(
            "column",
            _looks(_row_weights),
            "w is a column there, so each row is multiplied by one weight. Weights lie along columns: w[None, :].",
        ),
        Mistake("starts again", _looks(_last_tile), "Only the last tile counts: is the sum set to zero inside the loop?"),
        Mistake(
            "last included",
            _looks(lambda values, weights, first, last: values[:, first : last + 1] @ weights[first : last + 1]),
            "The window ends before last: is it <= ?",
        ),
        Mistake(
            "no window",
            _looks(lambda values, weights, first, last: values @ weights),
            "All columns count: is the window in the mask of both loads?",
        ),
        Mistake(
            "no scale", _looks(lambda values, weights, first, last: 2 * (values[:, first:last] @ weights[first:last])), "Is scale left out?"
        ),
        Mistake(
            "memory",
            lambda f: f.get("about") == "memory" or "finding" in f,
            "It leaves its tensors: rows need their own mask, for the load and for the store, and columns of both loads the window's.",
        ),
    ),
    hints=(
        "Four things here are not what they look like: a mask, a name, a shape, and the type of scale.",
        "Brackets round each comparison; tl.zeros([BLOCK], tl.float32) before the loop; w[None, :], not w[:, None]; scale.to(tl.float32).",
        "acc = tl.zeros(...); in the loop in_window = (cols >= first) & (cols < last), acc += tl.sum(x * w[None, :], axis=1); "
        "after it out = acc * scale.to(tl.float32)",
    ),
)
