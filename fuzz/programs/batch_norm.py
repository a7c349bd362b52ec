"""What the ops of the dialect have in common: operands by name, channels, roundings, text.

The bound of a result is that of docs/numerics.md, G A with G = 4 u (4 + log2(M + 1)) for the roundings of the op, plus
the errors of the operands propagated through the exact formula (bounded.py). A is computed from the largest absolute
values that the errors of the operands allow. Two cases are added, which the documented bound excludes by its
conditions. Each product that underflows loses up to a smallest subnormal number, which later factors enlarge. A result
is undetermined if an intermediate value may leave the range of the accumulator type.
"""

from typing import List, NamedTuple, Sequence

import numpy as np

from bounded import SLACK, Bounded
from floats import FLOATS, Real, decode, encode, widest
from kinds import Kind, require
from values import Op, Type

PARAMETERS = ("scale", "offset", "mean", "variance", "inv_std", "shift")


class Operands(NamedTuple):
    """The operands that are present, by name."""

    names: List[str]
    items: Sequence

    def __contains__(self, name: str) -> bool:
        return name in self.names

    def __getitem__(self, name: str):
        return self.items[self.names.index(name)]


class Channel:
    """The channels of an op, and the errors of rounding."""

    def __init__(self, op: Op, types: Operands):
        shape, features = types["input"].shape, op.attrs["features"]
        self.shape, self.features = shape, features
        self.reduced = tuple(d for d in range(len(shape)) if d not in features)
        self.count = int(np.prod([shape[d] for d in self.reduced], dtype=object))
        floats = [t.element for t in types.items if t.element in FLOATS]
        self.element = widest(*floats)
        self.kind = FLOATS[self.element]
        self.is_unsafe = np.zeros([shape[d] for d in features], dtype=bool)

    def spread(self, value: Bounded) -> Bounded:
        return value.moved(self.spread_array)

    def spread_array(self, array: np.ndarray) -> np.ndarray:
        shape = [size if d in self.features else 1 for d, size in enumerate(self.shape)]
        return array.reshape(shape)

    def total(self, value: Bounded) -> Bounded:
        return value.sum(self.reduced)

    def epsilon(self, op: Op) -> Bounded:
        """Rounded to the type of the arithmetic, which may be 0."""
        return Bounded(decode(encode(np.asarray(op.attrs["epsilon"]), self.element), self.element))

    def inv_std(self, op: Op, values: Operands) -> Bounded:
        if "inv_std" in values:
            return values["inv_std"]
        return self.reciprocal_root(values["variance"] + self.epsilon(op))

    def reciprocal_root(self, value: Bounded) -> Bounded:
        return Bounded(np.asarray(Real(1))) / value.sqrt()

    def is_large(self, size: np.ndarray) -> np.ndarray:
        """Where a value may leave the range, although no operand is infinite."""
        return np.isfinite(size) & (size > self.kind.largest / 8)

    def watch(self, *sizes: np.ndarray) -> None:
        """Records channels in which one of these may leave the range."""
        for size in sizes:
            self.is_unsafe = self.is_unsafe | self.is_large(size)

    def watch_elements(self, size: np.ndarray) -> None:
        """Records channels in which an element of this may leave the range."""
        if size.size:
            self.watch(size.max(axis=self.reduced))

    def allowed(self, count) -> Real:
        return 4 * self.kind.roundoff * (4 + np.log2(Real(1) * (count + 1)))

    def finish(self, value: Bounded, terms: np.ndarray, underflow: np.ndarray, element: str, count,
               unsafe: np.ndarray) -> Bounded:
        """Adds the errors of rounding, then rounds to the type of the result."""
        error = value.error + SLACK * (self.allowed(count) * terms + 4 * underflow + 4 * self.kind.smallest)
        error = np.where(np.isfinite(value.value), error, value.error)
        # In a channel with an intermediate overflow, results may be NaN or infinite.
        error = np.where(unsafe, Real(np.inf), error)
        return Bounded(value.value, error).rounded(element)


class BatchNormKind(Kind):
    """attrs: names (of the operands), features; epsilon, statistics, elements (of the results) of most ops."""

    mnemonic = ""

    def named(self, op: Op, items: Sequence) -> Operands:
        return Operands(op.attrs["names"], items)

    def check(self, op: Op, types: Operands) -> Type:
        """The type of a value per channel."""
        features, data = op.attrs["features"], types["input"]
        require(features == sorted(set(features)) and features and features[-1] < data.rank, "feature_dims")
        if "grad_output" in types:
            require(types["grad_output"].shape == data.shape and types["grad_output"].element == data.element, "C2")
        require("mask" not in types or (types["mask"].shape, types["mask"].element) == (data.shape, "i1"), "mask")
        parameters = [types[n] for n in PARAMETERS if n in types]
        channel = parameters[0] if parameters else data.at(features)
        require(all(p.shape == data.at(features).shape and p.element == channel.element for p in parameters), "C3")
        floats = [t for n, t in zip(types.names, types.items) if n not in ("mask", "count")]
        require(all(t.element in FLOATS for t in floats), "types")
        require("inv_std" not in types or not op.attrs.get("epsilon"), "epsilon of an inv_std")
        return channel

    def write(self, writer, op, operands, results):
        named = self.named(op, operands)
        clauses = " ".join(f"{name}({named[name][0]} : {named[name][1]})" for name in named.names)
        attributes = [f"feature_dims = array<i64: {', '.join(map(str, op.attrs['features']))}>"]
        if op.attrs.get("epsilon"):
            attributes.append(f"epsilon = {op.attrs['epsilon']:.17e} : f64")
        if op.attrs.get("statistics") == "global":
            attributes.append("statistics = #bngrad.statistics<global>")
        defined = writer.fresh()
        multiple = f":{len(results)}" if len(results) > 1 else ""
        writer.line(f"{defined}{multiple} = bngrad.{self.mnemonic} {clauses} {{{', '.join(attributes)}}} : "
                    f"{', '.join(map(str, results))}")
        return [defined] if len(results) == 1 else [f"{defined}#{i}" for i in range(len(results))]
