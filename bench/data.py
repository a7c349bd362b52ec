"""The data of every case and the reference for its results."""

import numpy

import passes
from cases import TYPES
from kernels import EPSILON

# Elements converted at a time, to bound memory.
CHUNK = 1 << 22

DTYPES = {"f32": numpy.float32, "bf16": numpy.uint16, "f16": numpy.float16}
ROUNDING = {"f32": 2.0**-24, "bf16": 2.0**-8, "f16": 2.0**-11}


def to_f32(array, element_type):
    """A copy as f32; bf16 is stored as its 16 bits."""
    if element_type == "bf16":
        return (array.astype(numpy.uint32) << 16).view(numpy.float32)
    return array.astype(numpy.float32)


def from_f32(array, element_type):
    """Rounded to nearest, ties to even; finite values only."""
    if element_type == "bf16":
        bits = array.astype(numpy.float32).view(numpy.uint32)
        return ((bits + 0x7FFF + ((bits >> 16) & 1)) >> 16).astype(numpy.uint16)
    return array.astype(DTYPES[element_type])


class Store:
    """Arrays as long as the longest case, shared by all cases."""

    def __init__(self, harness, selected):
        generator = numpy.random.default_rng(2022)
        longest = max(case.elements for case in selected)
        channels = max(case.channels for case in selected)
        self.data = {}
        names = ("grad_output", "input", "other")
        for element_type in sorted({case.type for case in selected} | {"bf16"}):
            for name in names + tuple({case.norm_pass.result for case in selected}):
                array = harness.allocate(longest, DTYPES[element_type])
                self.data[name, element_type] = array
        for name in names:
            for begin in range(0, longest, CHUNK):
                end = min(longest, begin + CHUNK)
                values = generator.uniform(-1, 1, end - begin).astype(numpy.float32)
                for (other, element_type), array in self.data.items():
                    if other == name:
                        array[begin:end] = from_f32(values, element_type)
        uniform = {"scale": (0.5, 1.5), "mean": (-0.5, 0.5), "variance": (0.5, 1.5), "offset": (-0.5, 0.5)}
        for name, bounds in uniform.items():
            array = harness.allocate(channels, numpy.float32)
            array[:] = generator.uniform(*bounds, channels)
            self.data[name] = array
        for name in {name for case in selected for name in case.norm_pass.channel_results}:
            self.data[name] = harness.allocate(channels, numpy.float32)

    def array(self, name, case, element_type=None):
        """The part of an array that `case` uses."""
        if name in self.data:
            return self.data[name][: case.channels]
        return self.data[name, element_type or case.type][: case.elements]

    def clear_results(self, case):
        """Fills the results with NaN, so that a missing write is an error."""
        nan = from_f32(numpy.zeros(1, numpy.float32), case.type)
        nan[:] = 0x7FC0 if case.type == "bf16" else numpy.nan
        self.array(case.norm_pass.result, case)[:] = nan
        for name in case.norm_pass.channel_results:
            self.array(name, case)[:] = numpy.nan


class Reference:
    """The results of a case in float64, the one with the sizes of the data in f32.

    A class for each pass fills `result` and `channel_results`, each with the size of its terms: the sum of their
    absolute values, for `result` the largest of all elements.
    """

    def __init__(self, case):
        self.case = case
        # (outer, channels, inner) with the channel in the middle.
        if case.layout == "nchw":
            self.shape = (case.sizes[0], case.channels, case.row)
        else:
            self.shape = (case.sizes[0] * case.row, case.channels, 1)
        self.count = case.sizes[0] * case.row
        self.result, self.size = numpy.empty(self.shape, numpy.float32), 0.0
        self.channel_results = {}

    def _chunks(self):
        step = max(1, CHUNK // (self.shape[1] * self.shape[2]))
        for begin in range(0, self.shape[0], step):
            yield begin, min(self.shape[0], begin + step)

    def _load(self, store, names):
        return (store.array(name, self.case).astype(numpy.float64) for name in names)

    def error(self, store, factor):
        """The largest error of the results in `store`, relative to the bound.

        The bound is one rounding of the result and `factor` * 1e-6 of the sum
        of the terms' absolute values: loose enough for any order of summation
        in f32, tight enough for a wrong formula, channel or element.
        """
        case = self.case
        worst = 0.0
        for name, (exact, size) in self.channel_results.items():
            bound = 2.0**-24 * abs(exact) + factor * 1e-6 * size + 1e-30
            worst = _largest(worst, abs(store.array(name, case) - exact) / bound)
        result = store.array(case.norm_pass.result, case).reshape(self.shape)
        for begin, end in self._chunks():
            exact = self.result[begin:end]
            got = to_f32(result[begin:end], case.type)
            rounding = ROUNDING[case.type] + 2.0**-24
            bound = rounding * abs(exact) + factor * 1e-6 * self.size
            worst = _largest(worst, abs(got - exact) / bound)
        return worst


class Backward(Reference):
    """The gradient, of one of the variants of kernels.py."""

    def __init__(self, store, case, variant="static"):
        super().__init__(case)
        x = store.array("input", case).reshape(self.shape)
        dy_type = "bf16" if variant == "cast" else case.type
        dy = store.array("grad_output", case, dy_type).reshape(self.shape)
        other = store.array("other", case).reshape(self.shape)

        def part(begin, end):
            wide = to_f32(dy[begin:end], dy_type).astype(numpy.float64)
            extra = to_f32(other[begin:end], case.type)
            if variant == "relu":
                wide = numpy.where(extra > 0, wide, 0)
            elif variant == "residual":
                wide += extra
            return wide, to_f32(x[begin:end], case.type) - mean[:, None], extra

        scale, mean, variance = self._load(store, passes.BACKWARD.parameters)
        sums = numpy.zeros((4, case.channels))
        for begin, end in self._chunks():
            d, m, _ = part(begin, end)
            for i, terms in enumerate((d, d * m, abs(d), abs(d * m))):
                sums[i] += terms.sum(axis=(0, 2))
        r = 1 / numpy.sqrt(variance + EPSILON)
        self.channel_results = {"grad_scale": (sums[1] * r, sums[3] * r), "grad_offset": (sums[0], sums[2])}
        a = (scale * r)[:, None]
        b = (-scale * r**3 * sums[1] / self.count)[:, None]
        k = (-scale * r * sums[0] / self.count)[:, None]
        for begin, end in self._chunks():
            d, m, extra = part(begin, end)
            value = a * d + b * m + k
            if variant == "consumer":
                value += extra
            self.result[begin:end] = value
            size = abs(a * d).max() + abs(b * m).max() + abs(k).max()
            self.size = max(self.size, size)


class Forward(Reference):
    """The forward pass in training."""

    def __init__(self, store, case):
        super().__init__(case)
        x = store.array("input", case).reshape(self.shape)
        scale, offset = self._load(store, passes.FORWARD.parameters)

        def part(begin, end):
            return to_f32(x[begin:end], case.type).astype(numpy.float64)

        def add(term):
            return sum(term(part(begin, end)).sum(axis=(0, 2)) for begin, end in self._chunks()) / self.count

        mean = add(lambda values: values)
        variance = add(lambda values: (values - mean[:, None]) ** 2)
        r = 1 / numpy.sqrt(variance + EPSILON)
        self.channel_results = {"batch_mean": (mean, add(abs)), "inv_std": (r, r)}
        for begin, end in self._chunks():
            term = (scale * r)[:, None] * (part(begin, end) - mean[:, None])
            self.result[begin:end] = term + offset[:, None]
            self.size = max(self.size, abs(term).max() + abs(offset).max())


def find_reference(store, case):
    """The reference for the pass of `case`."""
    return {"backward": Backward, "forward": Forward}[case.norm_pass.name](store, case)


def _largest(worst, ratios):
    largest = float(numpy.max(ratios))
    return numpy.inf if numpy.isnan(largest) else max(worst, largest)


def element_type_number(case):
    return TYPES[case.type][1]
