"""@triton.autotune on the simulated GPU: the first configuration that fits, and one sentence why there are no times."""

import warnings

import pytest
import torch
import triton
import triton.language as tl

from kit import machine
from kit.simulator import tuning

gpu = machine.current()


@pytest.fixture(autouse=True)
def untold(monkeypatch):
    monkeypatch.setattr(tuning, "_told", False)


def test_the_launch_is_for_compiling_only_and_every_time_is_the_same():
    seen = []
    with pytest.warns(UserWarning, match="There are no times"):
        assert tuning.benchmarker(lambda: seen.append(tuning.only_compiles()), quantiles=(0.5, 0.2, 0.8)) == [1.0, 1.0, 1.0]
    assert seen == [True] and not tuning.only_compiles()
    with warnings.catch_warnings():  # told once
        warnings.simplefilter("error")
        tuning.benchmarker(lambda: None, quantiles=(0.5,))


def test_a_refusal_goes_on_to_the_autotuner():
    def refuse():
        raise ValueError("does not fit")

    with pytest.raises(ValueError), warnings.catch_warnings():
        warnings.simplefilter("ignore")
        tuning.benchmarker(refuse)
    assert not tuning.only_compiles()


def double_kernel(x_ptr, out_ptr, n, BLOCK: tl.constexpr):
    """out += 2 x, so a configuration that ran while it was tried would show."""
    offs = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    mask = offs < n
    tl.atomic_add(out_ptr + offs, 2 * tl.load(x_ptr + offs, mask=mask), mask=mask)


@pytest.mark.skipif(gpu.live, reason="on a GPU Triton times")
def test_the_first_that_fits_runs_once():
    too_large = triton.Config({"BLOCK": 2**16}, num_warps=64)  # 2048 threads: no GPU launches it
    tuned = triton.autotune([too_large, triton.Config({"BLOCK": 64}), triton.Config({"BLOCK": 128})], key=["n"])(triton.jit(double_kernel))
    x = torch.arange(100, dtype=torch.float32)
    out = torch.zeros(100)
    with pytest.warns(UserWarning, match="first that fits"):
        tuned[lambda meta: (triton.cdiv(100, meta["BLOCK"]),)](x, out, 100)
    assert torch.equal(out, 2 * x)  # added once
    assert tuned.best_config.kwargs == {"BLOCK": 64}
