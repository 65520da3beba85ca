"""`generated`: the Triton code that Inductor writes for a function of torch, for the GPU that is here or simulated. Nothing is launched."""

from __future__ import annotations

import contextlib
import functools
import hashlib
import inspect
import json
import os
import re
import sys
from dataclasses import dataclass
from pathlib import Path

import torch
import triton
from triton import knobs

from kit import machine, sources
from kit.errors import BadInput, WrongType, quoted
from kit.generated_code import Generated, GeneratedKernel
from kit.ghosts import Ghost
from kit.occupancy import MULTIPROCESSORS
from kit.sandbox import run_source

__all__ = ["Generated", "GeneratedKernel", "generated", "generated_each"]

TIMEOUT = 180.0  # seconds: importing Inductor takes three, on a cold network disk far more
_SCALARS = (bool, int, float)


def generated(fn, *args):
    """Return what Inductor writes for `fn(*args)`, as a Generated: the module's text, its Triton kernels, the wrapper that launches them.

    `fn` is a function of torch; `args` are tensors, ghosts or numbers, and of a tensor only shape, strides, dtype and offset count. The
    code is made in a child process from fake tensors, for the GPU of `kit.start()`; sizes are static, as in torch.compile's first call. The
    text is kept on disk, for the next process that asks the same of the same versions.
    Raises BadInput for arguments that cannot be used and for a function that torch.compile does not take whole, with torch's reason.
    """
    return generated_each([(fn, *args)])[0]


def generated_each(calls):
    """`generated` for several calls, each a tuple of a function and its arguments, made in one child.

    Its start takes seconds, each call about one more. Returns a list of Generated, in the order of `calls`. Raises as `generated` does.
    """
    asked, properties = [_asked(*call) for call in calls], _properties()
    gpu = properties or machine.current().name
    files = [_file([one.text, one.name, one.digest, one.described, gpu]) for one in asked]
    told = {file: _kept(file) for file in files}
    missing = {file: one for file, one in zip(files, asked, strict=True) if told[file] is None}
    if missing:
        told |= dict(zip(missing, _write(list(missing.values()), properties), strict=True))
        for file in missing:
            _keep(file, told[file])
    return [_made(one, told[file]) for file, one in zip(files, asked, strict=True)]


def folder():
    """Where results are kept: beside Triton's compiled kernels."""
    return Path(knobs.cache.dir) / "kit-generated"


@functools.cache
def _writer():
    """What else decides the text: the versions, the code that asks, and the settings of Inductor in the environment."""
    settings = sorted(f"{key}={value}" for key, value in os.environ.items() if key.startswith("TORCHINDUCTOR_"))
    code = Path(__file__).with_name("inductor.py").read_text(encoding="utf-8")
    return "\n".join([torch.__version__, triton.__version__, sys.version, code, *settings])


def _file(key):
    return hashlib.sha256(f"{_writer()}\n{json.dumps(key)}".encode()).hexdigest()[:32] + ".json"


def _kept(file):
    """What was kept, or None."""
    try:
        return json.loads((folder() / file).read_text(encoding="utf-8"))
    except (OSError, ValueError):
        return None


def _keep(file, told):
    part = folder() / f"{file}.{os.getpid()}"
    with contextlib.suppress(OSError):  # a disk that is full or read-only costs seconds the next time, and no more
        folder().mkdir(parents=True, exist_ok=True)
        part.write_text(json.dumps(told), encoding="utf-8")
        part.replace(folder() / file)


@dataclass
class _Asked:
    """A call: the function, a program that defines it under a name, the digest of its code, and {argument: what it is}."""

    fn: object
    text: str
    name: str
    digest: str
    described: dict


def _asked(fn, *args):
    fn = getattr(fn, "_torchdynamo_orig_callable", fn)  # torch.compile(fn) stands for fn
    if not inspect.isfunction(fn):
        raise WrongType(f"generated: fn must be a function of torch, written in Python; got {quoted(fn)} ({type(fn).__name__}).")
    if len(args) == 0:
        raise BadInput(f"generated: {fn.__name__} needs its arguments: tensors, ghosts or numbers, from which Inductor takes the sizes.")
    described = {name: _described(name, value) for name, value in zip(_bound(fn, args), args, strict=True)}
    try:
        text, name = sources.program(fn)
    except BadInput as error:
        raise BadInput(f"generated: {error}") from None
    return _Asked(fn, text, name, sources.digest(fn), described)


def _made(one, told):
    if not told["source"]:
        raise BadInput(f"generated: {one.fn.__name__} has nothing to compile: it does no work on a tensor.")
    return Generated(one.fn.__name__, told["source"], one.described, told["kernels"], told["order"])


def _write(asked, properties):
    """What kit.inductor.write says of each, run where it may change the process. Raises BadInput with torch's reason."""
    if os.environ.get("KIT_IN_SANDBOX"):
        from kit.generated_run import write_here

        return write_here([(one.fn, one.described) for one in asked], properties)
    lines, last = ["found = []"], None
    for i, one in enumerate(asked):  # each is written before the next is defined: two may have one name
        lines.append("" if one.text == last else one.text)
        lines.append(f"found.append(__import__('kit.inductor').inductor.write({one.name}, payload[0][{i}], payload[1]))")
        last = one.text
    payload = [[one.described for one in asked], properties]
    outcome = run_source("\n".join([*lines, "found"]), timeout=TIMEOUT, payload=payload)
    if outcome.kind != "ok" or not isinstance(outcome.value, list):
        names = " or ".join(dict.fromkeys(one.fn.__name__ for one in asked))
        raise BadInput(f"generated: torch.compile does not take {names}: {reason(outcome.message or outcome.kind)}")
    return outcome.value


def _bound(fn, args):
    """The names under which `fn` takes `args`; BadInput when it does not."""
    try:
        bound = inspect.signature(fn).bind(*args)
    except TypeError as error:
        raise BadInput(f"generated: {fn.__name__}{inspect.signature(fn)} does not take these arguments: {error}.") from None
    names = []
    for name, value in bound.arguments.items():
        several = inspect.signature(fn).parameters[name].kind == inspect.Parameter.VAR_POSITIONAL
        names += [f"{name}[{i}]" for i in range(len(value))] if several else [name]
    return names


def _described(name, value):
    if isinstance(value, _SCALARS):
        return {"value": value}
    if isinstance(value, (torch.Tensor, Ghost)):
        offset = value.storage_offset() if callable(value.storage_offset) else value.storage_offset
        dtype = str(value.dtype).removeprefix("torch.")
        return {"shape": list(value.shape), "stride": list(value.stride()), "dtype": dtype, "offset": offset}
    raise WrongType(f"generated: {name} must be a tensor, a ghost or a number; got {quoted(value)} ({type(value).__name__}).")


def _properties():
    """What the generator asks a GPU, of the simulated one; None where a real one answers."""
    here = machine.current()
    if here.live:
        return None
    major, minor = divmod(int(here.target.split(":")[1]), 10)
    return {
        "name": f"NVIDIA {here.name}",
        "major": major,
        "minor": minor,
        "multi_processor_count": here.multiprocessors,
        "regs_per_multiprocessor": MULTIPROCESSORS[here.target].registers,
        "max_threads_per_multi_processor": 32 * MULTIPROCESSORS[here.target].warps,
        "max_threads_per_block": here.limits.threads,
        "shared_memory_per_block": 49_152,
        "shared_memory_per_block_optin": here.limits.shared_memory,
        "total_memory": here.memory,
        "warp_size": 32,
    }


def reason(message):
    """What torch's message says in one sentence: the cause it got from the operator, else its explanation, else its first line."""
    if found := re.search(r"got \w+\((['\"])(.*?)\.?\1\)", message):
        return f"{found[2]}."
    if found := re.search(r"^\s*Explanation: (\S.*?)\.?\s*$", message, re.MULTILINE):
        return f"{found[1]}."
    lines = [line.strip() for line in message.splitlines() if line.strip() and not line.startswith("backend=")]
    return f"{lines[0].rstrip('.')}." if lines else "it says no more."
