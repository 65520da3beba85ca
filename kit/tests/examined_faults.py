"""The faulty kernels of kit.tests.faults and their right twins under all of `examine`'s rules: what is found, missed, and falsely alarmed.

Rules 1 to 10 are asked, in this process. Rules 11 to 13 plan, and say nothing of a kernel without a GPU. A fault is found when a note of
its own rule says wrong or fragile; a twin must get no such note of any rule.
"""

from __future__ import annotations

from dataclasses import dataclass, field

import torch

from kit import machine
from kit.ghosts import Ghost, ghost
from kit.rules import RULES
from kit.rules.child import notes
from kit.rules.subject import SMALL, Subject, all_sizes
from kit.tests.faults import FAULTS

ASKED = tuple(rule.number for rule in RULES if rule.number <= 10)
ALARM = ("wrong", "fragile")


@dataclass(frozen=True)
class Sized:
    """A launch that follows a size, for faults that one launch does not show: (make_args, grid, meta), and the sizes."""

    faulty: tuple
    right: tuple
    sizes: dict


def _mark(count):
    """make_args of kernels that take (out, then `count` numbers that follow m)."""
    return lambda m: (ghost(m, torch.int32), *(m,) * count)


def _programs(named):
    return (named["out_ptr"].shape[0],)


def _copied(tokens, *rest):
    return ghost((tokens, *rest), torch.float32), ghost((tokens, *rest), torch.float32)


_COUNTS = {"m": [1, 5, 16]}
_SEVEN = (lambda extra: (ghost(7, torch.int32), 7), _programs, {})
_VIEWED = (lambda offset: (ghost(60, torch.int32, offset=offset),), (60,), {})
_HEADS = (lambda tokens: (*_copied(tokens, 32, 128), 32), lambda named: (named["x_ptr"].shape[0], 32), {"D": 128})
_TILES = (lambda tokens: (*_copied(tokens, 4096), tokens), lambda named: (named["tokens"],), {"WIDTH": 4096, "BLOCK_T": 1})
_ROWS = (lambda rows: _copied(rows, 32), lambda named: (named["x_ptr"].shape[0],), {"D": 32})
_BLOCKS = (lambda rows: (*_copied(rows, 32), rows), lambda named: (-(-named["tokens"] // 64),), {"WIDTH": 32, "BLOCK_T": 64})
SIZED = {
    ("R4", "a view for a scalar store"): Sized(_VIEWED, _VIEWED, {"offset": [0, 1]}),
    ("R4", "a size as constexpr"): Sized(
        (_mark(0), _programs, {"M": lambda named: named["out_ptr"].shape[0]}), (_mark(1), _programs, {}), {"batch": [1, 3, 5]}
    ),
    ("R4", "an argument nobody reads"): Sized(
        (lambda extra: (ghost(7, torch.int32), 7, extra), _programs, {}), _SEVEN, {"extra": [1, 5, 16]}
    ),
    ("R4", "a count in three classes"): Sized((_mark(1), _programs, {}), (_mark(1), _programs, {}), _COUNTS),
    ("R8", "a program for each head"): Sized(_HEADS, _TILES, {"tokens": [1, 8192]}),
    ("R8", "a program for each short row"): Sized(_ROWS, _BLOCKS, {"rows": [64, 1 << 20]}),
}


def _wide(x):
    return x if x.dtype == torch.float64 else x.float()


def _masked(x):
    return torch.zeros_like(x) if (x == -torch.inf).all() else torch.softmax(x, 0)


# What a reader would pass as `reference`, where without one the fault is a number among numbers.
REFERENCES = {
    "0 under a maximum": lambda x, out, n: x.max().reshape(1),
    "padding in a variance": lambda x, out, n: x.var(unbiased=False).reshape(1),
    "a transposed matrix as flat": lambda x, *rest: x,
    "a sum in fp16": lambda x, out, *rest: _wide(x).sum().reshape(1),
    "squares in fp16": lambda x, out, *rest: _wide(x).pow(2).sum().reshape(1),
    "a softmax of -inf": lambda x, out, *rest: _masked(x),
    "a tanh by exponentials": lambda x, out, cap: cap * torch.tanh(x / cap),
    "a variance in one pass": lambda x, out, *rest: x.var(unbiased=False).reshape(1),
    "a product in tf32": lambda a, b, out: a @ b,
}

# Notes that are true of both kernels of a fault, and have nothing to do with it: they count neither as a find nor as a false alarm.
BESIDE = {
    ("reload halves in another layout", "10:nan"): "a row of zeros is divided by its length, with no eps",
    ("masked lanes multiplied", "10:tf32"): "both kernels multiply float32 and do not name the precision",
    ("R6", "8:tiny programs"): "these kernels store one number a program",
    ("R7", "8:tiny programs"): "these kernels move 256 bytes a program and less",
    ("R8", "4:class for nothing"): "the tiled kernel's count of tokens bounds whole rows, and its class makes nothing wider",
}
# And those that are true of the twin alone.
OF_TWINS = {
    ("words read at odd bytes", "9:misaligned"): "a view that begins at an odd byte has no words",
    ("words written at odd bytes", "9:misaligned"): "a view that begins at an odd byte has no words",
}

# Faults that another rule finds, since there the fault belongs, and those that none does.
ELSEWHERE = {
    ("R4", "words read at odd bytes"): "rule 9's: an address that no element begins at",
    ("R4", "words written at odd bytes"): "rule 9's: an address that no element begins at",
    ("R8", "a tile past the last token"): "rule 9's: what the tiling broke is a boundary",
    ("R8", "a grid rounded down"): "rule 9's: what the tiling broke is a boundary",
    ("R9", "0 under a maximum"): "rule 10's: only numbers below zero show it, and hard inputs have them",
}
MISSED = {
    ("R4", "a view after an aligned warm-up"): "one launch is right and one variant; rule 13 plans the second, with no verdict",
    ("R4", "no alignment anywhere"): "the kernel asks for it with do_not_specialize; that it costs width a benchmark would show",
}


@dataclass
class Seen:
    """What was seen of one fault: notes of its own rule, of other rules, and of its twin, as "RULE:key"; and what the first says."""

    fault: object
    found: list = field(default_factory=list)
    elsewhere: list = field(default_factory=list)
    alarms: list = field(default_factory=list)
    beside: list = field(default_factory=list)
    text: str = ""
    alarm_text: str = ""

    def data(self):
        """As JSON holds it."""
        own = {key: value for key, value in vars(self).items() if key != "fault"}
        return {
            "rule": self.fault.rule,
            "fault": self.fault.name,
            **own,
            "why": (ELSEWHERE | MISSED).get((self.fault.rule, self.fault.name), ""),
        }


def subject_of(fault, right=False):
    """The Subject of a fault, or of its right twin: its launch, with memory behind the ghosts where a rule launches it."""
    kernel, reference = (fault.right if right else fault.faulty), REFERENCES.get(fault.name)
    sized = SIZED.get((fault.rule, fault.name))
    if sized:
        make, grid, meta = sized.right if right else sized.faulty
        sizes = all_sizes(sized.sizes)
        return Subject(kernel, lambda **size: _real(make(*size.values())), grid, reference, sizes, meta)
    launch = (fault.right_launch if right else None) or fault.launch
    grid, _, meta = launch()
    return Subject(kernel, lambda: _real(launch()[1]), grid, reference, [{}], meta)


def _real(args):
    """The arguments, ghosts of small extent with memory and values, unless they are asked for on paper."""
    if torch.empty(0).is_meta:
        return args
    return tuple(_with_memory(value) if isinstance(value, Ghost) and value.ghost_extent()[1] <= SMALL else value for value in args)


def _with_memory(value):
    _, extent = value.ghost_extent()
    count = extent // value.element_size()
    generator = torch.Generator().manual_seed(count)
    flat = torch.randn(count, generator=generator) if value.dtype.is_floating_point else torch.zeros(count, dtype=value.dtype)
    return flat.to(value.dtype).to(machine.current().device).as_strided(tuple(value.shape), value.stride(), value.storage_offset)


def asked(live):
    """The rules that are asked: on a GPU those alone that launch nothing, since these kernels are wrong."""
    return [number for number in ASKED if not live or RULES[number - 1].group == "paper"]


def told(subject, numbers):
    """The wrong and fragile Notes of `subject`."""
    return [note for number in numbers for note in notes(subject, number) if note.verdict in ALARM]


def beside(fault, key, twin=False):
    """Why a note has nothing to do with the fault and is true, or None."""
    known = BESIDE | OF_TWINS if twin else BESIDE
    return known.get((fault.name, key)) or known.get((fault.rule, key))


def seen(fault, numbers=None):
    """The Seen of a fault and its twin."""
    numbers = numbers or asked(machine.current().live)
    one, own = Seen(fault), int(fault.rule[1:])
    for note in told(subject_of(fault), numbers):
        key = f"{note.rule}:{note.key}"
        if not beside(fault, key) or note.rule == own:
            (one.found if note.rule == own else one.elsewhere).append(key)
            one.text = one.text or note.text
    for note in told(subject_of(fault, right=True), numbers):
        key = f"{note.rule}:{note.key}"
        if not beside(fault, key, twin=True):
            one.alarms.append(key)
            one.alarm_text = one.alarm_text or note.text
        else:
            one.beside.append(f"{key}: {beside(fault, key, twin=True)}")
    for name in ("found", "elsewhere", "alarms", "beside"):
        setattr(one, name, list(dict.fromkeys(getattr(one, name))))
    return one


def measured(tell, kept=()):
    """The data of every fault, one after the other; `tell` gets a line of each. What `kept` holds, of an earlier run, is not made again."""
    done = {(one["rule"], one["fault"]): one for one in kept}
    for fault in FAULTS:
        if (fault.rule, fault.name) in done:
            yield done[fault.rule, fault.name]
            continue
        one = seen(fault)
        alarms = f"   ALARM {one.alarms}: {one.alarm_text}" if one.alarms else ""
        tell(f"{fault.rule:4}{fault.name:44}{', '.join(one.found) or '-':32}{', '.join(one.elsewhere):32}{alarms}", flush=True)
        yield one.data()
