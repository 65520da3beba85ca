"""What a first launch costs: fresh processes, disk caches, times that only a GPU has."""

import dataclasses
import time

import pytest
import torch
import triton
import triton.language as tl

from kit import machine, watch
from kit.cold_start import disk_cache, milliseconds, phases
from kit.errors import BadInput, KitError, WrongType

NUMBER = 41


@triton.jit
def one_kernel(x_ptr):
    tl.store(x_ptr, 1)


def steps():
    assert torch.ones(2).sum() == 2
    yield "sum"
    time.sleep(0.2)
    yield f"sleep {NUMBER + 1}"


def failing():
    yield "first"
    raise ValueError("no more")


@pytest.fixture
def live(monkeypatch):
    """A machine that says it is live: nothing here uses its GPU."""
    monkeypatch.setattr(machine, "_current", dataclasses.replace(machine.start(), live=True))


def test_phases_are_timed_in_a_process_of_its_own(live, tmp_path):
    found = phases(steps, tmp_path)
    assert list(found) == ["start, import", "sum", "sleep 42"]
    assert 200 <= found["sleep 42"] < 2000 and found["sum"] < 2000 and found["start, import"] > 10


def test_a_process_that_fails_says_so(live, tmp_path):
    with pytest.raises(KitError, match="process of failing failed: ValueError: no more"):
        phases(failing, tmp_path)


@pytest.mark.skipif(torch.cuda.is_available(), reason="a GPU is here")
@pytest.mark.parametrize("call", [lambda: phases(steps, "."), lambda: milliseconds(lambda: None)])
def test_a_simulation_has_no_times(call):
    machine.start()
    with pytest.raises(KitError, match="a simulation has no times"):
        call()


def compiled_in(folder=None, **how):
    with disk_cache(folder, **how), watch() as log:
        triton.jit(one_kernel.fn)[(1,)](torch.zeros(1, dtype=torch.int32, device=machine.current().device))
    return log.variants[0].disk


def test_the_disk_cache_is_the_folder_given(tmp_path):
    machine.start()
    before = triton.knobs.cache.dir
    assert compiled_in(tmp_path) is False
    assert any(tmp_path.iterdir())
    assert compiled_in(tmp_path) is True
    assert compiled_in(tmp_path, off=True) is False
    assert compiled_in() is False  # another empty one
    assert triton.knobs.cache.dir == before and not triton.knobs.compilation.always_compile


def test_an_empty_folder_is_gone_afterwards():
    with disk_cache() as folder:
        assert folder.is_dir() and not any(folder.iterdir())
    assert not folder.exists()


def test_bad_arguments(tmp_path):
    with pytest.raises(BadInput, match="is no folder"), disk_cache(tmp_path / "none"):
        pass
    with pytest.raises(WrongType, match="off must be True or False"), disk_cache(off="yes"):
        pass
