"""Triton's world of a `probe`: a kernel written for one expression, compiled for this machine's target and run there.

Its text is imported from a file by kit.written. Beside the value, in its own dtype,
the kernel stores what it knows of it when it compiles: dtype and shape. So what comes out of Triton's cache tells them as well.
"""

from __future__ import annotations

import ast
import contextlib
import math
import os
import re
import sys
import tempfile
import warnings

import torch
import triton
import triton.language as tl

from kit.compiling import CompileError, compiled
from kit.semantics_worlds import DTYPES, Answer, as_tensor, clause, plain
from kit.written import module_of

MOST = 4096  # elements of a result; probe_tell says it too
_NOTE = 8  # numbers that a probe's kernel notes about its result


@triton.constexpr_function
def _number_of(dtype):
    """The number of a dtype in DTYPES, which the kernel can store; -1 for what is none, such as a pointer."""
    # Spelled out, since Triton reads what a constexpr function uses, and accepts no global that has methods called on it.
    names = ("int1", "int8", "int16", "int32", "int64", "uint8", "uint16", "uint32", "uint64", "fp16", "bf16", "fp32", "fp64")
    names += ("fp8e4nv", "fp8e5")
    name = getattr(dtype, "name", "")
    return names.index(name) if name in names else -1


@triton.constexpr_function
def _constant_kind(value):
    """0, 1, 2 for a compile-time bool, int, float; -1 for anything else, which has no value here."""
    kinds = (bool, int, float)
    return kinds.index(type(value)) if type(value) in kinds else -1


@triton.jit
def probe_tell(result, _out_ptr, _note_ptr):
    """Store `result` in its own dtype, and note what it is: [constant, dtype, rank, sizes]."""
    if isinstance(result, tl.tensor):
        number: tl.constexpr = _number_of(result.dtype)
        tl.static_assert(number >= 0, "the result is no number")
        rank: tl.constexpr = len(result.shape)
        size: tl.constexpr = result.numel
        tl.static_assert(size <= 4096, "the result has more than 4,096 elements")
        tl.store(_note_ptr + 1, number)
        tl.store(_note_ptr + 2, rank)
        typed_ptr = _out_ptr.to(tl.pointer_type(result.dtype), bitcast=True)
        if rank == 0:
            tl.store(typed_ptr, result)
        else:
            for axis in tl.static_range(rank):
                tl.store(_note_ptr + 3 + axis, result.shape[axis])
            tl.store(typed_ptr + tl.arange(0, size), tl.reshape(result, (size,)))
    else:
        kind: tl.constexpr = _constant_kind(result)
        tl.static_assert(kind >= 0, "the result is no number")
        tl.store(_note_ptr, 1)
        tl.store(_note_ptr + 1, kind)
        if kind == 2:
            tl.store(_out_ptr.to(tl.pointer_type(tl.float64), bitcast=True), tl.full((), result, tl.float64))
        else:
            tl.store(_out_ptr, tl.full((), result, tl.int64))


def triton_answer(statements, given, here):
    """The Answer of a kernel made of `statements`, compiled and run on the machine `here`."""
    text = "\n".join(map(ast.unparse, statements))
    kernel = module_of(_kernel_text(statements, given), "probe").probe_kernel
    out = torch.zeros(MOST, dtype=torch.int64, device=here.device)
    note = torch.zeros(_NOTE, dtype=torch.int32, device=here.device)
    args = [as_tensor(one, here.device) if one.kind == "tensor" else one.value for one in given]
    with _quiet() as written:
        try:
            compiled(kernel, [out, note, *args], {}, verb="probe")
            kernel[(1,)](out, note, *args)
            if here.live:
                torch.cuda.synchronize()
        except Exception as error:  # noqa: BLE001  what a world refuses is its answer
            return Answer(text, error=_words(error, written()))
    constant, number, rank, *sizes = note.tolist()
    if constant:
        kind = ("bool", "int", "float")[number]
        value = out.view(torch.float64)[0].item() if kind == "float" else out[0].item()
        return Answer(text, bool(value) if kind == "bool" else value, kind, constant=True)
    dtype, shape = list(DTYPES)[number], tuple(sizes[:rank])
    held = out.view(getattr(torch, dtype))[: math.prod(shape)].reshape(shape).cpu()
    return Answer(text, plain(held, dtype), dtype, shape)


def _kernel_text(statements, given):
    parameters, loads = ["_out_ptr", "_note_ptr"], []
    for one in given:
        if one.kind == "tensor":
            parameters.append(f"_{one.name}_ptr")
            offsets = f" + tl.arange(0, {len(one.value)})" if isinstance(one.value, list) else ""
            loads.append(f"{one.name} = tl.load(_{one.name}_ptr{offsets})")
        else:
            typed = ": tl.constexpr" if one.kind == "constexpr" else f": tl.{one.dtype}" if one.dtype else ""
            parameters.append(one.name + typed)
    body = [*loads, *map(ast.unparse, statements[:-1]), f"probe_tell({ast.unparse(statements[-1])}, _out_ptr, _note_ptr)"]
    lines = "\n".join(f"    {line}" for part in body for line in part.splitlines())
    return (
        "import triton\nimport triton.language as tl\n\nfrom kit.semantics_kernel import probe_tell\n\n\n"
        f"@triton.jit\ndef probe_kernel({', '.join(parameters)}):\n{lines}\n"
    )


@contextlib.contextmanager
def _quiet():
    """Inside, warnings are silent (`and` of tensors is deprecated: the lesson tells), and what C++ writes on stderr is kept: where a pass
    refuses a kernel, MLIR prints the whole of it. Yields a function that returns what was written."""
    sys.stderr.flush()
    with warnings.catch_warnings(), tempfile.TemporaryFile() as file:
        warnings.simplefilter("ignore")
        before = os.dup(2)
        os.dup2(file.fileno(), 2)

        def written():
            file.seek(0)
            return file.read().decode(errors="replace")

        try:
            yield written
        finally:
            os.dup2(before, 2)
            os.close(before)


def _words(error, written=""):
    """One clause of what an exception says, or of what the compiler wrote when a pass failed."""
    words = str(error).replace("triton.language.", "")
    if "PassManager" in words and (found := re.search(r"(?:error|ERROR): (?!Failures)(.+)", written)):
        return clause(found[1])
    if isinstance(error, CompileError):
        words = words.split("probe_kernel: ", 1)[-1].rsplit(", in line ", 1)[0].rsplit(", in a function", 1)[0]
        return clause(words)
    return clause(f"{type(error).__name__}: {words}")
