"""The zoo: kernels of every kind that a lesson may use, each with inputs, a reference, and a tolerance. `CASES` holds them all."""

from __future__ import annotations

from kit.tests import zoo_casts, zoo_control, zoo_elementwise, zoo_fused, zoo_memory, zoo_numerics, zoo_products, zoo_rows, zoo_tutorials

CASES = [
    case
    for part in (zoo_elementwise, zoo_fused, zoo_casts, zoo_rows, zoo_numerics, zoo_products, zoo_control, zoo_memory, zoo_tutorials)
    for case in part.CASES
]
