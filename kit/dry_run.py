"""`dry_run`: a launch on paper. The grid against its limits, and the kernel's own IR executed with nothing behind the pointers."""

from __future__ import annotations

import math

from kit import compiling, machine
from kit.errors import BadInput, KitError, expect_kernel, quoted
from kit.paper import Paper
from kit.report import Finding, Report
from kit.simulator.driver import live_arguments, wrapped_product
from kit.simulator.launch import one_thread, read_program
from kit.simulator.races import find

__all__ = ["Finding", "Report", "dry_run"]


def dry_run(kernel, grid, *args, **meta):
    """Return a Report on the launch `kernel[grid](*args, **meta)`, without launching it: it needs no GPU and no memory.

    `grid` is a tuple of one to three whole numbers, or a function of the constexprs as in a launch. `args` are tensors, ghosts
    and numbers; `meta` are constexprs and launch options. What is found, and how sure a report is: docs/dry_run.md. Nothing is
    written: a tensor keeps its values, and a load reads what is there before the launch or, where all programs run, what they wrote
    on paper. A ghost's integers read as zeros, so an index loaded from one is 0; its floats as small positive numbers.

    Launches too large to run in full are run at the corners of the grid, at a spread of programs between, and where a finding
    begins. `programs=[...]` runs these and no others: numbers, x fastest, or tuples (x, y, z). A kernel's own argument of that name
    goes to the kernel. Raises BadInput or CompileError as `build` does, and BadInput for a program outside the grid.
    """
    here = machine.current()
    expect_kernel(kernel, verb="dry_run")
    chosen = meta.pop("programs", None) if "programs" not in kernel.arg_names else None
    values, options = compiling.bind(kernel, args, meta, verb="dry_run", device=here.device)
    grid = _checked_grid(grid, dict(zip(kernel.arg_names, values, strict=True)))
    chosen = None if chosen is None else _checked_programs(chosen, grid)
    findings = grid_findings(grid, here.limits)
    compiled = compiling.compiled(kernel, values, options, verb="dry_run")
    program = read_program(compiled.asm["ttir"], kernel.fn.__code__.co_filename)
    arguments = live_arguments(list(compiled.src.signature.items()), values)
    paper = Paper(program, grid, arguments)
    if paper.total:
        with one_thread():
            paper.explore(chosen)
            findings += paper.findings()
        findings += races_in_programs(compiled, kernel, grid, arguments, paper, chosen)
    findings += _alignment_remarks(kernel, arguments)
    return Report(kernel.__name__, grid, findings, paper.total, paper.ran, numbers=paper.numbers(), chosen=chosen is not None)


def _checked_programs(chosen, grid):
    """The linear numbers of `programs=`, ascending and each once."""
    x, y, z = (*grid, 1, 1)[:3]
    numbers = set()
    for program in chosen if isinstance(chosen, (list, tuple, range)) else [chosen]:
        ids = (*program, 0, 0)[:3] if isinstance(program, tuple) else (program,)
        whole = all(isinstance(n, int) and not isinstance(n, bool) and n >= 0 for n in ids)
        inside = whole and (ids[0] < x * y * z if len(ids) == 1 else all(n < limit for n, limit in zip(ids, (x, y, z), strict=True)))
        if not inside:
            raise BadInput(f"dry_run: programs must be numbers or tuples inside the grid {grid}; got {quoted(program)}.")
        numbers.add(ids[0] if len(ids) == 1 else (ids[2] * y + ids[1]) * x + ids[0])
    if not numbers:
        raise BadInput("dry_run: programs must name at least one program; got none. Leave it out for a spread of them.")
    return sorted(numbers)


def races_in_programs(compiled, kernel, grid, arguments, paper, chosen):
    """Findings on stores and loads that one program's warps make in no order. Only asked when a program reads what it wrote."""
    if not paper.rereads():
        return []
    try:
        pairs = find(compiled, kernel, grid, arguments, chosen)
    except (KitError, NotImplementedError) as error:
        text = f"whether the warps of a program race is not known: {str(error).rstrip('.')}; a run on a GPU with several warps may show it"
        return [Finding("race in a program", text, "not visible here")]
    return [_race(pair) for pair in pairs]


def _race(pair):
    text = (
        f"line {pair.second_line}: {pair.second_source}: {pair.kind}: warps {pair.warps[0]} and {pair.warps[1]} of program {pair.program} "
        f"meet at element offset {pair.element:,} of {pair.argument}, the other one in line {pair.first_line}: {pair.first_source}, and no "
        f"barrier stands between"
    )
    verdict = "wrong"
    if not pair.certain:
        verdict = "not visible here"
        text += " for certain: the compiled code may have one, and many launches on a GPU would show it"
    return Finding(
        "race in a program",
        text,
        verdict,
        pair.second_line,
        pair.second_source,
        tuple(pair.program),
        pair.element,
        argument=pair.argument,
        other_line=pair.first_line,
    )


def _alignment_remarks(kernel, arguments):
    """Pointers off a 16-byte boundary: right, but another variant of the kernel than the one an aligned tensor compiles."""
    generic = {p.name for p in kernel.params if p.do_not_specialize or p.do_not_specialize_on_alignment}
    found = []
    for name, _, value in arguments:
        if name not in generic and hasattr(value, "data_ptr") and value.data_ptr() % 16:
            text = (
                f"{name} begins {value.data_ptr() % 16} bytes past a multiple of 16: it takes another compiled variant, with narrower "
                f"loads, than an aligned tensor does, so a warm-up with an aligned one does not prepare this launch"
            )
            found.append(Finding("alignment", text, "remark", argument=name))
    return found


def _checked_grid(grid, arguments):
    given = grid(arguments) if callable(grid) else grid
    given = (given,) if isinstance(given, int) else given
    whole = isinstance(given, (tuple, list)) and 1 <= len(given) <= 3
    if not whole or any(isinstance(n, bool) or not isinstance(n, int) or n < 0 for n in given):
        raise BadInput(f"dry_run: grid must be a tuple of one to three whole numbers, zero or more; got {quoted(given)}.")
    return tuple(given)


def grid_findings(grid, limits):
    """The grid alone: what the driver refuses, what Triton's launcher skips, what has no work."""
    axes = "xyz"
    full = (*grid, 1, 1)[:3]
    product = math.prod(full)
    findings = []
    for axis, n, limit in zip(range(3), full, limits.grid, strict=True):
        if n > limit:
            findings.append(
                Finding("grid", f"grid[{axis}] is {n:,}, over the limit of {limit:,} for axis {axes[axis]}: the launch is refused", true=n)
            )
    if product > limits.programs and all(n <= limits.grid[0] for n in full):
        wrapped = wrapped_product(full)
        # The launcher looks at the product before the driver sees the axes: a skipped launch is never refused.
        if wrapped <= 0:
            text = (
                f"the product of the axes is {product:,}, which is {wrapped:,} in the launcher's 32 bits: the launch is skipped in silence"
            )
            findings = [Finding("grid", text, true=product, wrapped=wrapped)]
        else:
            text = (
                f"the product of the axes is {product:,}, over 2^31 - 1; it happens to wrap to the positive {wrapped:,}, so the launch runs"
            )
            findings.append(Finding("grid", text, "remark", true=product, wrapped=wrapped))
    if product == 0:
        findings.append(Finding("grid", "an axis is 0: no program runs, and nothing says so", "remark"))
    return findings
