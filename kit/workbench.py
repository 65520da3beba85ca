"""`sweep`: one kernel under many block sizes, warps, stages and sizes: what the compiler makes of each, and on a GPU how long it takes."""

from __future__ import annotations

import html
import inspect
import itertools
from dataclasses import dataclass, replace

from kit import machine
from kit.bench_progress import Progress
from kit.build import CompileError
from kit.errors import BadInput, KitError, quoted
from kit.examine import meta_sendable, meta_text, sendable
from kit.occupancy import MOST_REGISTERS, occupancy
from kit.rules.subject import Subject, all_sizes
from kit.rules.truth import for_bench
from kit.sandbox import run_cell
from kit.specialization import launch_variant

__all__ = ["Sweep", "Tried", "sweep"]

MOST = 2000
WIDEST = 128  # bits: the widest load or store of a thread
TIMEOUT = 300.0  # seconds that the timing of one size may take


def sweep(kernel, make_args, grid, *, sizes=None, reference=None, **knobs):
    """Return a Sweep of `kernel` over all combinations of `sizes` and `knobs`.

    `make_args`, `grid`, `sizes` and `reference` are as in `kit.examine`. Each of `knobs` is a constexpr or launch option with a value,
    with a list of values, or with a function of the named arguments, which is no axis. Nothing is launched in this process: the compiler
    is asked, and on a GPU each size is timed in the sandbox, against `reference` first where it is given. Interrupting the cell keeps what
    is done. Raises BadInput for what cannot be combined.
    """
    points = [{}] if sizes is None else all_sizes(sizes)
    computed = {name: value for name, value in knobs.items() if inspect.isfunction(value)}
    axes = {name: list(values) if isinstance(values, (list, tuple, range)) else [values] for name, values in knobs.items()}
    axes = {name: values for name, values in axes.items() if name not in computed}
    if empty := [name for name, values in axes.items() if not len(values)]:
        raise BadInput(f"sweep: {empty[0]} has no values; give one value or a list of them.")
    choices = [dict(zip(axes, point, strict=True)) for point in itertools.product(*axes.values())]
    if len(points) * len(choices) > MOST:
        raise BadInput(f"sweep: {len(points)} sizes x {len(choices)} choices of knobs, and at most {MOST:,} are tried; give fewer values.")
    subject = Subject(kernel, make_args, grid, reference, points, computed)
    rows, note, known = [], "", {}
    total = len(points) * len(choices)
    live = machine.current().live
    try:
        with Progress(total, "sweep") as progress:
            for size in points:
                first = len(rows)
                for choice in choices:
                    rows.append(_tried(subject, size, choice, known))
                    progress.step(0.5 if live else 1, {**size, **choice})
                if live:
                    rows[first:] = _timed(subject, size, rows[first:], progress)
    except KeyboardInterrupt:
        note = f"stopped at {len(rows)} of {total}"
    return Sweep(subject.kernel.__name__, tuple(rows), note, machine.current().name)


@dataclass(frozen=True)
class Tried:
    """One combination. `size` and `knobs` are what was asked for; the rest is what the compiler made of it, None where it refused.

    `registers` a thread; `spills` bytes a thread; `shared_memory` bytes a program; `resident` programs a multiprocessor holds at once and
    `threads`, their share of its threads; `loads` and `stores` the widths in bits; `variant` the number of the compiled variant, from 1;
    `programs` in the launch. `us`: median microseconds on this GPU, None without one. `refused` says why there is nothing.
    """

    size: dict
    knobs: dict
    registers: int | None = None
    spills: int | None = None
    shared_memory: int | None = None
    resident: int | None = None
    threads: float | None = None
    loads: tuple = ()
    stores: tuple = ()
    variant: int | None = None
    programs: int | None = None
    us: float | None = None
    refused: str = ""

    def record(self):
        """A flat dict, for a table."""
        told = {name: value for name, value in vars(self).items() if name not in ("size", "knobs")}
        return {**self.size, **self.knobs, **told}


@dataclass(eq=False)
class Sweep:
    """What `sweep` saw. True when no combination was refused. `panel()` moves through it, `table()` is for pandas."""

    kernel: str
    rows: tuple
    note: str = ""
    gpu: str = ""

    def __bool__(self):
        return bool(self.rows) and not any(row.refused for row in self.rows)

    def __iter__(self):
        return iter(self.rows)

    def __len__(self):
        return len(self.rows)

    @property
    def evidence(self):
        return "measured" if any(row.us is not None for row in self.rows) else "compiled"

    def table(self):
        """A list of flat dicts, one a combination: `pandas.DataFrame(sweep.table())`."""
        return [row.record() for row in self.rows]

    def row(self, **values):
        """The Tried of one combination; what does not vary may be left out. Raises BadInput."""
        found = [row for row in self.rows if all({**row.size, **row.knobs}.get(name) == value for name, value in values.items())]
        if len(found) != 1:
            raise BadInput(f"row: {len(found)} combinations fit {quoted(values)}; name one value of each of {', '.join(self.axes)}.")
        return found[0]

    @property
    def axes(self):
        """{name: values} of what was combined, in order."""
        found = {}
        for row in self.rows:
            for name, value in {**row.size, **row.knobs}.items():
                if value not in found.setdefault(name, []):
                    found[name].append(value)
        return found

    @property
    def variants(self):
        """How many compiled variants the combinations need."""
        return len({row.variant for row in self.rows if row.variant})

    def panel(self, **start):
        """A kit.explore panel over what was combined: the resources of each combination against their limits. `start`: where it stands."""
        from kit.explore import explore

        best = {}
        for row in self.rows:
            if row.us is not None:
                key = repr(row.size)
                best[key] = min(best.get(key, row.us), row.us)
        varied = {name: values for name, values in self.axes.items() if len(values) > 1} or dict(list(self.axes.items())[:1])
        rows = {repr({name: {**row.size, **row.knobs}[name] for name in varied}): row for row in self.rows}
        axes = {name: sorted(values) if all(type(v) in (int, float) for v in values) else values for name, values in varied.items()}
        order = list(varied)
        namespace = {"rows": rows, "best": best, "draw": self._picture}
        text = f"lambda {', '.join(order)}: draw(rows.get(repr(dict({', '.join(f'{n}={n}' for n in order)}))), best)"
        return explore(eval(text, namespace), start=start or None, **axes)  # explore reads the names of the view's parameters

    def _picture(self, row, best):
        from kit.pictures import Bar, Bars

        if row is None or row.refused:
            why = "this combination was not tried" if row is None else row.refused
            return Bars(f"{self.kernel}: no code", "%", (Bar("refused", 0, ok=False, note=why[:90]),), evidence=self)
        limit = machine.current().limits.shared_memory
        bars = [
            Bar("registers", 100 * row.registers / MOST_REGISTERS, 100, not row.spills, f"{row.registers} of {MOST_REGISTERS} a thread"),
            Bar(
                "shared memory",
                100 * row.shared_memory / limit,
                100,
                row.shared_memory <= limit,
                f"{row.shared_memory:,} of {limit:,} bytes",
            ),
            Bar("threads at once", 100 * row.threads, 100, None, f"{row.resident} programs on a multiprocessor"),
        ]
        bars += [
            Bar(f"width of {name}", 100 * min(widths) / WIDEST, 100, None, f"{' and '.join(map(str, widths))} of {WIDEST} bits")
            for name, widths in (("loads", row.loads), ("stores", row.stores))
            if widths
        ]
        if row.us is not None:
            fastest = best[repr(row.size)]
            bars.append(Bar("speed", 100 * fastest / row.us, 100, None, f"{row.us:,.2f} µs; the best here {fastest:,.2f} µs"))
        spilled = f", {row.spills:,} bytes spilled" if row.spills else ""
        title = f"{self.kernel}: {row.programs:,} programs, variant {row.variant} of {self.variants}{spilled}"
        return Bars(title, "%", tuple(bars), evidence=self)

    def __repr__(self):
        refused = sum(bool(row.refused) for row in self.rows)
        spilling = sum(bool(row.spills) for row in self.rows)
        parts = [f"{len(self.rows)} combinations", f"{self.variants} variant{'' if self.variants == 1 else 's'}"]
        parts += [f"{refused} refused"] * bool(refused) + [f"{spilling} with spills"] * bool(spilling) + [self.note] * bool(self.note)
        timed = [row for row in self.rows if row.us is not None]
        if timed:
            least = min(timed, key=lambda row: row.us)
            parts.append(f"the fastest {least.us:,.2f} µs at {_spelled({**least.size, **least.knobs})}")
        return f"{self.kernel}: {', '.join(parts)} [{self.evidence}]"

    def _repr_html_(self):
        from kit.evidence import label_html

        names, timed = list(self.axes), any(row.us is not None for row in self.rows)
        heads = [*names, "programs", "variant", "registers", "spilled", "shared memory", "programs at once", "loads", "stores"]
        heads += ["µs"] * timed
        body = "".join(_html_row(row, names, timed) for row in self.rows)
        head = "".join(f"<th>{html.escape(name)}</th>" for name in heads)
        return f"<div>{html.escape(repr(self).rsplit(' [', 1)[0])} {label_html(self.evidence)}</div><table><tr>{head}</tr>{body}</table>"


def _html_row(row, names, timed):
    record = row.record()
    cells = [f"{record[name]}" for name in names]
    if row.refused:
        span = 8 + timed
        return _tr(cells).removesuffix("</tr>") + f'<td colspan="{span}" style="text-align:left">✗ {html.escape(row.refused)}</td></tr>'
    cells += [f"{row.programs:,}", str(row.variant), str(row.registers), f"{row.spills:,}", f"{row.shared_memory:,}", str(row.resident)]
    cells += [_widths(row.loads), _widths(row.stores)]
    cells += ["" if row.us is None else f"{row.us:,.2f}"] if timed else []
    return _tr(cells)


def _tr(cells):
    return "<tr>" + "".join(f"<td>{html.escape(cell)}</td>" for cell in cells) + "</tr>"


def _widths(bits):
    return f"{', '.join(map(str, bits))} bit" if bits else ""


def _spelled(values):
    return ", ".join(f"{name} = {value}" for name, value in values.items())


# ---- One combination


def _tried(subject, size, choice, known):
    """The Tried of one combination; `known` numbers the variants that were seen."""
    try:
        launch = subject.ghosts(size, **choice)
        made = subject.build(size, **choice)
        identity = launch_variant(subject.kernel, launch.args, launch.meta, verb="sweep").identity
        held = occupancy(made)
        told = f"more shared memory ({made.shared_memory:,} bytes) than a program can have" * (held.programs == 0)
        return Tried(
            size,
            choice,
            made.registers,
            made.spills,
            made.shared_memory,
            held.programs,
            held.share,
            tuple(made.bits("load")),
            tuple(made.bits("store")),
            known.setdefault(identity, len(known) + 1),
            launch.programs,
            refused=told,
        )
    except CompileError as error:
        return Tried(size, choice, refused=str(error).split(": ", 1)[-1])


def _timed(subject, size, tried, progress):
    """`tried` with times: one child times all knobs of a size, in turns."""
    able = [i for i, row in enumerate(tried) if not row.refused]
    choices = [tried[i].knobs for i in able]
    namespace = sendable("given", subject.given, subject.make_args, subject.grid, subject.reference, size, choices)
    words = ", ".join(namespace)
    namespace |= meta_sendable(subject.meta)
    text = f"__import__('kit.workbench').workbench.times({words}, {meta_text(namespace)})\n"
    outcome = run_cell(text, namespace, timeout=TIMEOUT, verb="sweep")
    progress.step(0.5 * len(tried), size)
    if not outcome:
        words = outcome.message or outcome.error or outcome.kind
        return [replace(row, refused=row.refused or f"timing it ended in {outcome.kind}: {words}") for row in tried]
    for i, us in zip(able, outcome.value, strict=True):
        tried[i] = replace(tried[i], us=us)
    return tried


def times(kernel, make_args, grid, reference, size, choices, computed):
    """[median µs] of `choices` at `size`, in the sandbox's child on a GPU. Raises KitError when one differs from the reference."""
    import os

    os.environ["CUDA_LAUNCH_BLOCKING"] = "0"  # the sandbox waits for each launch, which costs time
    from kit.bench import bench

    subject = Subject(kernel, make_args, grid, reference, [size], {**computed, **choices[0]})  # each launch below brings its own choice
    args = subject.launch(size).args
    if sum(value.numel() * value.element_size() for value in args if hasattr(value, "numel")) * 3 > subject.machine.free_memory:
        raise KitError(f"sweep: the arguments of {size} do not fit this GPU three times, which checking and timing need.")
    places, reference = for_bench(subject, args)

    def launching(choice):
        launch = subject.launch(size, **choice)

        def run(*given):
            subject.kernel[launch.grid](*given, **launch.meta)
            return [given[i] for i in places] if reference else None

        return run

    contenders = {_spelled(choice): launching(choice) for choice in choices}
    timing = bench(contenders, *args, reference=reference)
    return [timing.row(name).time.median for name in contenders]
