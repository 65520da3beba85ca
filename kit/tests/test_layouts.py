"""Who holds which element, against the compiler's own layouts."""

from __future__ import annotations

import inspect
import random

import pytest
import torch
from triton._C.libtriton import gluon_ir, ir
from triton.experimental.gluon.language import _layouts as gluon

from kit.simulator.layouts import IN_DIMS, Layouts, bases
from kit.simulator.program import Unsupported


@pytest.fixture(scope="module")
def builder():
    context = ir.context()
    ir.load_dialects(context)
    one = gluon_ir.GluonOpBuilder(context)
    return one, context


def powers(total, rank, rng):
    """`rank` powers of two whose product is `total`."""
    sizes = [1] * rank
    while total > 1:
        sizes[rng.randrange(rank)] *= 2
        total //= 2
    return sizes


def blocked(rng, rank, warps):
    order = rng.sample(range(rank), rank)
    return powers(rng.choice([1, 2, 4, 8, 16]), rank, rng), powers(32, rank, rng), powers(warps, rank, rng), order


def text_of(size, threads, warps, order):
    return f"#ttg.blocked<{{sizePerThread = {size}, threadsPerWarp = {threads}, warpsPerCTA = {warps}, order = {order}}}>"


def compilers(builder, layout, shape):
    """The bases that the compiler gives for a gluon layout."""
    found = builder[0].to_linear_layout(layout._to_ir(builder[0]), shape)
    return {"register": found.reg_bases, "lane": found.lane_bases, "warp": found.warp_bases}


def same(mine, theirs):
    """Equal bases; registers that hold nothing new may be listed or left out."""
    for dim in IN_DIMS:
        a, b = ([list(v) for v in vectors] for vectors in (mine[dim], theirs[dim]))
        if dim == "register":
            a, b = ([v for v in vectors if any(v)] for vectors in (a, b))
        if a != b:
            return False
    return True


@pytest.mark.parametrize("seed", range(40))
def test_blocked_and_sliced_layouts_are_the_compilers(builder, seed):
    rng = random.Random(seed)
    rank, warps = rng.choice([1, 2, 2, 3]), rng.choice([1, 2, 4, 8, 16])
    parts = blocked(rng, rank, warps)
    shape = [rng.choice([1, 2, 8, 16, 64, 128]) for _ in range(rank)]
    theirs = gluon.BlockedLayout(*parts)
    assert same(bases(text_of(*parts), shape), compilers(builder, theirs, shape)), (parts, shape)
    if rank > 1:
        dim = rng.randrange(rank)
        shape.pop(dim)
        mine = f"#ttg.slice<{{dim = {dim}, parent = {text_of(*parts)}}}>"
        assert same(bases(mine, shape), compilers(builder, gluon.SliceLayout(dim, theirs), shape)), (dim, parts, shape)


@pytest.mark.parametrize(
    ("version", "warps", "instruction", "shape"),
    [
        ([2, 0], [4, 1], [16, 8], [64, 64]),
        ([2, 0], [2, 2], [16, 8], [128, 32]),
        ([2, 0], [1, 8], [16, 8], [16, 16]),
        ([2, 0], [1, 2, 2], [1, 16, 8], [4, 32, 32]),
        ([2, 0], [4, 1, 1], [1, 16, 8], [8, 32, 16]),
        ([3, 0], [4, 1], [16, 64, 16], [64, 64]),
        ([3, 0], [4, 2], [16, 32, 16], [128, 64]),
        ([3, 0], [8, 1], [16, 16, 16], [256, 128]),
    ],
)
def test_layouts_of_matrix_products_are_the_compilers(builder, version, warps, instruction, shape):
    known = inspect.signature(gluon.NVMMADistributedLayout).parameters
    wanted = {"version": version, "warps_per_cta": warps, "instr_shape": instruction}
    theirs = gluon.NVMMADistributedLayout(**{key: value for key, value in wanted.items() if key in known})
    mine = f"#ttg.nvidia_mma<{{versionMajor = {version[0]}, versionMinor = 0, warpsPerCTA = {warps}, instrShape = {instruction}}}>"
    assert same(bases(mine, shape), compilers(builder, theirs, shape))
    sliced, last = f"#ttg.slice<{{dim = {len(shape) - 1}, parent = {mine}}}>", len(shape) - 1
    assert same(bases(sliced, shape[:-1]), compilers(builder, gluon.SliceLayout(last, theirs), shape[:-1]))


def test_a_linear_layout_is_read_as_written():
    text = (
        "#ttg.linear<{register = [[0, 1], [8, 0]], lane = [[0, 2], [1, 0], [2, 0], [4, 0], [0, 4]], warp = [[16, 0], [0, 0]], block = []}>"
    )
    layouts = Layouts(f"#linear = {text}\n", 4)
    owner = layouts.owner("#linear", (32, 8))
    assert owner[:16].eq(0).all() and owner[16:].eq(1).all()  # the second warp bit moves nothing: warps 2 and 3 hold copies
    assert layouts.holders("#linear", (32, 8)).sum(0).eq(2).all()


def test_names_are_looked_up_and_unknown_layouts_refused():
    parts = ([1], [32], [4], [0])
    layouts = Layouts(f"#blocked = {text_of(*parts)}\n#blocked1 = {text_of([4], [32], [4], [0])}\n", 4)
    assert layouts.owner("#blocked", (256,)).tolist() == [i // 32 % 4 for i in range(256)]
    assert layouts.owner("#blocked1", (512,)).tolist() == [i // 128 for i in range(512)]
    small = layouts.holders("#blocked", (64,))
    assert small.sum(1).tolist() == [32, 32, 32, 32] and torch.equal(small[0], small[2])
    with pytest.raises(Unsupported, match="#ttg.dot_op"):
        layouts.owner("#ttg.dot_op<{opIdx = 0, parent = #blocked, kWidth = 2}>", (16, 16))
