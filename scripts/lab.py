"""Open JupyterLab on the first notebook: what `make lab` does once the environment is there."""

import os
import sys
from importlib.util import find_spec

from project import ROOT

FIRST = "notebooks/00_start_here.ipynb"


def main():
    if find_spec("jupyterlab") is None:
        sys.exit(f"lab: {sys.executable} has no JupyterLab: leave PYTHON out to let make set one up, or pip install -e . there.")
    if not (ROOT / FIRST).exists():
        sys.exit(f"lab: {FIRST} is missing from this copy of the project: get it back with git checkout -- {FIRST}")
    # As the default address the notebook is also in the links that are printed where no browser opens, over ssh or in a container.
    command = [sys.executable, "-m", "jupyterlab", f"--ServerApp.root_dir={ROOT}", f"--LabApp.default_url=/lab/tree/{FIRST}"]
    if os.geteuid() == 0:
        command.append("--allow-root")  # in a container there is often no other user
    if find_spec("kit") is None:  # an environment that was there before: its kernels have to find the kit
        os.environ["PYTHONPATH"] = os.pathsep.join(filter(None, [str(ROOT), os.environ.get("PYTHONPATH")]))
    os.chdir(ROOT)
    os.execv(sys.executable, command)


if __name__ == "__main__":
    main()
