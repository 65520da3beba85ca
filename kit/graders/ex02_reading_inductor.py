"""Exercise 02: reading what Inductor writes. The questions are put on code that is generated on the reader's machine."""

from __future__ import annotations

import ast
import re

import torch

from kit.generated import generated_each
from kit.ghosts import ghost
from kit.graders import ex02_general, ex02_guard
from kit.graders.ex02_general import standardize
from kit.graders.step import Exercise, Mistake, Step


# ---- What is asked about
def softmax_and_sum(x):
    return torch.softmax(x, -1), x.sum(-1)


def rows_and_columns(x):
    return x.sum(1), x.sum(0)


def relu_of_product(a, b):
    return torch.relu(a @ b)


def add_and_double(x, y):
    x.add_(y)
    return x * 2


def scatter(x, index, y):
    return x.index_add(0, index, y)


# ---- 02.1: which pointers are written
def kernels_to_read():
    """[(title, code, names of the parameters)] of kernels that are generated here."""
    half, vector = ghost((512, 200), torch.float16), ghost((1_000,), torch.float16)
    table, index, rows = ghost((100, 64), torch.float32), ghost((50,), torch.int64), ghost((50, 64), torch.float32)
    calls = {
        "x * rsqrt of x": (standardize, half),
        "softmax and sum of rows": (softmax_and_sum, half),
        "relu of a product": (relu_of_product, ghost((64, 128), torch.float16), ghost((128, 96), torch.float16)),
        "x.add_(y), then x * 2": (add_and_double, vector, vector),
        "index_add": (scatter, table, index, rows),
        "sums of rows and columns": (rows_and_columns, ghost((8_192, 1_024), torch.float16)),
    }
    titles = ["standardised rows", *list(calls)[1:]]
    found = []
    for title, made in zip(titles, generated_each(list(calls.values())), strict=True):
        kernel = made.kernels[-1 if title == "index_add" else 0]
        found.append((title, kernel.code, kernel.parameters))
        if title == "x.add_(y), then x * 2":  # under the name that it bore in pytorch #183575
            code = re.sub(r"\bin_ptr0\b", "in_out_ptr0", kernel.code)
            found.append((f"{title}, x called in_out_ptr0", code, [name.replace("in_ptr0", "in_out_ptr0") for name in kernel.parameters]))
    return found


def written_by(code):
    """The parameters that a generated kernel stores or adds to atomically, read off its syntax tree."""
    kernel = ast.parse(code).body[0]
    parameters = {argument.arg for argument in kernel.args.args}
    found = set()
    for node in ast.walk(kernel):
        if isinstance(node, ast.Call) and re.fullmatch(r"tl\.(store|atomic_\w+)", ast.unparse(node.func)):
            found |= parameters & {name.id for name in ast.walk(node.args[0]) if isinstance(name, ast.Name)}
    return {name for name in found if "ptr" in name}


def grade_written(answer, trial):
    """Judge `written` on seven kernels. All are asked before the first is judged: a likely cause is a rule that explains every answer."""
    trial.evidence = "compiled"
    asked = []
    for title, code, parameters in kernels_to_read():
        got = trial.call(answer, code, ran=title)
        if not isinstance(got, (set, frozenset)) or not all(isinstance(name, str) for name in got):
            said = f"{got!r:.60}"
            told = {"ran": title, "where": "what it returns", "got": said, "expected": "a set of names"}
            trial.problem("answer", f"{title}: got {said}, expected a set of names", {"kind": type(got).__name__}, **told)
            trial.case(title)
        asked.append((title, code, parameters, set(got)))
    for title, code, parameters, got in asked:
        right = written_by(code)
        if got != right:
            told = {"ran": title, "where": "what it returns", "got": _names(got), "expected": _names(right)}
            told["picture"] = _pointers_picture(parameters, got, right)
            text = f"{title}: got {_names(got)}, expected {_names(right)}"
            trial.problem("answer", text, {"asked": asked, "got": got, "right": right}, **told)
        trial.case(title)


def _names(names):
    return ", ".join(sorted(names)) or "none"


def _pointers_picture(parameters, got, right):
    rows = []
    for name in [*(name for name in parameters if "ptr" in name), *sorted(got - set(parameters))]:
        stored = "stored to" if name in right else "not stored to" if name in parameters else "no parameter"
        said = "written" if name in got else "not written"
        rows.append(
            {"label": name, "value": int(name in right), "ok": (name in got) == (name in right), "note": f"{stored}; answered: {said}"}
        )
    return {"kind": "Bars", "title": "The pointers: 1 where the body stores", "rows": rows}


def _by(rule):
    """True when `rule(code, pointers)` gives every answer."""
    return lambda f: "asked" in f and all(got == rule(code, [p for p in names if "ptr" in p]) for _, code, names, got in f["asked"])


def _found(pattern):
    return _by(lambda code, pointers: set(re.findall(pattern, code)))


STEP_1 = Step(
    number="02.1",
    title="Which pointers does it write?",
    spec="From the text of a generated kernel, return the set of the parameters that it writes.",
    answer="function",
    call="written(code)",
    size="about 1 line",
    grade=grade_written,
    mistakes=(
        Mistake("nothing returned", lambda f: f.get("kind") == "NoneType", "Is the return missing?"),
        Mistake(
            "no set", lambda f: "kind" in f, "Return a set, such as {'out_ptr0'}: a pointer counts once, however often it is stored to."
        ),
        Mistake(
            "starts with out",
            _by(lambda code, pointers: {p for p in pointers if p.startswith("out")}),
            "A name is a promise: in_out_ptr0 may be written, and ws_ptr is. Do not go by the names, look for the stores.",
        ),
        Mistake(
            "out in the name",
            _by(lambda code, pointers: {p for p in pointers if "out" in p}),
            "One in_out_ptr0 here is only loaded, and ws_ptr is written without an out in its name: look for the stores.",
        ),
        Mistake(
            "all but in", _by(lambda code, pointers: {p for p in pointers if not p.startswith("in_ptr")}), "One in_out_ptr0 is only loaded."
        ),
        Mistake("all pointers", _by(lambda code, pointers: set(pointers)), "Are these all pointers? Some are only loaded."),
        Mistake("loads", _found(r"tl\.load\((\w+)"), "These are the pointers that are loaded."),
        Mistake("no atomics", _found(r"tl\.store\((\w+)"), "An atomic addition writes as well: tl.atomic_add(pointer, ...)."),
        Mistake("no stores", _found(r"tl\.atomic_\w+\((\w+)"), "Most kernels write with tl.store; are those left out?"),
        Mistake(
            "the first only",
            _by(lambda code, pointers: set(re.findall(r"tl\.(?:store|atomic_\w+)\((\w+)", code)[:1])),
            "Is that the first store only? A kernel may have several: re.findall finds all.",
        ),
        Mistake(
            "the last only",
            _by(lambda code, pointers: set(re.findall(r"tl\.(?:store|atomic_\w+)\((\w+)", code)[-1:])),
            "Is that the last store only? A kernel may have several.",
        ),
        Mistake("too many", lambda f: "right" in f and f["got"] > f["right"], "Some of these are not stored to: which calls write?"),
        Mistake(
            "too few",
            lambda f: "right" in f and f["got"] < f["right"],
            "Something that is stored to is missing: look at every call that writes.",
        ),
    ),
    hints=(
        "Names and metadata are statements about the kernel. Which calls in its body change memory?",
        "tl.store(pointer + ..., ...) and tl.atomic_add(pointer + ..., ...): the name behind the bracket. re.findall finds them all.",
        'return set(re.findall(r"tl\\.(?:store|atomic_\\w+)\\((\\w+)", code))',
    ),
)

EXERCISE = Exercise("02_reading_inductor", "Reading Inductor", (STEP_1, ex02_general.STEP_2, ex02_guard.STEP_3))
