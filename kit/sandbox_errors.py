"""Which kind of outcome an exception is, and the line it points at. Types are told by name: torch and triton move theirs."""

from __future__ import annotations

import re
import traceback

# What the CUDA driver says (cudaGetErrorString), and the kind of outcome that it is.
_DRIVER_WORDS = (
    ("device-side assert triggered", "assert"),
    ("an illegal memory access was encountered", "illegal access"),
    ("misaligned address", "illegal access"),
    ("unspecified launch failure", "illegal access"),  # "common causes include dereferencing an invalid device pointer"
    ("out of memory", "out of memory"),
    ("can't allocate memory", "out of memory"),
    ("invalid configuration argument", "refused"),
    ("too many resources requested for launch", "refused"),
    ("Triton Error [CUDA]: invalid argument", "refused"),
    ("PassManager::run failed", "compile error"),
)
_TYPES = {
    "IllegalAccess": "illegal access",
    "MisalignedAccess": "illegal access",
    "DeviceAssert": "assert",
    "SimulatedDriverError": "refused",
    # The compiler made the kernel, and this GPU has not the shared memory or the registers: the launch is what is refused.
    "OutOfResources": "refused",
    "OutOfMemoryError": "out of memory",
    "MemoryError": "out of memory",
    "CompilationError": "compile error",
    "PTXASError": "compile error",
    "AssertionError": "wrong",
}


def read(error, files):
    """Return {kind, type, message, frame, kernel} of an exception raised by a text in `files`.

    `frame` is (file, line) of the innermost line that is the reader's. `kernel` is (function, line, text) in a kernel that
    the error itself names, where line is counted from its `def` for the compiler, and in its file otherwise.
    """
    kind = kind_of(error)
    message = str(error).strip()
    if asked := re.search(r"tried to allocate (\d+) bytes", message):  # torch's CPU allocator leads with its C++ file and line
        message = f"torch asked for {int(asked[1]) / 1e9:.1f} GB, which this machine does not have"
    if message.startswith("CUDA out of memory."):  # what follows the amount names processes and what they hold now
        message = " ".join(message.split(". ")[:2]).rstrip(".")
    result = {"kind": kind, "type": type(error).__name__, "message": message, "frame": _frame(error, files), "kernel": None}
    if kind == "compile error":
        result["message"], result["kernel"] = _compiler_words(error)
    if isinstance(error, SyntaxError) and error.filename in files:
        result["frame"] = [error.filename, error.lineno]
        result["message"] = error.msg
    return result


def kind_of(error):
    """The kind of outcome that an exception is."""
    names = [kind.__name__ for kind in type(error).__mro__]
    for name in names:
        if name in _TYPES:
            return _TYPES[name]
    if "OverflowError" in names and _from_a_launch(error):  # a grid axis that no C int holds
        return "refused"
    if "RuntimeError" in names:
        words = str(error).lower()
        for said, kind in _DRIVER_WORDS:
            if said.lower() in words:
                return kind
    return "error"


def _from_a_launch(error):
    frames = traceback.extract_tb(error.__traceback__)
    return any(frame.name == "run" and frame.filename.replace("\\", "/").endswith("triton/runtime/jit.py") for frame in frames)


def _frame(error, files):
    frames = [frame for frame in traceback.extract_tb(error.__traceback__) if frame.filename in files]
    return [frames[-1].filename, frames[-1].lineno] if frames else None


def _compiler_words(error):
    """(message, [function, line counted from its def, ""]) of a compilation error; the innermost, where one caused another."""
    while getattr(error.__cause__, "src", None) and getattr(error.__cause__, "node", None) is not None:
        error = error.__cause__
    line = getattr(getattr(error, "node", None), "lineno", None)
    function = re.search(r"^\s*def (\w+)", getattr(error, "src", None) or "", re.MULTILINE)
    cause = error.__cause__
    message = getattr(error, "error_message", None) or (str(cause) if cause else "") or str(error).strip().split("\n")[-1]
    kernel = [function[1], line, ""] if function and line else None
    return str(message).strip(), kernel
