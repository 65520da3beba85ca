"""nbval with our plugin: each fix is shown on a notebook that nbval alone gets wrong."""

import json
import os
import subprocess
import sys
import time

import nbformat
import pytest
from nbformat.v4 import new_code_cell, new_notebook, new_output
from project import ROOT

GOOD = [
    ("3 + 4", "7"),
    ("'hidden by the semicolon';", None),
    # ipykernel reads a child's output on a thread, which the pause waits for
    ("import os, time\n_ = os.system('echo from a child'); time.sleep(1)", "from a child\n"),
    ("print(os.environ['KIT_NOTEBOOK'])", "good\n"),
    ("object()", "<object at 0x7f0000000000>"),
    ("print(__import__('tempfile').gettempdir() + '/somewhere')", "/tmp/elsewhere\n"),
    # the connection file that the kernel was started with: no port, which another kernel could be given too
    ("import ipykernel.connect as c; c.get_connection_info(unpack=True)['transport']", "'ipc'"),
]


def write(path, cells, run=True):
    """A notebook of (source, stored output) pairs: text that ends in a newline was printed, other text is the cell's value."""
    made = []
    for count, (source, output) in enumerate(cells, 1):
        outputs = []
        if output is not None and output.endswith("\n"):
            outputs = [new_output("stream", name="stdout", text=output)]
        elif output is not None:
            outputs = [new_output("execute_result", data={"text/plain": output}, execution_count=count)]
        made.append(new_code_cell(source, outputs=outputs if run else [], execution_count=count if run else None))
    nbformat.write(new_notebook(cells=made), path)


def run(folder, *options, mode="--nbval", **environment):
    """pytest on the notebooks in `folder`, as `make test` calls it; (exit status, output, seconds)."""
    command = [sys.executable, "-m", "pytest", "-c", ROOT / "pyproject.toml", "--rootdir", folder, "-p", "no:cacheprovider"]
    command += ["-p", "nbval_sound", mode, "--nbval-current-env", "--nbval-sanitize-with", ROOT / "scripts/nbval_sanitize.cfg"]
    clean = {name: value for name, value in os.environ.items() if not name.startswith(("KIT_", "PYTEST_"))}
    clean["PYTHONPATH"] = str(ROOT / "scripts")
    began = time.monotonic()
    done = subprocess.run([*command, *options, folder], capture_output=True, text=True, env=clean | environment)
    return done.returncode, done.stdout + done.stderr, time.monotonic() - began


@pytest.mark.parametrize("options", [(), ("-n", "2", "--dist", "loadscope")], ids=["alone", "xdist"])
def test_semicolons_children_names_and_addresses_pass(tmp_path, options):
    for folder in ("notebooks", "solutions"):  # a lesson and its solution have one name, and are counted apart
        (tmp_path / folder).mkdir()
        write(tmp_path / folder / "good.ipynb", GOOD)
    status, output, _ = run(tmp_path, *options)
    assert status == 0, output
    assert f"2 notebooks: {2 * len(GOOD)} cells run, {2 * len(GOOD)} compared" in output


def test_each_of_those_is_compared(tmp_path):
    changed = ["8", "'hidden'", "from another child\n", "bad\n", "<object subject at 0x7f0000000000>", "elsewhere\n", "'tcp'"]
    for position, output in enumerate(changed):
        source = GOOD[position][0]
        write(tmp_path / f"changed{position}.ipynb", [("import os, time", None), (source, output)])
    status, output, _ = run(tmp_path)
    assert status == 1 and f"{len(GOOD)} failed, {len(GOOD)} passed" in output and "Cell outputs differ" in output, output


def test_a_cell_that_fails_dies_or_never_ends_is_one_clear_failure(tmp_path):
    write(tmp_path / "dies.ipynb", [("1 + 1", "2"), ("import os; os._exit(9)", None), ("2 + 2", "4"), ("3 + 3", "6")])
    write(tmp_path / "endless.ipynb", [("while True: pass", None), ("1 + 1", "2")])
    write(tmp_path / "fails.ipynb", [("1 / 0", None), ("1 + 1", "2"), ("2 + 2", "4")])
    write(tmp_path / "works.ipynb", [("1 + 1", "2")])
    status, output, seconds = run(tmp_path, "-rs", "--nbval-cell-timeout", "3")
    assert status == 1 and "3 failed, 2 passed, 5 skipped" in output, output
    assert "the kernel process died while running this cell" in output
    assert "Timeout of 3 seconds exceeded" in output or "KeyboardInterrupt" in output
    assert "not run: Cell 0 of fails.ipynb failed" in output
    assert seconds < 60  # nbval alone waits out its limits, 2000 s by default


@pytest.mark.parametrize("mode", ["--nbval", "--nbval-lax"])
def test_comparing_nothing_is_a_failure(tmp_path, mode):
    write(tmp_path / "stripped.ipynb", GOOD, run=False)
    status, output, _ = run(tmp_path, mode=mode)
    assert status == 1 and "passed" in output and "compared" in output, output
    assert "FAILED: " in output


CLAIMS = """import json, os
def claim(text, holds=True):
    print(json.dumps({"claim": text, "holds": holds}), file=open(os.environ["KIT_LEDGER"], "a"))
    assert holds"""


def test_a_claim_in_the_ledger_names_its_file_and_cell_and_a_regression_runs_on(tmp_path):
    cells = [(CLAIMS, None), ("claim('a'); claim('b')", None), ("claim('c', False)", None), ("claim('d')", None)]
    for folder in ("notebooks", "solutions"):
        (tmp_path / folder).mkdir()
        write(tmp_path / folder / "06_x.ipynb", cells)
    more = {"KIT_LEDGER": str(tmp_path / "claims.jsonl"), "KIT_TIMES": str(tmp_path / "times.json")}
    status, output, _ = run(tmp_path, KIT_REGRESS="1", KIT_NOTEBOOK_SECONDS="0.01", **more)
    assert status == 1 and "2 failed, 6 passed" in output, output
    entries = [json.loads(line) for line in (tmp_path / "claims.jsonl").read_text().splitlines()]
    found = sorted((e["file"], e["cell"], e["claim"], e["holds"]) for e in entries)
    made = [(2, "a", True), (2, "b", True), (3, "c", False), (4, "d", True)]
    assert found == [(f"{folder}/06_x.ipynb", *claim) for folder in ("notebooks", "solutions") for claim in made]
    assert all(e["cell_id"] for e in entries)
    times = json.loads((tmp_path / "times.json").read_text())
    assert list(times) == ["notebooks/06_x.ipynb", "solutions/06_x.ipynb"] and all(row["cpu"] > 0.1 for row in times.values())
    for name, row in times.items():
        assert f"{name:<42} {row['cpu']:5.1f}   {row['wall']:5.1f}" in output and f"FAILED: {name} took" in output


def test_a_notebook_s_time_counts_the_processes_it_started_and_is_held_to_the_limit():
    from nbval_report import Times, cpu_seconds

    burn = "import time\nwhile time.process_time() < 0.5: pass"
    before = cpu_seconds(os.getpid())
    subprocess.run([sys.executable, "-c", burn], check=True)  # ended, and counted
    assert cpu_seconds(os.getpid()) - before > 0.45
    with subprocess.Popen([sys.executable, "-c", f"{burn}\nprint(flush=True); input()"], stdin=-1, stdout=-1) as running:
        running.stdout.readline()
        assert cpu_seconds(os.getpid()) - before > 0.9
        running.communicate(b"\n")
    assert cpu_seconds(running.pid) == 0
    for live, expected in ((False, "a.ipynb took 61 s of CPU time; a notebook may take 60 s"), (True, "b.ipynb took 91 s on the clock")):
        times = Times(live)
        times.rows = {"a.ipynb": {"cpu": 61, "wall": 70}, "b.ipynb": {"cpu": 59, "wall": 91}, "c.ipynb": {"cpu": 1, "wall": 2}}
        (problem,) = times.problems()
        assert expected in problem


def test_no_notebooks_is_a_failure(tmp_path):
    status, output, _ = run(tmp_path)
    assert status != 0 and "no notebook cell was run" in output, output


def test_required_gpu_that_is_not_there_stops_the_run(tmp_path):
    write(tmp_path / "good.ipynb", GOOD)
    status, output, _ = run(tmp_path, mode="--nbval-lax", KIT_REQUIRE="gpu", CUDA_VISIBLE_DEVICES="")
    assert status == pytest.ExitCode.USAGE_ERROR and "start: a GPU is required" in output, output


def test_a_claim_stored_without_a_gpu_matches_its_line_on_one():
    import re

    from nbval.plugin import get_sanitize_patterns

    def clean(text):
        for pattern, replacement in get_sanitize_patterns((ROOT / "scripts/nbval_sanitize_gpu.cfg").read_text(encoding="utf-8")):
            text = re.sub(pattern, replacement, text)
        return text

    from kit.evidence import Claim

    stored, live = Claim("it breaks", True, "simulated"), Claim("it breaks", True, "measured")
    recorded = Claim("it breaks", True, "recorded", "on NVIDIA H200, 2026-11-30")
    assert clean(repr(stored)) == clean(repr(live)) == clean(repr(recorded)) != clean(repr(Claim("it breaks", False, "measured")))
    assert clean(stored._repr_html_()) == clean(live._repr_html_()) == clean(recorded._repr_html_())
    assert clean(repr(stored)) != clean(repr(Claim("it breaks", True, "compiled")))
    here = "H200 (cuda:90, simulated on the CPU, no GPU here) · Triton 3.7.1 · torch 2.13.0"
    assert clean(here) == clean("NVIDIA H200 (cuda:90, live) · Triton 3.6.0 · torch 2.11.0") == "MACHINE"
