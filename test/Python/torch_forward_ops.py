# RUN: env -u BNGRAD_COMPILER %python -m pytest -q %s
# REQUIRES: torch, python-compiler
"""torch.ops.bngrad.batch_norm_training and batch_norm_inference: values, layouts, derivatives, errors."""

import os
import sys

import pytest
import torch

sys.path.insert(0, os.path.join(os.path.dirname(__file__), "Inputs"))
import torch_reference as reference
from torch_operands import RandomOperands, make_operands

import bngrad.torch  # noqa: F401

training = torch.ops.bngrad.batch_norm_training
inference = torch.ops.bngrad.batch_norm_inference
NAMES = ("output", "mean", "variance", "inv_std")
CONFIGURATIONS = 200 if os.environ.get("BNGRAD_LONG_TESTS") == "1" else 40


class Case(RandomOperands):
    """Random operands of both ops."""

    def __init__(self, seed):
        super().__init__(seed, sizes=[0, 1, 2, 3, 5, 8, 17], most=20000, offsets=[-0.7, 30],
                         parameter_types=reference.DTYPES)
        self.parameters = {"scale": self.scale, "offset": self.choose.choice([self.mean + 0.25, None])}
        self.epsilon = self.choose.choice([1e-5, 1e-2])
        given = [tensor.dtype for tensor in (self.input, *self.parameters.values()) if tensor is not None]
        self.result_type = torch.float64 if torch.float64 in given else torch.float32


def test_random_configurations():
    for seed in range(CONFIGURATIONS):
        case = Case(seed)
        options = case.parameters | {"feature_dims": case.feature_dims}
        strides = torch.empty_like(case.input).stride()
        results = training(case.input, epsilon=case.epsilon, **options)
        reference.ExpectedForward(case.input, epsilon=case.epsilon, parameter_type=case.result_type, **options).check(
            **dict(zip(NAMES, results)))
        assert results[0].stride() == strides, seed
        output = inference(case.input, case.mean, **case.statistic, **options)
        reference.ExpectedForward(case.input, mean=case.mean, parameter_type=case.mean.dtype, **case.statistic,
                                  **options).check(output=output)
        assert output.stride() == strides, seed
        on_meta = training(case.input.to("meta"), epsilon=case.epsilon, **{
            name: value.to("meta") if isinstance(value, torch.Tensor) else value for name, value in options.items()})
        for result, other in zip(results, on_meta):
            assert (result.dtype, result.shape) == (other.dtype, other.shape)
            assert not case.input.numel() or result.stride() == other.stride()


def operands(dtype=torch.float64, shape=(4, 3, 5, 2), parameter_type=None):
    """input, scale, offset, mean, variance"""
    _, input, mean, variance, scale = make_operands(dtype, shape, parameter_type)
    return [tensor.requires_grad_() for tensor in (input, scale, mean.flip(0) + 0.25, mean, variance)]


@pytest.mark.parametrize("wanted", range(1, 15))
def test_output_mask(wanted):
    input, scale, offset, *_ = operands(torch.float32)
    mask = [bool(wanted >> place & 1) for place in range(4)]
    every, some = (training(input, scale, offset, output_mask=each) for each in ([True] * 4, mask))
    for is_wanted, result, expected in zip(mask, some, every):
        assert result is None if not is_wanted else torch.equal(result, expected)


def formula(input, scale, offset, mean=None, r=None, epsilon=1e-3):
    """The forward pass in PyTorch's ops."""
    spread = lambda value: value.view(-1, *[1] * (input.dim() - 2))
    dims = [dim for dim in range(input.dim()) if dim != 1]
    is_training = mean is None
    if is_training:
        mean, variance = input.mean(dims), input.var(dims, correction=0)
        r = (variance + epsilon).rsqrt()
    output = (input - spread(mean)) * spread(r * scale) + spread(offset)
    return (output, mean, variance, r) if is_training else output


# Arguments after epsilon.
TRAINING = [{}, {"output_mask": [True, False, False, False]}, {"output_mask": [True, True, False, True]},
            {"output_mask": [False, False, True, False]}]


@pytest.mark.parametrize("options", TRAINING, ids=str)
def test_derivatives_of_training(options):
    """First and second derivatives of all results, in reverse and forward mode."""
    data = operands(shape=(3, 2, 2, 1))[:3]
    function = lambda *data: tuple(each for each in training(*data, 1e-3, **options) if each is not None)
    assert torch.autograd.gradcheck(function, data, check_forward_ad=True)
    assert torch.autograd.gradgradcheck(function, data, check_fwd_over_rev=True)


@pytest.mark.parametrize("statistic", ["variance", "inv_std"])
def test_derivatives_of_inference(statistic):
    """By all operands."""
    input, scale, offset, mean, variance = operands(shape=(3, 2, 2, 1))
    epsilon = 1e-3 if statistic == "variance" else 0.0
    function = lambda input, scale, offset, mean, value: inference(
        input, mean, scale, offset, epsilon=epsilon, **{statistic: value})
    data = input, scale, offset, mean, variance
    assert torch.autograd.gradcheck(function, data, check_forward_ad=True)
    assert torch.autograd.gradgradcheck(function, data, check_fwd_over_rev=True)
    for place in range(5):  # alone
        alone = [each.detach().requires_grad_(place == other) for other, each in enumerate(data)]
        assert torch.autograd.gradcheck(function, alone)
    plain = lambda input, mean, value: inference(input, mean, epsilon=epsilon, **{statistic: value})
    assert torch.autograd.gradcheck(plain, (input, mean, variance), check_forward_ad=True)


@pytest.mark.parametrize("dtype", [torch.bfloat16, torch.float16, torch.float32])
@pytest.mark.parametrize("parameter_type", [torch.bfloat16, torch.float32])
def test_types_of_derivatives(dtype, parameter_type):
    """Gradients and tangents have the type of their operand or result, and the value of f64."""
    data = operands(dtype, (8, 3, 5), parameter_type)[:3]
    exact = [tensor.detach().double().requires_grad_() for tensor in data]
    weights = torch.cos(torch.arange(120.0)).view(8, 3, 5)
    gradients = torch.autograd.grad((training(*data, 1e-3)[0].float() * weights).sum(), data)
    expected = torch.autograd.grad((formula(*exact)[0] * weights).sum(), exact)
    tangents = [torch.sin(tensor.detach()) for tensor in data]
    (results, along), (_, exactly) = (torch.func.jvp(
        lambda *data: function(*data)[:2], tuple(tensor.detach() for tensor in values),
        tuple(tangent.to(value.dtype) for tangent, value in zip(tangents, values)))
        for function, values in ((lambda *data: training(*data, 1e-3), data), (formula, exact)))
    assert [each.dtype for each in along] == [each.dtype for each in results]
    for one, other, type_ in zip((*gradients, *along), (*expected, *exactly),
                                 (dtype, parameter_type, parameter_type, dtype, torch.float32)):
        assert one.dtype == type_
        rough = 1e-5 if torch.float32 == dtype == parameter_type else 3e-2
        torch.testing.assert_close(one.double(), other, rtol=0, atol=rough * (1 + float(other.abs().max())))


@pytest.mark.parametrize("options", TRAINING, ids=str)
@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16])
def test_opcheck_of_training(options, dtype):
    data = operands(dtype, parameter_type=torch.float32)
    torch.library.opcheck(training.default, tuple(data[:3]), options)
    torch.library.opcheck(training.default, (data[0],), options)


@pytest.mark.parametrize("statistic", ["variance", "inv_std"])
def test_opcheck_of_inference(statistic):
    input, scale, offset, mean, variance = operands(torch.float32)
    torch.library.opcheck(inference.default, (input, mean, scale, offset), {statistic: variance})
    torch.library.opcheck(inference.default, (input, mean.detach()), {statistic: variance.detach()})


@pytest.mark.parametrize("dynamic", [False, True])
def test_compile(dynamic):
    """Values and gradients of graphs are those of eager mode."""
    torch._dynamo.reset()
    data = operands(torch.float32)

    def function(input, scale, offset, mean, variance):
        output, own, *_ = training(input, scale, offset, 1e-3)
        return inference(output, mean, variance=variance).sin(), own

    outcomes = []
    for each in (function, torch.compile(function, backend="aot_eager", fullgraph=True, dynamic=dynamic)):
        results = each(*data)
        outcomes.append([*results, *torch.autograd.grad(results[0].sum() + results[1].square().sum(), data)])
    for one, other in zip(*outcomes):
        torch.testing.assert_close(one, other)


def test_export():
    data = [tensor.detach() for tensor in operands(torch.float32)]

    class Module(torch.nn.Module):

        def forward(self, input, scale, offset, mean, variance):
            output = training(input, scale, offset)[0]
            return inference(output, mean, variance=variance)

    exported = torch.export.export(Module(), tuple(data))
    assert "bngrad.batch_norm_training" in str(exported.graph) and "bngrad.batch_norm_inference" in str(exported.graph)
    assert torch.equal(exported.module()(*data), Module()(*data))


@pytest.mark.parametrize("layout", ["contiguous", "channels_last"])
def test_threads_do_not_change_bits(layout):
    generator = torch.Generator().manual_seed(1)
    data = reference.lay_out(reference.make_data(generator, (8, 5, 33, 17), torch.float32), layout, generator)
    mean, variance, scale = reference.make_parameters(generator, (5,), torch.float32)
    threads, results = torch.get_num_threads(), []
    try:
        for count in (1, 2, 3, 4):
            torch.set_num_threads(count)
            results.append([*training(data, scale, mean), inference(data, mean, scale, variance=variance)])
    finally:
        torch.set_num_threads(threads)
    for other in results[1:]:
        assert all(torch.equal(*pair) for pair in zip(results[0], other))


def test_errors():
    x, s, o, m, v = (tensor.detach() for tensor in operands(torch.float32))
    cases = [
        (lambda: training(x, s[:2]), "scale: expected dim 0 .* 3, got 2|scale: expected the sizes"),
        (lambda: training(x, s, o.double()), "offset: expected the dtype of scale, f32, got f64"),
        (lambda: training(x.long()), "input: expected dtype .* got int64"),
        (lambda: training(x, epsilon=-1.0), "expected epsilon .* got -1"),
        (lambda: training(x, feature_dims=[4]), "feature_dims: .* -4 to 3, got 4"),
        (lambda: training(x, output_mask=[True]), "^output_mask: expected 4 values, got 1"),
        (lambda: training(x, output_mask=[False] * 4), "to be wanted, got none"),
        (lambda: training(x, s.to("meta")), "scale: expected the device of input, cpu, got meta"),
        (lambda: inference(x, m), "expected either variance or inv_std, got none"),
        (lambda: inference(x, m, variance=v, inv_std=v), "expected either variance or inv_std, got both"),
        (lambda: inference(x, m, inv_std=v, epsilon=0.5), "expected epsilon to be 0 with an inv_std"),
        (lambda: inference(x, m[:2], variance=v), "mean: expected dim 0 .* 3, got 2"),
        (lambda: inference(x, m, offset=o.half(), variance=v), "offset: expected the dtype of .* got f16"),
        (lambda: inference(x, m, variance=v.to("meta")), "variance: expected the device of input, cpu, got meta"),
    ]
    for call, message in cases:
        with pytest.raises(RuntimeError, match=message):
            call()
    on_meta = x.to("meta")
    for call in (lambda: training(on_meta, s[:2].to("meta")), lambda: inference(on_meta, m.to("meta"))):
        with pytest.raises(RuntimeError, match="expected"):
            call()
    x.untyped_storage().resize_(0)
    with pytest.raises(RuntimeError, match="input: expected a storage of at least 480 bytes, got 0"):
        training(x)


if __name__ == "__main__":
    sys.exit(pytest.main([__file__, "-q"]))
