"""`recorded`: an experiment that measures on a GPU, and replays its recording where there is none."""

from __future__ import annotations

import datetime
import functools
import html
import inspect
import json
import math
import os
import re
import subprocess
from dataclasses import dataclass
from pathlib import Path

from kit.errors import BadInput, KitError, WrongType, quoted
from kit.evidence import label_html
from kit.ledger import notebook
from kit.recording_file import digest, expect_room, folder, read, save


@dataclass(frozen=True)
class Recording:
    """What an experiment returned, and where from. Reads like its data: `r["x"]`, `len(r)`. True unless it is stale.

    `evidence` is "measured" or "recorded"; `provenance` a dict of gpu, driver, torch, triton, cuda and date; `stale` says that the code
    has changed since. `elsewhere` names the GPU that the lesson's own recording was made on, where this one was measured on another.
    """

    name: str
    data: object
    evidence: str
    provenance: dict
    stale: bool = False
    elsewhere: str = ""

    @property
    def detail(self):
        """Where it was recorded, in short: "on NVIDIA H200, 2026-11-30"."""
        return f"on {self.provenance['gpu']}, {self.provenance['date']}"

    def __getitem__(self, key):
        return self.data[key]

    def __iter__(self):
        return iter(self.data)

    def __len__(self):
        return len(self.data)

    def __contains__(self, key):
        return key in self.data

    def keys(self):
        return self.data.keys()

    def items(self):
        return self.data.items()

    def __bool__(self):
        return not self.stale

    def _where(self):
        return f"{self.detail}, torch {self.provenance['torch']}, Triton {self.provenance['triton']}"

    def __repr__(self):
        stale = ", STALE: the code changed since" if self.stale else ""
        return f"{self.name}: {_short(self.data)} [{self.evidence} {self._where()}{stale}]"

    def _repr_html_(self):
        stale = ' <b style="color:#D55E00">STALE: the code changed since</b>' if self.stale else ""
        driver = f"driver {self.provenance['driver']}, CUDA {self.provenance['cuda']}"
        head = f'<div title="{html.escape(driver)}">{html.escape(self.name)} {label_html(self, self._where())}{stale}</div>'
        return head + _table(self.data)


def _short(data, limit=120):
    """The data on one line, cut where it is long."""
    text = json.dumps(data, ensure_ascii=False)
    return text if len(text) <= limit else f"{text[: limit - 3]}..."


def _table(data):
    """The data in HTML: a dict a row an entry, nested dicts as columns; all else as it is."""
    if not isinstance(data, dict):
        return f"<div>{html.escape(_short(data, 600))}</div>"
    rows = data.items()
    columns = list(next(iter(data.values()), {})) if data and all(isinstance(value, dict) for value in data.values()) else None
    cells = [[value.get(column, "") for column in columns] if columns else [value] for _, value in rows]
    head = "<tr><th></th>" + "".join(f"<th>{html.escape(str(column))}</th>" for column in columns) + "</tr>" if columns else ""
    body = "".join(
        f"<tr><th>{html.escape(str(key))}</th>" + "".join(f"<td>{html.escape(_short(cell))}</td>" for cell in line) + "</tr>"
        for key, line in zip(data, cells, strict=True)
    )
    return f"<table>{head}{body}</table>"


def recorded(experiment=None, *, name=None):
    """Decorate an experiment: `@recorded` or `@recorded(name="...")`. Calling it then returns a Recording.

    The experiment takes keyword arguments that JSON can hold, and returns such data. On a GPU it runs, and is saved when KIT_RECORD=1;
    without one its recording is replayed, marked stale when the experiment or a kernel or helper that it reaches has changed. Raises
    KitError when there is no recording, or its file cannot be used.
    """
    if experiment is None:
        return functools.partial(recorded, name=name)
    if not inspect.isfunction(experiment):
        raise WrongType(f"recorded: put it on a function, @recorded or @recorded(name=...); got {quoted(experiment)}.")
    if any(p.kind == p.POSITIONAL_ONLY for p in inspect.signature(experiment).parameters.values()):
        raise BadInput(f"recorded: {experiment.__name__} has positional-only parameters; an experiment takes keyword arguments.")
    name = experiment.__name__ if name is None else name
    if not isinstance(name, str) or not re.fullmatch(r"[A-Za-z0-9_-]+", name):
        raise BadInput(f"recorded: name must be letters, digits, - and _, since it names a file; got {quoted(name)}.")

    @functools.wraps(experiment)
    def run(*args, **kwargs):
        arguments = _arguments(experiment, name, args, kwargs)
        return _measure_or_replay(experiment, name, arguments)

    return run


def _measure_or_replay(experiment, name, arguments):
    from kit import machine, sources

    here = machine.current()
    saving = os.environ.get("KIT_RECORD") == "1"
    if saving and not here.live:
        raise KitError(f"recorded: KIT_RECORD=1 asks to measure {name}, and {here.name} is simulated; run `make record` on a GPU.")
    code = sources.digest(experiment)
    if not here.live:
        return _replay(name, arguments, digest(code, arguments))
    owner = notebook() if experiment.__module__ == "__main__" else experiment.__module__
    if saving:
        expect_room(name, owner)  # before minutes of measuring, not after
    data = _plain(experiment(**arguments), f"recorded: {name} returned")
    provenance = _provenance(here)
    if saving:
        save(name, owner, code, {"arguments": arguments, "data": data, "provenance": provenance})
    return Recording(name, data, "measured", provenance, elsewhere=_other_gpu(name, here.name))


def _other_gpu(name, here):
    """The GPU of the recording that is kept of this experiment, when it is not this one; "" otherwise, also where there is none."""
    path = folder() / f"{name}.json"
    runs = read(path, name)["runs"] if path.exists() else []
    others = [run["provenance"]["gpu"] for run in runs if run["provenance"]["gpu"] != here]
    return others[0] if len(others) == len(runs) and others else ""


def _replay(name, arguments, wanted):
    path = folder() / f"{name}.json"
    again = "run `make record` on a GPU"
    if not path.exists():
        raise KitError(f"recorded: there is no recording of {name} ({path}) and no GPU here to measure it; {again}.")
    for run in read(path, name)["runs"]:
        if run["arguments"] == arguments:
            return Recording(name, run["data"], "recorded", run["provenance"], stale=run["digest"] != wanted)
    with_these = f"with {', '.join(f'{k}={v!r}' for k, v in arguments.items())}" if arguments else "without arguments"
    raise KitError(f"recorded: {path} holds no run of {name} {with_these}, and there is no GPU here to measure it; {again}.")


def _arguments(experiment, name, args, kwargs):
    """The keyword arguments with the defaults filled in, so that a call that spells a default out finds the same run."""
    if args:
        raise WrongType(
            f"recorded: {name} takes keyword arguments only, so that the recording names them; got {quoted(args[0])} without one."
        )
    try:
        bound = inspect.signature(experiment).bind(**kwargs)
    except TypeError as error:
        raise WrongType(f"recorded: {name}{inspect.signature(experiment)} cannot be called so: {error}.") from None
    bound.apply_defaults()
    return {key: _plain(value, f"recorded: {name} was given {key}=") for key, value in _named(bound).items()}


def _named(bound):
    kinds = inspect.Parameter
    named = {}
    for key, value in bound.arguments.items():
        kind = bound.signature.parameters[key].kind
        if kind == kinds.VAR_KEYWORD:
            named.update(value)
        elif kind != kinds.VAR_POSITIONAL:
            named[key] = value
    return named


def _plain(value, where):
    """`value` as JSON gives it back: tuples as lists. Raises WrongType for what JSON cannot hold, with the path to it."""
    if value is None or isinstance(value, (bool, str)) or type(value) is int:
        return value
    if type(value) is float:
        if math.isfinite(value):
            return value
        raise BadInput(f"{where} {value}, which JSON cannot hold; use None or a word in its place.")
    if isinstance(value, (list, tuple)):
        return [_plain(item, f"{where} [{i}]:") for i, item in enumerate(value)]
    if isinstance(value, dict) and all(isinstance(key, str) for key in value):
        return {key: _plain(item, f"{where} [{key!r}]:") for key, item in value.items()}
    do = (
        "make its keys strings"
        if isinstance(value, dict)
        else "use .item() or .tolist()"
        if hasattr(value, "tolist")
        else "use plain values"
    )
    raise WrongType(f"{where} {quoted(value)} ({type(value).__name__}), which JSON cannot hold; {do}.")


def _provenance(here):
    import torch

    return {
        "gpu": here.name,
        "driver": _driver(),
        "torch": here.versions["torch"],
        "triton": here.versions["triton"],
        "cuda": torch.version.cuda,
        "date": datetime.date.today().isoformat(),
    }


@functools.cache
def _driver():
    """The version of the NVIDIA driver: what its module says, else nvidia-smi, else "unknown"."""
    try:
        match = re.search(r"\b(\d{3,}\.\d+(\.\d+)?)\b", Path("/proc/driver/nvidia/version").read_text(encoding="utf-8"))
        if match:
            return match[1]
    except OSError:
        pass
    command = ["nvidia-smi", "--query-gpu=driver_version", "--format=csv,noheader"]
    try:
        return subprocess.run(command, check=False, capture_output=True, text=True, timeout=20).stdout.split()[0]
    except (OSError, IndexError, subprocess.TimeoutExpired):
        return "unknown"
