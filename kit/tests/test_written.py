"""Modules written at run time: one a text, in a file that stays."""

import inspect

import pytest
from triton import knobs

from kit.written import module_of


@pytest.fixture(autouse=True)
def own_cache(tmp_path):
    with knobs.cache.scope():
        knobs.cache.dir = str(tmp_path)
        yield tmp_path


def test_a_text_is_imported_once_and_its_file_stays(own_cache):
    text = "def told():\n    return 41\n"
    module = module_of(text, "test-once")
    assert module.told() == 41
    assert module_of(text, "test-once") is module
    assert inspect.getsource(module.told) == text
    assert [path.name for path in (own_cache / "kit-test-once").glob("*.py*")] == [f"{module.__name__}.py"]


def test_another_text_or_kind_is_another_module():
    one, other = (module_of(f"VALUE = {i}\n", "test-two") for i in range(2))
    assert (one.VALUE, other.VALUE) == (0, 1)
    assert module_of("VALUE = 0\n", "test-three") is not one
