"""Random configurations: every type, layout, option and way to give outputs, within the bound.

RUN: %python -m pytest -q %s
"""

import bngrad
import numpy as np
import pytest
from reference import NAMES, TYPES, Gradient

SEED = 20260128
COUNT = 300


class Maker:
    """Makes the operands of one configuration."""

    def __init__(self, number):
        self.random = np.random.default_rng([SEED, number])
        self.number = number

    def flip(self, probability=0.5):
        return self.random.random() < probability

    def pick(self, values):
        return values[self.random.integers(len(values))]

    def empty(self, shape, dtype, order, is_output=False):
        """An array whose dims are in `order` in memory, perhaps with gaps, reversed, unaligned or swapped."""
        if self.flip(0.1) and dtype.kind == "f":
            dtype = dtype.newbyteorder()
        steps = [self.pick([1, 1, 1, 2]) if self.flip(0.2) else 1 for _ in shape]
        padded = [shape[dim] * steps[dim] for dim in order]
        size = int(np.prod(padded)) * dtype.itemsize
        offset = 1 if self.flip(0.1) else 0
        memory = np.zeros(size + 16, np.uint8)[offset:offset + size].view(np.uint8)
        array = np.ndarray(padded, dtype, memory.data)
        array = array.transpose(np.argsort(order))
        array = array[tuple(slice(None, None, step) for step in steps)]
        if self.flip(0.1) and array.ndim:
            array = np.flip(array, self.pick(range(array.ndim)))
        assert array.shape == tuple(shape)
        return array

    def make(self, values, dtype, order):
        array = self.empty(values.shape, dtype, order)
        array[...] = values
        return array

    def order(self, rank):
        return self.random.permutation(rank) if self.flip(0.3) else np.arange(rank)


def configure(number):
    """The arguments of a configuration, and the types of the outputs that are given."""
    maker = Maker(number)
    random = maker.random
    data, parameter = TYPES[number % 4], TYPES[number // 4 % 4]
    rank = number % 6 + 1
    sizes = [1, 2, 3, 5, 7] if rank > 3 else [1, 3, 8, 17, 33]
    shape = tuple(int(maker.pick(sizes)) for _ in range(rank))
    if maker.flip(0.03):
        shape = (0, *shape[1:])
    num_features = int(random.integers(1, min(rank, 3) + 1)) if maker.flip(0.3) else 1
    dims = sorted(random.permutation(rank)[:num_features].tolist())
    order = maker.order(rank)
    channels = tuple(shape[dim] for dim in dims)

    def layout():
        return order if maker.flip(0.8) else maker.order(rank)

    def vector(values):
        return maker.make(values, parameter, maker.order(len(channels)))

    x = random.normal(size=shape) * 2 + random.normal(size=1) * 3
    keywords = {"feature_dims": tuple(dim - rank if maker.flip(0.3) else dim for dim in dims)}
    input = maker.make(x, data, layout())
    dy = random.normal(size=shape) + 0.3
    if maker.flip(0.1):
        grad_output = np.broadcast_to(np.asarray(dy.reshape(-1)[:1].astype(data).reshape([1] * rank)), shape) \
            if dy.size else maker.make(dy, data, layout())
    else:
        grad_output = maker.make(dy, data, layout())
    mean = vector(random.normal(size=channels))
    variance = random.uniform(0.3, 4, size=channels)
    if maker.flip():
        keywords["variance"] = vector(variance)
        keywords["epsilon"] = maker.pick([0.0, 1e-5, np.float32(0.1), 1])
    else:
        keywords["inv_std"] = vector(variance)
    if maker.flip(0.7):
        keywords["scale"] = vector(random.normal(size=channels))
    if maker.flip(0.3):
        keywords["mask"] = maker.make(random.random(shape) < 0.6, np.dtype(bool), layout())
    if maker.flip(0.3):
        keywords["statistics"] = "global"
    return maker, (grad_output, input, mean), keywords, layout()


def add_outputs(maker, arguments, keywords, layout):
    """Wanted gradients, and arrays for some of them; whether one is in place."""
    input, mean = arguments[1], arguments[2]
    wanted = list(NAMES)
    if maker.flip(0.3):
        wanted = [name for name in NAMES if maker.flip()] or ["grad_scale"]
        keywords["wanted"] = wanted
    if maker.flip():
        return wanted
    out = [None] * 3
    for i, name in enumerate(NAMES):
        if name not in wanted or maker.flip(0.3):
            continue
        shape = input.shape if i == 0 else mean.shape
        dtype = maker.pick(TYPES) if maker.flip(0.3) else (input if i == 0 else mean).dtype.newbyteorder("=")
        out[i] = maker.empty(shape, dtype, layout if i == 0 else np.arange(mean.ndim))
    keywords["out"] = tuple(out)
    return wanted


@pytest.mark.parametrize("number", range(COUNT))
def test_within_bound(number):
    maker, arguments, keywords, layout = configure(number)
    expected = Gradient(*arguments, **keywords)
    wanted = add_outputs(maker, arguments, keywords, layout)
    before = [np.array(array) for array in arguments]
    results = bngrad.batch_norm_backward(*arguments, **keywords)
    assert all(np.array_equal(a, b, equal_nan=True) for a, b in zip(before, arguments))
    out = keywords.get("out", (None,) * 3)
    for name, result, given in zip(NAMES, results, out):
        if name not in wanted:
            assert result is None
            continue
        assert given is None or result is given
        if given is None:
            like = arguments[1] if name == "grad_input" else arguments[2]
            assert result.dtype == like.dtype.newbyteorder("=")
        expected.check(name, result)


def test_bound_is_not_idle():
    """Wrong results of every kind are noticed."""
    noticed = 0
    for number in range(40):
        _, arguments, keywords, _ = configure(number)
        expected = Gradient(*arguments, **keywords)
        if arguments[1].size < 2:
            continue
        results = bngrad.batch_norm_backward(*arguments, **keywords)
        for name, result in zip(NAMES, results):
            wrong = [-result, result * result.dtype.type(1.1), np.roll(result, 1)]
            for values in wrong:
                if np.array_equal(values, result) or np.allclose(result.astype(float), 0):
                    continue
                with pytest.raises(AssertionError):
                    expected.check(name, values)
                noticed += 1
    assert noticed > 200


def test_in_place():
    random = np.random.default_rng(SEED)
    for shape, order in (((4, 3, 5, 2), "C"), ((4, 3, 5, 2), "F"), ((30, 7), "C")):
        x = np.asarray(random.normal(size=shape), np.float32, order=order)
        dy = np.asarray(random.normal(size=shape), np.float32, order=order)
        mean, inv_std = (random.uniform(0.5, 2, size=shape[1]).astype(np.float32) for _ in range(2))
        expected = bngrad.batch_norm_backward(dy, x, mean, inv_std=inv_std)
        for which in (0, 1):
            operands = [dy.copy("K"), x.copy("K")]
            results = bngrad.batch_norm_backward(*operands, mean, inv_std=inv_std, out=(operands[which], None, None))
            assert results[0] is operands[which]
            assert all(np.array_equal(a, b) for a, b in zip(expected, results))


def test_layout_follows_input():
    random = np.random.default_rng(SEED)
    x = random.normal(size=(2, 3, 4, 5)).astype(np.float32)
    for order in ((0, 1, 2, 3), (0, 2, 3, 1), (3, 2, 1, 0), (1, 0, 2, 3)):
        laid = np.ascontiguousarray(x.transpose(order)).transpose(np.argsort(order))
        result = bngrad.batch_norm_backward(x, laid, x[0, :, 0, 0], inv_std=np.ones(3, np.float32))[0]
        assert result.strides == laid.strides


def test_sums_over_many_elements():
    x = np.full((1, 2, 3_000_000), 0.1, np.float32)
    x[:, 1] *= 3
    mean, inv_std = np.float32([0.02, -0.3]), np.float32([1.5, 0.7])
    results = bngrad.batch_norm_backward(x, x, mean, inv_std=inv_std)
    expected = Gradient(x, x, mean, inv_std=inv_std)
    for name, result in zip(NAMES, results):
        expected.check(name, result)
