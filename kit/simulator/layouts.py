"""Who holds which element: Triton's layouts of blocks over warps, as the TTGIR names them.

A layout is linear over the bits of its indices, as in Triton's own LinearLayout: each bit of the register, lane and warp number moves
the element by a fixed vector, its basis, and vectors are combined by exclusive or. The forms read are those of Triton 3.6 to 3.9;
test_layouts.py compares them with the compiler's `to_linear_layout`.
"""

from __future__ import annotations

import functools
import re

import torch

from kit.simulator.program import Unsupported

IN_DIMS = ("register", "lane", "warp")


class Layouts:
    """The layouts of one TTGIR module. `num_warps` is the number of warps of a program."""

    def __init__(self, text, num_warps):
        self.aliases = dict(re.findall(r"^(#[\w$]+) = (#ttg\.\w+<\{.*\}>)$", text, re.M))
        self.num_warps = num_warps
        self.holders = functools.lru_cache(maxsize=None)(self._holders)
        self.owner = functools.lru_cache(maxsize=None)(self._owner)

    def _holders(self, encoding, shape):
        """(warps, *shape) booleans: which warp holds which element. A scalar, whose encoding is "", is held by all of them."""
        if not shape:
            return torch.ones(self.num_warps, dtype=torch.bool)
        found = bases(self.resolve(encoding), shape)
        inside = _span([basis for dim in ("register", "lane") for basis in found[dim]], shape)
        warps = torch.zeros((self.num_warps, *shape), dtype=torch.bool)
        for warp in range(self.num_warps):
            offset = [0] * len(shape)
            for bit, basis in enumerate(found["warp"]):
                if warp >> bit & 1:
                    offset = [a ^ b for a, b in zip(offset, basis)]
            warps[warp][tuple((inside ^ torch.tensor(offset)).T)] = True
        return warps

    def _owner(self, encoding, shape):
        """The warp that stores an element: of those that hold it the first, as the hardware's predicate of stores has it."""
        return self.holders(encoding, shape).to(torch.uint8).argmax(0)

    def resolve(self, encoding):
        """`encoding` with its names replaced by what they stand for."""
        while names := set(re.findall(r"#[\w$]+(?![\w.$])", encoding)) & self.aliases.keys():
            for name in names:
                encoding = re.sub(re.escape(name) + r"(?![\w.$])", lambda _, name=name: self.aliases[name], encoding)
        return encoding


def _span(vectors, shape):
    """(n, rank): every element that these bases reach."""
    reached = torch.zeros((1, len(shape)), dtype=torch.int64)
    for vector in vectors:
        reached = torch.cat([reached, reached ^ torch.tensor(vector)])
    return reached


def bases(encoding, shape):
    """{"register", "lane", "warp": [a vector for each bit]} of a layout on a block of `shape`. Raises Unsupported for an unknown one."""
    kind, inside = re.fullmatch(r"#ttg\.(\w+)<\{(.*)\}>", encoding.strip()).groups() if encoding.startswith("#ttg.") else (encoding, "")
    reader = {"blocked": _blocked, "slice": _slice, "linear": _linear, "nvidia_mma": _mma}.get(kind)
    if reader is None or re.search(r"CTASplitNum = \[[^\]]*[2-9]|CGALayout = \[\[", inside):
        raise Unsupported(f"the simulated GPU does not know which warp holds which element of the layout {encoding[:80]}.")
    return reader(inside, tuple(shape))


def _numbers(inside, key):
    return [int(n) for n in re.search(rf"\b{key} = \[([^\]]*)\]", inside)[1].split(",")]


def _blocked(inside, shape):
    order = _numbers(inside, "order")
    sizes = [_numbers(inside, key) for key in ("sizePerThread", "threadsPerWarp", "warpsPerCTA")]
    found, tile = _tiled([1] * len(shape), list(zip(IN_DIMS, sizes, [order] * 3)))
    return _fitted(found, tile, shape, order)


def _mma(inside, shape):
    version, rank = int(re.search(r"versionMajor = (\d+)", inside)[1]), len(shape)
    if version not in (2, 3) or rank not in (2, 3):
        raise Unsupported(f"the simulated GPU does not know which warp holds which element of a matrix product of version {version}.")
    # Of three axes the first counts the products of a batch; instrShape then begins with a 1.
    m, n = _numbers(inside, "instrShape")[rank - 2 :][:2]
    # A quad of lanes shares a row of the 8 x 8 tile, two elements a lane (PTX ISA, "Matrix fragments for mma.m16n8k16").
    row = list(range(rank))[::-1]
    column = [rank - 2, rank - 1, *range(rank - 2)]
    batch = [1] * (rank - 2)
    steps = [("register", [*batch, 1, 2], row), ("lane", [*batch, 8, 4], row), ("register", [*batch, m // 8, n // 8], column)]
    warp_order = column if version == 3 else row  # Hopper's warps run down the rows first
    found, tile = _tiled([1] * rank, [*steps, ("warp", _numbers(inside, "warpsPerCTA"), warp_order)])
    return _fitted(found, tile, shape, row)


def _linear(inside, shape):
    vectors = {dim: [_vector(v) for v in re.findall(r"\[([\d, ]+)\]", _list(inside, dim))] for dim in IN_DIMS}
    tile = [max([1, *(2 * v[axis] for dim in IN_DIMS for v in vectors[dim])]) for axis in range(len(shape))]
    tile = [1 << (n - 1).bit_length() for n in tile]
    return _fitted(vectors, tile, shape, range(len(shape)))


def _list(inside, key):
    return re.search(rf"\b{key} = \[((?:\[[^\]]*\](?:, )?)*)\]", inside)[1]


def _vector(text):
    return tuple(int(n) for n in text.split(","))


def _slice(inside, shape):
    """The parent's layout on a block of size 1 along the axis that was reduced: warps along it hold copies."""
    dim, parent = re.match(r"dim = (\d+), parent = (.*)$", inside).groups()
    dim = int(dim)
    found = bases(parent, (*shape[:dim], 1, *shape[dim:]))
    return {key: [(*v[:dim], *v[dim + 1 :]) for v in vectors] for key, vectors in found.items()}


def _tiled(tile, steps):
    """Bases of nested tiles, innermost first: each step is (in-dim, repeats along each axis, order of the axes)."""
    found = {dim: [] for dim in IN_DIMS}
    for dim, repeats, order in steps:
        for axis in order:
            while repeats[axis] > 1:
                found[dim].append(tuple(tile[axis] if i == axis else 0 for i in range(len(tile))))
                tile = [n * 2 if i == axis else n for i, n in enumerate(tile)]
                repeats = [n // 2 if i == axis else n for i, n in enumerate(repeats)]
    return found, tile


def _fitted(found, tile, shape, order):
    """Bases on a block of `shape`: a larger block repeats over registers; a smaller one is held several times over."""
    found = {dim: [tuple(x if x < n else 0 for x, n in zip(v, shape)) for v in vectors] for dim, vectors in found.items()}
    for axis in order:
        size = tile[axis]
        while size < shape[axis]:
            found["register"].append(tuple(size if i == axis else 0 for i in range(len(shape))))
            size *= 2
    return found
