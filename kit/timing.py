"""What `bench` measured: Rows of one contender at one shape, and the Timing that holds them, compares them and draws itself."""

from __future__ import annotations

import html
from dataclasses import dataclass, field

from kit.errors import BadInput, quoted
from kit.statistics import ratio, summary

# How a call can be timed (kit.clocks), and what each time contains.
METHODS = {
    "events": "from an event before the call to one after it, on the GPU: its kernels, the gaps between them, and some 3 µs of the events' "
    "own; the host runs ahead, so its time is not in it",
    "graph": "a CUDA graph of many calls, divided by their number: kernels and the GPU's own gaps, no host",
    "profiler": "the kernels' own durations added up (CUPTI): no gaps, no launch",
}

_ABOVE = 1.03  # of the ceiling: the ceiling is itself a measurement, with a spread of its own
_SHORT = 10.0  # µs


@dataclass(frozen=True)
class Row:
    """One contender at one shape. `samples` are µs a call, one a round, in the order of the rounds."""

    name: str
    shape: dict
    samples: tuple
    method: str
    cold: bool
    checked: bool
    bytes: float | None = None  # of the operation
    flop: float | None = None
    copy_ceiling: float | None = None  # bytes a second, measured in this process
    matrix_ceiling: float | None = None  # FLOP a second
    host_us: float | None = None  # what the host takes to queue one call

    @property
    def time(self):
        """The Summary of the samples, in µs."""
        return summary(self.samples)

    @property
    def us(self):
        """The median, in µs a call."""
        return self.time.median

    @property
    def bandwidth(self):
        """Bytes a second, from the operation's bytes; None without them."""
        return None if self.bytes is None else self.bytes / (1e-6 * self.us)

    @property
    def rate(self):
        """FLOP a second, from the operation's FLOP; None without them."""
        return None if self.flop is None else self.flop / (1e-6 * self.us)

    @property
    def share(self):
        """The larger share of a measured ceiling: of the copy's bytes a second, or of the matrix product's FLOP a second."""
        shares = []
        if self.bytes is not None and self.copy_ceiling:
            shares.append(self.bandwidth / self.copy_ceiling)
        if self.flop is not None and self.matrix_ceiling:
            shares.append(self.rate / self.matrix_ceiling)
        return max(shares, default=None)

    @property
    def questions(self):
        """What should be looked into before this number is believed."""
        asked = []
        if not self.checked:
            asked.append("it was not checked against a reference")
        if self.share is not None and self.share > _ABOVE:
            warm = "" if self.cold else ", and the data may have come from the L2 cache"
            asked.append(
                f"{self.share:.2f} of the ceiling is more than there is: is the count of bytes or FLOP right, is work skipped{warm}?"
            )
        if self.method == "events" and self.us < _SHORT:
            asked.append(f"events cannot tell {self.us:.1f} µs from their own few: method='graph' can")
        if self.time.spread > 0.1:
            asked.append(f"it spreads by ±{100 * self.time.spread:.0f} %: is another program on this GPU?")
        return tuple(asked)

    @property
    def launch_bound(self):
        """True when the host takes longer to queue a call than the GPU to run it: called in a loop, the host's time is what counts."""
        return self.host_us is not None and self.host_us > self.us

    def record(self):
        """One flat dict, for a table: times in µs, gb_s in 10^9 bytes, tflop_s in 10^12 FLOP a second."""
        time = self.time
        return {
            **self.shape,
            "name": self.name,
            "us": time.median,
            "low": time.low,
            "high": time.high,
            "p10": time.p10,
            "p90": time.p90,
            "rounds": time.count,
            "gb_s": None if self.bytes is None else self.bandwidth / 1e9,
            "tflop_s": None if self.flop is None else self.rate / 1e12,
            "share": self.share,
            "method": self.method,
            "cold": self.cold,
            "host_us": self.host_us,
            "checked": self.checked,
            "questions": "; ".join(self.questions),
        }


@dataclass(eq=False)
class Timing:
    """What `bench` measured. True when every row was checked and none raises a question; `[name]` gives a contender's rows."""

    rows: tuple
    evidence: str = "measured"
    note: str = ""
    gpu: str = ""
    versions: dict = field(default_factory=dict, repr=False)

    @property
    def names(self):
        return list(dict.fromkeys(row.name for row in self.rows))

    @property
    def shapes(self):
        return [dict(items) for items in dict.fromkeys(tuple(row.shape.items()) for row in self.rows)]

    def __iter__(self):
        return iter(self.rows)

    def __len__(self):
        return len(self.rows)

    def __bool__(self):
        return bool(self.rows) and not any(row.questions for row in self.rows)

    def __getitem__(self, name):
        found = [row for row in self.rows if row.name == name]
        if not found:
            raise BadInput(f"bench: there is no contender {quoted(name)}; there are {', '.join(self.names)}.")
        return found

    def row(self, name, **shape):
        """The Row of a contender at a shape; the shape may be left out where there is one. Raises BadInput."""
        found = [row for row in self[name] if all(row.shape.get(key) == value for key, value in shape.items())]
        if len(found) != 1:
            raise BadInput(f"bench: {len(found)} rows of {name} fit {shape or 'any shape'}; the shapes are {quoted(self.shapes, 200)}.")
        return found[0]

    def ratio(self, above, below, **shape):
        """Time of `above` over time of `below` at a shape, as a Summary of the ratios round by round; over 1: `below` is faster."""
        return ratio(self.row(above, **shape).samples, self.row(below, **shape).samples)

    def table(self):
        """A list of flat dicts, one a row: `pandas.DataFrame(timing.table())`."""
        return [row.record() for row in self.rows]

    def data(self):
        """What JSON holds of it, for a recorded experiment: the table, with the ratios of each shape to its first contender."""
        records = self.table()
        for record, row in zip(records, self.rows, strict=True):
            first = self.row(self.names[0], **row.shape)
            record["ratio"] = ratio(row.samples, first.samples).median
        return records

    def picture(self, value="us"):
        """The medians drawn: bars at one shape, curves over the one axis that varies. `value`: "us", "gb_s", "tflop_s" or "share"."""
        from kit.bench_picture import draw

        return draw(self, value)

    def __repr__(self):
        head = self.note or "bench"
        lines = [f"{head}: {_told(row)}" for row in self.rows[:1]] if len(self.rows) == 1 else []
        if not lines:
            at = f" at {len(self.shapes)} shapes" if len(self.shapes) > 1 else ""
            lines = [f"{head}: {len(self.names)} contenders{at}"] + [f"  {_told(row)}" for row in self.rows]
        lines[0] += f" [{self.evidence}]"
        return "\n".join(lines + [f"  ? {row.name}{_at(row.shape)}: {one}" for row in self.rows for one in row.questions])

    def _repr_html_(self):
        from kit.evidence import label_html

        keys = list(dict.fromkeys(key for row in self.rows for key in row.shape))
        heads = [*keys, "", "µs", "95 % of the median", "GB/s", "TFLOP/s", "of the ceiling"]
        body = "".join(_tr([*(row.shape.get(key, "") for key in keys), *_cells(row)]) for row in self.rows)
        asked = [f"<li>{html.escape(row.name + _at(row.shape))}: {html.escape(one)}</li>" for row in self.rows for one in row.questions]
        first = self.rows[0] if self.rows else None
        how = "" if first is None else f"{first.method}, {'cold' if first.cold else 'warm'} L2 cache, {first.time.count} rounds in turns"
        table = "<table><tr>" + "".join(f"<th>{html.escape(str(head))}</th>" for head in heads) + f"</tr>{body}</table>"
        return f"<div>{html.escape(self.note)} {how} {label_html(self.evidence, self.gpu)}</div>{table}" + (
            f"<div>Ask first:</div><ul>{''.join(asked)}</ul>" if asked else ""
        )


def _tr(cells):
    return "<tr>" + "".join(f"<td>{html.escape(str(cell))}</td>" for cell in cells) + "</tr>"


def _cells(row):
    time = row.time
    return [
        row.name,
        f"{time.median:,.2f}",
        f"{time.low:,.2f} to {time.high:,.2f}",
        "" if row.bytes is None else f"{row.bandwidth / 1e9:,.0f}",
        "" if row.flop is None else f"{row.rate / 1e12:,.1f}",
        "" if row.share is None else f"{100 * row.share:.0f} %",
    ]


def _at(shape):
    return f" at {', '.join(f'{key}={value}' for key, value in shape.items())}" if shape else ""


def _told(row):
    time = row.time
    text = f"{row.name}{_at(row.shape)} {time.median:,.2f} µs ({time.low:,.2f} to {time.high:,.2f})"
    if row.bytes is not None:
        text += f", {row.bandwidth / 1e9:,.0f} GB/s"
    if row.flop is not None:
        text += f", {row.rate / 1e12:,.1f} TFLOP/s"
    return text + (f", {100 * row.share:.0f} % of the ceiling" if row.share is not None else "")
