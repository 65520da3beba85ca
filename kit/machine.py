"""`start`: find the GPU of this machine, or put the simulated one in its place."""

from __future__ import annotations

import mmap
import os
import platform
import re
from dataclasses import dataclass, field

import torch
import triton

from kit import versions
from kit.errors import BadInput, KitError, WrongType, quoted

# CUDA C++ programming guide, "Technical specifications per compute capability": the same for 7.5 to 12.x.
GRID_LIMITS = (2**31 - 1, 65_535, 65_535)
# Triton's launcher multiplies the three axes in a 32-bit int and launches only when the product is positive.
PROGRAMS_LIMIT = 2**31 - 1

_MAP_NORESERVE = 0x4000  # Linux, bits/mman-map-flags-generic.h; the mmap module has no name for it before Python 3.13


@dataclass(frozen=True)
class Limits:
    """What a target can hold: programs on each grid axis, programs in all, threads and bytes of shared memory a program."""

    grid: tuple[int, int, int]
    programs: int
    threads: int
    shared_memory: int


@dataclass(frozen=True)
class Target:
    """A GPU that can be simulated: the name shown, and the figures of its data sheet that launches depend on."""

    arch: int
    name: str
    memory: int
    shared_memory: int
    multiprocessors: int

    @property
    def limits(self):
        return Limits(GRID_LIMITS, PROGRAMS_LIMIT, 1024, self.shared_memory)


# Shared memory a block may opt in to: CUDA C++ programming guide, same table. Memory and multiprocessors: vendor data sheets.
TARGETS = {
    "cuda:75": Target(75, "T4", 16 * 10**9, 65_536, 40),
    "cuda:80": Target(80, "A100", 80 * 10**9, 166_912, 108),
    "cuda:86": Target(86, "RTX 3090", 24 * 10**9, 101_376, 82),
    "cuda:89": Target(89, "L4", 24 * 10**9, 101_376, 58),
    "cuda:90": Target(90, "H200", 141 * 10**9, 232_448, 132),
    "cuda:100": Target(100, "B200", 180 * 10**9, 232_448, 148),
}


@dataclass(frozen=True)
class Machine:
    """Where the cells of this notebook run: a GPU, or the simulated one. `device` is what tensors are made on."""

    device: str
    name: str
    live: bool
    target: str
    limits: Limits
    memory: int
    multiprocessors: int
    versions: dict = field(default_factory=dict)

    @property
    def evidence(self):
        """The evidence word of what a launch shows here: "measured" or "simulated"."""
        return "measured" if self.live else "simulated"

    @property
    def free_memory(self):
        """Bytes that a tensor may still take on this device; for a simulated GPU, its whole memory (pages fill when written)."""
        return torch.cuda.mem_get_info()[0] if self.live else self.memory

    def reserve(self, shape, dtype):
        """Return an uninitialised tensor of `shape` and `dtype` on this device, however large.

        On a GPU that is `torch.empty`. On a simulated GPU only the pages that are written take memory, and the rest
        reads as zeros. Raises BadInput with both sizes when the device cannot hold it.
        """
        shape = (shape,) if isinstance(shape, int) else tuple(shape)
        if not isinstance(dtype, torch.dtype):
            raise WrongType(f"reserve: dtype must be a torch dtype such as torch.int8; got {quoted(dtype)}.")
        if any(not isinstance(n, int) or n < 0 for n in shape):
            raise BadInput(f"reserve: shape must be whole numbers, zero or more; got {shape}.")
        n_elements = 1
        for n in shape:
            n_elements *= n
        n_bytes = n_elements * dtype.itemsize
        if n_bytes > self.free_memory:
            raise BadInput(
                f"reserve: this step needs {n_bytes / 1e9:.1f} GB on the GPU, and {self.free_memory / 1e9:.1f} GB are free "
                f"on {self.name}. Free what other programs and cells hold there, or run it on a larger GPU."
            )
        if self.live or n_bytes == 0:
            return torch.empty(shape, dtype=dtype, device=self.device)
        pages = mmap.mmap(-1, n_bytes, flags=mmap.MAP_PRIVATE | mmap.MAP_ANONYMOUS | _MAP_NORESERVE)
        return torch.frombuffer(pages, dtype=dtype).reshape(shape)

    def __repr__(self):
        kind = "live" if self.live else "simulated on the CPU, no GPU here"
        return f"{self.name} ({self.target}, {kind}) · Triton {self.versions['triton']} · torch {self.versions['torch']}"


_current: Machine | None = None


def start(target="cuda:90", require=None):
    """Return the Machine that this notebook runs on: the CUDA GPU that is here, or a simulated `target` in its place.

    `target` is one of TARGETS ("cuda:90" is shown as an H200). `require="gpu"`, or KIT_REQUIRE=gpu in the environment, refuses to
    simulate. The sandbox's server starts in the background; KIT_WARM=0 leaves that to the first sandbox. Raises KitError when a GPU is
    here and cannot be used, or is required and is not here.
    """
    from kit.sandbox_process import warm  # which asks this module for the machine

    global _current
    if not isinstance(target, str) or target not in TARGETS:
        raise BadInput(f"start: target must be one of {', '.join(TARGETS)}; got {quoted(target)}.")
    if require not in (None, "gpu"):
        raise BadInput(f'start: require must be "gpu" or left out; got {quoted(require)}.')
    required = require == "gpu" or os.environ.get("KIT_REQUIRE") == "gpu"
    simulate = os.environ.get("KIT_SIMULATE") == "1"  # to see, on a GPU machine, what readers without one see
    if required and simulate:
        raise KitError("start: a GPU is required and KIT_SIMULATE=1 asks for the simulated one. Unset one of the two.")
    if not simulate and (name := _gpu_here()):
        _current = _live(name)
    elif required:
        raise KitError(
            'start: a GPU is required (require="gpu" or KIT_REQUIRE=gpu), and this machine has no NVIDIA GPU that its driver '
            "shows. Run it on a machine with one, or drop the requirement to use the simulated GPU."
        )
    else:
        _current = _simulated(target)
    versions.warn_when_newer(triton.__version__)
    if os.environ.get("KIT_WARM") != "0":
        warm()
    return _current


def current():
    """Return the Machine of the last `start()`; start the default one when there was none."""
    return _current or start()


def _gpu_here():
    """The name of the NVIDIA GPU that is in this machine, whether torch can use it or not; None when there is none."""
    if torch.cuda.is_available():
        return torch.cuda.get_device_name()
    if os.environ.get("CUDA_VISIBLE_DEVICES") in ("", "-1"):
        return None  # hidden on purpose
    for info in sorted(_proc_gpus()):
        match = re.search(r"Model:\s*(.+)", info)
        return match[1].strip() if match else "an NVIDIA GPU"
    return None


def _proc_gpus():
    """What the NVIDIA kernel driver says of each GPU; nothing where it is not loaded."""
    base = "/proc/driver/nvidia/gpus"
    if not os.path.isdir(base):
        return []
    return [open(f"{base}/{gpu}/information", encoding="utf-8", errors="replace").read() for gpu in os.listdir(base)]


def _live(name):
    unusable = f"start: {name} is in this machine and cannot be used: "
    simulate = " To go on without it, set KIT_SIMULATE=1 before starting Python."
    if torch.version.cuda is None:
        raise KitError(f"{unusable}this torch ({torch.__version__}) is a build without CUDA. Install the CUDA build of torch.{simulate}")
    try:
        torch.cuda.init()
        major, minor = torch.cuda.get_device_capability()
        free, total = torch.cuda.mem_get_info()
        torch.zeros(1, device="cuda")
    except Exception as error:  # torch raises many kinds here; the driver's words are what helps
        words = str(error).strip().splitlines()[0] if str(error).strip() else type(error).__name__
        raise KitError(f"{unusable}{words} (torch {torch.__version__} for CUDA {torch.version.cuda}).{simulate}") from None
    if (major, minor) < (7, 5):
        raise KitError(
            f"{unusable}its compute capability is {major}.{minor}, and Triton {triton.__version__} needs 7.5 or newer.{simulate}"
        )
    if free < 256 * 2**20:
        raise KitError(
            f"{unusable}{free / 2**20:.0f} MiB of its memory are free, and the lessons need at least 256. "
            f"Another program holds the rest (nvidia-smi names it).{simulate}"
        )
    properties = torch.cuda.get_device_properties(0)
    shared = getattr(properties, "shared_memory_per_block_optin", 49_152)
    return Machine(
        "cuda",
        name,
        True,
        f"cuda:{major}{minor}",
        Limits(GRID_LIMITS, PROGRAMS_LIMIT, 1024, shared),
        total,
        properties.multi_processor_count,
        _versions(),
    )


def _simulated(target):
    from kit.simulator import driver

    spec = TARGETS[target]
    driver.install(spec.arch, spec.limits)
    return Machine("cpu", spec.name, False, target, spec.limits, spec.memory, spec.multiprocessors, _versions())


def _versions():
    return {"triton": triton.__version__, "torch": torch.__version__.split("+")[0], "python": platform.python_version()}
