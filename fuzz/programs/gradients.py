"""The ops of the dialect, evaluated from their formulas and bounded.

The bound of a result is that of docs/numerics.md, 4 u (4 + log2(M + 1)) A for
the roundings of the op, plus the errors of the operands propagated through the
exact formula (bounded.py). A is computed from the largest absolute values that
the errors of the operands allow. Two cases are added, which the documented
bound excludes by its conditions. Each product that underflows loses up to a
smallest subnormal number, which later factors enlarge. A result is
undetermined if an intermediate value may leave the range of the accumulator
type.
"""

from typing import List, NamedTuple, Optional, Sequence

import numpy as np

from bounded import SLACK, Bounded, select, times
from floats import FLOATS, Real, widest
from kinds import KINDS, Kind, require
from values import Op, Type


class Operands(NamedTuple):
    """The operands that are present, by name."""

    names: List[str]
    items: Sequence

    def __contains__(self, name: str) -> bool:
        return name in self.names

    def __getitem__(self, name: str):
        return self.items[self.names.index(name)]


class Channel:
    """The parts of the formulas: exact values with the operands' errors, and the errors of rounding."""

    def __init__(self, op: Op, types: Operands, values: Operands):
        shape, features = types["input"].shape, op.attrs["features"]
        self.shape, self.features = shape, features
        self.reduced = tuple(d for d in range(len(shape)) if d not in features)
        self.count = int(np.prod([shape[d] for d in self.reduced], dtype=object))
        floats = [t.element for t in types.items if t.element in FLOATS]
        self.element = widest(*floats)
        self.kind = FLOATS[self.element]
        dy = values["grad_output"]
        if "mask" in values:
            dy = select(values["mask"], dy, Bounded(np.zeros(shape)))
        self.dy = dy
        self.centered = values["input"] - self.spread(values["mean"]) if "mean" in values else None
        self.is_unsafe = np.zeros([shape[d] for d in features], dtype=bool)
        if self.centered is not None and self.centered.value.size:
            self.watch(self.centered.magnitude().max(axis=self.reduced))

    def spread(self, value: Bounded) -> Bounded:
        shape = [size if d in self.features else 1 for d, size in enumerate(self.shape)]
        return value.moved(lambda a: a.reshape(shape))

    def total(self, value: Bounded) -> Bounded:
        return value.sum(self.reduced)

    def spread_array(self, array: np.ndarray) -> np.ndarray:
        shape = [size if d in self.features else 1 for d, size in enumerate(self.shape)]
        return array.reshape(shape)

    def inv_std(self, op: Op, values: Operands) -> Bounded:
        if "inv_std" in values:
            return values["inv_std"]
        epsilon = Bounded(np.asarray(Real(op.attrs["epsilon"])))
        root = (values["variance"] + epsilon).sqrt()
        return Bounded(np.asarray(Real(1))) / root

    def watch(self, *sizes: np.ndarray) -> None:
        """Records channels in which one of these may leave the range, although no operand is infinite."""
        for size in sizes:
            over = np.isfinite(size) & (size > self.kind.largest / 8)
            self.is_unsafe = self.is_unsafe | over

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


def sums(c: Channel, inv_std: Optional[Bounded] = None):
    """sum_dy and sum_dy_xmu, their sums of absolute values, and the error of underflow in the second."""
    product = c.dy * c.centered
    sizes = c.dy.magnitude(), times(c.dy.magnitude(), c.centered.magnitude())
    totals = [size.sum(axis=c.reduced) for size in sizes]
    # Also next to infinities: an overflow of the other sign would give NaN.
    c.watch(*(np.where(np.isfinite(size), size, Real(0)).sum(axis=c.reduced) for size in sizes))
    sum_dy_xmu = c.total(product)
    if inv_std is not None:
        # If 1/sigma is infinite, the sign of the sum, or whether it is 0, must not
        # depend on rounding.
        rounding = SLACK * c.allowed(c.count) * totals[1]
        sum_dy_xmu = Bounded(sum_dy_xmu.value, np.where(np.isfinite(inv_std.value), sum_dy_xmu.error,
                                                        sum_dy_xmu.error + rounding))
    return c.total(c.dy), sum_dy_xmu, totals[0], totals[1], c.count * c.kind.smallest


def grad_input(c: Channel, gain: Bounded, inv_std: Bounded, given, count: Bounded, element: str) -> Bounded:
    """Computed from the sums in `given`, or without sums for global statistics."""
    factor = gain * inv_std
    sizes = np.abs(factor.magnitude())
    value, terms, tiny = c.dy, c.dy.magnitude(), np.zeros(c.shape, dtype=Real)
    if given is not None:
        sum_dy, sum_dy_xmu, all_dy, all_dy_xmu, underflow = given
        number = count.value
        mean_dy, slope = sum_dy / count, sum_dy_xmu / count * inv_std * inv_std
        r, smallest = inv_std.magnitude(), c.kind.smallest
        steepness = times(times(all_dy_xmu / number, r), r)
        c.watch(times(all_dy_xmu / number, r), steepness, all_dy / number)
        value = value - c.spread(mean_dy) - c.centered * c.spread(slope)
        third = times(c.centered.magnitude(), c.spread_array(steepness))
        c.watch(third.max(axis=c.reduced) if third.size else np.zeros_like(r))
        terms = terms + c.spread_array(all_dy / number) + third
        c.watch(terms.max(axis=c.reduced) if terms.size else np.zeros_like(r))
        lost = times((times(underflow / number + smallest, r) + smallest), r) + smallest
        tiny = smallest * 2 + times(c.centered.magnitude(), c.spread_array(lost))
    # s * r may overflow or lose digits.
    c.watch(sizes)
    value = c.spread(factor) * value
    underflow = times(c.spread_array(sizes), tiny) + c.kind.smallest * (terms + 1)
    terms = times(terms, c.spread_array(sizes))
    unsafe = np.broadcast_to(c.spread_array(c.is_unsafe), c.shape)
    most = count.value if given is not None else c.count
    return c.finish(value, terms, underflow, element, np.asarray(most).reshape(()), unsafe)


class GradientKind(Kind):
    """attrs: names (of the operands), features, epsilon, statistics, elements (of the results)."""

    def named(self, op: Op, items: Sequence) -> Operands:
        return Operands(op.attrs["names"], items)

    def check(self, op: Op, types: Operands) -> Type:
        features, data = op.attrs["features"], types["input"]
        require(features == sorted(set(features)) and features and features[-1] < data.rank, "feature_dims")
        require(types["grad_output"].shape == data.shape and types["grad_output"].element == data.element, "C2")
        require("mask" not in types or (types["mask"].shape, types["mask"].element) == (data.shape, "i1"), "mask")
        channels = tuple(data.shape[d] for d in features)
        parameters = [types[n] for n in ("scale", "mean", "variance", "inv_std") if n in types]
        require(all(p.shape == channels and p.element == parameters[0].element for p in parameters), "C3")
        floats = [t for n, t in zip(types.names, types.items) if n not in ("mask", "count")]
        require(all(t.element in FLOATS for t in floats), "types")
        return parameters[0]

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


class Gradient(GradientKind):
    mnemonic = "batch_norm_backward"

    def infer(self, op, types):
        types = self.named(op, types)
        parameter = self.check(op, types)
        require("variance" in types or not op.attrs["epsilon"], "C5")
        elements = op.attrs["elements"]
        return [types["input"].of(elements[0]), parameter.of(elements[1]), parameter.of(elements[2])]

    def evaluate(self, op, types, values):
        types, values = self.named(op, types), self.named(op, values)
        c = Channel(op, types, values)
        elements, is_batch = op.attrs["elements"], op.attrs["statistics"] == "batch"
        inv_std = c.inv_std(op, values)
        if c.count == 0:
            zero = Bounded(np.zeros([c.shape[d] for d in c.features]))
            return [Bounded(np.zeros(c.shape)), zero, zero]
        given = sums(c, inv_std)
        sum_dy, sum_dy_xmu, all_dy, all_dy_xmu, underflow = given
        r = inv_std.magnitude()
        c.watch(r)
        unsafe = c.is_unsafe.copy()
        grad_offset = c.finish(sum_dy, all_dy, Real(0), elements[2], c.count, unsafe)
        value = sum_dy_xmu * inv_std
        terms = times(all_dy_xmu, r)
        over = unsafe | (np.isfinite(terms) & (terms > c.kind.largest / 8))
        grad_scale = c.finish(value, terms, times(r, underflow), elements[1], c.count, over)
        gain = values["scale"] if "scale" in values else Bounded(np.ones(r.shape))
        if not is_batch:
            c.is_unsafe = np.zeros_like(c.is_unsafe)
        count = Bounded(np.asarray(Real(c.count)))
        return [grad_input(c, gain, inv_std, given if is_batch else None, count, elements[0]), grad_scale, grad_offset]


class Sums(GradientKind):
    """bngrad.batch_norm_backward_reduce."""

    mnemonic = "batch_norm_backward_reduce"

    def infer(self, op, types):
        types = self.named(op, types)
        parameter = self.check(op, types)
        element = widest(types["input"].element, parameter.element)
        return [Type((2,) + parameter.shape, element, (False,) + parameter.dynamic), Type((), "i64", ())]

    def evaluate(self, op, types, values):
        types, values = self.named(op, types), self.named(op, values)
        c = Channel(op, types, values)
        sum_dy, sum_dy_xmu, all_dy, all_dy_xmu, underflow = sums(c)
        first = c.finish(sum_dy, all_dy, Real(0), c.element, c.count, c.is_unsafe)
        second = c.finish(sum_dy_xmu, all_dy_xmu, underflow, c.element, c.count, c.is_unsafe)
        both = Bounded(np.stack([first.value, second.value]), np.stack([first.error, second.error]))
        return [both, Bounded(np.asarray(Real(c.count)))]


class Element(GradientKind):
    """bngrad.batch_norm_backward_elemt. attrs: element of the result as elements[0]."""

    mnemonic = "batch_norm_backward_elemt"

    def infer(self, op, types):
        types = self.named(op, types)
        parameter = self.check(op, types)
        require("variance" in types or not op.attrs["epsilon"], "C5")
        require("sums" not in types or types["sums"].shape == (2,) + parameter.shape, "C6")
        require("count" not in types or "sums" in types, "C7")
        return [types["input"].of(op.attrs["elements"][0])]

    def evaluate(self, op, types, values):
        types, values = self.named(op, types), self.named(op, values)
        c = Channel(op, types, values)
        if 0 in c.shape:
            return [Bounded(np.zeros(c.shape))]
        inv_std = c.inv_std(op, values)
        c.watch(inv_std.magnitude())
        gain = values["scale"] if "scale" in values else Bounded(np.ones(inv_std.shape))
        given: Optional[Sequence] = None
        count = values["count"] if "count" in values else Bounded(np.asarray(Real(c.count)))
        if "sums" in values:
            rows = [values["sums"].moved(lambda a, i=i: a[i]) for i in range(2)]
            given = rows[0], rows[1], rows[0].magnitude(), rows[1].magnitude(), Real(0)
        return [grad_input(c, gain, inv_std, given, count, op.attrs["elements"][0])]


KINDS.update({"gradient": Gradient(), "sums": Sums(), "element": Element()})
