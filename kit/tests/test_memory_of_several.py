"""One load whose lanes lie in several tensors: each lane gets its own, and a lane that is masked gets zero from none of them."""

import torch

from kit.simulator.memory import Access, Memory


def test_lanes_in_two_tensors_and_masked_lanes():
    a, b = torch.arange(10, 14, dtype=torch.int32), torch.arange(20, 24, dtype=torch.int32)
    memory = Memory({"a_ptr": a, "b_ptr": b})
    address = torch.tensor([[a.data_ptr() + 4, b.data_ptr() + 8, a.data_ptr() + 12, b.data_ptr()]])
    access = Access("load", None, torch.zeros(1, 3, dtype=torch.int64), None)
    assert memory.load(address, None, 4, access).tolist() == [[11, 22, 13, 20]]
    masked = memory.load(address, torch.tensor([[True, False, False, True]]), 4, access)
    assert masked.tolist() == [[11, 0, 0, 20]]
