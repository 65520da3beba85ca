"""Exercise 15.2: an input on which each faulty kernel goes wrong. The kernel and its mended twin are really run there."""

from __future__ import annotations

from kit import machine
from kit.graders.hunt import SUSPECTS, given, is_paper, signs
from kit.graders.step import Mistake, Step, counted

SHOWN = "shown"  # how what became of an input begins, where it shows the fault


def grade_shown(answer, trial):
    """Judge `shown`: for each faulty kernel, inputs that show its fault and that a right kernel takes; None for a kernel without one."""
    here = machine.current()
    trial.evidence = here.evidence
    kinds, problems = {}, []
    for name, suspect in SUSPECTS.items():
        inputs = trial.call(answer, name, here.device, ran=name)
        kinds[name], problem = _judged(suspect, inputs, trial)
        if problem:
            problems.append((name, *problem))
    picture = _picture(kinds)
    for name, text, facts, told in problems:
        trial.problem("answer", f"{name}: {text}", {"name": name, **facts}, ran=name, where="the input", picture=picture, **told)
    shown = sum(kind.startswith(SHOWN) for kind in kinds.values())
    faulty = sum(suspect.rule != "right" for suspect in SUSPECTS.values())
    if not problems and shown < faulty:
        text = f"{shown} of {faulty} faults are shown"
        told = {"ran": "all names", "where": "what it returns", "got": counted(shown, "fault"), "expected": f"{faulty}"}
        trial.problem("answer", text, {"what": "open", "shown": shown}, picture=picture, **told)
    for name in SUSPECTS:
        trial.case(f"{name}: {kinds[name]}")


def _judged(suspect, inputs, trial):
    """(what became of it, None or (text, facts, told)) of the inputs for one suspect."""
    if inputs is None:
        return "no input", None
    if not isinstance(inputs, tuple):
        told = {"got": f"{type(inputs).__name__}", "expected": "a tuple of its inputs, without out"}
        return "no tuple", (f"it returns {inputs!r:.40}, and not a tuple of inputs", {"what": "type"}, told)
    ran = f"{suspect.name}({given(inputs)})"
    wanted = len(suspect.usual(machine.current().device))
    if len(inputs) != wanted:
        told = {"got": counted(len(inputs), "input"), "expected": counted(wanted, "input")}
        return "not its inputs", (f"it takes {counted(wanted, 'input')} and out, and {len(inputs)} are returned", {"what": "count"}, told)

    if not _defined(suspect, inputs):
        told = {"got": "no value", "expected": "an input that it serves"}
        text = f"what it should compute at ({given(inputs)}) is not defined"
        return "none of its inputs", (text, {"what": "beyond", "rule": suspect.rule}, told)

    def call(function, *args):
        return trial.call(function, *args, ran=ran)

    found = signs(suspect, suspect.wrapper, inputs, call)
    if not found:
        facts = {"what": "clean", "rule": suspect.rule, "usual": _same_as_usual(suspect, inputs), "paper": any(map(is_paper, inputs))}
        told = {"got": "nothing wrong", "expected": "None" if suspect.rule == "right" else "something wrong"}
        return f"goes right at ({given(inputs)})", (f"nothing goes wrong at ({given(inputs)})", facts, told)
    twin = signs(suspect, suspect.mended, inputs, call) if suspect.mended else found
    if twin:
        told = {"got": twin[0].text, "expected": "an input that it serves"}
        text = f"at ({given(inputs)}) a kernel without the fault goes wrong too: {twin[0].text}"
        return "none of its inputs", (text, {"what": "beyond", "rule": suspect.rule}, told)
    return f"{SHOWN}: {found[0].kind}", None


def _defined(suspect, inputs):
    """Whether the reference has an answer: shapes that fit, numbers that lie inside. With ghosts only the shape of out is asked."""
    try:
        suspect.out_of(*inputs)
        if not any(map(is_paper, inputs)):
            suspect.reference(*inputs)
    except Exception:  # noqa: BLE001  whatever it raises, the input is the reader's
        return False
    return True


def _same_as_usual(suspect, inputs):
    return given(inputs) == given(suspect.usual(machine.current().device))


def _picture(kinds):
    """Of each kernel, whether its fault was shown, and by what."""
    rows = [
        {"label": name, "value": int(kind.startswith(SHOWN)), "ok": None if kind == "no input" else kind.startswith(SHOWN), "note": kind}
        for name, kind in kinds.items()
    ]
    return {"kind": "Bars", "title": "1 where the fault was seen", "rows": rows}


def _clean(*names):
    return lambda f: f.get("what") == "clean" and f["name"] in names


STEP_2 = Step(
    number="15.2",
    title="An input that shows it",
    spec="For the name of a faulty kernel, return inputs on which it goes wrong; None for one without a fault.",
    answer="function",
    call="shown(name, device)",
    size="about 13 lines",
    grade=grade_shown,
    mistakes=(
        Mistake(
            "no tuple", lambda f: f.get("what") == "type", "Return a tuple, (x,) for one input: what stands in front of out in its call."
        ),
        Mistake(
            "out", lambda f: f.get("what") == "count", "Return what the wrapper takes in front of out, in its order; out is the grader's."
        ),
        Mistake(
            "right",
            lambda f: f.get("rule") == "right",
            "Is this kernel at fault at all? For one that keeps the rules, return None.",
        ),
        Mistake(
            "beyond",
            lambda f: f.get("what") == "beyond",
            "The fault must show on an input that its text says it serves: look at dtype, sizes and layout there.",
        ),
        Mistake("nothing returned", lambda f: f.get("what") == "open" and not f["shown"], "Is the return missing? Every name gives None."),
        Mistake("open", lambda f: f.get("what") == "open", "Those given are right; inputs for the others are missing."),
        Mistake("usual", lambda f: f.get("usual"), "These are the sizes of its own test, which it passes."),
        Mistake(
            "index without memory",
            lambda f: f.get("what") == "clean" and f["name"] == "read_blocks" and f["paper"],
            "Which block is read? A ghost's integers are zeros: make table a real tensor, and name a block far back in the cache.",
        ),
        *(Mistake(name, _clean(name), suspect.look) for name, suspect in SUSPECTS.items()),
    ),
    hints=(
        "Four kinds of input: another size or shape, another layout in memory, other values, and the largest sizes. For the largest, "
        "kit.ghost(shape, dtype) has a shape and no memory; what is wrong there is found on paper.",
        "A kernel that passes with one warp goes wrong with several; a literal size, with another size; one stride for two pointers, with "
        "a view; a product in a narrow type, with large values or large sizes. Where only the cost is wrong, think of the largest "
        "row, the next token, and the most tokens.",
        "gate_rows: one input a slice, the other contiguous. smooth_rows: 2,000 columns. last_tokens: pos smaller than n. read_blocks: a "
        "cache of more than 2^31 elements as a ghost, its last block in table. mean_square: elements of 300. bias_relu: not 768 columns. "
        "softmax_rows: 32,768 columns. scale_heads: over 65,535 heads of all sequences. mask_tail: length 41. gate_heads: 8,192 tokens.",
    ),
)
