"""The thirteen rules as `kit.examine` looks at them: one module a rule, each with `look(subject) -> [Note]`.

Rules run inside the sandbox's child (kit.rules.child), in the order of RULES. A rule never prints and never raises for what a kernel
does: that is a Note. What it cannot see is a Note with the verdict "not visible here".
"""

from __future__ import annotations

from dataclasses import dataclass
from importlib import import_module

__all__ = ["GROUPS", "RULES", "Rule", "rule_of"]

# "paper": source, compiler and launches on paper. "launch": real launches, of small sizes. "time": a plan, and on a GPU its times.
GROUPS = ("paper", "launch", "time")


@dataclass(frozen=True)
class Rule:
    """One rule of the guide: its number, its short title, the notebook that teaches it, the group in which it is looked at."""

    number: int
    title: str
    notebook: str
    group: str
    module: str

    def look(self, subject):
        """The Notes of this rule on `subject` (kit.rules.subject.Subject)."""
        return import_module(f"kit.rules.{self.module}").look(subject)


RULES = (
    Rule(1, "semantics", "01_semantics", "paper", "r01_semantics"),
    Rule(2, "copied from Inductor", "02_reading_inductor", "paper", "r02_copied"),
    Rule(3, "block sizes", "03_block_sizes", "paper", "r03_block_sizes"),
    Rule(4, "variants", "04_specialization", "paper", "r04_variants"),
    Rule(5, "barriers", "05_barriers", "paper", "r05_barriers"),
    Rule(6, "grid limits", "06_grid_limits", "paper", "r06_grid"),
    Rule(7, "offsets at full size", "07_int64_offsets", "paper", "r07_offsets"),
    Rule(8, "decode and prefill", "08_decode_and_prefill", "paper", "r08_work"),
    Rule(9, "boundaries and views", "09_boundaries_and_views", "launch", "r09_boundaries"),
    Rule(10, "numbers", "10_numerics", "launch", "r10_numbers"),
    Rule(11, "benchmark", "11_microbenchmarks", "time", "r11_benchmark"),
    Rule(12, "sweep", "12_sweeps", "paper", "r12_sweep"),
    Rule(13, "warm-up", "13_cold_start", "paper", "r13_warm_up"),
)


def rule_of(number):
    """The Rule with that number."""
    return RULES[number - 1]
