"""The ops of batch norms with a ReLU, and what they must compute; used by tests for CPUs and for CUDA devices."""

import numpy as np
import torch

import torch_reference as reference

MOST = [True] * 4


def make(seed, shape=(4, 6, 9, 7), dtype=torch.float32, memory_format=torch.contiguous_format, offset=0.3):
    generator = torch.Generator().manual_seed(seed)
    return reference.make_data(generator, shape, dtype, offset=offset).to(memory_format=memory_format)


def make_grad_output(output):
    return torch.linspace(-1, 2, output.numel()).view_as(output).to(output)


def check_output(output, residual, expected):
    """The output of a batch norm, and a ReLU of it or of its sum with a residual."""
    value, error = expected.results["output"]
    unit = reference.UNIT_ROUNDOFF[output.dtype]
    if residual is not None:
        # The batch norm is rounded before the sum.
        error = error + unit * (abs(value) + error)
        value = value + reference.to_exact(residual)
    expected.results["output"] = np.maximum(value, 0), error
    expected.check(output=output)


def select(grad_output, output):
    return torch.where(output <= 0, 0, grad_output)


def check_ops(dtype, memory_format, has_residual, move=lambda each: each, back=lambda each: each):
    """Runs the ops on another device if `move` brings tensors there and `back` fetches them."""
    input, residual = (make(seed, dtype=dtype, memory_format=memory_format) for seed in (1, 2))
    parameter_type = torch.float64 if dtype == torch.float64 else torch.float32
    scale, offset = (torch.linspace(start, 1, 6, dtype=parameter_type) for start in (0.5, -0.7))
    if not has_residual:
        residual = None

    def run(op, *operands, options):
        tensors = [None if each is None else move(each) for each in operands]
        return [None if each is None else back(each) for each in op(*tensors, *options)]

    results = run(torch.ops.bngrad._batch_norm_training_relu, input, scale, offset, residual, options=(1e-3, MOST))
    output, mean, variance, inv_std = results
    expected = reference.ExpectedForward(input, scale, offset, epsilon=1e-3, parameter_type=parameter_type)
    expected.check(mean=mean, variance=variance, inv_std=inv_std)
    check_output(output, residual, expected)
    assert output.stride() == input.stride() and 0.2 < (output > 0).double().mean() < 0.8
    grad_output = make_grad_output(output)
    masked = select(grad_output, output)
    exact = reference.Expected(masked, input, mean, scale=scale, inv_std=inv_std)
    *gradients, of_residual = run(torch.ops.bngrad._batch_norm_backward_relu, grad_output, input, mean, inv_std, scale,
                                  output, options=(MOST,))
    assert torch.equal(of_residual, masked)
    exact.check_gradients(*gradients)
    assert gradients[0].stride() == of_residual.stride() == input.stride()
