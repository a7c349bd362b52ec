"""Arrays of JAX outside of its transforms.

REQUIRES: jax
RUN: %python -m pytest -q %s
"""

import bngrad
import jax
import jax.numpy as jnp
import numpy as np
import pytest


def make(dtype=jnp.float32, shape=(4, 3, 5, 2)):
    random = np.random.default_rng(1)
    dy, x = (jnp.asarray(random.normal(size=shape)).astype(dtype) for _ in range(2))
    mean, inv_std = (jnp.asarray(random.uniform(0.5, 2, size=shape[1]).astype(np.float32)) for _ in range(2))
    return dy, x, mean, inv_std


@pytest.mark.parametrize("dtype", [jnp.float16, jnp.bfloat16, jnp.float32])
def test_types(dtype):
    dy, x, mean, inv_std = make(dtype)
    results = bngrad.batch_norm_backward(dy, x, mean, inv_std=inv_std)
    expected = bngrad.batch_norm_backward(*map(np.asarray, (dy, x, mean)), inv_std=np.asarray(inv_std))
    for result, other in zip(results, expected):
        assert isinstance(result, jax.Array) and result.dtype == other.dtype
        assert np.array_equal(np.asarray(result), other)


def test_results_take_part_in_computations():
    dy, x, mean, inv_std = make()
    result = bngrad.batch_norm_backward(dy, x, mean, inv_std=inv_std)[0]
    before = np.array(result)
    assert np.array_equal(jax.jit(lambda y: y * 2)(result), before * 2)
    del result
    again = bngrad.batch_norm_backward(dy, x, mean, inv_std=inv_std)[0]
    assert np.array_equal(before, again)


def test_operands_are_awaited():
    """JAX returns arrays before they are computed."""
    _, x, mean, inv_std = make(shape=(64, 3, 40, 40))
    slow = jax.jit(lambda y: jax.lax.fori_loop(0, 50, lambda _, z: jnp.sin(z) + y, y))
    slow(x).block_until_ready()
    result = bngrad.batch_norm_backward(slow(x), x, mean, inv_std=inv_std)
    expected = bngrad.batch_norm_backward(np.asarray(slow(x)), np.asarray(x), np.asarray(mean),
                                          inv_std=np.asarray(inv_std))
    assert np.array_equal(result[0], expected[0])


def test_arrays_do_not_change():
    dy, x, mean, inv_std = make()
    before = np.array(dy)
    with pytest.raises(ValueError, match="grad_input: expected memory to write to, got a read-only array"):
        bngrad.batch_norm_backward(dy, x, mean, inv_std=inv_std, out=(dy, None, None))
    assert np.array_equal(before, dy)


def test_tracers_are_errors():
    dy, x, mean, inv_std = make()
    with pytest.raises(jax.errors.ConcretizationTypeError):
        jax.jit(lambda y: bngrad.batch_norm_backward(y, x, mean, inv_std=inv_std)[0])(dy)
