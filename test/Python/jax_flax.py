# RUN: %python -m pytest -q %s
# REQUIRES: jax, flax
"""bngrad.flax beside flax: variables, outputs, statistics and gradients."""

import dataclasses
import os
import sys

os.environ["XLA_FLAGS"] = os.environ.get("XLA_FLAGS", "") + " --xla_force_host_platform_device_count=4"
import flax.linen as nn
import jax
import jax.numpy as jnp
import numpy as np
import pytest
from flax import nnx
from jax.sharding import Mesh, PartitionSpec as P

import bngrad.flax as bf

SHAPE = (6, 5, 7, 3)


def data(type="float32", shape=SHAPE):
    """x, which differs by channel, and weights of a loss."""
    generator = np.random.default_rng(0)
    x = generator.standard_normal(shape) * (1 + 0.3 * np.arange(shape[-1])) + 0.2 * np.arange(shape[-1])
    return jnp.asarray(x, type), jnp.asarray(generator.standard_normal(shape), "float32")


def moved(variables):
    """Variables that are not 0 or 1, and differ by channel."""
    return jax.tree.map(lambda value: value + (0.1 * jnp.arange(value.size) + 0.3).reshape(
        value.shape).astype(value.dtype), variables)


def step(module, x, weight, **arguments):
    """Initial variables, gradients, output and new statistics."""
    initial = module.init(jax.random.key(0), x)
    variables = moved(initial)

    def loss(parameters, x):
        y, updates = module.apply({**variables, "params": parameters}, x, mutable=["batch_stats"], **arguments)
        return (y * weight).sum(), (y, updates)

    gradients, results = jax.jit(jax.grad(loss, (0, 1), has_aux=True))(variables.get("params", {}), x)
    return initial, gradients, *results


def assert_like(ours, theirs, tolerance):
    assert jax.tree.structure(ours) == jax.tree.structure(theirs)
    for one, other in zip(jax.tree.leaves(ours), jax.tree.leaves(theirs)):
        assert one.dtype == other.dtype and one.shape == other.shape
        type = np.complex128 if np.iscomplexobj(other) else np.float64
        one, other = np.asarray(one, type), np.asarray(other, type)
        np.testing.assert_allclose(one, other, rtol=0, atol=tolerance * max(np.abs(other).max(), 1))


@pytest.mark.parametrize("use_running_average", [False, True])
@pytest.mark.parametrize("fields", [
    {}, dict(axis=1), dict(axis=0), dict(axis=(1, 3)), dict(axis=(-1, 0)), dict(use_scale=False),
    dict(use_bias=False), dict(use_scale=False, use_bias=False), dict(momentum=0.5, epsilon=0.1),
    dict(use_fast_variance=False), dict(dtype=jnp.bfloat16), dict(dtype=jnp.float16), dict(dtype=jnp.float32),
    dict(param_dtype=jnp.bfloat16), dict(force_float32_reductions=False),
    dict(scale_init=nn.initializers.normal(), bias_init=nn.initializers.normal()),
], ids=str)
def test_linen(fields, use_running_average):
    x, weight = data()
    ours, theirs = (step(module(use_running_average=use_running_average, **fields), x, weight)
                    for module in (bf.BatchNorm, nn.BatchNorm))
    is_half = "dtype" in fields and fields["dtype"] != jnp.float32
    assert_like(ours, theirs, 1e-2 if is_half else 1e-5)


@pytest.mark.parametrize("type, tolerance", [("bfloat16", 2e-2), ("float16", 2e-3)])
@pytest.mark.parametrize("use_running_average", [False, True])
def test_types_of_data(type, tolerance, use_running_average):
    x, weight = data(type)
    for fields in ({}, dict(dtype=type), dict(dtype=type, param_dtype=type)):
        ours, theirs = (step(module(use_running_average=use_running_average, **fields), x, weight)
                        for module in (bf.BatchNorm, nn.BatchNorm))
        assert_like(ours, theirs, tolerance)


@pytest.mark.parametrize("shape", [SHAPE, (6, 1, 1, 1), (6, 5, 1, 3), (7, 3)])
def test_mask(shape):
    x, weight = data()
    mask = jnp.asarray(np.random.default_rng(1).random(shape) < 0.6)
    for use_running_average in (False, True):
        ours, theirs = (step(module(use_running_average=use_running_average), x, weight, mask=mask)
                        for module in (bf.BatchNorm, nn.BatchNorm))
        assert_like(ours, theirs, 1e-5)


def test_other_types_are_left_to_flax():
    for x in (data()[0] + 1j, jnp.arange(24).reshape(8, 3)):
        ours, theirs = (module(use_running_average=False).init_with_output(jax.random.key(0), x)
                        for module in (bf.BatchNorm, nn.BatchNorm))
        assert_like(ours, theirs, 1e-6)


def test_fields():
    """Those of the installed flax, in its order."""
    describe = lambda module: [(field.name, field.default) for field in dataclasses.fields(module)]
    assert describe(bf.BatchNorm) == describe(nn.BatchNorm)
    assert issubclass(bf.BatchNorm, nn.BatchNorm)


def test_neither_field_nor_argument():
    for module in (bf.BatchNorm, nn.BatchNorm):
        with pytest.raises(ValueError, match="use_running_average"):
            module().init(jax.random.key(0), data()[0])


class Network(nn.Module):
    normalization: type

    @nn.compact
    def __call__(self, x):
        for width in (8, 4):
            x = nn.Conv(width, (3, 3))(x)
            x = nn.relu(self.normalization(use_running_average=False)(x))
        return x.mean((1, 2))


def test_network():
    """Names of variables, and a checkpoint of one in the other."""
    x, _ = data()
    variables = Network(nn.BatchNorm).init(jax.random.key(0), x)
    assert jax.tree.structure(variables) == jax.tree.structure(Network(bf.BatchNorm).init(jax.random.key(0), x))

    def gradient(module):
        def loss(parameters):
            y, _ = Network(module).apply({**variables, "params": parameters}, x, mutable=["batch_stats"])
            return (y * jnp.arange(4.)).sum() + (y**3).sum()
        return jax.grad(loss)(variables["params"])

    assert_like(gradient(bf.BatchNorm), gradient(nn.BatchNorm), 1e-4)


@pytest.mark.parametrize("groups", [None, [[0, 1], [2, 3]]])
def test_axis_name(groups):
    x, weight = data(shape=(8, 5, 3))
    results = []
    for module in (bf.BatchNorm, nn.BatchNorm):
        module = module(use_running_average=False, axis_name="d", axis_index_groups=groups)
        variables = moved(module.init(jax.random.key(0), x[:2]))

        def loss(parameters, x, weight):
            y, updates = module.apply({**variables, "params": parameters}, x, mutable=["batch_stats"])
            return (y * weight).sum(), updates

        step = jax.pmap(jax.grad(loss, (0, 1), has_aux=True), "d", in_axes=(None, 0, 0))
        results.append(step(variables["params"], x.reshape(4, 2, 5, 3), weight.reshape(4, 2, 5, 3)))
    assert_like(*results, 1e-5)


def test_shard_map():
    x, weight = data(shape=(8, 5, 3))
    mesh = Mesh(np.array(jax.devices()[:4]), ("d",))
    results = []
    for module in (bf.BatchNorm, nn.BatchNorm):
        module = module(use_running_average=False, axis_name="d")
        variables = moved(module.init(jax.random.key(0), x))

        def apply(parameters, x):
            return module.apply({**variables, "params": parameters}, x, mutable=["batch_stats"])

        def loss(parameters, x):
            y, updates = jax.shard_map(
                apply, mesh=mesh, in_specs=(P(), P("d")), out_specs=(P("d"), P()))(parameters, x)
            return (y * weight).sum(), updates

        results.append(jax.jit(jax.grad(loss, (0, 1), has_aux=True))(variables["params"], x))
    assert_like(*results, 1e-5)


@pytest.mark.parametrize("use_running_average", [False, True])
@pytest.mark.parametrize("arguments", [
    {}, dict(axis=1), dict(use_scale=False), dict(use_bias=False), dict(dtype=jnp.bfloat16),
    dict(param_dtype=jnp.bfloat16), dict(momentum=0.5),
], ids=str)
def test_nnx(arguments, use_running_average):
    x, weight = data()
    size = SHAPE[arguments.get("axis", -1)]
    results = []
    for module in (bf.NnxBatchNorm, nnx.BatchNorm):
        module = module(size, rngs=nnx.Rngs(0), **arguments)
        nnx.update(module, moved(nnx.state(module)))

        @nnx.jit
        def step(module, x):
            def loss(module, x):
                return (module(x, use_running_average=use_running_average) * weight).sum()
            return nnx.grad(loss, argnums=(0, 1))(module, x)

        gradients = step(module, x)
        results.append((gradients, nnx.state(module), module(x, use_running_average=use_running_average)))
    assert_like(*[jax.tree.map(jnp.asarray, jax.tree.leaves(result)) for result in results],
                3e-2 if "dtype" in arguments else 1e-5)


def test_nnx_mask_and_modes():
    x, weight = data()
    mask = jnp.asarray(np.random.default_rng(1).random((6, 5, 7, 1)) < 0.6)
    modules = [module(3, rngs=nnx.Rngs(0)) for module in (bf.NnxBatchNorm, nnx.BatchNorm)]
    assert_like(*[module(x, mask=mask) for module in modules], 1e-5)
    for module in modules:
        module.eval()
    assert_like(*[module(x) for module in modules], 1e-5)
    with pytest.raises(ValueError, match="use_running_average"):
        bf.NnxBatchNorm(3, rngs=nnx.Rngs(0), use_running_average=None)(x)


if __name__ == "__main__":
    sys.exit(pytest.main([__file__, "-q"]))
