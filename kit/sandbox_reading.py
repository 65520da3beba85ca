"""From how a child ended to an Outcome: the kind, the message, and the source line."""

from __future__ import annotations

import ast
import os
import re
import signal

from kit.outcome import Line, Outcome

_SIGNALS = {
    signal.SIGSEGV: "a segmentation fault: the process touched memory that is not its own",
    signal.SIGBUS: "a bus error: the process touched memory that is not there",
    signal.SIGABRT: "a library gave up (abort)",
    signal.SIGFPE: "an arithmetic error, such as an integer division by zero",
    signal.SIGILL: "an instruction that this processor does not know",
    signal.SIGKILL: "killed from outside, perhaps because the machine ran out of memory",
}
# CUDA's own line for a failed assert in a kernel: file:line: function: block: [x,y,z], thread: [x,y,z] Assertion `text` failed.
_ASSERTION = re.compile(r"^(.*?):(\d+): (.*?): block: \[.*?\], thread: \[.*?\] Assertion `(.*?)` failed", re.MULTILINE)
# The simulated GPU's: "...: line 7: text: program (0, 0, 0) reads ..." and "...; line 7: text; program (0, 0, 0)."
_SIMULATED = re.compile(r"line (\d+): (.*?)[:;] (?=program \()")


def outcome_of(ended, texts, timeout, memory_given):
    """Return the Outcome of a run that Ended. `texts` are the job's, with the files they lie in."""
    clean = _Paths(texts)
    outcome = Outcome("ok", stdout=clean(ended.stdout), stderr=clean(ended.stderr), seconds=ended.seconds)
    if ended.result is None:
        _read_death(outcome, ended, texts, timeout, memory_given)
    elif ended.result["kind"] == "ok":
        outcome.value, outcome.text = ended.result["value"], clean(ended.result["text"])
    else:
        _read_error(outcome, ended, texts, clean)
    return outcome


def _read_death(outcome, ended, texts, timeout, memory_given):
    if ended.killed_for == "time":
        outcome.kind, outcome.message = "hang", f"no end within {timeout:g} s"
        outcome.line = _hanging_statement(ended.faults, texts[-1])
    elif ended.killed_for == "memory":
        outcome.kind = "out of memory"
        outcome.message = "the cell took more memory than " + (f"the {memory_given / 1e9:g} GB given" if memory_given else "a sandbox may")
    elif os.WIFSIGNALED(ended.status):
        number = os.WTERMSIG(ended.status)
        outcome.kind, outcome.signal = "crashed", signal.Signals(number).name
        outcome.message = f"{outcome.signal}, {_SIGNALS.get(number, 'a signal that ends a process')}"
    else:
        outcome.kind = "crashed"
        outcome.message = f"the process ended itself with code {os.waitstatus_to_exitcode(ended.status)}"
    if outcome.line is None:
        outcome.line = _innermost(ended.faults, texts)
    if outcome.signal is None and ended.killed_for:
        outcome.signal = "SIGKILL"
    outcome.error = outcome.message


def _read_error(outcome, ended, texts, clean):
    result = ended.result
    outcome.kind, outcome.message = result["kind"], clean(result["message"])
    if result["frame"]:
        outcome.line = _line(texts, *result["frame"])
    if result["kernel"]:
        outcome.line = _line_of_def(texts, *result["kernel"][:2]) or outcome.line
    if found := _SIMULATED.search(outcome.message):
        number, text = int(found[1]), found[2]
        outcome.line = _line_with(texts, number, text)
        outcome.message = outcome.message.replace(found[0], "", 1)
    if outcome.kind == "assert" and (found := _ASSERTION.search(ended.stderr)):
        outcome.message = found[4]
        outcome.line = _asserted(texts, found[1], int(found[2]), found[3]) or outcome.line
    for said in ("illegal memory access: ", "device-side assert: "):  # the kind has said it
        outcome.message = outcome.message.removeprefix(said)
    outcome.error = f"{result['type']}: {outcome.message}" if outcome.message else result["type"]


class _Paths:
    """Takes the folders of the sources out of a text: they are hashes, and differ between machines."""

    def __init__(self, texts):
        self.folders = {os.path.dirname(text.file) + os.sep for text in texts}

    def __call__(self, text):
        for folder in self.folders:
            text = text.replace(folder, "")
        return text


def _line(texts, file, number):
    """The Line at `number` of a file: of a function of another cell, or of the cell."""
    text = next((text for text in texts if text.file == file), None)
    if text is None:
        return None
    lines = text.text.split("\n")
    return Line(_function_at(text.text, number), number, lines[number - 1] if number <= len(lines) else "")


def _function_at(source, number):
    """The name of the innermost function around a line, or ""."""
    found = ""
    for node in _definitions(source):
        first = min([node.lineno, *(decorator.lineno for decorator in node.decorator_list)])
        if first < number <= node.end_lineno or node.lineno == number:
            found = node.name
    return found


def _definitions(source):
    try:
        return [node for node in ast.walk(ast.parse(source)) if isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef))]
    except SyntaxError:
        return []


def _line_of_def(texts, function, number):
    """The Line that is `number`-th from the `def` of a function, as Triton's compiler counts."""
    for text in reversed(texts):
        for node in _definitions(text.text):
            if node.name == function:
                return _line(texts, text.file, node.lineno + number - 1)
    return None


def _line_with(texts, number, stripped):
    """The Line at `number` whose text is `stripped`; where no source has it there, a Line of no function."""
    for text in reversed(texts):
        lines = text.text.split("\n")
        if number <= len(lines) and lines[number - 1].strip() == stripped:
            return _line(texts, text.file, number)
    return Line("", number, stripped)


def _asserted(texts, file, number, function):
    """The Line of CUDA's assertion. The file may be that of an earlier compilation: then the function tells, if the line fits."""
    for text in reversed(texts):
        if os.path.basename(os.path.dirname(file)) == os.path.basename(os.path.dirname(text.file)) or text.file == file:
            return _line(texts, text.file, number)
    for text in reversed(texts):
        for node in _definitions(text.text):
            if node.name == function and node.lineno <= number <= node.end_lineno:
                return _line(texts, text.file, number)
    return None


def _frames(faults):
    """[(file, line, function)] of the current thread's stack as faulthandler wrote it, innermost first."""
    current = faults.rsplit("Current thread", 1)[-1]  # of a fatal signal; where the time was up, of all threads
    return [(file, int(number), name) for file, number, name in re.findall(r'File "(.*?)", line (\d+) in (.*)', current)]


def _innermost(faults, texts):
    files = {text.file for text in texts}
    return next((_line(texts, file, number) for file, number, _ in _frames(faults) if file in files), None)


def _hanging_statement(faults, cell):
    """The top-level statement of the cell that did not end: the one line of a loop that does not depend on when we looked."""
    for file, number, name in reversed(_frames(faults)):
        if file == cell.file and name == "<module>":
            body = ast.parse(cell.text).body
            first = max((node.lineno for node in body if node.lineno <= number), default=number)
            return _line([cell], file, first)
    return None
