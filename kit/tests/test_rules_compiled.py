"""Rules 1 to 4 and 11 to 13 of `examine`: each thing they tell is found in a faulty kernel, and not told of its right twin."""

import ast

import pytest
import torch
import triton
import triton.language as tl
from triton.runtime import JITFunction

import kit
from kit import machine
from kit.errors import BadInput
from kit.kernels.copy import copy_kernel
from kit.kernels.rms_norm import rms_norm_kernel
from kit.occupancy import occupancy, occupancy_of
from kit.rules import (
    r01_semantics,
    r02_copied,
    r03_block_sizes,
    r04_variants,
    r11_benchmark,
    r12_sweep,
    r13_warm_up,
    stakes,
    traffic,
)
from kit.rules.compile_time import fresh
from kit.rules.needed import needed
from kit.rules.note import VERDICTS
from kit.rules.subject import Subject, all_sizes
from kit.simulator.launch import read_program
from kit.simulator.touched import touched
from kit.tests import scale_kernels
from kit.tests.faults import FAULTS
from kit.tests.untimed import untimed

MODULES = (r01_semantics, r02_copied, r03_block_sizes, r04_variants, r11_benchmark, r12_sweep, r13_warm_up)
HOME = machine.current().device


def subject(kernel, make, grid=(1,), sizes=({"n": 1},), reference=None, **meta):
    return Subject(kernel, make, grid, reference, all_sizes(sizes if isinstance(sizes, dict) else list(sizes)), meta)


def of_launch(kernel, launch):
    """The Subject of a fault's launch."""
    grid, arguments, meta = launch()
    return subject(kernel, lambda n: arguments, grid, **meta)


def found(notes, key):
    """The Notes of a kind; their form is checked on the way."""
    for note in notes:
        assert note.verdict in VERDICTS and note.text and note.key and note.evidence in ("compiled", "simulated", "measured")
    return [note for note in notes if note.key == key]


def alarms(notes):
    return [(note.key, note.text) for note in notes if note.verdict in ("wrong", "fragile")]


# ---- Rule 1

SEMANTICS = {
    "// of negatives": ("negative division", "fragile"),
    "% of negatives": ("negative division", "fragile"),
    "cdiv of negatives": ("negative division", "fragile"),
    "uint8 sum": ("narrow integers", "fragile"),
    "store narrows to int8": ("store narrows", "wrong"),
    "outer product by accident": ("column by row", "fragile"),
    "// of a constexpr": ("constant division", "fragile"),
    "loop variable after the loop": ("undefined value", "wrong"),
    "loop variable in a sum": ("undefined value", "wrong"),
    "& before <": ("precedence", "wrong"),
    "integer / 0": ("division by zero", "wrong"),
    "% 0 in an address": ("division by zero", "wrong"),
}
RULE_1 = [fault for fault in FAULTS if fault.rule == "R1"]


@pytest.mark.parametrize("fault", RULE_1, ids=[fault.name for fault in RULE_1])
def test_each_fault_of_rule_1_is_found_and_its_twin_is_not(fault):
    key, verdict = SEMANTICS[fault.name]
    notes = found(r01_semantics.look(of_launch(fault.faulty, fault.launch)), key)
    assert notes and notes[0].verdict == verdict
    assert notes[0].source and notes[0].line
    assert not alarms(r01_semantics.look(of_launch(fault.right, fault.right_launch or fault.launch)))


def test_a_division_tells_its_numbers():
    fault = next(fault for fault in RULE_1 if fault.name == "% of negatives")
    note = found(r01_semantics.look(of_launch(fault.faulty, fault.launch)), "negative division")[0]
    assert note.numbers == {"dividend": -7, "divisor": 4, "triton": -3, "python": 1}
    assert "tl.load(x_ptr + offs) % 4" in note.source and note.line == 5


@triton.jit
def float_to_int_kernel(x_ptr, out_ptr, BLOCK: tl.constexpr):
    offs = tl.arange(0, BLOCK)
    tl.store(out_ptr + offs, tl.load(x_ptr + offs) * 2.5)


@triton.jit
def written_out_kernel(x_ptr, out_ptr, BLOCK: tl.constexpr):
    offs = tl.arange(0, BLOCK)
    tl.store(out_ptr + offs, (tl.load(x_ptr + offs) * 2.5).to(out_ptr.dtype.element_ty))


@triton.jit
def and_kernel(x_ptr, out_ptr, n, BLOCK: tl.constexpr):
    offs = tl.arange(0, BLOCK)
    mask = offs < n and offs > 0
    tl.store(out_ptr + offs, tl.load(x_ptr + offs, mask=mask, other=0.0), mask=mask)


@triton.jit
def scalar_and_kernel(x_ptr, out_ptr, n, m, BLOCK: tl.constexpr):
    offs = tl.arange(0, BLOCK)
    mask = (offs < n) & (offs > 0)
    if n > 3 and m > 3:
        tl.store(out_ptr + offs, tl.load(x_ptr + offs, mask=mask, other=0.0), mask=mask)


@triton.jit
def too_large_for_float32_kernel(x_ptr, out_ptr, BLOCK: tl.constexpr):
    offs = tl.arange(0, BLOCK)
    n = tl.load(x_ptr + offs).to(tl.int32)
    tl.store(out_ptr + offs, (n * 1e300 > 1.0).to(tl.float32))


@triton.jit
def meant_float64_kernel(x_ptr, out_ptr, BLOCK: tl.constexpr):
    offs = tl.arange(0, BLOCK)
    x = tl.load(x_ptr + offs).to(tl.float64)
    tl.store(out_ptr + offs, (x * 1e300 > 1.0).to(tl.float32))


def sixteen(out=torch.float32, *more):
    return lambda n: (torch.ones(16, device=HOME), torch.zeros(16, dtype=out, device=HOME), *more)


def test_casts_that_a_store_hides():
    for dtype in (torch.int32, torch.float8_e5m2):
        notes = found(r01_semantics.look(subject(float_to_int_kernel, sixteen(dtype), BLOCK=16)), "store narrows")
        assert [note.verdict for note in notes] == ["fragile"] and "tl.store" in notes[0].source
    for kernel, dtype in ((written_out_kernel, torch.int32), (float_to_int_kernel, torch.float16), (float_to_int_kernel, torch.bfloat16)):
        assert not alarms(r01_semantics.look(subject(kernel, sixteen(dtype), BLOCK=16)))


def test_and_of_blocks():
    notes = found(r01_semantics.look(subject(and_kernel, sixteen(torch.float32, 12), BLOCK=16)), "and of blocks")
    assert [(note.verdict, note.line) for note in notes] == [("fragile", 4)]
    assert not alarms(r01_semantics.look(subject(scalar_and_kernel, sixteen(torch.float32, 12, 5), BLOCK=16)))


def test_float64_that_nobody_asked_for():
    assert found(r01_semantics.look(subject(too_large_for_float32_kernel, sixteen(), BLOCK=16)), "float64")
    assert not alarms(r01_semantics.look(subject(meant_float64_kernel, sixteen(), BLOCK=16)))


@triton.jit
def helper(x, n):
    return x < n & (x > 1)


@triton.jit
def calling_kernel(x_ptr, out_ptr, n, BLOCK: tl.constexpr):
    offs = tl.arange(0, BLOCK)
    mask = helper(offs, n)
    tl.store(out_ptr + offs, tl.load(x_ptr + offs, mask=mask, other=0.0))


def test_called_functions_are_read_too():
    note = found(r01_semantics.look(subject(calling_kernel, sixteen(torch.float32, 12), BLOCK=16)), "precedence")[0]
    assert note.line is None and "helper" in note.text


@triton.jit
def folded_at_one_kernel(out_ptr, n):
    tl.store(out_ptr, (n - 8) // 3)


def test_an_argument_of_1_is_divided_as_in_python():
    make = lambda n: (torch.zeros(1, dtype=torch.int32, device=HOME), n)  # noqa: E731
    note = found(r01_semantics.look(subject(folded_at_one_kernel, make)), "constant division")[0]
    assert note.numbers == {"folded": -3, "runtime": -2}
    assert not found(r01_semantics.look(subject(folded_at_one_kernel, make, sizes=[{"n": 11}])), "constant division")


# ---- Rule 2


@triton.jit
def replaced_size_kernel(in_ptr0, out_ptr0, xnumel, XBLOCK: tl.constexpr):
    xnumel = 4096
    xindex = tl.program_id(0) * XBLOCK + tl.arange(0, XBLOCK)
    xmask = xindex < xnumel
    tmp0 = tl.load(in_ptr0 + xindex, xmask, other=0.0)
    tl.store(out_ptr0 + xindex, tmp0, xmask)


@triton.jit
def dead_mask_kernel(in_ptr0, out_ptr0, xnumel, XBLOCK: tl.constexpr):
    xindex = tl.program_id(0) * XBLOCK + tl.arange(0, XBLOCK)
    xmask = tl.full([XBLOCK], True, tl.int1)
    tl.store(out_ptr0 + xindex, tl.load(in_ptr0 + xindex, xmask), xmask)


@triton.jit
def literal_strides_kernel(in_ptr0, out_ptr0, xnumel, XBLOCK: tl.constexpr):
    xindex = tl.program_id(0) * XBLOCK + tl.arange(0, XBLOCK)
    xmask = xindex < xnumel
    x0 = xindex % 196
    x1 = xindex // 196
    tl.store(out_ptr0 + xindex, tl.load(in_ptr0 + x0 + 196 * x1, xmask, other=0.0), xmask)


@triton.jit
def cleaned_kernel(in_ptr0, out_ptr0, xnumel, XBLOCK: tl.constexpr):
    xindex = tl.program_id(0) * XBLOCK + tl.arange(0, XBLOCK)
    xmask = xindex < xnumel
    tl.store(out_ptr0 + xindex, tl.load(in_ptr0 + xindex, xmask, other=0.0), xmask)


def flat(n):
    return torch.ones(n, device=HOME), torch.zeros(n, device=HOME), n


def copied(kernel, *sizes):
    return r02_copied.look(subject(kernel, flat, (4,), [{"n": n} for n in sizes], XBLOCK=1024))


def test_a_replaced_size_is_wrong_where_the_size_is_another():
    note = found(copied(replaced_size_kernel, 4096, 5000), "size replaced")[0]
    assert note.verdict == "wrong" and note.line == 3 and note.numbers == {"literal": 4096, "given": 5000}
    assert found(copied(replaced_size_kernel, 4096), "size replaced")[0].verdict == "fragile"


def test_a_dead_mask_is_wrong_where_the_block_does_not_divide():
    assert found(copied(dead_mask_kernel, 4000), "dead mask")[0].verdict == "wrong"
    assert found(copied(dead_mask_kernel, 4096), "dead mask")[0].verdict == "fragile"


def test_literal_sizes():
    note = found(copied(literal_strides_kernel, 392), "literal sizes")[0]
    assert note.verdict == "fragile" and note.numbers["literals"] == [196] and note.line == 5


def test_what_is_not_copied_is_not_told():
    assert not alarms(copied(cleaned_kernel, 4096, 5000))
    for fault in FAULTS:
        assert not alarms(r02_copied.look(of_launch(fault.faulty, fault.launch))), fault.name


@triton.jit
def inductor_softmax_kernel(in_ptr0, out_ptr2, xnumel, r0_numel, XBLOCK: tl.constexpr):
    xnumel = 64
    r0_numel = 100
    R0_BLOCK: tl.constexpr = 128
    xindex = tl.program_id(0) * XBLOCK + tl.arange(0, XBLOCK)[:, None]
    xmask = xindex < xnumel
    r0_index = tl.arange(0, R0_BLOCK)[None, :]
    r0_mask = r0_index < r0_numel
    r0_1 = r0_index
    x0 = xindex
    tmp0 = tl.load(in_ptr0 + (r0_1 + 100 * x0), r0_mask & xmask, other=0.0)
    tmp5 = tl.where(r0_mask & xmask, tmp0, float("-inf"))
    tmp6 = triton_helpers.max2(tmp5, 1)[:, None]  # noqa: F821  never compiled: the source is what the rule reads
    tl.store(out_ptr2 + (r0_1 + 100 * x0), tmp0 - tmp6, r0_mask & xmask)


def test_what_inductor_writes_is_recognised():
    """The lines are those that kit.generated gave for a softmax of (64, 100) with torch 2.13, shortened."""

    def make(n):
        return kit.ghost((n, 100), torch.float32), kit.ghost((n, 100), torch.float32), n, 100

    for n, verdict in ((64, "fragile"), (65, "wrong")):
        notes = r02_copied.look(subject(inductor_softmax_kernel, make, (64,), [{"n": n}], XBLOCK=1))
        told = [(note.key, note.verdict, note.line) for note in notes]
        assert told[0] == ("size replaced", verdict, 3) and told[1] == ("size replaced", "fragile", 4)
        assert ("private helper", "fragile", 14) in told and ("literal sizes", "fragile", 12) in told


# ---- Rule 3


def rows(m, n):
    x = torch.ones(m, n, device=HOME)
    return torch.empty_like(x), x, x.stride(0), x.stride(0), n


@triton.jit
def row_sum_kernel(out_ptr, x_ptr, stride_om, stride_xm, n, BLOCK: tl.constexpr):
    offs = tl.arange(0, BLOCK)
    mask = offs < n
    x = tl.load(x_ptr + tl.program_id(0) * stride_xm + offs, mask=mask, other=0.0)
    e = tl.exp(x - tl.max(x, 0))
    tl.store(out_ptr + tl.program_id(0) * stride_om + offs, e / tl.sum(e, 0), mask=mask)


def per_row(arguments):
    return (arguments["x_ptr"].shape[0],)


def test_a_block_that_leaves_a_part_of_the_row_out():
    short = subject(row_sum_kernel, rows, per_row, {"m": [4], "n": [512, 1500]}, BLOCK=1024)
    note = found(r03_block_sizes.look(short), "block too small")[0]
    assert note.verdict == "wrong" and note.numbers == {"block": 1024, "argument": "n", "given": 1500} and note.line == 4
    whole = r03_block_sizes.look(subject(row_sum_kernel, rows, per_row, {"m": [4], "n": [512, 1024]}, BLOCK=1024))
    assert not alarms(whole) and not found(whole, "block too small")


def test_spills_and_shared_memory():
    wide = subject(row_sum_kernel, rows, per_row, {"m": [2], "n": [8192]}, BLOCK=8192, num_warps=1)
    note = found(r03_block_sizes.look(wide), "spills")[0]
    assert note.verdict == "fragile" and note.numbers["spills"] > 64 and note.numbers["elements"] == 8192
    calm = subject(row_sum_kernel, rows, per_row, {"m": [2], "n": [8192]}, BLOCK=8192, num_warps=8)
    assert not alarms(r03_block_sizes.look(calm))


class Large:
    """A Build that takes more shared memory than there is."""

    shared_memory = 300_000


def test_more_shared_memory_than_there_is():
    here = subject(row_sum_kernel, rows, per_row, {"m": [2], "n": [64]}, BLOCK=64)
    assert [note.verdict for note in r03_block_sizes.too_large(here, Large())] == ["wrong"]
    assert not r03_block_sizes.too_large(here, here.build())


CONFIGS = [triton.Config({"BLOCK": 64}), triton.Config({"BLOCK": 128})]


def add_one_kernel(x_ptr, n, BLOCK: tl.constexpr):
    offs = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    mask = offs < n
    tl.store(x_ptr + offs, tl.load(x_ptr + offs, mask=mask) + 1, mask=mask)


def count_kernel(x_ptr, n, BLOCK: tl.constexpr):
    offs = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    tl.atomic_add(x_ptr + offs * 0, 1.0, mask=offs < n)


def tuned(function, key=("n",), configs=CONFIGS, **options):
    kernel = triton.autotune(configs, key=list(key), **options)(triton.jit(function))
    return subject(kernel, lambda n: (torch.zeros(n, device=HOME), n), lambda a: (triton.cdiv(a["n"], a["BLOCK"]),), {"n": [100, 1000]})


def test_tuning_in_place():
    assert [note.verdict for note in found(r03_block_sizes.look(tuned(add_one_kernel)), "tuned in place")] == ["wrong"]
    assert [note.verdict for note in found(r03_block_sizes.look(tuned(count_kernel)), "tuned in place")] == ["wrong"]
    right = (
        *(tuned(add_one_kernel, restore_value=["x_ptr"]), tuned(count_kernel, reset_to_zero=["x_ptr"])),
        *(tuned(add_one_kernel, pre_hook=lambda *a, **k: None), tuned(add_one_kernel, configs=CONFIGS[:1])),
    )
    for one in right:
        assert not alarms(r03_block_sizes.look(one))


def test_the_key_of_a_tuner():
    note = found(r03_block_sizes.look(tuned(add_one_kernel, key=(), restore_value=["x_ptr"])), "tuner's key")[0]
    assert note.verdict == "fragile" and note.numbers["missing"] == ["n"]
    many = [triton.Config({"BLOCK": 64}, num_warps=w, num_stages=s) for w in (1, 2, 4, 8) for s in range(1, 31)]
    assert found(r03_block_sizes.look(tuned(add_one_kernel, configs=many, restore_value=["x_ptr"])), "many configurations")


def test_resources_are_told():
    here = subject(row_sum_kernel, rows, per_row, {"m": [4], "n": [1000]}, BLOCK=1024, num_warps=4)
    note = found(r03_block_sizes.look(here), "resources")[0]
    assert note.numbers["registers"] == here.build().registers and note.numbers["elements a thread"] == 8
    assert note.numbers["occupancy"] == occupancy(here.build()).share


# What NVIDIA's occupancy calculator gives for these (registers, shared memory, warps): programs a multiprocessor, warps of 64.
@pytest.mark.parametrize(
    ("registers", "shared", "warps", "programs", "limited_by"),
    [
        (32, 0, 4, 16, "warps"),
        (33, 0, 4, 12, "registers"),  # 40 registers a thread are set aside: 1,280 a warp, 12 warps a partition, 48 in all
        (128, 0, 4, 4, "registers"),
        (255, 0, 8, 1, "registers"),
        (32, 100_000, 4, 2, "shared memory"),
        (32, 232_448, 4, 1, "shared memory"),
        (16, 0, 1, 32, "programs"),
        (255, 0, 32, 0, "registers"),
    ],
)
def test_occupancy_of_the_h200(registers, shared, warps, programs, limited_by):
    held = occupancy_of(registers, shared, warps, "cuda:90")
    assert (held.programs, held.limited_by) == (programs, limited_by)
    assert held.share == programs * warps / 64 and bool(held) == (programs > 0)


def test_occupancy_refuses_a_target_it_does_not_know():
    with pytest.raises(BadInput, match="cuda:90"):
        occupancy_of(32, 0, 4, "hip:942")


# ---- Rule 4


def norm(n_rows, n_cols):
    x = torch.ones(n_rows, n_cols, dtype=torch.float16, device=HOME)
    return x, torch.ones(n_cols, dtype=torch.float16, device=HOME), torch.empty_like(x), n_cols, n_cols, n_rows, n_cols, 1e-6


def norms(**sizes):
    return subject(rms_norm_kernel, norm, lambda a: (triton.cdiv(a["n_rows"], a["BLOCK_M"]),), sizes, BLOCK_M=1, BLOCK_N=512)


def test_a_count_of_rows_earns_no_class_and_a_row_does():
    notes = r04_variants.look(norms(n_rows=[1, 3, 16], n_cols=[512, 500]))
    useless = found(notes, "class for nothing")
    assert [note.numbers["argument"] for note in useless] == ["n_rows"]
    assert useless[0].verdict == "fragile" and useless[0].numbers == {
        "argument": "n_rows",
        "variants": 6,
        "without": 2,
        "with all exempt": 2,
    }
    kept = {note.numbers["argument"]: note.numbers for note in found(notes, "class needed")}
    assert set(kept) == {"stride_xm", "stride_ym", "n_cols"} and all(one["bits"] > one["without"] for one in kept.values())
    assert found(notes, "variants")[0].numbers["variants"] == 6


def test_sizes_of_one_class_raise_no_alarm():
    notes = r04_variants.look(norms(n_rows=[16, 32], n_cols=[512]))
    assert not alarms(notes) and found(notes, "variants")[0].numbers["variants"] == 1


def test_exempt_is_what_without_class_compiles():
    here = norms(n_rows=[16], n_cols=[512])
    launch = here.ghosts()
    exempt = JITFunction(rms_norm_kernel.fn, do_not_specialize=["n_cols"])
    values = list(launch.named.values())
    real = kit.build(exempt, *values)
    assert stakes.compiled_as(here, launch, {"n_cols": stakes.without_class(launch.named["n_cols"])}).ptx == real.ptx


@triton.jit
def unread_kernel(out_ptr, m, extra):
    tl.store(out_ptr + tl.program_id(0), m)


@triton.jit(do_not_specialize=["m"], do_not_specialize_on_alignment=["out_ptr"])
def exempt_kernel(out_ptr, m):
    tl.store(out_ptr + tl.program_id(0), m)


def test_an_argument_that_nobody_reads():
    make = lambda m: (torch.zeros(8, dtype=torch.int32, device=HOME), 7, m)  # noqa: E731
    notes = r04_variants.look(subject(unread_kernel, make, (7,), {"m": [1, 5, 16]}))
    assert "never reads it" in found(notes, "class for nothing")[0].text
    assert found(notes, "scalar pointer")[0].numbers["arguments"] == ["out_ptr"]
    right = r04_variants.look(subject(exempt_kernel, lambda m: make(m)[:1] + (m,), (7,), {"m": [1, 5, 16]}))
    assert not alarms(right) and not found(right, "scalar pointer")


@triton.jit(do_not_specialize=["n_row", "BLOCK"])
def misspelt_kernel(x_ptr, out_ptr, n, BLOCK: tl.constexpr):
    offs = tl.arange(0, BLOCK)
    tl.store(out_ptr + offs, tl.load(x_ptr + offs, mask=offs < n, other=0.0), mask=offs < n)


def test_names_that_exempt_nothing():
    notes = found(r04_variants.look(subject(misspelt_kernel, sixteen(torch.float32, 12), BLOCK=16)), "exempts nothing")
    assert ["'n_row'" in notes[0].text, "BLOCK, a constexpr" in notes[1].text] == [True, True]


@triton.jit
def rows_constexpr_kernel(out_ptr, M: tl.constexpr, BLOCK: tl.constexpr):
    offs = tl.arange(0, BLOCK)
    tl.store(out_ptr + offs, offs + M, mask=offs < BLOCK)


def test_a_size_as_constexpr():
    make = lambda batch: (torch.zeros(16, dtype=torch.int32, device=HOME), batch)  # noqa: E731
    notes = found(r04_variants.look(subject(rows_constexpr_kernel, make, sizes={"batch": [1, 3, 5]}, BLOCK=16)), "constexpr varies")
    assert notes[0].numbers == {"argument": "M", "values": [1, 3, 5]}
    assert not alarms(r04_variants.look(subject(rows_constexpr_kernel, make, sizes={"batch": [1, 2, 4]}, BLOCK=16)))
    two = lambda head_dim: make(head_dim)  # noqa: E731  a dimension of the model is a constexpr for good reasons
    assert not alarms(r04_variants.look(subject(rows_constexpr_kernel, two, sizes={"head_dim": [96, 128]}, BLOCK=16)))


@triton.jit
def cast_kernel(out_ptr, stride):
    tl.store(out_ptr + tl.program_id(0) * stride.to(tl.int64), 1)


@triton.jit
def cast_right_kernel(out_ptr, stride):
    tl.store(out_ptr + tl.program_id(0) * tl.cast(stride, tl.int64), 1)


def test_an_argument_that_must_not_be_1():
    make = lambda stride: (torch.zeros(64, dtype=torch.int32, device=HOME), stride)  # noqa: E731
    note = found(r04_variants.look(subject(cast_kernel, make, sizes={"stride": [2, 3]})), "breaks at 1")[0]
    assert note.verdict == "fragile" and note.line == 3 and "tl.cast" in note.text
    both = subject(cast_kernel, make, sizes={"stride": [2, 1]})
    assert found(r04_variants.look(both), "breaks at 1")[0].verdict == "wrong"
    for sizes in ({"stride": [2, 1]}, {"stride": [2, 3]}):
        assert not found(r04_variants.look(subject(cast_right_kernel, make, sizes=sizes)), "breaks at 1")


# ---- Rule 11


def copies(*sizes, reference=None):
    return subject(copy_kernel, copy_arguments, copy_grid, [{"n": n} for n in sizes], reference, BLOCK=1024)


def copy_arguments(n):
    return torch.ones(n, device=HOME), torch.zeros(n, device=HOME), n


def copy_grid(arguments):
    return (triton.cdiv(arguments["n"], arguments["BLOCK"]),)


def test_the_bytes_of_a_copy_are_its_own():
    here = copies(1000, 1 << 22)
    for n in (1000, 1 << 22):
        total, parts, followed = traffic.moved(here, here.ghosts({"n": n}))
        assert followed and total == 8 * n and sorted(parts.values()) == [(0, 4 * n), (4 * n, 0)]


def test_weights_that_every_program_reads_count_once():
    here = norms(n_rows=[64], n_cols=[512])
    total, parts, followed = traffic.moved(here, here.ghosts())
    assert followed and parts["w_ptr"] == (1024, 0) and total == 2 * 64 * 1024 + 1024


def test_the_plan_is_code_that_runs_the_kernel():
    note = found(r11_benchmark.plan(copies(1000, 1 << 22, reference=lambda *args: args[0])), "benchmark")[0]
    assert note.verdict == "plan" and [shape["bytes"] for shape in note.numbers["shapes"]] == [8000, 8 << 22]
    code, asked = note.numbers["code"], []
    ast.parse(code)

    class Stand:
        """kit, with a bench that calls its contender once."""

        @staticmethod
        def bench(contenders, *args, reference, bytes, method):
            got = contenders["copy_kernel"](*args)
            torch.testing.assert_close(got[0], reference(*args))
            asked.append((bytes, method))

    names = {"kit": Stand, "copy_kernel": copy_kernel, "make_args": copy_arguments, "grid": copy_grid, "reference": lambda *args: args[0]}
    exec(code, names)
    assert asked == [(8000, "graph"), (8 << 22, "graph")]


def test_no_gpu_no_time():
    if not machine.current().live:
        assert {note.verdict for note in r11_benchmark.look(copies(1000))} == {"plan"}


# ---- Rules 12 and 13


def keys(notes):
    return {note.key for note in notes}


def test_sweeps_that_do_not_cover():
    assert alarms(r12_sweep.look(norms(n_rows=[16], n_cols=[512]))) and keys(r12_sweep.look(norms(n_rows=[16], n_cols=[512]))) == {
        "one size"
    }
    assert {"no decode size", "powers of two", "one value"} <= keys(r12_sweep.look(norms(n_rows=[1 << 14, 1 << 16], n_cols=[512])))
    assert {"no prefill size"} <= keys(r12_sweep.look(norms(n_rows=[1, 8], n_cols=[512])))
    whole = r12_sweep.look(norms(n_rows=[1, 7, 64, 10_001], n_cols=[512, 500]))
    assert keys(whole) == {"waves"} and whole[0].numbers["sizes"] == 8


def test_the_warm_up_list_covers_every_variant_and_no_shorter_one_does():
    here = norms(n_rows=[1, 3, 16, 32, 48], n_cols=[512, 500])
    note = found(r13_warm_up.look(here), "warm-up list")[0]
    variants, launches = needed(here)
    chosen = [here.sizes.index(size) for size in note.numbers["launches"]]
    assert len(chosen) == len(variants) == note.numbers["variants"] == 6
    assert all(any(i in one.launches for i in chosen) for one in variants)
    assert {"n_rows": 16, "n_cols": 512} in note.numbers["launches"]  # the smallest of its class
    assert note.numbers["CPU seconds a variant, here"] > 0.01  # nothing came from a cache


def test_what_the_typical_size_leaves_to_requests():
    missed = found(r13_warm_up.look(norms(n_rows=[1, 3, 16], n_cols=[512])), "typical size alone")[0]
    assert missed.numbers["missed"] == 2
    assert not found(r13_warm_up.look(norms(n_rows=[16, 32], n_cols=[512])), "typical size alone")


def test_views_and_tuning_are_part_of_the_warm_up():
    assert found(r13_warm_up.look(norms(n_rows=[16], n_cols=[512])), "offset views")[0].numbers["pointers"] == ["x_ptr", "w_ptr", "y_ptr"]
    exempt = subject(exempt_kernel, lambda m: (torch.zeros(8, dtype=torch.int32, device=HOME), m), (7,), {"m": [5]})
    assert not found(r13_warm_up.look(exempt), "offset views")
    note = found(r13_warm_up.look(tuned(add_one_kernel, restore_value=["x_ptr"])), "tuning")[0]
    assert note.numbers["compilations"] == 4 and note.numbers["keys"] == 2


# ---- Times: what rule 11 asks of kit.bench on a GPU


def scaled(reference):
    return Subject(scale_kernels.scale_kernel, scale_kernels.make_args, scale_kernels.grid, reference, [{"n": 1000}], scale_kernels.meta)


def measured(monkeypatch, reference):
    """The Notes that rule 11 would make of a timing here."""
    asked, subject = untimed(monkeypatch), scaled(reference)
    told = [note for one in r11_benchmark._counted(subject) for note in r11_benchmark._measured(subject, *one)]
    assert asked == [["scale_kernel"]]
    return told


def test_a_right_kernel_is_timed_and_a_wrong_one_is_not(monkeypatch):
    (note,) = measured(monkeypatch, scale_kernels.reference)
    assert note.evidence == "measured" and note.numbers["checked"] and note.numbers["us"] == 1.0
    (note,) = measured(monkeypatch, None)
    assert not note.numbers["checked"]
    (note,) = measured(monkeypatch, lambda x, out, n: 3 * x)
    assert (note.verdict, note.key) == ("wrong", "not the reference")


# ---- What they stand on


@triton.jit
def looped_kernel(x_ptr, y_ptr, lock_ptr, n, BLOCK: tl.constexpr):
    ptrs = x_ptr + tl.arange(0, BLOCK)
    for _ in range(n):
        tl.store(y_ptr + tl.arange(0, BLOCK), tl.load(ptrs))
        ptrs += BLOCK
    tl.atomic_add(lock_ptr, 1)


def test_pointers_are_followed_through_loops():
    one = torch.zeros(64, device=HOME)
    made = kit.build(looped_kernel, one, one.clone(), torch.zeros(1, dtype=torch.int32, device=HOME), 3, BLOCK=16)
    used = touched(read_program(made.ttir, __file__), ["x_ptr", "y_ptr", "lock_ptr", "n"])
    assert (bool(used["x_ptr"].loads), bool(used["y_ptr"].stores), bool(used["lock_ptr"].atomics)) == (True, True, True)
    assert used["lock_ptr"].scalar_only and not used["x_ptr"].scalar_only and not used["x_ptr"].stores


def test_a_fresh_kernel_has_no_variant():
    assert len(fresh(exempt_kernel).device_caches[0][0]) == 0
    assert fresh(exempt_kernel).params[1].do_not_specialize


@pytest.mark.parametrize("module", MODULES, ids=lambda module: module.__name__.rsplit(".", 1)[-1])
def test_every_rule_tells_something_of_a_good_kernel_and_nothing_bad(module):
    notes = module.look(norms(n_rows=[1, 7, 10_001], n_cols=[512, 500]))
    found(notes, "")
    assert notes and all(note.rule == module.RULE for note in notes)
    assert not [one for one in alarms(notes) if one[0] != "class for nothing"]
