"""`@triton.autotune` where nothing can be timed: each configuration is compiled, and the first that fits the GPU is chosen.

Triton's autotuner asks its driver for a benchmarker, calls it once a configuration, and takes the smallest time; a configuration
that the compiler or the GPU's limits refuse gets no time (triton/runtime/autotuner.py, Autotuner._bench). A launch that is made for
timing only is not executed here: its values are no part of the answer, and the chosen configuration runs afterwards.
"""

from __future__ import annotations

import contextlib
import threading
import warnings

WHY_NO_TIMES = (
    "triton.autotune on the simulated GPU: each configuration is compiled for the real target and the first that fits is chosen. "
    "There are no times: the simulated GPU computes what a GPU computes, not how long it takes. Tune on a GPU."
)

_now = threading.local()
_told = False


def benchmarker(kernel_call, quantiles=None, **_):
    """Compile one configuration by a launch that is not executed. Returns the same time, 1.0, for every configuration, so that
    Triton's autotuner takes the first; raises what the compiler or the launch refuses, which drops the configuration."""
    _tell_once()
    with _compiling():
        kernel_call()
    return [1.0] * len(quantiles) if quantiles is not None else 1.0


def only_compiles():
    """True while a launch of this thread is made for a configuration's sake alone and is not to be executed."""
    return getattr(_now, "compiling", False)


@contextlib.contextmanager
def _compiling():
    _now.compiling = True
    try:
        yield
    finally:
        _now.compiling = False


def _tell_once():
    global _told
    if not _told:
        _told = True
        warnings.warn(WHY_NO_TIMES, stacklevel=2)
