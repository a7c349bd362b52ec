"""The data of every case and the reference for its results."""

import numpy

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
            for name in names + ("grad_input",):
                array = harness.allocate(longest, DTYPES[element_type])
                self.data[name, element_type] = array
        for name in names:
            for begin in range(0, longest, CHUNK):
                end = min(longest, begin + CHUNK)
                values = generator.uniform(-1, 1, end - begin).astype(numpy.float32)
                for (other, element_type), array in self.data.items():
                    if other == name:
                        array[begin:end] = from_f32(values, element_type)
        uniform = {"scale": (0.5, 1.5), "mean": (-0.5, 0.5), "variance": (0.5, 1.5)}
        for name, bounds in uniform.items():
            array = harness.allocate(channels, numpy.float32)
            array[:] = generator.uniform(*bounds, channels)
            self.data[name] = array
        for name in ("grad_scale", "grad_offset"):
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
        self.array("grad_input", case)[:] = nan
        self.array("grad_scale", case)[:] = numpy.nan
        self.array("grad_offset", case)[:] = numpy.nan


class Reference:
    """The gradient in float64; grad_input is kept in f32."""

    def __init__(self, store, case, variant="static"):
        self.case = case
        axis = case.layout == "nchw"
        # (outer, channels, inner) with the channel in the middle.
        if axis:
            self.shape = (case.sizes[0], case.channels, case.row)
        else:
            self.shape = (case.sizes[0] * case.row, case.channels, 1)
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

        scale, mean, variance = (
            store.array(name, case).astype(numpy.float64)
            for name in ("scale", "mean", "variance")
        )
        count = case.sizes[0] * case.row
        sums = numpy.zeros((4, case.channels))
        for begin, end in self._chunks():
            d, m, _ = part(begin, end)
            for i, terms in enumerate((d, d * m, abs(d), abs(d * m))):
                sums[i] += terms.sum(axis=(0, 2))
        r = 1 / numpy.sqrt(variance + EPSILON)
        self.grad_scale, self.grad_offset = sums[1] * r, sums[0]
        self.grad_scale_size, self.grad_offset_size = sums[3] * r, sums[2]
        self.grad_input = numpy.empty(self.shape, numpy.float32)
        a = (scale * r)[:, None]
        b = (-scale * r**3 * sums[1] / count)[:, None]
        k = (-scale * r * sums[0] / count)[:, None]
        self.grad_input_size = 0.0
        for begin, end in self._chunks():
            d, m, extra = part(begin, end)
            value = a * d + b * m + k
            if variant == "consumer":
                value += extra
            self.grad_input[begin:end] = value
            size = abs(a * d).max() + abs(b * m).max() + abs(k).max()
            self.grad_input_size = max(self.grad_input_size, size)

    def _chunks(self):
        step = max(1, CHUNK // (self.shape[1] * self.shape[2]))
        for begin in range(0, self.shape[0], step):
            yield begin, min(self.shape[0], begin + step)

    def error(self, store, factor):
        """The largest error of the results in `store`, relative to the bound.

        The bound is one rounding of the result and `factor` * 1e-6 of the sum
        of the terms' absolute values: loose enough for any order of summation
        in f32, tight enough for a wrong formula, channel or element.
        """
        case = self.case
        worst = 0.0
        for name, exact, size in (
            ("grad_scale", self.grad_scale, self.grad_scale_size),
            ("grad_offset", self.grad_offset, self.grad_offset_size),
        ):
            bound = 2.0**-24 * abs(exact) + factor * 1e-6 * size + 1e-30
            worst = _largest(worst, abs(store.array(name, case) - exact) / bound)
        result = store.array("grad_input", case).reshape(self.shape)
        for begin, end in self._chunks():
            exact = self.grad_input[begin:end]
            got = to_f32(result[begin:end], case.type)
            rounding = ROUNDING[case.type] + 2.0**-24
            bound = rounding * abs(exact) + factor * 1e-6 * self.grad_input_size
            worst = _largest(worst, abs(got - exact) / bound)
        return worst


def _largest(worst, ratios):
    largest = float(numpy.max(ratios))
    return numpy.inf if numpy.isnan(largest) else max(worst, largest)


def element_type_number(case):
    return TYPES[case.type][1]
