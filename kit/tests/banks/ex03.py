"""Answers to exercise 03, block sizes."""

from kit.tests.banks import Answer

WITHOUT_KERNEL = ("03.1", "03.3")


def _pick(name, text, cause=""):
    return Answer("03.1", name, (text,), cause)


def _decay(name, tuner, launch, cause="", about=""):
    return Answer("03.2", name, (tuner, launch), cause, about)


def _key(name, text, cause=""):
    return Answer("03.3", name, (text,), cause)


BLOCK = "BLOCK = triton.next_power_of_2(n_cols)\n"
WARPS = "num_warps = min(max(BLOCK // 1024, 1), 32)\n"
PAIR = "return BLOCK, num_warps"
TUNED = 'return triton.autotune(configs, key=["n"], restore_value=["new_ptr"])(decay_kernel)'
GRID = 'lambda meta: (triton.cdiv(n, meta["BLOCK"]),)'
LAUNCH = f"tuner()[{GRID}](state, x, state, n)"
UNSAFE = 'return triton.autotune(configs, key=["n"])(decay_kernel)'
BUCKET = "triton.next_power_of_2(n_rows)"

WRONG = [
    _pick("4 warps for all", BLOCK + "return BLOCK, 4", "Is num_warps the same for every row"),
    _pick("16 warps for all", BLOCK + "return BLOCK, 16", "Is num_warps the same for every row"),
    _pick("the row as block", "BLOCK = n_cols\n" + WARPS + PAIR, "Is BLOCK the row itself"),
    _pick("rounded down", "BLOCK = 1 << (n_cols.bit_length() - 1)\n" + WARPS + PAIR, "Is it rounded down"),
    _pick("one power too high", "BLOCK = 1 << n_cols.bit_length()\n" + WARPS + PAIR, "one power too high"),
    _pick("a block of 1024", "BLOCK = 1024\n" + WARPS + PAIR, "Is BLOCK the same for every row"),
    _pick("the widest block", "BLOCK = 32_768\n" + WARPS + PAIR, "Is BLOCK the same for every row"),
    _pick("at least 1024", "BLOCK = max(1024, triton.next_power_of_2(n_cols))\n" + WARPS + PAIR, "Is there a lower limit on BLOCK"),
    _pick("a multiple of 128", "BLOCK = triton.cdiv(n_cols, 128) * 128\n" + WARPS + PAIR, "is the smallest power of two that covers"),
    _pick("no lower limit", BLOCK + "num_warps = min(BLOCK // 1024, 32)\n" + PAIR, "leaves 0 for small blocks"),
    _pick("no upper limit", BLOCK + "num_warps = max(BLOCK // 512, 1)\n" + PAIR, "Is there an upper limit"),
    _pick("threads", BLOCK + "num_warps = max(BLOCK // 32, 1)\n" + PAIR, "Is this the number of threads"),
    _pick("at least 4", BLOCK + "num_warps = min(max(BLOCK // 1024, 4), 32)\n" + PAIR, "even for a short row"),
    _pick("at most 4", BLOCK + "num_warps = min(max(BLOCK // 1024, 1), 4)\n" + PAIR, "Does a cap keep num_warps too low"),
    _pick("too few", BLOCK + "num_warps = min(max(BLOCK // 8192, 1), 32)\n" + PAIR, "More warps share the row"),
    _pick("far too few", BLOCK + "num_warps = max(BLOCK // 16_384, 1)\n" + PAIR, "More warps share the row"),
    _pick("the other way round", BLOCK + WARPS + "return num_warps, BLOCK", "Are the two the other way round"),
    _pick("divided by /", BLOCK + "return BLOCK, max(BLOCK / 1024, 1)", "gives a float"),
    _pick("an odd number", BLOCK + "num_warps = min(max(BLOCK // 1000, 1), 32) | 1\n" + PAIR, "Divide a power of two"),
    _pick("only the block", BLOCK + "return BLOCK", "Two whole numbers are asked for"),
    _pick("nothing returned", BLOCK + WARPS, "Is the return missing"),
    _decay("as it was, but for the grid", UNSAFE, None, "What puts it back", "values"),
    _decay(
        "as it was, but for the tuner", None, "tuner()[(triton.cdiv(n, 1024),)](state, x, state, n)", "does the grid follow BLOCK", "values"
    ),
    _decay(
        "reset_to_zero",
        'return triton.autotune(configs, key=["n"], reset_to_zero=["new_ptr"])(decay_kernel)',
        None,
        "does something set it to zero",
        "values",
    ),
    _decay(
        "the wrong one restored",
        'return triton.autotune(configs, key=["n"], restore_value=["x_ptr"])(decay_kernel)',
        None,
        "What puts it back",
        "values",
    ),
    _decay(
        "restored by the wrapper's name",
        'return triton.autotune(configs, key=["n"], restore_value=["state"])(decay_kernel)',
        None,
        "names of the kernel's own arguments",
        "answer",
    ),
    _decay(
        "put back by hand", UNSAFE, f"before = state.clone()\n{LAUNCH}\nstate.copy_(before)", "put back after the real launch too", "values"
    ),
    _decay(
        "written elsewhere", UNSAFE, f"new = torch.empty_like(state)\ntuner()[{GRID}](state, x, new, n)\nreturn new", "left there", "values"
    ),
    _decay("warmed up on the state", None, f"{LAUNCH}\n{LAUNCH}", "launched once more, to tune", "values"),
    _decay("not tuned", None, "decay_kernel[(triton.cdiv(n, 256),)](state, x, state, n, BLOCK=256)", "asks for the tuned kernel", "answer"),
    _decay(
        "one configuration",
        'return triton.autotune(configs[:1], key=["n"])(decay_kernel)',
        None,
        "Keep the three configurations",
        "answer",
    ),
    _decay(
        "a tuner a call",
        None,
        f"tuner.cache_clear()\n{LAUNCH}",
        "Is a new tuner made at every call",
        "answer",
    ),
    _decay("into x", None, f"tuner()[{GRID}](state, x, x, n)", "x is an input", "values"),
    _decay("x and the state exchanged", None, f"tuner()[{GRID}](x, state, state, n)", "passed in its own place", "values"),
    _key("no key", f"return [], {BUCKET}", "it has to be in the key"),
    _key("rows only", f'return ["bucket"], {BUCKET}', "it has to be in the key"),
    _key("columns only", f'return ["n_cols"], {BUCKET}', "nothing in the key stands for it"),
    _key("exact rows", f'return ["n_cols", "n_rows"], {BUCKET}', "n_rows itself is in the key"),
    _key("exact rows as bucket", 'return ["n_cols", "bucket"], n_rows', "There are too many buckets"),
    _key("all of them", f'return ["n_rows", "n_cols", "eps", "seed", "bucket"], {BUCKET}', "every launch tunes"),
    _key("eps", f'return ["n_cols", "eps", "bucket"], {BUCKET}', "leave it out of the key"),
    _key("a tensor", f'return ["x_ptr", "n_cols", "bucket"], {BUCKET}', "A tensor in the key"),
    _key("thousands", 'return ["n_cols", "bucket"], n_rows // 4096', "Are buckets equally wide"),
    _key("hundreds", 'return ["n_cols", "bucket"], n_rows // 128', "There are too many buckets"),
    _key("one bucket", 'return ["n_cols", "bucket"], 1', "does it grow with n_rows"),
    _key("decades", 'return ["n_cols", "bucket"], len(str(n_rows))', "more than 4 times apart"),
    _key("misspelt", f'return ["n_columns", "bucket"], {BUCKET}', "Spell it as the kernel does"),
    _key("the block", f'return ["BLOCK", "bucket"], {BUCKET}', "BLOCK follows from n_cols"),
    _key("a text", f'return "n_cols", {BUCKET}', "A key is a list of names"),
    _key("a bucket's name", 'return ["n_cols", "bucket"], "bucket"', "The bucket is a number"),
    _key("nothing returned", 'key = ["n_cols", "bucket"]', "Is the return missing"),
]

RIGHT = [
    _pick("64 elements a thread", BLOCK + "num_warps = min(max(BLOCK // 2048, 1), 32)\n" + PAIR),
    _pick(
        "in steps",
        BLOCK + "num_warps = 16 if BLOCK >= 16_384 else 8 if BLOCK >= 4096 else 4 if BLOCK >= 512 else 1\nreturn [BLOCK, num_warps]",
    ),
    _pick("without triton", "BLOCK = 1 << (n_cols - 1).bit_length()\nreturn BLOCK, max(1, min(32, BLOCK >> 10))"),
    _decay("the other name of the state", 'return triton.autotune(configs, key=["n"], restore_value=["old_ptr"])(decay_kernel)', None),
    _decay("out of place", UNSAFE, f"new = torch.empty_like(state)\ntuner()[{GRID}](state, x, new, n)\nstate.copy_(new)"),
    _decay("from a copy", UNSAFE, f"tuner()[{GRID}](state.clone(), x, state, n)"),
    _decay("tuned on a copy", UNSAFE, f"copy = state.clone()\ntuner()[{GRID}](copy, x, copy, n)\n{LAUNCH}"),
    _decay("a named grid", None, 'def grid(meta):\n    return (triton.cdiv(n, meta["BLOCK"]),)\n\ntuner()[grid](state, x, state, n)'),
    _key("the other order, a tuple", 'return ("bucket", "n_cols"), n_rows.bit_length()'),
    _key("a logarithm", 'import math\n\nreturn ["n_cols", "bucket"], round(math.log2(n_rows))'),
    _key("in fours", 'return ["n_cols", "bucket"], (n_rows.bit_length() + 1) // 2'),
]
