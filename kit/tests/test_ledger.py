"""The summary of a ledger: what failed is told, and counts nowhere else."""

from kit.ledger import Summary


def entry(claim, holds, word="simulated", **more):
    return {"notebook": "06_x", "claim": claim, "holds": holds, "evidence": word, "recording": None} | more


def test_a_claim_that_failed_does_not_count_as_checked():
    found = Summary([entry("a", True), entry("b", False), entry("c", False, "compiled")])
    assert repr(found) == "1 claims checked here (1 simulated), 2 DO NOT HOLD." and not found


def test_the_latest_outcome_of_a_claim_counts():
    assert repr(Summary([entry("a", False), entry("a", True)])) == "1 claims checked here (1 simulated)."
    assert repr(Summary([entry("a", True), entry("a", False)])) == "0 claims checked here, 1 DO NOT HOLD."


def test_a_time_that_differs_on_another_gpu_is_told_apart():
    found = Summary([entry("a", True), entry("b", False, "measured", elsewhere="NVIDIA H200")])
    assert repr(found) == "1 claims checked here (1 simulated), 1 differ from NVIDIA H200." and found
