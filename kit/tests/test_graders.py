"""The graders: every named wrong answer fails for its own reason, right ones pass, and the graders' own truths hold."""

import contextlib
import json
import math

import pytest
import torch
import triton
import triton.language as tl
from triton.runtime import JITFunction

from kit import dry_run, ghost, machine, sources
from kit.errors import KitError
from kit.graders import EXERCISES, STEPS, buffers, ex06_legal_grid, ex07_threshold, grade
from kit.graders.paper import meta, on_paper, tell_report
from kit.graders.reading import words_of
from kit.graders.step import Trial
from kit.sandbox import run_source
from kit.simulator.driver import SimulatedDriverError, check_grid
from kit.tests.banks import BLOCK, RIGHT, WITHOUT_KERNEL, WRONG, Answer, cell_of, module_of, unsolved

SOLVED = [Answer(number, "the solution", (None,) * len(BLOCK.findall(cell_of(number)))) for number in STEPS]

# On a GPU some wrong answers to these end the CUDA context: there they are judged as a reader's are, in a sandbox.
LEAVES_ITS_MEMORY = ("13.3",)


@pytest.fixture(autouse=True)
def simulated():
    machine.start()


def judged(source, number, folder):
    answer = getattr(module_of(source, folder), STEPS[number].name)
    if machine.current().live and number in LEAVES_ITS_MEMORY:
        text, name = sources.program(answer)
        outcome = run_source(f"{text}\n__import__('kit.graders').graders.grade({number!r}, {name})\n", timeout=60)
        return outcome.value or outcome.kind
    return json.loads(json.dumps(grade(number, answer)))  # as it comes out of the sandbox


@pytest.mark.parametrize("answer", WRONG, ids=lambda a: f"{a.step} {a.name}")
def test_a_wrong_answer_fails_for_its_own_reason(answer, tmp_path):
    told = judged(answer.source, answer.step, tmp_path)
    if told == "illegal access":  # which is what a reader is told, too
        return
    assert told["state"] == "wrong", told
    causes = [problem["cause"] for problem in told["problems"]]
    assert answer.cause in causes[0], causes
    if answer.about:
        assert told["problems"][0]["about"] == answer.about
    for problem in told["problems"]:
        assert problem["text"] and problem["ran"] and problem["where"] and problem["got"], problem


@pytest.mark.parametrize("answer", SOLVED + RIGHT, ids=lambda a: f"{a.step} {a.name}")
def test_a_right_answer_passes(answer, tmp_path):
    told = judged(answer.source, answer.step, tmp_path)
    assert told["state"] == "passed", told["problems"]
    assert not told["problems"]
    kernels = answer.step not in WITHOUT_KERNEL
    assert (told["values"], told["memory"]) == ((True, True) if kernels else (None, None))


@pytest.mark.parametrize("number", STEPS)
def test_an_unsolved_step_is_not_done(number, tmp_path):
    told = judged(unsolved(number), number, tmp_path)
    assert told["state"] == "not done yet"
    assert told["stub"].startswith("about ")


def test_a_kernel_with_its_launch_still_missing_is_not_done(tmp_path):
    half = Answer("06.2", "kernel only", (None, 'raise NotImplementedError("Exercise 6.2: about 1 line")'))
    assert judged(half.source, "06.2", tmp_path)["state"] == "not done yet"
    other = Answer("06.2", "launch only", ('tl.static_assert(False, "Exercise 6.2: about 2 lines")', None))
    assert judged(other.source, "06.2", tmp_path)["state"] == "not done yet"


def test_a_stub_of_another_lesson_is_no_excuse(tmp_path):
    other = Answer("07.1", "another stub", ('raise NotImplementedError("Exercise 6.1: about 2 lines")',))
    assert judged(other.source, "07.1", tmp_path)["state"] == "wrong"


@pytest.mark.parametrize("number", STEPS)
def test_every_step_has_its_banks_and_hints(number):
    wrong = [answer for answer in WRONG if answer.step == number]
    right = [answer for answer in RIGHT if answer.step == number]
    assert len(wrong) >= 5 and len(right) >= 2
    assert len({answer.cause for answer in wrong}) >= 5
    step = STEPS[number]
    assert len(set(step.hints)) == 3 and all(step.hints)
    assert f"{step.name}(" in cell_of(number)
    for answer in wrong:
        assert any(answer.cause in mistake.cause for mistake in step.mistakes), answer.name


def test_steps_are_numbered_after_their_notebooks():
    for exercise in EXERCISES:
        for place, step in enumerate(exercise.steps, 1):
            assert step.number == f"{exercise.stem[:2]}.{place}"


# ---- the graders' truths, against the driver and the dry run
def test_the_grids_of_06_1_are_what_the_driver_takes_or_not():
    limits = machine.current().limits
    late = 0
    for num_tokens, num_heads, num_seqs, BLOCK_SIZE in ex06_legal_grid.GRIDS:
        programs = ex06_legal_grid.blocks_of(num_tokens, BLOCK_SIZE) * num_heads * num_seqs
        if programs > limits.programs:
            late += 1
            axes = (num_tokens // BLOCK_SIZE, num_heads, num_seqs)
            with contextlib.suppress(SimulatedDriverError):
                assert check_grid(axes, limits) is False
        else:
            assert check_grid((programs, 1, 1), limits) is (programs > 0)
    assert late >= 2


@triton.jit
def offset_kernel(x_ptr, row, BLOCK: tl.constexpr):
    pid = tl.program_id(0)
    offs = tl.arange(0, BLOCK)
    tl.store(x_ptr + (pid * row + offs), 0, mask=offs < row)


@pytest.mark.parametrize("num_heads, head_size", [(16, 96), (40, 128), (8, 128), (64, 576)])
def test_the_first_bad_token_is_the_one_that_wraps_on_paper(num_heads, head_size):
    token, row = ex07_threshold.first_bad(num_heads, head_size), num_heads * head_size
    x = ghost((token + 1, row), torch.int8)
    block = triton.next_power_of_2(row)
    assert dry_run(offset_kernel, (token,), x, row, BLOCK=block)
    assert dry_run(offset_kernel, (token + 1,), x, row, BLOCK=block).of("overflow")


# ---- buffers
def test_a_buffer_sees_writes_in_front_behind_and_between():
    for cell in (0, buffers.GUARD - 1, buffers.GUARD + 3, -1):
        out = buffers.Buffer((4, 3), torch.float32, wider=(4, 5))
        out.view.copy_(torch.zeros(4, 3))
        assert not (out.states(torch.zeros(4, 3)) != buffers.RIGHT).any()
        out.parent[cell] = 1.0
        states = out.states(torch.zeros(4, 3))
        assert states[cell] == buffers.OUTSIDE and (states == buffers.OUTSIDE).sum() == 1


def test_a_buffer_tells_wrong_from_never_written():
    out = buffers.Buffer((6,), torch.int8)
    out.view[:4] = torch.tensor([0, 1, 2, 9], dtype=torch.int8)
    states = out.states(torch.arange(6))[buffers.GUARD :][:6].tolist()
    assert states == [buffers.RIGHT] * 3 + [buffers.WRONG] + [buffers.UNWRITTEN] * 2
    assert out.index_of(buffers.GUARD + 5) == (5,) and out.index_of(buffers.GUARD + 6) is None and out.index_of(0) is None


def test_input_poison_that_is_copied_is_wrong_and_not_unwritten():
    for dtype in (torch.float32, torch.int8):
        given = buffers.Buffer((2,), dtype, values=torch.ones(2).to(dtype))
        out = buffers.Buffer((2,), dtype)
        out.view.copy_(given.parent[:2])
        assert (out.states(torch.ones(2))[buffers.GUARD :][:2] == buffers.WRONG).all()


# ---- launches on paper
def test_on_paper_sees_launches_and_then_puts_launching_back():
    before = JITFunction.__getitem__
    x = meta((70_000, 64), torch.int8)
    with on_paper() as launches:
        offset_kernel[(70_000,)](x, 64, BLOCK=64)
        offset_kernel[(1, 70_000)](x[10:], 64, BLOCK=64)
    assert JITFunction.__getitem__ is before
    assert [launch.programs for launch in launches] == [70_000, 70_000]
    assert launches[0].report and launches[1].report.of("grid")
    real = torch.ones(128, dtype=torch.int8, device=machine.current().device)
    offset_kernel[(2,)](real, 64, BLOCK=64)
    assert not real.any()


def test_on_paper_puts_launching_back_after_an_error():
    before = JITFunction.__getitem__
    with pytest.raises(KitError), on_paper():
        offset_kernel[(2,)](meta((4,), torch.int8), BLOCK=64)
    assert JITFunction.__getitem__ is before
    assert math.prod(meta((3, 5), torch.int8)[1:].shape) == 10


# ---- reading
@triton.jit
def late_kernel(x_ptr, table_ptr, stride):
    i = tl.load(table_ptr)
    offset = i * stride
    tl.store(x_ptr + offset.to(tl.int64), 0)


@triton.jit
def early_kernel(x_ptr, table_ptr, stride, n):
    i = tl.load(table_ptr).to(tl.int64)
    offset = i * stride
    tl.store(x_ptr + offset.to(tl.int64), 0, mask=i <= n)


def test_words_of_a_kernel():
    assert words_of(late_kernel) == {"int64", "product"}
    assert words_of(early_kernel) == {"int64", "at most"}
    assert words_of(judged) == frozenset()


@triton.jit
def total_without_atomics_kernel(x_ptr, total_ptr):
    pid = tl.program_id(0)
    tl.store(total_ptr, tl.load(total_ptr) + tl.load(x_ptr + pid))


def test_a_hazard_without_a_picture_is_told_too():
    """A race between programs is no grid, overflow or stray address; an answer must not pass with it."""
    device = machine.current().device
    report = dry_run(total_without_atomics_kernel, (4,), torch.ones(4, device=device), torch.zeros(1, device=device))
    assert {finding.hazard for finding in report.errors} == {"race between programs"}
    trial = Trial(STEPS["06.2"])
    tell_report(trial, report, "4 programs", {"tokens": 4, "heads": 1})
    assert [problem.about for problem in trial.problems] == ["memory"]
    assert "4 programs: " in trial.problems[0].text and "total_ptr" in trial.problems[0].text
