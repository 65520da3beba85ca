"""Faulty kernels, each with its right twin, after the public reports: one module a rule. `FAULTS` holds them all."""

from __future__ import annotations

from kit.tests.faults import (
    r01_semantics,
    r04_specialization,
    r05_between_programs,
    r05_in_a_program,
    r06_grid_limits,
    r07_int64_offsets,
    r08_decode_and_prefill,
    r09_boundaries,
    r09_views,
    r10_numerics,
)
from kit.tests.faults.fault_case import Fault

__all__ = ["FAULTS", "Fault"]

MODULES = (
    r01_semantics,
    r04_specialization,
    r05_in_a_program,
    r05_between_programs,
    r06_grid_limits,
    r07_int64_offsets,
    r08_decode_and_prefill,
    r09_boundaries,
    r09_views,
    r10_numerics,
)
FAULTS = [fault for module in MODULES for fault in module.FAULTS]
