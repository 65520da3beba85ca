"""Graders: an acceptance that is too wide or too narrow, a verdict that says something else."""

from mutations import Mutation, pytest


def _in(name, file, old, new, plants, only):
    path = f"kit/{file[3:]}" if file.startswith("../") else f"kit/graders/{file}"
    check = pytest(only) if only.endswith(".py") else pytest("test_graders.py", only)
    return Mutation(f"grader {name}", path, old, new, plants, check)


MUTATIONS = [
    _in(
        "06 most",
        "ex06_legal_grid.py",
        'if wanted > facts["most"]:',
        'if wanted >= facts["most"]:',
        "the largest legal grid is refused",
        "test_trial.py",
    ),
    _in(
        "06 count",
        "ex06_legal_grid.py",
        'elif facts["count"] != wanted:',
        'elif facts["count"] > wanted:',
        "too few programs pass",
        "06.1",
    ),
    _in("07 threshold", "ex07_threshold.py", "if not whole or got != right:", "if not whole:", "any whole number passes", "07.1"),
    _in("03 row", "ex03_rule.py", "    elif n > BLOCK:", "    elif n > 2 * BLOCK:", "a block that is too small passes", "03"),
    _in("03 spills", "ex03_rule.py", "    if made.spills:", "    if made.spills > 10**6:", "spilling passes", "03"),
    _in("04 one", "ex04_count.py", "    if one and n == 1:", "    if one and n == 2:", "1 is no class of its own", "04.1"),
    _in(
        "05 legal",
        "ex05_warps.py",
        "    legal = not trial.problems\n",
        "    legal = True\n",
        "a race is told twice, or run live",
        "test_trial.py",
    ),
    _in(
        "08 programs",
        "ex08_decode_and_prefill.py",
        "    elif got[0] != wanted[0]:",
        "    elif got[0] < wanted[0]:",
        "too many programs pass",
        "08.1",
    ),
    _in(
        "02 alignment",
        "ex02_guard.py",
        "    elif copied and got.data_ptr() % 16:",
        "    elif copied and got.data_ptr() % 1:",
        "an unaligned copy passes",
        "02.3",
    ),
    _in(
        "11 host",
        "ex11_results.py",
        '    return row["host_us"] > us',
        '    return row["host_us"] < us',
        "the host's time is judged the other way",
        "11",
    ),
    _in(
        "12 edges",
        "ex12_edges.py",
        "if missing := [n for n in wanted if n not in got]:",
        "if missing := [n for n in wanted[1:] if n not in got]:",
        "the first edge may be missing",
        "test_trial.py",
    ),
    _in(
        "13 trace",
        "ex13_warm_up.py",
        "missed = [request for request in TRACE if",
        "missed = [request for request in TRACE[:0] if",
        "requests may compile",
        "13",
    ),
    _in(
        "values",
        "step.py",
        "self.values = values and self.values is not False",
        "self.values = True",
        "every verdict says values right",
        "test_trial.py",
    ),
    _in(
        "memory",
        "step.py",
        "self.memory = memory and self.memory is not False",
        "self.memory = True",
        "every verdict says memory legal",
        "test_trial.py",
    ),
    _in(
        "guards",
        "../shapes_buffer.py",
        "states = torch.where(changed, OUTSIDE, RIGHT)",
        "states = torch.where(changed, RIGHT, RIGHT)",
        "writes into guard cells are not seen",
        "06 or 07",
    ),
    _in(
        "unwritten",
        "../shapes_buffer.py",
        "self.of_view(changed), WRONG, UNWRITTEN)",
        "self.of_view(changed), WRONG, WRONG)",
        "never written is told as wrong",
        "06 or 07",
    ),
    Mutation(
        "verdict true",
        "kit/verdict.py",
        'return self.state == "passed"',
        "return True",
        "a wrong answer's verdict is true",
        pytest("test_practice.py"),
    ),
    Mutation(
        "verdict two",
        "kit/verdict.py",
        "'right' if self.values else 'wrong'",
        "'right'",
        "values are always called right",
        pytest("test_trial.py"),
    ),
]
