"""Answers to exercise 11, microbenchmarks."""

from kit.tests.banks import Answer

WITHOUT_KERNEL = ("11.1", "11.2", "11.3")

_EVENTS = "start, end = cuda.Event(enable_timing=True), cuda.Event(enable_timing=True)"
_CHECK = "if not torch.allclose(op(x, y), reference(x, y)):\n    raise ValueError('wrong')"
_MEDIAN = "statistics.median(1e3 * start.elapsed_time(end) for start, end in pairs)"


def _timed(
    name,
    cause="",
    *,
    first="x, y = make()",
    check=_CHECK,
    loop="for _ in range(calls):",
    before="flush()",
    call="op(x, y)",
    after="pairs.append((start, end))",
    last="cuda.synchronize()",
    returns=_MEDIAN,
):
    """An answer to 11.1 in the solution's order; each part can be another."""
    round_ = [_EVENTS, *before.splitlines(), "start.record()", *call.splitlines(), "end.record()", *after.splitlines()]
    lines = [first, check, "pairs = []", loop, *(f"    {line}" for line in round_), last, f"return {returns}"]
    return Answer("11.1", name, ("\n".join(line for line in lines if line),), cause)


def _whole(name, text, cause=""):
    return Answer("11.1", name, (text,), cause)


AS_IT_WAS = f"""
times = []
for _ in range(calls):
    {_EVENTS}
    flush()
    cuda.synchronize()
    start.record()
    x, y = make()
    op(x, y)
    end.record()
    cuda.synchronize()
    times.append(1e3 * start.elapsed_time(end))
return sum(times) / len(times)
"""

_HOST = f"""
import time
x, y = make()
{_CHECK}
times = []
for _ in range(calls):
    flush()
    began = time.perf_counter()
    op(x, y)
    cuda.synchronize()
    times.append(1e6 * (time.perf_counter() - began))
return statistics.median(times)
"""

_OPERATIONS = ("add", "add row", "row sums", "gather", "matmul")
_COUNTS = {
    "add": "3 * n * itemsize, n",
    "add row": "(2 * m * n + n) * itemsize, m * n",
    "row sums": "(m * n + m) * itemsize, m * (n - 1)",
    "gather": "2 * rows * n * itemsize + 8 * rows, 0",
    "matmul": "(m * k + k * n + m * n) * itemsize, 2 * m * n * k",
}


def _work(name, cause="", *, replace=None, **counts):
    """An answer to 11.2; `counts` replace an operation's, and `replace` is a pair of texts."""
    lines = ["m, n, k, rows, table = (sizes.get(name) for name in ('m', 'n', 'k', 'rows', 'table'))"]
    given = _COUNTS | {key.replace("_", " "): value for key, value in counts.items()}
    for operation in _OPERATIONS:
        lines += [f"if operation == {operation!r}:", f"    return {given[operation]}"]
    text = "\n".join(lines)
    return Answer("11.2", name, (text if replace is None else text.replace(*replace),), cause)


_RULES = {
    "time": "us = median(row['samples'])",
    "unchecked": "not row['checked']",
    "ceiling": "row['bytes'] is not None and row['bytes'] / us * 1e6 > 1.03 * row['ceiling']",
    "events": "row['method'] == 'events' and us < 10",
    "spread": "sum(abs(s - us) > 0.1 * us for s in row['samples']) > 0.1 * len(row['samples'])",
    "host": "row['host_us'] > us",
}


def _asked(name, cause="", *, returns="return {word for word, asks in rules.items() if asks}", **rules):
    """An answer to 11.3 as a dict of rules; `rules` replace some of them, None leaves one out."""
    given = _RULES | rules
    told = [f"    {word!r}: {rule}," for word, rule in given.items() if word != "time" and rule is not None]
    return Answer("11.3", name, ("\n".join([given["time"], "rules = {", *told, "}", returns]),), cause)


WRONG = [
    _whole("as it was", AS_IT_WAS, "call it once, before the loop"),
    _whole("by the host's clock", _HOST, "The host's clock sees when calls are queued"),
    _whole("nothing returned", "x, y = make()\nop(x, y)", "Return one number"),
    _timed("inputs inside", "call it once, before the loop", call="x, y = make()\nop(x, y)"),
    _timed("never compiled before", "A first call compiles", check=""),
    _timed("compiled, never checked", "never compared with the reference", check="op(x, y)"),
    _timed("checked in each round", "its time counts too", check="op(x, y)", call=_CHECK),
    _timed("checked afterwards", "Check first", check="op(x, y)", last=f"cuda.synchronize()\n{_CHECK}"),
    _timed("no flush", "left its inputs in the L2 cache", before=""),
    _timed("one flush for all", "Each call fills the cache again", check=f"{_CHECK}\nflush()", before=""),
    _timed("flushed, then called", "let nothing else run between", before="flush()\nop(x, y)"),
    _timed("flush inside", "Overwriting the cache takes longer", before="", call="flush()\nop(x, y)"),
    _timed("made after the flush", "puts them into the cache again", before="flush()\nx, y = make()"),
    _timed("sync before the start", "no synchronize between flush()", before="flush()\ncuda.synchronize()"),
    _timed("never waited", "wait with cuda.synchronize() after the loop", last=""),
    _timed("no timing", "made with enable_timing=True", before="start, end = cuda.Event(), cuda.Event()\nflush()"),
    _timed(
        "the end never recorded",
        "start.record() before the call and end.record() after it",
        after="pairs.append((start, cuda.Event(True)))",
    ),
    _timed("called before the start", "Is op called after start.record()", before="flush()\nop(x, y)", call="pass"),
    _timed("ten calls in a pair", "time each call with a pair of its own", call="for _ in range(10):\n    op(x, y)"),
    _timed("always twenty", "Time `calls` calls, no more", loop="for _ in range(20):"),
    _timed("the mean", "A mean follows the few calls", returns=_MEDIAN.replace("median", "fmean")),
    _timed("the minimum", "The fastest call is luck", returns="min(1e3 * s.elapsed_time(e) for s, e in pairs)"),
    _timed("the maximum", "The slowest call was disturbed", returns="max(1e3 * s.elapsed_time(e) for s, e in pairs)"),
    _timed("milliseconds", "elapsed_time() gives milliseconds", returns=_MEDIAN.replace("1e3 * ", "")),
    _timed("the sum", "the time of all calls together", returns="sum(1e3 * s.elapsed_time(e) for s, e in pairs)"),
    _timed(
        "the first",
        "One sample is one sample",
        after="pairs.append((start, end))",
        returns="[1e3 * s.elapsed_time(e) for s, e in pairs][0]",
    ),
    _timed("bit for bit", "rounds otherwise", check=_CHECK.replace("allclose", "equal")),
    _timed(
        "other inputs for the reference", "give op and reference the same", check=_CHECK.replace("reference(x, y)", "reference(*make())")
    ),
    _timed(
        "nan let through",
        "A comparison with nan is false",
        check="if (op(x, y) - reference(x, y)).abs().max() > 1e-4:\n    raise ValueError('wrong')",
    ),
    _timed("the first elements only", "does not look at every element", check=_CHECK.replace("(x, y)", "(x, y)[:100]")),
    _timed("a loose tolerance", "does not look at every element", check=_CHECK.replace("reference(x, y)", "reference(x, y), atol=10.0")),
    _timed("the mean of the difference", "does not look at every element", check="assert abs((op(x, y) - reference(x, y)).mean()) < 1e-2"),
    _work("swapped", "First the bytes", add="n, 3 * n * itemsize"),
    _work("elements", "Each has `itemsize` bytes", replace=(" * itemsize", "")),
    _work("always float32", "The bytes follow `itemsize`", replace=("itemsize", "4")),
    _work("only bytes", "Return two numbers", add="3 * n * itemsize"),
    _work("the result forgotten", "The result is written", add="2 * n * itemsize, n"),
    _work("the result read", "without reading it", add="4 * n * itemsize, n"),
    _work("two FLOP for a sum", "one FLOP", add="3 * n * itemsize, 2 * n"),
    _work("the row again for each row", "takes the row again", add_row="3 * m * n * itemsize, m * n"),
    _work("the row forgotten", "The row is read as well", add_row="2 * m * n * itemsize, m * n"),
    _work("sums as large as x", "one number a row", row_sums="2 * m * n * itemsize, m * (n - 1)"),
    _work("sums not written", "The m sums are written", row_sums="m * n * itemsize, m * (n - 1)"),
    _work("a sum for each column", "m sums are written, not n", row_sums="(m * n + n) * itemsize, m * (n - 1)"),
    _work("n additions", "added to nothing", row_sums="(m * n + m) * itemsize, m * n"),
    _work("the whole table", "not the whole table", gather="(table + rows) * n * itemsize + 8 * rows, 0"),
    _work("no indices", "The indices are read too", gather="2 * rows * n * itemsize, 0"),
    _work("indices of the dtype", "An index is an int64", gather="(2 * rows * n + rows) * itemsize, 0"),
    _work("a gather that adds", "it computes nothing", gather="2 * rows * n * itemsize + 8 * rows, rows * n"),
    _work("one FLOP a step", "2 FLOP, though one instruction", matmul="(m * k + k * n + m * n) * itemsize, m * n * k"),
    _work("to the last addition", "Everybody counts", matmul="(m * k + k * n + m * n) * itemsize, m * n * (2 * k - 1)"),
    _work("no reuse", "without any reuse loads", matmul="(2 * m * n * k + m * n) * itemsize, 2 * m * n * k"),
    _asked("the mean", "judged by the mean", time="us = sum(row['samples']) / len(row['samples'])"),
    _asked("the minimum", "judged by the fastest sample", time="us = min(row['samples'])"),
    _asked(
        "the fastest against the ceiling",
        "One fast sample is no rate",
        ceiling="row['bytes'] is not None and row['bytes'] / min(row['samples']) * 1e6 > 1.03 * row['ceiling']",
    ),
    _asked("no bytes", "`bytes` is None where", ceiling="row['bytes'] / us * 1e6 > 1.03 * row['ceiling']"),
    _asked("no room over the ceiling", "up to 1.03 of it", ceiling="row['bytes'] is not None and row['bytes'] / us * 1e6 > row['ceiling']"),
    _asked(
        "µs for seconds",
        "bytes a second, and the samples",
        ceiling="row['bytes'] is not None and row['bytes'] / us > 1.03 * row['ceiling']",
    ),
    _asked("short by any method", "Only events add", events="us < 10"),
    _asked("10 itself", "10 µs is not below", events="row['method'] == 'events' and us <= 10"),
    _asked("the range", "follows a single sample", spread="max(row['samples']) - min(row['samples']) > 0.1 * us"),
    _asked("any odd sample", "usual", spread="any(abs(s - us) > 0.1 * us for s in row['samples'])"),
    _asked("slow ones only", "in either direction", spread="sum(s > 1.1 * us for s in row['samples']) > 0.1 * len(row['samples'])"),
    _asked("a tenth itself", "not more than a tenth", spread=_RULES["spread"].replace(") > 0.1 * len", ") >= 0.1 * len")),
    _asked("host as fast", "the host must be slower", host="row['host_us'] >= us"),
    _asked("the host's way round", "ask when the host takes longer", host="row['host_us'] < us"),
    _asked("never unchecked", "`unchecked` is never asked", unchecked=None),
    _asked("never the host", "`host` is never asked", host=None),
    _asked("never the spread", "`spread` is never asked", spread=None),
    _asked("one word", "Return a set of words", returns="return next((word for word, asks in rules.items() if asks), '')"),
    _asked("another word", "The words are", returns="return {word.title() for word, asks in rules.items() if asks}"),
]

RIGHT = [
    _timed("assert_close", check="torch.testing.assert_close(op(x, y), reference(x, y))"),
    _timed("with a warm-up", check=f"{_CHECK}\nfor _ in range(5):\n    op(x, y)\ncuda.synchronize()"),
    _timed("waits after each call", after="cuda.synchronize()\npairs.append((start, end))", last=""),
    _timed("new inputs in each round", before="x, y = make()\nflush()"),
    _timed(
        "its own median",
        returns="(lambda us: (us[(len(us) - 1) // 2] + us[len(us) // 2]) / 2)(sorted(1e3 * s.elapsed_time(e) for s, e in pairs))",
    ),
    _timed("checked by hand", check="assert bool(((op(x, y) - reference(x, y)).abs() < 1e-4).all())", last="pairs[-1][1].synchronize()"),
    _work("as a list of counts"),
    _work("grouped otherwise", add="(n + n + n) * itemsize, float(n)", matmul="itemsize * (k * (m + n) + m * n), 2 * k * n * m"),
    _asked("as a dict of rules"),
    _asked("as a list", returns="return [word for word, asks in rules.items() if asks]"),
    _asked("in seconds", ceiling="bool(row['bytes']) and row['bytes'] > 1.03 * row['ceiling'] * (us / 1e6)"),
]
