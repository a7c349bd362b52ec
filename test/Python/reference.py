"""Gradients in numpy's long double, and the bound of docs/numerics.md.

Written from the formulas; shares no code with BNGrad.
"""

import ml_dtypes
import numpy as np

TYPES = [np.dtype(t) for t in (np.float16, ml_dtypes.bfloat16, np.float32, np.float64)]
PRECISION = dict(zip(TYPES, (11, 8, 24, 53)))  # bits, including the leading one
SMALLEST = dict(zip(TYPES, (-24, -133, -149, -1074)))  # exponents of subnormals
NAMES = ("grad_input", "grad_scale", "grad_offset")
real = np.longdouble


def widen(values):
    """To long double; numpy cannot convert bfloat16 to it at once."""
    values = np.asarray(values)
    return (values if values.dtype == real else values.astype(np.float64)).astype(real)


class Gradient:
    """The gradients of one call, and for each result the sum of the absolute values of its terms.

    The arguments are those of bngrad.batch_norm_backward, as numpy arrays.
    """

    def __init__(self, grad_output, input, mean, *, scale=None, variance=None, inv_std=None, epsilon=0.0,
                 mask=None, feature_dims=(1,), statistics="batch"):
        rank = input.ndim
        self.features = [dim % rank for dim in feature_dims]
        self.reduced = tuple(dim for dim in range(rank) if dim not in self.features)
        self.count = int(np.prod([input.shape[dim] for dim in self.reduced], dtype=np.int64))
        given = [grad_output, input, mean, *(v for v in (scale, variance, inv_std) if v is not None)]
        self.accumulator = np.dtype(np.float64 if any(v.dtype.itemsize == 8 for v in given) else np.float32)
        self.input_shape = input.shape
        dy, x = widen(grad_output), widen(input)
        if mask is not None:
            dy = np.where(mask, dy, 0)
        r = widen(inv_std) if inv_std is not None else 1 / np.sqrt(widen(variance) + real(epsilon))
        gain = r if scale is None else widen(scale) * r
        centred = x - self.spread(widen(mean))
        self.sum_dy = dy.sum(self.reduced)
        self.sum_dy_xmu = (dy * centred).sum(self.reduced)
        terms = np.abs(dy).sum(self.reduced), (np.abs(dy) * np.abs(centred)).sum(self.reduced)
        self.sums_terms = np.stack(terms)
        self.grad_offset, self.grad_scale = self.sum_dy, self.sum_dy_xmu * r
        self.grad_offset_terms, self.grad_scale_terms = terms[0], terms[1] * r
        count = max(self.count, 1)
        if statistics == "batch":
            slope = self.sum_dy_xmu / count * r * r
            self.grad_input = self.spread(gain) * (dy - self.spread(self.sum_dy / count) - centred * self.spread(slope))
            self.grad_input_terms = np.abs(self.spread(gain)) * (
                np.abs(dy) + self.spread(terms[0] / count) + np.abs(centred) * self.spread(terms[1] / count * r * r))
        else:
            self.grad_input = self.spread(gain) * dy
            self.grad_input_terms = np.abs(self.grad_input)

    def spread(self, vector):
        """A value per channel, with the rank of input."""
        shape = [size if dim in self.features else 1 for dim, size in enumerate(self.input_shape)]
        return vector.reshape(shape)

    def bound(self, name, dtype):
        """How far an element of the result may be from the exact value."""
        out, acc = real(2) ** -PRECISION[dtype], real(2) ** -PRECISION[self.accumulator]
        return (out * np.abs(getattr(self, name)) + real(2) ** SMALLEST[dtype]
                + 4 * acc * (4 + np.log2(self.count + 1)) * getattr(self, name + "_terms"))

    def check(self, name, actual):
        """Asserts that a result is within the bound."""
        exact = getattr(self, name)
        assert actual.shape == exact.shape, (name, actual.shape, exact.shape)
        error = np.abs(widen(actual) - exact)
        assert (error <= self.bound(name, actual.dtype.newbyteorder("="))).all(), (name, actual.dtype, error.max())
