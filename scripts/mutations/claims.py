"""A lesson's claims: flipped, reworded, or told with the wrong evidence; and what is stored of them."""

from mutations import Mutation, nbval


def _in(lesson, name, old, new, plants="a claim is flipped"):
    return Mutation(f"claim {name}", f"notebooks/{lesson}.ipynb", old, new, plants, nbval(lesson))


def _lint(name, lesson, old, new, plants):
    return Mutation(f"stored {name}", f"notebooks/{lesson}.ipynb", old, new, plants, ("lint", f"notebooks/{lesson}.ipynb"))


MUTATIONS = [
    _in("00_start_here", "00 overwritten", "overwritten == [10, 11])", "overwritten == [10])"),
    _in("01_semantics", "01 wraps", "added(1) == -128)", "added(1) == 128)"),
    _in("01_semantics", "01 roles", 'triton_gives("-7 // 4") == -2)', 'triton_gives("-7 // 4") == -1)'),
    _in("02_reading_inductor", "02 kinds", "loads == [1, 2], long)", "loads == [2, 1], long)"),
    _in("03_block_sizes", "03 spills", "spills[4].spills > 0, evidence", "spills[4].spills == 0, evidence"),
    _in(
        "03_block_sizes",
        "03 evidence",
        '"with 16 warps nothing spills", spills[16].spills == 0, evidence=spills[16])',
        '"with 16 warps nothing spills", spills[16].spills == 0, evidence="measured")',
        "a claim says that it was measured, where nothing can be",
    ),
    _in("04_specialization", "04 variants", "len(eight) == 3, evidence", "len(eight) == 2, evidence"),
    _in("05_barriers", "05 races", 'and no error is raised", four > 0)', 'and no error is raised", four == 0)'),
    _in("05_barriers", "05 paper", "len(between) == 1, evidence=report)", "len(between) == 0, evidence=report)"),
    _in("06_grid_limits", "06 skipped", "not runs((65_535, 65_535)))", "runs((65_535, 65_535)))"),
    _in("07_int64_offsets", "07 green", "first_bad_program(1_000, stride_b) is None)", "first_bad_program(1_000, stride_b) is not None)"),
    _in(
        "07_int64_offsets",
        "07 words",
        'kit.claim("block 100 is read right"',
        'kit.claim("block 100 is read wrong"',
        "a claim says the opposite of what is checked, and of what is stored",
    ),
    _in("08_decode_and_prefill", "08 width", "bits[1] == [128, 128], wide)", "bits[1] == [32, 32], wide)"),
    _in("11_microbenchmarks", "11 recorded", 'times["sync inside"] > 2, nine)', 'times["sync inside"] < 2, nine)'),
    _in("12_sweeps", "12 recorded", "slow > 1.5, evidence=sweep)", "slow < 1.5, evidence=sweep)"),
    _in("13_cold_start", "13 requests", "sum(waited) == 5, evidence=log)", "sum(waited) == 4, evidence=log)"),
    _in(
        "06_grid_limits",
        "06 stored text",
        "✓ after the refusal, the next launch is right [simulated]",
        "✓ after the refusal, the next launch is wrong [simulated]",
        "a stored output says something else than the cell",
    ),
    _in(
        "06_grid_limits",
        "06 evidence word",
        "✓ (65_535, 1) runs [simulated]",
        "✓ (65_535, 1) runs [measured]",
        "a stored output bears another evidence word",
    ),
    _lint("kernelspec", "06_grid_limits", "Python 3 (ipykernel)", "my kernel", "a notebook saved from somebody's own environment"),
    _lint("no start", "06_grid_limits", "gpu = kit.start()", "gpu = kit.start", "the first code cell does not start the machine"),
    _lint("folder", "07_int64_offsets", "# Cast before you multiply", "# /home/me/cast", "a text names a folder of one machine"),
]
