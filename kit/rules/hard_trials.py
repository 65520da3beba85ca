"""Hard inputs through small launches: where what the kernel leaves is further from the truth than the reference in its own dtype is."""

from __future__ import annotations

import math
from dataclasses import dataclass

import torch

from kit.bench import copied as copied_in_place
from kit.errors import KitError
from kit.hard_inputs import FLOATS
from kit.numbers import hard_inputs
from kit.rules.truth import copied, distance, expected, loose, shown

OWN = "the values of make_args"
# An error relative to the result says nothing of a sum that cancels; what overflows may be infinite.
LEFT_OUT = ("cancelling",)
INPUTS = 3  # arguments that are made hard, one at a time
FLOOR = 8  # units in the last place of an ordinary result
# Times the bound, up to which nothing is told: in a row of equal numbers, 1 / sqrt(eps) makes one rounding of the mean some hundred.
GROSS = 4
WORSE = 32  # times as far from the truth as the reference in the launch's own dtype


@dataclass
class Miss:
    """One written argument that is wrong under one set of inputs. `units`: its worst distance over the bound, inf for nan or inf."""

    name: str
    given: str
    output: str
    text: str
    units: float
    wrong: int
    of: int
    infinite: bool


class Hard:
    """Launches of one size with hard values in one argument at a time."""

    def __init__(self, subject, size, slack):
        self.subject, self.size, self.slack = subject, size, slack
        with torch.random.fork_rng(devices=[torch.cuda.current_device()] if subject.machine.live else []):
            torch.manual_seed(0)
            self.launch = subject.launch(size)
        self.loaded = {name for name, touch in subject.touched.items() if touch.read}
        self.stored = set(subject.written)
        self.tried, self.unchecked = 0, 0
        self.ordinary = {}

    def inputs(self):
        """Names of the floating arguments that the kernel loads from, the largest first."""
        found = {n: t for n, t in self.launch.tensors.items() if n in self.loaded and t.dtype in FLOATS and t.dim() and t.numel() > 1}
        return sorted(found, key=lambda name: -found[name].numel())[:INPUTS]

    def all(self):
        """[Miss] of the values of make_args, then of each set in each input."""
        found = self.missed(OWN, "", None)
        for name in self.inputs():
            tensor = self.launch.tensors[name]
            for given, values in hard_inputs(tuple(tensor.shape), tensor.dtype).items():
                if given not in LEFT_OUT:
                    nonnegative = bool((tensor >= 0).all())  # the domain may end at 0
                    found += self.missed(given, name, values.abs() if nonnegative else values)
        return found

    def missed(self, given, name, values):
        """[Miss] of one launch."""
        args = [put(value if value is not self.launch.named.get(name) or values is None else values, value) for value in self._plain()]
        left = [put(value, value) for value in args]
        self.subject.kernel[self.launch.grid](*left, **self.launch.meta)
        self.tried += 1
        named = dict(zip(self.subject.kernel.arg_names, left, strict=False))
        outputs = {n: t for n, t in named.items() if n in self.stored and isinstance(t, torch.Tensor) and t.is_floating_point()}
        if self.subject.reference is None:
            return self._nan(given, name, values, outputs)
        truth, own = self._truth(args, torch.float64), self._truth(args, None)
        if own is None:
            self.unchecked += 1
            return []
        truth = own if truth is None else truth
        infinite = values is not None and bool(values.isinf().any())
        pairs = [(n, t, truth[n], own.get(n, truth[n])) for n, t in outputs.items() if n in truth]
        return [miss for miss in (self._compare(given, name, infinite, *pair) for pair in pairs) if miss]

    def _plain(self):
        """The launch's own arguments; outputs that are never loaded are zeros, for the kernel and for the reference."""
        for argument, value in zip(self.subject.kernel.arg_names, self.launch.args, strict=False):
            output = argument in self.stored and argument not in self.loaded and isinstance(value, torch.Tensor)
            if output:
                value.zero_()
            yield value

    def _truth(self, args, dtype):
        try:
            return expected(self.subject, args, dtype)
        except KitError:
            raise
        except Exception:  # the reader's reference may not take float64, or these values
            return None

    def _nan(self, given, name, values, outputs):
        """Without a reference: nan that comes from finite inputs."""
        if values is not None and float(values.double().abs().max()) > torch.finfo(values.dtype).max / 4:  # infinite, or all but
            return []
        found = []
        for output, tensor in outputs.items():
            bad = tensor.isnan()
            if bool(bad.any()):
                place = _place(output, tuple(bad.nonzero()[0].tolist()))
                text = f"{place} is nan ({int(bad.sum()):,} of {bad.numel():,})"
                found.append(Miss(name, given, output, text, math.inf, int(bad.sum()), bad.numel(), False))
        return found

    def _compare(self, given, name, infinite, output, got, want, own):
        bound = max(loose(got.dtype), self.slack, *(self.subject.tolerance or ()))
        if given == OWN:
            finite = want[want.isfinite()].double().abs()
            self.ordinary[output] = float(finite.mean()) if finite.numel() else 0.0
        far, near = distance(got, want), distance(own.to(got.dtype), want)
        # What is below the resolution of ordinary results is no error: 1 - exp(-x) is 0 for a very small x.
        floor = FLOOR * torch.finfo(got.dtype).eps * self.ordinary.get(output, 0.0)
        far = torch.where((got.double() - want.double()).abs() <= floor, 0.0, far)
        # What the output's dtype cannot hold is inf or nan, as the sums before it fell out; and a truth of nan asks for nothing.
        fair = near.isfinite() & ~want.isnan() & ~(want.isfinite() & want.to(got.dtype).isinf())
        limit = max(GROSS * bound, WORSE * float(near[fair].max()) if bool(fair.any()) else 0.0)
        bad = fair & (far > limit)
        if not bool(bad.any()):
            return None
        index = tuple(torch.where(bad, far, -1.0).reshape(-1).argmax().reshape(1).tolist())
        flat = index[0]
        place = _place(output, tuple(int(i) for i in torch.unravel_index(torch.tensor(flat), bad.shape)) if bad.dim() else ())
        text = f"{place} is {shown(got.reshape(-1)[flat])}, expected {shown(want.reshape(-1)[flat])}"
        text += f" ({int(bad.sum()):,} of {bad.numel():,} wrong)"
        return Miss(name, given, output, text, float(far.reshape(-1)[flat]) / bound, int(bad.sum()), bad.numel(), infinite)


def put(values, argument):
    """A copy of `argument`, with its strides, which the kernel was told, and with these `values`. Anything but a tensor as it is."""
    if not isinstance(argument, torch.Tensor):
        return argument
    if 0 in argument.stride():  # of an expanded tensor one element is many
        return copied(values)
    (copy,) = copied_in_place((argument,))
    return copy.copy_(values.detach())


def _place(name, index):
    return f"element {', '.join(f'{i:,}' for i in index)} of {name}" if index else name
