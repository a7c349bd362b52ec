# RUN: %python -m pytest -q %s
# REQUIRES: jax
"""bngrad.jax over several devices: shard_map, pmap and shardings."""

import functools
import os
import sys

sys.path.insert(0, os.path.join(os.path.dirname(__file__), "Inputs"))
from jax_training import SHAPE, assert_close, backward, data, loss_of, mesh, native  # before JAX is imported

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from jax import lax
from jax.sharding import PartitionSpec as P

import bngrad.jax as bj


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


if __name__ == "__main__":
    sys.exit(pytest.main([__file__, "-q"]))
