"""Exercise 15's key, proven: each faulty suspect is right in its test, shows its one fault with a tool of the kit, and no other; each
right one shows nothing. And what the graders say of answers."""

import inspect
import json
import re
from pathlib import Path

import pytest
import torch

import kit
from kit import machine
from kit.graders import STEPS, ex15_bug_hunt, grade, hunt
from kit.graders.hunt import SUSPECTS, flat, heads, rows, signs
from kit.graders.hunt.suspect import given
from kit.graders.noting import noted
from kit.graders.paper import meta, on_paper
from kit.tests.banks import RIGHT, SOLUTIONS, WRONG, ex15, module_of

gpu = machine.start()
FAULTY = {name: suspect for name, suspect in SUSPECTS.items() if suspect.rule != "right"}
CLEAN = {name: suspect for name, suspect in SUSPECTS.items() if suspect.rule == "right"}

# What the cases of a right kernel show of each faulty one: this and nothing else.
SHOWS = {
    "last_tokens": {"out of bounds"},
    "bias_relu": {"out of bounds", "values"},
    "softmax_rows": {"spills"},
    "mask_tail": {"variants"},
    "smooth_rows": {"race in a program"},
    "scale_heads": {"grid"},
    "read_blocks": {"overflow"},
    "gate_heads": {"programs"},
    "gate_rows": {"out of bounds"},
    "mean_square": {"values"},
}


def by_name(suspects):
    return pytest.mark.parametrize("suspect", suspects.values(), ids=suspects.keys())


def launch_of(suspect, inputs, wrapper=None):
    """(kernel, arguments, options) of the one launch that a wrapper makes."""
    with on_paper(), noted() as launches:
        (wrapper or suspect.wrapper)(*inputs, meta(*suspect.out_of(*inputs)))
    return launches[0]


# ---- the key
def test_one_suspect_a_rule_and_three_without_a_fault():
    assert sorted(suspect.rule for suspect in FAULTY.values()) == list(hunt.RULES)
    assert len(CLEAN) == 3 and set(CLEAN) == set(ex15.RIGHT_ONES)
    assert {name: suspect.rule for name, suspect in FAULTY.items()} == ex15.KEY
    assert all((suspect.mended is None) == (suspect.rule == "right") for suspect in SUSPECTS.values())


@by_name(SUSPECTS)
def test_each_is_right_in_its_own_test(suspect):
    assert signs(suspect, suspect.wrapper, suspect.usual(gpu.device)) == []


@by_name(FAULTY)
def test_a_faulty_one_shows_its_fault_and_no_other(suspect):
    found = {sign.kind for inputs in suspect.cases(gpu.device).values() for sign in signs(suspect, suspect.wrapper, inputs)}
    assert found == SHOWS[suspect.name]
    assert {sign.kind for sign in signs(suspect, suspect.wrapper, suspect.shown(gpu.device))} <= SHOWS[suspect.name]


@by_name(FAULTY)
def test_the_input_that_shows_a_fault_leaves_the_mended_one_right(suspect):
    inputs = suspect.shown(gpu.device)
    assert signs(suspect, suspect.wrapper, inputs) and signs(suspect, suspect.mended, inputs) == []


@by_name(SUSPECTS)
def test_what_is_right_passes_every_case(suspect):
    for title, inputs in suspect.cases(gpu.device).items():
        assert signs(suspect, suspect.mended or suspect.wrapper, inputs) == [], title


@by_name(CLEAN)
def test_paper_has_nothing_at_all_against_a_right_one(suspect):
    for title, inputs in suspect.cases(gpu.device).items():
        with on_paper() as launches:
            suspect.wrapper(*inputs, meta(*suspect.out_of(*inputs)))
        told = [finding for launch in launches for finding in launch.report.findings if finding.verdict != "remark"]
        assert launches and not told, title


@pytest.mark.parametrize("name, size", [("norm_rows", 16_384), ("mirror_rows", 8192), ("scale_columns", 8192)])
def test_a_right_one_does_not_spill_at_its_largest_row(name, size):
    suspect = SUSPECTS[name]
    inputs = [kit.ghost((2, size) if i == 0 else size, one.dtype) for i, one in enumerate(suspect.usual(gpu.device))]
    kernel, args, options = launch_of(suspect, inputs)
    out = kit.ghost((2, size), inputs[0].dtype)
    args = [out if isinstance(one, torch.Tensor) else one for one in args]
    assert kit.build(kernel, *args, **options).spills == 0


# ---- the tools that the exercise names show it, called as a reader would
def test_dry_run_shows_the_grid_the_product_the_slot_and_the_race():
    x, w = kit.ghost((512, 128, 1024), torch.float32), kit.ghost(128, torch.float32)
    assert kit.dry_run(heads.scale_heads_kernel, (1, 512 * 128), x, w, x, 128, 1024, BLOCK=1024).of("grid")
    cache, out = kit.ghost((40_000, 65_536), torch.float16), kit.ghost((1, 65_536), torch.float16)
    table = torch.tensor([39_999], dtype=torch.int32, device=gpu.device)
    (overflow,) = kit.dry_run(heads.read_blocks_kernel, (1, 64), cache, table, out, 65_536, 65_536, BLOCK=1024).of("overflow")
    assert "block * stride_cb" in overflow.source and overflow.true == 39_999 * 65_536
    ring, out = kit.ghost(128, torch.int32), kit.ghost(20, torch.int32)
    (outside,) = kit.dry_run(flat.last_tokens_kernel, (1,), ring, out, 7, 20, 128, BLOCK=256).of("out of bounds")
    assert outside.true == -13
    x = kit.ghost((4, 2000), torch.float32)
    for warps, races in ((1, False), (4, True)):
        report = kit.dry_run(rows.smooth_rows_kernel, (4,), x, x, x, 2000, 2048, num_warps=warps)
        assert bool(report.of("race in a program")) is races
    assert kit.dry_run(rows.mirror_rows_kernel, (4,), x, kit.ghost((4, 2000), torch.float32), 2000, 2048, num_warps=8)


def test_build_shows_the_spill_and_the_dtype_of_the_square():
    x = kit.ghost((2, 32_768), torch.float32)
    spilled = [kit.build(rows.softmax_rows_kernel, x, x, 32_768, 32_768, n, n, num_warps=4).spills for n in (1024, 32_768)]
    assert spilled[0] == 0 < spilled[1]
    x = kit.ghost((2, 2048), torch.float16)
    square = kit.build(rows.mean_square_kernel, x, kit.ghost(2, torch.float32), 2048, 2048, BLOCK=1024).ir("acc += x * x")
    assert any("mulf" in line and "f16" in line for line in square)


def test_watch_and_variants_show_the_constexpr():
    x = torch.zeros(64, device=gpu.device)
    flat.mask_tail(x, 50, torch.empty_like(x))
    with kit.watch() as log:
        for length in (50, 51, 52):
            flat.mask_tail(x, length, torch.empty_like(x))
    assert len(log) == 2
    kernel, args, options = launch_of(SUSPECTS["mask_tail"], (x, 40))
    args = [one if not isinstance(one, torch.Tensor) or not one.is_meta else kit.ghost(64, torch.float32) for one in args]
    assert len(kit.build(kernel, *args, **options).variants([{"length": n} for n in range(1, 9)])) == 8


def test_values_show_the_literal_the_view_and_the_square():
    x, bias = torch.zeros(2, 1000, device=gpu.device), torch.arange(1000.0, device=gpu.device)
    out = torch.empty_like(x)
    flat.bias_relu(x, bias, out)
    assert torch.equal(out[0, :768], bias[:768]) and not torch.equal(out[0], bias)
    both = torch.ones(3, 200, device=gpu.device)
    both[1:, 100:] = 2
    gate, up, out = torch.ones(3, 100, device=gpu.device), both[:, 100:], torch.empty(3, 100, device=gpu.device)
    rows.gate_rows(gate, up, out)
    assert not torch.allclose(out, torch.nn.functional.silu(gate) * up)
    out = torch.empty(1, device=gpu.device)
    for element, right in ((100.0, True), (300.0, False)):
        rows.mean_square(torch.full((1, 40), element, dtype=torch.float16, device=gpu.device), out)
        assert (out.item() == pytest.approx(element**2, rel=1e-3)) is right


# ---- the notebook
def cells():
    notebook = json.loads((SOLUTIONS / "15_bug_hunt.ipynb").read_text(encoding="utf-8"))
    return ["".join(cell["source"]) for cell in notebook["cells"] if cell["cell_type"] == "code"]


@by_name(SUSPECTS)
def test_the_notebook_shows_the_text_that_is_graded(suspect):
    kernel = getattr(inspect.getmodule(suspect.wrapper), f"{suspect.name}_kernel")
    source = Path(inspect.getsourcefile(suspect.wrapper)).read_text(encoding="utf-8")
    text = "".join(kernel.raw_src).strip("\n") + "\n\n\n" + inspect.getsource(suspect.wrapper).strip("\n")
    assert text in source and text in cells()
    assert not re.search(r"BUG|fault|rule", text)


def test_the_notebook_has_them_in_the_order_of_the_graders():
    shown = [
        re.search(r"^def (\w+)\(.*, out\):", cell, re.MULTILINE)[1] for cell in cells() if "_kernel(" in cell and "SOLUTION" not in cell
    ]
    assert shown == list(SUSPECTS)


# ---- what the graders say
def told_of(step, body, folder):
    source = f"import torch\nimport kit\n\n\ndef {STEPS[step].call}:\n    {body}\n"
    return json.loads(json.dumps(grade(step, getattr(module_of(source, folder), STEPS[step].name))))


def test_the_hunt_tells_found_missed_and_wrongly_accused(tmp_path):
    body = 'return {"last_tokens": 1, "norm_rows": 9, "gate_rows": "right", "scale_heads": 7, "smooth_rows": 5}.get(name)'
    told = told_of("15.1", body, tmp_path)
    notes = {row["label"]: (row["ok"], row["note"]) for row in told["problems"][0]["picture"]["rows"]}
    assert notes["last_tokens"] == (True, "rule 1: found") and notes["norm_rows"] == (False, "rule 9: wrongly accused")
    assert notes["gate_rows"] == (False, "right: missed") and notes["scale_heads"] == (False, "rule 7: another rule")
    assert notes["mask_tail"] == (None, "open")
    assert [problem["ran"] for problem in told["problems"]] == ["norm_rows", "gate_rows", "scale_heads"]
    assert told["problems"][0]["text"].startswith("2 of 13 kernels judged rightly")


def test_no_cause_and_no_problem_names_the_rule_of_a_suspect():
    for name, suspect in SUSPECTS.items():
        assert not re.search(r"\brules? \d", suspect.look), name
    assert all(name not in cause.cause for cause in ex15_bug_hunt.STEP_1.mistakes for name in SUSPECTS)


def test_an_input_counts_only_where_the_mended_one_is_right(tmp_path):
    body = 'return (torch.randn(3, 99, device=device)[:, :9], torch.randn(8, device=device)) if name == "bias_relu" else None'
    told = told_of("15.2", body, tmp_path)
    assert told["state"] == "wrong" and "is not defined" in told["problems"][0]["text"]
    told = told_of("15.2", body.replace("8,", "9,"), tmp_path)
    assert "a kernel without the fault goes wrong too" in told["problems"][0]["text"]


def test_a_check_in_the_sandbox_takes_ghosts(monkeypatch, tmp_path):
    monkeypatch.setenv("KIT_PROGRESS", str(tmp_path / "progress.json"))
    answer = next(answer for answer in RIGHT if answer.step == "15.2")
    verdict = kit.check("15.2", module_of(answer.source, tmp_path).shown)
    assert verdict and len(verdict.ran) == 13, verdict


def test_what_15_2_leaves_open_does_not_tell_who_is_at_fault(tmp_path):
    told = told_of("15.2", 'return (torch.randn(1, 600, device=device),) if name == "smooth_rows" else None', tmp_path)
    (problem,) = told["problems"]
    assert problem["text"] == "1 of 10 faults are shown"
    others = {(row["ok"], row["note"]) for row in problem["picture"]["rows"] if row["label"] != "smooth_rows"}
    assert others == {(None, "no input")}


def test_a_faulty_one_is_no_mended_one():
    """Whatever is returned as it is, it is not passed, and a likely cause is told."""
    for name, suspect in FAULTY.items():
        kinds = {sign.kind for sign in signs(suspect, suspect.wrapper, suspect.shown(gpu.device))}
        assert kinds and all(any(m.seen({"name": name, "kind": kind}) for m in STEPS["15.3"].mistakes) for kind in kinds)


def test_the_bank_reaches_every_likely_cause_of_15_3():
    causes = [mistake.cause for mistake in STEPS["15.3"].mistakes]
    reached = [next(c for c in causes if answer.cause in c) for answer in WRONG if answer.step == "15.3"]
    assert set(causes) - set(reached) == {
        "Run kit.dry_run at this input: it names the line.",
        "Compare with its equation at this input; its own test is not enough.",
    }


def test_inputs_are_told_in_short():
    assert given((torch.ones(2, 3), 5, kit.ghost(4, torch.int32))) == "(2, 3) float32, 5, ghost (4,) int32"
    assert given((torch.ones(4, 6)[:, :3],)) == "(4, 3) float32 with strides (6, 1)"
