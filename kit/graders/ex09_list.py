"""Exercise 09.3: the reader's list of test inputs, judged by whether it passes the right kernel and catches five wrong ones."""

from __future__ import annotations

import torch
import triton
import triton.language as tl

from kit import machine
from kit.graders.step import Mistake, Step
from kit.shapes_buffer import GUARD, RIGHT, Buffer

BLOCK = 32
MOST, LARGEST = 8, 1 << 16  # inputs, and elements of memory that one may span
# {fault: what the kernel does}. Each needs another kind of input to show.
FAULTS = {
    "padding": "whose padding holds 0 under the maximum",
    "tail": "that leaves out the last block of a row when it is not whole and not the only one",
    "infinity": "that gives NaN for a row of −inf",
    "columns": "that takes the elements of a row of x to lie side by side",
    "out strides": "that gives out the strides of x",
}
_INTEGERS = ["N", "stride_xm", "stride_xn", "stride_om", "stride_on"]


@triton.jit(do_not_specialize=_INTEGERS, do_not_specialize_on_alignment=["x_ptr", "out_ptr"])
def shift_kernel(x_ptr, out_ptr, N, stride_xm, stride_xn, stride_om, stride_on, FAULT: tl.constexpr, BLOCK: tl.constexpr):
    """out = x - max(x) of each row, and a row that is -inf throughout stays so; a program owns a row. FAULT "": right."""
    row = tl.program_id(0).to(tl.int64)
    if FAULT == "columns":
        stride_xn = 1
    if FAULT == "out strides":
        stride_om = stride_xm
        stride_on = stride_xn
    n_blocks = tl.cdiv(N, BLOCK)
    if FAULT == "tail":
        n_blocks = tl.maximum(N // BLOCK, tl.minimum(n_blocks, 1))
    top = tl.full((), -float("inf"), tl.float32)
    for i in range(0, n_blocks):
        offs = i * BLOCK + tl.arange(0, BLOCK)
        x = tl.load(x_ptr + row * stride_xm + offs * stride_xn, mask=offs < N, other=0.0 if FAULT == "padding" else -float("inf"))
        top = tl.maximum(top, tl.max(x, axis=0))
    if FAULT != "infinity":
        top = tl.where(top == -float("inf"), 0.0, top)
    for i in range(0, n_blocks):
        offs = i * BLOCK + tl.arange(0, BLOCK)
        mask = offs < N
        y = tl.load(x_ptr + row * stride_xm + offs * stride_xn, mask=mask, other=0.0) - top
        tl.store(out_ptr + row * stride_om + offs * stride_on, y, mask=mask)


def shifted(x):
    """The truth."""
    if not x.numel():
        return x.clone()
    top = x.amax(1, keepdim=True)
    return x - torch.where(top == -torch.inf, 0.0, top)


def grade_inputs(answer, trial):
    """Judge `test_inputs`: its list must let the right kernel pass, and each of the faulty ones must fail at one input or more."""
    trial.evidence = machine.current().evidence
    pairs = trial.call(answer, BLOCK, machine.current().device, ran=f"test_inputs({BLOCK})")
    if unusable := _unusable(pairs):
        said, kind, where = unusable
        text = f"test_inputs({BLOCK}): {said}"
        trial.problem("answer", text, {"unusable": kind}, ran=f"test_inputs({BLOCK})", where=where, got=said, expected="pairs (x, out)")
        trial.case("the list")
    trial.case(f"a list of {len(pairs)} inputs")
    for i, pair in enumerate(pairs):
        _right_passes(trial, i, pair)
    trial.case("the right kernel")
    caught = {fault: sum(not passes(trial, fault, x, out) for x, out in pairs) for fault in FAULTS}
    for fault, count in caught.items():
        if not count:
            told = {"ran": f"the kernel {FAULTS[fault]}", "where": f"all {len(pairs)} inputs", "got": "passes", "expected": "fails at one"}
            facts = {"missed": [name for name, n in caught.items() if not n], "fault": fault, "pairs": pairs}
            text = f"{told['ran']} passes all {len(pairs)} inputs"
            trial.problem("answer", text, facts, picture=_picture(caught), **told)
        trial.case(f"the kernel {FAULTS[fault]}")


def _unusable(pairs):
    """(what is wrong, its kind, where) of a list that cannot be used; None when it can."""
    if not isinstance(pairs, (list, tuple)):
        return f"it returns {type(pairs).__name__}, not a list", "list" if pairs is not None else "nothing", "what it returns"
    if len(pairs) > MOST:
        return f"{len(pairs)} inputs, and at most {MOST} are run", "many", "the length of the list"
    for i, pair in enumerate(pairs):
        where = f"input {i}"
        if not isinstance(pair, (list, tuple)) or len(pair) != 2 or not all(isinstance(t, torch.Tensor) for t in pair):
            return f"input {i} is no pair of tensors", "pair", where
        x, out = pair
        if x.dim() != 2 or x.shape != out.shape:
            return f"input {i} has x {tuple(x.shape)} and out {tuple(out.shape)}, and both must be [M, N]", "shape", where
        if x.dtype != torch.float32 or out.dtype != torch.float32 or x.device.type != machine.current().device:
            return (
                f"input {i} is {x.dtype} and {out.dtype} on {x.device}, and both must be float32 on {machine.current().device}",
                "dtype",
                where,
            )
        if any(s == 0 and n > 1 for n, s in zip(out.shape, out.stride(), strict=True)):
            return f"input {i} has an out whose elements share memory", "shape", where
        if max(map(_span, pair)) > LARGEST:
            return f"input {i} spans more than {LARGEST:,} elements", "large", where
    return None


def _span(tensor):
    return 1 + sum((n - 1) * s for n, s in zip(tensor.shape, tensor.stride(), strict=True)) if tensor.numel() else 0


def passes(trial, fault, x, out):
    """Whether the kernel with this fault gives the right values at an input, and leaves alone what is not out."""
    given, behind = _placed(x, x, 0), GUARD + max(_span(x), _span(out))
    written = _placed(out, None, behind)
    grid = (x.shape[0],)
    args = (given.view, written.view, x.shape[1], *x.stride(), *out.stride())
    trial.call(lambda: shift_kernel[grid](*args, FAULT=fault, BLOCK=BLOCK), ran=f"shape {tuple(x.shape)}, strides {x.stride()}")
    states = written.states(shifted(given.view))
    return not bool((states != RIGHT).any())


def _placed(tensor, values, behind):
    """The tensor's own layout in guarded memory: what was made is not written to, and what lies behind is ours."""
    poison = torch.tensor([torch.inf, -torch.inf] if values is not None else [torch.nan])
    return Buffer(tensor.shape, tensor.dtype, values=values, strides=tensor.stride(), behind=behind + GUARD, poison=poison)


def _right_passes(trial, i, pair):
    x, out = pair
    if not passes(trial, "", x, out):
        where = f"input {i}, shape {tuple(x.shape)}"
        facts = {"right": True, "nan": bool(x.isnan().any()), "plus": bool((x == torch.inf).any())}
        text = f"input {i}, shape {tuple(x.shape)}: the right kernel fails"
        trial.problem("answer", text, facts, ran="the right kernel", where=where, got="fails", expected="passes")
        trial.case("the right kernel")


def _picture(caught):
    rows = [{"label": fault, "value": count, "ok": count > 0} for fault, count in caught.items()]
    return {"kind": "Bars", "title": "How many inputs catch each fault", "unit": "inputs", "rows": rows}


# ---- What a list lacks


def _shapes(f):
    return [(x, out, *x.shape) for x, out in f["pairs"] if x.numel()]


def _missed(fault, *more):
    return lambda f: f.get("fault") == fault and all(seen(f) for seen in more)


def _unusably(kind):
    return lambda f: f.get("unusable") == kind


def _whole_blocks(f):
    return all(n % BLOCK == 0 for *_, n in _shapes(f))


def _no_low_row(f):
    return not any(bool(((x < 0).all(1) & x.isfinite().any(1)).any()) for x, *_ in _shapes(f))


def _short(f):
    return all(n <= BLOCK for *_, n in _shapes(f))


def _some_inf(f):
    return any(bool((x == -torch.inf).any()) for x, *_ in _shapes(f))


STEP_3 = Step(
    number="09.3",
    title="The test list",
    spec="Return inputs that the right kernel passes and that each of five faulty ones fails.",
    answer="function",
    call="test_inputs(BLOCK, device)",
    size="about 10 lines",
    grade=grade_inputs,
    mistakes=(
        Mistake("nothing returned", _unusably("nothing"), "Is the return missing?"),
        Mistake("no list", _unusably("list"), "Return a list of pairs (x, out)."),
        Mistake("no pair", _unusably("pair"), "Each input is a pair of tensors: x, and the out that the kernel is to write."),
        Mistake("too many", _unusably("many"), "One input can catch several faults: put odd lengths, low rows and views together."),
        Mistake("too large", _unusably("large"), "Edges are small: a block and a bit is enough."),
        Mistake("shapes", _unusably("shape"), "x and out have the same shape, [M, N], and every element of out its own memory."),
        Mistake("dtype", _unusably("dtype"), "Make both in float32, with device=device."),
        Mistake(
            "NaN", lambda f: f.get("nan"), "x holds NaN, of which nobody has said what the maximum is: poison belongs round x, not in it."
        ),
        Mistake(
            "plus infinity",
            lambda f: f.get("plus"),
            "+inf minus +inf is NaN in any kernel, and compares unequal: −inf is the one that is decided.",
        ),
        Mistake(
            "empty", lambda f: "pairs" in f and not _shapes(f), "No input has an element: nothing is computed, and every kernel passes."
        ),
        Mistake(
            "as it was",
            lambda f: len(f.get("missed", ())) == len(FAULTS),
            "New tensors at multiples of BLOCK: every fault hides there. Change the length, the values and the strides.",
        ),
        Mistake("padding, whole blocks", _missed("padding", _whole_blocks), "Every length is a multiple of BLOCK: no lane is padding."),
        Mistake(
            "padding, high rows",
            _missed("padding", _no_low_row),
            "Padding of 0 wins a maximum only where every number of the row is below 0: make such a row.",
        ),
        Mistake("padding", _missed("padding"), "Low rows and padding do not meet: put them into the same input."),
        Mistake("tail, short", _missed("tail", _short), "No row is longer than a block: the loop over blocks never takes a second step."),
        Mistake(
            "tail", _missed("tail"), "A last block that is not whole, behind a whole one, is missing: BLOCK + 1 elements, or 2 * BLOCK + 3."
        ),
        Mistake(
            "infinity, in part",
            _missed("infinity", _some_inf),
            "A −inf beside finite numbers is no hard value: the whole row must be −inf.",
        ),
        Mistake("infinity", _missed("infinity"), "No row is −inf throughout, as one that is masked entirely would be."),
        Mistake(
            "columns",
            _missed("columns"),
            "In every x the elements of a row lie side by side: take a transposed one, or every second column.",
        ),
        Mistake("out strides", _missed("out strides"), "out always has the strides of x: let one of the two be a view."),
    ),
    hints=(
        "Three things can be odd: the length (no multiple of BLOCK, longer than BLOCK), the values (all below 0, all −inf) and the "
        "strides (of x, of out). One input can have several.",
        "For example 5 rows of 2 * BLOCK + 3: all numbers below 0, and one row −inf. Give it as a transposed x with a new out, and as a "
        "new x with an out that is a slice of wider rows.",
        "x = -1 - torch.rand(5, 2 * BLOCK + 3, device=device); x[2] = -float('inf')\n"
        "wide = torch.empty(5, 4 * BLOCK, device=device)\n"
        "return [(x, wide[:, : x.shape[1]]), (x.T.contiguous().T, torch.empty_like(x))]",
    ),
)
