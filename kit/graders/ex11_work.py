"""Exercise 11.2: the bytes that an operation must move and the FLOP that it must compute, whatever the implementation does."""

from __future__ import annotations

from kit.graders.step import Mistake, Step

# (operation, sizes): no two sizes of a case are equal, so that a swap shows.
CASES = (
    ("add", {"n": 1_000}),
    ("add row", {"m": 300, "n": 70}),
    ("row sums", {"m": 500, "n": 40}),
    ("gather", {"rows": 90, "n": 64, "table": 5_000}),
    ("matmul", {"m": 128, "n": 32, "k": 700}),
)
ITEMSIZES = (2, 4)


def _add(n):
    return 3 * n, 0, n


def _add_row(m, n):
    return 2 * m * n + n, 0, m * n


def _row_sums(m, n):
    return m * n + m, 0, m * (n - 1)


def _gather(rows, n, table):
    return 2 * rows * n, 8 * rows, 0


def _matmul(m, n, k):
    return m * k + k * n + m * n, 0, 2 * m * n * k


# {operation: sizes -> (elements moved, bytes of indices, FLOP)}
TRUTH = {"add": _add, "add row": _add_row, "row sums": _row_sums, "gather": _gather, "matmul": _matmul}


def work_of(name, sizes, itemsize, truth=TRUTH):
    """(bytes, FLOP) of an operation: each input read once, each result written once."""
    elements, indices, flop = truth[name](**sizes)
    return itemsize * elements + indices, flop


def _asked():
    return [(name, sizes, itemsize) for name, sizes in CASES for itemsize in ITEMSIZES]


def grade_work(answer, trial):
    """Judge `work` on five operations in two dtypes. All are asked first: a likely cause is another count that explains them all."""
    got = [trial.call(answer, name, dict(sizes), itemsize, ran=_words(name, sizes, itemsize)) for name, sizes, itemsize in _asked()]
    for (name, sizes, itemsize), given in zip(_asked(), got, strict=True):
        ran, wanted = _words(name, sizes, itemsize), work_of(name, sizes, itemsize)
        facts = {"all": got, "given": given, "name": name, "sizes": sizes, "itemsize": itemsize}
        pair = isinstance(given, (tuple, list)) and len(given) == 2 and all(_is_number(one) for one in given)
        if not pair or tuple(given) != wanted:
            what = "bytes" if pair and given[0] != wanted[0] else "FLOP" if pair else ""
            at = 0 if what == "bytes" else 1
            text = f"{ran}: {given[at]:,} {what}, expected {wanted[at]:,}" if pair else f"{ran}: got {given!r:.40}, expected two numbers"
            told = {
                "ran": ran,
                "where": what or "what it returns",
                "got": f"{given!r:.40}",
                "expected": f"({wanted[0]:,}, {wanted[1]:,})",
            }
            facts["pair"], facts["what"] = pair, what
            trial.problem("answer", text, facts, picture=_picture(given, wanted, what) if pair else None, **told)
        trial.case(ran)


def _is_number(value):
    return isinstance(value, (int, float)) and not isinstance(value, bool)


def _words(name, sizes, itemsize):
    told = ", ".join(f"{key} = {value:,}" for key, value in sizes.items())
    return f"{name}, {told}, {itemsize} bytes an element"


def _picture(given, wanted, what):
    at = 0 if what == "bytes" else 1
    rows = [{"label": "the operation's", "value": wanted[at], "ok": True}]
    if 0 <= given[at] < float("inf"):
        rows.append({"label": "counted", "value": given[at], "ok": False})
    return {"kind": "Bars", "title": f"{what[0].upper()}{what[1:]}", "unit": what, "rows": rows}


def _counts(name, other):
    """True when the failing answer is that of another count of this operation: sizes -> (elements, bytes of indices, FLOP)."""

    def seen(facts):
        if facts.get("name") != name or not facts["pair"]:
            return False
        said = work_of(name, facts["sizes"], facts["itemsize"], {name: other})
        at = 0 if facts["what"] == "bytes" else 1
        return facts["given"][at] == said[at]

    return seen


def _all_bytes(count):
    """True when every operation's bytes are `count(elements, indices, itemsize)`."""

    def seen(facts):
        if not facts.get("pair"):
            return False
        for (name, sizes, itemsize), given in zip(_asked(), facts["all"], strict=True):
            elements, indices, _ = TRUTH[name](**sizes)
            if not isinstance(given, (tuple, list)) or not given or given[0] != count(elements, indices, itemsize):
                return False
        return True

    return seen


def _swapped(facts):
    return facts.get("pair") and tuple(facts["given"])[::-1] == work_of(facts["name"], facts["sizes"], facts["itemsize"])


STEP_2 = Step(
    number="11.2",
    title="What must be moved",
    spec="Return the bytes and the FLOP of an operation: each input read once, each result written once.",
    answer="function",
    call="work(operation, sizes, itemsize)",
    size="about 12 lines",
    grade=grade_work,
    mistakes=(
        Mistake("no pair", lambda f: f.get("pair") is False, "Return two numbers, bytes and FLOP. Is an operation left out, or a return?"),
        Mistake("swapped", _swapped, "First the bytes, then the FLOP."),
        Mistake("elements", _all_bytes(lambda e, i, s: e + i), "These are elements. Each has `itemsize` bytes, and an index has 8."),
        Mistake(
            "no elements", _all_bytes(lambda e, i, s: e + i // 8), "These are elements. Each has `itemsize` bytes, and an index has 8."
        ),
        Mistake(
            "always float32",
            lambda f: f.get("pair") and f["itemsize"] != 4 and _all_bytes(lambda e, i, s: 4 * e + i)(f),
            "4 bytes an element is float32. The bytes follow `itemsize`.",
        ),
        Mistake("add, read only", _counts("add", lambda n: (2 * n, 0, n)), "The result is written to memory too."),
        Mistake("add, out read", _counts("add", lambda n: (4 * n, 0, n)), "An add overwrites its result without reading it."),
        Mistake("add, 2 FLOP", _counts("add", lambda n: (3 * n, 0, 2 * n)), "One addition an element is one FLOP."),
        Mistake(
            "row for each row",
            _counts("add row", lambda m, n: (3 * m * n, 0, m * n)),
            "That is what a kernel loads that takes the row again for each row of x. The operation needs it once.",
        ),
        Mistake("no row", _counts("add row", lambda m, n: (2 * m * n, 0, m * n)), "The row is read as well, once."),
        Mistake(
            "sums as large as x",
            _counts("row sums", lambda m, n: (2 * m * n, 0, 0)),
            "A sum of each row is one number a row, and that is all that is written.",
        ),
        Mistake("nothing written", _counts("row sums", lambda m, n: (m * n, 0, 0)), "The m sums are written too."),
        Mistake("sum of columns", _counts("row sums", lambda m, n: (m * n + n, 0, 0)), "There are m rows, so m sums are written, not n."),
        Mistake(
            "one addition too many",
            _counts("row sums", lambda m, n: (0, 0, m * n)),
            "n numbers are added by n − 1 additions: the first is added to nothing.",
        ),
        Mistake(
            "the whole table",
            _counts("gather", lambda rows, n, table: (table * n + rows * n, 8 * rows, 0)),
            "Only the rows that are asked for must be read, not the whole table.",
        ),
        Mistake(
            "no indices", _counts("gather", lambda rows, n, table: (2 * rows * n, 0, 0)), "The indices are read too, 8 bytes for each row."
        ),
        Mistake(
            "narrow indices",
            lambda f: (
                f.get("name") == "gather"
                and f["given"][0] == f["itemsize"] * (2 * f["sizes"]["rows"] * f["sizes"]["n"] + f["sizes"]["rows"])
            ),
            "An index is an int64, 8 bytes, whatever the dtype of the table.",
        ),
        Mistake(
            "gather adds", lambda f: f.get("name") == "gather" and f.get("what") == "FLOP", "A gather only moves: it computes nothing."
        ),
        Mistake(
            "a product is one",
            _counts("matmul", lambda m, n, k: (0, 0, m * n * k)),
            "A multiplication and an addition for each of the m·n·k steps: 2 FLOP, though one instruction may do both.",
        ),
        Mistake(
            "exact additions",
            _counts("matmul", lambda m, n, k: (0, 0, m * n * (2 * k - 1))),
            "Everybody counts 2·m·n·k for a matrix product, so do the same: else rates cannot be compared.",
        ),
        Mistake(
            "operands again and again",
            _counts("matmul", lambda m, n, k: (2 * m * n * k + m * n, 0, 0)),
            "That is what a kernel without any reuse loads. The operation needs each element of a and b once.",
        ),
    ),
    hints=(
        "Bytes: list what must be read and what must be written, each once, however a kernel does it. Do not think of blocks.",
        "add: 3 n elements. add row: x, the row, the result. row sums: x and m sums. gather: rows of the table, indices, the result.",
        "matmul: (m·k + k·n + m·n) elements and 2·m·n·k FLOP; row sums: m·n + m elements and m·(n − 1) FLOP; gather: 0 FLOP.",
    ),
)
