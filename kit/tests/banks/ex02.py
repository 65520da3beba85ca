"""Answers to exercise 02, reading what Inductor writes."""

from kit.tests.banks import Answer

WITHOUT_KERNEL = ("02.1", "02.3")


def _read(name, text, cause=""):
    return Answer("02.1", name, (text,), cause)


def _write(name, cause="", about="", *, replace=(), text=None):
    text = GENERAL if text is None else text
    for old, new in replace:
        assert old in text, old
        text = text.replace(old, new)
    return Answer("02.2", name, (text,), cause, about)


def _guard(name, text, cause=""):
    return Answer("02.3", name, (text,), cause)


GENERAL = """offs_m = tl.program_id(0) * BLOCK_M + tl.arange(0, BLOCK_M)[:, None]
offs_n = tl.arange(0, BLOCK_N)[None, :]
mask = (offs_m < n_rows) & (offs_n < n_cols)
x = tl.load(x_ptr + offs_m * stride_xm + offs_n, mask=mask, other=0.0).to(tl.float32)
mean = (tl.sum(x, 1) / n_cols)[:, None]
centred = tl.where(mask, x - mean, 0.0)
var = (tl.sum(centred * centred, 1) / n_cols)[:, None]
tl.store(out_ptr + offs_m * stride_om + offs_n, centred * tl.rsqrt(var + 1e-5), mask=mask)
"""

# What Inductor wrote, pasted: names changed to those of the exercise, numbers left.
PASTED = """xindex = tl.program_id(0) * BLOCK_M + tl.arange(0, BLOCK_M)[:, None]
xmask = xindex < 333
r0_index = tl.arange(0, BLOCK_N)[None, :]
r0_mask = r0_index < 200
tmp0 = tl.load(x_ptr + (r0_index + 200 * xindex), r0_mask & xmask, other=0.0).to(tl.float32)
tmp1 = tl.where(r0_mask & xmask, tmp0, 0)
tmp2 = tl.sum(tmp1, 1)[:, None] / 200.0
tmp3 = tl.where(r0_mask & xmask, tmp0 - tmp2, 0)
tmp4 = tl.sum(tmp3 * tmp3, 1)[:, None] / 200.0
tl.store(out_ptr + (r0_index + 200 * xindex), (tmp0 - tmp2) * tl.rsqrt(tmp4 + 1e-5), r0_mask & xmask)
"""

CHECK = """if tuple(x.shape) != shape or any(n > 1 and a != b for n, a, b in zip(x.shape, x.stride(), stride)):
    raise ValueError("another layout")
"""
COPY = "torch.empty_strided(x.shape, x.stride(), dtype=x.dtype, device=x.device).copy_(x)"
ALIGN = f"if aligned and x.data_ptr() % 16:\n    return {COPY}\n"

WRONG = [
    _read("names that begin with out", r'return set(re.findall(r"\bout_ptr\d+", code))', "A name is a promise"),
    _read("names with out in them", r'return set(re.findall(r"\b\w*out_ptr\d+", code))', "One in_out_ptr0 here is only loaded, and ws_ptr"),
    _read("all but in_ptr", r'return {p for p in re.findall(r"\w+_ptr\d*", code) if not p.startswith("in_ptr")}', "is only loaded"),
    _read("every pointer", r'return set(re.findall(r"\w+_ptr\d*", code))', "Are these all pointers"),
    _read("loads", r'return set(re.findall(r"tl\.load\((\w+)", code))', "the pointers that are loaded"),
    _read("no atomics", r'return set(re.findall(r"tl\.store\((\w+)", code))', "An atomic addition writes as well"),
    _read("atomics only", r'return set(re.findall(r"tl\.atomic_add\((\w+)", code))', "Most kernels write with tl.store"),
    _read("the first store", r'return {re.search(r"tl\.(?:store|atomic_add)\((\w+)", code)[1]}', "Is that the first store only"),
    _read("the last store", r'return {re.findall(r"tl\.(?:store|atomic_add)\((\w+)", code)[-1]}', "Is that the last store only"),
    _read("both read and written", r'return {p for p in re.findall(r"tl\.store\((\w+)", code) if f"tl.load({p}" in code}', "is missing"),
    _read("a list", r'return re.findall(r"tl\.(?:store|atomic_\w+)\((\w+)", code)', "Return a set"),
    _read("nothing", 'set(re.findall("tl.store", code))', "Is the return missing"),
    _write("pasted", "There is a 200 or a 333 in the body", text=PASTED),
    _write("only the mask general", "There is a 200 or a 333", text=PASTED, replace=[("333", "n_rows"), ("< 200", "< n_cols")]),
    _write("the stride left", "There is a 200 or a 333", replace=[("offs_m * stride_xm", "offs_m * 200")]),
    _write("the number of rows left", "There is a 200 or a 333", replace=[("< n_rows", "< 333")]),
    _write("the mean's number left", "There is a 200 or a 333", replace=[("tl.sum(x, 1) / n_cols", "tl.sum(x, 1) / 200.0")]),
    _write("one stride for both", "is one of them used for both", replace=[("stride_om", "stride_xm")]),
    _write("no strides", "not n_cols", replace=[("stride_om", "n_cols"), ("stride_xm", "n_cols")]),
    _write(
        "exchanged",
        "does each pointer use its own",
        replace=[("stride_om", "OTHER"), ("stride_xm", "stride_om"), ("OTHER", "stride_xm")],
    ),
    _write(
        "rows not masked",
        "does the mask look at n_rows",
        "memory",
        replace=[("(offs_m < n_rows) & (offs_n < n_cols)", "(offs_n < n_cols) & (offs_m >= 0)")],
    ),
    _write(
        "columns not masked",
        "does the mask of load and store look at n_cols",
        "memory",
        replace=[("& (offs_n < n_cols)", "& (offs_n >= 0)")],
    ),
    _write("divided by the block", "Are the sums divided by BLOCK_N", "values", replace=[("/ n_cols", "/ BLOCK_N")]),
    _write("masked columns leak", "Use tl.where after the subtraction", "values", replace=[("tl.where(mask, x - mean, 0.0)", "x - mean")]),
    _write("n - 1", "divided by n_cols - 1", "values", replace=[("centred, 1) / n_cols", "centred, 1) / (n_cols - 1)")]),
    _write("not centred", "Is the mean not subtracted", "values", replace=[("x - mean, 0.0", "x, 0.0")]),
    _write("variance of x", "Is the mean subtracted before", "values", replace=[("tl.sum(centred * centred, 1)", "tl.sum(x * x, 1)")]),
    _write("the variance itself", "Is the root of the variance missing", "values", replace=[("* tl.rsqrt(var + 1e-5)", "/ (var + 1e-5)")]),
    _write("multiplied", "Is it multiplied by the deviation", "values", replace=[("* tl.rsqrt(var + 1e-5)", "* tl.sqrt(var + 1e-5)")]),
    _write("only centred", "is the division by the deviation missing", "values", replace=[(" * tl.rsqrt(var + 1e-5)", "")]),
    _write("no epsilon", "is the 1e-5 under the root missing", "values", replace=[("var + 1e-5", "var")]),
    _write(
        "difference of squares",
        "loses its digits",
        "values",
        replace=[("tl.sum(centred * centred, 1) / n_cols)[:, None]", "tl.sum(x * x, 1) / n_cols)[:, None] - mean * mean")],
    ),
    _write("in float16", "Is it computed in float16", "values", replace=[("other=0.0).to(tl.float32)", "other=0.0)")]),
    _write(
        "along the wrong axis",
        "Are the sums along axis 1",
        "values",
        replace=[("(tl.sum(x, 1) / n_cols)[:, None]", "(tl.sum(x, 0) / n_cols)[None, :]")],
    ),
    _guard("never a copy", CHECK + "return x", "alignment that this x has not"),
    _guard("always a copy", CHECK + f"return {COPY}", "It fits as it is"),
    _guard("the claim ignored", CHECK + ALIGN.replace("aligned and ", "") + "return x", "This kernel claims no alignment"),
    _guard(
        "made contiguous",
        CHECK + "if aligned and x.data_ptr() % 16:\n    return x.contiguous()\nreturn x",
        "x.contiguous() returns x itself",
    ),
    _guard("cloned", CHECK + "if aligned and x.data_ptr() % 16:\n    return x.clone()\nreturn x", "The copy has other strides"),
    _guard("the offset asked", CHECK + ALIGN.replace("x.data_ptr()", "x.storage_offset()") + "return x", "ask x.data_ptr()"),
    _guard(
        "the offset in bytes of float16",
        CHECK + ALIGN.replace("x.data_ptr()", "2 * x.storage_offset()") + "return x",
        "ask x.data_ptr()",
    ),
    _guard("not filled", CHECK + ALIGN.replace(".copy_(x)", ".zero_()") + "return x", "Is the new tensor filled"),
    _guard("no check of the layout", ALIGN + "return x", "Is every size compared"),
    _guard("no check of strides", "if tuple(x.shape) != shape:\n    raise ValueError\n" + ALIGN + "return x", "Are the strides compared"),
    _guard(
        "repacked",
        "if tuple(x.shape) != shape:\n    raise ValueError\nif x.stride() != stride:\n    x = x.contiguous()\n" + ALIGN + "return x",
        "Are the strides compared",
    ),
    _guard("elements counted", "if x.numel() != shape[0] * shape[1]:\n    raise ValueError\n" + ALIGN + "return x", "compared"),
    _guard("every stride compared", CHECK.replace("n > 1 and ", "") + ALIGN + "return x", "The stride of an axis of one element"),
    _guard("an assert", "assert tuple(x.shape) == shape and x.stride() == stride\n" + ALIGN + "return x", "An assert is switched off"),
    _guard(
        "misaligned refused",
        CHECK + "if aligned and x.data_ptr() % 16:\n    raise ValueError\nreturn x",
        "a ValueError is for another shape",
    ),
    _guard("all refused", "raise ValueError", "Is the comparison right"),
    _guard("no return", CHECK + ALIGN, "Is a return missing"),
]

RIGHT = [
    _read(
        "line by line",
        "names = set()\nfor call in re.findall(r'tl[.](store|atomic_[a-z]+)[(]([a-z_0-9]+)', code):\n    names.add(call[1])\nreturn names",
    ),
    _read(
        "by the syntax tree",
        "import ast\n"
        "calls = [node for node in ast.walk(ast.parse(code)) if isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute)]\n"
        "calls = [node for node in calls if node.func.attr == 'store' or node.func.attr.startswith('atomic_')]\n"
        "return {name.id for node in calls for name in ast.walk(node.args[0]) if isinstance(name, ast.Name) and '_ptr' in name.id}",
    ),
    _write(
        "pasted, every number an argument",
        text=PASTED,
        replace=[
            ("333", "n_rows"),
            ("< 200", "< n_cols"),
            ("200.0", "n_cols"),
            ("x_ptr + (r0_index + 200", "x_ptr + (r0_index + stride_xm"),
            ("out_ptr + (r0_index + 200", "out_ptr + (r0_index + stride_om"),
        ],
    ),
    _write(
        "a row at a time",
        text="""offs_n = tl.arange(0, BLOCK_N)
mask = offs_n < n_cols
for i in range(BLOCK_M):
    row = tl.program_id(0) * BLOCK_M + i
    real = mask & (row < n_rows)
    x = tl.load(x_ptr + row.to(tl.int64) * stride_xm + offs_n, mask=real, other=0.0).to(tl.float32)
    c = tl.where(real, x - tl.sum(x) / n_cols, 0.0)
    tl.store(out_ptr + row.to(tl.int64) * stride_om + offs_n, c / tl.sqrt(tl.sum(c * c) / n_cols + 1e-5), mask=real)
""",
    ),
    _write(
        "keep_dims, masked when squared",
        text=GENERAL,
        replace=[
            ("(tl.sum(x, 1) / n_cols)[:, None]", "tl.sum(x, 1, keep_dims=True) / n_cols"),
            ("tl.where(mask, x - mean, 0.0)", "x - mean"),
            ("tl.sum(centred * centred, 1)", "tl.sum(tl.where(mask, centred * centred, 0.0), 1)"),
        ],
    ),
    _guard("in another order", CHECK + f"fits = not aligned or x.data_ptr() % 16 == 0\nreturn x if fits else {COPY}"),
    _guard(
        "with a wider allocation",
        CHECK + "if not aligned or x.data_ptr() % 16 == 0:\n    return x\n"
        "span = 1 + sum((n - 1) * s for n, s in zip(x.shape, x.stride()))\n"
        "new = torch.empty(span, dtype=x.dtype, device=x.device).as_strided(x.shape, x.stride())\nnew.copy_(x)\nreturn new",
    ),
]
