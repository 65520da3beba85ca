"""`dry_run`: locks, tickets, ghosts' integers, views, chosen programs, and the words of a Report. The faults themselves: test_faults.py."""

import pytest
import torch
import triton
import triton.language as tl

import kit
from kit.errors import BadInput
from kit.simulator.footprints import Footprints


@pytest.fixture(autouse=True, scope="module")
def device():
    return kit.start().device


@triton.jit
def mark_kernel(x_ptr):
    tl.store(x_ptr, 1)


@triton.jit
def locked_sum_kernel(lock_ptr, sum_ptr, x_ptr):
    pid = tl.program_id(0)
    x = tl.load(x_ptr + pid)
    while tl.atomic_cas(lock_ptr, 0, 1) == 1:
        pass
    tl.store(sum_ptr, tl.load(sum_ptr) + x)
    tl.debug_barrier()
    tl.atomic_xchg(lock_ptr, 0)


@triton.jit
def last_program_sums_kernel(x_ptr, partial_ptr, counter_ptr, out_ptr, PROGRAMS: tl.constexpr):
    pid = tl.program_id(0)
    tl.store(partial_ptr + pid, tl.load(x_ptr + pid) * 2)
    tl.debug_barrier()
    if tl.atomic_add(counter_ptr, 1) == PROGRAMS - 1:
        tl.store(out_ptr, tl.sum(tl.load(partial_ptr + tl.arange(0, PROGRAMS)), axis=0))


@triton.jit
def tickets_kernel(counter_ptr, out_ptr):
    tl.store(out_ptr + tl.atomic_add(counter_ptr, 1), tl.program_id(0))


@triton.jit
def table_kernel(table_ptr, out_ptr):
    tl.store(out_ptr + tl.load(table_ptr + tl.program_id(0)), tl.program_id(0))


@triton.jit
def asserting_kernel(x_ptr, n):
    pid = tl.program_id(0)
    tl.device_assert(pid < n, "more programs than n")
    tl.device_print("pid", pid)
    tl.store(x_ptr + pid, pid)


@triton.jit
def add_one_kernel(x_ptr, n, BLOCK: tl.constexpr):
    offs = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    mask = offs < n
    tl.store(x_ptr + offs, tl.load(x_ptr + offs, mask=mask) + 1, mask=mask)


@triton.jit
def copy_kernel(x_ptr, out_ptr, stride_x, n, BLOCK: tl.constexpr):
    offs = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    mask = offs < n
    tl.store(out_ptr + offs, tl.load(x_ptr + offs * stride_x, mask=mask), mask=mask)


@triton.jit
def named_programs_kernel(x_ptr, programs):
    tl.store(x_ptr + tl.program_id(0), programs)


@triton.jit
def scaled_by_zero_kernel(x_ptr, out_ptr, n, BLOCK: tl.constexpr):
    offs = tl.arange(0, BLOCK)
    mask = offs < n
    x = tl.load(x_ptr + offs, mask=mask)
    tl.store(out_ptr, tl.sum(x * mask.to(tl.float32), axis=0))


def integers(n, device):
    return torch.zeros(n, dtype=torch.int32, device=device)


def verdicts(report):
    return [(f.verdict, f.hazard) for f in report.findings]


def test_one_value_from_all_programs_is_a_remark():
    report = kit.dry_run(mark_kernel, (4,), kit.ghost(1, torch.int32))
    assert report and verdicts(report) == [("remark", "race between programs")]
    assert (report.findings[0].program, report.findings[0].other) == ((0, 0, 0), (1, 0, 0))


def test_a_lock_is_no_race_and_no_wait(device):
    x = torch.ones(8, device=device)
    report = kit.dry_run(locked_sum_kernel, (8,), integers(1, device), torch.zeros(1, device=device), x)
    assert report and verdicts(report) == [("not visible here", "race between programs")] and report.ran == 8


def test_a_ticket_orders_partial_sums(device):
    given = torch.ones(8, device=device), torch.zeros(8, device=device)
    report = kit.dry_run(last_program_sums_kernel, (8,), *given, integers(1, device), torch.zeros(1, device=device), PROGRAMS=8)
    assert report and verdicts(report) == [("not visible here", "race between programs")]
    assert "atomics stand between" in repr(report)


def test_tickets_are_drawn_on_paper_and_not_in_memory(device):
    counter, out = integers(1, device), integers(8, device)
    assert kit.dry_run(tickets_kernel, (8,), counter, out).findings == []
    assert int(counter) == 0 and not bool(out.any())


def test_integers_of_a_ghost_are_not_known(device):
    report = kit.dry_run(table_kernel, (4,), kit.ghost(4, torch.int32), integers(4, device))
    assert report and verdicts(report) == [("not visible here", "index")] and "a real tensor" in report.findings[0].text
    table = torch.arange(4, dtype=torch.int32, device=device)
    assert kit.dry_run(table_kernel, (4,), table, integers(4, device)).findings == []
    clash = kit.dry_run(table_kernel, (4,), table // 2, integers(4, device))
    assert [f.program for f in clash.of("race between programs")] == [(0, 0, 0)]


def test_assertions_are_findings_and_nothing_is_printed(capfd):
    report = kit.dry_run(asserting_kernel, (6,), kit.ghost(6, torch.int32), 4, debug=True)
    (found,) = report.of("assertion")
    assert found.program == (4, 0, 0) and "more programs than n" in found.text
    assert kit.dry_run(asserting_kernel, (4,), kit.ghost(4, torch.int32), 4, debug=True).findings == []
    assert capfd.readouterr().out == ""


def test_a_masked_lane_that_decides_nothing_is_clean():
    x, out = kit.ghost(10, torch.float32), kit.ghost(1, torch.float32)
    assert kit.dry_run(scaled_by_zero_kernel, (1,), x, out, 10, BLOCK=16).findings == []


def test_tensors_keep_their_values(device):
    x = torch.zeros(100, device=device)
    assert kit.dry_run(add_one_kernel, (4,), x, 100, BLOCK=32).findings == []
    assert not bool(x.any())


@pytest.mark.parametrize(
    "view, stride, clean",
    [
        (lambda x: x[:32], 1, True),
        (lambda x: x[::3][:32], 3, True),
        (lambda x: x[::3][:32], 1, False),
        (lambda x: x[::3][:32], 4, False),
        (lambda x: x.as_strided((8, 4), (1, 1)), 0, True),  # a sliding window: its axes reach into each other
        (lambda x: x[:1].expand(32), 0, True),
        (lambda x: x[40:72], -1, False),
    ],
)
def test_addresses_of_views(view, stride, clean, device):
    x = view(torch.ones(128, device=device))
    report = kit.dry_run(copy_kernel, (1,), x, torch.zeros(32, device=device), stride, 32, BLOCK=32)
    assert bool(report) == clean and (clean or report.of("out of bounds"))


def test_chosen_programs():
    x = kit.ghost(2_000, torch.float32)
    report = kit.dry_run(add_one_kernel, (63,), x, 2_000, BLOCK=32, programs=[0, 62, (5, 0, 0)])
    assert report.which() == [(0, 0, 0), (5, 0, 0), (62, 0, 0)] and (report.ran, report.programs) == (3, 63)
    assert "3 of 63 programs on paper, as chosen" in repr(report)
    late = kit.dry_run(add_one_kernel, (63,), kit.ghost(1_000, torch.float32), 2_000, BLOCK=32, programs=range(40))
    assert [f.program for f in late.of("out of bounds")] == [(31, 0, 0), (31, 0, 0)]


@pytest.mark.parametrize("programs", [[63], [(0, 1, 0)], [-1], ["0"], [], [True]])
def test_programs_outside_the_grid(programs):
    with pytest.raises(BadInput, match="dry_run: programs"):
        kit.dry_run(add_one_kernel, (63,), kit.ghost(2_000, torch.float32), 2_000, BLOCK=32, programs=programs)


def test_a_kernels_own_argument_named_programs():
    report = kit.dry_run(named_programs_kernel, (3,), kit.ghost(3, torch.int32), programs=3)
    assert report.ran == 3 and report.findings == []


def test_a_sample_says_which_and_nothing_of_unwritten_elements():
    n = 10**10
    x = kit.ghost(n, torch.float32)
    report = kit.dry_run(copy_kernel, (triton.cdiv(n, 1024) - 1,), x, kit.ghost(n, torch.float32), 1, n, BLOCK=1024)
    ran = report.which()
    assert len(ran) == report.ran or not report  # the search for a first program may repeat some
    assert ran[0] == (0, 0, 0) and ran[-1] == (report.programs - 1, 0, 0)
    assert not [f for f in report.findings if f.hazard == "never written"]


def test_too_many_accesses_are_told(monkeypatch):
    monkeypatch.setattr(Footprints, "LANES", 100)
    report = kit.dry_run(add_one_kernel, (8,), kit.ghost(256, torch.float32), 256, BLOCK=32)
    assert report and verdicts(report) == [("not visible here", "race between programs")]


def test_repr_of_what_is_fragile():
    out = kit.ghost(64, torch.float32)
    report = kit.dry_run(copy_kernel, (1,), kit.ghost(64, torch.float32), out, 1, 64, BLOCK=32)
    assert report and "; 1 fragile: line" in repr(report) and "32 of 64 elements of out_ptr are never written" in repr(report)
    assert "! fragile" in report._repr_html_() and report.findings[0].notebook == "09_boundaries_and_views"


@triton.jit
def choosing_kernel(x_ptr, out_ptr, n, step):
    offs = tl.arange(0, 4)
    wrapped = (offs + n) * step
    tl.store(out_ptr + offs, tl.load(x_ptr + tl.where(offs < 2, wrapped, offs)))


def test_a_wrapped_number_is_followed_through_a_choice(device):
    out = torch.zeros(4, dtype=torch.int8, device=device)
    report = kit.dry_run(choosing_kernel, (1,), kit.ghost((2**33,), torch.int8), out, 2**16, 2**16)
    assert [finding.hazard for finding in report.of("overflow")] == ["overflow"]
    assert kit.dry_run(choosing_kernel, (1,), kit.ghost((2**33,), torch.int8), out, 2**10, 2**10)
