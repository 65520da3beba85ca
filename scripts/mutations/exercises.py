"""Exercises and their solutions: an answer that is wrong, a check that checks something else, a stub that is gone."""

from mutations import Mutation, nbval


def _solution(name, lesson, old, new, plants):
    return Mutation(f"solution {name}", f"solutions/{lesson}.ipynb", old, new, plants, nbval(f"solutions/{lesson}.ipynb"))


def _exercise(name, file, old, new, plants):
    return Mutation(f"exercise {name}", file, old, new, plants, ("exercises",))


MUTATIONS = [
    _solution("06 limit", "06_grid_limits", "    if programs > 2**31 - 1:", "    if programs > 2**31:", "one program too many is allowed"),
    _solution(
        "07 cast",
        "07_int64_offsets",
        "cache_ptr + block_id.to(tl.int64) * stride_",
        "cache_ptr + block_id * stride_",
        "the cast of 7.2 is gone",
    ),
    _solution("07 division", "07_int64_offsets", "    return 2**31 // row", "    return 2**31 / row", "a float where a token is asked for"),
    _solution(
        "06 check", "06_grid_limits", 'kit.check("06.1", legal_grid)', 'kit.check("06.2", legal_grid)', "the check is another step's"
    ),
    _solution("06 no check", "06_grid_limits", 'kit.check("06.1", legal_grid)', "legal_grid", "the check is gone"),
    _solution("03 rule", "03_block_sizes", 'kit.check("03.1"', 'kit.check("03.2"', "the check of 3.1 judges 3.2"),
    _exercise(
        "06 stub",
        "solutions/06_grid_limits.ipynb",
        "Exercise 6.1: about 4 lines",
        "Exercise 6.1: about 5 lines",
        "a stub that says otherwise",
    ),
    _exercise("06 lesson", "solutions/06_grid_limits.ipynb", "Exercise 6.1: about", "Exercise 7.1: about", "a stub of another lesson"),
    _exercise("06 handed out", "exercises/06_grid_limits.ipynb", 'kit.check("06.1", legal_grid)', "legal_grid", "the reader gets no check"),
    _exercise("07 marker", "exercises/07_int64_offsets.ipynb", "Exercise 7.1: about", "Exercise 7.1: some", "an exercise changed by hand"),
]
