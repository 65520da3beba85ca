"""Exercise 07.3: two offsets that can pass 2^31, a token's in a view and a head's in the cache."""

from __future__ import annotations

import torch

from kit import machine
from kit.dry_run import dry_run
from kit.errors import KitError
from kit.ghosts import ghost
from kit.graders.buffers import OUTSIDE, RIGHT, WRONG, Buffer, cells_picture, compare
from kit.graders.ex07_casts import CAST_MISTAKES, LEFT_OUT, overflows, source_words
from kit.graders.ex07_threshold import EDGE
from kit.graders.launching import launch, on_paper
from kit.graders.paper import tell_report
from kit.graders.step import Mistake, Step, counted

TOKENS, HEADS, SIZE, SLOTS = 150_000, 40, 128, 524_288


def grade_write(kernel, trial):
    """Judge `write_keys_kernel`: strided views in guarded buffers, then a cache of 2.7 and one of 4.8 billion elements on paper."""
    trial.evidence = machine.current().evidence
    for num_tokens, num_heads, head_size, slots in ((5, 3, 20, 9), (1, 1, 16, 1), (17, 2, 33, 17), (0, 2, 16, 4)):
        _small_write(kernel, trial, num_tokens, num_heads, head_size, slots)
    _paper_write(kernel, trial, TOKENS, HEADS)
    _far_write(kernel, trial, 1, HEADS)  # one token of 40 heads: the cache's offsets
    _far_write(kernel, trial, TOKENS, 1)  # one head of 150,000 tokens: those of k
    _paper_write(kernel, trial, 2 * TOKENS, 72)  # past 2^32 elements


def _paper_write(kernel, trial, num_tokens, num_heads):
    ran = f"{num_tokens:,} tokens of {num_heads} heads, a cache of {SLOTS:,} slots, on paper"
    wide = 3 * num_heads * SIZE  # a token's queries, keys and values
    k = ghost((num_tokens, num_heads, SIZE), torch.float16, (wide, SIZE, 1), offset=num_heads * SIZE)
    cache = ghost((num_heads, SLOTS, SIZE), torch.float16)
    slot = torch.arange(num_tokens, dtype=torch.int32, device=machine.current().device) + (SLOTS - num_tokens)
    args = (k, slot, cache, wide, SIZE, SLOTS * SIZE, SIZE, SIZE, SIZE)
    report = trial.call(dry_run, kernel, (num_tokens, num_heads), *args, ran=ran)
    sides = {"k_ptr" if "reads" in x.text else "cache_ptr" for x in report.of("overflow")}
    tell_report(trial, report, ran, {"kernel": kernel, "sides": sides})
    trial.case(ran, memory=bool(report))


def _far_write(kernel, trial, num_tokens, num_heads):
    """The values at the largest offsets, in real memory with 2 GiB of other data in front; said where it does not fit."""
    here, n, wide = machine.current(), 16, 3 * HEADS * SIZE
    ran = f"{counted(num_tokens, 'token')} of {counted(num_heads, 'head')}, the strides of the large cache"
    try:
        keys = here.reserve(EDGE + num_tokens * wide, torch.int8)[EDGE:]
        slots = here.reserve(EDGE + num_heads * SLOTS * SIZE, torch.int8)[EDGE:]
    except KitError:
        trial.ran.append(f"{ran}: values not compared, {here.name} has too little free memory")
        return
    k = keys.as_strided((num_tokens, num_heads, n), (wide, SIZE, 1), keys.storage_offset())
    cache = slots.as_strided((num_heads, SLOTS, n), (SLOTS * SIZE, SIZE, 1), slots.storage_offset())
    slot = torch.arange(num_tokens, dtype=torch.int32, device=here.device) + (SLOTS - num_tokens)
    chosen = torch.arange(max(0, num_tokens - 12), num_tokens, device=here.device)
    k[chosen] = torch.randint(1, 100, (len(chosen), num_heads, n)).to(here.device, torch.int8)
    cache[:, slot[chosen].long()] = 0
    strides = (wide, SIZE, SLOTS * SIZE, SIZE)
    trial.call(launch, kernel, (num_tokens, num_heads), k, slot, cache, *strides, n, n, ran=ran)
    got, expected = cache[:, slot[chosen].long()].transpose(0, 1).cpu(), k[chosen].cpu()
    bad = (got != expected).nonzero()
    if len(bad):
        i, head, element = bad[0].tolist()
        where = f"token {int(chosen[i]):,}, head {head}, element {element}"
        value, wanted = int(got[i, head, element]), int(expected[i, head, element])
        text = f"{ran}: the cache holds {value} for {where}, expected {wanted} ({len(bad):,} of {got.numel():,} looked at are wrong)"
        states = torch.where(got == expected, RIGHT, WRONG).reshape(-1)
        picture = cells_picture("the cache, the elements looked at", states, 0, 0)
        facts = {"big": True, "kernel": kernel, "got": value}
        trial.problem("values", text, facts, ran=ran, where=where, got=f"{value}", expected=f"{wanted}", picture=picture)
    trial.case(ran, values=not len(bad))


def _small_write(kernel, trial, num_tokens, num_heads, head_size, slots):
    ran = f"{counted(num_tokens, 'token')} of {counted(num_heads, 'head')} of {head_size}, {counted(slots, 'slot')}"
    device = machine.current().device
    shape = (num_tokens, num_heads, head_size)
    values = torch.randn(shape, device=device).half()
    slot = torch.randperm(slots)[:num_tokens].to(device, torch.int32)
    k = Buffer(shape, torch.float16, values=values, wider=(num_tokens, 3 * num_heads, head_size), offset=2051)
    cache = Buffer((num_heads, slots, head_size), torch.float16, wider=(num_heads, slots, head_size + 3))
    expected = cache.view.clone()
    expected[:, slot.long()] = values.transpose(0, 1)
    BLOCK = max(16, 1 << (head_size - 1).bit_length())
    strides = (k.strides[0], k.strides[1], cache.strides[0], cache.strides[1], head_size, BLOCK)
    paper = (ghost(shape, torch.float16, k.strides), slot, ghost(cache.shape, torch.float16, cache.strides), *strides)
    memory = on_paper(trial, kernel, (num_tokens, num_heads), paper, ran, {"small": True, "kernel": kernel})
    trial.call(launch, kernel, (num_tokens, num_heads), k.view, slot, cache.view, *strides, ran=ran)
    right, inside = _compare_slots(trial, cache, expected, slot, ran, kernel)
    trial.case(ran, values=right, memory=memory and inside)


def _compare_slots(trial, cache, expected, slot, ran, kernel):
    """As `compare`; slots that no token has must keep their poison, which `expected` holds as NaN."""
    spare = torch.ones(cache.shape[1], dtype=torch.bool, device=cache.view.device)
    spare[slot.long()] = False
    touched = cache.view[:, spare]
    facts = {"small": True, "kernel": kernel}
    if touched.numel() and not bool(touched.isnan().all()):
        head, place = (int(i[0]) for i in (~touched.isnan()).any(-1).nonzero(as_tuple=True))
        number = int(spare.nonzero()[place][0])
        text = f"{ran}: slot {number} of head {head} belongs to no token and was overwritten"
        states = cache.states(None)
        states.as_strided(cache.shape, cache.strides, cache.offset)[:, ~spare.cpu()] = RIGHT  # those are written by right
        picture = cells_picture("the cache: cells that changed", states, int((states == OUTSIDE).nonzero()[0]), cache.offset)
        facts = facts | {"about": "values", "spare": True}
        trial.problem(
            "values", text, facts, ran=ran, where=f"cache[{head}, {number}]", got="overwritten", expected="untouched", picture=picture
        )
        return False, True
    if len(slot) == 0:
        return True, True
    cache.view[:, spare] = 0.0  # compared already
    expected[:, spare] = 0.0
    return compare(trial, cache, expected, name="cache", axes=("head", "slot", "element"), ran=ran, facts=facts)


def _only(side):
    return lambda f: overflows(f) and f.get("sides") == {side} and "int64" in source_words(f)


STEP_3 = Step(
    number="07.3",
    title="Write a large cache",
    spec="Two offsets can pass 2^31 here. Make both right.",
    answer="kernel",
    call="write_keys_kernel(k_ptr, slot_ptr, cache_ptr, stride_kt, stride_kh, stride_ch, stride_cs, head_size, BLOCK)",
    size="about 2 lines",
    grade=grade_write,
    mistakes=(
        Mistake("a spare slot", lambda f: "spare" in f, "A token goes to slot_ptr's slot, not to its own number."),
        Mistake(
            "small, values",
            lambda f: "small" in f and f.get("about") == "values",
            "It is wrong on small caches too: does each stride multiply its own index?",
        ),
        Mistake(
            "small, memory",
            lambda f: "small" in f,
            "It leaves its tensors even when they are small: does each stride multiply its own index, and does the mask still hold?",
        ),
        *CAST_MISTAKES,
        LEFT_OUT,
        Mistake("write left", _only("cache_ptr"), "The read is right and the write is not: pid_h * stride_ch passes 2^31 as well."),
        Mistake(
            "read left",
            _only("k_ptr"),
            "The write is right and the read is not: k is a view into a wider tensor, so pid_t * stride_kt passes 2^31 too.",
        ),
        Mistake(
            "wrong operand",
            lambda f: overflows(f) and "int64" in source_words(f),
            "Is the cast on another operand? The two large products are pid_t * stride_kt and pid_h * stride_ch.",
        ),
        Mistake("no cast", overflows, "Both factors are int32, so their product is: cast one of them to tl.int64 before the multiply."),
    ),
    hints=(
        "Work out the largest value of each of the four products. A token of k is three times as wide as it looks; the slots are 524,288.",
        "Two products pass 2^31: the token's in k (150,000 x 15,360) and the head's in the cache (40 x 67,108,864).",
        "Use pid_t.to(tl.int64) * stride_kt in the one line and pid_h.to(tl.int64) * stride_ch in the other.",
    ),
)
