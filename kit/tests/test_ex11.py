"""The truths of exercise 11's grader: the stand-in's physics, the counts against real tensors, the rules against kit.bench's own."""

import statistics

import pytest
import torch

from kit import machine
from kit.graders import STEPS, grade
from kit.graders import ex11_microbenchmarks as ex11
from kit.graders.ex11_results import CEILING, ROWS, WORDS, questions_of
from kit.graders.ex11_stand_in import COMPILE, FLUSH, LAUNCH, WARM, N, Operation, StandIn
from kit.graders.ex11_work import CASES, TRUTH, work_of
from kit.tests.banks import RIGHT, WRONG, module_of
from kit.timing import Row
from kit.verdict import drawn


@pytest.fixture(autouse=True)
def simulated():
    machine.start()


# ---- the stand-in
def between(machine, *steps):
    """µs between two events round the steps."""
    start, end = machine.cuda.Event(enable_timing=True), machine.cuda.Event(enable_timing=True)
    start.record()
    for step in steps:
        step()
    end.record()
    machine.cuda.synchronize()
    return 1e3 * start.elapsed_time(end)


@pytest.fixture
def ready():
    """(machine, a call of an operation of 8 µs), compiled."""
    stand_in = StandIn()
    op, inputs = Operation(stand_in, 8.0), stand_in.make()
    op(*inputs)
    return stand_in, lambda: op(*inputs)


def test_behind_a_flush_events_see_the_kernel_alone(ready):
    stand_in, call = ready
    stand_in.flush()
    assert between(stand_in, call) == pytest.approx(8.0, rel=0.03)


def test_a_wait_before_the_start_puts_the_launch_into_the_sample(ready):
    stand_in, call = ready
    stand_in.flush()
    stand_in.cuda.synchronize()
    assert between(stand_in, call) > 0.9 * LAUNCH + 8.0


def test_what_the_cache_holds_is_read_faster(ready):
    stand_in, call = ready
    stand_in.queue(ex11_entry("other"), FLUSH)  # keeps the GPU busy, and the cache as it is
    call()
    assert stand_in.log[-1].warm
    stand_in.flush()
    call()
    assert not stand_in.log[-1].warm
    assert 0.4 < WARM < 1


def ex11_entry(what):
    return type("Entry", (), {"what": what})()


def test_a_first_call_compiles_once():
    stand_in = StandIn()
    op, inputs = Operation(stand_in, 8.0), stand_in.make()
    stand_in.flush()
    assert between(stand_in, lambda: op(*inputs)) > 0.9 * COMPILE
    stand_in.flush()
    assert between(stand_in, lambda: op(*inputs)) < 20


def test_the_median_of_an_operation_is_its_time_and_the_mean_is_not(ready):
    stand_in, call = ready
    samples = []
    for _ in range(40):
        stand_in.flush()
        samples.append(between(stand_in, call))
    assert statistics.median(samples) == pytest.approx(8.0, rel=0.02)
    assert statistics.fmean(samples) > 1.5 * 8.0
    assert min(samples) < 0.985 * 8.0


@pytest.mark.parametrize(
    ("make", "words"),
    [
        (lambda cuda: (cuda.Event(), cuda.Event()), "enable_timing"),
        (lambda cuda: (cuda.Event(enable_timing=True), cuda.Event(enable_timing=True)), "must be recorded"),
    ],
)
def test_events_refuse_as_torch_does(make, words):
    start, end = make(StandIn().cuda)
    with pytest.raises(RuntimeError, match=words):
        start.elapsed_time(end)


def test_an_event_is_complete_when_the_host_has_waited(ready):
    stand_in, call = ready
    start, end = (stand_in.cuda.Event(enable_timing=True) for _ in range(2))
    start.record()
    stand_in.flush()
    end.record()
    assert not end.query()
    with pytest.raises(RuntimeError, match="must be completed"):
        start.elapsed_time(end)
    end.synchronize()
    assert 1e3 * start.elapsed_time(end) >= FLUSH


def test_an_operation_is_right_but_not_to_the_bit_and_its_spoilers_are_wrong():
    stand_in = StandIn()
    x, y = stand_in.make()
    got, truth = Operation(stand_in, 8.0)(x, y), stand_in.reference(x, y)
    assert torch.allclose(got, truth) and not torch.equal(got, truth)
    for _, spoil in ex11.WRONG_ONES:
        assert not torch.allclose(Operation(stand_in, 8.0, spoil)(x, y), truth)
    with pytest.raises(TypeError, match=rf"\({N},\)"):
        Operation(stand_in, 8.0)(x[:3], y)


# ---- what must be moved
def tensors(name, sizes):
    """(inputs, result) of an operation, really computed in float32."""
    m, n, k = (sizes.get(key, 0) for key in "mnk")
    if name == "add":
        x, y = torch.ones(n), torch.ones(n)
        return (x, y), x + y
    if name == "add row":
        x, row = torch.ones(m, n), torch.ones(n)
        return (x, row), x + row
    if name == "row sums":
        x = torch.ones(m, n)
        return (x,), x.sum(1)
    if name == "gather":
        table, index = torch.ones(sizes["table"], n), torch.randperm(sizes["table"])[: sizes["rows"]]
        return (table[index], index), table[index]  # of the table only what is asked for
    a, b = torch.ones(m, k), torch.ones(k, n)
    return (a, b), a @ b


@pytest.mark.parametrize(("name", "sizes"), CASES)
def test_the_bytes_are_those_of_the_tensors(name, sizes):
    inputs, result = tensors(name, sizes)
    assert work_of(name, sizes, 4)[0] == sum(one.nbytes for one in (*inputs, result))


def test_the_flop_of_a_product_are_torchs_own():
    from torch.utils.flop_counter import FlopCounterMode

    with FlopCounterMode(display=False) as counter:
        tensors("matmul", dict(CASES)["matmul"])
    assert counter.get_total_flops() == work_of("matmul", dict(CASES)["matmul"], 2)[1]
    assert set(TRUTH) == dict(CASES).keys()


# ---- results
def as_row(given):
    """A row of 11.3 as kit.bench has it."""
    more = {"bytes": given["bytes"], "copy_ceiling": CEILING if given["bytes"] else None, "host_us": given["host_us"]}
    return Row("it", {}, tuple(given["samples"]), given["method"], True, given["checked"], **more)


@pytest.mark.parametrize(("name", "given"), ROWS)
def test_what_is_asked_is_what_bench_asks(name, given):
    row, asked = as_row(given), questions_of(given)
    told = " ".join(row.questions)
    words = {"unchecked": "not checked", "ceiling": "more than there is", "events": "events cannot tell"}
    assert {word for word, said in words.items() if said in told} == asked & set(words)
    assert row.launch_bound == ("host" in asked)


def test_each_question_is_asked_of_some_row_and_none_of_all():
    for word in WORDS:
        asked = [word in questions_of(row) for _, row in ROWS]
        assert any(asked) and not all(asked)
    assert not questions_of(ROWS[0][1])


# ---- pictures
@pytest.mark.parametrize("step", ["11.1", "11.2", "11.3"])
def test_verdicts_have_their_picture(step, tmp_path):
    pictures = []
    for answer in [one for one in WRONG if one.step == step]:
        told = grade(answer.step, getattr(module_of(answer.source, tmp_path), STEPS[answer.step].name))
        if given := told["problems"][0]["picture"]:
            pictures.append(drawn(given, "simulated"))  # which checks what it is given
    assert len(pictures) >= 8
    assert pictures[0]._repr_mimebundle_() and pictures[-1]._repr_mimebundle_()


def test_a_check_leaves_nothing_of_one_answer_to_the_next(tmp_path):
    for answer in [one for one in RIGHT if one.step == "11.1"]:
        function = module_of(answer.source, tmp_path).time_us
        assert [grade("11.1", function)["state"] for _ in range(2)] == ["passed", "passed"]
