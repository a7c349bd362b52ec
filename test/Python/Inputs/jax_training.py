"""Data of batch norms, and their formula in jax.numpy, for the tests of bngrad.jax.

It gives JAX four devices, and therefore has to be imported before JAX.
"""

import os

os.environ["XLA_FLAGS"] = os.environ.get("XLA_FLAGS", "") + " --xla_force_host_platform_device_count=4"
import jax
import jax.numpy as jnp
import numpy as np
from jax import lax
from jax.sharding import Mesh

import bngrad.jax as bj

jax.config.update("jax_enable_x64", True)

SHAPE = (8, 6, 5, 4)


def data(type="float64", shape=SHAPE, feature_dims=(3,), seed=0):
    """x, scale, bias and a cotangent of the output."""
    generator = np.random.default_rng(seed)
    channels = tuple(shape[dim] for dim in feature_dims)
    number = np.arange(np.prod(channels)).reshape(channels)
    x = generator.standard_normal(shape) * np.expand_dims(
        1 + 0.2 * number, tuple(dim for dim in range(len(shape)) if dim not in feature_dims))
    return tuple(jnp.asarray(value, type) for value in (
        x + 0.4, 0.5 + 0.1 * number, 0.3 * number - 1, generator.standard_normal(shape)))


def native(x, scale, bias, feature_dims=(3,), epsilon=1e-5, mask=None):
    """Batch normalization in terms of jax.numpy."""
    dims = tuple(dim for dim in range(x.ndim) if dim not in feature_dims)
    mean = x.mean(dims, where=mask)
    variance = lax.square(x - jnp.expand_dims(mean, dims)).mean(dims, where=mask)
    y = (x - jnp.expand_dims(mean, dims)) * jnp.expand_dims(scale * lax.rsqrt(variance + epsilon), dims)
    return y + jnp.expand_dims(bias, dims), mean, variance


def loss_of(function):
    """A loss of all three results."""
    def loss(x, scale, bias, weight):
        y, mean, variance = function(x, scale, bias)
        return (y * weight + y * y * jnp.cos(weight)).sum() + (mean * 3 + variance * variance).sum()
    return loss


def assert_close(left, right, tolerance=1e-11):
    assert jax.tree.structure(left) == jax.tree.structure(right)
    for one, other in zip(jax.tree.leaves(left), jax.tree.leaves(right)):
        assert one.dtype == other.dtype and one.shape == other.shape
        scale = np.abs(np.asarray(other, np.float64)).max(initial=1e-30)
        np.testing.assert_allclose(np.asarray(one, np.float64), np.asarray(other, np.float64),
                                   rtol=0, atol=tolerance * scale)


def backward(dy, x, mean, scale, variance, mask):
    return bj.batch_norm_backward(dy, x, mean, scale=scale, variance=variance, mask=mask, feature_dims=(3,))


def mesh(names=("d",), shape=(4,)):
    return Mesh(np.array(jax.devices()[:4]).reshape(shape), names)
