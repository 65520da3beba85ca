"""Where the kernels of others are imported from: a folder of small packages and cut-down files, made anew for a run.

flash-linear-attention asks torch which GPU there is as soon as it is imported, and its packages import all of the library. Small
packages of the same names answer, and lead to its files. Triton's tutorials launch kernels when they are imported: of each only its
kernels are kept, with what they need.
"""

from __future__ import annotations

import ast
from pathlib import Path

# torch as on an H200, for libraries that ask before anything is launched.
_TORCH = """
import types

import torch

if not torch.version.cuda:
    torch.cuda.get_device_name = lambda device=None: "NVIDIA H200"
    torch.cuda.get_device_capability = lambda device=None: (9, 0)
    torch.cuda.current_device = lambda: 0
    torch.cuda.get_device_properties = lambda device=None: types.SimpleNamespace(
        name="NVIDIA H200", multi_processor_count=132, shared_memory_per_multiprocessor=233472, total_memory=150 << 30, major=9, minor=0
    )
"""
_PACKAGES = {"fla": ("", "modules", "ops", "modules/norm", "modules/activations", "modules/rotary", "modules/fused_cross_entropy")}
_PACKAGES["fla"] += ("ops/common",)


def write_packages(folder, name, real):
    """Write packages under `folder` that lead to those in the folder `real` without running their __init__."""
    for part in _PACKAGES.get(name, ("",)):
        place = Path(folder, name, part)
        place.mkdir(parents=True, exist_ok=True)
        text = f"__version__ = '0'\n__path__ = [__path__[0], {str(Path(real, part))!r}]\n"
        (place / "__init__.py").write_text((_TORCH if not part else "") + text)


def write_tutorial(folder, path):
    """Write the kernels of a tutorial as a module, "03-matrix-multiplication.py" as tutorial_03.py, and return its name."""
    name = f"tutorial_{path.name[:2]}"
    Path(folder, f"{name}.py").write_text(kernels_of(path.read_text(encoding="utf-8")))
    return name


def kernels_of(text):
    """The imports of a file, its @triton.jit functions, and what these name, in the order of the file."""
    tree = ast.parse(text)
    statements = [node for node in tree.body if _names_bound(node)]
    kept = [node for node in statements if isinstance(node, ast.FunctionDef) and "triton.jit" in ast.unparse(node.decorator_list)]
    wanted = {name for node in kept for name in _names_used(node)}
    while more := [node for node in statements if node not in kept and wanted.intersection(_names_bound(node)) and not _is_import(node)]:
        kept += more
        wanted.update(name for node in more for name in _names_used(node))
    imports = [node for node in statements if _is_import(node) and wanted.intersection(_names_bound(node))]
    chosen = sorted((*imports, *kept), key=lambda node: node.lineno)
    lines = text.splitlines()
    parts = ["\n".join(lines[min([node.lineno, *_decorated(node)]) - 1 : node.end_lineno]) for node in chosen]
    return "\n\n\n".join(parts) + "\n"


def _is_import(node):
    return isinstance(node, (ast.Import, ast.ImportFrom))


def _decorated(node):
    return [one.lineno for one in getattr(node, "decorator_list", ())]


def _names_bound(node):
    if _is_import(node):
        return {(alias.asname or alias.name).split(".")[0] for alias in node.names}
    if isinstance(node, ast.FunctionDef):
        return {node.name}
    if isinstance(node, ast.Assign):
        return {one.id for target in node.targets for one in ast.walk(target) if isinstance(one, ast.Name)}
    return set()


def _names_used(node):
    return {one.id for one in ast.walk(node) if isinstance(one, ast.Name)}
