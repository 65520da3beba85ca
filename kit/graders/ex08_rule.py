"""Exercise 08.3: a rule that picks how many elements a program owns, judged on what lesson 08 recorded."""

from __future__ import annotations

from kit import recording_file
from kit.errors import KitError
from kit.graders.step import Mistake, Step, counted

NAME = "decode_to_prefill"
TILES = (1_024, 4_096, 16_384)
MULTIPROCESSORS = 132  # of the H200
REGRET = 1.25
# Asked besides the recorded ones; between two of those a choice must be near the best of either.
TOKENS = (1, 2, 3, 7, 16, 33, 64, 100, 128, 256, 500, 1_000, 1_024, 2_000, 4_096, 8_192, 10_000, 32_768, 100_000)


def recorded():
    """{(heads, size): {tokens: {"a head" or elements: µs}}} of the recording. Raises KitError where it is missing."""
    path = recording_file.folder() / f"{NAME}.json"
    if not path.exists():
        raise KitError(
            f"check: 08.3 is judged on the recording {NAME}, and {path} is not there; run lesson 08 with `make record` on a GPU."
        )
    table = recording_file.read(path, NAME)["runs"][0]["data"]["us"]
    found = {}
    for shape, by_tokens in table.items():
        heads, size = map(int, shape.split(" x "))
        found[heads, size] = {
            int(tokens): {(size if way == "a head" else int(way)): one[1] for way, one in ways.items()}
            for tokens, ways in by_tokens.items()
        }
    return found


def rule(tokens, heads, size):
    """The exercise's own answer: 4,096 elements where four programs a multiprocessor remain, else 1,024."""
    return 4_096 if tokens * heads * size >= 4_096 * 4 * MULTIPROCESSORS else 1_024


def programs_of(tokens, heads, size, elements):
    """The programs of a launch whose programs own `elements`: heads first, then tokens; `size` is a head a program."""
    most = max(1, elements // size)
    BLOCK_H = min(1 << (heads - 1).bit_length(), most)
    BLOCK_T = most // BLOCK_H
    return -(-tokens // BLOCK_T) * -(-heads // BLOCK_H)


def regret(times, elements):
    """The time of a choice over that of the best, at one recorded shape."""
    return times[elements] / min(times.values())


def limit_of(table):
    """The regret that is let pass: 1.25, or what the exercise's own rule has where the recording is another GPU's."""
    own = max(regret(times, rule(n, *shape)) for shape, by_tokens in table.items() for n, times in by_tokens.items())
    return max(REGRET, 1.02 * own)


def grade_pick(answer, trial):
    """Judge `pick`: one of the four ways at every shape; programs enough; near the best of what was recorded."""
    trial.evidence = "recorded"
    table = recorded()
    limit = limit_of(table)
    shapes = [(n, *shape) for shape, by_tokens in table.items() for n in sorted({*TOKENS, *by_tokens})]
    asked = {shape: trial.call(answer, *shape, ran=_named(shape)) for shape in shapes}
    for shape, got in asked.items():
        _judge_kind(trial, shape, got, asked)
        trial.case(_named(shape))
    for shape, got in asked.items():
        _judge_programs(trial, shape, got, asked)
        trial.case(f"{_named(shape)}: programs")
    for shape, got in asked.items():
        _judge_regret(trial, shape, got, asked, table, limit)
        trial.case(f"{_named(shape)}: times")


def _named(shape):
    tokens, heads, size = shape
    return f"{counted(tokens, 'token')} of {heads} heads of {size}"


def _judge_kind(trial, shape, got, asked):
    allowed = (shape[2], *TILES)
    if isinstance(got, int) and not isinstance(got, bool) and got in allowed:
        return
    text = f"{_named(shape)}: it returns {got!r:.40}, which is none of the four ways"
    expected = f"{shape[2]} (a head a program), {', '.join(f'{n:,}' for n in TILES)}"
    facts = {"what": "kind", "got": got, "shape": shape, "asked": asked}
    trial.problem("answer", text, facts, ran=_named(shape), where="what it returns", got=f"{got!r:.40}", expected=expected)


def _judge_programs(trial, shape, got, asked):
    programs, least = programs_of(*shape, got), min(MULTIPROCESSORS, programs_of(*shape, TILES[0]))
    if programs >= least:
        return
    text = f"{_named(shape)}: {got:,} elements make {counted(programs, 'program')}, and 1,024 would keep {least} multiprocessors busy"
    rows = [
        {"label": f"{got:,} elements", "value": programs, "ok": False},
        {"label": "1,024 elements", "value": programs_of(*shape, TILES[0]), "ok": True},
    ]
    picture = {"kind": "Bars", "title": f"Programs for {MULTIPROCESSORS} multiprocessors", "unit": "programs", "rows": rows}
    facts = {"what": "idle", "got": got, "shape": shape, "asked": asked}
    told = {"where": "the grid", "got": counted(programs, "program"), "expected": f"at least {least}", "picture": picture}
    trial.problem("answer", text, facts, ran=_named(shape), **told)


def _judge_regret(trial, shape, got, asked, table, limit):
    """A problem where the choice is slow at the recorded numbers of tokens on both sides of this one."""
    tokens, heads, size = shape
    by_tokens = table[heads, size]
    near = {max((n for n in by_tokens if n <= tokens), default=None), min((n for n in by_tokens if n >= tokens), default=None)} - {None}
    at = min(near, key=lambda n: regret(by_tokens[n], got))
    slow = regret(by_tokens[at], got)
    if slow <= limit:
        return
    recorded_at = "" if at == tokens else f", at {at:,} tokens, the nearest recorded"
    way = "a head a program" if got == size else f"{got:,} elements"
    text = f"{_named(shape)}: {way} takes {slow:.2f} times the best{recorded_at}"
    rows = [{"label": "a head" if way == size else f"{way:,} elements", "value": us, "ok": way != got} for way, us in by_tokens[at].items()]
    picture = {"kind": "Bars", "title": f"Recorded at {at:,} tokens of {heads} heads of {size}", "unit": "µs", "rows": rows}
    facts = {"what": "slow", "got": got, "shape": shape, "asked": asked}
    told = {
        "where": f"{by_tokens[at][got]:.2f} µs",
        "got": f"{slow:.2f} times",
        "expected": f"at most {limit:.2f} times",
        "picture": picture,
    }
    trial.problem("answer", text, facts, ran=_named(shape), **told)


# ---- what goes wrong
def _is(what, test=lambda f: True):
    return lambda f: f.get("what") == what and test(f)


def _always(f):
    """One answer for all shapes."""
    return len(set(f["asked"].values())) == 1 or _always_a_head(f)


def _always_a_head(f):
    return all(got == size for (_, _, size), got in f["asked"].items())


def _by_tokens_alone(f):
    """The answer is the same for all heads and sizes, whatever the tokens."""
    answers = {}
    for (tokens, _, size), got in f["asked"].items():
        answers.setdefault(tokens, set()).add("a head" if got == size else got)
    return all(len(found) == 1 for found in answers.values())


def _shrinks(f):
    """More tokens get fewer elements, somewhere."""
    return any(
        (h, s) == (heads, size) and n > tokens and later < got
        for (tokens, heads, size), got in f["asked"].items()
        for (n, h, s), later in f["asked"].items()
    )


STEP_3 = Step(
    number="08.3",
    title="A rule that picks",
    spec="Return the elements that a program of RoPE owns, so that decode keeps its programs and prefill its speed.",
    answer="function",
    call="pick(tokens, heads, size)",
    size="about 2 lines",
    grade=grade_pick,
    mistakes=(
        Mistake("nothing returned", _is("kind", lambda f: f["got"] is None), "Is the return missing, or missing on one branch?"),
        Mistake("a float", _is("kind", lambda f: isinstance(f["got"], float)), "A division with / gives a float: use //."),
        Mistake(
            "a tile",
            _is("kind", lambda f: isinstance(f["got"], (tuple, list))),
            "One number is asked for, the elements of a program; how they are cut follows from it.",
        ),
        Mistake("a name", _is("kind", lambda f: isinstance(f["got"], str)), "A head a program is the number `size`; return a number."),
        Mistake(
            "not recorded",
            _is("kind"),
            "Only four ways were recorded: round to one of them.",
        ),
        Mistake(
            "a table",
            lambda f: isinstance(f.get("error"), (KeyError, IndexError)),
            "Is it a table of the recorded shapes? Every number of tokens is served: compare with a limit.",
        ),
        Mistake(
            "the other way round",
            _is("idle", _shrinks),
            "Is it the other way round? Few tokens need small tiles, so that there are programs enough.",
        ),
        Mistake(
            "always the same tile",
            _is("idle", _always),
            "Is it the same tile for every shape? With few tokens a large one leaves multiprocessors without a program.",
        ),
        Mistake(
            "tokens alone",
            _is("idle", _by_tokens_alone),
            "Does the rule look at tokens alone? Few small heads make few programs: count tokens * heads * size.",
        ),
        Mistake(
            "too early",
            _is("idle"),
            "Large tiles begin too early: how many programs does the limit leave for 132 multiprocessors?",
        ),
        Mistake(
            "always a head",
            _is("slow", _always_a_head),
            "A head a program is right in decode only: prefill needs a tile.",
        ),
        Mistake(
            "a head again",
            _is("slow", lambda f: f["got"] == f["shape"][2] and _shrinks(f)),
            "Does a long prompt fall back to a head a program? Past the limit it needs the tile, however long it is.",
        ),
        Mistake(
            "a head for too long",
            _is("slow", lambda f: f["got"] == f["shape"][2]),
            "A head a program is kept for too many tokens: the recording shows where it begins to lose.",
        ),
        Mistake("slow", _is("slow"), "Compare the four ways at this shape in the lesson's table: which one is near the best?"),
    ),
    hints=(
        "In decode every tile of the recording is about as quick as another; what can go wrong there is too few programs. So: programs "
        "enough first, then work enough.",
        "tokens * heads * size elements are cut into programs. Take 4,096 elements a program where that leaves four for each of the 132 "
        "multiprocessors.",
        "return 4_096 if tokens * heads * size >= 4_096 * 4 * 132 else 1_024.",
    ),
)
