"""The barriers that a kernel's source calls: where each stands, and the same kernel without one, to ask whether it is needed."""

from __future__ import annotations

import ast
import itertools
import linecache
import textwrap
from dataclasses import dataclass

import triton.language as tl

from kit import machine
from kit.compiling import bind, compiled
from kit.simulator.driver import live_arguments
from kit.simulator.races import find
from kit.simulator.touches import touches

# A rename of debug_barrier to barrier is proposed (triton-lang/triton#11437): whichever there are count.
NAMES = tuple(name for name in ("debug_barrier", "barrier") if hasattr(tl, name))
_BARRIERS = tuple(getattr(tl, name) for name in NAMES)
_numbers = itertools.count()


@dataclass(frozen=True)
class Call:
    """One call of a barrier: the `line` in its file, the `number` of `of` in the kernel, the text of the statements before and after it,
    and whether it stands in a branch."""

    line: int
    number: int
    of: int
    before: str
    after: str
    branch: bool
    span: tuple  # first and last line, counted from the kernel's first, and the column

    @property
    def place(self):
        """Where it stands, in words."""
        where = f"behind `{self.before}`" if self.before else f"in front of `{self.after}`" if self.after else "alone"
        return f"the barrier {where}" if self.of == 1 else f"barrier {self.number} of {self.of}, {where},"


def barrier_calls(kernel):
    """[Call] of the barriers in the kernel's own source, in order; those of functions that it calls are not seen."""
    source = textwrap.dedent("".join(kernel.raw_src))
    tree, lines = ast.parse(source), source.splitlines()
    found = []
    for body, branch in _bodies(tree.body[0], False):
        for i, statement in enumerate(body):
            if isinstance(statement, ast.Expr) and _is_barrier(statement.value, kernel.fn.__globals__):
                before = lines[body[i - 1].end_lineno - 1] if i and not _is_text(body[i - 1]) else ""
                after = lines[body[i + 1].lineno - 1] if i + 1 < len(body) else ""
                span = (statement.lineno - 1, statement.end_lineno - 1, statement.col_offset)
                found.append((span, before.split("  #")[0].strip(), after.split("  #")[0].strip(), branch))
    found.sort()
    first = kernel.starting_line_number
    return [Call(first + span[0], n, len(found), before, after, branch, span) for n, (span, before, after, branch) in enumerate(found, 1)]


def _bodies(node, branch):
    """(statements, whether in a branch) of every block of statements inside `node`."""
    for name in ("body", "orelse"):
        body = getattr(node, name, None)
        if isinstance(body, list):
            yield body, branch
            for statement in body:
                yield from _bodies(statement, branch or isinstance(statement, ast.If))


def _is_barrier(node, scope):
    if not isinstance(node, ast.Call):
        return False
    if isinstance(node.func, ast.Attribute):
        return node.func.attr in NAMES
    return isinstance(node.func, ast.Name) and scope.get(node.func.id) in _BARRIERS


def _is_text(statement):
    return isinstance(statement, ast.Expr) and isinstance(statement.value, ast.Constant)


def without(kernel, call):
    """The kernel with `pass` in place of this barrier, as a new @triton.jit function."""
    lines = textwrap.dedent("".join(kernel.raw_src)).splitlines(keepends=True)
    first, last, column = call.span
    lines[first : last + 1] = [lines[first][:column] + "pass\n"] + ["\n"] * (last - first)
    text = "".join(lines)
    # Triton reads a kernel's source by its file; one that only linecache knows is left alone when its time is None.
    file = f"<{kernel.__name__} without barrier {call.number}, {next(_numbers)}>"
    linecache.cache[file] = (len(text), None, lines, file)
    scope = dict(kernel.fn.__globals__)
    exec(compile(text, file, "exec"), scope)  # noqa: S102  the answer's own text
    return scope[kernel.fn.__name__]


def races(kernel, grid, args, **meta):
    """[RacePair] of a launch, from the compiled code: the pairs of lines that certainly race inside a program. Nothing is written."""
    values, options = bind(kernel, args, meta, verb="races", device=machine.current().device)
    made = compiled(kernel, values, options, verb="races")
    arguments = live_arguments(list(made.src.signature.items()), values)
    return [pair for pair in find(made, kernel, grid, arguments) if pair.certain]


def superfluous(kernel, launches):
    """The first Call that no launch needs, or None. `launches` are (grid, args, meta) that have no race; each barrier is taken out in turn
    and the kernel compiled again: it is needed when that gives a race, or a kernel that cannot be compiled."""
    for call in barrier_calls(kernel):
        bare = without(kernel, call)
        if not any(races(bare, grid, args, **meta) for grid, args, meta in launches):
            return call
    return None


def meeting_picture(kernel, grid, args, meta, race, length):
    """A picture of a row of `length` elements: which of them two warps touch in the two lines of `race`. None where it cannot be drawn."""
    x, y = (*grid, 1, 1)[:2]
    px, py, pz = race.program
    seen = [t for t in touches(kernel, *args, program=(pz * y + py) * x + px, grid=grid, **meta) if t.argument == race.argument]
    lines = zip((race.first_line, race.second_line), race.kind.split(" then "), strict=True)
    ends = [next((t for t in seen if t.line == line and t.kind in (kind, "atomic")), None) for line, kind in lines]
    if None in ends:
        return None
    first = race.element // length * length
    holders = dict(zip(ends[0].elements.tolist(), ends[0].warps.tolist(), strict=True))
    states = [0] * length
    for element, warp in zip(ends[1].elements.tolist(), ends[1].warps.tolist(), strict=True):
        if first <= element < first + length:
            states[element - first] = int(holders.get(element, warp) != warp)
    title = f"{race.argument.removesuffix('_ptr')}: elements that two warps touch, no barrier between"
    names = ("one warp only", f"{race.kind}, by two warps")
    return {"kind": "Cells", "title": title, "rows": states, "names": names, "columns": 32, "first": 0}
