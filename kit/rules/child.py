"""What the sandbox's child does for `examine`: look at some rules of one group, and tell each rule's Notes as soon as they are there.

A rule's Notes go to the standard output as one line behind MARK, so that what was seen before a crash is kept.
"""

from __future__ import annotations

import json
import os

from kit.errors import KitError
from kit.rules import rule_of
from kit.rules.note import Note
from kit.rules.subject import Subject

MARK = "kit.examine> "


def look(kernel, make_args, grid, reference, meta, payload):
    """Look at the rules that `payload` numbers; print their Notes. `payload` also holds sizes and tolerance."""
    if any(rule_of(number).group == "time" for number in payload["rules"]):
        os.environ["CUDA_LAUNCH_BLOCKING"] = "0"  # the sandbox waits for each launch, which costs time; set before CUDA starts
    subject = Subject(kernel, make_args, grid, reference, payload["sizes"], meta, payload["tolerance"])
    subject.ghosts()  # arguments that cannot be used are refused before anything is looked at
    for number in payload["rules"]:
        print(MARK + json.dumps({"rule": number, "begun": True}), flush=True)
        told = {"rule": number, "notes": [note.data() for note in notes(subject, number)]}
        print(MARK + json.dumps(told), flush=True)


def notes(subject, number):
    """The Notes of one rule; what stops it from looking is a Note too."""
    rule = rule_of(number)
    try:
        return rule.look(subject)
    except KitError as error:
        words = str(error).split(": ", 1)[-1].rstrip(".")
        text = f"{rule.title} could not be looked at: {words}"
        return [Note(number, "not visible here", text, subject.machine.evidence, "could not look")]
