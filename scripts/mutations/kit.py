"""The rest of the kit: labels, the ledger, keys, statistics, the sandbox, kernels."""

from mutations import Mutation, nbval, pytest


def _in(name, file, old, new, plants, *check):
    return Mutation(f"kit {name}", f"kit/{file}", old, new, plants, pytest(*check))


MUTATIONS = [
    _in(
        "label",
        "evidence.py",
        "return f\"[{word_of(evidence, 'label')}",
        "return f\"({word_of(evidence, 'label')}",
        "the label of a claim is broken",
        "test_evidence.py",
    ),
    Mutation(
        "kit meaning",
        "kit/evidence.py",
        '"simulated": "the compiler\'s IR executed on the CPU; never a time"',
        '"simulated": "measured on the GPU"',
        "a label explains itself wrongly, in every lesson",
        nbval("06_grid_limits"),
    ),
    _in(
        "claim raises",
        "evidence.py",
        "    if not made and not made.elsewhere:",
        "    if not made and made.elsewhere:",
        "a claim that does not hold raises nothing",
        "test_evidence.py",
    ),
    _in(
        "ledger holds",
        "evidence.py",
        '"holds": made.holds and not stale,',
        '"holds": True,',
        "the ledger calls every claim true",
        "test_evidence.py",
    ),
    _in(
        "summary",
        "ledger.py",
        'for e in latest.values() if e["holds"])\n        self.recordings',
        "for e in latest.values())\n        self.recordings",
        "failed claims count as held",
        "test_ledger.py",
    ),
    _in(
        "measured here",
        "evidence.py",
        'if word == "measured" and not here.live:',
        'if word == "measured" and here.live:',
        "a simulation may call itself measured",
        "test_evidence.py",
    ),
    _in(
        "alignment",
        "specialization.py",
        "value.data_ptr() % 16)",
        "value.data_ptr() % 8)",
        "predicted keys know no alignment of 16",
        "test_stand_ins.py",
    ),
    _in(
        "confidence",
        "statistics.py",
        "if 2 * below > 1 - confidence:",
        "if below > 1 - confidence:",
        "intervals are too narrow",
        "test_statistics.py",
    ),
    _in("spread", "timing.py", "if self.time.spread > 0.1:", "if self.time.spread > 1.1:", "a noisy time is not doubted", "test_bench.py"),
    _in(
        "hang",
        "sandbox_reading.py",
        'if ended.killed_for == "time":',
        'if ended.killed_for == "times":',
        "a hang is not called one",
        "test_sandbox.py",
        "hang or endless or time",
    ),
    _in(
        "newer",
        "versions.py",
        "return here is not None and here > minor(",
        "return here is not None and here >= minor(",
        "a tested Triton is called untested",
        "test_versions.py",
    ),
    _in(
        "next step",
        "progress.py",
        'if step["state"] != "passed"), None)',
        'if step["state"] == "passed"), None)',
        "progress points at what is done",
        "test_practice.py",
    ),
    _in(
        "times refused",
        "simulator/tuning.py",
        "_told = False",
        "_told = True",
        "nobody is told that there are no times",
        "test_told_once.py",
    ),
    _in("softmax", "kernels/softmax.py", "y, mask=mask)", "y)", "a kernel of kit/kernels without its mask", "test_kernels.py", "softmax"),
]
