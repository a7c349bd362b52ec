"""check_rounding.py write|compare DIR: the arguments of types_rounding.mlir, and the expected results."""

import os
import sys
from fractions import Fraction

import numpy as np

# Bits of the significand, exponents of the smallest and of the largest power of two.
FORMATS = {"f16": (11, -24, 15), "bf16": (8, -133, 127), "f32": (24, -149, 127)}


def round_once(value, kind):
    """`value` rounded to nearest even in exact arithmetic."""
    bits, smallest, largest = FORMATS[kind]
    if not np.isfinite(value) or value == 0:
        return value
    unit = Fraction(2) ** max(int(np.frexp(value)[1]) - bits, smallest)
    rounded = round(Fraction(float(value)) / unit) * unit  # Python rounds to even
    if abs(rounded) >= Fraction(2) ** (largest + 1):
        return np.copysign(np.inf, value)
    return np.copysign(float(rounded), value)


def arguments():
    """Ties of every format and their neighbours, and random numbers, in the range of each."""
    random = np.random.default_rng(1)
    for dtype in ["<f8", "<f4"]:
        values = [np.array([0.0, -0.0, np.inf, -np.inf, np.nan, np.finfo(dtype).max])]
        for bits, smallest, largest in FORMATS.values():
            exponents = random.integers(smallest - 1, largest + 1, 40)
            exponents[:4] = [smallest, smallest - 1, largest, largest]
            ties = np.ldexp(2.0**bits + 1 + 2 * random.integers(0, 2**bits // 2, 40), exponents - bits)
            ties[2] = np.ldexp(2.0 ** (bits + 1) - 1, largest - bits)  # the first that overflows
            ties = np.concatenate([ties, np.ldexp(random.integers(0, 99, 40) + 0.5, smallest)])
            with np.errstate(over="ignore"):
                ties = ties.astype(dtype)
                values += [ties, np.nextafter(ties, 0), -np.nextafter(ties, np.inf), ties * random.uniform(0.5, 1, 80)]
        yield dtype.replace("<f8", "f64").replace("<f4", "f32"), np.concatenate(values).astype(dtype)[:, None]


def load(path):
    array = np.load(path)
    return (array.view("<u2").astype("<u4") << 16).view("<f4") if array.dtype == "V2" else array


mode, directory = sys.argv[1:]
os.makedirs(directory, exist_ok=True)
np.save(os.path.join(directory, "one.npy"), np.ones(1))
for name, values in arguments():
    if mode == "write":
        np.save(os.path.join(directory, name + ".npy"), values)
        continue
    for kind in [k for k in FORMATS if k != name]:
        results = load(os.path.join(directory, f"{name}.{kind}.npy")).astype("<f8").ravel()
        for value, result in zip(values.ravel(), results):
            expected = round_once(value, kind)
            is_equal = np.array_equal(result, expected, equal_nan=True) and np.signbit(result) == np.signbit(expected)
            assert is_equal or np.isnan(expected) and np.isnan(result), (name, kind, value.hex(), result.hex())
