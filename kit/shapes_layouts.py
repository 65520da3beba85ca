"""The ways in which a tensor can lie in memory, and which of them a kernel can be given: those whose strides it takes as arguments."""

from __future__ import annotations

import math
from dataclasses import dataclass

import torch

from kit.errors import BadInput, WrongType, expect_type, quoted
from kit.shapes_buffer import GUARD, Buffer, strides_of

PAD = 3  # columns between the rows of a slice: odd, so that rows begin at unaligned addresses
LAYOUTS = ("aligned", "offset by 1 element", "every second element", "transposed", "padded rows")
_MOST_GUARD = 1 << 20  # a kernel with another tensor's strides reaches up to twice as far as the tensor does
_AXES_NEEDED = {"every second element": 1, "transposed": 2, "padded rows": 2}
# Behind, in front and between the elements of what is read: the two ends in turn. NaN would not show in a maximum, which drops it.
_OUTPUT_BITS = {  # a NaN that no arithmetic makes, so that a NaN which the kernel stored is not taken for "never written"
    torch.float64: 0x7FF8_DEAD_DEAD_DEAD,
    torch.float32: 0x7FC0_DEAD,
    torch.float16: 0x7E2A,
    torch.bfloat16: 0x7FEA,
    torch.bool: 0x55,
}


def read_poison(dtype):
    """Cells round what a kernel reads: the two extremes of the dtype in turn, so that a sum, a maximum or a minimum shows them."""
    if dtype is torch.bool:
        return torch.tensor([True, False])
    if dtype.is_floating_point:
        return torch.tensor([math.inf, -math.inf]).to(dtype)
    return torch.tensor([torch.iinfo(dtype).max, torch.iinfo(dtype).min], dtype=dtype)


def written_poison(dtype):
    """Cells of and round what a kernel writes: NaN of a bit pattern that no arithmetic makes, or an integer near the lower end."""
    if dtype in _OUTPUT_BITS:
        whole = {8: torch.int64, 4: torch.int32, 2: torch.int16, 1: torch.int8}[dtype.itemsize]
        return torch.tensor([_OUTPUT_BITS[dtype]], dtype=torch.int64).to(whole).view(dtype)
    if dtype.is_floating_point:
        return torch.tensor([math.nan]).to(dtype)
    return torch.tensor([torch.iinfo(dtype).min + 77], dtype=dtype)


def strides_in(shape, strides, layout):
    """The strides of a tensor of `shape`, with `strides` as it was, in `layout`."""
    if layout == "every second element":
        return tuple(2 * s for s in strides_of(shape))
    if layout == "transposed":
        swapped = strides_of((*shape[:-2], shape[-1], shape[-2]))
        return (*swapped[:-2], swapped[-1], swapped[-2])
    if layout == "padded rows":
        return strides_of(shape, (*shape[:-1], shape[-1] + PAD))
    return tuple(strides)


def laid(tensor, layout, *, output=False):
    """A Buffer with the values of `tensor` in `layout`, or with poison in every cell where `output`."""
    shape, strides = tuple(tensor.shape), strides_in(tensor.shape, tensor.stride(), layout)
    span = sum((n - 1) * s for n, s in zip(shape, strides, strict=True)) if tensor.numel() else 0
    guard = GUARD * -(-min(max(GUARD, 2 * span), _MOST_GUARD) // GUARD)
    poison = (written_poison if output else read_poison)(tensor.dtype)
    offset = guard + (layout == "offset by 1 element")
    buffer = Buffer(shape, tensor.dtype, strides=strides, offset=offset, behind=guard, poison=poison, device=tensor.device)
    if not output:
        once = tuple(slice(0, 1) if s == 0 else slice(None) for s in strides)  # an expanded axis lies in memory once
        buffer.view[once].copy_(tensor[once])
        buffer.before = buffer.parent.view(buffer.before.dtype).clone()
    return buffer


def laid_out(tensor, layout):
    """Return a tensor of the same shape and values that lies in memory in `layout`, one of LAYOUTS, with poison round and between.

    "aligned": as it is, at an address that 16 divides. "offset by 1 element": as `x[1:]`. "every second element": as `x[..., ::2]`.
    "transposed": as `x.mT`. "padded rows": a slice of rows 3 elements wider. What a kernel reads beside it is ±inf, or the ends of the
    integer type. Raises BadInput for another layout, or for one that needs more axes than the tensor has.
    """
    expect_type(tensor, torch.Tensor, verb="laid_out", argument="tensor", what="a tensor")
    if layout not in LAYOUTS:
        raise BadInput(f"laid_out: layout must be one of {', '.join(LAYOUTS)}; got {quoted(layout)}.")
    if tensor.dim() < _AXES_NEEDED.get(layout, 0):
        needed = _AXES_NEEDED[layout]
        raise BadInput(f'laid_out: "{layout}" needs {needed} {"axis" if needed == 1 else "axes"} or more; got {quoted(tensor)}.')
    if tensor.is_complex():
        raise WrongType(f"laid_out: no Triton pointer is complex; got {quoted(tensor)}. Pass torch.view_as_real of it.")
    return laid(tensor, layout).view


# ---- Which argument is the stride of which axis


@dataclass(frozen=True)
class Strided:
    """What a kernel's signature says of one tensor: `axes` maps an axis to the argument that is its stride; `why` it is not more."""

    axes: dict
    why: str = ""

    def accepts(self, layout, n_axes):
        """Whether the kernel can be given this layout of a tensor of `n_axes` axes."""
        if n_axes < _AXES_NEEDED.get(layout, 0):
            return False
        needed = range(n_axes - 1) if layout == "padded rows" else range(n_axes) if layout in _AXES_NEEDED else ()
        return all(axis in self.axes for axis in needed)


def bare(name):
    """The name of a pointer argument without its "ptr": x_ptr is x."""
    short = name.lower().replace("_ptr", "").replace("ptr", "").strip("_")
    return short or name.lower()


def strided(values):
    """{tensor argument: Strided} of a launch's `values`, {argument: value} in order, by the names of its stride arguments.

    `stride_xm`, `x_stride_m` and `x_row_stride` belong to x_ptr; a single letter, as in stride_om, may also be the first letter of one
    tensor alone. The strides of a tensor are those of its axes in order; where their values say otherwise they are not understood.
    """
    tensors = {name: value for name, value in values.items() if isinstance(value, torch.Tensor)}
    owned, lost = {name: [] for name in tensors}, []
    for name, value in values.items():
        if "stride" in name.lower() and name not in tensors and isinstance(value, int):
            owner = _owner(name, tensors)
            (owned[owner] if owner else lost).append(name)
    return {name: _strided(tensors[name], owned[name], values, lost) for name in tensors}


def _owner(name, tensors):
    rest = name.lower().replace("strides", "").replace("stride", "").strip("_")
    whole = [one for one in tensors if rest.startswith(bare(one))]
    if whole:
        longest = max(len(bare(one)) for one in whole)
        whole = [one for one in whole if len(bare(one)) == longest]
        return whole[0] if len(whole) == 1 else None
    first = [one for one in tensors if bare(one)[0] == rest[:1]]
    return first[0] if len(first) == 1 else None


def _strided(tensor, names, values, lost):
    said = ", ".join(names)
    if not names:
        beside = f" (whose {' and '.join(lost)} is, the name does not say)" if lost else ""
        return Strided({}, f"the kernel takes no stride of {'it' if not beside else 'its own'}{beside}")
    axes = dict(enumerate(names[: tensor.dim()]))
    if len(names) > tensor.dim() or any(values[argument] != tensor.stride(axis) for axis, argument in axes.items()):
        given = ", ".join(f"{values[argument]}" for argument in names)
        return Strided({}, f"{said} = {given} are not its strides {tuple(tensor.stride())} in order")
    if len(axes) < tensor.dim():
        return Strided(axes, f"the kernel takes the stride of {len(axes)} of {tensor.dim()} axes, {said}")
    return Strided(axes)
