"""How exercise 14 judges a call, 14.2 and 14.3: on paper first, then its values and memory, beside float64 and beside each slip."""

from __future__ import annotations

import torch

from kit import machine
from kit.graders.buffers import compare
from kit.graders.ex14_inputs import BLOCKS, FULL, Inputs, large_args
from kit.graders.ex14_reference import SLIPS, roughly, same, written
from kit.graders.noting import noted
from kit.graders.paper import on_paper, tell_report
from kit.graders.step import Stop, kind_of, line_of

BFLOAT16 = 2**-8 * 1.02  # relative: half of bfloat16's step, and what float32 adds where it is nearly a tie


def judge_values(answer, trial, case):
    """Run one Case on paper and for real, and end it. `answer` takes the arguments without BLOCK_T."""
    ran, inputs, facts = str(case), Inputs(case), {"case": case}
    before = inputs.given()
    _on_paper(answer, trial, ran, facts, inputs.paper(), case.tokens)
    legal = not any(problem.about == "memory" for problem in trial.problems)
    if any(problem.about == "launch" for problem in trial.problems) or (not legal and machine.current().live):
        trial.case(ran, memory=legal or None)
    args = inputs.args()
    with noted() as launches:
        trial.call(answer, *args, ran=ran)
    _copies(trial, ran, facts, launches, args[0])
    right, inside = _compare(trial, ran, facts, inputs, before)
    trial.case(ran, values=right, memory=legal and inside)


def _compare(trial, ran, facts, inputs, before):
    """(values are right, nothing outside was written) of the three outputs; the slip that explains them all is found once."""
    outputs = inputs.outputs()
    wanted = _by_heads(outputs, written(before))
    close = {name: same(one.view, wanted[name], BFLOAT16) for name, one in outputs.items()}
    if not all(one.all() for one in close.values()):
        facts = {**facts, "slip": _slip(outputs, before), "rounded": _rounded(outputs, wanted)}
    right = inside = True
    for name, buffer in outputs.items():
        axes = ("token", "head", "element") if name == "qkv" else ("block", "place", "head", "element")
        expected = torch.where(close[name], buffer.view.double(), wanted[name])
        one = compare(trial, buffer, expected, name=name, axes=axes, ran=ran, facts=facts | {"output": name})
        right, inside = right and one[0], inside and one[1]
    return right, inside


def _by_heads(outputs, expected):
    return {name: one.reshape(outputs[name].shape) for name, one in zip(outputs, expected, strict=True)}


def _slip(outputs, before):
    for slip in SLIPS:
        wanted = _by_heads(outputs, written(before, slip, padded=1 << (before.k_cache.shape[-1] - 1).bit_length()))
        if all(bool(same(one.view, wanted[name], BFLOAT16).all()) for name, one in outputs.items()):
            return slip
    return ""


def _rounded(outputs, wanted):
    """True when all are near: wrong by the dtype of some step, and by no formula."""
    return all(roughly(one.view, wanted[name]) for name, one in outputs.items())


def _copies(trial, ran, facts, launches, qkv):
    """A problem where no kernel is given qkv's own memory: it was copied, or taken from elsewhere."""
    given = {arg.data_ptr() for _, args, options in launches for arg in (*args, *options.values()) if isinstance(arg, torch.Tensor)}
    if launches and qkv.numel() and qkv.data_ptr() not in given:
        text = f"{ran}: the kernel is given another tensor than qkv"
        told = {"where": "the launch", "got": "a copy, or another address", "expected": "qkv itself, with its stride"}
        trial.problem("answer", text, facts | {"copied": True}, ran=ran, **told)


def _on_paper(answer, trial, ran, facts, args, tokens):
    """Tell what a call's launches do on paper."""
    with on_paper() as launches:
        if tokens:
            trial.call(answer, *args, ran=ran)
        else:
            _nothing_to_do(answer, trial, ran, facts, args)
    for launch in launches:
        tell_report(trial, launch.report, ran, facts | {"kernel": launch.kernel})
    if not launches and tokens:
        trial.problem("launch", f"{ran}: no kernel is launched", facts | {"nothing": True}, ran=ran, where="the call", got="0 launches")


def _nothing_to_do(answer, trial, ran, facts, args):
    try:
        answer(*args)
    except Exception as error:  # noqa: BLE001  whatever an answer raises is a finding
        about, told = kind_of(error)
        where = line_of(error) or "the call"
        trial.problem(about, f"{ran}: {told}", facts | {"error": error}, ran=ran, where=where, got=told, expected="nothing done")
        raise Stop from None


def judge_full_size(answer, trial):
    """The launch of a million tokens of 32 and 8 heads of 64, on paper."""
    ran = f"{FULL:,} tokens, 32 and 8 heads of 64, caches of {BLOCKS:,} blocks, on paper"
    _on_paper(answer, trial, ran, {"full": True}, large_args(FULL), FULL)
    trial.case(ran, memory=not any(problem.about == "memory" for problem in trial.problems))
