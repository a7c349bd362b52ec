# RUN: %python -m pytest -q %s
# REQUIRES: jax
"""bngrad.jax under jax.vmap."""

import functools
import os
import sys

sys.path.insert(0, os.path.join(os.path.dirname(__file__), "Inputs"))
from jax_training import SHAPE, assert_close, backward, data, loss_of, native  # before JAX is imported

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import bngrad.jax as bj


@pytest.mark.parametrize("axes", [
    (0,) * 6, (0, None, None, None, None, None), (None, 0, None, None, None, None), (None,) * 5 + (0,),
    (None, None, None, 0, None, None), (1, 2, 1, None, 0, 3), (-1, 0, None, 1, None, None),
])
def test_vmap_of_gradient(axes):
    generator = np.random.default_rng(2)
    shapes = [SHAPE, SHAPE, (4,), (4,), (4,), SHAPE]

    def make(shape, axis, index):
        if axis is not None:
            axis = axis % (len(shape) + 1)
            shape = shape[:axis] + (3,) + shape[axis:]
        value = generator.standard_normal(shape)
        return jnp.asarray(value > -0.5 if index == 5 else abs(value) if index == 4 else value)

    operands = [make(shape, axis, index) for index, (shape, axis) in enumerate(zip(shapes, axes))]
    found = jax.jit(jax.vmap(backward, axes))(*operands)
    for index in range(3):
        item = [value if axis is None else jnp.take(value, index, axis) for value, axis in zip(operands, axes)]
        # Bitwise.
        for one, other in zip(found, backward(*item)):
            np.testing.assert_array_equal(one[index], other)


def test_vmap_of_vmap():
    x, scale, bias, dy = data()
    xs, scales = jnp.stack([x, 2 * x, x * x]), jnp.stack([scale, -scale])
    mean, variance = x.mean((0, 1, 2)), x.var((0, 1, 2))
    one = lambda x, scale: backward(dy, x, mean, scale, variance, None)
    found = jax.vmap(jax.vmap(one, (None, 0)), (0, None))(xs, scales)
    swapped = jax.vmap(jax.vmap(one, (0, None)), (None, 0))(xs, scales)
    for i in range(3):
        for j in range(2):
            for result, other, expected in zip(found, swapped, one(xs[i], scales[j])):
                np.testing.assert_array_equal(result[i, j], expected)
                np.testing.assert_array_equal(other[j, i], expected)


def test_vmap_of_halves():
    x, scale, bias, dy = data()
    xs, counts = jnp.stack([x, x * x]), jnp.asarray([300, 500])
    mean, variance = x.mean((0, 1, 2)), x.var((0, 1, 2))

    def half(x, count):
        sums = bj.batch_norm_backward_reduce(dy, x, mean, feature_dims=(3,))
        return bj.batch_norm_backward_elemt(dy, x, mean, sums, count, variance=variance, feature_dims=(3,))

    found = jax.vmap(half)(xs, counts)
    for index in range(2):
        np.testing.assert_array_equal(found[index], half(xs[index], counts[index]))


def test_vmap_of_training():
    x, scale, bias, weight = data()
    xs, scales = jnp.stack([x, x * x + 1]), jnp.stack([scale, scale - 1])
    assert_close(jax.vmap(jax.grad(loss_of(bj.batch_norm), (0, 1)), (0, 0, None, None))(xs, scales, bias, weight),
                 jax.vmap(jax.grad(loss_of(native), (0, 1)), (0, 0, None, None))(xs, scales, bias, weight))
    empty = jax.vmap(jax.grad(loss_of(bj.batch_norm)), (0, None, None, None))(xs[:0], scale, bias, weight)
    assert empty.shape == (0, *SHAPE)


def test_vmap_of_forward_mode():
    x, scale, bias, weight = data(shape=(4, 3, 2, 5))
    tangent = data(shape=(4, 3, 2, 5), seed=1)[0]
    xs, scales = jnp.stack([x, x * x + 1]), jnp.stack([scale, scale - 1])

    def along(function, x, scale):
        return jax.jvp(lambda x, scale: function(x, scale, bias), (x, scale), (tangent, 2 * scale))[1]

    for axes in ((0, None), (None, 0), (0, 0)):
        operands = [batch if axis == 0 else one for axis, batch, one in zip(axes, (xs, scales), (x, scale))]
        ours, theirs = (jax.vmap(functools.partial(along, function), axes) for function in (bj.batch_norm, native))
        assert_close(ours(*operands), theirs(*operands))
        assert_close(jax.jit(ours)(*operands), theirs(*operands))

    def loss(function, xs, scale):
        return jax.vmap(lambda x: loss_of(function)(x, scale, bias, weight))(xs).sum()

    def twice(function, xs, scale):
        return jax.vmap(lambda x: loss(function, xs * x.mean(), scale))(xs).sum()

    for function in (loss, twice):
        for transform in (lambda loss: jax.grad(loss, (0, 1)),
                          lambda loss: lambda *two: jax.jvp(loss, two, (jnp.cos(two[0]), two[1]))):
            assert_close(*[jax.jit(transform(functools.partial(function, each)))(xs, scale)
                           for each in (bj.batch_norm, native)])


def test_vmap_with_an_axis_name():
    x, scale, bias, weight = data()
    shards = [value.reshape(4, 2, *SHAPE[1:]) for value in (x, weight)]

    def loss(x):
        parts = jax.vmap(lambda x: bj.batch_norm(x, scale, bias, axis_name="i")[0], axis_name="i")(x)
        return (parts * shards[1]).sum()

    expected = jax.grad(lambda x: (native(x, scale, bias)[0] * weight).sum())(x)
    assert_close(jax.grad(loss)(shards[0]).reshape(SHAPE), expected)


if __name__ == "__main__":
    sys.exit(pytest.main([__file__, "-q"]))
