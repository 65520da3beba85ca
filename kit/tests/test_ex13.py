"""The truths of exercise 13's grader, against Triton's own keys."""

import pytest
import torch
import triton
from triton.runtime import JITFunction

from kit import build, machine, watch
from kit.graders import STEPS, ex13_few_variants, ex13_server, ex13_warm_up, grade
from kit.graders.ex13_representatives import RANGES, class_of
from kit.graders.noting import noted
from kit.tests.banks import RIGHT, WRONG, module_of
from kit.verdict import drawn

VALUES = sorted({v for _, values in RANGES for v in values} | {0, 1, -1, 2**31 - 1, -(2**31), 2**62, -(2**62) - 1})


@pytest.fixture(autouse=True)
def simulated():
    machine.start()


def key_of(n, server):
    k, slots, cache = server.arguments(ex13_server.Request(ex13_server.F16, 0, 4))
    return build(ex13_server.write_keys_kernel, k, slots, cache, 4, SIZE=128, BLOCK_T=4).variants([{"n_tokens": n}])


def test_classes_are_those_that_triton_keys_by():
    server = ex13_server.Server()
    keys = {v: next(iter(key_of(v, server))).key for v in VALUES}
    for a in VALUES:
        for b in VALUES:
            assert (keys[a] == keys[b]) == (class_of(a) == class_of(b)), (a, b)


def test_no_other_way_of_sorting_passes_by_luck():
    """Whichever value it keeps of a class: some list has more or fewer classes when it is sorted that way."""
    ways = {mistake.name: mistake.seen.sorting for mistake in STEPS["13.1"].mistakes if hasattr(mistake.seen, "sorting")}
    assert len(ways) >= 10
    for name, sorting in ways.items():
        assert any(len(set(map(sorting, values))) != len(set(map(class_of, values))) for _, values in RANGES), name


def test_the_trace_needs_the_variants_that_the_spec_says():
    server = ex13_server.Server()
    made = build(ex13_server.write_keys_kernel, *server.arguments(ex13_server.TRACE[0]), ex13_server.TRACE[0].n, SIZE=128, BLOCK_T=4)
    launches = [(*server.arguments(request), request.n) for request in ex13_server.TRACE]
    assert len(made.variants(launches)) == ex13_warm_up.NEEDED
    words = [ex13_warm_up.seen_as(*server.arguments(request)) for request in ex13_server.TRACE]
    keys = [next(iter(made.variants([launch]))).key for launch in launches]
    assert len(set(words)) == ex13_warm_up.NEEDED
    for word, key in zip(words, keys, strict=True):
        assert [k for w, k in zip(words, keys, strict=True) if w == word] == [key] * words.count(word)
    for request in ex13_server.TRACE:  # what the exercise promises of its requests
        k, slots, cache = server.arguments(request)
        assert 1 <= len(k) == len(slots) <= ex13_server.MOST_TOKENS and k.data_ptr() % 16 == 0 and cache.dtype == k.dtype


def test_a_request_knows_when_its_keys_are_in_their_slots():
    server, request = ex13_server.Server(), ex13_server.TRACE[0]
    assert not server.is_right(request)
    ex13_server.launch(triton.jit(ex13_server.write_keys_kernel.fn), *server.arguments(request))
    assert server.is_right(request)
    server.caches[request.dtype][server.slots[request.first + 3]] += 1
    assert not server.is_right(request)


def test_dummies_that_would_leave_their_tensors_are_not_launched():
    k, slots, cache = torch.zeros(2, 128), torch.tensor([0, 3], dtype=torch.int32), torch.zeros(4, 128)
    assert not ex13_warm_up.unlike_a_request(k, slots, cache)
    assert "slots from 0 to 3" in ex13_warm_up.unlike_a_request(k, slots, cache[:3])
    assert "slots from -1" in ex13_warm_up.unlike_a_request(k, slots - 1, cache)
    assert "k is (2, 64)" in ex13_warm_up.unlike_a_request(k[:, :64], slots, cache)
    assert "k is (1, 128)" in ex13_warm_up.unlike_a_request(k[:1], slots, cache)
    assert "no tensor" in ex13_warm_up.unlike_a_request(torch.float16, slots, cache)


def test_what_is_noted_is_launched_and_launching_is_put_back():
    before, server = JITFunction.__getitem__, ex13_server.Server()
    with noted() as seen:
        ex13_server.launch(ex13_server.write_keys_kernel, *server.arguments(ex13_server.TRACE[0]))
    assert JITFunction.__getitem__ is before and server.is_right(ex13_server.TRACE[0])
    ((kernel, _, meta),) = seen
    assert kernel is ex13_server.write_keys_kernel and meta == {"SIZE": 128, "BLOCK_T": 4}
    with pytest.raises(ValueError, match="x"), noted():
        raise ValueError("x")
    assert JITFunction.__getitem__ is before


def test_the_monitor_is_disarmed_whatever_an_answer_does(tmp_path):
    for answer in (WRONG + RIGHT)[::-7]:
        if answer.step in ("13.2", "13.3"):
            grade(answer.step, getattr(module_of(answer.source, tmp_path), STEPS[answer.step].name))
    fresh, server = triton.jit(ex13_server.write_keys_kernel.fn), ex13_server.Server()
    ex13_server.launch(fresh, *server.arguments(ex13_server.TRACE[0]))  # would raise if one were still armed
    with watch() as log:
        ex13_server.launch(fresh, *server.arguments(ex13_server.TRACE[0]))
    assert log


def test_the_width_is_that_of_the_keys_and_of_the_cache():
    arguments = (*ex13_server.Server().arguments(ex13_server.Request(ex13_server.F16, 0, 64)), 64)
    narrow = triton.jit(ex13_server.write_keys_kernel.fn, do_not_specialize_on_alignment=["k_ptr"])
    widths = [
        ex13_few_variants._widest(build(kernel, *arguments, SIZE=128, BLOCK_T=4)) for kernel in (ex13_server.write_keys_kernel, narrow)
    ]
    assert widths == [{"load": 64, "store": 64}, {"load": 16, "store": 64}]


@pytest.mark.parametrize("name", ["every value", "aligned only", "every batch size", "everything", "as it was"])
def test_verdicts_have_their_picture(name, tmp_path):
    answer = next(one for one in WRONG if one.name == name and one.step.startswith("13"))
    told = grade(answer.step, getattr(module_of(answer.source, tmp_path), STEPS[answer.step].name))
    picture = told["problems"][0]["picture"]
    assert drawn(picture, "simulated")._repr_mimebundle_()
