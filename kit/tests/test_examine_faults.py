"""Every faulty kernel of kit.tests.faults under all of examine's rules, and every right twin: found by its own rule, and no false alarm."""

from __future__ import annotations

import pytest

from kit import machine
from kit.tests.examined_faults import ASKED, ELSEWHERE, MISSED, RULES, seen
from kit.tests.faults import FAULTS

gpu = machine.start()

# One or two a rule, together below 20 s of processor time. Here the rule of the fault alone is asked; the whole asks all.
FAST = [
    ("R1", "% of negatives"),
    ("R1", "integer / 0"),
    ("R4", "a size as constexpr"),
    ("R5", "store, then load reversed"),
    ("R5", "shift in place"),
    ("R6", "tokens on axis 1"),
    ("R7", "pid * stride"),
    ("R8", "a program for each head"),
    ("R9", "<= for <"),
    ("R10", "a softmax of -inf"),
]
NAMED = {(fault.rule, fault.name): fault for fault in FAULTS}


def the_fault_is_found_and_the_twin_is_not(fault, numbers):
    one, key = seen(fault, numbers), (fault.rule, fault.name)
    assert bool(one.found) != (key in ELSEWHERE | MISSED), (one.found, one.elsewhere, one.text)
    assert key not in ELSEWHERE or one.elsewhere
    assert not one.alarms, one.alarm_text


@pytest.mark.parametrize("rule, name", FAST)
def test_one_rule_at_its_faults(rule, name):
    the_fault_is_found_and_the_twin_is_not(NAMED[rule, name], [int(rule[1:])])


@pytest.mark.slow
@pytest.mark.parametrize("fault", FAULTS, ids=lambda fault: f"{fault.rule} {fault.name}")
def test_all_rules_at_all_faults(fault):
    live = machine.current().live
    numbers = [number for number in ASKED if not live or RULES[number - 1].group == "paper"]
    if int(fault.rule[1:]) not in numbers:  # on a GPU the launches of a wrong kernel are left to the sandbox
        pytest.skip("its rule launches the kernel, and this machine has a GPU")
    the_fault_is_found_and_the_twin_is_not(fault, numbers)


def test_what_is_missed_is_still_a_fault():
    assert set(ELSEWHERE | MISSED) <= set(NAMED) and len(MISSED) <= 2
