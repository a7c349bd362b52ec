# RUN: %python -m pytest -q %s
# REQUIRES: torch
"""Every op of aten that is a forward pass of a batch norm on CPUs, under enable()."""

import gc
import os
import sys
import warnings
import weakref

import pytest
import torch
from torch import nn

sys.path.insert(0, os.path.join(os.path.dirname(__file__), "Inputs"))
import torch_calls
import torch_reference as reference

import bngrad.torch

aten = torch.ops.aten
REPLACED = {"native_batch_norm", "native_batch_norm.out", "_native_batch_norm_legit", "_native_batch_norm_legit.out",
            "_native_batch_norm_legit.no_stats", "_native_batch_norm_legit.no_stats_out", "_batch_norm_with_update",
            "_batch_norm_with_update.out", "_batch_norm_no_update", "batch_norm_update_stats"}
CONFIGURATIONS = 60 if os.environ.get("BNGRAD_LONG_TESTS") == "1" else 15


@pytest.fixture
def calls(monkeypatch):
    return torch_calls.record(monkeypatch, *REPLACED)


def test_what_is_replaced():
    assert {each.op for each in sys.modules["bngrad.torch._override"]._passes["forward", "cpu"].originals} == {
        "aten::" + name for name in REPLACED}


class Variant:
    """An op, which `run` calls with the arguments of native_batch_norm; it returns the results of that op, and the
    running statistics. `given` are the results of an op that has them as arguments."""

    def __init__(self, run, is_training=None, has_running=None):
        self.run, self.is_training, self.has_running = run, is_training, has_running

    def make(self, seed):
        for number in range(seed * 1000, (seed + 1) * 1000):
            call = reference.make_forward(number, self.is_training)
            if self.has_running is None or self.has_running == (call[3] is not None):
                return call


def without_reserve(results):
    output, mean, inv_std, reserve, *rest = results
    assert reserve.dtype == torch.uint8 and reserve.shape == (0,)
    return output, mean, inv_std, *rest


def given(call):
    """Results for the argument `out` and its neighbours."""
    data, weight, bias, mean, variance, is_training = call[:6]
    dtype = next((each.dtype for each in (weight, bias, mean, variance) if each is not None), data.dtype)
    size = data.shape[1] if is_training else 0
    return {"out": torch.full_like(data, 7), "save_mean": torch.full([size], 7.0, dtype=dtype),
            "save_invstd": torch.full([size], 7.0, dtype=dtype)}


NO_SPACE = {"reserve": torch.empty(0, dtype=torch.uint8)}
VARIANTS = {
    "native_batch_norm.out": Variant(lambda c, out: (aten.native_batch_norm.out(*c, **out), c[3:5])),
    "_native_batch_norm_legit": Variant(lambda c, _: (aten._native_batch_norm_legit(*c), c[3:5]), has_running=True),
    "_native_batch_norm_legit.out": Variant(lambda c, out: (aten._native_batch_norm_legit.out(*c, **out), c[3:5]),
                                            has_running=True),
    "_native_batch_norm_legit.no_stats": Variant(
        lambda c, _: (aten._native_batch_norm_legit.no_stats(*c[:3], *c[5:]), c[3:5]), True, False),
    "_native_batch_norm_legit.no_stats_out": Variant(
        lambda c, out: (aten._native_batch_norm_legit.no_stats_out(*c[:3], *c[5:], **out), c[3:5]), True, False),
    "_native_batch_norm_legit_functional": Variant(
        lambda c, _: (lambda *r: (r[:3], r[3:]))(*aten._native_batch_norm_legit_functional(*c)), has_running=True),
    "_native_batch_norm_legit_no_training": Variant(
        lambda c, _: (aten._native_batch_norm_legit_no_training(*c[:5], *c[6:]), c[3:5]), False, True),
    "_batch_norm_with_update": Variant(
        lambda c, _: (without_reserve(aten._batch_norm_with_update(*c[:5], *c[6:])), c[3:5]), True, True),
    "_batch_norm_with_update.out": Variant(
        lambda c, out: (without_reserve(aten._batch_norm_with_update.out(*c[:5], *c[6:], **out, **NO_SPACE)), c[3:5]),
        True, True),
    "_batch_norm_with_update_functional": Variant(
        lambda c, _: (lambda *r: (r[:3], r[3:]))(*without_reserve(aten._batch_norm_with_update_functional(
            *c[:5], *c[6:]))), True, True),
    "_batch_norm_no_update": Variant(
        lambda c, _: (without_reserve(aten._batch_norm_no_update(*c[:5], *c[6:])), c[3:5]), False),
}
# Loose: the errors of PyTorch's own results, unless it rounds the mean to 16 bits before it subtracts it.
TOLERANCE = {torch.float16: 1e-2, torch.bfloat16: 5e-2, torch.float32: 2e-3, torch.float64: 1e-9}


def copy(call):
    """Arguments with running statistics of their own."""
    return [each.clone() if place in (3, 4) and each is not None else each for place, each in enumerate(call)]


@pytest.mark.parametrize("name", VARIANTS)
def test_variants(name, calls):
    variant = VARIANTS[name]
    for seed in range(CONFIGURATIONS):
        call = variant.make(seed)
        before = copy(call)
        own, own_running = variant.run(copy(call), given(call))
        if "out" in name:  # PyTorch computes wrong values, or none, where input is not contiguous
            other = copy(call)
            for result, value in zip((*own, *own_running), (*aten.native_batch_norm(*other), *other[3:5])):
                if value is not None:
                    result.copy_(value)
        with bngrad.torch.enabled():
            results, running = variant.run(call := copy(call), out := given(call))
        reference.check_forward(before, results, running)
        if "functional" in name:  # the arguments do not change
            assert all(torch.equal(*pair) for pair in zip(call[3:5], before[3:5]))
        if "out" in name:
            assert all(result is each for result, each in zip(results, out.values()))
        for result, other in zip((*results, *running), (*own, *own_running)):
            if other is None:
                assert result is None
                continue
            assert (result.dtype, result.shape, result.stride()) == (other.dtype, other.shape, other.stride())
            if results[1].dtype.itemsize > 2:
                tolerance = TOLERANCE[other.dtype]
                torch.testing.assert_close(result, other, rtol=tolerance, atol=tolerance, equal_nan=True)
    assert not calls


def test_statistics_only(calls):
    for seed in range(4 * CONFIGURATIONS):
        data, *_, mean, variance, _, momentum, _ = reference.make_forward(seed, True)
        results = []
        for is_enabled in (False, True):
            running = copy((None, None, None, mean, variance))[3:5]
            with bngrad.torch.enabled(forward=is_enabled):
                results.append([*aten.batch_norm_update_stats(data, *running, momentum), *running])
        parameter_type = data.dtype if mean is None else mean.dtype
        names = ("mean", "variance", "running_mean", "running_variance")[:4 if mean is not None else 2]
        reference.ExpectedForward(data, running=(mean, variance), momentum=momentum, epsilon=1,
                                  parameter_type=parameter_type).check(**dict(zip(names, results[1])))
        for result, other in zip(*results):
            assert result is other is None or (result.dtype, result.shape) == (other.dtype, other.shape)
    assert not calls


def make_call(shape=(4, 3, 5, 6), is_training=True):
    generator = torch.Generator().manual_seed(5)
    mean, variance, scale = reference.make_parameters(generator, shape[1:2], torch.float32)
    return [reference.make_data(generator, shape, torch.float32), scale, mean.flip(0), mean, variance, is_training, 0.1,
            1e-5]


@pytest.mark.parametrize("is_training", [True, False])
@pytest.mark.parametrize("of_input", ["contiguous", "channels_last", "sliced"])
@pytest.mark.parametrize("of_output", ["contiguous", "channels_last", "permuted", "input"])
def test_layouts_of_given_results(is_training, of_input, of_output, calls):
    """The given output keeps its strides, and may be the input."""
    call, generator = make_call(is_training=is_training), torch.Generator().manual_seed(1)
    before = [each.clone() if isinstance(each, torch.Tensor) else each for each in call]
    call[0] = reference.lay_out(call[0], of_input, generator)
    out = given(call)
    out["out"] = call[0] if of_output == "input" else reference.lay_out(out["out"], of_output, generator)
    strides = out["out"].stride()
    with bngrad.torch.enabled():
        results = aten.native_batch_norm.out(*call, **out)
    assert results[0] is out["out"] and results[0].stride() == strides
    # Gaps in the output are left to PyTorch, which computes wrong values in training.
    has_gaps = of_input == "sliced" and of_output == "input"
    assert len(calls) == has_gaps
    if not has_gaps:
        reference.check_forward(before, results, call[3:5])


def test_given_results_that_pytorch_resizes_or_refuses(calls):
    wrong = [{"out": torch.empty(0)}, {"out": torch.empty(4, 3, 6, 6)}, {"save_mean": torch.empty(0)},
             {"save_invstd": torch.empty(7)}, {"out": torch.empty(4, 3, 5, 6, dtype=torch.float64)},
             {"save_mean": torch.empty(3, dtype=torch.float64)}]
    for number, change in enumerate(wrong):
        outcomes = []
        for is_enabled in (False, True):
            call = copy(make_call())
            changed = {name: each.clone() for name, each in change.items()}
            with bngrad.torch.enabled(forward=is_enabled), warnings.catch_warnings(action="ignore"):
                try:
                    results = aten.native_batch_norm.out(*call, **given(call) | changed)
                    outcomes.append([*results, *call[3:5]])
                except Exception as error:
                    outcomes.append(str(error).split("\n")[0])
        if isinstance(outcomes[0], str):
            assert outcomes[0] == outcomes[1]
        else:
            assert all(torch.equal(*pair) for pair in zip(*outcomes))
        assert len(calls) == number + 1


@pytest.mark.parametrize("change", [
    {0: torch.zeros(0, 3, 4)}, {0: torch.zeros(4, 3, dtype=torch.int64)}, {1: torch.ones(4)},
    {1: torch.ones(3, dtype=torch.float64)}, {3: torch.zeros(2)}, {4: torch.ones(3, dtype=torch.float16)}])
@pytest.mark.parametrize("name", ["_native_batch_norm_legit", "_batch_norm_with_update", "batch_norm_update_stats"])
def test_what_is_not_covered_goes_to_pytorch(name, change, calls):
    if name == "batch_norm_update_stats":
        if 1 in change:
            return
        function = lambda call: aten.batch_norm_update_stats(call[0], *call[3:5], 0.1)
    else:
        function = lambda call: VARIANTS[name].run(call, {})[0]
    outcomes = []
    for is_enabled in (False, True):
        call = make_call((4, 3, 5))
        for place, value in change.items():
            call[place] = value
        try:
            with bngrad.torch.enabled(forward=is_enabled):
                outcomes.append([(each.dtype, each.shape) for each in function(copy(call))])
        except Exception as error:
            outcomes.append(str(error).split("\n")[0])
    assert outcomes[0] == outcomes[1]
    assert len(calls) == 1


def test_one_running_statistic(calls):
    data = torch.rand(4, 3, 5)
    for running in ((torch.zeros(3), None), (None, torch.ones(3))):
        results = []
        for is_enabled in (False, True):
            own = [None if each is None else each.clone() for each in running]
            with bngrad.torch.enabled(forward=is_enabled):
                results.append([*aten.batch_norm_update_stats(data, *own, 0.1), *own])
        assert all(one is other is None or torch.equal(one, other) for one, other in zip(*results))
    assert len(calls) == 2


@pytest.mark.parametrize("name", [*VARIANTS, "batch_norm_update_stats"])
def test_arguments_are_freed(name):
    """Also when PyTorch's kernel computes."""

    def run(parameter_type):
        variant = VARIANTS.get(name)
        call = make_call(is_training=variant is None or variant.is_training is not False)
        call[3:5] = [each.to(parameter_type) for each in call[3:5]]
        if variant is None:
            results = lambda: aten.batch_norm_update_stats(call[0], *call[3:5], 0.1)
        else:
            results = lambda: variant.run(call, given(call))
        kept = [weakref.ref(each.untyped_storage()) for each in call[:5]]
        try:
            for _ in range(2):
                results()
        except RuntimeError:
            pass
        return kept

    with bngrad.torch.enabled():
        for parameter_type in (torch.float32, torch.float64):
            kept = run(parameter_type)
            gc.collect()
            assert all(each() is None for each in kept)


# Conventions of modules ------------------------------------------------------


def test_one_element_per_channel(calls):
    """PyTorch's error, and NaN as running variance in its op."""
    texts = []
    for is_enabled in (False, True):
        with bngrad.torch.enabled(forward=is_enabled), pytest.raises(ValueError) as caught:
            nn.BatchNorm1d(3)(torch.rand(1, 3))
        texts.append(str(caught.value))
    assert texts[0] == texts[1]
    call = make_call((1, 3, 1))
    own = aten._native_batch_norm_legit(*copy(call))
    with bngrad.torch.enabled():
        results = aten._native_batch_norm_legit(*call)
    assert call[4].isnan().all() and not call[3].isnan().any()
    for result, other in zip(results, own):
        torch.testing.assert_close(result, other)
    assert not calls


@pytest.mark.parametrize("is_training", [True, False])
def test_empty_batch(is_training):
    outcomes = []
    for is_enabled in (False, True):
        module = nn.BatchNorm2d(3).train(is_training)
        with bngrad.torch.enabled(forward=is_enabled):
            data = torch.rand(0, 3, 4, 5, requires_grad=True)
            output = module(data)
            output.sum().backward()
        outcomes.append((output, data.grad, module.weight.grad, module.running_mean, module.num_batches_tracked))
    for one, other in zip(*outcomes):
        assert one.shape == other.shape and torch.equal(one, other)


@pytest.mark.parametrize("is_training", [True, False])
@pytest.mark.parametrize("dtype", [torch.bfloat16, torch.float16])
@pytest.mark.parametrize("memory_format", [torch.contiguous_format, torch.channels_last])
def test_autocast(is_training, dtype, memory_format, monkeypatch):
    """Data of 16 bits, with parameters and statistics of f32."""
    calls = torch_calls.record(monkeypatch, *REPLACED, "native_batch_norm_backward", "batch_norm_backward")
    torch.manual_seed(0)
    model = nn.Sequential(nn.Conv2d(3, 8, 3), nn.BatchNorm2d(8)).to(memory_format=memory_format).train(is_training)
    data = torch.randn(6, 3, 12, 12).to(memory_format=memory_format)
    outcomes = []
    for is_enabled in (False, True):
        model[1].reset_running_stats()
        model.zero_grad()
        with bngrad.torch.enabled(forward=is_enabled), torch.autocast("cpu", dtype):
            output = model(data)
            output.float().square().mean().backward()
        assert output.dtype == dtype and output.is_contiguous(memory_format=memory_format)
        outcomes.append([output, model[1].running_mean.clone(), model[1].running_var.clone(),
                         *(each.grad.clone() for each in model.parameters())])
    for one, other in zip(*outcomes):
        torch.testing.assert_close(one, other, rtol=2e-2, atol=2e-2)
    assert not calls


def test_exported_training(calls):
    """A graph without mutations has the functional op, whose kernel calls a covered one."""
    torch.manual_seed(0)
    model, data = nn.Sequential(nn.Conv2d(3, 4, 3), nn.BatchNorm2d(4)), torch.randn(5, 3, 7, 7)
    exported = torch.export.export(model, (data,)).run_decompositions({})
    assert "_native_batch_norm_legit_functional" in str(exported.graph)
    module = exported.module()
    with bngrad.torch.enabled():
        output = module(data)
    torch.testing.assert_close(output, model(data))
    assert not calls


def test_gradients_of_the_op_with_update(monkeypatch):
    """Its gradient is aten::batch_norm_backward."""
    calls = torch_calls.record(monkeypatch, *REPLACED, "batch_norm_backward")
    data = [each.double() for each in make_call((3, 2, 4))[:5]]
    leaves = [each.clone().requires_grad_() for each in data[:3]]
    function = lambda *leaves: aten._batch_norm_with_update(*leaves, *(each.clone() for each in data[3:]), 0.1, 1e-3)[0]
    expected = torch.autograd.grad(function(*leaves).pow(3).sum(), leaves)
    with bngrad.torch.enabled():
        results = torch.autograd.grad(function(*leaves).pow(3).sum(), leaves)
        assert torch.autograd.gradcheck(function, leaves)
        assert torch.autograd.gradgradcheck(function, leaves)
    for result, other in zip(results, expected):
        torch.testing.assert_close(result, other, rtol=1e-10, atol=1e-10)
    assert not calls


if __name__ == "__main__":
    sys.exit(pytest.main([__file__, "-q"]))
