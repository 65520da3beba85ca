"""What is told once a process has not been told when the process begins."""

import importlib.util

from kit.simulator import tuning


def test_a_new_process_has_not_told_that_there_are_no_times():
    spec = importlib.util.spec_from_file_location("tuning_anew", tuning.__file__)
    anew = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(anew)
    assert anew._told is False
