"""Named answers to the exercises: wrong ones, each with the words that its diagnosis must hold, and right ones.

An answer is what a reader writes between the solution's markers, one text for each marked block of the step's cell; the rest of the cell is
the exercise's own, taken from solutions/. `module_of` makes a module of it. Each exNN.py here is a bank: WRONG, RIGHT, and
WITHOUT_KERNEL, the steps whose answer is a plain function, so that there are no values and no memory to judge.
"""

from __future__ import annotations

import hashlib
import importlib
import importlib.util
import json
import pkgutil
import re
import sys
import textwrap
from dataclasses import dataclass
from pathlib import Path

SOLUTIONS = Path(__file__).resolve().parents[3] / "solutions"
BLOCK = re.compile(r"^(?P<indent>[ \t]*)# BEGIN SOLUTION (?P<stub>.*)\n(?P<body>(?:.*\n)*?)[ \t]*# END SOLUTION[ \t]*$", re.MULTILINE)
HEAD = "import torch\nimport triton\nimport triton.language as tl\n\nimport kit\n\n"


@dataclass(frozen=True)
class Answer:
    """One answer. `blocks`: a text for each marked block, None for the solution's own. `cause`: words of the diagnosis, or ""."""

    step: str
    name: str
    blocks: tuple
    cause: str = ""
    about: str = ""
    before: str | None = None  # what stands above the cell; None: the solved cells whose functions it uses

    @property
    def source(self):
        """The step's cell with this answer in it, below the cells that it needs."""
        cell = cell_of(self.step)
        given = iter(self.blocks)

        def put(match):
            block = next(given)
            return textwrap.indent(textwrap.dedent(match["body"] if block is None else block).strip("\n"), match["indent"])

        source = BLOCK.sub(put, cell)
        assert next(given, "none") == "none", f"{self.step} {self.name}: more blocks than the cell has"
        return HEAD + (above(self.step) if self.before is None else self.before) + source + "\n"


def solved(step):
    """The step's cell with its own solution, without the markers."""
    return BLOCK.sub(lambda match: match["body"].rstrip("\n"), cell_of(step)) + "\n\n"


def above(step):
    """The solved cells above the step's whose functions it uses, and those that they use."""
    lesson, part = step.split(".")
    found, text = "", cell_of(step)
    for number in range(int(part) - 1, 0, -1):
        cell = solved(f"{lesson}.{number}")
        defined = set(re.findall(r"^def (\w+)", cell, re.MULTILINE)) - set(re.findall(r"^def (\w+)", text, re.MULTILINE))
        if any(re.search(rf"\b{name}\b", text) for name in defined):
            found, text = cell + found, cell + text
    return found


def cell_of(step):
    """The source of the step's cell in its solution notebook: the one whose stubs bear its number."""
    lesson, part = step.split(".")
    stub = f"Exercise {int(lesson)}.{part}:"
    path = next(SOLUTIONS.glob(f"{lesson}_*.ipynb"))
    cells = json.loads(path.read_text(encoding="utf-8"))["cells"]
    sources = ["".join(cell["source"]) for cell in cells if cell["cell_type"] == "code"]
    return next(source for source in sources if stub in source)


def unsolved(step):
    """The step's cell as the exercise has it: every block a stub."""
    return HEAD + above(step) + BLOCK.sub(lambda match: match["indent"] + match["stub"], cell_of(step)) + "\n"


def module_of(source, folder):
    """Import `source` as a module of its own, from a file in `folder`: Triton reads a kernel's source from its file."""
    name = f"test_answer_{hashlib.sha256(source.encode()).hexdigest()[:12]}"
    path = Path(folder) / f"{name}.py"
    path.write_text(source)
    spec = importlib.util.spec_from_file_location(name, path)
    module = importlib.util.module_from_spec(spec)
    sys.modules[name] = module
    spec.loader.exec_module(module)
    return module


# Last, because each bank needs the names above.
_BANKS = [importlib.import_module(f"{__name__}.{found.name}") for found in pkgutil.iter_modules(__path__)]
WRONG = [answer for bank in _BANKS for answer in bank.WRONG]
RIGHT = [answer for bank in _BANKS for answer in bank.RIGHT]
WITHOUT_KERNEL = {step for bank in _BANKS for step in bank.WITHOUT_KERNEL}
