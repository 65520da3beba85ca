"""Variants: the texts of classes, the reasons for a change, sets of variants, and that the keys are exactly those that Triton compiles."""

import random

import pytest
import torch
import triton
import triton.language as tl
from triton.runtime import driver as triton_driver

import kit
from kit import machine
from kit.errors import BadInput, WrongType
from kit.variants import Change, Variant, Variants, differences, nearest, why

gpu = machine.start()


def takes_all(x_ptr, n, m, a, flag, maybe, pair, BLOCK: tl.constexpr):
    pass


def takes_annotated(x_ptr, n: tl.int32, f: tl.float32, BLOCK: tl.constexpr = 16):
    pass


@triton.jit
def double(x):
    return 2 * x


@triton.jit
def applies(x_ptr, n, FN: tl.constexpr, DTYPE: tl.constexpr):
    offs = tl.arange(0, 16)
    tl.store(x_ptr + offs, FN(offs).to(DTYPE), mask=offs < n)


def in_memory(kernel):
    """The keys of what Triton has compiled of `kernel` on this machine."""
    return set(kernel.device_caches[triton_driver.active.get_current_device()][0])


def variant(key="", written=None, **classes):
    options = {"num_warps": 4, "num_stages": 3} | (written or {})
    return Variant("scale_kernel", classes, options, key, written=written or {})


# ---- Class texts


@pytest.fixture(scope="module")
def x():
    return torch.zeros(64, device=gpu.device)


@pytest.mark.parametrize(
    ("value", "text"),
    [
        *((0, "int32, ÷16"), (1, "= 1"), (2, "int32"), (16, "int32, ÷16"), (-16, "int32, ÷16"), (-1, "int32")),
        *((2**31 - 1, "int32"), (2**31, "int64, ÷16"), (2**31 + 1, "int64"), (2**63, "uint64, ÷16"), (2**64 - 1, "uint64")),
        *((True, "bool"), (False, "bool"), (1.0, "float"), (float("inf"), "float"), (None, "None")),
        *((torch.float16, "*float16, ÷16"), (torch.bool, "*bool, ÷16"), (torch.float8_e5m2, "*float8_e5m2, ÷16")),
        *(((1, 17), "(= 1; int32)"), ((2, (True, None)), "(int32; (bool; None))"), (kit.ghost((4,), torch.bfloat16), "*bfloat16, ÷16")),
        (kit.ghost((4,), torch.bfloat16, offset=1), "*bfloat16"),
    ],
)
def test_a_class_by_its_text(x, value, text):
    kernel = triton.jit(takes_all)
    found = kit.variants.classes(kernel, x, 3, 3, 1.0, True, value, (1,), BLOCK=128)
    assert found["maybe"] == text
    assert list(found) == kernel.arg_names and found["BLOCK"] == "constexpr 128"
    assert not in_memory(kernel)  # nothing was compiled


def test_tensors_by_address(x):
    kernel = triton.jit(takes_all)
    for offset, text in ((0, "*float32, ÷16"), (1, "*float32"), (4, "*float32, ÷16")):
        assert kit.variants.classes(kernel, x[offset:], 1, 1, 1.0, True, None, (), BLOCK=1)["x_ptr"] == text
    assert kit.variants.classes(kernel, x.half()[4:], 1, 1, 1.0, True, None, (), BLOCK=1)["x_ptr"] == "*float16"


def test_decorations(x):
    kernel = triton.jit(takes_all, do_not_specialize=["n"], do_not_specialize_on_alignment=["m", "x_ptr"])
    args = (1.0, True, None, (1,))
    for n, text in ((1, "int32"), (16, "int32"), (3, "int32"), (2**31, "int64")):
        assert kit.variants.classes(kernel, x, n, 3, *args, BLOCK=1)["n"] == text
    for m, text in ((1, "= 1"), (16, "int32"), (3, "int32")):
        assert kit.variants.classes(kernel, x, 3, m, *args, BLOCK=1)["m"] == text
    assert kit.variants.classes(kernel, x, 3, 3, *args, BLOCK=1)["x_ptr"] == "*float32"


def test_annotations_keep_the_class_and_do_not_fold(x):
    kernel = triton.jit(takes_annotated)
    texts = [kit.variants.classes(kernel, x, n, 2.0)["n"] for n in (1, 3, 16)]
    assert texts == ["int32, = 1", "int32", "int32, ÷16"]
    assert kit.variants.classes(kernel, x, 3, 2.0) == {"x_ptr": "*float32, ÷16", "n": "int32", "f": "float", "BLOCK": "constexpr 16"}


def test_functions_and_dtypes_by_name(x):
    assert kit.variants.classes(applies, x, 3, double, tl.float16) == {
        "x_ptr": "*float32, ÷16",
        "n": "int32",
        "FN": "constexpr double",
        "DTYPE": "constexpr float16",
    }
    kernel = triton.jit(takes_all)
    found = kit.variants.classes(kernel, x, 3, 3, 1.0, True, None, (double, 1), BLOCK="relu")
    assert (found["pair"], found["BLOCK"]) == ("(function double; = 1)", "constexpr 'relu'")


def test_classes_refuses_in_a_sentence(x):
    kernel = triton.jit(takes_annotated)
    with pytest.raises(BadInput, match=r"^classes: takes_annotated also needs n and f"):
        kit.variants.classes(kernel, x)
    with pytest.raises(WrongType, match="must be decorated with @triton.jit"):
        kit.variants.classes(takes_annotated, x, 1, 2.0)
    with pytest.raises(BadInput, match="classes: Triton has no key for these arguments of takes_annotated: unhashable"):
        kit.variants.classes(kernel, x, 1, 2.0, BLOCK=[1])


# ---- Reasons


@pytest.mark.parametrize(
    ("before", "after", "reason"),
    [
        ("int32", "= 1", "became 1, which Triton folds into the code"),
        ("= 1", "int32", "no longer 1, which Triton had folded into the code"),
        ("= 1", "int32, ÷16", "no longer 1, which Triton had folded into the code"),
        ("int32, ÷16", "int32", "no longer divisible by 16"),
        ("int32", "int32, ÷16", "now divisible by 16"),
        ("int32", "int64", "needs 64 bits"),
        ("int32, ÷16", "int64", "needs 64 bits, no longer divisible by 16"),
        ("int64", "int32", "fits 32 bits again"),
        ("int64", "uint64", "needs 64 bits without a sign"),
        ("= 1", "int64", "no longer 1, which Triton had folded into the code, needs 64 bits"),
        ("int32", "int32, = 1", "became 1, a class of its own"),
        ("int32, = 1", "int32, ÷16", "no longer 1"),
        ("*float16, ÷16", "*float16", "the address is no longer divisible by 16 bytes"),
        ("*float16", "*float16, ÷16", "the address is now divisible by 16 bytes"),
        ("*float16, ÷16", "*float32, ÷16", "another dtype"),
        ("*float16, ÷16", "*float32", "another dtype, the address is no longer divisible by 16 bytes"),
        ("constexpr 64", "constexpr 128", "another constexpr value"),
        ("None", "*float32", "no longer None"),
        ("*float32", "None", "became None"),
        ("int32", "float", "another type: int before, float now"),
        ("bool", "= 1", "another type: bool before, int now"),
        ("(int32; = 1)", "(int32; int32)", "its element 1: no longer 1, which Triton had folded into the code"),
        ("(int32)", "(int32; int32)", "a tuple of another length"),
        ("function f", "function g", "another function"),
        ("tensordesc<fp16[64]>", "tensordesc<fp16[32]>", "another type"),
    ],
)
def test_why(before, after, reason):
    assert why(before, after) == reason


def test_differences_name_arguments_and_options():
    old = variant("a", x_ptr="*float32, ÷16", n="int32")
    new = variant("b", {"num_warps": 8}, x_ptr="*float32", n="int32")
    assert differences(old, new) == [
        Change("x_ptr", "*float32, ÷16", "*float32", "the address is no longer divisible by 16 bytes"),
        Change("num_warps", "4 by default", "8", "another num_warps"),
    ]
    assert differences(old, old) == []


def test_options_are_told_as_the_key_holds_them():
    same = "the same num_warps, now written at the launch: the key holds what is written"
    assert differences(variant("a", n="int32"), variant("b", {"num_warps": 4}, n="int32")) == [
        Change("num_warps", "4 by default", "4", same)
    ]
    one, other = variant("a", {"num_warps": 8, "num_stages": 2}), variant("b", {"num_stages": 2, "num_warps": 8})
    assert [change.why for change in differences(one, other)] == ["the same options, written in another order"]


def test_nearest_is_the_latest_of_the_least_different():
    known = [variant("a", n="= 1", m="int32"), variant("b", n="int32", m="= 1"), variant("c", n="int64", m="int64")]
    assert nearest(variant("d", n="int32", m="int32"), known) is known[1]
    assert nearest(variant("d", n="int64", m="int32"), known) is known[2]
    assert nearest(variant("d", n="int32"), []) is None
    known = [variant("a", x_ptr="*float32, ÷16"), variant("b", x_ptr="*float32")]
    assert nearest(variant("d", x_ptr="*float16, ÷16"), known) is known[0]  # one argument either way, and less of it


# ---- Sets


def test_a_set_of_variants():
    a, b, c = (variant(key, n=text) for key, text in (("a", "int32"), ("b", "= 1"), ("c", "int64")))
    trace, warm = Variants([a, b, c, b]), Variants([b, c])
    assert len(trace) == 3 and list(trace - warm) == [a] and not warm - trace and Variants([c, b]) == warm != trace
    assert a in trace and a not in warm and "a" not in trace
    assert list(warm | [a]) == [b, c, a] and list(trace - [a, b]) == [c]
    assert not Variants() and repr(Variants()) == "no variant [compiled]"
    with pytest.raises(WrongType, match="must be Variants, or a list of Variant; got 3"):
        trace - 3


def test_a_set_says_what_varies():
    made = Variants([variant("a", x_ptr="*float32", n="int32"), variant("b", {"num_warps": 8}, x_ptr="*float32", n="= 1")])
    assert made.arguments_that_vary == {"n": ["int32", "= 1"], "num_warps": ["4 by default", "8"]}
    assert repr(made) == "2 variants of scale_kernel: n: int32 | = 1; num_warps: 4 by default | 8 [compiled]"
    page = made._repr_html_()
    assert ">n</th>" in page and "<td" in page and "compiled</span>" in page and "launches" not in page


def test_variants_of_another_kernel_or_target_are_others():
    one = variant("a", n="int32")
    assert one != Variant("scale_kernel", {"n": "int32"}, {}, "a", owner="other.scale_kernel for cuda:90")
    assert one != Variant("add_kernel", {"n": "int32"}, {}, "a")


# ---- What launches need


def test_launches_in_every_form(x):
    made = kit.build(triton.jit(takes_all), x, 3, 3, 1.0, True, None, (1,), BLOCK=64, num_warps=2)
    for launches in (
        [(x, n) for n in (0, 1, 2, 16)],
        [{"n": n} for n in (0, 1, 2, 16)],
        [((x, n), {"BLOCK": 64}) for n in (0, 1, 2, 16)],
        [((x, n, 3, 5.0, False, None, (1,), 64), {"num_warps": 2}) for n in (0, 1, 2, 16)],
    ):
        found = made.variants(launches)
        assert [one.launches for one in found] == [(0, 3), (1,), (2,)], launches
        assert found.arguments_that_vary == {"n": ["int32, ÷16", "= 1", "int32"]}
        assert all(one.options == {"num_warps": 2, "num_stages": 3} for one in found)
    assert repr(found) == "3 variants of takes_all for 4 launches: n: int32, ÷16 | = 1 | int32 [compiled]"
    assert "0, 3</td>" in found._repr_html_()
    assert len(made.variants([{}, (), ((), {})])) == 1 and not made.variants([])


def test_options_count_in_the_order_of_the_launch(x):
    kernel = triton.jit(takes_annotated)
    found = kit.build(triton.jit(takes_annotated), x, 3, 2.0, num_warps=2).variants([{}, {"num_stages": 1, "num_warps": 2}])
    kernel[(1,)](x, 3, 2.0, num_warps=2)
    kernel[(1,)](x, 3, 2.0, num_stages=1, num_warps=2)
    assert {one.key for one in found} == in_memory(kernel) and len(found) == 2


def test_stand_ins_have_the_classes_of_tensors(x):
    made = kit.build(triton.jit(takes_annotated), x[1:], 3, 2.0)
    alike = made.variants([{}, (x[1:],), (kit.ghost((4,), torch.float32, offset=1),)])
    assert len(alike) == 1 and next(iter(alike)).classes["x_ptr"] == "*float32"
    aligned = made.variants([(x,), (torch.float32,), (kit.ghost((4,), torch.float32),)])
    assert len(aligned) == 1 and not alike - (aligned | alike) and len(aligned - alike) == 1


def test_a_build_holds_no_tensor():
    import gc
    import weakref

    y = torch.zeros(64, device=gpu.device)
    made, gone = kit.build(triton.jit(takes_annotated), y, 3, 2.0), weakref.ref(y)
    del y
    gc.collect()
    assert gone() is None and made.variants([{}])


def test_a_launch_that_cannot_be_used_is_named(x):
    made = kit.build(triton.jit(takes_annotated), x, 3, 2.0)
    for launches, sentence in (
        (3, "variants: launches must be a list of launches; got 3"),
        ({"n": 1}, "variants: launches must be a list of launches; got {'n': 1}"),
        ([(x, 1), 7], "variants: launch 1 must be a tuple of arguments, a dict of those that differ, or a pair of both; got 7"),
        ([{"m": 7}], "variants: launch 0: takes_annotated takes no m"),
        ([(x, 1, 2.0, 16, 5)], "variants: launch 0: takes_annotated takes 4 arguments"),
    ):
        with pytest.raises(BadInput) as error:
            made.variants(launches)
        assert str(error.value).startswith(sentence)


JITS = [
    {},
    {"do_not_specialize": ["n", "maybe"]},
    {"do_not_specialize_on_alignment": ["x_ptr", "n", "m"]},
    {"do_not_specialize": ["x_ptr"], "do_not_specialize_on_alignment": ["n"]},
]


@pytest.mark.parametrize("jit", JITS, ids=str)
def test_the_keys_are_those_that_triton_compiles(x, jit, tmp_path, monkeypatch):
    """Random launches: the keys computed beforehand are the keys of Triton's cache afterwards, one for one."""
    rng = random.Random(len(str(jit)))
    half = x.half()
    ints = [0, 1, 2, 16, 17, -32, 2**31 - 1, 2**31, 2**40, 2**63]
    pools = [
        [x, x[1:], half],
        ints,
        [1, 3, 16],
        [1.0, 2.5, 1, 7],
        [True, False],
        [None, 1, 3, x, True],
        [(1, 16), (3, x), ()],
        [1, True, 32],
    ]
    options = [{}, {}, {"num_warps": 4}, {"num_warps": 1, "num_stages": 2}, {"num_stages": 2, "num_warps": 1}]
    base = [pool[0] for pool in pools]
    launches = []
    for _ in range(30):
        values = [rng.choice(pool) if rng.random() < 0.35 else first for pool, first in zip(pools, base, strict=True)]
        launches.append((tuple(values), rng.choice(options)))
    built = kit.build(triton.jit(takes_all, **jit), *base)
    found = built.variants(launches)
    kernel = triton.jit(takes_all, **jit)
    for values, written in launches:
        kernel[(1,)](*values, **written)
    assert {one.key for one in found} == in_memory(kernel) and len(found) == len(in_memory(kernel)) > 5
    assert sorted(i for one in found for i in one.launches) == list(range(len(launches)))


def test_functions_count_by_their_source(x):
    other = triton.jit(double.fn.__class__(double.fn.__code__, double.fn.__globals__, "double"))
    found = kit.build(applies, x, 3, double, tl.float32).variants([{}, {"FN": other}, {"DTYPE": tl.int32}])
    for values in ((double, tl.float32), (other, tl.float32), (double, tl.int32)):
        applies[(1,)](x, 3, *values)
    assert {one.key for one in found} == in_memory(applies)
