"""A value of the IR, held for all programs at once.

The data of a value of block shape (M, N) is a tensor of shape (programs, M, N). An axis along which a value is constant keeps
size 1 until an operation needs it in full, so `pid * stride` is one number a program and `tl.arange` one row for all of them.
"""

from __future__ import annotations

from dataclasses import dataclass

import torch

DTYPES = {
    "i1": torch.bool,
    "i8": torch.int8,
    "i16": torch.int16,
    "i32": torch.int32,
    "i64": torch.int64,
    "index": torch.int64,
    "f16": torch.float16,
    "bf16": torch.bfloat16,
    "f32": torch.float32,
    "f64": torch.float64,
    "f8E4M3FN": torch.float8_e4m3fn,
    "f8E5M2": torch.float8_e5m2,
}
BITS = {"i1": 1, "i8": 8, "i16": 16, "i32": 32, "i64": 64, "index": 64}
# Memory moves as plain integers of the element's size, so that every dtype takes the same path, fp8 included.
BY_SIZE = {1: torch.uint8, 2: torch.int16, 4: torch.int32, 8: torch.int64}


@dataclass(slots=True)
class Value:
    """`data` for all programs. For pointers `argument` names the launch argument they were derived from.

    `exact` is set only where int32 arithmetic has wrapped: the int64 the same arithmetic gives without wrapping, and
    `origin` is the operation that wrapped first.
    """

    data: torch.Tensor
    argument: str | None = None
    exact: torch.Tensor | None = None
    origin: object = None


def dtype_of(kind):
    """The torch dtype that holds an element of this Type; int64 for a pointer."""
    return torch.int64 if kind.is_pointer else DTYPES[kind.element]


def common_shape(*shapes):
    """The shape that tensors of these shapes broadcast to. torch.broadcast_shapes imports sympy, which takes a second."""
    rank = max(map(len, shapes))
    padded = [(1,) * (rank - len(shape)) + tuple(shape) for shape in shapes]
    return tuple(next((n for n in sizes if n != 1), 1) for sizes in zip(*padded, strict=True))


def in_full(data, shape):
    """`data` with every block axis at its full size. No memory is copied."""
    return data.expand(data.shape[0], *shape)


def take_rows(value, rows):
    """The value of the programs `rows` alone."""
    if type(value) is not Value:  # one that is described, and can be cut down without its data: lanes.py
        return value.rows(rows)
    if value.data.shape[0] == 1 and (value.exact is None or value.exact.shape[0] == 1):
        return value
    data = value.data if value.data.shape[0] == 1 else value.data[rows]
    exact = value.exact if value.exact is None or value.exact.shape[0] == 1 else value.exact[rows]
    return Value(data, value.argument, exact, value.origin)


def merge(n_programs, parts):
    """One value from [(rows, value)] that together cover `n_programs` programs."""
    if len(parts) == 1 and len(parts[0][0]) == n_programs:
        rows, value = parts[0]
        if bool((rows == torch.arange(n_programs)).all()):
            return value
    data = _merge(n_programs, [(rows, value.data) for rows, value in parts])
    arguments = {value.argument for _, value in parts}
    argument = arguments.pop() if len(arguments) == 1 else None
    wrapped = [value for _, value in parts if value.exact is not None]
    if not wrapped:
        return Value(data, argument)
    exact = _merge(n_programs, [(rows, value.data.to(torch.int64) if value.exact is None else value.exact) for rows, value in parts])
    return Value(data, argument, exact, wrapped[0].origin)


def _merge(n_programs, parts):
    shape = common_shape(*(data.shape[1:] for _, data in parts))
    merged = torch.empty((n_programs, *shape), dtype=parts[0][1].dtype)
    for rows, data in parts:
        merged[rows] = data.expand(len(rows), *shape)
    return merged
