"""What a world answers to a `probe`, and three of the four worlds: the same text in Python, NumPy and torch's own spelling."""

from __future__ import annotations

import ast
import copy
import math
import warnings
from dataclasses import dataclass

import torch
import triton

# The dtypes that a value may have, by torch's name; Triton's own name of each is what dtype.name says.
DTYPES = {
    **{"bool": "int1", "int8": "int8", "int16": "int16", "int32": "int32", "int64": "int64"},
    **{"uint8": "uint8", "uint16": "uint16", "uint32": "uint32", "uint64": "uint64"},
    **{"float16": "fp16", "bfloat16": "bf16", "float32": "fp32", "float64": "fp64"},
    **{"float8_e4m3fn": "fp8e4nv", "float8_e5m2": "fp8e5"},
}
RANGES = {f"int{bits}": (-(2 ** (bits - 1)), 2 ** (bits - 1) - 1) for bits in (8, 16, 32, 64)}
RANGES |= {f"uint{bits}": (0, 2**bits - 1) for bits in (8, 16, 32, 64)}
RANGES["bool"] = (0, 1)


@dataclass(frozen=True)
class Answer:
    """What one world gave: `value` (a number, or nested lists), `dtype`, `shape`, or `error`, a sentence. `text` is what ran.

    `constant` is True for Triton's values that are known when the kernel compiles; they are Python's, and have no dtype yet.
    """

    text: str = ""
    value: object = None
    dtype: str = ""
    shape: tuple = ()
    error: str = ""
    constant: bool = False

    @property
    def ok(self):
        """True when there is a value."""
        return bool(self.dtype)

    @property
    def asked(self):
        return self.ok or bool(self.error)

    @property
    def kind(self):
        """The dtype in words."""
        if self.constant:
            return f"{self.dtype}, constexpr"
        return self.dtype + (f", shape {self.shape}" if len(self.shape) > 1 else "")

    @property
    def told(self):
        """The value or the error in words; "" when this world was not asked."""
        return shown(self.value, self.dtype) if self.ok else self.error

    def __repr__(self):
        return f"{self.told} {self.kind}".strip() if self.ok else f"refuses ({self.error})" if self.error else "not asked"


def shown(value, dtype="", listed=False):
    """A value in figures, thousands apart where it does not stand in a list. Of a long list the first eight."""
    if isinstance(value, list):
        dots = ", ..." if len(value) > 8 else ""
        return f"[{', '.join(shown(one, dtype, True) for one in value[:8])}{dots}]"
    if isinstance(value, float):
        if value == value and abs(value) < 1e9 and value == int(value):
            return f"{value:.0f}"
        return f"{value:.7g}" if dtype not in ("float64", "float") else f"{value:.12g}"
    return str(value) if isinstance(value, bool) or abs(value) < 10**5 or listed else f"{value:,}"


def same(a, b):
    """True when both Answers are values and these are equal, to float32's accuracy where they are floats; their dtypes may differ."""
    return a.ok and b.ok and a.shape == b.shape and _equal(a.value, b.value)


def _equal(a, b):
    if isinstance(a, list) or isinstance(b, list):
        return isinstance(a, list) and isinstance(b, list) and len(a) == len(b) and all(map(_equal, a, b))
    if a != a or b != b:
        return a != a and b != b
    return a == b or (isinstance(a, float) and isinstance(b, float) and math.isclose(a, b, rel_tol=1e-6))


def plain(tensor, dtype):
    return (tensor.float() if dtype.startswith("float8") else tensor).tolist()


def as_tensor(one, device):
    data = torch.tensor(one.value, dtype=torch.float32 if one.dtype.startswith("float8") else getattr(torch, one.dtype))
    return data.to(getattr(torch, one.dtype)).to(device).reshape(-1)


def clause(words):
    line = next(iter(words.strip().splitlines()), "").rstrip(".")
    return line if len(line) <= 140 else line[:137] + "..."


# ---- Python, NumPy, torch
_FUNCTIONS = {  # what `tl.NAME` is in each world; triton.cdiv is the one that wrappers call on the host
    "Python": ("math", "exp log sqrt floor ceil sin cos"),
    "NumPy": ("np", "maximum minimum abs exp log sqrt floor ceil sin cos where sum max min arange zeros full cumsum flip"),
    "torch": ("torch", "maximum minimum abs exp log sqrt floor ceil sin cos where sum arange zeros full cumsum flip sigmoid"),
}
_SPELLED = {world: {name: f"{module}.{name}" for name in names.split()} for world, (module, names) in _FUNCTIONS.items()}
_SPELLED["Python"] |= {"maximum": "max", "minimum": "min", "abs": "abs"}
for _spelled in _SPELLED.values():
    _spelled["cdiv"] = "triton.cdiv"
_PYTHON_TYPES = {"int": "int", "uint": "int", "float": "float", "bool": "bool", "bfloat": "float"}


def world_answer(world, statements, given, own=""):
    """The Answer of "Python", "NumPy" or "torch". `own` is the text that was given for it, if any; None: it is not asked."""
    if own is None:
        return Answer()
    try:
        statements = statements if own else [_Spelled(world).visit(copy.deepcopy(one)) for one in statements]
    except _NoWord as error:
        return Answer(error=str(error))
    text = "\n".join(ast.unparse(ast.fix_missing_locations(one)) for one in statements)
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # NumPy warns of overflow and division by zero, and goes on
            result = _elementwise(text, given) if world == "Python" else _run(text, {one.name: _value(world, one) for one in given})
        return _answer(text, result)
    except Exception as error:  # noqa: BLE001  what a world refuses is its answer
        return Answer(text, error=clause(str(error) if isinstance(error, _NoWord) else f"{type(error).__name__}: {error}"))


class _NoWord(Exception):
    """A world has no word for something."""


class _Spelled(ast.NodeTransformer):
    """Spells `tl.f(x)` and `x.to(tl.int8)` as the world does."""

    def __init__(self, world):
        self.world = world

    def visit_Call(self, node):
        cast = _cast_of(node)
        if cast is None:
            return self.generic_visit(node)
        operand, dtype = self.visit(cast[0]), cast[1]
        if self.world == "Python":
            return ast.Call(ast.Name(_PYTHON_TYPES[dtype.rstrip("0123456789_emfn")], ast.Load()), [operand], [])
        target = self._name(dtype)
        return ast.Call(ast.Attribute(operand, "astype" if self.world == "NumPy" else "to", ast.Load()), [target], [])

    def visit_Attribute(self, node):
        if isinstance(node.value, ast.Name) and node.value.id == "tl":
            return self._name(node.attr)
        return self.generic_visit(node)

    def _name(self, word):
        word = "bool" if word == "int1" else word
        if word in DTYPES and self.world != "Python":
            if self.world == "NumPy" and (word.startswith(("bfloat", "float8"))):
                raise _NoWord(f"NumPy has no {word}")
            return ast.parse(f"{'np' if self.world == 'NumPy' else 'torch'}.{word}", mode="eval").body
        if word not in _SPELLED[self.world]:
            raise _NoWord(f"no word for tl.{word}" + (" of one number" if self.world == "Python" else ""))
        return ast.parse(_SPELLED[self.world][word], mode="eval").body


def _cast_of(node):
    """(operand, dtype name) of `x.to(tl.int8)` and `tl.cast(x, tl.int8)`; None for another call."""
    if not isinstance(node.func, ast.Attribute) or node.func.attr not in ("to", "cast") or not node.args:
        return None
    in_module = isinstance(node.func.value, ast.Name) and node.func.value.id == "tl"
    target = node.args[-1]
    if isinstance(target, ast.Attribute) and isinstance(target.value, ast.Name) and target.value.id == "tl":
        name = "bool" if target.attr == "int1" else target.attr
        return (node.args[0] if in_module else node.func.value, name) if name in DTYPES else None
    return None


def _value(world, one):
    """A Given as NumPy or torch holds it: a tensor is theirs, anything else a Python number."""
    if one.kind != "tensor":
        return one.value
    if world == "torch":
        data = as_tensor(one, "cpu")
        return data if isinstance(one.value, list) else data.reshape(())
    import numpy

    if not hasattr(numpy, one.dtype) and one.dtype != "bool":
        raise _NoWord(f"NumPy has no {one.dtype}")
    return numpy.array(one.value, dtype=one.dtype)


def _elementwise(text, given):
    """Python's value for each element in turn; of scalars alone one value."""
    lengths = {len(one.value) for one in given if isinstance(one.value, list)}
    if len(lengths) > 1:
        raise _NoWord("Python has no blocks, and these differ in length")
    each = range(lengths.pop()) if lengths else [None]
    found = [_run(text, {one.name: one.value[i] if isinstance(one.value, list) else one.value for one in given}) for i in each]
    return found if lengths or each != [None] else found[0]


def _run(text, values):
    import numpy

    names = {"np": numpy, "torch": torch, "math": math, "triton": triton, **values}
    tree = ast.parse(text)
    last = ast.Expression(tree.body.pop().value)
    exec(compile(tree, "<probe>", "exec"), names)
    return eval(compile(last, "<probe>", "eval"), names)


def _answer(text, result):
    if isinstance(result, torch.Tensor):
        dtype = str(result.dtype).removeprefix("torch.")
        return Answer(text, plain(result, dtype), dtype, tuple(result.shape))
    if hasattr(result, "dtype") and hasattr(result, "tolist"):
        return Answer(text, result.tolist(), str(result.dtype), tuple(result.shape))
    kinds = {type(one) for one in (result if isinstance(result, list) else [result])}
    if kinds <= {bool, int, float}:
        shape = (len(result),) if isinstance(result, list) else ()
        return Answer(text, result, " or ".join(sorted(kind.__name__ for kind in kinds)), shape)
    raise _NoWord(f"the value is no number: {result!r:.60}")
