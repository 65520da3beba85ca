"""Which products and sums the compiler fuses into one `fma`, which rounds once.

Through Triton 3.9 floating-point fusion is on by default, and LLVM's NVPTX backend then contracts every product that feeds a sum or
a difference of its own basic block (DAGCombiner::visitFADDForFMACombine and visitFSUBForFMACombine, with aggressive fusion, as
NVPTXISelLowering asks for): also where the product has other uses. When both operands are products, the one with fewer uses goes
into the fma, the left one at a tie. Seen in the PTX of Triton 3.6 to 3.9; kit/tests/test_fusion.py counts the `fma` there.
"""

from __future__ import annotations

from dataclasses import dataclass

# Between a product and its sum these leave no instruction behind: every thread keeps the elements that it has.
_IN_PLACE = {"tt.splat", "tt.broadcast", "tt.expand_dims", "tt.reshape", "tt.trans", "tt.unsplat"}
_REPEATS = {"tt.splat", "tt.broadcast"}
# What ends a basic block when it is lowered: fusion looks at one block at a time.
_ENDS_BLOCK = {"scf.if", "scf.for", "scf.while", "tt.call", "tt.assert", "cf.br", "cf.cond_br", "tt.atomic_cas", "tt.atomic_rmw"}


@dataclass(frozen=True)
class Fusion:
    """One sum and the product inside it: `side` is the operand that the product takes, `path` what moves its elements to the sum."""

    product: object
    path: tuple
    side: int
    negated: bool


def fusions(program):
    """{id of an arith.addf or arith.subf: its Fusion} of a Program. Computed once and kept on it."""
    found = getattr(program, "fused_sums", None)
    if found is None:
        found = program.fused_sums = _Finder(program).found if getattr(program, "fuses", True) else {}
    return found


class _Finder:
    def __init__(self, program):
        self.defined = {}  # value number -> (operation, block, how many basic blocks of it had ended before)
        self.readers = {}  # value number -> the operations that read it, one entry a use
        self.blocks = []
        for function in program.functions.values():
            self._visit(function.body, loop=False)
        self.found = {}
        for block, loop in self.blocks:
            for op in block.operations:
                if op.name in ("arith.addf", "arith.subf") and (fusion := self._fusion(op, block, loop)):
                    self.found[id(op)] = fusion

    def _visit(self, region, loop):
        for block in region.blocks:
            self.blocks.append((block, loop))
            ended = 0
            for op in block.operations:
                ended += op.name in _ENDS_BLOCK
                for number in op.results:
                    self.defined[number] = (op, block, ended)
                for number in (*op.operands, *(value for _, values in op.successors for value in values)):
                    self.readers.setdefault(number, []).append(op)
                for inner in op.regions:
                    self._visit(inner, op.name in ("scf.for", "scf.while"))

    def _fusion(self, op, block, loop):
        ended = self.defined[op.results[0]][2]
        left, right = (self._product(number, block, ended, loop) for number in op.operands)
        if left and right:
            side = int(self._uses(left[0].results[0]) > self._uses(right[0].results[0]))
        elif left or right:
            side = 0 if left else 1
        else:
            return None
        return Fusion(*(left, right)[side][:2], side, (left, right)[side][2])

    def _product(self, number, block, ended, loop):
        """(the arith.mulf behind a value of the same basic block, the path from it, whether it is negated on the way), or None."""
        path, negated = [], False
        while number in self.defined:
            op, home, before = self.defined[number]
            if home is not block or before != ended:
                return None
            if op.name == "arith.mulf":
                return None if loop and self._hoisted(op, block) else (op, tuple(reversed(path)), negated)
            if op.name == "arith.negf":
                negated = not negated
            elif op.name not in _IN_PLACE:
                return None
            path.append(op)
            number = op.operands[0]
        return None

    def _hoisted(self, op, block):
        """A product of values from outside the loop is computed before the loop, in a basic block of its own."""
        return all(number not in self.defined or self.defined[number][1] is not block for number in op.operands) and not any(
            number in block.arguments for number in op.operands
        )

    def _uses(self, number):
        uses = 0
        for op in self.readers.get(number, []):
            inner = self._uses(op.results[0]) if op.name in _IN_PLACE else 1
            uses += inner * (2 if op.name in _REPEATS else 1)
        return uses
