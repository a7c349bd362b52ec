# RUN: %python -m pytest -q %s
# REQUIRES: jax
"""bngrad.jax.batch_norm: values and derivatives of all orders, in reverse and forward mode."""

import functools
import os
import sys

sys.path.insert(0, os.path.join(os.path.dirname(__file__), "Inputs"))
from jax_training import SHAPE, assert_close, data, loss_of, native  # before JAX is imported

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from jax import lax
from jax.test_util import check_grads

import bngrad.jax as bj


@pytest.mark.parametrize("feature_dims", [(3,), (1,), (0,), (1, 3), (0, 2), (0, 1, 2, 3)])
def test_value_and_gradient(feature_dims):
    arguments = data(feature_dims=feature_dims)
    ours = functools.partial(bj.batch_norm, feature_dims=feature_dims)
    theirs = functools.partial(native, feature_dims=feature_dims)
    assert_close(ours(*arguments[:3]), theirs(*arguments[:3]))
    for jit in (jax.jit, lambda function: function):
        assert_close(jit(jax.grad(loss_of(ours), (0, 1, 2)))(*arguments),
                     jax.grad(loss_of(theirs), (0, 1, 2))(*arguments))


@pytest.mark.parametrize("type, tolerance", [("float32", 3e-5), ("bfloat16", 2e-2), ("float16", 3e-3)])
def test_types(type, tolerance):
    x, scale, bias, weight = data(type)
    for parameter in ("float32", type):
        def total(function, *arguments):
            y, mean, variance = function(*arguments)
            return (y.astype("float64") * weight).sum()
        arguments = x, scale.astype(parameter), bias.astype(parameter)
        y, mean, variance = bj.batch_norm(*arguments)
        assert (y.dtype, mean.dtype, variance.dtype) == (type, jnp.float32, jnp.float32)
        ours = jax.grad(functools.partial(total, bj.batch_norm), (0, 1, 2))(*arguments)
        exact = jax.grad(functools.partial(total, native), (0, 1, 2))(
            *(value.astype("float64") for value in arguments))
        for one, other, argument in zip(ours, exact, arguments):
            assert one.dtype == argument.dtype
            np.testing.assert_allclose(np.asarray(one, np.float64), other, rtol=0,
                                       atol=tolerance * np.abs(other).max())


def test_statistics_are_accurate():
    # E[x^2] - E[x]^2 has no digit left here.
    x = jnp.asarray(np.random.default_rng(0).standard_normal((512, 3)) + 4000 * np.arange(1, 4), "float32")
    _, mean, variance = bj.batch_norm(x)
    exact = np.asarray(x, np.float64)
    np.testing.assert_allclose(mean, exact.mean(0), rtol=3e-7)
    np.testing.assert_allclose(variance, exact.var(0), rtol=1e-5)


def test_absent_scale_and_bias():
    x, scale, bias, weight = data()
    for ours, theirs in [
        (lambda x, s, b: bj.batch_norm(x), lambda x, s, b: native(x, jnp.ones(4), jnp.zeros(4))),
        (lambda x, s, b: bj.batch_norm(x, s), lambda x, s, b: native(x, s, jnp.zeros(4))),
        (lambda x, s, b: bj.batch_norm(x, None, b), lambda x, s, b: native(x, jnp.ones(4), b)),
    ]:
        assert_close(jax.grad(loss_of(ours), (0, 1, 2))(x, scale, bias, weight),
                     jax.grad(loss_of(theirs), (0, 1, 2))(x, scale, bias, weight))


def test_some_arguments():
    arguments = data()
    for which in ((0,), (1,), (2,), (0, 2), (1, 2)):
        assert_close(jax.grad(loss_of(bj.batch_norm), which)(*arguments),
                     jax.grad(loss_of(native), which)(*arguments))
        # Gradients of the statistics alone.
        def statistics(function, *arguments):
            return (function(*arguments[:3])[2] * jnp.arange(4.)).sum()
        assert_close(jax.grad(functools.partial(statistics, bj.batch_norm), which)(*arguments),
                     jax.grad(functools.partial(statistics, native), which)(*arguments))


def test_mask():
    arguments = data()
    for shape in (SHAPE, (8, 1, 1, 1), (6, 5, 1)):
        mask = jnp.asarray(np.random.default_rng(1).random(shape) < 0.6)
        ours, theirs = (functools.partial(function, mask=mask) for function in (bj.batch_norm, native))
        assert_close(jax.grad(loss_of(ours), (0, 1, 2))(*arguments),
                     jax.grad(loss_of(theirs), (0, 1, 2))(*arguments))


def test_frozen():
    x, scale, bias, weight = data()
    mean, variance = jnp.arange(4.) / 7, 0.3 + jnp.arange(4.) / 5

    def loss(function, *arguments):
        return loss_of(lambda *three: (function(*three, *arguments[3:]), jnp.zeros(1), jnp.zeros(1)))(
            *arguments[:3], weight)

    def theirs(x, scale, bias, mean, variance):
        return (x - mean) * lax.rsqrt(variance + 1e-5) * scale + bias

    def ours(x, scale, bias, mean, variance):
        return bj.batch_norm(x, scale, bias, mean=mean, variance=variance)[0]

    arguments = x, scale, bias, mean, variance
    for which in ((0, 1, 2, 3, 4), (0,), (3,), (4,)):
        assert_close(jax.grad(functools.partial(loss, ours), which)(*arguments),
                     jax.grad(functools.partial(loss, theirs), which)(*arguments))
    assert_close(jax.hessian(functools.partial(loss, ours), 1)(*arguments),
                 jax.hessian(functools.partial(loss, theirs), 1)(*arguments))


def test_check_grads():
    x, scale, bias, weight = data(shape=(3, 2, 2, 3))
    check_grads(lambda *three: bj.batch_norm(*three), (x, scale, bias), order=2, modes=["rev"])
    mean, variance = x.mean((0, 1, 2)), x.var((0, 1, 2))
    for statistics in ("batch", "global"):
        check_grads(
            lambda dy, x, m, s, v: bj.batch_norm_backward(
                dy, x, m, scale=s, variance=v, epsilon=0.1, feature_dims=(3,), statistics=statistics),
            (weight, x, mean, scale, variance), order=2)
    check_grads(lambda *three: bj.batch_norm_backward_reduce(*three, feature_dims=(3,)), (weight, x, mean), order=2)
    check_grads(
        lambda dy, x, m, s, v, sums: bj.batch_norm_backward_elemt(
            dy, x, m, sums, 30, scale=s, variance=v, feature_dims=(3,)),
        (weight, x, mean, scale, variance, jnp.ones((2, 3)) * 0.7), order=2)


def test_second_derivatives():
    arguments = data(shape=(3, 2, 2, 3))
    for derivative in (jax.hessian, lambda loss: jax.jacrev(jax.grad(loss))):
        assert_close(derivative(loss_of(bj.batch_norm))(*arguments), derivative(loss_of(native))(*arguments))


FORWARD = [{}, {"mask": (8, 1, 5, 1)}, {"mask": (6, 5, 1)}]


@pytest.mark.parametrize("options", FORWARD, ids=str)
def test_forward_mode(options):
    arguments = data()
    if "mask" in options:
        options = {"mask": jnp.asarray(np.random.default_rng(1).random(options["mask"]) < 0.6)}
    ours, theirs = (functools.partial(function, **options) for function in (bj.batch_norm, native))
    tangents = data(seed=1)
    for jit in (lambda function: function, jax.jit):
        assert_close(jit(functools.partial(jax.jvp, ours))(arguments[:3], tangents[:3]),
                     jax.jvp(theirs, arguments[:3], tangents[:3]))
    # Of some arguments only.
    for index in range(3):
        def of(function, value):
            return function(*arguments[:index], value, *arguments[index + 1:3])
        assert_close(*[jax.jvp(functools.partial(of, function), (arguments[index],), (tangents[index],))
                       for function in (ours, theirs)])
    for one, other in zip(*[jax.linearize(function, *arguments[:3])[1](*tangents[:3]) for function in (ours, theirs)]):
        assert_close(one, other)
    # Without scale and bias.
    ours, theirs = (lambda x: bj.batch_norm(x, **options)), (lambda x: native(x, jnp.ones(4), jnp.zeros(4), **options))
    assert_close(jax.jvp(ours, arguments[:1], tangents[:1]), jax.jvp(theirs, arguments[:1], tangents[:1]))


@pytest.mark.parametrize("type, tolerance", [("float32", 3e-5), ("bfloat16", 3e-2), ("float16", 4e-3)])
def test_types_of_forward_mode(type, tolerance):
    arguments, tangents = data(type)[:3], data(type, seed=1)[:3]
    y, change = (results[0] for results in jax.jvp(bj.batch_norm, arguments, tangents))
    assert y.dtype == change.dtype == type
    wide = [tuple(value.astype("float64") for value in values) for values in (arguments, tangents)]
    expected = jax.jvp(native, *wide)[1][0]
    np.testing.assert_allclose(np.asarray(change, np.float64), expected, rtol=0, atol=tolerance * abs(expected).max())


def test_forward_mode_of_frozen():
    x, scale, bias, _ = data()
    arguments = x, scale, bias, jnp.arange(4.) / 7, 0.3 + jnp.arange(4.) / 5
    tangents = tuple(jnp.cos(jnp.arange(value.size * 1.0)).reshape(value.shape) for value in arguments)

    def theirs(x, scale, bias, mean, variance):
        return (x - mean) * lax.rsqrt(variance + 1e-5) * scale + bias

    def ours(x, scale, bias, mean, variance):
        return bj.batch_norm(x, scale, bias, mean=mean, variance=variance)[0]

    assert_close(jax.jvp(ours, arguments, tangents), jax.jvp(theirs, arguments, tangents))
    small = tuple(value[:1, :1, :2] if value.ndim == 4 else value for value in arguments)
    for derivative in (jax.jacfwd, jax.jacrev):
        assert_close(*[jax.jit(derivative(function, (0, 1, 2, 3, 4)))(*small) for function in (ours, theirs)])


def test_check_grads_in_both_modes():
    x, scale, bias, _ = data(shape=(3, 2, 2, 3))
    mask = jnp.asarray(np.random.default_rng(1).random((3, 2, 1, 1)) < 0.7)
    check_grads(jax.jit(functools.partial(bj.batch_norm, mask=mask)), (x, scale, bias), order=2)


@pytest.mark.parametrize("outer", [jax.jacfwd, jax.jacrev])
@pytest.mark.parametrize("inner", [jax.jacfwd, jax.jacrev])
def test_second_derivatives_in_both_modes(outer, inner):
    arguments = data(shape=(3, 2, 2, 3))
    for which in (0, 1):
        assert_close(*[jax.jit(outer(inner(loss_of(function), which), which))(*arguments)
                       for function in (bj.batch_norm, native)])


def test_hessian_vector_products():
    arguments, tangents = data(shape=(4, 3, 2, 5)), data(shape=(4, 3, 2, 5), seed=1)

    def forward_over_reverse(function, *arguments):
        gradient = lambda *three: jax.grad(loss_of(function), (0, 1, 2))(*three, arguments[3])
        return jax.jvp(gradient, arguments[:3], tangents[:3])[1]

    def reverse_over_forward(function, *arguments):
        along = lambda *three: jax.jvp(lambda *inner: loss_of(function)(*inner, arguments[3]), three, tangents[:3])[1]
        return jax.grad(along, (0, 1, 2))(*arguments[:3])

    expected = forward_over_reverse(native, *arguments)
    for product in (forward_over_reverse, reverse_over_forward):
        for jit in (lambda function: function, jax.jit):
            assert_close(jit(functools.partial(product, bj.batch_norm))(*arguments), expected)


def test_gradients_are_custom_calls():
    """In reverse mode, of whatever they are a part."""
    x, scale, bias, weight = data("float32")
    tangent = data("float32", seed=1)[0]

    def along(x):
        return jax.jvp(lambda x: loss_of(bj.batch_norm)(x, scale, bias, weight), (x,), (tangent,))[1]

    def mapped(xs):
        return jax.vmap(lambda x: loss_of(bj.batch_norm)(x, scale, bias, weight))(xs).sum()

    for function, argument in ((lambda x: loss_of(bj.batch_norm)(x, scale, bias, weight), x), (along, x),
                               (mapped, x[None])):
        assert "bngrad.batch_norm_backward" in jax.jit(jax.grad(function)).lower(argument).as_text()


def test_forward_mode_of_checkpoint_and_scan():
    x, scale, bias, weight = data()

    def deep(function, x, scale):
        def step(carry, _):
            y, mean, variance = function(carry, scale, bias)
            return jnp.tanh(y) + carry, mean
        y, means = lax.scan(jax.checkpoint(step), x, None, length=3)
        return (y * weight).sum() + means.sum()

    tangents = data(seed=1)[:2]
    for jit in (jax.jit, lambda function: function):
        assert_close(*[jit(lambda *two: jax.jvp(functools.partial(deep, function), two, tangents))(x, scale)
                       for function in (bj.batch_norm, native)])


def test_checkpoint_and_scan():
    x, scale, bias, weight = data()

    def deep(function):
        def loss(x, scale, bias):
            def step(carry, _):
                y, mean, variance = function(carry, scale, bias)
                return jnp.tanh(y) + carry, mean
            y, means = lax.scan(jax.checkpoint(step), x, None, length=3)
            return (y * weight).sum() + means.sum()
        return loss

    assert_close(jax.jit(jax.grad(deep(bj.batch_norm), (0, 1, 2)))(x, scale, bias),
                 jax.jit(jax.grad(deep(native), (0, 1, 2)))(x, scale, bias))


if __name__ == "__main__":
    sys.exit(pytest.main([__file__, "-q"]))
