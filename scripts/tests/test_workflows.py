"""The examples for others' CI are what this repository runs: each file is a workflow, and what it calls is here."""

import re

import pytest
import yaml
from project import ROOT

WORKFLOWS = sorted((ROOT / ".github" / "workflows").glob("*.yml"))
VERBS = set(re.search(r"^\.PHONY: (.*)$", (ROOT / "Makefile").read_text(encoding="utf-8"), re.MULTILINE)[1].split())


def jobs(path):
    loaded = yaml.safe_load(path.read_text(encoding="utf-8"))
    assert set(loaded) >= {"name", True, "jobs", "permissions"}  # YAML 1.1 reads the key `on` as True
    return loaded, loaded["jobs"]


def test_there_is_one_for_a_cpu_and_one_for_a_gpu():
    assert [path.stem for path in WORKFLOWS] == ["gpu", "test"]


@pytest.mark.parametrize("path", WORKFLOWS, ids=lambda path: path.stem)
def test_every_verb_that_it_calls_is_a_verb(path):
    _, all_jobs = jobs(path)
    commands = [step["run"] for job in all_jobs.values() for step in job["steps"] if "run" in step]
    called = {verb for command in commands for verb in re.findall(r"\bmake ([a-z]+)", command)}
    assert called and called <= VERBS
    scripts = {name for command in commands for name in re.findall(r"\b(?:scripts|\.ci)/[\w.]+", command)}
    assert all((ROOT / name).exists() for name in scripts)


@pytest.mark.parametrize("path", WORKFLOWS, ids=lambda path: path.stem)
def test_every_job_has_a_limit_and_every_action_a_version(path):
    loaded, all_jobs = jobs(path)
    assert loaded["permissions"] == {"contents": "read"}
    for job in all_jobs.values():
        assert 0 < job["timeout-minutes"] <= 180
        assert all(re.fullmatch(r"[\w-]+/[\w-]+@v\d+", step["uses"]) for step in job["steps"] if "uses" in step)


def test_a_pull_request_never_runs_on_a_machine_of_our_own():
    for path in WORKFLOWS:
        loaded, all_jobs = jobs(path)
        if any("self-hosted" in job["runs-on"] for job in all_jobs.values()):
            assert not {"pull_request", "pull_request_target"} & set(loaded[True])


def test_the_gpu_job_refuses_to_simulate():
    loaded, all_jobs = jobs(ROOT / ".github" / "workflows" / "gpu.yml")
    steps = [step for job in all_jobs.values() for step in job["steps"]]
    assert any(step.get("env", {}).get("KIT_REQUIRE") == "gpu" for step in steps if "make check" in step.get("run", ""))
    assert any(step.get("run") == "make record" for step in steps)
