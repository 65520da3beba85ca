"""`ghost`: a tensor with no memory behind it, for launches at full size on paper."""

from __future__ import annotations

import itertools
import math
import threading

import torch

from kit.errors import BadInput, WrongType, quoted

# Ghosts lie far above every address that a process can have (47 bits on x86-64), and 16 TiB apart, so that no offset that fits
# 32 bits leads from one to another.
_FIRST = 1 << 56
_APART = 1 << 44
_count = itertools.count()
_lock = threading.Lock()


class Ghost:
    """A tensor by its shape, strides, dtype and offset alone. Kernels can be compiled for it and run on paper with it."""

    def __init__(self, shape, dtype, strides, offset):
        self.shape = torch.Size(shape)
        self.dtype = dtype
        self._strides = strides
        self.storage_offset = offset
        with _lock:
            self._base = _FIRST + next(_count) * _APART

    def stride(self, axis=None):
        """The strides in elements, or that of one axis."""
        return self._strides if axis is None else self._strides[axis]

    def numel(self):
        """How many elements the shape has."""
        return math.prod(self.shape)

    def element_size(self):
        """Bytes an element."""
        return self.dtype.itemsize

    def data_ptr(self):
        """The address of its first element; its alignment is that of the offset."""
        return self._base + self.storage_offset * self.dtype.itemsize

    def ghost_extent(self):
        """(first address, bytes) of the memory that would be behind it, from the start of its storage."""
        if self.numel() == 0:
            return self._base, 0
        last = self.storage_offset + sum((n - 1) * s for n, s in zip(self.shape, self._strides, strict=True))
        return self._base, (last + 1) * self.dtype.itemsize

    @property
    def nbytes(self):
        """Bytes that a real tensor of this shape would take."""
        return self.numel() * self.dtype.itemsize

    def __repr__(self):
        kind = str(self.dtype).removeprefix("torch.")
        return f"ghost {tuple(self.shape)} {kind}, {self.nbytes / 1e9:.3g} GB if it were real"


def ghost(shape, dtype, strides=None, offset=0):
    """Return a Ghost of `shape` and torch `dtype`. `strides` (elements, default row-major) and `offset` (elements) make it a view.

    Raises BadInput for a negative size, strides of another length, or a size over 2^63 bytes.
    """
    shape = (shape,) if isinstance(shape, int) else shape
    if not isinstance(shape, (tuple, list)) or any(isinstance(n, bool) or not isinstance(n, int) or n < 0 for n in shape):
        raise BadInput(f"ghost: shape must be whole numbers, zero or more; got {quoted(shape)}.")
    if not isinstance(dtype, torch.dtype):
        raise WrongType(f"ghost: dtype must be a torch dtype such as torch.bfloat16; got {quoted(dtype)}.")
    if isinstance(offset, bool) or not isinstance(offset, int) or offset < 0:
        raise BadInput(f"ghost: offset must be a number of elements, zero or more; got {quoted(offset)}.")
    if strides is None:
        strides = tuple(math.prod(max(n, 1) for n in shape[i + 1 :]) for i in range(len(shape)))
    strides = tuple(strides) if isinstance(strides, (tuple, list)) else strides
    if not isinstance(strides, tuple) or len(strides) != len(shape) or any(not isinstance(s, int) or s < 0 for s in strides):
        raise BadInput(
            f"ghost: strides must be one number of elements, zero or more, for each of the {len(shape)} axes; got {quoted(strides)}."
        )
    last = offset + sum((n - 1) * s for n, s in zip(shape, strides, strict=True) if n)
    if (last + 1) * dtype.itemsize >= _APART:
        raise BadInput(
            f"ghost: at most 16 TiB; {quoted(tuple(shape))} with strides {strides} spans {(last + 1) * dtype.itemsize / 2**40:.3g} TiB."
        )
    return Ghost(shape, dtype, strides, offset)
