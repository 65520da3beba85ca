"""Programs that wait for another one: found, run one at a time, and refused when the wait cannot end."""

import pytest
import torch
import triton
import triton.language as tl

from kit import machine
from kit.simulator.atomics import waits
from kit.simulator.launch import read_program
from kit.simulator.program import Unsupported
from kit.tests.zoo_control import for_kernel
from kit.tests.zoo_memory import histogram_kernel, old_values_kernel
from kit.tests.zoo_tutorials import layer_norm_backward_kernel

gpu = machine.current()
pytestmark = pytest.mark.skipif(gpu.live, reason="a GPU hangs where the simulator refuses")
WORDS, ROW = torch.zeros(64, dtype=torch.int32), torch.zeros(64)


@triton.jit
def wait_kernel(flag_ptr, out_ptr):
    """Waits until flag is 1, by an atomic that changes nothing; then out = 1."""
    while tl.atomic_cas(flag_ptr, 1, 1) == 0:
        pass
    tl.store(out_ptr, 1)


@triton.jit
def watch_kernel(flag_ptr, out_ptr):
    """As wait_kernel, by volatile loads."""
    while tl.load(flag_ptr, volatile=True) == 0:
        pass
    tl.store(out_ptr, 1)


LAUNCHES = {
    "a lock": (layer_norm_backward_kernel, (*[ROW] * 8, WORDS, 64), {"GROUP": 4, "BLOCK": 64}, True),
    "an atomic": (wait_kernel, (WORDS, WORDS), {}, True),
    "a volatile load": (watch_kernel, (WORDS, WORDS), {}, True),
    "atomics without a loop": (old_values_kernel, (WORDS,) * 5, {"TICKETS": 5}, False),
    "a histogram": (histogram_kernel, (WORDS, WORDS, WORDS, 64), {"BINS": 16, "BLOCK": 128}, False),
    "a loop of plain loads": (for_kernel, (ROW, WORDS, ROW, ROW, WORDS, 64), {}, False),
}


@pytest.mark.parametrize("name", LAUNCHES)
def test_found(name):
    kernel, args, constants, expected = LAUNCHES[name]
    compiled = kernel.warmup(*args, **constants, grid=(1,))
    assert waits(read_program(compiled.asm["ttir"])) is expected


@pytest.mark.parametrize("kernel", [wait_kernel, watch_kernel])
def test_a_wait_for_nobody_is_refused(kernel):
    flag, out = torch.zeros(1, dtype=torch.int32), torch.zeros(1, dtype=torch.int32)
    with pytest.raises(Unsupported, match=r"program \(0, 0, 0\) waits at line \d+: while tl\."):
        kernel[(1,)](flag, out)
    assert out.item() == 0
    flag[0] = 1
    kernel[(1,)](flag, out)
    assert out.item() == 1


@triton.jit
def count_kernel(lock_ptr, total_ptr):
    """Adds 1 to total under a lock."""
    while tl.atomic_cas(lock_ptr, 0, 1) == 1:
        pass
    total = tl.load(total_ptr)
    tl.debug_barrier()
    tl.store(total_ptr, total + 1)
    tl.debug_barrier()
    tl.atomic_xchg(lock_ptr, 0)


def test_a_lock():
    lock, total = torch.zeros(1, dtype=torch.int32), torch.zeros(1, dtype=torch.int32)
    count_kernel[(50,)](lock, total)
    assert total.item() == 50 and lock.item() == 0
