"""From a slider step to the picture, in a real JupyterLab: `python benchmarks/slider_latency.py [--pictures FOLDER] [--steps 40]`.

Opens a scratch notebook in headless Chromium, presses the arrow key on a slider, and takes performance.now() at the `input` event and
at the animation frame after the picture changed: in the browser for panels computed beforehand (bars, number line, cells), through the
kernel for a live picture and for a matplotlib figure. `--pictures` keeps screenshots, in the light and the dark theme.
"""

import argparse
import os
import shutil
import socket
import statistics
import subprocess
import sys
import tempfile
import time
import urllib.request
from pathlib import Path

import nbformat
from playwright.sync_api import sync_playwright

ROOT = Path(__file__).resolve().parents[1]
CONFIG = "from jupyterlab.galata import configure_jupyter_server\nconfigure_jupyter_server(c)\n"
VIEWS = """
from matplotlib.figure import Figure
from kit.explore import explore
from kit.pictures import Bar, Bars, Cells, Curve, Mark, NumberLine, Span

TOKENS = [2**i for i in range(41)]
LAYOUTS = ["tokens first", "heads first", "flat"]

def grids(tokens, heads, layout):
    a, b = {"tokens first": (tokens, heads), "heads first": (heads, tokens), "flat": (tokens * heads, 1)}[layout]
    sizes = {"axis 0": (a, 2**31 - 1), "axis 1": (b, 65_535), "all programs": (a * b, 2**31 - 1)}
    rows = [Bar(name, size, limit, size <= limit) for name, (size, limit) in sizes.items()]
    bad = [row.label for row in rows if not row.ok]
    words = f"over the limit: {', '.join(bad)}" if bad else "all within the limits"
    return Bars("A grid over tokens and heads", "programs", rows, scale="log", sentence=f"({a:,}, {b:,}): {words}.")

def offsets(tokens, heads, head_size):
    n = tokens * heads * head_size
    wrapped = (n + 2**31) % 2**32 - 2**31
    marks = [Mark(n, "true offset", True)] + ([] if n == wrapped else [Mark(wrapped, "int32", False, wraps_from=n)])
    where = "reached" if n == wrapped else f"looked for at {wrapped:,}"
    sentence = f"The last of {n:,} elements is {where}."
    return NumberLine("Where the last offset falls", marks, [Span(0, n, "the cache")], unit="elements", sentence=sentence)

def wrong_cells(wrong):
    return Cells("Which elements are wrong", [[int(i * 64 + j < wrong) for j in range(64)] for i in range(32)])

def cost(block):
    series = {"whole": [t / block for t in TOKENS], "half": [t / 2 / block for t in TOKENS]}
    return Curve("Programs for a block", TOKENS, series, at=2**20, x_label="tokens", y_label="programs")

def figure(n):
    f = Figure(figsize=(6, 3), layout="constrained")
    f.add_subplot(title=f"n = {n}").plot(range(1000), [(i * n) % 97 for i in range(1000)])
    return f, f"A saw with n = {n}."
"""
CELLS = {
    "bars": "explore(grids, tokens=TOKENS, heads=[1, 8, 32, 64, 128], layout=LAYOUTS, start={'heads': 32})",
    "number line": "explore(offsets, tokens=range(1024, 131073, 1024), heads=[8, 32, 64], head_size=[64, 128, 256], start={'heads': 64})",
    "cells": "explore(wrong_cells, wrong=range(0, 1024, 16))",
    "live picture": "explore(cost, live=True, block=range(16, 1024, 16))",
    "figure": "explore(figure, n=range(1, 100))",
}
WATCH = """(panel) => {
    const picture = panel.querySelector('svg, .kit-drawn');
    window.kitSteps = [];
    let pressed = null;
    panel.addEventListener('input', () => (pressed = performance.now()), true);
    new MutationObserver(() => {
        if (pressed === null) return;
        const since = pressed;
        pressed = null;
        const image = panel.querySelector('.kit-drawn img');
        const done = () => requestAnimationFrame(() => window.kitSteps.push(performance.now() - since));
        image ? image.decode().then(done) : done();
    }).observe(picture, { childList: true, subtree: true });
}"""


def free_port():
    with socket.socket() as s:
        s.bind(("127.0.0.1", 0))
        return s.getsockname()[1]


def start_lab(folder):
    """JupyterLab on the scratch notebook in `folder`; returns the process and the address of the notebook."""
    notebook = nbformat.v4.new_notebook(metadata={"kernelspec": {"name": "python3", "display_name": "Python 3", "language": "python"}})
    setup = f"import sys; sys.path.insert(0, {str(ROOT)!r})\n{VIEWS}"
    notebook.cells = [nbformat.v4.new_code_cell(source) for source in [setup, *CELLS.values()]]
    nbformat.write(notebook, folder / "scratch.ipynb")
    (folder / "config.py").write_text(CONFIG)
    port = free_port()
    command = [sys.executable, "-m", "jupyterlab", "--config", "config.py", f"--ServerApp.port={port}", "--ServerApp.ip=127.0.0.1"]
    command += ["--ServerApp.allow_root=True", f"--ServerApp.root_dir={folder}", "--ServerApp.open_browser=False"]
    environment = os.environ | {"JUPYTERLAB_SETTINGS_DIR": str(folder / "settings")}  # the theme is not to stay changed
    lab = subprocess.Popen(command, cwd=folder, env=environment, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    for _ in range(120):
        try:
            urllib.request.urlopen(f"http://127.0.0.1:{port}/api/status", timeout=2)
            return lab, f"http://127.0.0.1:{port}/lab/tree/scratch.ipynb?reset"
        except OSError:
            time.sleep(0.5)
    lab.terminate()
    raise SystemExit("JupyterLab did not start within a minute.")


def run_all(page, address):
    page.goto(address)
    page.wait_for_function("window.jupyterapp !== undefined", timeout=90_000)
    page.evaluate("window.jupyterapp.restored")
    page.wait_for_function("window.jupyterapp.shell.currentWidget?.sessionContext?.isReady", timeout=90_000)
    page.evaluate("window.jupyterapp.commands.execute('notebook:run-all-cells')")
    page.wait_for_function(
        "n => window.jupyterapp.shell.currentWidget.model.sharedModel.cells.filter(c => c.execution_count).length > n",
        arg=len(CELLS),
        timeout=180_000,
    )


def measure(page, name, index, steps):
    page.evaluate("i => window.jupyterapp.shell.currentWidget.content.scrollToItem(i, 'start')", index)
    panel = page.locator(".jp-Notebook .jp-Cell").nth(index).locator(".kit-panel")
    panel.wait_for(timeout=60_000)
    slider = panel.get_by_role("slider").first
    slider.focus()
    panel.evaluate(WATCH)
    for n in range(1, steps + 1):
        slider.press("ArrowRight")
        page.wait_for_function("n => window.kitSteps.length >= n", arg=n, timeout=20_000)
    times = page.evaluate("window.kitSteps")
    print(f"{name:14} median {statistics.median(times):6.1f} ms   worst {max(times):6.1f} ms   of {len(times)} steps")
    return panel


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--steps", type=int, default=40)
    parser.add_argument("--pictures", type=Path)
    options = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder, sync_playwright() as playwright:
        lab, address = start_lab(Path(folder))
        try:
            browser = playwright.chromium.launch(executable_path=shutil.which("chromium"), args=["--no-sandbox", "--disable-dev-shm-usage"])
            page = browser.new_page(viewport={"width": 1200, "height": 900})
            run_all(page, address)
            panels = [measure(page, name, i, options.steps) for i, name in enumerate(CELLS, 1)]
            if options.pictures:
                keep_pictures(page, panels, options.pictures)
        finally:
            lab.terminate()
            lab.wait(20)


def keep_pictures(page, panels, folder):
    folder.mkdir(parents=True, exist_ok=True)
    for theme in ("JupyterLab Light", "JupyterLab Dark"):
        page.evaluate("theme => window.jupyterapp.commands.execute('apputils:change-theme', { theme })", theme)
        page.wait_for_timeout(1500)
        for i, (name, panel) in enumerate(zip(CELLS, panels, strict=True), 1):
            page.evaluate("i => window.jupyterapp.shell.currentWidget.content.scrollToItem(i, 'start')", i)
            page.wait_for_timeout(300)
            panel.screenshot(path=folder / f"{name.replace(' ', '_')}_{theme.split()[1].lower()}.png")


if __name__ == "__main__":
    main()
