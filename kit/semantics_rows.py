"""The rows of the semantics table: what is asked, and what a reader would expect. What each world answers is never written down here.

What the official page says is told in our words. It was read at PAGE and, where that is newer than the releases, in the source of the page:
docs/python-api/triton-semantics.rst of triton-lang/triton at 0c2e95d34e2c18c75a93cd818a57b9154249d912.
"""

from __future__ import annotations

from dataclasses import dataclass, field

from kit.versions import TESTED

PAGE = "https://triton-lang.org/main/python-api/triton-semantics.html"
ALIKE = f"{TESTED[0]} to {TESTED[-1]}"  # asked on each of these (test_semantics.py); what is older, or newer, may be alike or not


@dataclass(frozen=True)
class Case:
    """A row: what is asked, and what a reader expects of it. `undefined`: nothing says what comes out, so nothing may rely on it.

    `versions` says on which Tritons the row is as it is, or what changed. `stored` makes it a store through a pointer of that dtype;
    `own` gives a world's own text, where it is not the row's.
    """

    name: str
    code: str
    values: dict
    expect: object
    dtype: str = ""
    undefined: bool = False
    versions: str = ALIKE
    stored: str = ""
    own: dict = field(default_factory=dict)


@dataclass(frozen=True)
class Group:
    """Rows about one rule. `says` is what the official page says of it, in our words, and `section` where."""

    name: str
    says: str
    section: str
    cases: tuple[Case, ...]


def _t(value, dtype="int32"):
    return (value, dtype)


FOUR = [-7, -5, 3, 7]
ONES = [1.0, 2.0, 3.0, 4.0]
GROUPS = (
    Group(
        "Division and remainder",
        "Integer // and % round toward zero, as in C; they follow Python where all operands are known when the kernel compiles.",
        "differences-with-numpy",
        (
            Case("// of a tensor", "x // 4", {"x": _t(-7)}, -2),
            Case("// of an argument", "x // 4", {"x": (-7, "scalar")}, -2),
            Case("// of a constexpr", "x // 4", {"x": (-7, "constexpr")}, -2),
            Case("// of literals", "-7 // 4", {}, -2),
            Case("// of a named literal", "a = -7\na // 4", {}, -2),
            Case("% of a tensor", "x % 4", {"x": _t(-7)}, 1),
            Case("% of an argument", "x % 4", {"x": (-7, "scalar")}, 1),
            Case("% of a constexpr", "x % 4", {"x": (-7, "constexpr")}, 1),
            Case("% of floats", "x % 4", {"x": _t(-7.5, "float32")}, 0.5),
            Case("an argument of 3", "(n - 8) // 2", {"n": (3, "scalar")}, -3),
            Case("an argument of 1", "(n - 8) // 2", {"n": (1, "scalar")}, -4),
            Case("a shift", "x >> 2", {"x": _t(-7)}, -2),
            Case("tl.cdiv", "tl.cdiv(x, 4)", {"x": _t([-5, -6, -7, -8])}, [-1, -1, -1, -2]),
            Case("// of mixed signedness", "x // y", {"x": _t(7), "y": _t(2, "uint32")}, 3),
            Case("// by zero, 32 bits", "x // y", {"x": _t([7, -7]), "y": _t([0, 0])}, "an error", undefined=True),
            Case("// by zero, 64 bits", "x // y", {"x": _t([7, -7], "int64"), "y": _t([0, 0], "int64")}, "an error", undefined=True),
            Case("% by zero", "x % y", {"x": _t([7, -7]), "y": _t([0, 0])}, "an error", undefined=True),
        ),
    ),
    Group(
        "Promotion of tensors",
        "The higher kind wins (bool, integer, float), then the larger width; of equal widths the unsigned type, of the two 16-bit floats "
        "float16. Divisions and remainders that have a float are made in float32.",
        "type-promotion",
        (
            Case("int32 and int64", "x + y", {"x": _t(7), "y": _t(7, "int64")}, 14, "int64"),
            Case("uint8 and int8", "x + y", {"x": _t(200, "uint8"), "y": _t(100, "int8")}, 300, "int16"),
            Case("int32 and uint32", "x + y", {"x": _t(-1), "y": _t(0, "uint32")}, -1, "int64"),
            Case("compared with unsigned", "x < y", {"x": _t(-1), "y": _t(1, "uint32")}, True),
            Case("float16 and bfloat16", "x + y", {"x": _t(1.0, "float16"), "y": _t(0.00390625, "bfloat16")}, 1.00390625, "float32"),
            Case("int8 and bfloat16", "x + y", {"x": _t(3, "int8"), "y": _t(0.5, "bfloat16")}, 3.5, "bfloat16"),
            Case("int32 by int32", "x / y", {"x": _t(16_777_217), "y": _t(1)}, 16_777_217.0, "float64"),
            Case("float16 by float16", "x / y", {"x": _t(1.0, "float16"), "y": _t(4.0, "float16")}, 0.25, "float16"),
            Case(
                "the larger of two kinds of 16 bits",
                "tl.maximum(x, y)",
                {"x": _t(1.0, "float16"), "y": _t(70144.0, "bfloat16")},
                70144.0,
                versions="float32 to 3.8.0, float16 from 3.9.0",
            ),
            Case("bool and bool", "x + y", {"x": _t(True, "bool"), "y": _t(True, "bool")}, 2),
        ),
    ),
    Group(
        "Promotion with a number",
        "A literal or constexpr of the tensor's kind, or a lower one, takes the tensor's type; of a higher kind, the smallest type from "
        "int32 or float32 on that holds it.",
        "type-promotion",
        (
            Case("int8 and an argument of 2", "x + n", {"x": _t(127, "int8"), "n": (2, "scalar")}, -127, "int8"),
            Case("int8 and an argument of 1", "x + n", {"x": _t(127, "int8"), "n": (1, "scalar")}, -128, "int8"),
            Case("int8 and a constexpr", "x + C", {"x": _t(127, "int8"), "C": (2, "constexpr")}, -127, "int8"),
            Case("int8 and a named literal", "n = 2\nx + n", {"x": _t(127, "int8")}, -127, "int8"),
            Case("a literal out of range", "x + 200", {"x": _t(100, "int8")}, "an error"),
            Case("a negative literal", "x + (-1)", {"x": _t(7, "uint8")}, 6, "uint8"),
            Case("int8 and a float literal", "x * 0.5", {"x": _t(3, "int8")}, 1.5, "float32"),
            Case("float16 and a float literal", "x + 0.5", {"x": _t(1.0, "float16")}, 1.5, "float16"),
            Case("float8 by a literal", "x / 2", {"x": _t(1.5, "float8_e5m2")}, 0.75, versions="refused to 3.8.0, float32 from 3.9.0"),
            Case("float16 and an argument", "x + a", {"x": _t(1.0, "float16"), "a": (0.5, "scalar")}, 1.5, "float16"),
            Case("float32 and a float64 argument", "x + a", {"x": _t(1.0, "float32"), "a": (0.5, "scalar float64")}, 1.5, "float32"),
            Case("float32 and a tiny literal", "x + 1e-40", {"x": _t(1.0, "float32")}, 1.0, "float32"),
            Case("float32 and a tiny named literal", "tiny = 1e-40\nx + tiny", {"x": _t(1.0, "float32")}, 1.0, "float32"),
        ),
    ),
    Group(
        "Narrow integers and casts",
        "A float becomes an integer by rounding toward zero, which is defined where the result fits. Out of range, or for NaN, it is "
        "undefined and may differ between machines and versions: clamp first.",
        "differences-with-numpy",
        (
            Case("uint8 wraps", "x + y", {"x": _t(200, "uint8"), "y": _t(100, "uint8")}, 300),
            Case("int8 wraps", "x * y", {"x": _t(100, "int8"), "y": _t(2, "int8")}, 200),
            Case("minus an unsigned", "-x", {"x": _t(1, "uint8")}, -1),
            Case("tl.sum of int8", "tl.sum(x, 0)", {"x": _t([100, 100, 100, 100], "int8")}, 400),
            Case("int32 cast to int8", "x.to(tl.int8)", {"x": _t(300)}, "an error"),
            Case("int32 stored as int8", "tl.store(out_ptr, x)", {"x": _t(300)}, "an error", stored="int8"),
            Case("float stored as int8", "tl.store(out_ptr, x)", {"x": _t(2.7, "float32")}, "an error", stored="int8"),
            Case("float cast to int", "x.to(tl.int32)", {"x": _t([2.7, -2.7], "float32")}, [2, -2]),
            Case("out of int8", "x.to(tl.int8)", {"x": _t([510.0, -200.0], "float32")}, "an error", undefined=True),
            Case("out of uint8", "x.to(tl.uint8)", {"x": _t([-1.0, 300.0], "float32")}, "an error", undefined=True),
            Case("out of int32", "x.to(tl.int32)", {"x": _t([3e9, -3e9], "float32")}, "an error", undefined=True),
            Case("NaN and infinity", "x.to(tl.int32)", {"x": _t([float("nan"), float("inf")], "float32")}, "an error", undefined=True),
            Case("NaN, 64 bits", "x.to(tl.int64)", {"x": _t(float("nan"), "float32")}, "an error", undefined=True),
            Case(
                "clamped before",
                "tl.clamp(x, -128.0, 127.0).to(tl.int8)",
                {"x": _t([510.0, -200.0], "float32")},
                [127, -128],
                own={
                    "numpy": "np.clip(x, -128, 127).astype(np.int8)",
                    "torch": "x.clamp(-128, 127).to(torch.int8)",
                    "python": "int(min(max(x, -128), 127))",
                },
            ),
        ),
    ),
    Group(
        "Shapes",
        "The shorter shape is padded with ones on the left; a size of 1 stretches to the other's.",
        "broadcasting",
        (
            Case("(4, 1) with (4,)", "x[:, None] * y", {"x": _t(ONES, "float32"), "y": _t(ONES, "float32")}, [1.0, 4.0, 9.0, 16.0]),
            Case("a comparison kept as a column", "tl.sum((x[:, None] > y).to(tl.int32))", {"x": _t(FOUR), "y": _t(FOUR)}, 0),
        ),
    ),
    Group(
        "Conditions",
        "The page has no word on these: precedence is Python's own grammar; `and` of blocks is accepted with a warning that it will go.",
        "differences-with-numpy",
        (
            Case("& without brackets", "x < 4 & (x > 0)", {"x": _t(FOUR)}, [False, False, True, False]),
            Case("& with brackets", "(x < 4) & (x > 0)", {"x": _t(FOUR)}, [False, False, True, False]),
            Case("and", "(x < 4) and (x > 0)", {"x": _t(FOUR)}, [False, False, True, False]),
            Case("not", "not x", {"x": _t([0, 1, 2, 3])}, [True, False, False, False]),
            Case("~ of a bool", "~x", {"x": _t(True, "bool")}, False),
            Case("~ of an integer", "~x", {"x": _t(1)}, -2),
            Case("a chain", "0 < x < 4", {"x": _t(3)}, True, versions="refused to 3.8.0, True from 3.9.0"),
            Case("a power", "x ** 2", {"x": _t(3)}, 9),
        ),
    ),
    Group(
        "Variables",
        "A variable that is used after a loop or an `if` must have been assigned on every path to there, even where the loop surely runs.",
        "differences-with-numpy",
        (
            Case("first bound in a loop", "for i in range(0, 1):\n    v = x\nv", {"x": _t(7)}, 7),
            Case("bound before the loop", "v = x\nfor i in range(0, 1):\n    v = x\nv", {"x": _t(7)}, 7),
            Case("first bound in an if", "if n > 2:\n    v = x\nv", {"x": _t(7), "n": (3, "scalar")}, 7),
            Case("the loop's own variable", "for i in range(0, n):\n    x += i\ni", {"x": _t(7), "n": (3, "scalar")}, 2, undefined=True),
            Case("a type that changes", "a = 0\nfor i in range(0, n):\n    a = a + 0.5\na", {"n": (3, "scalar")}, 1.5),
        ),
    ),
)
CASES = {case.name: case for group in GROUPS for case in group.cases}
