"""kit.numbers: the hard inputs are what their names say, the bounds hold for every order and catch what is past them."""

import math

import pytest
import torch

from kit.errors import BadInput, WrongType
from kit.numbers import close, hard_inputs, proves, roundoff, tolerance

DTYPES = (torch.float16, torch.bfloat16, torch.float32, torch.float64)


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("shape", [(3, 64), (2, 1), (1,), (5, 0), (2, 3, 7), (0, 4)])
def test_every_input_has_the_shape_the_dtype_and_a_reason(dtype, shape):
    made = hard_inputs(shape, dtype, "cpu")
    assert len(made) == 13 and {tuple(x.shape) for x in made.values()} == {shape} and {x.dtype for x in made.values()} == {dtype}
    assert all(made.why[name] for name in made)
    assert repr(made) and "<table>" in made._repr_html_()


@pytest.mark.parametrize("dtype", DTYPES)
def test_the_inputs_are_what_their_names_say(dtype):
    made = hard_inputs((4, 256), dtype, "cpu")
    wide = {name: x.double() for name, x in made.items()}
    info = torch.finfo(dtype)
    assert (wide["zeros"] == 0).all() and (wide["all equal"] == wide["all equal"][0, 0]).all()
    assert ((wide["one outlier"].abs() > 5e3).sum(-1) == 1).all()
    for name, mean in (("mean 1e4", 1e4), ("mean -1e4", -1e4)):
        assert ((wide[name].mean(-1) - mean).abs() < 100).all() and (wide[name].std(-1) > 0).all()
    assert (wide["scale 1e-6"].abs() < 1e-5).all() and (wide["scale 1e-6"] != 0).any()
    assert (wide["subnormal"].abs() <= info.tiny).all() and (wide["subnormal"] != 0).any(dim=-1).all()
    assert (wide["near max"].abs() >= info.max * 0.49).all() and wide["near max"].isfinite().all()
    total, size = wide["cancelling"].sum(-1), wide["cancelling"].abs().sum(-1)
    assert (total.abs() < 1e-3 * size).all()
    assert (wide["half -inf"].isinf().sum(-1) == 128).all() and (wide["all -inf"] == -math.inf).all()
    assert ((wide["one +inf"] == math.inf).sum(-1) == 1).all()
    rows = [name for name, x in wide.items() if name not in ("zeros", "all equal", "all -inf")]
    assert all(not torch.equal(wide[name][0], wide[name][1]) for name in rows)


def test_the_same_seed_gives_the_same_inputs():
    one, two, other = (hard_inputs((2, 8), torch.float32, "cpu", seed=seed) for seed in (1, 1, 2))
    assert all(torch.equal(one[name], two[name]) for name in one)
    assert not torch.equal(one["normal"], other["normal"])


def test_but_and_only():
    made = hard_inputs(4, torch.float32, "cpu")
    assert set(made) - set(made.but("one +inf", "zeros")) == {"one +inf", "zeros"}
    assert list(made.only("zeros", "normal")) == ["zeros", "normal"] and made.only("zeros").why["zeros"]
    for wrong in (made.but, made.only):
        with pytest.raises(BadInput, match="there is no hard input 'nan'"):
            wrong("nan")


@pytest.mark.parametrize("shape, dtype", [((2, 2), torch.int32), ((), torch.float32), ((-1,), torch.float32), ("8", torch.float32)])
def test_what_cannot_be_made_is_refused(shape, dtype):
    with pytest.raises(BadInput, match="hard_inputs: "):
        hard_inputs(shape, dtype, "cpu")


@pytest.mark.parametrize("dtype, power", list(zip(DTYPES, (-11, -8, -24, -53), strict=True)))
def test_roundoff_is_half_a_step_at_one(dtype, power):
    assert roundoff(dtype) == 2.0**power
    one = torch.ones(1, dtype=torch.float64)
    assert (one + 0.9 * 2.0**power).to(dtype).item() == 1 and (one + 1.1 * 2.0**power).to(dtype).item() > 1


@pytest.mark.parametrize("acc", [torch.float16, torch.bfloat16, torch.float32])
@pytest.mark.parametrize("length", [1, 2, 100, 200])
def test_a_running_sum_is_within_its_bound(acc, length):
    """The worst order of all, on the hard inputs that stay finite."""
    inputs = hard_inputs((3, length), acc, "cpu", seed=length).but("one +inf", "half -inf", "all -inf", "near max")
    for name, x in inputs.items():
        total = torch.zeros(3, dtype=acc)
        for i in range(length):
            total = total + x[:, i]
        if total.isinf().any():
            continue  # past the type's largest: no bound is promised
        judged = close(total, x.double().sum(-1), within=tolerance(acc, length, acc, roundings=0), scale=x.double().abs().sum(-1))
        assert judged, f"{name}: {judged}"


def test_a_stalled_sum_is_past_the_bound_of_float32_and_has_none_of_its_own():
    stalled, want = torch.tensor([2048.0], dtype=torch.float16), torch.tensor([4096.0], dtype=torch.float64)
    judged = close(stalled, want, within=tolerance(torch.float16, 4096))
    assert not judged and judged.error > 100 and judged.index == (0,) and (judged.got, judged.want) == (2048.0, 4096.0)
    none = tolerance(torch.float16, 4096, torch.float16)
    assert none.summed == math.inf and "no bound" in repr(none) and close(stalled, want, within=none)
    assert not close(torch.tensor([math.nan]), want, within=none)


def test_the_bound_follows_length_and_dtype():
    bounds = [tolerance(torch.float32, n).summed for n in (1, 100, 10_000)]
    assert bounds[0] < bounds[1] < bounds[2] and bounds[2] == pytest.approx(10_007 * 2**-24, rel=1e-2)
    assert tolerance(torch.float16, 10).rounded == 2**-11 and tolerance(torch.float16, 10).absolute == 2**-25
    assert tolerance(torch.float32, 10).absolute == 2.0**-126
    assert tolerance(torch.float32, 16, terms=2**-9).summed > 2**-9


@pytest.mark.parametrize("got, want, ok", [
    (math.inf, math.inf, True), (math.inf, -math.inf, False), (math.nan, math.nan, True), (math.nan, 1.0, False), (1.0, math.nan, False),
    (math.inf, 1e5, True), (65504.0, 1e5, False), (65504.0, 65519.0, True), (math.inf, 1.0, False), (0.0, 1e-9, True), (0.0, 1e-6, False),
    (1.0, 1.0004, True), (1.0, 1.01, False),
])  # fmt: skip
def test_close_of_one_float16(got, want, ok):
    judged = close(torch.tensor([got], dtype=torch.float16), torch.tensor([want], dtype=torch.float64), within=tolerance(torch.float16, 1))
    assert bool(judged) is ok and (judged.error <= 1) is ok and ("past" in repr(judged)) is not ok


def test_close_names_the_worst_element():
    want = torch.ones(3, 4, dtype=torch.float64)
    got = want.float()
    got[1, 2], got[2, 0] = 1.5, 1.1
    judged = close(got, want, within=tolerance(torch.float32, 4))
    assert judged.index == (1, 2) and judged.wrong == 2 and judged.of == 12 and "(1, 2)" in repr(judged)
    assert close(got[:0], want[:0], within=tolerance(torch.float32, 4)) and close(torch.ones(()), torch.ones((), dtype=torch.float64),
                                                                                  within=tolerance(torch.float32, 1))  # fmt: skip


def test_scale_is_what_was_added_up():
    got, want = torch.tensor([1.0]), torch.tensor([0.0], dtype=torch.float64)
    assert not close(got, want, within=tolerance(torch.float32, 100))
    assert close(got, want, within=tolerance(torch.float32, 100), scale=1e6)
    assert close(got, want, within=tolerance(torch.float32, 100), scale=torch.tensor([1e6]))


@pytest.mark.parametrize("call, words", [
    (lambda x, t: close(x, x, within=t), "want must be computed in float64"),
    (lambda x, t: close(x, x.double()[:1], within=t), "one shape"),
    (lambda x, t: close(x, x.double(), within=1e-3), "within must be a Tolerance"),
    (lambda x, t: close(x.int(), x.double(), within=t), "got's dtype must be a float dtype"),
    (lambda x, t: close([1.0], x.double(), within=t), "got must be a tensor"),
    (lambda x, t: tolerance(torch.int8, 4), "dtype must be a float dtype"),
    (lambda x, t: tolerance("float16", 4), "dtype must be a float dtype"),
    (lambda x, t: tolerance(torch.float16, -1), "length must be a whole number"),
    (lambda x, t: tolerance(torch.float16, 4, terms=2), "terms must be"),
    (lambda x, t: proves(1e-3, x.double()), "test must be a Tolerance or a function"),
    (lambda x, t: proves(t, x), "want must be computed in float64"),
])  # fmt: skip
def test_bad_input_is_told(call, words):
    with pytest.raises((BadInput, WrongType), match=words):
        call(torch.ones(2), tolerance(torch.float32, 2))


def test_a_tolerance_that_is_wider_than_the_output_proves_nothing():
    """A softmax of 4,096 in elements of 1/4096: one part in a thousand, absolute, passes zeros."""
    x = torch.randn(2, 4096, generator=torch.Generator().manual_seed(0), dtype=torch.float64)
    want = x.softmax(-1)
    loose = proves(lambda answer: torch.allclose(answer, want, rtol=0, atol=1e-2), want, x)
    assert not loose and loose.passed == ("zeros", "off by one") and loose.failed == ("a copy of the input",) and "zeros" in repr(loose)
    tight = proves(tolerance(torch.float16, 4096, roundings=200), want, x)
    assert tight and tight.failed == ("zeros", "a copy of the input", "off by one") and "as they must" in repr(tight)


def test_an_input_whose_wrong_answers_are_right_proves_nothing():
    want = torch.zeros(3, dtype=torch.float64)
    proof = proves(tolerance(torch.float32, 8), want, torch.zeros(3))
    assert not proof and proof.equal == ("zeros", "a copy of the input", "off by one") and "nothing" in repr(proof)


def test_off_by_one_of_sums_and_of_one_number():
    rows = torch.tensor([[1.0], [2.0]], dtype=torch.float64)
    assert proves(tolerance(torch.float32, 8), rows).failed == ("zeros", "off by one")
    assert proves(tolerance(torch.float32, 8), rows[:1]).failed == ("zeros",)
    more = proves(tolerance(torch.float32, 8), rows, also={"twice": 2 * rows, "itself": rows})
    assert more.failed == ("zeros", "off by one", "twice") and more.equal == ("itself",)
