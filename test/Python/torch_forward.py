# RUN: %python -m pytest -q %s
# REQUIRES: torch
"""The forward pass under enable(): values, running statistics, layouts, what goes to PyTorch's own kernel."""

import os
import random
import sys

import numpy as np
import pytest
import torch
from torch import nn
from torch.nn import functional

sys.path.insert(0, os.path.join(os.path.dirname(__file__), "Inputs"))
import torch_calls
import torch_reference as reference

import bngrad.torch

native = torch.ops.aten.native_batch_norm.default
CONFIGURATIONS = 600 if os.environ.get("BNGRAD_LONG_TESTS") == "1" else 150
EXACT = reference.EXACT


@pytest.fixture
def calls(monkeypatch):
    return torch_calls.record(monkeypatch, "native_batch_norm")


class Expected:
    """The exact results of aten::native_batch_norm, and their bounds (docs/numerics.md, section 3)."""

    def __init__(self, input, weight, bias, mean, variance, is_training, momentum, epsilon):
        dims = tuple(d for d in range(input.dim()) if d != 1)
        self.parameter_type = next((t.dtype for t in (weight, bias, mean, variance) if t is not None), input.dtype)
        self.input_type = input.dtype
        unit = reference.UNIT_ROUNDOFF[torch.float64 if input.dtype == torch.float64 else torch.float32]
        spread = lambda value: np.expand_dims(value, dims)
        x = reference.to_exact(input)
        count = input.numel() // input.shape[1]
        self.grown = 4 * unit * (4 + np.log2(count + 1))
        scale = np.ones(input.shape[1], EXACT) if weight is None else reference.to_exact(weight)
        offset = np.zeros(input.shape[1], EXACT) if bias is None else reference.to_exact(bias)
        self.save = self.running = None
        if is_training:
            m = x.mean(dims)
            m = m + (x - spread(m)).mean(dims)
            v = ((x - spread(m))**2).mean(dims)
            error_of_mean = self.grown * np.sqrt(m**2 + v)
            spreading = (np.sqrt(12 * v) + 2 * error_of_mean)**2
            r = 1 / np.sqrt(v + EXACT(epsilon))
            relative = 1 + spreading / (v + EXACT(epsilon))
            self.save = (m, self.grown * np.sqrt(spreading) + unit * abs(m)), (r, self.grown * r * relative)
            if mean is not None:
                unbiased = v * count / EXACT(max(count - 1, 1)) if count > 1 else np.full_like(v, np.nan)
                factor = EXACT(count) / max(count - 1, 1)
                self.running = [((1 - EXACT(momentum)) * reference.to_exact(old) + EXACT(momentum) * new,
                                 8 * unit * (abs(reference.to_exact(old)) + abs(new)) + momentum * error)
                                for old, new, error in ((mean, m, self.save[0][1]),
                                                        (variance, unbiased, factor * self.grown * spreading))]
            extra = np.sqrt(spreading) + unit * abs(m)
        else:
            m, v = reference.to_exact(mean), reference.to_exact(variance)
            r = 1 / np.sqrt(v + EXACT(epsilon))
            relative, extra = 1, 0
        centered = x - spread(m)
        self.output = centered * spread(scale * r) + spread(offset)
        self.error = self.grown * (spread(abs(scale) * r) * (abs(centered) * spread(relative) + spread(extra))
                                   + abs(spread(offset))) if is_training else (
            self.grown * (abs(centered * spread(scale * r)) + abs(spread(offset))))

    def check(self, output, mean, inv_std, running):
        close(output, self.output, self.error, self.input_type)
        if self.save is None:
            assert mean.shape == inv_std.shape == (0,) and mean.dtype == inv_std.dtype == self.parameter_type
        else:
            for got, (value, error) in zip((mean, inv_std), self.save):
                close(got, value, error, self.parameter_type)
        if self.running:
            for got, (value, error) in zip(running, self.running):
                close(got, value, error, self.parameter_type)


def close(got, value, error, dtype):
    assert got.dtype == dtype and got.shape == value.shape
    bound = error + reference.UNIT_ROUNDOFF[dtype] * (abs(value) + error) + EXACT(reference.SMALLEST[dtype])
    got = reference.to_exact(got)
    assert ((abs(got - value) <= bound) | (np.isnan(got) & np.isnan(value))).all()


def make_call(seed):
    choose = random.Random(seed)
    generator = torch.Generator().manual_seed(seed)
    shape = [choose.choice([1, 2, 3, 5, 8, 17, 33]) for _ in range(choose.randint(2, 5))]
    if choose.random() < 0.1:
        shape[choose.randrange(len(shape))] = 700
    while torch.Size(shape).numel() > 50000:
        shape[shape.index(max(shape))] //= 2
    dtype = choose.choice(reference.DTYPES)
    parameter_type = reference.parameter_type_of(dtype, choose)
    is_training = choose.random() < 0.6
    # One element per channel has the variance 0, with which inv_std has no bound.
    if is_training and torch.Size(shape).numel() == shape[1]:
        shape[0] += 1
    data = reference.make_data(generator, shape, dtype, offset=choose.choice([0.3, -40, 3000 if dtype.itemsize > 2 else 5]))
    data = reference.lay_out(data, choose.choice([each for each in reference.LAYOUTS if each != "expanded"]), generator)
    mean, variance, scale = reference.make_parameters(generator, shape[1:2], parameter_type)
    bias = mean.flip(0) + 0.25
    weight, bias = choose.choice([(scale, bias), (scale, None), (None, bias), (None, None)])
    running = (mean, variance) if not is_training or choose.random() < 0.7 else (None, None)
    return data, weight, bias, *running, is_training, choose.choice([0.1, 0.3, 1.0, 0.0]), choose.choice([1e-5, 1e-3])


def run(call, **options):
    """Results, and new running statistics."""
    call = [each.clone() if place in (3, 4) and each is not None else each for place, each in enumerate(call)]
    with bngrad.torch.enabled(**options):
        results = native(*call)
    return *results, call[3:5]


def test_random_configurations(calls):
    for seed in range(CONFIGURATIONS):
        call = make_call(seed)
        *results, running = run(call)
        Expected(*call).check(*results, running)
        output = native(*[each.clone() if isinstance(each, torch.Tensor) else each for each in call])[0]
        assert output.stride() == results[0].stride()
    assert not calls


@pytest.mark.parametrize("shape, strides", [
    ((1, 33, 17, 1), (33, 1, 33, 1)), ((2, 3, 4, 1), (12, 1, 3, 1)), ((2, 3, 4, 1), (12, 1, 3, 3)),
    ((2, 3, 1, 4), (12, 1, 1, 3)), ((2, 3, 1, 1), (3, 1, 1, 1)), ((2, 3, 1, 1), (3, 1, 3, 3)),
    ((1, 3, 4, 5), (7, 1, 15, 3)), ((2, 1, 4, 5), (20, 1, 5, 1)), ((2, 1, 4, 5), (20, 20, 5, 1)),
    ((2, 3, 1, 4, 1), (12, 1, 1, 3, 1)), ((1, 1, 4, 5), (1, 1, 5, 1)), ((2, 3, 4, 1), (24, 2, 6, 1)),
    ((1, 3, 2, 2), (99, 1, 6, 3)), ((1, 3, 1, 2), (3, 1, 1, 3)), ((4, 3, 4, 6), (90, 1, 18, 3))])
def test_strides(shape, strides):
    """Those of PyTorch's results, also where dims of one element make input's ambiguous."""
    elements = 1 + sum((size - 1) * stride for size, stride in zip(shape, strides))
    input, ones = torch.rand(elements).as_strided(shape, strides), torch.ones(shape[1])
    apart = torch.ones(2 * shape[1])[::2]
    gradient = lambda: torch.ops.aten.native_batch_norm_backward(input, input, None, ones, ones, ones, ones, True, 1e-5,
                                                                 [True] * 3)[0]
    for function in (lambda: native(input, None, None, None, None, True, 0.1, 1e-5)[0],
                     lambda: native(input, None, None, ones, ones, False, 0.1, 1e-5)[0],
                     lambda: native(input, apart, None, None, None, True, 0.1, 1e-5)[0],
                     lambda: native(input, None, None, apart, ones, False, 0.1, 1e-5)[0], gradient):
        expected = function()
        with bngrad.torch.enabled():
            assert function().stride() == expected.stride()


def test_equal_elements():
    """The output is the bias, exactly; PyTorch's own is not."""
    for value in (0.1, 3.3e4, -7e-5):
        bias = torch.tensor([0.5, -2.0, 7.25])
        output, mean, inv_std, _ = run((torch.full((4, 3, 9, 9), value), None, bias, None, None, True, 0.1, 1e-5))
        assert torch.equal(output, bias.view(3, 1, 1).expand_as(output))
        assert torch.equal(mean, torch.full((3,), value))


def test_forward_is_optional(calls):
    call = make_call(3)
    before = native(*call)
    with bngrad.torch.enabled(forward=False):
        assert all(torch.equal(one, other) for one, other in zip(before, native(*call)))
        with bngrad.torch.enabled():
            assert "Override.cpp" in torch._C._dispatch_dump("aten::native_batch_norm")
        assert "Override.cpp" not in torch._C._dispatch_dump("aten::native_batch_norm")
    assert not calls


@pytest.mark.parametrize("change", [
    {0: torch.zeros(0, 3, 4)}, {0: torch.zeros(4, 0)}, {0: torch.zeros(4, 3, dtype=torch.int64)},
    {1: torch.ones(4)}, {1: torch.ones(3, dtype=torch.float64)}, {2: torch.ones(3, dtype=torch.bfloat16)},
    {3: None}, {4: None}, {3: torch.zeros(2)}, {4: torch.ones(3, dtype=torch.float16)}])
@pytest.mark.parametrize("is_training", [True, False])
def test_what_is_not_covered_goes_to_pytorch(change, is_training, calls):
    call = [torch.rand(4, 3, 5), torch.ones(3), torch.ones(3), torch.zeros(3), torch.ones(3), is_training, 0.1, 1e-5]
    for place, value in change.items():
        call[place] = value
    outcomes = []
    for function in (lambda: native(*call), lambda: run(call)[:3]):
        try:
            # PyTorch reads what is in memory for some of these.
            outcomes.append([(each.dtype, each.shape) for each in function()])
        except Exception as error:
            # The stable ABI passes the text on, but not the type.
            assert not outcomes or type(error) is RuntimeError
            outcomes.append(str(error).split("\n")[0])
    assert outcomes[0] == outcomes[1]
    assert len(calls) == 1


@pytest.mark.parametrize("momentum", [0.2, None])
@pytest.mark.parametrize("memory_format", [torch.contiguous_format, torch.channels_last])
def test_modules(momentum, memory_format, calls):
    """Ten steps and an evaluation, with gradients, beside f64."""
    torch.manual_seed(0)
    make = lambda dtype: nn.Sequential(nn.Conv2d(3, 8, 3), nn.BatchNorm2d(8, momentum=momentum), nn.ReLU(),
                                       nn.Conv2d(8, 5, 3), nn.BatchNorm2d(5, momentum=momentum)).to(dtype)
    exact = make(torch.float64)
    model = make(torch.float32)
    model.load_state_dict(exact.state_dict())
    exact.load_state_dict(model.state_dict())
    model = model.to(memory_format=memory_format)
    for step in range(10):
        x = torch.randn(6, 3, 12, 12, generator=torch.Generator().manual_seed(step)).to(memory_format=memory_format)
        exact(x.double()).square().mean().backward()
        with bngrad.torch.enabled():
            y = model(x)
            y.square().mean().backward()
            assert y.is_contiguous(memory_format=memory_format)
    for one, other in zip((*model.parameters(), *model.buffers()), (*exact.parameters(), *exact.buffers())):
        torch.testing.assert_close(one.double(), other.double(), rtol=1e-4, atol=1e-5)
    for one, other in zip(model.parameters(), exact.parameters()):
        torch.testing.assert_close(one.grad.double(), other.grad, rtol=1e-3, atol=1e-5)
    with bngrad.torch.enabled(), torch.no_grad():
        torch.testing.assert_close(model.eval()(x).double(), exact.eval()(x.double()), rtol=1e-4, atol=1e-4)
    assert not calls


@pytest.mark.parametrize("is_training", [True, False])
def test_derivatives(is_training):
    generator = torch.Generator().manual_seed(2)
    data = [torch.rand(shape, generator=generator, dtype=torch.float64).requires_grad_() for shape in ((3, 2, 4), (2,), (2,))]
    running = torch.zeros(2, dtype=torch.float64), torch.ones(2, dtype=torch.float64)
    function = lambda x, w, b: functional.batch_norm(x, *(each.clone() for each in running), w, b, is_training, 0.1, 1e-3)
    with bngrad.torch.enabled():
        assert torch.autograd.gradcheck(function, data)
        assert torch.autograd.gradgradcheck(function, data)


@pytest.mark.parametrize("shape", [(8, 5, 33, 17), (2, 3, 200, 200), (64, 40), (3, 1, 100000)])
@pytest.mark.parametrize("layout", ["contiguous", "channels_last"])
@pytest.mark.parametrize("is_training", [True, False])
def test_threads_do_not_change_bits(shape, layout, is_training):
    generator = torch.Generator().manual_seed(1)
    data = reference.lay_out(reference.make_data(generator, shape, torch.float32), layout, generator)
    mean, variance, scale = reference.make_parameters(generator, shape[1:2], torch.float32)
    threads, results = torch.get_num_threads(), []
    try:
        for count in (1, 2, 3, 4):
            torch.set_num_threads(count)
            *found, running = run((data, scale, mean, mean, variance, is_training, 0.1, 1e-5))
            results.append((*found, *running))
    finally:
        torch.set_num_threads(threads)
    for other in results[1:]:
        assert all(torch.equal(a, b) for a, b in zip(results[0], other))


if __name__ == "__main__":
    sys.exit(pytest.main([__file__, "-q"]))
