"""Element types: rounding, error bounds, and .npy files.

Values are long doubles (bool for i1, int64 for i64) that the type represents.
"""

from pathlib import Path
from typing import NamedTuple

import numpy as np

real = np.longdouble
assert np.finfo(real).nmant >= 63, "expected an extended long double"

FLOATS = ["f16", "bf16", "f32", "f64"]
PRECISION = {"f16": 11, "bf16": 8, "f32": 24, "f64": 53}
SMALLEST = {"f16": -24, "bf16": -133, "f32": -149, "f64": -1074}
DTYPES = {"f16": "<f2", "f32": "<f4", "f64": "<f8", "i1": "|b1", "i64": "<i8"}


def unit_roundoff(kind: str) -> real:
    return real(2) ** -PRECISION[kind]


def accumulator(*kinds: str) -> str:
    """The widest of the types, at least f32."""
    return "f64" if "f64" in kinds else "f32"


def bits_of_bf16(values: np.ndarray) -> np.ndarray:
    """To nearest even; finite values only."""
    bits = np.asarray(values).astype("<f4").view("<u4").astype("<u8")
    return ((bits + 0x7FFF + (bits >> 16 & 1)) >> 16).astype("<u2")


def value_of_bf16(bits: np.ndarray) -> np.ndarray:
    return (bits.astype("<u4") << 16).view("<f4").astype(real)


class Array(NamedTuple):
    kind: str
    values: np.ndarray

    @staticmethod
    def rounded(kind: str, values: np.ndarray) -> "Array":
        if kind == "bf16":
            return Array(kind, value_of_bf16(bits_of_bf16(values)))
        if kind in FLOATS:
            return Array(kind, np.asarray(values).astype(
                DTYPES[kind]).astype(real))
        return Array(kind, np.asarray(values).astype(DTYPES[kind]))

    @staticmethod
    def load(path: Path, kind: str) -> "Array":
        values = np.load(path)
        expected = np.dtype(DTYPES.get(kind, "V2"))
        assert values.dtype == expected, (path, values.dtype)
        if kind == "bf16":
            return Array(kind, value_of_bf16(values.view("<u2")))
        return Array(kind, values.astype(real) if kind in FLOATS else values)

    def save(self, path: Path) -> None:
        values = (bits_of_bf16(self.values).view("V2")
                  if self.kind == "bf16" else
                  self.values.astype(DTYPES[self.kind]))
        np.save(path, values.copy(order="C"))

    @property
    def shape(self):
        return self.values.shape
