# RUN: %build_cudart
# RUN: %emulated_python -m pytest -q %s
# REQUIRES: torch, python-compiler
"""PyTorch's own samples of batch norms with CUDA tensors on the emulator, and bngrad enabled: results, running
statistics and gradients beside those in float64 on a CPU."""

import os
import sys

import pytest
import torch

sys.path.insert(0, os.path.join(os.path.dirname(__file__), "Inputs"))
import torch_calls
# Sets flags of PyTorch that its tests freeze.
from emulated_cuda import to_cpu, to_cuda
from torch.testing._internal import common_methods_invocations as methods

import bngrad.torch

# The places of weight and bias among the inputs, from 0.
WEIGHTS = {"nn.functional.batch_norm": (3, 4), "native_batch_norm": (1, 2), "_native_batch_norm_legit": (1, 2),
           "_batch_norm_with_update": (1, 2)}
OPS = [op for op in methods.op_db if op.name in WEIGHTS and not op.variant_test_name]
TOLERANCE = {torch.float32: 1e-4, torch.bfloat16: 3e-2}
# Each shape is compiled.
MOST_SAMPLES = 100 if os.environ.get("BNGRAD_LONG_TESTS") == "1" else 6


@pytest.fixture
def calls(monkeypatch):
    override = sys.modules["bngrad.torch._override"]
    names = [kernel.op.removeprefix("aten::") for (_, device), each in override._passes.items() if device == "cuda"
             for kernel in each.originals]
    return torch_calls.record(monkeypatch, *names)


def run(op, sample, dtype, device):
    """The first result, running statistics and the gradients by input, weight and bias."""

    def convert(value):
        if not isinstance(value, torch.Tensor) or not value.is_floating_point():
            return value
        copy = value.detach().clone().to(dtype)
        return to_cuda(copy) if device == "cuda" else copy

    inputs = [convert(value) for value in (sample.input, *sample.args)]
    named = {name: convert(value) for name, value in sample.kwargs.items()}
    leaves = [value for place, value in enumerate(inputs) if place == 0 or place in WEIGHTS[op.name]]
    leaves += [named.get(name) for name in ("weight", "bias")]
    leaves = [each.requires_grad_() for each in leaves if isinstance(each, torch.Tensor)]
    output = op(*inputs, **named)
    output = output[0] if isinstance(output, tuple) else output
    grad_output = torch.randn(output.shape, generator=torch.Generator().manual_seed(0)).to(output.dtype)
    gradients = torch.autograd.grad(output, leaves, to_cuda(grad_output) if device == "cuda" else grad_output)
    running = [value for value in (*inputs, *named.values())
               if isinstance(value, torch.Tensor) and not value.requires_grad and value.is_floating_point()]
    return [to_cpu(each.detach()) for each in (output, *running, *gradients)]


@pytest.mark.parametrize("dtype", TOLERANCE, ids=str)
@pytest.mark.parametrize("op", OPS, ids=lambda op: op.full_name)
def test_samples(op, dtype, calls):
    compared = 0
    for sample in op.sample_inputs("cpu", dtype, requires_grad=True):
        # Data without elements go to PyTorch.
        if not sample.input.numel() or compared == MOST_SAMPLES:
            continue
        try:
            expected = run(op, sample, torch.float64, "cpu")
        except (RuntimeError, ValueError):
            continue  # PyTorch refuses it.
        with bngrad.torch.enabled(devices=["cuda"]):
            results = run(op, sample, dtype, "cuda")
        for result, exact in zip(results, expected, strict=True):
            assert result.dtype == dtype and result.shape == exact.shape
            tolerance = TOLERANCE[dtype] * (1 + float(exact.abs().nan_to_num().max()))
            torch.testing.assert_close(result.double(), exact, rtol=0, atol=tolerance, equal_nan=True)
        compared += 1
    assert compared > 0 and not calls
