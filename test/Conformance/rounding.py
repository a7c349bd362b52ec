"""The change of a case's exact results by the rounding of its numbers.

A case has decimal numbers, often of 9 or 12 digits, that are rounded to a
float type. If cancellation leaves few digits of a result, this rounding alone
exceeds some tolerances, and no implementation could meet them. The change
computed here is added to the tolerance, and reported if it was needed.
"""

import math
from decimal import Decimal
from typing import Callable, Dict, Tuple

import numpy as np

ROUNDED_DIGITS = 9  # numbers of fewer digits are taken as they stand
PATTERNS = 8

Arrays = Dict[str, np.ndarray]


def half_unit(values: np.ndarray) -> np.ndarray:
    """Half of the last digit of each number, 0 for numbers with few digits."""
    def of_one(value: float) -> float:
        if not math.isfinite(value):
            return 0.0
        _, digits, exponent = Decimal(repr(float(value))).as_tuple()
        return 0.5 * 10.0**exponent if len(digits) >= ROUNDED_DIGITS else 0.0
    return np.array([of_one(value) for value in values.ravel()],
                    dtype=float).reshape(values.shape)


def closed_form(operands: Arrays, dims: Tuple[int, ...], epsilon: float,
                statistics: str) -> Arrays:
    """The results and both sums by the formulas of docs/mathematics.md."""
    wide = {name: values if values.dtype == bool else
            values.astype(np.longdouble) for name, values in operands.items()}
    dy, x = wide["grad_output"], wide["input"]
    if "mask" in wide:
        dy = np.where(wide["mask"], dy, 0)
    axes = tuple(dim for dim in range(x.ndim) if dim not in dims)
    channel = [size if dim in dims else 1 for dim, size in enumerate(x.shape)]
    centered = x - wide["mean"].reshape(channel)
    r = (wide["inv_std"] if "inv_std" in wide else
         1 / np.sqrt(wide["variance"] + np.longdouble(epsilon)))
    sums = np.stack([dy.sum(axes), (dy * centered).sum(axes)])
    of_batch = wide.get("sums", sums)
    count = wide.get("count", math.prod(x.shape[axis] for axis in axes))
    result = dy
    if statistics == "batch" and x.size:
        result = dy - (of_batch[0] / count).reshape(channel) - centered * (
            r * r * of_batch[1] / count).reshape(channel)
    factor = wide.get("scale", 1) * r
    return {"grad_input": factor.reshape(channel) * result,
            "grad_scale": sums[1] * r, "grad_offset": sums[0],
            "sum_dy": sums[0], "sum_dy_xmu": sums[1]}


def slack_of(operands: Arrays, round_to_type: Callable[[str, np.ndarray],
                                                       np.ndarray],
             evaluate: Callable[[Arrays], Arrays]) -> Arrays:
    """By result: the change by rounding to the type, and up to twice the
    change by the last digit. The signs are unknown, so several are tried.
    """
    numbers = {name: values for name, values in operands.items()
               if name not in ("mask", "count")}
    exact = evaluate(operands)
    rounded = evaluate({**operands, **{name: round_to_type(name, values)
                                       for name, values in numbers.items()}})
    digits = {name: np.zeros(values.shape) for name, values in exact.items()}
    halves = {name: half_unit(values) for name, values in numbers.items()}
    random = np.random.RandomState(1)
    for _ in range(PATTERNS):
        moved = evaluate({**operands, **{
            name: values + halves[name] * random.choice([-1, 1], values.shape)
            for name, values in numbers.items()}})
        for name, values in exact.items():
            digits[name] = np.maximum(digits[name],
                                      np.abs(moved[name] - values))
    return {name: np.nan_to_num((np.abs(rounded[name] - values)
                                 + 2 * digits[name]).astype(float), posinf=0.0)
            for name, values in exact.items()}
