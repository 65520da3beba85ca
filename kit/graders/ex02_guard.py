"""Exercise 02.3: the guard of a pasted kernel, judged beside kernels generated here, which it then launches."""

from __future__ import annotations

import inspect

import torch

from kit import machine
from kit.generated import generated_each
from kit.ghosts import ghost
from kit.graders.ex02_general import standardize
from kit.graders.step import Mistake, Step

SHAPE = (33, 200)


def grade_guard(answer, trial):
    """Judge `guarded` beside kernels generated here: tensors that fit, that are misaligned, that differ. What fits is launched as well."""
    trial.evidence = machine.current().evidence
    layouts = {
        "float16": ghost(SHAPE, torch.float16),
        "padded": ghost(SHAPE, torch.float16, (256, 1)),
        "at offset 1": ghost(SHAPE, torch.float16, offset=1),
        "float32": ghost(SHAPE, torch.float32),
        "one row": ghost((1, 200), torch.float16),
    }
    made = dict(zip(layouts, generated_each([(standardize, x) for x in layouts.values()]), strict=True))
    fits, copied, refused = False, True, None
    for title, name, shape, stride, offset, expected in (
        ("as it was generated", "float16", SHAPE, (200, 1), 0, fits),
        ("a view at offset 1, where alignment is claimed", "float16", SHAPE, (200, 1), 1, copied),
        ("a view at offset 8, 16 bytes", "float16", SHAPE, (200, 1), 8, fits),
        ("float32 at offset 4, 16 bytes", "float32", SHAPE, (200, 1), 4, fits),
        ("float32 at offset 2, 8 bytes", "float32", SHAPE, (200, 1), 2, copied),
        ("a view at offset 1, where none is claimed", "at offset 1", SHAPE, (200, 1), 1, fits),
        ("padded rows", "padded", SHAPE, (256, 1), 16, fits),
        ("padded rows at offset 3", "padded", SHAPE, (256, 1), 3, copied),
        ("one row more", "float16", (34, 200), (200, 1), 0, refused),
        ("one row less", "float16", (32, 200), (200, 1), 0, refused),
        ("one column less", "padded", (33, 199), (256, 1), 0, refused),
        ("padded rows, where none are expected", "float16", SHAPE, (256, 1), 0, refused),
        ("padded rows at offset 1, where none are expected", "float16", SHAPE, (256, 1), 1, refused),
        ("the transpose of (200, 33)", "float16", SHAPE, (1, 33), 0, refused),
        ("one row, with another row stride", "one row", (1, 200), (999, 1), 0, fits),
    ):
        _guard_case(answer, trial, title, made[name], shape, stride, offset, expected)


def _guard_case(answer, trial, title, made, shape, stride, offset, copied):
    told = made.arguments["x"]
    claimed = (0,) in made.kernel.meta("configs")[0]
    parent = torch.randn(offset + 64 + sum((n - 1) * s for n, s in zip(shape, stride, strict=True)))
    parent = parent.to(getattr(torch, told["dtype"])).to(machine.current().device)
    x, before = parent.as_strided(shape, stride, offset), parent.clone()
    facts = {"title": title, "source": _source(answer)}
    try:
        got = trial.call(answer, x, tuple(told["shape"]), tuple(told["stride"]), claimed, ran=title, expect=(ValueError,))
    except ValueError as error:
        got = error
    _judge_guard(trial, title, x, got, copied, facts)
    if not torch.equal(parent, before):
        _guard_problem(trial, title, facts | {"what": "changed"}, "x itself was changed", "x as it was")
    if copied is not None and not trial.problems and not torch.allclose(made(got), standardize(x), rtol=1e-4, atol=1e-4):
        _guard_problem(trial, title, facts | {"what": "values"}, "the generated kernel gives wrong values with it", "right values")
    trial.case(title)


def _source(answer):
    try:
        return inspect.getsource(answer)
    except (OSError, TypeError):
        return ""


def _judge_guard(trial, title, x, got, copied, facts):
    """Note what is wrong with what came back: an error, another tensor, the same one."""

    def problem(what, said, expected, picture=None):
        _guard_problem(trial, title, facts | {"what": what}, said, expected, picture)

    if copied is None:
        if not isinstance(got, ValueError):
            problem("no error", "a tensor" if isinstance(got, torch.Tensor) else f"{got!r:.40}", "a ValueError")
    elif isinstance(got, ValueError):
        problem("an error", f"ValueError: {str(got).splitlines()[0] if str(got) else ''}", "a tensor")
    elif not isinstance(got, torch.Tensor):
        problem("no tensor", f"{got!r:.40}", "a tensor")
    elif got.shape != x.shape or got.dtype != x.dtype:
        problem("shape", f"shape {tuple(got.shape)}, {got.dtype}", f"shape {tuple(x.shape)}, {x.dtype}")
    elif got.stride() != x.stride():
        problem("strides", f"strides {got.stride()}", f"strides {x.stride()}")
    elif copied and got.data_ptr() % 16:
        where = got.data_ptr() % 16
        problem("misaligned", f"an address {where} past a multiple of 16", "a multiple of 16", _address_picture(where))
    elif not copied and got.data_ptr() != x.data_ptr():
        problem("copied", "a copy", "x itself", _address_picture(x.data_ptr() % 16))
    elif not torch.equal(got, x):
        problem("values", "other values", "the values of x")


def _guard_problem(trial, title, facts, said, expected, picture=None):
    told = {"ran": title, "where": "what it returns", "got": said, "expected": expected, "picture": picture}
    trial.problem("answer", f"{title}: got {said}, expected {expected}", facts, **told)


def _address_picture(past):
    return {
        "kind": "NumberLine",
        "title": "Where the first element lies, after a multiple of 16",
        "marks": [{"at": past, "label": "the address", "ok": past == 0}],
        "spans": [{"start": 0, "stop": 16, "label": "one load of 16 bytes"}],
        "limits": (),
        "unit": "bytes",
    }


def _guard(what, *titles):
    """True for this outcome, in a case whose title holds one of `titles`."""
    return lambda f: f.get("what") == what and (not titles or any(word in f["title"] for word in titles))


STEP_3 = Step(
    number="02.3",
    title="The guard that the paste has lost",
    spec="Return what may be handed to a pasted kernel in place of x: x, an aligned copy of it, or a ValueError.",
    answer="function",
    call="guarded(x, shape, stride, aligned)",
    size="about 5 lines",
    grade=grade_guard,
    mistakes=(
        Mistake("nothing returned", lambda f: f.get("what") == "no tensor", "Is a return missing? What fits is returned as well."),
        Mistake(
            "an assert", lambda f: isinstance(f.get("error"), AssertionError), "An assert is switched off by python -O: raise ValueError."
        ),
        Mistake("size 1", _guard("an error", "another row stride"), "The stride of an axis of one element is never used: it may differ."),
        Mistake(
            "refuses a view",
            _guard("an error", "offset", "padded"),
            "It can be used, or copied: a ValueError is for another shape or other strides.",
        ),
        Mistake("refuses", _guard("an error"), "Is the comparison right? A shape may come as torch.Size, the traced one is a tuple."),
        Mistake(
            "made contiguous",
            _guard("no error", "padded rows", "transpose"),
            "Are the strides compared? To repack x is not this function's choice: raise ValueError.",
        ),
        Mistake("shape", _guard("no error"), "Is every size compared? The mask of the paste ends at the traced one."),
        Mistake(
            "claim ignored",
            _guard("copied", "none is claimed"),
            "This kernel claims no alignment, so nothing needs a copy: look at `aligned`.",
        ),
        Mistake(
            "offset, not address",
            _guard("copied", "offset 8", "offset 4", "padded rows"),
            "An offset may be a multiple of 16 bytes: ask x.data_ptr(), which is in bytes.",
        ),
        Mistake("always copied", _guard("copied"), "It fits as it is, so a copy only costs time: return x itself."),
        Mistake(
            "contiguous is no copy",
            lambda f: f.get("what") == "misaligned" and "contiguous" in f["source"],
            "x.contiguous() returns x itself where x is contiguous already: it is no copy.",
        ),
        Mistake(
            "not copied",
            _guard("misaligned"),
            "The kernel claims an alignment that this x has not: x.data_ptr() % 16 says so, in bytes, and then a copy is due.",
        ),
        Mistake(
            "strides lost",
            _guard("strides"),
            "The copy has other strides, and the paste has the traced ones in its addresses: torch.empty_strided keeps them.",
        ),
        Mistake("not filled", _guard("values"), "Is the new tensor filled? copy_ does it."),
        Mistake("written to", _guard("changed"), "x is the caller's: make a new tensor."),
        Mistake("shape of the copy", _guard("shape"), "The copy must look like x: the same shape, strides and dtype."),
    ),
    hints=(
        "Three questions, in this order: is the layout the traced one? does the kernel claim alignment? is the address a multiple of 16?",
        "Compare x.shape, and x.stride() on every axis of more than one element. clone() and contiguous() may change strides, "
        "or copy nothing; torch.empty_strided(...).copy_(x) does neither.",
        "if aligned and x.data_ptr() % 16: return torch.empty_strided(x.shape, x.stride(), dtype=x.dtype, device=x.device).copy_(x)",
    ),
)
