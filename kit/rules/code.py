"""The source of a kernel and of the `@triton.jit` functions it calls, as syntax trees whose lines count as a Note's do."""

from __future__ import annotations

import ast
import inspect
import textwrap
from dataclasses import dataclass, field

from triton.runtime import JITFunction


@dataclass(frozen=True)
class Code:
    """One function: its syntax tree, in which line 1 is its first decorator. `own` is True for the kernel itself."""

    function: object
    tree: ast.FunctionDef
    own: bool
    texts: list = field(repr=False)

    @property
    def name(self):
        return self.function.__name__

    def place(self, node):
        """(line, source) for a Note on `node`: the line counts in the kernel alone, since a Note's line always does."""
        return (node.lineno if self.own else None), self.texts[node.lineno - 1].strip()

    @property
    def told(self):
        """How a sentence names the function: nothing for the kernel."""
        return "" if self.own else f" of {self.name}"


def codes(kernel):
    """[Code] of `kernel` and of every `@triton.jit` function that its source reaches by a name, itself first.

    Unlike kit.sources.reach this follows functions in installed libraries too, since kernels in them may be examined; Triton's own
    are left out.
    """
    found, todo = {}, [kernel]
    while todo:
        function = todo.pop(0)
        if id(function) in found:
            continue
        code = _read(function, own=function is kernel)
        found[id(function)] = code
        scope = {**function.fn.__globals__, **inspect.getclosurevars(function.fn).nonlocals}
        for node in ast.walk(code.tree):
            called = _resolved(node.func, scope) if isinstance(node, ast.Call) else None
            if isinstance(called, JITFunction) and not called.__module__.startswith("triton."):
                todo.append(called)
    return list(found.values())


def _read(function, own):
    texts = list(function.raw_src)
    tree = ast.parse(textwrap.dedent("".join(texts))).body[0]
    return Code(function, tree, own, texts)


def _resolved(node, scope):
    """The object that a name or a dotted name stands for, or None."""
    if isinstance(node, ast.Name):
        return scope.get(node.id)
    if isinstance(node, ast.Attribute):
        return getattr(_resolved(node.value, scope), node.attr, None)
    return None


def assigned(tree):
    """{name: how often} of the names that a function's body binds, its parameters not counted."""
    counts = {}
    for node in ast.walk(tree):
        if isinstance(node, ast.Name) and isinstance(node.ctx, ast.Store):
            counts[node.id] = counts.get(node.id, 0) + 1
    return counts


def is_call(node, *names):
    """True for a call whose function ends in one of `names`: tl.load(...), x.to(...), load(...)."""
    if not isinstance(node, ast.Call):
        return False
    function = node.func
    return (function.attr if isinstance(function, ast.Attribute) else getattr(function, "id", None)) in names


def names_in(node):
    """The names that stand in an expression."""
    return {one.id for one in ast.walk(node) if isinstance(one, ast.Name)}
