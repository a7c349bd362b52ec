# RUN: %python -m pytest -q %s
# REQUIRES: jax, flax
"""The table of docs/python-jax.md: bngrad.flax beside flax, each row with linen and with nnx."""

import dataclasses
import functools
import inspect
import os
import pathlib
import pickle
import re
import sys

os.environ["XLA_FLAGS"] = os.environ.get("XLA_FLAGS", "") + " --xla_force_host_platform_device_count=4"
import flax.linen as nn
import jax
import jax.numpy as jnp
import numpy as np
import pytest
from flax import nnx, serialization
from jax.sharding import Mesh, PartitionSpec as P

import bngrad.flax as bf

DOCUMENT = pathlib.Path(__file__).resolve().parents[2] / "docs/python-jax.md"
SHAPE = (8, 5, 7, 3)
CLASSES = {"linen": (bf.BatchNorm, nn.BatchNorm), "nnx": (bf.NnxBatchNorm, nnx.BatchNorm)}
ROWS = {}


def row(*kinds):
    """A row of the table, for the classes of that name."""
    def add(function):
        ROWS[function.__name__.replace("_", " ").strip()] = (function, kinds or tuple(CLASSES))
        return function
    return add


def make_data(type="float32", shape=SHAPE):
    generator = np.random.default_rng(0)
    number = np.arange(shape[-1])
    x = generator.standard_normal(shape) * (1 + 0.3 * number) + 0.2 * number
    return jnp.asarray(x, type), jnp.asarray(generator.standard_normal(shape), "float32")


def move(variables):
    """Values that are not 0 or 1, and differ by channel."""
    return jax.tree.map(lambda value: value + (0.1 * jnp.arange(value.size) + 0.3).reshape(
        value.shape).astype(value.dtype), variables)


class Linen:
    """A layer and its variables."""

    def __init__(self, module, x, **fields):
        self.module = module(**fields)
        given = {} if "use_running_average" in fields else {"use_running_average": True}
        self.variables = move(self.module.init(jax.random.key(0), x, **given))

    def apply(self, variables, x, **arguments):
        """y and new statistics."""
        return self.module.apply(variables, x, mutable=["batch_stats"], **arguments)


class Nnx:
    def __init__(self, module, x, **fields):
        axes = np.atleast_1d(fields.get("axis", -1)).tolist()
        size = fields.pop("num_features", None) or x.shape[axes[0]]
        module = module(size, rngs=nnx.Rngs(0), **fields)
        self.graph, parameters, statistics, self.rest = nnx.split(module, nnx.Param, nnx.BatchStat, ...)
        self.variables = move({"params": parameters, "batch_stats": statistics})

    def apply(self, variables, x, **arguments):
        module = nnx.merge(self.graph, *variables.values(), self.rest, copy=True)
        y = module(x, **arguments)
        return y, {"batch_stats": nnx.state(module, nnx.BatchStat)}


def make(kind, which, x, **fields):
    return {"linen": Linen, "nnx": Nnx}[kind](CLASSES[kind][which], x, **fields)


def differentiate(layer, x, weight, **arguments):
    """Output, new statistics and gradients."""
    def loss(parameters, x):
        y, updates = layer.apply({**layer.variables, "params": parameters}, x, **arguments)
        return jnp.sum(y * weight), (y, updates)

    return jax.jit(jax.grad(loss, (0, 1), has_aux=True))(layer.variables.get("params", {}), x)


def assert_like(ours, theirs, tolerance=1e-5):
    ours, theirs = jax.tree.leaves(ours), jax.tree.leaves(theirs)
    assert len(ours) == len(theirs)
    for one, other in zip(ours, theirs):
        assert one.dtype == other.dtype and one.shape == other.shape
        one, other = (np.asarray(each).astype(np.complex128) for each in (one, other))
        scale = max(np.nanmax(np.abs(other), initial=0), 1)
        np.testing.assert_allclose(one, other, rtol=0, atol=tolerance * scale)


def assert_same_error(kind, **fields):
    errors = []
    for module in CLASSES[kind]:
        with pytest.raises(Exception) as error:
            layer = module(**fields) if kind == "linen" else module(3, rngs=nnx.Rngs(0), **fields)
            x, _ = make_data()
            layer.init(jax.random.key(0), x, False) if kind == "linen" else layer(x, False)
        errors.append((error.type, str(error.value)))
    assert errors[0] == errors[1]


def compare(kind, x=None, weight=None, tolerance=1e-5, modes=(False, True), fields=(), **arguments):
    data = make_data()
    x, weight = data[0] if x is None else x, data[1] if weight is None else weight
    for use_running_average in modes:
        assert_like(*[differentiate(make(kind, which, x, **dict(fields)), x, weight,
                                    use_running_average=use_running_average, **arguments)
                      for which in range(2)], tolerance)


# Fields -------------------------------------------------------------------------------------------------------------


@row()
def signature(kind):
    ours, theirs = CLASSES[kind]
    assert issubclass(ours, theirs)
    for name in ("__init__", "__call__"):
        own, other = (inspect.signature(getattr(each, name)).parameters.values() for each in (ours, theirs))
        assert [(each.name, each.kind, each.default) for each in own] == [
            (each.name, each.kind, each.default) for each in other]


@row()
def use_running_average(kind):
    x, _ = make_data()
    for value in (False, True):
        assert_like(*[make(kind, which, x, use_running_average=value).apply(
            make(kind, which, x).variables, x) for which in range(2)])
        # That of the call comes first in nnx; in linen, both are an error.
        for which in range(2):
            layer = make(kind, which, x, use_running_average=not value)
            if kind == "nnx":
                layer.apply(layer.variables, x, use_running_average=value)
                continue
            with pytest.raises(ValueError, match="use_running_average"):
                layer.apply(layer.variables, x, use_running_average=value)
    errors = []
    for each in CLASSES[kind]:
        with pytest.raises(ValueError, match="use_running_average") as error:
            if kind == "linen":
                each().init(jax.random.key(0), x)
            else:
                each(3, rngs=nnx.Rngs(0), use_running_average=None)(x)
        errors.append(type(error.value))
    assert errors[0] is errors[1]


@row("nnx")
def num_features(kind):
    x, _ = make_data()
    for which in range(2):
        layer = make(kind, which, x, num_features=4)
        for value in (False, True):
            with pytest.raises((TypeError, ValueError)):
                layer.apply(layer.variables, x, use_running_average=value)


@row()
def axis(kind):
    for value in (1, -4, np.int64(-1)):
        compare(kind, fields={"axis": value})
    for value in ([-1, 0], range(1, 3), (0, 1, 2, 3)) if kind == "linen" else ((3, -1),):
        compare(kind, fields={"axis": value}, tolerance=1e-4)
    if kind == "nnx":
        # In training, flax cannot add the vectors of several axes to the running ones.
        compare(kind, modes=[True], fields={"axis": (1, 3), "num_features": 15})
    for value in (4, (1, 7), 1.5, (0, None), "a", np.array(1)):
        assert_same_error(kind, axis=value)


@row("linen")
def axis_empty(kind):
    compare(kind, fields={"axis": ()}, tolerance=1e-4)


@row()
def momentum(kind):
    for value in (0, 0.5, jnp.float32(0.9)):
        compare(kind, fields={"momentum": value})


@row()
def epsilon(kind):
    for value in (0, np.float32(0.1), jnp.float32(1e-3), -0.01, np.array([0.1, 0.2, 0.3], "float32")):
        compare(kind, fields={"epsilon": value})
    for value in ("a", None, [0.1], np.ones(2)):
        assert_same_error(kind, epsilon=value)
    x, weight = make_data()

    def traced(which, value):
        layer = make(kind, which, x, epsilon=value)
        return layer.apply(layer.variables, x, use_running_average=False)[0]

    assert_like(*[jax.jit(functools.partial(traced, which))(0.1) for which in range(2)])


@row()
def dtype(kind):
    for value, tolerance in ((jnp.float32, 1e-5), ("bfloat16", 3e-2), (jnp.float16, 4e-3)):
        for type in ("float32", value):
            compare(kind, make_data(type)[0], tolerance=tolerance, fields={"dtype": value})
    for type, tolerance in (("bfloat16", 3e-2), ("float16", 4e-3)):
        compare(kind, make_data(type)[0], tolerance=tolerance)


@row()
def dtype_of_64_bits(kind):
    with jax.enable_x64(True):
        for type in ("float32", "float64"):
            compare(kind, make_data(type)[0], tolerance=1e-5, fields={"dtype": "float64"})
        compare(kind, make_data("float64")[0], tolerance=1e-9, modes=[False], fields={"use_fast_variance": False})


@row()
def other_types(kind):
    """Complex numbers, integers and 8-bit floats, which flax computes."""
    x, _ = make_data()
    for value in (jnp.round(4 * x).astype(int), x + 1j) if kind == "linen" else (jnp.round(4 * x).astype(int),):
        for use_running_average in (False, True):
            layers = [make(kind, which, value) for which in range(2)]
            assert_like(*[layer.apply(layer.variables, value, use_running_average=use_running_average)
                          for layer in layers])
    # In linen, flax does not promote these.
    if kind == "nnx":
        compare(kind, fields={"param_dtype": jnp.float8_e4m3fn, "dtype": jnp.float32})


@row()
def param_dtype(kind):
    for value in ("bfloat16", jnp.float16):
        compare(kind, tolerance=3e-2, fields={"param_dtype": value})
        compare(kind, make_data(value)[0], tolerance=3e-2, fields={"param_dtype": value})


@row()
def use_bias_and_use_scale(kind):
    for fields in ({"use_bias": False}, {"use_scale": False}, {"use_bias": False, "use_scale": False}):
        compare(kind, fields=fields)


@row()
def bias_init_and_scale_init(kind):
    x, _ = make_data()
    fields = {"bias_init": nn.initializers.normal(), "scale_init": nn.initializers.uniform()}
    layers = [make(kind, which, x, **fields) for which in range(2)]
    assert_like(*[layer.variables for layer in layers], 0)
    compare(kind, fields=fields)
    if kind == "linen":
        boxed = nn.with_partitioning(nn.initializers.ones, ("channels",))
        results = [each(use_running_average=False, scale_init=boxed).init(jax.random.key(0), x) for each in CLASSES[kind]]
        assert jax.tree.structure(results[0]) == jax.tree.structure(results[1])


@row("nnx")
def bias_metadata_and_scale_metadata(kind):
    modules = [each(3, rngs=nnx.Rngs(0), bias_metadata={"note": 1}, scale_metadata={"note": 2}) for each in CLASSES[kind]]
    assert all((module.bias.note, module.scale.note) == (1, 2) for module in modules)


@row("nnx")
def promote_dtype(kind):
    def promote(values, *, dtype=None, inexact=True):
        return tuple(None if value is None else value.astype(jnp.bfloat16) for value in values)

    compare(kind, tolerance=3e-2, fields={"promote_dtype": promote})


@row()
def use_fast_variance(kind):
    """Variances far from 0 have the digits that flax has without it."""
    compare(kind, fields={"use_fast_variance": False})
    x = make_data()[0] + 3000
    y = make(kind, 0, x).apply(make(kind, 0, x).variables, x, use_running_average=False)
    other = make(kind, 1, x, use_fast_variance=False)
    assert_like(y, other.apply(other.variables, x, use_running_average=False), 3e-3)


@row("linen")
def force_float32_reductions(kind):
    for fields in ({}, {"dtype": "bfloat16"}, {"dtype": "bfloat16", "param_dtype": "bfloat16"}, {"param_dtype": "float16"}):
        for type in ("float32", "bfloat16"):
            compare(kind, make_data(type)[0], tolerance=4e-2, fields={**fields, "force_float32_reductions": False})


# Devices ------------------------------------------------------------------------------------------------------------


def split(value):
    return value.reshape(4, 2, *value.shape[1:])


def mesh():
    return Mesh(np.array(jax.devices()[:4]), ("d",))


def step(layer, variables, x, weight):
    def loss(parameters):
        y, updates = layer.apply({**variables, "params": parameters}, x, use_running_average=False)
        return jnp.sum(y * weight), updates["batch_stats"]

    return jax.grad(loss, has_aux=True)(variables["params"])


def pmap_step(layer, x, weight):
    return jax.pmap(functools.partial(step, layer), "d", in_axes=(None, 0, 0))(layer.variables, split(x), split(weight))


def vmap_step(layer, x, weight):
    function = jax.vmap(functools.partial(step, layer), (None, 0, 0), axis_name="d")
    return jax.jit(function)(layer.variables, split(x), split(weight))


def shard_map_step(layer, x, weight):
    function = jax.shard_map(functools.partial(step, layer), mesh=mesh(), in_specs=(P(), P("d"), P("d")), out_specs=P())
    return jax.jit(function)(layer.variables, x, weight)


@row()
def axis_name(kind):
    """Trained under each transformation, initialized and evaluated without."""
    x, weight = make_data()
    for train in (pmap_step, vmap_step, shard_map_step):
        results = []
        for which in range(2):
            layer = make(kind, which, x[:2], axis_name="d")
            gradients, statistics = train(layer, x, weight)
            if train is not shard_map_step:
                statistics = jax.tree.map(lambda value: value[0], statistics)
            variables = {**layer.variables, "batch_stats": statistics}
            for transform in (jax.jit, lambda function: function):
                evaluate = transform(lambda variables, x: layer.apply(variables, x, use_running_average=True)[0])
                results.append((gradients, statistics, evaluate(variables, x)))
            results.append(differentiate(layer, x, weight, use_running_average=True))
        half = len(results) // 2
        assert_like(results[:half], results[half:], 1e-4)


@row()
def axis_name_unbound(kind):
    """Training outside of the axis is an error of JAX."""
    x, _ = make_data()
    for which in range(2):
        layer = make(kind, which, x, axis_name="d")
        with pytest.raises(NameError, match="d"):
            layer.apply(layer.variables, x, use_running_average=False)


@row("linen")
def initialization_in_training(kind):
    """Neither needs the axis nor changes the statistics."""
    x, _ = make_data()
    for fields in ({}, {"axis_name": "d"}, {"axis_name": "d", "axis_index_groups": [[0, 1], [2, 3]]}):
        results = [each(**fields).init_with_output(jax.random.key(0), x, use_running_average=value)
                   for value in (False, True) for each in CLASSES[kind]]
        assert_like(*results[:2])
        assert_like(*results[2:])


@row()
def axis_names(kind):
    """Several, as a tuple or a list."""
    x, weight = make_data()
    for names in (("a", "b"), ["a", "b"]):
        results = []
        for which in range(2):
            layer = make(kind, which, x[:2], axis_name=names)
            inner = jax.vmap(functools.partial(step, layer), (None, 0, 0), axis_name="a")
            outer = jax.vmap(inner, (None, 0, 0), axis_name="b")
            results.append(outer(layer.variables, *[value.reshape(2, 2, 2, *SHAPE[1:]) for value in (x, weight)]))
        assert_like(*results, 1e-4)


@row()
def axis_index_groups(kind):
    x, weight = make_data()
    for groups in ([[0, 1], [2, 3]], ((0, 3), (1, 2))):
        results = []
        for which in range(2):
            layer = make(kind, which, x[:2], axis_name="d", axis_index_groups=groups)
            results.append((pmap_step(layer, x, weight), differentiate(layer, x, weight, use_running_average=True)))
        assert_like(*results, 1e-4)


# Arguments ----------------------------------------------------------------------------------------------------------


@row()
def x(kind):
    """Arrays of numpy, of rank 1 to 5, and without elements, and lists."""
    compare(kind, np.asarray(make_data()[0]))
    layer = make(kind, 0, make_data()[0])
    assert_like(*[layer.apply(layer.variables, x, use_running_average=False)
                  for x in (make_data()[0].tolist(), make_data()[0])])
    for shape in ((3,), (6, 3), (4, 2, 3, 2, 3)):
        data = make_data(shape=shape)
        compare(kind, *data, modes=[True] if len(shape) == 1 else [False, True], tolerance=1e-4)
    # Gradients of parameters are 0 without elements, where flax has NaN.
    empty = jnp.zeros((0, 5, 3))
    for value in (False, True):
        layers = [make(kind, which, empty) for which in range(2)]
        assert_like(*[layer.apply(layer.variables, empty, use_running_average=value) for layer in layers])
        assert all((each == 0).all() for each in jax.tree.leaves(
            differentiate(layers[0], empty, empty, use_running_average=value)[0]))


@row()
def mask(kind):
    generator = np.random.default_rng(1)
    for shape in (SHAPE, (8, 1, 1, 1), (8, 5, 1, 3), (7, 3)):
        compare(kind, mask=jnp.asarray(generator.random(shape) < 0.6))
    compare(kind, mask=jnp.asarray(generator.random(SHAPE) < 0.6), fields={"axis_name": "d"}, modes=[True])
    none = jnp.ones(SHAPE, bool).at[..., 1].set(False)
    layers = [make(kind, which, make_data()[0]) for which in range(2)]
    assert_like(*[layer.apply(layer.variables, make_data()[0], use_running_average=False, mask=none) for layer in layers])


# Variables ----------------------------------------------------------------------------------------------------------


@row()
def variables(kind):
    """Names, order, types and values, which checkpoints of both have."""
    x, _ = make_data()
    for fields in ({}, {"use_bias": False}, {"param_dtype": "bfloat16"}):
        ours, theirs = (make(kind, which, x, **fields) for which in range(2))
        assert jax.tree.structure(ours.variables) == jax.tree.structure(theirs.variables)
        assert_like(ours.variables, theirs.variables, 0)
        if kind == "linen":
            restored = serialization.from_bytes(ours.variables, serialization.to_bytes(theirs.variables))
            assert_like(restored, theirs.variables, 0)


@row()
def derivatives_of_running_statistics(kind):
    """In evaluation, with respect to the statistics, and in training of new ones."""
    x, weight = make_data()

    def evaluate(layer, statistics):
        y, _ = layer.apply({**layer.variables, "batch_stats": statistics}, x, use_running_average=True)
        return jnp.sum(y * weight)

    def train(layer, x):
        _, updates = layer.apply(layer.variables, x, use_running_average=False)
        return sum(jnp.sum(value * jnp.arange(3.)) for value in jax.tree.leaves(updates))

    layers = [make(kind, which, x) for which in range(2)]
    assert_like(*[jax.grad(functools.partial(evaluate, layer))(layer.variables["batch_stats"]) for layer in layers], 1e-4)
    assert_like(*[jax.grad(functools.partial(train, layer))(x) for layer in layers], 1e-4)


@row("linen")
def immutable_statistics(kind):
    x, _ = make_data()
    for which in range(2):
        layer = make(kind, which, x)
        with pytest.raises(Exception, match="mutable"):
            layer.module.apply(layer.variables, x, use_running_average=False)
        layer.module.apply(layer.variables, x, use_running_average=True)


@row()
def copies(kind):
    x, _ = make_data()
    if kind == "linen":
        module = bf.BatchNorm(use_running_average=True, axis=1)
        assert module == bf.BatchNorm(use_running_average=True, axis=1) and hash(module) == hash(module.clone())
        assert type(dataclasses.replace(module, axis=2)) is bf.BatchNorm and pickle.loads(pickle.dumps(module)).axis == 1
        return
    module = bf.NnxBatchNorm(3, rngs=nnx.Rngs(0))
    for duplicate in (nnx.clone(module), nnx.merge(*nnx.split(module))):
        assert type(duplicate) is bf.NnxBatchNorm
        assert_like(duplicate(x), nnx.BatchNorm(3, rngs=nnx.Rngs(0))(x))
    module.eval()
    assert module.use_running_average is True


# Transformations ----------------------------------------------------------------------------------------------------


@row()
def jit_and_remat(kind):
    x, weight = make_data()
    for transform in (jax.jit, jax.checkpoint):
        results = []
        for which in range(2):
            layer = make(kind, which, x)
            apply = transform(functools.partial(layer.apply, use_running_average=False))
            results.append(jax.grad(lambda parameters: jnp.sum(
                apply({**layer.variables, "params": parameters}, x)[0] * weight))(layer.variables["params"]))
        assert_like(*results)


@row("linen")
def lifted_transformations(kind):
    """nn.jit, nn.remat, nn.vmap, and nn.scan, which keeps the types of the statistics."""
    x, weight = make_data()

    def run(module):
        results = []
        for lift in (nn.jit, nn.remat):
            layer = lift(module)(use_running_average=False)
            results.append(layer.init_with_output(jax.random.key(0), x))
        mapped = nn.vmap(module, variable_axes={"params": None, "batch_stats": None}, split_rngs={"params": False},
                         in_axes=0, axis_name="b")(use_running_average=False, axis_name="b")
        variables = mapped.init(jax.random.key(0), split(x))
        results.append(mapped.apply(variables, split(x), mutable=["batch_stats"]))

        class Step(nn.Module):
            @nn.compact
            def __call__(self, carry, _):
                layer = module(use_running_average=False, dtype="bfloat16", param_dtype="bfloat16",
                               force_float32_reductions=False)
                return layer(carry), None

        scanned = nn.scan(Step, variable_broadcast="params", variable_carry="batch_stats", split_rngs={"params": False},
                          length=3)()
        carry = x.astype("bfloat16")
        variables = Step().init(jax.random.key(0), carry, None)
        results.append(jax.tree.map(lambda value: value.dtype.name == "bfloat16" and jnp.ones(value.shape),
                                    scanned.apply(variables, carry, None, mutable=["batch_stats"])[1]))
        return results

    assert_like(run(bf.BatchNorm), run(nn.BatchNorm), 1e-5)


@row()
def forward_mode(kind):
    x, weight = make_data(shape=(4, 3, 3))
    for use_running_average in (False, True):
        def loss(layer, parameters, x):
            y, updates = layer.apply({**layer.variables, "params": parameters}, x,
                                     use_running_average=use_running_average)
            return jnp.sum(y * weight + jnp.sin(y)), (y, updates)

        results = []
        for which in range(2):
            layer = make(kind, which, x, use_fast_variance=False)
            function = functools.partial(loss, layer)
            arguments = layer.variables["params"], x
            tangents = jax.tree.map(jnp.cos, arguments)
            gradient = jax.grad(lambda *two: function(*two)[0], (0, 1))
            results.append(jax.jit(lambda *two: (
                jax.jvp(function, two, tangents), jax.jvp(gradient, two, tangents),
                jax.hessian(lambda parameters: function(parameters, x)[0])(two[0])))(*arguments))
        assert_like(*results, 1e-3)


@pytest.mark.parametrize("name, kind", [(name, kind) for name, (_, kinds) in ROWS.items() for kind in kinds])
def test_row(name, kind):
    ROWS[name][0](kind)


def test_the_document_has_all_rows():
    section = DOCUMENT.read_text().split("### Comparison with flax's classes")[1].split("\n## ")[0]
    titles = [" ".join(re.sub(r"[`_]", " ", title).split()) for title in re.findall(r"^\| ([^|]+) \|", section, re.MULTILINE)]
    assert sorted(title for title in titles if title != "subject" and "---" not in title) == sorted(ROWS)


if __name__ == "__main__":
    sys.exit(pytest.main([__file__, "-q"]))
