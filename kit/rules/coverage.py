"""Blocks that do not cover the row they are compared with: `offs = tl.arange(0, BLOCK)`, `offs < n`, and n is larger than BLOCK."""

from __future__ import annotations

import ast
from dataclasses import dataclass

from kit.rules.code import assigned, is_call


@dataclass(frozen=True)
class Short:
    """A block of `block` elements, alone, compared with an argument that is `given` at `launch`."""

    node: ast.Compare
    block_name: str
    block: int
    argument: str
    given: int
    launch: object


def short_blocks(code, launches):
    """[Short] of a kernel's Code over its launches on paper, one for each comparison, the largest argument first.

    Only a bare tl.arange counts: with an offset added, or inside a loop that moves the pointers, another part of the row is meant.
    """
    bound, names, arguments = assigned(code.tree), {}, {one.arg for one in code.tree.args.args}
    for node in ast.walk(code.tree):
        if isinstance(node, ast.Assign) and len(node.targets) == 1 and isinstance(node.targets[0], ast.Name):
            names[node.targets[0].id] = node.value
    looped = {id(inner) for node in ast.walk(code.tree) if isinstance(node, (ast.For, ast.While)) for inner in ast.walk(node)}
    found = []
    for node in ast.walk(code.tree):
        plain = isinstance(node, ast.Compare) and len(node.ops) == 1 and isinstance(node.ops[0], ast.Lt) and id(node) not in looped
        if not plain or not isinstance(node.comparators[0], ast.Name):
            continue
        argument, block = node.comparators[0].id, _arange(node.left, names, bound)
        if block is None or argument not in arguments or argument in bound:
            continue
        sizes = [(one.named.get(argument), one.named.get(block, block), one) for one in launches]
        over = [(n, width, one) for n, width, one in sizes if type(n) is int and type(width) is int and n > width]
        if over:
            n, width, one = max(over, key=lambda each: each[0])
            found.append(Short(node, str(block), width, argument, n, one))
    return found


def _arange(node, names, bound, deep=3):
    """The name or the number that is the length of a bare tl.arange(0, length), through names bound once and axes added; else None."""
    while isinstance(node, ast.Subscript):
        node = node.value
    if isinstance(node, ast.Name) and deep and bound.get(node.id) == 1 and node.id in names:
        return _arange(names[node.id], names, bound, deep - 1)
    if not is_call(node, "arange") or len(node.args) != 2 or not (isinstance(node.args[0], ast.Constant) and node.args[0].value == 0):
        return None
    length = node.args[1]
    if isinstance(length, ast.Name) and length.id not in bound:
        return length.id
    return length.value if isinstance(length, ast.Constant) else None
