"""What a sandbox's child does: set itself up, run the job's texts in order, and write down how that ended.

A job is a folder with job.json (see kit.sandbox_client.Job). The result is result.json beside it; where there is none, the
child died. fault.txt holds the Python stack at a fatal signal, or when the time was up.
"""

from __future__ import annotations

import ast
import builtins
import contextlib
import ctypes
import faulthandler
import io
import json
import linecache
import os
import resource
import signal
import sys
import traceback
import types

from kit import sandbox_errors

INSIDE = "KIT_IN_SANDBOX"


def run(folder):
    """Run the job in `folder` and end this process."""
    with open(os.path.join(folder, "job.json"), encoding="utf-8") as file:
        job = json.load(file)
    _settle(job, folder)
    result = _execute(job)
    with contextlib.suppress(Exception):
        sys.stdout.flush()
        sys.stderr.flush()
    ctypes.CDLL(None).fflush(None)  # what C printed is still in its buffers, and os._exit leaves them
    with open(os.path.join(folder, "result.part"), "w", encoding="utf-8") as file:
        json.dump(result, file)
    os.rename(os.path.join(folder, "result.part"), os.path.join(folder, "result.json"))
    os._exit(0)  # without torch's and CUDA's own clean-up, which can hang after a fault


def _settle(job, folder):
    """Make this process look like the notebook that asked: environment, folder, path; output that survives a crash."""
    os.environ.clear()
    os.environ.update(job["env"])
    os.environ[INSIDE] = "1"
    with contextlib.suppress(OSError):
        os.chdir(job["cwd"])
    sys.path[:] = job["path"]
    sys.argv[:] = ["sandbox"]
    with contextlib.suppress(OSError), open("/proc/self/oom_score_adj", "w") as file:
        file.write("1000")  # if the machine runs out, this process goes first
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
    faults = os.open(os.path.join(folder, "fault.txt"), os.O_WRONLY | os.O_CREAT, 0o600)
    faulthandler.enable(faults)
    faulthandler.dump_traceback_later(job["timeout"], file=faults)  # by a thread: CUDA holds signals back while it launches
    signal.signal(signal.SIGINT, signal.default_int_handler)
    sys.stdin = io.StringIO()
    sys.stdout, sys.stderr = _unbuffered(1), _unbuffered(2)
    libc = ctypes.CDLL(None)
    libc.setvbuf(ctypes.c_void_p.in_dll(libc, "stdout"), None, 2, 0)  # _IONBF
    builtins.display = lambda *objects: print(*map(repr, objects), sep="\n")
    for filename, text in job["origins"].items():  # compiled kernels in Triton's cache may name a cell of the notebook
        linecache.cache[filename] = (len(text), None, text.splitlines(keepends=True), filename)
    if not job["live"]:
        from kit import machine

        os.environ["KIT_SIMULATE"] = "1"
        os.environ.pop("KIT_REQUIRE", None)
        machine.start(job["target"])
    else:
        os.environ.setdefault("CUDA_LAUNCH_BLOCKING", "1")  # an error then surfaces in the line that launched the kernel


def _unbuffered(descriptor):
    """A text stream that holds nothing back: what was written before a crash is kept."""
    return io.TextIOWrapper(io.FileIO(descriptor, "w", closefd=False), encoding="utf-8", errors="replace", write_through=True)


def _execute(job):
    """Run the texts; return the result as JSON holds it."""
    main = types.ModuleType("__main__")
    main.__file__ = job["texts"][-1]["file"]
    main.__builtins__ = builtins
    sys.modules["__main__"] = main
    if job["has_payload"]:
        main.payload = job["payload"]
    files = [text["file"] for text in job["texts"]]
    try:
        for text in job["texts"][:-1]:
            exec(compile(_source(text["file"]), text["file"], "exec", text["flags"], dont_inherit=True), vars(main))
        value = _run_cell(job["texts"][-1], vars(main))
        _synchronize()
        return {"kind": "ok", **_told(value)}
    except BaseException as error:  # noqa: BLE001  whatever ends a cell is its outcome
        if isinstance(error, SystemExit) and error.code in (None, 0):
            return {"kind": "ok", "value": None, "text": ""}
        result = sandbox_errors.read(error, files)
        hidden = job["hidden"].get(getattr(error, "name", None) or "") if isinstance(error, NameError) else None
        if hidden:
            result["message"] = f"the sandbox does not see {error.name} ({hidden}): make it inside the cell"
        _print_traceback(error, files)
        return result


def _run_cell(text, namespace):
    """Run the cell; return the value of its last expression, or None."""
    tree = ast.parse(_source(text["file"]), text["file"])
    last = ast.Expression(tree.body.pop().value) if tree.body and isinstance(tree.body[-1], ast.Expr) else None
    exec(compile(tree, text["file"], "exec", text["flags"], dont_inherit=True), namespace)
    return eval(compile(last, text["file"], "eval", text["flags"], dont_inherit=True), namespace) if last else None


def _source(file):
    with open(file, encoding="utf-8") as opened:
        return opened.read()


def _synchronize():
    """Wait for the GPU, where the cell used it: the errors of its last kernels surface here."""
    torch = sys.modules.get("torch")
    if torch is not None and torch.cuda.is_initialized():
        torch.cuda.synchronize()


def _told(value):
    if value is None:
        return {"value": None, "text": ""}
    text = repr(value)
    try:
        json.dumps(value, allow_nan=True)
    except (TypeError, ValueError, RecursionError):
        value = text
    return {"value": value, "text": text}


def _print_traceback(error, files):
    """The traceback to stderr, without frames of libraries: they differ between machines and are not the reader's."""
    frames = [frame for frame in traceback.extract_tb(error.__traceback__) if frame.filename in files]
    with contextlib.suppress(Exception):
        lines = traceback.format_list(frames) + traceback.format_exception_only(type(error), error)
        sys.stderr.write("".join(lines))
