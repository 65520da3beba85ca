"""`build`: what the compiler made of a kernel for the machine's target, by source line. Nothing is launched."""

from __future__ import annotations

import ast
import functools
import html
import linecache
import os
import textwrap
from collections import Counter
from dataclasses import dataclass, field

from kit import assembly, machine
from kit.compiling import CompileError, bind, compiled, tool
from kit.errors import BadInput, KitError, WrongType, expect_kernel, quoted
from kit.specialization import launches_variants, stand_in

__all__ = ["Build", "CompileError", "Excerpt", "build"]


def build(kernel, *args, **meta):
    """Compile `kernel` for the current machine's target and return what came out, as a Build. Nothing is launched.

    `args` are those of a launch: tensors on the machine's device, ghosts, numbers, bools, None; a torch dtype stands for an aligned
    tensor of it. `meta` takes constexprs and num_warps, num_stages, debug as a launch does. Raises BadInput for arguments that the
    kernel does not take, CompileError when Triton's compiler refuses the kernel.
    """
    here = machine.current()
    expect_kernel(kernel, verb="build")
    values, options = bind(kernel, args, meta, verb="build", device=here.device)
    return Build(kernel, compiled(kernel, values, options, verb="build"), launch=(tuple(map(stand_in, values)), options))


@dataclass
class Excerpt:
    """The instructions that one source line became, with the marked ones in front of the eye. True when there are any."""

    title: str
    lines: list
    mark: tuple = ()
    evidence: str = "compiled"

    @property
    def text(self):
        """The instructions, one a line."""
        return "\n".join(self.lines)

    @property
    def marked(self):
        """The instructions that hold one of the marked words."""
        return [line for line in self.lines if any(word in line for word in self.mark)]

    def __bool__(self):
        return bool(self.lines)

    def __len__(self):
        return len(self.lines)

    def __iter__(self):
        return iter(self.lines)

    def __contains__(self, word):
        return word in self.text

    def __repr__(self):
        marked = set(self.marked)
        body = [f"{'▸' if line in marked else ' '} {line}" for line in self.lines] or ["  (nothing: folded into other lines, or unused)"]
        return "\n".join([f"{self.title} [{self.evidence}]", *body])

    def _repr_html_(self):
        from kit.evidence import label_html

        body = html.escape(self.text) or "(nothing: folded into other lines, or unused)"
        for word in self.mark:
            word = html.escape(word)
            body = body.replace(word, f'<mark style="background:#FFE9A8;color:inherit;font-weight:bold">{word}</mark>')
        return (
            f'<div>{html.escape(self.title)} {label_html(self.evidence)}</div><pre style="margin:.3em 0 .6em;overflow-x:auto">{body}</pre>'
        )


@dataclass(eq=False)
class Build:
    """What the compiler made of a kernel, for one target and one set of argument classes. Evidence: compiled."""

    kernel: object = field(repr=False)
    compiled: object = field(repr=False)
    evidence: str = "compiled"
    launch: tuple = field(default=None, repr=False)  # (arguments, options): what a launch of `variants` does not give

    def variants(self, launches):
        """The Variants that `launches` need: the keys that Triton keeps kernels under, exactly. Nothing is compiled.

        A launch is a tuple of positional arguments, a dict of the arguments and options that differ from the build's own, or a pair
        of both; what it does not give is the build's own. Raises BadInput naming the first launch that cannot be used.
        """
        return launches_variants(self.kernel, launches, *self.launch)

    @property
    def name(self):
        return self.kernel.__name__

    @property
    def target(self):
        """The target it was compiled for, such as "cuda:90"."""
        target = self.compiled.metadata.target
        return f"{target.backend}:{target.arch}"

    @property
    def num_warps(self):
        return self.compiled.metadata.num_warps

    @property
    def shared_memory(self):
        """Bytes of shared memory a program takes."""
        return self.compiled.metadata.shared

    @property
    def ttir(self):
        return self.compiled.asm["ttir"]

    @property
    def ttgir(self):
        return self.compiled.asm["ttgir"]

    @property
    def llir(self):
        return self.compiled.asm["llir"]

    @property
    def ptx(self):
        return self.compiled.asm["ptx"]

    @property
    def sass(self):
        """The machine code as text. The first look takes about half a second: nvdisasm needs that long to start."""
        return "\n".join(one.text for one in self._sass)

    @functools.cached_property
    def _resources(self):
        text = tool("cuobjdump", self.compiled.asm["cubin"], "--dump-resource-usage")
        found = assembly.read_resources(text, self.compiled.metadata.name)
        if found is None:
            raise KitError(f"build: cuobjdump does not list the resources of {self.name}; its text begins {quoted(text)}.")
        return found

    @property
    def registers(self):
        """Registers a thread takes."""
        return self._resources.registers

    @property
    def stack(self):
        """Bytes of local memory a thread takes: spills, and local arrays if the kernel has any."""
        return self._resources.stack + self._resources.local

    @property
    def spills(self):
        """Bytes of local memory a thread takes because registers ran out: the stack less what the PTX itself asks for."""
        return max(0, self.stack - assembly.local_depot(self.ptx))

    @functools.cached_property
    def _ir(self):
        return assembly.read_ir(self.ttir)

    @functools.cached_property
    def _ttgir(self):
        return assembly.read_ir(self.ttgir)

    @functools.cached_property
    def _ptx(self):
        return assembly.read_ptx(self.ptx)

    @functools.cached_property
    def _sass(self):
        # asm["sass"] runs the same disassembler through cuobjdump, and leaves out the source lines.
        text = tool("nvdisasm", self.compiled.asm["cubin"], "--print-code", "--print-line-info-inline")
        return assembly.with_callers(assembly.read_sass(text), self._ptx)

    @functools.cached_property
    def accesses(self):
        """[Access]: the loads, stores and atomics of the PTX by source line; those of an inlined function count for the calling line."""
        return assembly.accesses(self._ptx, self.line_of, self.source)

    @functools.cached_property
    def barriers(self):
        """The source line of each barrier in the PTX, in order; a reduction brings its own."""
        return [self.line_of(one.frames) for one in self._ptx if assembly.is_barrier(one)]

    def bits(self, op, space="global"):
        """The widths of this kernel's "load", "store" or "atomic" instructions, in bits a thread, narrowest first."""
        return sorted({one.bits for one in self.accesses if one.op == op and one.space == space})

    # -- source lines

    @functools.cached_property
    def _file(self):
        """The file that the instructions name as the kernel's own. Triton's disk cache does not look at file names, so this may be
        the file of an earlier process, by now gone: a notebook cell has another one in every kernel process."""
        head = next((one for one in self._ir if one.text.startswith("tt.func public")), None)
        return head.frames[0][0] if head and head.frames else self.kernel.fn.__code__.co_filename

    @functools.cached_property
    def _lines(self):
        """{line number in its file: text} of the kernel, from its decorators on."""
        return {self.kernel.starting_line_number + i: text.rstrip() for i, text in enumerate(self.kernel.raw_src)}

    @functools.cached_property
    def _statements(self):
        """[(first line, last line)] of each simple statement, and of the head of each loop and branch; the docstring is left out."""
        tree, first = ast.parse(textwrap.dedent("".join(self.kernel.raw_src))), self.kernel.starting_line_number
        spans = []
        for node in ast.walk(tree.body[0]):
            docstring = isinstance(node, ast.Expr) and isinstance(node.value, ast.Constant)
            if isinstance(node, ast.stmt) and not isinstance(node, ast.FunctionDef) and not docstring:
                end = node.body[0].lineno - 1 if hasattr(node, "body") else node.end_lineno
                spans.append((first + node.lineno - 1, first + max(end, node.lineno) - 1))
        return sorted(spans)

    def line_of(self, frames):
        """The kernel's own line that an instruction with these frames belongs to; None when it belongs to none."""
        own = [line for file, line in frames if file == self._file and line in self._lines]
        return own[-1] if own else (frames[-1][1] if frames else None)

    def source(self, line, file=None):
        """The text of source line `line` of the kernel's file, or of another `file` that its instructions name."""
        if line is None:
            return ""
        if file in (None, self._file):
            return self._lines.get(line, linecache.getline(self.kernel.fn.__code__.co_filename, line)).strip()
        # A cell's file name ends in the hash of its text, so its copy in this process has the same last part.
        name = file if os.path.exists(file) else next((key for key in linecache.cache if _base(key) == _base(file)), file)
        return linecache.getline(name, line).strip()

    def _places(self, where):
        """{(file, line)} of the statement that `where` names: a line number, or a text that stands in it."""
        if isinstance(where, bool) or not isinstance(where, (int, str)):
            raise WrongType(f"build: where must be a line number or a piece of the source text; got {quoted(where)}.")
        if isinstance(where, int):
            if where not in self._lines:
                raise BadInput(f"build: line {where} is not in {self.name}, which has lines {min(self._lines)} to {max(self._lines)}.")
            spans = [span for span in self._statements if span[0] <= where <= span[1]] or [(where, where)]
        else:
            spans = [span for span in self._statements if where in "\n".join(self._lines[i] for i in range(span[0], span[1] + 1))]
        places = {(self._file, i) for first, last in spans for i in range(first, last + 1)}
        # A function that the kernel calls: look in the files its instructions come from.
        frames = {frame for one in self._ir for frame in one.frames} if not places else ()
        places |= {(file, line) for file, line in frames if where in self.source(line, file)}
        if not places:
            raise BadInput(f"build: {quoted(where)} stands in no line of {self.name} or of the functions it calls.")
        return places

    def _excerpt(self, stage, instructions, where, mark):
        places = self._places(where)
        first_file, first = min(places, key=lambda place: place[1])
        found = [one.text for one in instructions if places.intersection(one.frames)]
        words = (mark,) if isinstance(mark, str) else tuple(mark)
        return Excerpt(f"{stage} of line {first}: {self.source(first, first_file)}", found, words)

    def ir(self, where, mark=(), stage="ttir"):
        """The lines of Triton's IR that a source line became, as an Excerpt. `where` is a line number or a piece of the line's text,
        `mark` a word or words to mark, `stage` "ttir" or "ttgir". Raises BadInput when `where` is no line of the kernel."""
        if stage not in ("ttir", "ttgir"):
            raise BadInput(f'build: stage must be "ttir" or "ttgir"; got {quoted(stage)}.')
        return self._excerpt(stage.upper(), self._ir if stage == "ttir" else self._ttgir, where, mark)

    def ptx_at(self, where, mark=()):
        """The PTX instructions that a source line became, as `ir` gives the IR."""
        return self._excerpt("PTX", self._ptx, where, mark)

    def sass_at(self, where, mark=()):
        """The machine instructions that a source line became, as `ir` gives the IR.

        From Triton 3.8 the compiler's line table puts a load without a mask one or two lines too low; `ptx_at` corrects that, this cannot.
        """
        return self._excerpt("SASS", self._sass, where, mark)

    # -- display

    def __repr__(self):
        parts = [f"{self.registers} registers", f"{self.spills:,} bytes spilled", f"{self.shared_memory:,} bytes shared memory"]
        parts += [f"{op}s {_widths(self.bits(op))}" for op in ("load", "store", "atomic") if self.bits(op)]
        lines = sorted({line for line in self.barriers if line})
        at = f" ({'line' if len(lines) == 1 else 'lines'} {', '.join(map(str, lines))})" if lines else ""
        parts.append(f"{len(self.barriers)} barrier{'s' if len(self.barriers) > 1 else ''}{at}" if self.barriers else "no barrier")
        limit = machine.current().limits.shared_memory
        if self.shared_memory > limit:
            parts.append(f"more shared memory than the {limit:,} bytes a program can have: a launch is refused")
        return f"{self.name} for {self.target}: {', '.join(parts)} [{self.evidence}]"

    def _repr_html_(self):
        from kit.evidence import label_html

        rows = {}
        for one in self.accesses:
            if one.space in ("global", "generic"):
                width = f"{one.bits} bit" if one.bits else "bulk"
                rows.setdefault(one.line, []).append(f"{one.count} {one.op}{'s' if one.count > 1 else ''} of {width}")
        for line, n in Counter(self.barriers).items():
            rows.setdefault(line, []).append("barrier" if n == 1 else f"{n} barriers")
        left = '<td style="text-align:left">'
        cells = "".join(
            f'<tr><td style="text-align:right">{line or ""}</td>{left}<code>{html.escape(self.source(line))}</code></td>'
            f"{left}{', '.join(made)}</td></tr>"
            for line, made in sorted(rows.items(), key=lambda row: row[0] or 0)
        )
        head = '<tr><th>line</th><th style="text-align:left">source</th><th style="text-align:left">each thread</th></tr>'
        summary = html.escape(repr(self).rsplit(" [", 1)[0])
        return f"<div>{summary} {label_html(self.evidence)}</div><table>{head}{cells}</table>"


def _base(path):
    return path.rsplit("/", 1)[-1]


def _widths(widths):
    names = [str(bits) if bits else "bulk" for bits in widths]
    return (names[0] if len(names) == 1 else ", ".join(names[:-1]) + " and " + names[-1]) + " bit"
