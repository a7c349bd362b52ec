"""Rounding of floats to a narrower type, against exact arithmetic.

Usage: truncf.py make SOURCE TARGET OUT.npy [column]
       truncf.py check SOURCE TARGET IN.npy OUT.npy [MODE]

`make` writes COUNT values of type SOURCE that are hard to round to TARGET,
with `column` as a matrix of one column. `check` compares OUT.npy, computed
from IN.npy, bitwise with the result of exact arithmetic. MODE is a rounding
mode of `arith.truncf`, by default to_nearest_even. Types: f16, bf16, f32, f64.
"""

import itertools
import math
import sys

import numpy as np

COUNT = 32768

# Bits of the significand with its leading one, exponents of the smallest and
# the largest normal number.
FORMATS = {"f16": (11, -14, 15), "bf16": (8, -126, 127),
           "f32": (24, -126, 127), "f64": (53, -1022, 1023)}
FLOATS = {"f32": np.float32, "f64": np.float64}
BITS = {"f16": np.uint16, "bf16": np.uint16, "f32": np.uint32}


def infinity(name: str) -> int:
    """The bits of positive infinity."""
    precision, low, high = FORMATS[name]
    return (high - low + 2) << (precision - 1)


def round_exactly(value: float, name: str, mode: str) -> int:
    """The bits of the number that `value` >= 0 is rounded to. The mode is one
    for magnitudes: away, toward_zero, to_nearest_even or to_nearest_away."""
    precision, low, _ = FORMATS[name]
    if value == 0:
        return 0
    mantissa, exponent = math.frexp(value)
    significand, exponent = int(math.ldexp(mantissa, 53)), exponent - 53
    highest = max(exponent + significand.bit_length() - 1, low)
    # In units of the last place, exactly: count + rest / one.
    power = exponent - (highest - precision + 1)
    one = 1 << max(-power, 0)
    count, rest = divmod(significand << max(power, 0), one)
    half = 2 * rest - one
    is_up = {"away": rest > 0, "toward_zero": False, "to_nearest_away": half >= 0,
             "to_nearest_even": half > 0 or half == 0 and count % 2 == 1}
    count += is_up[mode]
    # Consecutive numbers have consecutive bits, up to infinity.
    bits = ((highest - low) << (precision - 1)) + count
    return min(bits, infinity(name) - (mode == "toward_zero"))


def value_of(bits: int, name: str) -> float:
    """The number with the given bits, sign bit 0, at most infinity."""
    precision, low, _ = FORMATS[name]
    exponent, fraction = divmod(bits, 1 << (precision - 1))
    if exponent:
        fraction += 1 << (precision - 1)
    return math.ldexp(fraction, max(exponent, 1) - 1 + low - precision + 1)


def hard_values(source: str, target: str) -> np.ndarray:
    """Numbers of the target, the midpoints between them, and neighbours."""
    kind, precision = FLOATS[source], FORMATS[target][0]
    width = 1 << (precision - 1)
    fractions = (0, 1, 2, width // 2, width - 2, width - 1)
    values = []
    for bits in (exponent * width + fraction for exponent, fraction in
                 itertools.product(range(infinity(target) // width), fractions)):
        below, above = value_of(bits, target), value_of(bits + 1, target)
        middle = kind((below + above) / 2)
        values += [kind(below), middle, np.nextafter(middle, kind(0)),
                   np.nextafter(middle, kind(np.inf))]
        # So close to the midpoint that f32 would round them to it.
        values += [middle * kind(1 + sign * 2.0 ** -power)
                   for sign in (1, -1) for power in (30, 45)]
    limits = np.finfo(kind)
    values += [limits.tiny, limits.max, np.nextafter(kind(0), kind(1)),
               kind(np.inf)]
    values += [kind(2.0 ** power * (1 + sign * 2.0 ** -20))
               for power in (-151, -150, -149, -148) for sign in (1, 0, -1)]
    values = np.array(values, kind)
    return np.concatenate([values, -values])


def nans(source: str) -> np.ndarray:
    """Quiet and signaling, with payloads that truncation would lose."""
    kind, precision = FLOATS[source], FORMATS[source][0]
    one = 1 << (precision - 1)
    payloads = (1, one >> 13, (one >> 13) - 1, one >> 1, one - 1)
    bits = np.array([infinity(source) | payload for payload in payloads],
                    f"u{kind().nbytes}")
    return bits.view(kind)


def make(source: str, target: str) -> np.ndarray:
    values = np.concatenate([hard_values(source, target), nans(source)])
    # The rest: random bits.
    rest = COUNT - len(values)
    assert rest > 0, rest
    kind = FLOATS[source]
    noise = np.random.RandomState(1).bytes(rest * kind().nbytes)
    return np.concatenate([values, np.frombuffer(noise, kind)])


def expected_bits(value: float, target: str, mode: str) -> int:
    """The sign of NaN is unspecified."""
    if math.isnan(value):
        return -1
    is_negative = math.copysign(1, value) < 0
    if mode in ("upward", "downward"):
        is_away = is_negative == (mode == "downward")
        mode = "away" if is_away else "toward_zero"
    sign = is_negative << (8 * BITS[target]().nbytes - 1)
    if math.isinf(value):
        return sign | infinity(target)
    return sign | round_exactly(abs(value), target, mode)


def check(source: str, target: str, inputs: np.ndarray,
          outputs: np.ndarray, mode: str = "to_nearest_even") -> int:
    assert inputs.dtype == FLOATS[source] and inputs.shape == outputs.shape
    inputs, outputs = inputs.ravel(), outputs.ravel()
    failed = 0
    magnitude = (1 << (8 * BITS[target]().nbytes - 1)) - 1
    for value, got in zip(inputs.tolist(), outputs.view(BITS[target]).tolist()):
        expected = expected_bits(value, target, mode)
        good = (got & magnitude > infinity(target) if expected < 0
                else got == expected)
        if not good:
            failed += 1
            if failed <= 5:
                print(f"{value.hex()}: expected {expected:#x}, "
                      f"got {got:#x}")
    print(f"{len(inputs)} values from {source} to {target}, {failed} wrong")
    return failed


def main() -> int:
    what, source, target, *paths = sys.argv[1:]
    if what == "make":
        with np.errstate(over="ignore"):
            values = make(source, target)
            np.save(paths[0], values[:, None] if paths[1:] else values)
        return 0
    inputs, outputs = (np.load(path) for path in paths[:2])
    return 1 if check(source, target, inputs, outputs, *paths[2:]) else 0


if __name__ == "__main__":
    sys.exit(main())
