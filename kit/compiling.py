"""Compiles a kernel for the arguments of a launch, and launches nothing: checked arguments, Triton's `warmup`, its wheel's binary tools.

With build.py the one adapter to Triton's compiler: `warmup`, the launch options, `raw_src`, and the errors that compilation raises.
"""

from __future__ import annotations

import contextlib
import difflib
import functools
import io
import re
import subprocess
import tempfile
from dataclasses import dataclass

import torch
from triton import knobs
from triton.compiler.compiler import make_backend
from triton.compiler.errors import CompilationError
from triton.runtime import driver as triton_driver

from kit import machine
from kit.errors import BadInput, KitError, WrongType, expect_type, quoted

# The torch dtypes that a Triton pointer can have (triton/_utils.py, type_canonicalisation_dict, 3.6 to 3.9).
_POINTER_DTYPES = (
    *("bool", "uint8", "uint16", "uint32", "uint64", "int8", "int16", "int32", "int64"),
    *("float16", "bfloat16", "float32", "float64", "float8_e4m3fn", "float8_e5m2", "float8_e4m3fnuz", "float8_e5m2fnuz"),
)
_SHOWN_OPTIONS = ("num_warps", "num_stages", "num_ctas", "maxnreg", "debug")


class CompileError(KitError):
    """Triton's compiler refuses the kernel: its own message, and the source line."""


@dataclass(frozen=True)
class Pointer:
    """Stands for a tensor of which only the dtype matters: a pointer aligned to 16 bytes."""

    dtype: torch.dtype

    def data_ptr(self):
        return 0


def bind(kernel, args, meta, *, verb, device):
    """(values in the kernel's order, launch options) of a launch of `kernel` with `args` and `meta`.

    Raises BadInput naming the first argument that is missing, unexpected, given twice, or of a kind no kernel takes.
    """
    name, names = kernel.__name__, [parameter.name for parameter in kernel.params]
    if len(args) > len(names):
        raise BadInput(f"{verb}: {name} takes {len(names)} arguments ({', '.join(names)}); {len(args)} were given.")
    given = dict(zip(names, args, strict=False))
    known_options = _options()
    for key in meta:
        if key in given:
            raise BadInput(f"{verb}: {key} of {name} was given twice, by position and by keyword. Give it once.")
        if key not in names and key not in known_options:
            close = difflib.get_close_matches(key, [*names, *_SHOWN_OPTIONS], 1)
            guess = f" Did you mean {close[0]}?" if close else ""
            raise BadInput(
                f"{verb}: {name} takes no {key}.{guess} It takes {', '.join(names)}; any launch takes {', '.join(_SHOWN_OPTIONS)}."
            )
    given |= {key: value for key, value in meta.items() if key in names}
    defaults = {
        key: parameter.default for key, parameter in kernel.signature.parameters.items() if parameter.default is not parameter.empty
    }
    if missing := [key for key in names if key not in given and key not in defaults]:
        raise BadInput(f"{verb}: {name} also needs {' and '.join(missing)}; give what a launch would give.")
    given = defaults | given
    values = [_checked(given[p.name], p, name, verb, device) for p in kernel.params]
    return values, _checked_options({key: value for key, value in meta.items() if key not in names}, verb)


def _options():
    return make_backend(triton_driver.active.get_current_target()).parse_options({}).__dict__


def _checked_options(options, verb):
    for key in ("num_warps", "num_stages", "num_ctas"):
        if key in options:
            n = expect_type(options[key], int, verb=verb, argument=key, what="a whole number")
            allowed = n >= 0 if key == "num_stages" else n > 0 and n & (n - 1) == 0
            if not allowed:
                raise BadInput(f"{verb}: {key} must be {'0 or more' if key == 'num_stages' else 'a power of two'}; got {n}.")
    limit = machine.current().limits.threads // 32
    if options.get("num_warps", 1) > limit:
        raise BadInput(f"{verb}: num_warps must be at most {limit} ({limit * 32} threads a program); got {options['num_warps']}.")
    return options


def _checked(value, parameter, kernel_name, verb, device):
    """`value` as Triton's specialisation takes it, or BadInput."""
    argument = f"{parameter.name} of {kernel_name}"
    if parameter.is_constexpr:
        if isinstance(value, torch.Tensor):
            raise WrongType(f"{verb}: {argument} is a constexpr, known when the kernel compiles; got {quoted(value)}. Give a number.")
        return value
    if isinstance(value, torch.dtype):
        value = Pointer(value)
    if hasattr(value, "data_ptr") and hasattr(value, "dtype"):
        return _checked_tensor(value, argument, verb, device)
    if isinstance(value, int) and not -(2**63) <= value < 2**64:
        raise BadInput(f"{verb}: {argument} must fit 64 bits; got {value}.")
    # Tensor descriptors (host side) carry their tensor as .base; tuples are passed member by member.
    if value is None or isinstance(value, (bool, int, float, tuple)) or hasattr(value, "base"):
        return value
    raise WrongType(
        f"{verb}: {argument} must be a tensor, a ghost, a torch dtype or a number; got {quoted(value)} ({type(value).__name__})."
    )


def _checked_tensor(value, argument, verb, device):
    kind = str(value.dtype).removeprefix("torch.")
    if isinstance(value.dtype, torch.dtype) and kind not in _POINTER_DTYPES:
        raise BadInput(
            f"{verb}: {argument} is {kind}, which no Triton pointer can have. Pass a view of it in one of {', '.join(_POINTER_DTYPES)}."
        )
    if isinstance(value, torch.Tensor) and value.device.type != device:
        raise BadInput(
            f'{verb}: {argument} is on {value.device}, and this machine\'s tensors live on "{device}". Make it with '
            f"device=gpu.device; to compile only, torch.{kind} can stand for it."
        )
    return value


# ---- Compiling


def compiled(kernel, values, options, *, verb):
    """Triton's compiled kernel for these arguments, from its cache or fresh. Raises CompileError, or BadInput for what Triton refuses."""
    printed = io.StringIO()
    try:
        with contextlib.redirect_stdout(printed):
            found = kernel.warmup(*values, grid=(1,), **options)
    except CompilationError as error:
        print(printed.getvalue(), end="")  # tl.static_print
        raise CompileError(_compile_message(kernel, error, verb)) from None
    except KitError:
        raise
    except Exception as error:  # passes, ptxas and the argument binder each raise their own kinds
        # On a ptxas error Triton also prints the whole PTX; the sentence that matters is one line of ptxas's own.
        lines = str(error).strip().splitlines() or [type(error).__name__]
        words = next((line.split(" : ", 1)[1] for line in lines if re.match(r"ptxas (fatal|error) *: ", line)), lines[0])
        raise CompileError(f"{verb}: Triton cannot compile {kernel.__name__}: {words.rstrip('.')} ({type(error).__name__}).") from None
    print(printed.getvalue(), end="")
    if found is None:
        raise KitError(f"{verb}: a hook in triton.knobs.runtime.jit_cache_hook stopped the compilation of {kernel.__name__}. Remove it.")
    return found


def _compile_message(kernel, error, verb):
    """One sentence from Triton's chain of errors: a call that fails wraps the error inside the function it calls."""
    inner = error
    while isinstance(inner.__cause__, CompilationError):
        inner = inner.__cause__
    number = getattr(inner.node, "lineno", None)
    lines = (inner.src or "").splitlines()
    line = lines[number - 1].strip() if number and number <= len(lines) else ""
    words = str(inner.error_message or inner.__cause__ or type(inner).__name__).strip().splitlines()[0]
    if repr_of := re.fullmatch(r"\w+\((['\"])(.*)\1,?\)", words):  # a Python error inside the kernel comes as its repr
        words = repr_of[2]
    if inner.src == kernel.src and number:
        where = f"line {_def_line(kernel) + number - 1}"
    else:
        called = re.search(r"def (\w+)", inner.src or "")
        where = f"line {number} of {called[1]}" if called else "a function that it calls"
    return f"{verb}: Triton cannot compile {kernel.__name__}: {words.rstrip('.')}, in {where}: {line}"


def _def_line(kernel):
    """The line of the kernel's `def` in its file. `raw_src` begins at the decorators; both are kept by Triton at decoration."""
    above = next((i for i, text in enumerate(kernel.raw_src) if text.lstrip().startswith("def ")), 0)
    return kernel.starting_line_number + above


@functools.lru_cache(maxsize=64)
def tool(name, cubin, *flags):
    """What one of the binary tools in Triton's wheel prints about a cubin."""
    with tempfile.NamedTemporaryFile(suffix=".cubin") as file:
        file.write(cubin)
        file.flush()
        run = subprocess.run([getattr(knobs.nvidia, name).path, *flags, file.name], capture_output=True, text=True, timeout=120)
    if run.returncode:
        raise KitError(f"build: {name} cannot read the compiled kernel: {run.stderr.strip()[:200]}.")
    return run.stdout
