"""`watch`: what it tells, what it refuses and how often, and that Triton's hooks are as they were when it is gone."""

import ast
import contextlib
import linecache
import logging
import threading
import time
from concurrent.futures import ThreadPoolExecutor

import pytest
import torch
import triton
import triton.language as tl
from triton import knobs
from triton.runtime import driver as triton_driver
from triton.runtime import jit as triton_jit

import kit
from kit import machine, versions
from kit.errors import BadInput, KitError, WrongType
from kit.variants import Change
from kit.watch import JitError, watch

gpu = machine.start()
FOLDED = "became 1, which Triton folds into the code"
SLOTS = [(knobs.runtime, "jit_cache_hook"), (knobs.runtime, "jit_post_compile_hook"), (knobs.compilation, "listener")]
SLOTS.append((triton_jit, "serialize_specialization_data"))
if hasattr(knobs.autotuning, "listener"):
    SLOTS.append((knobs.autotuning, "listener"))


def scale_kernel(x_ptr, n, a, BLOCK: tl.constexpr, TAG: tl.constexpr = None):
    offs = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    mask = offs < n
    tl.store(x_ptr + offs, tl.load(x_ptr + offs, mask=mask) * a, mask=mask)


def add_kernel(x_ptr, n, BLOCK: tl.constexpr):
    offs = tl.arange(0, BLOCK)
    tl.store(x_ptr + offs, tl.load(x_ptr + offs, mask=offs < n) + 1, mask=offs < n)


def slots():
    return [getattr(owner, name) for owner, name in SLOTS]


@pytest.fixture(autouse=True)
def hooks_come_back(monkeypatch, tmp_path):
    """Each test has a disk cache of its own, and leaves the hooks as it found them."""
    monkeypatch.setenv("TRITON_CACHE_DIR", str(tmp_path))
    before = slots()
    yield
    after = slots()
    for (owner, name), value in zip(SLOTS, before, strict=True):
        setattr(owner, name, value)
    assert after == before


@pytest.fixture(autouse=True)
def one_parse_at_a_time(monkeypatch):
    """Triton parses a kernel with ast.parse, in which threads of CPython 3.11 can end each other in a SystemError (cpython #106905)."""
    parse, lock = ast.parse, threading.Lock()

    def locked(*args, **kwargs):
        with lock:
            return parse(*args, **kwargs)

    monkeypatch.setattr(ast, "parse", locked)


@pytest.fixture
def scale():
    """A kernel of its own that has one variant: x aligned, n = 16."""
    kernel, x = triton.jit(scale_kernel), torch.ones(64, device=gpu.device)
    kernel[(1,)](x, 16, 2.0, BLOCK=32)
    return lambda n, y=x, **more: kernel[(1,)](y, n, 2.0, **({"BLOCK": 32} | more))


@contextlib.contextmanager
def hook(owner, name, value):
    before = getattr(owner, name)
    setattr(owner, name, value)
    try:
        yield
    finally:
        setattr(owner, name, before)


def warned(caplog):
    return [record.getMessage() for record in caplog.records if record.name == "kit.watch"]


# ---- What it tells


def test_silence_after_a_warm_up(scale, caplog):
    with watch() as log:
        scale(16)
        scale(32)
    assert log and len(log) == 0 and not warned(caplog)
    assert repr(log) == "no new variant after arming [compiled]"


def test_a_new_variant_with_its_cause(scale, caplog):
    with watch() as log:
        scale(17)
        scale(1)
        scale(18)
        scale(1)
    assert not log and len(log) == 2 and [one.cause for one in log] == ["launch", "launch"]
    first, second = log
    assert first.kernel == "scale_kernel" and not first.first and not first.refused
    assert first.changes == [Change("n", "int32, ÷16", "int32", "no longer divisible by 16")]
    assert second.changes == [Change("n", "int32", "= 1", FOLDED)]
    assert second.classes == {"x_ptr": "*float32, ÷16", "n": "= 1", "a": "float", "BLOCK": "constexpr 32", "TAG": "constexpr None"}
    assert second.options == {"num_warps": 4, "num_stages": 3}
    assert warned(caplog) == [
        "watch: scale_kernel compiled after the monitor was armed: n int32, ÷16 → int32 (no longer divisible by 16).",
        f"watch: scale_kernel compiled after the monitor was armed: n int32 → = 1 ({FOLDED}).",
    ]
    assert repr(log) == "2 new variants of scale_kernel after arming: n int32, ÷16 → int32; n int32 → = 1 [compiled]"


def test_everything_that_can_change(scale):
    x = torch.ones(64, device=gpu.device)
    with watch() as log:
        scale(16, x[1:])
        scale(16, x.half())
        scale(2**40)
        scale(16, BLOCK=64)
        scale(16, num_warps=8)
    assert [one.changes for one in log] == [
        [Change("x_ptr", "*float32, ÷16", "*float32", "the address is no longer divisible by 16 bytes")],
        [Change("x_ptr", "*float32, ÷16", "*float16, ÷16", "another dtype")],
        [Change("n", "int32, ÷16", "int64, ÷16", "needs 64 bits")],
        [Change("BLOCK", "constexpr 32", "constexpr 64", "another constexpr value")],
        [Change("num_warps", "4 by default", "8", "another num_warps")],
    ]
    assert log.variants[-1].options == {"num_warps": 8, "num_stages": 3}
    assert repr(log).endswith("BLOCK constexpr 32 → constexpr 64; and 1 more [compiled]")


def test_the_first_variant_of_a_kernel(caplog):
    kernel = triton.jit(add_kernel)
    with watch() as log:
        kernel[(1,)](torch.ones(16, device=gpu.device), 16, BLOCK=16)
    assert log.variants[0].first and log.variants[0].changes == []
    assert warned(caplog) == ["watch: add_kernel compiled after the monitor was armed: its first variant."]


def test_a_variant_that_left_memory(scale, caplog):
    kernel, x = triton.jit(add_kernel), torch.ones(16, device=gpu.device)
    with watch() as log:
        kernel[(1,)](x, 16, BLOCK=16)
        kernel.device_caches.clear()
        kernel[(1,)](x, 16, BLOCK=16)
    assert len(log) == 2 and log.variants[0] == log.variants[1] and not log.variants[1].first
    assert "a variant that it had before, and that is no longer in Triton's memory" in warned(caplog)[1]


def test_each_message_once_and_verbose_every_time(scale, caplog):
    def twice(**options):
        caplog.clear()
        with watch(**options) as log:
            for y in (torch.ones(64, device=gpu.device).half(), torch.ones(64, device=gpu.device).half()[8:]):
                kernel = triton.jit(scale_kernel)  # two kernels of one name: the same message
                kernel[(1,)](y, 16, 2.0, BLOCK=32)
        assert len(log) == 2
        return warned(caplog)

    assert len(twice()) == 1
    detail = "(constexprs: BLOCK=32, TAG=None; signature: x_ptr *float16, ÷16; n int32, ÷16; a float; options: num_warps=4, num_stages=3)"
    assert twice(verbose=True) == [f"watch: scale_kernel compiled after the monitor was armed: its first variant {detail}."] * 2


def test_compiled_or_from_the_disk_and_how_long(scale):
    kernel, x = triton.jit(add_kernel), torch.ones(16, device=gpu.device)
    with watch() as log:
        began = time.perf_counter()
        kernel[(1,)](x, 16, BLOCK=16)
        passed = time.perf_counter() - began
        kernel.device_caches.clear()
        kernel[(1,)](x, 16, BLOCK=16)
    fresh, again = log
    assert (fresh.disk, fresh.source, again.disk, again.source) == (False, "compiled", True, "disk cache")
    assert 0 < again.seconds < fresh.seconds < passed


def test_seconds_are_in_the_table_and_not_in_the_line(scale):
    with watch() as log:
        scale(1)
    log.variants[0].seconds = 0.123456
    assert "0.123" in log._repr_html_() and "0.123" not in repr(log) + repr(log.variants[0])
    assert "<b>◆ = 1</b>" in log._repr_html_() and FOLDED in log._repr_html_() and "compiled</span>" in log._repr_html_()


def test_a_table_for_each_kernel(scale):
    kernel = triton.jit(add_kernel)
    with watch() as log:
        scale(1)
        kernel[(1,)](torch.ones(16, device=gpu.device), 1, BLOCK=16)
    assert log._repr_html_().count("<table>") == 2
    one, other = "scale_kernel after arming: n int32, ÷16 → = 1", "add_kernel after arming: its first variant"
    assert repr(log) == f"1 new variant of {one} · 1 new variant of {other} [compiled]"
    assert log.of(kernel) == log.of("add_kernel") == [log.variants[1]] and log.of("other") == []
    with pytest.raises(WrongType, match="^watch: of: kernel must be a function"):
        log.of(3)


def test_a_log_counts_as_a_set_of_variants(scale):
    kernel, x = triton.jit(scale_kernel), torch.ones(64, device=gpu.device)
    needed = kit.build(kernel, x, 16, 2.0, BLOCK=32).variants([{"n": n} for n in (16, 1, 17)])
    with watch() as log:
        kernel[(1,)](x, 1, 2.0, BLOCK=32)
        kernel[(1,)](x, 17, 2.0, BLOCK=32)
    assert [one.classes["n"] for one in needed - log] == ["int32, ÷16"] and all(one in needed for one in log)


def test_a_compilation_that_fails_leaves_no_variant():
    @triton.jit
    def broken_kernel(x_ptr):
        tl.store(x_ptr, undefined_name)  # noqa: F821

    kernel, x = triton.jit(add_kernel), torch.ones(16, device=gpu.device)
    with watch() as log:
        with pytest.raises(triton.CompilationError):
            broken_kernel[(1,)](x)
        kernel[(1,)](x, 16, BLOCK=16)
    assert [one.kernel for one in log] == ["add_kernel"] and not log._pending


# ---- What it refuses


def test_error_is_raised_each_time_and_before_compiling(scale, caplog):
    kernel, x = triton.jit(scale_kernel), torch.ones(64, device=gpu.device)
    kernel[(1,)](x, 16, 2.0, BLOCK=32)
    cache = kernel.device_caches[triton_driver.active.get_current_device()][0]
    values, log = x.clone(), watch("error")
    for _ in range(3):
        with pytest.raises(JitError) as error:
            kernel[(1,)](x, 1, 2.0, BLOCK=32)
        assert str(error.value) == (
            f"watch: scale_kernel would compile now, with the monitor armed: n int32, ÷16 → = 1 ({FOLDED}); launch it like this "
            'before arming, or put "n" into do_not_specialize if no vector load needs its divisibility.'
        )
    kernel[(1,)](x, 32, 1.0, BLOCK=32)  # what is there runs
    log.stop()
    assert isinstance(error.value, RuntimeError) and isinstance(error.value, KitError)
    assert len(cache) == 1 and torch.equal(x, values) and not warned(caplog)
    assert len(log) == 1 and log.variants[0].refused and (log.variants[0].seconds, log.variants[0].disk) == (None, None)
    assert not log and repr(log) == "1 new variant of scale_kernel after arming, refused: n int32, ÷16 → = 1 [compiled]"
    assert "refused" in log._repr_html_()
    kernel[(1,)](x, 1, 2.0, BLOCK=32)
    with watch("error") as log:
        kernel[(1,)](x, 1, 2.0, BLOCK=32)
    assert log


def test_a_post_compile_hook_raises_once_as_vllm_does(scale):
    """What vLLM's "error" does, and why `watch` uses the hook before: Triton has the kernel by then, and the next launch passes."""

    def raises(**event):
        raise RuntimeError("late")

    with hook(knobs.runtime, "jit_post_compile_hook", raises):
        with pytest.raises(RuntimeError, match="late"):
            scale(1)
        scale(1)


@pytest.mark.parametrize(
    ("launch", "advice"),
    [
        ({"n": 2**40}, "launch it like this before arming."),
        ({"y": 1}, '"x_ptr" into do_not_specialize_on_alignment if only scalars are read through it.'),
        ({"BLOCK": 64}, "or give BLOCK fewer values."),
        ({"num_warps": 8}, "launch it like this before arming."),
    ],
    ids=str,
)
def test_the_advice_fits_the_change(scale, launch, advice):
    launch = {"n": 16} | launch
    if "y" in launch:
        launch["y"] = torch.ones(64, device=gpu.device)[1:]
    with watch("error"), pytest.raises(JitError) as error:
        scale(**launch)
    assert str(error.value).endswith(advice)


def test_a_reader_sees_the_launch_and_the_sentence_only():
    cell = "def launch(kernel, *args, **meta):\n    kernel[(1,)](*args, **meta)\n"
    linecache.cache["<cell 7>"] = (len(cell), None, cell.splitlines(True), "<cell 7>")
    space = {}
    exec(compile(cell, "<cell 7>", "exec"), space)
    with watch("error"), pytest.raises(JitError) as error:
        space["launch"](triton.jit(add_kernel), torch.ones(16, device=gpu.device), 16, BLOCK=16)
    lines = error.value._render_traceback_()
    assert lines[0] == "  line 2: kernel[(1,)](*args, **meta)" and lines[1].startswith("JitError: watch: add_kernel would compile now")
    assert len(lines) == 2


def test_modes_are_those_of_vllm():
    for wrong in ("off", "warning", None, 3, True):
        with pytest.raises(BadInput, match='^watch: mode must be "warn" or "error", as in vLLM; got '):
            watch(wrong)
    with pytest.raises(WrongType, match="watch: verbose must be True or False; got 1"):
        watch(verbose=1)
    with knobs.runtime.scope():
        knobs.runtime.interpret = True
        with pytest.raises(BadInput, match="TRITON_INTERPRET"):
            watch()


# ---- Causes


def test_a_warm_up_counts(caplog):
    with watch() as log:
        triton.jit(add_kernel).warmup(torch.float32, 16, BLOCK=16, grid=(1,))
    assert [one.cause for one in log] == ["warmup"] and "add_kernel compiled in a warm-up after" in warned(caplog)[0]
    with watch("error"), pytest.raises(JitError):
        triton.jit(add_kernel).warmup(torch.float32, 16, BLOCK=16, grid=(1,))


@pytest.mark.filterwarnings("ignore:triton.autotune on the simulated GPU")
def test_autotuning_is_told_apart(caplog):
    configs = [triton.Config({"BLOCK": block}, num_warps=warps) for block, warps in ((16, 1), (32, 2))]
    inner = triton.jit(add_kernel)
    tuned, x = triton.autotune(configs, key=["n"])(inner), torch.ones(32, device=gpu.device)
    with watch() as log:
        tuned[(1,)](x, 16)
        tuned[(1,)](x, 32)
        tuned[(1,)](x, 1)
    assert [(one.cause, one.classes["n"], one.written["num_warps"]) for one in log] == [
        ("autotune", "int32, ÷16", 1),
        ("autotune", "int32, ÷16", 2),
        ("autotune", "= 1", 1),
        ("autotune", "= 1", 2),
    ]
    assert log.of(tuned) == log.of(inner) == log.variants
    assert "add_kernel compiled for autotuning after the monitor was armed" in warned(caplog)[0]
    if versions.minor(triton.__version__) >= (3, 8):
        assert [(one.kernel, one.configurations) for one in log.tunings] == [("add_kernel", 2)] * 3
        assert all(one.seconds > 0 and not one.disk for one in log.tunings)
    else:
        assert log.tunings == []
    with watch("error") as log, pytest.raises(JitError):
        tuned[(1,)](x, 17)
    assert [(one.cause, one.refused) for one in log] == [("autotune", True)]


def test_heuristics_and_a_single_configuration_are_launches():
    inner, x = triton.jit(add_kernel), torch.ones(32, device=gpu.device)
    guided = triton.heuristics({"BLOCK": lambda args: triton.next_power_of_2(args["n"])})(inner)
    single = triton.autotune([triton.Config({"BLOCK": 16})], key=["n"])(inner)
    with watch() as log:
        guided[(1,)](x, 32)
        single[(1,)](x, 16)
    assert [(one.cause, one.classes["BLOCK"]) for one in log] == [("launch", "constexpr 32"), ("launch", "constexpr 16")]
    assert log.of(guided) == log.of(single) == log.variants


def test_a_preloaded_variant(scale):
    kernel, x, data = triton.jit(add_kernel), torch.ones(16, device=gpu.device), []
    with hook(knobs.runtime, "jit_cache_hook", lambda **event: data.append(event["compile"]["specialization_data"])):
        kernel[(1,)](x, 1, BLOCK=16)
    again = triton.jit(add_kernel)
    with watch() as log:
        again.preload(data[0])
        again[(1,)](x, 1, BLOCK=16)
    assert [(one.cause, one.classes) for one in log] == [("warmup", {"x_ptr": "*float32, ÷16", "n": "= 1", "BLOCK": "constexpr 16"})]


def test_constexprs_that_json_does_not_know(scale):
    """Triton writes the constexprs as JSON as soon as a hook is there, and fails for others: watching must not break the launch."""
    odd = frozenset({1})
    with watch() as log:
        scale(16, TAG=odd)
        scale(16, TAG=triton.jit(add_kernel))
    assert [one.classes["TAG"] for one in log] == ["constexpr frozenset({1})", "constexpr add_kernel"]
    with hook(knobs.runtime, "jit_cache_hook", lambda **event: None), pytest.raises(TypeError, match="JSON"):
        scale(17, TAG=odd)  # the guard has gone with the log


# ---- Other hooks


def test_hooks_that_were_there_are_called_and_come_back(scale):
    seen = []
    mine = [lambda **event: seen.append("before"), lambda **event: seen.append("after"), lambda **event: seen.append("compiled")]
    with contextlib.ExitStack() as stack:
        for (owner, name), value in zip(SLOTS, mine, strict=False):
            stack.enter_context(hook(owner, name, value))
        with watch() as log:
            scale(1)
        assert slots()[:3] == mine and len(log) == 1 and log.variants[0].disk is False
        assert seen == ["before", "compiled", "after"]


@pytest.mark.filterwarnings("ignore:triton.autotune on the simulated GPU")
def test_an_autotuning_listener_is_called():
    """From Triton 3.8; before, the slot is not there, and nobody can have set it."""
    seen = []
    if versions.minor(triton.__version__) < (3, 8):
        assert not hasattr(knobs.autotuning, "listener")
        return
    configs = [triton.Config({"BLOCK": 16}), triton.Config({"BLOCK": 32})]
    tuned = triton.autotune(configs, key=["n"])(triton.jit(add_kernel))
    with hook(knobs.autotuning, "listener", lambda **event: seen.append(event["best_config"])), watch():
        tuned[(1,)](torch.ones(32, device=gpu.device), 16)
    assert len(seen) == 1 and seen[0] in configs


@pytest.mark.parametrize("mode", ["warn", "error"])
def test_a_hook_that_stops_the_launch_keeps_its_say(scale, mode):
    x = torch.ones(64, device=gpu.device)
    with hook(knobs.runtime, "jit_cache_hook", lambda **event: True), watch(mode) as log:
        assert scale(1, x) is None
    assert log and bool((x == 1).all())


def test_a_hook_set_over_ours_stays(scale, caplog):
    seen = []
    with hook(knobs.runtime, "jit_cache_hook", lambda **event: seen.append("first")):
        log = watch()
        ours = knobs.runtime.jit_cache_hook

        def over(**event):
            seen.append("over")
            return ours(**event)

        knobs.runtime.jit_cache_hook = over
        scale(1)
        log.stop()
        assert knobs.runtime.jit_cache_hook is over and len(log) == 1
        scale(17)
        assert seen == ["over", "first"] * 2 and len(log) == 1 and len(warned(caplog)) == 1
        knobs.runtime.jit_cache_hook = ours  # whoever set it gives back what was there
        scale(2**40)
        assert seen[4:] == ["first"] and len(log) == 1


@pytest.mark.parametrize("inner_first", [True, False])
def test_two_monitors(scale, inner_first):
    before = slots()
    outer, inner = watch(), watch()
    scale(1)
    one, other = (inner, outer) if inner_first else (outer, inner)
    one.stop()
    scale(17)
    other.stop()
    assert (len(one), len(other)) == (1, 2) and slots() == before
    scale(2**40)
    assert (len(one), len(other)) == (1, 2)


def test_a_refusal_by_the_inner_is_no_compilation_for_the_outer(scale):
    with watch() as outer, watch("error") as inner:
        with pytest.raises(JitError):
            scale(1)
        inner.stop()
        scale(17)
    assert [one.changes[0].after for one in outer] == ["int32"] and [one.refused for one in inner] == [True]


def test_stop_is_for_good_and_can_be_repeated(scale):
    log = watch()
    assert log.armed
    assert log.stop() is log and log.stop() is log and not log.armed
    scale(1)
    assert log


def test_an_exception_in_the_block_disarms():
    before = slots()
    with pytest.raises(ZeroDivisionError), watch():
        1 / 0  # noqa: B018
    assert slots() == before


# ---- Threads


def test_threads_are_told_apart(scale):
    """Two variants from disk and two that compile, at once, and one thread that stays in the hook: each has its own time and origin."""
    x = torch.ones(64, device=gpu.device)
    kernels = [triton.jit(scale_kernel) for _ in range(4)]
    for kernel in kernels[:2]:
        kernel[(1,)](x.clone(), 16, 2.0, BLOCK=32)
        kernel.device_caches.clear()
    barrier = threading.Barrier(4)

    def launch(i):
        barrier.wait()
        kernels[i][(1,)](x.clone(), 16, 2.0, BLOCK=32 if i < 2 else 2**i)

    with watch() as log:
        threads = [threading.Thread(target=launch, args=(i,)) for i in range(4)]
        for one in threads:
            one.start()
        for one in threads:
            one.join()
    assert len(log) == 4 and not log._pending
    assert [[one.disk for one in log.of(kernel)] for kernel in kernels] == [[True], [True], [False], [False]]
    assert all(one.first and one.seconds > 0 for one in log)


def test_a_thread_that_waits_does_not_lengthen_another(scale):
    """A second thread compiles and ends while the first is held between its two hooks: the times must not be mixed up."""
    held, free, x = threading.Event(), threading.Event(), torch.ones(64, device=gpu.device)
    slow, quick = triton.jit(scale_kernel), triton.jit(add_kernel)

    def hold(*, src, **event):
        if src.fn is slow:
            held.set()
            assert free.wait(20)

    with hook(knobs.compilation, "listener", hold), watch() as log:
        thread = threading.Thread(target=lambda: slow[(1,)](x, 16, 2.0, BLOCK=32))
        thread.start()
        assert held.wait(20)
        began = time.perf_counter()
        quick[(1,)](x.clone(), 16, BLOCK=16)
        passed = time.perf_counter() - began
        free.set()
        thread.join()
    assert [one.kernel for one in log] == ["add_kernel", "scale_kernel"]
    first, second = log
    assert first.seconds <= passed < second.seconds


def test_two_threads_in_one_kernel(scale):
    """One thread is held before it compiles, while another takes a variant of the same kernel from the disk cache."""
    held, free, x = threading.Event(), threading.Event(), torch.ones(64, device=gpu.device)
    kernel = triton.jit(scale_kernel)
    kernel[(1,)](x.clone(), 16, 2.0, BLOCK=32)
    kernel.device_caches.clear()
    kernel.device_caches[triton_driver.active.get_current_device()]  # makes the binder, and with it kernel.compile
    compile = kernel.compile

    def hold(src, **more):
        if src.constants[(3,)] == 64:
            held.set()
            assert free.wait(20)
        return compile(src, **more)

    kernel.compile = hold
    with watch() as log:
        thread = threading.Thread(target=lambda: kernel[(1,)](x, 16, 2.0, BLOCK=64))
        thread.start()
        assert held.wait(20)
        kernel[(1,)](x.clone(), 16, 2.0, BLOCK=32)
        free.set()
        thread.join()
    assert [(one.classes["BLOCK"], one.disk) for one in log] == [("constexpr 32", True), ("constexpr 64", False)]


def test_compiling_in_the_background(caplog):
    kernel, x, took = triton.jit(scale_kernel), torch.ones(64, device=gpu.device), []

    class Timed(ThreadPoolExecutor):
        def submit(self, work):
            def timed():
                began = time.perf_counter()
                try:
                    return work()
                finally:
                    took.append(time.perf_counter() - began)

            return super().submit(timed)

    with Timed(1) as pool, watch() as log:
        with triton.AsyncCompileMode(pool):
            for n in (16, 1, 16):
                kernel.warmup(x, n, 2.0, BLOCK=32, grid=(1,))
        kernel[(1,)](x, 16, 2.0, BLOCK=32)
        kernel[(1,)](x, 1, 2.0, BLOCK=32)
    assert sorted(one.classes["n"] for one in log) == ["= 1", "int32, ÷16"] and not log._pending
    assert all(one.disk is False and one.seconds > 0 and one.cause == "warmup" for one in log)
    assert sum(one.seconds for one in log) <= sum(took)  # the worker's own time: the second one waited for the first
    assert len(warned(caplog)) == 2


def test_nothing_is_compiled_in_the_background_either(scale):
    kernel = triton.jit(scale_kernel)
    with ThreadPoolExecutor(1) as pool, watch("error") as log, triton.AsyncCompileMode(pool):
        for _ in range(2):
            with pytest.raises(JitError):
                kernel.warmup(torch.float32, 16, 2.0, BLOCK=32, grid=(1,))
    assert len(log) == 1 and log.variants[0].refused


def test_the_line_in_a_notebook(capfd):
    """With no handler configured, logging prints the message alone: no path and no time, so that a stored output compares equal."""
    logger, root = logging.getLogger("kit.watch"), logging.getLogger()
    handlers, root.handlers = root.handlers, []
    try:
        with watch():
            triton.jit(add_kernel)[(1,)](torch.ones(16, device=gpu.device), 16, BLOCK=16)
    finally:
        root.handlers = handlers
    assert not logger.handlers
    assert capfd.readouterr().err == "watch: add_kernel compiled after the monitor was armed: its first variant.\n"
