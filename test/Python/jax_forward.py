"""The forward pass in JAX: values within the bounds of docs/numerics.md, transformations, and errors.

With ready kernels, and with the compiler, which makes those for other types.

REQUIRES: jax, flax, python-compiler
RUN: env -u BNGRAD_COMPILER %python -m pytest -q %s
RUN: %python -m pytest -q %s
"""

import functools
import os
import re
import subprocess
import sys

os.environ["XLA_FLAGS"] = os.environ.get("XLA_FLAGS", "") + " --xla_force_host_platform_device_count=4"
import jax
import jax.numpy as jnp
import ml_dtypes
import numpy as np
import pytest
from forward import Forward
from jax import export, lax
from jax.sharding import Mesh, PartitionSpec as P
from jax.test_util import check_grads
from reference import TYPES

import bngrad.jax as bj

jax.config.update("jax_enable_x64", True)

TRAINING, INFERENCE = "bngrad.batch_norm_training", "bngrad.batch_norm_inference"
CHECKS = [export.DisabledSafetyCheck.custom_call(target) for target in (
    TRAINING, INFERENCE, "bngrad.batch_norm_backward", "bngrad.batch_norm_backward_reduce",
    "bngrad.batch_norm_backward_elemt")]
SHAPE = (8, 6, 5, 4)


def data(type="float64", shape=SHAPE, seed=0):
    """x, scale and offset of the last dim."""
    generator = np.random.default_rng(seed)
    number = np.arange(shape[-1])
    x = generator.standard_normal(shape) * (1 + 0.2 * number) + 0.4
    return tuple(jnp.asarray(value, type) for value in (x, 0.5 + 0.1 * number, 0.3 * number - 1))


def formula(x, scale, offset, epsilon=1e-5):
    """The four results over the last dim."""
    dims = tuple(range(x.ndim - 1))
    mean = x.mean(dims)
    variance = lax.square(x - mean).mean(dims)
    inv_std = lax.rsqrt(variance + epsilon)
    return (x - mean) * (inv_std * scale) + offset, mean, variance, inv_std


def train(x, scale=None, offset=None, **keywords):
    return bj.batch_norm_training(x, scale=scale, offset=offset, feature_dims=(-1,), **keywords)


def assert_close(left, right, tolerance=1e-11):
    for one, other in zip(jax.tree.leaves(left), jax.tree.leaves(right), strict=True):
        assert one.dtype == other.dtype and one.shape == other.shape
        one, other = (np.asarray(each, np.float64) for each in (one, other))
        np.testing.assert_allclose(one, other, rtol=0, atol=tolerance * abs(other).max(initial=1e-30))


def to_numpy(results):
    return [None if result is None else np.asarray(result) for result in results]


@pytest.mark.parametrize("seed", range(16))
def test_random_configurations(seed):
    generator = np.random.default_rng(seed)
    type = TYPES[seed % 4]
    parameter = TYPES[int(generator.integers(4))]
    rank = seed // 4 % 4 + 1
    shape = tuple(int(size) for size in generator.choice([1, 2, 5, 8, 17], rank))
    if seed == 6:
        shape = (0, *shape[1:])
    dims = tuple(sorted(generator.permutation(rank)[:generator.integers(1, min(rank, 2) + 1)].tolist()))
    channels = tuple(shape[dim] for dim in dims)
    input = generator.normal(1, 2, shape).astype(type)
    keywords = {"feature_dims": dims, "epsilon": float(generator.choice([1e-5, 0.5]))}
    for name in ("scale", "offset"):
        if generator.random() < 0.7:
            keywords[name] = generator.uniform(-2, 2, channels).astype(parameter)
    if seed % 3 == 0:
        mean = generator.uniform(0, 2, channels).astype(parameter)
        statistic = str(generator.choice(["variance", "inv_std"]))
        keywords |= {"epsilon": 0.0} if statistic == "inv_std" else {}
        keywords[statistic] = generator.uniform(0.5, 2, channels).astype(parameter)
        result = np.asarray(bj.batch_norm_inference(input, mean, **keywords))
        assert result.dtype == type
        return Forward(input, mean=mean, **keywords).check([result])
    results = to_numpy(bj.batch_norm_training(input, **keywords))
    given = [input.dtype, *(keywords[name].dtype for name in ("scale", "offset") if name in keywords)]
    wide = np.float64 if np.float64 in given else np.float32
    assert [result.dtype for result in results] == [type, wide, wide, wide]
    expected = Forward(input, **keywords)
    expected.check(results)
    names = ("output", "mean", "variance", "inv_std")
    alone = to_numpy(bj.batch_norm_training(input, wanted=(names[seed % 4],), **keywords))
    assert [result is not None for result in alone] == [name == names[seed % 4] for name in names]
    expected.check(alone)


def hard_data(type, shape, dim, kind):
    """A mean of 1e4 standard deviations, one outlier, or equal elements, per channel."""
    generator = np.random.default_rng(7)
    x = generator.standard_normal(shape)
    if kind == "mean":
        x += 1e4 * (1 + 0.1 * np.arange(shape[dim])).reshape([-1 if each == dim else 1 for each in range(len(shape))])
    elif kind == "outlier":
        np.moveaxis(x, dim, 0).reshape(shape[dim], -1)[:, 0] = 1e6
    elif kind == "constant":
        x = np.broadcast_to(0.1 + 1000 * np.arange(shape[dim]).reshape(
            [-1 if each == dim else 1 for each in range(len(shape))]), shape)
    return x.astype(type)


@pytest.mark.parametrize("kind", ["mean", "outlier", "constant"])
@pytest.mark.parametrize("shape, dim", [((8, 5, 28, 28), 1), ((8, 28, 28, 5), 3), ((20011, 6), 1)])
@pytest.mark.parametrize("type", ["float32", "bfloat16", "float16"])
def test_accuracy_of_batch_norm(type, shape, dim, kind):
    if type == "float16" and kind == "outlier":
        pytest.skip("no number of float16")
    x = hard_data(getattr(ml_dtypes, type, type), shape, dim, kind)
    scale, bias = (np.linspace(low, low + 1, shape[dim], dtype="f4") for low in (0.5, -1))
    results = jax.jit(functools.partial(bj.batch_norm, feature_dims=dim))(x, scale, bias)
    assert [result.dtype for result in results] == [type, "float32", "float32"]
    expected = Forward(x, scale=scale, offset=bias, epsilon=1e-5, feature_dims=(dim,))
    expected.check(to_numpy(results))
    if kind == "constant":
        channel_last = np.moveaxis(np.asarray(results[0]), dim, -1)
        np.testing.assert_array_equal(channel_last, np.broadcast_to(bias.astype(x.dtype), channel_last.shape))
        np.testing.assert_array_equal(results[2], np.zeros(shape[dim]))
    # The bound is no idle one.
    with pytest.raises(AssertionError):
        expected.check([None, results[1] * 1.001 + 0.001])


@pytest.mark.parametrize("type", ["float32", "bfloat16"])
def test_accuracy_over_devices(type):
    """Chan's formula: parts whose means differ by far more than a standard deviation."""
    x = np.random.default_rng(3).standard_normal((16, 9, 3)) + 1e4
    x += 100 * (np.arange(16) // 4)[:, None, None]
    x = x.astype(getattr(ml_dtypes, type, type))
    mesh = Mesh(np.array(jax.devices()[:4]), ("d",))
    over_devices = jax.jit(jax.shard_map(
        functools.partial(bj.batch_norm, axis_name="d"), mesh=mesh, in_specs=P("d"), out_specs=(P("d"), P(), P())))
    assert TRAINING in over_devices.lower(x).as_text()
    y, mean, variance = over_devices(x)
    exact = x.astype(np.float64)
    exact_mean, std = exact.mean((0, 1)), exact.std((0, 1))
    np.testing.assert_allclose(mean, exact_mean, rtol=2**-22)
    # The means of the parts are rounded, and with them the distances of parts, which are about a standard deviation.
    rounding = 2**-22 * exact_mean / std
    np.testing.assert_allclose(variance / std**2, np.ones(3), rtol=2 * rounding.max())
    expected = (exact - exact_mean) / np.sqrt(std**2 + 1e-5)
    np.testing.assert_allclose(np.asarray(y, np.float64), expected, rtol=2**-22 if type == "float32" else 2**-8,
                               atol=4 * rounding.max())
    assert rounding.max() < 3e-5


@pytest.mark.parametrize("kind", ["linen", "nnx"])
@pytest.mark.parametrize("type", ["float32", "bfloat16"])
def test_running_statistics_of_flax(kind, type):
    """Of bf16, and far from 0, with the statistics within their bounds."""
    import bngrad.flax as bf
    from flax import nnx

    x = jnp.asarray(np.random.default_rng(5).standard_normal((16, 7, 7, 3)) + 1e4, "float32").astype(type)
    if kind == "linen":
        layer = bf.BatchNorm(use_running_average=False, momentum=0.75, dtype=type, param_dtype=jnp.bfloat16,
                             force_float32_reductions=False)
        variables = layer.init(jax.random.key(0), x)

        def step(x):
            return layer.apply(variables, x, mutable=["batch_stats"])

        running = jax.jit(step)(x)[1]["batch_stats"]
        mean, variance = running["mean"], running["var"]
        assert lower(step, x).count(f"@{TRAINING}(") == 1
    else:
        layer = bf.NnxBatchNorm(3, momentum=0.75, dtype=type, param_dtype=jnp.bfloat16, rngs=nnx.Rngs(0))
        nnx.jit(lambda layer, x: layer(x))(layer, x)
        mean, variance = layer.mean[...], layer.var[...]
    exact = np.asarray(x, np.float64)
    for running, old, new in ((mean, 0, exact.mean((0, 1, 2))), (variance, 1, exact.var((0, 1, 2)))):
        # The new value is rounded, and so are the batch's, the factors and the terms.
        rounding = 4 * 2**-8 if running.dtype == jnp.bfloat16 else 2**-18
        np.testing.assert_allclose(np.asarray(running, np.float64), 0.75 * old + 0.25 * new, rtol=rounding)


def lower(function, *arguments):
    return jax.jit(function).lower(*arguments).as_text()


def test_custom_calls():
    x, scale, offset = data("float32")
    programs = [
        (lambda x: bj.batch_norm(x, scale, offset), TRAINING), (lambda x: train(x), TRAINING),
        (jax.grad(lambda x: bj.batch_norm(x, scale, offset)[0].sum()), TRAINING),
        (jax.vmap(lambda scale: bj.batch_norm(x, scale)[0], out_axes=1), TRAINING),
        (lambda x: bj.batch_norm_inference(x, scale, variance=scale, feature_dims=(3,)), INFERENCE),
    ]
    for function, target in programs:
        argument = scale[None] if function is programs[3][0] else x
        assert lower(function, argument).count(f"@{target}(") == 1
    # With given statistics, XLA fuses the few element-wise ops.
    assert "bngrad" not in lower(lambda x: bj.batch_norm(x, mean=scale, variance=scale), x)


def test_decision_is_that_of_lowering(monkeypatch):
    """A program keeps its kernel or its formulas."""
    x = data("float32")[0]
    before, after = (jax.jit(lambda x: bj.batch_norm(x)[0]) for _ in range(2))
    expected = before(x)
    with monkeypatch.context() as patch:
        patch.setattr("bngrad.jax._prepare.has_kernel", lambda *problem: False)
        assert "bngrad." not in after.lower(x).as_text()
        assert_close(after(x), expected, 1e-5)
        np.testing.assert_array_equal(before(x), expected)
        formula = np.asarray(after(x))
    np.testing.assert_array_equal(after(x), formula)


def test_error_of_lowering():
    program = """
import jax.numpy as jnp, bngrad.jax as bj
try: bj.batch_norm(jnp.ones((2, 3)))
except RuntimeError as error: print(error)
"""
    done = subprocess.run([sys.executable, "-c", program], check=True, capture_output=True, text=True,
                          env=os.environ | {"BNGRAD_ISA": "v9"})
    assert done.stdout.startswith("batch_norm_training: ") and "BNGRAD_ISA" in done.stdout


@pytest.mark.parametrize("axes", [(0, None, None), (None, 0, None), (0, 0, 0), (1, None, 1), (-1, 1, None)])
def test_vmap(axes):
    generator = np.random.default_rng(2)

    def make(shape, axis):
        if axis is not None:
            axis %= len(shape) + 1
            shape = shape[:axis] + (3,) + shape[axis:]
        return jnp.asarray(generator.standard_normal(shape), "float32")

    operands = [make(shape, axis) for shape, axis in zip((SHAPE, (4,), (4,)), axes)]
    for function in (train, lambda *three: bj.batch_norm(*three),
                     lambda x, mean, scale: bj.batch_norm_inference(
                         x, mean, scale=scale, inv_std=scale, feature_dims=(3,))):
        found = jax.tree.leaves(jax.jit(jax.vmap(function, axes))(*operands))
        for index in range(3):
            item = [value if axis is None else jnp.take(value, index, axis) for value, axis in zip(operands, axes)]
            for one, other in zip(found, jax.tree.leaves(jax.jit(function)(*item))):
                if function is train:
                    np.testing.assert_array_equal(one[index], other)
                np.testing.assert_allclose(one[index], other, rtol=1e-5, atol=1e-5)


def test_vmap_of_vmap():
    x, scale, offset = data("float32")
    xs, scales = jnp.stack([x, 2 * x, x * x]), jnp.stack([scale, -scale])
    found = jax.vmap(jax.vmap(lambda x, scale: train(x, scale, offset), (None, 0)), (0, None))(xs, scales)
    swapped = jax.vmap(jax.vmap(lambda x, scale: train(x, scale, offset), (0, None)), (None, 0))(xs, scales)
    for i in range(3):
        for j in range(2):
            for one, other, expected in zip(found, swapped, train(xs[i], scales[j], offset)):
                np.testing.assert_allclose(one[i, j], expected, rtol=1e-5, atol=1e-5)
                np.testing.assert_allclose(other[j, i], expected, rtol=1e-5, atol=1e-5)
    empty = jax.vmap(lambda x: train(x, scale, offset)[0])(xs[:0])
    assert empty.shape == (0, *SHAPE)


def test_derivatives():
    arguments, tangents = data(shape=(3, 2, 4)), data(shape=(3, 2, 4), seed=1)
    for jit in (jax.jit, lambda function: function):
        assert_close(jit(functools.partial(jax.jvp, train))(arguments, tangents),
                     jax.jvp(formula, arguments, tangents))

    def loss(function, *three):
        return sum((jnp.sin(result) * (1 + index)).sum() for index, result in enumerate(function(*three)))

    for derivative in (lambda f: jax.grad(f, (0, 1, 2)), jax.hessian, lambda f: jax.jacrev(jax.jacfwd(f))):
        assert_close(*[derivative(functools.partial(loss, function))(*arguments) for function in (train, formula)])
    check_grads(train, arguments, order=2)
    x, scale, offset = arguments
    variance = 0.3 + jnp.arange(4.0)
    check_grads(lambda x, m, s, o, v: bj.batch_norm_inference(
        x, m, scale=s, offset=o, variance=v, epsilon=0.1, feature_dims=(-1,)), (x, offset, scale, offset, variance),
        order=2)


def test_scan_and_checkpoint():
    x, scale, offset = data()

    def deep(function, x, scale):
        def step(carry, _):
            y, mean, *_ = function(carry, scale, offset)
            return jnp.tanh(y) + carry, mean
        y, means = lax.scan(jax.checkpoint(step), x, None, length=3)
        return y.sum() + means.sum()

    assert_close(*[jax.jit(jax.grad(functools.partial(deep, function), (0, 1)))(x, scale)
                   for function in (train, formula)])


@pytest.mark.parametrize("check_vma", [True, False])
def test_shard_map(check_vma):
    x, scale, offset = data()
    mesh = Mesh(np.array(jax.devices()[:4]), ("d",))
    channels = P(None, None, None, "d")
    sharded = jax.shard_map(train, mesh=mesh, in_specs=(channels, P("d"), P("d")),
                            out_specs=(channels, P("d"), P("d"), P("d")), check_vma=check_vma)
    assert_close(jax.jit(sharded)(x, scale, offset), formula(x, scale, offset))
    # Only scale differs by device: the statistics are still those of x.
    replicated = jax.shard_map(
        lambda x, scale: bj.batch_norm(x, scale[0]), mesh=mesh, in_specs=(P(), P("d")),
        out_specs=(P("d"), P(), P()), check_vma=check_vma)
    y, mean, variance = jax.jit(replicated)(x, jnp.stack([scale] * 4))
    assert_close((y[:8], mean, variance), formula(x, scale, jnp.zeros(4))[:3])


@pytest.mark.parametrize("spec", [P("d"), P(None, None, None, "d")])
def test_explicit_mesh(spec):
    """Results are sharded as those of jax.numpy."""
    mesh = jax.make_mesh((4,), ("d",), axis_types=(jax.sharding.AxisType.Explicit,))
    x, scale, offset = data()
    with jax.set_mesh(mesh):
        placed = jax.device_put(x, jax.sharding.NamedSharding(mesh, spec))
        found, expected = (jax.jit(function)(placed, scale, offset) for function in (train, formula))
        assert [jax.typeof(value).sharding.spec for value in found] == [
            jax.typeof(value).sharding.spec for value in expected]
    assert_close(found, formula(x, scale, offset))


def test_export():
    arguments = data("float32")
    function = jax.jit(jax.value_and_grad(lambda *three: jnp.square(bj.batch_norm(*three)[0]).sum(), (0, 1, 2)))
    with pytest.raises(ValueError, match="bngrad.batch_norm_"):
        export.export(function)(*arguments)
    for platforms in (["cpu"], ["cpu", "cuda"]):
        exported = export.export(function, disabled_checks=CHECKS, platforms=platforms)(*arguments)
        assert f"@{TRAINING}(" in exported.mlir_module()
        loaded = export.deserialize(exported.serialize())
        assert_close(jax.jit(loaded.call)(*arguments), function(*arguments), 1e-6)
    rocm = export.export(function, platforms=["rocm"])(*arguments)
    assert "bngrad." not in rocm.mlir_module()


def test_export_of_symbolic_sizes():
    arguments = data("float32")
    shapes = export.symbolic_args_specs(arguments, ("n, h, 5, c", "c", "c"))
    for function in (train, bj.batch_norm):
        exported = export.export(jax.jit(function), disabled_checks=CHECKS)(*shapes)
        assert f"@{TRAINING}(" in exported.mlir_module()
        for count in (8, 3, 1):
            given = arguments[0][:count], *arguments[1:]
            assert_close(exported.call(*given), function(*given), 1e-5)


def test_threads_do_not_change_bits(tmp_path):
    program = """
import hashlib, jax.numpy as jnp, numpy as np, bngrad.jax as bj
generator = np.random.default_rng(0)
digest = hashlib.sha256()
for shape, dim, type in (
    ((8, 24, 56, 56), 1, "float32"), ((8, 56, 56, 24), 3, "bfloat16"), ((40000, 33), 1, "float32")):
    x = jnp.asarray(generator.standard_normal(shape), type)
    for value in bj.batch_norm_training(x, feature_dims=(dim,)):
        digest.update(np.asarray(value).tobytes())
print(digest.hexdigest())
"""
    environment = os.environ | {"XLA_FLAGS": "", "BNGRAD_CACHE_DIR": str(tmp_path)}
    digests = {subprocess.run([sys.executable, "-c", program], check=True, capture_output=True, text=True,
                              env=environment | {"NPROC": str(threads)}).stdout for threads in (1, 2, 5)}
    assert len(digests) == 1


X = np.zeros((2, 3, 4), np.float32)
V = np.ones(3, np.float32)


@pytest.mark.parametrize("change, error, text", [
    (dict(input=X.astype(int)), TypeError, "input: expected dtype f16, bf16, f32 or f64, got int64"),
    (dict(scale=V[:2]), ValueError, "scale: expected dim 0 to have the size of dim 1 of input, 3, got 2"),
    (dict(scale=V, offset=V.astype("float64")), TypeError,
     "offset: expected the dtype of scale, f32, got f64"),
    (dict(epsilon=-1), ValueError, "epsilon: expected it to be finite and at least 0, got -1"),
    (dict(feature_dims=(3,)), ValueError, "feature_dims: expected dims of input, -3 to 2, got 3"),
    (dict(wanted=("scale",)), ValueError,
     "wanted: expected 'output', 'mean', 'variance' or 'inv_std', got 'scale'"),
    (dict(wanted="mean"), TypeError, "wanted: expected names of results, got str"),
    (dict(wanted=()), ValueError, "wanted: expected 'output', 'mean', 'variance' or 'inv_std', got none"),
])
def test_errors_of_training(change, error, text):
    arguments = dict(input=X) | change
    for function in (bj.batch_norm_training, lambda **keywords: jax.jit(lambda: bj.batch_norm_training(**keywords))()):
        with pytest.raises(error, match=re.escape(text)):
            function(**arguments)


@pytest.mark.parametrize("change, error, text", [
    (dict(variance=None), ValueError, "variance, inv_std: expected one of them, got neither"),
    (dict(inv_std=V), ValueError, "variance, inv_std: expected one of them, got both"),
    (dict(variance=None, inv_std=V, epsilon=0.5), ValueError,
     "epsilon: expected 0 with an inv_std, which contains it, got 0.5"),
    (dict(offset=V.astype("float16")), TypeError, "offset: expected the dtype of mean, f32, got f16"),
    (dict(mean=V[None]), ValueError, "mean: expected rank 1, the number of feature dims, got 2"),
])
def test_errors_of_inference(change, error, text):
    with pytest.raises(error, match=re.escape(text)):
        bj.batch_norm_inference(**(dict(input=X, mean=V, variance=V) | change))


ATTRIBUTES = dict(
    rank=np.int64(3), feature_dims=np.array([1]), epsilon=np.float64(0), has_scale=False, has_offset=False,
    wants_output=False, wants_mean=True, wants_variance=False, wants_inv_std=False)


@pytest.mark.parametrize("operands, attributes, text", [
    ((X,), dict(has_scale=True), "scale: expected one of the operands, got 1 without it"),
    ((X, V), {}, "operands: expected 1, got 2"),
    ((X,), dict(wants_variance=True), "variance: expected one of the results, got 1 without it"),
    ((X,), dict(wants_mean=False), "results: expected 0, got 1"),
    ((X,), dict(epsilon=np.float64(-1)), "expected epsilon to be finite and at least 0, got -1"),
    ((X.astype(int),), {}, "input: expected dtype f16, bf16, f32, f64 or bool, got S64"),
    ((X, V[:2]), dict(has_scale=True), "scale: expected dim 0 to have the size of dim 1 of input, 3, got 2"),
])
def test_errors_of_handlers(operands, attributes, text):
    """Those of modules that were not made by bngrad.jax."""
    call = jax.ffi.ffi_call(TRAINING, [jax.ShapeDtypeStruct((3,), "float32")])
    with pytest.raises(jax.errors.JaxRuntimeError, match="INVALID_ARGUMENT: bngrad: .*" + re.escape(text)):
        jax.block_until_ready(jax.jit(lambda *operands: call(*operands, **ATTRIBUTES | attributes))(*operands))


@pytest.mark.skipif(os.environ.get("BNGRAD_COMPILER") != "", reason="there is a compiler")
def test_call_without_a_kernel():
    """As of a module that was exported where there is a compiler: no kernel is ready for these dims."""
    call = jax.ffi.ffi_call(TRAINING, [jax.ShapeDtypeStruct((X.shape[0], X.shape[2]), "float32")])
    attributes = ATTRIBUTES | dict(feature_dims=np.array([0, 2]))
    with pytest.raises(jax.errors.JaxRuntimeError, match="UNIMPLEMENTED: bngrad: .*BNGRAD_COMPILER is empty"):
        jax.block_until_ready(jax.jit(lambda x: call(x, **attributes))(X))


if __name__ == "__main__":
    sys.exit(pytest.main([__file__, "-q"]))
