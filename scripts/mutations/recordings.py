"""Recordings: edited, aged, taken apart."""

from mutations import Mutation, nbval, pytest


def _in(name, recording, old, new, plants, check):
    return Mutation(f"recording {name}", f"kit/recordings/{recording}.json", old, new, plants, check)


MUTATIONS = [
    _in("digest", "cost_of_the_cast", '"digest": "', '"digest": "0', "the recording is of other code", nbval("07_int64_offsets")),
    _in("gpu", "cost_of_the_cast", '"gpu": "NVIDIA H200"', '"gpu": "NVIDIA A100"', "another GPU's name", nbval("07_int64_offsets")),
    _in("date", "layout_cost", '"date": "2026-', '"date": "2025-', "another date", nbval("06_grid_limits")),
    _in("schema", "layout_cost", '"schema": 1', '"schema": 2', "a form that this kit does not read", nbval("06_grid_limits")),
    _in("owner", "layout_cost", '"experiment": "layout_cost"', '"experiment": "layout"', "another experiment's", nbval("06_grid_limits")),
    _in("driver", "cost_of_barriers", '"driver"', '"drive"', "provenance without the driver", nbval("05_barriers")),
    _in("arguments", "cost_of_barriers", '"rounds": 5', '"rounds": 6', "measured with other arguments", nbval("05_barriers")),
    Mutation(
        "recording never stale",
        "kit/recording.py",
        'stale=run["digest"] != wanted)',
        "stale=False)",
        "old recordings pass for fresh ones",
        pytest("test_recorded.py"),
    ),
    Mutation(
        "recording digest without arguments",
        "kit/recording_file.py",
        'f"{code}\\n{json.dumps(arguments, sort_keys=True)}"',
        'f"{code}\\n"',
        "a digest that does not know the arguments",
        pytest("test_recorded.py"),
    ),
]
