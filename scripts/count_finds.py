"""Count what `dry_run` finds: on faulty kernels and their right twins (kit/tests/faults) and on the zoo's kernels, which are right.

    python scripts/count_finds.py            the table of docs/dry_run.md, and each alarm and each missed fault by name
    python scripts/count_finds.py --list     every case, with what was found

Exits 1 when a fault that paper can see is missed, when a right kernel is alarmed, or when an expected miss is found after all.
"""

from __future__ import annotations

import argparse
import collections
import contextlib
import itertools
import sys

import torch
from triton.runtime import JITFunction

import kit
from kit.dry_run import dry_run
from kit.tests.faults import FAULTS
from kit.tests.zoo import CASES
from kit.tests.zoo_case import GUARD


def _bits(tensor):
    return tensor.contiguous().view(torch.uint8).clone() if isinstance(tensor, torch.Tensor) else None


def _unchanged(tensor, before):
    """How many elements have the bytes that they had before."""
    return int((_bits(tensor) == before).view(-1, tensor.dtype.itemsize).all(1).sum())


class Zoo:
    """The zoo's launches, each also made on paper.

    An output of the zoo ends in GUARD cells that no program writes. A first pass sees which tensors have them; on paper these are
    cut off as a view, so that touching one is an error and leaving it alone is none.
    """

    def __init__(self):
        self.launches = 0
        self.alarms, self.partial, self.unseen = [], [], []
        for case in CASES:
            guarded = []
            with self.launched(lambda number, args, guarded=guarded: guarded.append(self.guards(args))):
                case.run(**case.inputs())
            with self.launched(lambda number, args, case=case, guarded=guarded: self.on_paper(case, number, args, guarded[number])):
                case.run(**case.inputs())

    @contextlib.contextmanager
    def launched(self, look):
        """Inside, `look(number, args)` is called at each launch; the generator it returns is resumed when the launch is over."""
        original = JITFunction.__getitem__
        count = itertools.count()

        def launch(kernel, grid):
            def run(*args, **meta):
                self.kernel, self.grid, self.meta = kernel, grid, meta
                steps = look(next(count), args) or self.last
                next(steps)
                original(kernel, grid)(*args, **meta)
                next(steps, None)

            return run

        JITFunction.__getitem__ = launch
        try:
            yield
        finally:
            del JITFunction.__getitem__

    def guards(self, args):
        """The positions of tensors whose last cells the launch left alone."""
        found = set()

        def steps():
            before = [_bits(value) for value in args]
            yield
            for i, value in enumerate(args):
                one_axis = isinstance(value, torch.Tensor) and value.dim() == 1 and value.numel() > GUARD
                if (
                    one_axis
                    and _unchanged(value, before[i]) >= GUARD
                    and torch.equal(_bits(value[-GUARD:]), before[i][-GUARD * value.dtype.itemsize :])
                ):
                    found.add(i)

        self.last = steps()
        return found

    def on_paper(self, case, number, args, guarded):
        before = [_bits(value) for value in args]
        outputs = {i for i in guarded if not self.read_in(args, i)}
        given = [value[:-GUARD] if i in outputs else value for i, value in enumerate(args)]
        report = dry_run(self.kernel, self.grid, *given, **self.meta)
        self.launches += 1
        yield
        named = dict(zip(self.kernel.arg_names, zip(args, before, strict=True), strict=False))
        for finding in report.findings:
            if finding.hazard == "never written" and finding.true <= _unchanged(*named[finding.argument]):
                self.partial.append((case.name, finding))  # true: the zoo leaves these cells out on purpose, and the launch did
            elif finding.verdict in ("wrong", "fragile"):
                self.alarms.append((case.name, finding))
            elif finding.verdict == "not visible here":
                self.unseen.append((case.name, finding))

    def read_in(self, args, i):
        """Inputs keep all their cells too: only what is NaN, 77 or 0 at its end is an output with a guard."""
        tail = args[i][-GUARD:].to(torch.float32)
        return not bool((tail.isnan() | (tail == 77) | (tail == 0)).all())


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--list", action="store_true", help="every case, with what was found")
    options = parser.parse_args()
    kit.start()
    rules = collections.defaultdict(collections.Counter)
    bad = []
    for fault in FAULTS:
        report, twin = fault.report(), fault.twin_report()
        found, clean = fault.found_in(report), not fault.alarms_in(twin)
        row = rules[fault.rule]
        row["faulty"] += 1
        row["found" if found else "missed"] += 1
        row["expected misses"] += not fault.visible
        row["alarms"] += not clean
        if found != fault.visible or not clean:
            bad.append(
                f"{fault.name}: {'an alarm on the right twin' if not clean else 'found' if found else 'missed'}: {report!r} / {twin!r}"
            )
        if options.list:
            print(f"{fault.rule:4} {fault.name:44} {fault.verdict:17} {fault.hazard:22} {'found' if found else 'not found'}")
    print("| rule | faulty kernels | found | missed, as expected | right twins | alarms |\n|---|---|---|---|---|---|")
    for rule, row in rules.items():
        print(f"| {rule} | {row['faulty']} | {row['found']} | {row['missed']} | {row['faulty']} | {row['alarms']} |")
    total = sum(rules.values(), collections.Counter())
    print(f"| all | {total['faulty']} | {total['found']} | {total['missed']} | {total['faulty']} | {total['alarms']} |")
    zoo = Zoo()
    print(
        f"\nThe zoo: {len(CASES)} cases, {zoo.launches} launches: {len(zoo.alarms)} alarms, {len(zoo.unseen)} not visible here, "
        f"{len(zoo.partial)} outputs truly written in part."
    )
    for name, finding in zoo.alarms + zoo.unseen:
        print(f"  {name}: {finding!r}")
    print("\n".join(bad))
    sys.exit(1 if bad or zoo.alarms else 0)


if __name__ == "__main__":
    main()
