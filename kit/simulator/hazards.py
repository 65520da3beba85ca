"""What a dry run watches for while a kernel runs on paper: integers that wrapped, and addresses that left their argument.

Every integer operation narrower than 64 bits is computed a second time without wrapping. Where the two differ the exact value
travels along with the wrapped one, through casts, sums, products and shapes, until something depends on it: an address that is
read or written, a comparison, a branch. There, and only there, a wrap is an error: so `(pid * stride).to(tl.int64)` is found
although its last operation is 64 bits wide, and a sum that wraps and wraps back is not. Bitwise operations, shifts, divisions
and remainders begin anew, since hashes and random numbers wrap on purpose and end in one of these.
"""

from __future__ import annotations

from dataclasses import dataclass

import torch

from kit.simulator import arithmetic
from kit.simulator.operations import element_size
from kit.simulator.values import Value

_ARITHMETIC = {"arith.addi": torch.add, "arith.subi": torch.sub, "arith.muli": torch.mul}
# Operations that hand an exact value on: run once more on exact operands, they give the exact result.
_CARRY = {
    "tt.splat",
    "tt.unsplat",
    "tt.expand_dims",
    "tt.broadcast",
    "tt.reshape",
    "tt.trans",
    "tt.join",
    "tt.split",
    "tt.cat",
    "ttg.convert_layout",
    "tt.ptr_to_int",
    "tt.int_to_ptr",
    "arith.select",
    "arith.minsi",
    "arith.maxsi",
}
_CASTS = {"arith.extsi", "arith.extui", "arith.trunci", "arith.index_cast"}


@dataclass
class Sighting:
    """One hazard at one place: the earliest program of those that ran, and there the true value and the one it became."""

    operation: object
    number: int
    program: tuple[int, int, int]
    true: int
    wrapped: int
    reaches: str = ""
    sink: object = None
    argument: str | None = None


class Watch:
    """Collects sightings: `wraps` by operation, `reached` by (operation that wrapped, where it matters); assertions that `failed`."""

    def __init__(self, grid):
        self.grid = grid
        self.wraps = {}
        self.reached = {}
        self.failed = {}

    # ---- called by the executor after each operation
    def after(self, executor, frame, op, results):
        if op.name in _ARITHMETIC:
            return [self._arithmetic(executor, frame, op, results[0])]
        operands = [frame[number] for number in op.operands]
        if all(value.exact is None for value in operands):
            # A cast that narrows can lose bits of a value that never wrapped.
            return [self._narrowed(executor, frame, op, operands[0], results[0])] if op.name == "arith.trunci" else results
        if op.name == "tt.addptr":
            return [self._addptr(operands, results[0], element_size(op.types[0]))]
        if op.name in _CASTS:
            return [self._cast(executor, frame, op, operands[0], results[0])]
        if op.name in _CARRY:
            return self._carried(executor, frame, op, operands, results)
        if op.name == "arith.cmpi":
            self._comparison(executor, frame, op, operands, results[0])
        return results

    def _arithmetic(self, executor, frame, op, result):
        a, b = (frame[number] for number in op.operands)
        width = arithmetic.bits_of(result.data)
        if width == 1 or (width == 64 and a.exact is None and b.exact is None):
            return result
        exact = _ARITHMETIC[op.name](_exact(a), _exact(b))
        return self._keep(frame, op, result, exact, a.origin or b.origin)

    def _narrowed(self, executor, frame, op, operand, result):
        if result.data.dtype is torch.bool:
            return result
        return self._keep(frame, op, result, operand.data.to(torch.int64), None)

    def _cast(self, executor, frame, op, operand, result):
        if result.data.dtype is torch.bool:
            return result
        return self._keep(frame, op, result, operand.exact, operand.origin)

    def _keep(self, frame, op, result, exact, origin):
        """`result` with its exact value, where the two differ."""
        differs = exact != result.data
        if not bool(differs.any()):
            return result
        if origin is None:
            self.sight(self.wraps, id(op), frame, op, differs, exact, result.data)
        return Value(result.data, result.argument, exact, origin or op)

    def _addptr(self, operands, result, size):
        pointer, offset = operands
        exact = torch.add(_exact(pointer), _exact(offset), alpha=size)
        if bool((exact == result.data).all()):
            return result
        return Value(result.data, result.argument, exact, pointer.origin or offset.origin)

    def _carried(self, executor, frame, op, operands, results):
        inner = _Stand({number: Value(_exact(v), v.argument) for number, v in zip(op.operands, operands, strict=True)}, frame)
        origin = next(value.origin for value in operands if value.exact is not None)
        exacts = executor.table[op.name](executor, inner, op)
        return [
            Value(result.data, result.argument, exact.data, origin) if bool((exact.data != result.data).any()) else result
            for result, exact in zip(results, exacts, strict=True)
        ]

    def _comparison(self, executor, frame, op, operands, result):
        compare = arithmetic.COMPARE_INTEGERS[op.text.split(",")[0].strip()]
        wide = [_exact(value) for value in operands]
        if op.text.strip().startswith("u"):
            wide = [value.data if value.exact is None else exact for value, exact in zip(operands, wide, strict=True)]
            wide = [arithmetic.unsigned(w) if w.element_size() < 8 else w for w in wide]
        differs = compare(*wide) != result.data
        if bool(differs.any()):
            value = next(value for value in operands if value.exact is not None)
            self._reached(frame, op, value, differs, "a comparison, which it decides wrongly")

    def ghostly(self, op, programs):
        """An integer was read from a ghost, which holds none."""

    # ---- called where control flow or memory depends on a value
    def reaches(self, executor, frame, op, value, what):
        self._reached(frame, op, value, value.exact != value.data, what)

    def touches(self, programs, op_location, verb, pointer, mask, itemsize, start):
        """A load, store or atomic through a pointer whose offset wrapped; `mask` marks the real lanes. Told in elements from `start`."""
        differs = pointer.exact != pointer.data
        if mask is not None:
            differs = differs & mask
        if bool(differs.any()):
            key = (id(pointer.origin), id(op_location), verb)
            what = f"the address at which it {verb} {pointer.argument or 'memory'}"
            frame = Programs(programs)
            true, wrapped = ((address - start) // itemsize for address in (pointer.exact, pointer.data))
            self.sight(self.reached, key, frame, pointer.origin, differs, true, wrapped, what, op_location, pointer.argument)
        return differs

    def _reached(self, frame, op, value, differs, what):
        key = (id(value.origin), id(op), what)
        self.sight(self.reached, key, frame, value.origin, differs, value.exact, value.data, what, op.location)

    def sight(self, book, key, frame, op, where, exact, data, reaches="", sink=None, argument=None):
        """Note in `book` the first program and lane at which `where` holds, unless an earlier one is noted."""
        exact, data, where = torch.broadcast_tensors(exact, data.to(torch.int64), where)
        rows = where.reshape(where.shape[0], -1).any(1).nonzero()[:, 0]
        programs = frame.programs[rows] if where.shape[0] > 1 else frame.programs
        numbers = (programs[:, 2] * self.grid[1] + programs[:, 1]) * self.grid[0] + programs[:, 0]
        first = int(numbers.argmin())
        number = int(numbers[first])
        if key in book and book[key].number <= number:
            return
        row = int(rows[first]) if where.shape[0] > 1 else 0
        lane = int(where[row].reshape(-1).nonzero()[0][0])
        true, wrapped = (int(t[row].reshape(-1)[lane]) for t in (exact, data))
        book[key] = Sighting(op, number, tuple(programs[first, :3].tolist()), true, wrapped, reaches, sink, argument)


def _exact(value):
    """The value in 64 bits, not wrapped; a condition stays one."""
    if value.exact is not None:
        return value.exact
    return value.data if value.data.dtype is torch.bool else value.data.to(torch.int64)


class _Stand:
    """A frame whose operands are replaced by their exact values."""

    def __init__(self, values, frame):
        self.values, self.programs, self.n = values, frame.programs, frame.n

    def __getitem__(self, number):
        return self.values[number]


class Programs:
    """A frame of which only the program ids are known."""

    def __init__(self, programs):
        self.programs = programs
