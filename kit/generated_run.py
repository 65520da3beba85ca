"""Runs what Inductor wrote: the wrapper's own text, with its kernels as plain `@triton.jit` kernels and its helpers stood in for.

Inductor's runtime (its autotuner, its CUDA streams and guards) needs a GPU and a CUDA build of torch; the wrapper's text needs of it
only what `_names` gives. So the same text runs on a GPU and on a simulated one.
"""

from __future__ import annotations

import contextlib
import json
import math
import os
import types

import torch

from kit import machine
from kit.errors import BadInput, KitError, quoted
from kit.written import module_of


def run(made, args):
    """Run the wrapper of `made`, a Generated, on `args`. Returns what fn returns. Raises BadInput, KitError."""
    _expect(made, args)
    namespace = _names(made)
    exec(compile(made.wrapper, f"<wrapper of {made.name}>", "exec"), namespace)
    takes_self = "self" in namespace["call"].__code__.co_varnames[: namespace["call"].__code__.co_argcount]
    named = dict(zip(made.arguments, args, strict=True))
    given = [named[name] for name in made.order]
    try:
        results = namespace["call"](None, given) if takes_self else namespace["call"](given)
    except NameError as error:
        raise KitError(f"generated: the wrapper of {made.name} uses {error.name}, which kit.generated_run does not stand in for.") from None
    return results[0] if len(results) == 1 else tuple(results)


def _expect(made, args):
    wanted = made.arguments
    if len(args) != len(wanted):
        raise BadInput(f"generated: {made.name} takes {', '.join(wanted)}; {len(args)} arguments were given.")
    for value, (name, told) in zip(args, wanted.items(), strict=True):
        if "value" in told:
            if value != told["value"]:
                raise BadInput(f"generated: this code was written for {name} = {told['value']!r}; got {quoted(value)}. Generate it anew.")
            continue
        if not (isinstance(value, torch.Tensor) and _fits(value, told)):
            shape, stride = tuple(told["shape"]), tuple(told["stride"])
            raise BadInput(
                f"generated: this code was written for {name} of shape {shape}, strides {stride}, {told['dtype']}; got {quoted(value)}. "
                f"Its sizes and strides are literals: generate it anew for others."
            )


def _fits(x, told):
    """True when x has the layout that the code was written for; the stride of an axis of one element never counts."""
    strides = zip(x.shape, x.stride(), told["stride"], strict=False)
    same = list(x.shape) == told["shape"] and str(x.dtype).removeprefix("torch.") == told["dtype"]
    return same and all(n == 1 or a == b for n, a, b in strides)


def _names(made):
    """What the wrapper's text refers to."""
    here = machine.current()
    cuda = types.SimpleNamespace(_DeviceGuard=lambda _: contextlib.nullcontext(), set_device=lambda _: None, synchronize=lambda *_: None)
    plain = types.ModuleType("torch")
    plain.__getattr__ = lambda name: getattr(torch, name)
    plain.cuda = torch.cuda if here.live else cuda

    def empty(device):
        return lambda shape, stride, dtype: torch.empty_strided(shape, stride, dtype=dtype, device=device)

    return {
        "torch": plain,
        **{"aten": torch.ops.aten, "inductor_ops": torch.ops.inductor, "device": torch.device, "empty_strided": torch.empty_strided},
        **{"math": math, "inf": math.inf, "nan": math.nan},
        "extern_kernels": _Extern(),
        "get_raw_stream": lambda _: 0,
        "empty_strided_cuda": empty(here.device),
        "empty_strided_cpu": empty("cpu"),
        "assert_size_stride": _assert_size_stride,
        "assert_size_stride_grouped": _assert_size_stride_grouped,  # torch 2.14
        "assert_alignment": lambda *_: None,
        "copy_if_misaligned": _aligned,
        "copy_misaligned": _aligned,  # its name in torch 2.12
        "reinterpret_tensor": lambda x, shape, stride, offset=0: torch.as_strided(x, shape, stride, x.storage_offset() + offset),
        **{kernel.name: _Launcher(kernel) for kernel in made.kernels},
    }


def _assert_size_stride(x, shape, stride, *_):
    if tuple(x.shape) != tuple(shape) or any(n > 1 and a != b for n, a, b in zip(shape, x.stride(), stride, strict=True)):
        raise KitError(f"generated: a buffer of shape {tuple(x.shape)} stands where the wrapper expects {tuple(shape)}.")


def _assert_size_stride_grouped(tensors, shapes, strides, *_):
    for x, shape, stride in zip(tensors, shapes, strides, strict=True):
        _assert_size_stride(x, shape, stride)


def _aligned(x):
    return x.clone() if x.data_ptr() % 16 else x


class _Extern:
    """`extern_kernels.mm(a, b, out=c)` and its like are torch's own functions."""

    def __getattr__(self, name):
        return getattr(torch, name)


class _Launcher:
    """What Inductor's autotuner is to the wrapper: `.run(*args, stream=...)`. It takes the first configuration."""

    def __init__(self, kernel):
        self.kernel, self.choice = kernel, kernel.choices[0]

    def run(self, *args, stream=None, **_):
        kernel, values = self.kernel.jit, dict(self.choice["values"])
        names = [name for name in self.kernel.parameters if name not in values]
        given = dict(zip(names, args, strict=False)) | values
        meta = {name: value for name, value in values.items() if name in self.kernel.parameters}
        grid = grid_of(self.choice, given)
        kernel[grid](*args, **meta, num_warps=self.choice["num_warps"], num_stages=self.choice["num_stages"])


def grid_of(choice, given):
    """The grid of a launch with the arguments `given`, from the texts that Inductor's GridExpr made."""
    names = {"math": math, "min": min, "max": max, **given}
    for line in choice["prefix"]:
        exec(line, names)
    return tuple(int(eval(axis, names)) for axis in choice["grid"])


def load(kernel):
    """Import a GeneratedKernel's text as a module; return its JITFunction. The file stays: compiled kernels name it."""
    imports = [line for line in kernel.source.split("@triton", 1)[0].splitlines() if line.startswith(("import ", "from "))]
    kept = [line for line in imports if "triton_heuristics" not in line and "hints" not in line]
    helpers = "from torch._inductor.runtime import triton_helpers"
    text = "\n".join([*kept, *([helpers] if "triton_helpers" in kernel.code else []), "", kernel.code])
    return getattr(module_of(text, "generated"), kernel.name)


# ---- In a sandbox already


def write_here(calls, properties):
    """kit.inductor.write of each (fn, call), from within a sandbox's child, whose process must stay as it is. Raises BadInput.

    For a simulated GPU a fork of this process believes in it, and ends; a real GPU needs no belief, and its context no fork.
    """
    from kit import inductor
    from kit.generated import reason

    def written():
        return [inductor.write(fn, call, properties) for fn, call in calls]

    try:
        return written() if properties is None else _forked(written)
    except Exception as error:  # whatever torch says is the reason
        names = " or ".join(dict.fromkeys(fn.__name__ for fn, _ in calls))
        raise BadInput(f"generated: torch.compile does not take {names}: {reason(str(error) or type(error).__name__)}") from None


def _forked(work):
    """What `work()` returns as JSON, from a fork of this process. Raises RuntimeError with the message of what it raised."""
    ours, theirs = os.pipe()
    child = os.fork()
    if child == 0:
        told = {"error": "ended without a result"}
        try:
            os.close(ours)
            torch.set_num_threads(1)  # the threads of the parent's pool are not in the fork
            told = {"value": work()}
        except BaseException as error:  # noqa: BLE001  a fork must not return into the caller's code
            told = {"error": str(error) or type(error).__name__}
        finally:
            with contextlib.suppress(BaseException), open(theirs, "w", encoding="utf-8") as pipe:
                json.dump(told, pipe)
            os._exit(0)
    os.close(theirs)
    with open(ours, encoding="utf-8") as pipe:
        text = pipe.read()
    os.waitpid(child, 0)
    told = json.loads(text) if text else {"error": "the process that writes it ended without a word"}
    if "error" in told:
        raise RuntimeError(told["error"])
    return told["value"]
