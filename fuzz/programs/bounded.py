"""Numbers with error bounds: running error analysis in numpy.

A Bounded represents a tensor of a program. `value` is the result of exact
arithmetic for the stored operands, in long double; `error` bounds the distance
of a correct program's value from it. Each operation propagates the bounds of
its operands (|a + b| moves by at most the sum of both errors, a product by |a|
eb + |b| ea + ea eb, a quotient by (ea + |q| eb) / (|b| - eb), a root by ea /
sqrt(a), a sum by the sum of the errors), and `rounded` adds the error of
rounding to a type: u (|value| + error), and a smallest subnormal number. A
program that rounds less often, as fused multiply-add does, is within the same
bound. The order of summation of n terms changes the sum by at most (n + 1) u
times the sum of the absolute terms, to first order.

Values that are not finite: `error` is 0 if every correct program has this NaN or
infinity, infinite if the value is undetermined (the divisor's bound includes
0, a condition's difference is within its error, an overflow may or may not
have happened). Any value is accepted for an undetermined one.

All operations have a factor of 1 + 2^-6 for terms of higher order, and for the
arithmetic here.
"""

from typing import Callable, Tuple

import numpy as np

from floats import FLOATS, Real

SLACK = Real(1) + Real(2) ** -6
INFINITY = Real(np.inf)


def times(a, b):
    """The product; 0 times infinity is 0."""
    return np.where((a == 0) | (b == 0), Real(0), a * b)


class Bounded:
    """A tensor of values and the bounds of their errors."""

    def __init__(self, value, error=None):
        self.value = np.asarray(value, dtype=Real)
        if error is None:
            error = np.zeros_like(self.value)
        error = np.broadcast_to(np.asarray(error, dtype=Real), self.value.shape)
        error = np.where(np.isnan(error), INFINITY, error)
        # A value that is certain to be NaN or infinite has no error.
        self.error = np.where(np.isfinite(self.value) | ~np.isfinite(error), error, Real(0))

    @property
    def shape(self) -> Tuple[int, ...]:
        return self.value.shape

    def moved(self, move: Callable[[np.ndarray], np.ndarray]) -> "Bounded":
        """Applies a function that only moves elements."""
        return Bounded(move(self.value), move(self.error))

    def is_known(self):
        return np.isfinite(self.error)

    def is_nonzero(self):
        return self.is_known() & (np.isnan(self.value) | (np.abs(self.value) > self.error))

    def magnitude(self) -> np.ndarray:
        return np.abs(self.value) + self.error

    def rounded(self, element: str) -> "Bounded":
        """The value rounded once to a type."""
        if element not in FLOATS:
            return self
        kind = FLOATS[element]
        error = SLACK * (self.error + kind.roundoff * self.magnitude()) + kind.smallest
        error = np.where(np.isfinite(self.value), error, self.error)
        return Bounded(self.value, error).overflowed(element)

    def overflowed(self, element: str) -> "Bounded":
        """Makes values outside the range of a type infinite or undetermined."""
        kind = FLOATS[element]
        limit = kind.largest * (1 + kind.roundoff)
        is_finite = np.isfinite(self.value)
        is_over = is_finite & (np.abs(self.value) - self.error > limit)
        may_be = is_finite & ~is_over & (self.magnitude() >= kind.largest)
        value = np.where(is_over, np.copysign(INFINITY, self.value), self.value)
        return Bounded(value, np.where(is_over, Real(0), np.where(may_be, INFINITY, self.error)))

    def __add__(self, other: "Bounded") -> "Bounded":
        return Bounded(self.value + other.value, self.error + other.error)

    def __neg__(self) -> "Bounded":
        return Bounded(-self.value, self.error)

    def __sub__(self, other: "Bounded") -> "Bounded":
        return self + -other

    def __abs__(self) -> "Bounded":
        return Bounded(np.abs(self.value), self.error)

    def __mul__(self, other: "Bounded") -> "Bounded":
        value = self.value * other.value
        error = (times(np.abs(self.value), other.error) + times(np.abs(other.value), self.error)
                 + times(self.error, other.error)) * SLACK
        special = ~(np.isfinite(self.value) & np.isfinite(other.value))
        certain = (self.is_known() & other.is_known()
                   & (np.isnan(self.value) | np.isnan(other.value) | (self.is_sure() & other.is_sure())))
        return Bounded(value, np.where(special, np.where(certain, Real(0), INFINITY), error))

    def is_sure(self):
        """Whether the sign is known, or that the value is 0."""
        return self.is_known() & ((self.error == 0) | (np.abs(self.value) > self.error))

    def __truediv__(self, other: "Bounded") -> "Bounded":
        value = self.value / other.value
        rest = np.abs(other.value) - other.error
        error = (self.error + times(np.abs(value), other.error)) / rest * SLACK
        error = np.where((rest > 0) | (other.error == 0), error, INFINITY)
        special = ~np.isfinite(value) | ~np.isfinite(self.value) | ~np.isfinite(other.value)
        certain = (self.is_known() & other.is_known()
                   & (np.isnan(self.value) | np.isnan(other.value) | (self.is_sure() & other.is_sure())))
        return Bounded(value, np.where(special, np.where(certain, Real(0), INFINITY), error))

    def sqrt(self) -> "Bounded":
        value = np.sqrt(self.value)
        error = np.where(self.error == 0, Real(0), self.error / np.abs(value) * SLACK)
        is_negative = self.value + self.error < 0
        undecided = (self.value - self.error < 0) & ~is_negative & (self.error > 0)
        return Bounded(value, np.where(undecided | ~self.is_known(), INFINITY, error))

    def sum(self, axes: Tuple[int, ...]) -> "Bounded":
        if not axes:
            return self
        count = int(np.prod([self.shape[axis] for axis in axes]))
        arithmetic = count * Real(2) ** -63 * np.abs(self.value).sum(axis=axes)
        value = self.value.sum(axis=axes)
        error = self.error.sum(axis=axes) * SLACK
        return Bounded(value, error + np.where(np.isfinite(arithmetic), arithmetic, Real(0)))

    def through(self, function: Callable, slope: Callable) -> "Bounded":
        """Applies a monotonic function whose slope within the error is at most `slope(|low|, |high|)`."""
        value = function(self.value)
        low, high = self.value - self.error, self.value + self.error
        error = np.where(self.error == 0, Real(0), times(slope(low, high), self.error)) * SLACK
        return Bounded(value, np.where(self.is_known(), error, INFINITY))


def compare(predicate: str, a: Bounded, b: Bounded) -> Bounded:
    """A condition: 1 or 0; undetermined if it depends on the error."""
    ordered = ~(np.isnan(a.value) | np.isnan(b.value))
    relation = {"gt": np.greater, "lt": np.less, "ge": np.greater_equal, "le": np.less_equal,
                "eq": np.equal, "ne": np.not_equal}[predicate[1:]](a.value, b.value)
    result = relation & ordered if predicate[0] == "o" else relation | ~ordered
    error = a.error + b.error
    with np.errstate(invalid="ignore"):
        certain = (error == 0) | ~ordered | (np.abs(a.value - b.value) > error)
    certain &= a.is_known() & b.is_known()
    return Bounded(result, np.where(certain, Real(0), INFINITY))


def select(condition: Bounded, a: Bounded, b: Bounded) -> Bounded:
    """An undetermined condition may select either value."""
    chosen = condition.value != 0
    error = np.where(chosen, a.error, b.error)
    with np.errstate(invalid="ignore"):
        distance = np.where(a.value == b.value, 0, np.abs(a.value - b.value))
    either = np.maximum(a.error, b.error) + distance
    return Bounded(np.where(chosen, a.value, b.value), np.where(condition.is_known(), error, either))


def extremum(function: Callable, a: Bounded, b: Bounded) -> Bounded:
    """np.maximum or np.minimum, which propagate NaN."""
    error = np.maximum(a.error, b.error)
    value = function(a.value, b.value)
    # A NaN and an undetermined value give NaN.
    certain_nan = (np.isnan(a.value) & a.is_known()) | (np.isnan(b.value) & b.is_known())
    return Bounded(value, np.where(certain_nan, Real(0), error))


def accept(result: np.ndarray, expected: Bounded) -> np.ndarray:
    """For each element, whether a correct program may return this result."""
    with np.errstate(invalid="ignore"):
        near = np.abs(result - expected.value) <= expected.error
    same = (result == expected.value) | (np.isnan(result) & np.isnan(expected.value))
    return ~expected.is_known() | np.where(np.isfinite(expected.value), near, same)
