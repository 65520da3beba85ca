"""How long one variant takes to compile on this machine's CPU, nothing taken from a cache."""

from __future__ import annotations

import time

from triton.runtime import JITFunction

from kit.cold_start import disk_cache
from kit.rules.needed import options


def fresh(kernel):
    """The same kernel with no variant in memory."""
    return JITFunction(
        kernel.fn,
        do_not_specialize=kernel.do_not_specialize,
        do_not_specialize_on_alignment=kernel.do_not_specialize_on_alignment,
        debug=kernel.debug,
        noinline=kernel.noinline,
    )


def compile_seconds(subject, launch):
    """Seconds of wall time to compile the variant of `launch`, from the source to the binary. Triton's own start is not in it."""
    subject.build(launch.size)  # whatever a first compilation loads is loaded
    with disk_cache():
        begun = time.perf_counter()
        fresh(subject.kernel).warmup(*launch.named.values(), grid=(1,), **options(subject, launch))
        return time.perf_counter() - begun
