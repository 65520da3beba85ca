"""Variants as a table: a row each, arguments and options as columns, changed cells marked. Drawn in the page's own colours."""

from __future__ import annotations

import html

from kit.evidence import label_html
from kit.variants import option_text

CHANGED = "◆"  # a sign beside the bold, so that the mark does not hang on how type looks


def variants_html(variants):
    """The table of a Variants: classes by argument, and the launches that need each variant."""
    head = html.escape(repr(variants).rsplit(" [", 1)[0])
    last = {"launches": lambda one: _indices(one.launches)} if variants.launches else {}
    return f"<p>{head} {label_html(variants.evidence)}</p>{_tables(list(variants), set(variants.arguments_that_vary), last)}"


def log_html(log):
    """The table of a JitLog: what changed, and how long the variant took on this machine's CPU."""
    head = html.escape(repr(log).rsplit(" [", 1)[0])
    last = {"what changed": lambda one: one.told, "from": _source, "seconds": _seconds}
    seen = {change.argument for one in log for change in one.changes}
    return f"<p>{head} {label_html(log.evidence)}</p>{_tables(list(log), seen, last)}"


def _source(one):
    return one.source + (f", {one.cause}" if one.cause not in (None, "launch") else "")


def _seconds(one):
    return "" if one.seconds is None else f"{one.seconds:.3f}"


def _indices(launches):
    shown = ", ".join(map(str, launches[:8]))
    return f"{shown}, … ({len(launches)} in all)" if len(launches) > 8 else shown


def _tables(variants, varying, last):
    """One table a kernel: their arguments differ."""
    names = list(dict.fromkeys(one.owner for one in variants))
    return "".join(_table([one for one in variants if one.owner == name], varying, last) for name in names)


def _table(variants, varying, last):
    arguments = list(variants[0].classes)
    options = list(dict.fromkeys(name for one in variants for name in one.written))
    title = f'<th style="text-align:left">{html.escape(variants[0].kernel)}</th>'
    head = title + "".join(_head(name, name in varying) for name in (*arguments, *options)) + "".join(_head(name) for name in last)
    rows = ""
    for number, one in enumerate(variants, 1):
        cells = [_cell(one, name, text, name in varying) for name, text in one.classes.items()]
        cells += [_cell(one, name, option_text(one, name), name in varying) for name in options]
        cells += [f"{_LEFT}{html.escape(text(one))}</td>" for text in last.values()]
        rows += f"<tr>{_LEFT}{number}</td>{''.join(cells)}</tr>"
    return f'<div style="overflow-x:auto"><table><tr>{head}</tr>{rows}</table></div>'


_LEFT = '<td style="text-align:left">'


def _head(name, strong=True):
    return f'<th style="text-align:left;{"" if strong else "font-weight:normal;opacity:.65"}">{html.escape(name)}</th>'


def _cell(one, name, text, varies):
    change = next((change for change in one.changes if change.argument == name), None)
    style, text = "text-align:left;white-space:nowrap", html.escape(text)
    if change is not None:
        return f'<td style="{style}" title="{html.escape(f"{change.before} before: {change.why}")}"><b>{CHANGED} {text}</b></td>'
    return f'<td style="{style}{"" if varies else ";opacity:.65"}">{text}</td>'
