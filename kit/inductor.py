"""Inductor's code generator, asked for a GPU that need not be there: the one adapter to torch's private compiler.

`write` runs in a child process, which without a GPU it changes for good: it makes torch believe in one, as far as the generator looks.
Tensors are fake (a shape, strides, a dtype, no memory), and the generated module is never loaded, so nothing touches a GPU. What it
relies on is private and was read in torch 2.11 to 2.14: `GraphLowering.compile_to_module` and `.codegen`, `torch._dynamo.device_interface`,
the checks of `torch.cuda` named in `_believe`, `joint_graph.lazy_init` and its constant folder, the names that dynamo gives to inputs
(`l_x_` for x), the calls of `async_compile.triton` in the text, `GridExpr`.
"""

from __future__ import annotations

import ast
import contextlib
import functools
import io
import json
import logging
import os
import re
import tempfile
import types
import warnings
from unittest import mock

import torch


def write(fn, call, properties):
    """Return {"source", "order", "kernels"} of what is generated for fn called with `call`, as JSON holds it.

    `call` is {name of an argument: {"shape", "stride", "dtype", "offset"} of a tensor, or {"value"}}. `properties` are those of the GPU
    that is written for, or None for the one that is here. "order" names the arguments that the module takes, in its order; "kernels" is
    {name: [{"values", "num_warps", "num_stages", "grid", "prefix"}]}. Whatever fn or Inductor raises, is raised.
    """
    with contextlib.ExitStack() as stack:
        stack.enter_context(mock.patch.dict(os.environ, {"TORCHINDUCTOR_COMPILE_THREADS": "1"}))  # nothing is compiled: no workers
        os.environ.pop("TORCH_LOGS", None)
        stack.enter_context(warnings.catch_warnings())
        warnings.simplefilter("ignore")
        from torch._inductor import config
        from torch._subclasses.fake_tensor import FakeTensorMode

        logging.getLogger("torch").setLevel(logging.ERROR)
        # A cached graph would come with the text of another process, and the key of the cache asks the GPU for its name.
        stack.enter_context(config.patch(force_disable_caches=True))
        if properties is not None:
            _believe(json.dumps(properties))
        stack.enter_context(contextlib.redirect_stdout(io.StringIO()))
        stack.enter_context(FakeTensorMode(allow_non_fake_inputs=True))
        stack.enter_context(torch.no_grad())
        torch._dynamo.reset()
        source, inputs = _source(torch.compile(fn, dynamic=False, fullgraph=True), [_fake(one) for one in call.values()])
    names = {re.sub(r"[^a-z0-9]+", "_", f"l_{name}_".lower()): name for name in call}
    if len(names) < len(call):
        raise ValueError(f"two of the arguments {', '.join(call)} differ in case or underscores only: rename one")
    # Where the text would be stored, and the how-manieth graph of its process it is, are no part of it.
    source = re.sub(r"^# (kernel path|AOT ID): .*\n", "", source, flags=re.MULTILINE)
    kernels = {name: _choices(name, text) for name, text in kernel_texts(source).items()}
    return {"source": source, "order": [names[one] for one in inputs], "kernels": kernels}


class _Written(BaseException):
    """Leaves torch.compile once the text is there; no `except Exception` on the way stops it."""


def _source(compiled, given):
    """The text of the module that Inductor would load, and dynamo's names for its inputs; ("", []) when there is nothing to compile."""
    from torch._inductor import compile_fx
    from torch._inductor.graph import GraphLowering

    texts, inputs = [], []
    real = compile_fx.compile_fx

    def noted(graph, *args, **options):
        inputs.extend(node.name for node in graph.graph.nodes if node.op == "placeholder")
        return real(graph, *args, **options)

    def keep(graph):
        texts.append(graph.codegen()[0].value)
        raise _Written

    with mock.patch.object(compile_fx, "compile_fx", noted), mock.patch.object(GraphLowering, "compile_to_module", keep):
        with contextlib.suppress(_Written):
            compiled(*given)
    return (texts[0], inputs) if texts else ("", [])


def _fake(argument):
    if "value" in argument:
        return argument["value"]
    shape, stride, offset = argument["shape"], argument["stride"], argument["offset"]
    dtype = getattr(torch, argument["dtype"])
    extent = offset + (0 if 0 in shape else 1 + sum((n - 1) * s for n, s in zip(shape, stride, strict=True)))
    return torch.empty(extent, dtype=dtype, device="cuda").as_strided(shape, stride, offset)


def kernel_texts(source):
    """{name: source} of the Triton kernels in a generated module: the texts that it hands to `async_compile.triton`."""
    found = {}
    for node in ast.walk(ast.parse(source)):
        called = isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute) and node.func.attr == "triton"
        if called and len(node.args) >= 2 and all(isinstance(one, ast.Constant) for one in node.args[:2]):
            found[node.args[0].value] = node.args[1].value
    return found


def _choices(name, text):
    """The configurations that Inductor would choose among for this kernel, and the grid of each as text over its arguments."""
    from torch._inductor.runtime import triton_helpers, triton_heuristics

    with tempfile.TemporaryDirectory() as folder, mock.patch.object(triton_helpers, "set_driver_to_gpu", lambda: None):
        file = os.path.join(folder, f"{name}.py")  # a kernel's source is read from its file
        with open(file, "w", encoding="utf-8") as out:
            out.write(text)
        namespace = {"__name__": name, "__file__": file}
        exec(compile(text, file, "exec"), namespace)
    tuner = namespace[name]
    found = []
    for config in tuner.configs:
        grid = triton_heuristics.GridExpr.from_meta(tuner.inductor_meta, config.kwargs)
        axes = [str(axis) for axis in (grid.x_grid, grid.y_grid, grid.z_grid)]
        choice = {"values": config.kwargs, "num_warps": config.num_warps, "num_stages": config.num_stages}
        found.append(choice | {"grid": axes, "prefix": list(grid.prefix)})
    return found


# ---- A GPU to believe in


@functools.cache
def _believe(properties):
    """Make the generator see a GPU with these properties (as JSON), in a process that has none. For good, and once."""
    from torch._dynamo import device_interface
    from torch._inductor.fx_passes import joint_graph
    from torch._subclasses import fake_tensor

    seen = types.SimpleNamespace(type="cuda", index=0, **json.loads(properties))
    capability = (seen.major, seen.minor)
    answers = {
        "is_available": True,
        "is_initialized": True,
        "device_count": 1,
        "current_device": 0,
        "get_device_properties": seen,
        "get_device_capability": capability,
        "get_compute_capability": 10 * seen.major + seen.minor,
        "is_bf16_supported": True,
        "get_raw_stream": 0,
        "is_current_stream_capturing": False,
        "synchronize": None,
    }
    real = device_interface.get_interface_for_device("cuda")
    static = {name: staticmethod(_says(answer)) for name, answer in answers.items()}
    worker = type("Worker", (real.Worker,), {name: static[name] for name in ("current_device", "get_device_properties")})
    interface = type("BelievedInterface", (real,), static | {"Worker": worker})
    for name in ("cuda", "cuda:0"):
        device_interface.register_interface_for_device(name, interface)
    for name, answer in (answers | {"_exchange_device": 0, "_maybe_exchange_device": 0, "_lazy_init": None, "set_rng_state": None}).items():
        if hasattr(torch.cuda, name):
            setattr(torch.cuda, name, _says(answer))
    torch.cuda.get_rng_state = lambda *_, **__: torch.zeros(16, dtype=torch.uint8)
    if torch.version.cuda is None:
        torch.version.cuda = "12.8"  # a build without CUDA is taken for one for AMD; only that it is a version is looked at
    if hasattr(fake_tensor, "init_gpu_context"):
        fake_tensor.init_gpu_context = _says(None)  # a CUDA build opens the GPU's context for a fake tensor
    if hasattr(torch, "accelerator"):
        torch.accelerator.is_available = _says(False)  # else dynamo asks the CUDA runtime for its current stream
    joint_graph.lazy_init = _says(None)  # it traces patterns on real CUDA tensors
    joint_graph.UniformValueConstantFolder = _folder_on_cpu(joint_graph.UniformValueConstantFolder)
    # A build without CUDA has no guard for it, which the method asks for and the operator does not.
    torch.Tensor.copy_ = lambda x, y, non_blocking=False: torch.ops.aten.copy_.default(x, y, non_blocking)


def _folder_on_cpu(folder):
    """The constant folder, which makes real tensors of one element, with those that it would make on the GPU on the CPU."""
    from torch.utils._python_dispatch import TorchDispatchMode

    class OnCpu(TorchDispatchMode):
        def __torch_dispatch__(self, func, types, args=(), kwargs=None):
            kwargs = dict(kwargs or {})
            if "device" in kwargs:
                kwargs["device"] = torch.device("cpu")
            return func(*args, **kwargs)

    class FolderOnCpu(folder):
        def __init__(self, *args, **options):
            with OnCpu():
                super().__init__(*args, **options)

        def run(self, *args, **options):
            with OnCpu():
                return super().run(*args, **options)

    return FolderOnCpu


def _says(answer):
    return lambda *_, **__: answer
