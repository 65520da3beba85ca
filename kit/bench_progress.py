"""How far a long sweep is: a bar in a notebook, a line on a terminal's stderr, nothing for what takes a second or two."""

from __future__ import annotations

import os
import sys
import time

_PATIENCE = 2.0  # seconds without a word


class Progress:
    """`with Progress(total, verb) as progress: progress.step(n, shape)`. It takes itself away at the end."""

    def __init__(self, total, verb="bench"):
        self.total, self.done, self.verb = total, 0.0, verb
        self.began, self.bar = time.monotonic(), None

    def __enter__(self):
        return self

    def step(self, n, shape):
        """`n` of `total` more are done, at `shape`."""
        self.done += n
        spent = time.monotonic() - self.began
        if spent < _PATIENCE:
            return
        left = spent / self.done * (self.total - self.done)
        at = f" ({', '.join(f'{key}={value}' for key, value in shape.items())})" if shape else ""
        words = f"{100 * self.done / self.total:.0f} %, about {left:.0f} s left{at}"
        if "ipykernel" in sys.modules and "KIT_NOTEBOOK" not in os.environ:  # there outputs are compared, and a bar depends on time
            self._draw(words)
        elif sys.stderr.isatty():
            print(f"\r{self.verb}: {words}\033[K", end="", file=sys.stderr, flush=True)

    def _draw(self, words):
        import ipywidgets
        from IPython.display import display

        if self.bar is None:
            self.bar = ipywidgets.FloatProgress(max=self.total, layout={"width": "300px"})
            self.words = ipywidgets.Label()
            self.box = ipywidgets.HBox([self.bar, self.words])
            display(self.box)
        self.bar.value, self.words.value = self.done, words

    def __exit__(self, *_):
        if self.bar is not None:
            self.box.close()
        elif time.monotonic() - self.began >= _PATIENCE and sys.stderr.isatty():
            print("\r\033[K", end="", file=sys.stderr, flush=True)
