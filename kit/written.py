"""Kernels whose text is written at run time: imported from a file, since Triton reads a kernel's source from its file."""

from __future__ import annotations

import hashlib
import importlib.util
import os
import sys

from triton import knobs


def module_of(text, kind):
    """Import `text` as a module, once a process, and return it. Its file lies beside Triton's disk cache in the folder `kit-{kind}`,
    under the hash of the text, and stays: compiled kernels in that cache name it."""
    name = f"kit_{kind}_{hashlib.sha256(text.encode()).hexdigest()[:16]}"
    if name not in sys.modules:
        path = os.path.join(knobs.cache.dir, f"kit-{kind}", f"{name}.py")
        os.makedirs(os.path.dirname(path), exist_ok=True)
        part = f"{path}.{os.getpid()}"
        with open(part, "w", encoding="utf-8") as file:
            file.write(text)
        os.replace(part, path)
        spec = importlib.util.spec_from_file_location(name, path)
        module = importlib.util.module_from_spec(spec)
        spec.loader.exec_module(module)
        sys.modules[name] = module
    return sys.modules[name]
