"""`sandbox` and `%%sandbox`: run a cell in a child process that may die.

The child is forked from a warm server (kit.sandbox_server) and sees the imports and the kernels, functions and constants of
the cells above that the cell uses: their source is sent along. It sees no tensors. Every child starts from the same random state.
"""

from __future__ import annotations
import __future__

import json
import linecache
import os
import re
import shlex
import sys
import textwrap
from functools import reduce
from operator import or_

from kit import machine, sandbox_client, sandbox_queue, sources
from kit.errors import BadInput, KitError, WrongType, quoted
from kit.outcome import KINDS, Line, Outcome
from kit.sandbox_client import Job, Text
from kit.sandbox_process import warm
from kit.sandbox_queue import turn
from kit.sandbox_reading import outcome_of
from kit.source_text import names_used

__all__ = ["KINDS", "Line", "Outcome", "register_magics", "run_cell", "run_source", "sandbox", "warm"]

TIMEOUT = 20.0
_FUTURE = reduce(or_, (getattr(__future__, name).compiler_flag for name in __future__.all_feature_names))
_SIZES = {"": 1, "B": 1, "KB": 10**3, "MB": 10**6, "GB": 10**9, "KIB": 2**10, "MIB": 2**20, "GIB": 2**30}
_USAGE = "%%sandbox [NAME] [--timeout SECONDS] [--memory SIZE, such as 2GB]"


def sandbox(code, *, timeout=TIMEOUT, memory=None):
    """Run `code` in a child process and return its Outcome, which is true when the code ran to its end.

    `code` is the text of a cell, or a function without arguments. It sees the imports, kernels, functions and constants of
    the caller that it uses. `timeout` is in seconds from the child's start, `memory` in bytes (None: half of what is free,
    4 GiB at most). On a GPU, runs of all notebooks queue, and launches wait for their kernel, so that an error names its line.
    Raises BadInput or WrongType for arguments that cannot be used, and when the code uses a name that cannot be sent.
    """
    _expect_limits(timeout, memory)
    if isinstance(code, str):
        frame = sys._getframe(1)
        return _run_cell(textwrap.dedent(code).strip("\n") + "\n", {**frame.f_globals, **frame.f_locals}, timeout, memory)
    if not callable(code) or isinstance(code, type) or sources.is_kernel(code):
        raise WrongType(
            f"sandbox: code must be the text of a cell, or a function without arguments; got {quoted(code)} ({type(code).__name__})."
        )
    walk = sources.walk_object(code, sending=True, verb="sandbox")
    for name, value in walk.unsendable.items():
        if not isinstance(value, machine.Machine):  # the child has its own
            _refuse(name, value)
    return _run(_texts(walk, f"{walk.name}()\n"), {}, timeout, memory)


def run_source(source, *, timeout=TIMEOUT, memory=None, payload=None):
    """Run the program `source` in a child and return its Outcome; it sees nothing but `payload`, under that name.

    `payload` is anything that JSON holds. The value of the program's last expression is `outcome.value`.
    """
    _expect_limits(timeout, memory, "run_source")
    if not isinstance(source, str):
        raise WrongType(f"run_source: source must be the text of a program; got {quoted(source)} ({type(source).__name__}).")
    try:
        json.dumps(payload)
    except (TypeError, ValueError, RecursionError) as error:
        raise BadInput(f"run_source: payload must be what JSON holds (numbers, strings, lists, dicts); {error}.") from None
    return _run([Text("cell", source)], {}, timeout, memory, payload=payload, has_payload=True)


def run_cell(text, namespace, *, timeout=TIMEOUT, memory=None, verb="run_cell"):
    """Run the program `text` in a child and return its Outcome, as `sandbox` does; `namespace` holds the objects that it may name.

    Raises BadInput, in the name of `verb`, for limits that cannot be used, and for an object that cannot be sent, such as a tensor.
    """
    _expect_limits(timeout, memory, verb)
    return _run_cell(text, namespace, timeout, memory)


def register_magics(ipython):
    """Make `%%sandbox` known to an IPython shell."""

    def sandbox_magic(line, cell):
        """Run the cell in a child process that may die: %%sandbox [NAME] [--timeout SECONDS] [--memory SIZE, such as 2GB]"""
        name, timeout, memory = _options(line)
        if not cell.strip():
            raise BadInput("%%sandbox: the cell is empty. Put the code to run below the %%sandbox line.")
        # The first line stands for the magic's, so that the numbers of lines are those that the editor shows.
        outcome = _run_cell(f"# %%sandbox {line}".rstrip() + "\n" + cell, ipython.user_ns, timeout, memory)
        if name:
            ipython.user_ns[name] = outcome
        return outcome

    ipython.register_magic_function(sandbox_magic, magic_kind="cell", magic_name="sandbox")


def _run_cell(text, namespace, timeout, memory):
    try:
        walk = sources.walk_text(text, namespace)
        direct, _ = names_used(text)
    except SyntaxError:  # the child says where
        return _run([Text("cell", text)], {}, timeout, memory)
    for name, value in walk.unsendable.items():
        if name in direct and not isinstance(value, machine.Machine):
            _refuse(name, value)
    hidden = {name: _kind_of(value) for name, value in walk.unsendable.items()}
    return _run(_texts(walk, text), hidden, timeout, memory, origins=_origins(walk))


def _run(texts, hidden, timeout, memory, origins=None, payload=None, has_payload=False):
    if os.environ.get("KIT_IN_SANDBOX"):
        raise KitError("sandbox: this code already runs in a sandbox. Call sandbox from the notebook itself.")
    here = machine.current()
    job = Job(texts, here.target, here.live, hidden, origins or {}, payload, has_payload)
    if here.live or os.environ.get("KIT_QUEUE"):
        warm()  # its start is no part of the turn
        with turn(_gpu_name()) if here.live else turn("cores", turns=sandbox_queue.cores()):
            ended = sandbox_client.run(job, timeout, memory)
    else:
        ended = sandbox_client.run(job, timeout, memory)
    return outcome_of(ended, texts, timeout, memory)


def _texts(walk, cell):
    """The files that the child runs, in order: imports, the machine where it is used, every source that was reached, the cell."""
    machines = [
        f"{name} = __import__('kit.machine').machine.current()"
        for name, value in walk.unsendable.items()
        if isinstance(value, machine.Machine)
    ]
    above = [sources.imports(walk.library), *machines]
    texts = [Text("imports", "\n".join(filter(None, above)) + "\n")] if any(above) else []
    for item in walk.items.values():
        flags = getattr(getattr(item.value, "__code__", None), "co_flags", 0) & _FUTURE
        texts.append(Text(item.name, item.source, flags))
    return [*texts, Text("cell", cell)]


def _origins(walk):
    """{file: text} of the notebook's cells that the sources come from: a kernel compiled there names that file."""
    files = {item.value.__code__.co_filename for item in walk.items.values() if hasattr(item.value, "__code__")}
    return {file: "".join(linecache.getlines(file)) for file in files if not os.path.exists(file)}


def _refuse(name, value):
    raise BadInput(f"sandbox: the sandbox does not see {name} ({_kind_of(value)}): make it inside the cell.")


def _kind_of(value):
    if hasattr(value, "dtype") and hasattr(value, "shape"):
        return quoted(value)
    kind = type(value).__name__
    return f"{'an' if kind[0] in 'aeiouAEIOU' else 'a'} {kind}"


def _gpu_name():
    import torch

    return re.sub(r"\W+", "-", str(getattr(torch.cuda.get_device_properties(0), "uuid", "gpu0")))


def _expect_limits(timeout, memory, verb="sandbox"):
    number = isinstance(timeout, (int, float)) and not isinstance(timeout, bool)
    if not number or not 0 < timeout <= 3600:
        raise BadInput(f"{verb}: timeout must be a number of seconds, above 0 and at most 3600; got {quoted(timeout)}.")
    if memory is not None and (not isinstance(memory, int) or isinstance(memory, bool) or memory < 2**24):
        raise BadInput(f"{verb}: memory must be a whole number of bytes, 16 MiB (2**24) or more, or None; got {quoted(memory)}.")


def _options(line):
    """(name or None, timeout, memory) of the magic's line."""
    name, timeout, memory = None, TIMEOUT, None
    try:
        words = shlex.split(line.replace("=", " "))
    except ValueError:
        raise BadInput(f"%%sandbox: this line cannot be read: {quoted(line)}. Write {_USAGE}.") from None
    while words:
        word = words.pop(0)
        if word == "--timeout" and words:
            timeout = _seconds(words.pop(0))
        elif word == "--memory" and words:
            memory = _bytes(words.pop(0))
        elif word.isidentifier() and name is None:
            name = word
        else:
            raise BadInput(f"%%sandbox: {quoted(word)} is not an option, or lacks its value. Write {_USAGE}.")
    _expect_limits(timeout, memory, "%%sandbox")
    return name, timeout, memory


def _seconds(word):
    try:
        return float(word)
    except ValueError:
        raise BadInput(f"%%sandbox: --timeout must be a number of seconds; got {quoted(word)}.") from None


def _bytes(word):
    match = re.fullmatch(r"(\d+(?:\.\d+)?)\s*([KMG]?i?B?)", word, re.IGNORECASE)
    if not match or match[2].upper() not in _SIZES:
        raise BadInput(f"%%sandbox: --memory must be a size such as 500MB or 2GB; got {quoted(word)}.")
    return int(float(match[1]) * _SIZES[match[2].upper()])
