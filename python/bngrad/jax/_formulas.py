"""The formulas of docs/mathematics.md in JAX.

They are for platforms without custom calls, for ops without a kernel, and for
derivatives.
Arithmetic is in f32, or in f64 if an operand is of f64.
"""

import functools
import math

import jax.numpy as jnp
from jax import lax


def find_type(operands):
    """The type of arithmetic."""
    given = [operands[name].dtype for name in ("input", "mean", "scale", "offset") if name in operands]
    return functools.reduce(jnp.promote_types, given, jnp.float32)


class Channels:
    """Sums per channel, and per-channel vectors that broadcast over data."""

    def __init__(self, operands, feature_dims):
        input = operands["input"]
        self.type = find_type(operands)
        self.dims = tuple(dim for dim in range(input.ndim) if dim not in feature_dims)
        self.count = math.prod(input.shape[dim] for dim in self.dims)

    def wide(self, value):
        return value.astype(self.type)

    def beside(self, vector):
        return jnp.expand_dims(self.wide(vector), self.dims)

    def total(self, value):
        return value.sum(self.dims)

    def mean(self, value):
        # Without elements, data are empty, and statistics are 0.
        return self.total(value) / jnp.maximum(self.count, 1).astype(self.type)


def inv_std(options, operands, channels):
    """1 / sqrt(variance + epsilon)."""
    statistic = channels.wide(operands["statistic"])
    if options.statistic == "inv_std":
        return statistic
    return lax.rsqrt(statistic + options.epsilon)


def _masked(operands, channels):
    grad_output = channels.wide(operands["grad_output"])
    if "mask" in operands:
        grad_output = jnp.where(operands["mask"], grad_output, 0)
    return grad_output


def _sums(operands, channels):
    """The masked grad_output, the centered input, and the sums of the former and
    of the product."""
    grad_output = _masked(operands, channels)
    centered = channels.wide(operands["input"]) - channels.beside(operands["mean"])
    return grad_output, centered, channels.total(grad_output), channels.total(grad_output * centered)


def _grad_input(options, operands, channels, grad_output, centered, means):
    """`means` of grad_output, and of that times the centered input; None: the
    statistics are constants."""
    factor = std = inv_std(options, operands, channels)
    if "scale" in operands:
        factor = channels.wide(operands["scale"]) * std
    if means is not None:
        mean, slope = means[0], means[1] * std * std
        grad_output = grad_output - channels.beside(mean) - centered * channels.beside(slope)
    return (grad_output * channels.beside(factor)).astype(operands["input"].dtype)


def backward(options, operands):
    """The gradients that `options` wants."""
    channels = Channels(operands, options.feature_dims)
    grad_output, centered, total, product = _sums(operands, channels)
    means = None
    if options.statistics == "batch":
        count = jnp.maximum(channels.count, 1).astype(channels.type)
        means = total / count, product / count
    type = operands["mean"].dtype
    wanted = options.wanted or (True,) * 3
    results = []
    if wanted[0]:
        results.append(_grad_input(options, operands, channels, grad_output, centered, means))
    if wanted[1]:
        grad_scale = product * inv_std(options, operands, channels)
        # For any inv_std.
        results.append((grad_scale if channels.count else jnp.zeros_like(grad_scale)).astype(type))
    if wanted[2]:
        results.append(total.astype(type))
    return tuple(results)


def reduce(options, operands):
    """The sums."""
    channels = Channels(operands, options.feature_dims)
    _, _, total, product = _sums(operands, channels)
    type = jnp.promote_types(operands["input"].dtype, jnp.float32)
    return (jnp.stack([total, product]).astype(type),)


def elemt(options, operands):
    """grad_input from sums over all elements."""
    channels = Channels(operands, options.feature_dims)
    grad_output = _masked(operands, channels)
    centered = channels.wide(operands["input"]) - channels.beside(operands["mean"])
    count = operands["count"].astype(channels.type) if "count" in operands else float(options.count)
    means = channels.wide(operands["sums"]) / count
    return (_grad_input(options, operands, channels, grad_output, centered, means),)


def _normalize(operands, channels, centered, std):
    factor = channels.wide(operands["scale"]) * std if "scale" in operands else std
    output = centered * channels.beside(factor)
    if "offset" in operands:
        output = output + channels.beside(operands["offset"])
    return output.astype(operands["input"].dtype)


def training(options, operands):
    """The wanted ones of output, mean, variance and inv_std."""
    channels = Channels(operands, options.feature_dims)
    input = channels.wide(operands["input"])
    mean = channels.mean(input)
    centered = input - channels.beside(mean)
    variance = channels.mean(lax.square(centered))
    std = lax.rsqrt(variance + options.epsilon)
    results = _normalize(operands, channels, centered, std), mean, variance, std
    return tuple(result for result, is_wanted in zip(results, options.wanted or (True,) * 4) if is_wanted)


def inference(options, operands):
    """The output."""
    channels = Channels(operands, options.feature_dims)
    centered = channels.wide(operands["input"]) - channels.beside(operands["mean"])
    return (_normalize(operands, channels, centered, inv_std(options, operands, channels)),)
