"""Python source as text: the names it takes from outside, the source of a function, lambda or class, a stable spelling
of it, and constants as literals.
"""

from __future__ import annotations

import ast
import inspect
import linecache
import symtable
import textwrap

import torch
import triton.language as tl

from kit.errors import BadInput


def names_used(text):
    """Return (names and dotted names that `text` takes from outside itself, in order of use; names it binds at its top level).

    Scopes are Python's own (symtable): a local that shadows a global does not count. Raises SyntaxError.
    """
    outside, assigned = set(), set()
    top = symtable.symtable(text, "<source>", "exec")
    tables = [top]
    while tables:
        table = tables.pop()
        tables += table.get_children()
        for symbol in table.get_symbols():
            if table is top and (symbol.is_assigned() or symbol.is_imported()):
                assigned.add(symbol.get_name())
            if symbol.is_global() or (table is top and symbol.is_referenced()):
                outside.add(symbol.get_name())
    found = {}
    for node in ast.walk(ast.parse(text)):
        chain = _dotted(node)
        if chain and chain.split(".")[0] in outside:
            found.setdefault(chain, (node.lineno, node.col_offset))
    return sorted(found, key=found.get), assigned


def _dotted(node):
    parts = []
    while isinstance(node, ast.Attribute):
        parts.append(node.attr)
        node = node.value
    return ".".join([node.id, *reversed(parts)]) if isinstance(node, ast.Name) else None


def source_of(code, name):
    """Return (dedented source of a plain function or class, decorators included; the name that it binds).

    `name` is what a lambda is to be called. Raises BadInput when there is no source, or a lambda cannot be told from it.
    """
    if getattr(code, "__name__", "") == "<lambda>":
        return _lambda(code, name)
    try:
        text = textwrap.dedent(inspect.getsource(code))
    except (OSError, TypeError):
        text = _class_in_a_cell(code.__name__) if inspect.isclass(code) else None
    if text is None:
        raise BadInput(
            f"The source of {code.__name__} cannot be read, because it was not typed in a cell or kept in a file. "
            f"Define it in a cell of its own."
        )
    return text, code.__name__


def _lambda(code, name):
    try:
        tree = ast.parse("".join(inspect.findsource(code)[0]))
    except (OSError, TypeError, SyntaxError):
        tree = ast.Module([], [])
    named = code.__code__.co_varnames[: code.__code__.co_argcount]
    nodes = [node for node in ast.walk(tree) if isinstance(node, ast.Lambda) and node.lineno == code.__code__.co_firstlineno]
    nodes = [node for node in nodes if tuple(a.arg for a in (*node.args.posonlyargs, *node.args.args)) == named]
    if len(nodes) != 1:
        why = f"{len(nodes)} lambdas with the same arguments stand in its line" if nodes else "its line cannot be read"
        raise BadInput(f"The source of a lambda cannot be told: {why}. Give it a name with def, in a cell of its own.")
    name = name if name.isidentifier() else "answer"
    return f"{name} = {ast.unparse(nodes[0])}\n", name


def _class_in_a_cell(name):
    """The text of a class typed in a cell. Before 3.13 Python keeps no line for it, so look through the cells, the latest first."""
    for filename in reversed(list(linecache.cache)):
        lines = linecache.getlines(filename)
        if not any(f"class {name}" in line for line in lines):
            continue
        try:
            body = ast.parse("".join(lines)).body
        except SyntaxError:
            continue
        for node in reversed(body):
            if isinstance(node, ast.ClassDef) and node.name == name:
                first = min([node.lineno, *(decorator.lineno for decorator in node.decorator_list)])
                return "".join(lines[first - 1 : node.end_lineno])
    return None


def canonical(source):
    """Return `source` spelt from its syntax tree: without comments, docstrings and layout, the same text on every Python.

    `ast.dump` and `ast.unparse` differ between Python versions (fields added in 3.12, quotes in f-strings), and a
    recording made on one is checked on another.
    """
    return _dump(ast.parse(source))


def _dump(node):
    if isinstance(node, list):
        return "[" + ",".join(map(_dump, node)) + "]"
    if not isinstance(node, ast.AST):
        return repr(node)
    fields = []
    for field, value in ast.iter_fields(node):
        documented = isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef, ast.Module))
        if field == "body" and documented and ast.get_docstring(node, clean=False) is not None:
            value = value[1:]
        if field in ("ctx", "kind", "type_comment") or value == [] or (value is None and not isinstance(node, ast.Constant)):
            continue
        fields.append(f"{field}={_dump(value)}")
    return f"{type(node).__name__}({','.join(fields)})"


def literal(value, named=lambda value: None):
    """`value` as Python text that needs no imports, or None. `named` is asked for the text of what is no constant.

    Constants: None, numbers, strings, bytes, dtypes, devices, `tl.constexpr`, ranges, slices, and lists, tuples, sets and dicts
    of them.
    """
    if value is None or value is ... or type(value) in (bool, int, str, bytes):
        return repr(value)
    if type(value) in (float, complex):
        return repr(value) if value - value == 0 else f"{type(value).__name__}({str(value)!r})"
    if isinstance(value, tl.constexpr):
        inner = literal(value.value, named)
        return inner and f"__import__('triton').language.constexpr({inner})"  # whatever the reader calls triton
    if type(value) is tl.dtype:
        return f"__import__('triton').language.dtype({value.name!r})"
    if isinstance(value, torch.dtype):
        return f"__import__('torch').{str(value).removeprefix('torch.')}"
    if isinstance(value, torch.device):
        return f"__import__('torch').device({str(value)!r})"
    if type(value) in (tuple, list, set, dict, range, slice):
        return _container(value, named)
    return named(value)


def _container(value, named):
    if isinstance(value, (range, slice)):
        parts = [literal(part, named) for part in (value.start, value.stop, value.step)]
    elif isinstance(value, dict):
        parts = [literal(part, named) for pair in value.items() for part in pair]
    else:
        parts = [literal(part, named) for part in value]
    if None in parts:
        return None
    if isinstance(value, dict):
        return "{" + ", ".join(f"{key}: {held}" for key, held in zip(parts[::2], parts[1::2], strict=True)) + "}"
    if isinstance(value, list):
        return f"[{', '.join(parts)}]"
    if isinstance(value, tuple):
        return f"({', '.join(parts)}{',' if len(parts) == 1 else ''})"
    return f"set([{', '.join(sorted(parts))}])" if isinstance(value, set) else f"{type(value).__name__}({', '.join(parts)})"
