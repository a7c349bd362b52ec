"""A small tape for reverse-mode differentiation of numpy float64 programs.

Every operation below is elementary (its derivative is one line), and none is
specific to batch norm: a gradient from this tape shares no formula with the
closed forms it is compared with.

All sums are correctly rounded (`math.fsum`), so results do not depend on the
order of summation or the vector width.
"""

import math
from typing import Callable, Sequence, Tuple

import numpy as np

Axes = Tuple[int, ...]


def exact_sum(array: np.ndarray, axes: Axes) -> np.ndarray:
    """Sums `array` over `axes`, each sum rounded once; the axes are dropped."""
    kept = tuple(axis for axis in range(array.ndim) if axis not in axes)
    shape = tuple(array.shape[axis] for axis in kept)
    rows = array.transpose(kept + axes).reshape(math.prod(shape), -1)
    return np.array([math.fsum(row) for row in rows.tolist()]).reshape(shape)


def sum_to(array: np.ndarray, shape: Tuple[int, ...]) -> np.ndarray:
    """Sums over the axes along which a value of `shape` was broadcast."""
    lead = array.ndim - len(shape)
    axes = tuple(range(lead)) + tuple(
        lead + axis for axis, size in enumerate(shape)
        if size == 1 and array.shape[lead + axis] != 1)
    return exact_sum(array, axes).reshape(shape) if axes else array


class Value:
    """An array, and a function that propagates its gradient to its parents."""

    def __init__(self, data, parents: Sequence["Value"] = (),
                 pull: Callable[[np.ndarray], Sequence[np.ndarray]] = None):
        self.data = np.asarray(data, dtype=np.float64)
        self.parents = tuple(parents)
        self.pull = pull  # gradient of self -> gradient of each parent
        self.grad = np.zeros_like(self.data)

    def __add__(self, other):
        other = lift(other)
        return Value(self.data + other.data, (self, other), lambda g: (g, g))

    def __sub__(self, other):
        other = lift(other)
        return Value(self.data - other.data, (self, other), lambda g: (g, -g))

    def __mul__(self, other):
        other = lift(other)
        return Value(self.data * other.data, (self, other),
                     lambda g: (g * other.data, g * self.data))

    def __truediv__(self, other):
        other = lift(other)
        result = self.data / other.data
        return Value(result, (self, other),
                     lambda g: (g / other.data, -g * result / other.data))

    def sqrt(self):
        result = np.sqrt(self.data)
        return Value(result, (self,), lambda g: (0.5 * g / result,))

    def exp(self):
        result = np.vectorize(math.exp)(self.data)
        return Value(result, (self,), lambda g: (g * result,))

    def log(self):
        result = np.vectorize(math.log)(self.data)
        return Value(result, (self,), lambda g: (g / self.data,))

    def relu(self):
        positive = self.data > 0
        return Value(np.where(positive, self.data, 0.0), (self,),
                     lambda g: (np.where(positive, g, 0.0),))

    def reshape(self, *shape: int):
        return Value(self.data.reshape(shape), (self,),
                     lambda g: (g.reshape(self.data.shape),))

    def sum(self, axes: Axes):
        """Sums over `axes` and keeps them with size 1."""
        kept = tuple(1 if axis in axes else size
                     for axis, size in enumerate(self.data.shape))
        return Value(exact_sum(self.data, axes).reshape(kept), (self,),
                     lambda g: (np.broadcast_to(g, self.data.shape),))

    def mean(self, axes: Axes):
        """Averages over `axes` and keeps them with size 1."""
        count = math.prod(self.data.shape[axis] for axis in axes)
        return self.sum(axes) / float(count)


def lift(value) -> Value:
    """Makes a constant of a number or an array."""
    return value if isinstance(value, Value) else Value(value)


def backward(loss: Value) -> None:
    """Adds d loss / d value to `grad` of every value that `loss` depends on."""
    order, seen, stack = [], set(), [(loss, False)]
    while stack:
        value, ready = stack.pop()
        if ready:
            order.append(value)
        elif id(value) not in seen:
            seen.add(id(value))
            stack.append((value, True))
            stack.extend((parent, False) for parent in value.parents)
    loss.grad = np.ones_like(loss.data)
    for value in reversed(order):
        if value.parents:
            for parent, grad in zip(value.parents, value.pull(value.grad)):
                parent.grad = parent.grad + sum_to(grad, parent.data.shape)
