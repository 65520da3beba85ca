"""Answers to exercise 12, sweeps."""

from kit.tests.banks import Answer

WITHOUT_KERNEL = ("12.1", "12.2", "12.3")


def _edges(name, cause="", **parts):
    """An answer to 12.1; `parts` replace the last value of a limit, the sides, the condition, or what is returned."""
    lasts = [
        parts.get("block", "block // heads"),
        parts.get("axis", "65_535"),
        parts.get("l2", "l2 // (2 * row * itemsize)"),
        parts.get("int32", "2**31 // row"),
    ]
    sides = parts.get("sides", "(0, 1)")
    keep = parts.get("keep", "n >= 1 and 2 * n * row * itemsize <= memory")
    text = f"row = heads * size\nlasts = ({', '.join(lasts)})\nsides = [last + side for last in lasts for side in {sides}]\n"
    text += f"found = [n for n in sides if {keep}]\n" + parts.get("end", "return sorted(set(found))")
    return Answer("12.1", name, (text,), cause)


def _gate(name, cause="", **parts):
    """An answer to 12.2; `parts` replace the ratios or one of the four values."""
    text = (
        "import math\nimport statistics\n"
        + f"r = {parts.get('r', '[before[s] / after[s] for s in before if s in after]')}\n"
        + f"median = {parts.get('median', 'statistics.median(r)')}\n"
        + f"least = {parts.get('least', 'min(r)')}\n"
        + f"mean = {parts.get('mean', 'statistics.geometric_mean(r)')}\n"
        + f"accepted = {parts.get('accepted', 'median >= 1.05 and least >= 0.97 and before.keys() <= after.keys()')}\n"
        + parts.get("end", "return median, least, mean, accepted")
    )
    return Answer("12.2", name, (text,), cause)


def _pick(name, text, cause=""):
    return Answer("12.3", name, (text,), cause)


BOTH = "before.keys() <= after.keys()"
SEEN = "from kit.graders.ex12_table import fitted, shapes_to_fit\n"

WRONG = [
    _edges("nothing returned", "Is the return missing", end="found.sort()"),
    _edges("floats", "use //", l2="l2 / (2 * row * itemsize)"),
    _edges("only below", "Only the last values below", sides="(0,)"),
    _edges("only above", "Only the first values above", sides="(1,)"),
    _edges("three of each", "Three values a limit", sides="(-1, 0, 1)"),
    _edges("both below", "Both values lie below", sides="(-1, 0)"),
    _edges("0 tokens", "0 tokens are no shape", keep="2 * n * row * itemsize <= memory"),
    _edges("twice", "list it once", end="return sorted(found)"),
    _edges("memory forgotten", "Some do not fit", keep="n >= 1"),
    _edges("memory strict", "bytes exactly still fits", keep="n >= 1 and 2 * n * row * itemsize < memory"),
    _edges("x alone in memory", "Memory holds x and y", keep="n >= 1 and n * row * itemsize <= memory"),
    _edges("x alone in the cache", "The L2 cache holds x and y", l2="l2 // (row * itemsize)"),
    _edges("elements in the cache", "`l2` is in bytes", l2="l2 // (2 * row)"),
    _edges("cache strict", "fills the cache exactly", l2="(l2 - 1) // (2 * row * itemsize)"),
    _edges("65,536 allowed", "A grid axis takes 65,535", axis="65_536"),
    _edges("offsets in bytes", "counts elements, not bytes", int32="2**31 // (row * itemsize)"),
    _edges("offsets up to 2^31 - 2", "2^31 elements are still addressed", int32="(2**31 - 1) // row"),
    _edges("a block of tokens", "`block` counts rows", block="block"),
    _edges("rounded up", "is rounded down", block="-(-block // heads)"),
    _edges("unsorted", "return them sorted", end="return list(dict.fromkeys(found))"),
    _edges("a grid besides", "belong to the grid of the sweep", end="return sorted({*found, *(n for n in (3, 7, 9, 11) if found)})"),
    _gate("nothing returned", "Is the return missing", end="r.sort()"),
    _gate("three values", "Four values are asked for", end="return median, least, mean"),
    _gate("every shape of before", "may be in one of the two only", r="[before[s] / after[s] for s in before]"),
    _gate("every shape of after", "may be in one of the two only", r="[before[s] / after[s] for s in after]"),
    _gate("a product", "leaves the range of a float", mean="math.prod(r) ** (1 / len(r))"),
    _gate("upside down", "upside down", r="[after[s] / before[s] for s in before if s in after]"),
    _gate("zipped", "need not have one order", r="[b / a for b, a in zip(before.values(), after.values())]"),
    _gate("upper median", "half of the way between the two", median="sorted(r)[len(r) // 2]"),
    _gate("lower median", "half of the way between the two", median="sorted(r)[(len(r) - 1) // 2]"),
    _gate("mean as median", "one large speed-up moves it", median="statistics.mean(r)"),
    _gate("most", "the headline. The gate", least="max(r)"),
    _gate("plain mean", "That is the plain mean", mean="sum(r) / len(r)"),
    _gate("harmonic mean", "That is the harmonic mean", mean="statistics.harmonic_mean(r)"),
    _gate(
        "total time",
        "the longest shape decides",
        mean="sum(before[s] for s in before if s in after) / sum(after[s] for s in before if s in after)",
    ),
    _gate("median twice", "not the median again", mean="median"),
    _gate("the headline decides", "The largest speed-up decides", accepted=f"max(r) >= 1.05 and {BOTH}"),
    _gate("missing let through", "could not run", accepted="median >= 1.05 and least >= 0.97"),
    _gate("the minimum not asked", "may hurt somewhere", accepted=f"median >= 1.05 and {BOTH}"),
    _gate("the median not asked", "It has to help", accepted=f"least >= 0.97 and {BOTH}"),
    _gate("the mean decides", "The median decides, not the mean", accepted=f"mean >= 1.05 and least >= 0.97 and {BOTH}"),
    _gate("strict", "themselves are enough", accepted=f"median > 1.05 and least > 0.97 and {BOTH}"),
    _gate("no slower at all", "that much is noise", accepted=f"median >= 1.05 and least >= 1 and {BOTH}"),
    _gate("in words", "True or False", accepted=f"'in' if median >= 1.05 and least >= 0.97 and {BOTH} else 'out'"),
    _pick("nothing returned", 'way = "row" if size > 1_024 else "eight"', "Is a return missing"),
    _pick("for wide rows only", 'if size > 1_024:\n    return "row"', "Is a return missing"),
    _pick("a number", "return 1 if size > 1_024 else 8", "not how many rows it owns"),
    _pick("another name", 'return "rows" if size > 1_024 else "eight"', "Return one of the names"),
    _pick(
        "looked up",
        f"{SEEN}us = shapes_to_fit()[tokens, heads, size, itemsize]\nreturn min(us, key=us.get)",
        "do not look up",
    ),
    _pick(
        "a look-up and a default",
        f"{SEEN}us = shapes_to_fit().get((tokens, heads, size, itemsize))\nreturn min(us, key=us.get) if us else 'row'",
        "not those beside them",
    ),
    _pick("always row", 'return "row"', "Every shape gets the same"),
    _pick("always eight", 'return "eight"', "Every shape gets the same"),
    _pick("always a token", 'return "token"', "Every shape gets the same"),
    _pick("tokens alone", 'return "row" if tokens <= 128 else "eight"', "Only the number of tokens decides"),
    _pick("heads alone", 'return "row" if heads <= 8 else "eight"', "Only the number of heads decides"),
    _pick("a size too small", 'return "eight" if size <= 64 else "row"', "Only the size decides"),
    _pick("dtype alone", 'return "eight" if itemsize == 2 else "row"', "Only the dtype decides"),
    _pick(
        "exchanged",
        'if size > 1_024:\n    return "eight"\nreturn "eight" if tokens * heads <= 16 else "row"',
        "worse than the worst single choice",
    ),
    _pick("wide rows with the others", 'return "row" if tokens * heads <= 16 else "eight"', "Most of the loss is at wide rows"),
    _pick(
        "a token where there are few",
        'if size > 1_024:\n    return "row"\nreturn "token" if tokens * heads <= 512 and heads > 8 else "eight"',
        "Most of the loss is at few rows",
    ),
    _pick(
        "rows up to many",
        'if size > 1_024:\n    return "row"\nreturn "row" if tokens * heads <= 65_536 else "eight"',
        "Most of the loss is at many short rows",
    ),
]

RIGHT = [
    _edges("by loops", end="seen = []\nfor n in sorted(found):\n    if n not in seen:\n        seen.append(n)\nreturn tuple(seen)"),
    _edges("int32 by the last offset", int32="(2**31 - 1 + 1) // row", keep="0 < n <= memory // (2 * row * itemsize)"),
    _gate("logarithms", mean="math.exp(sum(map(math.log, r)) / len(r))", end="return [median, least, mean, bool(accepted)]"),
    _gate(
        "the median by hand",
        median="(sorted(r)[len(r) // 2] + sorted(r)[(len(r) - 1) // 2]) / 2",
        accepted="median >= 1.05 and not any(x < 0.97 for x in r) and not set(before) - set(after)",
    ),
    _pick(
        "the lesson's fit",
        f"{SEEN}pick.rule = getattr(pick, 'rule', None) or fitted(shapes_to_fit())\nreturn pick.rule((tokens, heads, size))",
    ),
    _pick(
        "the fit, with one of two names for the same launch",
        f"{SEEN}pick.rule = getattr(pick, 'rule', None) or fitted(shapes_to_fit())\nway = pick.rule((tokens, heads, size))\n"
        "return 'token' if way == 'row' and heads == 1 else way",
    ),
]
