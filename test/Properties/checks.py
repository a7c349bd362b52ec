"""The properties. Each yields differences that are 0 except for rounding, and
tolerances derived from the bounds of their results (gradients.py)."""

from typing import Callable, Dict, Iterator, List, NamedTuple

import numpy as np

from configuration import RESULTS
from floats import real, unit_roundoff
from gradients import LOST, Bounded, Problem
from runs import Runs


class Difference(NamedTuple):
    what: str
    difference: np.ndarray
    tolerance: np.ndarray

    def failure(self) -> str:
        """Empty if the difference is within its tolerance."""
        good = abs(self.difference) <= self.tolerance
        if np.all(good):
            return ""
        where = np.unravel_index(np.argmin(good), np.shape(good))
        return (f"{self.what}{list(map(int, where))} is off by "
                f"{self.difference[where]:.3g}, tolerance "
                f"{np.broadcast_to(self.tolerance, good.shape)[where]:.3g}")


class Outcome:
    """The programs, their results, and the bounds of the results."""

    def __init__(self, runs: Runs):
        c = runs.configuration
        self.c, self.runs, self.results = c, runs, dict(runs.results)
        self.problem = c.problem()
        self.bounds = self.bounds_of(self.problem)

    def bounds_of(self, problem: Problem) -> List[np.ndarray]:
        return problem.bounds(self.c.kinds, self.c.accumulator)

    def replaced(self, name: str, index: int, array) -> "Outcome":
        """A copy with one result replaced."""
        other = object.__new__(Outcome)
        other.__dict__.update(self.__dict__)
        results = list(self.results[name])
        results[index] = array
        other.results = {**self.results, name: results}
        return other


def differ(o: Outcome, name: str, bounds: List[np.ndarray]):
    """Results that must equal those of the gradient itself."""
    for what, left, right, bound, other in zip(
            RESULTS, o.results[name], o.results["gradient"], bounds, o.bounds):
        yield Difference(what, left - right, bound + other)


def moments(o: Outcome) -> Iterator[Difference]:
    """(a) With the true statistics, grad_input sums to 0, and with
    input - mean to scale*r^3*epsilon*sum_dy_xmu.

    Summing the formula over a channel, for any mean m and r,
      sum grad_input     = scale*r*P*r^2*(m - true mean)
      sum grad_input * c = scale*r*(P*(1 - r^2*mean square of c)
                                    - D*(true mean - m)).
    The given statistics are the true ones except for their rounding, which is
    the only cause of differences from these equations.
    """
    p = o.problem
    if not o.c.is_true or p.count == 0:
        return
    (dy, dy_xmu), result, bound = p.sums, o.results["gradient"][0], o.bounds[0]
    shift = p.statistics[0] - p.mean
    square = p.total(p.centered ** 2) / p.count
    claimed = p.factor * p.inv_std**2 * real(o.c.epsilon) * dy_xmu.exact
    given = p.factor * (dy_xmu.exact * (1 - p.inv_std**2 * square)
                        - dy.exact * shift)
    terms = p.results[0].terms
    yield Difference(
        "sum of grad_input", p.total(result),
        p.total(bound + LOST * terms)
        + abs(p.factor * p.inv_std**2 * dy_xmu.exact * shift))
    yield Difference(
        "sum of grad_input * (input - mean)",
        p.total(result * p.centered) - claimed,
        p.total((bound + LOST * terms) * abs(p.centered))
        + abs(given - claimed))


def linearity(o: Outcome) -> Iterator[Difference]:
    """(b) The gradient by a*dy1 + b*dy2, which is exact."""
    c = o.c
    first, second = map(real, c.factors)
    others = [o.bounds_of(c.problem(dy))
              for dy in (c.other_dy, c.combined_dy)]
    for i, what in enumerate(RESULTS):
        one, two, both = (o.results[name][i] for name in
                          ("gradient", "other", "combined"))
        yield Difference(what, both - (first * one + second * two),
                         others[1][i] + abs(first) * o.bounds[i]
                         + abs(second) * others[0][i])


def permutation(o: Outcome) -> Iterator[Difference]:
    """(c) Another order of the dims."""
    yield from differ(o, "permuted", o.bounds)


def after_sums(o: Outcome, errors: List[np.ndarray]):
    """The errors of results computed from sums with these `errors`: their
    effect on the formulas, and that effect plus rounding.

    The bound of such results has |E| and A of the formulas with those sums;
    both exceed the exact ones by at most the effect of the errors.
    """
    c, p = o.c, o.problem
    effects = [p.error_from_sums(*errors, p.count) if p.is_batch else real(0),
               errors[1] * p.inv_std, errors[0]]
    return effects, [
        Bounded(abs(result.exact) + effect, result.terms + effect).bound(
            kind, c.accumulator, p.count) + effect
        for result, effect, kind in zip(p.results, effects, c.kinds)]


def split(o: Outcome) -> Iterator[Difference]:
    """(d) --bngrad-split: sums of the accumulator type and their results."""
    c, p = o.c, o.problem
    errors = [sum_.bound(c.accumulator, c.accumulator, p.count)
              for sum_ in p.sums]
    yield from differ(o, "split", after_sums(o, errors)[1])


def shards(o: Outcome) -> Iterator[Difference]:
    """(d) The sums of each part, added and rounded, and dependent results."""
    if "sums" not in o.results:
        return
    c, p, result = o.c, o.problem, o.results["gradient"]
    total, errors = sum(o.results["sums"]), [real(0), real(0)]
    for part in o.runs.parts:
        dy = part["grad_output"].values
        if c.has_mask:
            dy = np.where(part["mask"].values, dy, real(0))
        problem = p.with_(grad_output=dy, input=part["input"].values)
        for row, sum_ in enumerate(problem.sums):
            errors[row] = errors[row] + sum_.bound(
                c.accumulator, c.accumulator, problem.count)
    effects, _ = after_sums(o, errors)
    yield Difference(RESULTS[1], total[1] * p.inv_std - result[1],
                     effects[1] + o.bounds[1])
    yield Difference(RESULTS[2], total[0] - result[2],
                     effects[2] + o.bounds[2])
    yield Difference("count", np.asarray(sum(o.results["counts"]) - p.count),
                     np.asarray(0))
    rounded = [error + unit_roundoff(c.accumulator) * abs(sum_)
               for error, sum_ in zip(errors, total)]
    yield Difference(RESULTS[0], o.results["parts"][0] - result[0],
                     after_sums(o, rounded)[1][0] + o.bounds[0])


def statistic(o: Outcome) -> Iterator[Difference]:
    """(e) inv_std instead of variance and epsilon, or the other way around.

    One is computed from the other and rounded, so r differs by a factor of 1 +
    t; no term of a result has more than r^3.
    """
    p = o.problem
    other = p.with_(inv_std=o.c.true_inv_std(not o.c.has_inv_std))
    off = abs(other.inv_std / p.inv_std - 1)
    changes = [p.keep((1 + off)**3 - 1) * p.results[0].terms,
               off * p.results[1].terms, real(0)]
    bounds = o.bounds_of(other)
    yield from differ(o, "statistic", [
        bound + change for bound, change in zip(bounds, changes)])


def doubled(o: Outcome) -> Iterator[Difference]:
    """(f) Every element twice along a reduced dim."""
    if "doubled" not in o.results:
        return
    p, axis = o.problem, o.runs.axis
    twice = o.bounds_of(p.with_(
        grad_output=np.concatenate([p.grad_output] * 2, axis),
        input=np.concatenate([p.input] * 2, axis)))
    for i, what in enumerate(RESULTS):
        times = real(2 if i else 1)
        once, bound = o.results["gradient"][i], o.bounds[i]
        if i == 0:
            once, bound = (np.concatenate([values] * 2, axis)
                           for values in (once, bound))
        yield Difference(what, o.results["doubled"][i] - times * once,
                         twice[i] + times * bound)


def derivative(o: Outcome) -> Iterator[Difference]:
    """(g) For each channel, the directional derivative from the gradients,
    along random directions, is the derivative of sum(grad_output * forward) by
    a complex step: no difference is formed, and it is exact to rounding.

    For batch statistics the forward pass computes its own. The given ones are
    rounded, so the two gradients differ by the difference of the formulas.
    """
    c, p = o.c, o.problem
    if c.is_batch and not c.is_true or p.count == 0:
        return
    random = np.random.RandomState(c.seed)
    along = [random.standard_normal(shape) for shape in c.result_shapes()]
    step = real(2) ** -200
    x = p.input + 1j * step * along[0]
    scale = (1 if p.scale is None else p.scale) + 1j * step * along[1]
    offset = 1j * step * along[2]
    true = p
    if c.is_batch:
        mean = p.total(x) / p.count
        variance = p.total((x - p.keep(mean)) ** 2) / p.count
        inv_std = 1 / np.sqrt(variance + real(c.epsilon))
        true = p.with_(mean=mean.real, inv_std=inv_std.real)
    else:
        mean, inv_std = p.mean, p.inv_std
    output = p.keep(scale) * (x - p.keep(mean)) * p.keep(inv_std) + (
        p.keep(offset))
    expected = p.total((p.grad_output * output).imag) / step

    slope, tolerance = 0, 0
    for i, direction in enumerate(along):
        bound = o.bounds[i] + abs(p.results[i].exact - true.results[i].exact)
        bound = bound + 4 * LOST * p.results[i].terms
        terms = [o.results["gradient"][i] * direction, bound * abs(direction)]
        if i == 0:
            terms = [p.total(term) for term in terms]
        slope, tolerance = slope + terms[0], tolerance + terms[1]
    yield Difference("derivative", slope - expected, tolerance)


PROPERTIES: Dict[str, Callable[[Outcome], Iterator[Difference]]] = {
    "moments": moments, "linearity": linearity, "permutation": permutation,
    "shards": shards, "split": split, "statistic": statistic,
    "doubled": doubled, "derivative": derivative}


def failures(o: Outcome, name: str) -> List[str]:
    """Descriptions of the failures of one property."""
    texts = [difference.failure() for difference in PROPERTIES[name](o)]
    return [f"{name}: {text}" for text in texts if text]
