# RUN: %python -m pytest -q %s
# REQUIRES: torch
"""PyTorch's own samples of batch norms, of ops and modules, with bngrad enabled: the forward pass in every memory
format, and derivatives by differences."""

import os
import sys

import pytest
import torch
from torch.testing._internal import common_methods_invocations as methods
from torch.testing._internal import common_modules as modules

sys.path.insert(0, os.path.join(os.path.dirname(__file__), "Inputs"))
import torch_calls

import bngrad.torch

# Tiny tensors.
torch.set_num_threads(1)
NAMES = ("nn.functional.batch_norm", "native_batch_norm", "_native_batch_norm_legit", "_batch_norm_with_update")
OPS = [op for op in methods.op_db if op.name in NAMES]
MODULES = [info for info in modules.module_db
           if info.module_cls in (torch.nn.BatchNorm1d, torch.nn.BatchNorm2d, torch.nn.BatchNorm3d)]
DTYPES = (torch.float32, torch.float64, torch.bfloat16, torch.float16)
TOLERANCE = {torch.float32: 1e-5, torch.float64: 1e-12, torch.bfloat16: 3e-2, torch.float16: 4e-3}
LAST = {4: torch.channels_last, 5: torch.channels_last_3d}
LONG = os.environ.get("BNGRAD_LONG_TESTS") == "1"


@pytest.fixture
def calls(monkeypatch):
    names = [kernel.op.removeprefix("aten::") for each in sys.modules["bngrad.torch._override"]._passes.values()
             for kernel in each.originals]
    return torch_calls.record(monkeypatch, *names)


def lay_out(tensor, layout):
    """The same values elsewhere, or for `expanded` those of the first sample."""
    if layout == "channels_last":
        return tensor.contiguous(memory_format=LAST.get(tensor.dim(), torch.contiguous_format))
    if layout == "noncontiguous":
        wide = tensor.new_zeros([*tensor.shape[:-1], 2 * tensor.shape[-1]])
        wide[..., ::2] = tensor
        return wide[..., ::2]
    if layout == "expanded":
        return tensor[:1].expand(tensor.shape)
    return tensor.contiguous()


LAYOUTS = ("contiguous", "channels_last", "noncontiguous", "expanded")


def copy_sample(sample, dtype, layout):
    """Arguments of a sample that share nothing with it."""
    convert = lambda value: (value.detach().clone().to(dtype) if isinstance(value, torch.Tensor) and
                             value.is_floating_point() else value)
    return ([lay_out(convert(sample.input), layout), *map(convert, sample.args)],
            {name: convert(value) for name, value in sample.kwargs.items()})


def list_results(results, arguments, keywords):
    """Results and running statistics, if any."""
    results = results if isinstance(results, tuple) else (results,)
    tensors = [value for value in (*arguments[1:], *keywords.values()) if isinstance(value, torch.Tensor)]
    return [value for value in (*results, *tensors) if value is not None and value.is_floating_point()]


def compare(results, of_pytorch, expected, dtype):
    """Errors are at most those of PyTorch's own results, and a rounding."""
    for result, own, exact in zip(results, of_pytorch, expected, strict=True):
        assert (result.dtype, result.shape, result.stride()) == (own.dtype, own.shape, own.stride())
        if not result.numel():
            continue
        error = float((own.double() - exact).abs().max())
        tolerance = TOLERANCE[dtype] * (1 + float(exact.abs().max())) + error
        torch.testing.assert_close(result.double(), exact.double(), rtol=0, atol=tolerance)


@pytest.mark.parametrize("layout", LAYOUTS)
@pytest.mark.parametrize("dtype", DTYPES, ids=str)
@pytest.mark.parametrize("op", OPS, ids=lambda op: op.full_name)
def test_ops(op, dtype, layout, calls):
    compared = 0
    for sample in op.sample_inputs("cpu", dtype):
        if not sample.input.numel():
            continue

        def run(dtype):
            arguments, keywords = copy_sample(sample, dtype, layout)
            return list_results(op(*arguments, **keywords), arguments, keywords)

        try:
            exact = run(torch.float64)
            own = run(dtype)
        except (RuntimeError, ValueError):
            continue  # PyTorch refuses it.
        with bngrad.torch.enabled():
            results = run(dtype)
        compare(results, own, exact, dtype)
        compared += 1
    assert compared > 0 and not calls


@pytest.mark.parametrize("layout", LAYOUTS)
@pytest.mark.parametrize("op", OPS, ids=lambda op: op.full_name)
def test_derivatives_of_ops(op, layout, calls):
    checked = 0
    for sample in op.sample_inputs("cpu", torch.float64, requires_grad=True):
        if not 0 < sample.input.numel() <= (200 if LONG else 40) or (not LONG and checked == 4):
            continue
        leaf = sample.input.detach().clone().requires_grad_()
        leaves = [leaf, *(value for value in (*sample.args, *sample.kwargs.values())
                          if isinstance(value, torch.Tensor) and value.requires_grad)]

        def function(*_):
            copied = lambda value: (value.clone() if isinstance(value, torch.Tensor) and not value.requires_grad
                                    else value)
            output = op(lay_out(leaf, layout), *map(copied, sample.args),
                        **{name: copied(value) for name, value in sample.kwargs.items()})
            return output[0] if isinstance(output, tuple) else output

        with bngrad.torch.enabled():
            assert torch.autograd.gradcheck(function, leaves)
            assert torch.autograd.gradgradcheck(function, leaves)
        checked += 1
    assert not calls
    assert checked > 0 or not LONG


def list_modules(info, dtype, is_training, requires_grad=False):
    """Modules of the samples, with their inputs; parameters and buffers tell channels apart."""
    for sample in info.module_inputs_func(info, device="cpu", dtype=dtype, requires_grad=requires_grad,
                                          training=is_training):
        arguments, keywords = sample.constructor_input.args, sample.constructor_input.kwargs
        module = info.module_cls(*arguments, **keywords).to(dtype).train(is_training)
        for tensor in (*module.parameters(), *module.buffers()):
            if tensor.dim():
                tensor.data = (torch.arange(tensor.numel()) * 0.1 + 0.7).to(dtype)
        yield module, sample.forward_input.args[0]


@pytest.mark.parametrize("is_training", [True, False])
@pytest.mark.parametrize("layout", LAYOUTS)
@pytest.mark.parametrize("info", MODULES, ids=lambda info: info.module_cls.__name__)
def test_modules(info, layout, is_training, calls):
    """Output, gradients and running statistics of two steps."""
    for dtype in DTYPES:
        for module, data in list_modules(info, dtype, is_training):
            outcomes = []
            for own_type, is_enabled in ((torch.float64, False), (dtype, False), (dtype, True)):
                own = info.module_cls(module.num_features, module.eps, module.momentum, module.affine,
                                      module.track_running_stats, bias=module.bias is not None)
                own.load_state_dict(module.state_dict())
                own = own.to(own_type).train(is_training)
                leaf = data.detach().clone().to(own_type).requires_grad_()
                with bngrad.torch.enabled(forward=is_enabled):
                    for _ in range(2):
                        output = own(lay_out(leaf, layout))
                        output.float().pow(3).mean().backward()
                floats = [each for each in own.buffers() if each.is_floating_point()]
                outcomes.append([output.detach(), leaf.grad, *(each.grad for each in own.parameters()), *floats])
            exact, of_pytorch, results = outcomes
            compare(results, of_pytorch, exact, dtype)
    assert not calls


@pytest.mark.parametrize("is_training", [True, False])
@pytest.mark.parametrize("info", MODULES, ids=lambda info: info.module_cls.__name__)
def test_derivatives_of_modules(info, is_training, calls):
    for module, data in list_modules(info, torch.float64, is_training, requires_grad=True):
        if not data.numel():
            continue
        if not LONG:
            data = data.detach()[:2, :, :2, ...].requires_grad_() if data.dim() > 2 else data
            data = data.detach()[..., :2].clone().requires_grad_() if data.dim() > 3 else data
        state = module.state_dict()

        def function(data, *parameters):
            names = [name for name, _ in module.named_parameters()]
            buffers = {name: state[name].clone() for name, _ in module.named_buffers()}
            return torch.func.functional_call(module, dict(zip(names, parameters)) | buffers, (data,))

        with bngrad.torch.enabled():
            leaves = data, *module.parameters()
            assert torch.autograd.gradcheck(function, leaves)
            assert torch.autograd.gradgradcheck(function, leaves)
    assert not calls


def test_all_samples_are_there():
    assert {op.name for op in OPS} == set(NAMES) and len(MODULES) == 3


if __name__ == "__main__":
    sys.exit(pytest.main([__file__, "-q"]))
