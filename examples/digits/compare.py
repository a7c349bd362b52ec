"""Compares results with the expected gradients of this example.

Usage: compare.py RESULT.npy EXPECTED.npy [RESULT.npy EXPECTED.npy]...

EXPECTED is one of this folder's expected_grad_*.npy. Element by element, a
float32 result may differ from the expected value `exact` by

    u |exact| + u (4 (4 + log2(M + 1)) + STATISTICS_UNITS) A,    u = 2^-24,

where M = N*H*W is the number of elements summed per channel and A is the
gradient's formula with every term replaced by its absolute value, in float64.
The first part is the rounding of the result, the second the rounding errors of
float32 arithmetic; docs/numerics.md explains both. The expected gradients use
exact statistics, but the stored statistics are rounded to float32:
STATISTICS_UNITS allows for that. It is measured, and make_digits.py asserts
it.

Exit status: 0 if all agree; 1 otherwise, or if a file cannot be read.
"""

import math
import sys
from pathlib import Path
from typing import Dict

import numpy as np

HERE = Path(__file__).resolve().parent
EPSILON = 1.0e-5
REDUCED = (0, 2, 3)  # NCHW without the channels
ARGUMENTS = ("grad_output", "input", "scale", "mean", "variance")
U_F32 = 2.0 ** -24
STATISTICS_UNITS = 1.0


def load_arguments() -> Dict[str, np.ndarray]:
    """Reads the operands: two of N x 8 x 8 x 8 (NCHW), three of 8."""
    return {name: np.load(HERE / f"{name}.npy") for name in ARGUMENTS}


def closed_form(arguments: Dict[str, np.ndarray],
                absolute: bool = False) -> Dict[str, np.ndarray]:
    """The gradients in float64: one N x 8 x 8 x 8 (NCHW), two of 8. With
    `absolute`, every term is replaced by its absolute value."""
    grad_output, x, scale, mean, variance = (
        wide if wide.ndim == 4 else wide.reshape(1, -1, 1, 1)
        for wide in (arguments[name].astype(np.float64) for name in ARGUMENTS))
    sign, centered = -1.0, x - mean
    if absolute:
        sign, centered = 1.0, np.abs(centered)
        grad_output, scale = np.abs(grad_output), np.abs(scale)
    count = x[:, 0].size
    inv_std = 1.0 / np.sqrt(variance + EPSILON)
    sum_dy = grad_output.sum(REDUCED, keepdims=True)
    sum_dy_xmu = (grad_output * centered).sum(REDUCED, keepdims=True)
    lost = sum_dy / count + centered * inv_std**2 * sum_dy_xmu / count
    return {"grad_input": scale * inv_std * (grad_output + sign * lost),
            "grad_scale": (sum_dy_xmu * inv_std).reshape(-1),
            "grad_offset": sum_dy.reshape(-1)}


def allowed(name: str, expected: np.ndarray) -> np.ndarray:
    """The bound above for gradient `name`, in the shape of `expected`."""
    arguments = load_arguments()
    count = arguments["input"][:, 0].size
    units = 4.0 * (4.0 + math.log2(count + 1)) + STATISTICS_UNITS
    terms = closed_form(arguments, absolute=True)[name]
    return U_F32 * (np.abs(expected) + units * terms)


def compare(result_path: str, expected_path: str) -> bool:
    """Prints one line for one pair; returns whether the bound holds."""
    name = Path(expected_path).stem.replace("expected_", "")
    if name not in ("grad_input", "grad_scale", "grad_offset"):
        raise ValueError(f"{expected_path}: not one of expected_grad_*.npy")
    result, expected = np.load(result_path), np.load(expected_path)
    if result.shape != expected.shape:
        raise ValueError(f"{result_path}: expected shape {expected.shape}, "
                         f"got {result.shape}")
    difference = np.abs(result.astype(np.float64) - expected)
    ok = bool((difference <= allowed(name, expected)).all())  # NaN is not <=
    largest = np.abs(expected).max()
    print(f"{name} max_abs_difference {difference.max():.3e} "
          f"of max_abs {largest:.3e} "
          f"relative {difference.max() / largest:.3e} "
          f"{'ok' if ok else 'FAILED'}")
    return ok


def main(paths) -> int:
    if not paths or len(paths) % 2:
        print("usage: compare.py RESULT.npy EXPECTED.npy ...", file=sys.stderr)
        return 1
    try:
        good = [compare(*pair) for pair in zip(paths[::2], paths[1::2])]
    except (OSError, ValueError) as error:
        print(f"compare.py: error: {error}", file=sys.stderr)
        return 1
    return 0 if all(good) else 1


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
