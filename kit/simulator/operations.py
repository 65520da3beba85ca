"""One table: the operation's name in the IR -> what it computes, for all programs at once.

Each entry takes (executor, frame, operation) and returns the operation's results. Element-wise ones come from arithmetic.py.
"""

from __future__ import annotations

import re

import torch

from kit.simulator import arithmetic, collective, descriptors
from kit.simulator.atomics import atomic_cas, atomic_rmw, note_wait, wrote
from kit.simulator.fusion import fusions
from kit.simulator.memory import Access, SimulatedFault, source_line
from kit.simulator.values import BY_SIZE, DTYPES, Value, dtype_of, in_full


class DeviceAssert(SimulatedFault):
    """A `tl.device_assert`, or a check that `debug=True` put into the kernel, failed."""


TABLE = {}


def operation(*names):
    def register(function):
        for name in names:
            TABLE[name] = function
        return function

    return register


def _elementwise(function):
    def run(executor, frame, op):
        return [Value(function(*(frame[number].data for number in op.operands)))]

    return run


TABLE |= {name: _elementwise(function) for name, function in (arithmetic.BINARY | arithmetic.UNARY).items()}
TABLE["math.fma"] = _elementwise(arithmetic.fused)


def _sum(plain, sign):
    """A sum, or with sign -1 a difference. Where the compiler fuses a product into it, one fma."""

    def run(executor, frame, op):
        fusion = fusions(executor.program).get(id(op))
        if fusion is None:
            return [Value(plain(*(frame[number].data for number in op.operands)))]
        a, b = (_along_path(executor, frame, number, fusion) for number in fusion.product.operands)
        other = frame[op.operands[1 - fusion.side]].data
        flips = fusion.negated != (sign < 0 and fusion.side == 1)
        return [Value(arithmetic.fused(-a if flips else a, b, -other if sign < 0 and fusion.side == 0 else other))]

    return run


def _along_path(executor, frame, number, fusion):
    """A factor of the product, moved as the product is moved on its way to the sum."""
    value = frame[number]
    kind = executor.kind(number)
    for op in fusion.path:
        if op.name == "arith.negf":
            continue
        value = Value(RESHAPED[op.name](value.data, kind.shape, op))
        kind = op.types[0]
    return value.data


TABLE["arith.addf"], TABLE["arith.subf"] = _sum(torch.add, 1), _sum(torch.sub, -1)
for _name in ("gpu.barrier", "ttg.barrier", "tt.debug_barrier", "llvm.intr.assume"):
    TABLE[_name] = lambda executor, frame, op: []  # every program's values are already in step


# ---- constants, program ids, shapes
@operation("arith.constant")
def constant(executor, frame, op):
    key = id(op)
    if key not in executor.constants:
        executor.constants[key] = Value(_constant(op.text.split(" {")[0].strip(), op.types[0]))
    return [executor.constants[key]]


def _constant(text, kind):
    dtype = dtype_of(kind)
    ones = (1,) * (1 + len(kind.shape))
    if text.startswith("dense<"):
        text = text[len("dense<") : -1]
    if text.startswith("["):
        numbers = [_number(piece, kind.element) for piece in re.findall(r"[^\[\],\s]+", text)]
        return torch.tensor(numbers, dtype=dtype).reshape(1, *kind.shape)
    return torch.full(ones, _number(text, kind.element), dtype=dtype)


def _number(text, element):
    if text in ("true", "false"):
        return text == "true"
    if element[0] in "fb" and text.startswith("0x"):  # a float given by its bits: inf, nan
        dtype = DTYPES[element]
        pattern = int(text, 16)
        pattern -= (pattern >> (8 * dtype.itemsize - 1)) << (8 * dtype.itemsize)
        return (
            torch.tensor([pattern], dtype=BY_SIZE[dtype.itemsize] if dtype.itemsize > 1 else torch.int8)
            .view(dtype)
            .to(torch.float64)
            .item()
        )
    return float(text) if element[0] in "fb" else int(text, 0)


@operation("ub.poison")
def poison(executor, frame, op):
    """A value that the compiler leaves undefined. Here: NaN, or for integers a number that stands out."""
    kind = op.types[0]
    dtype = dtype_of(kind)
    fill = float("nan") if dtype.is_floating_point else (0 if dtype in (torch.bool, torch.int8) else 0x5AD)
    return [Value(torch.full((1,) * (1 + len(kind.shape)), fill, dtype=dtype))]


@operation("tt.get_program_id")
def get_program_id(executor, frame, op):
    return [Value(frame.programs[:, "xyz".index(op.text.strip()[0])].to(torch.int32))]


@operation("tt.get_num_programs")
def get_num_programs(executor, frame, op):
    return [Value(torch.tensor([executor.grid["xyz".index(op.text.strip()[0])]], dtype=torch.int32))]


@operation("tt.make_range")
def make_range(executor, frame, op):
    return [Value(torch.arange(int(op.attribute("start")), int(op.attribute("end")), dtype=torch.int32)[None])]


RESHAPED = {
    "tt.splat": lambda data, shape, op: data.reshape(-1, *(1,) * len(op.types[0].shape)),
    "tt.unsplat": lambda data, shape, op: data.reshape(-1),
    "tt.expand_dims": lambda data, shape, op: data.unsqueeze(1 + int(op.attribute("axis"))),
    "tt.broadcast": lambda data, shape, op: data,
    "tt.reshape": lambda data, shape, op: in_full(data, shape).reshape(-1, *op.types[0].shape),
    "tt.trans": lambda data, shape, op: data.permute(0, *(1 + int(i) for i in _integers(op.text, "order"))),
    "ttg.convert_layout": lambda data, shape, op: data,
}


def _reshaped(function):
    """An operation that moves elements only: pointers keep the argument they came from."""

    def run(executor, frame, op):
        value = frame[op.operands[0]]
        return [Value(function(value.data, executor.kind(op.operands[0]).shape, op), value.argument)]

    return run


TABLE |= {name: _reshaped(function) for name, function in RESHAPED.items()}


def _integers(text, key):
    return re.search(rf"{key} = array<i32: ([^>]*)>", text)[1].split(",")


@operation("tt.join")
def join(executor, frame, op):
    shape = executor.kind(op.operands[0]).shape
    both = torch.broadcast_tensors(*(in_full(frame[number].data, shape) for number in op.operands))
    return [Value(torch.stack(both, dim=-1))]


@operation("tt.split")
def split(executor, frame, op):
    data = in_full(frame[op.operands[0]].data, executor.kind(op.operands[0]).shape)
    return [Value(data[..., 0]), Value(data[..., 1])]


@operation("tt.cat")
def cat(executor, frame, op):
    parts = [in_full(frame[number].data, executor.kind(number).shape) for number in op.operands]
    rows = max(part.shape[0] for part in parts)
    return [Value(torch.cat([part.expand(rows, *part.shape[1:]) for part in parts], dim=1))]


# ---- comparisons, choices, casts
@operation("arith.cmpi")
def cmpi(executor, frame, op):
    compare = arithmetic.COMPARE_INTEGERS[op.text.split(",")[0].strip()]
    return [Value(compare(*(frame[number].data for number in op.operands)))]


@operation("arith.cmpf")
def cmpf(executor, frame, op):
    compare = arithmetic.COMPARE_FLOATS[op.text.split(",")[0].strip()]
    return [Value(compare(*(frame[number].data for number in op.operands)))]


@operation("arith.select")
def select(executor, frame, op):
    condition, a, b = (frame[number] for number in op.operands)
    flags = condition.data
    if flags.dim() < a.data.dim():  # a scalar condition chooses whole blocks
        flags = flags.reshape(-1, *(1,) * (a.data.dim() - 1))
    argument = a.argument
    if a.argument != b.argument:  # pointers into two arguments: all the same way, or none that could be named
        argument = a.argument if bool(flags.all()) else None if bool(flags.any()) else b.argument
    return [Value(torch.where(flags, a.data, b.data), argument)]


@operation("tt.clampf")
def clampf(executor, frame, op):
    x, low, high = (frame[number].data for number in op.operands)
    smaller = torch.fmin if "propagateNan = none" in op.text else torch.minimum
    larger = torch.fmax if "propagateNan = none" in op.text else torch.maximum
    return [Value(smaller(larger(x, low), high))]


def _cast(convert):
    def run(executor, frame, op):
        value = frame[op.operands[0]]
        return [Value(convert(value.data, dtype_of(op.types[0])), value.argument)]

    return run


def _sign_extend(data, dtype):
    return -data.to(dtype) if data.dtype is torch.bool else data.to(dtype)


def _truncate(data, dtype):
    return (data & 1).to(torch.bool) if dtype is torch.bool else data.to(dtype)


def _unsigned_to_float(data, dtype):
    if data.element_size() < 8:
        return arithmetic.unsigned(data).to(torch.float64).to(dtype)
    high = data.to(torch.float64) + torch.where(data < 0, 2.0**64, 0.0)
    return high.to(dtype)


def _same_bits(data, dtype):
    return data if data.dtype is dtype else data.to(torch.uint8) if data.dtype is torch.bool else data.view(dtype)


TABLE["arith.extsi"] = _cast(_sign_extend)
TABLE["arith.extui"] = _cast(lambda data, dtype: arithmetic.unsigned(data).to(dtype))
TABLE["arith.trunci"] = _cast(_truncate)
TABLE["arith.index_cast"] = _cast(_sign_extend)
TABLE["arith.sitofp"] = _cast(
    lambda data, dtype: _sign_extend(data, torch.int64).to(torch.float64 if dtype.itemsize < 8 else dtype).to(dtype)
)
TABLE["arith.uitofp"] = _cast(_unsigned_to_float)
TABLE["arith.fptosi"] = _cast(lambda data, dtype: arithmetic.float_to_integer(data, dtype, signed=True))
TABLE["arith.fptoui"] = _cast(lambda data, dtype: arithmetic.float_to_integer(data, dtype, signed=False))
for _name in ("arith.extf", "arith.truncf", "tt.fp_to_fp"):
    TABLE[_name] = _cast(arithmetic.to_float)
for _name in ("arith.bitcast", "tt.bitcast", "tt.ptr_to_int", "tt.int_to_ptr"):
    TABLE[_name] = _cast(_same_bits)


# ---- memory
@operation("tt.addptr")
def addptr(executor, frame, op):
    pointer, offset = (frame[number] for number in op.operands)
    size = element_size(op.types[0])
    return [Value(torch.add(pointer.data, offset.data.to(torch.int64), alpha=size), pointer.argument)]


def element_size(kind):
    """Bytes of the element that a pointer type points to; a bool takes one."""
    return 8 if kind.pointee.startswith(("ptr", "!tt.ptr")) else DTYPES[kind.pointee].itemsize


def _access(frame, op, verb, pointer):
    return Access(verb, op.location, frame.programs, pointer.argument, pointer)


@operation("tt.load")
def load(executor, frame, op):
    pointer = frame[op.operands[0]]
    mask = frame[op.operands[1]].data if len(op.operands) > 1 else None
    kind = op.types[0]
    dtype = dtype_of(kind)
    bits = executor.memory.load(pointer.data, mask, dtype.itemsize, _access(frame, op, "reads", pointer))
    data = bits != 0 if dtype is torch.bool else bits.view(dtype)
    if len(op.operands) > 2:
        data = torch.where(mask, data, frame[op.operands[2]].data)
    if "isVolatile" in op.text:
        note_wait(executor, frame, op, data)
    return [Value(data)]


@operation("tt.store")
def store(executor, frame, op):
    pointer, value = (frame[number] for number in op.operands[:2])
    mask = frame[op.operands[2]].data if len(op.operands) > 2 else None
    data = value.data
    bits = data.to(torch.uint8) if data.dtype is torch.bool else data.contiguous().view(BY_SIZE[data.element_size()])
    executor.memory.store(pointer.data, mask, bits, _access(frame, op, "writes", pointer))
    wrote(executor)
    return []


for _name, _function in descriptors.OPERATIONS.items():
    TABLE[_name] = _function


@operation("tt.atomic_rmw")
def rmw(executor, frame, op):
    return [Value(atomic_rmw(executor, frame, op, _access(frame, op, "updates", frame[op.operands[0]])))]


@operation("tt.atomic_cas")
def cas(executor, frame, op):
    return [Value(atomic_cas(executor, frame, op, _access(frame, op, "updates", frame[op.operands[0]])))]


# ---- operations across a block
@operation("tt.reduce")
def reduce(executor, frame, op):
    return collective.reduce(executor, frame, op)


@operation("tt.scan")
def scan(executor, frame, op):
    return collective.scan(executor, frame, op)


@operation("tt.dot")
def dot(executor, frame, op):
    a, b, acc = (in_full(frame[number].data, executor.kind(number).shape) for number in op.operands)
    return [Value(collective.dot(a, b, acc, op.attribute("inputPrecision") or "ieee"))]


@operation("tt.gather")
def gather(executor, frame, op):
    source, index = (in_full(frame[number].data, executor.kind(number).shape) for number in op.operands)
    rows = max(source.shape[0], index.shape[0])
    source, index = source.expand(rows, *source.shape[1:]), index.expand(rows, *index.shape[1:])
    return [Value(torch.gather(source, 1 + int(op.attribute("axis")), index.to(torch.int64)))]


@operation("tt.histogram")
def histogram(executor, frame, op):
    data = in_full(frame[op.operands[0]].data, executor.kind(op.operands[0]).shape).to(torch.int64)
    (n_bins,) = op.types[0].shape
    counted = (data >= 0) & (data < n_bins)
    if len(op.operands) > 1:
        counted = counted & frame[op.operands[1]].data
    counts = torch.zeros((data.shape[0], n_bins), dtype=torch.int32)
    return [Value(counts.scatter_add(1, data.clamp(0, n_bins - 1), counted.expand(data.shape).to(torch.int32)))]


# ---- functions of libraries, asserts, prints
@operation("tt.extern_elementwise")
def extern_elementwise(executor, frame, op):
    function = arithmetic.libdevice(op.attribute("symbol"))
    return [Value(function(*(frame[number].data for number in op.operands)))]


@operation("tt.assert")
def assert_(executor, frame, op):
    holds = frame[op.operands[0]].data
    if len(op.operands) > 1:
        holds = holds | ~frame[op.operands[1]].data
    if bool(holds.all()):
        return []
    row = int((~holds).nonzero()[0][0])
    program = frame.programs[min(row, frame.n - 1)].tolist()
    message = re.search(r'"((?:[^"\\]|\\.)*)"', op.text)[1]
    line = source_line(op.location)
    raise DeviceAssert(
        f"device-side assert: {message}; line {op.location.line}: {line}; program ({', '.join(map(str, program))}). (simulated)"
    )


MOST_PRINTED = 1024  # a real kernel's print buffer is bounded too


@operation("tt.print")
def print_(executor, frame, op):
    prefix = re.search(r'"((?:[^"\\]|\\.)*)"', op.text)[1].strip().rstrip(": ")
    lines = []
    for number in op.operands or [None]:
        kind = executor.kind(number) if number is not None else None
        data = in_full(frame[number].data, kind.shape).expand(frame.n, *kind.shape) if kind else torch.zeros(frame.n)
        for row in range(frame.n):
            program = tuple(frame.programs[row].tolist())
            for index in (
                torch.cartesian_prod(*map(torch.arange, kind.shape)).reshape(-1, len(kind.shape)).tolist() if kind and kind.shape else [[]]
            ):
                if len(lines) == MOST_PRINTED:
                    print("\n".join(lines) + f"\n... only the first {MOST_PRINTED} lines are shown")
                    return []
                value = f": {data[(row, *index)].item()}" if kind else ""
                lines.append(f"pid {program} idx ({', '.join(map(str, index))}) {prefix}{value}")
    print("\n".join(lines))
    return []
