"""bench_limits.py BENCH: the verdicts of the benchmark on simulated rounds."""

import dataclasses
import sys

sys.path.insert(0, sys.argv[1])

import cases
import judge
import limits
import measure
import native
import numpy
import report

CASE = cases.Case((32, 64, 56, 56), "nhwc", "f32")
# The true time of each contender.
TIMES = {"bngrad": 1.0, "bngrad-twin": 1.0, "bngrad-dynamic": 1.01, "bngrad-strided": 1.02, "floor": 0.96,
         "hand": 1.0, "hand-bare": 0.9, "torch": 1.5, "onednn": 1.3, "onednn-debian": 1.2}


def simulate(noise=0.01, rounds=30, **slower):
    """The document of a run of three cases, of which one has `slower` contenders."""
    generator = numpy.random.default_rng(5)
    entries, of_hand = [], []
    for number in range(3):
        times = TIMES | {name.replace("_", "-"): TIMES[name.replace("_", "-")] * factor
                         for name, factor in slower.items() if number == 0}
        samples = {name: time * numpy.exp(noise * generator.standard_normal(rounds)) for name, time in times.items()}
        verdicts = [judge.judge(limit, samples[limit.first] / samples[limit.second])
                    for limit in limits.find(CASE) + limits.TWINS]
        of_hand.append(samples["bngrad"] / samples["hand"])
        entries.append({"name": f"case {number}", "failures": [],
                        "verdicts": [dataclasses.asdict(verdict) for verdict in verdicts]})
    mean = judge.judge_mean(judge.Limit("hand, geometric mean", "bngrad", "hand", 1.01), of_hand)
    return {"cases": entries, "fused": [], "unmeasured": [], "mean": [dataclasses.asdict(mean)], "failures": []}


def show(title, document):
    lines, is_kept = report.summarize_limits(document)
    print(f"{title}: {'kept' if is_kept else 'not kept'}")
    print("\n".join("  " + line for line in lines))


show("all kept", simulate())
show("10 % slower", simulate(bngrad=1.18, bngrad_twin=1.18, bngrad_dynamic=1.18, bngrad_strided=1.18, hand=1.07))
show("a peer is faster", simulate(torch=0.6))
show("noise", simulate(noise=0.3))
show("the twin is slower", simulate(bngrad_twin=1.1))
show("the twin is faster", simulate(bngrad_twin=0.9))
wrong = simulate()
wrong["failures"] = limits.find_failures(CASE, {"bngrad": {"warm_us": 3.0}, "bngrad-dynamic": {"error": "wrong result"}})
wrong["failures"] += limits.find_failures(cases.Case(cases.TINY, "nhwc", "f32"), {"bngrad": {"warm_us": 3.0}})
wrong["unmeasured"] = ["case 0, torch"]
show("wrong", wrong)


class Machine:
    """Instead of the harness: rounds with noise, and none that is disturbed."""

    def __init__(self, noise):
        self.noise, self.generator, self.rounds = noise, numpy.random.default_rng(7), 0

    def round(self, runners, order):
        self.rounds += 1
        return [native.Sample(1.0, numpy.exp(self.noise * self.generator.standard_normal()), 1e9, 1e9, 0)
                for _ in runners]


def count_rounds(noise, limit):
    """Rounds until a limit of two equal contenders is decided, of 10 at first."""
    measure._calls = lambda contender: 1
    contenders = [measure.Contender(name, run=1) for name in ("bngrad", "hand")]
    machine = Machine(noise)
    measure.run_rounds(machine, contenders, 10,
                       lambda: judge.judge(limit, measure.find_ratios(*contenders)).state != judge.UNDECIDED)
    return machine.rounds


for noise in (0.001, 0.1, 1.0):
    print(f"noise {noise}: {count_rounds(noise, judge.Limit('hand', 'bngrad', 'hand', 1.05))} rounds")


def make_contender(name, *times):
    contender = measure.Contender(name)
    contender.samples = {number: native.Sample(1.0, time, 1e9, 1e9, 0) for number, time in times}
    return contender


# Rounds in which memory was slow for one contender alone: the medians of the times have another ratio.
own = make_contender("bngrad", *enumerate([1.0, 1.0, 1.0, 3.0, 3.0, 3.0, 3.0]))
peer = make_contender("torch", *enumerate([2.0, 2.2, 2.0, 6.0, 6.3, 6.6]))
ratio = measure.ratio(peer, own)
limit = judge.Limit("torch", "bngrad", "torch", 1.02)
entry = {"type": "f32", "sizes": "1x1", "is_large": True, "layout": "nchw", "results": {
             name: measure.summarize(contender, CASE) for name, contender in (("bngrad", own), ("torch", peer))},
         "ratios": {"torch/bngrad": ratio, "bngrad/floor": 1.25}}
of_times = entry["results"]["torch"]["warm_us"] / entry["results"]["bngrad"]["warm_us"]
print(f"ratio {ratio:.3f}, the other way round {1 / measure.ratio(own, peer):.3f},"
      f" of the limit {1 / judge.judge(limit, measure.find_ratios(own, peer)).value:.3f},"
      f" of the plot {report.place(entry, 'torch', 3) / report.place(entry, 'bngrad', 3):.3f}, of the times {of_times:.2f}")
print(f"floor {report.place(entry, 'floor', 3) / report.place(entry, 'bngrad', 3):.2f},"
      f" by hand {report.place(entry, 'hand', 3)}")

# The floor is the larger one of the memory's and the arithmetic's, of the elements of one of two threads.
walk, cached = (make_contender(name, *enumerate(times)) for name, times in (("walk", [3.0, 3.0]), ("cached", [0.5, 2.0, 1.0])))
cached.own_case = cases.Case((32, 16, 56, 56), "nhwc", "f32")
print("floor", *(sample.warm for sample in measure.floor_of(walk, cached, CASE, 2).samples.values()))
large = [case for case in cases.select("") if case.is_large]
small = [measure.shrink(case, 1 << 20) for case in large]
print("in cache", all(1 << 17 < 3 * case.tensor_bytes <= 1 << 19 for case in small), "channels and rows kept",
      all(case.channels == min(of.channels, 160) if of.layout == "nhwc" else case.row in (of.row, case.elements) for case, of in zip(small, large)))
