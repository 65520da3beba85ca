"""What `@triton.autotune` does with a kernel, on any machine: every configuration launched for real, and the choice the grader's.

The one place for the tuner's own workings (triton/runtime/autotuner.py, class Autotuner, 3.6 to 3.9): `do_bench`, which it calls once a
configuration, in their order; `cache`, its choices by key; `fn`, the kernel that it launches. Graders run one at a time in a process of
their own, so the class is changed for the time of a `with`.
"""

from __future__ import annotations

import contextlib
from dataclasses import dataclass, field

import triton
from triton.runtime.autotuner import Autotuner


@dataclass
class Tuners:
    """The tuners that ran, the configuration that each tuning is to choose, and how often each is launched for timing."""

    choice: int = 0
    runs: int = 0
    seen: list = field(default_factory=list)
    _asked: int = 0

    def start(self, choice, runs):
        """The next tuning takes configuration number `choice`, after `runs` launches of each; what was chosen before is forgotten."""
        self.choice, self.runs = choice, runs
        for tuner in self.seen:
            tuner.cache.clear()

    def note(self, tuner):
        self._asked = 0
        if not any(tuner is seen for seen in self.seen):
            self.seen.append(tuner)

    def time(self, launch, quantiles=None):
        """What the tuner calls for a configuration: launch it, and say that the chosen one is the fastest."""
        for _ in range(self.runs):
            launch()
        self._asked += 1
        return [0.5 if self._asked - 1 == self.choice else 1.0] * 3


@contextlib.contextmanager
def emulated():
    """Inside, tuners launch and choose as the Tuners that is yielded says, whatever benchmark they were given."""
    tuners, run, bench = Tuners(), Autotuner.run, vars(Autotuner)["do_bench"]

    def noted_run(self, *args, **kwargs):
        tuners.note(self)
        return run(self, *args, **kwargs)

    Autotuner.run = noted_run
    Autotuner.do_bench = property(lambda self: tuners.time)
    try:
        yield tuners
    finally:
        Autotuner.run, Autotuner.do_bench = run, bench


def tunings(kernel, key, launches):
    """How often a new tuner of `kernel` with this key tunes in a list of launches, each a dict of arguments. Nothing is launched."""
    asked = []

    def count(launch, quantiles=None):
        asked.append(1)
        return [1.0] * 3

    configs = [triton.Config({}, num_warps=warps) for warps in (4, 8)]
    tuner = triton.autotune(configs, key=key, do_bench=count)(kernel)
    tuner.fn = _NoLaunch()
    for arguments in launches:
        tuner.run(**arguments, grid=(1,), warmup=False)
    return len(asked) // len(configs)


class _NoLaunch:
    """Stands where a tuner has its kernel."""

    def run(self, *args, **kwargs):
        pass
