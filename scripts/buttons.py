"""Print the README's buttons, which open a tagged copy of this project: `python scripts/buttons.py OWNER/REPO TAG`.

The project's public address is written nowhere else. A tag and not a branch: what opens is then what was tested.
"""

import argparse
import re
import sys

FIRST = "notebooks/00_start_here.ipynb"
PLACES = {
    "Open in Binder": ("https://mybinder.org/badge_logo.svg", "https://mybinder.org/v2/gh/{repo}/{tag}?urlpath=lab/tree/" + FIRST),
    "Open in Colab": (
        "https://colab.research.google.com/assets/colab-badge.svg",
        "https://colab.research.google.com/github/{repo}/blob/{tag}/" + FIRST,
    ),
    "Read on nbviewer": (
        "https://raw.githubusercontent.com/jupyter/design/main/logos/Badges/nbviewer_badge.svg",
        "https://nbviewer.org/github/{repo}/tree/{tag}/notebooks/",
    ),
}


def buttons(repo, tag):
    """The lines of Markdown. Raises ValueError for what is no OWNER/REPO, or no tag such as v1.2.0."""
    if not re.fullmatch(r"[\w.-]+/[\w.-]+", repo):
        raise ValueError(f"{repo!r} is no OWNER/REPO, such as triton-lang/triton.")
    if not re.fullmatch(r"v?\d+(\.\d+)+\w*", tag):
        raise ValueError(f"{tag!r} is no tag of a release, such as v0.1.0: a branch moves, and what opens would not be what was tested.")
    return [f"[![{name}]({badge})]({link.format(repo=repo, tag=tag)})" for name, (badge, link) in PLACES.items()]


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("repo", metavar="OWNER/REPO")
    parser.add_argument("tag", metavar="TAG")
    given = parser.parse_args()
    try:
        print(*buttons(given.repo, given.tag), sep="\n")
    except ValueError as error:
        sys.exit(f"buttons: {error}")


if __name__ == "__main__":
    main()
