# RUN: %python -m pytest -q %s
# REQUIRES: torch
"""PyTorch's own samples of batch norms, with bngrad enabled.

Gradients are compared with those of PyTorch in float64, and second derivatives
are checked by differences.
"""

import os

import pytest
import torch
from torch.testing._internal import common_methods_invocations as methods

import bngrad.torch

# Tiny tensors.
torch.set_num_threads(1)
NAMES = ("nn.functional.batch_norm", "native_batch_norm", "_native_batch_norm_legit", "_batch_norm_with_update")
OPS = [op for op in methods.op_db if op.name in NAMES]
DTYPES = (torch.float32, torch.float64, torch.bfloat16, torch.float16)
# Of the same data; the statistics of half types may differ more.
TOLERANCE = {torch.float32: 1e-5, torch.float64: 1e-12, torch.bfloat16: 3e-2, torch.float16: 4e-3}
LONG = os.environ.get("BNGRAD_LONG_TESTS") == "1"


def gradients(op, sample, dtype):
    """Gradients of the first output by all inputs of `dtype` or wider."""
    convert = lambda value: (value.detach().to(dtype) if isinstance(value, torch.Tensor) and
                             value.is_floating_point() else value)
    inputs = [convert(value) for value in (sample.input, *sample.args)]
    keywords = {name: convert(value) for name, value in sample.kwargs.items()}
    # Not running statistics, which have no derivative.
    leaves = [value.requires_grad_() for index, value in enumerate(inputs) if isinstance(value, torch.Tensor) and
              (index == 0 or index in WEIGHTS[op.name])]
    leaves += [value.requires_grad_() for name, value in keywords.items()
               if isinstance(value, torch.Tensor) and name in ("weight", "bias")]
    output = op(*inputs, **keywords)
    output = output[0] if isinstance(output, tuple) else output
    generator = torch.Generator().manual_seed(0)
    grad_output = torch.randn(output.shape, generator=generator, dtype=torch.float64).to(output.dtype)
    return torch.autograd.grad(output, leaves, grad_output)


# Positions of weight and bias among the inputs.
WEIGHTS = {"nn.functional.batch_norm": (3, 4), "native_batch_norm": (1, 2), "_native_batch_norm_legit": (1, 2),
           "_batch_norm_with_update": (1, 2)}


def samples_of(op, dtype):
    for sample in op.sample_inputs("cpu", dtype, requires_grad=True):
        if sample.input.numel():
            yield sample


def test_all_variants_are_there():
    assert {op.name for op in OPS} >= {"nn.functional.batch_norm", "native_batch_norm"}
    assert "without_cudnn" in {op.variant_test_name for op in OPS}


@pytest.mark.parametrize("dtype", DTYPES, ids=str)
@pytest.mark.parametrize("op", OPS, ids=lambda op: op.full_name)
def test_gradients(op, dtype):
    compared = 0
    for sample in samples_of(op, dtype):
        try:
            expected = gradients(op, sample, torch.float64)
            of_pytorch = gradients(op, sample, dtype)
        except RuntimeError:
            continue  # PyTorch has no such gradient.
        with bngrad.torch.enabled():
            results = gradients(op, sample, dtype)
        for result, other, own in zip(results, expected, of_pytorch):
            # The forward pass has rounded the statistics.
            error = float((own.double() - other).abs().max())
            tolerance = TOLERANCE[dtype] * (1 + float(other.abs().max())) + 2 * error
            torch.testing.assert_close(result.double(), other, rtol=0, atol=tolerance)
            compared += 1
    assert compared > 0


@pytest.mark.parametrize("op", OPS, ids=lambda op: op.full_name)
def test_second_derivatives(op):
    checked = 0
    for sample in samples_of(op, torch.float64):
        if sample.input.numel() > (200 if LONG else 40):
            continue
        leaves = [value for value in (sample.input, *sample.args, *sample.kwargs.values())
                  if isinstance(value, torch.Tensor) and value.requires_grad]

        def function(*_):
            output = op(sample.input, *sample.args, **sample.kwargs)
            return output[0] if isinstance(output, tuple) else output

        with bngrad.torch.enabled():
            assert torch.autograd.gradcheck(function, leaves)
            assert torch.autograd.gradgradcheck(function, leaves)
        checked += 1
    assert checked > 0 or not LONG
