"""`shapes`: inputs for a kernel's test, proposed from its arguments and constants: sizes at the edges of its blocks, and views."""

from __future__ import annotations

import inspect
from dataclasses import dataclass, field

import torch

from kit import compiling, machine
from kit.errors import BadInput, WrongType, expect_kernel, quoted
from kit.shapes_layouts import LAYOUTS, Strided, bare, laid, laid_out, strided
from kit.shapes_report import Checked, inspect_case
from kit.shapes_sizes import Size, blocks_of, odd_size, proposed
from kit.simulator.driver import live_arguments
from kit.simulator.launch import read_program
from kit.simulator.touched import touched

__all__ = ["Case", "Cases", "Checked", "laid_out", "shapes"]


def shapes(kernel, make_args, sizes, **constants):
    """Return Cases: test inputs for `kernel`, to go over with `for`. Nothing is launched; the kernel is compiled once.

    `make_args(**sizes)` returns the positional arguments of a launch, tensors and numbers, for these sizes. `sizes` is {name: typical
    value}, or {name: range of the values that are allowed}. `constants` are the launch's constexprs and options. Proposed are, for
    each size, 0, 1, every block that cuts it and one more and one fewer, two blocks and a bit, and a prime; for each tensor a view at an
    odd address, and, where the kernel takes the strides as arguments, every second element, a transposed one and a slice of wider rows.
    Raises BadInput for arguments that no launch takes, CompileError where Triton refuses the kernel.
    """
    expect_kernel(kernel, verb="shapes")
    typical, allowed = _checked_sizes(sizes)
    _checked_maker(make_args, typical)
    plan = _Plan(kernel, make_args, typical, constants)
    found = {name: proposed(name, typical[name], allowed[name], blocks) for name, blocks in blocks_of(plan.constexprs(), typical).items()}
    cases = [plan.case([Size(name, value, ", as given") for name, value in typical.items()])]
    cases += [plan.case([size]) for name in found for size in found[name] if size.value != typical[name]]
    odd = [odd_size(name, typical[name], allowed[name]) for name in found]
    if len(odd) > 1 and any(size.value != typical[size.name] for size in odd):
        cases.append(plan.case(odd))
    for tensor in plan.tensors:
        cases += [plan.case(odd, tensor, layout) for layout in LAYOUTS[1:] if plan.accepts(tensor, layout)]
    return Cases(kernel.__name__, tuple(cases), tuple(plan.notes()))


def _checked_sizes(sizes):
    """({size: typical value}, {size: range or None}) of `sizes`."""
    if not isinstance(sizes, dict) or not sizes:
        raise WrongType(f'shapes: sizes must be a dict of names and values such as {{"n": 1000}}; got {quoted(sizes)}.')
    typical, allowed = {}, {}
    for name, value in sizes.items():
        whole = isinstance(value, int) and not isinstance(value, bool) and value >= 0
        span = isinstance(value, range) and len(value) > 0 and min(value) >= 0
        if not whole and not span:
            raise BadInput(f"shapes: sizes[{name!r}] must be a whole number or a range of allowed ones, zero or more; got {quoted(value)}.")
        typical[name], allowed[name] = (max(value), value) if span else (value, None)
    return typical, allowed


def _checked_maker(make_args, sizes):
    if not callable(make_args):
        raise WrongType(
            f"shapes: make_args must be a function of {', '.join(sizes)} that returns a launch's arguments; got {quoted(make_args)}."
        )
    try:
        inspect.signature(make_args).bind(**sizes)
    except TypeError as error:
        raise BadInput(f"shapes: make_args is called with {', '.join(f'{n}=' for n in sizes)} and cannot be: {error}.") from None


class _Plan:
    """What is known of the kernel and its arguments before the first case."""

    def __init__(self, kernel, make_args, typical, constants):
        self.kernel, self.make_args, self.typical, self.constants = kernel, make_args, typical, constants
        args = self.made(typical)
        values, options = compiling.bind(kernel, args, constants, verb="shapes", device=machine.current().device)
        self.values = dict(zip(kernel.arg_names, values, strict=True))
        compiled = compiling.compiled(kernel, values, options, verb="shapes")
        live = live_arguments(list(compiled.src.signature.items()), values)
        found = touched(read_program(compiled.asm["ttir"], kernel.fn.__code__.co_filename), [name for name, *_ in live])
        self.loaded = {name for name, touch in found.items() if touch.read}
        self.stored = {name for name, touch in found.items() if touch.written}
        self.strided = strided(self.values)
        self.tensors = list(self.strided)
        if not self.tensors:
            raise BadInput(f"shapes: make_args returned no tensor for {kernel.__name__}; return what a launch takes, tensors and numbers.")

    def made(self, sizes):
        """The arguments for `sizes`, as `make_args` makes them from the same random numbers each time."""
        with torch.random.fork_rng(devices=[torch.cuda.current_device()] if machine.current().live else []):
            torch.manual_seed(0)
            args = self.make_args(**sizes)
        if not isinstance(args, (tuple, list)):
            raise WrongType(f"shapes: make_args must return a tuple of the launch's positional arguments; got {quoted(args)}.")
        return args

    def constexprs(self):
        names = [p.name for p in self.kernel.params if p.is_constexpr]
        return {name: self.values[name] for name in names if name in self.values}

    def accepts(self, tensor, layout):
        return self.strided[tensor].accepts(layout, self.values[tensor].dim())

    def output(self, name):
        """True when the kernel stores to the argument and loads from nothing that is the same tensor."""
        same = [other for other in self.tensors if self.values[other] is self.values[name]]
        return any(n in self.stored for n in same) and not any(n in self.loaded for n in same)

    def case(self, sizes, tensor=None, layout="aligned"):
        changed = {**self.typical, **{size.name: size.value for size in sizes}}
        return Case(", ".join(size.text for size in sizes), changed, tensor, layout, self)

    def notes(self):
        """Why views are not proposed, a sentence a reason."""
        reasons = {}
        for name, its in self.strided.items():
            left = [layout for layout in LAYOUTS[2:] if Strided(dict.fromkeys(range(9), "")).accepts(layout, self.values[name].dim())]
            left = [layout for layout in left if not self.accepts(name, layout)]
            if left:
                reasons.setdefault((", ".join(left), its.why), []).append(bare(name))
        return [f"not proposed for {' and '.join(names)}: {left}, since {why}" for (left, why), names in reasons.items()]


@dataclass(eq=False)
class Case:
    """One input: `name` says which. `args` are made when first asked for, the same values each time, in guarded memory.

    `sizes` is what `make_args` is called with, `constants` the constexprs and options of the launch. `argument` and `layout` name the
    tensor that is a view, and how it lies. `launch(grid)` launches the kernel on these; `check()` says what happened to the memory.
    """

    size: str
    sizes: dict
    argument: str | None
    layout: str
    plan: _Plan = field(repr=False)
    _held: tuple | None = field(default=None, repr=False)

    @property
    def name(self):
        """Which case it is: "n = BLOCK + 1 = 1025, x offset by 1 element"."""
        how = {"transposed": "transposed", "padded rows": "a slice of wider rows"}.get(self.layout, self.layout)
        return self.size if self.argument is None else f"{self.size}, {bare(self.argument)} {how}"

    @property
    def args(self):
        """The launch's positional arguments, tensors in guarded memory."""
        return self._made()[0]

    @property
    def constants(self):
        """The launch's constexprs and options; a stride among them is that of the view."""
        return self._made()[1]

    @property
    def buffers(self):
        """{tensor argument: Buffer}, the memory that each lies in."""
        return self._made()[2]

    @property
    def tensors(self):
        """{tensor argument: the tensor that the kernel is given}."""
        return {name: buffer.view for name, buffer in self.buffers.items()}

    @property
    def outputs(self):
        """{tensor argument: tensor} of those that the kernel stores to."""
        return {name: tensor for name, tensor in self.tensors.items() if name in self.plan.stored}

    def fresh(self):
        """The same case with new arguments, as if nothing had been launched."""
        return Case(self.size, self.sizes, self.argument, self.layout, self.plan)

    def launch(self, grid):
        """Launch the kernel on `args`, wait for it, and return `check()`. `grid` is a tuple, or a function of the arguments' dict."""
        self.plan.kernel[grid](*self.args, **self.constants)
        return self.check()

    def check(self, expected=None):
        """Checked: cells overwritten outside the tensors, and elements of outputs never written. True when there are none.

        `expected`, a tensor for the one output or {argument: tensor}, is compared with what was written, with the tolerance that
        torch.testing.assert_close has for the dtype. Without it, a one-byte integer output that holds the poison counts as not written.
        """
        if machine.current().live:
            torch.cuda.synchronize()
        return inspect_case(self, self._expected(expected))

    def _expected(self, expected):
        if expected is None or isinstance(expected, dict):
            return expected or {}
        if not isinstance(expected, torch.Tensor) or len(self.outputs) != 1:
            raise WrongType(
                f"shapes: expected must be a tensor for a kernel with one output, or a dict of {', '.join(self.outputs)} and tensors; "
                f"got {quoted(expected)}."
            )
        return dict.fromkeys(self.outputs, expected)

    def _made(self):
        if self._held is None:
            plan = self.plan
            given = list(plan.made(self.sizes))
            values, _ = compiling.bind(plan.kernel, given, plan.constants, verb="shapes", device=machine.current().device)
            values = dict(zip(plan.kernel.arg_names, values, strict=True))
            buffers, once = {}, {}
            for name in plan.tensors:
                tensor = values[name]
                same = once.setdefault((tensor.data_ptr(), tuple(tensor.shape), tensor.stride()) if tensor.numel() else id(tensor), name)
                if same == name:
                    views = [other for other in plan.tensors if values[other] is tensor]
                    layout = self.layout if self.argument in views else "aligned"
                    buffers[name] = laid(tensor, layout, output=plan.output(name))
                else:
                    buffers[name] = buffers[same]
            changed = {name: buffer.view for name, buffer in buffers.items()}
            if self.argument:
                its = plan.strided[self.argument]
                changed |= {stride: buffers[self.argument].strides[axis] for axis, stride in its.axes.items()}
            args = tuple(changed.get(name, value) for name, value in zip(plan.kernel.arg_names, given, strict=False))
            constants = {name: changed.get(name, value) for name, value in plan.constants.items()}
            self._held = args, constants, buffers
        return self._held

    def __repr__(self):
        return f"{self.plan.kernel.__name__}: {self.name}"


@dataclass(frozen=True)
class Cases:
    """What `shapes` proposes: go over it with `for`, or take `cases[i]`. `notes` says which views are not among them, and why."""

    kernel: str
    cases: tuple
    notes: tuple = ()

    def __iter__(self):
        return iter(self.cases)

    def __len__(self):
        return len(self.cases)

    def __getitem__(self, i):
        return self.cases[i]

    def __repr__(self):
        views = sum(case.argument is not None for case in self.cases)
        left = f"; {'; '.join(self.notes)}" if self.notes else ""
        return f"{len(self)} cases for {self.kernel}: {len(self) - views} of sizes, {views} of views{left}"

    def _repr_html_(self):
        from kit.shapes_report import cases_html

        return cases_html(self)
