"""A lesson in a real browser: JupyterLab runs every cell, and its slider moves the picture by keyboard.

KIT_BROWSER_NOTEBOOKS names other notebooks (separated by blanks), KIT_SCREENSHOTS a folder for the pictures of what was seen.
"""

import os
import time
from pathlib import Path

import pytest
from lab_browser import notebook_page

ROOT = Path(__file__).resolve().parents[2]
NOTEBOOKS = os.environ.get("KIT_BROWSER_NOTEBOOKS", "notebooks/06_grid_limits.ipynb").split()

# What the panel shows, whatever it is drawn with. An <img> is compared by its pixels: its address changes with every drawing.
SHOWN = """panel => [...panel.querySelectorAll('svg, canvas, img')].map(node => {
    if (node.tagName === 'svg') return node.innerHTML;
    if (node.tagName === 'CANVAS') return node.toDataURL();
    const copy = document.createElement('canvas');
    [copy.width, copy.height] = [node.naturalWidth, node.naturalHeight];
    if (copy.width) copy.getContext('2d').drawImage(node, 0, 0);
    return copy.toDataURL();
}).join('|')"""


def shown_after(panel, before, seconds=20):
    """What the panel shows once that differs from `before`; still `before` when it did not change within `seconds`."""
    deadline = time.monotonic() + seconds
    while (now := panel.evaluate(SHOWN)) == before and time.monotonic() < deadline:
        time.sleep(0.05)
    return now


@pytest.mark.browser
@pytest.mark.slow
@pytest.mark.parametrize("path", NOTEBOOKS)
def test_every_cell_runs_and_the_slider_moves_the_picture(path, tmp_path):
    screenshots = Path(os.environ.get("KIT_SCREENSHOTS", tmp_path))
    screenshots.mkdir(parents=True, exist_ok=True)
    stem = Path(path).stem
    with notebook_page(ROOT / path) as notebook:
        try:
            notebook.run_all()
            page = notebook.page
            panel = page.locator(".jp-OutputArea-output").filter(has=page.locator("input[type=range]")).first
            slider = panel.locator("input[type=range]").first
            slider.wait_for(timeout=20_000)
            slider.scroll_into_view_if_needed()
            label = slider.evaluate("input => input.labels[0]?.textContent.trim() || input.getAttribute('aria-label')")
            assert label, "the slider has no label that a screen reader could say"

            value, before = slider.input_value(), panel.evaluate(SHOWN)
            assert before, "the panel holds no picture"
            page.screenshot(path=screenshots / f"{stem}-slider-before.png")

            slider.focus()
            at_end = slider.evaluate("input => input.valueAsNumber >= Number(input.max)")
            slider.press("ArrowLeft" if at_end else "ArrowRight")
            after = shown_after(panel, before)
            page.screenshot(path=screenshots / f"{stem}-slider-after.png")
            assert slider.input_value() != value, f"the key did not move the slider {label}, which stands at {value}"
            assert after != before, f"the slider {label} moved from {value} to {slider.input_value()} and the picture stayed the same"
            page.wait_for_timeout(500)  # an error in a callback would arrive in this time
            notebook.raise_on_error()
            assert not [text for text in panel.locator("[role=alert]").all_inner_texts() if text.strip()]
        except BaseException:
            notebook.page.screenshot(path=screenshots / f"{stem}-failed.png")
            raise
