"""Fake kernels and derivatives of torch.ops.bngrad.batch_norm_training and
batch_norm_inference.

The kernels themselves and the schemas are in libbngrad_torch.so.
"""

from collections.abc import Sequence

import torch
from torch import Tensor

from ._ops import (_accumulator, _check, _feature_dims, _like, _register,
                   _spread, _sum)

# Fake kernels ---------------------------------------------------------------


def _check_channels(input: Tensor, feature_dims: Sequence[int],
                    **parameters: Tensor | None) -> list[int]:
    """The sizes of the feature dims, which all parameters have."""
    sizes = [input.shape[d] for d in _feature_dims(input.dim(), feature_dims)]
    for name, tensor in parameters.items():
        if tensor is None:
            continue
        # PyTorch calls the fake kernel if a single operand is on "meta".
        _check(tensor.device == input.device,
               f"{name}: expected the device of input, {input.device}, "
               f"got {tensor.device}")
        _check(list(tensor.shape) == sizes,
               f"{name}: expected the sizes of the feature dims, "
               f"{tuple(sizes)}, got {tuple(tensor.shape)}")
    return sizes


@torch.library.register_fake("bngrad::batch_norm_training")
def _(input, scale=None, offset=None, epsilon=1e-5, feature_dims=(1,),
      output_mask=(True, True, True, True)):
    sizes = _check_channels(input, feature_dims, scale=scale, offset=offset)
    dtype = _accumulator(input, scale, offset)
    return (torch.empty_like(input) if output_mask[0] else None,
            *(input.new_empty(sizes, dtype=dtype) if is_wanted else None
              for is_wanted in output_mask[1:]))


@torch.library.register_fake("bngrad::batch_norm_inference")
def _(input, mean, scale=None, offset=None, variance=None, inv_std=None,
      epsilon=0.0, feature_dims=(1,)):
    _check_channels(input, feature_dims, mean=mean, scale=scale, offset=offset,
                    variance=variance, inv_std=inv_std)
    _check((variance is None) != (inv_std is None),
           "expected either variance or inv_std")
    return torch.empty_like(input)


# Derivatives ----------------------------------------------------------------
#
# With c = input - mean, r the inv_std, s the scale, o the offset:
#
#   output = c r s + o
#
# The derivative of output is a gradient of batch norm, an op with derivatives
# of its own. In training, mean, variance E(c^2) and inv_std
# (variance + epsilon)^(-1/2) are results, whose derivatives are added:
#
#   d mean / d input = 1 / M, d variance / d input = 2 c / M,
#   d inv_std / d variance = -r^3 / 2


def _count(input: Tensor, channels: Tensor) -> int:
    """The elements of a channel; 1 if there are none."""
    return max(input.numel() // max(channels.numel(), 1), 1)


def _list_wanted(ctx, count: int) -> list[bool]:
    """Whether each of the first operands needs a derivative. PyTorch leaves out
    the last ones of a call if they have their default values."""
    return [*ctx.needs_input_grad, *[False] * count][:count]


def _scaled(scale: Tensor | None, value: Tensor) -> Tensor:
    return value if scale is None else value * scale.to(value.dtype)


def _inverse_deviation(ctx, variance: Tensor | None,
                       inv_std: Tensor | None) -> Tensor:
    """inv_std in the type in which sums are computed."""
    given = variance if inv_std is None else inv_std
    value = given.to(_accumulator(ctx.saved_tensors[0], given))
    return value if inv_std is not None else (value + ctx.epsilon).rsqrt()


def _setup_training(ctx, inputs, output):
    (input, scale, offset, ctx.epsilon, ctx.feature_dims,
     ctx.output_mask) = inputs
    _, mean, _, inv_std = output or (None,) * 4
    # Results that nothing uses have no derivative, instead of zeros.
    ctx.set_materialize_grads(False)
    ctx.save_for_backward(input, scale, offset, mean, inv_std)


def _differentiate_training(ctx, of_output, *of_statistics):
    input, scale, offset, mean, inv_std = ctx.saved_tensors
    if mean is None or inv_std is None:
        _, mean, _, inv_std = torch.ops.bngrad.batch_norm_training(
            input, scale, offset, ctx.epsilon, ctx.feature_dims,
            [False, True, False, True])
    to_input = to_scale = to_offset = None
    wanted = _list_wanted(ctx, 3)
    if of_output is not None and ctx.output_mask[0] and any(wanted):
        to_input, to_scale, to_offset = torch.ops.bngrad.batch_norm_backward(
            of_output, input, mean, inv_std=inv_std,
            scale=None if scale is None else scale.to(mean.dtype),
            feature_dims=ctx.feature_dims, output_mask=wanted)
    if wanted[0]:
        for each in _differentiate_statistics(ctx, of_statistics, mean,
                                              inv_std):
            to_input = each if to_input is None else to_input + each
        to_input = None if to_input is None else to_input.to(input.dtype)
    return (to_input,
            None if to_scale is None else _like(scale, to_scale),
            None if to_offset is None else _like(offset, to_offset),
            None, None, None)


def _differentiate_statistics(ctx, of_statistics, mean, inv_std):
    """The parts of the derivative by input of mean, variance and inv_std."""
    of_mean, of_variance, of_inv_std = (
        value if is_wanted else None
        for value, is_wanted in zip(of_statistics, ctx.output_mask[1:]))
    input = ctx.saved_tensors[0]
    spread = lambda value: _spread(value, input, ctx.feature_dims)
    count = _count(input, mean)
    if of_mean is not None:
        yield spread(of_mean / count).expand(input.shape)
    if of_inv_std is not None:
        part = -0.5 * inv_std**3 * of_inv_std
        of_variance = part if of_variance is None else of_variance + part
    if of_variance is not None:
        yield spread(2 / count * of_variance) * (input.to(mean.dtype) -
                                                 spread(mean))


def _setup_inference(ctx, inputs, output):
    (input, mean, scale, offset, variance, inv_std, ctx.epsilon,
     ctx.feature_dims) = inputs
    ctx.save_for_backward(input, mean, scale, offset, variance, inv_std)


def _differentiate_inference(ctx, of_output):
    input, mean, scale, offset, variance, inv_std = ctx.saved_tensors
    dims = ctx.feature_dims
    of_input, of_mean, of_scale, of_offset, of_variance, of_inv_std = (
        _list_wanted(ctx, 6))
    to_mean = to_variance = to_inv_std = None
    mask = [of_input, of_scale or of_variance, of_offset or of_mean]
    to_input = to_scale = to_offset = None
    if any(mask):
        to_input, to_scale, to_offset = torch.ops.bngrad.batch_norm_backward(
            of_output, input, mean, scale=scale, variance=variance,
            inv_std=inv_std, epsilon=ctx.epsilon, feature_dims=dims,
            statistics="global", output_mask=mask)
    r = _inverse_deviation(ctx, variance, inv_std)
    if of_mean:
        to_mean = -_scaled(scale, r * to_offset).to(mean.dtype)
    if of_variance:
        to_variance = (-0.5 * _scaled(scale, r.square() * to_scale)).to(
            variance.dtype)
    if of_inv_std:
        sums = torch.ops.bngrad.batch_norm_backward_reduce(
            of_output, input, mean, feature_dims=dims)
        to_inv_std = _scaled(scale, sums[1]).to(inv_std.dtype)
    return (to_input, to_mean, to_scale if of_scale else None,
            to_offset if of_offset else None, to_variance, to_inv_std, None,
            None)


# Forward mode ---------------------------------------------------------------


def _apply(ctx, centered: Tensor, inv_std: Tensor, scale: Tensor | None,
           offset: Tensor | None) -> Tensor:
    spread = lambda value: _spread(value, centered, ctx.feature_dims)
    output = centered * spread(_scaled(scale, inv_std))
    return output if offset is None else output + spread(
        offset.to(output.dtype))


def _training(ctx):
    input, scale, offset = ctx.saved_tensors[:3]
    x = input.to(_accumulator(input, scale, offset))
    average = lambda value: _sum(value, ctx.feature_dims) / _count(
        input, _sum(value, ctx.feature_dims))
    mean = average(x)
    centered = x - _spread(mean, x, ctx.feature_dims)
    variance = average(centered.square())
    inv_std = (variance + ctx.epsilon).rsqrt()
    output = _apply(ctx, centered, inv_std, scale, offset).to(input.dtype)
    return tuple(result if is_wanted else None for result, is_wanted in zip(
        (output, mean, variance, inv_std), ctx.output_mask))


def _inference(ctx):
    input, mean, scale, offset, variance, inv_std = ctx.saved_tensors
    dtype = _accumulator(input, mean)
    centered = input.to(dtype) - _spread(mean.to(dtype), input,
                                         ctx.feature_dims)
    r = _inverse_deviation(ctx, variance, inv_std).to(dtype)
    return _apply(ctx, centered, r, scale, offset).to(input.dtype)


_register("batch_norm_training", _setup_training, _differentiate_training,
          _training)
_register("batch_norm_inference", _setup_inference, _differentiate_inference,
          _inference)
