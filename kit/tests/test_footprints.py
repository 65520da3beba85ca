"""Footprints: the order in which lanes are compared, where two numbers fit into one and where they do not."""

import pytest
import torch

from kit.simulator.footprints import _by_two


@pytest.mark.parametrize("major_most, minor_least, minor_most", [(5, 0, 9), (5, -7, 3), (2**31, -(2**40), 2**40), (2**40, 0, 2**40)])
def test_lanes_are_sorted_by_program_then_by_element_and_stay_in_order(major_most, minor_least, minor_most):
    ends = torch.tensor([0, major_most, major_most, 0]), torch.tensor([minor_most, minor_least, minor_most, minor_least])
    several = torch.randint(0, 4, (200,), generator=torch.Generator().manual_seed(0))
    major, minor = (values[several] for values in ends)
    pairs = list(zip(major.tolist(), minor.tolist(), strict=True))
    assert _by_two(major, minor).tolist() == sorted(range(200), key=lambda lane: (*pairs[lane], lane))
