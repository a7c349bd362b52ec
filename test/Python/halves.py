"""The halves of a gradient: sums of parts, and grad_input from their total, within the bound.

RUN: %python -m pytest -q %s
"""

import bngrad
import numpy as np
import pytest
from numerics import configure
from reference import PRECISION, SMALLEST, Gradient, real, widen


def check_sums(expected, actual):
    exact = np.stack([expected.sum_dy, expected.sum_dy_xmu])
    assert actual.dtype == expected.accumulator and actual.shape == exact.shape
    unit = real(2) ** -PRECISION[actual.dtype]
    bound = (unit * np.abs(exact) + real(2) ** SMALLEST[actual.dtype]
             + 4 * unit * (4 + np.log2(expected.count + 1)) * expected.sums_terms)
    assert (np.abs(widen(actual) - exact) <= bound).all()


@pytest.mark.parametrize("number", range(120))
def test_halves_are_the_whole(number):
    maker, (grad_output, input, mean), keywords, layout = configure(number)
    keywords.pop("statistics", None)
    expected = Gradient(grad_output, input, mean, **keywords)
    reduced = {name: keywords[name] for name in ("mask", "feature_dims") if name in keywords}
    sums = bngrad.batch_norm_backward_reduce(grad_output, input, mean, **reduced)
    check_sums(expected, sums)
    laid = maker.empty(sums.shape, sums.dtype, maker.order(sums.ndim))
    assert bngrad.batch_norm_backward_reduce(grad_output, input, mean, **reduced, out=laid) is laid
    check_sums(expected, np.array(laid, laid.dtype.newbyteorder("=")))
    out = maker.empty(input.shape, input.dtype.newbyteorder("="), layout) if maker.flip() else None
    result = bngrad.batch_norm_backward_elemt(grad_output, input, mean, laid, np.int64(expected.count), **keywords,
                                              out=out)
    assert out is None or result is out
    expected.check("grad_input", result)


def test_shards():
    """Sums of uneven and empty shards add up to those of all data."""
    random = np.random.default_rng(1)
    x, dy = (random.normal(size=(10, 3, 4, 5)).astype(np.float32) for _ in range(2))
    mean, inv_std, scale = (random.uniform(0.5, 2, size=3).astype(np.float32) for _ in range(3))
    expected = Gradient(dy, x, mean, inv_std=inv_std, scale=scale)
    parts = [slice(0, 7), slice(7, 7), slice(7, 10)]
    total = sum(bngrad.batch_norm_backward_reduce(dy[part], x[part], mean) for part in parts)
    check_sums(expected, total)
    results = [bngrad.batch_norm_backward_elemt(dy[part], x[part], mean, total, 200, inv_std=inv_std, scale=scale)
               for part in parts]
    expected.check("grad_input", np.concatenate(results))
    expected.check("grad_offset", total[0])
    expected.check("grad_scale", total[1] * inv_std)


X = np.ones((2, 3), np.float32)
C = np.ones(3, np.float32)


@pytest.mark.parametrize("keywords, kind, text", [
    ({"sums": np.ones((2, 4), np.float32)}, ValueError, "sums: expected dim 1 to have the size of dim 1 of input"),
    ({"sums": C}, ValueError, "sums: expected rank 2"),
    ({"sums": np.ones((2, 3))}, TypeError, "sums: expected the accumulator type, f32, got f64"),
    ({"count": 0}, ValueError, "count: expected at least 1, got 0"),
    ({"count": 2.5}, TypeError, "count: expected an integer, got float"),
    ({"inv_std": None}, ValueError, "expected variance or inv_std, got neither"),
    ({"out": X[0]}, ValueError, "grad_input: expected rank 2, that of input, got 1"),
])
def test_errors_of_elemt(keywords, kind, text):
    arguments = {"sums": np.ones((2, 3), np.float32), "count": 2, "inv_std": C} | keywords
    with pytest.raises(kind, match=text) as caught:
        bngrad.batch_norm_backward_elemt(X, X, C, arguments.pop("sums"), arguments.pop("count"), **arguments)
    assert isinstance(caught.value, bngrad.Error)


def test_errors_of_reduce():
    with pytest.raises(ValueError, match="mean: expected dim 0"):
        bngrad.batch_norm_backward_reduce(X, X, C[:2])
    with pytest.raises(TypeError, match="sums: expected the accumulator type, f32, got f64"):
        bngrad.batch_norm_backward_reduce(X, X, C, out=np.ones((2, 3)))
    with pytest.raises(ValueError, match="sums: expected size of dim 0 to be 2, got 3"):
        bngrad.batch_norm_backward_reduce(X, X, C, out=np.ones((3, 3), np.float32))


def test_in_place():
    dy, sums = np.arange(6, dtype=np.float32).reshape(2, 3), np.ones((2, 3), np.float32)
    expected = bngrad.batch_norm_backward_elemt(dy, X, C, sums, 2, inv_std=C)
    assert bngrad.batch_norm_backward_elemt(dy, X, C, sums, 2, inv_std=C, out=dy) is dy
    assert np.array_equal(dy, expected)
