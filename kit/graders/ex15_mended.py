"""Exercise 15.3: two of the faulty kernels mended, of different rules, and run on everything that a right kernel must pass."""

from __future__ import annotations

import inspect

from triton.runtime import JITFunction

from kit import machine
from kit.graders.hunt import SUSPECTS, given, signs
from kit.graders.step import Mistake, Step, counted

ASKED = 2


def grade_mended(answer, trial):
    """Judge `mended`: for two of the faulty kernels a wrapper that no case shows to be wrong; None for all others."""
    here = machine.current()
    trial.evidence = here.evidence
    wrappers = {}
    for name in SUSPECTS:
        got = trial.call(answer, name, ran=name)
        if got is not None:
            wrappers[name] = got
            _judge_kind(trial, name, got)
    if len(wrappers) != ASKED:
        names = ", ".join(wrappers) or "none"
        facts = {"what": "count", "n": len(wrappers)}
        told = {"ran": "all names", "where": "what it returns", "got": names, "expected": "two wrappers"}
        trial.problem("answer", f"{counted(len(wrappers), 'wrapper')} for all names, and {ASKED} are asked for", facts, **told)
        trial.case("all names")
    for name, wrapper in wrappers.items():
        suspect = SUSPECTS[name]
        cases = {"an input that shows its fault": suspect.shown(here.device), **suspect.cases(here.device)}
        for title, inputs in cases.items():
            _judge_case(trial, suspect, wrapper, title, inputs)


def _judge_kind(trial, name, got):
    told = {"ran": name, "where": "what it returns", "got": f"{got!r:.40}"}
    if SUSPECTS[name].rule == "right":
        trial.problem("answer", f"{name}: a mended one is returned, and it has no fault", {"what": "right"}, expected="None", **told)
    elif isinstance(got, JITFunction) or not callable(got):
        facts = {"what": "kind", "kernel": isinstance(got, JITFunction)}
        trial.problem("answer", f"{name}: it returns {got!r:.40}, which is no wrapper", facts, expected="its wrapper, a function", **told)
    elif not _takes(got, SUSPECTS[name]):
        told["got"] = f"{got.__name__}{inspect.signature(got)}"
        expected = f"{name}{inspect.signature(SUSPECTS[name].wrapper)}"
        trial.problem("answer", f"{name}: the mended one is {told['got']}", {"what": "arguments"}, expected=expected, **told)
    if trial.problems:
        trial.case(name)


def _takes(wrapper, suspect):
    """Whether the wrapper can be called as the suspect is."""
    try:
        inspect.signature(wrapper).bind(*inspect.signature(suspect.wrapper).parameters)
    except TypeError:
        return False
    return True


def _judge_case(trial, suspect, wrapper, title, inputs):
    ran = f"{suspect.name}, {title}"
    found = signs(suspect, wrapper, inputs, lambda function, *args: trial.call(function, *args, ran=ran))
    for sign in found[:2]:
        about = "values" if sign.kind == "values" else "memory" if sign.memory else "launch"
        facts = {"name": suspect.name, "kind": sign.kind, "text": sign.text}
        told = {"where": f"({given(inputs)})", "got": sign.got, "expected": sign.expected, "picture": sign.picture}
        trial.problem(about, f"{ran}: {sign.text}", facts, ran=ran, **told)
    memory = not any(sign.memory for sign in found)
    trial.case(ran, values=not any(sign.kind == "values" for sign in found), memory=memory)


def _sign(kind):
    return lambda f: f.get("kind") == kind


def _wrong(name):
    """The mended `name` reads other elements than it should: their values, or an address outside."""
    return lambda f: f.get("name") == name and f["kind"] in ("values", "out of bounds")


STEP_3 = Step(
    number="15.3",
    title="Mend two",
    spec="Mend two of the faulty kernels; return the wrapper of the mended one for its name, None for every other name.",
    answer="function",
    call="mended(name)",
    size="about 1 line, and two kernels",
    grade=grade_mended,
    mistakes=(
        Mistake("nothing returned", lambda f: f.get("what") == "count" and not f["n"], "Is the return missing? Every name gives None."),
        Mistake("one", lambda f: f.get("what") == "count" and f["n"] < ASKED, "One more: mend a kernel that breaks another rule."),
        Mistake("more", lambda f: f.get("what") == "count", "Return None for all but two: each takes some seconds to judge."),
        Mistake("right", lambda f: f.get("what") == "right", "There is nothing to mend in this one: 15.1 tells."),
        Mistake("kernel", lambda f: f.get("kernel"), "Return the function that launches the kernel, not the kernel."),
        Mistake("called", lambda f: f.get("what") == "kind", "Return the function itself, without calling it."),
        Mistake(
            "other arguments",
            lambda f: f.get("what") == "arguments",
            "Does the mended wrapper take the same arguments as the one in its cell, out last?",
        ),
        Mistake("launch", _sign("grid"), "Is a number that can pass 65,535 still on axis 1 or 2, or is nothing launched?"),
        Mistake("overflow", _sign("overflow"), "Which product is still of two int32? Cast a factor, not the product."),
        Mistake("race", _sign("race in a program"), "Does a barrier stand between the store and the load of what another warp stored?"),
        Mistake(
            "spills",
            _sign("spills"),
            "Does a program still hold more of the row than the registers of its warps can? More warps, or a loop.",
        ),
        Mistake(
            "variants",
            _sign("variants"),
            "What is in the key still? A constexpr counts by its value, and a plain integer by its class: 1, a multiple of 16, or neither.",
        ),
        Mistake("programs", _sign("programs"), "Does a program still own one small head? With many tokens give it several."),
        Mistake("idle", _sign("idle"), "Is the tile as large with one token as with thousands? In decode it leaves too few programs."),
        Mistake(
            "slots",
            _wrong("last_tokens"),
            "What is % of a negative number here? Which slot do you get for pos smaller than n?",
        ),
        Mistake(
            "strides",
            _wrong("gate_rows"),
            "There are three tensors, and each may have its own distance between rows: does each pointer use its own?",
        ),
        Mistake("literal", _wrong("bias_relu"), "Is the number of columns still a number in the body?"),
        Mistake("squares", _wrong("mean_square"), "In which dtype is the square taken? Cast the factor, before the product."),
        Mistake("memory", lambda f: f.get("kind", "values") != "values", "Run kit.dry_run at this input: it names the line."),
        Mistake("values", _sign("values"), "Compare with its equation at this input; its own test is not enough."),
    ),
    hints=(
        "Copy the cells of two kernels, give the wrappers another name, and change as little as you can.",
        "The inputs of 15.2 show whether it is mended; then try sizes of 1, both sides of a block, and views. Rules 5, 7 and 10 are "
        "mended by one line each.",
        "smooth_rows: tl.debug_barrier() between the store and the load. mean_square: .to(tl.float32) behind the load. "
        'return {"smooth_rows": my_smooth_rows, "mean_square": my_mean_square}.get(name).',
    ),
)
