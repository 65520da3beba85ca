"""kit.sandbox: every way a cell can end, read and named; nothing left behind; the notebook's process untouched."""

import contextlib
import ctypes
import os
import pathlib
import re
import signal
import subprocess
import sys
import textwrap
import threading
import time

import pytest
import torch
import triton
import triton.language as tl

from kit import machine, sandbox_client, sandbox_process, sandbox_queue
from kit.errors import BadInput, KitError, WrongType
from kit.sandbox import Outcome, register_magics, run_source, sandbox

live = pytest.mark.skipif(not torch.cuda.is_available(), reason="tells of a GPU; the simulated twin runs instead")
simulated = pytest.mark.skipif(torch.cuda.is_available(), reason="tells of the simulated GPU; the live twin runs instead")
FACTOR = tl.constexpr(3)
COUNT = 3
WEIGHTS = torch.ones(3)


@triton.jit
def scale_kernel(x_ptr, n, BLOCK: tl.constexpr):
    offs = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    mask = offs < n
    tl.store(x_ptr + offs, tl.load(x_ptr + offs, mask=mask) * FACTOR, mask=mask)


@triton.jit
def far_kernel(x_ptr, BLOCK: tl.constexpr):
    offs = tl.arange(0, BLOCK).to(tl.int64) + 2**40
    x = tl.load(x_ptr + offs)
    tl.store(x_ptr + tl.arange(0, BLOCK), x)


@triton.jit(debug=True)
def overflow_kernel(x_ptr, stride, BLOCK: tl.constexpr):
    offs = tl.arange(0, BLOCK)
    far = offs * stride
    tl.store(x_ptr + offs, far)


@triton.jit
def endless_kernel(x_ptr, n):
    x = tl.load(x_ptr)
    while x < n:
        tl.store(x_ptr, x)
        x = tl.load(x_ptr)


@triton.jit
def greedy_kernel(x_ptr, BLOCK: tl.constexpr):
    offs = tl.arange(0, BLOCK)
    a = tl.load(x_ptr + offs[:, None] * BLOCK + offs[None, :])
    tl.store(x_ptr + offs[:, None] * BLOCK + offs[None, :], tl.dot(a, a))


def double(x):
    return x * 2


def use_weights():
    return WEIGHTS.sum()


def server_pid():
    return sandbox_process._running.process.pid


def descendants(pid):
    with contextlib.suppress(OSError):
        children = pathlib.Path(f"/proc/{pid}/task/{pid}/children").read_text().split()
        return [int(child) for child in children] + [deep for child in children for deep in descendants(child)]
    return []


def alive(pid):
    with contextlib.suppress(OSError):
        return "State:\tZ" not in pathlib.Path(f"/proc/{pid}/status").read_text()
    return False


def ends(pid, seconds=5.0):
    """True when a process is gone within `seconds`."""
    deadline = time.monotonic() + seconds
    while alive(pid) and time.monotonic() < deadline:
        time.sleep(0.02)
    return not alive(pid)


# ---- how cells end
def test_ok_gives_the_last_value():
    outcome = sandbox("n = COUNT + 1\n[double(n), 'a']")
    assert outcome and outcome.kind == "ok" and outcome.value == [8, "a"] and repr(outcome) == "ok: [8, 'a']"
    assert repr(sandbox("n = 1")) == "ok" and sandbox("torch.ones(2)").value == "tensor([1., 1.])"


def test_an_exception_names_its_line():
    outcome = sandbox("n = 0\nm = 1 // n\n")
    assert not outcome and outcome.kind == "error" and outcome.line.number == 2 and outcome.line.function == ""
    assert repr(outcome) == "error: line 2: m = 1 // n · ZeroDivisionError: integer division or modulo by zero"
    assert "line 2, in <module>" in outcome.stderr and "kit" not in outcome.stderr


def test_an_exception_in_a_function_from_above_names_the_function():
    def fail():
        x = 1
        raise KeyError(x)

    outcome = sandbox("fail()")
    assert outcome.kind == "error" and (outcome.line.function, outcome.line.number, outcome.line.text.strip()) == (
        "fail",
        3,
        "raise KeyError(x)",
    )


def test_wrong_results_keep_the_message():
    outcome = sandbox("x = torch.zeros(2)\nassert torch.equal(x, x + 1), '2 of 2 elements differ'")
    assert outcome.kind == "wrong" and outcome.message == "2 of 2 elements differ" and outcome.line.number == 2
    assert sandbox("torch.testing.assert_close(torch.zeros(2), torch.ones(2))").kind == "wrong"


def test_syntax_errors_and_exits():
    outcome = sandbox("n = 1\ndef f(:\n    pass")
    assert outcome.kind == "error" and outcome.line.number == 2 and "SyntaxError" in repr(outcome)
    assert sandbox("import sys\nsys.exit()").kind == "ok" and sandbox("import sys\nsys.exit(3)").kind == "error"
    assert repr(sandbox("import os\nos._exit(9)")) == "crashed: the process ended itself with code 9"


@pytest.mark.parametrize(
    "code, name",
    [
        ("import ctypes\nctypes.string_at(0)", "SIGSEGV"),
        ("import os\nos.abort()", "SIGABRT"),
        ("import os\nos.kill(os.getpid(), 9)", "SIGKILL"),
    ],
)
def test_a_crash_is_named_and_this_process_lives(code, name):
    outcome = sandbox(code)
    assert outcome.kind == "crashed" and outcome.signal == name and name in repr(outcome)
    assert name == "SIGKILL" or outcome.line.number == 2  # nothing can be written down at a SIGKILL
    assert sandbox("1").value == 1


def test_an_endless_loop_is_ended_with_all_it_started(tmp_path):
    seen = tmp_path / "pids"
    outcome = sandbox(
        f"""
import os, subprocess, sys
child = subprocess.Popen(["sleep", "600"])
lost = subprocess.Popen(["sleep", "601"], start_new_session=True)
open({str(seen)!r}, "w").write(f"{{os.getpid()}} {{child.pid}} {{lost.pid}}")
print("started", end="")
n = 0
while True:
    n += 1
    n -= 1
""",
        timeout=0.7,
    )
    assert outcome.kind == "hang" and outcome.stdout == "started" and repr(outcome) == "hang: line 7: while True: · no end within 0.7 s"
    assert 0.6 < outcome.seconds < 5
    pids = [int(pid) for pid in seen.read_text().split()]
    assert len(pids) == 3 and all(ends(pid) for pid in pids)
    assert all(ends(pid) for pid in descendants(server_pid()))


def test_what_a_finished_cell_left_running_is_ended(tmp_path):
    seen = tmp_path / "pid"
    assert sandbox(f"import subprocess\nopen({str(seen)!r}, 'w').write(str(subprocess.Popen(['sleep', '600']).pid))")
    assert ends(int(seen.read_text()))


def test_what_a_finished_cell_left_running_is_ended_while_another_runs(tmp_path):
    seen = tmp_path / "pid"
    other = threading.Thread(target=sandbox, args=("import time\ntime.sleep(2)",))
    other.start()
    assert sandbox(f"import subprocess\nopen({str(seen)!r}, 'w').write(str(subprocess.Popen(['sleep', '600']).pid))")
    assert ends(int(seen.read_text()), 1.0)
    other.join()


def test_out_of_memory_three_ways():
    runaway = sandbox("held = []\nwhile True:\n    held.append(bytearray(2**24))", memory=3 * 10**8)
    assert runaway.kind == "out of memory" and repr(runaway) == "out of memory: the cell took more memory than the 0.3 GB given"
    assert sandbox("bytes(2**62)").kind == "out of memory"
    asked = sandbox("torch.ones(2**45)")
    assert asked.kind == "out of memory" and asked.message == "torch asked for 140737.5 GB, which this machine does not have"


def test_memory_that_is_reserved_and_not_filled_is_free():
    code = "import mmap\npages = mmap.mmap(-1, 2**36, flags=mmap.MAP_PRIVATE | mmap.MAP_ANONYMOUS | 0x4000)\npages[2**35] = 1\nlen(pages)"
    assert sandbox(code, memory=10**8).value == 2**36


def test_output_of_python_c_and_children_is_kept():
    outcome = sandbox("""
import ctypes, os, sys
print("python")
print("python err", file=sys.stderr)
ctypes.CDLL(None).printf(b"from C\\n")
os.write(2, b"raw\\n")
os.system("echo shell")
""")
    assert sorted(outcome.stdout.split("\n")) == ["", "from C", "python", "shell"] and sorted(outcome.stderr.split("\n")) == [
        "",
        "python err",
        "raw",
    ]


def test_output_before_a_crash_is_kept_and_a_flood_is_cut():
    assert sandbox("print('first')\nimport os\nos.abort()").stdout == "first\n"
    flood = sandbox("print('start')\nfor _ in range(200_000):\n    print('x' * 80)\nprint('end')")
    assert flood and len(flood.stdout) < 300_000
    assert flood.stdout.startswith("start\n") and flood.stdout.endswith("end\n") and "bytes left out" in flood.stdout


# ---- what a cell sees
def test_the_cell_sees_what_it_uses_and_no_tensors():
    with pytest.raises(BadInput, match=r"the sandbox does not see WEIGHTS \(a tensor \(3,\) float32 on cpu\): make it inside the cell"):
        sandbox("WEIGHTS + 1")
    assert sandbox("WEIGHTS = torch.zeros(1)\nWEIGHTS.item()").value == 0
    deep = sandbox("use_weights()")
    assert (
        deep.kind == "error" and deep.message == "the sandbox does not see WEIGHTS (a tensor (3,) float32 on cpu): make it inside the cell"
    )
    assert sandbox("'unused' in globals()").value is False


def test_the_machine_is_there():
    gpu = machine.current()
    outcome = sandbox("torch.zeros(2, device=gpu.device).device.type, gpu.target")
    assert outcome.value == [gpu.device, gpu.target]


def test_a_function_sees_the_machine_too():
    gpu = machine.current()

    def told():
        return [torch.zeros(2, device=gpu.device).device.type, gpu.target]

    assert sandbox(told).value == [gpu.device, gpu.target]


def test_functions_run_by_name_and_lambdas_too():
    n = 4

    def work():
        return double(n)

    assert sandbox(work).value == 8 and sandbox(lambda: COUNT).value == 3
    with pytest.raises(BadInput, match="the sandbox does not see WEIGHTS"):
        sandbox(use_weights)


def test_sources_are_visible_to_inspect_and_tracebacks():
    outcome = sandbox("import inspect\ndef here():\n    return 1\ninspect.getsource(here), inspect.getsource(double)")
    assert outcome.value == ["def here():\n    return 1\n", "def double(x):\n    return x * 2\n"]


def test_environment_and_folder_are_the_callers(tmp_path, monkeypatch):
    monkeypatch.setenv("KIT_TEST_WORD", "now")
    monkeypatch.chdir(tmp_path)
    assert sandbox("import os\nos.environ['KIT_TEST_WORD'], os.getcwd()").value == ["now", str(tmp_path)]


def test_runs_start_alike_and_share_nothing():
    first, second = (
        sandbox("import builtins\nseen = hasattr(builtins, 'left')\nbuiltins.left = 1\ntorch.rand(1).item(), seen") for _ in range(2)
    )
    assert first.value == second.value and second.value[1] is False


def test_run_source_takes_a_payload():
    assert run_source("payload['n'] + 1", payload={"n": 2}).value == 3
    assert run_source("double", payload=None).kind == "error"
    with pytest.raises(BadInput, match="run_source: payload must be what JSON holds"):
        run_source("1", payload=WEIGHTS)


# ---- kernels
def test_a_kernel_from_above_runs():
    outcome = sandbox("x = torch.ones(5, device=machine.current().device)\nscale_kernel[(2,)](x, 5, BLOCK=4)\nx.tolist()", timeout=60)
    assert outcome.value == [3.0] * 5, outcome


@simulated
def test_an_illegal_access_names_kernel_and_line():
    outcome = sandbox("x = torch.ones(16)\nfar_kernel[(1,)](x, BLOCK=16)")
    assert outcome.kind == "illegal access" and outcome.line.function == "far_kernel" and outcome.line.number == 4
    assert repr(outcome).startswith(
        "illegal access: far_kernel, line 4: x = tl.load(x_ptr + offs) · program (0, 0, 0) reads x_ptr at element offset"
    )


@live
def test_an_illegal_access_on_the_gpu_names_the_launch():
    outcome = sandbox("x = torch.ones(16, device='cuda')\nfar_kernel[(1,)](x, BLOCK=16)", timeout=60)
    assert outcome.kind == "illegal access" and outcome.line.number == 2 and "illegal memory access" in outcome.stderr
    assert sandbox("torch.ones(1, device='cuda').item()").value == 1.0


@live
def test_a_device_assert_on_the_gpu_names_kernel_and_line():
    outcome = sandbox("x = torch.ones(16, dtype=torch.int32, device='cuda')\noverflow_kernel[(1,)](x, 2**30, BLOCK=16)", timeout=60)
    assert outcome.kind == "assert" and outcome.message == "int32 overflow detected for operation mul"
    assert outcome.line.function == "overflow_kernel" and outcome.line.text.strip() == "far = offs * stride"
    assert outcome.line.number == 4


@live
def test_the_gpu_runs_out_of_memory():
    assert sandbox("torch.empty(2**45, dtype=torch.int8, device='cuda')", timeout=60).kind == "out of memory"


@simulated
def test_a_device_assert_names_kernel_and_line():
    outcome = sandbox("x = torch.ones(16, dtype=torch.int32)\noverflow_kernel[(1,)](x, 2**30, BLOCK=16)")
    assert outcome.kind == "assert" and outcome.line.function == "overflow_kernel" and outcome.line.text.strip() == "far = offs * stride"
    assert "int32 overflow detected for operation mul" in repr(outcome)


def test_an_endless_kernel_hangs():
    outcome = sandbox("x = torch.zeros(1, device=machine.current().device)\nendless_kernel[(1,)](x, 8)", timeout=12)
    assert repr(outcome) == "hang: line 2: endless_kernel[(1,)](x, 8) · no end within 12 s"


def test_refused_launches():
    start = "x = torch.ones(5, device=machine.current().device)\n"
    for grid in ("(1, 65_536)", "(2**31,)"):
        outcome = sandbox(f"{start}scale_kernel[{grid}](x, 5, BLOCK=4)")
        assert outcome.kind == "refused" and outcome.line.number == 2, outcome
    greedy = sandbox("x = torch.ones(256, 256, device=machine.current().device)\ngreedy_kernel[(1,)](x, BLOCK=256)", timeout=120)
    assert greedy.kind == "refused" and "shared memory" in greedy.message, greedy


def test_compile_errors_name_the_kernels_line():
    outcome = sandbox("""
        @triton.jit
        def slip_kernel(x_ptr):
            x = tl.load(x_ptr)
            tl.store(x_ptr, y)

        slip_kernel[(1,)](torch.ones(1, device=machine.current().device))
    """)
    assert repr(outcome).startswith("compile error: slip_kernel, line 4: tl.store(x_ptr, y) · ") and "y is not defined" in outcome.message


def test_the_sources_stay_where_a_cached_kernel_names_them():
    text = "@triton.jit\ndef k(x_ptr):\n    tl.store(x_ptr, 1 / 0)\nk[(1,)](torch.ones(1))"
    first, second = sandbox(text), sandbox(text)
    assert repr(first) == repr(second) and "compile error: k, line 3" in repr(first)


# ---- the server
def test_the_server_is_fit_to_fork():
    sandbox("1")
    status = pathlib.Path(f"/proc/{server_pid()}/status").read_text()
    assert "Threads:\t1\n" in status
    assert "nvidia" not in "".join(os.readlink(fd) for fd in pathlib.Path(f"/proc/{server_pid()}/fd").iterdir())


def test_children_compute_with_threads_and_compile_many_times():
    code = "a = torch.rand(256, 256)\n(a @ a).sum().item() > 0, torch.rand(2**18).exp().sum().item() > 0"
    launch = "x = torch.ones(5, device=machine.current().device)\nscale_kernel[(2,)](x, 5, BLOCK=4)\nx[0].item()"
    for n in range(60):
        outcome = sandbox(launch) if n % 4 == 0 else sandbox(code)
        assert outcome.value == (3.0 if n % 4 == 0 else [True, True]), outcome
    assert descendants(server_pid()) == []


def test_a_warm_start_takes_well_under_a_second():
    sandbox("1")
    times = []
    for _ in range(5):
        began = time.monotonic()
        sandbox("1")
        times.append(time.monotonic() - began)
    assert sorted(times)[2] < 0.5


@pytest.mark.parametrize("choice", ["", "0"])
def test_the_server_starts_with_the_machine_or_with_the_first_sandbox(choice, monkeypatch):
    sandbox_process.stop()
    monkeypatch.setenv("KIT_WARM", choice)
    machine.start()
    assert (sandbox_process._running is None) == (choice == "0")
    assert sandbox("1 + 1").value == 2


def test_many_at_once():
    outcomes = {}

    def one(n):
        outcomes[n] = run_source(f"import time\ntime.sleep(0.1)\nprint({n})\n{n}")

    threads = [threading.Thread(target=one, args=(n,)) for n in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert {n: (outcome.value, outcome.stdout) for n, outcome in outcomes.items()} == {n: (n, f"{n}\n") for n in range(8)}


def test_a_dead_server_is_replaced():
    sandbox("1")
    before = server_pid()
    os.kill(before, signal.SIGKILL)
    assert ends(before) and sandbox("2").value == 2 and server_pid() != before


def test_a_server_that_dies_under_a_run_is_a_sentence():
    sandbox("1")
    pid = server_pid()
    threading.Timer(0.3, os.kill, (pid, signal.SIGKILL)).start()
    with pytest.raises(KitError, match="sandbox: its server process ended while the cell ran .* Run the cell again"):
        sandbox("import time\ntime.sleep(30)")


def test_nothing_outlives_a_notebook_that_is_killed(tmp_path):
    script = tmp_path / "notebook.py"
    script.write_text(
        textwrap.dedent(f"""
        import os, sys
        sys.path.insert(0, {str(pathlib.Path(__file__).parents[2])!r})
        from kit import sandbox_process
        from kit.sandbox import sandbox
        sandbox("1")
        print(sandbox_process._running.process.pid, flush=True)
        if os.fork() == 0:  # a fork holds copies of what the notebook has open
            import time
            time.sleep(15)
            os._exit(0)
        sandbox("import os, time\\nopen('{tmp_path}/pid', 'w').write(str(os.getpid()))\\ntime.sleep(60)")
    """)
    )
    environment = {**os.environ, "TMPDIR": str(tmp_path)}
    notebook = subprocess.Popen([sys.executable, str(script)], stdout=subprocess.PIPE, text=True, env=environment)
    server = int(notebook.stdout.readline())
    deadline = time.monotonic() + 20
    while not (tmp_path / "pid").exists() and time.monotonic() < deadline:
        time.sleep(0.05)
    child = int((tmp_path / "pid").read_text())
    assert alive(child) and alive(server)
    notebook.kill()
    notebook.wait()
    assert ends(child) and ends(server)
    assert [path for path in tmp_path.glob("kit-sandbox*") if path.is_dir()] == []


@pytest.fixture
def interruptible():
    """A process started in the background of a shell ignores SIGINT, and so would this test."""
    before = signal.signal(signal.SIGINT, signal.default_int_handler)
    yield
    signal.signal(signal.SIGINT, before)


@pytest.mark.usefixtures("interruptible")
def test_an_interrupt_ends_the_child():
    sandbox("1")
    timer = threading.Timer(0.5, ctypes.pythonapi.PyErr_SetInterrupt)
    timer.start()
    with pytest.raises(KeyboardInterrupt):
        sandbox("import time\ntime.sleep(30)")
    deadline = time.monotonic() + 5
    while descendants(server_pid()) and time.monotonic() < deadline:
        time.sleep(0.02)
    assert descendants(server_pid()) == []


def test_no_folder_is_left(monkeypatch, tmp_path):
    monkeypatch.setattr(sandbox_client.tempfile, "tempdir", str(tmp_path))
    sandbox("1")
    sandbox("import os\nos.abort()")
    assert [path for path in tmp_path.glob("kit-sandbox*") if path.is_dir()] == []


def test_a_sandbox_in_a_sandbox_is_refused():
    outcome = sandbox("from kit.sandbox import sandbox as again\nagain('1')")
    assert outcome.kind == "error" and "already runs in a sandbox" in outcome.message


# ---- the queue
def test_turns_on_a_gpu_exclude_each_other_and_waiting_has_a_limit(monkeypatch, tmp_path):
    monkeypatch.setenv("KIT_QUEUE", str(tmp_path))
    with sandbox_queue.turn("gpu-1"):
        with (
            pytest.raises(KitError, match=r"other sandbox runs have held the machine for 0.2 s. Run the cell again"),
            sandbox_queue.turn("gpu-1", 0.2),
        ):
            pass
        with sandbox_queue.turn("gpu-2", 0.2):
            pass
    with sandbox_queue.turn("gpu-1", 0.2):
        pass


def test_there_are_as_many_turns_as_asked_for(monkeypatch, tmp_path):
    monkeypatch.setenv("KIT_QUEUE", str(tmp_path))
    with sandbox_queue.turn("cores", turns=2), sandbox_queue.turn("cores", turns=2):
        with pytest.raises(KitError), sandbox_queue.turn("cores", 0.2, turns=2):
            pass
    with pytest.raises(ZeroDivisionError), sandbox_queue.turn("cores", 0.2, turns=2):
        raise ZeroDivisionError
    with sandbox_queue.turn("cores", 0.2, turns=2), sandbox_queue.turn("cores", 0.2, turns=2):
        pass


def test_users_share_a_queue_whatever_their_tmpdir(monkeypatch, tmp_path):
    monkeypatch.delenv("KIT_QUEUE", raising=False)
    before = sandbox_queue.folder()
    monkeypatch.setattr(sandbox_queue.tempfile, "tempdir", str(tmp_path))
    assert sandbox_queue.folder() == before == "/tmp"


def test_simulated_runs_queue_where_a_folder_is_named(monkeypatch, tmp_path):
    monkeypatch.setenv("KIT_QUEUE", str(tmp_path))
    monkeypatch.setattr(sandbox_queue, "cores", lambda: 1)
    assert sandbox("6 * 7").value == 42
    with sandbox_queue.turn("cores"):
        took = []
        thread = threading.Thread(target=lambda: took.append(sandbox("6 * 7").value))
        thread.start()
        thread.join(1)
        assert thread.is_alive() and took == []
    thread.join(60)
    assert took == [42]


def test_a_holder_that_dies_gives_its_turn_back(monkeypatch, tmp_path):
    monkeypatch.setenv("KIT_QUEUE", str(tmp_path))
    code = f"import sys, time\nsys.path.insert(0, {str(pathlib.Path(__file__).parents[2])!r})\n"
    code += "from kit.sandbox_queue import turn\nwith turn('gpu'):\n    print('held', flush=True)\n    time.sleep(60)"
    holder = subprocess.Popen([sys.executable, "-c", code], stdout=subprocess.PIPE, text=True)
    assert holder.stdout.readline() == "held\n"
    threading.Timer(0.3, holder.kill).start()
    began = time.monotonic()
    try:
        with sandbox_queue.turn("gpu", 10):
            assert 0.1 < time.monotonic() - began < 5
    finally:
        holder.wait()


# ---- the magic and the display
@pytest.fixture
def shell():
    from IPython.core.interactiveshell import InteractiveShell

    shell = InteractiveShell.instance()
    register_magics(shell)
    yield shell
    shell.reset(new_session=False)


def run_cell(shell, text):
    result = shell.run_cell(textwrap.dedent(text), store_history=True)
    return result.result if result.success else result.error_in_exec or result.error_before_exec


def test_the_magic_sees_the_cells_above_and_counts_its_own_line(shell):
    run_cell(shell, "import torch, triton, triton.language as tl\nN = 5\ndef twice(x):\n    return 2 * x")
    outcome = run_cell(shell, "%%sandbox --timeout 9\nprint('hello')\ntwice(N)")
    assert isinstance(outcome, Outcome) and outcome.value == 10 and outcome.stdout == "hello\n" and shell.user_ns["_"] is outcome
    failed = run_cell(shell, "%%sandbox outcome\ntwice(N)\ntwice(None)")
    assert failed.line.function == "twice" and failed.line.number == 2 and shell.user_ns["outcome"] is failed
    assert run_cell(shell, "%%sandbox\n\nM = 1\nM / 0").line.number == 4


def test_the_magic_hangs_and_asks_in_its_own_words(shell):
    assert repr(run_cell(shell, "%%sandbox --timeout=0.3\nwhile True:\n    pass")) == "hang: line 2: while True: · no end within 0.3 s"
    assert run_cell(shell, "%%sandbox --memory 200MB\nx = bytearray(10**9)").kind == "out of memory"


@pytest.mark.parametrize(
    "line, sentence",
    [
        ("--timeout", "'--timeout' is not an option, or lacks its value. Write %%sandbox"),
        ("--timeout soon", "--timeout must be a number of seconds; got 'soon'."),
        ("--timeout -1", "timeout must be a number of seconds, above 0 and at most 3600; got -1.0."),
        ("--memory much", "--memory must be a size such as 500MB or 2GB; got 'much'."),
        ("--fast", "'--fast' is not an option"),
        ("a b", "'b' is not an option"),
        ("'", "this line cannot be read"),
    ],
)
def test_bad_magic_lines_are_sentences(shell, line, sentence):
    error = run_cell(shell, f"%%sandbox {line}\n1")
    assert isinstance(error, BadInput) and str(error).startswith("%%sandbox: ") and sentence in str(error)


@pytest.mark.parametrize(
    "arguments, sentence",
    [
        ({"code": 3}, "sandbox: code must be the text of a cell, or a function without arguments; got 3"),
        ({"code": scale_kernel}, "sandbox: code must be the text of a cell"),
        ({"code": dict}, "sandbox: code must be the text of a cell"),
        ({"code": "1", "timeout": "2"}, "sandbox: timeout must be a number of seconds"),
        ({"code": "1", "timeout": 0}, "above 0 and at most 3600; got 0"),
        ({"code": "1", "memory": 0.5}, "sandbox: memory must be a whole number of bytes"),
    ],
)
def test_bad_arguments_are_sentences(arguments, sentence):
    with pytest.raises(BadInput, match=re.escape(sentence)):
        sandbox(**arguments)
    with pytest.raises(WrongType, match="run_source: source must be the text of a program"):
        run_source(3)


def test_an_outcome_shows_nothing_that_differs_between_runs():
    codes = ("print('a')\n1", "raise ValueError('<b>')", "import ctypes\nctypes.string_at(0)", "double(None)", "print('x\\n' * 100)")
    for code in codes:
        one, two = sandbox(code), sandbox(code)
        assert repr(one) == repr(two) and one._repr_html_() == two._repr_html_() and "\n" not in repr(one)
    html = sandbox(codes[1])._repr_html_()
    assert "&lt;b&gt;" in html and "<b>'" not in html and "<details>" in html
    assert "lines left out" in sandbox(codes[4])._repr_html_() and "/" not in sandbox(codes[3]).stderr.split("TypeError")[0]
