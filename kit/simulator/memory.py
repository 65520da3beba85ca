"""The memory of the simulated GPU: which addresses are there, and loads, stores and atomics on them.

Tensors on the simulated GPU are CPU tensors, and their addresses are the real ones. A launch may touch every tensor that is
alive in the process, as a kernel on a GPU may touch every allocation of its process; an address where no tensor lies is an
illegal access. Hardware maps memory in pages of 2 MiB, so there a small overrun stays silent that is an error here.
"""

from __future__ import annotations

import bisect
import ctypes
import functools
import gc
import linecache
from dataclasses import dataclass, field

import torch

from kit.errors import KitError
from kit.simulator.values import BY_SIZE, common_shape


class SimulatedFault(KitError, RuntimeError):
    """A kernel on the simulated GPU did what ends the CUDA context on a real one."""


class IllegalAccess(SimulatedFault):
    """A load or store at an address where nothing is allocated."""


class MisalignedAccess(SimulatedFault):
    """A load or store at an address that is no multiple of the element's size."""


@dataclass
class Allocation:
    """A stretch of memory: first address, size in bytes, its storage (None: a ghost), the arguments that point into it."""

    base: int
    size: int
    storage: torch.UntypedStorage | None
    names: list[str]
    views: dict = field(default_factory=dict)

    @property
    def end(self):
        return self.base + self.size

    def elements(self, itemsize):
        """The allocation as a flat tensor of integers of `itemsize` bytes."""
        if itemsize not in self.views:
            empty = torch.empty(0, dtype=BY_SIZE[itemsize])
            self.views[itemsize] = empty.set_(self.storage, 0, (self.size // itemsize,))
        return self.views[itemsize]


@dataclass
class Access:
    """What a fault is told with: the operation's name and place, the program of each row, the argument behind the pointer."""

    verb: str
    location: object
    programs: torch.Tensor
    argument: str | None
    pointer: object = None


class Memory:
    """The allocations that a launch can reach. `tensors` are its pointer arguments, {name: tensor or ghost}."""

    def __init__(self, tensors):
        keep_pages()
        self.tensors = tensors
        self.allocations = []
        self.by_argument = {}
        for name, tensor in tensors.items():
            self.by_argument[name] = self._add(tensor, name)

    def _add(self, tensor, name):
        base, size, storage = extent(tensor)
        at = bisect.bisect_left([a.base for a in self.allocations], base)
        if at < len(self.allocations) and self.allocations[at].base == base and self.allocations[at].size == size:
            found = self.allocations[at]
        else:
            found = Allocation(base, size, storage, [])
            self.allocations.insert(at, found)
        if name is not None and name not in found.names:
            found.names.append(name)
        return found

    def home(self, address):
        """The allocation that holds `address`, or None. Only when none is known are the process's live tensors searched."""
        for _ in range(2):
            for allocation in self.allocations:
                if allocation.base <= address < allocation.end:
                    return allocation
            if not self._search_live_tensors(address):
                return None
        return None

    def _search_live_tensors(self, address):
        for candidate in gc.get_objects():
            if issubclass(type(candidate), torch.Tensor) and candidate.device.type == "cpu" and candidate.layout == torch.strided:
                base, size, _ = extent(candidate)
                if base <= address < base + size:
                    self._add(candidate, None)
                    return True
        return False

    # ---- what kernels do
    def load(self, address, mask, itemsize, access):
        """Integers of `itemsize` bytes at `address`, zero where `mask` is False."""
        shape = address.shape if mask is None else common_shape(address.shape, mask.shape)
        result = None
        for allocation, index, here in self._resolve(address, mask, itemsize, access):
            if allocation.storage is None:
                continue  # a ghost holds nothing: its elements read as zero
            # index_select on one axis is several times as fast as an index in brackets.
            found = allocation.elements(itemsize).index_select(0, index.reshape(-1)).reshape(index.shape)
            if here is None:
                return found
            found = found * here  # zero in the other lanes; integers, so nothing is a NaN
            result = found if result is None else result + found
        return torch.zeros(shape, dtype=BY_SIZE[itemsize]) if result is None else result.expand(shape)

    def store(self, address, mask, bits, access):
        """Write `bits` at `address` where `mask` is True. Of several lanes at one address, some lane wins."""
        for allocation, index, here in self._resolve(address, mask, bits.element_size(), access):
            if allocation.storage is None:
                continue
            shape = common_shape(index.shape, bits.shape) if here is None else common_shape(index.shape, bits.shape, here.shape)
            index, values = index.expand(shape), bits.expand(shape)
            if here is None:
                index, values = index.reshape(-1), values.reshape(-1)
            else:
                here = here.expand(shape)
                index, values = index.masked_select(here), values.masked_select(here)
            allocation.elements(bits.element_size()).scatter_(0, index, values)

    def lanes(self, address, mask, itemsize, access):
        """[(allocation, element index, which lanes)] for atomics, on one-dimensional `address` and `mask`."""
        return self._resolve(address, mask, itemsize, access)

    # ---- addresses to allocations
    def _resolve(self, address, mask, itemsize, access):
        """[(allocation, element index, lanes it is for)]; lanes None means all of them. In other lanes the index is 0."""
        if mask is not None:
            if all_true(mask):
                mask = None
            elif not any_true(mask):
                return []
        own = self.by_argument.get(access.argument)
        if own is not None and own.base % itemsize == 0:
            # The usual case, in as few passes over the lanes as can be: all of them lie in the pointer's own argument.
            distance = address - own.base if mask is None else (address - own.base) * mask
            low, high = (int(x) for x in torch.aminmax(distance))
            if low >= 0 and high + itemsize <= own.size and not (low | high) % itemsize and not _odd_starts(address, itemsize):
                return [(own, _elements(distance, itemsize), mask)]
        if mask is None:
            low, high = (int(x) for x in torch.aminmax(address))
        else:
            wide = address.expand(common_shape(address.shape, mask.shape))
            low, high = (int(x) for x in torch.aminmax(wide.masked_select(mask)))
        self._check_alignment(address, mask, itemsize, low, high, access)
        home = self.home(low)
        if home is not None and high + itemsize <= home.end:
            return [(home, self._index(home, address, itemsize, mask), mask)]
        return self._scattered(address, mask, itemsize, access)

    def _scattered(self, address, mask, itemsize, access):
        """As _resolve, for addresses in several allocations, or in none."""
        left = torch.ones_like(address, dtype=torch.bool) if mask is None else mask.expand(common_shape(address.shape, mask.shape))
        wide = address.expand(left.shape)
        found = []
        while bool(left.any()):
            first = int(wide[left].min())
            home = self.home(first)
            if home is None or first + itemsize > home.end:
                self._fault(wide, left & (wide == first), itemsize, access)
            here = left & (wide >= home.base) & (wide + itemsize <= home.end)
            found.append((home, self._index(home, wide, itemsize, here), here))
            left = left & ~here
        return found

    def _index(self, allocation, address, itemsize, here=None):
        distance = address - allocation.base
        return _elements(distance if here is None else distance * here, itemsize)

    def _check_alignment(self, address, mask, itemsize, low, high, access):
        # Offsets are mostly whole elements, so that the lanes of one program share their alignment: only then all are looked at.
        if low % itemsize or high % itemsize or _odd_starts(address, itemsize):
            odd = (address & (itemsize - 1)) != 0
            if not bool((odd if mask is None else odd & mask).any()):
                return
            where = self._where(odd if mask is None else odd & mask, access)
            raise MisalignedAccess(
                f"misaligned address: {where}, and the address is no multiple of the element's {itemsize} bytes. (simulated)"
            )

    # ---- faults
    def _where(self, lanes, access):
        row = int(lanes.nonzero()[0][0])
        program = access.programs[min(row, access.programs.shape[0] - 1)].tolist()
        line = source_line(access.location)
        place = f"line {access.location.line}: {line}" if line else "at an unknown line"
        return f"{place}: program ({', '.join(map(str, program))}) {access.verb}"

    def _fault(self, address, lanes, itemsize, access):
        first = int(address[lanes].min())
        where = self._where(lanes, access)
        tensor = self.tensors.get(access.argument)
        if tensor is None:
            raise IllegalAccess(f"illegal memory access: {where} address {first:#x}, where nothing is allocated. (simulated)")
        offset = (first - tensor.data_ptr()) // itemsize
        size = describe(tensor)
        raise IllegalAccess(
            f"illegal memory access: {where} {access.argument} at element offset {offset:,}; {access.argument} is {size}, and nothing "
            f"is allocated there. (simulated)"
        )


@functools.cache
def keep_pages():
    """Ask the C library, once, to keep freed memory for the next batch instead of giving it back to the system.

    A launch makes and frees the same few blocks of a megabyte over and over, and fetching their pages anew takes longer than the
    arithmetic on them. The numbers are glibc's M_TRIM_THRESHOLD and M_MMAP_THRESHOLD (malloc.h; mallopt(3)); other
    libraries are left alone.
    """
    mallopt = getattr(ctypes.CDLL(None), "mallopt", None)
    if mallopt is not None:
        mallopt(-1, 128 << 20)
        mallopt(-3, 32 << 20)


def all_true(mask):
    """Whether every lane is True. As bytes: torch's `all` takes ten times as long."""
    return bool(mask.view(torch.uint8).amin())


def any_true(mask):
    """Whether any lane is True."""
    return bool(mask.view(torch.uint8).amax())


def _odd_starts(address, itemsize):
    """Whether the first lane of some program is no multiple of `itemsize`."""
    return itemsize > 1 and bool((address[(slice(None), *(0,) * (address.dim() - 1))] & (itemsize - 1)).any())


def _elements(distance, itemsize):
    return distance if itemsize == 1 else distance >> (itemsize.bit_length() - 1)


def extent(tensor):
    """(first address, bytes, storage) of the allocation behind a tensor; a ghost answers for itself."""
    if hasattr(tensor, "ghost_extent"):
        return (*tensor.ghost_extent(), None)
    if hasattr(tensor, "paper_extent"):
        return tensor.paper_extent()
    storage = tensor.untyped_storage()
    return storage.data_ptr(), storage.nbytes(), storage


def describe(tensor):
    """The tensor as a phrase: "1,024 elements of float32"."""
    n = 1
    for size in tensor.shape:
        n *= size
    return f"{n:,} element{'' if n == 1 else 's'} of {str(tensor.dtype).removeprefix('torch.')}"


def source_line(location):
    """The text of a Location's line, stripped; empty when its file cannot be read."""
    return linecache.getline(location.file, location.line).strip() if location.file else ""
