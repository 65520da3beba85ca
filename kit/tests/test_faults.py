"""Faulty kernels and their right twins on paper: what is found, where, and that nothing is said of the twins."""

import pytest

from kit import machine
from kit.report import NOTEBOOKS, VERDICTS
from kit.tests.faults import FAULTS

names = [f"{fault.rule}: {fault.name}" for fault in FAULTS]


@pytest.fixture(autouse=True, scope="module")
def gpu():
    return machine.current()


@pytest.mark.parametrize("fault", FAULTS, ids=names)
def test_fault_and_twin(fault):
    report = fault.report()
    if fault.visible:
        assert fault.found_in(report), report.findings
        assert bool(report) == (fault.verdict != "wrong")
        for finding in fault.matching(report):
            assert_complete(finding)
    else:
        assert not fault.found_in(report) and fault.why and fault.shows
    twin = fault.twin_report()
    assert twin and fault.alarms_in(twin) == []


def assert_complete(finding):
    """A line and a program, as far as a fault of this kind has them."""
    assert finding.verdict in VERDICTS and finding.hazard in NOTEBOOKS and finding.text
    if finding.hazard not in ("grid", "alignment"):
        assert finding.line and finding.source
        assert finding.program is not None or finding.hazard == "never written"


def test_there_are_enough_of_them():
    assert len(FAULTS) >= 60 and len(set(names)) == len(names)
    assert {fault.rule for fault in FAULTS} == {"R1", *(f"R{n}" for n in range(4, 11))}
