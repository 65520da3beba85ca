"""Pieces of a line of MLIR text: what stands between brackets, the type signature, the types."""

from __future__ import annotations

import functools
import re

from kit.simulator.program import Type, Unsupported


@functools.lru_cache(maxsize=1024)
def parse_type(text):
    """`tensor<128x!tt.ptr<f32>>` -> Type("ptr<f32>", (128,)). An encoding after a comma is left out."""
    text = text.strip()
    if not text.startswith("tensor<"):
        return Type(text.removeprefix("!tt."))
    inside = split(text[len("tensor<") : -1])[0]
    shape = []
    while match := re.match(r"(\d+)x", inside):
        shape.append(int(match[1]))
        inside = inside[match.end() :]
    return Type(inside.removeprefix("!tt."), tuple(shape))


def types_of(text):
    return [parse_type(piece) for piece in split(re.sub(r"\*|->", ",", text) if " * " in text else text)]


def bare(text):
    text = text.strip()
    return text[1:-1] if text.startswith("(") and text.endswith(")") else text


def signature_of(text):
    """(what stands before the type signature, the signature): split at the last ` : ` outside all brackets."""
    depth = 0
    quoted = False
    last = -1
    for i, letter in enumerate(text):
        if letter == '"':
            quoted = not quoted
        elif quoted:
            continue
        elif letter in "({[<":
            depth += 1
        elif letter in ")}]" or (letter == ">" and text[i - 1] != "-"):
            depth -= 1
        elif letter == ":" and depth == 0 and text[i - 1 : i] == " ":
            last = i
            break  # the signature itself holds no colon at depth 0
    return (text, "") if last < 0 else (text[:last], text[last + 1 :].strip())


def split(text, comma=","):
    """Split at commas that stand outside all brackets."""
    pieces, depth, start = [], 0, 0
    for i, letter in enumerate(text):
        if letter in "({[<":
            depth += 1
        elif letter in ")}]" or (letter == ">" and text[i - 1] != "-"):
            depth -= 1
        elif letter == comma and depth == 0:
            pieces.append(text[start:i].strip())
            start = i + 1
    if text[start:].strip():
        pieces.append(text[start:].strip())
    return pieces


def balanced(text, closing):
    """(what stands before the bracket that closes `text`, what stands after it)."""
    depth = 0
    for i, letter in enumerate(text):
        if letter in "({[<":
            depth += 1
        elif letter in ")}]" or (letter == ">" and text[i - 1] != "-"):
            if depth == 0 and letter == closing:
                return text[:i], text[i + 1 :]
            depth -= 1
    raise Unsupported(f"the simulated GPU cannot read this line of the kernel's IR: {text[:120]}")
