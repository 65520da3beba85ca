"""Exercise 14.2: the kernel and its launch, in guarded buffers, each case with one new thing, then at full size on paper."""

from __future__ import annotations

from dataclasses import dataclass

import torch

from kit import machine
from kit.graders.buffers import GUARD, Buffer, compare
from kit.graders.ex07_int64_offsets import CAST_MISTAKES
from kit.graders.ex14_arithmetic import hard_rows, slip_mistakes
from kit.graders.ex14_reference import SLIPS, Given, roughly, same, written
from kit.graders.noting import noted
from kit.graders.paper import meta, on_paper, tell_report
from kit.graders.reading import words_of
from kit.graders.step import Mistake, Step, Stop, counted, kind_of, line_of

BFLOAT16 = 2**-8 * 1.02  # relative: half of bfloat16's step, and what float32 adds where it is nearly a tie
ANGLES = 64  # rows of cos_sin in the small cases
FULL = 1_048_576  # tokens
BLOCKS, BLOCK_SIZE = 300_000, 16  # of the large caches


@dataclass(frozen=True)
class Case:
    """One call. `new` is what no earlier case had: where it fails first, that is where to look."""

    new: str
    tokens: int
    kv_heads: int = 2
    group: int = 4
    size: int = 64
    BLOCK_T: int = 4
    block_size: int = 8
    padding: tuple = ()  # tokens whose slot is below 0
    view: bool = False  # rows of qkv twice as far apart, from an odd address on
    heads_first: bool = False  # a cache block is [kv_heads, block_size, size] in memory
    eps: float = 1e-5

    @property
    def columns(self):
        return (self.group + 2) * self.kv_heads * self.size

    def __str__(self):
        heads = f"{self.group * self.kv_heads} and {counted(self.kv_heads, 'head')} of {self.size}, BLOCK_T {self.BLOCK_T}"
        more = [", a slice of a wider row"] * self.view + [", heads before places in the cache"] * self.heads_first
        padding = f", {len(self.padding)} of them padding" if self.padding else ""
        return f"{counted(self.tokens, 'token')}{padding}, {heads}" + "".join(more)


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


class Inputs:
    """The buffers of a case, with random and hard values, and the arguments of a call made of them: real, or on paper."""

    def __init__(self, case):
        device = machine.current().device
        heads = (case.group + 2) * case.kv_heads
        rows = hard_rows(max(1, case.tokens * heads), case.size, device)[: case.tokens * heads]
        stride = case.columns * (2 if case.view else 1)
        offset = GUARD + (case.columns + 3 if case.view else 0)
        shape = (case.tokens, heads, case.size)
        self.case = case
        self.qkv = Buffer(shape, torch.bfloat16, values=rows.view(shape), strides=(stride, case.size, 1), offset=offset)
        blocks = case.tokens // case.block_size + 3
        shape = (blocks, case.block_size, case.kv_heads, case.size)
        block = 2 * case.block_size * case.kv_heads * case.size  # a block's keys, then its values
        inner = (case.size, case.block_size * case.size) if case.heads_first else (case.kv_heads * case.size, case.size)
        self.k_cache, self.v_cache = (
            Buffer(shape, torch.bfloat16, values=torch.randn(shape, device=device).bfloat16(), strides=(block, *inner, 1)) for _ in range(2)
        )
        angle = torch.rand(ANGLES, case.size // 2, device=device) * 6
        self.cos_sin = Buffer((ANGLES, case.size), torch.float32, values=torch.cat((angle.cos(), angle.sin()), -1))
        self.weights = [
            Buffer((case.size,), torch.bfloat16, values=(torch.rand(case.size, device=device) * 2 + 0.25).bfloat16()) for _ in range(2)
        ]
        slots = torch.randperm(blocks * case.block_size)[: case.tokens]
        for i, token in enumerate(case.padding):
            slots[token] = -1 - 7 * i
        self.slots = Buffer((case.tokens,), torch.int32, values=slots.to(device))
        positions = torch.randint(ANGLES, (case.tokens,))
        self.positions = Buffer((case.tokens,), torch.int32, values=positions.to(device))

    def _tensors(self):
        heads = self.qkv
        flat = heads.parent.as_strided((self.case.tokens, self.case.columns), (heads.strides[0], 1), heads.offset)
        others = (self.positions, self.slots, self.cos_sin, *self.weights, self.k_cache, self.v_cache)
        return (flat, *(one.view for one in others))

    def given(self):
        """The Given as it is before the call."""
        return Given(*(x.clone() for x in self._tensors()), self.case.eps)

    def args(self):
        """The arguments of write_qkv, real tensors, without BLOCK_T."""
        return (*self._tensors(), self.case.eps)

    def paper(self):
        """The same without memory behind the floating tensors; integers keep their values."""
        return (*(_paper(x) for x in self._tensors()), self.case.eps)

    def outputs(self):
        """The three Buffers that the call writes, by name."""
        return {"qkv": self.qkv, "k_cache": self.k_cache, "v_cache": self.v_cache}


def _paper(x):
    return meta(tuple(x.shape), x.dtype, tuple(x.stride()), x.storage_offset() % 16) if x.is_floating_point() else x.clone()


def grade_write(answer, trial):
    """Judge `write_qkv`: values and memory, case by case, then the launch of a million tokens on paper."""
    trial.evidence = machine.current().evidence
    for case in CASES:
        judge_values(lambda *args, case=case: answer(*args, case.BLOCK_T), trial, case)
    judge_full_size(lambda *args: answer(*args, 4), trial)


def judge_values(answer, trial, case):
    """Run one Case on paper and for real, and end it. `answer` takes the arguments without BLOCK_T."""
    ran, inputs, facts = str(case), Inputs(case), {"case": case}
    before = inputs.given()
    _on_paper(answer, trial, ran, facts, inputs.paper(), case.tokens)
    legal = not any(problem.about == "memory" for problem in trial.problems)
    if any(problem.about == "launch" for problem in trial.problems) or (not legal and machine.current().live):
        trial.case(ran, memory=legal or None)
    args = inputs.args()
    with noted() as launches:
        trial.call(answer, *args, ran=ran)
    _copies(trial, ran, facts, launches, args[0])
    right, inside = _compare(trial, ran, facts, inputs, before)
    trial.case(ran, values=right, memory=legal and inside)


def _compare(trial, ran, facts, inputs, before):
    """(values are right, nothing outside was written) of the three outputs; the slip that explains them all is found once."""
    outputs = inputs.outputs()
    wanted = _by_heads(outputs, written(before))
    close = {name: same(one.view, wanted[name], BFLOAT16) for name, one in outputs.items()}
    if not all(one.all() for one in close.values()):
        facts = {**facts, "slip": _slip(outputs, before), "rounded": _rounded(outputs, wanted)}
    right = inside = True
    for name, buffer in outputs.items():
        axes = ("token", "head", "element") if name == "qkv" else ("block", "place", "head", "element")
        expected = torch.where(close[name], buffer.view.double(), wanted[name])
        one = compare(trial, buffer, expected, name=name, axes=axes, ran=ran, facts=facts | {"output": name})
        right, inside = right and one[0], inside and one[1]
    return right, inside


def _by_heads(outputs, expected):
    return {name: one.reshape(outputs[name].shape) for name, one in zip(outputs, expected, strict=True)}


def _slip(outputs, before):
    for slip in SLIPS:
        wanted = _by_heads(outputs, written(before, slip, padded=1 << (before.k_cache.shape[-1] - 1).bit_length()))
        if all(bool(same(one.view, wanted[name], BFLOAT16).all()) for name, one in outputs.items()):
            return slip
    return ""


def _rounded(outputs, wanted):
    """True when all are near: wrong by the dtype of some step, and by no formula."""
    return all(roughly(one.view, wanted[name]) for name, one in outputs.items())


def _copies(trial, ran, facts, launches, qkv):
    """A problem where no kernel is given qkv's own memory: it was copied, or taken from elsewhere."""
    given = {arg.data_ptr() for _, args, options in launches for arg in (*args, *options.values()) if isinstance(arg, torch.Tensor)}
    if launches and qkv.numel() and qkv.data_ptr() not in given:
        text = f"{ran}: the kernel is given another tensor than qkv"
        told = {"where": "the launch", "got": "a copy, or another address", "expected": "qkv itself, with its stride"}
        trial.problem("answer", text, facts | {"copied": True}, ran=ran, **told)


def _on_paper(answer, trial, ran, facts, args, tokens):
    """The Launches of a call on paper, their reports told."""
    with on_paper() as launches:
        if tokens:
            trial.call(answer, *args, ran=ran)
        else:
            _nothing_to_do(answer, trial, ran, facts, args)
    for launch in launches:
        tell_report(trial, launch.report, ran, facts | {"kernel": launch.kernel})
    if not launches and tokens:
        trial.problem("launch", f"{ran}: no kernel is launched", facts | {"nothing": True}, ran=ran, where="the call", got="0 launches")
    return launches


def _nothing_to_do(answer, trial, ran, facts, args):
    try:
        answer(*args)
    except Exception as error:  # noqa: BLE001  whatever an answer raises is a finding
        about, told = kind_of(error)
        where = line_of(error) or "the call"
        trial.problem(about, f"{ran}: {told}", facts | {"error": error}, ran=ran, where=where, got=told, expected="nothing done")
        raise Stop from None


def large_args(tokens, kv_heads=8, group=4, size=64):
    """The arguments of a call at full size, on paper: a slice of a wider row, caches past 2^32 elements, the last slots."""
    columns = (group + 2) * kv_heads * size
    device = machine.current().device
    qkv = meta((tokens, columns), torch.bfloat16, (2 * columns, 1), columns)
    inner = BLOCK_SIZE * kv_heads * size
    shape, strides = (BLOCKS, BLOCK_SIZE, kv_heads, size), (2 * inner, kv_heads * size, size, 1)
    caches = (meta(shape, torch.bfloat16, strides, 0), meta(shape, torch.bfloat16, strides, inner))
    count = torch.arange(tokens, dtype=torch.int32, device=device)
    weights = (meta((size,), torch.bfloat16), meta((size,), torch.bfloat16))
    return (qkv, count, count + (BLOCKS * BLOCK_SIZE - tokens), meta((FULL, size), torch.float32), *weights, *caches, 1e-6)


def judge_full_size(answer, trial):
    """The launch of a million tokens of 32 and 8 heads of 64, on paper."""
    ran = f"{FULL:,} tokens, 32 and 8 heads of 64, caches of {BLOCKS:,} blocks, on paper"
    _on_paper(answer, trial, ran, {"full": True}, large_args(FULL), FULL)
    trial.case(ran, memory=not any(problem.about == "memory" for problem in trial.problems))


# ---- what goes wrong
def _hazard(name):
    return lambda f: f.get("hazard") == name


def _overflow(f):
    return f.get("hazard") == "overflow"


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
        lambda f: _overflow(f) and "int64" in words_of(f["kernel"]),
        "One offset has its cast and another has not: a token's row in qkv and a slot's block in the cache both pass 2^31.",
    ),
    Mistake(
        "no cast",
        _overflow,
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
