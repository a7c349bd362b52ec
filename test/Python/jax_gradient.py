# RUN: %python -m pytest -q %s
# REQUIRES: jax
"""The gradient and its halves in JAX: values, and errors."""

import os
import re
import sys

import jax
import jax.numpy as jnp
import ml_dtypes
import numpy as np
import pytest

sys.path.insert(0, os.path.join(os.path.dirname(__file__), "Inputs"))
import jax_reference as reference

import bngrad.jax as bj
from bngrad.jax import _calls, _formulas

jax.config.update("jax_enable_x64", True)


def statistic_of(configuration):
    return configuration.keywords("scale", "mask", "variance", "inv_std") | {"epsilon": configuration.epsilon}


def call_backward(configuration, wanted=(True, True, True)):
    operands = configuration.operands
    return bj.batch_norm_backward(
        operands["grad_output"], operands["input"], operands["mean"],
        statistics=configuration.statistics, wanted=wanted, **statistic_of(configuration))


def check_backward(configuration, wanted=(True, True, True)):
    results = call_backward(configuration, wanted)
    expected = reference.Reference(configuration).backward()
    for name, is_wanted, result, value in zip(_calls.get_wanted("batch_norm_backward"), wanted, results, expected):
        if is_wanted:
            reference.check(name, result, value, configuration)
        else:
            assert result is None


def check_halves(configuration, generator):
    operands = [configuration.operands[name] for name in ("grad_output", "input", "mean")]
    sums = bj.batch_norm_backward_reduce(*operands, **configuration.keywords("mask"))
    reference.check("sums", sums, reference.Reference(configuration).reduce(), configuration)
    # Those of several processes.
    given = (np.asarray(sums) * 3 + 0.5).astype(sums.dtype)
    count = 3 * configuration.count + 1
    argument = count if generator.random() < 0.5 else np.array(count, generator.choice(["int32", "int64"]))
    grad_input = bj.batch_norm_backward_elemt(*operands, given, argument, **statistic_of(configuration))
    reference.check(
        "grad_input", grad_input, reference.Reference(configuration, given, count).elemt(), configuration)


@pytest.mark.parametrize("seed", range(10))
def test_random_configurations(seed):
    generator = np.random.default_rng(seed)
    for index in range(30):
        configuration = reference.Configuration(generator)
        if index % 3 == 2:
            check_halves(configuration, generator)
            continue
        wanted = tuple(bool(each) for each in generator.random(3) < 0.7)
        check_backward(configuration, wanted if any(wanted) else (True, True, True))


@pytest.mark.parametrize("type", reference.TYPES)
@pytest.mark.parametrize("shape, feature_dims", [
    ((8, 16, 28, 28), (1,)), ((8, 28, 28, 16), (3,)), ((3000, 37), (1,)), ((4, 3, 9, 9, 9), (1,)),
    ((16, 5, 7), (1, 2)), ((16, 6, 5, 7), (1, 3)), ((100003,), (0,)), ((2, 1, 100003), (1,)),
])
def test_layouts(type, shape, feature_dims):
    generator = np.random.default_rng(1)
    parameter = "float64" if type == "float64" else "float32"
    configuration = reference.Configuration(generator, shape, feature_dims, type, parameter)
    check_backward(configuration)
    check_halves(configuration, generator)


@pytest.mark.parametrize("shape, feature_dims", [
    ((0, 3), (1,)), ((3, 0), (1,)), ((0,), (0,)), ((2, 3, 0, 4), (1,)), ((2, 3, 0, 4), (2,)), ((1,), (0,)),
    ((1, 1), (0, 1)), ((1, 4), (1,)), ((2,) * 18, (3, 4)), ((2,) * 17, (3, 9)), ((2,) * 10, tuple(range(1, 10))),
])
def test_sizes_and_ranks(shape, feature_dims):
    generator = np.random.default_rng(2)
    for type in ("float32", "bfloat16"):
        configuration = reference.Configuration(generator, shape, feature_dims, type, "float32")
        check_backward(configuration)
        check_halves(configuration, generator)


def test_equal_numbers():
    # A running sum in f32 misses the bound.
    generator = np.random.default_rng(3)
    configuration = reference.Configuration(generator, (1000003, 2), (1,), "float32", "float32")
    configuration.operands.pop("mask", None)
    configuration.operands["grad_output"][:] = 0.1
    check_backward(configuration)


def test_bounds_are_not_idle():
    generator = np.random.default_rng(4)
    configuration = reference.Configuration(generator, (6, 4, 5), (1,), "float32", "float32")
    configuration.statistics = "batch"
    results = call_backward(configuration)
    expected = reference.Reference(configuration).backward()
    for name, result, value in zip(_calls.get_wanted("batch_norm_backward"), results, expected):
        axis = 1 if name == "grad_input" else 0
        for mutant in (-result, result[::-1] if axis == 0 else result[:, ::-1], result * 1.001):
            with pytest.raises(AssertionError):
                reference.check(name, mutant, value, configuration)


def test_formulas():
    """The code for other platforms, whose sums are XLA's."""
    for seed in range(20):
        generator = np.random.default_rng(100 + seed)
        configuration = reference.Configuration(generator, type="float64", parameter_type="float64")
        operands = {name: jnp.asarray(value) for name, value in configuration.operands.items()}
        operands["statistic"] = operands.pop(configuration.statistic)
        options = _calls.Options(
            configuration.feature_dims, configuration.epsilon, configuration.statistics, configuration.statistic)
        exact = reference.Reference(configuration)
        pairs = list(zip(_formulas.backward(options, operands), exact.backward()))
        sums = _formulas.reduce(options, operands)
        pairs.append((sums[0], exact.reduce()))
        count = 2 * configuration.count + 1
        pairs.append((
            _formulas.elemt(options, {**operands, "sums": sums[0], "count": jnp.asarray(count)})[0],
            reference.Reference(configuration, np.asarray(sums[0]), count).elemt()))
        for result, (value, terms, _) in pairs:
            np.testing.assert_array_less(
                abs(np.asarray(result).astype(reference.EXACT) - value), 1e-13 * terms + 1e-300)


def test_special_values():
    # Each channel of its own: NaN, an infinite sum, a variance of 0, none.
    input = np.array([[1, 2, 3, 4], [5, 7, 3, 6]], np.float32)
    grad_output = np.array([[np.nan, 1, 1, 1], [1, np.inf, 2, -1]], np.float32)
    mean, variance = input.mean(0), input.var(0)
    grad_input, grad_scale, grad_offset = bj.batch_norm_backward(grad_output, input, mean, variance=variance)
    assert np.isnan(grad_input[:, 0]).all() and np.isnan(grad_offset[0])
    assert not np.isfinite(grad_input[:, 1]).any() and np.isposinf(grad_offset[1])
    assert np.isnan(grad_input[:, 2]).all() and np.isnan(grad_scale[2]) and grad_offset[2] == 3
    assert np.isfinite(grad_input[:, 3]).all()
    masked = bj.batch_norm_backward(
        grad_output, input, mean, variance=variance, mask=np.isfinite(grad_output))
    assert np.isfinite(masked[0][:, :2]).all() and np.isfinite(masked[2]).all()


X = np.zeros((2, 3, 4), np.float32)
V = np.ones(3, np.float32)


@pytest.mark.parametrize("change, error, text", [
    (dict(grad_output=X[:1]), ValueError,
     "grad_output: expected dim 0 to have the size of dim 0 of input, 2, got 1"),
    (dict(grad_output=X[0]), ValueError, "grad_output: expected rank 3, that of input, got 2"),
    (dict(grad_output=X.astype("float16")), TypeError,
     "grad_output: expected the dtype of input, f32, got f16"),
    (dict(input=X.astype(int), grad_output=X.astype(int)), TypeError,
     "grad_output: expected dtype f16, bf16, f32 or f64, got int64"),
    (dict(mean=V[:2]), ValueError, "mean: expected dim 0 to have the size of dim 1 of input, 3, got 2"),
    (dict(scale=V[None]), ValueError, "scale: expected rank 1, the number of feature dims, got 2"),
    (dict(scale=V.astype("float16")), TypeError, "scale: expected the dtype of mean, f32, got f16"),
    (dict(variance=V.astype(ml_dtypes.bfloat16)), TypeError,
     "variance: expected the dtype of mean, f32, got bf16"),
    (dict(variance=None), ValueError, "variance, inv_std: expected one of them, got neither"),
    (dict(inv_std=V), ValueError, "variance, inv_std: expected one of them, got both"),
    (dict(variance=None, inv_std=V, epsilon=1e-5), ValueError,
     "epsilon: expected 0 with an inv_std, which contains it, got 1e-05"),
    (dict(epsilon=-1), ValueError, "epsilon: expected it to be finite and at least 0, got -1"),
    (dict(epsilon=np.nan), ValueError, "epsilon: expected it to be finite and at least 0, got nan"),
    (dict(mask=X), TypeError, "mask: expected dtype bool, got f32"),
    (dict(mask=X[0] == 0), ValueError, "mask: expected rank 3, that of input, got 2"),
    (dict(feature_dims=(3,)), ValueError, "feature_dims: expected dims of input, -3 to 2, got 3"),
    (dict(feature_dims=(2, 1)), ValueError, "feature_dims: expected ascending dims, got 1 after 2"),
    (dict(feature_dims=(1, 1)), ValueError, "feature_dims: expected ascending dims, got 1 after 1"),
    (dict(feature_dims=()), ValueError, "feature_dims: expected at least one dim, got none"),
    (dict(statistics="running"), ValueError, "statistics: expected 'batch' or 'global', got 'running'"),
    (dict(wanted=(False,) * 3), ValueError, "wanted: expected grad_input, grad_scale or grad_offset"),
])
def test_errors(change, error, text):
    arguments = dict(grad_output=X, input=X, mean=V, variance=V) | change
    for function in (bj.batch_norm_backward, jax.jit(lambda: bj.batch_norm_backward(**arguments))):
        with pytest.raises(error, match=re.escape(text)):
            function() if not arguments or function is not bj.batch_norm_backward else function(**arguments)


@pytest.mark.parametrize("change, error, text", [
    (dict(sums=np.ones((3, 2), np.float32)), ValueError,
     "sums: expected shape (2, 3), 2 and the sizes of the feature dims, got (3, 2)"),
    (dict(sums=np.ones((2, 3))), TypeError, "sums: expected dtype f32, got f64"),
    (dict(count=0), ValueError, "count: expected at least 1, got 0"),
    (dict(count=2.5), TypeError, "count: expected dtype int32 or int64, got float64"),
    (dict(count=np.array([4])), ValueError, "count: expected rank 0, got 1"),
])
def test_errors_of_elemt(change, error, text):
    arguments = dict(
        grad_output=X, input=X, mean=V, variance=V, sums=np.ones((2, 3), np.float32), count=8) | change
    with pytest.raises(error, match=re.escape(text)):
        bj.batch_norm_backward_elemt(**arguments)


ATTRIBUTES = dict(
    rank=np.int64(3), feature_dims=np.array([1]), epsilon=np.float64(0), statistics="batch", statistic="variance",
    has_scale=False, has_mask=False, wants_grad_input=False, wants_grad_scale=False, wants_grad_offset=True)


@pytest.mark.parametrize("operands, attributes, text", [
    ((X, X, V, V[:2]), {}, "statistic: expected dim 0 to have the size of dim 1 of input, 3, got 2"),
    ((X, X[0], V, V), {}, "rank: expected 0 to 2, the rank of input, got 3"),
    ((X, X, V), {}, "statistic: expected one of the operands, got 3 without it"),
    ((X, X, V, V, V), {}, "operands: expected 4, got 5"),
    ((X, X, V, V), dict(wants_grad_scale=True), "grad_offset: expected one of the results, got 1 without it"),
    ((X, X, V, V), dict(wants_grad_offset=False), "results: expected 0, got 1"),
    ((X, X, V, V), dict(feature_dims=np.array([2, 1])), "expected feature dims to be ascending, got 1 after 2"),
    ((X, X, V, V), dict(feature_dims=np.array([2**40])), "expected feature dims to be dims of input, 0 to 2"),
    ((X, X, V, V), dict(feature_dims=np.arange(0)), "feature_dims: expected 1 to 8 dims, got 0"),
    ((X, X, V, V), dict(statistics="none"), "statistics: expected batch or global, got none"),
    ((X, X, V, V), dict(statistic="std"), "statistic: expected variance or inv_std, got std"),
    ((X, X, V, V), dict(epsilon=np.float64(-1)), "expected epsilon to be finite and at least 0, got -1"),
    ((X.astype(int), X, V, V), {}, "grad_output: expected dtype f16, bf16, f32, f64 or bool, got S64"),
    ((X, X, V.astype("float16"), V), {}, "statistic: expected the dtype of mean, f16, got f32"),
    ((X[None], X[None], V[None], V), {}, "statistic: expected rank 2, got 1"),
    ((X[None], np.stack([X, X]), V[None], V[None]), {}, "input: expected size of dim 0 to be 1, got 2"),
])
def test_errors_of_handlers(operands, attributes, text):
    """Those of modules that were not made by bngrad.jax."""
    attributes = ATTRIBUTES | attributes
    shape = (1, 3) if operands[0].ndim == 4 else (3,)
    call = jax.ffi.ffi_call("bngrad.batch_norm_backward", [jax.ShapeDtypeStruct(shape, "float32")])
    with pytest.raises(jax.errors.JaxRuntimeError, match="INVALID_ARGUMENT: bngrad: .*" + re.escape(text)):
        jax.block_until_ready(jax.jit(lambda *operands: call(*operands, **attributes))(*operands))

@pytest.mark.parametrize("rank", [17, 40, 46, 50, 64])
def test_errors_of_high_ranks(rank):
    """A handler of modules that were not made by bngrad.jax; these bring data to rank 3."""
    x = np.zeros((1,) * (rank - 1) + (3,), "float32")
    attributes = ATTRIBUTES | dict(rank=np.int64(rank), feature_dims=np.array([rank - 1]))
    call = jax.ffi.ffi_call("bngrad.batch_norm_backward", [jax.ShapeDtypeStruct((3,), "float32")])
    with pytest.raises(jax.errors.JaxRuntimeError, match=f"grad_output: expected rank of at most 16, got {rank}"):
        jax.block_until_ready(jax.jit(lambda *operands: call(*operands, **attributes))(x, x, V, V))
    vectors = np.zeros((1,) * rank, "float32")
    with pytest.raises(jax.errors.JaxRuntimeError, match=f"mean: expected rank of at most 16, got {rank}"):
        jax.block_until_ready(jax.jit(lambda *operands: call(*operands, **ATTRIBUTES))(X, X, vectors, vectors))


if __name__ == "__main__":
    sys.exit(pytest.main([__file__, "-q"]))
