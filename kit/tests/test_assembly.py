"""The readers of TTIR, PTX and SASS, on excerpts as Triton 3.7 and 3.9 write them."""

import pytest

from kit import assembly
from kit.assembly import Instruction

IR = """
#loc = loc("/a b/k.py":8:0)
#loc1 = loc("/a b/k.py":12:32)
#loc2 = loc("/lib/standard.py":293:36)
#loc3 = loc("/a b/k.py":17:15)
#loc4 = loc(unknown)
#loc5 = loc("x_ptrs"(#loc1))
#loc6 = loc(callsite(#loc2 at #loc3))
#loc7 = loc(fused[#loc5, #loc3])
module {
  tt.func public @k(%x_ptr: !tt.ptr<f32> loc("x_ptr"(#loc)), %n: i32 loc("n (a)"(#loc))) attributes {noinline = false} {
    %x_ptrs = arith.muli %block_id, %stride : i32 loc(#loc5)
    %y = tt.splat %x_ptrs : i32 -> tensor<8xi32> loc(#loc7)
    %m = ttg.local_alloc(%y) : tensor<8xi32> loc(#loc4)
    %s = "tt.reduce"(%y) <{axis = 0 : i32}> ({
    ^bb0(%a: f32 loc(callsite(#loc4 at #loc6)), %b: f32 loc(unknown)):
      tt.reduce.return %a : f32 loc(#loc6)
    }) : (tensor<8xf32>) -> f32 loc(#loc6)
    tt.return loc(#loc)
  } loc(#loc)
} loc(#loc)
"""

PTX_37 = """
.visible .entry k(
	.param .u32 k_param_2
)
{
	.reg .b32 	%r<62>;
	.loc	1 12 32                         // k.py:12:32
	ld.param.b32 	%r29, [k_param_2];
	mul.lo.s32 	%r35, %r29, %r27;
	.loc	1 5 19                          // k.py:5:19 @[ k.py:13:21 ]
	// begin inline asm
	@%p1 ld.global.L1::evict_last.v4.b32 { %r2, %r3, %r4, %r5 }, [ %rd1 + 0 ];
	// end inline asm
$L__BB0_2:                              // =>This Inner Loop Header
	.loc	1 15 4                          // k.py:15:4
	bar.sync 	0;
$L__tmp3:
	.loc	2 263 15                        // standard.py:263:15 @[ standard.py:293:36 @[ k.py:17:15 ] ]
	add.f32 	%r37, %r10, %r11;
}
	.file	1 "/a b/k.py"
	.file	2 "/lib/standard.py"
	.section	.debug_abbrev
	{
.b8 1                                   // Abbreviation Code
	}
"""

PTX_39 = """
{
	.loc	1 17 9                          // k.py:17:9
	.loc	2 314 12, function_name $L__info_string1, inlined_at 1 17 9 // standard.py:314:12
	.loc	2 287 12, function_name $L__info_string2, inlined_at 2 314 12 // standard.py:287:12
	add.f32 	%r37, %r10, %r11;
	.loc	1 18 5                          // k.py:18:5
	ret;
	.loc	2 0 12, function_name $L__info_string2, inlined_at 2 314 12
	mov.b32 	%r1, 0;
}
	.file	1 "/a b/k.py"
	.file	2 "/lib/standard.py"
"""

SASS = """
.text.k:
	//## File "/a b/k.py", line 12
        /*0000*/                   LDC R1, c[0x0][0x28] ;
        /*0010*/              @!P0 LDG.E.128 R8, desc[UR6][R14.64] ;
	//## File "/lib/standard.py", line 287 inlined at "/lib/standard.py", line 314
	//## File "/lib/standard.py", line 314 inlined at "/a b/k.py", line 17
	//## File "/a b/k.py", line 17
.L_x_1:
        /*0020*/                   FADD R2, R2, R3 ;
        /*0030*/                   NOP;
"""


def texts(instructions):
    return [one.text for one in instructions]


def test_ir_lines_lose_their_locations_and_keep_their_lines():
    read = {one.text: one.frames for one in assembly.read_ir(IR)}
    assert read["%x_ptrs = arith.muli %block_id, %stride : i32"] == (("/a b/k.py", 12),)
    assert read["%y = tt.splat %x_ptrs : i32 -> tensor<8xi32>"] == (("/a b/k.py", 12),)
    assert read["%m = ttg.local_alloc(%y) : tensor<8xi32>"] == ()
    head = "tt.func public @k(%x_ptr: !tt.ptr<f32>, %n: i32) attributes {noinline = false} {"
    assert read[head] == (("/a b/k.py", 8),)
    assert not [text for text in read if "loc(" in text.replace("local_alloc(", "") or text.startswith("^")]


def test_an_operation_with_a_region_has_the_line_behind_its_closing_brace():
    read = {one.text: one.frames for one in assembly.read_ir(IR)}
    inside = (("/lib/standard.py", 293), ("/a b/k.py", 17))
    assert read['%s = "tt.reduce"(%y) <{axis = 0 : i32}> ({'] == inside
    assert read["tt.reduce.return %a : f32"] == inside


def test_ptx_reads_the_callers_of_both_forms():
    read = {one.text: one.frames for one in assembly.read_ptx(PTX_37)}
    assert read["mul.lo.s32 %r35, %r29, %r27;"] == (("/a b/k.py", 12),)
    load = "@%p1 ld.global.L1::evict_last.v4.b32 { %r2, %r3, %r4, %r5 }, [ %rd1 + 0 ];"
    assert read[load] == (("/a b/k.py", 5), ("/a b/k.py", 13))
    add = "add.f32 %r37, %r10, %r11;"
    assert read[add] == (("/lib/standard.py", 263), ("/lib/standard.py", 293), ("/a b/k.py", 17))
    read = {one.text: one.frames for one in assembly.read_ptx(PTX_39)}
    assert read[add] == (("/lib/standard.py", 287), ("/lib/standard.py", 314), ("/a b/k.py", 17))
    assert read["ret;"] == (("/a b/k.py", 18),)


def test_the_lines_of_an_inline_block_are_one_place():
    text = (
        "\t.loc\t1 10 9 // k.py:10:9\n\t// begin inline asm\n\t.loc\t1 10 9 // k.py:10:9\n\tmov.u32 %r1, 0x0;\n"
        "\t.loc\t1 11 9 // k.py:11:9\n\tld.global.b32 { %r1 }, [ %rd1 + 0 ];\n\t// end inline asm\n\tadd.s32 %r2, %r1, 1;\n"
        '\t.loc\t1 11 5 // k.py:11:5\n\tret;\n\t.file\t1 "/a b/k.py"\n'
    )
    assert [one.frames[0][1] for one in assembly.read_ptx(text)] == [10, 10, 10, 11]


def test_ptx_keeps_branch_targets_and_drops_directives_and_debug_data():
    assert texts(assembly.read_ptx(PTX_37))[3] == "$L__BB0_2:"
    assert not [text for text in texts(assembly.read_ptx(PTX_37)) if text.startswith(".") or "tmp" in text]


@pytest.mark.parametrize(
    ("text", "access"),
    [
        ("@%p1 ld.global.v4.b32 { %r2, %r3, %r4, %r5 }, [ %rd1 + 0 ];", ("load", 128, "global")),
        ("ld.global.L1::evict_last.L2::cache_hint.v2.b64 { %rd1, %rd2 }, [ %rd1 ], %rd9;", ("load", 128, "global")),
        ("@!%p2 st.global.b16 [ %rd9 + 0 ], { %rs1 };", ("store", 16, "global")),
        ("st.relaxed.gpu.global.u32 [%rd1], %r1;", ("store", 32, "global")),
        ("@%p6 atom.global.gpu.acq_rel.add.f32 %r23, [ %rd19 + 0 ], %r24;", ("atomic", 32, "global")),
        ("@%p6 red.global.gpu.relaxed.add.noftz.bf16x2 [ %rd19 + 0 ], %r24;", ("atomic", 32, "global")),
        ("ld.shared.b32 %r24, [global_smem];", ("load", 32, "shared")),
        ("ldmatrix.sync.aligned.m8n8.x4.shared.b16 {%r1, %r2, %r3, %r4}, [%r5];", ("load", 128, "shared")),
        ("@%p1 cp.async.cg.shared.global [ %r1 + 0 ], [ %rd1 + 0 ], 0x10, %r7;", ("load", 128, "global")),
        (
            "cp.async.bulk.tensor.2d.shared::cluster.global.mbarrier::complete_tx::bytes [%r1], [%rd1, {%r2, %r3}], [%r4];",
            ("load", 0, "global"),
        ),
        ("cp.async.bulk.tensor.2d.global.shared::cta.bulk_group [%rd1, {%r2, %r3}], [%r4];", ("store", 0, "global")),
        ("ld.param.b64 %rd20, [k_param_0];", None),
        ("cp.async.commit_group;", None),
        ("add.s64 %rd1, %rd21, %rd22;", None),
    ],
)
def test_width_and_space_of_an_access(text, access):
    assert assembly.access_of(Instruction(text)) == access


@pytest.mark.parametrize(
    ("text", "is_one"),
    [
        ("bar.sync 0;", True),
        ("@%p1 barrier.cta.sync.aligned 1, 128;", True),
        ("bar.red.popc.u32 %r1, 0, %p1;", True),
        ("bar.warp.sync -1;", False),
        ("mbarrier.init.shared::cta.b64 [%r1], 1;", False),
        ("add.s32 %bar, %r1, %r2;", False),
    ],
)
def test_which_instruction_is_a_barrier(text, is_one):
    assert assembly.is_barrier(Instruction(text)) is is_one


def test_accesses_are_counted_by_line():
    ptx = [Instruction(f"st.global.v2.b32 [ %rd{i} + 0 ], {{ %r1, %r2 }};", (("k.py", 9 - i // 2),)) for i in range(4)]
    found = assembly.accesses(ptx, lambda frames: frames[-1][1], lambda line: f"source of {line}")
    assert [(one.line, one.op, one.bits, one.count, one.source) for one in found] == [
        (8, "store", 64, 2, "source of 8"),
        (9, "store", 64, 2, "source of 9"),
    ]


def test_sass_keeps_code_and_lines_without_addresses_or_padding():
    read = assembly.read_sass(SASS)
    assert texts(read) == ["LDC R1, c[0x0][0x28]", "@!P0 LDG.E.128 R8, desc[UR6][R14.64]", ".L_x_1:", "FADD R2, R2, R3"]
    assert read[1].frames == (("/a b/k.py", 12),)
    assert read[3].frames == (("/lib/standard.py", 287), ("/lib/standard.py", 314), ("/a b/k.py", 17))


def test_sass_without_callers_takes_those_of_the_ptx_when_there_is_one_caller():
    inlined = (("/a b/k.py", 5), ("/a b/k.py", 13))
    ptx = [
        Instruction("ld", inlined),
        Instruction("add", (("/lib/s.py", 1), ("/a b/k.py", 17))),
        Instruction("add", (("/lib/s.py", 1), ("/a b/k.py", 18))),
    ]
    sass = [Instruction("LDG", inlined[:1]), Instruction("FADD", (("/lib/s.py", 1),)), Instruction(".L_x_1:")]
    assert [one.frames for one in assembly.with_callers(sass, ptx)] == [inlined, (("/lib/s.py", 1),), ()]


def test_resources_are_those_of_the_named_kernel():
    text = (
        "Resource usage:\n Common:\n  GLOBAL:0\n Function other:\n  REG:9 STACK:8 SHARED:0 LOCAL:0 CONSTANT[0]:576\n"
        " Function k:\n  REG:255 STACK:632 SHARED:1024 LOCAL:4 CONSTANT[0]:576 TEXTURE:0 SURFACE:0 SAMPLER:0\n"
    )
    assert assembly.read_resources(text, "k") == assembly.Resources(255, 632, 4)
    assert assembly.read_resources(text, "absent") is None


def test_local_depot_counts_what_the_ptx_asks_for():
    assert assembly.local_depot("\t.local .align 16 .b8 \t__local_depot0[48];\n\t.local .align 4 .b8 __local_depot1[4];") == 52
    assert assembly.local_depot(PTX_37) == 0
