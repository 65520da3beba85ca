"""docs/simulator.md lists exactly the operations that the executor knows."""

import re
from pathlib import Path

from kit.simulator.executor import CONTROL
from kit.simulator.operations import TABLE

PAGE = (Path(__file__).resolve().parents[2] / "docs" / "simulator.md").read_text()


def test_the_page_lists_what_the_executor_knows():
    table = PAGE.split("## Operations")[1].split("Block pointers")[0]
    assert set(re.findall(r"`([a-z]+\.[\w.]+)`", table)) == {*TABLE, *CONTROL}


def test_what_the_page_says_is_refused_is_unknown():
    refused = PAGE.split("Refused by name:")[1].split(";")[0]
    names = re.findall(r"`(tt\.\w+)`", refused)
    assert names and not {*names} & {*TABLE, *CONTROL}
