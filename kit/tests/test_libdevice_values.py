"""libdevice's roundings and their like, at the places where they differ, against Python's own."""

import math

import pytest
import torch

from kit.simulator.libdevice import find

AT = [-2.5, -1.5, -0.5, -0.3, 0.0, 0.3, 0.5, 1.5, 2.5, 7.0]


@pytest.mark.parametrize(
    "name, right",
    [
        ("ceil", math.ceil),
        ("floor", math.floor),
        ("trunc", math.trunc),
        ("rint", round),  # Python's round, too, takes a half to the even neighbour
        ("round", lambda a: math.copysign(math.floor(abs(a) + 0.5), a)),
        ("fabs", abs),
        ("cos", math.cos),
        ("sin", math.sin),
        ("exp2", lambda a: 2.0**a),
        ("atan", math.atan),
        ("cosh", math.cosh),
    ],
)
@pytest.mark.parametrize("twin, dtype", [("f", torch.float32), ("", torch.float64)])
def test_a_function_of_one_number(name, right, twin, dtype):
    function = find(f"__nv_{name}{twin}") or find(f"__nv_{name.removeprefix('f')}{twin}")
    got = function(torch.tensor(AT, dtype=dtype))
    assert got.dtype == dtype
    assert got.double().tolist() == pytest.approx([float(right(a)) for a in AT], rel=1e-6, abs=1e-7)
