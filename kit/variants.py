"""Variants of a kernel, as data: the class of each argument, what changed from one variant to the next and why, sets of variants.

Triton compiles a kernel once for each *key*: the classes of its arguments and the options written at the launch. Nothing here asks
Triton for anything: kit/specialization.py reads the keys, kit/variant_table.py draws them.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field, replace

from kit.errors import WrongType, quoted

__all__ = ["Change", "Variant", "Variants", "classes", "differences", "nearest", "why"]

FOLDED = "= 1"
MULTIPLE = ", ÷16"  # an int that 16 divides; a pointer whose address 16 bytes divide
CONSTEXPR = "constexpr "


@dataclass(frozen=True)
class Change:
    """One argument or option whose class differs between two variants: from what, to what, and why that is another key."""

    argument: str
    before: str
    after: str
    why: str

    @property
    def short(self):
        """The change without its reason, such as "n int32 → = 1"."""
        return f"{self.argument} {self.before} → {self.after}"

    def __repr__(self):
        return f"{self.short} ({self.why})"


@dataclass(eq=False)
class Variant:
    """One compiled form of a kernel: the class of each argument, the options, and the key that Triton keeps it under.

    `classes` is {argument: class text} in the kernel's order. `options` has num_warps, num_stages and whatever else the launch wrote,
    `written` only what it wrote: Triton's key holds that. Seen by a monitor: `seconds` of wall time on this machine's CPU until it
    was there (None when refused), `disk` (whether the disk cache served it; None when refused), `cause` ("launch", "warmup" or
    "autotune"), `refused`, `first` (the kernel had none before), `changes` against the nearest one before. From a list of launches:
    `launches`, the indices of those that need it. Two variants are equal when their kernel, target and key are.
    """

    kernel: str
    classes: dict
    options: dict = field(default_factory=dict)
    key: str = ""
    written: dict = field(default_factory=dict, repr=False)
    exact: dict = field(default_factory=dict, repr=False)  # {argument: its part of the key}: two functions may share a name
    owner: str = field(default="", repr=False)  # the kernel's full name and the target
    seconds: float | None = None
    disk: bool | None = None
    cause: str | None = None
    refused: bool = False
    first: bool = False
    changes: list = field(default_factory=list)
    launches: tuple = ()

    def __post_init__(self):
        self.key = self.key or repr((self.classes, self.written))
        self.exact = self.exact or dict(self.classes)
        self.owner = self.owner or self.kernel

    @property
    def identity(self):
        """What makes it this variant and no other: (kernel and target, Triton's key)."""
        return self.owner, self.key

    @property
    def source(self):
        """Where it came from: "compiled", "disk cache" or "refused"; "" when it was only computed."""
        return "refused" if self.refused else {True: "disk cache", False: "compiled", None: ""}[self.disk]

    def __eq__(self, other):
        return self.identity == other.identity if isinstance(other, Variant) else NotImplemented

    def __hash__(self):
        return hash(self.identity)

    @property
    def told(self):
        """What changed, in one phrase."""
        if self.first:
            return "its first variant"
        if not self.changes:
            return "a variant that it had before, and that is no longer in Triton's memory"
        return "; ".join(map(repr, self.changes))

    def __repr__(self):
        arguments = "; ".join(f"{name} {text}" for name, text in self.classes.items())
        options = "".join(f"; {name} {value}" for name, value in self.written.items())
        return f"{self.kernel}({arguments}{options})"


class Variants:
    """A set of variants, in the order in which they are first needed. False when empty.

    `a | b` is what either needs, `a - b` what a needs and b has not; b may be any iterable of Variant, such as a JitLog.
    """

    evidence = "compiled"

    def __init__(self, variants=()):
        found = {}
        for one in variants:
            known = found.get(one.identity)
            found[one.identity] = replace(one, launches=(*known.launches, *one.launches)) if known else one
        self._found = found

    def __len__(self):
        return len(self._found)

    def __bool__(self):
        return bool(self._found)

    def __iter__(self):
        return iter(self._found.values())

    def __contains__(self, variant):
        return isinstance(variant, Variant) and variant.identity in self._found

    def __eq__(self, other):
        return self._found.keys() == other._found.keys() if isinstance(other, Variants) else NotImplemented

    def __hash__(self):
        return hash(frozenset(self._found))

    def __or__(self, other):
        # The indices of two lists of launches say nothing side by side.
        return Variants(replace(one, launches=()) for one in (*self, *_variants(other)))

    def __sub__(self, other):
        taken = {one.identity for one in _variants(other)}
        return Variants(one for one in self if one.identity not in taken)

    @property
    def launches(self):
        """How many launches the set was made for."""
        return sum(len(one.launches) for one in self)

    @property
    def arguments_that_vary(self):
        """{argument or option: [class texts]} of those that differ between variants, each text once, in order of first need."""
        return _varying(list(self))

    def __repr__(self):
        if not self:
            return f"no variant [{self.evidence}]"
        names = list(dict.fromkeys(one.kernel for one in self))
        launches = f" for {self.launches} launch{'es' if self.launches > 1 else ''}" if self.launches else ""
        varying = "; ".join(f"{name}: {' | '.join(texts)}" for name, texts in self.arguments_that_vary.items())
        plural = "s" if len(self) > 1 else ""
        return f"{len(self)} variant{plural} of {' and '.join(names)}{launches}{': ' if varying else ''}{varying} [{self.evidence}]"

    def _repr_html_(self):
        from kit.variant_table import variants_html

        return variants_html(self)


def _variants(other):
    """The variants of the right side of | or -."""
    found = list(other) if isinstance(other, Iterable) else None
    if found is None or not all(isinstance(one, Variant) for one in found):
        raise WrongType(f"variants: the other side of | and - must be Variants, or a list of Variant; got {quoted(other)}.")
    return found


def _varying(variants):
    """{argument or option: [texts]} of what differs between `variants`."""
    first = {one.owner: one for one in reversed(variants)}  # what varies differs from the first of its kernel somewhere
    names = dict.fromkeys(change.argument for one in variants for change in differences(first[one.owner], one))
    return {name: list(dict.fromkeys(one.classes.get(name) or option_text(one, name) for one in variants)) for name in names}


# ---- Classes and what tells them apart


def classes(kernel, *args, **meta):
    """{argument: class text} of the launch `kernel[grid](*args, **meta)`, in the kernel's order, without compiling anything.

    Arguments are as in `build`. The texts: `= 1` (an int that Triton folds), `int32, ÷16`, `int32`, the same with int64 and uint64,
    `bool`, `float`, `None`, `*float16, ÷16` and `*float16` (a pointer at an address that 16 divides, and another), `constexpr 128`,
    and `(= 1; int32)` for a tuple. Raises BadInput as `build` does.
    """
    from kit.specialization import launch_variant

    return launch_variant(kernel, args, meta, verb="classes").classes


def differences(before, after):
    """[Change] of the arguments and options that `after` has in another class than `before`, arguments first."""
    found = [
        Change(name, before.classes.get(name, "absent"), text, why(before.classes.get(name, "absent"), text))
        for name, text in after.classes.items()
        if before.exact.get(name) != after.exact.get(name)
    ]
    for name in dict.fromkeys((*before.written, *after.written)):
        was, now = option_text(before, name), option_text(after, name)
        if was != now:
            found.append(Change(name, was, now, _why_option(before, after, name)))
    if not found and before.key != after.key:  # Triton's key is a text, and keeps the options in the order they were written
        was, now = (", ".join(one.written) or "none" for one in (before, after))
        reason = "the same options, written in another order" if was != now else "something else in the key, such as an added compiler pass"
        found.append(Change("options", was, now, reason))
    return found


def nearest(variant, known):
    """The member of `known` with the fewest arguments and options in another class, of those the least different; None of none."""

    def distance(one):
        changes = differences(one, variant)
        return len(changes), sum(len(set(change.before.split(", ")) ^ set(change.after.split(", "))) for change in changes)

    return min(reversed(list(known)), key=distance, default=None)  # the latest of several


def option_text(variant, name):
    """An option as the key holds it: its value, or the default's when the launch did not write it."""
    if name in variant.written:
        return f"{variant.written[name]}"
    return f"{variant.options[name]} by default" if name in variant.options else "by default"


def _why_option(before, after, name):
    if name in before.options and before.options[name] == after.options.get(name):
        now = "now" if name in after.written else "no longer"
        return f"the same {name}, {now} written at the launch: the key holds what is written"
    return f"another {name}"


def why(before, after):
    """Why an argument of class `after` needs another variant than one of class `before`: a short phrase. Both are class texts."""
    kinds = kind_of(before), kind_of(after)
    if kinds == ("tuple", "tuple"):
        return _why_tuple(before, after)
    if kinds == ("int", "int"):
        return _why_int(before, after)
    if kinds[0] != kinds[1]:
        if "None" in kinds:
            return "became None" if kinds[1] == "None" else "no longer None"
        return f"another type: {kinds[0]} before, {kinds[1]} now"
    if kinds[0] == "pointer":
        return _why_pointer(before, after)
    return {"constexpr": "another constexpr value", "function": "another function"}.get(kinds[0], "another type")


def kind_of(text):
    """What kind of argument a class text tells of: int, bool, float, None, pointer, constexpr, tuple, descriptor or function."""
    marks = {"*": "pointer", CONSTEXPR: "constexpr", "(": "tuple", "tensordesc": "descriptor", "function ": "function"}
    for mark, kind in marks.items():
        if text.startswith(mark):
            return kind
    if text == FOLDED or text.lstrip("u").startswith("int"):
        return "int"
    return "float" if text.lstrip("b").startswith("float") else text


def _why_int(before, after):
    if after.endswith(FOLDED):
        return "became 1, which Triton folds into the code" if after == FOLDED else "became 1, a class of its own"
    reasons = []
    was, now = (_width(text) for text in (before, after))
    if now != was:
        reasons.append({"int64": "needs 64 bits", "uint64": "needs 64 bits without a sign"}.get(now, "fits 32 bits again"))
    if before.endswith(FOLDED):
        reasons.insert(0, "no longer 1, which Triton had folded into the code" if before == FOLDED else "no longer 1")
    elif before.endswith(MULTIPLE) != after.endswith(MULTIPLE):
        reasons.append("now divisible by 16" if after.endswith(MULTIPLE) else "no longer divisible by 16")
    return ", ".join(reasons) or "another type"


def _width(text):
    return "int32" if text == FOLDED else text.split(",")[0]


def _why_pointer(before, after):
    reasons = ["another dtype"] if before.split(",")[0] != after.split(",")[0] else []
    if before.endswith(MULTIPLE) != after.endswith(MULTIPLE):
        reasons.append(f"the address is {'now' if after.endswith(MULTIPLE) else 'no longer'} divisible by 16 bytes")
    return ", ".join(reasons) or "another type"


def _why_tuple(before, after):
    was, now = before[1:-1].split("; "), after[1:-1].split("; ")
    if len(was) != len(now):
        return "a tuple of another length"
    at = next((i for i, (a, b) in enumerate(zip(was, now, strict=True)) if a != b), None)
    return "another tuple" if at is None else f"its element {at}: {why(was[at], now[at])}"
