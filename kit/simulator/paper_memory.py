"""The memory of a dry run: it notes each address that is not its argument's own, and hands every access on to be compared."""

from __future__ import annotations

import math

import torch

from kit.simulator.hazards import Programs
from kit.simulator.memory import Memory, extent
from kit.simulator.values import BY_SIZE, common_shape


class Waiting(Exception):
    """A loop polls memory that nobody changes: program after program, the same reads and no write."""

    def __init__(self, operation, programs):
        self.operation, self.programs = operation, programs


class PaperMemory(Memory):
    """Memory for a dry run: nothing that exists is written, and an address outside its own argument is noted.

    With `writes`, stores and atomics change a copy of a tensor's storage, so that a program finds what was written before it. A ghost
    reads as zeros where it holds integers, and as small positive numbers, the same at each address, where it holds floats. Lanes whose
    address wrapped are left out of the note: the wrap is the cause, and is told as one.
    """

    COPIED = 1 << 26  # bytes of a storage that is copied for `writes`
    PATIENCE = 1000  # polls of one address, without any write between, before a loop is called a wait

    def __init__(self, tensors, watch, footprints=None, writes=False):
        self.watch = watch
        self.footprints = footprints
        self.writes = writes
        self.outside = {}
        self.between = {}
        self.misaligned = {}
        self.unknown = {}
        self.op = None
        self.loops = 0
        self._polled = None
        self._polls = 0
        self._copied = set()
        super().__init__(tensors)
        self.views = {name: View(tensor) for name, tensor in tensors.items()}

    def load(self, address, mask, itemsize, access):
        inside, index, allocation = self._inside(address, mask, itemsize, access)
        self._record("read", address, inside, itemsize, None, access)
        self._poll(address, access)
        if allocation is None:
            return torch.zeros(inside.shape, dtype=BY_SIZE[itemsize])
        if allocation.storage is None:
            return self._ghostly(inside, index, itemsize, access)
        flat = allocation.elements(itemsize)
        return torch.where(inside, flat[torch.where(inside, index, 0)], 0)

    def store(self, address, mask, bits, access):
        inside, index, allocation = self._inside(address, mask, bits.element_size(), access)
        self._record("write", address, inside, bits.element_size(), bits, access)
        self._polled = None
        if self._writable(allocation):
            shape = common_shape(inside.shape, bits.shape)
            here = inside.expand(shape)
            allocation.elements(bits.element_size())[index.expand(shape)[here]] = bits.expand(shape)[here]

    def lanes(self, address, mask, itemsize, access):
        inside, index, allocation = self._inside(address, mask, itemsize, access)
        self._record("atomic", address, inside, itemsize, None, access)
        self._poll(address, access)
        if allocation is not None and allocation.storage is None:
            self.watch.ghostly(self.op, access.programs)
        return [(allocation, index, inside)] if self._writable(allocation) else []

    def _writable(self, allocation):
        """Whether writes go through; the first one gives the allocation a storage of its own."""
        if not self.writes or allocation is None or allocation.storage is None or allocation.size > self.COPIED:
            return False
        if id(allocation) not in self._copied:
            allocation.storage, allocation.views = allocation.storage.clone(), {}
            self._copied.add(id(allocation))
        return True

    def _ghostly(self, inside, index, itemsize, access):
        tensor = self.tensors[access.argument]
        if not tensor.dtype.is_floating_point or tensor.dtype.itemsize != itemsize:
            self.watch.ghostly(self.op, access.programs)
            return torch.zeros(inside.shape, dtype=BY_SIZE[itemsize])
        table = torch.linspace(0.25, 2.0, 64).to(tensor.dtype).view(BY_SIZE[itemsize])
        return torch.where(inside, table[index & 63], 0)

    def _record(self, kind, address, inside, itemsize, bits, access):
        if self.footprints is not None and access.argument in self.by_argument:
            self.footprints.record(self.op, kind, access, address, inside, itemsize, bits)

    def _poll(self, address, access):
        """Count how often a loop has asked for one address in vain."""
        if not self.loops:
            return
        same = self._polled is not None and self._polled[0] is self.op and torch.equal(self._polled[1], address)
        self._polls = self._polls + 1 if same else 0
        self._polled = (self.op, address)
        if self._polls > self.PATIENCE:
            raise Waiting(self.op, access.programs)

    def _inside(self, address, mask, itemsize, access):
        """(lanes that lie in the argument's allocation, their index there, the allocation); what lies elsewhere is noted."""
        pointer = access.pointer
        shape = address.shape if mask is None else common_shape(address.shape, mask.shape)
        wanted = torch.ones(shape, dtype=torch.bool) if mask is None else mask.expand(shape)
        if pointer is not None and pointer.exact is not None:
            start = self.tensors[access.argument].data_ptr() if access.argument else 0
            wrapped = self.watch.touches(access.programs, access.location, access.verb, pointer, mask, itemsize, start)
            wanted = wanted & ~wrapped
        allocation = self.by_argument.get(access.argument)
        if allocation is None:  # a pointer that was loaded from memory: its target is not known here
            self.unknown[id(access.location)] = access.location
            return wanted & False, address, None
        index = self._index(allocation, address, itemsize)
        inside = wanted & (address >= allocation.base) & (address + itemsize <= allocation.end)
        stray = wanted & ~inside
        if bool(stray.any()):
            self._note(self.outside, stray, address, itemsize, access)
        self._check_view(inside, address, itemsize, access)
        return inside, index, allocation

    def _check_view(self, inside, address, itemsize, access):
        if itemsize > 1:
            odd = inside & ((address & (itemsize - 1)) != 0)
            if bool(odd.any()):
                self._note(self.misaligned, odd, address, 1, access)
        foreign = self.views[access.argument].foreign(address)
        if foreign is not None:
            foreign = inside & foreign
            if bool(foreign.any()):
                self._note(self.between, foreign, address, itemsize, access)

    def _note(self, book, lanes, address, itemsize, access):
        offset = (address - self.tensors[access.argument].data_ptr()) // itemsize
        key = (id(access.location), access.verb, access.argument)
        frame = Programs(access.programs)
        self.watch.sight(book, key, frame, None, lanes, offset, offset, access.verb, access.location, access.argument)


class View:
    """The addresses that belong to a tensor: its elements, and neither the rest of its storage nor what lies between its strides."""

    def __init__(self, tensor):
        self.start = tensor.data_ptr()
        size = tensor.dtype.itemsize
        strides = tensor.stride() if callable(tensor.stride) else tensor.stride
        axes = [(n, s * size) for n, s in zip(tensor.shape, strides, strict=True) if n != 1 and s != 0]
        self.axes = sorted([*axes, (size, 1)], key=lambda axis: -axis[1])
        self.empty = 0 in tensor.shape
        self.span = 0 if self.empty else sum((n - 1) * s for n, s in self.axes) + 1
        self.dense = self.span == math.prod(n for n, _ in self.axes)
        base, size, _ = extent(tensor)
        self.whole = self.dense and self.start == base and self.span >= size
        # Axes that reach into each other, as a sliding window's do, have no unique index: there only the ends are checked.
        nested = all(s >= sum((m - 1) * t for m, t in self.axes[i + 1 :]) + 1 for i, (_, s) in enumerate(self.axes))
        self.checked = not self.dense and nested

    def foreign(self, address):
        """Which addresses of the storage are not of the view; None when all of it is."""
        if self.whole:
            return None
        left = address - self.start
        outside = (left < 0) | (left >= self.span)
        if self.checked:
            for n, stride in self.axes:
                at = torch.div(left, stride, rounding_mode="floor")
                outside = outside | (at >= n)
                left = left - at * stride
        return outside
