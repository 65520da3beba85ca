"""What goes wrong with the cast of a large offset: read off the hazard that a run has shown, and off the kernel's source."""

from __future__ import annotations

from kit.graders.reading import words_of
from kit.graders.step import Mistake


def overflows(f):
    return f.get("hazard") == "overflow"


def source_words(f):
    """What the answer's source says (see kit.graders.reading), for a problem that is about offsets."""
    return words_of(f["kernel"]) if "kernel" in f else frozenset()


MASKED = Mistake(
    "a mask hides it",
    lambda f: overflows(f) and "compares" in source_words(f) and any("comparison" in x.text for x in f["findings"]),
    "A mask that looks at the offset only hides the wrap: the block is then not read at all. The offset itself must be right.",
)
CAST_MISTAKES = (
    Mistake(
        "uint32",
        lambda f: (overflows(f) or "big" in f) and "uint32" in source_words(f),
        "uint32 only moves the edge from 2^31 to 2^32: the offset needs int64.",
    ),
    MASKED,
    Mistake(
        "cast of a pointer",
        lambda f: (overflows(f) or "big" in f) and "pointer" in source_words(f),
        "The pointer has 64 bits already: what wraps is the product, before it is added.",
    ),
    Mistake(
        "cast too late",
        lambda f: overflows(f) and "product" in source_words(f),
        "Is the product cast? It has wrapped by then: cast one factor, before the multiply.",
    ),
    Mistake(
        "cast of the loaded value",
        lambda f: overflows(f) and "loaded" in source_words(f),
        "Is the loaded value cast? The address it was loaded from had wrapped by then.",
    ),
)

LEFT_OUT = Mistake(
    "left out", lambda f: "big" in f and (f.get("got") == 0 or f.get("unwritten")), "Past 2^31 nothing is moved: does a mask leave it out?"
)
