"""Checks the formulas of docs/mathematics.md and docs/numerics.md.

Usage: mathematics.py DOCUMENT.md... [--no-self-test]

Runs the ```python blocks of the documents and compares their functions with
derivatives of the forward pass by complex steps (exact to rounding: no
difference is formed), for inputs of rank 1 to 5 with one or more feature dims.
No two channels have the same scale, mean or variance. The self-test changes
one operator of the blocks at a time, and each change must fail a check.

Prints one line per check; exit status 1 if one failed or a change was not
noticed.
"""

import argparse
import ast
import copy
import math
import re
import sys
from pathlib import Path
from types import SimpleNamespace
from typing import Callable, Iterator, List, NamedTuple, Tuple

import numpy as np

EPSILON = 0.01  # large enough to make its place in a formula matter
TOLERANCE = 1e-11
CASES = [  # shape, feature_dims
    ((3, 4, 2, 3), (1,)), ((7, 3), (1,)), ((5,), (0,)), ((3, 7), (0,)),
    ((4, 3), (0, 1)), ((4, 3, 5), (1,)), ((4, 3, 5), (2,)),
    ((3, 4, 2), (1, 2)), ((5, 2, 3), (0, 2)), ((1, 3, 1), (1,)),
    ((4, 1, 3), (1,)), ((3, 2, 3, 4), (3,)), ((4, 2, 3, 2), (1, 2, 3)),
    ((2, 3, 2, 3, 2), (1,)), ((2, 3, 2, 2, 3), (1, 4)),
]


class Check(NamedTuple):
    formula: str
    variant: str
    error: float


def complex_step(function: Callable[[np.ndarray], complex],
                 at: np.ndarray) -> np.ndarray:
    """The gradient of `function` at `at`, in its shape."""
    step, gradient = 1e-30, np.zeros(at.shape)
    for index in np.ndindex(at.shape):
        moved = at.astype(complex)
        moved[index] += 1j * step
        gradient[index] = function(moved).imag / step
    return gradient


class Rounded:
    """The number of roundings of each term, by name.

    All terms but the sums and the direct term of grad_input are initially
    exact.
    """

    def __init__(self, **terms: float):
        self.terms = terms

    def __add__(self, other: "Rounded") -> "Rounded":
        sums = dict(self.terms)
        for name, count in other.terms.items():
            sums[name] = max(sums.get(name, 0), count)
        return Rounded(**{name: count + 1 for name, count in sums.items()})

    def __mul__(self, other: "Rounded") -> "Rounded":
        return Rounded(**{
            (right if left == "exact" else left):
                self.terms[left] + other.terms[right] + 1
            for left in self.terms for right in other.terms})

    def __rtruediv__(self, one: float) -> "Rounded":
        return self * Rounded(exact=0)

    def sqrt(self) -> "Rounded":
        return Rounded(exact=self.terms["exact"] / 2 + 1)

    __sub__, __truediv__ = __add__, __mul__


class Case:
    """Data of one shape, and the numerical gradients that belong to it.

    Arrays of the shape of the input: `input`, `grad_output`, `mask`. Arrays of
    the sizes at `feature_dims`: all others. `given_mean` and `given_variance`
    are not those of the input.
    """

    def __init__(self, shape: Tuple[int, ...], feature_dims: Tuple[int, ...]):
        self.shape, self.feature_dims = shape, feature_dims
        self.label = f"{'x'.join(map(str, shape))} feature_dims {feature_dims}"
        self.axes = tuple(set(range(len(shape))) - set(feature_dims))
        self.params = tuple(shape[dim] for dim in feature_dims)
        self.kept = tuple(size if dim in feature_dims else 1
                          for dim, size in enumerate(shape))
        random = np.random.RandomState(len(shape) + math.prod(shape))
        rank = np.arange(math.prod(self.params)).reshape(self.params)
        self.count = math.prod(shape) // max(rank.size, 1)
        spread = self.keep(0.6 + 0.2 * rank)
        self.input = self.keep(1.5 - 0.4 * rank) + spread * random.uniform(
            -1, 1, shape)
        self.grad_output = random.uniform(-1, 1, shape) + self.keep(
            0.3 + 0.1 * rank)
        self.scale = (0.7 + 0.3 * rank) * (-1.0) ** rank
        self.offset = 0.1 - 0.05 * rank
        self.mean = self.input.mean(self.axes)
        self.variance = ((self.input - self.keep(self.mean))**2).mean(self.axes)
        self.given_mean = self.mean + 0.2 + 0.1 * rank
        self.given_variance = 0.5 + 0.15 * rank
        self.differentiate()

    def keep(self, values: np.ndarray) -> np.ndarray:
        """A per-channel array that broadcasts against the input."""
        return values.reshape(self.kept)

    def channels(self) -> Iterator[Tuple[tuple, tuple]]:
        """The index of each channel in per-channel arrays and in others."""
        for channel in np.ndindex(self.params):
            yield channel, tuple(
                channel[self.feature_dims.index(dim)]
                if dim in self.feature_dims else slice(None)
                for dim in range(len(self.shape)))

    def output(self, x, scale, offset, mean, variance) -> np.ndarray:
        normalized = (x - self.keep(mean)) / np.sqrt(
            self.keep(variance) + EPSILON)
        return normalized * self.keep(scale) + self.keep(offset)

    def batch_output(self, x: np.ndarray, scale: np.ndarray) -> np.ndarray:
        mean = x.mean(self.axes)
        variance = ((x - self.keep(mean))**2).mean(self.axes)
        return self.output(x, scale, self.offset, mean, variance)

    def moving_output(self, x: np.ndarray) -> np.ndarray:
        """Statistics that start at the given ones and change like a batch's."""
        center = self.keep(self.given_mean)
        return self.output(
            x, self.scale, self.offset,
            self.given_mean + (x - self.input).mean(self.axes),
            self.given_variance
            + ((x - center)**2 - (self.input - center)**2).mean(self.axes))

    def differentiate(self) -> None:
        d, x, ones = self.grad_output, self.input, np.ones(self.params)
        given = self.given_mean, self.given_variance
        self.mask = self.batch_output(x, self.scale) > 0
        self.batch = complex_step(
            lambda x: (d * self.batch_output(x, self.scale)).sum(), x)
        self.batch_unscaled = complex_step(
            lambda x: (d * self.batch_output(x, ones)).sum(), x)
        self.batch_relu = complex_step(
            lambda x: (d * np.where(self.mask, self.batch_output(
                x, self.scale), 0)).sum(), x)
        self.moving = complex_step(
            lambda x: (d * self.moving_output(x)).sum(), x)
        self.constant = complex_step(
            lambda x: (d * self.output(x, self.scale, self.offset,
                                       *given)).sum(), x)
        self.by_scale = complex_step(
            lambda s: (d * self.output(x, s, self.offset, *given)).sum(),
            self.scale)
        self.by_offset = complex_step(
            lambda o: (d * self.output(x, self.scale, o, *given)).sum(),
            self.offset)
        self.by_mean = complex_step(
            lambda m: (d * self.output(x, self.scale, self.offset, m,
                                       given[1])).sum(), given[0])
        self.by_variance = complex_step(
            lambda v: (d * self.output(x, self.scale, self.offset, given[0],
                                       v)).sum(), given[1])


def difference(result: np.ndarray, expected: np.ndarray) -> float:
    """The largest difference relative to the largest entry; inf for NaN."""
    if np.shape(result) != np.shape(expected):
        return math.inf
    if not np.size(expected):
        return 0.0
    error = np.max(np.abs(result - expected)) / max(1, np.abs(expected).max())
    return math.inf if np.isnan(error) else float(error)


def check_gradients(f: SimpleNamespace, case: Case) -> Iterator[Check]:
    """The gradients against numerical ones."""
    d, x, dims = case.grad_output, case.input, case.feature_dims
    inv_std = f.inv_std_of(case.variance, EPSILON)
    given = case.given_mean, f.inv_std_of(case.given_variance, EPSILON)
    sum_dy, sum_dy_xmu = f.channel_sums(d, x, case.given_mean, dims)
    batch = f.grad_input_batch(d, x, case.scale, case.mean, inv_std, dims)

    yield Check("grad_offset", "", difference(
        f.grad_offset(sum_dy), case.by_offset))
    yield Check("grad_scale", "", difference(
        f.grad_scale(sum_dy_xmu, given[1]), case.by_scale))
    yield Check("grad_mean", "", difference(
        f.grad_mean(case.scale, given[1], sum_dy), case.by_mean))
    yield Check("grad_variance", "", difference(
        f.grad_variance(case.scale, given[1], sum_dy_xmu), case.by_variance))
    yield Check("grad_input_global", "", difference(
        f.grad_input_global(d, case.scale, given[1], dims), case.constant))
    yield Check("grad_input_batch", "variance", difference(batch, case.batch))
    yield Check("grad_input_batch", "inv_std", difference(
        f.grad_input_batch(d, x, case.scale, case.mean,
                           1 / np.sqrt(case.variance + EPSILON), dims),
        case.batch))
    yield Check("grad_input_batch", "no scale", difference(
        f.grad_input_batch(d, x, None, case.mean, inv_std, dims),
        case.batch_unscaled))
    yield Check("grad_input_batch", "statistics of something else", difference(
        f.grad_input_batch(d, x, case.scale, *given, dims), case.moving))
    unseen = np.where(case.mask, d, np.nan)
    yield Check("masked", "ReLU, NaN where it is 0", difference(
        f.grad_input_batch(f.masked(unseen, case.mask), x, case.scale,
                           case.mean, inv_std, dims), case.batch_relu))
    yield Check("grad_input_steps", "", difference(
        f.grad_input_steps(d, x, case.scale, case.mean, inv_std, dims),
        case.batch))

    results = [np.zeros(case.shape)] + [np.zeros(case.params) for _ in "12"]
    for channel, where in case.channels():
        computed = f.gradients_of_channel(
            d[where], x[where], case.scale[channel], case.mean[channel],
            case.variance[channel], EPSILON, case.count, np.sum, np.sqrt)
        for result, place, values in zip(
                results, (where, channel, channel), computed):
            result[place] = values
    sums = f.channel_sums(d, x, case.mean, dims)
    for name, result, expected in zip(
            ("grad_input", "grad_scale", "grad_offset"), results,
            (case.batch, sums[1] * inv_std, case.by_offset)):
        yield Check("gradients_of_channel", name, difference(result, expected))


def check_forward(f: SimpleNamespace, case: Case) -> Iterator[Check]:
    """Training about centers that are not the mean, against its definition."""
    x, dims = case.input, case.feature_dims
    expected = (case.batch_output(x, case.scale), case.mean, case.variance,
                1 / np.sqrt(case.variance + EPSILON))
    for center in (case.mean, case.given_mean):
        results = f.training(x, case.scale, case.offset, center, EPSILON, dims)
        for name, *pair in zip(("output", "mean", "variance", "inv_std"),
                               results, expected):
            yield Check("training", name, difference(*pair))
        yield Check("center_of", "", difference(
            f.center_of(x, center, dims), case.mean))


def check_identities(f: SimpleNamespace, case: Case) -> Iterator[Check]:
    """The document's claims on sums and on differences of gradients."""
    d, x, dims = case.grad_output, case.input, case.feature_dims
    inv_std = f.inv_std_of(case.variance, EPSILON)
    moments = f.moments_of_grad_input(
        case.scale, inv_std, EPSILON,
        f.channel_sums(d, x, case.mean, dims)[1])
    centered = x - case.keep(case.mean)
    for name, moment, weight in (("sum", moments[0], 1.0),
                                 ("sum with xmu", moments[1], centered)):
        yield Check("moments_of_grad_input", name, difference(
            moment, (case.batch * weight).sum(case.axes)))

    given = case.given_mean, f.inv_std_of(case.given_variance, EPSILON)
    steps = f.grad_input_steps(d, x, case.scale, *given, dims)
    change = f.steps_minus_closed_form(
        case.scale, given[1], f.channel_sums(d, x, given[0], dims)[1],
        case.count, case.mean, given[0])
    yield Check("steps_minus_closed_form", "", difference(
        steps - case.moving, case.keep(change) + np.zeros(case.shape)))


def check_parts(f: SimpleNamespace, case: Case) -> Iterator[Check]:
    """The sums of uneven parts of a batch, one of them empty."""
    axis = next((dim for dim in case.axes if case.shape[dim] > 1), None)
    if axis is None:
        return
    parts = np.split(case.input, [1, 1], axis)
    counts = [part.size // case.mean.size for part in parts]
    means = [part.mean(case.axes) if part.size else np.zeros(case.params)
             for part in parts]
    yield Check("joined_center", "", difference(
        f.joined_center(counts, means), case.mean))

    def sums_about(part: np.ndarray, center: np.ndarray) -> np.ndarray:
        centered = part - case.keep(center)
        return np.array([centered.sum(case.axes), (centered**2).sum(case.axes)])

    for part, count, mean in zip(parts, counts, means):
        for own in (mean, mean + 0.25):
            moved = f.moved_sums(count, own, sums_about(part, own),
                                 case.given_mean)
            yield Check("moved_sums", f"{count} elements", difference(
                np.array(moved), sums_about(part, case.given_mean)))


def check_halves(f: SimpleNamespace, case: Case) -> Iterator[Check]:
    """The halves on uneven shards, one of them empty."""
    dims, inv_std = case.feature_dims, f.inv_std_of(case.variance, EPSILON)
    yield Check("elemt_half", "no sums", difference(
        f.elemt_half(case.grad_output, case.input, case.scale, case.given_mean,
                     f.inv_std_of(case.given_variance, EPSILON), None, None,
                     dims), case.constant))
    axis = next((dim for dim in case.axes if case.shape[dim] > 1), None)
    if axis is None:
        return
    cuts = [1, 1]  # of lengths 1, 0 and the rest
    shards = list(zip(np.split(case.grad_output, cuts, axis),
                      np.split(case.input, cuts, axis)))
    parts = [f.reduce_half(*shard, case.mean, dims) for shard in shards]
    sums, count = (sum(part) for part in zip(*parts))
    result = np.concatenate([
        f.elemt_half(*shard, case.scale, case.mean, inv_std, sums, count, dims)
        for shard in shards], axis)
    yield Check("reduce_half, elemt_half", "uneven shards",
                difference(result, case.batch))
    if case.shape[axis] > 2:
        local = sum(part[0] / part[1] for part in parts if part[1]) / 2
        wrong = difference(local, sums / count) > 1e-3
        yield Check("reduce_half", "averages of averages differ",
                    0.0 if wrong else math.inf)


def check_degenerate(f: SimpleNamespace) -> Iterator[Check]:
    """No elements, no channels, and a channel without variance."""
    for shape in ((0, 3), (2, 3, 0), (4, 0)):
        empty, params = np.zeros(shape), np.ones(shape[1])
        sums, count = f.reduce_half(empty, empty, params, (1,))
        results = (
            f.grad_input_batch(empty, empty, params, params, params, (1,)),
            f.elemt_half(empty, empty, params, params, params, sums, count,
                         (1,)),
            f.grad_scale(sums[1], params), f.grad_offset(sums[0]))
        expected = (empty, empty, np.zeros(shape[1]), np.zeros(shape[1]))
        yield Check("all", f"shape {shape}", max(map(
            difference, results, expected)))
    x = np.array([[2.0, 1.0], [2.0, 3.0]])
    with np.errstate(all="ignore"):
        result = f.grad_input_batch(x, x, None, x.mean(0),
                                    f.inv_std_of(x.var(0), 0.0), (1,))
    good = np.isnan(result[:, 0]).all() and np.isfinite(result[:, 1]).all()
    yield Check("grad_input_batch", "variance 0 without epsilon is NaN",
                0.0 if good else math.inf)


def check_terms(f: SimpleNamespace, case: Case) -> Iterator[Check]:
    """The absolute terms and the bound, against plain loops over channels."""
    dims, count = case.feature_dims, case.count
    inv_std = f.inv_std_of(case.given_variance, EPSILON)
    offset, scale = np.zeros(case.params), np.zeros(case.params)
    full = np.zeros(case.shape)
    for channel, where in case.channels():
        d = np.abs(case.grad_output[where])
        c = np.abs(case.input[where] - case.given_mean[channel])
        r, s = inv_std[channel], abs(case.scale[channel])
        offset[channel], scale[channel] = d.sum(), r * (d * c).sum()
        full[where] = s * r * d + s * r * d.sum() / count + (
            s * r**3 * c * (d * c).sum() / count)
    d, x, mean = case.grad_output, case.input, case.given_mean
    yield Check("terms_of_grad_offset", "", difference(
        f.terms_of_grad_offset(d, dims), offset))
    yield Check("terms_of_grad_scale", "", difference(
        f.terms_of_grad_scale(d, x, mean, inv_std, dims), scale))
    yield Check("terms_of_grad_input", "", difference(
        f.terms_of_grad_input(d, x, case.scale, mean, inv_std, dims), full))
    yield Check("error_bound", "", difference(
        f.error_bound(case.batch, full, count, 0.25, 0.5),
        0.25 * np.abs(case.batch) + 8 * full
        + 2 * full * math.log(count + 1, 2)))


def check_rounding(f: SimpleNamespace) -> Iterator[Check]:
    """Checks the bound for the formulas in float32, and the schedules."""
    u, dims = 2.0 ** -24, (1,)
    random = np.random.RandomState(1)
    d, x = random.uniform(-1, 1, (2, 48, 3, 50)).astype(np.float32)
    x = x + np.array([[[30], [-2], [0.5]]], np.float32)
    scale = np.array([0.5, -2, 1.25], np.float32)
    mean, variance = x.mean((0, 2)), x.var((0, 2))

    def gradients(kind):
        arrays = [array.astype(kind) for array in (d, x, mean, variance)]
        inv_std = f.inv_std_of(arrays[3], kind(EPSILON))
        sums = f.channel_sums(*arrays[:3], dims)
        return (f.grad_offset(sums[0]), f.grad_scale(sums[1], inv_std),
                f.grad_input_batch(*arrays[:2], scale.astype(kind), arrays[2],
                                   inv_std, dims))

    wide = [array.astype(np.float64) for array in (d, x, scale, mean)]
    inv_std = f.inv_std_of(variance.astype(np.float64), EPSILON)
    terms = (f.terms_of_grad_offset(wide[0], dims),
             f.terms_of_grad_scale(wide[0], wide[1], wide[3], inv_std, dims),
             f.terms_of_grad_input(*wide, inv_std, dims))
    for name, result, exact, term in zip(
            ("grad_offset", "grad_scale", "grad_input"),
            gradients(np.float32), gradients(np.float64), terms):
        bound = f.error_bound(exact, term, x[:, 0].size, u, u)
        good = (result.dtype == np.float32
                and (np.abs(result - exact) <= bound).all())
        yield Check("error_bound", f"{name} in float32",
                    0.0 if good else math.inf)

    yield from check_heights(f)
    chain = np.add.accumulate(np.full(15625, 0.1, np.float32))[-1]
    exact = 1e6 * float(np.float32(0.1))
    ratio = abs(64 * float(chain) - exact) / f.error_bound(
        exact, exact, 10**6, u, u)
    yield Check("error_bound", "64 chains of equal numbers miss it 26 times",
                0.0 if round(ratio) == 26 else math.inf)


def check_heights(f: SimpleNamespace) -> Iterator[Check]:
    """Checks the table of roundings, and that it is within the bound."""
    height, exact = 1000, Rounded(exact=0)
    names = iter(("mean", "variance"))

    def total(terms: Rounded) -> Rounded:
        return Rounded(**{next(names): max(terms.terms.values()) + height})

    results = f.gradients_of_channel(
        Rounded(direct=0), exact, exact, exact, exact, Rounded(exact=1),
        Rounded(exact=1), total, Rounded.sqrt)
    expected = ({"direct": 7, "mean": height + 9, "variance": height + 20},
                {"variance": height + 6}, {"mean": height})
    for result, terms in zip(results, expected):
        yield Check("gradients_of_channel", f"roundings {terms}",
                    0.0 if result.terms == terms else math.inf)

    def within(name: str, count: np.ndarray, height: np.ndarray) -> Check:
        """Whether the bound exceeds the longest path by more than 1, in f32."""
        is_power = np.log2(count) % 1 == 0
        roundings = height + np.where(
            is_power, 18, np.where(count <= 2**24, 19, 20))
        budget = f.error_bound(0.0, 1.0, count, 0.0, 1.0)
        good = (roundings + 1 <= budget).all()
        return Check("error_bound", name, 0.0 if good else math.inf)

    few, u = np.arange(1.0, 2**20), 2.0 ** -24
    many = 2.0 ** np.arange(20, 33.01, 0.125)
    yield within("a balanced tree", few, np.ceil(np.log2(few)))
    yield within("blocks of 1, few", few, np.minimum(few - 1, 9) + few * u)
    yield within("blocks of 1", many[many <= 2**30],
                 9 + many[many <= 2**30] * u)
    yield within("blocks of 8 and of 1", many, 9 + many * 2 / 9 * u)
    yield within("blocks of 1 in f64", 2.0 ** np.arange(20, 60),
                 9 + 2.0 ** np.arange(20 - 53, 60 - 53))


def all_checks(f: SimpleNamespace, cases: List[Case]) -> Iterator[Check]:
    """Every check, in an order that finds mistakes early."""
    groups = [(group, case) for case in cases for group in (
        check_gradients, check_forward, check_parts, check_identities,
        check_halves, check_terms)]
    groups += [(check_degenerate, None), (check_rounding, None)]
    for group, case in groups:
        label = case.label if case else ""
        try:
            with np.errstate(divide="raise", invalid="raise"):
                for check in group(f, case) if case else group(f):
                    yield check._replace(
                        variant=f"{check.variant} {label}".strip())
        except Exception as error:
            yield Check(group.__name__, f"{label} raised {error!r}", math.inf)


def blocks(documents: List[Path]) -> ast.Module:
    """The ```python blocks of all documents as one module."""
    found = []
    for path in documents:
        text = path.read_text(encoding="utf-8")
        new = re.findall(r"^```python\n(.*?)^```$", text, re.M | re.S)
        if not new:
            raise ValueError(f"no ```python block in {path}")
        found += new
    return ast.parse("\n".join(found))


def run(module: ast.Module) -> SimpleNamespace:
    scope = {}
    exec(compile(module, "document", "exec"), scope)
    return SimpleNamespace(**scope)


class Mutator(ast.NodeTransformer):
    """Changes the operator with number `target`, and counts operators."""

    OPERATORS = {ast.Add: ast.Sub, ast.Sub: ast.Add, ast.Mult: ast.Div,
                 ast.Div: ast.Mult, ast.Pow: ast.Mult, ast.In: ast.NotIn,
                 ast.NotIn: ast.In, ast.Is: ast.IsNot}

    def __init__(self, target: int):
        self.target, self.seen, self.what = target, 0, ""

    def change(self, node: ast.AST, new: Callable[[], ast.AST],
               what: str) -> ast.AST:
        """`new()` if this is the target, otherwise `node`."""
        hit, self.seen = self.seen == self.target, self.seen + 1
        if not hit:
            return node
        self.what = f"line {node.lineno}: {what} {ast.unparse(node)}"
        return ast.copy_location(new(), node)

    def visit_BinOp(self, node):
        self.generic_visit(node)
        other = self.OPERATORS[type(node.op)]
        return self.change(node, lambda: ast.BinOp(
            node.left, other(), node.right), "operator of")

    def visit_Compare(self, node):
        self.generic_visit(node)
        other = self.OPERATORS[type(node.ops[0])]
        return self.change(node, lambda: ast.Compare(
            node.left, [other()], node.comparators), "operator of")

    def visit_UnaryOp(self, node):
        self.generic_visit(node)
        return self.change(node, lambda: node.operand, "sign of")

    def visit_Constant(self, node):
        if not isinstance(node.value, (int, float)):
            return node
        return self.change(node, lambda: ast.Constant(node.value + 1),
                           "number")

    def visit_Call(self, node):
        self.generic_visit(node)
        function = ast.unparse(node.func)
        if function == "np.abs":
            return self.change(node, lambda: node.args[0], "absolute value")
        if function.endswith(".sum"):
            mean = ast.Attribute(node.func.value, "mean", ast.Load())
            return self.change(node, lambda: ast.Call(mean, node.args, []),
                               "sum to mean in")
        return node

    def visit_Return(self, node):
        self.generic_visit(node)
        return self.change(node, lambda: ast.Return(
            ast.UnaryOp(ast.USub(), node.value)), "sign of")


def is_noticed(module: ast.Module, cases: List[Case]) -> bool:
    """Whether a check of the changed module fails."""
    return any(not check.error <= TOLERANCE
               for check in all_checks(run(module), cases))


def self_test(module: ast.Module, cases: List[Case]) -> int:
    """Changes every operator once; returns the number of unnoticed changes."""
    count = unnoticed = 0
    while True:
        mutator = Mutator(count)
        mutant = ast.fix_missing_locations(
            mutator.visit(copy.deepcopy(module)))
        if not mutator.what:
            break
        count += 1
        with np.errstate(all="ignore"):
            if not is_noticed(mutant, cases):
                unnoticed += 1
                print(f"unnoticed: {mutator.what}")
    print(f"{count} mutants, {unnoticed} unnoticed")
    return unnoticed if count else 1


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("documents", type=Path, nargs="+")
    parser.add_argument("--self-test", default=True,
                        action=argparse.BooleanOptionalAction)
    options = parser.parse_args()
    try:
        module = blocks(options.documents)
    except (OSError, SyntaxError, ValueError) as error:
        print(f"error: {error}", file=sys.stderr)
        return 1
    cases = [Case(*arguments) for arguments in CASES]

    count = failed = 0
    for check in all_checks(run(module), cases):
        good = check.error <= TOLERANCE
        count, failed = count + 1, failed + (not good)
        print(f"{'ok' if good else 'FAILED'} {check.formula}"
              f"{', ' if check.variant else ''}{check.variant}: "
              f"{check.error:.1e}")
    unnoticed = self_test(module, cases) if options.self_test else 0
    print(f"{count} formulas checked, {failed} failed")
    return 1 if failed or unnoticed else 0


if __name__ == "__main__":
    sys.exit(main())
