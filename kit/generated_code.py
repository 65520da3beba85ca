"""What `generated` returns: a module that Inductor wrote, and its kernels, read as text. Nothing is imported from torch's compiler."""

from __future__ import annotations

import ast
import functools
import html
import re
import textwrap
from dataclasses import dataclass, field

import torch

from kit.errors import BadInput, KitError, quoted


@dataclass(eq=False)
class Generated:
    """Inductor's module for one function and one set of shapes. Calling it runs the kernels. Evidence: compiled."""

    name: str
    source: str
    arguments: dict = field(repr=False)
    choices: dict = field(repr=False)
    order: list = field(repr=False)  # the arguments that the wrapper takes, by name, in its order; it leaves out those without effect
    evidence: str = "compiled"

    @functools.cached_property
    def kernels(self):
        """The Triton kernels, in the order in which they are launched first."""
        from kit.inductor import kernel_texts

        texts = kernel_texts(self.source)
        found = {name: GeneratedKernel(name, text, self.choices[name]) for name, text in texts.items()}
        order = [name for name, _ in self.launches if name in found]
        return tuple(found[name] for name in dict.fromkeys([*order, *found]))

    @property
    def kernel(self):
        """The kernel, where there is exactly one. Raises KitError naming them when there are others."""
        if len(self.kernels) != 1:
            names = ", ".join(one.name for one in self.kernels) or "none"
            raise KitError(f"generated: {self.name} became {len(self.kernels)} Triton kernels ({names}); choose one from .kernels.")
        return self.kernels[0]

    @functools.cached_property
    def wrapper(self):
        """The text of `call`, the Python function that allocates outputs and launches the kernels."""
        calls = [node for node in ast.walk(ast.parse(self.source)) if isinstance(node, ast.FunctionDef) and node.name == "call"]
        if not calls:
            raise KitError(f"generated: this torch ({torch.__version__}) writes a module without a function `call`; read .source.")
        lines = self.source.splitlines()[calls[0].lineno - 1 : calls[0].end_lineno]
        return textwrap.dedent("\n".join(lines)) + "\n"

    @functools.cached_property
    def launches(self):
        """[(kernel, [arguments as text])] in the order of the wrapper."""
        found = []
        for node in ast.walk(ast.parse(self.wrapper)):
            launched = isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute) and node.func.attr == "run"
            if launched and isinstance(node.func.value, ast.Name):
                found.append((node.lineno, node.func.value.id, [ast.unparse(one) for one in node.args]))
        return [(name, args) for _, name, args in sorted(found)]

    @functools.cached_property
    def extern(self):
        """The library calls that the wrapper makes beside its kernels, such as "extern_kernels.mm"."""
        return sorted(set(re.findall(r"\bextern_kernels\.\w+", self.wrapper)))

    def __call__(self, *args):
        """Run the wrapper on real tensors of the shapes it was written for; return what fn returns (a tuple where fn returns several).

        Each kernel runs with the first of its configurations; on a GPU Inductor itself would time them. Raises BadInput for other shapes.
        """
        from kit.generated_run import run

        return run(self, args)

    def __repr__(self):
        kernels = ", ".join(one.name for one in self.kernels) or "no Triton kernel"
        more = f" and {', '.join(self.extern)}" if self.extern else ""
        return f"Inductor's code for {self.name}: {kernels}{more} [{self.evidence}]"

    def _repr_html_(self):
        from kit.evidence import label_html

        head = f"<div>{html.escape(repr(self).rsplit(' [', 1)[0])} {label_html(self.evidence)}</div>"
        return head + "".join(_pre(one.code) for one in self.kernels)


@dataclass(eq=False)
class GeneratedKernel:
    """One Triton kernel of a generated module."""

    name: str
    source: str  # as Inductor wrote it: imports, heuristics, kernel
    choices: list = field(repr=False)
    evidence: str = "compiled"

    @functools.cached_property
    def _definition(self):
        return next(node for node in ast.parse(self.source).body if isinstance(node, ast.FunctionDef))

    @functools.cached_property
    def code(self):
        """The kernel alone, from `@triton.jit` on, without Inductor's heuristics above it."""
        first = next(node for node in self._definition.decorator_list if ast.unparse(node) == "triton.jit").lineno
        return "\n".join(self.source.splitlines()[first - 1 : self._definition.end_lineno]) + "\n"

    @functools.cached_property
    def heuristics(self):
        """The decorator that tells Inductor's runtime what the kernel is: size hints, signature, metadata."""
        node = self._definition.decorator_list[0]
        return "@" + ast.get_source_segment(self.source, node)

    @property
    def kind(self):
        """Which of Inductor's templates it is: "pointwise", "reduction", "persistent_reduction" and others."""
        return ast.unparse(self._definition.decorator_list[0].func).split(".")[-1]

    def meta(self, key):
        """A keyword of the heuristics as a value: "size_hints", "signature", "configs", "mutated_arg_names", or another that stands there.

        Values that are no plain data come as their text. Raises BadInput naming the keys that there are.
        """
        found = {}
        for outer in self._definition.decorator_list[0].keywords:
            found[outer.arg] = _plain(outer.value)
            if isinstance(outer.value, ast.Dict):
                pairs = zip(outer.value.keys, outer.value.values, strict=True)
                found |= {one.value: _plain(value) for one, value in pairs if isinstance(one, ast.Constant)}
        if key not in found:
            raise BadInput(f"generated: {self.name} has no {quoted(key)}; there are {', '.join(map(str, found))}.")
        return found[key]

    @property
    def parameters(self):
        """The names of the kernel's parameters, in order."""
        return [one.arg for one in self._definition.args.args]

    @functools.cached_property
    def literals(self):
        """[(number, source line)] of the whole numbers above 1 that stand in the body: sizes, strides and bounds of the traced call."""
        lines, found = self.source.splitlines(), []
        for node in ast.walk(self._definition):
            if isinstance(node, ast.Constant) and type(node.value) is int and node.value > 1 and node.lineno > self._definition.lineno:
                found.append((node.lineno, node.value, lines[node.lineno - 1].strip()))
        return [(value, line) for _, value, line in sorted(found)]

    @functools.cached_property
    def jit(self):
        """The kernel as a `@triton.jit` kernel of this process, for build, dry_run and launches of your own."""
        from kit.generated_run import load

        return load(self)

    @property
    def lines(self):
        return self.code.splitlines()

    def at(self, word):
        """The lines of the code that hold `word`, stripped. Raises BadInput when none does."""
        found = [line.strip() for line in self.lines if word in line]
        if not found:
            raise BadInput(f"generated: {quoted(word)} stands in no line of {self.name}.")
        return found

    def __repr__(self):
        return f"{self.name}: {self.kind}, {len(self.lines)} lines, {', '.join(self.parameters)} [{self.evidence}]"

    def _repr_html_(self):
        from kit.evidence import label_html

        head = f"<div>{html.escape(repr(self).rsplit(' [', 1)[0])} {label_html(self.evidence)}</div>"
        return head + _pre(self.code)


def _plain(node):
    try:
        return ast.literal_eval(node)
    except (ValueError, TypeError):
        return ast.unparse(node)


def _pre(text):
    return f'<pre style="margin:.3em 0 .6em;overflow-x:auto">{html.escape(text)}</pre>'
