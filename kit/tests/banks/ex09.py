"""Answers to exercise 09, boundaries and views."""

from kit.tests.banks import Answer

WITHOUT_KERNEL = ("09.1", "09.3")


def _count(name, text, cause=""):
    return Answer("09.1", name, (text,), cause)


def _rows(name, text, cause="", about=""):
    return Answer("09.2", name, (text,), cause, about)


def _list(name, text, cause=""):
    return Answer("09.3", name, (text,), cause)


BITS = "changed = before.view(torch.int32) != after.view(torch.int32)\n"
MARKS = "inside = torch.zeros_like(before, dtype=torch.bool)\n"
VIEW = "inside.as_strided(shape, strides, offset).fill_(True)\n"
LAST = "return int((changed & ~inside).sum())"
N = "n = 1\nfor m in shape:\n    n *= m\n"

X = "x = tl.load(x_ptr + row * stride_xm + offs * stride_xn, mask=mask, other=0.0)\n"
D = "d = tl.where(mask, tl.abs(x - tl.sum(x, axis=0) / N), 0.0)\n"
OUT = "tl.store(out_ptr + row * stride_om, tl.max(d, axis=0))"

NEW = "def pair(x):\n    return x, torch.empty_like(x)\n\n"
LOW = "low = -1 - torch.rand(5, 2 * BLOCK + 3, device=device)\n"
INF = "low[2] = -float('inf')\n"
WIDE = "wide = torch.empty(5, 4 * BLOCK, device=device)[:, : low.shape[1]]\n"
ALL = "return [(low, wide), pair(low[:, ::2])]"

WRONG = [
    _count("nothing returned", MARKS + VIEW + BITS + "(changed & ~inside).sum()", "Is the return missing"),
    _count("the marks returned", MARKS + VIEW + BITS + "return changed & ~inside", "is a sum() missing"),
    _count("values compared", MARKS + VIEW + "changed = before != after\n" + LAST, "NaN differs from itself"),
    _count("values compared, everywhere", "return int((before != after).sum())", "NaN differs from itself"),
    _count("all changes", BITS + "return int(changed.sum())", "Are the elements themselves counted"),
    _count("a stretch of n cells", N + MARKS + "inside[offset : offset + n] = True\n" + BITS + LAST, "so many cells in a row"),
    _count(
        "from first to last",
        N
        + MARKS
        + "last = offset + sum((m - 1) * s for m, s in zip(shape, strides))\nif n:\n    inside[offset : last + 1] = True\n"
        + BITS
        + LAST,
        "Cells between its elements belong to somebody else",
    ),
    _count(
        "no offset",
        MARKS + "inside.as_strided(shape, strides).fill_(True)\n" + BITS + LAST,
        "Does the view begin at cell 0",
    ),
    _count("only poison", "return int((before.isnan() & ~after.isnan()).sum())", "Is only poison looked at"),
    _rows(
        "as it was",
        "x = tl.load(x_ptr + row * N + offs, mask=mask)\nd = tl.abs(x - tl.sum(x, axis=0) / BLOCK)\n"
        "tl.store(out_ptr + row, tl.max(d, axis=0))",
        "The mean is over N elements",
        "values",
    ),
    _rows("the padding leaks", X + "d = tl.abs(x - tl.sum(x, axis=0) / N)\n" + OUT, "make it neutral again", "values"),
    _rows("divided by BLOCK", X + D.replace("/ N", "/ BLOCK") + OUT, "The mean is over N elements", "values"),
    _rows("no other=", X.replace(", other=0.0", "") + D + OUT, "no other=", "values"),
    _rows("rows packed", X.replace("row * stride_xm", "row * N") + D + OUT, "N elements after the one before", "memory"),
    _rows("columns packed", X.replace("offs * stride_xn", "offs") + D + OUT, "They are stride_xn apart", "memory"),
    _rows("out packed", X + D + OUT.replace("row * stride_om", "row"), "stride_om elements from row to row", "memory"),
    _rows("signed", X + D.replace("tl.abs(x - tl.sum(x, axis=0) / N)", "x - tl.sum(x, axis=0) / N") + OUT, "Is it a distance", "values"),
    _rows("no mask", X.replace(", mask=mask, other=0.0", "") + D + OUT, "has the load none", "memory"),
    _rows("one lane too many", X.replace("mask=mask", "mask=offs <= N") + D + OUT, "one lane too many", "memory"),
    _rows(
        "−inf under the sum",
        X.replace("other=0.0", "other=-float('inf')") + D + OUT,
        "An infinity in the padding is not neutral",
        "values",
    ),
    _list("nothing returned", NEW + LOW + INF + WIDE + ALL.replace("return ", ""), "Is the return missing"),
    _list("a single pair", NEW + LOW + INF + "return pair(low)", "Each input is a pair of tensors"),
    _list("a dict", NEW + LOW + "return {'low': pair(low)}", "Return a list of pairs"),
    _list("tensors without out", LOW + "return [low]", "Each input is a pair of tensors"),
    _list("forty inputs", NEW + "return [pair(torch.rand(3, n, device=device)) for n in range(40)]", "One input can catch several"),
    _list("a million elements", NEW + "return [pair(torch.rand(1_000, 1_000, device=device))]", "Edges are small"),
    _list("another shape", LOW + "return [(low, torch.empty(5, 4 * BLOCK, device=device))]", "have the same shape"),
    _list("half precision", NEW + LOW + "return [pair(low.half())]", "in float32"),
    _list("poison inside", NEW + LOW + INF + "low[0, 0] = float('nan')\n" + WIDE + ALL, "poison belongs round x"),
    _list("plus infinity", NEW + LOW + INF + "low[0, 0] = float('inf')\n" + WIDE + ALL, "+inf minus +inf"),
    _list("an empty list", "return []", "No input has an element"),
    _list("no element", NEW + "return [pair(torch.rand(*shape, device=device)) for shape in ((0, 9), (9, 0))]", "No input has an element"),
    _list(
        "new tensors of whole blocks",
        NEW + "return [pair(torch.randn(8, n * BLOCK, device=device)) for n in (1, 2, 4)]",
        "every fault hides there",
    ),
    _list(
        "whole blocks, all else right",
        NEW + LOW.replace("2 * BLOCK + 3", "2 * BLOCK") + INF + WIDE + "return [(low, wide), pair(low[:, ::2])]",
        "no lane is padding",
    ),
    _list(
        "no row below zero",
        NEW
        + LOW.replace("-1 - ", "")
        + INF
        + WIDE
        + "low[2] = 1.0\nnone = torch.full((2, 2 * BLOCK), -float('inf'), device=device)\n"
        + ALL[:-1]
        + ", pair(none)]",
        "wins a maximum only where every number",
    ),
    _list(
        "low rows of whole blocks",
        NEW
        + LOW.replace("2 * BLOCK + 3", "2 * BLOCK")
        + INF
        + "high = torch.rand(5, 2 * BLOCK + 3, device=device)\n"
        + WIDE.replace("low", "high")
        + "return [(high, wide), pair(high[:, ::2]), pair(low)]",
        "Low rows and padding do not meet",
    ),
    _list("one block at most", NEW + LOW.replace("2 * BLOCK + 3", "BLOCK - 1") + INF + WIDE + ALL, "takes a second step"),
    _list(
        "longer, but whole",
        NEW + LOW.replace("2 * BLOCK + 3", "BLOCK - 1") + INF + WIDE + ALL[:-1] + ", pair(torch.rand(5, 2 * BLOCK, device=device))]",
        "A last block that is not whole",
    ),
    _list("no −inf", NEW + LOW + WIDE + ALL, "No row is −inf throughout"),
    _list("−inf in part", NEW + LOW + INF.replace("low[2]", "low[2, 5:]") + WIDE + ALL, "the whole row must be −inf"),
    _list("x always new", NEW + LOW + INF + WIDE + "return [(low, wide), pair(low)]", "the elements of a row lie side by side"),
    _list(
        "out as x",
        NEW + LOW + INF + "wide = torch.empty(5, 4 * BLOCK + 6, device=device)[:, ::2]\n"
        "both = torch.cat([low, low], 1)[:, ::2]\nboth.copy_(low)\nreturn [(low, torch.empty_like(low)), (both, wide)]",
        "out always has the strides of x",
    ),
]

RIGHT = [
    _count(
        "indices of every element",
        "cells = torch.arange(len(before), device=before.device).as_strided(shape, strides, offset).flatten()\n"
        "same = (before == after) | (before.isnan() & after.isnan())\nsame[cells] = True\nreturn int((~same).sum())",
    ),
    _count(
        "a loop over indices",
        "import itertools\n\nindices = itertools.product(*map(range, shape))\n"
        "cells = {offset + sum(i * s for i, s in zip(index, strides)) for index in indices}\n"
        "before, after = before.tolist(), after.tolist()\n"
        "return sum(repr(a) != repr(b) for i, (a, b) in enumerate(zip(before, after)) if i not in cells)",
    ),
    _count(
        "the view made equal first",
        "patched = after.clone()\npatched.as_strided(shape, strides, offset).copy_(before.as_strided(shape, strides, offset))\n"
        "return (patched.view(torch.int32) != before.view(torch.int32)).sum()",
    ),
    _rows("where before and after", X.replace(", other=0.0", "") + "x = tl.where(mask, x, 0.0)\n" + D + OUT),
    _rows("-1 in the padding", X + D.replace(", 0.0)", ", -1.0)") + OUT),
    _rows(
        "padding moved to the mean",
        X + "mean = tl.sum(x, axis=0) / N\nd = tl.abs(tl.where(mask, x, mean) - mean)\n" + OUT,
    ),
    _rows(
        "pointers in int64",
        "x_ptrs = x_ptr + row.to(tl.int64) * stride_xm + offs.to(tl.int64) * stride_xn\nx = tl.load(x_ptrs, mask=mask, other=0.0)\n"
        + D
        + OUT,
    ),
    _list("two inputs", NEW + LOW + INF + WIDE + ALL),
    _list(
        "one input",
        NEW + LOW + INF + "return [(low.T.contiguous().T, torch.empty_like(low))]",
    ),
    _list(
        "a fault an input",
        NEW + "def rows(n, value):\n    return torch.full((3, n), value, device=device)\n\n"
        "return [\n    pair(rows(BLOCK - 1, -2.0)),\n    pair(rows(BLOCK + 1, 1.0)),\n    pair(rows(BLOCK, -float('inf'))),\n"
        "    pair(torch.rand(3, 2 * BLOCK, device=device)[:, ::2]),\n"
        "    (torch.rand(3, BLOCK, device=device), torch.empty(BLOCK, 3, device=device).T),\n    pair(rows(1, 1.0)),\n]",
    ),
]
