"""Answers to exercise 06, grid limits."""

from kit.tests.banks import Answer

WITHOUT_KERNEL = ("06.1",)

GUARDED = "if programs > 2**31 - 1:\n    raise ValueError\n"
PROGRAMS = "programs = triton.cdiv(num_tokens, BLOCK) * num_heads * num_seqs\n"


def _grid(name, text, cause="", about=""):
    return Answer("06.1", name, (text,), cause, about)


def _swap(name, kernel, launch, cause="", about=""):
    return Answer("06.2", name, (kernel, launch), cause, about)


def _tile(name, kernel, launch, cause="", about=""):
    return Answer("06.3", name, (kernel, launch), cause, about)


WRONG = [
    _grid(
        "tokens on axis 1",
        PROGRAMS + GUARDED + "return (num_heads, triton.cdiv(num_tokens, BLOCK), num_seqs)",
        "number of tokens on an axis other than 0",
    ),
    _grid(
        "heads and sequences multiplied",
        PROGRAMS + GUARDED + "return (triton.cdiv(num_tokens, BLOCK), num_heads * num_seqs)",
        "two small numbers multiplied",
    ),
    _grid(
        "the same on axis 2",
        PROGRAMS + GUARDED + "return (triton.cdiv(num_tokens, BLOCK), 1, num_heads * num_seqs)",
        "two small numbers multiplied",
    ),
    _grid("no product check", "return (triton.cdiv(num_tokens, BLOCK), num_heads, num_seqs)", "is the product of all three checked"),
    _grid("2^31 allowed", PROGRAMS + "if programs > 2**31:\n    raise ValueError\nreturn (programs,)", "It is 2^31 - 1"),
    _grid("clamped", PROGRAMS + GUARDED + "return (min(programs, 65_535),)", "cut at 65,535"),
    _grid(
        "floor division",
        "programs = num_tokens // BLOCK * num_heads * num_seqs\n" + GUARDED + "return (programs,)",
        "drop the last, partial block",
    ),
    _grid(
        "one block added",
        "programs = (num_tokens // BLOCK + 1) * num_heads * num_seqs\n" + GUARDED + "return (programs,)",
        "one block too many",
    ),
    _grid("at least one program", PROGRAMS + GUARDED + "return (max(1, programs),)", "With 0 tokens there is nothing to do"),
    _grid(
        "divides by zero",
        PROGRAMS + GUARDED + "y = min(programs, 65_535)\nreturn (1, y, triton.cdiv(programs, y))",
        "divided by that number",
    ),
    _grid(
        "split and rounded up",
        PROGRAMS + GUARDED + "y = max(1, min(programs, 40_000))\nreturn (triton.cdiv(programs, y), y)",
        "without a block",
    ),
    _grid("too careful", PROGRAMS + "if programs > 65_535:\n    raise ValueError\nreturn (programs,)", "refuse a product that fits"),
    _grid("true division", "programs = num_tokens / BLOCK * num_heads * num_seqs\n" + GUARDED + "return (programs,)", "use triton.cdiv"),
    _grid("nothing returned", PROGRAMS + GUARDED, "Is the return missing"),
    _grid("sequences left out", "return (triton.cdiv(num_tokens, BLOCK) * num_heads,)", "left out"),
    _swap(
        "left as it was",
        "pid_h = tl.program_id(0)\npid_t = tl.program_id(1)",
        "grid = (num_heads, num_tokens)",
        "still on axis 1",
        "launch",
    ),
    _swap(
        "on axis 2", "pid_h = tl.program_id(0)\npid_t = tl.program_id(2)", "grid = (num_heads, 1, num_tokens)", "still on axis 1", "launch"
    ),
    _swap("only the launch", "pid_h = tl.program_id(0)\npid_t = tl.program_id(1)", None, "disagree on which axis", "memory"),
    _swap("clamped", None, "grid = (min(num_tokens, 65_535), num_heads)", "cut at 65,535", "values"),
    _swap(
        "in two parts, on the same tokens",
        None,
        """
        grid = (min(num_tokens, 65_535), num_heads)
        if num_tokens > 65_535:
            rest = (num_tokens - 65_535, num_heads)
            scale_heads_kernel[rest](x, w, out, *strides, num_tokens, num_heads, head_size, BLOCK=triton.next_power_of_2(head_size))
        """,
        "launched on the first part's tokens",
        "values",
    ),
    _swap("at least one program", None, "grid = (max(1, num_tokens), num_heads)", "With 0 tokens there is nothing to do", "memory"),
    _swap(
        "flattened, roles swapped",
        "pid = tl.program_id(0)\npid_t = pid % num_heads\npid_h = pid // num_heads",
        "grid = (num_tokens * num_heads,)",
        "does each use num_heads",
    ),
    _swap(
        "flattened, mixed divisors",
        "pid = tl.program_id(0)\npid_t = pid // num_heads\npid_h = pid // num_tokens",
        "grid = (num_tokens * num_heads,)",
        "does each use num_heads",
    ),
    _swap(
        "large inputs skipped",
        None,
        "if num_tokens > 65_535:\n    return\ngrid = (num_tokens, num_heads)",
        "Does a condition skip the launch",
        "launch",
    ),
    _swap("one head", None, "grid = (num_tokens,)", "one for each token and head", "values"),
    _tile(
        "tiles on axis 1",
        "pid_h = tl.program_id(0)\npid_t = tl.program_id(1)\noffs_t = pid_t * TILE + tl.arange(0, TILE)\n"
        "mask = (offs_t < num_tokens)[:, None] & (offs_d < head_size)[None, :]",
        "grid = (num_heads, triton.cdiv(num_tokens, TILE))",
        "still on axis 1",
        "launch",
    ),
    _tile(
        "no tail mask",
        "offs_t = pid_t * TILE + tl.arange(0, TILE)\nmask = (offs_t >= 0)[:, None] & (offs_d < head_size)[None, :]",
        None,
        "The last tile is partial",
        "memory",
    ),
    _tile(
        "mask one too long",
        "offs_t = pid_t * TILE + tl.arange(0, TILE)\nmask = (offs_t <= num_tokens)[:, None] & (offs_d < head_size)[None, :]",
        None,
        "one token too long",
        "memory",
    ),
    _tile("rounded down", None, "grid = (num_tokens // TILE, num_heads)", "Does the grid round down", "values"),
    _tile(
        "tiles overlap",
        "offs_t = pid_t + tl.arange(0, TILE)\nmask = (offs_t < num_tokens)[:, None] & (offs_d < head_size)[None, :]",
        None,
        "begin at pid_t * TILE",
        "values",
    ),
    _tile("a program for every token", None, "grid = (num_tokens, num_heads)", "still a program for every token", "launch"),
    _tile("one tile more", None, "grid = (num_tokens // TILE + 1, num_heads)", "Is 1 added after a floor division", "launch"),
    _tile(
        "tail of the elements unmasked",
        "offs_t = pid_t * TILE + tl.arange(0, TILE)\nmask = (offs_t < num_tokens)[:, None] & (offs_d >= 0)[None, :]",
        None,
        "elements of a head",
        "memory",
    ),
]

RIGHT = [
    _grid("three axes", PROGRAMS + GUARDED + "return (triton.cdiv(num_tokens, BLOCK), num_heads, num_seqs)"),
    _grid("sequences on axis 0", PROGRAMS + GUARDED + "return (-(-num_tokens // BLOCK) * num_seqs, num_heads)"),
    _grid("a list", PROGRAMS + GUARDED + "return [programs, 1, 1]"),
    _swap("flattened", "pid = tl.program_id(0)\npid_t = pid // num_heads\npid_h = pid % num_heads", "grid = (num_tokens * num_heads,)"),
    _swap(
        "flattened, heads first",
        "pid = tl.program_id(0)\npid_h = pid // num_tokens\npid_t = pid % num_tokens",
        "grid = (num_tokens * num_heads,)",
    ),
    _swap(
        "several launches",
        "pid_h = tl.program_id(0)\npid_t = tl.program_id(1)",
        """
        if num_tokens > 65_535:
            scale_heads(x[65_535:], w, out[65_535:])
            num_tokens = 65_535
        grid = (num_heads, num_tokens)
        """,
    ),
    _tile(
        "flattened",
        "pid_t = tl.program_id(0) // tl.num_programs(1)\noffs_t = tl.program_id(0) * TILE + tl.arange(0, TILE)\n"
        "mask = (offs_t[:, None] < num_tokens) & (offs_d[None, :] < head_size)",
        None,
    ),
    _tile(
        "tiles from the end",
        "pid_t = tl.num_programs(0) - 1 - pid_t\noffs_t = pid_t * TILE + tl.arange(0, TILE)\n"
        "mask = (offs_t[:, None] < num_tokens) & (offs_d[None, :] < head_size)",
        None,
    ),
    _tile(
        "heads innermost",
        "pid_h = tl.program_id(0) % tl.cdiv(tl.num_programs(0), tl.cdiv(num_tokens, TILE))\n"
        "offs_t = tl.program_id(0) // tl.cdiv(tl.num_programs(0), tl.cdiv(num_tokens, TILE)) * TILE + tl.arange(0, TILE)\n"
        "mask = (offs_t[:, None] < num_tokens) & (offs_d[None, :] < head_size)",
        "grid = (triton.cdiv(num_tokens, TILE) * num_heads,)",
    ),
]
