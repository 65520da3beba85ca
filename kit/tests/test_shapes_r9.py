"""Which faults of rule 9 the lesson's test list catches: the cases of `kit.shapes`, launched and compared, and what else is needed.

The rows are those of our list of public reports (R9 of CASES.md); each is a small kernel of our own with the reported fault. `python -m
kit.tests.test_shapes_r9` prints the table. "list": the cases alone, with random numbers. "values": the same with hard values in make_args.
"paper": kit.dry_run on the arguments of the cases. "laid_out": a view that the kernel takes no stride for. "watch": kit.watch("error").
"""

from contextlib import suppress
from dataclasses import dataclass

import pytest
import torch
import triton
import triton.language as tl

from kit import machine
from kit.dry_run import dry_run
from kit.shapes import laid_out, shapes
from kit.tests.faults import r09_boundaries as edges
from kit.tests.faults import r09_views as views
from kit.watch import JitError, watch


@triton.jit
def dot_tail_kernel(a_ptr, b_ptr, out_ptr, K, BLOCK: tl.constexpr):
    """BUG: the tail of K has no mask. out = a @ b; one program owns it."""
    offs = tl.arange(0, BLOCK)
    acc = tl.zeros((BLOCK, BLOCK), tl.float32)
    for k in range(0, K, BLOCK):
        a = tl.load(a_ptr + offs[:, None] * K + k + offs[None, :])
        acc += tl.dot(a, tl.load(b_ptr + (k + offs[:, None]) * BLOCK + offs[None, :]))
    tl.store(out_ptr + offs[:, None] * BLOCK + offs[None, :], acc)


@triton.jit
def loss_kernel(x_ptr, target_ptr, out_ptr, N, BLOCK: tl.constexpr):
    """BUG: a target of N, which means none, equals a padded column. out = -x[target], 0 for none; a program owns a row."""
    row = tl.program_id(0)
    offs = tl.arange(0, BLOCK)
    x = tl.load(x_ptr + row * N + offs, mask=offs < N, other=-float("inf"))
    picked = tl.sum(tl.where(offs == tl.load(target_ptr + row), x, 0.0), axis=0)
    tl.store(out_ptr + row, -picked)


@triton.jit
def best_kernel(x_ptr, table_ptr, out_ptr, N, BLOCK: tl.constexpr):
    """BUG: of a row of -inf the best column is N, which is none. out = table[argmax of each row]; a program owns a row."""
    row = tl.program_id(0)
    offs = tl.arange(0, BLOCK)
    x = tl.load(x_ptr + row * N + offs, mask=offs < N, other=-float("inf"))
    best = tl.min(tl.where((x == tl.max(x, axis=0)) & (x > -float("inf")), offs, N), axis=0)
    tl.store(out_ptr + row, tl.load(table_ptr + best))


def normal(*shape):
    return torch.randn(*shape, device=machine.current().device)


def empty(*shape):
    return torch.empty(*shape, device=machine.current().device)


def cut(case, block=16):
    return (triton.cdiv(case.sizes["n"], block),)


def rows(case):
    return (case.sizes["M"],)


def one(case):
    return (1,)


def low(args):
    """The same arguments with the first tensor below zero."""
    return (-1 - args[0].abs(), *args[1:])


@dataclass(frozen=True)
class Row:
    """A report, its kernel, a launch, the truth by the launch's arguments, and who catches it, in order of effort."""

    number: str
    what: str
    kernel: object
    make: object
    sizes: dict
    grid: object
    truth: object
    caught: tuple
    hard: object = None
    view: object = None


def add_two(a, b, *_):
    short = torch.zeros_like(a)
    short[: len(b)] = b[: len(a)]
    return a + short


def left_out(x, target, out, N):
    known = target < N
    return torch.where(known, -x.gather(1, target.clamp(max=N - 1).long()[:, None])[:, 0], 0.0)


def host_grid(case):
    """BUG: the host divides by the number of programs."""
    programs = triton.cdiv(case.sizes["n"], 16)
    return (programs + 0 * (case.sizes["n"] // programs),)


def targets(args, of):
    """The same arguments with every second target `of`."""
    x, target, *rest = args
    target[::2] = of
    return (x, target, *rest)


def masked(args):
    """The same arguments with a row of -inf."""
    args[0][:1] = -torch.inf
    return args


def whole(M, N):
    device = machine.current().device
    return normal(M, N), torch.randint(0, max(N, 1), (M,), device=device, dtype=torch.int32), empty(M), N


ROWS = (
    Row(
        *("R9-01", "the tail of K", dot_tail_kernel),
        lambda K: (normal(16, K).half(), normal(K, 16).half(), empty(16, 16), K),
        *({"K": range(1, 100)}, one, lambda a, b, *_: a.float() @ b.float(), ("list", "paper")),
    ),
    Row(
        *("R9-02", "masked lanes without other= are summed", edges.sum_no_other_kernel, lambda n: (normal(n), empty(1), n)),
        *({"n": range(1, 17)}, one, lambda x, *_: x.sum().view(1), ("paper",)),
    ),
    Row(
        *("R9-04", "0 under a maximum", edges.max_of_zeros_kernel, lambda n: (normal(n), empty(1), n)),
        *({"n": range(2, 17)}, one, lambda x, *_: x.amax().view(1), ("values",)),
        hard=low,
    ),
    Row(
        *(
            "R9-05",
            "another tensor's length",
            views.add_other_length_kernel,
            lambda n_a, n_b: (normal(n_a), normal(n_b), empty(n_a), n_a, n_b),
        ),
        *({"n_a": range(17), "n_b": range(1, 17)}, one, add_two, ("list", "paper")),
    ),
    Row(
        *("R9-07", "rows of a padded buffer", views.row_max_packed_kernel, lambda M, V: (normal(M, V), empty(M), V)),
        *({"M": 5, "V": range(1, 17)}, rows, lambda x, *_: x.amax(1), ("laid_out",)),
        view="padded rows",
    ),
    Row(
        *("R9-08", "the last axis is not packed", views.row_max_packed_kernel, lambda M, V: (normal(M, V), empty(M), V)),
        *({"M": 5, "V": range(1, 17)}, rows, lambda x, *_: x.amax(1), ("laid_out",)),
        view="every second element",
    ),
    Row(
        *("R9-10", "a flat kernel on a transposed matrix", views.copy_flat_kernel, lambda M, N: (normal(M, N), empty(M, N), M * N)),
        *({"M": 5, "N": 9}, lambda case: (99,), lambda x, *_: x, ("laid_out",)),
        view="transposed",
    ),
    Row(
        *("R9-11", "a gradient that is not contiguous", views.copy_flat_kernel, lambda n: (normal(n), empty(n), n)),
        *({"n": 40}, lambda case: (99,), lambda x, *_: x, ("laid_out",)),
        view="every second element",
    ),
    Row(
        *("R9-13", "a sentinel equal to a padded column", loss_kernel, whole),
        *({"M": 4, "N": range(2, 17)}, rows, left_out, ("values",)),
        hard=lambda args: targets(args, args[-1]),
    ),
    Row(
        *("R9-14", "no element, and the host divides", edges.copy_kernel, lambda n: (normal(n), empty(n), n)),
        *({"n": 40}, host_grid, lambda x, *_: x, ("list",)),
    ),
    Row(
        *("R9-16", "a grid of one program", edges.rows_without_pid_kernel, lambda M, V: (normal(M, V), empty(M), V)),
        *({"M": 5, "V": range(1, 17)}, one, lambda x, *_: x.amax(1), ("list", "paper")),
    ),
    Row(
        *("R9-17", "a filler index after a masked row", best_kernel, lambda M, N: (normal(M, N), normal(N), empty(M), N)),
        *({"M": 4, "N": range(2, 17)}, rows, lambda x, table, *_: table[x.argmax(1)], ("values", "paper")),
        hard=masked,
    ),
    Row(
        *("R9-19", "right on an offset view, and compiled again", views.copy_flat_kernel, lambda n: (normal(n), empty(n), n)),
        *({"n": 40}, cut, lambda x, *_: x, ("watch",)),
    ),
)


def first_of(row, make):
    """The name of the first case that shows a fault, or ""."""
    for case in shapes(row.kernel, make, row.sizes, BLOCK=16):
        if case.argument is None and not all(case.sizes.values()) and row.number not in ("R9-14", "R9-05", "R9-16"):
            continue  # these kernels have no meaning without an element
        try:
            case.launch(row.grid(case))
        except ZeroDivisionError:
            return f"{case.name}: the host divides by zero"
        expected = row.truth(*case.args)
        if not case.check(expected):
            return case.name
    return ""


def by_list(row):
    return first_of(row, row.make)


def by_values(row):
    return row.hard and first_of(row, lambda **sizes: row.hard(row.make(**sizes)))


def by_paper(row):
    make = (lambda **sizes: row.hard(row.make(**sizes))) if row.hard else row.make
    for case in shapes(row.kernel, make, row.sizes, BLOCK=16):
        if not all(case.sizes.values()):
            continue  # an empty tensor has no address to be told about
        with suppress(ZeroDivisionError):
            report = dry_run(row.kernel, row.grid(case), *case.args, BLOCK=16)
            if report.told("wrong") or report.told("fragile"):
                return case.name
    return ""


def by_laid_out(row):
    if not row.view:
        return ""
    case = shapes(row.kernel, row.make, row.sizes, BLOCK=16)[0]
    x, out, *rest = case.args
    view = laid_out(x, row.view)
    row.kernel[row.grid(case)](view, out, *rest, BLOCK=16)
    return "" if case.check(row.truth(x, out, *rest)) else row.view


def by_watch(row):
    cases = list(shapes(triton.jit(row.kernel.fn), row.make, row.sizes, BLOCK=16))
    for case in cases:
        if case.layout == "aligned":
            case.launch((1,))
    with watch("error"):
        for case in cases:
            try:
                case.launch((1,))
            except JitError:
                return case.name
    return ""


MEANS = {"list": by_list, "values": by_values, "paper": by_paper, "laid_out": by_laid_out, "watch": by_watch}


def caught_by(row):
    """{means: what it shows}, of those that show something. The monitor is asked only where the kernel is right."""
    asked = ["watch"] if row.number == "R9-19" else ["list", "values", "paper", "laid_out"]
    return {name: found for name in asked if (found := MEANS[name](row))}


@pytest.mark.parametrize("row", ROWS, ids=lambda row: row.number)
def test_a_report_is_caught_by_what_we_say(row):
    machine.start()
    found = tuple(caught_by(row))
    if "values" in row.caught or "list" in row.caught:
        found = tuple(name for name in found if not (name == "values" and "list" in found))
    assert found == row.caught


def table():
    """The table of all rows, as text."""
    lines = ["| report | fault | caught by | first at |", "|---|---|---|---|"]
    for row in ROWS:
        found = caught_by(row)
        lines.append(f"| {row.number} | {row.what} | {', '.join(found) or 'nothing'} | {next(iter(found.values()), '')} |")
    return "\n".join(lines)


if __name__ == "__main__":
    machine.start()
    print(table())
