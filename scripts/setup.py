"""Make the environment that `make lab` and `make test` use: `.venv` with the pins of requirements.txt and this project.

Called by make when something has changed; a run that fails says in one sentence what is missing and what to do. This file alone keeps to
what Python 2.7 understands, because it has to tell an old Python so.
"""

import json
import os
import platform
import re
import shutil
import subprocess
import sys

ROOT = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))
VENV = os.path.join(ROOT, ".venv")
STAMP = os.path.join(VENV, ".ready")
OLDEST, NEWEST = (3, 11), (3, 14)  # what requirements.txt has wheels for
NEEDS_GB = 2.5  # with the CPU build of torch; what the CUDA build takes is told by CUDA_GB
CUDA_GB = 9
NETWORK = (
    "NewConnectionError|NameResolutionError|name resolution|Connection refused|Network is unreachable|ConnectTimeout|"
    "Read timed out|ReadTimeout|ProxyError|Max retries|ConnectionResetError|IncompleteRead|SSLError|IncompleteDownload"
)


class Stop(Exception):
    """A sentence for the person who typed the command."""


def dotted(version):
    return ".".join(str(part) for part in version)


def check_platform(system=None, machine=None, libc=None):
    """Stop where no Triton exists: it is built for Linux with glibc, on x86-64 and 64-bit Arm."""
    system = system or platform.system()
    machine = (machine or platform.machine()).lower()
    libc = platform.libc_ver() if libc is None else libc
    if system == "Windows" or system.startswith(("MINGW", "MSYS", "CYGWIN")):
        raise Stop("Triton has no build for Windows: run this inside WSL 2 (wsl --install, then clone the project in there).")
    if system == "Darwin":
        raise Stop(
            "Triton has no build for macOS: run this on Linux (a container or a virtual machine will do), or read the notebooks on the web."
        )
    if system != "Linux":
        raise Stop("Triton has no build for %s: run this on Linux (x86-64 or 64-bit Arm)." % system)
    if machine not in ("x86_64", "amd64", "aarch64", "arm64"):
        raise Stop("Triton has no build for Linux on %s: run this on an x86-64 or 64-bit Arm machine." % machine)
    if libc[0] != "glibc":
        raise Stop("Triton's builds need glibc, and this Linux has another C library: run this on Debian, Ubuntu, Fedora or the like.")
    if [int(n) for n in libc[1].split(".")[:2]] < [2, 28]:
        raise Stop("Triton's builds need glibc 2.28 or newer, and this Linux has %s: run this on Debian 10 or newer." % libc[1])


def check_python(version=None, executable=None):
    """Return the Python to use: this one, or a newer one on the PATH. Stop when there is none between OLDEST and NEWEST."""
    version = tuple(version or sys.version_info[:2])
    executable = executable or sys.executable
    if OLDEST <= version <= NEWEST:
        return executable
    for minor in range(NEWEST[1], OLDEST[1] - 1, -1):
        found = shutil.which("python3.%d" % minor) if hasattr(shutil, "which") else None
        if found and subprocess.call([found, "-c", ""], stderr=subprocess.DEVNULL) == 0:  # a version manager's shim may lead nowhere
            return found
    raise Stop(
        "Python %s to %s is needed, and %s is Python %s: install a python3 in that range (Debian 12 and newer: "
        "apt-get install python3 python3-venv) and run this again." % (dotted(OLDEST), dotted(NEWEST), executable, dotted(version))
    )


def check_venv(python):
    """Stop when `python` cannot make virtual environments, as on a Debian without python3-venv."""
    if subprocess.call([python, "-c", "import venv, ensurepip"], stderr=subprocess.DEVNULL) != 0:
        minor = subprocess.check_output([python, "-c", "import sys; print(sys.version_info[1])"]).decode().strip()
        raise Stop(
            "%s cannot make a virtual environment, because its venv module is missing: install it (Debian, Ubuntu: "
            "apt-get install python3.%s-venv) and run this again." % (python, minor)
        )


def check_folder(root=ROOT, free=None):
    """Stop when nothing may be written here or it would not fit; return a warning, or None, about the CUDA build's size."""
    if not os.access(root, os.W_OK):
        raise Stop("%s cannot be written by you: clone the project into a folder of your own and run this there." % root)
    if free is None:
        free = shutil.disk_usage(root).free
    if free < NEEDS_GB * 1e9:
        raise Stop(
            "%.1f GB are free in %s, and the environment needs %s (%s where pip brings the CUDA build of torch): free some space "
            "and run this again." % (free / 1e9, root, NEEDS_GB, CUDA_GB)
        )
    if free < CUDA_GB * 1e9:
        return "%.1f GB are free here; where pip brings the CUDA build of torch, about %s GB are needed." % (free / 1e9, CUDA_GB)
    return None


def explain(stderr, command="pip"):
    """One sentence for what made pip fail, from what it wrote to stderr."""
    if re.search("No space left on device|Errno 28", stderr):
        return "The disk became full while %s installed: free about %s GB in %s and run this again." % (command, CUDA_GB, ROOT)
    if re.search("Permission denied|Errno 13", stderr):
        return "%s may not write into %s: remove that folder, or make it yours, and run this again." % (command, VENV)
    if re.search(NETWORK, stderr):
        return "%s could not reach the package index: check the network (and the proxy settings) and run this again." % command
    missing = re.search(r"No matching distribution found for (\S+)", stderr)
    if missing:
        return (
            "The package index has no %s for this Python (%s) and machine (%s): check the network, or use another Python from %s to %s."
            % (missing.group(1), platform.python_version(), platform.machine(), dotted(OLDEST), dotted(NEWEST))
        )
    last = [line for line in stderr.strip().splitlines() if line.strip()][-1:] or ["no message"]
    return "%s failed: %s" % (command, last[0].strip())


def run(command):
    """Run a command; its progress is shown on a terminal. Stop with a sentence when it fails."""
    quiet = None if sys.stdout.isatty() else subprocess.DEVNULL
    process = subprocess.Popen(command, cwd=ROOT, stdout=quiet, stderr=subprocess.PIPE, universal_newlines=True)
    stderr = process.communicate()[1]
    if process.returncode != 0:
        raise Stop(explain(stderr))


def in_venv(*arguments):
    return [os.path.join(VENV, "bin", "python")] + list(arguments)


def usable_venv():
    """Whether .venv is there with a Python that runs, is neither too old nor too new, and has pip."""
    probe = "import sys, pip; sys.exit(not %r <= sys.version_info[:2] <= %r)" % (OLDEST, NEWEST)
    try:
        return subprocess.call(in_venv("-c", probe), stderr=subprocess.DEVNULL) == 0
    except OSError:
        return False


def compiler_note():
    """What Triton will miss on this machine's GPU: it builds its launcher with the machine's C compiler and Python's headers."""
    if not os.path.isdir("/proc/driver/nvidia/gpus"):
        return None
    probe = "import os, sysconfig, sys; sys.exit(not os.path.exists(os.path.join(sysconfig.get_paths()['include'], 'Python.h')))"
    compiler = os.environ.get("CC") or shutil.which("gcc") or shutil.which("clang") or shutil.which("cc")
    if compiler and subprocess.call(in_venv("-c", probe)) == 0:
        return None
    return "Triton needs a C compiler and Python's headers to use the GPU of this machine: apt-get install gcc python3-dev"


def write_lab_settings():
    """JupyterLab's own question about news is not the first thing that a reader sees."""
    folder = os.path.join(VENV, "share", "jupyter", "lab", "settings")
    if not os.path.isdir(folder):
        os.makedirs(folder)
    with open(os.path.join(folder, "overrides.json"), "w") as file:
        json.dump({"@jupyterlab/apputils-extension:notification": {"fetchNews": "false"}}, file)


def main():
    check_platform()
    python = check_python()
    check_venv(python)
    warning = check_folder()
    if not usable_venv():
        print("Making the virtual environment .venv with %s" % python)
        run([python, "-m", "venv", "--clear", VENV])
    if warning:
        print("Note: " + warning)
    print("Installing the tested packages of requirements.txt; the first time takes a few minutes, torch is the large one")
    sys.stdout.flush()
    pip = in_venv("-m", "pip", "--disable-pip-version-check", "install")
    run(pip + ["--requirement", "requirements.txt"])
    run(pip + ["--no-deps", "--no-build-isolation", "--editable", "."])
    write_lab_settings()
    note = compiler_note()
    if note:
        print("Note: " + note)
    open(STAMP, "w").close()


if __name__ == "__main__":
    try:
        main()
    except Stop as stop:
        sys.exit("setup: %s" % stop)
    except (OSError, subprocess.CalledProcessError) as error:
        sys.exit("setup: %s. Nothing else is known; run it again, or say so in an issue." % error)
    except KeyboardInterrupt:
        sys.exit("setup: stopped; run it again to go on.")
