"""Rule 11: a benchmark of the kernel, as code to paste; on a GPU it is run."""

from __future__ import annotations

from kit.errors import KitError
from kit.rules.note import Note
from kit.rules.traffic import moved
from kit.rules.truth import for_bench

RULE = 11
SHORT = 40e6  # bytes: below, a launch takes some 10 µs or less on a large GPU, which events do not resolve
SHAPES = 5


def plan(subject):
    """The Note that holds the benchmark as code (`numbers["code"]`), and what it will contain. Nothing is launched."""
    chosen = _counted(subject)
    told = "; ".join(f"{launch.told or 'the launch given'}: {_bytes(count)}" for launch, count, _ in chosen)
    exact = all(followed for _, _, followed in chosen)
    how = "read and written, each byte once, as its programs ask for them on paper" if exact else "of the tensors, taken as moved once"
    checked = "checked against the reference first" if subject.reference is not None else "unchecked until you give reference="
    text = (
        f"benchmark {told} ({how}), {checked}, from a cold L2 cache, GPU time by "
        f"{' and '.join(dict.fromkeys(map(_method, chosen)))}; the code is in "
        f'numbers["code"]'
    )
    numbers = {
        "shapes": [{"size": launch.size, "bytes": count, "method": _method((launch, count, None))} for launch, count, _ in chosen],
        "code": code(subject, chosen),
    }
    return [Note(RULE, "plan", text, "simulated" if exact else "compiled", "benchmark", numbers=numbers)]


def look(subject):
    """The Notes of rule 11: measured where a GPU is, else the plan."""
    if not subject.machine.live:
        return plan(subject)
    told = [note for one in _counted(subject) for note in _measured(subject, *one)]
    return told + plan(subject)


def shapes(subject):
    """At most SHAPES launches on paper: smallest and largest by bytes, and a spread between."""
    launches = sorted((subject.ghosts(size) for size in subject.sizes), key=lambda one: one.bytes)
    if len(launches) <= SHAPES:
        return launches
    return [launches[round(i * (len(launches) - 1) / (SHAPES - 1))] for i in range(SHAPES)]


def _counted(subject):
    """[(Launch, bytes, whether paper counted them)]."""
    return [(launch, *moved(subject, launch)[::2]) for launch in shapes(subject)]


def _method(one):
    return "graph" if one[1] < SHORT else "events"


def _bytes(count):
    for size, unit in ((1e9, "GB"), (1e6, "MB"), (1e3, "KB")):
        if count >= size:
            return f"{count / size:.3g} {unit}"
    return f"{count} bytes"


def code(subject, chosen):
    """The benchmark as Python to paste beside the kernel: `kernel`, `make_args`, `grid` and `reference` are those given to examine."""
    name = subject.kernel.__name__
    if subject.grid is None:
        rows = [f"    ({launch.size!r}, {count}, {_method((launch, count, None))!r})," for launch, count, _ in chosen]
        return "\n".join(
            [
                "# make_args launches the kernel itself: move what makes the tensors out of the timed call.",
                "for size, moved, method in [",
                *rows,
                "]:",
                f"    print(size, kit.bench({{{name!r}: lambda: make_args(**size)}}, reference=None, bytes=moved, method=method))",
            ]
        )
    metas = [_meta(subject, launch) for launch, _, _ in chosen]
    outputs = ", ".join(f"args[{subject.kernel.arg_names.index(one)}]" for one in subject.written)
    returned = f"({outputs},)" if outputs else "args"
    reference = "reference=truth" if subject.reference is not None else "reference=None"
    truth = [
        *("def truth(*args):", "    expected = reference(*args)"),
        f"    return tuple(expected[name] for name in {subject.written!r}) if isinstance(expected, dict) else expected",
        "",
    ]
    rows = [f"    ({one[0].size!r}, {one[1]}, {_method(one)!r}, {meta!r})," for one, meta in zip(chosen, metas, strict=True)]
    return "\n".join(
        [
            *(truth if subject.reference is not None else ()),
            "for size, moved, method, meta in [",
            *rows,
            "]:",
            "    def run(*args):",
            f"        {name}[grid](*args, **meta)",
            f"        return {returned}",
            "",
            f"    print(size, kit.bench({{{name!r}: run}}, *make_args(**size), {reference}, bytes=moved, method=method))",
        ]
    )


def _meta(subject, launch):
    """The constexprs and options that the reader gave, as this launch has them: those that are functions are computed."""
    given = launch.meta if subject.grid is None else subject.meta
    return {name: launch.meta[name] for name in given if name in launch.meta}


# ---- On a GPU


def _measured(subject, launch, count, followed):
    """The Notes of one shape, timed on the GPU that is here."""
    from kit.bench import bench

    if 3 * launch.bytes > subject.machine.free_memory:
        text = f"at {launch.told} the tensors and their copies take {_bytes(3 * launch.bytes)}, more than is free: it was not timed"
        return [Note(RULE, "not visible here", text, "measured", "too large")]
    given = subject.launch(launch.size)
    places, reference = for_bench(subject, given.args)
    options = _meta(subject, given)
    whole = subject.grid if callable(subject.grid) else given.grid

    def run(*args):
        subject.given[whole](*args, **options)
        return [args[i] for i in places] if reference else None

    try:
        timing = bench(
            {subject.kernel.__name__: run},
            *given.args,
            reference=reference,
            bytes=count or None,
            method=_method((launch, count, None)),
            rounds=7,
            tolerance=subject.tolerance,
        )
    except KitError as error:
        words = str(error).split(": ", 1)[-1].rstrip(".")
        wrong = "is not the reference" in words
        return [Note(RULE, "wrong" if wrong else "not visible here", words, "measured", "not the reference" if wrong else "not timed")]
    return [_told(launch, row, followed) for row in timing]


def _told(launch, row, followed):
    at = launch.told or "the launch given"
    share = f", {100 * row.share:.0f} % of what a copy reaches here" if row.share is not None else ""
    text = (
        f"{at}: {row.us:,.1f} µs a launch, {row.bandwidth / 1e9:,.0f} GB/s{share}" if row.bandwidth else f"{at}: {row.us:,.1f} µs a launch"
    )
    # A count that paper did not make is a guess, and a share of it over 1 says nothing of the kernel.
    asked = [one for one in row.questions if followed or "of the ceiling" not in one]
    numbers = {"size": launch.size, "us": row.us, "gb_s": row.bandwidth and row.bandwidth / 1e9, "share": row.share, "checked": row.checked}
    if asked:
        return Note(RULE, "fragile", f"{text}; before it is believed: {'; '.join(asked)}", "measured", "questioned", numbers=numbers)
    return Note(RULE, "fine", text, "measured", "timed", numbers=numbers)
