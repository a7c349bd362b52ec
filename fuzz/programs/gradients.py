"""The ops of the gradient, evaluated from their formulas and bounded."""

from typing import Optional, Sequence

import numpy as np

from batch_norm import BatchNormKind, Channel, Operands
from bounded import SLACK, Bounded, select, times
from floats import Real, widest
from kinds import KINDS, require
from values import Op, Type


class GradientChannel(Channel):
    """The parts of the formulas: exact values with the operands' errors."""

    def __init__(self, op: Op, types: Operands, values: Operands):
        super().__init__(op, types)
        dy = values["grad_output"]
        if "mask" in values:
            dy = select(values["mask"], dy, Bounded(np.zeros(self.shape)))
        self.dy = dy
        self.centered = values["input"] - self.spread(values["mean"])
        self.watch_elements(self.centered.magnitude())


def sums(c: GradientChannel, inv_std: Optional[Bounded] = None):
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


def grad_input(c: GradientChannel, gain: Bounded, inv_std: Bounded, given, count: Bounded, element: str) -> Bounded:
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
        c.watch_elements(third)
        terms = terms + c.spread_array(all_dy / number) + third
        c.watch_elements(terms)
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


class Gradient(BatchNormKind):
    mnemonic = "batch_norm_backward"

    def infer(self, op, types):
        types = self.named(op, types)
        parameter = self.check(op, types)
        elements = op.attrs["elements"]
        return [types["input"].of(elements[0]), parameter.of(elements[1]), parameter.of(elements[2])]

    def evaluate(self, op, types, values):
        types, values = self.named(op, types), self.named(op, values)
        c = GradientChannel(op, types, values)
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


class Sums(BatchNormKind):
    """bngrad.batch_norm_backward_reduce."""

    mnemonic = "batch_norm_backward_reduce"

    def infer(self, op, types):
        types = self.named(op, types)
        parameter = self.check(op, types)
        element = widest(types["input"].element, parameter.element)
        return [Type((2,) + parameter.shape, element, (False,) + parameter.dynamic), Type((), "i64", ())]

    def evaluate(self, op, types, values):
        types, values = self.named(op, types), self.named(op, values)
        c = GradientChannel(op, types, values)
        sum_dy, sum_dy_xmu, all_dy, all_dy_xmu, underflow = sums(c)
        first = c.finish(sum_dy, all_dy, Real(0), c.element, c.count, c.is_unsafe)
        second = c.finish(sum_dy_xmu, all_dy_xmu, underflow, c.element, c.count, c.is_unsafe)
        both = Bounded(np.stack([first.value, second.value]), np.stack([first.error, second.error]))
        return [both, Bounded(np.asarray(Real(c.count)))]


class Element(BatchNormKind):
    """bngrad.batch_norm_backward_elemt. attrs: element of the result as elements[0]."""

    mnemonic = "batch_norm_backward_elemt"

    def infer(self, op, types):
        types = self.named(op, types)
        parameter = self.check(op, types)
        require("sums" not in types or types["sums"].shape == (2,) + parameter.shape, "C6")
        require("count" not in types or "sums" in types, "C7")
        return [types["input"].of(op.attrs["elements"][0])]

    def evaluate(self, op, types, values):
        types, values = self.named(op, types), self.named(op, values)
        c = GradientChannel(op, types, values)
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
