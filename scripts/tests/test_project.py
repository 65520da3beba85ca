"""The files that say what the project needs agree: pyproject.toml, requirements.txt, environment.yml, and what is installed."""

import importlib.metadata
import re
import shutil
import subprocess
import sys
import tomllib
import zipfile

import pytest
import yaml
from packaging.requirements import Requirement
from packaging.specifiers import SpecifierSet
from packaging.utils import canonicalize_name
from project import ROOT

CONDA_NAMES = {"pytorch": "torch", "playwright-python": "playwright"}
TOOLS = {"pip", "python", "setuptools"}  # what environment.yml names besides the project's own dependencies
PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]


def wanted():
    """{name: range} of pyproject.toml, the dependencies and those of the tests; the extra `slides` is nobody's need."""
    assert set(PROJECT["optional-dependencies"]) == {"test", "slides"}
    lines = PROJECT["dependencies"] + PROJECT["optional-dependencies"]["test"]
    return {canonicalize_name(r.name): r.specifier for r in map(Requirement, lines)}


def pins():
    """{name: version} of requirements.txt."""
    lines = [line for line in (ROOT / "requirements.txt").read_text(encoding="utf-8").splitlines() if line and not line.startswith("#")]
    assert [line for line in lines if not re.fullmatch(r"[A-Za-z0-9._-]+==[A-Za-z0-9.]+", line)] == []
    return {canonicalize_name(line.split("==")[0]): line.split("==")[1] for line in lines}


def conda():
    """{name: range} of environment.yml, by the names of PyPI; conda's `=1.2` is `==1.2.*`."""
    ranges = {}
    for line in yaml.safe_load((ROOT / "environment.yml").read_text(encoding="utf-8"))["dependencies"]:
        if isinstance(line, str):
            name, given = re.fullmatch(r"([a-z0-9-]+)(.*)", line).groups()
            given = f"=={given[1:]}.*" if re.match(r"=[^=]", given) else given
            ranges[CONDA_NAMES.get(name, name)] = SpecifierSet(given)
    return ranges


@pytest.mark.parametrize("name", wanted())
def test_each_dependency_is_pinned_within_its_range(name):
    assert pins()[name] in wanted()[name]


def test_conda_gets_the_same_names():
    assert set(conda()) - TOOLS == set(wanted())


@pytest.mark.parametrize("name", sorted(set(wanted()) - {"torch", "triton"}))
def test_conda_gets_the_same_ranges(name):
    assert conda()[name] == wanted()[name]


def test_conda_gets_the_tested_pair_of_torch_and_triton():
    assert {name: str(conda()[name]) for name in ("torch", "triton")} == {name: f"=={pins()[name]}.*" for name in ("torch", "triton")}


def test_conda_pins_python_and_installs_this_project_last():
    environment = yaml.safe_load((ROOT / "environment.yml").read_text(encoding="utf-8"))
    (python,) = [line for line in environment["dependencies"] if str(line).startswith("python=")]
    assert re.fullmatch(r"python=3\.\d+", python)
    assert python.removeprefix("python=") + ".0" in SpecifierSet(PROJECT["requires-python"])
    assert environment["channels"] == ["conda-forge", "nodefaults"] and environment["dependencies"][-1] == {"pip": ["-e ."]}


def needed_here():
    """Every distribution that the project's dependencies reach in this environment, with its version."""
    reached, waiting = {}, [(name, frozenset()) for name in wanted()]
    seen = set()
    while waiting:
        name, extras = waiting.pop()
        if (name, extras) in seen:
            continue
        seen.add((name, extras))
        distribution = importlib.metadata.distribution(name)
        reached[name] = distribution.version.split("+")[0]
        for line in distribution.requires or []:
            needs = Requirement(line)
            if needs.marker is None or any(needs.marker.evaluate({"extra": extra}) for extra in extras | {""}):
                waiting.append((canonicalize_name(needs.name), frozenset(needs.extras)))
    return reached


def test_every_package_that_is_reached_is_pinned():
    by_torch = re.compile(r"(nvidia|cuda)-")  # of the CUDA build, which pins them itself
    reached = {name for name in needed_here() if not by_torch.match(name)}
    assert reached - set(pins()) == set()


def test_nothing_is_pinned_that_nothing_needs():
    assert set(pins()) - set(needed_here()) == {"setuptools"} - set(needed_here())  # setuptools builds the project itself


@pytest.mark.skipif(sys.prefix != str(ROOT / ".venv"), reason="only .venv is made from requirements.txt; this is another environment")
def test_what_is_installed_is_what_is_pinned():
    reached = needed_here()
    assert {name: version for name, version in reached.items() if pins().get(name, version) != version} == {}


def test_setup_accepts_the_pythons_that_the_project_does():
    import setup

    assert f"{setup.OLDEST[0]}.{setup.OLDEST[1]}" in PROJECT["requires-python"]


def test_make_lists_every_verb():
    listed = subprocess.run(["make", "-C", ROOT], capture_output=True, text=True).stdout
    verbs = re.search(r"^\.PHONY: (.*)$", (ROOT / "Makefile").read_text(encoding="utf-8"), re.MULTILINE)[1].split()
    for verb in set(verbs) - {"help", "FORCE"}:
        assert f"make {verb} " in listed, verb


def test_the_wheel_holds_what_the_kit_reads(tmp_path):
    copy = tmp_path / "copy"  # setuptools builds beside the sources, and would take up what an earlier build left there
    shutil.copytree(ROOT / "kit", copy / "kit", ignore=shutil.ignore_patterns("__pycache__"))
    for name in ("pyproject.toml", "README.md", "LICENSE"):
        shutil.copy(ROOT / name, copy)
    command = [sys.executable, "-m", "pip", "wheel", "-q", "--no-deps", "--no-build-isolation", "--no-index", "-w", tmp_path, copy]
    subprocess.run(command, check=True, capture_output=True)
    (wheel,) = tmp_path.glob("*.whl")
    held = set(zipfile.ZipFile(wheel).namelist())
    tracked = {path.relative_to(ROOT).as_posix() for path in (ROOT / "kit").rglob("*") if path.suffix in (".py", ".json", ".js", ".css")}
    assert {name for name in tracked if not name.startswith("kit/tests/")} - held == set()
    assert not [name for name in held if name.startswith(("kit/tests/", "scripts/"))]


README = (ROOT / "README.md").read_text(encoding="utf-8")
PAGES = [
    "README.md",
    "CONTRIBUTING.md",
    "CHANGELOG.md",
    "WORKSHOP.md",
    *(f"docs/{page.name}" for page in sorted((ROOT / "docs").glob("*.md"))),
]


@pytest.mark.parametrize("name", PAGES)
def test_every_link_leads_somewhere(name):
    links = re.findall(r"\]\((?!https?:)([^)#\s]+)(?:#[^)\s]+)?\)", re.sub(r"`[^`\n]*`", "", (ROOT / name).read_text(encoding="utf-8")))
    assert [link for link in links if not ((ROOT / name).parent / link).exists()] == []


def test_the_readme_maps_every_lesson_and_its_exercise():
    rows = re.findall(r"^\| .* \| \[`(\d\d_\w+)`\]\(\S+\) \| (?:\[exercise\]\(exercises/(\w+)\.ipynb\))? ?\|$", README, re.MULTILINE)
    lessons = [path.stem for path in sorted((ROOT / "notebooks").glob("*.ipynb"))]
    exercises = {path.stem for path in (ROOT / "exercises").glob("*.ipynb")}
    assert [lesson for lesson, _ in rows] == lessons
    assert [exercise for _, exercise in rows] == [lesson if lesson in exercises else "" for lesson in lessons]


def test_the_readme_says_both_commands_on_its_first_screen():
    first = "\n".join(README.splitlines()[:12])
    assert "make lab" in first and "make test" in first
