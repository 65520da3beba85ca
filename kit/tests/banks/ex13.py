"""Answers to exercise 13, cold start."""

from kit.tests.banks import Answer

WITHOUT_KERNEL = ("13.1", "13.2")


def _chosen(name, key, cause=""):
    """An answer to 13.1 that keeps the first value for each `key`, an expression of v."""
    return Answer("13.1", name, (f"chosen = {{}}\nfor v in values:\n    chosen.setdefault({key}, v)\nreturn list(chosen.values())",), cause)


def _values(name, text, cause=""):
    return Answer("13.1", name, (text,), cause)


FITS = "-(2**31) <= v < 2**31"


def _warm(name, text, cause=""):
    return Answer("13.2", name, (text,), cause)


def _loops(name, cause="", *, dtypes="(torch.float16, torch.float32)", sizes="(1, 2, 16)", starts="(0, 1)", **parts):
    """An answer to 13.2 as three loops; `parts` replace the making of k, slots and cache."""
    k = parts.get("k", "torch.zeros(n, 128, dtype=dtype, device=device)")
    slots = parts.get("slots", "torch.zeros(n + start, dtype=torch.int32, device=device)[start:]")
    cache = parts.get("cache", "torch.zeros(32, 128, dtype=dtype, device=device)")
    text = f"for dtype in {dtypes}:\n    for n in {sizes}:\n        for start in {starts}:\n            write_keys({k}, {slots}, {cache})"
    return Answer("13.2", name, (text,), cause)


LAUNCH = "grid = (triton.cdiv(len(slots), 4),)\nwrite_keys_kernel[grid](k, slots, cache, len(slots), SIZE=128, BLOCK_T=4)"


def _few(name, cause="", about="", *, lists="", launch=LAUNCH):
    """An answer to 13.3: what the decorator is given, and the body of write_keys."""
    return Answer("13.3", name, (f"@triton.jit({lists})" if lists else "@triton.jit", launch), cause, about)


N = 'do_not_specialize=["n_tokens"]'
SLOT = 'do_not_specialize_on_alignment=["slot_ptr"]'

WRONG = [
    _chosen("the width forgotten", "(v == 1, v % 16 == 0)", "passed as an int64"),
    _chosen("no class for 1", f"({FITS}, v % 16 == 0)", "1 is a class of its own"),
    _chosen("no class for 16", f"({FITS}, v == 1)", "Multiples of 16 are a class"),
    _chosen("0 a class of its own", f"({FITS}, v == 1, v % 16 == 0, v == 0)", "no class apart"),
    _chosen("0 with 1", f"({FITS}, 1 if v in (0, 1) else 16 if v % 16 == 0 else 2)", "0 and 1 are two classes"),
    _chosen("0 with the others", f"({FITS}, v == 1, v != 0 and v % 16 == 0)", "it belongs to ÷16"),
    _chosen("-1 with 1", f"({FITS}, abs(v) == 1, v % 16 == 0)", "Only 1 itself"),
    _chosen("negative multiples left out", f"({FITS}, v == 1, v >= 0 and v % 16 == 0)", "A negative multiple of 16"),
    _chosen("divided by 8", f"({FITS}, v == 1, v % 8 == 0)", "Is this divided by 8"),
    _chosen("2^31 as an int32", "(-(2**31) <= v <= 2**31, v == 1, v % 16 == 0)", "one more than an int32 holds"),
    _chosen("unsigned", "(abs(v) < 2**32, v == 1, v % 16 == 0)", "int32 has a sign"),
    _chosen("no lower end", "(v < 2**31, v == 1, v % 16 == 0)", "a lower end"),
    _values("always the same three", "return [1, 2, 16]", "Choose from the values given"),
    _values("every value", "return list(values)", "Every value is its own"),
    _values("nothing returned", "chosen = set(values)", "Return a list"),
    _warm("nothing launched", "pass", "Nothing was launched"),
    _loops("float32, as torch makes it", "which is what `torch.zeros` makes", dtypes="(torch.float32,)"),
    _loops("the adapter forgotten", "of an adapter have float32 keys", dtypes="(torch.float16,)"),
    _loops("one cache for both", "The cache has the dtype of the keys", cache="torch.zeros(32, 128, device=device)"),
    _loops("slots of 64 bits", "make int64 unless they are told", slots="torch.arange(n + start, device=device)[start:]"),
    _loops(
        "slots from torch.empty",
        "must be rows of its cache",
        slots="torch.full((n + start,), 10_000_000, dtype=torch.int32, device=device)[start:]",
    ),
    _loops("one token only", "A batch of one alone", sizes="(1,)"),
    _loops("no single token", "A batch of one token was not warmed", sizes="(2, 16)"),
    _loops("no multiple of 16", "a multiple of 16, which is a class", sizes="(1, 2, 8)"),
    _loops("powers of two from 16 on", "All batch sizes were 1 or multiples of 16", sizes="(1, 16, 64)"),
    _loops("aligned only", "as fresh memory does", starts="(0,)"),
    _loops("a view of four slots on", "as fresh memory does", starts="(0, 4)"),
    _loops("views only", "the first part of a batch", starts="(1,)"),
    _warm(
        "not every pair",
        "for dtype in (torch.float16, torch.float32):\n"
        "    for n, start in ((1, 0), (2, 0), (16, 1)):\n"
        "        slots = torch.zeros(n + start, dtype=torch.int32, device=device)[start:]\n"
        "        k = torch.zeros(n, 128, dtype=dtype, device=device)\n"
        "        write_keys(k, slots, torch.zeros(32, 128, dtype=dtype, device=device))",
        "a combination of dtype, batch size and alignment",
    ),
    _loops("every batch size", "the others launch what is compiled already", sizes="(1, 2, 3, 4, 15, 16, 17, 64, 512)"),
    _loops("a dtype that never comes", "that no request has", dtypes="(torch.float16, torch.float32, torch.bfloat16)"),
    _warm(
        "each key dtype with each cache",
        "for dtype in (torch.float16, torch.float32):\n"
        "    for other in (torch.float16, torch.float32):\n"
        "        for n in (1, 2, 16):\n"
        "            for start in (0, 1):\n"
        "                slots = torch.zeros(n + start, dtype=torch.int32, device=device)[start:]\n"
        "                k = torch.zeros(n, 128, dtype=dtype, device=device)\n"
        "                write_keys(k, slots, torch.zeros(32, 128, dtype=other, device=device))",
        "they always have one dtype",
    ),
    _warm(
        "both widths of slots",
        "for dtype in (torch.float16, torch.float32):\n"
        "    for n in (1, 2, 16):\n"
        "        for start in (0, 1):\n"
        "            for kind in (torch.int32, torch.int64):\n"
        "                slots = torch.zeros(n + 2 * start, dtype=kind, device=device)[2 * start - start :][:n]\n"
        "                k = torch.zeros(n, 128, dtype=dtype, device=device)\n"
        "                write_keys(k, slots, torch.zeros(32, 128, dtype=dtype, device=device))",
        "Slots of another dtype",
    ),
    _warm(
        "unaligned keys as well",
        "for dtype in (torch.float16, torch.float32):\n"
        "    for n in (1, 2, 16):\n"
        "        for start in (0, 1):\n"
        "            for first in (0, 1):\n"
        "                slots = torch.zeros(n + start, dtype=torch.int32, device=device)[start:]\n"
        "                k = torch.zeros(n * 128 + first, dtype=dtype, device=device)[first:].view(n, 128)\n"
        "                write_keys(k, slots, torch.zeros(32, 128, dtype=dtype, device=device))",
        "a view of whole rows never is",
    ),
    _few("as it was", "Both n_tokens and slot_ptr still have classes"),
    _few("only n_tokens", "Only unaligned slots compile", lists=N),
    _few("only slot_ptr", "Only the number of tokens matters", lists=SLOT),
    _few("1 left apart", "Only batches of one compile", lists='do_not_specialize_on_alignment=["n_tokens", "slot_ptr"]'),
    _few("everything", "must keep their alignment", lists='do_not_specialize=["k_ptr", "slot_ptr", "cache_ptr", "n_tokens"]'),
    _few("every pointer", "must keep their alignment", lists=f'{N}, do_not_specialize_on_alignment=["k_ptr", "slot_ptr", "cache_ptr"]'),
    _few("the cache too", "must keep their alignment", lists=f'{N}, do_not_specialize_on_alignment=["slot_ptr", "cache_ptr"]'),
    _few("a misspelt name", "Triton accepts it", lists=f'do_not_specialize=["num_tokens"], {SLOT}'),
    _few(
        "a tile that follows the batch",
        "each of its values is a variant",
        lists=f"{N}, {SLOT}",
        launch="tile = min(16, triton.next_power_of_2(len(slots)))\ngrid = (triton.cdiv(len(slots), tile),)\n"
        "write_keys_kernel[grid](k, slots, cache, len(slots), SIZE=128, BLOCK_T=tile)",
    ),
    _few(
        "warps that follow the batch",
        "each of its values is a variant",
        lists=f"{N}, {SLOT}",
        launch="grid = (triton.cdiv(len(slots), 4),)\nwarps = 4 if len(slots) > 16 else 1\n"
        "write_keys_kernel[grid](k, slots, cache, len(slots), SIZE=128, BLOCK_T=4, num_warps=warps)",
    ),
    _few("torch instead", "Launch write_keys_kernel", lists=f"{N}, {SLOT}", launch="cache[slots.long()] = k"),
    _few(
        "a launch a token",
        "One launch writes a whole request",
        lists=f"{N}, {SLOT}",
        launch="for t in range(len(slots)):\n    write_keys_kernel[(1,)](k[t], slots[t:], cache, 1, SIZE=128, BLOCK_T=4)",
    ),
    _few(
        "whole tiles only",
        "does the grid cover all of them",
        "values",
        lists=f"{N}, {SLOT}",
        launch="grid = (len(slots) // 4,)\nwrite_keys_kernel[grid](k, slots, cache, len(slots), SIZE=128, BLOCK_T=4)",
    ),
    _few(
        "rounded up to 16",
        "not a larger one",
        "memory",
        lists=SLOT,
        launch="n = triton.cdiv(len(slots), 16) * 16\nwrite_keys_kernel[(n // 4,)](k, slots, cache, n, SIZE=128, BLOCK_T=4)",
    ),
]

RIGHT = [
    _chosen("as text", f"f'{{{FITS}}}' + ('1' if v == 1 else '16' if v % 16 == 0 else '')"),
    _values(
        "the last of each, as a set",
        "groups = {}\nfor v in values:\n    groups[(-(2**31) <= v <= 2**31 - 1, v == 1, v & 15 == 0)] = v\nreturn set(groups.values())",
    ),
    _loops("three loops"),
    _loops("other sizes and starts", sizes="(1, 37, 512)", starts="(0, 3)"),
    _loops("the larger first, twice", sizes="(16, 7, 1, 16)", dtypes="(torch.float32, torch.float16)", starts="(1, 0)"),
    _few("by number", lists='do_not_specialize=[3], do_not_specialize_on_alignment=["slot_ptr"]'),
    _few("slot_ptr not at all", lists='do_not_specialize=["n_tokens", "slot_ptr"]'),
    _few("slots copied", lists=N, launch="slots = slots.clone()\n" + LAUNCH),
    _few("every slot copied when unaligned", lists=N, launch="if slots.data_ptr() % 16:\n    slots = slots.clone()\n" + LAUNCH),
]
