"""kit.sources: what is followed, what is imported, and what changes a digest."""

import math
import subprocess
import sys
import textwrap
import types

import pytest
import torch
import triton
import triton.language as tl

from kit import sources
from kit.errors import BadInput, WrongType
from kit.source_text import literal

BLOCK = tl.constexpr(128)
SCALE = 3
ELEMENT = tl.float32
PLACE = "cuda:0"


@triton.jit
def double(x):
    return x * SCALE


@triton.jit
def scale_kernel(x_ptr, n, BLOCK_SIZE: tl.constexpr):
    """Scale n elements."""
    offs = tl.program_id(0) * BLOCK_SIZE + tl.arange(0, BLOCK)
    mask = offs < n  # the tail
    tl.store(x_ptr + offs, double(tl.load(x_ptr + offs, mask=mask)), mask=mask)


def scale(x):
    scale_kernel[(triton.cdiv(x.numel(), 128),)](x, x.numel(), BLOCK_SIZE=128)
    return x


@triton.autotune(configs=[triton.Config({"BLOCK_SIZE": 64})], key=["n"])
@triton.jit
def tuned_kernel(x_ptr, n, BLOCK_SIZE: tl.constexpr):
    tl.store(x_ptr, n)


VARIANTS = {"plain": scale, "sum": torch.sum}


def best():
    return VARIANTS["plain"], PLACE, math.pi


square = lambda x: x * x  # noqa: E731


def use_lambda():
    return square(3)


def ping():
    return pong()


def pong():
    return ping()


def make(n):
    def inner(x):
        return x + n

    return inner


def short(found):
    return [key.removeprefix(f"{__name__}.") for key in found]


def test_reach_follows_kernels_constants_and_keeps_decorators():
    found = sources.reach(scale)
    assert short(found) == ["BLOCK", "SCALE", "double", "scale_kernel", "scale"]
    assert found[f"{__name__}.double"].startswith("@triton.jit\ndef double")
    assert found[f"{__name__}.SCALE"] == "SCALE = 3"
    assert short(sources.reach(tuned_kernel)) == ["tuned_kernel"]
    assert "@triton.autotune" in sources.reach(tuned_kernel)[f"{__name__}.tuned_kernel"]


def test_reach_goes_through_containers_cycles_and_closures():
    assert short(sources.reach(best))[-3:] == ["VARIANTS", "PLACE", "best"]
    assert set(short(sources.reach(ping))) == {"ping", "pong"}
    assert short(sources.reach(make(5))) == ["n", "make.<locals>.inner"]
    assert short(sources.reach(use_lambda)) == ["square", "use_lambda"]


def test_a_local_name_is_not_a_global():
    text = "def f(SCALE):\n    return [BLOCK for BLOCK in SCALE] + [x.SCALE]"
    assert sources.names_used(text) == (["x.SCALE", "x"], {"f"})


def test_constants_of_one_name_in_two_closures_are_both_reached():
    one, two = make(1), make(2)

    def both(x):
        return one(x) + two(x)

    found = sources.reach(both)
    assert sorted(text for key, text in found.items() if text.startswith("n = ")) == ["n = 1", "n = 2"]


@pytest.fixture
def cell():
    """Define a function as a notebook's cell does, from its text."""
    from IPython.core.interactiveshell import InteractiveShell

    shell = InteractiveShell.instance()

    def run(text, name):
        result = shell.run_cell(textwrap.dedent(text), silent=False)
        result.raise_error()
        return shell.user_ns[name]

    yield run
    shell.reset(new_session=False)


CELL = """
import triton, triton.language as tl
WIDTH = 4

@triton.jit
def add_kernel(x_ptr, n, BLOCK: tl.constexpr):
    '''Add one.'''
    offs = tl.arange(0, BLOCK)
    tl.store(x_ptr + offs, tl.load(x_ptr + offs) + WIDTH)
"""


def test_digest_changes_with_code_and_with_nothing_else(cell):
    first = sources.digest(cell(CELL, "add_kernel"))
    respelt = CELL.replace("offs = tl.arange(0, BLOCK)", "offs = tl.arange(\n        0,\n        BLOCK)  # which")
    assert sources.digest(cell(respelt.replace("'''Add one.'''", "'''Other words.'''"), "add_kernel")) == first
    assert sources.digest(cell(CELL.replace("WIDTH = 4", "WIDTH = 5"), "add_kernel")) != first
    assert sources.digest(cell(CELL.replace("tl.load(x_ptr + offs) + W", "tl.load(x_ptr + offs) - W"), "add_kernel")) != first
    assert sources.digest(cell(CELL.replace("WIDTH = 4", "WIDTH = 'cpu'"), "add_kernel")) != first


def test_digest_is_blind_to_the_device(cell):
    text = "place = 'cpu'\ndef where():\n    return place"
    assert sources.digest(cell(text, "where")) == sources.digest(cell(text.replace("'cpu'", "'cuda:1'"), "where"))
    assert sources.digest(cell(text, "where")) != sources.digest(cell(text.replace("'cpu'", "'cpus'"), "where"))


def test_classes_typed_in_a_cell_are_found(cell):
    kind = cell("from dataclasses import dataclass\n@dataclass\nclass Point:\n    x: int\n", "Point")
    assert sources.reach(kind) == {"Point": "@dataclass\nclass Point:\n    x: int\n"}


def test_own_modules_are_followed_by_attribute_and_libraries_are_not(tmp_path, monkeypatch, cell):
    (tmp_path / "reader_file.py").write_text("SIZE = 7\n\ndef area():\n    return SIZE * SIZE\n")
    monkeypatch.syspath_prepend(tmp_path)
    f = cell("import reader_file, torch\ndef f():\n    return reader_file.area() + torch.numel(torch.ones(1))\n", "f")
    assert list(sources.reach(f)) == ["reader_file.SIZE", "reader_file.area", "f"]
    text, name = sources.program(f)
    assert "import reader_file\n" in text and "SIZE" not in text and name == "f"


def test_imports_recreate_what_was_imported():
    from math import floor

    from torch import relu

    namespace = {"m": math, "tl": tl, "torch": torch, "relu": relu, "down": floor, "cdiv": tl.cdiv, "x": torch.ones(1), "n": 3, "_h": math}
    text = sources.imports(namespace)
    assert text.splitlines() == [
        "import math as m",
        "import triton.language as tl",
        "import torch",
        "from torch import relu",
        "from math import floor as down",
        "from triton.language.standard import cdiv",
    ]
    made = {}
    exec(text, made)
    assert all(made[name] is namespace[name] for name in ("m", "tl", "torch", "relu", "down", "cdiv"))
    assert sources.imports(namespace, {"m"}) == "import math as m"


def test_program_runs_in_another_process(tmp_path):
    text, name = sources.program(best)
    (tmp_path / "program.py").write_text(
        text + f"\nkernel = {name}()[0].__globals__['scale_kernel']\nprint(kernel.__name__, BLOCK.value, {name}()[1:])"
    )
    out = subprocess.run([sys.executable, tmp_path / "program.py"], check=False, capture_output=True, text=True)
    assert out.stdout == f"scale_kernel 128 ('cuda:0', {math.pi})\n", out.stderr


def test_special_constants_survive():
    held = (float("inf"), tl.constexpr(2), ELEMENT, torch.bfloat16, torch.device("cpu"), {"a": [1, None]}, {1, 2}, range(3), b"x")
    text = literal(held)
    made = eval(text)
    assert made[0] == math.inf and made[1].value == 2 and made[2] == tl.float32 and made[3] is torch.bfloat16 and made[4:] == held[4:]


def test_what_cannot_be_sent_is_named():
    weights = torch.ones(3)

    def apply():
        return weights + 1

    with pytest.raises(BadInput, match=r"apply uses weights, which was made outside it \(a tensor \(3,\) float32 on cpu\): make it inside"):
        sources.program(apply)


def test_two_things_of_one_name_cannot_be_sent_together():
    one, two = make(1), make(2)

    def both(x):
        return one(x) + two(x)

    with pytest.raises(BadInput, match="Two different things are called n in"):
        sources.program(both)


@pytest.mark.parametrize("wrong", [3, None, "f", torch.ones(2), math, torch.sum])
def test_reach_refuses_what_is_not_code(wrong):
    with pytest.raises(WrongType, match="reach: obj must be a function, a class or a @triton.jit kernel; got"):
        sources.reach(wrong)


def test_no_source_is_a_sentence():
    made = {}
    exec("def f(): return 1\ng = lambda x: x", made)
    with pytest.raises(BadInput, match="The source of f cannot be read, because it was not typed"):
        sources.reach(made["f"])
    with pytest.raises(BadInput, match="The source of a lambda cannot be told: its line cannot be read"):
        sources.reach(made["g"])
    pair = (lambda x: x + 1, lambda x: x + 2)
    with pytest.raises(BadInput, match="2 lambdas with the same arguments"):
        sources.reach(pair[0])


def test_a_module_of_the_reader_is_own_and_a_library_is_not():
    assert (
        sources.is_own_module("__main__")
        and sources.is_own_module("kit.kernels.add")
        and sources.is_own_module(types.ModuleType("mine")) is False
    )
    assert not any(map(sources.is_own_module, (math, torch, triton, tl, pytest, "kit.machine", "kit")))
