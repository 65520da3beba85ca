"""Other GPUs than the one that is simulated by default: kernels compile for them, by Triton's own backend, and run.

A target that kit.machine does not list is put in place as Triton's driver directly, and the driver before it is put back.
"""

import contextlib

import pytest
import torch
import triton
import triton.language as tl
from triton.backends.compiler import GPUTarget
from triton.language.extra import libdevice
from triton.runtime import driver as triton_driver

from kit import machine
from kit.simulator.driver import SimulatedDriver
from kit.simulator.program import Unsupported
from kit.tests.zoo_case import difference
from kit.tests.zoo_control import CASES as CONTROL
from kit.tests.zoo_elementwise import add_case, add_kernel
from kit.tests.zoo_memory import paged_read_case
from kit.tests.zoo_products import attention_case, matmul_case
from kit.tests.zoo_rows import layer_norm_case, rms_norm_case, scan_case, softmax_case

TARGETS = {
    "cuda:80": GPUTarget("cuda", 80, 32),
    "cuda:90": GPUTarget("cuda", 90, 32),
    "cuda:100": GPUTarget("cuda", 100, 32),
    "hip:gfx942": GPUTarget("hip", "gfx942", 64),  # MI300X; a warp has 64 threads
}
CASES = [
    add_case(torch.float16, 1000),
    softmax_case(torch.float32, 129),
    rms_norm_case(torch.bfloat16, 1000),
    layer_norm_case(torch.float16, 127),
    scan_case(127),
    paged_read_case(torch.float16),
    matmul_case(torch.float16, (33, 65, 31), torch.float32),
    matmul_case(torch.float32, (33, 65, 31), torch.float32, "tf32"),
    attention_case(torch.float16, 70, True),
    *CONTROL[:3],
]


@pytest.fixture(scope="module", autouse=True)
def started():
    return machine.start()


@contextlib.contextmanager
def simulated(target):
    """Launches go to a simulated `target`. Variants compiled for it are looked for under its own device number."""
    before = triton_driver.active
    new = SimulatedDriver(90, machine.current().limits)
    new.target = target
    new.get_current_device = lambda: 1000 + list(TARGETS.values()).index(target)
    triton_driver.set_active(new)
    try:
        yield
    finally:
        triton_driver.set_active(before)


@pytest.mark.parametrize("name", TARGETS)
@pytest.mark.parametrize("case", CASES, ids=lambda case: case.name)
def test_kernels_compile_and_run(name, case):
    inputs = case.inputs()
    with simulated(TARGETS[name]):
        got = case.run(**inputs)
    for output, expected in case.reference(**inputs).items():
        assert difference(got[output], expected).relative <= case.allowed(expected.dtype), output


@pytest.mark.parametrize(
    "name, kind, sign",
    [
        ("cuda:80", "ptx", ".target sm_80"),
        ("cuda:90", "ptx", ".target sm_90"),
        ("cuda:100", "ptx", ".target sm_100"),
        ("hip:gfx942", "amdgcn", "gfx942"),
    ],
)
def test_the_code_is_the_targets_own(name, kind, sign):
    """That the kernel ran for this target and not for the one that was there before."""
    x, out = torch.ones(64), torch.zeros(64)
    with simulated(TARGETS[name]):
        compiled = add_kernel[(1,)](x, x, out, 64, BLOCK=64)
    assert compiled.metadata.target == TARGETS[name]
    assert sign in compiled.asm[kind]
    assert out.eq(2).all()


def test_the_driver_is_put_back():
    before = triton_driver.active
    with pytest.raises(ZeroDivisionError), simulated(TARGETS["hip:gfx942"]):
        assert triton_driver.active.get_current_target().backend == "hip"
        raise ZeroDivisionError
    assert triton_driver.active is before


@triton.jit
def tanh_kernel(x_ptr, BLOCK: tl.constexpr):
    offs = tl.arange(0, BLOCK)
    tl.store(x_ptr + offs, libdevice.tanh(tl.load(x_ptr + offs)))


def test_a_function_of_amds_library_is_refused_by_name():
    x = torch.ones(64)
    with simulated(TARGETS["hip:gfx942"]), pytest.raises(Unsupported, match=r"tt\.extern_elementwise \(__ocml_tanh_f32\).* line \d+"):
        tanh_kernel[(1,)](x, BLOCK=64)
    assert x.eq(1).all()
    with simulated(TARGETS["cuda:100"]):
        tanh_kernel[(1,)](x, BLOCK=64)
    assert torch.allclose(x, torch.ones(64).tanh())
