"""`ReportCard`: what `examine` saw of a kernel, rule by rule. Prints as text, draws itself in Jupyter, is kept as JSON."""

from __future__ import annotations

import html
import json
import os
import textwrap
from collections import Counter
from dataclasses import dataclass, field

from kit import machine
from kit.errors import BadInput, quoted
from kit.evidence import label_html
from kit.picture_base import number
from kit.rules import RULES, rule_of
from kit.rules.note import VERDICTS, Note

FORMAT = 1
WIDTH = 110
_MARKS = {"wrong": "✗", "fragile": "!", "not visible here": "?", "plan": "→", "fine": "✓"}
_COLOURS = {"wrong": "#B34700", "fragile": "#7A5C00", "not visible here": "#555555", "plan": "#00507A", "fine": "#00664B"}


@dataclass
class ReportCard:
    """What `examine` saw. True when nothing is wrong.

    `notes` are all Notes in the order of the rules; `sizes` the sizes that were looked at, `meta` the constexprs and options as text.
    `file` and `first_line` say where the kernel stands (a Note's line counts from its first decorator). `seconds` is {group: time on this
    machine's CPU}, in which kit.rules.GROUPS names the groups.
    """

    kernel: str
    notes: list[Note]
    sizes: list[dict]
    meta: dict = field(default_factory=dict)
    machine: str = ""
    versions: dict = field(default_factory=dict)
    file: str = ""
    first_line: int = 1
    seconds: dict = field(default_factory=dict)

    def __bool__(self):
        return not self.told("wrong")

    def told(self, verdict):
        """The Notes of one verdict."""
        if verdict not in VERDICTS:
            raise BadInput(f"told: verdict must be one of {', '.join(VERDICTS)}; got {quoted(verdict)}.")
        return [note for note in self.notes if note.verdict == verdict]

    def of(self, rule):
        """The Notes of one rule, 1 to 13."""
        return [note for note in self.notes if note.rule == rule]

    def verdict(self, rule):
        """The worst verdict of one rule; "not visible here" for a rule that was not looked at."""
        found = [note.verdict for note in self.of(rule)]
        return min(found, key=VERDICTS.index) if found else "not visible here"

    def without(self, *allowed):
        """The card without the Notes named in `allowed`, each "RULE:key" such as "10:tf32": what a team has looked at and accepts."""
        for name in allowed:
            number, _, key = str(name).partition(":")
            if not number.isdigit() or not 1 <= int(number) <= len(RULES) or not key:
                raise BadInput(f'without: name a finding by its rule and key, such as "10:tf32"; got {quoted(name)}.')
        kept = [note for note in self.notes if f"{note.rule}:{note.key}" not in allowed]
        return ReportCard(**{**vars(self), "notes": kept})

    @property
    def rules(self):
        """The rules that were looked at."""
        return [rule for rule in RULES if self.of(rule.number)]

    # ---- As data

    def data(self):
        """The card as JSON holds it."""
        rules = [
            {"rule": rule.number, "title": rule.title, "notebook": rule.notebook, "verdict": self.verdict(rule.number)}
            for rule in self.rules
        ]
        kept = {name: value for name, value in vars(self).items() if name != "notes"}
        return {"format": FORMAT, **kept, "rules": rules, "notes": [note.data() for note in self.notes]}

    def save(self, path):
        """Write the card to the JSON file `path`, whole or not at all, and return the path."""
        part = f"{path}.{os.getpid()}.part"
        with open(part, "w", encoding="utf-8") as file:
            json.dump(self.data(), file, indent=1, ensure_ascii=False)
            file.write("\n")
        os.replace(part, path)
        return path

    @classmethod
    def load(cls, path):
        """The card that `save` wrote. Raises BadInput for a file that holds none."""
        try:
            with open(path, encoding="utf-8") as file:
                told = json.load(file)
            if told.pop("format") != FORMAT:
                raise BadInput(f"load: {path} is a report card of another version of the kit; examine the kernel again.")
            told.pop("rules")
            return cls(**{**told, "notes": [Note(**note) for note in told["notes"]]})
        except (OSError, ValueError, KeyError, TypeError, AttributeError) as error:
            if isinstance(error, BadInput):
                raise
            raise BadInput(f"load: {path} is no report card that `save` wrote ({type(error).__name__}).") from None

    # ---- Display

    @property
    def summary(self):
        """How many Notes of each verdict, as a phrase; those that ask for nothing are left out."""
        counts = Counter(note.verdict for note in self.notes)
        told = [f"{counts[verdict]} {verdict}" for verdict in ("wrong", "fragile", "not visible here") if counts[verdict]]
        return ", ".join(told) or "nothing to mend"

    def __repr__(self):
        sizes = f"{len(self.sizes)} size{'' if len(self.sizes) == 1 else 's'}"
        worst = (self.told("wrong") + self.told("fragile"))[:1]
        first = f": rule {worst[0].rule}, {worst[0].text}" if worst else ""
        return f"{self.kernel} at {sizes}: {self.summary}{first}"

    def place(self, note):
        """Where a Note's line stands, as "file:line" that editors and CI understand; "" when it names none."""
        return f"{self.file}:{self.first_line + note.line - 1}" if note.line and self.file else ""

    @property
    def text(self):
        """The card as text for a terminal: a line a rule, its findings below."""
        lines = [f"{self.kernel} at {len(self.sizes)} size{'' if len(self.sizes) == 1 else 's'} on {self.machine}: {self.summary}"]
        for rule in self.rules:
            verdict = self.verdict(rule.number)
            lines += ["", f"{_MARKS[verdict]} {rule.number:2} {rule.title}: {verdict}   ({rule.notebook})"]
            for note in self.of(rule.number):
                place = self.place(note)
                told = f"{_MARKS[note.verdict]} {note.text} [{note.evidence}]" + (f" at {place}" if place else "")
                lines += textwrap.wrap(told, WIDTH, initial_indent="     ", subsequent_indent="       ", break_long_words=False)
                if note.source:
                    lines.append(f"         {note.line} | {note.source}")
        return "\n".join(lines) + "\n"

    def _repr_html_(self):
        rows = "".join(self._row(rule) for rule in self.rules)
        head = '<tr><th>rule</th><th style="text-align:left">verdict</th><th style="text-align:left">what was seen</th></tr>'
        sizes = "; ".join(", ".join(f"{name} = {number(value)}" for name, value in size.items()) for size in self.sizes[:6])
        more = f" and {len(self.sizes) - 6} more" if len(self.sizes) > 6 else ""
        about = f" at {html.escape(sizes)}{more}" if sizes else ""
        return (
            f"<p><b>{html.escape(self.kernel)}</b>{about}: <b>{self.summary}</b>.</p>"
            f'<table style="max-width:70em"><thead>{head}</thead><tbody>{rows}</tbody></table>'
        )

    def _row(self, rule):
        verdict = self.verdict(rule.number)
        left = 'style="text-align:left;vertical-align:top;white-space:normal"'
        told = "".join(f"<div>{self._told(note)}</div>" for note in self.of(rule.number))
        title = f'{rule.number} <a href="{rule.notebook}.ipynb">{html.escape(rule.title)}</a>'
        mark = f'<span style="color:{_COLOURS[verdict]};font-weight:bold">{_MARKS[verdict]} {verdict}</span>'
        return f"<tr><td {left}>{title}</td><td {left}>{mark}</td><td {left}>{told}</td></tr>"

    def _told(self, note):
        mark = f'<span style="color:{_COLOURS[note.verdict]}" title="{note.verdict}">{_MARKS[note.verdict]}</span>'
        source = f" Line {note.line}: <code>{html.escape(note.source)}</code>" if note.source and note.line else ""
        code = note.numbers.get("code", "")
        fold = f"<details><summary>the code</summary><pre>{html.escape(code)}</pre></details>" if code else ""
        return f"{mark} {html.escape(note.text)}{source} {label_html(note.evidence)}{fold}"


def lost(number, words):
    """The Note of a rule during which the sandbox's child ended: `words` say how."""
    text = f"{rule_of(number).title}: the child process that looked ended: {words}"
    return Note(number, "not visible here", text, machine.current().evidence, "child ended")
