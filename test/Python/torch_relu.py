# With compiled kernels, and with the ops that take their place.
# RUN: env -u BNGRAD_COMPILER %python -m pytest -q %s
# RUN: %python -m pytest -q %s -k ops
# REQUIRES: torch, python-compiler
"""ReLUs within the batch norms of graphs of torch.compile: the ops, and the graphs that get them."""

import os
import re
import sys

import pytest
import torch
from torch import nn
from torch._inductor.utils import run_and_get_code
from torch.utils.checkpoint import checkpoint

sys.path.insert(0, os.path.join(os.path.dirname(__file__), "Inputs"))
import torch_reference as reference
from torch_relu_ops import MOST, check_ops, check_output, make, make_grad_output, select

import bngrad.torch

TRAINING, BACKWARD = "bngrad.batch_norm_training.default(", "bngrad.batch_norm_backward.default("
TRAINING_RELU, BACKWARD_RELU = "bngrad._batch_norm_training_relu.default(", "bngrad._batch_norm_backward_relu.default("
FORMATS = [torch.contiguous_format, torch.channels_last]


@pytest.fixture(autouse=True)
def fresh():
    torch._dynamo.reset()
    yield
    with pytest.raises(RuntimeError):
        bngrad.torch.disable()


# Ops --------------------------------------------------------------------------


@pytest.mark.parametrize("has_residual", [False, True])
@pytest.mark.parametrize("memory_format", FORMATS, ids=str)
@pytest.mark.parametrize("dtype", reference.DTYPES, ids=str)
def test_ops(dtype, memory_format, has_residual):
    check_ops(dtype, memory_format, has_residual)


def test_ops_without_parameters():
    input = make(3)
    output, mean, _, inv_std = torch.ops.bngrad._batch_norm_training_relu(input, None, None, None, 1e-5, MOST)
    check_output(output, None, reference.ExpectedForward(input, epsilon=1e-5, parameter_type=torch.float32))
    grad_output = make_grad_output(output)
    gradients = torch.ops.bngrad._batch_norm_backward_relu(grad_output, input, mean, inv_std, None, output,
                                                           [True, True, True, False])
    reference.Expected(select(grad_output, output), input, mean, inv_std=inv_std).check_gradients(*gradients[:3])


def test_ops_report_errors():
    input, channels = make(4), torch.ones(6)
    with pytest.raises(RuntimeError, match="residual: expected dim 1 to have the size of dim 1 of input, 6, got 5"):
        torch.ops.bngrad._batch_norm_training_relu(input, None, None, make(4, (4, 5, 9, 7)), 1e-5, MOST)
    with pytest.raises(RuntimeError, match="residual: expected the dtype of input, f32, got f16"):
        torch.ops.bngrad._batch_norm_training_relu(input, None, None, input.half(), 1e-5, MOST)
    with pytest.raises(RuntimeError, match="expected grad_input, grad_scale or grad_offset to be wanted, got none"):
        torch.ops.bngrad._batch_norm_backward_relu(input, input, channels, channels, None, input,
                                                   [False, False, False, True])


# Graphs -----------------------------------------------------------------------


class Block(nn.Module):
    """ReLU(BN(x)), or ReLU(BN(x) + z)."""

    def __init__(self, **options):
        super().__init__()
        self.norm = nn.BatchNorm2d(6, **options)
        with torch.no_grad():
            for parameter, start in ((self.norm.weight, 0.5), (self.norm.bias, -0.3)):
                parameter is None or parameter.copy_(torch.linspace(start, start + 1, 6))

    def forward(self, x, z=None):
        y = self.norm(x)
        return torch.relu(y if z is None else y + z)


def compile_and_run(module, inputs, **options):
    """The text of the graphs of a step, its output and the incoming gradient; gradients are in the tensors."""

    def step(function):
        output = function(*inputs)
        output.backward(make_grad_output(output))
        return output

    for tensor in (*inputs, *module.parameters()):
        tensor.requires_grad_()
        tensor.grad = None
    with bngrad.torch.enabled(compile=True):
        output, codes = run_and_get_code(step, torch.compile(module, fullgraph=True, **options))
    return "\n".join(codes), output


def count_calls(code):
    return [code.count(name) for name in (TRAINING_RELU, BACKWARD_RELU, TRAINING, BACKWARD)]


def check_block(module, x, z, output):
    norm = module.norm
    parameter_type = torch.float64 if x.dtype == torch.float64 else torch.float32
    expected = reference.ExpectedForward(x, norm.weight, norm.bias, epsilon=norm.eps, parameter_type=parameter_type)
    check_output(output, z, expected)
    masked = select(make_grad_output(output), output)
    _, mean, _, inv_std = torch.ops.bngrad._batch_norm_training_relu(x, norm.weight, norm.bias, z, norm.eps, MOST)
    scale = None if norm.weight is None else norm.weight.to(mean.dtype)
    exact = reference.Expected(masked, x, mean, scale=scale, inv_std=inv_std)
    exact.check_gradients(x.grad, None, None)
    if norm.weight is not None and norm.weight.dtype == mean.dtype:
        exact.check_gradients(None, norm.weight.grad, norm.bias.grad)
    assert x.grad.stride() == x.stride()
    if z is not None:
        assert torch.equal(z.grad, masked) and z.grad.stride() == z.stride()


@pytest.mark.parametrize("dtype, memory_format, has_residual", [
    (torch.float32, torch.contiguous_format, False), (torch.float32, torch.channels_last, True),
    (torch.bfloat16, torch.contiguous_format, True), (torch.bfloat16, torch.channels_last, False),
    (torch.float16, torch.channels_last, True), (torch.float64, torch.contiguous_format, True)], ids=str)
def test_graphs(dtype, memory_format, has_residual):
    """No loop of inductor touches the data."""
    module = Block(dtype=torch.float64 if dtype == torch.float64 else torch.float32)
    x, z = (make(seed, dtype=dtype, memory_format=memory_format) for seed in (1, 2))
    inputs = [x, z] if has_residual else [x]
    code, output = compile_and_run(module, inputs)
    check_block(module, x, z if has_residual else None, output)
    assert count_calls(code) == [1, 1, 0, 0]
    assert not re.search(r"cpp_fused\w*(relu|backward)", code), code
    assert re.search(re.escape(BACKWARD_RELU) + rf".*, {has_residual}\]\)", code), code


@pytest.mark.parametrize("options", [{"affine": False}, {"track_running_stats": False}, {"momentum": 0.7, "eps": 0.1}], ids=str)
def test_options(options):
    module, x = Block(**options), make(5)
    code, output = compile_and_run(module, [x])
    check_block(module, x, None, output)
    assert count_calls(code) == [1, 1, 0, 0]
    if module.norm.track_running_stats:
        expected = reference.ExpectedForward(x, epsilon=module.norm.eps, running=(torch.zeros(6), torch.ones(6)),
                                             momentum=module.norm.momentum, parameter_type=torch.float32)
        expected.check(running_mean=module.norm.running_mean, running_variance=module.norm.running_var)


@pytest.mark.parametrize("dtype", [torch.bfloat16, torch.float16], ids=str)
def test_parameters_of_16_bits(dtype):
    """The gradient takes them in f32."""
    module, x = Block(dtype=dtype), make(6, dtype=dtype)
    code, output = compile_and_run(module, [x])
    check_block(module, x, None, output)
    assert count_calls(code) == [1, 1, 0, 0]


class Downsample(nn.Module):
    """ReLU(BN(x) + BN(z)): the masked gradient is the incoming one of the other batch norm."""

    def __init__(self):
        super().__init__()
        self.first, self.second = nn.BatchNorm2d(6), nn.BatchNorm2d(6)

    def forward(self, x, z):
        return torch.relu(self.first(x) + self.second(z))


class Chain(nn.Module):
    """Residual blocks, whose masked gradients are added to others."""

    def __init__(self):
        super().__init__()
        self.first, self.second = nn.BatchNorm2d(6), nn.BatchNorm2d(6)

    def forward(self, x, z):
        y = torch.relu(self.first(x * z) + x)
        return torch.relu(y + self.second(y * z))


@pytest.mark.parametrize("memory_format", FORMATS, ids=str)
@pytest.mark.parametrize("module, calls", [(Downsample, [1, 1, 1, 1]), (Chain, [2, 2, 0, 0])])
def test_shared_gradients(module, calls, memory_format):
    """As in eager mode, which has no op with a ReLU."""
    inputs = [make(seed, memory_format=memory_format) for seed in (7, 8)]
    module = module()
    code, output = compile_and_run(module, inputs)
    tensors = (*inputs, *module.parameters())
    results = [tensor.grad for tensor in tensors]
    assert count_calls(code) == calls
    for tensor in tensors:
        tensor.grad = None
    other = module(*inputs)
    other.backward(make_grad_output(other))
    torch.testing.assert_close(output, other, rtol=1e-5, atol=1e-5)
    for result, tensor in zip(results, tensors, strict=True):
        torch.testing.assert_close(result, tensor.grad, rtol=1e-4, atol=1e-4 * float(tensor.grad.abs().max()))


class Variant(Block):

    def __init__(self, function):
        super().__init__()
        self.function = function

    def forward(self, x, z):
        return self.function(self.norm, x, z)


@pytest.mark.parametrize("function", [
    lambda norm, x, z: (lambda y: torch.relu(y) + y)(norm(x)),
    lambda norm, x, z: torch.relu(torch.add(norm(x), z, alpha=2)),
    lambda norm, x, z: (lambda skip: torch.relu(norm(x) + skip))(z[:, :1]),
    lambda norm, x, z: (lambda skip: torch.relu(norm(x) + skip))(z.mT.contiguous().mT),
    lambda norm, x, z: (lambda y: torch.relu(y) + y.sigmoid())(norm(x) + z),
    lambda norm, x, z: torch.relu(norm(x) * z),
    lambda norm, x, z: nn.functional.relu6(norm(x)),
    lambda norm, x, z: torch.relu(norm(x)).double(),
], ids=["output_is_used", "alpha", "broadcast", "strides", "sum_is_used", "product", "relu6", "fused"])
def test_others_stay_apart(function):
    module, inputs = Variant(function), [make(seed) for seed in (9, 10)]
    code, output = compile_and_run(module, inputs)
    assert count_calls(code) == ([1, 1, 0, 0] if output.dtype == torch.float64 else [0, 0, 1, 1])
    results = [inputs[0].grad, module.norm.weight.grad]
    exact, x, z = Variant(function).double(), *(each.detach().double().requires_grad_() for each in inputs)
    other = exact(x, z)
    other.backward(make_grad_output(other))
    for result, expected in zip(results, (x.grad, exact.norm.weight.grad)):
        torch.testing.assert_close(result.double(), expected, rtol=1e-4, atol=1e-4 * float(expected.abs().max()))


def test_a_residual_that_follows_from_the_batch_norm():

    class Follows(Block):

        def forward(self, x):
            norm = self.norm
            y, mean, _ = torch.native_batch_norm(x, norm.weight, norm.bias, None, None, True, 0.1, norm.eps)
            return torch.relu(y + mean.view(1, -1, 1, 1).expand_as(x).contiguous())

    code, _ = compile_and_run(Follows(), [make(11)])
    assert count_calls(code)[::2] == [0, 1]


def test_a_residual_alone_has_a_gradient():
    """A loop recomputes the condition, and no pass stores it."""
    module, x, z = Block().requires_grad_(False), make(18), make(19).requires_grad_()
    with bngrad.torch.enabled(compile=True):
        output, codes = run_and_get_code(torch.compile(module, fullgraph=True), x, z)
        _, others = run_and_get_code(output.backward, make_grad_output(output))
    code = "\n".join(codes + others)
    assert count_calls(code) == [1, 0, 0, 0] and "cpp_fused" in code and "bool*" not in code, code
    assert torch.equal(z.grad, select(make_grad_output(output), output))


def test_not_a_number():
    """Gradients of NaN pass, as in PyTorch."""
    x = make(12)
    x[0, 0, 0, 0] = float("nan")
    x[0, 1] = float("inf")
    code, output = compile_and_run(Block(), [x])
    assert count_calls(code) == [1, 1, 0, 0] and output[:, :2].isnan().all()
    assert x.grad[:, :2].isnan().all() and x.grad[:, 2:].isfinite().all()


def test_means_far_from_zero():
    """The gradient has the condition of the forward pass, whose input has two values that differ by one place."""
    generator = torch.Generator().manual_seed(20)
    x = 1000 + torch.randint(2, (8, 6, 9, 7), generator=generator) * 2.0**-14
    module = Block()
    code, output = compile_and_run(module, [x])
    assert count_calls(code) == [1, 1, 0, 0]
    check_block(module, x, None, output)


def test_dynamic_sizes():
    module = Block()
    with bngrad.torch.enabled(compile=True):
        compiled = torch.compile(module, fullgraph=True, dynamic=True)
        for size in (3, 5, 8):
            x, z = (make(seed, (size, 6, 7, 4)).requires_grad_() for seed in (13, 14))
            for parameter in module.parameters():
                parameter.grad = None
            output = compiled(x, z)
            output.backward(make_grad_output(output))
            check_block(module, x, z, output)


def test_checkpoints():
    """A forward pass that the backward pass repeats."""
    module, x = Block(), make(15).requires_grad_()

    class Model(nn.Module):

        def __init__(self):
            super().__init__()
            self.block = module

        def forward(self, x):
            return checkpoint(self.block, x, use_reentrant=False)

    code, output = compile_and_run(Model(), [x])
    check_block(module, x, None, output)
    assert count_calls(code)[1:] == [1, 0, 0]


class Regions(nn.Module):
    """Two checkpoints, the second of which begins between a batch norm and its ReLU."""

    def __init__(self, has_residual):
        super().__init__()
        self.first = nn.Sequential(nn.Conv2d(6, 6, 1), nn.BatchNorm2d(6, track_running_stats=False))
        self.last = nn.Conv2d(6, 6, 1)
        self.has_residual = has_residual

    def forward(self, x):
        y = checkpoint(self.first, x, use_reentrant=False)
        return checkpoint(lambda y: self.last(torch.relu(y + x if self.has_residual else y)), y, use_reentrant=False)


@pytest.mark.parametrize("has_residual", [False, True])
def test_regions_of_checkpoints(has_residual):
    model, x = Regions(has_residual), make(21)
    code, output = compile_and_run(model, [x])
    assert count_calls(code)[:2] == [0, 0]
    result, x.grad = x.grad, None
    with bngrad.torch.enabled():
        other = model(x)
    other.backward(make_grad_output(other))
    torch.testing.assert_close(output, other, rtol=1e-4, atol=1e-5)
    torch.testing.assert_close(result, x.grad, rtol=1e-4, atol=1e-4 * float(x.grad.abs().max()))


@pytest.mark.parametrize("memory_format", FORMATS, ids=str)
def test_autocast(memory_format):
    model = nn.Sequential(nn.Conv2d(6, 6, 3, bias=False), nn.BatchNorm2d(6), nn.ReLU(), nn.Conv2d(6, 2, 3)).to(
        memory_format=memory_format)
    x = make(16, memory_format=memory_format)

    def step(function):
        with torch.autocast("cpu", torch.bfloat16):
            output = function(x)
        output.float().square().mean().backward()
        return [parameter.grad.clone() for parameter in model.parameters()]

    with bngrad.torch.enabled(compile=True):
        results, codes = run_and_get_code(step, torch.compile(model, fullgraph=True))
    assert count_calls("\n".join(codes)) == [1, 1, 0, 0]
    model.zero_grad()
    for result, expected in zip(results, step(model), strict=True):
        torch.testing.assert_close(result, expected, rtol=0.05, atol=0.05 * float(expected.abs().max()))


def test_without_a_compiler(monkeypatch):
    """The graph has the ops of batch norms and a loop."""
    monkeypatch.setattr(sys.modules["bngrad.torch._devices"], "_can_compute", {(torch.device("cpu"), True): False})
    module, x = Block(), make(17)
    code, output = compile_and_run(module, [x])
    check_block(module, x, None, output)
    assert count_calls(code) == [0, 0, 1, 1]
