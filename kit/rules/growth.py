"""How far a size may grow: launches on paper at multiples of a size, while they stay cheap to make."""

from __future__ import annotations

import functools

import torch

from kit.rules.ir import prepared

REAL = 64 << 20  # bytes of integer tensors, which are real on paper too, up to which a larger launch is made
SURE = 8  # up to this factor every launch that is asked for is made
MOST_LAUNCHES = 24  # on one size of one rule, past SURE: a count, so that the answer does not depend on how busy the machine is


class Growing:
    """The launches of `subject` with one size, `name`, multiplied from what it is in `size`."""

    def __init__(self, subject, size, name):
        self.subject, self.size, self.name, self.start = subject, size, name, size[name]
        self.made = 0
        launch = subject.ghosts(size)
        self.real = sum(tensor.nbytes for tensor in launch.tensors.values() if isinstance(tensor, torch.Tensor))

    @functools.cached_property
    def loops(self):
        """Whether the kernel has a loop."""
        _, program, _ = prepared(self.subject, self.subject.ghosts(self.size))
        return any(op.name in ("scf.for", "scf.while") for op in program.operations())

    def at(self, value):
        """The Launch with the size at `value`; None where make_args or the grid refuses it, or where it would be costly to make."""
        self.made += value > SURE * self.start
        if self.made > MOST_LAUNCHES or self.real * value > REAL * self.start:
            return None
        try:
            return self.subject.ghosts({**self.size, self.name: value})
        except Exception:  # make_args and grid are the reader's: what they say of a size they were not written for is no finding
            return None

    def first(self, fails, most):
        """(the largest value seen that passes, the first that fails or None): `fails(value)` is True, False, or None where not known.

        The size is doubled up to `most` times its start, then the last step is halved; it is assumed that what fails once fails from
        there on.
        """
        low, high = self.start, None
        while high is None and low < most * self.start:
            value = 2 * low
            answer = fails(value)
            if answer is None:
                return low, None
            low, high = (low, value) if answer else (value, None)
        while high is not None and high - low > max(1, low // 1024):
            middle = (low + high) // 2
            answer = fails(middle)
            if answer is None:
                break
            low, high = (low, middle) if answer else (middle, high)
        return low, high

    def first_power(self, fails):
        """(the largest factor seen that passes, the first value that fails or None) among powers of two of the start.

        8 comes first: who passes it has room. From there on the exponent is searched: at the far end first, then by halves. In a kernel
        that loops the search ends at 8: a loop over the size would run 65,536 times as long on paper.
        """
        low, high = 0, None
        for exponent in (3,) if self.loops else (3, *range(16, 3, -2)):
            answer = fails(self.start << exponent)
            if answer is True:
                high = exponent
            elif answer is False:
                low = exponent
            if answer is not None and exponent > 3 or high == 3:
                break
        while high is not None and high - low > 1:
            middle = (low + high) // 2
            answer = fails(self.start << middle)
            if answer is None:
                break
            low, high = (low, middle) if answer else (middle, high)
        return 1 << low, None if high is None else self.start << high


def growing(subject, size):
    """The names of the sizes in `size` that are whole numbers of one or more."""
    return [name for name, value in size.items() if isinstance(value, int) and not isinstance(value, bool) and value > 0]


def times(factor):
    """A factor as text: "×2.5", "×1,024"."""
    return f"×{factor:.3g}" if factor < 100 else f"×{round(factor):,}"
