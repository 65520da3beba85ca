"""`build` on the machine's target: widths, barriers, spills, IR and SASS by source line, and its errors."""

import importlib.util
import linecache

import pytest
import torch
import triton
import triton.language as tl

from kit import machine
from kit.build import CompileError, build
from kit.errors import BadInput, KitError, WrongType

gpu = machine.current()


@triton.jit
def masked_load(x_ptrs, mask):
    return tl.load(x_ptrs, mask=mask, other=0.0)  # masked lanes add nothing


@triton.jit
def copy_kernel(x_ptr, out_ptr, n, BLOCK: tl.constexpr):
    """out = x; a program owns BLOCK elements. The text x_ptr + offs in here is not code."""
    pid = tl.program_id(0)
    offs = pid * BLOCK + tl.arange(0, BLOCK)
    mask = offs < n
    x = masked_load(x_ptr + offs, mask)
    tl.store(
        out_ptr + offs,
        x,
        mask=mask,
    )


@triton.jit
def read_block_kernel(x_ptr, out_ptr, block_id, stride, BLOCK: tl.constexpr):
    """out = x[block_id * stride:][:BLOCK]; the offset is int32."""
    offs = tl.arange(0, BLOCK)
    start = block_id * stride
    x = tl.load(x_ptr + start + offs)
    tl.store(out_ptr + offs, x)


@triton.jit
def read_block_int64_kernel(x_ptr, out_ptr, block_id, stride, BLOCK: tl.constexpr):
    """out = x[block_id * stride:][:BLOCK]; the offset is int64."""
    offs = tl.arange(0, BLOCK)
    start = block_id.to(tl.int64) * stride
    x = tl.load(x_ptr + start + offs)
    tl.store(out_ptr + offs, x)


@triton.jit
def reverse_kernel(x_ptr, WAIT: tl.constexpr, BLOCK: tl.constexpr):
    """Stores a block, then loads it reversed; WAIT puts a barrier between."""
    offs = tl.arange(0, BLOCK)
    tl.store(x_ptr + offs, offs)
    if WAIT:
        tl.debug_barrier()
    x = tl.load(x_ptr + BLOCK - 1 - offs)
    tl.store(x_ptr + BLOCK + offs, x)


@triton.jit
def softmax_kernel(x_ptr, out_ptr, BLOCK: tl.constexpr):
    """out = softmax(x) of one row of BLOCK elements."""
    offs = tl.arange(0, BLOCK)
    x = tl.load(x_ptr + offs)
    e = tl.exp(x - tl.max(x))
    tl.store(out_ptr + offs, e / tl.sum(e))


@triton.jit
def square_kernel(x_ptr, BLOCK: tl.constexpr):
    """x = x @ x."""
    offs = tl.arange(0, BLOCK)
    x_ptrs = x_ptr + offs[:, None] * BLOCK + offs[None, :]
    x = tl.load(x_ptrs)
    tl.store(x_ptrs, tl.dot(x, x).to(x.dtype))


@triton.jit(noinline=True)
def twice(x):
    return x + x


@triton.jit
def twice_kernel(x_ptr):
    """x[0] = 2 x[0], by a call that stays a call."""
    x = tl.load(x_ptr)
    tl.store(x_ptr, twice(x))


@triton.jit
def undefined_inside(x):
    return x + no_such_name  # noqa: F821


@triton.jit
def calls_undefined_kernel(x_ptr):
    """BUG: the function it calls uses a name that is not there."""
    tl.store(x_ptr, undefined_inside(tl.load(x_ptr)))


@triton.jit
def asserts_kernel(x_ptr, BLOCK: tl.constexpr):
    """BUG: refuses each BLOCK but 4."""
    tl.static_assert(BLOCK == 4, "Exercise 6.1: about 2 lines")


class View:
    """What a ghost has in common with a tensor, for a kernel's argument."""

    def __init__(self, dtype, address=0):
        self.dtype, self.address = dtype, address

    def data_ptr(self):
        return self.address


def line_of(kernel, text):
    return next(kernel.starting_line_number + i for i, line in enumerate(kernel.raw_src) if text in line and "def " not in line)


def test_one_line_says_what_it_is():
    made = build(copy_kernel, torch.float32, torch.float32, 1024, BLOCK=1024)
    text = repr(made)
    assert text.startswith(f"copy_kernel for {gpu.target}: {made.registers} registers, 0 bytes spilled, 0 bytes shared memory")
    assert text.endswith("loads 128 bit, stores 128 bit, no barrier [compiled]")
    assert made.evidence == "compiled"
    assert made.num_warps == 4
    assert 1 <= made.registers <= 255


@pytest.mark.parametrize("tensor", [torch.float32, View(torch.float32), "tensor"])
def test_tensors_ghosts_and_dtypes_compile_alike(tensor):
    x = torch.zeros(1024, device=gpu.device) if tensor == "tensor" else tensor
    assert build(copy_kernel, x, x, 1024, BLOCK=1024).bits("load") == [128]


def test_the_width_of_a_load_follows_alignment_dtype_and_size():
    x = torch.zeros(2048, device=gpu.device)
    assert build(copy_kernel, x[1:1025], x[1024:], 1024, BLOCK=1024).bits("load") == [32]
    assert build(copy_kernel, x[1:1025], x[1024:], 1024, BLOCK=1024).bits("store") == [128]
    assert build(copy_kernel, x, x, 1023, BLOCK=1024).bits("load") == [32]
    assert build(copy_kernel, torch.bfloat16, torch.bfloat16, 1024, BLOCK=256).bits("load") == [32]  # 2 elements a thread
    assert build(copy_kernel, View(torch.float32, 4), torch.float32, 1024, BLOCK=1024).bits("load") == [32]


def test_accesses_are_given_by_line_and_an_inlined_one_counts_for_the_calling_line():
    x = torch.zeros(2048, device=gpu.device)
    load, store = build(copy_kernel, x[1:], x, 1024, BLOCK=1024, num_warps=4).accesses
    assert (load.line, load.op, load.bits, load.count, load.space) == (line_of(copy_kernel, "masked_load("), "load", 32, 8, "global")
    assert load.source == "x = masked_load(x_ptr + offs, mask)"
    assert (store.op, store.bits, store.count) == ("store", 128, 2)
    assert line_of(copy_kernel, "tl.store(") <= store.line <= line_of(copy_kernel, "tl.store(") + 4


def test_barriers_are_given_by_line():
    assert build(reverse_kernel, torch.int32, WAIT=False, BLOCK=1024).barriers == []
    waiting = build(reverse_kernel, torch.int32, WAIT=True, BLOCK=1024)
    line = line_of(reverse_kernel, "debug_barrier")
    assert waiting.barriers == [line]
    assert f"1 barrier (line {line})" in repr(waiting)
    assert set(build(softmax_kernel, torch.float32, torch.float32, BLOCK=1024).barriers) <= {
        line_of(softmax_kernel, "tl.max"),
        line_of(softmax_kernel, "tl.sum"),
    }


def test_spills_and_shared_memory():
    spilling = build(softmax_kernel, torch.float32, torch.float32, BLOCK=32768, num_warps=4)
    assert spilling.spills > 0
    assert spilling.stack >= spilling.spills
    assert build(softmax_kernel, torch.float32, torch.float32, BLOCK=32768, num_warps=16).spills == 0
    assert build(square_kernel, torch.float16, BLOCK=64).shared_memory > 0


def test_more_shared_memory_than_there_is_is_said():
    assert "a launch is refused" in repr(build(square_kernel, torch.float32, BLOCK=256, num_warps=8))
    assert "refused" not in repr(build(square_kernel, torch.float16, BLOCK=64))


def test_the_ir_of_a_line_shows_the_width_of_its_multiply():
    arguments = (torch.int8, torch.int8, 32767, 65536)
    before = build(read_block_kernel, *arguments, BLOCK=128).ir("block_id * stride", mark="muli")
    after = build(read_block_int64_kernel, *arguments, BLOCK=128).ir("start = block_id", mark="muli")
    assert [line.split(" : ")[-1] for line in before.marked] == ["i32"]
    assert [line.split(" : ")[-1] for line in after.marked] == ["i64"]
    assert "loc(" not in after.text
    assert "arith.extsi" in after
    assert "arith.extsi" not in before
    shown = repr(after).splitlines()
    assert shown[0].endswith("start = block_id.to(tl.int64) * stride [compiled]")
    assert [line[0] for line in shown[1:] if "muli" in line] == ["▸"]
    assert ">muli</mark>" in after._repr_html_()


def test_an_excerpt_takes_a_line_number_and_covers_the_whole_statement():
    made = build(copy_kernel, torch.float32, torch.float32, 1024, BLOCK=1024)
    by_text = made.ir("tl.store(")
    assert by_text.lines == made.ir(line_of(copy_kernel, "tl.store(") + 1).lines
    assert any("tt.store" in line for line in by_text)
    assert any("tt.addptr %x_ptr" in line or "tt.splat %x_ptr" in line for line in made.ir("x_ptr + offs"))
    assert not made.ir("x_ptr + offs", mark="tt.store").marked
    assert "tt.load" in made.ir("return tl.load(x_ptrs")  # a line of the function it calls
    assert "#blocked" in made.ir("tl.store(", stage="ttgir")


def test_sass_by_line():
    made = build(copy_kernel, torch.float32, torch.float32, 1024, BLOCK=1024)
    assert any("LDG.E.128" in line for line in made.sass_at("masked_load("))
    assert any("STG.E.128" in line for line in made.sass_at("tl.store("))
    assert not any("STG" in line for line in made.sass_at("masked_load("))
    assert "EXIT" in made.sass
    assert any("ld.global.v4" in line for line in made.ptx_at("masked_load("))


def test_the_same_kernel_in_another_file_has_its_lines_too(tmp_path):
    # Triton's disk cache returns the first file's compilation for the second, with the first file's name in it.
    text = "import triton\nimport triton.language as tl\n\n@triton.jit\ndef add_one(x):\n    return x + 1\n\n"
    text += "@triton.jit\ndef moved_kernel(x_ptr, out_ptr):\n    x = tl.load(x_ptr)\n    tl.store(out_ptr, add_one(x))\n"
    for folder in ("first", "second"):
        (tmp_path / folder).mkdir()
        path = tmp_path / folder / "cell.py"
        path.write_text(text)
        spec = importlib.util.spec_from_file_location("cell", path)
        module = importlib.util.module_from_spec(spec)
        spec.loader.exec_module(module)
        made = build(module.moved_kernel, torch.int32, torch.int32)
        assert [one.source for one in made.accesses] == ["x = tl.load(x_ptr)", "tl.store(out_ptr, add_one(x))"]
        assert "arith.addi" in made.ir("return x + 1")
        assert any("STG" in line for line in made.sass_at("tl.store("))
        (tmp_path / folder).rename(tmp_path / f"{folder}_gone")
        linecache.clearcache()


def test_every_stage_is_there():
    made = build(copy_kernel, torch.float32, torch.float32, 1024, BLOCK=1024)
    for text, word in [(made.ttir, "tt.load"), (made.ttgir, "#blocked"), (made.llir, "define"), (made.ptx, ".entry copy_kernel")]:
        assert word in text


def test_a_call_that_is_not_inlined_is_read_too():
    made = build(twice_kernel, torch.float32)
    assert "FADD" in made.sass_at("return x + x")
    assert made.spills == 0


def test_the_table_escapes_and_counts():
    made = build(softmax_kernel, torch.float32, torch.float32, BLOCK=1024)
    table = made._repr_html_()
    assert "2 loads of 128 bit" in table
    assert "barrier" in table
    assert "&lt;" in build(copy_kernel, torch.float32, torch.float32, 3, BLOCK=128).ir("offs < n")._repr_html_()


def test_nothing_is_launched():
    x = torch.zeros(1024, device=gpu.device)
    build(reverse_kernel, x, WAIT=True, BLOCK=128)
    assert not x.any()


def test_compile_errors_give_triton_s_words_and_the_line():
    with pytest.raises(CompileError) as caught:
        build(asserts_kernel, torch.float32, BLOCK=8)
    line = line_of(asserts_kernel, "static_assert")
    assert str(caught.value) == (
        "build: Triton cannot compile asserts_kernel: Exercise 6.1: about 2 lines, "
        f'in line {line}: tl.static_assert(BLOCK == 4, "Exercise 6.1: about 2 lines")'
    )
    assert caught.value.__suppress_context__
    with pytest.raises(CompileError, match="no_such_name is not defined, in line 2 of undefined_inside: return x [+] no_such_name"):
        build(calls_undefined_kernel, torch.float32)


@pytest.mark.parametrize(
    ("arguments", "meta", "error", "message"),
    [
        ((torch.float32,), {"BLOCK": 128}, BadInput, "copy_kernel also needs out_ptr and n"),
        ((torch.float32, torch.float32, 8), {}, BadInput, "copy_kernel also needs BLOCK"),
        ((torch.float32, torch.float32, 8), {"BLOKC": 8}, BadInput, "takes no BLOKC. Did you mean BLOCK"),
        ((torch.float32, torch.float32, 8), {"BLOCK": 8, "num_wraps": 4}, BadInput, "takes no num_wraps. Did you mean num_warps"),
        ((torch.float32, torch.float32, 8), {"BLOCK": 8, "n": 4}, BadInput, "n of copy_kernel was given twice"),
        ((torch.float32, torch.float32, 8, 8, 8), {}, BadInput, "takes 4 arguments .* 5 were given"),
        ((torch.complex64, torch.float32, 8), {"BLOCK": 8}, BadInput, "x_ptr of copy_kernel is complex64"),
        ((torch.float32, torch.float32, 2**70), {"BLOCK": 8}, BadInput, "n of copy_kernel must fit 64 bits"),
        ((torch.float32, torch.float32, "8"), {"BLOCK": 8}, WrongType, "n of copy_kernel must be a tensor, .* got '8' [(]str[)]"),
        (([1.0], torch.float32, 8), {"BLOCK": 8}, WrongType, "x_ptr of copy_kernel must be a tensor"),
        ((torch.float32, torch.float32, 8), {"BLOCK": torch.zeros(1)}, WrongType, "BLOCK of copy_kernel is a constexpr"),
        ((torch.float32, torch.float32, 8), {"BLOCK": 8, "num_warps": 3}, BadInput, "num_warps must be a power of two; got 3"),
        ((torch.float32, torch.float32, 8), {"BLOCK": 8, "num_warps": 64}, BadInput, "num_warps must be at most 32"),
        ((torch.float32, torch.float32, 8), {"BLOCK": 8, "num_warps": "4"}, WrongType, "num_warps must be a whole number"),
        ((torch.float32, torch.float32, 8), {"BLOCK": 12}, CompileError, "power of 2"),
    ],
)
def test_bad_arguments_get_a_sentence(arguments, meta, error, message):
    with pytest.raises(error, match=message):
        build(copy_kernel, *arguments, **meta)


def test_a_tensor_on_another_device_gets_a_sentence():
    elsewhere = torch.zeros(8, device="meta")
    with pytest.raises(BadInput, match=f'x_ptr of copy_kernel is on meta, and this machine\'s tensors live on "{gpu.device}"'):
        build(copy_kernel, elsewhere, torch.float32, 8, BLOCK=8)


def test_what_ptxas_refuses_is_one_sentence_without_the_ptx(capsys):
    with pytest.raises(CompileError, match="cannot compile softmax_kernel: .*[(]PTXASError[)]"):
        build(softmax_kernel, torch.float32, torch.float32, BLOCK=128, ptx_options="--no-such-flag")
    assert "debug_abbrev" not in capsys.readouterr().out


@pytest.mark.parametrize("kernel", [3, "copy", len, lambda x: x])
def test_what_is_not_a_kernel_gets_a_sentence(kernel):
    with pytest.raises(WrongType, match="build: kernel must be"):
        build(kernel, torch.float32)


def test_a_place_that_is_not_there_gets_a_sentence():
    made = build(copy_kernel, torch.float32, torch.float32, 8, BLOCK=8)
    with pytest.raises(BadInput, match="'no such text' stands in no line of copy_kernel"):
        made.ir("no such text")
    with pytest.raises(BadInput, match="line 1 is not in copy_kernel, which has lines"):
        made.ptx_at(1)
    with pytest.raises(WrongType, match="a line number or a piece of the source text"):
        made.ir(1.5)
    with pytest.raises(BadInput, match="stage must be"):
        made.ir("tl.store(", stage="sass")


def test_a_hook_that_stops_the_compiler_is_named(monkeypatch):
    monkeypatch.setattr(triton.knobs.runtime, "jit_cache_hook", lambda **_: True)
    with pytest.raises(KitError, match="jit_cache_hook stopped the compilation of copy_kernel"):
        build(copy_kernel, torch.float64, torch.float64, 8, BLOCK=2)
