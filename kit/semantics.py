"""`probe`: one expression in four worlds, Triton, Python, NumPy and torch: the value and dtype that each gives, or why it refuses.

Modules of their own, not of kit/kernels, because they hold no kernel that a reader would use: one is written for each expression
(semantics_kernel.py), and runs as any kernel here does, on the GPU or simulated. The expression is the reader's own code, run in this
process. Python, NumPy and torch are given the same text, with `tl.` names and `.to(...)` spelled as they spell them (semantics_worlds.py).
"""

from __future__ import annotations

import ast
import html
import keyword
import math
import textwrap
from dataclasses import dataclass, field

from kit import machine
from kit.errors import BadInput, WrongType, quoted
from kit.semantics_kernel import triton_answer
from kit.semantics_worlds import DTYPES, RANGES, Answer, same, shown, world_answer

__all__ = ["Answer", "Given", "Probe", "probe"]

WORLDS = ("Triton", "Python", "NumPy", "torch")
RESERVED = {"tl", "triton", "np", "torch", "math", "python", "numpy"}
MOST = 64  # elements of a block


@dataclass(frozen=True)
class Given:
    """A named value of a probe. `kind` is "tensor", "scalar" (an argument of the launch) or "constexpr"; `dtype` the tensor's, or one
    that the argument is annotated with, else "". A list is a block, a number a tensor of rank 0."""

    name: str
    value: object
    kind: str
    dtype: str = ""

    @property
    def told(self):
        """In words: "x = -7 (int32 tensor)"."""
        kind = {"tensor": f"{self.dtype} tensor", "scalar": f"argument{self.dtype and ' typed ' + self.dtype}"}.get(self.kind, self.kind)
        return f"{self.name} = {shown(self.value, self.dtype)} ({kind})"

    @property
    def short(self):
        """In a few words: "int32 x = -7"."""
        kind = self.dtype if self.kind == "tensor" else f"{self.dtype} argument".strip() if self.kind == "scalar" else self.kind
        return f"{kind} {self.name} = {shown(self.value, self.dtype)}"


@dataclass(frozen=True)
class Probe:
    """What the four worlds gave. `probe["Python"]` is one Answer; true when every world that gave a value gave Triton's."""

    code: str
    given: tuple[Given, ...]
    answers: dict = field(repr=False)
    evidence: str = "simulated"

    def __getitem__(self, world):
        """The Answer of "Triton", "Python", "NumPy" or "torch"."""
        if world not in self.answers:
            raise BadInput(f"probe: there is no world {quoted(world)}; there are {', '.join(WORLDS)}.")
        return self.answers[world]

    @property
    def triton(self):
        return self.answers["Triton"]

    @property
    def others(self):
        """{world: Answer} of Python, NumPy and torch."""
        return {world: answer for world, answer in self.answers.items() if world != "Triton"}

    @property
    def differing(self):
        """The worlds whose answer is not Triton's: another value, or a value where the other has none."""
        return [world for world, answer in self.others.items() if answer.asked and not same(answer, self.triton)]

    def __bool__(self):
        return not any(answer.ok and not same(answer, self.triton) for answer in self.others.values())

    def __repr__(self):
        given = ", ".join(one.told for one in self.given)
        told = " · ".join(f"{world} {answer}" for world, answer in self.answers.items() if answer.asked)
        code = "; ".join(line.strip() for line in self.code.splitlines())
        return f"{code}{' with ' + given if given else ''}: {told} [{self.evidence}]"

    def _repr_html_(self):
        from kit.evidence import label_html

        given = html.escape(", ".join(one.told for one in self.given))
        head = f'<pre style="margin:.3em 0">{html.escape(self.code)}</pre><div>{given} {label_html(self.evidence)}</div>'
        names = "".join(f'<th style="text-align:left">{name}</th>' for name in ("", "value", "dtype", "what ran"))
        return f"<div>{head}<table><tr>{names}</tr>{''.join(map(self._row, self.answers))}</table></div>"

    def _row(self, world):
        answer, left = self.answers[world], '<td style="text-align:left">'
        mark = "≠ " if world in self.differing else ""
        value = f"<b>{mark}{html.escape(answer.told)}</b>" if mark or world == "Triton" else html.escape(answer.told)
        ran = "; ".join(answer.text.splitlines())
        return (
            f"<tr>{left}{world}</td>{left}{value}</td>{left}{html.escape(answer.kind)}</td>{left}<code>{html.escape(ran)}</code></td></tr>"
        )


def probe(code, /, *, python="", numpy="", torch="", **values):
    """Evaluate `code` in Triton, Python, NumPy and torch; return a Probe, an Answer for each world.

    `code` is an expression, or lines of which the last is one. Each of `values` is (value, kind): the kind is a dtype such as "int8" (a
    tensor; a list of 1, 2, 4, ... numbers makes a block), "scalar" (an argument of the launch, whose type follows from its value),
    "scalar float64" (an argument annotated with a dtype), or "constexpr". A bare number is a "scalar"; numbers in `code` are literals.
    `python`, `numpy`, `torch` give that world's own text; None leaves it out. Python works on one number of a block at a time.
    What a world refuses comes back in its Answer. Raises BadInput for code that no world could read, and for values that do not fit.
    """
    statements = parsed(code)
    given = tuple(_given(name, spec) for name, spec in values.items())
    here = machine.current()
    answers = {"Triton": triton_answer(statements, given, here)}
    for world, own in zip(WORLDS[1:], (python, numpy, torch), strict=True):
        answers[world] = world_answer(world, parsed(own) if own else statements, given, own)
    evidence = here.evidence if answers["Triton"].ok else "compiled"
    return Probe(textwrap.dedent(code).strip(), given, answers, evidence)


def parsed(code):
    """The statements of `code`, the last of which is an expression. Raises BadInput, WrongType."""
    if not isinstance(code, str):
        raise WrongType(f'probe: code must be text, such as "x // 4"; got {quoted(code)} ({type(code).__name__}).')
    try:
        statements = ast.parse(textwrap.dedent(code).strip()).body
    except (SyntaxError, ValueError) as error:
        raise BadInput(
            f"probe: {quoted(code)} is not Python: {getattr(error, 'msg', error)}. Write an expression, such as x // 4."
        ) from None
    if not statements or not isinstance(statements[-1], ast.Expr):
        raise BadInput(f"probe: {quoted(code)} does not end in an expression, so it has no value. End it in one, such as x // 4.")
    return statements


def _given(name, spec):
    """A checked Given."""
    if name in RESERVED or name.startswith("_") or keyword.iskeyword(name):
        raise BadInput(f"probe: a value cannot be called {name}, which stands for something else in the code; call it x.")
    value, kind = spec if isinstance(spec, tuple) and len(spec) == 2 else (spec, "scalar")
    if not isinstance(kind, str):
        raise WrongType(f'probe: {name} must be a pair of value and kind, such as (-7, "int32"); got {quoted(spec)}.')
    role, _, dtype = kind.strip().partition(" ")
    role, dtype = ("tensor", role) if role in DTYPES else (role, dtype.strip())
    if role not in ("tensor", "scalar", "constexpr") or (dtype and dtype not in DTYPES) or (role == "constexpr" and dtype):
        raise BadInput(f'probe: {name} has the kind {quoted(kind)}; it must be a dtype ({", ".join(DTYPES)}), "scalar" or "constexpr".')
    block = isinstance(value, (list, tuple))
    if block and (role != "tensor" or len(value) not in (1, 2, 4, 8, 16, 32, MOST)):
        raise BadInput(f"probe: {name} is a list of {len(value)}; a block is a tensor, of 1, 2, 4 and so on up to {MOST} numbers.")
    for one in value if block else [value]:
        _expect_fits(name, one, role, dtype)
    as_kind = float if "float" in dtype else bool if dtype == "bool" else lambda number: number
    return Given(name, [as_kind(one) for one in value] if block else as_kind(value), role, dtype)


def _expect_fits(name, value, role, dtype):
    if not isinstance(value, (bool, int, float)):
        raise WrongType(f"probe: {name} must be a number or a list of numbers; got {quoted(value)} ({type(value).__name__}).")
    low, high = RANGES.get(dtype, (-(2**63), 2**64 - 1))
    whole = dtype in RANGES or isinstance(value, int)
    if dtype in RANGES and isinstance(value, float) or (whole and not low <= value <= high):
        what = dtype or "a launch argument of 64 bits"
        raise BadInput(f"probe: {name} = {value} does not fit {what}, {low:,} to {high:,}. Give a whole number of that range.")
    if role == "constexpr" and isinstance(value, float) and not math.isfinite(value):
        raise BadInput(f'probe: {name} = {value} cannot be written as a constexpr here; make it a "scalar".')
