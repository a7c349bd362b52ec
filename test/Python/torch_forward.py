# RUN: %python -m pytest -q %s
# REQUIRES: torch
"""The forward pass under enable(): values, running statistics, layouts, what goes to PyTorch's own kernel."""

import os
import sys

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


@pytest.fixture
def calls(monkeypatch):
    return torch_calls.record(monkeypatch, "native_batch_norm")


def run(call, **options):
    """Results, and new running statistics."""
    call = [each.clone() if place in (3, 4) and each is not None else each for place, each in enumerate(call)]
    with bngrad.torch.enabled(**options):
        results = native(*call)
    return *results, call[3:5]


def test_random_configurations(calls):
    for seed in range(CONFIGURATIONS):
        call = reference.make_forward(seed)
        *results, running = run(call)
        reference.check_forward(call, results, running)
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


@pytest.mark.parametrize("epsilon", [0.0, 1e-50])
def test_constant_channels_without_epsilon(epsilon):
    """PyTorch's inv_std of a channel without variance is not infinite."""
    call = [torch.rand(4, 2, 9), torch.ones(2), torch.ones(2), torch.zeros(2), torch.ones(2), True, 0.1, epsilon]
    call[0][:, 1] = 0.5
    expected = native(*[each.clone() if isinstance(each, torch.Tensor) else each for each in call])
    *results, _ = run(call)
    for one, other in zip(results, expected):
        torch.testing.assert_close(one, other)
    assert all(each.isfinite().all() for each in results[:2])


def test_forward_is_optional(calls):
    call = reference.make_forward(3)
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


class Block(nn.Module):
    """A residual block, as in ResNet-18."""

    def __init__(self, inputs, outputs, stride):
        super().__init__()
        self.body = nn.Sequential(nn.Conv2d(inputs, outputs, 3, stride, 1, bias=False), nn.BatchNorm2d(outputs),
                                  nn.ReLU(), nn.Conv2d(outputs, outputs, 3, 1, 1, bias=False), nn.BatchNorm2d(outputs))
        self.skip = nn.Identity() if stride == 1 else nn.Sequential(
            nn.Conv2d(inputs, outputs, 1, stride, bias=False), nn.BatchNorm2d(outputs))

    def forward(self, x):
        return functional.relu(self.body(x) + self.skip(x))


class ResNet(nn.Module):

    def __init__(self):
        super().__init__()
        self.body = nn.Sequential(nn.Conv2d(3, 8, 3, 1, 1, bias=False), nn.BatchNorm2d(8), nn.ReLU(), Block(8, 8, 1),
                                  Block(8, 16, 2), Block(16, 32, 2), nn.AdaptiveAvgPool2d(1), nn.Flatten())
        self.head = nn.Sequential(nn.BatchNorm1d(32), nn.Linear(32, 7))

    def forward(self, x):
        return self.head(self.body(x))


@pytest.mark.parametrize("memory_format", [torch.contiguous_format, torch.channels_last])
@pytest.mark.parametrize("is_autocast", [False, True])
def test_residual_network(memory_format, is_autocast, calls):
    """In ten steps, losses and gradients are as close to f64 as PyTorch's, and running statistics are the same."""
    torch.manual_seed(0)
    models = [ResNet() for _ in range(3)]
    exact, own, model = models[0].double(), *(each.to(memory_format=memory_format) for each in models[1:])
    optimizer = torch.optim.SGD(exact.parameters(), 0.05, momentum=0.9)
    errors = {}

    def train(model, images, labels):
        model.zero_grad()
        with torch.autocast("cpu", torch.bfloat16, is_autocast and model is not exact):
            loss = functional.cross_entropy(model(images), labels)
        loss.backward()
        return [loss.detach(), *(each.grad for each in model.parameters())]

    for step in range(10):
        # All have the same parameters, and running statistics of their own.
        with torch.no_grad():
            for each in zip(*(model.parameters() for model in models)):
                each[0].copy_(each[0].float())
                each[1].copy_(each[0]), each[2].copy_(each[0])
        generator = torch.Generator().manual_seed(step)
        images = torch.randn(16, 3, 20, 20, generator=generator).to(memory_format=memory_format) + 1
        labels = torch.randint(7, (16,), generator=generator)
        expected, of_pytorch = train(exact, images.double(), labels), train(own, images, labels)
        with bngrad.torch.enabled():
            results = train(model, images, labels)
        for name, values in (("own", of_pytorch), ("bngrad", results)):
            errors.setdefault(name, []).append([float((value.double() - other).norm() / (other.norm() + 1e-3))
                                                for value, other in zip(values, expected)])
        optimizer.step()
    own_error, error = (torch.tensor(errors[name]).square().mean(0).sqrt() for name in ("own", "bngrad"))
    smallest = 1e-2 if is_autocast else 1e-6
    assert (error <= 1.5 * own_error + smallest).all(), (error / own_error).max()
    assert error.mean() <= 1.1 * own_error.mean() + 0.1 * smallest
    rough = 2e-2 if is_autocast else 1e-5
    for one, other, third in zip(model.buffers(), own.buffers(), exact.buffers()):
        torch.testing.assert_close(one, other, rtol=rough, atol=rough)
        torch.testing.assert_close(one.double(), third.double(), rtol=rough, atol=rough)
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
