"""Rule 4: the variants that the sizes need, and which arguments earn the class that makes them."""

from __future__ import annotations

import ast

from kit.build import CompileError
from kit.errors import KitError
from kit.rules.code import codes
from kit.rules.needed import count_without, needed
from kit.rules.note import Note
from kit.rules.stakes import compiled_as, stake
from kit.rules.tuning import widest
from kit.variants import kind_of

RULE = 4
MOST = 10  # classes that are compiled away: each takes one or two compilations of some 0.2 s
_ROWS = ("token", "batch", "row", "seq", "request", "prompt", "context")


def look(subject):
    """The Notes of rule 4."""
    variants, launches = needed(subject)
    code = codes(subject.kernel)[0]
    told = unknown_names(subject) + varying_constexprs(subject, variants, launches)
    try:
        told += at_one(subject, code, launches)
        told += classes_at_stake(subject, code, variants, launches)
        told += scalar_pointers(subject, variants)
    except KitError as error:
        words = str(error).split(": ", 1)[-1].rstrip(".")
        told.append(Note(RULE, "not visible here", f"what the classes are worth could not be compiled: {words}", "compiled", "no build"))
    return [*told, _count(variants, launches)]


def _count(variants, launches):
    varying = variants.arguments_that_vary
    numbers = {"variants": len(variants), "sizes": len(launches), "varying": {name: list(texts) for name, texts in varying.items()}}
    sizes = f"{len(launches)} size{'' if len(launches) == 1 else 's'}"
    if len(variants) == 1:
        return Note(RULE, "fine", f"{sizes} need one variant", "compiled", "variants", numbers=numbers)
    told = "; ".join(f"{name}: {' | '.join(texts[:5])}{' | ...' if len(texts) > 5 else ''}" for name, texts in varying.items())
    return Note(RULE, "fine", f"{sizes} need {len(variants)} variants, as {told}", "compiled", "variants", numbers=numbers)


# ---- What the decorator says


def unknown_names(subject):
    """Notes on names in do_not_specialize that exempt nothing: Triton takes them in silence."""
    found, kernel = [], subject.kernel
    constexprs = {p.name for p in kernel.params if p.is_constexpr}
    for option in ("do_not_specialize", "do_not_specialize_on_alignment"):
        for name in getattr(kernel, option) or ():
            if isinstance(name, str) and name not in kernel.arg_names:
                text = (
                    f"{option} names {name!r}, which no argument of {kernel.__name__} is called, and Triton says nothing: is it misspelt?"
                )
            elif isinstance(name, str) and name in constexprs:
                text = f"{option} names {name}, a constexpr: each of its values is compiled in all the same; make it a plain argument"
            else:
                continue
            found.append(Note(RULE, "fragile", text, "compiled", "exempts nothing", 1, subject.source(1)))
    return found


def varying_constexprs(subject, variants, launches):
    """Notes on a constexpr that follows a count of rows or tokens: every new value compiles."""
    found = []
    for parameter in subject.kernel.params:
        name = parameter.name
        values = list(dict.fromkeys(one.named[name] for one in launches if type(one.named[name]) is int))
        if not parameter.is_constexpr or len(values) < 2 or not any(n & (n - 1) for n in values):
            continue
        same = [key for key in subject.sizes[0] if all(one.size.get(key) == one.named[name] for one in launches)]
        counts = [key for key in same if any(word in key.lower() for word in _ROWS)]
        if not counts and (len(values) < 3 or len(values) < len({repr(one.size) for one in launches})):
            continue
        text = (
            f"{name} is a constexpr and takes {len(values)} values over the sizes ({', '.join(f'{n:,}' for n in values[:4])}"
            f"{', ...' if len(values) > 4 else ''}): each new one compiles; "
            + (
                f"{counts[0]} comes with every request, so make it a plain argument"
                if counts
                else "if requests decide it, make it a plain argument"
            )
            + f', with do_not_specialize=["{name}"]'
        )
        found.append(Note(RULE, "fragile", text, "compiled", "constexpr varies", numbers={"argument": name, "values": values}))
    return found


# ---- An argument of 1


def at_one(subject, code, launches):
    """Notes on arguments that must not be 1: Triton makes 1 a constant, which has no .to()."""
    found = []
    for parameter in subject.kernel.params:
        if parameter.is_constexpr or parameter.do_not_specialize:
            continue
        node = next((node for node in ast.walk(code.tree) if _method_of(node, parameter.name)), None)
        values = [one.named[parameter.name] for one in launches]
        if node is None or not all(type(value) is int for value in values):
            continue
        launch = next((one for one in launches if one.named[parameter.name] == 1), launches[0])
        name = parameter.name
        try:
            compiled_as(subject, launch, {name: 1})
        except CompileError as error:
            if "has no attribute" not in str(error):
                continue
            given = 1 in values
            line, source = code.place(node)
            text = (
                f"{name}.{node.func.attr}(...) does not compile where {name} is 1, which Triton makes a constant"
                f"{f', as at {launch.told}' if given else ''}: write tl.cast({name}, ...), or put it in do_not_specialize"
            )
            found.append(Note(RULE, "wrong" if given else "fragile", text, "compiled", "breaks at 1", line, source, {"argument": name}))
    return found


def _method_of(node, name):
    method = isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute)
    return method and isinstance(node.func.value, ast.Name) and node.func.value.id == name


# ---- What a class is worth


def classes_at_stake(subject, code, variants, launches):
    """Notes on the integers and pointers whose class varies: those that no wide access needs, and those that one does."""
    params = {p.name: p for p in subject.kernel.params}
    varying = {
        name: texts
        for name, texts in variants.arguments_that_vary.items()
        if name in params and not params[name].is_constexpr and all(kind_of(text) in ("int", "pointer") for text in texts)
    }
    exempt, keep, left, tried, wide = [], [], [], 0, widest(subject)
    for name in sorted(varying, key=lambda name: len(touching(code, name))):  # those used least first
        worst = None
        for launch in _representatives(name, variants, launches):
            if tried == MOST:
                worst = None
                break
            tried += 1
            launch = subject.ghosts(launch.size, **wide)
            worst = stake(subject, launch, [*[one for one in exempt if _special(launch, one)], name])
            if worst:
                break
        if worst is None:
            left.append(name)
        elif worst:
            keep.append(worst)
        else:
            exempt.append(name)
    return _useless(subject, code, variants, exempt) + [_kept(subject, one, varying) for one in keep] + _not_tried(left)


def _not_tried(names):
    if not names:
        return []
    text = f"whether {', '.join(names)} need their classes was not compiled, to save time: kit.build at a size of each class shows it"
    return [Note(RULE, "not visible here", text, "compiled", "not compiled", numbers={"arguments": names})]


def touching(code, name):
    """The places in the body where an argument is named."""
    return [node for node in ast.walk(code.tree) if isinstance(node, ast.Name) and node.id == name]


def _special(launch, name):
    value = launch.named[name]
    return hasattr(value, "data_ptr") or type(value) is int


def _representatives(name, variants, launches):
    """One launch for each class of `name` that tells the compiler something: of each, the one whose other arguments tell it most."""
    found = {}
    for variant in variants:
        text = variant.classes[name]
        if text == "= 1" or text.endswith("÷16"):
            told = sum(one == "= 1" or one.endswith("÷16") for one in variant.classes.values())
            if text not in found or told > found[text][0]:
                found[text] = (told, launches[variant.launches[0]])
    return [launch for _, launch in found.values()]


def _useless(subject, code, variants, exempt):
    found, all_of = [], len(variants)
    for name in exempt:
        after = count_without(variants, [name])
        together = count_without(variants, exempt)
        if after == all_of and together == all_of:
            continue
        pointer = kind_of(variants.arguments_that_vary[name][0]) == "pointer"
        option = "do_not_specialize_on_alignment" if pointer else "do_not_specialize"
        classes = " | ".join(variants.arguments_that_vary[name])
        with_others = f" ({together} with {' and '.join(one for one in exempt if one != name)} exempt too)" if len(exempt) > 1 else ""
        left = f"{all_of} variants become {after}{with_others}"
        if not touching(code, name):
            text = f"{name} varies ({classes}) and the kernel never reads it: delete it; {left}"
        else:
            text = f'{name} varies ({classes}) and no load or store gets narrower without its class: {left} with {option}=["{name}"]'
        numbers = {"argument": name, "variants": all_of, "without": after, "with all exempt": together}
        found.append(Note(RULE, "fragile", text, "compiled", "class for nothing", 1, subject.source(1), numbers))
    return found


def _kept(subject, one, varying):
    text = (
        f"{one.argument} varies ({' | '.join(varying[one.argument])}) and must keep its class: without it the {one.op} of "
        f"{one.before} bits a "
        f"thread would be {one.after}"
    )
    numbers = {"argument": one.argument, "bits": one.before, "without": one.after}
    return Note(RULE, "fine", text, "compiled", "class needed", one.line, subject.source(one.line), numbers)


def scalar_pointers(subject, variants):
    """A Note on pointers through which only single numbers go: an offset view compiles again, and alignment buys nothing."""
    params = {p.name: p for p in subject.kernel.params}
    launch = subject.ghosts()
    names = [
        name
        for name, touch in subject.touched.items()
        if touch.scalar_only
        and name in launch.tensors
        and not params[name].do_not_specialize
        and not params[name].do_not_specialize_on_alignment
    ]
    names = [name for name in names if name not in variants.arguments_that_vary]
    names = [name for name in subject.kernel.arg_names if name in names]
    if not names or stake(subject, launch, names):
        return []
    listed = ", ".join(f'"{name}"' for name in names)
    text = (
        f"single numbers go through {' and '.join(names)}, so alignment buys nothing, and a view that begins off 16 bytes compiles again: "
        f"do_not_specialize_on_alignment=[{listed}]"
    )
    return [Note(RULE, "plan", text, "compiled", "scalar pointer", 1, subject.source(1), {"arguments": names})]
