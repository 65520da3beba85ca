"""The simulated GPU: arithmetic, limits, memory, races."""

from mutations import Mutation, nbval, pytest


def _in(name, file, old, new, plants, *check):
    return Mutation(f"simulator {name}", f"kit/{file}", old, new, plants, pytest(*check) if check[0].endswith(".py") else nbval(*check))


MUTATIONS = [
    _in(
        "division",
        "simulator/arithmetic.py",
        'torch.ones_like(b), b), rounding_mode="trunc")\n    return torch.where(zero, _by_zero(a), quotient)',
        'torch.ones_like(b), b), rounding_mode="floor")\n    return torch.where(zero, _by_zero(a), quotient)',
        "signed division rounds down",
        "test_simulator_values.py",
    ),
    _in(
        "remainder",
        "simulator/arithmetic.py",
        "remainder = torch.fmod(a,",
        "remainder = torch.remainder(a,",
        "% has the divisor's sign",
        "test_simulator_values.py",
    ),
    _in(
        "largest",
        "simulator/arithmetic.py",
        "16: 2**15 - 1, 32:",
        "16: 2**15 - 2, 32:",
        "int16 saturates one too early",
        "test_simulator_values.py",
    ),
    _in(
        "axis y",
        "machine.py",
        "GRID_LIMITS = (2**31 - 1, 65_535, 65_535)",
        "GRID_LIMITS = (2**31 - 1, 65_536, 65_535)",
        "65,536 programs on axis y",
        "test_machine.py",
    ),
    _in(
        "limit",
        "simulator/driver.py",
        "n < 0 or n > limit for n",
        "n < 0 or n > limit + 1 for n",
        "a grid one over the limit runs",
        "06_grid_limits",
    ),
    _in(
        "product",
        "simulator/driver.py",
        "return (product + 2**31) % 2**32 - 2**31",
        "return product",
        "the number of programs does not wrap",
        "06_grid_limits",
    ),
    _in(
        "masked load",
        "simulator/memory.py",
        "found = found * here  #",
        "found = found + 0  #",
        "masked lanes are read from address 0",
        "test_memory_of_several.py",
    ),
    _in(
        "races",
        "simulator/launch.py",
        "if loaded is not None and races.needed(",
        "if loaded is None and races.needed(",
        "warps always run in step",
        "test_races.py",
    ),
    _in(
        "overlap",
        "simulator/races.py",
        "return any(a < b + m and b < a + n for",
        "return any(a < b and b < a + n for",
        "two views of one memory do not overlap",
        "test_races.py",
    ),
    _in(
        "overflow",
        "simulator/hazards.py",
        "if width == 1 or (width == 64 and",
        "if width in (1, 32) or (width == 64 and",
        "int32 never overflows",
        "test_dry_run_hazards.py",
    ),
    _in(
        "libdevice", "simulator/libdevice.py", '"ceil": torch.ceil,', '"ceil": torch.floor,', "ceil rounds down", "test_libdevice_values.py"
    ),
    _in(
        "order",
        "simulator/schedule.py",
        "if (step.barrier and step.merge is None) or step.perhaps:",
        "if step.perhaps:",
        "warps do not wait at a barrier",
        "test_races.py",
    ),
    _in(
        "programs",
        "dry_run.py",
        "inside = whole and (ids[0] < x * y * z if",
        "inside = whole and (ids[0] <= x * y * z if",
        "a program past the grid is run",
        "test_dry_run_hazards.py",
        "programs",
    ),
    _in(
        "copies that stay",
        "simulator/flow.py",
        "if op.name in _SPREADS and not self.stays(op):",
        "if op.name in _SPREADS:",
        "a small block that is scaled in place by its sum is told as a race",
        "test_races.py",
    ),
    _in(
        "copies that leave",
        "simulator/warps.py",
        "return bool((before == after).all())",
        "return True",
        "a sum that other warps store is no race",
        "test_races.py",
    ),
]
