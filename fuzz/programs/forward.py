"""The ops of the forward pass, evaluated from their formulas and bounded (docs/numerics.md, section 10).

Arrays of statistics keep the reduced dims, with size 1.
"""

import numpy as np

from batch_norm import BatchNormKind, Channel, Operands
from bounded import Bounded, times
from floats import Real, widest
from kinds import KINDS, require
from values import Op, Type


class Statistics:
    """Mean and variance of each channel with the errors of the input, and the terms of their bounds.

    With errors e of the input, the mean changes by at most the mean of e, and the variance by at most the mean of
    2 |x - m| e + e^2. An element may have another error at each of its uses, as a product may be contracted there.
    """

    def __init__(self, c: Channel, x: Bounded):
        def average(array: np.ndarray) -> np.ndarray:
            return array.sum(axis=c.reduced, keepdims=True) / c.count

        self.channel, roundoff, smallest = c, c.kind.roundoff, c.kind.smallest
        least = x.value.min(axis=c.reduced, keepdims=True)
        is_equal = (least == x.value.max(axis=c.reduced, keepdims=True)) & np.isfinite(least)
        self.is_constant = is_equal & (x.error.max(axis=c.reduced, keepdims=True) == 0)
        mean = np.where(is_equal, least, average(x.value))
        # A long double cannot hold the mean of numbers that are far from 0 against their distances.
        residual = np.where(is_equal, 0, average(x.value - mean))
        residual = np.where(np.isfinite(residual), residual, 0)
        mean_error = average(x.error)
        self.mean = Bounded(mean + residual, mean_error)
        self.centered = Bounded(x.value - mean - residual, np.where(self.is_constant, 0, x.error + mean_error))
        distance = np.abs(self.centered.value)
        self.variance = Bounded(average(self.centered.value**2), average(2 * times(distance, x.error) + x.error**2))
        self.watch_range(x)

        allowed = c.allowed(c.count)
        most = self.variance.magnitude()
        of_center = allowed * np.sqrt(self.mean.magnitude()**2 + most) + 2 * mean_error
        root = np.where(self.is_constant, 0, np.sqrt(most) + 2 * of_center)
        # Squares below the smallest number are lost.
        self.variance_terms = np.where(self.is_constant, 0, root**2 + smallest / allowed)
        self.of_mean_error = np.sqrt(self.variance_terms) + np.where(self.is_constant, 0,
                                                                     roundoff * self.mean.magnitude())
        self.mean_terms = root + roundoff * self.mean.magnitude() / allowed

    def watch_range(self, x: Bounded) -> None:
        """Watches the sums of the first stage, about the first element or about 0."""
        c, is_finite = self.channel, np.isfinite(x.value)
        high = np.where(is_finite, x.value + x.error, -np.inf).max(axis=c.reduced)
        low = np.where(is_finite, x.value - x.error, np.inf).min(axis=c.reduced)
        c.watch(c.count * np.maximum(high - low, 0))
        sizes = np.where(is_finite, x.magnitude(), 0).max(axis=c.reduced)
        c.watch(np.where(is_finite.all(axis=c.reduced), 0, c.count * sizes))

    def inv_std(self, epsilon: Bounded):
        """inv_std with the errors of the input, and the relative size of the bound; infinite: there is none."""
        c = self.channel
        total = self.variance + epsilon
        low = total.value - total.error
        known = (low > 0) & (c.allowed(c.count) * self.variance_terms <= low / 2)
        relative = np.where(known, 1 + self.variance_terms / low, np.inf)
        return c.reciprocal_root(total), np.where(self.is_constant, 1, relative)


class Training(BatchNormKind):
    """bngrad.batch_norm_training."""

    mnemonic = "batch_norm_training"

    def infer(self, op, types):
        types = self.named(op, types)
        channel, elements = self.check(op, types), op.attrs["elements"]
        return [types["input"].of(elements[0])] + [channel.of(element) for element in elements[1:]]

    def evaluate(self, op, types, values):
        types, values = self.named(op, types), self.named(op, values)
        c, elements = Channel(op, types), op.attrs["elements"]
        channels = c.is_unsafe.shape
        if c.count == 0:
            zero = Bounded(np.zeros(channels))
            root = c.reciprocal_root(zero + c.epsilon(op))
            inv_std = c.finish(root, root.value, Real(0), elements[3], 0, c.is_unsafe)
            return [Bounded(np.zeros(c.shape)), zero, zero, inv_std]
        s = Statistics(c, values["input"])
        results = [self.result(c, s.mean, s.mean_terms, elements[1])]
        squares = times(s.centered.magnitude(), s.centered.magnitude())
        c.watch(np.where(np.isfinite(squares), squares, 0).sum(axis=c.reduced))
        results.append(self.result(c, s.variance, s.variance_terms, elements[2]))
        inv_std, relative = s.inv_std(c.epsilon(op))
        results.append(self.result(c, inv_std, times(inv_std.magnitude(), relative), elements[3]))
        return [self.output(op, c, s, values, inv_std, relative)] + results

    def result(self, c: Channel, value: Bounded, terms: np.ndarray, element: str) -> Bounded:
        """A statistic, without the reduced dims."""
        shape = c.is_unsafe.shape
        return c.finish(value.moved(lambda a: a.reshape(shape)), terms.reshape(shape), Real(0), element, c.count,
                        c.is_unsafe)

    def output(self, op: Op, c: Channel, s: Statistics, values: Operands, inv_std: Bounded,
               relative: np.ndarray) -> Bounded:
        factor, offset = inv_std, Bounded(np.zeros(inv_std.shape))
        if "scale" in values:
            factor = c.spread(values["scale"]) * inv_std
        if "offset" in values:
            offset = c.spread(values["offset"])
        value = s.centered * factor + offset
        gain, distance = np.abs(factor.magnitude()), s.centered.magnitude()
        c.watch(gain.reshape(c.is_unsafe.shape))
        c.watch_elements(times(distance, gain) + offset.magnitude())
        terms = times(gain, times(distance, relative) + s.of_mean_error) + offset.magnitude()
        terms = np.where(s.is_constant, 0, terms)
        underflow = c.kind.smallest * (distance + gain + 2)
        unsafe = np.broadcast_to(c.spread_array(c.is_unsafe), c.shape)
        return c.finish(value, terms, underflow, op.attrs["elements"][0], c.count, unsafe)


class Inference(BatchNormKind):
    """bngrad.batch_norm_inference."""

    mnemonic = "batch_norm_inference"

    def infer(self, op, types):
        types = self.named(op, types)
        self.check(op, types)
        return [types["input"].of(op.attrs["elements"][0])]

    def evaluate(self, op, types, values):
        types, values = self.named(op, types), self.named(op, values)
        c = Channel(op, types)
        inv_std = c.inv_std(op, values)
        factor = c.spread(values["scale"] * inv_std if "scale" in values else inv_std)
        offset = c.spread(values["offset"]) if "offset" in values else Bounded(np.asarray(Real(0)))
        centered = values["input"] - c.spread(values["mean"])
        gain, distance = np.abs(factor.magnitude()), centered.magnitude()
        terms = times(distance, gain) + offset.magnitude()
        unsafe = c.is_large(distance) | c.is_large(gain) | c.is_large(terms)
        underflow = c.kind.smallest * (distance + 1)
        return [c.finish(centered * factor + offset, terms, underflow, op.attrs["elements"][0], 0, unsafe)]


class Moments(BatchNormKind):
    """bngrad.batch_norm_training_reduce."""

    mnemonic = "batch_norm_training_reduce"

    def infer(self, op, types):
        types = self.named(op, types)
        require("shift" in types or types.names == ["input"], "operands")
        channel = self.check(op, types)
        result = channel.of(widest(*(t.element for t in types.items)))
        return [result, result, Type((), "i64", ())]

    def evaluate(self, op, types, values):
        types, values = self.named(op, types), self.named(op, values)
        c = Channel(op, types)
        shifted = values["input"]
        if "shift" in values:
            shifted = shifted - c.spread(values["shift"])
        squares, results = shifted * shifted, []
        for terms, underflow in ((shifted, Real(0)), (squares, c.count * c.kind.smallest)):
            sizes = terms.magnitude()
            c.watch(np.where(np.isfinite(sizes), sizes, 0).sum(axis=c.reduced))
            results.append(c.finish(c.total(terms), sizes.sum(axis=c.reduced), underflow, c.element, c.count,
                                    c.is_unsafe))
        return results + [Bounded(np.asarray(Real(c.count)))]


KINDS.update({"training": Training(), "inference": Inference(), "moments": Moments()})
