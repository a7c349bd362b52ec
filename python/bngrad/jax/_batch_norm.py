"""Batch normalization that is computed, like its gradient, by the C library."""

from __future__ import annotations

import dataclasses
import functools
import math
from collections.abc import Sequence
from typing import Any

import jax
import jax.numpy as jnp
from jax import Array, lax
from jax.typing import ArrayLike

from . import _forward, _gradients, _linear
from ._calls import vary_alike, varying_axes


@dataclasses.dataclass(frozen=True)
class _Options:
    feature_dims: tuple[int, ...]
    epsilon: float
    axis_name: Any
    axis_index_groups: Any
    num_devices: int
    # The types of the output and of arithmetic.
    dtype: Any
    type: Any


def _reduced(options, x):
    return tuple(dim for dim in range(x.ndim) if dim not in options.feature_dims)


def _beside(options, x, vector):
    return jnp.expand_dims(vector, _reduced(options, x))


def _mean_over_devices(options, value):
    if options.axis_name is None:
        return value
    return lax.pmean(value, options.axis_name, axis_index_groups=options.axis_index_groups)


def _statistics(options, x, mask):
    """Mean and variance in two passes, so that no digits cancel if the mean is far
    from 0."""
    dims = _reduced(options, x)
    x = x.astype(options.type)
    mean = _mean_over_devices(options, x.mean(dims, where=mask))
    square = lax.square(x - _beside(options, x, mean))
    return mean, _mean_over_devices(options, square.mean(dims, where=mask))


def _gain(options, scale, variance):
    gain = lax.rsqrt(variance.astype(options.type) + options.epsilon)
    return gain if scale is None else gain * scale.astype(options.type)


def _normalize(options, x, scale, bias, mean, variance):
    """y, in element-wise ops, which XLA fuses with others."""
    y = x.astype(options.type) - _beside(options, x, mean.astype(options.type))
    y = y * _beside(options, x, _gain(options, scale, variance))
    if bias is not None:
        y = y + _beside(options, x, bias.astype(options.type))
    return y.astype(options.dtype)


def _operands(options, grad_output, x, scale, mean, variance):
    """Operands of the gradient and its keyword arguments."""
    common = jnp.promote_types(grad_output.dtype, x.dtype)
    keywords = {
        "scale": None if scale is None else scale.astype(options.type),
        "variance": variance.astype(options.type),
        "epsilon": options.epsilon,
        "feature_dims": options.feature_dims,
    }
    return (grad_output.astype(common), x.astype(common), mean.astype(options.type)), keywords


def _make_linear(options, tangent, transpose):
    """The change of y, as `tangent` computes it, with the gradients of the C library."""
    names = options.axis_name if isinstance(options.axis_name, tuple) else (options.axis_name,)
    return _linear.Linear(tangent, transpose, options, names)


def _like(grad, value):
    return None if value is None else grad.astype(value.dtype)


def _find_statistics(options, x, mask):
    """As `_statistics`, by the C library where it can, but without derivatives."""
    if mask is not None or 0 in x.shape:
        return _statistics(options, x, mask)
    _, mean, variance, _ = _forward.batch_norm_training(
        x, feature_dims=options.feature_dims, wanted=("mean", "variance"))
    mean, variance = mean.astype(options.type), variance.astype(options.type)
    # Chan's formula for parts of one size.
    total = _mean_over_devices(options, mean)
    return total, _mean_over_devices(options, variance + lax.square(mean - total))


def _is_whole(options, x, scale, bias, mask):
    """Whether the C library computes y, too. Its results vary over the same devices."""
    if mask is not None or options.axis_name is not None or 0 in x.shape:
        return False
    return all(varying_axes(each) <= varying_axes(x) for each in (scale, bias) if each is not None)


# The derivative of y with respect to x is the total one, also through mean and variance.
@functools.partial(jax.custom_jvp, nondiff_argnums=(0,))
def _train(options, x, scale, bias, mask):
    """y, mean and variance."""
    if not _is_whole(options, x, scale, bias, mask):
        mean, variance = _find_statistics(options, x, mask)
        return _normalize(options, x, scale, bias, mean, variance), mean, variance
    scale, bias = (None if each is None else each.astype(options.type) for each in (scale, bias))
    y, mean, variance, _ = _forward.batch_norm_training(
        # Its output has the type of its input.
        x.astype(jnp.promote_types(x.dtype, options.dtype)), scale=scale, offset=bias, epsilon=options.epsilon,
        feature_dims=options.feature_dims, wanted=("output", "mean", "variance"))
    return y.astype(options.dtype), mean.astype(options.type), variance.astype(options.type)


def _train_tangent(options, arguments, tangents):
    """The change of y in forward mode, by the formula."""
    x, scale, bias, mask, _, _ = arguments

    def function(x, scale, bias):
        return _normalize(options, x, scale, bias, *_statistics(options, x, mask))

    return jax.jvp(function, (x, scale, bias), tangents)[1]


def _shared_gradients(options, grad_output, x, scale, mask, mean, variance):
    """The gradients if several devices, or only some elements, have statistics."""
    operands, keywords = _operands(options, grad_output, x, scale, mean, variance)
    sums = total = _gradients.batch_norm_backward_reduce(*operands, feature_dims=options.feature_dims)
    if options.axis_name is not None:
        total = lax.psum(sums, options.axis_name, axis_index_groups=options.axis_index_groups)
    dims = _reduced(options, x)
    if mask is None:
        count = max(math.prod(x.shape[dim] for dim in dims) * options.num_devices, 1)
        grad_x = _gradients.batch_norm_backward_elemt(*operands, total, count, **keywords)
    else:
        # The mean of means over the elements of each device.
        elements = jnp.broadcast_to(mask, x.shape).sum(dims, dtype=total.dtype)
        means = total / (elements * options.num_devices)
        inside = _gradients.batch_norm_backward_elemt(*operands, means, 1, **keywords)
        outside = operands[0] * _beside(options, x, _gain(options, scale, variance))
        grad_x = jnp.where(mask, inside, outside.astype(inside.dtype))
    return grad_x, sums[1] * lax.rsqrt(variance + options.epsilon), sums[0]


def _train_backward(options, arguments, grad_output):
    x, scale, bias, mask, mean, variance = arguments
    if options.axis_name is None and mask is None:
        operands, keywords = _operands(options, grad_output, x, scale, mean, variance)
        grads = _gradients.batch_norm_backward(*operands, **keywords)
    else:
        grads = _shared_gradients(options, grad_output, x, scale, mask, mean, variance)
    return tuple(map(_like, grads, (x, scale, bias)))


@_train.defjvp
def _differentiate_train(options, arguments, tangents):
    x, scale, bias, mask = arguments
    results = _train(options, *arguments)
    linear = _make_linear(options, _train_tangent, _train_backward)
    residuals, moved = vary_alike(((*arguments, *results[1:]), tangents[:3]))
    change = _linear.call(linear, residuals, moved, options.dtype)
    _, changes = jax.jvp(lambda x: _statistics(options, x, mask), (x,), tangents[:1])
    return results, (change, *changes)


@functools.partial(jax.custom_jvp, nondiff_argnums=(0,))
def _frozen(options, x, scale, bias, mean, variance):
    return _normalize(options, x, scale, bias, mean, variance)


def _frozen_tangent(options, arguments, tangents):
    return jax.jvp(functools.partial(_normalize, options), arguments, tangents)[1]


def _frozen_backward(options, arguments, grad_output):
    x, scale, bias, mean, variance = arguments
    operands, keywords = _operands(options, grad_output, x, scale, mean, variance)
    grad_x, grad_scale, grad_bias = _gradients.batch_norm_backward(*operands, statistics="global", **keywords)
    # y = (x - mean) * gain + bias, and gain = scale / sqrt(variance + epsilon).
    grad_mean = -grad_bias * _gain(options, scale, variance)
    grad_variance = -0.5 * grad_scale / (variance.astype(options.type) + options.epsilon)
    if scale is not None:
        grad_variance = grad_variance * scale.astype(options.type)
    return tuple(map(_like, (grad_x, grad_scale, grad_bias, grad_mean, grad_variance), arguments))


@_frozen.defjvp
def _differentiate_frozen(options, arguments, tangents):
    linear = _make_linear(options, _frozen_tangent, _frozen_backward)
    return _frozen(options, *arguments), _linear.call(linear, arguments, tangents, options.dtype)


def normalize(
    x: Array,
    scale: Array | None,
    bias: Array | None,
    mean: Array | None,
    variance: Array | None,
    mask: Array | None,
    *,
    feature_dims: tuple[int, ...],
    epsilon: float,
    axis_name: Any = None,
    axis_index_groups: Any = None,
    dtype: Any = None,
    type: Any = None,
) -> tuple[Array, Array, Array]:
    """`batch_norm` of arguments that have been checked.

    Args:
      feature_dims: ascending, at least 0.
      dtype: of y.
      type: of computed statistics, and of arithmetic.
    """
    groups = axis_index_groups
    if groups is not None:
        groups = tuple(tuple(group) for group in groups)
    if isinstance(axis_name, list):
        axis_name = tuple(axis_name)
    num_devices = 1 if axis_name is None else lax.psum(1, axis_name, axis_index_groups=groups)
    options = _Options(
        feature_dims, epsilon, axis_name, groups, num_devices, jnp.dtype(dtype), jnp.dtype(type))
    if mean is not None:
        return _frozen(options, *vary_alike((x, scale, bias, mean, variance))), mean, variance
    return _train(options, x, scale, bias, mask)


def batch_norm(
    x: ArrayLike,
    scale: ArrayLike | None = None,
    bias: ArrayLike | None = None,
    *,
    mean: ArrayLike | None = None,
    variance: ArrayLike | None = None,
    mask: ArrayLike | None = None,
    feature_dims: int | Sequence[int] = (-1,),
    epsilon: float = 1e-5,
    axis_name: Any = None,
    axis_index_groups: Any = None,
) -> tuple[Array, Array, Array]:
    """Batch normalization: (x - mean) * scale / sqrt(variance + epsilon) + bias.

    On CPUs and on CUDA, mean and variance of x, and y from them, are computed as by
    `batch_norm_training`, and reverse-mode differentiation calls
    `batch_norm_backward`. XLA fuses other normalization with its neighbours.
    Forward mode computes the derivative of the formula. Both can be differentiated again.

    Args:
      x: any shape of rank 1 or more; f16, bf16, f32 or f64.
      scale, bias: the sizes of the feature dims; any of these types; None: 1
        and 0.
      mean, variance: the same shape; None: those of x over its other dims, the
        variance biased. Otherwise they are constants of the normalization, as
        for frozen batch normalization, and have gradients, too.
      mask: bool, broadcastable to x; selects the elements from which mean and
        variance are computed. All elements are normalized.
      feature_dims: dims of x, ascending; negative ones count from the end.
      epsilon: is added to the variance.
      axis_name: axes of `jax.shard_map`, `jax.pmap` or `jax.vmap` over whose
        devices mean and variance are averaged; each must have a shard of one
        size. Gradients of scale and bias are those of the shard.
      axis_index_groups: groups of such devices; see `jax.lax.psum`.

    Returns:
      y, shape and type of x; mean and variance, f32, or f64 if an argument is
      of f64. Each of them can be differentiated. Without elements, mean and
      variance are NaN, as in flax, unlike those of `batch_norm_training`.

    Raises:
      TypeError: a type; ValueError: a shape or an option. The text names the
      argument, the expected and the actual value.
    """
    x = jnp.asarray(x)
    _gradients.check_float("x", x)
    dims = _gradients.find_feature_dims(feature_dims, x.ndim, "x")
    if (mean is None) != (variance is None):
        raise ValueError("mean, variance: expected both or none, got one")
    if mean is not None and (mask is not None or axis_name is not None):
        raise ValueError("mask, axis_name: expected none with a given mean and variance, got one")
    type = jnp.promote_types(x.dtype, jnp.float32)
    vectors = {"scale": scale, "bias": bias, "mean": mean, "variance": variance}
    for name, value in vectors.items():
        if value is None:
            continue
        vectors[name] = jnp.asarray(value)
        _gradients.check_float(name, vectors[name])
        _gradients.check_shape(name, vectors[name].shape, x, dims, of="x")
        type = jnp.promote_types(type, vectors[name].dtype)
    if mask is not None:
        mask = jnp.asarray(mask)
        if mask.dtype != bool:
            raise TypeError(f"mask: expected dtype bool, got {mask.dtype.name}")
        if jnp.broadcast_shapes(mask.shape, x.shape) != x.shape:
            raise ValueError(f"mask: expected a shape that broadcasts to {x.shape}, got {mask.shape}")
    return normalize(
        x, *vectors.values(), mask, feature_dims=dims, epsilon=_gradients.check_epsilon(epsilon),
        axis_name=axis_name, axis_index_groups=axis_index_groups, dtype=x.dtype, type=type)
