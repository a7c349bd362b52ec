"""classes.py TYPE make FOLDER | classes.py TYPE check FOLDER

Writes numbers of every class to FOLDER/x.npy, and checks their classification
by a program: FOLDER/isinf.npy, isnan.npy, isfinite.npy and isnormal.npy. TYPE
is f16, bf16, f32 or f64. With i64, writes FOLDER/x.npy and n.npy, and checks
that FOLDER/power.npy is x to the power of n.
"""

import sys
from pathlib import Path

import numpy as np

# Bits of a number, of its exponent, and of its fraction.
TYPES = {"f16": (16, 5, 10), "bf16": (16, 8, 7), "f32": (32, 8, 23),
         "f64": (64, 11, 52)}


def make_bits(bits: int, exponent: int, fraction: int) -> np.ndarray:
    """Both signs of the extremes of each class, and of some numbers between."""
    infinity = ((1 << exponent) - 1) << fraction
    smallest = 1 << fraction
    positive = [0, 1, smallest // 2, smallest - 1, smallest, smallest + 1,
                infinity // 2, infinity - 1, infinity, infinity + 1,
                infinity + smallest - 1]
    sign = 1 << (bits - 1)
    return np.array(positive + [number | sign for number in positive],
                    f"u{bits // 8}")


def run_integers(verb: str, folder: Path) -> int:
    pairs = [(base, exponent) for base in (-7, -2, -1, 0, 1, 2, 3, 10, 2**40)
             for exponent in (-64, -3, -2, -1, 0, 1, 2, 3, 17, 63, 64, 2**62)]
    x, n = np.array(pairs, np.int64).T
    if verb == "make":
        np.save(folder / "x.npy", np.ascontiguousarray(x))
        np.save(folder / "n.npy", np.ascontiguousarray(n))
        return 0

    def power(base: int, exponent: int) -> int:
        """Modulo 2^64; for negative exponents, the reciprocal rounded to 0,
        and 0 for base 0."""
        if exponent < 0 and base not in (-1, 1):
            return 0
        result = pow(base, abs(exponent), 2**64)
        return result - 2**64 if result >= 2**63 else result

    got = np.load(folder / "power.npy")
    wrong = [(pair, int(value)) for pair, value in zip(pairs, got)
             if power(*pair) != value]
    if wrong or got.shape != x.shape:
        print(f"base and exponent, and what they gave: {wrong}")
        return 1
    return 0


def main() -> int:
    name, verb, folder = sys.argv[1], sys.argv[2], Path(sys.argv[3])
    if name == "i64":
        return run_integers(verb, folder)
    bits, exponent, fraction = TYPES[name]
    numbers = make_bits(bits, exponent, fraction)
    if verb == "make":
        stored = "V2" if name == "bf16" else f"f{bits // 8}"
        np.save(folder / "x.npy", numbers.view(stored))
        return 0
    power = (numbers >> np.array(fraction, numbers.dtype)) & (
        (1 << exponent) - 1)
    rest = numbers & ((1 << fraction) - 1)
    top = power == (1 << exponent) - 1
    expected = {"isinf": top & (rest == 0), "isnan": top & (rest != 0),
                "isfinite": ~top, "isnormal": ~top & (power != 0)}
    for question, answer in expected.items():
        got = np.load(folder / f"{question}.npy")
        if not (got.dtype == bool and np.array_equal(got, answer)):
            print(f"{name} {question}: expected {answer}, got {got}")
            return 1
    return 0


if __name__ == "__main__":
    sys.exit(main())
