"""Answers to exercise 05, barriers."""

from kit.tests.banks import Answer

WITHOUT_KERNEL = ()


def _steps(name, text, cause="", about=""):
    return Answer("05.1", name, (text,), cause, about)


def _rotate(name, text, cause="", about=""):
    return Answer("05.2", name, (text,), cause, about)


def _shares(name, body, launches, cause="", about=""):
    return Answer("05.3", name, (body, launches), cause, about)


BAR = "tl.debug_barrier()\n"

# ---- 05.1
S = "tl.store(tmp_ptr + row + offs, x * x, mask=mask)\n"
R = "right = tl.load(tmp_ptr + row + (offs + 1) % n, mask=mask, other=0.0)\n"
O = "tl.store(out_ptr + row + offs, right - x * x, mask=mask)\n"  # noqa: E741

# ---- 05.2
LOAD = "q = tl.load(row + offs)\n"
SCALE = "scale = tl.rsqrt(tl.sum(q * q, axis=0) / D + 1e-6)\n"
NORM = "tl.store(row + offs, q * scale)\n"
LOW = "low = tl.load(row + half)\n"
HIGH = "high = tl.load(row + D // 2 + half)\n"
OUT_LOW = "tl.store(row + half, low * cos - high * sin)\n"
OUT_HIGH = "tl.store(row + D // 2 + half, high * cos + low * sin)\n"
HALVES = LOW + HIGH
OUT = OUT_LOW + OUT_HIGH

# ---- 05.3
SUMS = "sums = tl.load(sums_ptr + blocks, mask=blocks < n_blocks, other=0.0)\n"
DIVIDE = "tl.store(out_ptr + offs, x / tl.sum(sums, axis=0), mask=mask)\n"
OWN_SUM = "tl.store(sums_ptr + pid, tl.sum(x, axis=0))\n"
FIRST = "sums_kernel[grid](x, sums, n, BLOCK=256)\n"
SECOND = "divide_kernel[grid](x, sums, out, n, n_blocks, BLOCK=256, BLOCKS=BLOCKS)\n"

WRONG = [
    _steps("as it was", S + R + O, "There is no barrier", "values"),
    _steps("barrier before the store", BAR + S + R + O, "stand before the store", "values"),
    _steps("barrier behind the load", S + R + BAR + O, "stand behind the load", "values"),
    _steps("barriers on both sides", BAR + S + R + BAR + O, "none of them between the two lines", "values"),
    _steps("barrier in a branch", S + "if tl.program_id(0) == 0:\n    tl.debug_barrier()\n" + R + O, "stand in a branch", "values"),
    _steps(
        "a volatile load",
        S + "right = tl.load(tmp_ptr + row + (offs + 1) % n, mask=mask, other=0.0, volatile=True)\n" + O,
        "say where a load looks, not when",
        "values",
    ),
    _steps(
        "past the cache",
        S + 'right = tl.load(tmp_ptr + row + (offs + 1) % n, mask=mask, other=0.0, cache_modifier=".cg")\n' + O,
        "say where a load looks, not when",
        "values",
    ),
    _steps(
        "a relaxed atomic between",
        S + 'tl.atomic_add(tmp_ptr + row + offs, 0.0, mask=mask, sem="relaxed")\n' + R + O,
        "An atomic orders what its own thread did",
        "values",
    ),
    _steps("one barrier too many, behind", S + BAR + R + BAR + O, "Take this one out", "answer"),
    _steps("one barrier too many, in front", BAR + S + BAR + R + O, "Take this one out", "answer"),
    _steps("two in a row", S + BAR + BAR + R + O, "Take this one out", "answer"),
    _steps(
        "computed again, and a barrier",
        S + BAR + "right = tl.load(x_ptr + row + (offs + 1) % n, mask=mask, other=0.0)\nright *= right\n" + O,
        "needs no barrier at all",
        "answer",
    ),
    _steps(
        "tmp left out",
        "right = tl.load(x_ptr + row + (offs + 1) % n, mask=mask, other=0.0)\nright *= right\n" + O,
        "Is tmp written",
        "values",
    ),
    _steps(
        "x in tmp",
        "tl.store(tmp_ptr + row + offs, x, mask=mask)\n" + BAR + R + "tl.store(out_ptr + row + offs, right * right - x * x, mask=mask)",
        "tmp gets the squares",
        "values",
    ),
    _steps(
        "the end left out",
        S + BAR + "right = tl.load(tmp_ptr + row + offs + 1, mask=offs < n - 1, other=0.0)\n" + O,
        "Only the end of each row is wrong",
        "values",
    ),
    _steps(
        "past the row",
        S + BAR + "right = tl.load(tmp_ptr + row + offs + 1, mask=mask, other=0.0)\n" + O,
        "It leaves the row",
        "memory",
    ),
    _steps(
        "the left neighbour",
        S + BAR + "right = tl.load(tmp_ptr + row + (offs + n - 1) % n, mask=mask, other=0.0)\n" + O,
        "another neighbour, or the other sign",
        "values",
    ),
    _rotate("no barrier", LOAD + SCALE + NORM + HALVES + OUT, "the sum's own come before the store", "values"),
    _rotate("as it was", LOAD + BAR + SCALE + NORM + HALVES + BAR + OUT, "none of them between", "values"),
    _rotate(
        "before the store", LOAD + SCALE + BAR + NORM + HALVES + OUT, "The barrier comes before the normalised row is stored", "values"
    ),
    _rotate("behind the loads", LOAD + SCALE + NORM + HALVES + BAR + OUT, "The barrier comes behind the loads", "values"),
    _rotate("between the loads", LOAD + SCALE + NORM + LOW + BAR + HIGH + OUT, "One of the two halves is read before", "values"),
    _rotate("two, to be sure", LOAD + SCALE + NORM + BAR + HALVES + BAR + OUT, "Take this one out", "answer"),
    _rotate("around the sum", LOAD + BAR + SCALE + NORM + BAR + HALVES + OUT, "Take this one out", "answer"),
    _rotate("between the stores", LOAD + SCALE + NORM + BAR + HALVES + OUT_LOW + BAR + OUT_HIGH, "Take this one out", "answer"),
    _rotate("in a branch", LOAD + SCALE + NORM + "if D > 256:\n    tl.debug_barrier()\n" + HALVES + OUT, "stand in a branch", "values"),
    _rotate(
        "volatile",
        LOAD + SCALE + NORM + "low = tl.load(row + half, volatile=True)\nhigh = tl.load(row + D // 2 + half, volatile=True)\n" + OUT,
        "say where a load looks, not when",
        "values",
    ),
    _rotate(
        "read before it is normalised, and a barrier",
        LOAD + HALVES + SCALE + BAR + "low *= scale\nhigh *= scale\n" + OUT,
        "needs no barrier at all",
        "answer",
    ),
    _rotate("not normalised", HALVES + OUT, "Is the row normalised", "values"),
    _rotate(
        "the rotated low half",
        LOAD + SCALE + NORM + BAR + HALVES + "low = low * cos - high * sin\ntl.store(row + half, low)\n" + OUT_HIGH,
        "of the values before the rotation",
        "values",
    ),
    _rotate("the other way round", LOAD + SCALE + NORM + BAR + HALVES + OUT.replace("sin", "(-sin)"), "The rotation is", "values"),
    _rotate(
        "the upper half of the next row",
        LOAD + SCALE + NORM + BAR + LOW + "high = tl.load(row + D + half)\n" + OUT,
        "does the upper half begin at D // 2",
        "memory",
    ),
    _shares("one kernel, as it was", OWN_SUM + BAR + SUMS + DIVIDE, SECOND, "A barrier waits for the warps of its own program", "values"),
    _shares("one kernel, no barrier", OWN_SUM + SUMS + DIVIDE, SECOND, "One launch both writes and reads it", "values"),
    _shares("one kernel, launched twice", OWN_SUM + SUMS + DIVIDE, SECOND * 2, "One launch both writes and reads it", "values"),
    _shares(
        "atomics in the same launch",
        "tl.atomic_add(sums_ptr, tl.sum(x, axis=0))\ntl.debug_barrier()\ntl.store(out_ptr + offs, x / tl.load(sums_ptr), mask=mask)",
        "sums.zero_()\n" + SECOND,
        "tells nobody that it was the last",
        "values",
    ),
    _shares(
        "waiting for all",
        OWN_SUM + "tl.atomic_add(out_ptr, 1.0)\nwhile tl.atomic_add(out_ptr, 0.0) < n_blocks:\n    pass\n" + SUMS + DIVIDE,
        "out.zero_()\n" + SECOND,
        "A loop that waits",
        "values",
    ),
    _shares("launches exchanged", SUMS + DIVIDE, SECOND + FIRST, "is their launch the second one", "values"),
    _shares("sums never launched", SUMS + DIVIDE, SECOND, "is the kernel that writes them launched", "values"),
    _shares("nothing launched", SUMS + DIVIDE, "pass", "No kernel is launched", "values"),
    _shares(
        "its own sum",
        "tl.store(out_ptr + offs, x / tl.load(sums_ptr + pid), mask=mask)",
        FIRST + SECOND,
        "The total is the sum of all sums",
        "values",
    ),
    _shares(
        "sums unmasked", "sums = tl.load(sums_ptr + blocks)\n" + DIVIDE, FIRST + SECOND, "so the load of the sums needs a mask", "memory"
    ),
    _shares(
        "the first block only",
        SUMS + DIVIDE,
        FIRST + "divide_kernel[(1,)](x, sums, out, n, n_blocks, BLOCK=256, BLOCKS=BLOCKS)",
        "Some of out has no program",
        "values",
    ),
]

RIGHT = [
    _steps(
        "no trip through memory",
        S + "right = tl.load(x_ptr + row + (offs + 1) % n, mask=mask, other=0.0)\nright *= right\n" + O,
    ),
    _steps(
        "the own square read back too",
        S + BAR + R + "own = tl.load(tmp_ptr + row + offs, mask=mask, other=0.0)\ntl.store(out_ptr + row + offs, right - own, mask=mask)",
    ),
    _steps("by tl.where", S + BAR + R.replace("(offs + 1) % n", "tl.where(offs == n - 1, 0, offs + 1)") + O),
    _rotate(
        "halves only, no trip through memory",
        HALVES + "mean = (tl.sum(low * low, axis=0) + tl.sum(high * high, axis=0)) / D\n"
        "scale = tl.rsqrt(mean + 1e-6)\nlow *= scale\nhigh *= scale\n" + OUT,
    ),
    _rotate("read before it is stored", LOAD + HALVES + SCALE + "low *= scale\nhigh *= scale\n" + OUT),
    _rotate("the upper half first", LOAD + SCALE + NORM + BAR + HIGH + LOW + OUT_HIGH + OUT_LOW),
    _shares(
        "each program sums all of x",
        "total = 0.0\nfor i in range(0, n_blocks):\n    at = i * BLOCK + tl.arange(0, BLOCK)\n"
        "    total += tl.sum(tl.load(x_ptr + at, mask=at < n, other=0.0), axis=0)\ntl.store(out_ptr + offs, x / total, mask=mask)",
        SECOND,
    ),
    _shares(
        "the total by atomics, in a launch of its own",
        "tl.store(out_ptr + offs, x / tl.load(sums_ptr), mask=mask)",
        "sums_kernel[grid](x, sums, n, BLOCK=256)\nsums[0] = sums.sum()\n" + SECOND,
    ),
    _shares("one program does it all", SUMS + DIVIDE, FIRST + "for _ in range(2):\n    " + SECOND),
]
