"""Exercise 14.2: the kernel and its launch, in guarded buffers, each case with one new thing, then at full size on paper."""

from __future__ import annotations

from kit import machine
from kit.graders.ex07_casts import CAST_MISTAKES, overflows
from kit.graders.ex14_arithmetic import slip_mistakes
from kit.graders.ex14_inputs import Case
from kit.graders.ex14_reference import SLIPS
from kit.graders.ex14_values import judge_full_size, judge_values
from kit.graders.reading import words_of
from kit.graders.step import Mistake, Step

CASES = (
    Case("plain", 4),
    Case("tail", 5),
    Case("padding", 7, padding=(0, 3, 6)),
    Case("one token", 1, size=128, BLOCK_T=1),
    Case("view", 5, view=True, padding=(1,)),
    Case("layout", 6, heads_first=True, block_size=16),
    Case("lanes", 6, kv_heads=3, group=1, size=80, BLOCK_T=2, eps=1e-3),
    Case("group", 3, kv_heads=1, group=3, size=80, BLOCK_T=2),
    Case("no tokens", 0),
    Case("many heads", 17, kv_heads=8, size=128, BLOCK_T=8, block_size=16, padding=(5, 16), view=True),
)


def grade_write(answer, trial):
    """Judge `write_qkv`: values and memory, case by case, then the launch of a million tokens on paper."""
    trial.evidence = machine.current().evidence
    for case in CASES:
        judge_values(lambda *args, case=case: answer(*args, case.BLOCK_T), trial, case)
    judge_full_size(lambda *args: answer(*args, 4), trial)


# ---- what goes wrong
def _hazard(name):
    return lambda f: f.get("hazard") == name


def _argument(part, masked=True):
    """A stray address of an argument whose name holds `part`; with `masked` False, of an access without any mask."""
    return lambda f: (
        f.get("hazard") == "out of bounds" and part in (f["finding"].argument or "") and (masked or "mask" not in f["finding"].source)
    )


def _new(what, about=None):
    return lambda f: "case" in f and f["case"].new == what and about in (None, f.get("about"))


WRITE_MISTAKES = (
    Mistake("nothing launched", lambda f: "nothing" in f, "Does a condition skip the launch?"),
    Mistake(
        "no tokens",
        _new("no tokens"),
        "With 0 tokens there is nothing to do: is something divided by 0, or a program launched all the same?",
    ),
    Mistake(
        "tokens on another axis",
        _hazard("grid"),
        "grid[1] and grid[2] end at 65,535: tokens, or tiles of them, belong on axis 0.",
    ),
    Mistake(
        "copied",
        lambda f: "copied" in f,
        "Does contiguous, reshape or as_strided make another tensor of qkv? The kernel takes qkv itself, and its stride.",
    ),
    *slip_mistakes(SLIPS),
    *(mistake for mistake in CAST_MISTAKES if mistake.name != "cast of the loaded value"),  # positions may be cast so
    Mistake(
        "one cast of two",
        lambda f: overflows(f) and "int64" in words_of(f["kernel"]),
        "One offset has its cast and another has not: a token's row in qkv and a slot's block in the cache both pass 2^31.",
    ),
    Mistake(
        "no cast",
        overflows,
        "int32 times int32 is int32. Two offsets pass 2^31, a token's row in qkv and a slot's block in the cache: cast a factor to "
        "tl.int64.",
    ),
    Mistake("group", _new("group"), "A group of 3 takes a block of 4: is the fourth masked, in load and store?"),
    Mistake(
        "read back",
        _hazard("race in a program"),
        "Other threads of the program may store before this load, or after it: load all that is needed before the first store, or put "
        "tl.debug_barrier() between.",
    ),
    Mistake(
        "shared",
        _hazard("race between programs"),
        "Two programs touch the same elements, and nothing orders programs: has each token and head one program that loads and stores it?",
    ),
    Mistake(
        "weights unmasked",
        _argument("weight", masked=False),
        "A weight has `size` elements: its load needs a mask, too, where the block has more lanes.",
    ),
    Mistake(
        "angles unmasked",
        _argument("cos", masked=False),
        "The load of cosines and sines needs a mask: lanes past size // 2, tokens past the end, padding.",
    ),
    Mistake(
        "rounded down",
        lambda f: f.get("about") == "values" and f["unwritten"] == f["bad"] and _new("tail")(f),
        "The last tile has no program: does the grid round down? triton.cdiv rounds up.",
    ),
    Mistake(
        "tail",
        _new("tail"),
        "The last tile is partial: is a token past the end masked in every load and store, that of the slots first? n_tokens is the first "
        "that is not there.",
    ),
    Mistake(
        "padding",
        lambda f: _new("padding")(f) or _new("few")(f),  # "few" of 14.3 has nothing else that is new
        "A slot below 0 is padding: nothing of that token may be written, neither its queries nor a place in a cache.",
    ),
    Mistake("one token", _new("one token"), "It is wrong for one token and BLOCK_T = 1: what is a constant here?"),
    Mistake(
        "stride of qkv",
        _new("view"),
        "Only a slice of a wider row is wrong: a token's row begins at token * qkv.stride(0).",
    ),
    Mistake(
        "strides of the caches",
        _new("layout"),
        "Only this layout of the cache is wrong: block, place and head each take their own stride of k_cache.",
    ),
    Mistake(
        "lanes past a half",
        _new("lanes"),
        "Half a head of 80 is 40 lanes of 64: does every mask have offs_d < size // 2, and does the second half begin at size // 2?",
    ),
    Mistake(
        "strides of the caches, from the start",
        lambda f: f.get("about") == "memory" and f.get("output") in ("k_cache", "v_cache") or _argument("cache")(f),
        "It leaves the cache: a block begins at block * k_cache.stride(0), which is more than its shape says.",
    ),
    Mistake(
        "memory",
        lambda f: f.get("about") == "memory",
        "It leaves its tensors: where does a token's row begin, where a head, where the second half?",
    ),
    Mistake(
        "never written",
        lambda f: f.get("about") == "values" and f["unwritten"] == f["bad"],
        "Some have no program: does the grid cover all tokens and all heads, and does triton.cdiv round it up?",
    ),
    Mistake(
        "rounded",
        lambda f: f.get("rounded"),
        "The values are near: is something computed or rounded in bfloat16 on the way? float32 throughout, rounded once, when stored.",
    ),
    Mistake(
        "values",
        lambda f: f.get("about") == "values",
        "Query head h is at h * size of a row, key head j at (heads + j) * size, value head j at (heads + kv_heads + j) * size.",
    ),
)

STEP_2 = Step(
    number="14.2",
    title="The kernel and its launch",
    spec="Queries in place, keys and values into the paged caches, as the page says, at any size.",
    answer="function",
    call="write_qkv(qkv, positions, slots, cos_sin, q_weight, k_weight, k_cache, v_cache, eps, BLOCK_T)",
    size="about 34 lines in the kernel, 6 in the launch",
    grade=grade_write,
    patience=2,
    mistakes=WRITE_MISTAKES,
    hints=(
        "Blocks of three axes: tokens [:, None, None], query heads of the group [None, :, None], lanes of half a head [None, None, :]. "
        "Load the slots first: a token past the end or with a slot below 0 is left out of every mask.",
        "pid_t = tl.program_id(0).to(tl.int64), kv_head = tl.program_id(1). A row is at qkv_ptr + offs_t * stride_t; in it the group's "
        "queries at (kv_head * group + offs_g) * size, the key at (kv_heads * group + kv_head) * size, the value kv_heads * size further. "
        "Each is two halves, size // 2 apart: load both, call norm_rope, store both.",
        "block = slot.to(tl.int64) // block_size, place = slot % block_size, and the cache offset is block * stride_cb + place * stride_cs "
        "+ kv_head * stride_ch + offs_d; grid = (triton.cdiv(tokens, BLOCK_T), kv_heads); GROUP = triton.next_power_of_2(group), HALF = "
        "triton.next_power_of_2(size // 2).",
    ),
)
