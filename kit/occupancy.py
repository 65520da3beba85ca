"""How many programs of a compiled kernel a multiprocessor can hold at once, and what keeps it from holding more. Arithmetic alone.

Limits: CUDA C++ programming guide, "Technical specifications per compute capability". Registers are handed out by warp, 256 at a time,
to four partitions; shared memory in pieces of 128 bytes (256 on 7.5), with 1 KB a program for the system from 8.0 on (Ampere and Hopper
tuning guides, "Unified shared memory").
"""

from __future__ import annotations

from dataclasses import dataclass

from kit.errors import BadInput, quoted


@dataclass(frozen=True)
class Multiprocessor:
    """What one multiprocessor holds: warps, programs, 32-bit registers, bytes of shared memory, bytes that the system takes a program."""

    warps: int
    programs: int
    shared_memory: int
    reserved: int = 1024
    piece: int = 128
    registers: int = 65_536


MULTIPROCESSORS = {
    "cuda:75": Multiprocessor(32, 16, 64 << 10, 0, 256),
    "cuda:80": Multiprocessor(64, 32, 164 << 10),
    "cuda:86": Multiprocessor(48, 16, 100 << 10),
    "cuda:87": Multiprocessor(48, 16, 164 << 10),
    "cuda:89": Multiprocessor(48, 24, 100 << 10),
    "cuda:90": Multiprocessor(64, 32, 228 << 10),
    "cuda:100": Multiprocessor(64, 32, 228 << 10),
    "cuda:103": Multiprocessor(64, 32, 228 << 10),
    "cuda:120": Multiprocessor(48, 24, 100 << 10),
    "cuda:121": Multiprocessor(48, 24, 100 << 10),
}
PARTITIONS, A_WARP, MOST_REGISTERS = 4, 256, 255


@dataclass(frozen=True)
class Occupancy:
    """`programs` a multiprocessor holds at once, the `share` of its warps that they fill (0 to 1), and what `limited_by` names:
    "registers", "shared memory", "warps" or "programs". `bounds` is {limit: programs it allows}. False when not one fits."""

    programs: int
    share: float
    limited_by: str
    bounds: dict
    evidence: str = "compiled"

    def __bool__(self):
        return self.programs > 0

    def __repr__(self):
        plural = "" if self.programs == 1 else "s"
        held = f"{self.programs} program{plural} a multiprocessor, {100 * self.share:.0f} % of its warps, limited by {self.limited_by}"
        return f"{held} [{self.evidence}]"


def occupancy(build):
    """The Occupancy of a Build (kit.build) on its target. Raises BadInput for a target that MULTIPROCESSORS does not know."""
    return occupancy_of(build.registers, build.shared_memory, build.num_warps, build.target)


def occupancy_of(registers, shared_memory, num_warps, target="cuda:90"):
    """The Occupancy for `registers` a thread, bytes of `shared_memory` and `num_warps` a program. Raises BadInput for an unknown target."""
    if target not in MULTIPROCESSORS:
        raise BadInput(f"occupancy: target must be one of {', '.join(MULTIPROCESSORS)}; got {quoted(target)}.")
    held = MULTIPROCESSORS[target]
    a_warp = _up(32 * registers, A_WARP)
    # A warp's registers lie in one partition, so what is left over in one does not help another.
    warps = held.registers // PARTITIONS // a_warp * PARTITIONS if a_warp else held.warps
    a_program = _up(shared_memory + held.reserved, held.piece)
    bounds = {
        "registers": warps // num_warps,
        "shared memory": held.shared_memory // a_program if a_program else held.programs,
        "warps": held.warps // num_warps,
        "programs": held.programs,
    }
    programs = min(bounds.values())
    order = ("warps", "programs", "registers", "shared memory")  # of several, the one that no change of the kernel removes
    limited_by = next(name for name in order if bounds[name] == programs)
    return Occupancy(programs, programs * num_warps / held.warps, limited_by, bounds)


def _up(n, piece):
    return -(-n // piece) * piece
