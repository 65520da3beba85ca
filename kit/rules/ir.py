"""The compiled form of a Launch on paper: its program as read, and the arguments that the compiled kernel still takes."""

from __future__ import annotations

from kit import compiling
from kit.simulator.driver import live_arguments
from kit.simulator.launch import read_program


def prepared(subject, launch):
    """(the compiled kernel, its Program, [(argument, Triton type, value)]) of a Launch. Raises CompileError and Unsupported."""
    values, options = compiling.bind(subject.kernel, launch.args, launch.meta, verb="examine", device=subject.machine.device)
    compiled = compiling.compiled(subject.kernel, values, options, verb="examine")
    program = read_program(compiled.asm["ttir"], subject.kernel.fn.__code__.co_filename)
    return compiled, program, live_arguments(list(compiled.src.signature.items()), values)
