"""What a first launch costs: a fresh Python for each measurement, a disk cache of its own, and the time until the GPU is done."""

from __future__ import annotations

import contextlib
import json
import os
import subprocess
import sys
import tempfile
import time
from pathlib import Path

import torch
from triton import knobs

from kit import machine, sources
from kit.errors import BadInput, KitError, expect_type, no_times

__all__ = ["disk_cache", "milliseconds", "phases"]

# Runs after the sources of what it times. The first phase is from the parent's start of Python to here: interpreter and imports.
_DRIVER = """
def _phases(begun, generator):
    found, last = {{"start, import": 1e3 * (__import__("time").time() - begun)}}, __import__("time").perf_counter()
    for phase in generator():
        if torch.cuda.is_available():
            torch.cuda.synchronize()
        now = __import__("time").perf_counter()
        found[phase], last = 1e3 * (now - last), now
    return found


print(__import__("json").dumps(_phases({begun!r}, {name})))
"""
_TIMEOUT = 120.0  # seconds


def phases(function, folder):
    """{phase: ms} of `function` in a Python of its own, whose disk cache is `folder`.

    `function` is a generator that yields the name of each phase when it ends; the GPU is waited for before the clock is read. The first
    phase, "start, import", is what came before: the interpreter, and the imports that the sources sent along need. Raises KitError where
    no GPU is here, and when the process fails.
    """
    _expect_gpu("phases")
    text, name = sources.program(function)
    program = Path(folder, "request.py")  # at the same lines each time: Triton's disk cache counts them
    begun = time.time()
    program.write_text(f"import torch\n{text}{_DRIVER.format(begun=begun, name=name)}", encoding="utf-8")
    environment = os.environ | {"TRITON_CACHE_DIR": str(folder)}
    try:
        ran = subprocess.run([sys.executable, str(program)], env=environment, capture_output=True, text=True, timeout=_TIMEOUT, check=False)
    except subprocess.TimeoutExpired:
        raise KitError(f"phases: {name} does not end within {_TIMEOUT:g} s.") from None
    if ran.returncode:
        last = next((line for line in reversed(ran.stderr.splitlines()) if line.strip()), f"exit status {ran.returncode}")
        raise KitError(f"phases: the process of {name} failed: {last}")
    return {phase: round(ms, 3) for phase, ms in json.loads(ran.stdout.splitlines()[-1]).items()}


def milliseconds(call):
    """How long `call()` takes until the GPU is done, in ms; what is under way is waited for first. Raises KitError without a GPU."""
    _expect_gpu("milliseconds")
    torch.cuda.synchronize()
    begun = time.perf_counter()
    call()
    torch.cuda.synchronize()
    return round(1e3 * (time.perf_counter() - begun), 4)


@contextlib.contextmanager
def disk_cache(folder=None, *, off=False):
    """Inside, Triton's disk cache is `folder`, by default an empty one that is removed at the end; `off` makes it compile always."""
    expect_type(off, bool, verb="disk_cache", argument="off", what="True or False")
    if folder is not None and not Path(folder).is_dir():
        raise BadInput(f"disk_cache: {folder} is no folder; make it first, or leave it out for an empty one.")
    with tempfile.TemporaryDirectory() as empty, knobs.cache.scope(), knobs.compilation.scope():
        knobs.cache.dir, knobs.compilation.always_compile = str(folder or empty), off
        yield Path(folder or empty)


def _expect_gpu(verb):
    here = machine.current()
    if not here.live:
        raise no_times(verb, here.name)
