"""Notebook files in one form: what `make fresh` and `make exercises` write, so that a diff shows only what an author changed."""

from __future__ import annotations

import base64
import re
import struct

import nbformat

KERNELSPEC = {"display_name": "Python 3 (ipykernel)", "language": "python", "name": "python3"}
WIDGET_VIEW = "application/vnd.jupyter.widget-view+json"
KEPT_CELL_METADATA = ("tags", "slideshow")
_ADDRESS = re.compile(r"\bat 0x[0-9a-f]{6,16}\b")  # <W object at 0x7f3c...>: another one in every run
_PNG_WORDS = (b"tEXt", b"zTXt", b"iTXt", b"tIME", b"eXIf")  # chunks with the version of matplotlib, dates: not the picture


def read(path):
    """The notebook in the file `path`, as nbformat's current version. Raises ValueError, naming the file, when it is none."""
    try:
        return nbformat.read(path, as_version=4)
    except Exception as error:  # nbformat raises several kinds for broken JSON and unknown versions
        raise ValueError(f"{path} is not a notebook: {error}") from None


def text(notebook):
    """The text of the file that holds `notebook`: sorted keys, one space of indentation, a newline at the end."""
    return nbformat.writes(notebook, version=4, indent=1, sort_keys=True, ensure_ascii=False).rstrip("\n") + "\n"


def normalise(notebook):
    """Change `notebook` in place to the form that is committed, and return it.

    Kept: cell ids, sources, tags, execution counts, outputs. Dropped: timings, widget state and widget views (a still picture shows
    instead), memory addresses, words and dates inside PNGs, metadata of editors.
    """
    kit = {key: value for key, value in notebook.metadata.items() if key == "kit"}
    notebook.metadata = nbformat.from_dict({"kernelspec": KERNELSPEC, "language_info": {"name": "python"}, **kit})
    notebook.nbformat, notebook.nbformat_minor = 4, 5
    for cell in notebook.cells:
        cell.metadata = nbformat.from_dict({key: cell.metadata[key] for key in KEPT_CELL_METADATA if cell.metadata.get(key)})
        if cell.cell_type == "code":
            cell.outputs = [_normal_output(output) for output in _joined_streams(cell.outputs)]
    return notebook


def without_pictures(notebook):
    """The notebook's text with every PNG left out: what can be compared between machines with other fonts."""
    copy = nbformat.from_dict(notebook)
    for output in (output for cell in copy.cells for output in cell.get("outputs", [])):
        output.get("data", {}).pop("image/png", None)
    return text(copy)


def _joined_streams(outputs):
    """One stream output where several of the same name follow each other: how many there are depends on timing."""
    joined = []
    for output in outputs:
        last = joined[-1] if joined else None
        if output.output_type == "stream" and last is not None and last.output_type == "stream" and last.name == output.name:
            last.text += output.text
        else:
            joined.append(output)
    return joined


def _normal_output(output):
    data = output.get("data", {})
    data.pop(WIDGET_VIEW, None)
    for holder, key in ((output, "text"), (data, "text/plain"), (data, "text/html")):
        if isinstance(holder.get(key), str):
            holder[key] = _ADDRESS.sub("at 0x0", holder[key])
    if isinstance(data.get("image/png"), str):
        data["image/png"] = base64.b64encode(without_words(base64.b64decode(data["image/png"]))).decode()
    return output


def without_words(png):
    """The bytes of a PNG without its chunks of words and dates; anything that is no PNG comes back as it is."""
    signature, rest = png[:8], png[8:]
    if signature != b"\x89PNG\r\n\x1a\n":
        return png
    kept = [signature]
    while len(rest) >= 12:
        length = struct.unpack(">I", rest[:4])[0]
        chunk, rest = rest[: length + 12], rest[length + 12 :]
        if chunk[4:8] not in _PNG_WORDS:
            kept.append(chunk)
    return b"".join(kept)
