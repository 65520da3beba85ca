"""A lesson and an exercise in a real browser, by scripts/browse.py: every cell runs, each input of a panel moves its picture by
keyboard, the console reports no error, and axe-core finds nothing serious.

KIT_BROWSER_NOTEBOOKS names other notebooks (separated by blanks), KIT_SCREENSHOTS a folder for pictures of what was found. `make browser`
looks at all of them.
"""

import os
from pathlib import Path

import axe
import browse
import pytest
from lab_browser import lab

ROOT = Path(__file__).resolve().parents[2]
NOTEBOOKS = os.environ.get("KIT_BROWSER_NOTEBOOKS", "notebooks/06_grid_limits.ipynb exercises/07_int64_offsets.ipynb").split()
BROKEN = """<div class="jp-OutputArea-output"><img src="data:image/png;base64,iVBORw0KGgo=">
  <div class="kit-panel"><fieldset class="kit-axis"><legend>kind</legend>
  <label><input type="radio" name="k" checked>a</label><label><input type="radio" name="k">b</label></fieldset>
  <input type="range" min="0" max="3" value="0"><svg role="img" aria-label="still"></svg><p class="kit-sentence">Still.</p></div></div>"""

pytestmark = [pytest.mark.browser, pytest.mark.slow]


@pytest.fixture(scope="module")
def jupyterlab():
    with lab(ROOT) as started:
        yield started


@pytest.mark.parametrize("path", NOTEBOOKS)
def test_a_notebook_runs_moves_and_can_be_read_by_all(path, jupyterlab, tmp_path):
    screenshots = Path(os.environ.get("KIT_SCREENSHOTS", tmp_path))
    screenshots.mkdir(parents=True, exist_ok=True)
    assert browse.visit(jupyterlab, ROOT / path, screenshots)[0] == []


def test_what_is_broken_is_found(jupyterlab, monkeypatch):
    monkeypatch.setattr(browse, "STILL_SECONDS", 1)
    page = jupyterlab.browser.new_page()
    try:
        page.set_content(f"<html lang='en'><title>t</title><body>{BROKEN}</body></html>")
        moved = browse.moved(page.locator(".kit-panel"))
        assert [problem for problem in moved if "no label" in problem] == ["input 2 has no label that a screen reader could say"]
        assert [problem.split(" ")[0] for problem in moved if "stayed the same" in problem] == ["kind", "input"]
        found = axe.grave(axe.findings(page))
        assert any("(image-alt, 1 places" in one for one in found) and any("(label, 1 places" in one for one in found), found
    finally:
        page.close()
