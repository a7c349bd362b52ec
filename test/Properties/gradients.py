"""The gradients in long double, and the bounds of computed results.

Results are not compared with these gradients, which only determine the
*tolerances* of the properties: a result y of a program differs from its exact
value E by at most

  B = u_out*|E| + 4*u_acc*(4 + log2(M + 1))*A + smallest subnormal of y's type

where A is the formula of E with absolute values of all terms. A property
states that a sum of results with known coefficients k_j has a known value, so
the computed sum may be off by at most sum |k_j|*B_j.
"""

from dataclasses import dataclass, replace
from functools import cached_property
from typing import List, Optional, Tuple

import numpy as np

from floats import SMALLEST, real, unit_roundoff

# Error of the long doubles of this script, relative to absolute values: 2^-64
# per operation, and no summation tree is higher than 2^5.
LOST = real(2) ** -56


@dataclass
class Bounded:
    """The exact value of a result and its A."""
    exact: np.ndarray
    terms: np.ndarray

    def bound(self, kind: str, accumulator: str, count: int) -> np.ndarray:
        accumulated = 4 * unit_roundoff(accumulator) * (
            4 + np.log2(real(count) + 1))
        return (unit_roundoff(kind) * abs(self.exact)
                + (accumulated + LOST) * self.terms
                + real(2) ** SMALLEST[kind])


@dataclass
class Problem:
    """Operands as long doubles; `inv_std` is r itself.

    The per-channel ones have the sizes of `input` at `features`.
    """
    grad_output: np.ndarray  # 0 where masked out
    input: np.ndarray
    scale: Optional[np.ndarray]
    mean: np.ndarray
    inv_std: np.ndarray
    features: Tuple[int, ...]
    is_batch: bool

    def with_(self, **changes) -> "Problem":
        return replace(self, **changes)

    @cached_property
    def reduced(self) -> Tuple[int, ...]:
        return tuple(dim for dim in range(self.input.ndim)
                     if dim not in self.features)

    @cached_property
    def count(self) -> int:
        return int(np.prod([self.input.shape[dim] for dim in self.reduced],
                           dtype=int))

    def keep(self, values: np.ndarray) -> np.ndarray:
        """A per-channel array that broadcasts against the input."""
        return values.reshape([size if dim in self.features else 1
                               for dim, size in enumerate(self.input.shape)])

    def total(self, terms: np.ndarray) -> np.ndarray:
        return terms.sum(axis=self.reduced)

    @cached_property
    def centered(self) -> np.ndarray:
        return self.input - self.keep(self.mean)

    @cached_property
    def factor(self) -> np.ndarray:
        return self.inv_std if self.scale is None else (
            self.scale * self.inv_std)

    @cached_property
    def sums(self) -> Tuple[Bounded, Bounded]:
        """sum_dy and sum_dy_xmu."""
        product = self.grad_output * self.centered
        return (Bounded(self.total(self.grad_output),
                        self.total(abs(self.grad_output))),
                Bounded(self.total(product), self.total(abs(product))))

    def from_sums(self, sum_dy, sum_dy_xmu, count) -> np.ndarray:
        """grad_input for batch statistics."""
        count = max(count, 1)
        slope = self.inv_std**2 * sum_dy_xmu / count
        return self.keep(self.factor) * (
            self.grad_output - self.keep(sum_dy / count)
            - self.centered * self.keep(slope))

    def terms_from_sums(self, terms_dy, terms_dy_xmu, count) -> np.ndarray:
        """A of grad_input, computed from the A of the sums."""
        return (abs(self.keep(self.factor) * self.grad_output)
                + self.error_from_sums(terms_dy, terms_dy_xmu, count))

    def error_from_sums(self, error_dy, error_dy_xmu, count) -> np.ndarray:
        """The largest effect of errors of the sums on grad_input."""
        count = max(count, 1)
        slope = self.inv_std**2 * error_dy_xmu / count
        return abs(self.keep(self.factor)) * (
            self.keep(error_dy / count)
            + abs(self.centered) * self.keep(slope))

    @cached_property
    def results(self) -> List[Bounded]:
        """grad_input, grad_scale, grad_offset."""
        dy, dy_xmu = self.sums
        if self.is_batch:
            grad_input = Bounded(
                self.from_sums(dy.exact, dy_xmu.exact, self.count),
                self.terms_from_sums(dy.terms, dy_xmu.terms, self.count))
        else:
            exact = self.keep(self.factor) * self.grad_output
            grad_input = Bounded(exact, abs(exact))
        scale = Bounded(dy_xmu.exact * self.inv_std,
                        dy_xmu.terms * abs(self.inv_std))
        return [grad_input, scale, dy]

    def bounds(self, kinds: List[str], accumulator: str) -> List[np.ndarray]:
        """B of each result; `kinds` are their element types."""
        return [result.bound(kind, accumulator, self.count)
                for result, kind in zip(self.results, kinds)]

    @cached_property
    def statistics(self) -> Tuple[np.ndarray, np.ndarray]:
        """The true mean and biased variance of the input."""
        mean = self.total(self.input) / max(self.count, 1)
        square = (self.input - self.keep(mean)) ** 2
        return mean, self.total(square) / max(self.count, 1)
