"""A Build remembers the tensors that it was made with by dtype and alignment: its variants are those that such a launch needs."""

import pytest
import torch
import triton
import triton.language as tl

import kit
from kit import machine
from kit.specialization import launch_variant


@triton.jit
def fill_kernel(x_ptr, n, BLOCK: tl.constexpr):
    offs = tl.arange(0, BLOCK)
    tl.store(x_ptr + offs, 1.0, mask=offs < n)


@pytest.mark.parametrize("start", [0, 1, 2, 3, 4], ids=lambda n: f"{4 * n} bytes in")
def test_a_view_s_alignment_is_that_of_16_bytes(start):
    x = torch.zeros(64, device=machine.start().device)[start:]
    (variant,) = kit.build(fill_kernel, x, 17, BLOCK=16).variants([{"n": 18}])
    needed = launch_variant(fill_kernel, (x, 18), {"BLOCK": 16}, verb="test")
    assert variant.key == needed.key
    assert ("÷16" in variant.classes["x_ptr"]) == (start % 4 == 0)
