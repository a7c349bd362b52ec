# RUN: %python -m pytest -q %s
# REQUIRES: torch
"""enable(compile=True): the forward pass in graphs of torch.compile, and what it shares with the gradient."""

import os
import re
import sys

import numpy as np
import pytest
import torch
from torch import nn
from torch._dynamo.utils import counters
from torch._inductor.utils import run_and_get_code

sys.path.insert(0, os.path.join(os.path.dirname(__file__), "Inputs"))
import torch_calls
import torch_reference as reference

import bngrad.torch
from bngrad.torch import _inductor

FORWARD = "bngrad.batch_norm_training.default("
BACKWARD = "bngrad.batch_norm_backward.default("
FORMATS = [torch.contiguous_format, torch.channels_last]
legit = torch.ops.aten._native_batch_norm_legit


@pytest.fixture(autouse=True)
def fresh():
    torch._dynamo.reset()
    counters.clear()
    yield
    with pytest.raises(RuntimeError):
        bngrad.torch.disable()


class Block(nn.Module):
    """BN(x), or an activation of it."""

    def __init__(self, activation=None, **options):
        super().__init__()
        self.norm = nn.BatchNorm2d(6, **options)
        self.activation = activation
        with torch.no_grad():
            for parameter, start in ((self.norm.weight, 0.5), (self.norm.bias, -0.3)):
                parameter is None or parameter.copy_(torch.linspace(start, start + 1, 6))

    def forward(self, x):
        y = self.norm(x)
        return y if self.activation is None else self.activation(y)


def make_input(shape=(4, 6, 9, 7), dtype=torch.float32, memory_format=torch.contiguous_format, offset=0.3):
    generator = torch.Generator().manual_seed(sum(shape))
    return reference.make_data(generator, shape, dtype, offset=offset).to(memory_format=memory_format).requires_grad_()


def expect(module, input, running=(None, None)):
    """The exact results of the batch norm, with the running statistics before it."""
    norm = module.norm
    given = [tensor for tensor in (norm.weight, *running) if tensor is not None]
    return reference.ExpectedForward(input, norm.weight, norm.bias, epsilon=norm.eps, running=running,
                                     momentum=norm.momentum, parameter_type=given[0].dtype if given else input.dtype)


def step(function, module, input):
    """Checks the output and the running statistics of a step, and returns the output and its gradient."""
    running = [None if each is None else each.clone() for each in (module.norm.running_mean, module.norm.running_var)]
    expected = expect(module, input, running)
    output = function(input)
    if module.activation is torch.relu:
        value, error = expected.results["output"]
        expected.results["output"] = np.maximum(value, 0), error
    expected.check(output=output)
    if running[0] is not None:
        expected.check(running_mean=module.norm.running_mean, running_variance=module.norm.running_var)
    for tensor in (input, *module.parameters()):
        tensor.grad = None
    grad_output = torch.linspace(-1, 2, output.numel()).view_as(output).to(output)
    output.backward(grad_output)
    return output, grad_output


def check_gradients(module, input, output, grad_output):
    """The statistics are those of the op, whose bits do not depend on the caller."""
    norm = module.norm
    _, mean, _, inv_std = torch.ops.bngrad.batch_norm_training(input.detach(), epsilon=norm.eps)
    if module.activation is torch.relu:
        grad_output = grad_output * (output > 0)
    expected = reference.Expected(grad_output, input, mean, scale=norm.weight, inv_std=inv_std)
    affine = (None, None) if norm.weight is None else (norm.weight.grad, norm.bias.grad)
    expected.check_gradients(input.grad, *affine)
    assert input.grad.stride() == input.stride()


def compile_and_check(module, input, **options):
    """The text of the compiled graphs of a step, whose results are within their bounds."""
    with bngrad.torch.enabled(compile=True):
        compiled = torch.compile(module, fullgraph=True, **options)
        results, codes = run_and_get_code(step, compiled, module, input)
    check_gradients(module, input, *results)
    return "\n".join(codes)


@pytest.mark.parametrize("memory_format", FORMATS, ids=str)
@pytest.mark.parametrize("dtype", reference.DTYPES, ids=str)
def test_both_passes_stay_whole(dtype, memory_format):
    """The gradient takes mean and inv_std from the forward pass: no loop computes them, and no op a second time."""
    module = Block(torch.relu, dtype=dtype if dtype == torch.float64 else torch.float32)
    code = compile_and_check(module, make_input(dtype=dtype, memory_format=memory_format))
    assert code.count(FORWARD) == code.count(BACKWARD) == 1
    assert "rsqrt" not in code and "welford" not in code and "bool*" not in code, code


@pytest.mark.parametrize("options", [{"affine": False}, {"track_running_stats": False}, {"momentum": 0.7, "eps": 0.1},
                                     {"affine": False, "track_running_stats": False}], ids=str)
def test_options(options):
    code = compile_and_check(Block(**options), make_input())
    assert code.count(FORWARD) == 1
    # An unused variance costs nothing.
    is_tracked = str(options.get("track_running_stats", True))
    assert f"[True, True, {is_tracked}, True]" in code, code


@pytest.mark.parametrize("activation", [nn.functional.relu6, nn.functional.silu, nn.functional.hardswish,
                                        nn.functional.leaky_relu], ids=lambda each: each.__name__)
def test_other_activations(activation):
    """Inductor computes them; their gradients load no conditions."""
    input = make_input()
    results = []
    for compile in (False, True):
        with bngrad.torch.enabled(compile=compile):
            module = Block(lambda y: activation(3 * y))
            function = torch.compile(module, fullgraph=True) if compile else module

            def run():
                input.grad = None
                function(input).square().sum().backward()
                return [input.grad, *(each.grad for each in module.parameters()), *module.buffers()]

            values, codes = run_and_get_code(run)
            results.append(values)
    for one, other in zip(*results, strict=True):
        torch.testing.assert_close(one, other, rtol=0, atol=1e-5 * (1 + float(other.abs().max())))
    code = "\n".join(codes)
    assert FORWARD in code and BACKWARD in code and "bool*" not in code, code


def test_parameters_of_16_bits():
    """Running statistics of 16 bits are those of eager mode; the gradient has statistics of f32 all the same."""
    module, input = Block(dtype=torch.bfloat16), make_input(dtype=torch.bfloat16)
    with bngrad.torch.enabled(compile=True):
        _, codes = run_and_get_code(step, torch.compile(module, fullgraph=True), module, input)
    assert FORWARD in "\n".join(codes) and module.norm.running_mean.dtype == torch.bfloat16
    compiled = input.grad
    _, mean, _, inv_std = torch.ops.bngrad.batch_norm_training(input.detach(), epsilon=module.norm.eps)
    grad_output = torch.linspace(-1, 2, input.numel()).view_as(input).to(input)
    reference.Expected(grad_output, input, mean, scale=module.norm.weight.float(),
                       inv_std=inv_std).check_gradients(compiled, None, None)


@pytest.mark.parametrize("memory_format", FORMATS, ids=str)
def test_means_far_from_zero(memory_format):
    """Inductor rounds the mean to f32, which is an error in every output."""
    input = make_input((8, 6, 24, 24), memory_format=memory_format, offset=2e4)
    errors = []
    for compile in (True, False):
        module = Block()
        with bngrad.torch.enabled(compile=compile):
            output = torch.compile(module, fullgraph=True)(input)
        expected = expect(module, input)
        if compile:
            expected.check(output=output)
        errors.append(abs(reference.to_exact(output) - expected.results["output"][0]).max())
        torch._dynamo.reset()
    assert errors[0] < errors[1] / 50, errors


def test_evaluation_is_a_loop():
    """An element-wise one, which inductor fuses with others."""
    module, input = Block().eval(), make_input()
    with torch.no_grad():
        module.norm.running_mean.copy_(torch.linspace(-1, 3, 6))
        module.norm.running_var.copy_(torch.linspace(0.2, 3, 6))
    with bngrad.torch.enabled(compile=True):
        output, codes = run_and_get_code(torch.compile(module, fullgraph=True), input)
        output.sum().backward()
    assert "bngrad.batch_norm" not in codes[0]
    norm = module.norm
    reference.ExpectedForward(input, norm.weight, norm.bias, mean=norm.running_mean, variance=norm.running_var,
                              epsilon=norm.eps, parameter_type=torch.float32).check(output=output)


def test_one_graph_for_all_steps():
    """Running statistics differ from step to step."""
    module = Block(torch.relu)
    with bngrad.torch.enabled(compile=True):
        compiled = torch.compile(module, fullgraph=True)
        for i in range(4):
            input = make_input(offset=float(i))
            check_gradients(module, input, *step(compiled, module, input))
    assert counters["stats"]["unique_graphs"] == 1
    assert module.norm.num_batches_tracked == 4


@pytest.mark.parametrize("compile", [False, True])
@pytest.mark.parametrize("options", [{"momentum": None}, {"track_running_stats": False},
                                     {"momentum": None, "track_running_stats": False}], ids=str)
def test_statistics_of_modules(options, compile, monkeypatch):
    """Those of PyTorch's own kernels, also the cumulative average, the number of batches, and what evaluation makes of
    them. For the average, PyTorch reads the number from a tensor, so that the batch norm is in no graph."""
    calls = torch_calls.record(monkeypatch, "native_batch_norm")
    is_tracked = options.get("track_running_stats", True)
    is_in_graph = not is_tracked or "momentum" not in options
    ours, theirs = Block(torch.relu, **options), Block(torch.relu, **options)
    for i in range(3):
        results = []
        for module, forward in ((ours, True), (theirs, False)):
            input = make_input((3 + i, 6, 5, 7), offset=float(i))
            module.train(i < 2).zero_grad()
            if forward:
                with bngrad.torch.enabled(compile=compile):
                    call = torch.compile(module, dynamic=False) if compile else module
                    output, codes = run_and_get_code(call, input)
                    output.square().sum().backward()
                uses_batch = i < 2 or not is_tracked
                assert (FORWARD in "\n".join(codes)) == (compile and is_in_graph and uses_batch)
            else:
                output = module(input)
                output.square().sum().backward()
            results.append([output, input.grad, *(each.grad for each in module.parameters()), *module.buffers()])
        for one, other in zip(*results, strict=True):
            assert one.dtype == other.dtype
            torch.testing.assert_close(one, other, rtol=0, atol=1e-5 * (1 + float(other.detach().abs().max())))
    assert ours.norm.num_batches_tracked == (2 if is_tracked else None) and not calls
    if options == {"momentum": None}:
        # Each batch has the same weight.
        mean = sum(make_input((3 + i, 6, 5, 7), offset=float(i)).mean((0, 2, 3)) for i in range(2)) / 2
        torch.testing.assert_close(ours.norm.running_mean, mean.detach(), rtol=1e-5, atol=1e-5)


def test_one_graph_for_all_batch_sizes():
    module = Block(torch.relu)
    with bngrad.torch.enabled(compile=True):
        compiled = torch.compile(module, fullgraph=True, dynamic=True)
        for batch, height in ((4, 9), (7, 5), (3, 12)):
            input = make_input((batch, 6, height, 7))
            check_gradients(module, input, *step(compiled, module, input))
    assert counters["stats"]["unique_graphs"] == 1


@pytest.mark.parametrize("memory_format", FORMATS, ids=str)
def test_autocast(memory_format):
    """A convolution gives data of bf16 to a batch norm with parameters of f32."""

    class Model(Block):

        def __init__(self):
            super().__init__()
            self.convolution = nn.Conv2d(3, 6, 3)

        def forward(self, x):
            y = self.convolution(x)
            return y, self.norm(y)

    module = Model().to(memory_format=memory_format)
    input = torch.randn(4, 3, 9, 8).to(memory_format=memory_format)
    with bngrad.torch.enabled(compile=True), torch.autocast("cpu", dtype=torch.bfloat16):
        (data, output), codes = run_and_get_code(torch.compile(module, fullgraph=True), input)
        output.float().square().sum().backward()
    assert data.dtype == output.dtype == torch.bfloat16 and output.is_contiguous(memory_format=memory_format)
    assert codes[0].count(FORWARD) == 1
    expected = expect(module, data, (torch.zeros(6), torch.ones(6)))
    expected.check(output=output, running_mean=module.norm.running_mean, running_variance=module.norm.running_var)
    assert all(parameter.grad.dtype == torch.float32 for parameter in module.parameters())


def test_gradient_only():
    """Graphs of inductor's cache on disk are those of the present state."""
    module, input = Block(torch.relu), make_input()
    for forward in (False, True, False):
        torch._dynamo.reset()
        with bngrad.torch.enabled(compile=True, forward=forward):
            _, codes = run_and_get_code(step, torch.compile(module, fullgraph=True), module, input)
        code = "\n".join(codes)
        assert BACKWARD in code and (FORWARD in code) == forward


def test_nesting_changes_what_stays_whole():
    from torch._inductor import decomposition
    tables = [dict(decomposition.decompositions)]
    with bngrad.torch.enabled(compile=True, forward=False):
        tables.append(dict(decomposition.decompositions))
        with bngrad.torch.enabled(compile=True):
            assert _inductor._states["cpu"] == _inductor.State.FORWARD_AND_GRADIENT
        with bngrad.torch.enabled():
            assert _inductor._states["cpu"] == _inductor.State.GRADIENT
        assert _inductor._states["cpu"] == _inductor.State.GRADIENT
        assert decomposition.decompositions.keys() == tables[1].keys()
    assert decomposition.decompositions == tables[0]


OPS = [torch.ops.aten.native_batch_norm.default, legit.default, legit.no_stats,
       torch.ops.aten._native_batch_norm_legit_functional.default]


def make_arguments(op, input, dtype=torch.float32):
    running = [torch.linspace(-1, 1, 3, dtype=dtype), torch.linspace(0.5, 1, 3, dtype=dtype)]
    parameters = [torch.linspace(0.5, 2, 3, dtype=dtype), torch.linspace(-2, 1, 3, dtype=dtype)]
    return [input, *parameters, *(running if op is not legit.no_stats else []), True, 0.3, 1e-3]


@pytest.mark.parametrize("count", [12, 1])
@pytest.mark.parametrize("op", OPS, ids=str)
def test_results_of_each_op(op, count):
    """Also running variances of one element, which are NaN."""
    input = torch.randn(count, 3)
    with bngrad.torch.enabled(compile=True):
        arguments, others = make_arguments(op, input), make_arguments(op, input)
        results, expected = _inductor._decompose_forward(op, *arguments), op(*others)
    for one, other in zip([*results, *arguments[3:5]], [*expected, *others[3:5]], strict=True):
        torch.testing.assert_close(one, other, rtol=1e-6, atol=1e-6, equal_nan=True)


def test_others_are_decomposed(monkeypatch):
    op, input = OPS[3], torch.randn(4, 3)
    calls = []
    with bngrad.torch.enabled(compile=True):
        monkeypatch.setitem(_inductor._replaced, op, lambda *arguments: calls.append(arguments))
        arguments = make_arguments(op, input)
        for place, value in ((0, input.double().to("meta")), (0, input.int()), (2, torch.zeros(3).bfloat16()),
                             (3, None), (1, torch.ones(1)), (5, False)):
            _inductor._decompose_forward(op, *arguments[:place], value, *arguments[place + 1:])
            assert len(calls) == 1 and calls.pop()[place] is value
        _inductor._decompose_forward(op, *arguments)
        assert not calls
        # Each of these types is covered, but not both.
        _inductor._decompose_forward(op, input.bfloat16(), *arguments[1:4], torch.ones(3).bfloat16(), *arguments[5:])
    assert len(calls) == 1


if __name__ == "__main__":
    sys.exit(pytest.main([__file__, "-q"]))
