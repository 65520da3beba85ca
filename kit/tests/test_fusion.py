"""The products that the simulator fuses are those that the compiler fused: counted in the PTX, one element a thread."""

import re

import pytest
import torch
import triton
import triton.language as tl

from kit import machine
from kit.simulator import fusion
from kit.simulator.arithmetic import fused
from kit.simulator.launch import read_program
from kit.tests.zoo_elementwise import add_kernel, multiply_add_kernel
from kit.tests.zoo_fused import fused_kernel
from kit.tests.zoo_memory import rope_kernel

machine.current()
ROW, HEADS, ANGLES = torch.zeros(300), torch.zeros(9, 4, 64), torch.zeros(9, 32)
LAUNCHES = {
    "fused": (fused_kernel, (ROW, ROW, ROW, ROW, 257, 3), {"BLOCK": 128}),
    "fused, fp16": (fused_kernel, (*[ROW.half()] * 4, 257, 3), {"BLOCK": 128}),
    "fused, bf16": (fused_kernel, (*[ROW.bfloat16()] * 4, 257, 3), {"BLOCK": 128}),
    "multiply add": (multiply_add_kernel, (ROW, ROW, ROW, 257), {"BLOCK": 128}),
    "add": (add_kernel, (ROW, ROW, ROW, 257), {"BLOCK": 128}),
    "rope": (rope_kernel, (HEADS, ANGLES, ANGLES, 3, 256, 64), {"HALF": 32, "BLOCK_H": 4}),
}


@pytest.mark.parametrize("name", LAUNCHES)
def test_as_many_as_in_the_ptx(name):
    kernel, args, constants = LAUNCHES[name]
    compiled = kernel.warmup(*args, **constants, num_warps=4, grid=(1,))
    modelled = fusion.fusions(read_program(compiled.asm["ttir"]))
    assert len(modelled) == len(re.findall(r"\bfma\.rn\.", compiled.asm["ptx"]))


def test_not_when_the_launch_switches_it_off():
    compiled = multiply_add_kernel.warmup(ROW, ROW, ROW, 257, BLOCK=128, enable_fp_fusion=False, grid=(1,))
    assert "fma.rn" not in compiled.asm["ptx"]
    program = read_program(compiled.asm["ttir"])
    program.fuses = False
    assert fusion.fusions(program) == {}


@triton.jit
def multiply_add_in_place_kernel(x_ptr, y_ptr, z_ptr, n, BLOCK: tl.constexpr):
    offs = tl.arange(0, BLOCK)
    mask = offs < n
    x, y, z = (tl.load(x_ptr + offs, mask=mask), tl.load(y_ptr + offs, mask=mask), tl.load(z_ptr + offs, mask=mask))
    tl.store(x_ptr + offs, x * y - z, mask=mask)


@pytest.mark.parametrize("fuses", [True, False])
def test_a_kernel_that_runs_warp_by_warp_fuses_as_its_launch_says(fuses):
    step = torch.finfo(torch.float32).eps
    x = torch.full((100,), 1 + step)
    multiply_add_in_place_kernel[(1,)](x, x.clone(), torch.full((100,), 1 + 2 * step), 100, BLOCK=128, enable_fp_fusion=fuses)
    assert x.unique().tolist() == [step**2 if fuses else 0]


@pytest.mark.parametrize("dtype", [torch.float16, torch.bfloat16, torch.float32, torch.float64])
def test_one_rounding(dtype):
    step = torch.finfo(dtype).eps
    a = torch.tensor([1 + step], dtype=dtype)
    # (1+e)(1+e) - (1+2e) is e², which a product rounded on its own loses.
    assert fused(a, a, -torch.tensor([1 + 2 * step], dtype=dtype)).item() == step**2
    assert (a * a - torch.tensor([1 + 2 * step], dtype=dtype)).item() == 0


def test_fp64_infinities():
    a = torch.tensor([float("inf"), 1e308, float("nan")], dtype=torch.float64)
    got = fused(a, torch.full_like(a, 10.0), torch.ones_like(a))
    assert got[:2].tolist() == [float("inf")] * 2 and got[2].isnan()
