"""Exercise 02.2: a generated kernel made right for every shape, judged beside float64 and beside the code generated here."""

from __future__ import annotations

import ast

import torch
from triton.runtime import JITFunction

from kit import machine
from kit.generated import generated_each
from kit.ghosts import ghost
from kit.graders.buffers import GUARD, Buffer, compare
from kit.graders.launching import launch, on_paper
from kit.graders.step import Mistake, Step, counted

EPS = 1e-5


def standardize(x):
    """(x - mean) / sqrt(var + 1e-5) of each row, in float32."""
    x = x.float()
    var, mean = torch.var_mean(x, -1, keepdim=True, correction=0)
    return (x - mean) * torch.rsqrt(var + EPS)


ROWS, COLUMNS = 333, 200  # the call that the pasted kernel was generated for


def standardize_reference(x):
    x = x.double()
    var, mean = torch.var_mean(x, -1, keepdim=True, correction=0)
    return (x - mean) / torch.sqrt(var + EPS)


def grade_general(kernel, trial):
    """Judge `standardize_kernel` in guarded buffers: small, with strides, the traced shape beside the generated code, hard values."""
    trial.evidence = machine.current().evidence
    _general(kernel, trial, 8, 64, block_m=4)
    _general(kernel, trial, 7, 64, block_m=4)
    _general(kernel, trial, 8, 50, block_m=4)
    _general(kernel, trial, 6, 33, wider=(48, 40), block_m=2)
    _general(kernel, trial, 5, 1, block_m=1, say=", every row constant")
    _general(kernel, trial, 9, 32, block_m=4, shift=2000, offset=GUARD + 1, say=" far from 0, at an odd offset")
    _general(kernel, trial, 401, 96, block_m=4)
    _general(kernel, trial, ROWS, COLUMNS, block_m=4, say=", as generated")
    _beside_generated(kernel, trial)


def _general(kernel, trial, n_rows, n_cols, *, wider=None, block_m, shift=0, offset=GUARD, say=""):
    device = machine.current().device
    wide_x, wide_out = wider or (n_cols, n_cols)
    values = (torch.randint(-4, 5, (n_rows, n_cols)) + shift if shift else torch.randn(n_rows, n_cols)).half()
    x = Buffer((n_rows, n_cols), torch.float16, values=values, wider=(n_rows, wide_x), offset=offset)
    out = Buffer((n_rows, n_cols), torch.float32, wider=(n_rows, wide_out))
    BLOCK_N = max(16, 1 << (n_cols - 1).bit_length())
    strides = "" if wider is None else f", strides {wide_x} and {wide_out}"
    ran = f"{counted(n_rows, 'row')} of {n_cols}{strides}{say}"
    sizes = (n_rows, n_cols, wide_x, wide_out, block_m, BLOCK_N)
    grid = (-(-n_rows // block_m),)
    facts = {"kernel": kernel, "x": values.double(), "sizes": sizes}
    paper = ghost((n_rows, n_cols), torch.float16, (wide_x, 1)), ghost((n_rows, n_cols), torch.float32, (wide_out, 1))
    memory = on_paper(trial, kernel, grid, (*paper, *sizes), ran, facts)
    trial.call(launch, kernel, grid, x.view, out.view, *sizes, ran=ran)
    expected = standardize_reference(values).float().to(device)
    if shift:  # subtracting a mean of thousands costs a right kernel its last digits too
        expected = torch.where((out.view - expected).abs() < 5e-3, out.view, expected)
    right, inside = compare(
        trial, out, expected, name="out", axes=("row", "column"), ran=ran, facts=facts | {"out": out.view.double().cpu()}
    )
    trial.case(ran, values=right, memory=memory and inside)


def _beside_generated(kernel, trial):
    """The same call of the generated code and of the answer: they agree to six digits, though neither knows of the other."""
    here = machine.current()
    x = torch.randn(ROWS, COLUMNS).half().to(here.device)
    out = torch.full((ROWS, COLUMNS), torch.nan, device=here.device)
    theirs = generated_each([(standardize, x)])[0](x)
    ran = "beside the code generated here"
    trial.call(launch, kernel, (-(-ROWS // 4),), x, out, ROWS, COLUMNS, COLUMNS, COLUMNS, 4, 256, ran=ran)
    worst = (out - theirs).abs().max().item()
    if not worst < 1e-5:
        told = {"ran": ran, "where": "the largest difference", "got": f"{worst:.2g}", "expected": "below 1e-5"}
        trial.problem("values", f"{ran}: they differ by {worst:.2g}", {"kernel": kernel}, **told)
    trial.case(ran, values=not trial.problems)


def _numbers(f):
    """The whole numbers in the answer's source."""
    if not isinstance(f.get("kernel"), JITFunction):
        return set()
    return {node.value for node in ast.walk(ast.parse(f["kernel"].src)) if isinstance(node, ast.Constant) and type(node.value) is int}


def _explains(formula):
    """True when `formula(x, n_cols, BLOCK_N)` gives the values that were stored."""

    def seen(f):
        if "out" not in f:
            return False
        _, n_cols, _, _, _, block = f["sizes"]
        return torch.allclose(formula(f["x"], n_cols, block), f["out"], rtol=1e-3, atol=1e-4, equal_nan=True)

    return seen


def _centred(x):
    return x - x.mean(-1, keepdim=True)


def _leaked(x, n, block):
    """The variance with the masked columns' (0 - mean)^2 in it."""
    mean, c = x.mean(-1, keepdim=True), _centred(x)
    return c / torch.sqrt(((c * c).sum(-1, keepdim=True) + (block - n) * mean * mean) / n + EPS)


def _of_block(x, n, block):
    """Sums divided by the block instead of the columns."""
    c = x - x.sum(-1, keepdim=True) / block
    return c / torch.sqrt((c * c).sum(-1, keepdim=True) / block + EPS)


def _strided(f):
    return "sizes" in f and f["sizes"][2] != f["sizes"][3]


def _used(f):
    """The names that the answer's source uses, attributes too."""
    if not isinstance(f.get("kernel"), JITFunction):
        return set()
    nodes = list(ast.walk(ast.parse(f["kernel"].src)))
    names = {node.id for node in nodes if isinstance(node, ast.Name) and isinstance(node.ctx, ast.Load)}
    return names | {node.attr for node in nodes if isinstance(node, ast.Attribute)}


def _floats(f):
    if not isinstance(f.get("kernel"), JITFunction):
        return set()
    return {node.value for node in ast.walk(ast.parse(f["kernel"].src)) if isinstance(node, ast.Constant) and type(node.value) is float}


def _shape(f):
    return f["sizes"][:2] if "sizes" in f else ()


STEP_2 = Step(
    number="02.2",
    title="A kernel for every shape",
    spec="Write the standardising kernel so that it is right for every shape and every row stride.",
    answer="kernel",
    call="standardize_kernel(x_ptr, out_ptr, n_rows, n_cols, stride_xm, stride_om, BLOCK_M, BLOCK_N)",
    size="about 12 lines",
    grade=grade_general,
    mistakes=(
        Mistake(
            "literal",
            lambda f: bool(_numbers(f) & {ROWS, COLUMNS, float(COLUMNS)}) or bool(_floats(f) & {float(COLUMNS)}),
            "There is a 200 or a 333 in the body: sizes and strides of the generated call. Use n_rows, n_cols and the strides.",
        ),
        Mistake(
            "one stride for both",
            lambda f: _strided(f) and len(_used(f) & {"stride_xm", "stride_om"}) == 1,
            "x and out have their own row strides: is one of them used for both?",
        ),
        Mistake(
            "strides ignored",
            lambda f: _strided(f) and not _used(f) & {"stride_xm", "stride_om"},
            "Rows are stride_xm and stride_om elements apart, not n_cols.",
        ),
        Mistake("strides exchanged", _strided, "Rows of x are stride_xm apart, rows of out stride_om: does each pointer use its own?"),
        Mistake(
            "rows not masked",
            lambda f: f.get("about") == "memory" and _shape(f)[0] % f["sizes"][4] and not f["sizes"][5] > _shape(f)[1],
            "The last program owns fewer rows than BLOCK_M: does the mask look at n_rows?",
        ),
        Mistake(
            "columns not masked",
            lambda f: f.get("about") == "memory" and f["sizes"][5] > _shape(f)[1],
            "BLOCK_N is more than n_cols here: does the mask of load and store look at n_cols?",
        ),
        Mistake(
            "no epsilon",
            lambda f: f.get("about") == "values" and _shape(f)[1] == 1,
            "A constant row has variance 0: is the 1e-5 under the root missing? It stands beside the variance, before the root.",
        ),
        Mistake(
            "float16",
            lambda f: f.get("about") == "values" and "float32" not in _used(f),
            "Is it computed in float16? Cast to tl.float32.",
        ),
        Mistake("divided by the block", _explains(_of_block), "Are the sums divided by BLOCK_N? A row has n_cols elements."),
        Mistake(
            "leak",
            _explains(_leaked),
            "The masked columns hold 0, and 0 - mean is not 0: its square enters the variance. Use tl.where after the subtraction.",
        ),
        Mistake(
            "n - 1",
            _explains(lambda x, n, _: _centred(x) / torch.sqrt((_centred(x) ** 2).sum(-1, keepdim=True) / (n - 1) + EPS)),
            "Is the variance divided by n_cols - 1? Here it is n_cols.",
        ),
        Mistake(
            "not centred", _explains(lambda x, n, _: x / torch.sqrt((x * x).mean(-1, keepdim=True) + EPS)), "Is the mean not subtracted?"
        ),
        Mistake(
            "variance of x",
            _explains(lambda x, n, _: _centred(x) / torch.sqrt((x * x).mean(-1, keepdim=True) + EPS)),
            "Is the mean subtracted before the squares are summed? The variance is that of x - mean.",
        ),
        Mistake(
            "variance, not its root",
            _explains(lambda x, n, _: _centred(x) / ((_centred(x) ** 2).mean(-1, keepdim=True) + EPS)),
            "Is the root of the variance missing?",
        ),
        Mistake(
            "multiplied",
            _explains(lambda x, n, _: _centred(x) * torch.sqrt((_centred(x) ** 2).mean(-1, keepdim=True) + EPS)),
            "Is it multiplied by the deviation? Divide by it, or use tl.rsqrt.",
        ),
        Mistake(
            "only centred", _explains(lambda x, n, _: _centred(x)), "The mean is subtracted; is the division by the deviation missing?"
        ),
        Mistake(
            "difference of squares",
            lambda f: "x" in f and f["x"].mean() > 100,
            "Rows far from 0: a variance as mean(x^2) - mean^2 loses its digits. Subtract the mean first, then square.",
        ),
        Mistake(
            "axis",
            lambda f: f.get("about") == "values" and f["sizes"][5] == _shape(f)[1],
            "Are the sums along axis 1, one for each row, and kept as a column with [:, None]?",
        ),
        Mistake(
            "masked columns",
            lambda f: f.get("about") == "values",
            "It is right without masked columns or rows: what do masked elements hold, and do they enter a sum?",
        ),
    ),
    hints=(
        "Follow the generated kernel line by line, and give each line its size: what is 333, what is 200, which 200 is a stride?",
        "Two masks: rows against n_rows, columns against n_cols. After x - mean masked columns hold -mean: make them 0 with tl.where.",
        "mean = (tl.sum(x, 1) / n_cols)[:, None]; c = tl.where(mask, x - mean, 0.0); "
        "var = (tl.sum(c * c, 1) / n_cols)[:, None]; store c * tl.rsqrt(var + 1e-5)",
    ),
)
