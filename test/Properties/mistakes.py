"""Mistakes in results that the properties must report."""

from typing import Callable, Dict, Iterator, List, Optional, Tuple

import numpy as np

from checks import Outcome, failures


def exchanged(o: Outcome, values: np.ndarray, dims) -> Optional[np.ndarray]:
    """The values, with channels exchanged."""
    sizes = [values.shape[dim] for dim in dims]
    if max(sizes, default=1) < 2:
        return None
    return np.roll(values, 1, dims[int(np.argmax(sizes))])


def grad_input_mistakes(o: Outcome, name: str):
    """Mistakes in a first result."""
    values = o.results[name][0]
    yield "sign", -values
    yield "channels exchanged", exchanged(o, values, o.c.features)
    yield "factor missing", values / o.problem.keep(o.problem.factor)


def term_mistakes(o: Outcome, name: str):
    """Mistakes that only properties of the differentiated function detect, not
    those of a linear map."""
    p, values = o.problem, o.results[name][0]
    if p.count < 2:
        return
    means = p.sums[0].exact / p.count, p.sums[1].exact / p.count
    second = p.keep(p.factor * means[0])
    third = p.keep(p.factor * p.inv_std**2 * means[1]) * p.centered
    if o.c.is_batch:
        yield "sum_dy missing", values + second
        yield "sign of sum_dy_xmu", values + 2 * third
        yield "sum_dy_xmu lacks r", values + third * (
            1 - 1 / p.keep(p.inv_std))
        yield "M is 2*M", values + (second + third) / 2
    else:
        yield "sum_dy subtracted", values - second


def channel_mistakes(o: Outcome, name: str, index: int):
    """Mistakes in a second or third result."""
    values = o.results[name][index]
    yield "sign", -values
    yield "channels exchanged", exchanged(o, values, range(values.ndim))
    if index == 1:
        yield "r missing", values / o.problem.inv_std
    if name == "doubled":
        yield "not doubled", values / 2


def mistakes(o: Outcome) -> Iterator[Tuple[str, str, Outcome]]:
    """(property, mistake, outcome with it), for effective mistakes."""
    def each(name: str, index: int, makers: List[Callable]) -> Iterator:
        for maker in makers:
            for what, values in maker:
                if values is not None and not np.array_equal(
                        values, o.results[name][index]):
                    yield what, o.replaced(name, index, values)

    sources = {"linearity": "combined", "permutation": "permuted",
               "split": "split", "statistic": "statistic",
               "doubled": "doubled", "derivative": "gradient"}
    for property_, name in sources.items():
        if name not in o.results:
            continue
        makers = [grad_input_mistakes(o, name)]
        makers += [term_mistakes(o, name)] * (property_ == "derivative")
        for what, other in each(name, 0, makers):
            yield property_, f"grad_input: {what}", other
        for index in (1, 2):
            for what, other in each(
                    name, index, [channel_mistakes(o, name, index)]):
                yield (property_, f"grad_{['', 'scale', 'offset'][index]}: "
                       f"{what}", other)
    if o.c.is_true:
        for what, other in each(
                "gradient", 0, [term_mistakes(o, "gradient")]):
            yield "moments", f"grad_input: {what}", other
    if "parts" in o.results:
        for what, other in each(
                "parts", 0, [grad_input_mistakes(o, "parts")]):
            yield "shards", f"grad_input: {what}", other
        for name in ("sums", "counts"):
            left_out = np.zeros_like(o.results[name][0])
            if (o.results[name][0] != left_out).any():
                yield "shards", f"{name} of a part left out", o.replaced(
                    name, 0, left_out)


def count_noticed(o: Outcome) -> Dict[str, Tuple[int, int]]:
    """By mistake: how often it was noticed and how often it was made."""
    counts: Dict[str, Tuple[int, int]] = {}
    for property_, what, other in mistakes(o):
        key = f"{property_}, {what}"
        noticed, made = counts.get(key, (0, 0))
        counts[key] = (noticed + bool(failures(other, property_)), made + 1)
    return counts
