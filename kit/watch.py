"""`watch`: a monitor that tells what Triton compiles from now on, or refuses it. Its meaning is that of vLLM's JIT monitor.

vLLM arms its monitor after warm-up (vllm/utils/jit_monitor.py, 0.33.0), so that a kernel that still compiles while requests are
served is a warning or an error. What is learnt here carries over; where the two differ, `watch` says so.
"""

from __future__ import annotations

import logging
import os
import threading
import time
import traceback
from dataclasses import dataclass
from pathlib import Path

import triton

from kit import specialization
from kit.errors import BadInput, KitError, WrongType, expect_kernel, quoted
from kit.variants import Variant, differences, kind_of, nearest

__all__ = ["JitError", "JitLog", "Tuning", "watch"]
MODES = ("warn", "error")
_SHOWN = 4  # distinct changes of a kernel in the one line of a log
_log = logging.getLogger("kit.watch")
_INSIDE = tuple(str(Path(module).parent) + os.sep for module in (__file__, triton.__file__))


class JitError(KitError, RuntimeError):
    """A launch needs a variant that is not there, and the monitor is in mode "error". Nothing was compiled or launched."""

    def _render_traceback_(self):
        # Triton's own frames lie between the launch and this error; a reader looks for the launch.
        own = [frame for frame in traceback.extract_tb(self.__traceback__) if not frame.filename.startswith(_INSIDE)]
        where = [f"  line {own[-1].lineno}: {own[-1].line}"] if own and own[-1].line else []
        return [*where, f"{type(self).__name__}: {self}"]


def watch(mode="warn", *, verbose=False):
    """Arm a monitor for what Triton compiles in this process from now on, and return its JitLog; `log.stop()` disarms it.

    `with kit.watch() as log:` disarms at the end of the block. In mode "warn" each new variant is a warning on the logger
    "kit.watch", each distinct message once a log; with `verbose` every time, with the constexprs, the signature and the options.
    In mode "error" the launch raises JitError before anything is compiled, every time it is repeated, until the variant is warmed up.
    vLLM's "error" raises after the compilation, when Triton has the kernel already: the same launch passes the second time.
    As with vLLM, `kernel.warmup()` counts, and a variant that comes from the disk cache is new to the process and counts too. A
    compilation that fails leaves no variant, and no line. Raises BadInput for another mode, or where kernels are interpreted.
    """
    if not isinstance(mode, str) or mode not in MODES:
        raise BadInput(f'watch: mode must be "warn" or "error", as in vLLM; got {quoted(mode)}. To watch nothing, stop the log.')
    if not isinstance(verbose, bool):
        raise WrongType(f"watch: verbose must be True or False; got {quoted(verbose)}.")
    if specialization.interpreted():
        raise BadInput("watch: TRITON_INTERPRET is set, and the interpreter compiles nothing: unset it and start Python again.")
    return JitLog(mode, verbose)


@dataclass(frozen=True)
class Tuning:
    """One run of @triton.autotune, as Triton 3.8 and later tell it: the kernel, the configurations timed, the seconds it took
    (None when the disk cache served the choice)."""

    kernel: str
    configurations: int
    seconds: float | None
    disk: bool


@dataclass(eq=False)
class _Pending:
    """A compilation that has begun."""

    variant: Variant
    kernel: object
    compile: dict
    thread: int
    background: bool
    began: float = 0.0
    disk: bool | None = None
    worker_seconds: float | None = None

    def is_of(self, src, metadata):
        """Whether `triton.compile`, which is not given the key, works on this one. One thread compiles one at a time."""
        if self.disk is not None or getattr(src, "fn", None) is not self.kernel:
            return False
        if not self.background:
            return self.thread == threading.get_ident()
        parts = src.signature == self.compile["signature"] and src.attrs == self.compile["configs"][0]
        options = all(metadata.get(name) == self.compile[name] for name in ("num_warps", "num_ctas", "num_stages"))
        return parts and options and src.constants == self.compile["constants"]


class JitLog:
    """What Triton compiled while the monitor was armed. True when there was nothing. `variants` are in order; `of(kernel)` picks.

    `tunings` are the runs of @triton.autotune, from Triton 3.8 on. Seconds are wall time of this machine's CPU, from the moment that
    Triton decides to compile until it has the kernel; inside triton.AsyncCompileMode the time of the worker.
    """

    evidence = "compiled"

    def __init__(self, mode, verbose):
        self.mode, self.verbose = mode, verbose
        self.variants, self.tunings = [], []
        self._kernels = []  # of each variant, its kernel
        self._pending, self._told, self._lock = [], set(), threading.RLock()
        self._links = specialization.arm(self._before, self._after, self._listen, self._tuned)

    @property
    def armed(self):
        """True until the log is stopped."""
        return bool(self._links)

    def stop(self):
        """Disarm the monitor, give the hooks back, and return the log. Stopping twice changes nothing."""
        links, self._links = self._links, []
        for link in links:
            link.remove()
        return self

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.stop()

    def __len__(self):
        return len(self.variants)

    def __bool__(self):
        return not self.variants

    def __iter__(self):
        return iter(list(self.variants))

    def of(self, kernel):
        """[Variant] of one kernel, given as the kernel (decorated as it is) or by its name."""
        if isinstance(kernel, str):
            return [one for one in self if one.kernel == kernel]
        function = expect_kernel(specialization.innermost(kernel), verb="watch: of")
        return [one for one, its in zip(list(self.variants), list(self._kernels), strict=False) if its is function]

    # -- What Triton's hooks call

    def _before(self, previous, **event):
        if previous is not None and (answer := previous(**event)):
            return answer  # the hook that was there first has stopped the launch: nothing will compile
        kernel, compile = event["fn"].jit_function, event["compile"]
        variant = specialization.about_to_compile(kernel, event["key"], compile)
        variant.cause = "autotune" if specialization.tuning() else "warmup" if event["is_manual_warmup"] else "launch"
        with self._lock:
            self._compare(variant, kernel, compile["device"])
            if self.mode == "error":
                self._refuse(variant, kernel)
            self._begin(_Pending(variant, kernel, compile, threading.get_ident(), specialization.compiles_in_background()))
        return None

    def _begin(self, new):
        # Until 3.6, one that compiles in the background may be asked for again. What this thread began and never ended has failed.
        if new.background and any(one.background and one.variant == new.variant for one in self._pending):
            return
        self._pending = [one for one in self._pending if one.background or one.thread != new.thread]
        self._pending.append(new)
        new.began = time.perf_counter()

    def _listen(self, previous, **event):
        with self._lock:
            found = next((one for one in self._pending if one.is_of(event["src"], event["metadata"])), None)
            if found:
                found.disk, found.worker_seconds = bool(event["cache_hit"]), event["times"].total / 1e6
        if previous is not None:
            previous(**event)

    def _after(self, previous, **event):
        now, message = time.perf_counter(), None
        with self._lock:
            found = [one for one in self._pending if one.kernel is event["fn"].jit_function and one.variant.key == event["key"]]
            if found:
                done = min(found, key=lambda one: one.thread != threading.get_ident())
                self._pending.remove(done)
                done.variant.disk = done.disk
                done.variant.seconds = done.worker_seconds if done.background else now - done.began
                self._keep(done.variant, done.kernel)
                message = self._message(done.variant)
        if message:
            _log.warning(message)
        return previous(**event) if previous is not None else None

    def _tuned(self, previous, **event):
        with self._lock:
            timed = len(event["configs_timings"] or ())
            self.tunings.append(Tuning(event["fn"].__name__, timed, event["duration"], bool(event["cache_hit"])))
        if previous is not None:
            previous(**event)

    def _keep(self, variant, kernel):
        self.variants.append(variant)
        self._kernels.append(kernel)

    # -- What is said

    def _compare(self, variant, kernel, device):
        seen = zip(self.variants, self._kernels, strict=True)
        own = [one for one, its in seen if its is kernel and one.owner == variant.owner and not one.refused]
        # Until 3.6, what compiles in the background is in Triton's memory only when it is done.
        own += [one.variant for one in self._pending if one.background and one.kernel is kernel and one.variant != variant]
        known = [*specialization.in_memory(kernel, device), *own]
        closest = nearest(variant, known)
        variant.first = closest is None
        variant.changes = differences(closest, variant) if closest else []

    def _refuse(self, variant, kernel):
        variant.refused = True
        if not any(one == variant and one.refused for one in self.variants):
            self._keep(variant, kernel)
        raise JitError(
            f"watch: {variant.kernel} would compile now, with the monitor armed: {variant.told}; {_advice(variant)}"
            f"{_detail(variant) if self.verbose else ''}."
        )

    def _message(self, variant):
        """The warning about a new variant; None when this log has said the same before."""
        how = {"autotune": " for autotuning", "warmup": " in a warm-up"}.get(variant.cause, "")
        message = f"watch: {variant.kernel} compiled{how} after the monitor was armed: {variant.told}"
        if self.verbose:
            return f"{message}{_detail(variant)}."
        if message in self._told:
            return None
        self._told.add(message)
        return f"{message}."

    # -- display

    def __repr__(self):
        if not self.variants:
            return f"no new variant after arming [{self.evidence}]"
        return f"{' · '.join(self._told_of(name) for name in dict.fromkeys(one.kernel for one in self.variants))} [{self.evidence}]"

    def _told_of(self, name):
        found = self.of(name)
        changes = list(dict.fromkeys(" and ".join(change.short for change in one.changes) or one.told for one in found))
        more = f"; and {len(changes) - _SHOWN} more" if len(changes) > _SHOWN else ""
        refused = sum(one.refused for one in found)
        how = "" if not refused else ", refused" if refused == len(found) else f", {refused} of them refused"
        return f"{len(found)} new variant{'s' if len(found) > 1 else ''} of {name} after arming{how}: {'; '.join(changes[:_SHOWN])}{more}"

    def _repr_html_(self):
        from kit.variant_table import log_html

        return log_html(self)


def _advice(variant):
    """What to do about a refused variant, by the first thing that changed."""
    warm = "launch it like this before arming"
    change = variant.changes[0] if variant.changes else None
    kind = kind_of(change.after) if change and change.argument in variant.classes else None
    if kind == "int" == kind_of(change.before) and "64 bits" not in change.why and "32 bits" not in change.why:
        return f'{warm}, or put "{change.argument}" into do_not_specialize if no vector load needs its divisibility'
    if kind == "pointer" and "dtype" not in change.why:
        return f'{warm}, or put "{change.argument}" into do_not_specialize_on_alignment if only scalars are read through it'
    if kind == "constexpr":
        return f"{warm}, or give {change.argument} fewer values"
    return warm


def _detail(variant):
    """Constexprs, signature and options, as verbose tells them."""
    constants, signature = [], []
    for name, text in variant.classes.items():
        if kind_of(text) == "constexpr":
            constants.append(f"{name}={text.removeprefix('constexpr ')}")
        else:
            signature.append(f"{name} {text}")
    options = ", ".join(f"{name}={value}" for name, value in variant.options.items())
    return f" (constexprs: {', '.join(constants) or 'none'}; signature: {'; '.join(signature) or 'none'}; options: {options})"
