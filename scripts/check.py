"""Is this machine ready for a workshop? `python scripts/check.py [--learners N]`; `make check` calls it, best on the day before.

A line for each thing that the notebooks need; where one fails, a sentence says what to do, and the exit status is 1. Changes nothing, and
takes about 20 s. `--learners N` asks for the memory that N people on this machine need together.
"""

from __future__ import annotations

import argparse
import contextlib
import importlib.metadata
import os
import re
import shutil
import sys
import tempfile
import time
import tomllib
from pathlib import Path

import setup
from project import ROOT, written_notebooks

# Bytes that one learner's kernel, sandbox and JupyterLab take without a GPU, rounded up from benchmarks/notebook_memory.py.
ONE_LEARNER = 1_000_000_000
CONTEXT = 600_000_000  # bytes of GPU memory that one notebook's CUDA context and small tensors take, rounded up
FREE_DISK = 1_000_000_000  # for compiled kernels, and what people write
KERNEL_SECONDS = 60
PROBE = "import kit; gpu = kit.start(); print(gpu)"
LABEXTENSIONS = {"@jupyter-widgets/jupyterlab-manager": "jupyterlab_widgets", "anywidget": "anywidget"}  # and the package that brings it


class Missing(Exception):
    """What is not as it should be, and what to do: one sentence."""


def python(_):
    """A Python that the pinned packages have wheels for, on a system that Triton has a build for."""
    setup.check_platform()
    here = sys.version_info[:2]
    if not setup.OLDEST <= here <= setup.NEWEST:
        oldest, newest = setup.dotted(setup.OLDEST), setup.dotted(setup.NEWEST)
        raise Missing(f"this is Python {setup.dotted(here)}, and {oldest} to {newest} are needed: run make check with another PYTHON.")
    return f"{sys.version.split()[0]} in {sys.prefix}"


def packages(_):
    """What pyproject.toml asks for is installed, in the versions that it asks for."""
    from packaging.requirements import Requirement

    wanted = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]["dependencies"]
    told = []
    for need in map(Requirement, wanted):
        try:
            version = importlib.metadata.version(need.name)
        except importlib.metadata.PackageNotFoundError:
            raise Missing(f"{need.name} is not installed: run make lab once, or pip install -e . in this environment.") from None
        if not need.specifier.contains(version, prereleases=True):
            raise Missing(f"{need.name} {version} is installed, and {need.specifier} is needed: pip install '{need}'.")
        told.append(f"{need.name} {version.split('+')[0]}")
    return ", ".join(told)


def notebooks(_):
    """The notebooks and their exercises are in this copy."""
    exercises = sorted((ROOT / "exercises").glob("*.ipynb"))
    if not written_notebooks() or not exercises:
        raise Missing("notebooks/ or exercises/ is empty: clone the project again.")
    return f"{len(list((ROOT / 'notebooks').glob('*.ipynb')))} lessons, {len(exercises)} exercises"


def disk(_):
    """Room for compiled kernels and for what people write."""
    from triton import knobs

    told = []
    for what, folder in (("the project", ROOT), ("Triton's cache", _existing(knobs.cache.dir)), ("temporary files", tempfile.gettempdir())):
        free = shutil.disk_usage(folder).free
        if free < FREE_DISK:
            raise Missing(f"{free / 1e9:.1f} GB are free for {what} ({folder}), and 1 GB is needed: free some space there.")
        told.append(f"{free / 1e9:.0f} GB for {what}")
    return ", ".join(told) + " free"


def _existing(folder):
    """The folder, or the nearest one above it that is there."""
    folder = Path(folder).absolute()
    while not folder.exists():
        folder = folder.parent
    return folder


def memory(options):
    """Enough memory for everybody who works on this machine."""
    free, needed = _free_memory(), options.learners * ONE_LEARNER
    who = "one person needs" if options.learners == 1 else f"{options.learners} people need"
    if free < needed:
        raise Missing(
            f"{free / 1e9:.1f} GB of memory are free, and {who} {needed / 1e9:.0f} GB: end other programs, or share out over more machines."
        )
    return f"{free / 1e9:.1f} GB free; {who} {needed / 1e9:.0f}"


def _free_memory():
    """Bytes free on this machine, or in its container where that has a limit."""
    free = int(re.search(r"MemAvailable:\s+(\d+)", Path("/proc/meminfo").read_text())[1]) * 1024
    with contextlib.suppress(OSError, ValueError):  # "max" where there is no limit
        most, now = (int(Path(f"/sys/fs/cgroup/memory.{name}").read_text()) for name in ("max", "current"))
        free = min(free, most - now)
    return free


def gpu(options):
    """The GPU, if there is one, can be used; its capability, driver and free memory."""
    from kit import machine

    here = machine.start()  # its errors are sentences
    if not here.live:
        return f"none here: {here.name} is simulated, and times are shown from recordings"
    import torch

    free, needed = here.free_memory, options.learners * CONTEXT
    if free < needed:
        raise Missing(
            f"{here.name} has {free / 1e9:.1f} GB free, and {options.learners} learners need {needed / 1e9:.0f} GB there: end what holds "
            f"the rest (nvidia-smi names it), or set KIT_SIMULATE=1 for some of them."
        )
    major, minor = torch.cuda.get_device_capability()
    return f"{here.name}, compute capability {major}.{minor}, driver {_driver()}, {free / 1e9:.1f} GB free"


def _driver():
    with contextlib.suppress(OSError):
        if found := re.search(r"Kernel Module\D+([\d.]+)", Path("/proc/driver/nvidia/version").read_text()):
            return found[1]
    return "of unknown version"


def compiler(_):
    """Triton compiles a kernel for the target, with nothing in its cache."""
    import torch
    from check_kernel import scale_kernel
    from triton import knobs

    from kit import machine
    from kit.build import build

    here, before = machine.current(), knobs.cache.dir
    x = torch.empty(1000, device=here.device)
    with tempfile.TemporaryDirectory() as empty:
        knobs.cache.dir = empty
        try:
            made = build(scale_kernel, x, 1000, BLOCK=256)  # no variant that is launched: its files go with the folder
        finally:
            knobs.cache.dir = before
    return f"a kernel for {here.target}: {made.registers} registers"


def launch(_):
    """A kernel runs, on the GPU or simulated, and gives what it should."""
    import torch
    from check_kernel import scale_kernel

    from kit import machine

    here = machine.current()
    x = torch.ones(1000, device=here.device)
    scale_kernel[(8,)](x, 1000, BLOCK=128)
    if not bool((x == 2).all()):
        raise Missing(f"a small kernel gave wrong numbers on {here!r}: report this, with the line of the packages above.")
    return f"1,000 elements, {here.evidence}"


def sandbox(_):
    """A cell that dies does so in the sandbox, and the next one runs."""
    from kit.sandbox import sandbox as run

    died, lived = run("import os; os.abort()", timeout=60), run("6 * 7", timeout=60)
    if died.kind != "crashed" or lived.value != 42:
        raise Missing(f"sandboxed cells ended as {died.kind} and {lived.kind}, not as crashed and ok ({lived.message or died.message}).")
    return "a cell died there, and the next one ran"


def jupyter(_):
    """A notebook's kernel starts from the Python that runs this, and the kit starts in it."""
    from jupyter_client.manager import KernelManager
    from run_notebook import _ThisPython

    environment = dict(os.environ, PYTHONPATH=os.pathsep.join(filter(None, [str(ROOT), os.environ.get("PYTHONPATH")])))
    manager = KernelManager(kernel_name="python3", kernel_spec_manager=_ThisPython())
    manager.start_kernel(env=environment, cwd=str(ROOT / "notebooks"))
    client = manager.client()
    said = []
    try:
        client.start_channels()
        client.wait_for_ready(timeout=KERNEL_SECONDS)
        hook = lambda message: said.append(message["content"])  # noqa: E731
        reply = client.execute_interactive(PROBE, timeout=KERNEL_SECONDS, output_hook=hook)["content"]
    except (RuntimeError, TimeoutError) as error:
        raise Missing(
            f"a notebook's kernel did not start ({str(error) or 'no answer within a minute'}): try python -m ipykernel."
        ) from None
    finally:
        client.stop_channels()
        manager.shutdown_kernel(now=True)
    if reply["status"] != "ok":
        raise Missing(f"a notebook's kernel starts, and the kit does not start in it: {reply['ename']}: {reply['evalue']}")
    return "a kernel started and the kit in it: " + "".join(content.get("text", "") for content in said).strip().split(" · ")[0]


def widgets(_):
    """JupyterLab has the front ends of the sliders."""
    from jupyter_core.paths import jupyter_path

    folders, told = [Path(folder) for folder in jupyter_path("labextensions")], []
    for name, package in LABEXTENSIONS.items():
        if not any((folder / name / "package.json").exists() for folder in folders):
            raise Missing(
                f"JupyterLab has no front end for widgets ({name}): pip install --force-reinstall {package} into this environment."
            )
        told.append(name)
    return ", ".join(told)


def folders(_):
    """What is written while people work can be written."""
    from jupyter_core.paths import jupyter_data_dir, jupyter_runtime_dir
    from triton import knobs

    from kit.progress import path as progress_file

    needed = {
        "Triton's cache, TRITON_CACHE_DIR": knobs.cache.dir,
        "Jupyter's data, JUPYTER_DATA_DIR": jupyter_data_dir(),
        "Jupyter's sockets, JUPYTER_RUNTIME_DIR": jupyter_runtime_dir(),
        "progress, KIT_PROGRESS": Path(progress_file()).parent,
        "temporary files, TMPDIR": tempfile.gettempdir(),
        "the notebooks": ROOT / "notebooks",
    }
    for what, folder in needed.items():
        if not os.access(_existing(folder), os.W_OK | os.X_OK):
            raise Missing(f"{folder} cannot be written by you ({what}): make it yours, or name another folder.")
    return f"{len(needed)} can be written"


CHECKS = (python, packages, notebooks, disk, memory, gpu, compiler, launch, sandbox, jupyter, widgets, folders)


def told(check, options):
    """(whether it is as it should be, its sentence)."""
    try:
        return True, check(options)
    except (Missing, setup.Stop) as missing:
        return False, str(missing)
    except Exception as error:  # noqa: BLE001  a machine can be broken in ways that nobody foresaw; the other lines are still wanted
        words = (str(error).strip().splitlines() or [""])[0]
        own = type(error).__name__ in ("KitError", "BadInput")  # the kit's own errors are sentences
        return False, words if own else f"{type(error).__name__}: {words}. Nothing else is known: run it again, then ask, with this line."


def main(arguments=None):
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--learners", type=int, default=1, metavar="N", help="how many people work on this machine at once (1)")
    options = parser.parse_args(arguments)
    if options.learners < 1:
        parser.error("--learners must be 1 or more")
    sys.path.insert(0, str(ROOT))
    began, failed = time.monotonic(), 0
    for check in CHECKS:
        good, sentence = told(check, options)
        failed += not good
        print(f"{'ok    ' if good else 'FAILED'}  {check.__name__:<9}  {sentence}", flush=True)
    print(f"{len(CHECKS) - failed} passed, {failed} failed")
    if time.monotonic() - began > 60:
        print(f"This took {time.monotonic() - began:.0f} s: the machine is slow, or busy.")
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
