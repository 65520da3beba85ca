"""One operation of a library beside its torch reference: outputs and gradients, by the norm of their difference."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import torch

from kit.tests.zoo_case import difference


@dataclass
class Case:
    """`make()` gives the inputs; `run` and `reference` take them by name and return a tensor or several.

    Floating-point inputs get gradients unless named in `fixed`. The reference runs in float64.
    """

    make: Callable
    run: Callable
    reference: Callable
    fixed: tuple = ()
    bound: float = 2e-5
    backward: bool = True

    def compare(self):
        """(the largest norm-wise relative difference of an output or gradient, where it is)."""
        given = self.make()
        mine = self.ready(given, lambda x: x.clone())
        truth = self.ready(given, lambda x: x.double() if x.is_floating_point() else x.clone())
        outs, expected = (listed(f(**inputs)) for f, inputs in ((self.run, mine), (self.reference, truth)))
        if len(outs) != len(expected):
            raise AssertionError(f"{len(outs)} outputs, the reference has {len(expected)}")
        # Kept now: an operation may overwrite its output when it runs backward.
        pairs = [(f"out {i}", o.detach().clone(), e.detach()) for i, (o, e) in enumerate(zip(outs, expected))]
        if self.backward:
            weights = [
                torch.randn(e.shape, dtype=torch.float32, generator=torch.Generator().manual_seed(i)) for i, e in enumerate(expected)
            ]
            torch.autograd.backward(
                [o for o in outs if o.requires_grad], [w.to(o.dtype, copy=True) for w, o in zip(weights, outs) if o.requires_grad]
            )
            torch.autograd.backward(
                [e for e in expected if e.requires_grad], [w.to(e.dtype) for w, e in zip(weights, expected) if e.requires_grad]
            )
            for name, x in mine.items():
                if isinstance(x, torch.Tensor) and x.requires_grad:
                    if x.grad is None:
                        raise AssertionError(f"no gradient reached {name}")
                    pairs.append((f"gradient of {name}", x.grad, truth[name].grad))
        worst, where = 0.0, ""
        for name, got, wanted in pairs:
            if got.dtype.is_floating_point:
                apart = difference(got.double().reshape(wanted.shape), wanted.double()).relative
            else:
                apart = difference(got, wanted.to(got.dtype)).relative
            if not apart <= worst:
                worst, where = apart, name
        return worst, where

    def ready(self, given, convert):
        inputs = {}
        for name, x in given.items():
            if isinstance(x, torch.Tensor):
                x = convert(x)
                x.requires_grad_(self.backward and x.is_floating_point() and name not in self.fixed)
            inputs[name] = x
        return inputs


def listed(result):
    return [x for x in (result if isinstance(result, (tuple, list)) else [result]) if x is not None]
