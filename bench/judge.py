"""Whether limits are kept, as far as the noise of the measurements allows.

A limit is compared with the interval in which the median of a ratio lies with a
probability of 95 %. It is *kept* if the whole interval is within the limit,
*broken* if none of it is, and otherwise *not decided*; then more rounds are
measured. `python bench/judge.py --self-test` checks this on simulated noise.
"""

import dataclasses
import sys
import zlib

import numpy

KEPT, BROKEN, UNDECIDED = "kept", "broken", "not decided"
LEVEL = 0.95
RESAMPLES = 2000
# Share of limits that may stay undecided.
MOST_UNDECIDED = 0.05
# Times that differ by less are equal.
TIE = 0.02


@dataclasses.dataclass(frozen=True)
class Limit:
    """An upper limit of the time of `first` over that of `second`."""

    name: str
    first: str
    second: str
    most: float


@dataclasses.dataclass(frozen=True)
class Verdict:
    """A limit, the median of the ratio, its interval, and the state."""

    name: str
    most: float
    value: float
    low: float
    high: float
    state: str

    @property
    def text(self):
        return (f"{self.name}: {self.value:.2f} ({self.low:.2f} to {self.high:.2f}),"
                f" limit {self.most:.2f}, {self.state}")


def find_median(ratios, axis=None):
    """The ratio of two contenders: the median of the ratios of the rounds. Of an even number, it is the geometric mean
    of the middle two, so that the reciprocal is the ratio of the contenders the other way round."""
    return numpy.exp(numpy.median(numpy.log(ratios), axis=axis))


def _draw_medians(samples, generator):
    """Medians of `samples` drawn again with replacement, RESAMPLES times."""
    samples = numpy.asarray(samples, float)
    picked = generator.integers(0, len(samples), (RESAMPLES, len(samples)))
    return find_median(samples[picked], axis=1)


def _find_bounds(drawn):
    tail = (1 - LEVEL) / 2
    low, high = numpy.quantile(drawn, (tail, 1 - tail))
    return float(low), float(high)


def _make_generator(key):
    """The same samples with the same key give the same bounds."""
    return numpy.random.default_rng(zlib.crc32(key.encode()))


def find_interval(samples, key=""):
    """The median of `samples`, and the bounds of its interval by the bootstrap."""
    return float(find_median(samples)), *_find_bounds(_draw_medians(samples, _make_generator(key)))


def judge(limit, samples):
    """The verdict of `limit` on the ratios of the rounds, at least one."""
    value, low, high = find_interval(samples, limit.name)
    if len(samples) < 2:
        return Verdict(limit.name, limit.most, value, low, high, UNDECIDED)
    return _decide(limit, value, low, high)


def _decide(limit, value, low, high):
    state = BROKEN if low > limit.most else KEPT if high <= limit.most else UNDECIDED
    return Verdict(limit.name, limit.most, value, low, high, state)


def judge_mean(limit, samples_of_cases):
    """The verdict on the geometric mean of the medians of several cases."""
    generator = _make_generator(limit.name)
    drawn = [numpy.log(_draw_medians(samples, generator)) for samples in samples_of_cases]
    value = numpy.exp(numpy.mean([numpy.log(find_median(samples)) for samples in samples_of_cases]))
    return _decide(limit, float(value), *_find_bounds(numpy.exp(numpy.mean(drawn, axis=0))))


def count_states(verdicts):
    """The number of verdicts by state."""
    return {state: sum(verdict.state == state for verdict in verdicts)
            for state in (KEPT, BROKEN, UNDECIDED)}


def is_kept(verdicts):
    """Whether `--assert` succeeds."""
    counts = count_states(verdicts)
    return not counts[BROKEN] and counts[UNDECIDED] <= MOST_UNDECIDED * len(verdicts)


def _simulate(generator, ratio, noise, most_rounds, limit, batch=15):
    """The state of a kernel that takes `ratio` of the limit's second one, in a
    memory that is now and then much slower for both."""
    samples = []
    while True:
        slow = numpy.where(generator.random(batch) < 0.2, 1.3, 1.0)
        first = ratio * slow * numpy.exp(noise * generator.standard_normal(batch))
        second = slow * numpy.exp(noise * generator.standard_normal(batch))
        samples += list(first / second)
        state = judge(limit, samples).state
        if state != UNDECIDED or len(samples) >= most_rounds:
            return state


def _self_test():
    """Equal kernels are not found slower, and those that are 7 % slower are."""
    generator = numpy.random.default_rng(7)
    limit = Limit("simulated", "", "", 1 + TIE)
    failures = 0
    for noise in (0.005, 0.02, 0.04):
        for ratio, expected, wrong in ((1.0, KEPT, BROKEN), (1.07, BROKEN, KEPT)):
            states = [_simulate(generator, ratio, noise, 60, limit) for _ in range(200)]
            mistakes, found = states.count(wrong), states.count(expected)
            is_right = mistakes == 0 and (found >= 190 or noise > 0.02)
            failures += not is_right
            print(f"noise {noise}, ratio {ratio}: {expected} in {found} of 200 runs, {wrong} in {mistakes}"
                  + ("" if is_right else ", FAILED"))
    print(f"self-test: {failures} failed")
    return 1 if failures else 0


if __name__ == "__main__":
    if sys.argv[1:] != ["--self-test"]:
        sys.exit("bngrad: error: expected --self-test")
    sys.exit(_self_test())
