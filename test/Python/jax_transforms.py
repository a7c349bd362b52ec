# RUN: %python -m pytest -q %s
# REQUIRES: jax
"""bngrad.jax under the transformations of JAX."""

import concurrent.futures
import functools
import os
import subprocess
import sys

os.environ["XLA_FLAGS"] = os.environ.get("XLA_FLAGS", "") + " --xla_force_host_platform_device_count=4"
import jax
import jax.numpy as jnp
import numpy as np
import pytest
from jax import export, lax
from jax.sharding import Mesh, PartitionSpec as P
from jax.test_util import check_grads

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


def test_forward_mode_over_devices():
    arguments, tangents = data(), data(seed=1)
    over_batch = jax.shard_map(functools.partial(bj.batch_norm, axis_name="d"), mesh=mesh(), in_specs=(P("d"), P(), P()),
                               out_specs=(P("d"), P(), P()))

    def within(x, scale, bias, *tangents):
        return jax.jvp(functools.partial(bj.batch_norm, axis_name="d"), (x, scale, bias), tangents)[1]

    specs = (P("d"), P(), P())
    inside = jax.shard_map(within, mesh=mesh(), in_specs=specs * 2, out_specs=specs)
    mapped = jax.vmap(functools.partial(bj.batch_norm, axis_name="i"), (0, None, None), axis_name="i")
    split = lambda value: value.reshape(4, 2, *SHAPE[1:])
    expected = jax.jvp(native, arguments[:3], tangents[:3])[1]
    assert_close(jax.jit(functools.partial(jax.jvp, over_batch))(arguments[:3], tangents[:3])[1], expected)
    assert_close(jax.jit(inside)(*arguments[:3], *tangents[:3]), expected)
    found = jax.jvp(mapped, *[(split(x), scale, bias) for x, scale, bias, _ in (arguments, tangents)])[1]
    assert_close((found[0].reshape(SHAPE), found[1][0], found[2][0]), expected)
    pmapped = jax.pmap(within, "d", in_axes=(0, None, None) * 2)(
        split(arguments[0]), *arguments[1:3], split(tangents[0]), *tangents[1:3])
    assert_close(pmapped[0].reshape(SHAPE), expected[0])


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


def backward(dy, x, mean, scale, variance, mask):
    return bj.batch_norm_backward(dy, x, mean, scale=scale, variance=variance, mask=mask, feature_dims=(3,))


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


def mesh(names=("d",), shape=(4,)):
    return Mesh(np.array(jax.devices()[:4]).reshape(shape), names)


def test_shard_map_over_channels():
    arguments = data()
    function = jax.shard_map(
        bj.batch_norm, mesh=mesh(), in_specs=(P(None, None, None, "d"), P("d"), P("d")),
        out_specs=(P(None, None, None, "d"), P("d"), P("d")))
    assert_close(jax.jit(jax.grad(loss_of(function), (0, 1, 2)))(*arguments),
                 jax.grad(loss_of(native), (0, 1, 2))(*arguments))


@pytest.mark.parametrize("check_vma", [True, False])
def test_shard_map_over_the_batch(check_vma):
    arguments = data()
    function = jax.shard_map(
        functools.partial(bj.batch_norm, axis_name="d"), mesh=mesh(), in_specs=(P("d"), P(), P()),
        out_specs=(P("d"), P(), P()), check_vma=check_vma)
    assert_close(function(*arguments[:3]), native(*arguments[:3]))
    assert_close(jax.jit(jax.grad(loss_of(function), (0, 1, 2)))(*arguments),
                 jax.grad(loss_of(native), (0, 1, 2))(*arguments))


def test_shard_map_over_batch_and_channels():
    arguments = data()
    function = jax.shard_map(
        functools.partial(bj.batch_norm, axis_name="batch"), mesh=mesh(("batch", "model"), (2, 2)),
        in_specs=(P("batch", None, None, "model"), P("model"), P("model")),
        out_specs=(P("batch", None, None, "model"), P("model"), P("model")))
    assert_close(jax.jit(jax.grad(loss_of(function), (0, 1, 2)))(*arguments),
                 jax.grad(loss_of(native), (0, 1, 2))(*arguments))


def test_shard_map_of_halves():
    x, scale, bias, dy = data()
    mean, variance = x.mean((0, 1, 2)), x.var((0, 1, 2))

    def part(dy, x):
        sums = lax.psum(bj.batch_norm_backward_reduce(dy, x, mean, feature_dims=(3,)), "d")
        count = 4 * x.size // x.shape[3]
        return bj.batch_norm_backward_elemt(
            dy, x, mean, sums, count, scale=scale, variance=variance, feature_dims=(3,)), sums

    found, sums = jax.jit(jax.shard_map(
        part, mesh=mesh(), in_specs=(P("d"), P("d")), out_specs=(P("d"), P())))(dy, x)
    expected = backward(dy, x, mean, scale, variance, None)
    assert_close([found, sums[0]], [expected[0], expected[2]])


@pytest.mark.parametrize("spec", [P("d"), P(None, "d"), P(None, None, None, "d")])
def test_jit_with_shardings(spec):
    x, scale, bias, weight = data(shape=(8, 4, 5, 4))
    sharding = jax.sharding.NamedSharding(mesh(), spec)
    arguments = jax.device_put(x, sharding), scale, bias, jax.device_put(weight, sharding)
    found = jax.jit(jax.grad(loss_of(bj.batch_norm), (0, 1, 2)))(*arguments)
    assert_close(found, jax.grad(loss_of(native), (0, 1, 2))(x, scale, bias, weight))


@pytest.mark.parametrize("spec", [P("d"), P(None, None, None, "d")])
def test_explicit_axes(spec):
    x, scale, bias, weight = data(shape=(8, 4, 5, 4))
    explicit = jax.make_mesh((4,), ("d",), axis_types=(jax.sharding.AxisType.Explicit,))
    gradient = jax.jit(jax.grad(loss_of(bj.batch_norm), (0, 1, 2)))
    with jax.set_mesh(explicit):
        sharding = jax.sharding.NamedSharding(explicit, spec)
        found = gradient(jax.device_put(x, sharding), scale, bias, jax.device_put(weight, sharding))
    assert_close(found, jax.grad(loss_of(native), (0, 1, 2))(x, scale, bias, weight))


def test_groups_of_devices():
    x, scale, bias, weight = data()
    shards = [value.reshape(4, 2, *SHAPE[1:]) for value in (x, weight)]
    groups = [[0, 2], [1, 3]]

    def loss(function, x, scale, bias, weight):
        return loss_of(function)(x, scale, bias, weight)

    ours = functools.partial(bj.batch_norm, axis_name="i", axis_index_groups=groups)
    found = jax.pmap(jax.grad(functools.partial(loss, ours)), "i", in_axes=(0, None, None, 0))(
        shards[0], scale, bias, shards[1])
    for group in groups:
        group = np.array(group)
        def together(x):
            y, mean, variance = native(x, scale, bias)
            weight = shards[1][group].reshape(-1, *SHAPE[1:])
            return (y * weight + y * y * jnp.cos(weight)).sum() + 2 * (mean * 3 + variance * variance).sum()
        expected = jax.grad(together)(shards[0][group].reshape(-1, *SHAPE[1:]))
        assert_close(found[group].reshape(expected.shape), expected)


def test_vmap_with_an_axis_name():
    x, scale, bias, weight = data()
    shards = [value.reshape(4, 2, *SHAPE[1:]) for value in (x, weight)]

    def loss(x):
        parts = jax.vmap(lambda x: bj.batch_norm(x, scale, bias, axis_name="i")[0], axis_name="i")(x)
        return (parts * shards[1]).sum()

    expected = jax.grad(lambda x: (native(x, scale, bias)[0] * weight).sum())(x)
    assert_close(jax.grad(loss)(shards[0]).reshape(SHAPE), expected)


TARGETS = ["bngrad.batch_norm_training", "bngrad.batch_norm_backward", "bngrad.batch_norm_backward_reduce",
           "bngrad.batch_norm_backward_elemt"]


def test_export():
    arguments = data("float32")
    gradient = jax.jit(jax.grad(loss_of(bj.batch_norm), (0, 1, 2)))
    checks = [export.DisabledSafetyCheck.custom_call(target) for target in TARGETS]
    with pytest.raises(ValueError, match="bngrad.batch_norm_"):
        export.export(gradient)(*arguments)
    for platforms in (["cpu"], ["cpu", "cuda"]):
        exported = export.export(gradient, disabled_checks=checks, platforms=platforms)(*arguments)
        assert "@bngrad.batch_norm_backward(" in exported.mlir_module()
        loaded = export.deserialize(exported.serialize())
        for one, other in zip(jax.jit(loaded.call)(*arguments), gradient(*arguments)):
            np.testing.assert_array_equal(one, other)
    # Elsewhere there is no custom call.
    cuda = export.export(gradient, platforms=["cuda"])(*arguments)
    assert "bngrad.batch_norm_backward(" not in cuda.mlir_module()


def test_export_of_symbolic_sizes():
    x, scale, bias, weight = data("float32")
    shapes = export.symbolic_args_specs((x, scale, bias, x), ("n, h, 5, c", "c", "c", "n, h, 5, c"))
    gradient = jax.jit(jax.grad(loss_of(bj.batch_norm), (0, 1, 2)))
    exported = export.export(gradient, disabled_checks=[
        export.DisabledSafetyCheck.custom_call(target) for target in TARGETS])(*shapes)
    assert_close(exported.call(x, scale, bias, weight), gradient(x, scale, bias, weight), 1e-5)
    assert_close(exported.call(x[:3], scale, bias, weight[:3]), gradient(x[:3], scale, bias, weight[:3]), 1e-5)


def test_donated_buffers():
    x, scale, bias, dy = data()
    mean, variance = x.mean((0, 1, 2)), x.var((0, 1, 2))
    expected = backward(dy, x, mean, scale, variance, None)
    donating = jax.jit(lambda dy, x: backward(dy, x, mean, scale, variance, None), donate_argnums=(0, 1))
    copies = dy + 0, x + 0
    for one, other in zip(donating(*copies), expected):
        np.testing.assert_array_equal(one, other)


def test_without_x64():
    program = """
import jax, jax.numpy as jnp, numpy as np, bngrad.jax as bj
x = jnp.arange(24.).reshape(2, 3, 4) ** 2
y, mean, variance = bj.batch_norm(x, jnp.ones(4), jnp.zeros(4))
assert y.dtype == mean.dtype == jnp.float32
sums = bj.batch_norm_backward_reduce(x, x, mean, feature_dims=(2,))
for count in (6, 2**40, jnp.int32(6)):
    bj.batch_norm_backward_elemt(x, x, mean, sums, count, variance=variance, feature_dims=(2,))
jax.grad(lambda x: bj.batch_norm(x)[0][0].sum())(x)
"""
    subprocess.run([sys.executable, "-c", program], check=True)


BITS = """
import hashlib, jax, jax.numpy as jnp, numpy as np, bngrad.jax as bj
generator = np.random.default_rng(0)
digest = hashlib.sha256()
for shape, dim in (((8, 24, 56, 56), 1), ((8, 56, 56, 24), 3), ((40000, 33), 1), ((64, 3, 5), 1)):
    for type in ("float32", "bfloat16"):
        x, dy = (jnp.asarray(generator.standard_normal(shape), type) for _ in range(2))
        mean = variance = jnp.full(shape[dim], 0.7)
        for value in bj.batch_norm_backward(dy, x, mean, variance=variance, feature_dims=(dim,)):
            digest.update(np.asarray(value).tobytes())
        sums = bj.batch_norm_backward_reduce(dy, x, mean, feature_dims=(dim,))
        digest.update(np.asarray(sums).tobytes())
        digest.update(np.asarray(bj.batch_norm_backward_elemt(
            dy, x, mean, sums, 77, variance=variance, feature_dims=(dim,))).tobytes())
print(digest.hexdigest())
"""


def test_threads_do_not_change_bits():
    def run(threads):
        environment = os.environ | {"NPROC": str(threads), "XLA_FLAGS": ""}
        return subprocess.run([sys.executable, "-c", BITS], check=True, capture_output=True, text=True,
                              env=environment).stdout
    assert len({run(threads) for threads in (1, 2, 5, 16)}) == 1


def test_busy_pool():
    """Many calls at once, more than the pool has threads."""
    x, scale, bias, dy = data("float32", (16, 32, 32, 24))
    mean, variance = x.mean((0, 1, 2)), x.var((0, 1, 2))
    function = jax.jit(lambda dy, x: backward(dy, x, mean, scale, variance, None))
    expected = [np.asarray(value) for value in function(dy, x)]
    # Independent calls in one execution, too.
    many = jax.jit(lambda dy, x: [backward(dy + i - i, x, mean, scale, variance, None) for i in range(8)])

    def work(index):
        for _ in range(20):
            for result in ([function(dy, x)], many(dy, x))[index % 2]:
                for one, other in zip(result, expected):
                    np.testing.assert_array_equal(one, other)

    with concurrent.futures.ThreadPoolExecutor(12) as executor:
        list(executor.map(work, range(12)))


def test_import_compiles_nothing():
    program = """
import time, jax
from jax import monitoring
events = []
monitoring.register_event_duration_secs_listener(lambda name, seconds, **_: events.append(name))
start = time.process_time()
import bngrad.jax
assert time.process_time() - start < 0.5, time.process_time() - start
assert not [name for name in events if "compile" in name or "jaxpr" in name], events
from jax._src import xla_bridge
assert not xla_bridge.backends_are_initialized()
"""
    subprocess.run([sys.executable, "-c", program], check=True)


if __name__ == "__main__":
    sys.exit(pytest.main([__file__, "-q"]))
