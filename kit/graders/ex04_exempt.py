"""Exercise 04.2: exempt the arguments whose classes buy nothing, so that a server's requests need one variant."""

from __future__ import annotations

import torch

from kit import machine, variants
from kit.ghosts import ghost
from kit.graders.buffers import Buffer, compare
from kit.graders.launching import compiles, launch, on_paper
from kit.graders.step import Mistake, Step, counted, stub_in

BLOCK = 8192
# Requests of a server: (row_size, n_rows, step, the counter that end_ptr points at). Every other class of every scalar occurs.
TRACE = ((4096, 16, 0, 0), (4096, 1, 1, 1), (5120, 7, 2, 2), (4096, 300, 3, 3), (5120, 33, 15, 4), (4096, 32, 16, 5), (5120, 1, 17, 8))


def grade_rows(kernel, trial):
    """Judge `copy_rows_kernel`: values in guarded buffers, then, as compiled, the variants of TRACE and the width of its accesses."""
    trial.evidence = machine.current().evidence
    stub_in(ValueError(str(_exempted(kernel))), trial.step)
    _refuse_constexpr(kernel, trial)
    for n_rows, row_size, stride_x, step, counter in ((5, 48, 48, 0, 0), (1, 33, 41, 1, 3), (17, 100, 112, 16, 1), (0, 20, 20, 2, 2)):
        _small_rows(kernel, trial, n_rows, row_size, stride_x, step, counter)
    launches = [_row_launch(*request) for request in TRACE]
    facts = {"unknown": _exempted(kernel) - {p.name for p in kernel.params} - set(range(len(kernel.params)))}
    facts |= {"whole": {p.name for p in kernel.params if p.do_not_specialize}, "kernel": kernel}
    facts |= {"aligned": {p.name for p in kernel.params if p.do_not_specialize_on_alignment and not p.do_not_specialize}}
    ran = f"{len(TRACE)} requests"
    _count_rows(kernel, trial, launches, ran, facts)
    _width_rows(kernel, trial, launches, ran, facts)
    trial.case(ran)


def _exempted(kernel):
    """The names and numbers that the decorator lists, known to the kernel or not."""
    return set(kernel.do_not_specialize or ()) | set(kernel.do_not_specialize_on_alignment or ())


def _refuse_constexpr(kernel, trial):
    """A constexpr on a list. Triton refuses it when it compiles the kernel; not when its disk cache has the same body without the list."""
    listed = [p.name for p in kernel.params if p.is_constexpr and (p.do_not_specialize or p.do_not_specialize_on_alignment)]
    if listed:
        told = f"{listed[0]} is a constexpr and listed in do_not_specialize or do_not_specialize_on_alignment"
        trial.problem(
            "answer", told, {"constexpr": listed}, ran="the decorator", where=f"`{listed[0]}`", got="listed", expected="not listed"
        )
        trial.case("the decorator")


def _row_launch(row_size, n_rows, step, counter):
    """The arguments of a request, on paper: rows of a tensor three times as wide, fresh output, a counter in the middle of others."""
    x = ghost((n_rows, row_size), torch.float16, (3 * row_size, 1))
    y = ghost((n_rows, row_size), torch.float16)
    end = ghost((1,), torch.int32, (1,), offset=counter)
    return x, y, end, 3 * row_size, row_size, step, n_rows


def _small_rows(kernel, trial, n_rows, row_size, stride_x, step, counter):
    ran = f"{counted(n_rows, 'row')} of {row_size}, step {step}"
    device = machine.current().device
    values = torch.randn(n_rows, row_size, device=device).half()
    x = Buffer((n_rows, row_size), torch.float16, values=values, wider=(n_rows, stride_x))
    y = Buffer((n_rows, row_size), torch.float16)
    end = Buffer((1,), torch.int32, offset=2048 + counter)
    scalars = (stride_x, row_size, step, n_rows, 128)
    paper = (ghost(x.shape, torch.float16, x.strides), ghost(y.shape, torch.float16), ghost((1,), torch.int32), *scalars)
    facts = {"small": True, "kernel": kernel}
    compiles(trial, kernel, paper, ran)
    memory = on_paper(trial, kernel, (n_rows,), paper, ran, facts)
    trial.call(launch, kernel, (n_rows,), x.view, y.view, end.view, *scalars, ran=ran)
    right, inside = compare(trial, y, values, name="y", axes=("row", "element"), ran=ran, facts=facts)
    ended, kept = compare(
        trial,
        end,
        torch.tensor([step + n_rows], device=device) if n_rows else None,
        name="end",
        axes=("element",),
        ran=ran,
        facts={"end": True, **facts},
    )
    trial.case(ran, values=right and ended, memory=memory and inside and kept)


def _count_rows(kernel, trial, launches, ran, facts):
    """A problem when the launches need more than one variant."""
    found = [trial.call(lambda args=args: variants.classes(kernel, *args, BLOCK=BLOCK), ran=ran) for args in launches]
    keys = {tuple(classes.items()) for classes in found}
    if len(keys) == 1:
        return
    taken = {name: {classes[name] for classes in found} for name in found[0]}
    varying = {name for name, seen in taken.items() if len(seen) > 1}
    told = "; ".join(f"{name} has {_listed(taken[name])}" for name in taken if name in varying)
    rows = [{"label": name, "value": len(seen), "limit": 1, "ok": len(seen) == 1} for name, seen in taken.items()]
    rows.append({"label": "variants", "value": len(keys), "limit": 1, "ok": False})
    picture = {"kind": "Bars", "title": f"Classes of each argument in {ran}, and variants in all", "rows": rows}
    text = f"{ran} need {len(keys)} variants, allowed is 1: {told}"
    facts = facts | {"varying": varying}
    trial.problem(
        "launch", text, facts, ran=ran, where=", ".join(sorted(varying)), got=f"{len(keys)} variants", expected="1 variant", picture=picture
    )


def _listed(classes):
    """The class texts in a row, "= 1" first."""
    return " and ".join(f"`{text}`" for text in sorted(classes))


def _width_rows(kernel, trial, launches, ran, facts):
    """A problem when a variant loads x or stores y by less than 128 bits a thread, or takes more than one instruction for it."""
    for args in launches:
        made = compiles(trial, kernel, (*args, BLOCK), ran)
        widths = {op: max(made.bits(op), default=0) for op in ("load", "store")}
        narrow = {op for op, bits in widths.items() if bits < 128}
        if narrow:
            rows = [
                {"label": f"each thread {op}s", "value": bits, "limit": 128, "ok": op not in narrow} for op, bits in sorted(widths.items())
            ]
            picture = {"kind": "Bars", "title": "Bits at once, as compiled", "unit": "bit", "rows": rows}
            got = ", ".join(f"{op}s of {widths[op]} bit" for op in sorted(narrow))
            text = f"a row of {args[4]:,}: {got}, expected 128 bit, as without the list"
            facts = facts | {"narrow": narrow}
            told = {"where": f"{'x' if 'load' in narrow else 'y'}, as compiled", "got": got, "expected": "128 bit", "picture": picture}
            trial.problem("launch", text, facts, ran=f"a row of {args[4]:,}", **told)
            return


def _kept(*names):
    """True when one of `names`, whose class is worth a variant, is exempt in a problem about width."""
    return lambda f: "narrow" in f and bool(set(names) & (f["whole"] | f["aligned"]))


SCALARS = {"step", "n_rows"}
STEP_2 = Step(
    number="04.2",
    title="Exempt what buys nothing",
    spec="Decorate the kernel so that the server's requests need one variant, and loads and stores keep their 128 bits.",
    answer="kernel",
    call="copy_rows_kernel(x_ptr, y_ptr, end_ptr, stride_x, row_size, step, n_rows, BLOCK)",
    size="about 1 line",
    grade=grade_rows,
    mistakes=(
        Mistake(
            "a constexpr listed",
            lambda f: "constexpr" in f,
            "A constexpr is compiled in, so it cannot be exempt: take it off the list.",
        ),
        Mistake(
            "the body changed",
            lambda f: "small" in f,
            "The kernel itself was right: has its body changed? Only the decorator needs to.",
        ),
        Mistake(
            "a name that is no argument",
            lambda f: bool(f.get("unknown")),
            "The decorator lists a name that no argument has, and Triton does not say so: is it misspelt?",
        ),
        Mistake(
            "everything",
            lambda f: "narrow" in f and {"x_ptr", "y_ptr", "row_size"} <= f["whole"] | f["aligned"],
            "Everything is exempt, so the compiler knows nothing of any address: exempt only what no wide access needs.",
        ),
        Mistake(
            "the mask's edge",
            _kept("row_size"),
            "row_size is the edge of the mask: only if 16 divides it can a thread load eight elements under one mask bit. Keep its class.",
        ),
        Mistake(
            "the stride",
            _kept("stride_x"),
            "stride_x decides where each row begins: only if 16 divides it are rows aligned. Keep its class.",
        ),
        Mistake("x_ptr or y_ptr", _kept("x_ptr", "y_ptr"), "x_ptr and y_ptr are read and written in blocks: their alignment is worth it."),
        Mistake(
            "alignment only",
            lambda f: bool(f.get("varying", set()) & SCALARS & f.get("aligned", set())),
            "do_not_specialize_on_alignment drops the multiples of 16 and keeps the class of 1: a number needs do_not_specialize.",
        ),
        Mistake(
            "nothing exempt",
            lambda f: f.get("varying") == SCALARS | {"end_ptr"},
            "Three arguments change their class from request to request, and no wide access depends on them. Exempt those.",
        ),
        Mistake(
            "the pointer left",
            lambda f: f.get("varying") == {"end_ptr"},
            "The numbers are settled; end_ptr is not. One number is stored through it, so its alignment buys nothing.",
        ),
        Mistake(
            "one number left",
            lambda f: bool(f.get("varying")) and len(f["varying"] & SCALARS) == 1,
            "One number still keys. What is it used for, and does any address or mask of a block depend on it?",
        ),
        Mistake(
            "the numbers left",
            lambda f: f.get("varying") == SCALARS,
            "end_ptr is settled; the numbers step and n_rows are not. Neither is part of an address or a mask.",
        ),
    ),
    hints=(
        "Which arguments change their class in these requests? Run kit.watch() over two launches, or read what the check says.",
        "Of those, keep what an address or a mask of a block depends on. The other numbers go into do_not_specialize; a pointer through "
        "which one number is stored goes into do_not_specialize_on_alignment.",
        '@triton.jit(do_not_specialize=["step", "n_rows"], do_not_specialize_on_alignment=["end_ptr"])',
    ),
)
