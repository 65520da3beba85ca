"""Exercise 07.2: the offset of a block in a cache of any size."""

from __future__ import annotations

import torch

from kit import machine
from kit.dry_run import dry_run
from kit.errors import KitError
from kit.ghosts import ghost
from kit.graders.buffers import Buffer, compare
from kit.graders.ex07_casts import CAST_MISTAKES, LEFT_OUT, overflows, source_words
from kit.graders.ex07_threshold import EDGE
from kit.graders.launching import launch, on_paper
from kit.graders.paper import tell_report
from kit.graders.step import Mistake, Step, counted

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
    memory = on_paper(trial, kernel, (n_blocks,), paper, ran, {"small": True, "kernel": kernel})
    trial.call(launch, kernel, (n_blocks,), cache.view, table, out.view, stride, block_size, BLOCK, ran=ran)
    right, inside = compare(
        trial, out, values[table.long()], name="out", axes=("block", "element"), ran=ran, facts={"small": True, "kernel": kernel}
    )
    trial.case(ran, values=right, memory=memory and inside)


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
        launch(kernel, (len(table),), cache, table, out.view, STRIDE, n, 1024)
    except Exception as error:  # noqa: BLE001
        trial.memory = False
        if not trial.problems:  # else the cause is known already
            trial.failed(error, ran)
        return None
    return compare(trial, out, expected.to(here.device), name="out", axes=("block", "element"), ran=ran, facts=facts)[0]


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
            lambda f: overflows(f) and f.get("blocks") == 70_000 and "int64" not in source_words(f),
            "Taken in steps the edge is only further out: one factor must be int64.",
        ),
        Mistake(
            "wrong operand",
            lambda f: overflows(f) and "int64" in source_words(f),
            "Is the cast on another operand? In a * b + c it is a or b that must be int64: the product is computed first.",
        ),
        Mistake("no cast", overflows, "Both factors are int32, so their product is: cast one of them to tl.int64 before the multiply."),
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
