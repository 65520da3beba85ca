"""axe-core, the accessibility checker, run on an open page. Used by `browse.py` and the browser test.

The script is taken once from the PyPI package that carries it and kept in .kit/axe/; nothing of it is installed.
"""

from __future__ import annotations

import subprocess
import sys
import tempfile
import zipfile
from pathlib import Path

from project import ROOT

PACKAGE = "axe-playwright-python==0.1.8"  # carries axe-core 4.12.1
MEMBER = "axe_playwright_python/axe.min.js"
CACHE = ROOT / ".kit" / "axe"
OURS = [".jp-OutputArea-output", ".jp-RenderedMarkdown"]  # the rest of the page is JupyterLab's
GRAVE = ("serious", "critical")
# A rule that JupyterLab's own markup of an output breaks, whatever the output holds.
JUPYTERLABS = ("scrollable-region-focusable",)


class AxeError(RuntimeError):
    """axe-core could not be had; the message says what to do."""


def source():
    """The text of axe.min.js, fetched the first time. Raises AxeError where the package index cannot be reached."""
    kept = CACHE / f"{PACKAGE}.js"
    if not kept.exists():
        CACHE.mkdir(parents=True, exist_ok=True)
        with tempfile.TemporaryDirectory(dir=CACHE) as folder:
            command = [sys.executable, "-m", "pip", "--disable-pip-version-check", "download", "-q", "--no-deps", "-d", folder, PACKAGE]
            done = subprocess.run(command, capture_output=True, text=True)
            if done.returncode:
                last = (done.stderr.strip().splitlines() or ["no message"])[-1]
                raise AxeError(f"axe: pip could not fetch {PACKAGE} ({last}): check the network and run this again.")
            (wheel,) = Path(folder).glob("*.whl")
            part = Path(folder) / "axe.js"
            part.write_bytes(zipfile.ZipFile(wheel).read(MEMBER))
            part.rename(kept)
    return kept.read_text(encoding="utf-8")


def findings(page, where=OURS):
    """What axe finds on Playwright's `page` within the selectors `where`: dicts with rule, impact, help, count, and one html."""
    if not page.evaluate("() => typeof axe !== 'undefined'"):
        page.evaluate(source())
    run = """async (where) => {
        const there = where.filter(selector => document.querySelector(selector));
        const result = await axe.run({include: there.map(selector => [selector])}, {resultTypes: ['violations']});
        return result.violations.map(({id, impact, help, nodes}) =>
            ({rule: id, impact, help, count: nodes.length, html: nodes[0].html, why: nodes[0].failureSummary})) }"""
    return page.evaluate(run, list(where))


def grave(found):
    """Of `findings`, the serious and critical ones, as sentences; those of JupyterLab's own markup are left out."""
    return [
        f"axe, {one['impact']}: {one['help']} ({one['rule']}, {one['count']} places, first {one['html'][:160]})"
        for one in found
        if one["impact"] in GRAVE and one["rule"] not in JUPYTERLABS
    ]
