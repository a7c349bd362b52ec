"""The gradient in extended precision, its bounds (docs/numerics.md), and random
configurations for the tests of bngrad.jax."""

import numpy as np
import ml_dtypes

UNIT_ROUNDOFF = {"float16": 2.0**-11, "bfloat16": 2.0**-8, "float32": 2.0**-24, "float64": 2.0**-53}
TYPES = tuple(UNIT_ROUNDOFF)
# More digits than f64 has, to judge f64.
EXACT = np.longdouble


def dtype_of(name):
    return np.dtype(getattr(ml_dtypes, name, name))


class Configuration:
    """Operands of one call, by name, and its options."""

    def __init__(self, generator, shape=None, feature_dims=None, type=None, parameter_type=None):
        choose = generator.choice
        rank = generator.integers(1, 6)
        if shape is None:
            shape = tuple(int(size) for size in choose([0, 1, 2, 3, 5, 8, 17, 33], rank,
                                                       p=[.03, .12, .15, .15, .15, .15, .15, .1]))
        if feature_dims is None:
            count = generator.integers(1, len(shape) + 1)
            feature_dims = tuple(sorted(int(dim) for dim in choose(len(shape), count, replace=False)))
        self.shape, self.feature_dims = shape, feature_dims
        self.reduced = tuple(dim for dim in range(len(shape)) if dim not in feature_dims)
        self.type = type or str(choose(TYPES))
        self.parameter_type = parameter_type or str(choose(TYPES))
        self.statistics = str(choose(["batch", "global"]))
        self.statistic = str(choose(["variance", "inv_std"]))
        self.epsilon = float(choose([0, 1e-5, 0.1])) if self.statistic == "variance" else 0.0
        self.channels = tuple(shape[dim] for dim in feature_dims)
        self.count = int(np.prod([shape[dim] for dim in self.reduced], dtype=int))
        self._fill(generator)

    def _fill(self, generator):
        # Channels differ in all parameters; nothing is symmetric.
        number = np.arange(int(np.prod(self.channels, dtype=int))).reshape(self.channels) % 29
        data, parameter = dtype_of(self.type), dtype_of(self.parameter_type)
        beside = np.expand_dims(number, self.reduced)
        normal = generator.standard_normal
        self.operands = {
            "grad_output": (normal(self.shape) + 0.3 + 0.02 * beside).astype(data),
            "input": (normal(self.shape) * (1 + 0.05 * beside) + 0.1 * beside - 0.7).astype(data),
            "mean": (0.1 * number - 0.6 + 0.1 * normal(self.channels)).astype(parameter),
            self.statistic: (0.4 + 0.07 * number).astype(parameter),
        }
        if generator.random() < 0.7:
            self.operands["scale"] = (0.5 + 0.03 * number).astype(parameter)
        if generator.random() < 0.4:
            self.operands["mask"] = generator.random(self.shape) < 0.7

    def keywords(self, *names):
        """Keyword arguments: operands by name, and options."""
        found = {name: self.operands[name] for name in names if name in self.operands}
        return {**found, "feature_dims": self.feature_dims}

    @property
    def accumulator(self):
        return "float64" if "float64" in (self.type, self.parameter_type) else "float32"

    def exact(self, name):
        return self.operands[name].astype(EXACT) if name in self.operands else None

    def __repr__(self):
        return (f"{self.shape} {self.feature_dims} {self.type} {self.parameter_type} {self.statistics} "
                f"{self.statistic} {self.epsilon} {sorted(self.operands)}")


class Reference:
    """Exact results of a configuration, and the bounds of their errors."""

    def __init__(self, configuration, sums=None, count=None):
        self.configuration = configuration
        exact = configuration.exact
        self.grad_output = exact("grad_output")
        if "mask" in configuration.operands:
            self.grad_output = np.where(configuration.operands["mask"], self.grad_output, 0)
        self.centered = exact("input") - self._beside(exact("mean"))
        inv_std = exact("inv_std")
        if inv_std is None:
            # The epsilon of the accumulator type.
            epsilon = EXACT(dtype_of(configuration.accumulator).type(configuration.epsilon))
            inv_std = 1 / np.sqrt(exact("variance") + epsilon)
        self.inv_std = inv_std
        scale = exact("scale")
        self.gain = inv_std if scale is None else scale * inv_std
        self.total, self.product = self._sum(self.grad_output), self._sum(self.grad_output * self.centered)
        self.terms = self._sum(abs(self.grad_output)), self._sum(abs(self.grad_output * self.centered))
        self.count = count or configuration.count
        self.sums = None if sums is None else sums.astype(EXACT)

    def _sum(self, value):
        return value.sum(self.configuration.reduced)

    def _beside(self, vector):
        return np.expand_dims(vector, self.configuration.reduced)

    def _grad_input(self, is_batch, total, product, total_terms, product_terms):
        """The exact value, and A."""
        value, terms = self.grad_output, abs(self.grad_output)
        if is_batch:
            count, inv_std = max(self.count, 1), self.inv_std
            value = value - self._beside(total / count) - self.centered * self._beside(
                product / count * inv_std * inv_std)
            terms = terms + self._beside(total_terms / count) + abs(self.centered) * self._beside(
                product_terms / count * inv_std * inv_std)
        return value * self._beside(self.gain), terms * self._beside(abs(self.gain))

    def backward(self):
        """(exact, A, type) of each result."""
        configuration = self.configuration
        grad_input = self._grad_input(configuration.statistics == "batch", self.total, self.product, *self.terms)
        parameter = configuration.parameter_type
        return ((*grad_input, configuration.type),
                (self.product * self.inv_std, self.terms[1] * self.inv_std, parameter),
                (self.total, self.terms[0], parameter))

    @property
    def sums_type(self):
        return "float64" if self.configuration.type == "float64" else "float32"

    def reduce(self):
        return np.stack([self.total, self.product]), np.stack(self.terms), self.sums_type

    def elemt(self):
        total, product = self.sums
        return (*self._grad_input(True, total, product, abs(total), abs(product)), self.configuration.type)


def check(name, result, expected, configuration):
    """Fails if a result differs from the exact value by more than its bound."""
    exact, terms, type = expected
    result = np.asarray(result)
    assert result.dtype == dtype_of(type), f"{name}: {result.dtype} of {configuration}"
    assert result.shape == exact.shape, f"{name}: {result.shape} of {configuration}"
    log = 4 + np.log2(configuration.count + 1)
    bound = (UNIT_ROUNDOFF[type] * abs(exact) + 4 * UNIT_ROUNDOFF[configuration.accumulator] * log * terms
             + float(ml_dtypes.finfo(dtype_of(type)).smallest_subnormal))
    excess = abs(result.astype(EXACT) - exact) - bound
    assert not np.isnan(excess).any() and (excess.size == 0 or excess.max() <= 0), (
        f"{name}: {float(np.nanmax(abs(result.astype(EXACT) - exact) / bound))} of its bound, {configuration}")
