"""The machine's values against torch, kernel by kernel: on a machine without a GPU, the simulator's."""

import pytest

from kit import machine
from kit.tests.zoo import CASES
from kit.tests.zoo_case import difference

gpu = machine.current()


@pytest.mark.parametrize("case", CASES, ids=lambda case: case.name)
def test_values_agree_with_the_reference(case):
    inputs = case.inputs()
    got = case.run(**{name: tensor.to(gpu.device) for name, tensor in inputs.items()})
    expected = case.reference(**inputs)
    assert got.keys() == expected.keys()
    for name in expected:
        apart = difference(got[name], expected[name])
        allowed = case.allowed(expected[name].dtype)
        assert apart.relative <= allowed, f"{case.name}, {name}: {apart} is more than {allowed}"


def test_names_are_unique():
    assert len({case.name for case in CASES}) == len(CASES)
