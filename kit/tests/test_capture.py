"""A launcher is examined as it is: its launch is caught, with what autotuners and heuristics around the kernel add."""

from __future__ import annotations

import subprocess
import sys

import pytest
import torch
import triton
import triton.language as tl

from kit import machine
from kit.errors import BadInput
from kit.rules.capture import captured
from kit.rules.on_paper import OnPaper
from kit.rules.subject import Subject

gpu = machine.start()


@triton.jit
def fill_kernel(x_ptr, value, n, BLOCK: tl.constexpr):
    offs = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    tl.store(x_ptr + offs, value, mask=offs < n)


@triton.jit
def add_kernel(x_ptr, y_ptr, out_ptr, n, EVEN: tl.constexpr, BLOCK: tl.constexpr):
    offs = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    mask = offs < n
    tl.store(out_ptr + offs, tl.load(x_ptr + offs, mask=mask) + tl.load(y_ptr + offs, mask=mask), mask=mask)


tuned_add_kernel = triton.autotune([triton.Config({"BLOCK": 64}, num_warps=2), triton.Config({"BLOCK": 128})], key=["n"])(
    triton.heuristics({"EVEN": lambda args: args["n"] % 2 == 0})(add_kernel)
)


def add_filled(n):
    """Launches two kernels: what the second reads, the first writes."""
    x, y = torch.empty(n, device=gpu.device), torch.ones(n, device=gpu.device)
    fill_kernel[(triton.cdiv(n, 128),)](x, 3.0, n, BLOCK=128)
    out = torch.empty_like(x)
    tuned_add_kernel[lambda meta: (triton.cdiv(n, meta["BLOCK"]),)](x, y, out, n=n)
    return out


def test_the_launch_on_paper_is_that_of_the_first_configuration_and_takes_no_memory():
    subject = Subject(add_kernel, add_filled, None, sizes=[{"n": 1000}, {"n": 2**36}])
    launch = subject.ghosts({"n": 2**36})
    assert launch.grid == (2**30,)
    assert launch.meta["BLOCK"] == 64 and launch.meta["num_warps"] == 2 and launch.meta["EVEN"] is True
    assert launch.named["n"] == 2**36
    assert {"GB if it were real" in repr(value) for value in launch.tensors.values()} == {True}


def test_with_real_tensors_the_other_kernels_run_and_this_one_does_not():
    subject = Subject(add_kernel, add_filled, None, sizes=[{"n": 1000}])
    launch = subject.launch({"n": 1000})
    assert torch.equal(launch.named["x_ptr"].cpu(), torch.full((1000,), 3.0))
    add_kernel[launch.grid](*launch.args, **launch.meta)
    assert torch.equal(launch.named["out_ptr"].cpu(), torch.full((1000,), 4.0))


def test_launches_are_as_before_when_it_is_over():
    captured(add_kernel, lambda: add_filled(100), others=True)
    out = torch.empty(100, device=gpu.device)
    fill_kernel[(1,)](out, 2.0, 100, BLOCK=128)
    assert float(out.sum()) == 200


def test_a_launcher_that_raises_leaves_nothing_behind():
    def broken():
        raise RuntimeError("no")

    with pytest.raises(RuntimeError, match="no"):
        captured(add_kernel, broken, others=True)
    out = torch.empty(100, device=gpu.device)
    fill_kernel[(1,)](out, 2.0, 100, BLOCK=128)
    assert float(out.sum()) == 200


def test_a_launcher_that_launches_another_kernel_is_told():
    with pytest.raises(BadInput, match="launched no fill_kernel"):
        Subject(fill_kernel, lambda n: None, None, sizes=[{"n": 10}])


def add_packed(n):
    """A launcher that copies a view of x, and passes y on as it is."""
    x, y = torch.ones(n, device=gpu.device), torch.ones(n, device=gpu.device)
    x = x.contiguous().view(1, -1)
    out = torch.empty_like(x)
    tuned_add_kernel[lambda meta: (triton.cdiv(n, meta["BLOCK"]),)](x, y, out, n=n)


def test_what_the_launcher_makes_contiguous_is_no_view():
    assert Subject(add_kernel, add_packed, None, sizes=[{"n": 1000}]).dense == ("x_ptr",)
    assert Subject(add_kernel, add_filled, None, sizes=[{"n": 1000}]).dense == ()


# ---- Arguments without memory


def test_on_paper_floating_tensors_have_no_memory_and_small_integers_are_real():
    with OnPaper():
        x = 3 + torch.randn(2**20, 2**12, device=gpu.device).half().cos() * 2
        table = torch.arange(1000, device=gpu.device)
        large = torch.zeros(2**40, dtype=torch.int8, device=gpu.device)
        ones, sevens = torch.full((5,), 1.0), torch.full((5,), 7)
    assert x.is_meta and x.dtype == torch.float16 and x.shape == (2**20, 2**12)
    assert not table.is_meta and table[-1] == 999
    assert large.is_meta and ones.is_meta and not sevens.is_meta
    assert not torch.empty(3).is_meta


@pytest.mark.parametrize(
    "make",
    [
        lambda x: x[1:].t(),
        lambda x: x.t() * 2,
        lambda x: x + x[:, :1],
        lambda x: x * torch.ones(8, 4, device=x.device),
        lambda x: x.double() + x,
        lambda x: x.to(torch.bfloat16).to(x.device),
        lambda x: torch.cat([x, x]),
        lambda x: 1 / (x.clamp(min=0) + 1),
        lambda x: 10_000.0 ** (torch.arange(0, 64, 2, device=x.device) / 64),
        lambda x: torch.arange(3, 64, 7, dtype=torch.float32, device=x.device),
        lambda x: torch.arange(end=2.5, device=x.device),
        lambda x: torch.arange(start=1, end=9, step=3, dtype=torch.bfloat16, device=x.device),
        lambda x: torch.randn((3, 5), dtype=torch.float16, device=x.device),
        lambda x: torch.rand(size=(3, 5), device=x.device, pin_memory=False),
        lambda x: torch.randn_like(x.t()),
        lambda x: torch.zeros_like(x),
    ],
)
def test_a_tensor_on_paper_has_the_layout_of_a_real_one(make):
    real = make(torch.ones(8, 4, device=gpu.device))
    with OnPaper():
        paper = make(torch.ones(8, 4, device=gpu.device))
    assert paper.is_meta
    told = [(one.shape, one.stride(), one.storage_offset(), one.dtype) for one in (real, paper)]
    assert told[0] == told[1]


@pytest.mark.parametrize("arguments", [(5, (3, 4)), (2, 5, (3, 4)), (0, 2**20, (2**16, 2**13))])
def test_integers_on_paper_are_real_until_they_are_large(arguments):
    with OnPaper():
        made = torch.randint(*arguments, device=gpu.device)
    assert made.shape == arguments[-1] and made.dtype == torch.int64 and made.is_meta == (made.nbytes > 2**28)


def test_the_usual_makers_of_arguments_do_not_bring_in_sympy():
    """It takes a second, which each rule's process would pay."""
    code = """
import sys, torch
from kit.rules.on_paper import OnPaper
assert "sympy" not in sys.modules
with OnPaper():
    x = torch.randn(4, 8) + torch.rand((4, 8)) + torch.zeros_like(torch.empty(4, 8))
    angle = 1.0 / 10_000 ** (torch.arange(0, 8, 2).float() / 8)
    angle.cos(), torch.randint(0, 5, (3,)), torch.randn_like(x)
assert "sympy" not in sys.modules
"""
    subprocess.run([sys.executable, "-c", code], check=True)


def test_the_caught_launch_does_not_run_and_its_launcher_goes_no_further():
    x = torch.zeros(100, device=gpu.device)

    def launch():
        fill_kernel[(1,)](x, 2.0, 100, BLOCK=128)
        raise AssertionError("the launcher went on")

    assert captured(fill_kernel, launch, others=True).args[1] == 2.0
    assert float(x.sum()) == 0
