"""A JupyterLab of one's own and a headless Chromium that looks at it. Used by `screenshots.py` and by the browser test.

The server has its own configuration, settings and workspaces, listens on a free port of this machine without a token, and never saves a
notebook: what is on disk stays as it was. Nothing of this is for people; `make lab` starts the ordinary JupyterLab.
"""

from __future__ import annotations

import contextlib
import json
import os
import shutil
import socket
import subprocess
import sys
import tempfile
import time
import urllib.request
from pathlib import Path

CHROMIUM_FLAGS = [
    "--no-sandbox",  # CI runs as root, where Chromium's sandbox refuses to start
    "--disable-dev-shm-usage",
    "--disable-gpu",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-sync",
    "--no-first-run",
]

# Cells that scroll out of view lose their DOM in the default mode; autosave would rewrite the notebook on disk.
SETTINGS = {
    "@jupyterlab/notebook-extension/tracker": {"windowingMode": "none", "autoStartDefaultKernel": True},
    "@jupyterlab/docmanager-extension/plugin": {"autosave": False},
    "@jupyterlab/apputils-extension/notification": {"fetchNews": "false", "checkForUpdates": False},
}


class LabError(RuntimeError):
    """JupyterLab or the browser did not do what was asked; the message says what was seen."""


def chromium():
    """The path of the browser; LabError with what to install when there is none."""
    for name in ("chromium", "chromium-browser", "google-chrome"):
        if path := shutil.which(name):
            return path
    raise LabError("no Chromium on this machine: install it (Debian: apt-get install chromium) and run this again")


def _free_port():
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return probe.getsockname()[1]


def _write_settings(home):
    for plugin, values in SETTINGS.items():
        path = home / "settings" / f"{plugin}.jupyterlab-settings"
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(json.dumps(values))


@contextlib.contextmanager
def lab_server(root):
    """Run JupyterLab on the folder `root` and yield its address; it is gone afterwards, kernels too."""
    with tempfile.TemporaryDirectory(prefix="kit-lab-") as folder:
        home, port = Path(folder), _free_port()
        _write_settings(home)
        folders = {"JUPYTER_CONFIG_DIR": "config", "JUPYTER_DATA_DIR": "data", "JUPYTER_RUNTIME_DIR": "run", "IPYTHONDIR": "ipython"}
        environment = dict(os.environ, KIT_PROGRESS=f"{home}/progress.json", **{name: f"{home}/{at}" for name, at in folders.items()})
        for name in ("KIT_LEDGER", "PYTEST_CURRENT_TEST"):  # claims were counted under nbval; ipykernel captures less under pytest
            environment.pop(name, None)
        options = {
            "ServerApp.port": port,
            "ServerApp.port_retries": 0,
            "ServerApp.ip": "127.0.0.1",
            "ServerApp.open_browser": False,
            "ServerApp.allow_root": True,
            "ServerApp.root_dir": str(root),
            "ServerApp.disable_check_xsrf": True,
            "IdentityProvider.token": "",
            "LabApp.user_settings_dir": f"{home}/settings",
            "LabApp.workspaces_dir": f"{home}/workspaces",
            "LabApp.expose_app_in_browser": True,
            "FileCheckpoints.checkpoint_dir": f"{home}/checkpoints",
        }
        command = [sys.executable, "-m", "jupyterlab", "--no-browser", *(f"--{name}={value}" for name, value in options.items())]
        with open(home / "log", "w+b") as log:
            server = subprocess.Popen(command, env=environment, stdout=log, stderr=subprocess.STDOUT, stdin=subprocess.DEVNULL)
            try:
                _await_server(server, port, home / "log")
                yield f"http://127.0.0.1:{port}"
            finally:
                server.terminate()  # JupyterLab shuts its kernels down on SIGTERM
                try:
                    server.wait(20)
                except subprocess.TimeoutExpired:
                    server.kill()
                    server.wait()


def _await_server(server, port, log, seconds=60):
    deadline = time.monotonic() + seconds
    while time.monotonic() < deadline:
        if server.poll() is not None:
            break
        try:
            with urllib.request.urlopen(f"http://127.0.0.1:{port}/api", timeout=2):
                return
        except OSError:
            time.sleep(0.2)
    raise LabError(f"JupyterLab did not answer on port {port} within {seconds} s:\n{log.read_text(errors='replace')[-2000:]}")


class NotebookPage:
    """One notebook, open in a browser tab. `page` is Playwright's page, `console` what the page reported as errors, in order."""

    def __init__(self, page, address, path, single=False, timeout=120):
        """Open `path` (relative to the server's root) and wait for its kernel. `single`: without file browser and tabs."""
        self.page, self.path, self.console = page, path, []
        page.on("console", lambda message: message.type == "error" and self.console.append(message.text))
        page.on("pageerror", lambda error: self.console.append(str(error)))
        page.goto(f"{address}/{'doc' if single else 'lab'}/tree/{path}?reset")
        page.wait_for_function("() => window.jupyterapp !== undefined", timeout=timeout * 1000)
        page.evaluate("() => window.jupyterapp.restored")
        ready = """() => { const w = window.jupyterapp.shell.currentWidget;
                           return w?.content?.widgets?.length > 0 && w.context.isReady && w.sessionContext.isReady
                                  && w.sessionContext.session?.kernel?.status === 'idle' }"""
        try:
            page.wait_for_function(ready, timeout=timeout * 1000)
        except Exception as error:
            dialog = page.locator(".jp-Dialog").all_inner_texts()
            raise LabError(
                f"{path} did not open with a kernel within {timeout} s" + (f"; JupyterLab asks: {dialog}" if dialog else "")
            ) from error

    def run_all(self, timeout=600):
        """Run every cell from a clean slate and return when the last prompt has its number.

        Raises LabError with the error outputs when a cell failed, or with the unfinished prompts after `timeout` seconds.
        """
        start = """() => { const run = window.jupyterapp.commands;
                           window.kitRun = 'running';
                           run.execute('notebook:clear-all-cell-outputs')
                              .then(() => run.execute('notebook:run-all-cells')).then(() => { window.kitRun = 'done' },
                                                                                      e => { window.kitRun = String(e) }) }"""
        self.page.evaluate(start)
        # The kernel's status is no guide: with subshells it reads idle while a cell runs. The prompts are.
        counted = "() => window.kitRun !== 'running'"
        with contextlib.suppress(Exception):  # Playwright's time-out: what was seen by then is reported below
            self.page.wait_for_function(counted, timeout=timeout * 1000)
        self.raise_on_error()
        if unfinished := [cell for cell in self.code_cells() if cell["source"].strip() and cell["execution_count"] is None]:
            raise LabError(f"{self.path}: {len(unfinished)} cells did not finish within {timeout} s, the first:\n{unfinished[0]['source']}")

    def code_cells(self):
        """The code cells as they are in the browser now: nbformat's dicts."""
        model = self.page.evaluate("() => window.jupyterapp.shell.currentWidget.content.model.sharedModel.toJSON()")
        return [cell | {"source": "".join(cell["source"])} for cell in model["cells"] if cell["cell_type"] == "code"]

    def errors(self):
        """Every error output, as (cell number from 1, "Name: message")."""
        cells = enumerate(self.code_cells(), 1)
        outputs = [(number, output) for number, cell in cells for output in cell["outputs"] if output["output_type"] == "error"]
        return [(number, f"{output['ename']}: {output['evalue']}") for number, output in outputs]

    def raise_on_error(self):
        """LabError when a cell shows an error output."""
        if found := self.errors():
            raise LabError(f"{self.path}: " + "; ".join(f"code cell {number}: {text}" for number, text in found))

    def settle(self, seconds=1.0):
        """Wait until fonts, pictures and widgets have been painted."""
        self.page.evaluate("() => document.fonts.ready")
        self.page.wait_for_function("() => [...document.images].every(image => image.complete)", timeout=20_000)
        self.page.wait_for_timeout(seconds * 1000)

    def save_screenshots(self, folder, stem, overlap=60):
        """Photograph the notebook from top to bottom, one PNG a screen, `overlap` pixels shared; return the paths."""
        folder = Path(folder)
        folder.mkdir(parents=True, exist_ok=True)
        for old in folder.glob(f"{stem}-[0-9][0-9].png"):
            old.unlink()
        scroller = self.page.locator(".jp-Notebook .jp-WindowedPanel-outer, .jp-Notebook.jp-WindowedPanel-outer").first
        height, total = scroller.evaluate("e => [e.clientHeight, e.scrollHeight]")
        paths, top = [], 0
        while True:
            scroller.evaluate("(e, top) => { e.scrollTop = top }", top)
            self.page.wait_for_timeout(150)
            paths.append(folder / f"{stem}-{len(paths) + 1:02d}.png")
            scroller.screenshot(path=paths[-1])
            if top + height >= total:
                return paths
            top += height - overlap


class Lab:
    """A JupyterLab on a folder, and the browser that looks at it: opens one notebook after the other."""

    def __init__(self, root, address, browser):
        self.root, self.address, self.browser = root, address, browser

    @contextlib.contextmanager
    def notebook(self, path, single=False, width=1100, height=1400, dark=False):
        """Open the notebook file at `path`, in the Lab's folder, and yield its NotebookPage. Its kernel ends with the block."""
        path = Path(path).resolve()
        if not path.is_file():
            raise LabError(f"no such notebook: {path}")
        context = self.browser.new_context(viewport={"width": width, "height": height}, color_scheme="dark" if dark else "light")
        try:
            opened = NotebookPage(context.new_page(), self.address, path.relative_to(self.root).as_posix(), single=single)
            yield opened
            opened.page.evaluate("() => window.jupyterapp.shell.currentWidget.sessionContext.shutdown()")
        finally:
            context.close()


@contextlib.contextmanager
def lab(root):
    """Start JupyterLab on the folder `root` and a browser; yield the Lab. Both are gone afterwards."""
    from playwright.sync_api import sync_playwright

    root = Path(root).resolve()
    with lab_server(root) as address, sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=chromium(), args=CHROMIUM_FLAGS)
        try:
            yield Lab(root, address, browser)
        finally:
            browser.close()


@contextlib.contextmanager
def notebook_page(notebook, **how):
    """Open the notebook file in a JupyterLab started for it and yield its NotebookPage. The server's root is the folder above its own."""
    notebook = Path(notebook).resolve()
    with lab(notebook.parent.parent) as started, started.notebook(notebook, **how) as page:
        yield page
