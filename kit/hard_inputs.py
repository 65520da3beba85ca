"""`hard_inputs`: rows that numerical faults do not survive, named, each with its reason. Lessons import it from `kit.numbers`."""

from __future__ import annotations

import html

import torch

from kit import machine
from kit.errors import BadInput, WrongType, quoted

FLOATS = (torch.float16, torch.bfloat16, torch.float32, torch.float64)
INF = float("inf")


class HardInputs(dict):
    """{name: tensor}, all of one shape and dtype; `why[name]` is the reason for each. A row is the last axis."""

    def __init__(self, tensors, why):
        super().__init__(tensors)
        self.why = {name: why[name] for name in self}

    def but(self, *names):
        """The same without `names`: for what an operation does not define. Raises BadInput for a name that is not there."""
        return self._of("but", names, [name for name in self if name not in names])

    def only(self, *names):
        """Those of `names` alone, in their order. Raises BadInput for a name that is not there."""
        return self._of("only", names, names)

    def _of(self, verb, given, kept):
        unknown = [name for name in given if name not in self]
        if unknown:
            raise BadInput(f"{verb}: there is no hard input {quoted(unknown[0])}; there are {', '.join(self)}.")
        return HardInputs({name: self[name] for name in kept}, self.why)

    def __repr__(self):
        if not self:
            return "hard_inputs: none"
        one = next(iter(self.values()))
        return f"hard_inputs: {len(self)} of shape {tuple(one.shape)} in {str(one.dtype).removeprefix('torch.')}: {', '.join(self)}"

    def _repr_html_(self):
        cell = "<td style='text-align:left'>{}</td>".format
        rows = [(name, _ends(tensor), self.why[name]) for name, tensor in self.items()]
        body = "".join("<tr>" + "".join(cell(html.escape(text)) for text in row) + "</tr>" for row in rows)
        head = "".join(f"<th style='text-align:left'>{name}</th>" for name in ("input", "begins with", "why"))
        return f"<table><tr>{head}</tr>{body}</table>"


def _ends(tensor):
    """The first three elements, as text."""
    first = tensor.reshape(-1)[:3].double().tolist()
    return ", ".join(f"{value:.5g}" for value in first) + (", …" if tensor.numel() > 3 else "")


def hard_inputs(shape, dtype=torch.float32, device=None, *, seed=0):
    """HardInputs of `shape` in `dtype`, the same for the same seed on every machine; on kit.start()'s device unless told.

    `dtype` is float16, bfloat16, float32 or float64. Every row, which is the last axis, has the property; rows differ from each other
    except where the name says that all is equal. The list is that of the public reports of rule 10. Raises BadInput for a shape or a
    dtype that cannot be used.
    """
    shape = _shape(shape)
    if dtype not in FLOATS:
        names = ", ".join(str(one).removeprefix("torch.") for one in FLOATS)
        raise BadInput(f"hard_inputs: dtype must be one of torch's {names}; got {quoted(dtype)}.")
    made = _made(shape, dtype, torch.Generator().manual_seed(seed))
    device = machine.current().device if device is None else device
    return HardInputs(
        {name: tensor.to(dtype).to(device) for name, (tensor, _) in made.items()}, {name: why for name, (_, why) in made.items()}
    )


def _shape(shape):
    shape = (shape,) if isinstance(shape, int) and not isinstance(shape, bool) else shape
    if not isinstance(shape, (tuple, list, torch.Size)):
        raise WrongType(f"hard_inputs: shape must be a number or a tuple of them; got {quoted(shape)} ({type(shape).__name__}).")
    if not shape or not all(isinstance(n, int) and not isinstance(n, bool) and n >= 0 for n in shape):
        raise BadInput(f"hard_inputs: shape must hold one or more whole numbers of 0 or more; got {quoted(tuple(shape))}.")
    return tuple(shape)


def _made(shape, dtype, generator):
    """{name: (float64 tensor, reason)}. Drawn on the CPU, so that every machine has the same."""
    info = torch.finfo(dtype)

    def normal():
        return torch.randn(shape, generator=generator, dtype=torch.float64)

    # Round 10,000 the type has steps of 10,000 * eps: a smaller spread than some of them would be rounded away.
    spread = max(1.0, 4e4 * info.eps)
    last = normal()
    for tensor in (one_outlier := normal(), one_inf := normal()):
        tensor[..., -1:] = 1e4 if tensor is one_outlier else INF
    masked = normal()
    masked[..., shape[-1] // 2 :] = -INF
    signs = torch.where(torch.arange(shape[-1]) % 2 == 0, 1.0, -1.0)
    return {
        "normal": (last, "nothing hard: what a test has that tries only this"),
        "zeros": (torch.zeros(shape, dtype=torch.float64), "a norm divides by its size, which is 0"),
        "all equal": (torch.full(shape, 1.1, dtype=torch.float64), "a running sum stalls; the variance is 0, and must not be less"),
        "one outlier": (one_outlier, "its square passes float16's largest; beside it the others are lost"),
        "mean 1e4": (normal() * spread + 1e4, "the mean of the squares less the square of the mean cancels; exp overflows"),
        "mean -1e4": (normal() * spread - 1e4, "the same below zero: exp of it is 0, and so is the sum"),
        "scale 1e-6": (normal() * 1e-6, "squares fall below float16's smallest, and below any eps"),
        "subnormal": (normal().clamp(-4, 4) * (info.tiny / 4), "below the smallest normal number, where steps are coarse or flushed to 0"),
        "near max": (info.max * (0.5 + 0.5 * torch.rand(shape, generator=generator, dtype=torch.float64)) * signs,
                             "any sum or square kept in the same type overflows"),
        "cancelling": (_cancelling(shape, generator), "the sum is small beside its terms: an error relative to it says nothing"),
        "half -inf": (masked, "a mask of attention: these elements weigh 0"),
        "all -inf": (torch.full(shape, -INF, dtype=torch.float64), "a fully masked row: its maximum is -inf, and -inf - -inf is nan"),
        "one +inf": (one_inf, "overflow came earlier: what is said must not look like a number"),
    }  # fmt: skip


def _cancelling(shape, generator):
    """Rows whose second half is the first with other signs, in another order: pairs of neighbours do not cancel, the row nearly does."""
    half = shape[-1] // 2
    row = 1e3 * (1 + torch.rand((*shape[:-1], half), generator=generator, dtype=torch.float64))
    other = -row[..., torch.randperm(half, generator=generator)]
    rest = torch.ones((*shape[:-1], shape[-1] - 2 * half), dtype=torch.float64)
    whole = torch.cat([row, other, rest], dim=-1)
    whole[..., :1] += 1.0
    return whole
