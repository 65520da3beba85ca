"""Answers to exercise 04, specialisation."""

from kit.tests.banks import Answer

WITHOUT_KERNEL = ("04.1",)

INT = "def class_of(n):\n    return '= 1' if n == 1 else (-(2**31) <= n < 2**31, n % 16 == 0)\n\n"
KEYS = "return len({(address % 16 == 0, class_of(n), class_of(step)) for address, n, step in launches})"


def _count(name, text, cause=""):
    return Answer("04.1", name, (text,), cause)


def _rows(name, decorator, cause="", about=""):
    return Answer("04.2", name, (decorator,), cause, about)


def _ring(name, text, cause="", about=""):
    return Answer("04.3", name, (text,), cause, about)


def _integer(rule):
    """An answer to 04.1 with another rule for integers."""
    return f"def class_of(n):\n    return {rule}\n\n" + KEYS


RIGHT_SLOT = "slot = ((step - DELAY) % RING + RING) % RING\n"
RIGHT_ROW = "row_ptr = ring_ptr + slot.to(tl.int64) * stride_r"

WRONG = [
    _count("every launch", "return len(launches)", "Is every launch counted"),
    _count("every value", "return len(set(launches))", "Is every value a class of its own"),
    _count(
        "the product of the classes",
        INT + "addresses = {a % 16 == 0 for a, _, _ in launches}\nns = {class_of(n) for _, n, _ in launches}\n"
        "return len(addresses) * len(ns) * len({class_of(step) for _, _, step in launches})",
        "Are the classes of the arguments multiplied",
    ),
    _count("1 is like any other", _integer("(-(2**31) <= n < 2**31, n % 16 == 0)"), "Is an argument of 1 like any other"),
    _count(
        "0 is special too",
        _integer("n if n in (0, 1) else (-(2**31) <= n < 2**31, n % 16 == 0)"),
        "Is 0 a class of its own",
    ),
    _count("no multiples", _integer("n == 1 or (-(2**31) <= n < 2**31,)"), "Do multiples of 16 count"),
    _count("multiples of 8", _integer("n == 1 or (-(2**31) <= n < 2**31, n % 8 == 0)"), "Is that a multiple of 8? For an integer"),
    _count("no width", _integer("n == 1 or (n % 16 == 0,)"), "Does the width count"),
    _count("unsigned width", _integer("n == 1 or (-(2**32) <= n < 2**32, n % 16 == 0)"), "int32 has a sign"),
    _count(
        "the pointer left out",
        INT + "return len({(class_of(n), class_of(step)) for _, n, step in launches})",
        "Is the address left out",
    ),
    _count("8 bytes", INT + KEYS.replace("address % 16", "address % 8"), "Is that a multiple of 8 bytes"),
    _count("elements of 4 bytes", INT + KEYS.replace("address % 16", "address % 4"), "Is the address counted in elements"),
    _count(
        "order forgotten",
        INT + "return len({(a % 16 == 0, frozenset([class_of(n), class_of(s)])) for a, n, s in launches})",
        "Which argument has which class matters",
    ),
    _count(
        "the set returned",
        INT + KEYS.replace("len({", "({"),
        "is it the len() of a set",
    ),
    _count("nothing returned", INT + KEYS.replace("return ", ""), "Is the return missing"),
    _rows("plain", "@triton.jit", "Three arguments change their class", "launch"),
    _rows(
        "the numbers only",
        '@triton.jit(do_not_specialize=["step", "n_rows"])',
        "One number is stored through it",
        "launch",
    ),
    _rows(
        "the pointer only",
        '@triton.jit(do_not_specialize_on_alignment=["end_ptr"])',
        "end_ptr is settled",
        "launch",
    ),
    _rows(
        "one number of two",
        '@triton.jit(do_not_specialize=["step"], do_not_specialize_on_alignment=["end_ptr"])',
        "One number still keys",
        "launch",
    ),
    _rows(
        "alignment only, of numbers",
        '@triton.jit(do_not_specialize_on_alignment=["end_ptr", "step", "n_rows"])',
        "keeps the class of 1",
        "launch",
    ),
    _rows(
        "misspelt",
        '@triton.jit(do_not_specialize=["step", "num_rows"], do_not_specialize_on_alignment=["end_ptr"])',
        "is it misspelt",
        "launch",
    ),
    _rows(
        "a constexpr listed",
        '@triton.jit(do_not_specialize=["step", "n_rows", "BLOCK"], do_not_specialize_on_alignment=["end_ptr"])',
        "cannot be exempt",
        "answer",
    ),
    _rows(
        "everything",
        '@triton.jit(do_not_specialize=["x_ptr", "y_ptr", "end_ptr", "stride_x", "row_size", "step", "n_rows"])',
        "Everything is exempt",
        "launch",
    ),
    _rows(
        "all numbers",
        '@triton.jit(do_not_specialize=["row_size", "step", "n_rows"], do_not_specialize_on_alignment=["end_ptr"])',
        "row_size is the edge of the mask",
        "launch",
    ),
    _rows(
        "all numbers, on alignment",
        '@triton.jit(do_not_specialize=["step", "n_rows"], do_not_specialize_on_alignment=["end_ptr", "row_size"])',
        "row_size is the edge of the mask",
        "launch",
    ),
    _rows(
        "the stride too",
        '@triton.jit(do_not_specialize=["stride_x", "step", "n_rows"], do_not_specialize_on_alignment=["end_ptr"])',
        "stride_x decides where each row begins",
        "launch",
    ),
    _rows(
        "every pointer",
        '@triton.jit(do_not_specialize=["step", "n_rows"], do_not_specialize_on_alignment=["x_ptr", "y_ptr", "end_ptr"])',
        "read and written in blocks",
        "launch",
    ),
    _rows(
        "the output too",
        '@triton.jit(do_not_specialize=["step", "n_rows", "y_ptr"], do_not_specialize_on_alignment=["end_ptr"])',
        "read and written in blocks",
        "launch",
    ),
    _ring("as it was", "slot = (step - DELAY) % RING\nrow_ptr = ring_ptr + slot * stride_r.to(tl.int64)", "% is C's in a kernel", "memory"),
    _ring("only the cast mended", "slot = (step - DELAY) % RING\n" + RIGHT_ROW, "% is C's in a kernel", "memory"),
    _ring(
        "only the remainder mended",
        RIGHT_SLOT + "row_ptr = ring_ptr + slot * stride_r.to(tl.int64)",
        "An argument of 1 is a number of the compiler's",
        "answer",
    ),
    _ring(
        "step cast first",
        "slot = ((step.to(tl.int64) - DELAY) % RING + RING) % RING\nrow_ptr = ring_ptr + slot * stride_r",
        "An argument of 1 is a number of the compiler's",
        "answer",
    ),
    _ring(
        "an expression cast",
        "row_ptr = ring_ptr + ((step + RING - DELAY) % RING).to(tl.int64) * stride_r",
        "At step 1 the whole expression is a constant",
        "answer",
    ),
    _ring("no cast", RIGHT_SLOT + "row_ptr = ring_ptr + slot * stride_r", "needs an int64 factor", "memory"),
    _ring("clamped", "slot = tl.maximum(step - DELAY, 0) % RING\n" + RIGHT_ROW, "Is a slot below zero made 0", "values"),
    _ring("mirrored", "slot = tl.abs(step - DELAY) % RING\n" + RIGHT_ROW, "Is the sign dropped", "values"),
    _ring("added", "slot = (step + DELAY) % RING\n" + RIGHT_ROW, "Is DELAY added", "values"),
    _ring(
        "masked",
        "slot = (step - DELAY) % RING\nmask = mask & (step >= DELAY)\n" + RIGHT_ROW,
        "there is nothing to mask",
        "values",
    ),
    _ring("a bitwise and", "slot = (step - DELAY) & (RING - 1)\n" + RIGHT_ROW, "only where RING is a power of two", "values"),
    _ring(
        "never round",
        "slot = step - DELAY\nif slot < 0:\n    slot += RING\n" + RIGHT_ROW,
        "is the remainder taken last",
        "memory",
    ),
    _ring("subtracted from the ring", "slot = RING - (DELAY - step) % RING\n" + RIGHT_ROW, "is the remainder taken last", "memory"),
]

RIGHT = [
    _count(
        "with a list of keys",
        INT + "keys = []\nfor address, n, step in launches:\n    key = [address & 15 == 0, class_of(n), class_of(step)]\n"
        "    if key not in keys:\n        keys.append(key)\nreturn len(keys)",
    ),
    _count(
        "with texts",
        "def class_of(n):\n    if n == 1:\n        return '1'\n    kind = 'i32' if n.bit_length() < 32 or n == -(2**31) else 'i64'\n"
        "    return kind + 'D' * (n % 16 == 0)\n\n"
        "return len({' '.join([str(a % 16 == 0), class_of(n), class_of(s)]) for a, n, s in launches})",
    ),
    _rows("all three in one list", '@triton.jit(do_not_specialize=["step", "n_rows", "end_ptr"])'),
    _rows("by number", "@triton.jit(do_not_specialize=[5, 6], do_not_specialize_on_alignment=[2])"),
    _rows("on both lists", '@triton.jit(do_not_specialize=["step", "n_rows"], do_not_specialize_on_alignment=["end_ptr", "step"])'),
    _ring("twice round", RIGHT_SLOT + RIGHT_ROW),
    _ring("where", "slot = (step - DELAY) % RING\nslot = tl.where(slot < 0, slot + RING, slot)\n" + RIGHT_ROW),
    _ring("tl.cast", "row_ptr = ring_ptr + tl.cast((step + RING - DELAY) % RING, tl.int64) * stride_r"),
    _ring("tl.full", "first = tl.full([], step, tl.int64)\nslot = (first + RING - DELAY) % RING\nrow_ptr = ring_ptr + slot * stride_r"),
    _ring("an if", "slot = (step - DELAY) % RING\nif slot < 0:\n    slot += RING\n" + RIGHT_ROW),
]
