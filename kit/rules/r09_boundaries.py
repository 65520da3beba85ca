"""Rule 9: launches at the edges of the blocks and on views, in guarded memory, against the reference or against each other."""

from __future__ import annotations

import re

import torch

from kit import machine
from kit.errors import KitError
from kit.rules.from_paper import finding_note, many, once, some
from kit.rules.note import Note
from kit.rules.subject import SMALL
from kit.rules.trials import tried
from kit.rules.truth import loose
from kit.rules.varied import base, varied
from kit.shapes import shapes
from kit.shapes_layouts import LAYOUTS
from kit.simulator.launch import one_thread

RULE = 9
HAZARDS = ("out of bounds", "misaligned", "never written", "masked lane", "index")
PLAIN, VIEWS = 12, 8  # cases at most


def look(subject):
    """The Notes of rule 9. Launches for real, small sizes only, and nothing that leaves its tensors on paper."""
    notes = _as_given(subject)
    names, left = varied(subject)
    size = base(subject, names)
    if subject.ghosts(size).bytes > SMALL:
        text = f"no launch was made: the smallest needs {subject.ghosts(size).bytes:,} bytes of tensors; give a smaller size too"
        return once(notes) or [Note(RULE, "not visible here", text, "simulated", "too large")]
    try:
        cases, views_left = _cases(subject, size, names)
    except KitError as error:
        words = str(error).split(": ", 1)[-1].rstrip(".")
        return once(notes) or [Note(RULE, "not visible here", f"no cases could be made: {words}", "simulated", "no cases")]
    with one_thread():  # the tensors are small
        trials = _run(subject, cases)
    notes += _told(subject, names, trials)
    notes = once(notes)
    return notes or [_fine(subject, names, left, trials, views_left)]


def _as_given(subject):
    """What paper finds at the sizes as given."""
    notes = []
    for size in some([subject.smallest, subject.typical]):
        launch = subject.ghosts(size)
        found = [f for f in subject.report(size).findings if f.hazard in HAZARDS and f.verdict != "remark"]
        # With a reference, an element that is not written is compared below: what make_args put there may be what belongs there.
        found = [f for f in found if f.hazard != "never written" or (subject.reference is None and not _added_to(subject, f.argument))]
        notes += [finding_note(subject, RULE, finding, launch) for finding in found]
    return notes


def _added_to(subject, name):
    """Whether the kernel also loads from an argument: what it adds to holds something before the launch, and may be left as it is."""
    touch = subject.touched.get(name)
    return touch is not None and bool(touch.loads)


# ---- Cases


def _cases(subject, size, names):
    """([Case], why some views are not proposed): kit.shapes on the sizes that may vary, from `size`."""
    meta = {key: value for key, value in subject.ghosts(size).meta.items()}
    sizes = {name: size[name] if one.most is None else range(0, size[name] + 1) for name, one in names.items()}
    others = {name: value for name, value in size.items() if name not in sizes}
    if not sizes:  # nothing may vary: one size, and the views
        sizes = {"launch": range(1, 2)}
        others = dict(size)

    def make(**varying):
        varying.pop("launch", None)
        return subject.made({**others, **varying})

    found = shapes(subject.kernel, make, sizes, **meta)
    for case in found:
        case.sizes = {**others, **{name: value for name, value in case.sizes.items() if name != "launch"}}
    plain, views = [c for c in found if c.argument is None], [c for c in found if c.argument is not None]
    settled = {*subject.dense, *_shared(subject, size)}
    views = [case for case in views if case.argument not in settled]
    if len(plain) > PLAIN:  # a whole block and one fewer tell the least
        plain = [c for c in plain if not re.search(r" = [A-Z_a-z]*(BLOCK|TILE)\w*( - 1)? = ", c.name)]
    return [*plain[:PLAIN], *sorted(views, key=lambda case: case.layout == LAYOUTS[1])[:VIEWS]], found.notes


def _shared(subject, size):
    """Arguments that lie in one piece of memory with another, as a gradient written over its input."""
    named = dict(zip(subject.kernel.arg_names, subject.made(size), strict=False))
    places = {
        name: value.untyped_storage().data_ptr() for name, value in named.items() if isinstance(value, torch.Tensor) and value.numel()
    }
    return [name for name, place in places.items() if list(places.values()).count(place) > 1]


def _run(subject, cases):
    """The Trials of the cases. The first, as given, says how far two right ways may be apart; a view is compared with its plain twin."""
    bounds, plain, trials = {}, {}, []
    for case in cases:
        key = repr(case.sizes)
        trial = tried(subject, case, bounds, plain.get(key) if case.argument else None)
        if not trials and trial.launched and not trial.wrong:
            bounds = _bounds(subject, trial)
        if case.argument is None and trial.launched:
            plain[key] = trial
        trials.append(trial)
    return trials


def _bounds(subject, trial):
    """{argument: bound}: the reader's tolerance, or four times what the size as given shows, where that is more than the usual."""
    if subject.tolerance is not None:
        return {name: max(*subject.tolerance, loose(tensor.dtype)) for name, tensor in trial.left.items()}
    return {name: max(loose(tensor.dtype), 4 * trial.error) for name, tensor in trial.left.items()}


# ---- What is told


def _told(subject, names, trials):
    first = trials[0] if trials else None
    notes = []
    for key, group in _groups(subject, trials).items():
        trial, what = group[0]
        verdict = _verdict(names, trial)
        if key[0] == "paper":
            notes.append(_on_paper(subject, trial, what, verdict, group, trials))
        else:
            notes.append(_launched(subject, trial, what, verdict, group, trials, trial is first))
    return [note for note in notes if note is not None]


def _groups(subject, trials):
    """{what it is: [(Trial, Finding or (argument, sentence, numbers))]}, each thing once, at the first case that shows it."""
    groups = {}
    for trial in trials:
        for finding in trial.findings:
            if finding.hazard in HAZARDS and not (
                finding.hazard == "never written" and (trial.checked or _added_to(subject, finding.argument))
            ):
                groups.setdefault(("paper", finding.hazard, finding.line, finding.argument), []).append((trial, finding))
        for one in trial.wrong:
            groups.setdefault(("launch", one[0], trial.view, "cells" in one[2]), []).append((trial, one))
    return groups


def _verdict(names, trial):
    """How sure a fault at this case is: a size that no mask follows may be a multiple of the block by agreement."""
    unmasked = [name for name, one in names.items() if not one.masked and trial.case.sizes[name] != trial.case.plan.typical.get(name)]
    return "fragile" if unmasked else "wrong"


def _more(group, trials):
    ran = sum(trial.launch is not None for trial in trials)
    return f" ({len({id(t) for t, _ in group})} of {many(ran, 'case')})" if ran > 1 else ""


def _at(subject, trial):
    name = trial.case.name.replace("launch = 1, as given, ", "").replace("launch = 1, as given", "")
    return name or trial.launch.told


def _numbers(trial, group, trials):
    return {
        **trial.case.sizes,
        "case": trial.case.name,
        "argument_viewed": trial.case.argument,
        "layout": trial.case.layout,
        "cases_failing": len({id(one) for one, _ in group}),
        "cases": len(trials),
        "skipped": sum(one.launch is None for one in trials),
    }


def _on_paper(subject, trial, finding, verdict, group, trials):
    said = verdict if finding.verdict == "wrong" else finding.verdict
    note = finding_note(subject, RULE, finding, trial.launch, verdict=said, at=f"at {_at(subject, trial)}{_more(group, trials)}: ")
    note.numbers.update(_numbers(trial, group, trials))
    return note


def _launched(subject, trial, what, verdict, group, trials, as_given):
    argument, sentence, numbers = what
    where = _at(subject, trial)
    text = f"{f'at {where}' if where else 'as given'}{_more(group, trials)}: {sentence}"
    key = "guard cells" if "cells" in numbers else "never written" if numbers["never_written"] else "values"
    if trial.view and not trial.checked:
        text += ", which is what the same values give in a plain tensor"
    text += f"; {_cause(trial, key, as_given)}"
    numbers = {**numbers, "argument": argument, **_numbers(trial, group, trials)}
    return Note(RULE, verdict, text, machine.current().evidence, key, numbers=numbers)


def _cause(trial, key, as_given):
    if key == "guard cells":
        return "mask the store"
    if trial.view:
        return f"look whether each offset of {trial.case.argument} uses its strides"
    if as_given:
        return "the kernel and its reference differ as given: look at that first"
    if key == "never written":
        return "look at the mask of the store and at the grid's rounding"
    return "look at what lanes past the end hold: the other= of a load must be neutral for what follows"


def _fine(subject, names, left, trials, views_left):
    made = [trial for trial in trials if trial.launch is not None]
    launched, checked = sum(t.launched for t in trials), sum(t.checked and t.launched for t in trials)
    views = sum(t.view and t.launched for t in trials)
    text = f"{many(launched, 'launch')} in guarded memory, {views} of them on views"
    if names:
        text += f", with {' and '.join(names)} round the blocks"
    text += f": {checked} agree with the reference" if checked else ": nothing outside was touched, and views give the same values"
    if subject.reference is None:
        text += "; whether the values are right only a reference would show"
    if left:
        text += f"; not varied: {'; '.join(f'{name}, since {why}' for name, why in left.items())}"
    numbers = {"cases": len(trials), "launched": launched, "views": views, "checked": checked, "skipped": len(trials) - len(made)}
    numbers |= {"varied": list(names), "not_varied": left, "views_left_out": list(views_left)}
    verdict = "fine" if launched else "not visible here"
    if not launched:
        why = next((trial.why for trial in trials if trial.why), "the grid is empty")
        text = f"no case could be launched: {why}"
    return Note(RULE, verdict, text, machine.current().evidence, "boundaries", numbers=numbers)
