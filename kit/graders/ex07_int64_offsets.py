"""Exercise 07: offsets past 2^31, computed in int64."""

from __future__ import annotations

import torch

from kit import machine
from kit.dry_run import dry_run
from kit.errors import KitError
from kit.ghosts import ghost
from kit.graders.buffers import OUTSIDE, RIGHT, WRONG, Buffer, cells_picture, compare
from kit.graders.paper import tell_report
from kit.graders.reading import words_of
from kit.graders.step import Exercise, Mistake, Step, counted

EDGE = 2**31

# ---- 07.1: where the edge is
# (num_heads, head_size): rows that divide 2^31, and rows that leave a remainder on either side of one half.
ROWS = ((8, 128), (16, 96), (32, 192), (24, 80), (40, 128), (64, 576), (1, 7168), (3, 85), (1, 1024))


def first_bad(num_heads, head_size):
    """The first token with an element at offset 2^31 or more, in a row-major (tokens, num_heads, head_size) tensor."""
    return EDGE // (num_heads * head_size)


def grade_threshold(answer, trial):
    """Judge `first_bad_token` on sizes where rounding, the last element of a row, and 2^31 against 2^31 - 1 make a difference.

    All sizes are asked before the first is judged: a likely cause is a formula that explains every answer.
    """
    asked = [(heads, size, trial.call(answer, heads, size, ran=_title(heads, size))) for heads, size in ROWS]
    for heads, size, got in asked:
        row, right = heads * size, first_bad(heads, size)
        whole = isinstance(got, int) and not isinstance(got, bool)
        if not whole or got != right:
            last = (right + 1) * row - 1
            said = f"{got:,}" if whole else f"{got!r:.40}"
            text = f"{_title(heads, size)}: got token {said}, expected {right:,}, whose last element is at offset {last:,}, past 2^31 - 1"
            picture = _threshold_picture(row, right, got) if whole and abs(got) < 2**40 else None
            told = {"ran": _title(heads, size), "where": "what it returns", "got": said, "expected": f"{right:,}", "picture": picture}
            trial.problem("answer", text, {"got": got, "right": right, "asked": asked}, **told)
        trial.case(_title(heads, size))


def _title(num_heads, head_size):
    return f"{counted(num_heads, 'head')} of {head_size:,}"


def _threshold_picture(row, right, got):
    marks = [
        {"at": (right + 1) * row - 1, "label": f"end of token {right:,}", "ok": True},
        {"at": (got + 1) * row - 1, "label": f"end of token {got:,}, the answer", "ok": False},
    ]
    return {"kind": "NumberLine", "title": "Where a token ends", "marks": marks, "unit": "elements"}


def _fits(formula):
    """True when `formula(row, head_size)` explains every answer."""
    return lambda f: "asked" in f and all(got == formula(heads * size, size) for heads, size, got in f["asked"])


STEP_1 = Step(
    number="07.1",
    title="Where is the edge?",
    spec="Return the first token that has an element at offset 2^31 or more, in a row-major tensor (tokens, num_heads, head_size).",
    answer="function",
    call="first_bad_token(num_heads, head_size)",
    size="about 2 lines",
    grade=grade_threshold,
    mistakes=(
        Mistake(
            "not a whole number", lambda f: isinstance(f.get("got"), float), "A token is a whole number: use //, which is exact, and not /."
        ),
        Mistake("nothing returned", lambda f: "got" in f and f["got"] is None, "Is the return missing?"),
        Mistake(
            "2^31 - 1",
            _fits(lambda row, _: (EDGE - 1) // row),
            "Is 2^31 - 1 divided? That offset still fits: there are 2^31 offsets from 0 to 2^31 - 1.",
        ),
        Mistake(
            "bytes",
            lambda f: any(_fits(lambda row, _, n=n: EDGE // (row * n))(f) for n in (2, 4)),
            "Are these bytes? Offsets count elements.",
        ),
        Mistake("unsigned", _fits(lambda row, _: 2 * EDGE // row), "Is this 2^32? int32 has a sign, so offsets end at 2^31 - 1."),
        Mistake("heads left out", _fits(lambda _, size: EDGE // size), "A token has num_heads rows of head_size: is num_heads missing?"),
        Mistake(
            "first element only",
            _fits(lambda row, _: -(-EDGE // row)),
            "That token begins past 2^31; the one before it ends past it. Which of its elements decides?",
        ),
        Mistake(
            "a count",
            _fits(lambda row, _: EDGE // row + 1),
            "Is this the number of tokens? Tokens are numbered from 0, so the last of n is n - 1.",
        ),
        Mistake("one early", _fits(lambda row, _: EDGE // row - 1), "Is 1 taken off once too often? Token t begins at offset t * row."),
        Mistake(
            "rounding",
            lambda f: isinstance(f.get("got"), int) and abs(f["got"] - f["right"]) < 2 + f["right"] * 2**-20,
            "Is the quotient rounded? Whole-number division, //, is exact.",
        ),
    ),
    hints=(
        "How many elements has one token? Token t takes the offsets from t * row to (t + 1) * row - 1.",
        "Tokens that fit entirely below 2^31: that many whole rows. The next token is the first that does not.",
        "return 2**31 // (num_heads * head_size)",
    ),
)


# ---- 07.2: read blocks
BLOCKS, STRIDE = 40_000, 65_536


def grade_read(kernel, trial):
    """Judge `read_blocks_kernel`: small blocks in guarded buffers, 40,000 x 65,536 on paper, then its values, then 70,000 blocks."""
    trial.evidence = machine.current().evidence
    for n_blocks, block_size, stride in ((5, 100, 100), (7, 128, 160), (1, 1, 48), (4, 127, 136)):
        _small_read(kernel, trial, n_blocks, block_size, stride)
    table = [32_768, 0, 39_999, 32_767, 100]
    ran = f"{BLOCKS:,} blocks, stride {STRIDE:,}"
    _paper_read(kernel, trial, BLOCKS, table, f"{ran}, on paper")
    right = _big_read(kernel, trial, table, ran)
    trial.case(ran, values=right, memory=not any(problem.about == "memory" for problem in trial.problems))
    ran = f"70,000 blocks, stride {STRIDE:,}, on paper"  # past 2^32 elements
    _paper_read(kernel, trial, 70_000, [65_535, 65_536, 69_999], ran)
    trial.case(ran, memory=not trial.problems)


def _small_read(kernel, trial, n_blocks, block_size, stride):
    ran = f"{counted(n_blocks, 'block')} of {block_size}, stride {stride}"
    device = machine.current().device
    values = torch.randint(1, 100, (n_blocks, block_size), device=device).to(torch.int8)
    table = torch.randperm(n_blocks).to(device, torch.int32)
    cache = Buffer((n_blocks, block_size), torch.int8, values=values, wider=(n_blocks, stride), offset=2051)
    out = Buffer((n_blocks, block_size), torch.int8)
    BLOCK = max(16, 1 << (block_size - 1).bit_length())
    paper = (
        ghost((n_blocks, block_size), torch.int8, (stride, 1)),
        table,
        ghost((n_blocks, block_size), torch.int8),
        stride,
        block_size,
        BLOCK,
    )
    tell_report(trial, trial.call(dry_run, kernel, (n_blocks,), *paper, ran=ran), ran, {"small": True, "kernel": kernel})
    memory = not trial.problems
    trial.call(_launch, kernel, (n_blocks,), cache.view, table, out.view, stride, block_size, BLOCK, ran=ran)
    right, inside = compare(
        trial, out, values[table.long()], name="out", axes=("block", "element"), ran=ran, facts={"small": True, "kernel": kernel}
    )
    trial.case(ran, values=right, memory=memory and inside)


def _launch(kernel, grid, *args):
    kernel[grid](*args)
    if machine.current().live:
        torch.cuda.synchronize()


def _paper_read(kernel, trial, n_blocks, table, ran):
    table = torch.tensor(table, dtype=torch.int32, device=machine.current().device)
    args = (ghost((n_blocks, STRIDE), torch.int8), table, ghost((len(table), 1000), torch.int8), STRIDE, 1000, 1024)
    report = trial.call(dry_run, kernel, (len(table),), *args, ran=ran)
    tell_report(trial, report, ran, {"kernel": kernel, "blocks": n_blocks})


def _big_read(kernel, trial, table, ran):
    """The values of a real cache of 2.6 GB, with 2 GiB of other data in front, where a wrapped offset lands; None where it does not fit."""
    here = machine.current()
    try:
        memory = here.reserve(EDGE + BLOCKS * STRIDE, torch.int8)
    except KitError:
        trial.ran.append(f"{ran}: values not compared, {here.name} has too little free memory")
        return None
    cache = memory[EDGE:].view(BLOCKS, STRIDE)
    n = 1000
    out = Buffer((len(table), n), torch.int8)
    expected = torch.randint(1, 100, (len(table), n)).to(torch.int8)
    for i, block in enumerate(table):
        wrapped = (block * STRIDE + EDGE) % 2**32 - EDGE
        if wrapped < 0:
            memory[EDGE + wrapped : EDGE + wrapped + n] = -5  # somebody else's data
        cache[block, :n] = expected[i].to(here.device)
    table = torch.tensor(table, dtype=torch.int32, device=here.device)
    facts = {"big": True, "kernel": kernel}
    try:
        _launch(kernel, (len(table),), cache, table, out.view, STRIDE, n, 1024)
    except Exception as error:  # noqa: BLE001
        trial.memory = False
        if not trial.problems:  # else the cause is known already
            trial.failed(error, ran)
        return None
    return compare(trial, out, expected.to(here.device), name="out", axes=("block", "element"), ran=ran, facts=facts)[0]


def _overflows(f):
    return f.get("hazard") == "overflow"


def _source(f):
    """What the answer's source says (see kit.graders.reading), for a problem that is about offsets."""
    return words_of(f["kernel"]) if "kernel" in f else frozenset()


MASKED = Mistake(
    "a mask hides it",
    lambda f: _overflows(f) and "compares" in _source(f) and any("comparison" in x.text for x in f["findings"]),
    "A mask that looks at the offset only hides the wrap: the block is then not read at all. The offset itself must be right.",
)
CAST_MISTAKES = (
    Mistake(
        "uint32",
        lambda f: (_overflows(f) or "big" in f) and "uint32" in _source(f),
        "uint32 only moves the edge from 2^31 to 2^32: the offset needs int64.",
    ),
    MASKED,
    Mistake(
        "cast of a pointer",
        lambda f: (_overflows(f) or "big" in f) and "pointer" in _source(f),
        "The pointer has 64 bits already: what wraps is the product, before it is added.",
    ),
    Mistake(
        "cast too late",
        lambda f: _overflows(f) and "product" in _source(f),
        "Is the product cast? It has wrapped by then: cast one factor, before the multiply.",
    ),
    Mistake(
        "cast of the loaded value",
        lambda f: _overflows(f) and "loaded" in _source(f),
        "Is the loaded value cast? The address it was loaded from had wrapped by then.",
    ),
)

LEFT_OUT = Mistake(
    "left out", lambda f: "big" in f and (f.get("got") == 0 or f.get("unwritten")), "Past 2^31 nothing is moved: does a mask leave it out?"
)

STEP_2 = Step(
    number="07.2",
    title="Read a large cache",
    spec="Make the offset of a block right in a cache of any size.",
    answer="kernel",
    call="read_blocks_kernel(cache_ptr, table_ptr, out_ptr, stride_block, block_size, BLOCK)",
    size="about 1 line",
    grade=grade_read,
    mistakes=(
        Mistake(
            "small, values",
            lambda f: "small" in f and f.get("about") == "values",
            "It is wrong on small caches too: is a block's first element at block_id * stride_block?",
        ),
        Mistake(
            "small, memory",
            lambda f: "small" in f,
            "It leaves the cache even when that is small: does the mask still hold for load and store?",
        ),
        *CAST_MISTAKES,
        LEFT_OUT,
        Mistake(
            "split in steps",
            lambda f: _overflows(f) and f.get("blocks") == 70_000 and "int64" not in _source(f),
            "Taken in steps the edge is only further out: one factor must be int64.",
        ),
        Mistake(
            "wrong operand",
            lambda f: _overflows(f) and "int64" in _source(f),
            "Is the cast on another operand? In a * b + c it is a or b that must be int64: the product is computed first.",
        ),
        Mistake("no cast", _overflows, "Both factors are int32, so their product is: cast one of them to tl.int64 before the multiply."),
        Mistake(
            "elsewhere",
            lambda f: "big" in f,
            "These values belong to another allocation: the offset wrapped before it reached the pointer.",
        ),
    ),
    hints=(
        "What is the dtype of block_id, and of stride_block? What is then the dtype of their product?",
        "The product must be computed in 64 bits, so one factor has to be int64 before the multiply.",
        "x_ptrs = cache_ptr + block_id.to(tl.int64) * stride_block + offs",
    ),
)


# ---- 07.3: two places
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
    trial.call(_launch, kernel, (num_tokens, num_heads), k, slot, cache, *strides, n, n, ran=ran)
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
    tell_report(trial, trial.call(dry_run, kernel, (num_tokens, num_heads), *paper, ran=ran), ran, {"small": True, "kernel": kernel})
    memory = not trial.problems
    trial.call(_launch, kernel, (num_tokens, num_heads), k.view, slot, cache.view, *strides, ran=ran)
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
    return lambda f: _overflows(f) and f.get("sides") == {side} and "int64" in _source(f)


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
            lambda f: _overflows(f) and "int64" in _source(f),
            "Is the cast on another operand? The two large products are pid_t * stride_kt and pid_h * stride_ch.",
        ),
        Mistake("no cast", _overflows, "Both factors are int32, so their product is: cast one of them to tl.int64 before the multiply."),
    ),
    hints=(
        "Work out the largest value of each of the four products. A token of k is three times as wide as it looks; the slots are 524,288.",
        "Two products pass 2^31: the token's in k (150,000 x 15,360) and the head's in the cache (40 x 67,108,864).",
        "Use pid_t.to(tl.int64) * stride_kt in the one line and pid_h.to(tl.int64) * stride_ch in the other.",
    ),
)

EXERCISE = Exercise("07_int64_offsets", "Int64 offsets", (STEP_1, STEP_2, STEP_3))
