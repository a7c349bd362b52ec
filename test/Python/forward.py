"""The forward pass: random configurations within the bounds of docs/numerics.md, and errors.

Without a compiler, operands that no ready kernel takes are copied.

RUN: %python -m pytest -q %s
RUN: %if python-compiler %{ env -u BNGRAD_COMPILER %python -m pytest -q %s %}
"""

import bngrad
import numpy as np
import pytest
from numerics import Maker
from reference import PRECISION, SMALLEST, TYPES, real, widen

COUNT = 24
NAMES = ("output", "mean", "variance", "inv_std")
X = np.ones((2, 3, 4), np.float32)
C = np.ones(3, np.float32)


class Forward:
    """The exact results, and the bound of each but for its own rounding."""

    def __init__(self, input, *, scale=None, offset=None, mean=None, variance=None, inv_std=None, epsilon=0.0,
                 feature_dims=(1,)):
        rank = input.ndim
        features = [dim % rank for dim in feature_dims]
        reduced = tuple(dim for dim in range(rank) if dim not in features)
        form = [size if dim in features else 1 for dim, size in enumerate(input.shape)]
        given = [v for v in (input, scale, offset, mean, variance, inv_std) if v is not None]
        u = real(2) ** (-53 if any(v.dtype.itemsize == 8 for v in given) else -24)
        count = int(np.prod([input.shape[dim] for dim in reduced], dtype=np.int64))
        g = 4 * u * (4 + np.log2(real(count + 1)))
        x = widen(input)
        s = real(1) if scale is None else widen(scale).reshape(form)
        o = real(0) if offset is None else widen(offset).reshape(form)
        if mean is not None:
            r = widen(inv_std) if inv_std is not None else 1 / np.sqrt(widen(variance) + real(epsilon))
            product = (x - widen(mean).reshape(form)) * (s * r.reshape(form))
            self.results = [(product + o, 16 * u * (abs(product) + abs(o)))]
            return
        size = max(count, 1)
        mean = x.sum(reduced, keepdims=True) / size
        is_constant = np.ones(form, bool)
        if x.size:
            is_constant = x.max(reduced, keepdims=True) == x.min(reduced, keepdims=True)
            mean = np.where(is_constant, x.min(reduced, keepdims=True), mean)
        xmu = x - mean - (x - mean).sum(reduced, keepdims=True) / size
        variance = (xmu**2).sum(reduced, keepdims=True) / size
        root = np.where(is_constant, 0, np.sqrt(variance) + 2 * g * np.sqrt(mean**2 + variance))
        r = 1 / np.sqrt(variance + real(epsilon))
        relative = 1 + root**2 / (variance + real(epsilon))
        of_output = abs(s) * r * (abs(xmu) * relative + root + u * abs(mean)) + abs(o)
        channels = tuple(input.shape[dim] for dim in features)
        self.results = [(xmu * (s * r) + o, np.where(is_constant, 0, g * of_output))] + [
            (exact.reshape(channels), bound.reshape(channels)) for exact, bound in (
                (mean, g * root + u * abs(mean)), (variance, g * root**2), (r, g * r * relative))]

    def check(self, results):
        for name, result, (exact, bound) in zip(NAMES, results, self.results):
            if result is None:
                continue
            dtype = result.dtype.newbyteorder("=")
            rounding = real(2) ** -PRECISION[dtype] * (abs(exact) + bound) + real(2) ** SMALLEST[dtype]
            error = abs(widen(result) - exact)
            assert (error <= bound + rounding).all(), (name, np.max(error - bound - rounding))


@pytest.mark.parametrize("number", range(COUNT))
def test_random(number):
    maker = Maker(number)
    random = maker.random
    data = TYPES[number % 4]
    parameter = maker.pick([data, np.dtype(np.float32)])
    rank = number // 4 % 4 + 1
    shape = tuple(int(maker.pick([1, 3, 8, 17])) for _ in range(rank))
    if number == 9:
        shape = (0, *shape[1:])
    dims = sorted(random.permutation(rank)[:random.integers(1, min(rank, 2) + 1)].tolist())
    channels = tuple(shape[dim] for dim in dims)
    order = maker.order(rank)

    def vector(low, high):
        return maker.make(random.uniform(low, high, channels), parameter, np.arange(len(channels)))

    input = maker.make(random.normal(3, 2, shape), data, order)
    keywords = {"feature_dims": tuple(dims), "epsilon": maker.pick([1e-5, 0.5])}
    for name in ("scale", "offset"):
        if maker.flip():
            keywords[name] = vector(-2, 2)
    if number % 3 == 0:
        statistic = maker.pick(["variance", "inv_std"])
        keywords |= {"epsilon": 0.0} if statistic == "inv_std" else {}
        keywords[statistic] = vector(0.5, 2)
        mean = vector(2, 4)
        expected = Forward(input, mean=mean, **keywords)
        out = maker.pick([None, input, maker.empty(shape, data, order)])
        result = bngrad.batch_norm_inference(input, mean, out=out, **keywords)
        assert out is None or result is out
        return expected.check([result])
    expected = Forward(input, **keywords)
    results = bngrad.batch_norm_training(input, **keywords)
    assert [r.dtype for r in results[1:]] == [
        np.float64 if np.float64 in (data, *(keywords[k].dtype for k in ("scale", "offset") if k in keywords))
        else np.float32] * 3
    expected.check(results)
    wanted = NAMES[number % 4]
    alone = bngrad.batch_norm_training(input, wanted=(wanted,), **keywords)
    assert [r is not None for r in alone] == [name == wanted for name in NAMES]
    expected.check(alone)
    out = (input if maker.flip() else maker.empty(shape, maker.pick(TYPES), order), None, None,
           maker.empty(channels, maker.pick(TYPES), np.arange(len(channels))))
    given = bngrad.batch_norm_training(input, out=out, **keywords)
    assert given[0] is out[0] and given[3] is out[3]
    expected.check(given)


def training(**keywords):
    return lambda: bngrad.batch_norm_training(keywords.pop("input", X), **keywords)


def inference(**keywords):
    return lambda: bngrad.batch_norm_inference(X, C, **keywords)


@pytest.mark.parametrize("call, kind, text", [
    (training(wanted=("scale",)), bngrad.ParameterError,
     "wanted: expected 'output', 'mean', 'variance' or 'inv_std', got 'scale'"),
    (training(wanted="mean"), bngrad.DtypeError, "wanted: expected names of results, got str"),
    (training(wanted=()), bngrad.ParameterError,
     "expected output, mean, variance or inv_std to be wanted, got none"),
    (training(out=(None,)), bngrad.DtypeError,
     "out: expected a tuple of output, mean, variance and inv_std, got tuple of 1"),
    (training(wanted=("mean",), out=(X, None, None, None)), bngrad.ParameterError,
     "out: expected None for output, which is not wanted, got numpy.ndarray"),
    (training(scale=C, offset=C.astype(np.float64)), bngrad.DtypeError,
     "offset: expected the dtype of scale, f32, got f64"),
    (training(scale=C[:2]), bngrad.ShapeError,
     "scale: expected dim 0 to have the size of dim 1 of input, 3, got 2"),
    (training(epsilon=-1), bngrad.ParameterError,
     "options: expected epsilon to be finite and at least 0, got -1"),
    (training(epsilon="0"), bngrad.DtypeError, "epsilon: expected a number, got str"),
    (training(out=(None, C, C, None)), bngrad.ParameterError,
     "mean: expected memory apart from that of variance, got an overlap"),
    (inference(), bngrad.ParameterError, "expected variance or inv_std, got neither"),
    (inference(inv_std=C, epsilon=0.5), bngrad.ParameterError,
     "options: expected epsilon to be 0 with an inv_std, which contains it, got 0.5"),
    (inference(variance=C, offset=C.astype(np.float16)), bngrad.DtypeError,
     "offset: expected the dtype of mean, f32, got f16"),
])
def test_errors(call, kind, text):
    with pytest.raises(kind) as caught:
        call()
    assert str(caught.value) == text
