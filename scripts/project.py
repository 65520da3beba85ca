"""Where things are. Imports nothing, so that a script can say what is missing before it needs it."""

from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
FOLDERS = ("notebooks", "solutions")  # what people write; exercises/ is made from solutions/


def written_notebooks(root=ROOT):
    """The notebooks that people write, in order."""
    return [path for folder in FOLDERS for path in sorted((root / folder).glob("*.ipynb"))]
