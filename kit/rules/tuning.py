"""What stands around a kernel: an autotuner's configurations, its key, what it restores. The attributes are Triton's own
(triton/runtime/autotuner.py, class Autotuner: configs, keys, reset_to_zero, restore_value, user_defined_pre_hook; 3.6 to 3.9)."""

from __future__ import annotations

import math


def tuner_of(subject):
    """The autotuner around the kernel, or None. One with a single configuration tunes nothing and does not count."""
    around = subject.given
    while around is not subject.kernel:
        if hasattr(around, "configs"):
            return around if len(around.configs) > 1 else None
        around = around.fn
    return None


def widest(subject):
    """The options of the autotuner's configuration with the largest blocks, {} without a tuner: wide accesses and much work show there."""
    tuner = tuner_of(subject)
    if tuner is None:
        return {}
    options = max((configuration.all_kwargs() for configuration in tuner.configs), key=_elements)
    return {name: value for name, value in options.items() if value is not None and name not in subject.meta}


def leanest(subject):
    """The options of the configuration with the smallest blocks for its warps, {} without a tuner: what spills there spills in all."""
    tuner = tuner_of(subject)
    if tuner is None:
        return {}
    options = min(
        (configuration.all_kwargs() for configuration in tuner.configs), key=lambda one: _elements(one) / (one.get("num_warps") or 4)
    )
    return {name: value for name, value in options.items() if value is not None and name not in subject.meta}


def _elements(options):
    blocks = [
        value for name, value in options.items() if type(value) is int and name not in ("num_warps", "num_stages", "num_ctas", "maxnreg")
    ]
    return math.prod(blocks)


def hooked(tuner):
    """True when the author wrote a hook of his own, which may restore whatever is needed."""
    configs = any(getattr(config, "pre_hook", None) for config in tuner.configs)
    return configs or getattr(tuner, "user_defined_pre_hook", False) or getattr(tuner, "user_defined_post_hook", False)


def tunings(tuner, launches):
    """How many different keys the launches have: each is tuned once. A key also holds the dtypes of the tensors, as Triton's does."""
    keys = set()
    for one in launches:
        named = one.named
        dtypes = tuple(str(value.dtype) for value in named.values() if hasattr(value, "dtype"))
        keys.add((*(repr(named.get(name)) for name in tuner.keys), *dtypes))
    return len(keys)
