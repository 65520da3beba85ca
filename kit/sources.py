"""What a function or kernel reaches, as source text.

A name in a source is looked up as Python does: closure, then globals. Functions, kernels, classes and plain constants that
belong to the reader (the notebook, their files, `kit.kernels`, `kit.graders`) are followed; the rest is imported.
"""

from __future__ import annotations

import builtins
import hashlib
import os
import re
import site
import sys
import sysconfig
import types
from dataclasses import dataclass, field

import torch
import triton

from kit.errors import BadInput, WrongType, quoted
from kit.source_text import canonical, literal, names_used, source_of

_OWN_KIT = ("kit.kernels", "kit.graders", "kit.tests")
_PATHS = (sysconfig.get_path("stdlib"), sysconfig.get_path("purelib"), sysconfig.get_path("platlib"), site.getusersitepackages())
_LIBRARIES = tuple(f"{path}{os.sep}" for path in {*_PATHS, *site.getsitepackages(), *torch.__path__, *triton.__path__})
_SHELL_NAMES = {"In", "Out", "exit", "quit", "open", "display", "get_ipython"}
_DEVICE = re.compile(r"(cpu|cuda)(:\d+)?")
_UNBOUND = object()


@dataclass
class Item:
    """One thing that was reached: its qualified name, the name its source binds, the source, the object, and its module."""

    key: str
    name: str
    source: str
    value: object
    module: str


@dataclass
class Walk:
    """What was reached, dependencies first. `sending` leaves out the inside of what another process can import.

    `library` holds what is imported instead, and `unsendable` what has neither source nor import, by the name it was used under.
    """

    sending: bool = False
    name: str = ""  # that the object walked from is bound to
    items: dict[str, Item] = field(default_factory=dict)
    library: dict[str, object] = field(default_factory=dict)
    unsendable: dict[str, object] = field(default_factory=dict)


def reach(obj):
    """Return {qualified name: source} of `obj` and of all that its source reaches, dependencies first.

    Followed: functions, `@triton.jit` kernels, classes, and constants (numbers, strings, dtypes, `tl.constexpr`, None, and
    tuples, lists, dicts of them). Raises WrongType for anything else, BadInput where there is no source to read.
    """
    return {item.key: item.source for item in walk_object(obj, verb="reach").items.values()}


def digest(obj):
    """Return the sha256, in hex, of what `obj` reaches. Comments, docstrings, layout and module names do not count.

    A constant that names a device ("cpu", "cuda:0") is a place and not code: its value does not count. Raises as `reach` does.
    """
    lines = sorted(_canonical(item) for item in walk_object(obj, verb="digest").items.values())
    return hashlib.sha256("\n".join(lines).encode()).hexdigest()


def imports(namespace, names=None):
    """Return the import statements, one a line, that recreate the modules and the imported objects bound in `namespace`.

    `names` keeps those names only. Without it, the names that start with an underscore and IPython's own are left out.
    """
    kept = [name for name in namespace if (name in names if names is not None else not name.startswith("_") and name not in _SHELL_NAMES)]
    return "\n".join(line for name in kept if (line := import_line(name, namespace[name])))


def program(obj):
    """Return (text, name): a program that defines `obj` under `name`, with the imports and sources that it needs.

    What another process can import is imported, the rest is written out. Raises BadInput when `obj` uses something that can
    be neither, such as a tensor made outside it, and as `reach` does.
    """
    walk = walk_object(obj, sending=True, verb="program")
    for name, value in walk.unsendable.items():
        raise BadInput(
            f"{_title(obj)} uses {name}, which was made outside it ({quoted(value)}): make it inside, or pass it as an argument."
        )
    parts = [imports(walk.library), *(item.source.strip("\n") for item in walk.items.values())]
    return "\n\n".join(filter(None, parts)) + "\n", walk.name


def walk_object(obj, *, sending=False, verb="walk_object"):
    """Return the Walk of a function, class or kernel. Raises WrongType, BadInput."""
    if not _has_code(obj):
        raise WrongType(f"{verb}: obj must be a function, a class or a @triton.jit kernel; got {quoted(obj)} ({type(obj).__name__}).")
    walk = Walk(sending)
    if sending and _importable(obj):
        walk.name = _home("", obj)[1]
        _import(walk, walk.name, obj)
    else:
        walk.name = _add_code(walk, obj, _title(obj)).name
    return walk


def walk_text(text, namespace):
    """Return the Walk, for sending, of the names that `text`, a cell, uses of `namespace`. Raises SyntaxError, BadInput.

    Names that the cell binds itself are never `unsendable`.
    """
    walk = Walk(sending=True)
    used, assigned = names_used(text)
    for chain in used:
        if chain.split(".")[0] not in _SHELL_NAMES:
            _follow(walk, chain, namespace, "__main__")
    for name in assigned:
        walk.unsendable.pop(name, None)
    return walk


def is_kernel(obj):
    """True for what `@triton.jit` made, and for autotuners and the like around it."""
    return _plain(obj) is not obj and type(obj).__module__.startswith("triton.")


def import_line(name, value):
    """Return the statement that binds `name` to `value` by importing it, or None when no import does."""
    if isinstance(value, types.ModuleType):
        module = value.__name__
        if module in ("__main__", "builtins"):
            return None
        return f"import {module}" if name == module else f"import {module} as {name}"
    home = None if literal(value) is not None else _home(name, value)
    return home and f"from {home[0]} import {home[1]}" + ("" if name == home[1] else f" as {name}")


def _home(name, value):
    """(module, attribute) under which an object can be imported, or None."""
    plain = _plain(value)
    for module in (getattr(plain, "__module__", None), "torch", "torch.nn.functional", "triton", "triton.language"):
        for attribute in (getattr(plain, "__name__", None), name):
            if module in (None, "__main__") or not isinstance(attribute, str):
                continue
            if getattr(sys.modules.get(module), attribute, _UNBOUND) is value:
                return module, attribute
    return None


def is_own_module(module):
    """True for the notebook, the reader's own files, kit.kernels and kit.graders; False for libraries. Takes a module or its name."""
    name = module if isinstance(module, str) else module.__name__
    if name == "kit" or name.startswith("kit."):
        return name.startswith(_OWN_KIT)
    module = sys.modules.get(name, module)
    if isinstance(module, str) or name == "__main__":
        return True
    file = getattr(module, "__file__", None)
    return bool(file) and not file.startswith(_LIBRARIES)


def _follow(walk, chain, scope, module):
    """Add what a dotted name of a source leads to: through own modules by attribute, else the object of its first name."""
    name, *attributes = chain.split(".")
    value = scope.get(name, _UNBOUND)
    if isinstance(value, types.ModuleType):
        _import(walk, name, value)
        while isinstance(value, types.ModuleType) and is_own_module(value) and attributes and not walk.sending:
            name, module = attributes.pop(0), value.__name__
            value = getattr(value, name, _UNBOUND)
        if isinstance(value, types.ModuleType) and value.__name__ == "kit" and attributes and not walk.sending:
            _follow(walk, ".".join(attributes), vars(value), "kit")
    if value is not _UNBOUND and not isinstance(value, types.ModuleType):
        _add(walk, name, value, module)


def _add(walk, name, value, module):
    """Add own code with all that it reaches, a constant, a library object, or what can be none of these."""
    if _has_code(value) and not (_is_own(value) and not (walk.sending and _importable(value))):
        _import(walk, name, value)
    elif _has_code(value):
        item = _add_code(walk, value, name)
        if item.name != name:
            _enter(walk, Item(name, name, f"{name} = {item.name}", value, module))
    elif (text := literal(value, _named(walk))) is not None:
        _enter(walk, Item(name if module == "__main__" else f"{module}.{name}", name, f"{name} = {text}", value, module))
    elif import_line(name, value):
        _import(walk, name, value)
    else:
        walk.unsendable.setdefault(name, value)


def _import(walk, name, value):
    if walk.sending and walk.library.setdefault(name, value) is not value:
        raise BadInput(f"Two different things are called {name} in what is to be sent: rename one of them.")


def _enter(walk, item):
    """Put an item in the walk, once. Two things of one name can be told apart here, and cannot be sent together."""
    while (held := walk.items.get(item.key)) is not None and held.source != item.source:
        if walk.sending:
            raise BadInput(f"Two different things are called {item.name} in what is to be sent: rename one of them.")
        item.key += "'"
    return walk.items.setdefault(item.key, item)


def _add_code(walk, obj, name):
    """Add a function, kernel or class after all that its source uses; return its Item."""
    plain = _plain(obj)
    for item in walk.items.values():
        if item.value is plain:
            return item
    module = plain.__module__ or "__main__"
    source, bound = source_of(plain, name)
    key = bound if plain.__name__ == "<lambda>" else plain.__qualname__
    item = _enter(walk, Item(key if module == "__main__" else f"{module}.{key}", bound, source, plain, module))  # first: it may use itself
    scope = _scope(plain, module)
    for chain in names_used(source)[0]:
        if scope.get(chain, _UNBOUND) is not obj:
            _follow(walk, chain, scope, module)
    walk.items[item.key] = walk.items.pop(item.key)  # behind its dependencies
    return item


def _scope(plain, module):
    """The names that a function's or class's source can see: globals, and what its closure holds by now."""
    scope = dict(getattr(plain, "__globals__", None) or vars(sys.modules.get(module, builtins)))
    for name, cell in zip(plain.__code__.co_freevars if hasattr(plain, "__code__") else (), getattr(plain, "__closure__", None) or ()):
        try:
            scope[name] = cell.cell_contents
        except ValueError:  # not filled yet
            scope.pop(name, None)
    return scope


def _plain(obj):
    """The function or class under kernels, autotuners and wrappers: what the source text defines."""
    while True:
        of_triton = any(kind.__module__.startswith("triton.") for kind in type(obj).__mro__)  # a library may derive its own autotuner
        inner = getattr(obj, "fn", None) if of_triton else None
        inner = inner or (None if isinstance(obj, type) else getattr(obj, "__wrapped__", None))
        if not callable(inner) and not hasattr(inner, "fn"):  # an autotuner around heuristics holds what cannot be called either
            return obj
        obj = inner


def _has_code(value):
    return isinstance(_plain(value), (types.FunctionType, type))


def _is_own(value):
    return is_own_module(getattr(_plain(value), "__module__", None) or "__main__")


def _importable(value):
    """True for code that another process gets by importing a file of the reader's or of the kit. Test files are sent as text."""
    module = _plain(value).__module__ or "__main__"
    if module.rpartition(".")[2].startswith("test_"):
        return False
    return bool(getattr(sys.modules.get(module), "__file__", None)) and module != "__main__" and _home("", value) is not None


def _title(obj):
    return getattr(_plain(obj), "__name__", quoted(obj))


def _canonical(item):
    if isinstance(item.value, str) and _DEVICE.fullmatch(item.value):
        return f"{item.name} = a device"
    return canonical(item.source)


def _named(walk):
    """For `literal`: the text by which code inside a container is called, own code being added to the walk first."""

    def text(value):
        if _has_code(value) and _is_own(value) and not (walk.sending and _importable(value)):
            return _add_code(walk, value, _title(value)).name
        home = _home(_title(value), value)  # by its full name: a bare `sum` of torch would hide Python's own
        return home and f"__import__('importlib').import_module({home[0]!r}).{home[1]}"

    return text
