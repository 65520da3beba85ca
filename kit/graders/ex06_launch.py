"""How exercise 06 judges a kernel and its launch, 06.2 and 06.3: on paper, for the grid and the memory, then for its values."""

from __future__ import annotations

import torch

from kit import machine
from kit.graders.buffers import Buffer, compare
from kit.graders.ex06_legal_grid import MOST_TOKENS
from kit.graders.paper import grid_picture, meta, on_paper, tell_report
from kit.graders.step import Mistake, counted


def grade_launch(answer, trial, tokens, tile=None):
    """Judge a wrapper `answer(x, w, out)` of out[t, h, :] = x[t, h, :] * w[h]: small sizes, both sides of 65,536, 1 M tokens on paper.

    Each case is run on paper, for the grid and the memory, then for its values in guarded buffers. `tile` is the tokens a program owns.
    """
    trial.evidence = machine.current().evidence
    for case, num_tokens in enumerate(tokens):
        small = num_tokens < 1000
        num_heads, head_size, wider = (3, 20, (4, 24)) if small else (2, 5, None)
        ran = f"{counted(num_tokens, 'token')} of {num_heads} heads"
        facts = {"tokens": num_tokens, "heads": num_heads, "tile": tile}
        _on_paper(answer, trial, num_tokens, num_heads, head_size, ran, facts)
        memory = not any(p.about == "memory" for p in trial.problems)
        right = _values(answer, trial, num_tokens, num_heads, head_size, wider if case % 2 else None, ran, facts)
        trial.case(ran, values=right, memory=memory and not any(p.about == "memory" for p in trial.problems))
    ran = f"{counted(MOST_TOKENS, 'token')} of 16 heads, on paper"
    _on_paper(answer, trial, MOST_TOKENS, 16, 64, ran, {"tokens": MOST_TOKENS, "heads": 16, "tile": tile})
    trial.case(ran)


def _on_paper(answer, trial, num_tokens, num_heads, head_size, ran, facts):
    shape = (num_tokens, num_heads, head_size)
    with on_paper() as launches:
        trial.call(answer, meta(shape, torch.float32), meta((num_heads,), torch.float32), meta(shape, torch.float32), ran=ran)
    facts |= {"grids": [launch.grid for launch in launches], "kernels": [launch.kernel for launch in launches]}
    for launch in launches:
        tell_report(trial, launch.report, ran, facts)
    programs = sum(launch.programs for launch in launches)
    facts["programs"] = programs
    if not launches and num_tokens:
        trial.problem(
            "launch", f"{ran}: no kernel is launched", facts | {"nothing": True}, ran=ran, where="the call", got="0 launches", expected="1"
        )
    elif facts["tile"] and not trial.problems and programs > -(-num_tokens // facts["tile"]) * num_heads:
        wanted = -(-num_tokens // facts["tile"]) * num_heads
        text = f"{ran}: {counted(programs, 'program')} are launched, and {wanted:,} tiles of {facts['tile']} tokens cover them"
        picture = grid_picture(launches[0].grid)
        trial.problem(
            "launch", text, facts | {"many": True}, ran=ran, where="the grid", got=f"{programs:,}", expected=f"{wanted:,}", picture=picture
        )


def _values(answer, trial, num_tokens, num_heads, head_size, wider, ran, facts):
    shape = (num_tokens, num_heads, head_size)
    device = machine.current().device
    values = torch.randn(shape, device=device)
    weights = torch.arange(2, num_heads + 2, dtype=torch.float32, device=device)
    wide = wider and (num_tokens, *wider)
    x = Buffer(shape, torch.float32, values=values, wider=wide, offset=2051 if wide else 2048)
    w = Buffer((num_heads,), torch.float32, values=weights)
    out = Buffer(shape, torch.float32, wider=wide)
    if any(p.about == "launch" for p in trial.problems):
        return None  # refused, or not what was asked: there are no values to compare
    if any(p.about == "memory" for p in trial.problems) and machine.current().live:
        return None  # on a GPU the launch could end the process; the paper run has told
    trial.call(answer, x.view, w.view, out.view, ran=ran)
    expected = values * weights[:, None]
    return compare(trial, out, expected, name="out", axes=("token", "head", "element"), ran=ran, facts=facts)[0]


# ---- what a mistake looks at
def _refused_axis(f):
    """The first axis over its limit, with the grid, of a refused launch; None otherwise."""
    if f.get("hazard") != "grid":
        return None
    over = [axis for axis, n in enumerate((*f["grid"], 1, 1)[:3]) if axis and n > 65_535]
    return over[0] if over else None


def _token_axis_refused(f):
    axis = _refused_axis(f)
    tiles = (f["tokens"], -(-f["tokens"] // f["tile"])) if f.get("tile") else (f["tokens"],)
    return axis is not None and f["grid"][axis] in tiles


def tail_missing(f, first):
    """The unwritten elements are those of the tokens from `first` on, and nothing else is wrong."""
    return f.get("about") == "values" and f["first"][0] == first and f["unwritten"] == f["bad"] and f["last"][0] == f["tokens"] - 1


COMMON = (
    Mistake("tokens on axis 1", _token_axis_refused, "Is the number of tokens still on axis 1? Axis 0 is the one that holds more."),
    Mistake("another axis", lambda f: _refused_axis(f) is not None, "Axes 1 and 2 hold at most 65,535 programs: which number is there?"),
    Mistake("nothing launched", lambda f: "nothing" in f, "Does a condition skip the launch? Large inputs need the work too."),
    Mistake(
        "not on this machine",
        lambda f: isinstance(f.get("error"), AttributeError),
        "The wrapper may use the shape and strides of its arguments, and launch.",
    ),
)
