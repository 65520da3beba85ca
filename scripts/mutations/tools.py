"""The tools: what makes nbval sound, what keeps notebooks in one form, what setting up refuses."""

from mutations import Mutation, pytest


def _in(name, file, old, new, plants, test, only=""):
    return Mutation(f"tool {name}", f"scripts/{file}", old, new, plants, pytest(f"scripts/tests/{test}", only))


MUTATIONS = [
    _in(
        "semicolon",
        "nbval_sound.py",
        "store_history=True",
        "store_history=False",
        "a trailing ; shows its value",
        "test_nbval_sound.py",
        "semicolons and alone",
    ),
    _in("ports", "kernel_sockets.py", 'return "ipc"', 'return "tcp"', "kernels listen on ports again", "test_kernel_sockets.py"),
    _in(
        "addresses",
        "nbval_sanitize.cfg",
        r"regex: \bat 0x[0-9a-f]+\b",
        r"regex: \bat 1x[0-9a-f]+\b",
        "addresses are compared",
        "test_nbval_sound.py",
        "semicolons and alone",
    ),
    _in(
        "cell limit",
        "nbval_report.py",
        "if row[which] > self.limit",
        "if row[which] > 10 * self.limit",
        "a slow notebook passes",
        "test_nbval_sound.py",
        "time_counts",
    ),
    _in("words", "lint_notebooks.py", "MOST_WORDS = 140", "MOST_WORDS = 1400", "long texts pass", "test_lint_notebooks.py"),
    _in(
        "errors stored",
        "lint_notebooks.py",
        'if output.output_type == "error":',
        'if output.output_type == "errors":',
        "a stored error passes",
        "test_lint_notebooks.py",
    ),
    _in(
        "widget views",
        "notebook_files.py",
        "    data.pop(WIDGET_VIEW, None)",
        "    data.pop(WIDGET_VIEW + 'x', None)",
        "widget views are stored",
        "test_fresh.py",
    ),
    _in(
        "solution cells",
        "exercises.py",
        'if "solution" in cell.metadata',
        'if "solutions" in cell.metadata',
        "solution cells are handed out",
        "test_exercises.py",
    ),
    _in("old glibc", "setup.py", "< [2, 28]:", "< [2, 2]:", "an old C library is accepted", "test_setup.py"),
    _in(
        "regress broken",
        "regress_claims.py",
        "BAD = (BROKEN, NOT_REACHED)",
        "BAD = (BROKEN,)",
        "a claim that was not reached is no failure",
        "test_regress.py",
        "trouble",
    ),
    _in("mutation twice", "mutate.py", "if count != 1:", "if count < 1:", "a mutation's text may stand there twice", "test_mutate.py"),
]
