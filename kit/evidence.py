"""How we know: the four evidence words, their labels, and `claim`.

`python -m kit.evidence LEDGER.jsonl` prints the table of claims by notebook, machine and version, and fails when one did not hold.
"""

from __future__ import annotations

import html
import math
import re
import sys
from dataclasses import dataclass, field

from kit.errors import BadInput, KitError, WrongType, quoted
from kit.ledger import WORDS, enter, main, notebook, shell, summary

__all__ = ["MEANING", "WORDS", "Claim", "ClaimFailed", "claim", "label", "label_html", "notebook", "summary", "word_of"]
MEANING = {
    "measured": "on the GPU in this machine, now",
    "recorded": "on a named GPU, on a date, with named versions",
    "compiled": "read off what Triton's compiler produced for the target; needs no GPU",
    "simulated": "the compiler's IR executed on the CPU; never a time",
}
_TAG = (
    "display:inline-block;border:1px solid currentColor;border-radius:3px;padding:0 .4em;font-size:.8em;line-height:1.5;"
    "white-space:nowrap;opacity:.75"
)


class ClaimFailed(KitError, AssertionError):
    """A statement of the lesson that does not hold here, or that rests on a recording of other code."""


def word_of(evidence, verb="evidence"):
    """The evidence word of `evidence`: one of WORDS, or an object that has one as `.evidence`. Raises BadInput otherwise."""
    word = evidence if isinstance(evidence, str) else getattr(evidence, "evidence", None)
    if isinstance(word, str) and word in WORDS:
        return word
    raise BadInput(f"{verb}: evidence must be one of {', '.join(WORDS)}, or a result that carries one; got {quoted(evidence)}.")


def label(evidence, detail=""):
    """The label in text: "[simulated]", or with `detail` "[recorded on NVIDIA H200, 2026-11-30]"."""
    return f"[{word_of(evidence, 'label')}{' ' + detail if detail else ''}]"


def label_html(evidence, detail=""):
    """The label as a small tag; hovering it shows what the word means."""
    word = word_of(evidence, "label_html")
    text = html.escape(f"{word} {detail}".strip())
    return f'<span style="{_TAG}" title="{html.escape(MEANING[word])}">{text}</span>'


@dataclass
class Claim:
    """A statement of the lesson and whether it held. True when it held."""

    text: str
    holds: bool
    evidence: str
    detail: str = ""
    elsewhere: str = ""  # a time of another GPU did not hold on this one
    _shown_in: object = field(default=None, repr=False, compare=False)

    def __bool__(self):
        return self.holds

    def __repr__(self):
        if self.elsewhere:
            return f"≠ {self.text} {label(self.evidence, self.detail)}: not on this GPU; it held on {self.elsewhere}"
        return f"{'✓' if self.holds else '✗'} {self.text} {label(self.evidence, self.detail)}"

    def _repr_html_(self):
        text = re.sub(r"`([^`]+)`", r"<code>\1</code>", html.escape(self.text))
        mark = '<b style="color:#0072B2">✓</b>' if self.holds else '<b style="color:#D55E00">✗ does not hold:</b>'
        if self.elsewhere:
            tail = f" not on this GPU; it held on {html.escape(self.elsewhere)}"
            return f"<div><b>≠</b> {text} {label_html(self.evidence, self.detail)}{tail}</div>"
        return f"<div>{mark} {text} {label_html(self.evidence, self.detail)}</div>"

    def _ipython_display_(self):
        # `claim` has shown its line already; when it is also the last value of that cell, once is enough.
        cell = _running_cell()
        if cell is None or cell != self._shown_in:
            from IPython.display import display

            display({"text/plain": repr(self), "text/html": self._repr_html_()}, raw=True)
        self._shown_in = cell


def claim(text, holds, evidence=None):
    """Show one line that says whether `text` holds, and return it as a Claim; raise ClaimFailed when it does not.

    `holds` is one truth value: a bool, a tensor of one element, a result such as a Report. `evidence` is an evidence word or the result
    that shows the statement (a Recording, a Build); by default that of the machine: measured or simulated. Every claim goes into the
    ledger. A claim on times that were recorded on one GPU and measured on another may differ there: its line says so, and nothing is
    raised. Raises BadInput when a value cannot be used, and ClaimFailed also when a recording is stale.
    """
    from kit import machine

    if not isinstance(text, str) or not text.strip():
        raise WrongType(f"claim: text must be the statement, as a string; got {quoted(text)}.")
    here = machine.current()
    word = _checked_word(evidence, here)
    stale = bool(getattr(evidence, "stale", False))
    made = Claim(text, _one_truth(holds, text), word, getattr(evidence, "detail", "") if word == "recorded" else "")
    made.elsewhere = "" if made else getattr(evidence, "elsewhere", "")
    enter(_entry(made, stale, here))
    if stale:
        raise ClaimFailed(f'claim: "{text}" rests on a stale recording ({evidence!r}); run `make record` on a GPU to measure it again.')
    _show(made)
    if not made and not made.elsewhere:
        versions = f"Triton {here.versions['triton']}, torch {here.versions['torch']}"
        raise ClaimFailed(f'claim: "{text}" does not hold here ({made.evidence}, {here.name}, {versions}).')
    return made


def _checked_word(evidence, here):
    if evidence is None:
        return here.evidence
    word = word_of(evidence, "claim")
    if word == "recorded" and isinstance(evidence, str):
        raise BadInput('claim: evidence="recorded" names no recording; pass the Recording itself, so that its age can be checked.')
    if word == "measured" and not here.live:
        raise BadInput(f"claim: nothing can be measured here, {here.name} is simulated; leave evidence out, or pass a Recording.")
    return word


def _one_truth(holds, text):
    """`holds` as a bool. A tensor of several elements, a text, a list, None or nan is no truth value of a statement."""
    wrong = f'claim: holds must be one truth value for "{text}"; got {quoted(holds)}'
    if hasattr(holds, "shape") and hasattr(holds, "item"):
        if math.prod(holds.shape) != 1:
            raise BadInput(f"{wrong}. Reduce it with .all() or .any().")
        if str(getattr(holds, "device", "")) == "meta":
            raise BadInput(f"{wrong}. It has no values; compute it on real memory.")
        holds = holds.item()
    if holds is None or isinstance(holds, (str, bytes, type)) or not hasattr(type(holds), "__bool__"):
        raise WrongType(f"{wrong} ({type(holds).__name__}). Pass a comparison, or a result of the kit.")
    if isinstance(holds, float) and math.isnan(holds):
        raise BadInput(f"{wrong}. nan is neither true nor false.")
    try:
        return bool(holds)
    except (TypeError, ValueError) as error:
        raise WrongType(f"{wrong} ({type(holds).__name__}), and its truth value is refused: {error}") from None


def _entry(made, stale, here):
    return {
        "claim": made.text,
        "notebook": notebook(),
        "holds": made.holds and not stale,
        "evidence": made.evidence,
        "elsewhere": made.elsewhere or None,
        "recording": (made.detail + (", stale" if stale else "")) or None,
        "machine": here.name,
        "versions": dict(here.versions),
    }


def _running_cell():
    """What tells the running cell from all others: the id of the message that asked for it, or IPython's count."""
    ipython = shell()
    parent = getattr(ipython, "parent_header", None) or {}
    return parent.get("header", {}).get("msg_id") or getattr(ipython, "execution_count", None)


def _show(made):
    if shell() is None:
        print(made)
    else:
        made._ipython_display_()


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
