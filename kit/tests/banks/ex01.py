"""Answers to exercise 01, semantics."""

from kit.tests.banks import Answer

WITHOUT_KERNEL = ()


def _floor(name, text, cause="", about=""):
    return Answer("01.1", name, (text,), cause, about)


def _mix(name, text, cause="", about=""):
    return Answer("01.2", name, (text,), cause, about)


def _window(name, cause="", about="", **lines):
    """The solution of 01.3 with some lines replaced."""
    parts = {"acc": ACC, "test": TEST, "mask": MASK, "x": X, "w": W, "add": ADD, "out": OUT, **lines}
    head = [parts["acc"], "for start in range(0, n_cols, BLOCK):", "    cols = start + tl.arange(0, BLOCK)"]
    body = ["    " + line for name in ("test", "mask", "x", "w", "add") for line in parts[name].split("\n")]
    return Answer("01.3", name, ("\n".join([*head, *body, parts["out"]]).strip("\n"),), cause, about)


ACC = "acc = tl.zeros([BLOCK], tl.float32)"
TEST = "in_window = (cols >= first) & (cols < last)"
MASK = "mask = in_rows[:, None] & in_window[None, :]"
X = "x = tl.load(x_ptr + rows[:, None] * stride_x + cols[None, :], mask=mask, other=0.0)"
W = "w = tl.load(w_ptr + cols, mask=in_window, other=0.0)[None, :]"
ADD = "acc += tl.sum(x * w, axis=1)"
OUT = "out = acc * scale.to(tl.float32)"
OFF = "r = a % b\noff = (r != 0) & ((r < 0) != (b < 0))\n"
WIDE = "y = (x.to(tl.int32) + bias) * w * scale\n"

WRONG = [
    _floor("as it was", "q = a // b\nr = a % b", "round toward zero", "values"),
    _floor("signs alone", "off = (a < 0) != (b < 0)\nq = a // b - off\nr = tl.where(off, a % b + b, a % b)", "An exact quotient", "values"),
    _floor("the quotient left", OFF + "q = a // b\nr = tl.where(off, r + b, r)", "the quotient is not", "values"),
    _floor("the remainder left", OFF + "q = a // b - off", "the remainder is not", "values"),
    _floor("an absolute remainder", OFF + "q = a // b - off\nr = tl.where(r < 0, -r, r)", "not made positive", "values"),
    _floor("one more", OFF + "q = a // b + off\nr = tl.where(off, r + b, r)", "Flooring goes down", "values"),
    _floor(
        "positive divisors only",
        "r = a % b\noff = r < 0\nq = a // b - off\nr = tl.where(off, r + b, r)",
        "A negative divisor wants a negative remainder",
        "values",
    ),
    _floor("b added always", OFF + "q = a // b - off\nr = (r + b) % b", "r + b leaves the type", "values"),
    _floor("a - r divided", OFF + "r = tl.where(off, r + b, r)\nq = (a - r) // b", "Does a - r leave the type", "values"),
    _floor("in float32", "q = tl.floor(a.to(tl.float32) / b.to(tl.float32)).to(tl.int64)\nr = a - q * b", "Is there a float", "values"),
    _floor(
        "in int16", "a = a.to(tl.int16)\nb = b.to(tl.int16)\n" + OFF + "q = a // b - off\nr = tl.where(off, r + b, r)", "Is there a float"
    ),
    _floor(
        "in int64",
        "a = a.to(tl.int64)\nb = b.to(tl.int64)\n" + OFF + "q = a // b - off\nr = tl.where(off, r + b, r)",
        "its upper half is not negative",
        "values",
    ),
    _floor(
        "a negative literal", OFF + "q = tl.where(off, a // b + (-1), a // b)\nr = tl.where(off, r + b, r)", "takes no negative literal"
    ),
    _floor("no mask", OFF + "q = a // b - off\nr = tl.where(off, r + b, r)\nmask = offs >= 0", "does the mask still hold", "memory"),
    _mix("as it was", "y = (x + bias) * w * scale", "Is the result clamped", "values"),
    _mix("clamped, not widened", "y = (x + bias) * w * scale\ny = tl.clamp(y, -128.0, 127.0)", "Only a bias of 1", "values"),
    _mix("widened, not clamped", WIDE, "Is the result clamped", "values"),
    _mix("widened too late", "y = (x + bias).to(tl.int32) * w * scale\ny = tl.clamp(y, -128.0, 127.0)", "Only a bias of 1", "values"),
    _mix("cast before the clamp", WIDE + "y = tl.minimum(tl.maximum(y.to(tl.int8), -128), 127)", "Is the result clamped", "values"),
    _mix("only the top", WIDE + "y = tl.minimum(y, 127.0)", "at both ends", "values"),
    _mix("only the bottom", WIDE + "y = tl.maximum(y, -128.0)", "at both ends", "values"),
    _mix("uint8's range", WIDE + "y = tl.clamp(y, 0.0, 255.0)", "is uint8's range", "values"),
    _mix("down to -127", WIDE + "y = tl.clamp(y, -127.0, 127.0)", "one further", "values"),
    _mix(
        "clamped before the scale",
        "y = (x.to(tl.int32) + bias) * w\ny = tl.minimum(tl.maximum(y, -128), 127) * scale",
        "clamped before it is scaled",
        "values",
    ),
    _mix("rounded down", WIDE + "y = tl.floor(tl.clamp(y, -128.0, 127.0))", "is there a floor", "values"),
    _mix("to nearest", WIDE + "y = tl.floor(tl.clamp(y + 0.5, -128.0, 127.0))", "rounded to nearest", "values"),
    _mix(
        "x as int8", "y = (x.to(tl.int8).to(tl.int32) + bias) * w * scale\ny = tl.clamp(y, -128.0, 127.0)", "Is it read as int8", "values"
    ),
    _mix(
        "w unsigned",
        "y = (x.to(tl.int32) + bias) * w.to(tl.uint8) * scale\ny = tl.clamp(y, -128.0, 127.0)",
        "An unsigned type has no negative numbers",
        "values",
    ),
    _mix(
        "in float16",
        "y = (x.to(tl.float16) + bias) * w\ny = tl.clamp((y.to(tl.float16) * scale).to(tl.float32), -128.0, 127.0)",
        "hold 555 * 128",
    ),
    _mix("bias cast", "y = (x + bias.to(tl.int32)) * w * scale\ny = tl.clamp(y, -128.0, 127.0)", "has no .to()", "answer"),
    _window(
        "as it was",
        "is unknown after it",
        "answer",
        acc="",
        test="in_window = cols >= first & (cols < last)",
        w=W.replace("[None, :]", "[:, None]"),
        add="part = tl.sum(x * w, axis=1)\nacc = part if start == 0 else acc + part",
        out="out = acc * scale",
    ),
    _window("a number to begin with", "begin with tl.zeros", "answer", acc="acc = 0.0"),
    _window("no brackets", "& binds tighter", "memory", test="in_window = cols >= first & (cols < last)"),
    _window("w as a column", "Weights lie along columns", "values", w=W.replace("[None, :]", "[:, None]")),
    _window("scale as it was", "a cast afterwards comes too late", "answer", out="out = acc * scale"),
    _window("cast too late", "a cast afterwards comes too late", "answer", out="out = (acc * scale).to(tl.float32)"),
    _window(
        "scale in the loop",
        "The sum itself is made in float64",
        "answer",
        acc="acc = tl.zeros([BLOCK], tl.float64)",
        add="acc += tl.sum(x * w * scale, axis=1)",
        out="out = acc",
    ),
    _window("a sum in float64", "The sum itself is made in float64", "answer", acc="acc = tl.zeros([BLOCK], tl.float64)"),
    _window(
        "begun in the loop", "Only the last tile counts", "values", add="acc = tl.zeros([BLOCK], tl.float32)\nacc += tl.sum(x * w, axis=1)"
    ),
    _window("last included", "is it <= ?", "values", test="in_window = (cols >= first) & (cols <= last) & (cols < n_cols)"),
    _window("no window", "is the window in the mask", "values", test="in_window = cols < n_cols"),
    _window("no scale", "Is scale left out", "values", out="out = acc"),
    _window("rows not masked", "rows need their own mask", "memory", mask="mask = (rows >= 0)[:, None] & in_window[None, :]"),
]

RIGHT = [
    _floor("the signs' exclusive or", "r = a % b\noff = (r != 0) & ((r ^ b) < 0)\nq = a // b - off\nr = tl.where(off, r + b, r)"),
    _floor("the remainder from the quotient", "q = a // b\nq = tl.where((q * b != a) & ((a < 0) != (b < 0)), q - 1, q)\nr = a - q * b"),
    _floor("r first", "r = a % b\nr = tl.where((r != 0) & ((r < 0) != (b < 0)), r + b, r)\nq = a // b - (r != a % b)"),
    _floor("two literals", OFF + "q = a // b + tl.where(off, -1, 0)\nr = r + off * b"),
    _mix("minimum and maximum", WIDE + "y = tl.minimum(tl.maximum(y, -128.0), 127.0)"),
    _mix("all in float32", "y = (x.to(tl.float32) + bias) * w * scale\ny = tl.clamp(y, -128.0, 127.0).to(tl.int8)"),
    _mix("int16 for the pixel", "y = (x.to(tl.int16) + bias) * w * scale\ny = tl.clamp(y, -128.0, 127.0)"),
    _window("`and` of blocks", test="in_window = (cols >= first) and (cols < last)"),
    _window("no extra axis", w="w = tl.load(w_ptr + cols, mask=in_window, other=0.0)"),
    _window(
        "a tile of sums",
        acc="acc = tl.zeros([BLOCK, BLOCK], tl.float32)",
        add="acc += x * w",
        out="out = tl.sum(acc, axis=1) * scale.to(tl.float32)",
    ),
]
