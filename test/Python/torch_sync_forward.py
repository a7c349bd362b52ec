# RUN: %python -m pytest -q %s
# REQUIRES: torch
"""The forward pass of SyncBatchNorm on several processes: its errors beside their bounds, and beside PyTorch's."""

import os
import sys

import pytest
import torch
from torch import nn

sys.path.insert(0, os.path.join(os.path.dirname(__file__), "Inputs"))
import torch_reference as reference
from torch_processes import run_ranks

from bngrad.torch import SyncBatchNorm


def fill(module):
    with torch.no_grad():
        if module.affine:
            module.weight.copy_(torch.linspace(0.5, 1.5, module.num_features))
            module.bias.copy_(torch.linspace(-0.3, 0.4, module.num_features))
    return module


def make_data(shape, ratio, dtype=torch.float32):
    """Channels of different standard deviations, all with means of `ratio` times as much."""
    generator = torch.Generator().manual_seed(shape[0])
    deviation = torch.linspace(0.5, 3, shape[1]).view(-1, *[1] * (len(shape) - 2))
    return (deviation * (torch.randn(shape, generator=generator, dtype=torch.float64) + ratio)).to(dtype)


def run_module(rank, size, sizes, input, options):
    module = fill(SyncBatchNorm(input.shape[1], **options))
    output = module(input.split(sizes)[rank])
    return [tensor.detach() for tensor in (output, *module.buffers())]


def run_and_expect(sizes, input, **options):
    """The output of all processes, their running statistics, and the exact values of one process."""
    results = run_ranks(run_module, len(sizes), sizes, input, options)
    for result in results[1:]:
        assert all(torch.equal(one, other) for one, other in zip(result[1:], results[0][1:]))
    channels = input.shape[1]
    module = fill(nn.BatchNorm2d(channels, **options))
    expected = reference.ExpectedForward(
        input, module.weight, module.bias, epsilon=module.eps, running=(torch.zeros(channels), torch.ones(channels)),
        momentum=module.momentum, parameter_type=torch.float32)
    return torch.cat([result[0] for result in results]), results[0][1:], expected


@pytest.mark.parametrize("options", [{}, {"affine": False}, {"eps": 0.1, "momentum": 0.7}], ids=str)
@pytest.mark.parametrize("dtype, ratio", [(torch.float32, 0.3), (torch.float32, 40), (torch.float32, 1e3),
                                          (torch.float32, 1e4), (torch.bfloat16, 5), (torch.float16, 30)], ids=str)
@pytest.mark.parametrize("sizes", [[5, 3], [4, 0, 3]], ids=str)
def test_results_are_within_their_bounds(sizes, dtype, ratio, options):
    """Those of one process that has the whole batch."""
    input = make_data((sum(sizes), 6, 11, 9), ratio, dtype)
    output, (mean, variance, count), expected = run_and_expect(sizes, input, **options)
    expected.check(output=output, running_mean=mean, running_variance=variance)
    assert count == 1


@pytest.mark.parametrize("shape, memory_format", [((8000, 6), torch.contiguous_format),
                                                  ((8, 6, 32, 32), torch.contiguous_format),
                                                  ((8, 6, 32, 32), torch.channels_last)], ids=str)
def test_means_far_from_zero(shape, memory_format):
    """PyTorch has the whole batch in one process, and rounds the mean of each channel to f32."""
    input = make_data(shape, 1e4).to(memory_format=memory_format)
    count = shape[0] * 5 // 8
    output, _, expected = run_and_expect([count, shape[0] - count], input)
    theirs = fill((nn.BatchNorm2d if len(shape) == 4 else nn.BatchNorm1d)(6))(input)
    exact = expected.results["output"][0]
    own_error, error = (abs(reference.to_exact(each) - exact).max() for each in (output, theirs))
    assert own_error < error / 100, (own_error, error)


def test_parts_far_from_each_other():
    """The variance of the whole batch is mostly that between the parts."""
    input = make_data((8, 6, 11, 9), 1)
    input[:3] += 1e4
    output, (mean, variance, _), expected = run_and_expect([3, 5], input)
    expected.check(output=output, running_mean=mean, running_variance=variance)


@pytest.mark.parametrize("dtype", [torch.float32, torch.float64, torch.bfloat16], ids=str)
@pytest.mark.parametrize("sizes", [[5, 3], [1, 6], [0, 7]], ids=str)
def test_equal_elements_give_the_bias(sizes, dtype):
    """Exactly, though 0.1 times the number of elements is no number of the type."""
    input = torch.full((sum(sizes), 6, 7, 3), 0.1, dtype=dtype) * torch.tensor([1, -1, 3, 7, 1e4, 0]).view(6, 1, 1)
    input = input.to(dtype)
    options = {"dtype": torch.float64} if dtype == torch.float64 else {}
    for result in run_ranks(run_module, len(sizes), sizes, input, options):
        bias = fill(SyncBatchNorm(6, **options)).bias.detach().to(dtype)
        assert torch.equal(result[0], bias.view(6, 1, 1).expand_as(result[0]))


if __name__ == "__main__":
    sys.exit(pytest.main([__file__, "-q"]))
