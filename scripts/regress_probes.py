"""One small act for each module of the kit that touches what Triton or torch keep private: does this version still have it?

`python scripts/regress_probes.py [MODULE ...]` prints one JSON line before and one after each act, so that a process that dies still tells
which act it died in. scripts/regress.py runs it with the Triton in question first on the path. An act asserts a fact that holds on every
version tested, and no more: what else the module must do is for kit/tests.
"""

from __future__ import annotations

import json
import sys
import tempfile
import time

PROBES = {}


def probe(module):
    """Register a function as the act of a module, which it gets no argument for and whose answer nobody reads."""

    def register(function):
        assert module not in PROBES, module
        PROBES[module] = function
        return function

    return register


def kernels():
    """The kernels of the acts: their file is imported late, so that a Triton that cannot be imported is an act's failure too."""
    import regress_kernels

    return regress_kernels


def tensor(*values, dtype=None):
    import torch

    from kit import machine

    return torch.tensor(values, dtype=dtype or torch.float32, device=machine.current().device)


@probe("kit/machine.py")
def _machine():
    from kit import machine

    assert machine.start().limits.grid[1] == 65_535


@probe("kit/simulator/driver.py")
def _driver():
    x = tensor(*range(16))
    kernels().double_kernel[(2,)](x, 13, BLOCK=8)
    assert x.tolist() == [2.0 * i for i in range(13)] + [13.0, 14.0, 15.0], x
    try:
        kernels().double_kernel[(1, 65_536)](x, 13, BLOCK=8)
        raise AssertionError("a grid with 65,536 programs on axis y was accepted")
    except RuntimeError as error:
        assert "invalid argument" in str(error), error


@probe("kit/simulator/reader.py")
def _reader():
    from kit.simulator.reader import read_program

    read_program(_built(kernels().loop_kernel, BLOCK=16).ttir)  # raises Unsupported for a text of another form


@probe("kit/simulator/layouts.py")
def _layouts():
    from kit.simulator.layouts import Layouts

    build = _built(kernels().double_kernel, BLOCK=256)
    layouts = Layouts(build.ttgir, 4)
    name = next(iter(layouts.aliases))
    assert tuple(layouts.holders(name, (256,)).shape) == (4, 256)


@probe("kit/simulator/orders.py")
def _orders():
    from kit.simulator.orders import run_in_order

    x = tensor(*range(8))
    run_in_order(kernels().double_kernel, (1,), x, 8, BLOCK=8, warps="first first", programs="first first")
    assert x.tolist() == [2.0 * i for i in range(8)]


@probe("kit/simulator/tuning.py")
def _tuning():
    import warnings

    x, out = tensor(*range(8)), tensor(*[0.0] * 8)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        kernels().tuned_kernel[(1,)](x, out, 8)
    assert out.tolist() == [2.0 * i for i in range(8)]


@probe("kit/simulator/descriptors.py")
def _descriptors():
    x, out = tensor(*range(16)), tensor(*[0.0] * 16)
    kernels().described_kernel[(1,)](x, out, 16, BLOCK=16)
    assert out.tolist() == list(range(16))


@probe("kit/simulator/libdevice.py")
def _libdevice():
    x = tensor(0.0, 1.0)
    kernels().rint_kernel[(1,)](x, BLOCK=2)
    assert x.tolist() == [0.0, 1.0]


def _built(kernel, **meta):
    import kit

    return kit.build(kernel, kit.ghost(1024, _float32()), 1000, **meta)


def _float32():
    import torch

    return torch.float32


@probe("kit/compiling.py")
def _compiling():
    import kit
    from kit.errors import KitError

    build = _built(kernels().double_kernel, BLOCK=256)
    assert "tt.load" in build.ttir and "ld.global" in build.ptx
    try:
        kit.build(kernels().wrong_kernel, kit.ghost(4, _float32()))
        raise AssertionError("a kernel that does not compile was compiled")
    except KitError as error:
        assert "wrong_kernel" in str(error), error


@probe("kit/build.py")
def _build():
    build = _built(kernels().double_kernel, BLOCK=256)
    assert build.registers > 0 and build.spills == 0, build


@probe("kit/assembly.py")
def _assembly():
    build = _built(kernels().double_kernel, BLOCK=256)
    assert "LDG" in build.sass, "the SASS holds no load"


@probe("kit/specialization.py")
def _specialization():
    from triton.runtime import driver

    from kit import specialization

    kernel, x = kernels().fresh(kernels().double_kernel), tensor(*range(16))
    predicted = specialization.launch_variant(kernel, (x, 16), {"BLOCK": 8}, verb="probe")
    kernel[(1,)](x, 16, BLOCK=8)
    keys = set(kernel.device_caches[driver.active.get_current_device()][0])
    assert keys == {predicted.key}, f"predicted {predicted.key}, and Triton compiled {keys}"


@probe("kit/variants.py")
def _variants():
    from kit import specialization

    kernel, x = kernels().fresh(kernels().double_kernel), tensor(*range(16))
    texts = {n: str(specialization.launch_variant(kernel, (x, n), {"BLOCK": 8}, verb="probe").classes["n"]) for n in (1, 16, 17)}
    assert texts == {1: "= 1", 16: "int32, ÷16", 17: "int32"}, texts


@probe("kit/watch.py")
def _watch():
    import logging

    from kit.watch import watch

    logging.getLogger("kit.watch").setLevel(logging.ERROR)  # its warning is what is asked for, and not news

    kernel, x = kernels().fresh(kernels().double_kernel), tensor(*range(16))
    kernel[(1,)](x, 16, BLOCK=8)
    with watch(mode="warn") as log:
        kernel[(1,)](x, 16, BLOCK=8)
        assert len(log) == 0, log
        kernel[(1,)](x, 17, BLOCK=8)
    assert len(log) == 1, log


@probe("kit/generated.py")
def _generated():
    import kit

    made = kit.generated(kernels().softplus_of_sum, tensor(*range(16)), tensor(*range(16)))
    assert "@triton.jit" in made.source, "no Triton kernel was written"


@probe("kit/inductor.py")
def _inductor():
    import kit
    from kit.inductor import kernel_texts

    made = kit.generated(kernels().softplus_of_sum, tensor(*range(16)), tensor(*range(16)))
    assert len(made.kernels) == 1 and callable(kernel_texts)


@probe("kit/generated_run.py")
def _generated_run():
    import kit

    x = tensor(*[float(i) for i in range(16)])
    made = kit.generated(kernels().softplus_of_sum, x, x)
    assert (made(x, x) - kernels().softplus_of_sum(x, x)).abs().max() < 1e-5


@probe("kit/sources.py")
def _sources():
    from kit import sources

    reached = sources.reach(kernels().double_kernel)
    assert list(reached)[-1].endswith("double_kernel") and not any(name.startswith("triton.") for name in reached), list(reached)


@probe("kit/sandbox.py")
def _sandbox():
    import kit

    outcome = kit.sandbox("import torch, triton\nprint(triton.__version__)", timeout=120)
    import triton

    assert outcome and triton.__version__ in outcome.stdout, outcome


@probe("kit/dry_run.py")
def _dry_run():
    import kit

    assert kit.dry_run(kernels().double_kernel, (2,), kit.ghost(16, _float32()), 16, BLOCK=8)
    assert not kit.dry_run(kernels().double_kernel, (2,), kit.ghost(8, _float32()), 16, BLOCK=8)


def main(wanted):
    """Do the acts; return the exit status."""
    failed = 0
    for name in wanted or PROBES:
        print(json.dumps({"begins": name}), flush=True)
        began, why = time.monotonic(), ""
        try:
            PROBES[name]()
        except Exception as error:  # whatever it is, it is what this version breaks
            said = str(error).strip().splitlines() or [""]
            why = f"{type(error).__name__}: {said[0]}"[:300]
        failed += bool(why)
        print(json.dumps({"module": name, "ok": not why, "why": why, "seconds": round(time.monotonic() - began, 2)}), flush=True)
    return 1 if failed else 0


if __name__ == "__main__":
    with tempfile.TemporaryDirectory() as cache:
        import os

        os.environ.setdefault("TRITON_CACHE_DIR", cache)
        sys.exit(main(sys.argv[1:]))
