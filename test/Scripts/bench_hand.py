"""bench_hand.py BENCH FOLDER ISA: the promises of the exact form of the hand-written kernel, for an instruction set.

Results must be within the bound of docs/numerics.md, also for sums of equal numbers, bitwise
equal for any number of threads, and rounded to subnormal bf16 numbers and to NaN. The bare form must fail
the first of these, or the data would prove nothing, and where instructions round, the third, and otherwise the last.
"""

import ctypes
import functools
import sys

sys.path.insert(0, sys.argv[1])

import data
import instruction_sets
import native
import numpy
import peers

EPSILON, LARGE, SMALL = 1e-5, 1 << 40, 0
# Long rows, few channels, short rows, and row-major with and without folded rows.
SHAPES = [(9, 8, 45, 23), (34, 3, 16, 17), (50, 37, 7, 7), (2, 3, 4, 4), (1, 2, 150, 150)]
ROW_MAJOR = SHAPES + [(5000, 160), (2, 1030), (50000, 5), (40000, 64)]
CASES = [(shape, 0) for shape in SHAPES] + [(shape, 1) for shape in ROW_MAJOR]
UNIT = {"f32": 2.0**-24, "bf16": 2.0**-8, "f16": 2.0**-11}
SMALLEST = {"f32": 2.0**-149, "bf16": 2.0**-133, "f16": 2.0**-24}


class Problem:
    """One gradient with its operands and its exact results in float64."""

    def __init__(self, shape, is_last, element_type, dy, x, scale):
        generator = numpy.random.default_rng(7)
        self.shape, self.is_last, self.type = shape, is_last, element_type
        channels = shape[1]
        self.dy, self.x = data.from_f32(dy, element_type), data.from_f32(x, element_type)
        self.scale = (scale * generator.uniform(0.5, 1.5, channels)).astype(numpy.float32)
        self.mean = generator.uniform(-0.5, 0.5, channels).astype(numpy.float32)
        self.variance = generator.uniform(0.5, 1.5, channels).astype(numpy.float32)
        self.rows = (-1, channels, 1) if is_last else (shape[0], channels, -1)

    def run(self, library, variant, threads, cache=LARGE):
        """The three results of a variant."""
        results = [numpy.full_like(self.dy, 0x7FFF if self.type == "bf16" else numpy.nan)]
        results += [numpy.full_like(self.mean, numpy.nan) for _ in range(2)]
        operands = [self.dy, self.x, self.scale, self.mean, self.variance]
        spatial = ((1, 1) + self.shape[2:])[-2:]
        problem = native.Problem(
            len(self.shape), self.is_last, list(UNIT).index(self.type), threads, *self.shape[:2], *spatial,
            cache, EPSILON, *[array.ctypes.data for array in operands + results])
        state = library.create(problem, variant)[0]
        library.library.peerRun(state)
        library.library.peerDestroy(state)
        return results

    @functools.cached_property
    def bounds(self):
        """The type, exact values and bounds of each result: docs/numerics.md, section 2."""
        dy, x = (data.to_f32(array, self.type).astype(float).reshape(self.rows) for array in (self.dy, self.x))
        r = 1 / numpy.sqrt(self.variance.astype(float) + EPSILON)
        centered = x - self.mean.astype(float)[:, None]
        count = dy.shape[0] * dy.shape[2]

        def gradients(d, c, sign):
            offset, product = d.sum((0, 2)), (d * c).sum((0, 2))
            through = (offset / count)[:, None] + c * (product / count * r * r)[:, None]
            return (self.scale * r)[:, None] * (d + sign * through), product * r, offset

        exact, terms = gradients(dy, centered, -1), gradients(abs(dy), abs(centered), 1)
        kinds = [self.type, "f32", "f32"]
        return [(kind, value, UNIT[kind] * abs(value) + 4 * 2.0**-24 * (4 + numpy.log2(count + 1)) * size + SMALLEST[kind])
                for kind, value, size in zip(kinds, exact, terms)]

    def find_error(self, results):
        """The greatest error over its bound."""
        worst = 0
        for result, (kind, value, bound) in zip(results, self.bounds):
            errors = abs(data.to_f32(result, kind).astype(float).reshape(value.shape) - value) / bound
            worst = max(worst, numpy.inf if numpy.isnan(errors).any() else errors.max())
        return worst


def make_problems():
    """(kind, problem) for each case and type; `kind` names the data."""
    generator = numpy.random.default_rng(5)
    for shape, is_last in CASES:
        size = int(numpy.prod(shape))
        for element_type in UNIT:
            random = [generator.uniform(-1, 1, size).astype(numpy.float32) for _ in range(2)]
            equal = [numpy.full(size, value, numpy.float32) for value in (0.1, 0.7)]
            yield "random", Problem(shape, is_last, element_type, *random, 1)
            yield "equal", Problem(shape, is_last, element_type, *equal, 1)
            if element_type == "bf16":
                yield "subnormal", Problem(shape, is_last, element_type, *random, 2.0**-126)
    # Thousands of chains in each lane, whose rounding errors the sum must not lose.
    shape = (1, 1, 2048, 2048)
    yield "equal", Problem(shape, 0, "f32", *[numpy.full(2048 * 2048, v, numpy.float32) for v in (0.1, 0.7)], 1)


def has_nans(library, variant):
    """Whether a NaN of f32 whose last bits are set is one in bf16."""
    found = []
    for shape, is_last in CASES:
        ones = numpy.ones(int(numpy.prod(shape)), numpy.float32)
        problem = Problem(shape, is_last, "bf16", ones, ones, 1)
        problem.mean[0] = numpy.array(0x7FFFFFFF, numpy.uint32).view(numpy.float32)
        result = data.to_f32(problem.run(library, variant, 1)[0], "bf16").reshape(problem.rows)
        found.append(numpy.isnan(result[:, 0]).all() and not numpy.isnan(result[:, 1:]).any())
    return all(found)


def main():
    instruction_sets.force(sys.argv[3])
    hand = peers.hand(sys.argv[2])
    if hand.absent:
        sys.exit(hand.absent)
    exact, bare = hand.variants["hand"], hand.variants["hand-bare"]
    worst, of_bare, differing = {}, {}, 0
    for kind, problem in make_problems():
        results = problem.run(hand, exact, 1)
        worst[kind] = max(worst.get(kind, 0), problem.find_error(results))
        of_bare[kind] = max(of_bare.get(kind, 0), problem.find_error(problem.run(hand, bare, 1)))
        for threads, cache in ((2, LARGE), (3, SMALL), (40, LARGE)):
            others = problem.run(hand, exact, threads, cache)
            differing += any(a.tobytes() != b.tobytes() for a, b in zip(results, others))
    for kind, error in worst.items():
        print(f"{kind}: exact {'within' if error <= 1 else f'{error:.3g} times'} the bound,"
              f" bare {'within' if of_bare[kind] <= 1 else 'not within'}")
    print(*(f"NaN: {name} {'kept' if has_nans(hand, variant) else 'lost'}" for name, variant in
            (("exact", exact), ("bare", bare))), sep=", ")
    print(f"{differing} differ by the number of threads")


main()
