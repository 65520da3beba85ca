"""Exercise 08.2: an RMSNorm of each head whose programs own enough, and leave programs enough where tokens are few."""

from __future__ import annotations

import math
from dataclasses import dataclass

import torch

from kit import machine
from kit.build import build
from kit.ghosts import ghost
from kit.graders.buffers import Buffer, compare
from kit.graders.noting import noted
from kit.graders.paper import grid_picture, meta, on_paper, tell_report
from kit.graders.step import Mistake, Step, Stop, counted, kind_of, line_of

EPS = 1e-6
PREFILL, MOST_PROGRAMS = (8_192, 32, 128), 32_768  # 1,024 elements a program
DECODE, LEAST_PROGRAMS = (1, 64, 128), 4  # 2,048


@dataclass(frozen=True)
class Case:
    """A launch whose values are compared. `wider` is the parent's (heads, size); `swapped` has heads before tokens in memory."""

    tokens: int
    heads: int
    size: int
    wider: tuple | None = None
    swapped: bool = False

    def __str__(self):
        what = f"{counted(self.tokens, 'token')} of {counted(self.heads, 'head')} of {self.size}"
        return what + (", a view into a wider tensor" if self.wider else ", heads before tokens in memory" if self.swapped else "")


# 16 rows, one row, both sides of 16 and 32, no row; a size that is no power of two; both kinds of view.
CASES = (
    Case(4, 4, 64),
    Case(1, 1, 128),
    Case(5, 3, 64),
    Case(17, 1, 80),
    Case(11, 3, 128, wider=(5, 128)),
    Case(0, 8, 128),
    Case(31, 1, 64, wider=(2, 72)),
    Case(3, 7, 128, swapped=True),
    Case(6, 5, 80, swapped=True),
)


def reference(x, w):
    """y of shape x in float32; x (..., size), w (size,)."""
    x = x.float()
    return x / (x.pow(2).mean(-1, keepdim=True) + EPS).sqrt() * w.float()


def grade_norm(answer, trial):
    """Judge `head_norm`: its values and its memory, edges and views; the programs of a prefill and of a decode; the width of its loads."""
    trial.evidence = machine.current().evidence
    for case in CASES:
        _values(answer, trial, case)
    launches = _programs(answer, trial)
    _widths(trial, launches)


def _values(answer, trial, case):
    ran, shape = str(case), (case.tokens, case.heads, case.size)
    kept = (case.heads, case.tokens, case.size) if case.swapped else shape
    wide = case.wider and (case.tokens, *case.wider)
    device = machine.current().device
    x = Buffer(kept, torch.float16, values=torch.randn(kept, device=device).half() * 3, wider=wide, offset=2048 + (8 if wide else 0))
    w = Buffer((case.size,), torch.float32, values=torch.linspace(0.5, 2, case.size, device=device))
    y = Buffer(kept, torch.float32)
    views = [one.view.transpose(0, 1) if case.swapped else one.view for one in (x, y)]
    facts = {"case": case}
    _on_paper(answer, trial, ran, facts, *(_meta(view) for view in (views[0], w.view, views[1])))
    legal = not trial.problems
    if any(problem.about == "launch" for problem in trial.problems) or (not legal and machine.current().live):
        trial.case(ran, memory=legal or None)
    with noted() as launches:
        trial.call(answer, views[0], w.view, views[1], ran=ran)
    facts["rows"], facts["size"] = case.tokens * case.heads, case.size
    axes = ("head", "token", "element") if case.swapped else ("token", "head", "element")
    right, inside = compare(trial, y, reference(x.view, w.view), name="y", axes=axes, ran=ran, facts=facts)
    if right and case.tokens:
        _copies(trial, ran, facts, launches, views)
    trial.case(ran, values=right, memory=legal and inside)


def _copies(trial, ran, facts, launches, views):
    """A problem where the kernel is given other memory than x and y: the tensor was copied for it."""
    given = {arg.data_ptr() for _, args, options in launches for arg in (*args, *options.values()) if isinstance(arg, torch.Tensor)}
    for name, view in zip("xy", views, strict=True):
        if view.data_ptr() not in given:
            text = f"{ran}: the kernel works on a copy of {name}"
            told = {"where": "the launch", "got": f"a copy of {name}", "expected": f"{name} itself, with its strides"}
            trial.problem("answer", text, facts | {"copied": name}, ran=ran, **told)
            return


def _meta(view):
    return meta(tuple(view.shape), view.dtype, tuple(view.stride()), 0)


def _on_paper(answer, trial, ran, facts, x, w, y):
    """[(kernel, arguments, options)] and the number of programs of a call on paper, its reports told."""
    with on_paper() as launches, noted() as given:
        _call(answer, trial, ran, facts, x, w, y)
    facts["grids"] = [launch.grid for launch in launches]
    for launch in launches:
        tell_report(trial, launch.report, ran, facts)
    if not launches and x.shape[0]:
        trial.problem("launch", f"{ran}: no kernel is launched", facts | {"nothing": True}, ran=ran, where="the call", got="0 launches")
    return given, sum(launch.programs for launch in launches)


def _call(answer, trial, ran, facts, x, w, y):
    """`answer(x, w, y)`; what it raises on an input without tokens is told with that fact."""
    if x.shape[0]:
        return trial.call(answer, x, w, y, ran=ran)
    try:
        return answer(x, w, y)
    except Exception as error:  # noqa: BLE001  whatever an answer raises is a finding
        about, told = kind_of(error)
        known = facts | {"error": error}
        trial.problem(about, f"{ran}: {told}", known, ran=ran, where=line_of(error) or "the call", got=told, expected="nothing done")
        raise Stop from None


def _programs(answer, trial):
    """Judge the number of programs at both ends; return the launches of the prefill."""
    found = []
    for shape, limit, most in ((PREFILL, MOST_PROGRAMS, True), (DECODE, LEAST_PROGRAMS, False)):
        ran = f"{counted(shape[0], 'token')} of {shape[1]} heads of {shape[2]}, on paper"
        facts = {"shape": shape}
        x, w, y = meta(shape, torch.float16), meta(shape[2:], torch.float32), meta(shape, torch.float32)
        launches, programs = _on_paper(answer, trial, ran, facts, x, w, y)
        found.append(launches)
        facts |= {"programs": programs, "heads": shape[0] * shape[1]}
        told = {"ran": ran, "where": "the grid", "got": f"{programs:,}", "picture": grid_picture(facts["grids"][0]) if launches else None}
        if not trial.problems and most and programs > limit:
            text = f"{ran}: {counted(programs, 'program')}, each with fewer than 1,024 elements"
            trial.problem("launch", text, facts | {"many": True}, expected=f"at most {limit:,}", **told)
        elif not trial.problems and not most and programs < limit:
            text = f"{ran}: {counted(programs, 'program')}, and a GPU has over a hundred multiprocessors"
            trial.problem("launch", text, facts | {"few": True}, expected=f"at least {limit}", **told)
        trial.case(ran)
    return found[0]


def _widths(trial, launches):
    """A problem where no load, or no store, is 128 bits wide."""
    ran = "8,192 tokens of 32 heads, compiled"
    made = [
        build(kernel, *map(_ghost, args), **{name: _ghost(value) for name, value in options.items()}) for kernel, args, options in launches
    ]
    for what in ("load", "store"):
        widest = max((bits for one in made for bits in one.bits(what)), default=0)
        if widest < 128:
            text = f"{ran}: the widest {what} is {widest} bits a thread"
            row = {"label": f"the widest {what}", "value": widest, "limit": 128, "ok": False}
            picture = {"kind": "Bars", "title": "Bits that a thread moves in one instruction", "unit": "bits", "rows": [row]}
            facts = {"narrow": widest, "op": what, "loops": any("scf.for" in one.ttir for one in made)}
            trial.problem("answer", text, facts, ran=ran, where=made[0].name, got=f"{widest} bits", expected="128 bits", picture=picture)
            break
    trial.case(ran)


def _ghost(value):
    return ghost(tuple(value.shape), value.dtype, tuple(value.stride())) if isinstance(value, torch.Tensor) else value


# ---- what goes wrong
def _values_where(test):
    return lambda f: f.get("about") == "values" and test(f)


def _of_view(f):
    """Memory or values are wrong, in a case with a view, and everything was written."""
    return f.get("about") == "memory" and "case" in f or f.get("about") == "values" and not f["unwritten"]


def _rounded_down(f):
    """Only the rows of the last, partial tile were never written: the programs before it wrote a power of two each."""
    programs, rows = math.prod(f["grids"][0]) if f["grids"] else 0, f["bad"] // f["size"]
    if f["unwritten"] != f["bad"] or programs == 0:
        return programs == 0
    block, rest = divmod(f["rows"] - rows, programs)
    return rest == 0 and block > rows and block & (block - 1) == 0


STEP_2 = Step(
    number="08.2",
    title="Enough to do",
    spec="Give each program a tile of heads: 1,024 elements or more of a long prompt, and still four programs for one token of 64 heads.",
    answer="function",
    call="head_norm(x, w, y)",
    size="about 12 lines in the kernel, 5 in the launch",
    grade=grade_norm,
    mistakes=(
        Mistake("nothing launched", lambda f: "nothing" in f, "Does a condition skip the launch?"),
        Mistake(
            "no tokens",
            lambda f: "case" in f and f["case"].tokens == 0,
            "With 0 tokens there is nothing to do: is at least one program launched all the same, or something divided by 0?",
        ),
        Mistake(
            "flattened",
            lambda f: "view size is not compatible" in str(f.get("error", "")),
            "x.view cannot flatten a view. Leave the tensor as it is, and give the kernel both strides.",
        ),
        Mistake("copied", lambda f: "copied" in f, "Does reshape or contiguous copy the tensor? Give the kernel both strides of the view."),
        Mistake(
            "strides of y",
            lambda f: _of_view(f) and f["case"].swapped,
            "Only tensors with heads before tokens are wrong: does y have strides of its own in the kernel?",
        ),
        Mistake(
            "strides",
            lambda f: _of_view(f) and f["case"].wider,
            "Only views are wrong: a token begins at offs_t * stride_xt and a head at offs_h * stride_xh.",
        ),
        Mistake(
            "no mask of rows",
            lambda f: f.get("about") == "memory" and f["case"].size in (64, 128),
            "The last tile is partial: does the mask of load and store leave out the rows past tokens * heads?",
        ),
        Mistake(
            "no mask of elements",
            lambda f: f.get("about") == "memory",
            "The size may be no power of two: does the mask leave out the lanes past size?",
        ),
        Mistake(
            "mean over the block",
            _values_where(lambda f: f["case"].size == 80 and not f["unwritten"]),
            "Wrong where size is no power of two: is the mean taken over BLOCK_D lanes, or are masked lanes other than 0?",
        ),
        Mistake(
            "rounded down",
            _values_where(_rounded_down),
            "The last rows are never written: does the grid round down? triton.cdiv rounds up.",
        ),
        Mistake(
            "left out",
            _values_where(lambda f: f["unwritten"] == f["bad"]),
            "Some rows have no program: does the grid count tokens * heads rows, does tile pid begin at pid * BLOCK_M, and is row r "
            "head r % n_heads of token r // n_heads?",
        ),
        Mistake(
            "one mean for the tile",
            _values_where(lambda f: f["case"].tokens * f["case"].heads > 1),
            "Is the sum taken over each row alone, tl.sum(x * x, axis=1), and does each row keep its own?",
        ),
        Mistake("the formula", _values_where(lambda f: True), "y = x / sqrt(mean(x²) + 1e-6) * w, in float32."),
        Mistake(
            "a program a head",
            lambda f: "many" in f and f["programs"] >= f["heads"],
            "Does each head still have a program of its own? A tile needs one.",
        ),
        Mistake("tiles too small", lambda f: "many" in f, "The tile is small: 1,024 elements are eight heads of 128."),
        Mistake(
            "one program for all",
            lambda f: "few" in f and f["programs"] == 1,
            "One program has all heads of the token: cut the heads as well, or tile rows of tokens * heads.",
        ),
        Mistake("tiles too large", lambda f: "few" in f, "The tile is large: 2,048 elements leave four programs for a token of 64 heads."),
        Mistake(
            "a loop",
            lambda f: "narrow" in f and f["loops"],
            "Is there a loop over single heads? 128 elements are one for each thread. Load all rows of the tile as one block.",
        ),
        Mistake(
            "many warps",
            lambda f: "narrow" in f,
            "A thread that loads 128 bits has eight float16 in a row: are there more warps than the tile has work for?",
        ),
    ),
    hints=(
        "Number the heads of all tokens: row = token * n_heads + head. A tile is a block of such rows, and a row tells its token and head.",
        "rows = pid * BLOCK_M + tl.arange(0, BLOCK_M); token rows // n_heads, head rows % n_heads; the block is [BLOCK_M, BLOCK_D], the "
        "sum goes along axis 1. 1,024 to 2,048 elements are BLOCK_M = 8 or 16 at size 128.",
        "mask = (rows < n_rows)[:, None] & (offs_d < size)[None, :]; grid = (triton.cdiv(tokens * heads, 16),), with BLOCK_M = 16.",
    ),
)
