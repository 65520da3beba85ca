"""Rule 12: whether the sizes given are a sweep: few programs and many, odd numbers, more than one shape of the model."""

from __future__ import annotations

from kit.errors import KitError
from kit.occupancy import occupancy
from kit.rules.note import Note

RULE = 12


def look(subject):
    """The Notes of rule 12."""
    launches = [subject.ghosts(size) for size in subject.sizes]
    full = subject.machine.multiprocessors * _each(subject)
    waves = [one.programs / full for one in launches]
    numbers = {"sizes": len(launches), "programs a wave": full, "waves": [round(wave, 3) for wave in waves]}
    if len(launches) == 1:
        text = (
            f"one size only, of {launches[0].programs:,} programs: a block size or a kernel chosen here may lose elsewhere; "
            "give decode sizes (1 to 64 tokens), "
            f"prefill sizes (thousands), an odd one, and each head count and dimension that you serve"
        )
        return [Note(RULE, "fragile", text, "compiled", "one size", numbers=numbers)]
    told = programs_missing(subject, launches, waves, full) + values_missing(subject, launches)
    few, many = min(launches, key=lambda one: one.programs), max(launches, key=lambda one: one.programs)
    text = (
        f"{len(launches)} sizes, from {few.programs:,} program{'' if few.programs == 1 else 's'} ({few.told}: "
        f"{_waves(min(waves))}) to {many.programs:,} "
        f"({many.told}: {_waves(max(waves))}); a wave is the {full:,} programs that {subject.machine.name} holds at once"
    )
    return [*told, Note(RULE, "fine", text, "compiled", "waves", numbers=numbers)]


def _each(subject):
    """Programs that a multiprocessor holds at once; 1 where that is not known."""
    try:
        return max(1, occupancy(subject.build()).programs)
    except KitError:
        return 1


def _waves(wave):
    return f"{wave:.1f} waves" if wave >= 1 else f"{100 * wave:.0f} % of a wave" if wave >= 0.01 else "under 1 % of a wave"


def programs_missing(subject, launches, waves, full):
    """Notes when all launches are small, or all are large."""
    count = subject.machine.multiprocessors
    few, many = min(one.programs for one in launches), max(one.programs for one in launches)
    if few == many:
        text = (
            f"every size launches {few:,} program{'' if few == 1 else 's'}, whatever it holds: check that this is meant (a "
            "persistent kernel), and "
            f"add sizes that change it if not"
        )
        return [Note(RULE, "plan", text, "compiled", "one grid", numbers={"programs": few})]
    found = []
    if few >= count:
        text = (
            f"the smallest launch has {few:,} programs, and {subject.machine.name} has {count} multiprocessors: add decode "
            f"sizes, such as 1 and 8 tokens or rows"
        )
        found.append(Note(RULE, "plan", text, "compiled", "no decode size", numbers={"programs": few, "multiprocessors": count}))
    if max(waves) < 2:
        text = (
            f"the largest launch has {many:,} programs, {_waves(max(waves))} ({full:,} programs): add prefill sizes, thousands "
            "of tokens or rows, where "
            f"bandwidth decides"
        )
        found.append(Note(RULE, "plan", text, "compiled", "no prefill size", numbers={"programs": many, "wave": full}))
    return found


def values_missing(subject, launches):
    """Notes on axes of the sizes: powers of two alone, one value alone."""
    axes = {key: sorted({size[key] for size in subject.sizes if type(size.get(key)) is int}) for key in subject.sizes[0]}
    axes = {key: values for key, values in axes.items() if values}
    swept = {key: values for key, values in axes.items() if len(values) > 1}
    found = []
    even = [key for key, values in swept.items() if all(n & (n - 1) == 0 for n in values)]
    if swept and len(even) == len(swept):
        text = (
            f"{_and(even)} take{'s' if len(even) == 1 else ''} powers of two alone, where masks do nothing and every class is a "
            "multiple of 16: add odd ones, "
            f"such as {_odd(swept[even[0]])}"
        )
        found.append(Note(RULE, "plan", text, "compiled", "powers of two", numbers={"axes": even}))
    single = [key for key, values in axes.items() if len(values) == 1]
    if single:
        values = ", ".join(f"{key} = {axes[key][0]:,}" for key in single)
        text = f"one value only of {values}: sweep it too if you serve more than one, since the best block may change with it"
        found.append(Note(RULE, "plan", text, "compiled", "one value", numbers={key: axes[key][0] for key in single}))
    return found


def _odd(values):
    large = values[-1]
    return f"{max(3, large // 2 + 1):,} and {large + 1:,}"


def _and(names):
    return names[0] if len(names) == 1 else ", ".join(names[:-1]) + " and " + names[-1]
