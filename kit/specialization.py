"""The one adapter to Triton's private JIT: the keys that launches need, the hooks around a compilation, the autotuner above it.

Triton has no public way to ask for a launch's key, and calls one hook before and one after it compiles. The names used here exist,
with these meanings, in Triton 3.6 to 3.9: triton/runtime/jit.py (device_caches, binder, compute_cache_key, JITFunction.run and
_do_compile, serialize_specialization_data), triton/knobs.py (the four hooks), triton/compiler/compiler.py (compile's listener),
triton/runtime/autotuner.py (Autotuner._bench), triton/runtime/_async_compile.py (active_mode).
"""

from __future__ import annotations

import ast
import sys
from dataclasses import dataclass, replace

import triton
from triton import knobs
from triton.runtime import JITFunction, _async_compile
from triton.runtime import driver as triton_driver
from triton.runtime import jit as triton_jit
from triton.runtime.autotuner import Autotuner

from kit import machine, versions
from kit.compiling import bind
from kit.errors import BadInput, WrongType, expect_kernel, quoted
from kit.variants import CONSTEXPR, FOLDED, MULTIPLE, Variant, Variants

# Triton's short names where torch has another one.
_DTYPES = {
    **{"i1": "bool", "u1": "bool", "bf16": "bfloat16", "fp8e4nv": "float8_e4m3fn", "fp8e5": "float8_e5m2"},
    **{"fp8e4b8": "float8_e4m3fnuz", "fp8e5b16": "float8_e5m2fnuz", "fp8e4b15": "float8_e4b15"},
    **{f"i{n}": f"int{n}" for n in (8, 16, 32, 64)},
    **{f"u{n}": f"uint{n}" for n in (8, 16, 32, 64)},
    **{f"fp{n}": f"float{n}" for n in (16, 32, 64)},
}
_QUIET = {"debug", "instrumentation_mode", "fpsan_homomorphic_casts"}  # in every key; shown only when they are on


# ---- The variant that a launch needs


@dataclass(frozen=True)
class StandIn:
    """What a key needs of a tensor, without its memory: the dtype, and the address as far as alignment goes."""

    dtype: object
    address: int

    def data_ptr(self):
        return self.address


def stand_in(value):
    """`value`, or a StandIn for it when it is a tensor, so that holding it holds no memory."""
    if hasattr(value, "data_ptr") and hasattr(value, "dtype"):
        return StandIn(value.dtype, value.data_ptr() % 16)
    return tuple(map(stand_in, value)) if type(value) is tuple else value


def launch_variant(kernel, args, meta, *, verb, keys=None):
    """The Variant that `kernel[grid](*args, **meta)` needs. Nothing is compiled. Raises BadInput as `build` does.

    `keys` is a scratch copy of Triton's table of keys, to be shared by launches that follow each other: there constexprs that are
    equal in Python, such as 1 and True, get the key of the first.
    """
    here = machine.current()
    expect_kernel(kernel, verb=verb)
    values, options = bind(kernel, args, meta, verb=verb, device=here.device)
    device = triton_driver.active.get_current_device()
    _, table, _, _, binder = kernel.device_caches[device]
    try:
        named = dict(zip(kernel.arg_names, values, strict=True))
        bound, specialization, written = binder(**named, **_completed(kernel, options))
        if knobs.runtime.add_stages_inspection_hook is not None and versions.minor(triton.__version__) >= (3, 7):
            specialization.append(f'("custom_pipeline", {knobs.runtime.add_stages_inspection_hook()[1]})')
        key = triton_jit.compute_cache_key(dict(table) if keys is None else keys, specialization, written)
    except (TypeError, OverflowError) as error:
        raise BadInput(f"{verb}: Triton has no key for these arguments of {kernel.__name__}: {error}.") from None
    return _variant(kernel, key, specialization, written, list(bound.values()), device)


def _completed(kernel, options):
    """The options of a launch as JITFunction.run completes them before it makes the key; their order is part of the key."""
    options = dict(options)
    options["debug"] = options.get("debug", kernel.debug) or knobs.runtime.debug
    for name in ("instrumentation_mode", "fpsan_homomorphic_casts"):
        if hasattr(knobs.compilation, name):  # the second came with 3.9
            options[name] = getattr(knobs.compilation, name)
    return options


def launches_variants(kernel, launches, values, options):
    """Variants that `launches` of `kernel` need; what a launch does not give is taken from `values` and `options`.

    A launch is a tuple of positional arguments, a dict of the arguments that differ, or a pair of both. Raises BadInput.
    """
    if isinstance(launches, (str, dict)) or not hasattr(launches, "__iter__"):
        raise WrongType(f"variants: launches must be a list of launches; got {quoted(launches)}.")
    keys = dict(kernel.device_caches[triton_driver.active.get_current_device()][1])
    found = []
    for i, launch in enumerate(launches):
        args, meta = _split(launch, i)
        names = kernel.arg_names[len(args) :]
        own = {name: value for name, value in zip(kernel.arg_names, values, strict=True) if name in names}
        rest = {name: value for name, value in options.items() if name not in meta}
        one = launch_variant(kernel, args, {**own, **meta, **rest}, verb=f"variants: launch {i}", keys=keys)
        found.append(replace(one, launches=(i,)))
    return Variants(found)


def _split(launch, i):
    if isinstance(launch, dict):
        return (), launch
    if isinstance(launch, tuple):
        pair = len(launch) == 2 and isinstance(launch[0], tuple) and isinstance(launch[1], dict)
        return launch if pair else (launch, {})
    raise WrongType(
        f"variants: launch {i} must be a tuple of arguments, a dict of those that differ, or a pair of both; got {quoted(launch)} "
        f"({type(launch).__name__})."
    )


# ---- The variants that Triton has, or is about to have


def about_to_compile(kernel, key, compile):
    """The Variant that Triton compiles, from what its hooks are given: the key and the dict `compile`."""
    device = compile["device"]
    entry = next((entry for entry, found in list(kernel.device_caches[device][1].items()) if found == key), None)
    if entry is None:  # JITFunction.preload makes no key
        entry = _specialization(kernel, compile), repr({name: compile[name] for name in ("num_warps", "num_ctas", "num_stages")})
    return _read(kernel, key, entry, compile["constants"], device)


def in_memory(kernel, device):
    """[Variant] of the kernel in Triton's in-memory cache of `device`, oldest first."""
    cache, table = kernel.device_caches[device][:2]
    entries = {key: entry for entry, key in list(table.items())}
    found = []
    for key, compiled in list(cache.items()):
        if key in entries:
            # Asking a kernel that compiles in the background for its source would wait for it.
            source = None if isinstance(compiled, _async_compile.FutureKernel) else compiled.src
            found.append(_read(kernel, key, entries[key], getattr(source, "constants", {}), device))
    return found


def _read(kernel, key, entry, constants, device):
    """The Variant of an entry (specialisation, text of the options) in Triton's table of keys."""
    values = [_values(one[0], (i,), constants) for i, one in enumerate(entry[0]) if isinstance(one, tuple)]
    return _variant(kernel, key, entry[0], _read_options(entry[1]), values, device)


def _values(kind, path, constants):
    """What is known of an argument's value: the constants, which Triton keeps by their path into tuples."""
    if isinstance(kind, tuple):
        return tuple(_values(one, (*path, i), constants) for i, one in enumerate(kind))
    return constants.get(path)


def _specialization(kernel, compile):
    """[(type, key)] by argument, as far as the parts of a compilation tell them."""
    attrs = compile["configs"][0]
    found = []
    for i, kind in enumerate(compile["signature"].values()):
        divisible = ["tt.divisibility", 16] in [list(one) for one in attrs.get((i,), ())]
        found.append((kind, compile["constants"].get((i,)) if kind == "constexpr" else "D" if divisible else "" if (i,) in attrs else None))
    return found


def _read_options(text):
    try:
        return ast.literal_eval(text)
    except (ValueError, SyntaxError):  # an option that is no literal: the key alone tells it
        return {}


def _variant(kernel, key, specialization, written, values, device):
    target, backend = kernel.device_caches[device][2:4]
    names = [parameter.name for parameter in kernel.params]
    texts = {
        parameter.name: CONSTEXPR + _constant(entry[1]) if parameter.is_constexpr else class_text(*entry, value)
        for parameter, entry, value in zip(kernel.params, specialization, values, strict=False)
    }
    exact = {name: triton_jit.compute_cache_key({}, [entry], {}) for name, entry in zip(names, specialization, strict=False)}
    full = backend.parse_options(dict(written))
    shown = {name: value for name, value in written.items() if name not in _QUIET or value}
    options = {"num_warps": full.num_warps, "num_stages": full.num_stages} | shown
    owner = f"{kernel.module}.{kernel.__qualname__} for {target.backend}:{target.arch}"
    return Variant(kernel.__name__, texts, options, key, written=shown, exact=exact, owner=owner)


def class_text(kind, key, value=None):
    """The class text of one argument, from its entry (type, key) in Triton's specialisation. `value` is the argument when known."""
    if isinstance(kind, tuple):
        values = value if isinstance(value, (tuple, list)) and len(value) == len(kind) else [None] * len(kind)
        keys = key if isinstance(key, tuple) else [None] * len(kind)
        return f"({'; '.join(map(class_text, kind, keys, values))})"
    if kind == "constexpr":
        if key is None:
            return "None"
        if isinstance(key, (str, JITFunction)):  # a function is kept by the hash of its source
            name = getattr(value, "__name__", None) or getattr(key, "__name__", None)
            return f"function {name}" if name else "function"
        return FOLDED if type(key) is int and key == 1 else CONSTEXPR + _constant(key)
    if kind.startswith("*"):
        const = "const " if kind.startswith("*k") else ""
        text = f"*{const}{_DTYPES.get(kind.removeprefix('*k').removeprefix('*'), kind.lstrip('*'))}"
        return text + (MULTIPLE if "D" in (key or "") else "") + (", under 2 GB" if "S" in (key or "") else "")
    if kind == "u1":
        return "bool"
    if kind == "fp32":
        return "float"
    text = _DTYPES.get(kind, kind)
    return text + (MULTIPLE if key == "D" else f", {FOLDED}" if key == 1 else "")


def _constant(value):
    value = getattr(value, "value", value) if type(value).__name__ == "constexpr" else value
    if isinstance(value, JITFunction):
        return value.__name__
    if type(value).__name__ == "dtype":
        return _DTYPES.get(str(value), str(value))
    return quoted(value, 40)


# ---- The hooks


class Link:
    """A place in the chain of one hook slot: calls `handler(previous, ...)` while it is armed, and is not there when it is not."""

    def __init__(self, owner, slot, handler):
        self.owner, self.slot, self.handler = owner, slot, handler
        self.previous, self.armed = getattr(owner, slot), True
        setattr(owner, slot, self)

    def __call__(self, *args, **kwargs):
        if self.armed:
            return self.handler(self.previous, *args, **kwargs)
        return self.previous(*args, **kwargs) if self.previous is not None else None

    def remove(self):
        """Give the slot back. When somebody has put a hook over this one, that hook stays and finds this one passing calls on."""
        self.armed = False
        while isinstance(top := getattr(self.owner, self.slot), Link) and not top.armed:
            setattr(self.owner, self.slot, top.previous)


def arm(before, after, listener, tuned):
    """[Link] of a monitor. Each handler gets the hook that was there before, or None, then what Triton gives.

    Triton writes the specialisation as JSON as soon as there is a hook, and fails for constexprs that JSON does not know: without
    the guard, watching a kernel could break its launch. vLLM guards it the same way (vllm/utils/jit_monitor.py, 0.33.0).
    """
    links = [
        Link(triton_jit, "serialize_specialization_data", _guarded),
        Link(knobs.runtime, "jit_cache_hook", before),
        Link(knobs.runtime, "jit_post_compile_hook", after),
        Link(knobs.compilation, "listener", listener),
    ]
    if hasattr(knobs.autotuning, "listener"):  # from 3.8
        links.append(Link(knobs.autotuning, "listener", tuned))
    return links


def _guarded(previous, *args, **kwargs):
    try:
        return previous(*args, **kwargs)
    except (TypeError, ValueError):
        return None


def interpreted():
    """True when kernels decorated now run in Triton's interpreter, which compiles nothing and calls no hook."""
    return knobs.runtime.interpret


def compiles_in_background():
    """True inside `with triton.AsyncCompileMode(...)`: a compilation goes to an executor, and ends where its result is asked for."""
    return _async_compile.active_mode.get() is not None


def tuning():
    """True when the running launch is one that @triton.autotune makes to time a configuration."""
    frame = sys._getframe(1)
    while frame is not None:
        if frame.f_code.co_name == "_bench" and isinstance(frame.f_locals.get("self"), Autotuner):
            return True
        frame = frame.f_back
    return False


def innermost(kernel):
    """The JITFunction that @triton.autotune and @triton.heuristics wrap; `kernel` itself when nothing wraps it."""
    while not isinstance(kernel, JITFunction) and hasattr(kernel, "fn"):
        kernel = kernel.fn
    return kernel
