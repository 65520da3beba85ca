"""Answers to exercise 10, numerics."""

from kit.tests.banks import Answer

WITHOUT_KERNEL = ()

# The parts of 10.1, each of which an answer may replace.
NORM = {
    "acc": "acc = tl.zeros([BLOCK], tl.float32)",
    "x": "x = tl.load(x_ptr + offs, mask=offs < n_cols, other=0.0).to(tl.float32)",
    "add": "acc += x * x",
    "scale": "scale = tl.rsqrt(tl.sum(acc, axis=0) / n_cols + eps)",
}
Y = "y = x.to(tl.float32) * scale * w.to(tl.float32)"
NARROW_X = "x = tl.load(x_ptr + offs, mask=offs < n_cols, other=0.0)"
SUM_16 = "scale = tl.rsqrt(tl.sum(acc.to(x_ptr.dtype.element_ty), axis=0).to(tl.float32) / n_cols + eps)"


def _norm(name, cause="", about="", y=Y, **parts):
    part = {**NORM, **parts}
    loop = ["for start in range(0, n_cols, BLOCK):", "    offs = start + tl.arange(0, BLOCK)"]
    body = ["    " + line for key in ("x", "add") for line in part[key].split("\n")]
    return Answer("10.1", name, ("\n".join([part["acc"], *loop, *body, part["scale"]]), y), cause, about)


def _softmax(name, text, cause="", about=""):
    return Answer("10.2", name, (text,), cause, about)


WIDE = "x = x.to(tl.float32)\n"
TOP = WIDE + "top = tl.max(x, axis=0)\n"
SAFE = TOP + "top = tl.where(top == float('-inf'), 0.0, top)\n"
E = "e = tl.exp(x - top)\n"
TOTAL = "total = tl.sum(e, axis=0)\n"
QUOTIENT = "y = e / tl.where(total == 0, 1.0, total)\n"

# The parts of 10.3.
VARIANCE = {
    "mean": "mean = tl.sum(acc, axis=0) / n_cols",
    "d": "d = tl.where(offs < n_cols, x - mean, 0.0)",
    "add": "squares += d * d",
    "out": "variance = tl.sum(squares, axis=0) / n_cols",
    "squares": "squares = tl.zeros([BLOCK], tl.float32)",
}
LOOP = "for start in range(0, n_cols, BLOCK):\n    offs = start + tl.arange(0, BLOCK)\n"
LOAD = "    x = tl.load(x_ptr + offs, mask=offs < n_cols, other=0.0).to(tl.float32)\n"
ONE_PASS = (
    "acc = tl.zeros([BLOCK], {t})\nsquares = tl.zeros([BLOCK], {t})\n"
    + LOOP
    + LOAD.replace("tl.float32", "{t}")
    + "    acc += x\n    squares += x * x\nmean = tl.sum(acc, axis=0) / n_cols\nvariance = tl.sum(squares, axis=0) / n_cols - mean * mean\n"
)
SHIFTED = (
    "first = tl.load(x_ptr).to(tl.float32)\nacc = tl.zeros([BLOCK], tl.float32)\nsquares = tl.zeros([BLOCK], tl.float32)\n"
    + LOOP
    + LOAD
    + "    d = tl.where(offs < n_cols, x - first, 0.0)\n    acc += d\n    squares += d * d\n"
    "mean = tl.sum(acc, axis=0) / n_cols\nvariance = tl.sum(squares, axis=0) / n_cols - mean * mean\n"
)
# A mean and a sum of squared distances for what was seen so far, joined with those of each block.
JOINED = (
    "mean = 0.0\nm2 = 0.0\nseen = 0.0\n"
    + LOOP
    + LOAD
    + "    count = tl.minimum(n_cols - start, BLOCK).to(tl.float32)\n    new = tl.sum(x, axis=0) / count\n"
    "    d = tl.where(offs < n_cols, x - new, 0.0)\n    apart = new - mean\n"
    "    m2 += tl.sum(d * d, axis=0) + apart * apart * seen * count / (seen + count)\n"
    "    mean += apart * count / (seen + count)\n    seen += count\n"
    "variance = m2 / n_cols\n"
)


def _variance(name, cause="", about="", **parts):
    part = {**VARIANCE, **parts}
    first = f"acc = tl.zeros([BLOCK], tl.float32)\n{LOOP}{LOAD}    acc += x\n{part['mean']}\n"
    second = f"{part['squares']}\n{LOOP}{LOAD}    {part['d']}\n    {part['add']}\n{part['out']}"
    return Answer("10.3", name, (first + second,), cause, about)


def _whole(name, text, cause="", about=""):
    return Answer("10.3", name, (text,), cause, about)


WRONG = [
    _norm(
        "as it was",
        "In which type does tl.sum add",
        "values",
        acc="acc = tl.zeros([BLOCK], x_ptr.dtype.element_ty)",
        x=NARROW_X,
        scale=SUM_16,
    ),
    _norm("the total in float16", "In which type does tl.sum add", "values", scale=SUM_16),
    _norm(
        "the lanes in float16",
        "Which type has the accumulator",
        "values",
        acc="acc = tl.zeros([BLOCK], x_ptr.dtype.element_ty)",
        add="acc += (x * x).to(acc.dtype)",
        scale="scale = tl.rsqrt(tl.sum(acc.to(tl.float32), axis=0) / n_cols + eps)",
    ),
    _norm("widened after the square", "A cast after it comes too late", "values", x=NARROW_X, add="acc += (x * x).to(tl.float32)"),
    _norm("only the accumulator", "A cast after it comes too late", "values", x=NARROW_X),
    _norm("squares clamped", "is something clamped", "values", add="acc += tl.minimum(x * x, 60000.0)"),
    _norm("the sum in bfloat16", "off by one factor", "values", add="acc += (x * x).to(tl.bfloat16).to(tl.float32)"),
    _norm("rounded before w", "Let the store alone round", "values", y="y = (x * scale).to(x.dtype) * w"),
    _norm("in the input's type", "off by more than one rounding", "values", y="y = x * scale.to(x.dtype) * w"),
    _norm("no eps", "is eps added to the mean", "values", scale="scale = tl.rsqrt(tl.sum(acc, axis=0) / n_cols)"),
    _norm("eps outside", "inside the root", "values", scale="scale = 1 / (tl.sqrt(tl.sum(acc, axis=0) / n_cols) + eps)"),
    _norm("over BLOCK", "masked lanes are none of them", "values", scale="blocks = tl.cdiv(n_cols, BLOCK)\n"
          "scale = tl.rsqrt(tl.sum(acc, axis=0) / (blocks * BLOCK) + eps)"),
    _norm("no w", "Is w left out", "values", y="y = x.to(tl.float32) * scale"),
    _norm("the last block", "does acc add up", "values", add="acc = x * x"),
    _norm("no mask", "does the mask still hold", "memory", x="x = tl.load(x_ptr + offs).to(tl.float32)"),
    _softmax("as it was", "e = tl.exp(x.to(tl.float32))\ny = e / tl.sum(e, axis=0)", "subtract the row's maximum first", "values"),
    _softmax("clamped", WIDE + "e = tl.exp(tl.minimum(x, 80.0))\n" + TOTAL + QUOTIENT, "are they clamped", "values"),
    _softmax("the maximum alone", TOP + E + "y = e / tl.sum(e, axis=0)", "Both need an answer", "values"),
    _softmax("0 / 0", SAFE + E + "y = e / tl.sum(e, axis=0)", "Both need an answer", "values"),
    _softmax("-inf - -inf", TOP + E + TOTAL + QUOTIENT, "Both need an answer", "values"),
    _softmax("a large negative number", "x = tl.maximum(x.to(tl.float32), -3.4e38)\ntop = tl.max(x, axis=0)\n" + E + TOTAL
             + "y = e / total", "shares its weight out", "values"),
    _softmax("nan to 0", TOP + E + "y = e / tl.sum(e, axis=0)\ny = tl.where(y == y, y, 0.0)", "is nan replaced", "values"),
    _softmax("the mean", WIDE + "top = tl.sum(tl.where(mask, x, 0.0), axis=0) / n_cols\ntop = tl.where(top == float('-inf'), 0.0, top)\n"
             + E + TOTAL + QUOTIENT, "The mean is not", "values"),
    _softmax("masked lanes as 0", WIDE + "top = tl.max(tl.where(mask, x, 0.0), axis=0)\ntop = tl.where(top == float('-inf'), 0.0, top)\n"
             + E + TOTAL + QUOTIENT, "taken over zeros as well", "values"),
    _softmax("powers of two", SAFE + E.replace("exp", "exp2") + TOTAL + QUOTIENT, "These are powers of 2", "values"),
    _softmax("the log of the sum", SAFE + E + TOTAL + "y = tl.exp(x - (top + tl.log(tl.where(total == 0, 1.0, total))))",
             "Rows round 10,000 lose digits", "values"),
    _softmax("the difference in float16", "top = tl.max(x, axis=0)\ntop = tl.where(top == float('-inf'), 0.0, top).to(x.dtype)\n"
             "e = tl.exp((x - top).to(tl.float32))\n" + TOTAL + QUOTIENT, "is x - max made in float16", "values"),
    _softmax("the sum in bfloat16", SAFE + E + "total = tl.sum(e.to(tl.bfloat16), axis=0).to(tl.float32)\n" + QUOTIENT,
             "in which type is the sum of exps", "values"),
    _whole("as it was", ONE_PASS.format(t="tl.float32"), "Large means cancel", "values"),
    _whole("and clamped", ONE_PASS.format(t="tl.float32") + "variance = tl.maximum(variance, 0.0)", "the sign was a symptom", "values"),
    _whole("and made positive", ONE_PASS.format(t="tl.float32") + "variance = tl.abs(variance)", "Large means cancel", "values"),
    _variance("masked lanes", "mask the distance as well", "values", d="d = x - mean"),
    _variance("one less", "divide by n_cols", "values", out="variance = tl.sum(squares, axis=0) / tl.maximum(n_cols - 1, 1)"),
    _variance("over BLOCK", "masked lanes are none of them", "values",
              out="variance = tl.sum(squares, axis=0) / (tl.cdiv(n_cols, BLOCK) * BLOCK)"),
    _variance("the root", "the variance has no root", "values", out="variance = tl.sqrt(tl.sum(squares, axis=0) / n_cols)"),
    _variance("no mean", "is the mean subtracted first", "values", d="d = x"),
    _variance("within blocks", "one mean for the row", "values",
              d="d = tl.where(offs < n_cols, x - tl.sum(x, axis=0) / tl.minimum(n_cols - start, BLOCK), 0.0)"),
    _whole("the first block's mean",
           "mean = tl.sum(tl.load(x_ptr + tl.arange(0, BLOCK), mask=tl.arange(0, BLOCK) < n_cols, other=0.0).to(tl.float32), axis=0)\n"
           "mean /= tl.minimum(n_cols, BLOCK)\nsquares = tl.zeros([BLOCK], tl.float32)\n" + LOOP + LOAD +
           "    d = tl.where(offs < n_cols, x - mean, 0.0)\n    squares += d * d\nvariance = tl.sum(squares, axis=0) / n_cols",
           "finish the row's first", "values"),
    _variance("squares in float16", "in a narrower type on its way", "values",
              add="squares += (d.to(tl.float16) * d.to(tl.float16)).to(tl.float32)"),
    _variance("distances in bfloat16", "in a narrower type on its way", "values", add="squares += (d * d).to(tl.bfloat16).to(tl.float32)"),
    _variance("no mask", "does the mask still hold", "memory",
              d="x = tl.load(x_ptr + offs).to(tl.float32)\n    d = tl.where(offs < n_cols, x - mean, 0.0)"),
]  # fmt: skip

RIGHT = [
    _norm("cast in the product", x=NARROW_X, add="acc += x.to(tl.float32) * x.to(tl.float32)"),
    _norm("in float64", acc="acc = tl.zeros([BLOCK], tl.float64)", add="acc += x.to(tl.float64) * x",
          scale="scale = (1 / tl.sqrt(tl.sum(acc, axis=0) / n_cols + eps)).to(tl.float32)"),
    _norm("a total a block", acc="acc = 0.0", add="acc += tl.sum(x * x, axis=0)", scale="scale = 1 / tl.sqrt(acc / n_cols + eps)"),
    _norm("divided by the root", scale="root = tl.sqrt(tl.sum(acc, axis=0) / n_cols + eps)",
          y="y = (x.to(tl.float32) / root * w).to(y_ptr.dtype.element_ty)"),
    _softmax("powers of two, scaled", SAFE + "e = tl.exp2((x - top) * 1.4426950408889634)\n" + TOTAL + QUOTIENT),
    _softmax("the log, subtracted by itself", SAFE + E + TOTAL + "y = tl.exp(x - top - tl.log(tl.where(total == 0, 1.0, total)))"),
    _softmax("the row of nothing asked first", WIDE + "top = tl.max(x, axis=0)\nnothing = top == float('-inf')\n"
             "e = tl.where(nothing, 0.0, tl.exp(x - top))\n" + TOTAL + "y = tl.where(nothing, 0.0, e / total)"),
    _softmax("a tiny number in the sum", SAFE + E + "y = e / (tl.sum(e, axis=0) + 1e-30)"),
    _whole("from the first element", SHIFTED),
    _whole("blocks joined", JOINED),
    _whole("one pass in float64", ONE_PASS.format(t="tl.float64")),
    _variance("the mask as a factor", d="d = (x - mean) * (offs < n_cols)"),
]  # fmt: skip
