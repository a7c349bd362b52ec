"""Interleaved measurements: in each round, every contender is timed once.

A ratio is the median over the rounds of the ratio of two times of one round, so that
changes of clocks or of other load affect both. The order rotates from round to
round."""

import statistics
import time

import judge

ROUNDS = 31
WARM_ROUNDS = 3
# A graph takes at least this long, so that events resolve it.
GRAPH_US = 400
MOST_CALLS = 50
OWN, COPY = "bngrad", "copy"
# Of a stream, until the host has queued its calls.
FIRST_HOLD_US, MOST_HOLD_US = 2000, 50000
# Of a stream, until the host has launched a graph, whose time would include that of the launch if the stream were idle.
REPLAY_HOLD_US = 500


class Contender:
    """Calls that are timed together; each processes its own copy of the data. `verify`, if given, is called after the
    rounds with a function that replays the graph."""

    def __init__(self, name, calls, estimate_us, verify=None):
        self.name = name
        self.calls = calls
        self.verify = verify
        wanted = int(GRAPH_US / (max(estimate_us, 0.1) * len(calls)) + 0.5)
        self.repeat = max(1, min(wanted, MOST_CALLS))


def measure(timer, contenders, rounds=ROUNDS, warm_rounds=WARM_ROUNDS, at=lambda name: None):
    """({name: times of a call by round, in microseconds}, {name: why it has none}).

    A contender that cannot be captured is absent; the others go on. `at(name)` is called before one is captured or
    first replayed, and again if its replay fails; with an empty name when all have been replayed."""
    graphs, absent = [], {}
    for contender in contenders:
        at(contender.name)
        try:
            graphs.append((contender, timer.capture(contender.calls, contender.repeat)))
        except Exception as error:
            if is_fatal(error):
                raise
            absent[contender.name] = first_line(error)
    times = {contender.name: [] for contender, _ in graphs}
    for number in range(warm_rounds + rounds):
        first = number % max(len(graphs), 1)
        for contender, graph in graphs[first:] + graphs[:first]:
            if number == 0:
                at(contender.name)
            try:
                elapsed = timer.replay(graph)
            except Exception:
                at(contender.name)
                raise
            if number >= warm_rounds:
                calls = contender.repeat * len(contender.calls)
                times[contender.name].append(elapsed / calls)
        if number == 0:
            at("")
    for contender, graph in graphs:
        if contender.verify:
            contender.verify(lambda: timer.replay(graph))
        graph.free()
    return times, absent


def in_stream(timer, calls, rounds=5):
    """Median microseconds of a call in a sequence without a graph. The stream never waits for the host, as it is held
    until all calls are in it. A round where that took too long does not count, and the next is held for longer.
    None: the host needs more than MOST_HOLD_US."""
    calls = calls * max(1, 32 // len(calls))
    times, hold = [], FIRST_HOLD_US
    while len(times) < rounds + 1 and hold <= MOST_HOLD_US:
        timer.hold(hold)
        begin, seconds = time.perf_counter(), []

        def run():
            for call in calls:
                call()
            seconds.append(time.perf_counter() - begin)

        elapsed = timer.time(run)
        if seconds[0] * 1e6 > hold / 2:
            hold *= 2
        else:
            times.append(elapsed)
    return statistics.median(times[1:]) / len(calls) if len(times) > rounds else None


def summarize(times, own, tensor_bytes, copied_bytes):
    """The results by contender, ratios to `own` with their intervals (judge.py), and the
    bandwidth of the copy.

    `over2`, `over3` and `over5` are relative to the time of 2, 3 and 5 tensors at the bandwidth
    of the copy of the same round, which reads and writes `copied_bytes`."""
    results = {}
    for name, values in times.items():
        results[name] = {
            "us": statistics.median(values),
            "min_us": min(values),
            "max_us": max(values),
        }
    samples = {}
    for name, values in times.items():
        if own in times and name not in (own, COPY):
            samples[name] = [other / mine for other, mine in zip(values, times[own])]
    if own in times and COPY in times:
        scale = copied_bytes / tensor_bytes
        passes = [mine / copy * scale for mine, copy in zip(times[own], times[COPY])]
        for number in (2, 3, 5):
            samples[f"over{number}"] = [each / number for each in passes]
    found = {"results": results, "ratios": {}, "intervals": {}, "bandwidth_gbps": None}
    for name, values in samples.items():
        found["ratios"][name], *found["intervals"][name] = judge.find_interval(values, name)
    if COPY in results:
        found["bandwidth_gbps"] = copied_bytes / results.pop(COPY)["us"] / 1e3
    return found


def first_line(error):
    text = str(error).strip() or type(error).__name__
    return text.splitlines()[0][:300]


# Errors after which a process cannot use the device any more, by their text.
FATAL = (
    "illegal memory access",
    "illegal instruction",
    "misaligned address",
    "unspecified launch failure",
    "device-side assert",
    "ECC",
    "launch timed out",
    "error 700",
    "error 719",
    "error 716",
    "error 715",
    "error 714",
    "error 717",
    "error 718",
    # 714, 717 and 718 as PyTorch has them.
    "hardware stack error",
    "operation not supported on global/shared address space",
    "invalid program counter",
)


def is_fatal(error):
    return isinstance(error, MemoryError) or any(text in str(error) for text in FATAL)
