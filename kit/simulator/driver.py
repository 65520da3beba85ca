"""The Triton driver of the simulated GPU: the one adapter to private Triton.

Triton asks its active driver for the target to compile for, for a loaded binary, and for a launcher. This driver answers for
a GPU that is not there: the compiler is the real one, and a launch executes the compiled kernel's TTIR on the CPU. The hooks
used here exist, with these signatures, in Triton 3.6 to 3.9 (triton/compiler/compiler.py, CompiledKernel._init_handles).
"""

from __future__ import annotations

import functools
import os
import threading
import warnings
from dataclasses import dataclass
from pathlib import Path

from triton import knobs
from triton.backends.compiler import GPUTarget
from triton.compiler import compile as triton_compile
from triton.compiler.compiler import make_backend
from triton.runtime import driver as triton_driver

from kit.errors import no_times
from kit.simulator import descriptors, launch, tuning
from kit.simulator.program import Unsupported

WARP_SIZE = 32
_loading = threading.local()


class SimulatedDriverError(RuntimeError):
    """What the CUDA driver would have raised at this launch."""


@dataclass
class LoadedKernel:
    """A compiled kernel as the simulated GPU holds it: its name, its texts, the file of its source, and what it was compiled from."""

    name: str
    ttir: str
    file: str | None
    ttgir: str | None = None
    ptx: str | None = None
    source: object = None
    metadata: object = None

    @functools.cached_property
    def program(self):
        """The kernel read into operations, once. Products and sums are fused as its launch options say."""
        program = launch.read_program(self.ttir, self.file)
        program.fuses = getattr(self.metadata, "enable_fp_fusion", True)
        return program

    @functools.cached_property
    def plan(self):
        """How its warps run it; None, told once in a warning, for a kernel that cannot be run warp by warp. One warp needs no plan."""
        if self.metadata is None or self.metadata.num_warps == 1:
            return None
        try:
            return warp_plan(self.ttgir, self.ptx, self.source, self.metadata, self.file)
        except Unsupported as error:
            warnings.warn(
                f"{self.name} reads memory that it writes, and its warps ran in step: a race between them would not show. Reason: {error}",
                stacklevel=2,
            )
            return None


def warp_plan(ttgir, ptx, source, metadata, file=None):
    """The Plan of a compiled kernel, as `triton.compile` gives its texts, source and metadata.

    A loop that was pipelined copies through shared memory while it computes; such a kernel is compiled again without, so that
    what is looked at is a schedule next to the one that ships. Raises Unsupported for a kernel that cannot be planned.
    """
    from kit.simulator.warps import Plan

    if metadata.target.backend != "cuda":
        raise Unsupported("the simulated GPU does not run AMD kernels warp by warp.")
    if metadata.num_ctas > 1:
        raise Unsupported("the simulated GPU does not run a program of several thread blocks warp by warp.")
    try:
        return _fusing(Plan(ttgir, ptx, metadata.num_warps, file), metadata)
    except Unsupported:
        if metadata.num_stages <= 1:
            raise
    target = metadata.target
    known = make_backend(target).parse_options({}).__dict__
    options = {key: _frozen(value) for key, value in metadata._asdict().items() if key in known}
    with knobs.compilation.scope():
        knobs.compilation.listener = None
        plain = triton_compile(source, target=target, options=options | {"num_stages": 1})
    return _fusing(Plan(plain.asm["ttgir"], plain.asm["ptx"], metadata.num_warps, file), metadata)


def _fusing(plan, metadata):
    """`plan`, its products and sums fused as the launch options say."""
    plan.program.fuses = getattr(metadata, "enable_fp_fusion", True)
    return plan


def _frozen(value):
    # A kernel from Triton's disk cache has lists where the options of a compilation must be tuples.
    return tuple(map(_frozen, value)) if isinstance(value, (list, tuple)) else value


class _Utils:
    """The part of a Triton driver that loads binaries and tells a device's properties."""

    def __init__(self, limits):
        self.limits = limits

    def get_device_properties(self, device):
        return {"max_shared_mem": self.limits.shared_memory, "warpSize": WARP_SIZE}

    def load_binary(self, name, kernel, shared, device):
        """(module, function, registers, spills, threads allowed). The function is the kernel's TTIR, which executes."""
        texts = _loading.texts
        loaded = LoadedKernel(
            name, texts.get("ttir"), _loading.file, texts.get("ttgir"), texts.get("ptx"), _loading.source, _loading.metadata
        )
        return loaded, loaded, 0, 0, self.limits.threads

    def unload_module(self, module):
        pass


class _Launcher:
    """What a launch calls: (grid, stream, function, metadata, hooks, arguments)."""

    limits = None

    def __init__(self, src, metadata):
        self.names = list(src.signature.items())
        # Triton makes the launcher just before it loads the binary, in the same thread.
        _loading.source, _loading.metadata = src, metadata
        _loading.file = getattr(getattr(src, "fn", None), "fn", None) and src.fn.fn.__code__.co_filename

    def __call__(self, grid_x, grid_y, grid_z, stream, function, packed_metadata, launch_metadata, enter_hook, exit_hook, *args):
        grid = (grid_x, grid_y, grid_z)
        if not check_grid(grid, self.limits) or tuning.only_compiles():
            return
        if enter_hook is not None:
            enter_hook(launch_metadata)
        launch.run(function.program, grid, live_arguments(self.names, args), function)
        if exit_hook is not None:
            exit_hook(launch_metadata)


class SimulatedDriver:
    """A driver for `arch` with `limits`, on which launches execute on the CPU."""

    def __init__(self, arch, limits):
        self.target = GPUTarget("cuda", arch, WARP_SIZE)
        self.limits = limits
        self.utils = _Utils(limits)
        self.launcher_cls = type("Launcher", (_Launcher,), {"limits": limits})

    def get_current_target(self):
        return self.target

    def get_current_device(self):
        # Triton keeps a kernel's variants by device: a number for each target keeps those of different targets apart.
        return self.target.arch if isinstance(self.target.arch, int) else 0

    def get_current_stream(self, device):
        return 0

    def set_current_device(self, device):
        pass

    def get_device_capability(self, device=0):
        return divmod(self.target.arch, 10)

    def get_benchmarker(self):
        """What @triton.autotune times configurations with: here it compiles each and times none."""
        return tuning.benchmarker

    def get_device_interface(self):
        """What `triton.testing.do_bench` asks for, to time launches: a simulation has no times."""
        raise no_times("do_bench", f"cuda:{self.target.arch}")

    def get_active_torch_device(self):
        import torch

        return torch.device("cpu")

    @classmethod
    def is_active(cls):
        return True

    def map_python_to_cpp_type(self, ty):
        from triton.backends.nvidia.driver import ty_to_cpp

        return ty_to_cpp(ty)


def install(arch, limits):
    """Make the simulated GPU Triton's active driver. Asking again for the same one changes nothing."""
    now = triton_driver._active
    if isinstance(now, SimulatedDriver) and now.target.arch == arch and now.limits == limits:
        return now
    # Triton 3.9 warns on the first compile unless the choice is made; through 3.9 the default is on.
    os.environ.setdefault("TRITON_DEFAULT_FP_FUSION", "1")
    new = SimulatedDriver(arch, limits)
    triton_driver.set_active(new)
    if _remember_texts not in knobs.runtime.kernel_load_start_hook.calls:
        knobs.runtime.kernel_load_start_hook.add(_remember_texts)
    return new


def installed():
    """True when launches of this process go to the simulated GPU."""
    return isinstance(triton_driver._active, SimulatedDriver)


def _remember_texts(module, function, name, metadata_group, key):
    # load_binary is given only the cubin; this hook, called just before it, knows where the kernel's other texts lie.
    texts = {file.rsplit(".", 1)[-1]: path for file, path in metadata_group.items()}
    _loading.texts = {kind: Path(path).read_text() for kind, path in texts.items() if kind in ("ttir", "ttgir", "ptx")}


def live_arguments(signature, args):
    """[(name, Triton type, value)] of the arguments that the compiled kernel still takes, in its own order.

    Constexprs, and integers that were 1, are folded into the code and are no parameter any more. A tuple's members follow
    each other.
    """
    live = []
    for (name, kind), value in zip(signature, args):
        if isinstance(kind, tuple):
            live += live_arguments([(f"{name}.{i}", k) for i, k in enumerate(kind)], value)
        elif isinstance(kind, str) and kind.startswith("tensordesc"):
            live += descriptors.live_arguments(name, kind, value)
        elif kind != "constexpr":
            live.append((name, kind, value))
    return live


def check_grid(grid, limits):
    """True when a launch on `grid` runs; False when CUDA or Triton's launcher skips it in silence.

    Raises what the launch would raise on the GPU. Triton's launcher parses three C ints, multiplies them in 32 bits, and
    launches only when the product is positive (triton/backends/nvidia/driver.c); the CUDA driver then refuses an axis that
    is over the limit.
    """
    for n in grid:
        if not -(2**31) <= int(n) < 2**31:
            word = "greater than maximum" if n > 0 else "less than minimum"
            raise OverflowError(f"signed integer is {word}")
    if wrapped_product(grid) <= 0:
        return False
    if any(n < 0 or n > limit for n, limit in zip(grid, limits.grid)):
        raise SimulatedDriverError("Triton Error [CUDA]: invalid argument (simulated)")
    return True


def wrapped_product(grid):
    """grid[0]·grid[1]·grid[2] as Triton's launcher computes it: in 32 bits."""
    product = 1
    for n in grid:
        product *= int(n)
    return (product + 2**31) % 2**32 - 2**31
