"""The errors that the kit raises at a reader: one sentence, and no walk through our internals."""

import traceback
from pathlib import Path

_KIT = str(Path(__file__).parent)


class KitError(Exception):
    """A sentence for the reader: the argument, what was given, what is allowed, what to do.

    In a notebook it shows the reader's own line and the sentence; frames inside the kit are left out.
    """

    def _render_traceback_(self):
        # IPython shows these lines instead of its own traceback.
        own = [frame for frame in traceback.extract_tb(self.__traceback__) if not frame.filename.startswith(_KIT)]
        where = [f"  line {own[-1].lineno}: {own[-1].line}"] if own and own[-1].line else []
        return [*where, f"{type(self).__name__}: {self}"]


class BadInput(KitError, ValueError):
    """An argument that cannot be used."""


class WrongType(BadInput, TypeError):
    """An argument of a type that is not accepted."""


def quoted(value, limit=60):
    """`repr(value)`, cut to `limit` characters; a tensor as its shape, dtype and device."""
    if hasattr(value, "dtype") and hasattr(value, "shape"):
        device = getattr(value, "device", "no memory")
        return f"a tensor {tuple(value.shape)} {str(value.dtype).removeprefix('torch.')} on {device}"
    text = repr(value)
    return text if len(text) <= limit else text[: limit - 3] + "..."


def expect_type(value, types, *, verb, argument, what, then=""):
    """Return `value`; raise WrongType when it is not one of `types`. `what` names what is allowed, `then` what to do."""
    if isinstance(value, types):
        return value
    do = f" {then}" if then else ""
    raise WrongType(f"{verb}: {argument} must be {what}; got {quoted(value)} ({type(value).__name__}).{do}")


def expect_kernel(kernel, *, verb):
    """Return `kernel` when it is decorated with `@triton.jit`; raise WrongType otherwise."""
    from triton.runtime import JITFunction

    if isinstance(kernel, JITFunction):
        return kernel
    if isinstance(getattr(kernel, "fn", None), JITFunction):  # @triton.autotune and @triton.heuristics wrap one
        raise WrongType(
            f"{verb}: kernel is a {type(kernel).__name__} around {kernel.fn.__name__}; pass {kernel.fn.__name__} "
            f"itself (kernel.fn) and the block sizes as keywords."
        )
    name = getattr(kernel, "__name__", quoted(kernel))
    if callable(kernel):
        raise WrongType(
            f"{verb}: kernel must be decorated with @triton.jit; {name} is a plain {type(kernel).__name__}. "
            f"Put @triton.jit on the line above its def."
        )
    raise WrongType(f"{verb}: kernel must be a function decorated with @triton.jit; got {quoted(kernel)} ({type(kernel).__name__}).")


def no_times(verb, name):
    """The KitError of a verb that was asked for times on the simulated GPU `name`."""
    return KitError(
        f"{verb}: {name} is simulated here, and a simulation has no times. Run it on a GPU, or put it into a function decorated with "
        f"@kit.recorded, which replays what a GPU measured."
    )
