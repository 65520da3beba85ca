"""pytest here: notebooks through nbval, made sound (scripts/nbval_sound.py), and tests that need a GPU named when there is none."""

import importlib.util
import os

import pytest

# `pytest kit` also works where nbval is not installed; asking for --nbval there is refused by pytest itself.
pytest_plugins = ["nbval_sound"] if importlib.util.find_spec("nbval") else []


def pytest_collection_modifyitems(items):
    needs_gpu = [item for item in items if item.get_closest_marker("gpu")]
    if not needs_gpu or os.environ.get("KIT_REQUIRE") == "gpu":
        return
    from kit import machine

    if not machine.start().live:
        for item in needs_gpu:
            item.add_marker(pytest.mark.skip(reason="needs a GPU, and this machine's is simulated"))
