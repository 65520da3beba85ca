"""`start`: which machine it finds, and what it says of one that cannot be used."""

import pytest
import torch

import kit
from kit import machine
from kit.errors import BadInput, KitError, WrongType


@pytest.fixture(autouse=True)
def no_wishes(monkeypatch):
    monkeypatch.delenv("KIT_REQUIRE", raising=False)
    monkeypatch.delenv("KIT_SIMULATE", raising=False)


@pytest.fixture
def no_gpu(monkeypatch):
    monkeypatch.setattr(torch.cuda, "is_available", lambda: False)
    monkeypatch.setattr(machine, "_proc_gpus", lambda: [])


def test_simulated_by_default(no_gpu):
    gpu = kit.start()
    assert (gpu.device, gpu.live, gpu.evidence, gpu.name) == ("cpu", False, "simulated", "H200")
    assert gpu.limits.grid == (2**31 - 1, 65_535, 65_535)
    assert "simulated" in repr(gpu) and "Triton" in repr(gpu) and "\n" not in repr(gpu)


def test_another_target(no_gpu):
    assert kit.start(target="cuda:80").name == "A100"
    assert kit.start().target == "cuda:90"


@pytest.mark.parametrize("target", ["cuda:10", 90, None])
def test_unknown_target(target):
    with pytest.raises(BadInput, match="start: target must be one of cuda:75"):
        kit.start(target=target)


def test_required_and_not_there(no_gpu, monkeypatch):
    with pytest.raises(KitError, match="no NVIDIA GPU"):
        kit.start(require="gpu")
    monkeypatch.setenv("KIT_REQUIRE", "gpu")
    with pytest.raises(KitError, match="KIT_REQUIRE=gpu"):
        kit.start()
    with pytest.raises(BadInput, match='require must be "gpu"'):
        kit.start(require="tpu")


def test_gpu_that_torch_cannot_use_is_named(monkeypatch):
    """The kernel driver knows a GPU, and this build of torch does not: never a silent simulation."""
    monkeypatch.setattr(torch.cuda, "is_available", lambda: False)
    monkeypatch.setattr(machine, "_proc_gpus", lambda: ["Model: \t\t NVIDIA GeForce GTX 1080\nIRQ: 1\n"])
    monkeypatch.delenv("CUDA_VISIBLE_DEVICES", raising=False)
    with pytest.raises(KitError, match="NVIDIA GeForce GTX 1080 is in this machine and cannot be used"):
        kit.start()
    monkeypatch.setenv("KIT_SIMULATE", "1")
    assert not kit.start().live
    monkeypatch.delenv("KIT_SIMULATE")
    monkeypatch.setenv("CUDA_VISIBLE_DEVICES", "")
    assert not kit.start().live


@pytest.fixture
def pretended(monkeypatch):
    """A GPU as torch would tell of it; the tests change one thing each."""
    monkeypatch.setattr(torch.version, "cuda", "13.0")
    monkeypatch.setattr(torch.cuda, "is_available", lambda: True)
    monkeypatch.setattr(torch.cuda, "get_device_name", lambda: "NVIDIA Pretend")
    monkeypatch.setattr(torch.cuda, "init", lambda: None)
    monkeypatch.setattr(torch.cuda, "get_device_capability", lambda: (9, 0))
    monkeypatch.setattr(torch.cuda, "mem_get_info", lambda: (8 * 10**9, 8 * 10**9))
    monkeypatch.setattr(torch, "zeros", lambda *args, **kwargs: None)
    return monkeypatch


def test_gpu_with_an_old_driver(pretended):
    def init():
        raise RuntimeError("The NVIDIA driver on your system is too old (found version 11040).\nmore")

    pretended.setattr(torch.cuda, "init", init)
    with pytest.raises(KitError, match=r"NVIDIA Pretend .* cannot be used: The NVIDIA driver on your system is too old"):
        kit.start()


def test_gpu_of_an_unsupported_architecture(pretended):
    pretended.setattr(torch.cuda, "get_device_capability", lambda: (6, 1))
    with pytest.raises(KitError, match="compute capability is 6.1"):
        kit.start()


def test_gpu_without_free_memory(pretended):
    pretended.setattr(torch.cuda, "mem_get_info", lambda: (100 * 2**20, 8 * 10**9))
    with pytest.raises(KitError, match="100 MiB of its memory are free"):
        kit.start()


def test_reserve_takes_no_memory_until_written(no_gpu):
    gpu = kit.start()
    big = gpu.reserve((40_000, 65_536), torch.int8)
    assert big.shape == (40_000, 65_536) and big.dtype == torch.int8
    big[39_999, :4] = 7
    assert big[39_999, :5].tolist() == [7, 7, 7, 7, 0] and big[0, 0] == 0


@pytest.mark.parametrize(
    "shape, dtype, error, words",
    [
        ((2**40,), torch.int8, BadInput, "needs 1099.5 GB"),
        ((-1,), torch.int8, BadInput, "whole numbers, zero or more"),
        ((4,), "int8", WrongType, "torch dtype"),
    ],
)
def test_reserve_bad_input(no_gpu, shape, dtype, error, words):
    with pytest.raises(error, match=words):
        kit.start().reserve(shape, dtype)
