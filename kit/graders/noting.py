"""What an answer launches: every `kernel[grid](...)` passes through the grader's hands, and goes on as it would, or does not."""

from __future__ import annotations

import contextlib

from triton.runtime import JITFunction


@contextlib.contextmanager
def launches_through(launched):
    """Inside, `kernel[grid]` is `launched(kernel, grid, before)`, `before` being what it was.

    `kernel[grid]` is the language's own way to launch, so its special method is replaced, for this thread's grader only: graders run in a
    process of their own, one at a time.
    """
    before, own = JITFunction.__getitem__, vars(JITFunction).get("__getitem__")
    JITFunction.__getitem__ = lambda kernel, grid: launched(kernel, grid, before)
    try:
        yield
    finally:
        if own is None:
            del JITFunction.__getitem__
        else:
            JITFunction.__getitem__ = own


@contextlib.contextmanager
def noted():
    """Inside, what each launch is given is kept, and the launch goes on as it would. Yields the list of (kernel, arguments, options)."""
    launches = []

    def launched(kernel, grid, before):
        go_on = before(kernel, grid)

        def run(*args, **options):
            launches.append((kernel, args, options))
            return go_on(*args, **options)

        return run

    with launches_through(launched):
        yield launches
