"""`Subject`: the kernel under examination, with ways to make its launches, real or as ghosts."""

from __future__ import annotations

import functools
import inspect
import itertools
import re
from dataclasses import dataclass, field

from kit import compiling, machine
from kit.dry_run import dry_run
from kit.errors import BadInput, quoted
from kit.rules.capture import captured
from kit.rules.on_paper import OnPaper, as_ghost
from kit.simulator.touched import touched
from kit.specialization import innermost

SMALL = 64 << 20  # bytes of tensors that a real launch of a rule may take
MANY = 1 << 18  # programs that it may have, so that it ends soon on a simulated GPU too


@dataclass
class Launch:
    """One launch of the kernel: `size` is what it was made from, `args` the positional arguments, `meta` constexprs and options."""

    size: dict
    args: tuple
    grid: tuple
    meta: dict
    named: dict

    @property
    def tensors(self):
        """{argument: tensor or ghost}."""
        return {name: value for name, value in self.named.items() if hasattr(value, "data_ptr")}

    @property
    def bytes(self):
        """Bytes that its tensors take, or would take."""
        return sum(value.numel() * value.element_size() for value in self.tensors.values())

    @property
    def programs(self):
        """How many programs it has."""
        return functools.reduce(int.__mul__, self.grid, 1)

    @property
    def told(self):
        """Its size in words, such as "tokens = 8, heads = 32"."""
        return ", ".join(f"{name} = {value:,}" if isinstance(value, int) else f"{name} = {value}" for name, value in self.size.items())


@dataclass
class Subject:
    """What the rules look at. `given` is the kernel as passed, perhaps inside an autotuner; `kernel` the @triton.jit function itself.

    With `grid` None, `make_args` calls the function that launches the kernel, and that launch is caught (kit.rules.capture).
    `sizes` is a list of dicts, smallest first as the user gave them; `make_args(**size)` returns the positional arguments of a launch,
    `grid` is a tuple or a function of the named arguments, `meta` holds constexprs and launch options, a plain function among them is
    called with the named arguments (so ask a Launch for its `meta`, it has the values), `reference(*args)` returns what
    the written arguments must hold: one tensor, a tuple of them in the order of the arguments, or {argument: tensor}; None: not known.
    """

    given: object
    make_args: object
    grid: object
    reference: object = None
    sizes: list = field(default_factory=list)
    meta: dict = field(default_factory=dict)
    tolerance: tuple | None = None

    def __post_init__(self):
        self.kernel = innermost(self.given)
        self.machine = machine.current()
        self._ghosts, self._reports, self._builds = {}, {}, {}
        self._launcher = self.make_args if self.grid is None else None
        self.dense = ()  # arguments that the reader's launcher makes contiguous
        if self._launcher:  # make_args calls the reader's launcher: its launch is caught, and read
            first = self._caught(self.sizes[0], on_paper=True)
            self.given, self.dense = first.given, first.dense
            self.make_args = lambda **size: self._caught(size, on_paper=OnPaper.active).args

    def _caught(self, size, on_paper):
        if not on_paper:
            return captured(self.kernel, lambda: self._launcher(**size), others=True)
        with OnPaper():
            return captured(self.kernel, lambda: self._launcher(**size), others=False)

    # ---- Launches

    def launch(self, size=None, **changed):
        """A Launch with real tensors, made anew: a rule may launch it. `size` defaults to `self.typical`; `changed` overrides options."""
        size = self.typical if size is None else size
        return self.launch_of(size, self.made(size), changed)

    def ghosts(self, size=None, **changed):
        """The same Launch on paper: floating tensors are ghosts of the same shape, strides and offset; small integer tensors are real."""
        size = self.typical if size is None else size
        key = repr((size, changed))
        if key not in self._ghosts:
            with OnPaper():
                args = self.made(size)
            self._ghosts[key] = self.launch_of(size, tuple(map(as_ghost, args)), changed)
        return self._ghosts[key]

    @functools.cached_property
    def typical(self):
        """The size for questions that one launch answers: the largest that fits SMALL, else the smallest there is."""
        by_bytes = sorted(self.sizes, key=lambda size: self.ghosts(size).bytes)
        small = [size for size in by_bytes if self.ghosts(size).bytes <= SMALL]
        return small[-1] if small else by_bytes[0]

    @functools.cached_property
    def smallest(self):
        """The size with the fewest bytes."""
        return min(self.sizes, key=lambda size: self.ghosts(size).bytes)

    @functools.cached_property
    def largest(self):
        """The size with the most bytes."""
        return max(self.sizes, key=lambda size: self.ghosts(size).bytes)

    def made(self, size):
        """The positional arguments that `make_args` makes for `size`, as a tuple."""
        made = self.make_args(**size)
        return tuple(made) if isinstance(made, (tuple, list)) else (made,)

    def launch_of(self, size, args, changed):
        """The Launch of these arguments, whoever made them, with the options in `changed` over the subject's own."""
        grid, meta = self.grid, {**self.meta, **changed}
        if self._launcher:
            caught = self._caught(size, on_paper=True)
            grid, meta = caught.grid, {**caught.meta, **meta}
        named = dict(zip(self.kernel.arg_names, args, strict=False))
        meta = _computed(self._tuned(named, meta), named)
        values, _ = compiling.bind(self.kernel, args, meta, verb="examine", device=self.machine.device)
        named = dict(zip(self.kernel.arg_names, values, strict=True))
        grid = grid(named) if callable(grid) else grid
        grid = (grid,) if isinstance(grid, int) else tuple(grid)
        return Launch(dict(size), tuple(args), grid, meta, named)

    def _tuned(self, named, meta):
        """`meta` with what decorators around the kernel would add: an autotuner's first configuration, heuristics' values."""
        around = self.given
        while around is not self.kernel:
            if hasattr(around, "configs"):
                first = around.configs[0].all_kwargs()
                meta = {**{key: value for key, value in first.items() if value is not None}, **meta}
            elif hasattr(around, "values") and isinstance(around.values, dict):
                for key, rule in around.values.items():
                    meta = {**meta, key: rule({**named, **meta})}
            around = around.fn
        return meta

    # ---- What several rules ask, asked once

    def report(self, size=None, **changed):
        """kit.dry_run's Report on the launch of `size` on paper."""
        launch = self.ghosts(size, **changed)
        key = repr((launch.size, changed))
        if key not in self._reports:
            self._reports[key] = dry_run(self.kernel, launch.grid, *launch.args, **launch.meta)
        return self._reports[key]

    def build(self, size=None, **changed):
        """kit.build's Build for the launch of `size`."""
        from kit.build import build

        launch = self.ghosts(size, **changed)
        key = repr((launch.size, changed))
        if key not in self._builds:
            self._builds[key] = build(self.kernel, *launch.args, **launch.meta)
        return self._builds[key]

    @functools.cached_property
    def touched(self):
        """{argument: Touch} (kit.simulator.touched) of the arguments that the kernel reads or writes."""
        from kit.rules.ir import prepared

        _, program, arguments = prepared(self, self.ghosts())
        return touched(program, [name for name, _, _ in arguments])

    @functools.cached_property
    def written(self):
        """Names of the arguments that the kernel stores to, in their order; [] when its pointers cannot be followed."""
        return [name for name in self.kernel.arg_names if name in self.touched and self.touched[name].written]

    # ---- Lines

    def line(self, number):
        """A line number of the kernel's file as a number that counts from its first decorator; None for a line outside the kernel."""
        if number is None:
            return None
        own = number - self.kernel.starting_line_number + 1
        return own if 1 <= own <= len(self.kernel.raw_src) else None

    def source(self, line):
        """The text of the kernel's own line `line`, counted from its first decorator."""
        return self.kernel.raw_src[line - 1].strip() if line else ""

    def told(self, text):
        """`text` with "line N" of the kernel's file counted from its first decorator."""
        return re.sub(r"\bline (\d+)\b", lambda found: f"line {self.line(int(found[1])) or found[1]}", text)


def _computed(meta, named):
    """`meta` with each plain function in it called with the named arguments: a BLOCK that depends on the row, as a launcher computes it."""
    given = {name: value for name, value in meta.items() if not inspect.isfunction(value)}
    return {name: value({**named, **given}) if name not in given else value for name, value in meta.items()}


def all_sizes(sizes):
    """`sizes` as a list of dicts: {name: value or values} becomes all combinations; a list of dicts stays. Raises BadInput."""
    if isinstance(sizes, dict) and sizes:
        axes = [list(values) if isinstance(values, (list, tuple, range)) else [values] for values in sizes.values()]
        found = [dict(zip(sizes, point, strict=True)) for point in itertools.product(*axes)]
    else:
        found = list(sizes) if isinstance(sizes, (list, tuple)) else []
    if not found or not all(isinstance(size, dict) and size for size in found):
        raise BadInput(
            f"examine: sizes must be {{name: values}}, such as {{'tokens': [1, 8192]}}, or a list of dicts, not empty; got {quoted(sizes)}."
        )
    return found
