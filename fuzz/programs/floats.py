"""Element types: precision, range, and storage."""

from typing import Dict, NamedTuple

import numpy as np

Real = np.longdouble


class Float(NamedTuple):
    """A binary floating-point type."""

    bits: int
    mantissa: int  # with the leading one
    largest_exponent: int
    storage: str  # numpy type of the bits

    @property
    def roundoff(self) -> Real:
        return Real(2) ** -self.mantissa

    @property
    def smallest(self) -> Real:
        """The smallest subnormal number."""
        return Real(2) ** (2 - self.largest_exponent - self.mantissa)

    @property
    def largest(self) -> Real:
        """The largest finite number."""
        return Real(2) ** self.largest_exponent * (2 - 2 * self.roundoff)


FLOATS: Dict[str, Float] = {
    "f16": Float(16, 11, 15, "<u2"),
    "bf16": Float(16, 8, 127, "<u2"),
    "f32": Float(32, 24, 127, "<u4"),
    "f64": Float(64, 53, 1023, "<u8"),
}
STORAGE = {**{name: type.storage for name, type in FLOATS.items()}, "i1": "|u1", "i64": "<i8"}


def widest(*elements: str) -> str:
    """The accumulator type of gradients with operands of these types."""
    order = ["f32", "f64"]
    return order[max(order.index(e) if e in order else 0 for e in elements)]


def encode(values: np.ndarray, element: str) -> np.ndarray:
    """Rounds to the nearest number of type `element`; returns the bits."""
    values = np.asarray(values)
    shape, values = values.shape, np.atleast_1d(values)
    if element in ("i1", "i64"):
        return values.astype(STORAGE[element]).reshape(shape)
    if element != "bf16":
        return values.astype("<f" + str(FLOATS[element].bits // 8)).view(STORAGE[element]).reshape(shape)
    wide = values.astype("<f4")
    bits = wide.view("<u4").astype("<i8")
    rounded = ((bits + 0x7FFF + (bits >> 16 & 1)) >> 16).astype("<u2")
    return np.where(np.isnan(wide), np.uint16(0x7FC0), rounded).astype("<u2").reshape(shape)


def decode(bits: np.ndarray, element: str) -> np.ndarray:
    """The exact values of bits, in long double."""
    if element in ("i1", "i64"):
        return bits.astype(Real)
    flat = np.ascontiguousarray(bits).reshape(-1)
    if element == "bf16":
        values = (flat.astype("<u4") << 16).view("<f4")
    else:
        values = flat.view("<f" + str(FLOATS[element].bits // 8))
    return values.astype(Real).reshape(np.shape(bits))
