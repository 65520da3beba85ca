"""Rules 5 to 10 of kit.examine: each finds the faulty kernel, and is silent at its right twin."""

import pytest
import torch
import triton
import triton.language as tl

import kit
from kit.kernels.rms_norm import rms_norm_kernel, rms_norm_reference
from kit.kernels.rope import rope_kernel, rope_reference
from kit.rules import r05_barriers, r06_grid, r07_offsets, r08_work, r09_boundaries, r10_numbers
from kit.rules.subject import Subject, all_sizes
from kit.tests.faults import FAULTS, r05_in_a_program, r06_grid_limits, r07_int64_offsets
from kit.tests.faults import r09_boundaries as edges
from kit.tests.faults import r09_views as views
from kit.tests.faults import r10_numerics as numerics

ALARM = ("wrong", "fragile")
MODULES = {"R5": r05_barriers, "R6": r06_grid, "R7": r07_offsets}
PAPER = [fault for fault in FAULTS if fault.rule in MODULES and fault.name != "waiting for a later program"]  # that one takes 7 s


@pytest.fixture(autouse=True, scope="module")
def started():
    kit.start()


def device():
    return kit.machine.current().device


def subject_of(kernel, launch, reference=None):
    grid, _, meta = launch()
    return Subject(kernel, lambda: launch()[1], grid, reference, [{}], meta)


def alarms(notes):
    return [note for note in notes if note.verdict in ALARM]


def only(notes, verdict, key):
    """The one Note, which must be of this verdict and key."""
    assert [(note.verdict, note.key) for note in notes] == [(verdict, key)], notes
    return notes[0]


# ---- Rules 5, 6, 7: the faults that paper sees


@pytest.mark.parametrize("fault", PAPER, ids=lambda fault: f"{fault.rule} {fault.name}")
def test_paper_finds_the_fault_and_not_its_twin(fault):
    rule = MODULES[fault.rule]
    found = alarms(rule.look(subject_of(fault.faulty, fault.launch)))
    assert any(note.verdict == "wrong" and fault.line in note.source for note in found), found
    twin = rule.look(subject_of(fault.right, fault.right_launch or fault.launch))
    assert [note.verdict for note in twin] == ["fine"], twin


def test_a_race_that_one_warp_hides_is_fragile():
    grid, args, meta = r05_in_a_program.block(2048, 1024)()
    one_warp = {**meta, "num_warps": 1}
    notes = r05_barriers.look(subject_of(r05_in_a_program.reverse_no_barrier_kernel, lambda: (grid, args, one_warp)))
    assert only(notes, "fragile", "race in a program").line == 6
    assert r05_barriers.look(subject_of(r05_in_a_program.reverse_kernel, lambda: (grid, args, one_warp)))[0].verdict == "fine"


@triton.jit
def copy_with_barrier_kernel(x_ptr, out_ptr, BLOCK: tl.constexpr):
    offs = tl.arange(0, BLOCK)
    x = tl.load(x_ptr + offs)
    tl.debug_barrier()
    tl.store(out_ptr + offs, x)


def test_a_barrier_that_orders_nothing_is_named():
    make = lambda: ((1,), (torch.ones(64, device=device()), torch.ones(64, device=device())), {"BLOCK": 64})  # noqa: E731
    note = only(r05_barriers.look(subject_of(copy_with_barrier_kernel, make)), "fine", "barriers")
    assert note.numbers["barrier_lines"] == [5] and "can go" in note.text


def marks(kernel, axis):
    """A Subject that launches `kernel` with its tokens on `axis`, at 8 and at 20,000 of them."""
    grid = lambda named: (*(1,) * axis, named["out_ptr"].shape[0])  # noqa: E731
    make = lambda tokens: (torch.empty(tokens, dtype=torch.float32, device=device()),)  # noqa: E731
    return Subject(kernel, make, grid, None, all_sizes({"tokens": [8, 20_000]}), {})


def test_headroom_of_a_grid():
    note = only(r06_grid.look(marks(r06_grid_limits.mark_axis_1_kernel, 1)), "fragile", "grid headroom")
    assert note.numbers["axis"] == 1 and 65_536 <= note.numbers["value"] <= 65_600 and 3.2 < note.numbers["factor"] < 3.3
    note = only(r06_grid.look(marks(r06_grid_limits.mark_axis_0_kernel, 0)), "fine", "grid")
    assert note.numbers["headroom"]["tokens"] is None or note.numbers["headroom"]["tokens"] > 4


def rows_of(kernel, rows):
    make = lambda rows: (torch.empty(rows, 65_536, dtype=torch.float16, device=device()), torch.empty(rows, 128, device=device()), 65_536)  # noqa: E731
    return Subject(kernel, make, lambda named: (named["x_ptr"].shape[0],), None, all_sizes({"rows": [4, rows]}), {"BLOCK": 128})


def test_headroom_of_an_offset():
    note = only(r07_offsets.look(rows_of(r07_int64_offsets.rows_int32_kernel, 10_000)), "fragile", "overflow headroom")
    assert note.numbers["factor"] == 4 and note.numbers["program"] == (32_768, 0, 0) and "pid * stride_xm" in note.source
    assert r07_offsets.look(rows_of(r07_int64_offsets.rows_int32_kernel, 100))[0].numbers["headroom"]["rows"] == 512
    assert r07_offsets.look(rows_of(r07_int64_offsets.rows_kernel, 10_000))[0].numbers["headroom"]["rows"] is None


# ---- Rule 8


def normal(*shape, dtype=torch.float32):
    return torch.randn(*shape, dtype=dtype, device=device())


def rope_subject(block_h, tokens=(1, 8_192)):
    def make(tokens):
        x, cos = normal(tokens, 32, 128, dtype=torch.float16), normal(tokens, 64, dtype=torch.float16)
        return x, cos, cos, torch.empty_like(x), x.stride(0), x.stride(1), tokens, 32, 64

    grid = lambda named: (triton.cdiv(named["n_tokens"], named["BLOCK_T"]), triton.cdiv(named["n_heads"], named["BLOCK_H"]))  # noqa: E731
    meta = {"BLOCK_T": 1, "BLOCK_H": block_h, "BLOCK_D": 64, "num_warps": 1 if block_h == 1 else 4}
    reference = lambda x, cos, sin, *rest: rope_reference(x, cos, sin)  # noqa: E731
    return Subject(rope_kernel, make, grid, reference, all_sizes({"tokens": list(tokens)}), meta)


def test_tiny_programs_at_prefill():
    note = only(r08_work.look(rope_subject(1)), "fragile", "tiny programs")
    row = note.numbers["sizes"][1]
    assert row["programs"] == 262_144 and row["bytes_a_program"] == 768 and row["waves"] > 50 and row["again"]["cos_ptr"] == 16
    row = only(r08_work.look(rope_subject(32)), "fine", "work").numbers["sizes"][1]
    assert row["programs"] == 8_192 and row["bytes_a_program"] == 16_640 and not row["again"].get("x_ptr")


@triton.jit
def sum_row_kernel(x_ptr, out_ptr, n, BLOCK: tl.constexpr):
    offs = tl.arange(0, BLOCK)
    x = tl.load(x_ptr + tl.program_id(0) * n + offs, mask=offs < n, other=0.0)
    tl.store(out_ptr + tl.program_id(0), tl.sum(x, axis=0))


def test_few_programs_with_much_to_do():
    def subject(n, block):
        make = lambda rows: (normal(rows, n), normal(rows), n)  # noqa: E731
        return Subject(
            sum_row_kernel, make, lambda named: (named["out_ptr"].shape[0],), None, all_sizes({"rows": [1, 512]}), {"BLOCK": block}
        )

    assert only(r08_work.look(subject(32_768, 32_768)), "fragile", "few programs").numbers["sizes"][0]["busy"] == 1
    only(r08_work.look(subject(1_024, 1_024)), "fine", "work")


# ---- Rule 9


def copies(kernel, sizes=(100,), reference=lambda x, out, n: x, block=32):
    """A Subject of an elementwise kernel over (x_ptr, out_ptr, n)."""
    make = lambda n: (normal(n), torch.empty(n, device=device()), n)  # noqa: E731
    grid = lambda named: (triton.cdiv(named["n"], named["BLOCK"]),)  # noqa: E731
    return Subject(kernel, make, grid, reference, all_sizes({"n": list(sizes)}), {"BLOCK": block})


@pytest.mark.parametrize("kernel", [edges.copy_no_mask_kernel, edges.copy_store_no_mask_kernel, edges.copy_one_too_many_kernel])
def test_a_mask_that_whole_blocks_hide(kernel):
    found = alarms(r09_boundaries.look(copies(kernel, sizes=(64, 128))))
    assert found and all(note.verdict == "wrong" and note.key == "out of bounds" for note in found), found
    assert found[0].numbers["cases_failing"] > 1


def test_right_copies_are_silent():
    note = only(r09_boundaries.look(copies(edges.copy_kernel)), "fine", "boundaries")
    assert note.numbers["launched"] >= 6 and note.numbers["checked"] == note.numbers["launched"] and note.numbers["varied"] == ["n"]
    note = only(r09_boundaries.look(copies(edges.copy_kernel, reference=None)), "fine", "boundaries")
    assert note.numbers["checked"] == 0 and "reference" in note.text


def test_an_element_left_out():
    found = alarms(r09_boundaries.look(copies(edges.copy_one_too_few_kernel)))
    assert found[0].key == "never written" and found[0].verdict == "wrong"
    found = alarms(r09_boundaries.look(copies(edges.copy_one_too_few_kernel, reference=None)))
    assert found[0].key == "never written" and found[0].verdict == "fragile"


def rows(kernel, reference):
    make = lambda n: (normal(n).abs().neg(), torch.empty(1, device=device()), n)  # noqa: E731
    return Subject(kernel, make, (1,), reference, all_sizes({"n": [16]}), {"BLOCK": 16})


@pytest.mark.parametrize(
    "faulty, right, reference",
    [
        (edges.max_of_zeros_kernel, edges.max_kernel, lambda x, out, n: x.max().reshape(1)),
        (edges.variance_of_padding_kernel, edges.variance_kernel, lambda x, out, n: x.var(unbiased=False).reshape(1)),
    ],
)
def test_padding_that_is_not_neutral(faulty, right, reference):
    note = alarms(r09_boundaries.look(rows(faulty, reference)))[0]
    assert note.key == "values" and note.verdict == "wrong" and note.numbers["n"] < 16
    only(r09_boundaries.look(rows(right, reference)), "fine", "boundaries")


@triton.jit
def copy_ignores_stride_kernel(x_ptr, out_ptr, n, stride_x, BLOCK: tl.constexpr):
    offs = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    mask = offs < n
    scale = tl.where(stride_x == 1, 1.0, 2.0)
    tl.store(out_ptr + offs, tl.load(x_ptr + offs * stride_x, mask=mask) * scale, mask=mask)


@pytest.mark.parametrize("reference", [None, lambda x, *rest: x])
def test_a_view_that_gives_other_values(reference):
    def subject(kernel):
        make = lambda n: (normal(n), torch.empty(n, device=device()), n, 1)  # noqa: E731
        grid = lambda named: (triton.cdiv(named["n"], named["BLOCK"]),)  # noqa: E731
        return Subject(kernel, make, grid, reference, all_sizes({"n": [100]}), {"BLOCK": 32})

    note = only(r09_boundaries.look(subject(copy_ignores_stride_kernel)), "wrong", "values")
    assert note.numbers["argument_viewed"] == "x_ptr" and note.numbers["layout"] == "every second element"
    assert only(r09_boundaries.look(subject(views.copy_strided_kernel)), "fine", "boundaries").numbers["views"] >= 2


def test_a_size_tied_to_a_constant_is_left_alone():
    def subject(**meta):
        make = lambda rows, columns: (normal(rows, columns), torch.empty(rows, device=device()))  # noqa: E731
        grid = lambda named: (named["out_ptr"].shape[0],)  # noqa: E731
        reference = lambda x, out: x.max(1).values  # noqa: E731
        return Subject(edges.rows_without_pid_kernel, make, grid, reference, all_sizes({"rows": [5], "columns": [10]}), meta)

    note = only(r09_boundaries.look(subject(V=10, BLOCK=16)), "fine", "boundaries")
    assert note.numbers["varied"] == ["rows"] and "columns" in note.numbers["not_varied"]


def test_the_kits_own_kernels_are_fine():
    def make(tokens, hidden):
        x = normal(tokens, hidden, dtype=torch.float16)
        return x, normal(hidden, dtype=torch.float16), torch.empty_like(x), x.stride(0), hidden, tokens, hidden, 1e-6

    grid = lambda named: (triton.cdiv(named["n_rows"], named["BLOCK_M"]),)  # noqa: E731
    reference = lambda x, w, *rest: rms_norm_reference(x, w)  # noqa: E731
    norm = Subject(
        rms_norm_kernel, make, grid, reference, all_sizes({"tokens": [1, 4096], "hidden": [256]}), {"BLOCK_M": 2, "BLOCK_N": 256}
    )
    for subject in (norm, rope_subject(32, tokens=(1, 64))):
        for rule in (r05_barriers, r06_grid, r07_offsets, r08_work, r09_boundaries, r10_numbers):
            assert [note.verdict for note in rule.look(subject)] == ["fine"], rule


# ---- Rule 10


def truth(function):
    return lambda x, out, *rest: function(x).reshape(-1)


def _masked(x):
    return torch.zeros_like(x) if (x == -torch.inf).all() else torch.softmax(x, 0)


NUMERIC = {
    "a sum in fp16": (truth(lambda x: x.sum(dtype=torch.float64 if x.dtype == torch.float64 else torch.float32)), "narrow sum"),
    "squares in fp16": (truth(lambda x: (x.double() if x.dtype == torch.float64 else x.float()).pow(2).sum()), "narrow sum"),
    "a softmax of -inf": (truth(_masked), "hard inputs"),
    "a tanh by exponentials": (lambda x, out, cap: cap * torch.tanh(x / cap), "hard inputs"),
    "a variance in one pass": (truth(lambda x: x.var(unbiased=False)), "hard inputs"),
    "a product in tf32": (lambda a, b, out: a @ b, "tf32"),
}


@pytest.mark.parametrize("fault", numerics.FAULTS, ids=lambda fault: fault.name)
def test_numbers(fault):
    reference, key = NUMERIC[fault.name]
    found = alarms(r10_numbers.look(subject_of(fault.faulty, fault.launch, reference)))
    assert key in [note.key for note in found], found
    twin = r10_numbers.look(subject_of(fault.right, fault.launch, reference))
    assert [note.verdict for note in twin] == ["fine"], twin


def test_numbers_without_a_reference():
    found = {fault.name: [n.key for n in alarms(r10_numbers.look(subject_of(fault.faulty, fault.launch)))] for fault in numerics.FAULTS}
    assert found["a tanh by exponentials"] == ["nan"] and found["a product in tf32"] == ["tf32"]
    assert found["a variance in one pass"] == [], "only a reference shows it"
    for fault in numerics.FAULTS:
        assert not alarms(r10_numbers.look(subject_of(fault.right, fault.launch))), fault.name


def test_narrow_sums_name_their_line_and_type():
    sums = {fault.name: fault for fault in numerics.FAULTS}
    note = r10_numbers.look(subject_of(sums["a sum in fp16"].faulty, sums["a sum in fp16"].launch))[0]
    assert note.evidence == "compiled" and note.numbers["dtype"] == "float16" and note.source.startswith("acc +=")
