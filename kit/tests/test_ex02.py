"""Exercise 02's own truths: what its kernels write is read off the compiler's IR as well, and its checks run where nothing is on disk."""

import re

import pytest
import torch

import kit
from kit import machine
from kit.graders import ex02_reading_inductor as ex02
from kit.tests.banks import RIGHT, module_of

DTYPES = {"*fp16": torch.float16, "*fp32": torch.float32, "*i64": torch.int64}


@pytest.fixture(autouse=True)
def simulated():
    machine.start()


@pytest.fixture
def generated_kernels(monkeypatch):
    """The GeneratedKernels that the step asks about, by title."""
    made, real = [], ex02.generated_each

    def noted(calls):
        made.extend(real(calls))
        return made

    monkeypatch.setattr(ex02, "generated_each", noted)
    asked = {title: (code, names) for title, code, names in ex02.kernels_to_read()}
    kernels = {kernel.code: kernel for one in made for kernel in one.kernels}
    return {title: kernels[code] for title, (code, _) in asked.items() if code in kernels}, asked


def stored_in_ir(kernel):
    """The parameters whose memory the kernel's TTIR stores to or adds to: each store's pointer, traced back."""
    values = kernel.choices[0]["values"]
    types = kernel.meta("signature")
    args = [DTYPES.get(types[name], 4_096) for name in kernel.parameters if name not in values]
    ttir = kit.build(kernel.jit, *args, **{k: v for k, v in values.items() if k in kernel.parameters}).ttir
    origin = dict(re.findall(r"(%[\w#]+) = \S+ (%[\w#]+)", ttir))
    found = set()
    for pointer in re.findall(r"tt\.(?:store|atomic_rmw [\w, ]*,) (%\w+)", ttir):
        while pointer in origin:
            pointer = origin[pointer]
        found.add(pointer.removeprefix("%"))
    return found


def test_what_is_written_is_what_the_compiler_stores(generated_kernels):
    kernels, asked = generated_kernels
    assert len(kernels) == 6 and len(asked) == 7
    for title, kernel in kernels.items():
        assert ex02.written_by(kernel.code) == stored_in_ir(kernel), title


def test_the_kernels_hold_what_the_step_is_about(generated_kernels):
    _, asked = generated_kernels
    written = {title: ex02.written_by(code) for title, (code, _) in asked.items()}
    assert written["relu of a product"] == {"in_out_ptr0"}
    assert any("in_out_ptr0" in names and "in_out_ptr0" not in written[title] for title, (_, names) in asked.items())
    assert any("ws_ptr" in names for names in written.values())
    assert any(len(names) > 1 for names in written.values())
    assert any("tl.atomic_add(" in code for code, _ in asked.values())


def test_a_check_in_the_sandbox_generates_its_code_itself(monkeypatch, tmp_path):
    monkeypatch.setenv("TRITON_CACHE_DIR", str(tmp_path / "cache"))
    monkeypatch.setenv("KIT_PROGRESS", str(tmp_path / "progress.json"))
    answer = next(answer for answer in RIGHT if answer.step == "02.1")
    verdict = kit.check("02.1", module_of(answer.source, tmp_path).written)
    assert verdict, verdict
    assert list((tmp_path / "cache" / "kit-generated").glob("*.json"))
