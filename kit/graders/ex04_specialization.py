"""Exercise 04: what makes a new variant of a kernel."""

from __future__ import annotations

import itertools
import math

import torch

from kit import machine, variants
from kit.dry_run import dry_run
from kit.ghosts import ghost
from kit.graders.buffers import Buffer, compare
from kit.graders.launching import compiles
from kit.graders.paper import tell_report
from kit.graders.step import Exercise, Mistake, Step, counted, stub_in

# ---- 04.1: count the variants of a list of launches
# {what the case is about: launches (address, n, step)}. Sizes near 1, 16 and the ends of int32, and one pair whose order matters.
CASES = {
    "no launch at all": [],
    "the same launch three times": [(64, 100, 5)] * 3,
    "other numbers of one class": [(64, n, 5) for n in (2, 3, 15, 17, 1001)],
    "the eight sizes of the lesson": [(64, n, 5) for n in (0, 1, 2, 3, 15, 16, 17, 32)],
    "a step that alternates between 0 and 1": [(64, 100, i % 2) for i in range(6)],
    "views of one float32 tensor": [(64 + 4 * i, 100, 5) for i in range(6)],
    "views of one uint8 tensor": [(64 + i, 100, 5) for i in range(4)],
    "addresses that are multiples of 8": [(64, 100, 5), (72, 100, 5), (80, 100, 5)],
    "numbers that are multiples of 8": [(64, n, 5) for n in (8, 16, 24, 32)],
    "numbers below zero": [(64, 100, step) for step in (-1, -2, -15, -16, -32)],
    "classes that come together": [(64, 1, 1), (68, 2, 2), (64, 16, 16)],
    "two numbers that change places": [(64, 1, 2), (64, 2, 1)],
    "the upper end of int32": [(64, n, 5) for n in (2**31 - 1, 2**31, 2**31 + 1, 2**31 - 16)],
    "numbers of 40 bits": [(64, n, 5) for n in (5, 2**40 + 1, -(2**40) + 3)],
    "the lower end of int32": [(64, n, 5) for n in (-(2**31), -(2**31) - 16, -(2**31) - 1, -(2**31) + 1)],
    "all at once": list(itertools.product((64, 72), (1, 2, 16, 2**31), (0, 1, 7))),
}


def class_of(n, one=True, zero=False, by=16, width=True, edge=2**31):
    """The class of an integer argument; the keywords make it the class of somebody who has missed a rule."""
    if one and n == 1:
        return "= 1"
    if zero and n == 0:
        return "= 0"
    wide = width and not -edge <= n < edge
    return (wide, bool(by) and n % by == 0)


def variants_of(launches, align=16, together=True, **slips):
    """How many variants `launches` need. The keywords make it the answer of somebody who has missed a rule."""
    keys = [(bool(align) and address % align == 0, class_of(n, **slips), class_of(step, **slips)) for address, n, step in launches]
    if together:
        return len(set(keys))
    return math.prod(len(set(column)) for column in zip(*keys, strict=True)) if keys else 0


def grade_count(answer, trial):
    """Judge `count_variants`. All cases are asked before the first is judged: a likely cause is a rule whose lack explains every answer."""
    asked = [(launches, trial.call(answer, list(launches), ran=ran)) for ran, launches in CASES.items()]
    for ran, (launches, got) in zip(CASES, asked, strict=True):
        right = variants_of(launches)
        whole = isinstance(got, int) and not isinstance(got, bool)
        if not whole or got != right:
            shown = ", ".join(map(str, launches[:4])) + (", ..." if len(launches) > 4 else "")
            text = f"{ran} ({shown or 'an empty list'}): got {got!r:.40}, expected {right}"
            picture = _count_picture(launches, right, got) if whole and launches and got >= 0 else None
            told = {"ran": ran, "where": "what it returns", "got": f"{got!r:.40}", "expected": f"{right}", "picture": picture}
            trial.problem("answer", text, {"got": got, "right": right, "asked": asked, "whole": whole}, **told)
        trial.case(ran)


def _count_picture(launches, right, got):
    columns = zip(*[(address % 16 == 0, class_of(n), class_of(step)) for address, n, step in launches], strict=True)
    rows = [
        {"label": f"classes of {name}", "value": len(set(column)), "ok": None}
        for name, column in zip(("the address", "n", "step"), columns, strict=True)
    ]
    rows += [{"label": "variants", "value": right, "ok": True}, {"label": "the answer", "value": got, "ok": False}]
    return {"kind": "Bars", "title": "How many there are in these launches", "rows": rows}


def _fits(**slips):
    """True when the rules with `slips` explain every answer."""
    return lambda f: "asked" in f and all(got == variants_of(launches, **slips) for launches, got in f["asked"])


def _fits_count(count):
    return lambda f: "asked" in f and all(got == count(launches) for launches, got in f["asked"])


STEP_1 = Step(
    number="04.1",
    title="Count the variants",
    spec="Return how many variants a list of launches needs, when no argument is exempt.",
    answer="function",
    call="count_variants(launches)",
    size="about 5 lines",
    grade=grade_count,
    mistakes=(
        Mistake("nothing returned", lambda f: "got" in f and f["got"] is None, "Is the return missing?"),
        Mistake("not a number", lambda f: not f.get("whole", True), "A number of variants is a whole number: is it the len() of a set?"),
        Mistake("every launch", _fits_count(len), "Is every launch counted? Launches of the same classes share a variant."),
        Mistake(
            "every value",
            _fits_count(lambda launches: len(set(launches))),
            "Is every value a class of its own? Only a constexpr is; an integer has a class, and values of one class share a variant.",
        ),
        Mistake(
            "product",
            _fits(together=False),
            "Are the classes of the arguments multiplied? That is how many there can be; only those that occur together are compiled.",
        ),
        Mistake("no class of 1", _fits(one=False), "Is an argument of 1 like any other? It becomes a constant of the kernel: a class."),
        Mistake("a class of 0", _fits(zero=True), "Is 0 a class of its own? It is a multiple of 16 like the others; only 1 is special."),
        Mistake("no sixteen", _fits(by=0), "Do multiples of 16 count? The compiler is told of them: another class."),
        Mistake("by eight", _fits(by=8), "Is that a multiple of 8? For an integer it is 16 that counts."),
        Mistake(
            "no width",
            _fits(width=False),
            "Does the width count? An integer that needs 64 bits has another type, which makes another variant.",
        ),
        Mistake("unsigned width", _fits(edge=2**32), "Is 2^32 the end? int32 has a sign: it ends at 2^31 - 1."),
        Mistake(
            "pointer left out",
            _fits(align=0),
            "Is the address left out? Whether it is a multiple of 16 bytes is the class of a pointer.",
        ),
        Mistake("pointer by 8", _fits(align=8), "Is that a multiple of 8 bytes? Sixteen are what a thread loads at once."),
        Mistake("pointer by 4", _fits(align=4), "Is the address counted in elements? It is in bytes, and it is 16 of them that count."),
        Mistake(
            "order",
            _fits_count(lambda launches: len({(a % 16 == 0, *sorted(map(str, (class_of(n), class_of(s))))) for a, n, s in launches})),
            "Are the classes of a launch sorted, or put in a set? Which argument has which class matters.",
        ),
    ),
    hints=(
        "A class is what the compiler knows of an argument: of an address, whether 16 divides it; of an integer, three things.",
        "An integer: is it 1? If not: does it fit 32 bits, and does 16 divide it? A variant is one combination of three classes.",
        'key = (address % 16 == 0, class_of(n), class_of(step)), with class_of 1 -> "1", others -> (-2**31 <= n < 2**31, n % 16 == 0); '
        "then len() of the set of keys",
    ),
)


# ---- 04.2: exempt what buys nothing
BLOCK_2 = 8192
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
    tell_report(trial, trial.call(dry_run, kernel, (n_rows,), *paper, ran=ran), ran, facts)
    memory = not trial.problems
    trial.call(_launch, kernel, (n_rows,), x.view, y.view, end.view, *scalars, ran=ran)
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


def _launch(kernel, grid, *args):
    kernel[grid](*args)
    if machine.current().live:
        torch.cuda.synchronize()


def _count_rows(kernel, trial, launches, ran, facts):
    """A problem when the launches need more than one variant."""
    found = [trial.call(lambda args=args: variants.classes(kernel, *args, BLOCK=BLOCK_2), ran=ran) for args in launches]
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
        made = compiles(trial, kernel, (*args, BLOCK_2), ran)
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


# ---- 04.3: right in every class
STEPS_3 = (3, 0, 1, 2, 4, 5, 15, 16, 17, 31, 32, 33, 100)


def grade_ring(kernel, trial):
    """Judge `read_ring_kernel` at every class of step and of the stride, in guarded buffers; then a ring past 2^31 elements on paper."""
    trial.evidence = machine.current().evidence
    for ring, delay, row_size, stride in ((16, 4, 48, 48), (16, 4, 33, 41), (12, 12, 20, 32), (8, 1, 1, 1)):
        for step in STEPS_3:
            _small_ring(kernel, trial, ring, delay, row_size, stride, step)
        trial.case(f"a ring of {ring} rows of {row_size}, {stride} apart, delay {delay}, steps 0 to 100", values=True, memory=True)
    ran = "a ring of 4,096 rows of 2^20, on paper"
    for step in (1, 2, 4099):
        at = f"{ran}, step {step:,}"
        args = (ghost((4096, 2**20), torch.float16), ghost((1000,), torch.float16), step, 2**20, 1000, 4, 4096, 1024)
        tell_report(trial, trial.call(dry_run, kernel, (1,), *args, ran=at), at, {"kernel": kernel})
    trial.case(ran, memory=not trial.problems)


def _small_ring(kernel, trial, ring, delay, row_size, stride, step):
    """One step; its case ends only where it shows a problem, so that a ring counts as one case."""
    ran = f"step {step}, delay {delay}, a ring of {ring} rows of {row_size}, {stride} apart"
    device = machine.current().device
    values = torch.arange(ring, device=device).half()[:, None] + torch.rand(ring, row_size, device=device).half() / 2
    rows = Buffer((ring, row_size), torch.float16, values=values, wider=(ring, stride))
    out = Buffer((row_size,), torch.float16)
    args = (step, stride, row_size, delay, ring, 64)
    facts = {"kernel": kernel, "step": step, "delay": delay, "stride": stride, "ring": ring}
    paper = (ghost((ring, row_size), torch.float16, (stride, 1)), ghost((row_size,), torch.float16), *args)
    compiles(trial, kernel, paper, ran, facts)
    report = trial.call(dry_run, kernel, (1,), *paper, ran=ran)
    tell_report(trial, report, ran, facts | {"memory": True})
    memory = not trial.problems
    trial.call(_launch, kernel, (1,), rows.view, out.view, *args, ran=ran)
    slot = (step - delay) % ring  # Python's: from 0 to ring - 1
    near = [i for i in range(ring) if torch.equal(out.view, values[i])]
    facts |= {"read": near[0] if near else None, "slot": slot}
    right, inside = compare(trial, out, values[slot], name="out", axes=("element",), ran=ran, facts=facts)
    if trial.problems:
        trial.case(ran, values=right, memory=memory and inside)


def _breaks(f):
    return "no attribute 'to'" in f.get("told", "")


def _early(f):
    """A problem at a step before the delay, where the number of the slot is computed from one below zero."""
    return "step" in f and f["step"] < f["delay"]


STEP_3 = Step(
    number="04.3",
    title="Right in every class",
    spec="Make the slot and its address right at every step, and for every stride.",
    answer="kernel",
    call="read_ring_kernel(ring_ptr, out_ptr, step, stride_r, row_size, DELAY, RING, BLOCK)",
    size="about 2 lines",
    grade=grade_ring,
    mistakes=(
        Mistake(
            "the cast of an argument of 1",
            lambda f: _breaks(f) and ("stride_r.to(" in f["line"] or "step.to(" in f["line"]),
            "An argument of 1 is a number of the compiler's, which has no .to(). Cast what is computed and has a name, or use tl.cast.",
        ),
        Mistake(
            "the cast of what folds",
            _breaks,
            "At step 1 the whole expression is a constant, a number of the compiler's without .to(). Give it a name first, or use tl.cast.",
        ),
        Mistake(
            "no power of two",
            lambda f: "step" in f and f["ring"] == 12 and "&" in f["kernel"].src and not f.get("memory"),
            "A bitwise and is a remainder only where RING is a power of two.",
        ),
        Mistake(
            "masked",
            lambda f: _early(f) and bool(f.get("unwritten")),
            "Before the delay nothing is stored: the slot exists at every step, so there is nothing to mask.",
        ),
        Mistake(
            "clamped",
            lambda f: _early(f) and f.get("read") == 0,
            "Is a slot below zero made 0? The ring goes round: before slot 0 comes the last one.",
        ),
        Mistake(
            "mirrored",
            lambda f: _early(f) and f.get("read") == f["delay"] - f["step"],
            "Is the sign dropped? The ring goes round: one before slot 0 is the last slot, not slot 1.",
        ),
        Mistake(
            "added",
            lambda f: "read" in f and f["read"] == (f["step"] + f["delay"]) % f["ring"] and f["read"] != f["slot"],
            "Is DELAY added? The row is from DELAY steps ago.",
        ),
        Mistake(
            "no cast",
            lambda f: f.get("hazard") == "overflow",
            "A ring of 4,096 rows of 2^20 is past 2^31 elements: the product needs an int64 factor, as in lesson 07.",
        ),
        Mistake(
            "C's remainder",
            lambda f: _early(f) and bool(f.get("memory")) and f["step"] != 1,
            "Before the delay the difference is below zero, and so is its remainder: % is C's in a kernel. Only at step 1, where it is "
            "folded, is it Python's.",
        ),
        Mistake(
            "never round",
            lambda f: bool(f.get("memory")) and f["step"] >= f["delay"],
            "This slot is past the end of the ring: is the remainder taken last?",
        ),
        Mistake("values", lambda f: "slot" in f, "Another row was read: is it the row of step - DELAY, counted round the ring?"),
    ),
    hints=(
        "Try steps 0, 1, 2, 3 by hand: what is (0 - 4) % 16 in C, and in Python? And what is stride_r when a row is one number?",
        "A remainder of a number that is not below zero is the same in both: add RING before it is taken. As for the cast: an argument "
        "that may be 1 has no .to(), a value with a name of its own has.",
        "slot = (step + RING - DELAY) % RING\nrow_ptr = ring_ptr + slot.to(tl.int64) * stride_r",
    ),
)

EXERCISE = Exercise("04_specialization", "Know what makes a new variant", (STEP_1, STEP_2, STEP_3))
