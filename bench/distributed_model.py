#!/usr/bin/env python3
"""Simulates the all-reduces of gradients on 2 to 100,000 processes.

    bench/distributed_model.py            the tables of docs/distributed.md
    bench/distributed_model.py --self-test  compares with formulas
    bench/distributed_model.py --check F  exit 1 unless the model is within a factor F of bench/results/distributed.json

A process is a time: it goes on when its partner's message has come. Messages take a latency, which depends on how far
the partner is, and their bytes over the bandwidth. Processes begin when their local pass has ended, late ones later.
The numbers of CLUSTER are assumptions, those of one machine are fitted to the measurements with 2 and 8 processes.
"""

import argparse
import dataclasses
import json
import math
import pathlib
import random
import sys

RESULTS = pathlib.Path(__file__).resolve().parent / "results" / "distributed.json"


@dataclasses.dataclass(frozen=True)
class Level:
    """Groups of `processes` neighbours, which reach each other with this latency and bandwidth."""
    processes: float
    seconds: float
    bytes_per_second: float


# Assumed: GPUs of a node, nodes of a switch, all of them.
CLUSTER = (Level(8, 3e-6, 100e9), Level(256, 6e-6, 25e9), Level(math.inf, 10e-6, 25e9))


@dataclasses.dataclass(frozen=True)
class Delays:
    """How much later than the others a process begins: always a little, and rarely a lot."""
    mean: float = 20e-6
    rare: float = 1e-3
    share: float = 1e-4


def find_level(levels, left, right):
    for level in levels:
        if left // level.processes == right // level.processes:
            return level
    return levels[-1]


def exchange(times, pairs, size, levels):
    """Both processes of each pair go on when they have each other's message."""
    for left, right in pairs:
        level = find_level(levels, left, right)
        times[left] = times[right] = max(times[left], times[right]) + level.seconds + size / level.bytes_per_second


def run_tree(starts, size, levels):
    """Recursive doubling. Processes beyond a power of two give their sums to a partner, and get the result."""
    times = list(starts)
    count = 1 << (len(times).bit_length() - 1)
    extra = [(i, i + count) for i in range(len(times) - count)]
    exchange(times, extra, size, levels)
    step = 1
    while step < count:
        exchange(times, [(i, i ^ step) for i in range(count) if not i & step], size, levels)
        step *= 2
    exchange(times, extra, size, levels)
    return max(times)


def run_ring(starts, size, levels):
    """2 (P - 1) messages of a P-th of the elements; the slowest connection sets the pace."""
    count = len(starts)
    level = find_level(levels, 0, count - 1)
    return max(starts) + 2 * (count - 1) * (level.seconds + size / count / level.bytes_per_second)


def make_starts(count, delays, seed=1):
    generator = random.Random(seed)
    return [generator.expovariate(1 / delays.mean) + delays.rare * (generator.random() < delays.share) for _ in range(count)]


def share_machine(count, cores, seconds, switch, bytes_per_second):
    """One machine: `count` processes take turns on its cores, which costs `switch` times as much."""
    factor = max(1, switch * count / cores)
    return (Level(math.inf, seconds * factor, bytes_per_second / max(1, count / cores)),)


def predict(count, size, cores, seconds, switch, bytes_per_second):
    if count == 1:
        return 0.0
    return run_tree([0.0] * count, size, share_machine(count, cores, seconds, switch, bytes_per_second))


def compare(measured):
    """(mpi, processes, bytes, measured, predicted), in seconds, from the least times."""
    cores = measured["cores"]
    times = {(r["mpi"], r["processes"], r["case"]): r["min_us"] * 1e-6 for r in measured["results"] if r["case"] != "gradient"}
    rows = []
    for mpi in sorted({mpi for mpi, _, _ in times}):
        sizes = sorted({size for _, _, size in times})
        seconds = times[mpi, 2, sizes[0]]
        # Larger messages take other ways, and leave the caches.
        bandwidth = sizes[-2] / max(times[mpi, 2, sizes[-2]] - seconds, 1e-9)
        # From the largest number of processes.
        switch = times[mpi, 8, sizes[0]] / (3 * seconds) * cores / 8
        for count in range(2, 9):
            for size in sizes[:-1]:
                rows.append((mpi, count, size, times[mpi, count, size], predict(count, size, cores, seconds, switch, bandwidth)))
    return rows


def check(factor):
    worst = 1.0
    for mpi, count, size, measured, predicted in compare(json.loads(RESULTS.read_text())):
        ratio = predicted / measured
        worst = max(worst, ratio, 1 / ratio)
        print(f"{mpi:8} {count} processes {size:6} B: measured {measured * 1e6:8.2f} us, model {predicted * 1e6:8.2f} us")
    print(f"at most a factor of {worst:.2f}, allowed {factor:g}")
    return worst <= factor


def self_test():
    """Formulas of docs/distributed.md where they are exact, on one level, and what delays do."""
    latency, bandwidth, size = 3e-6, 1e9, 4096
    level = (Level(math.inf, latency, bandwidth),)
    failed = 0

    def expect(name, value, expected):
        nonlocal failed
        if abs(value - expected) > 1e-9 * expected:
            failed += 1
            print(f"{name}: expected {expected}, got {value}")

    for count in (2, 8, 1024):
        expect(f"tree of {count}", run_tree([0.0] * count, size, level), math.log2(count) * (latency + size / bandwidth))
        expect(f"ring of {count}", run_ring([0.0] * count, size, level),
               2 * (count - 1) * (latency + size / count / bandwidth))
    # Two more rounds for the processes beyond a power of two.
    expect("tree of 6", run_tree([0.0] * 6, 0, level), 4 * latency)
    # Any late process delays all.
    for late in range(6):
        starts = [1.0 if i == late else 0.0 for i in range(6)]
        value = run_tree(starts, 0, level)
        if not 1 + 2 * latency <= value <= 1 + 4 * latency:
            failed += 1
            print(f"late {late}: expected 2 to 4 rounds after 1 s, got {value}")
    # Neighbours of a node are near, and the last rounds of 16 processes are not.
    levels = (Level(8, latency, bandwidth), Level(math.inf, 10 * latency, bandwidth))
    expect("two nodes", run_tree([0.0] * 16, 0, levels), 13 * latency)
    print(f"self-test: {failed} failed")
    return failed == 0


def make_mean(count, run):
    """The mean of several seeds, fewer where there are more processes."""
    repetitions = max(1, 20000 // count)
    return sum(run(seed) for seed in range(repetitions)) / repetitions


def print_tables():
    print("| processes | sums of 64 channels, tree | ring | of 2048 channels, tree | ring | 53 x 256 channels, one by one | combined |")
    print("|---:|---:|---:|---:|---:|---:|---:|")
    for count in (2, 8, 64, 1000, 10000, 100000):
        starts = [0.0] * count
        cells = [run(starts, 2 * channels * 4, CLUSTER) for channels in (64, 2048) for run in (run_tree, run_ring)]
        cells += [53 * run_tree(starts, 2 * 256 * 4, CLUSTER), run_tree(starts, 53 * 2 * 256 * 4, CLUSTER)]
        print(f"| {count} | " + " | ".join(f"{cell * 1e6:.4g}" for cell in cells) + " |")
    print()
    print("| processes | latest start, us | end of the tree, us | without rare delays, us |")
    print("|---:|---:|---:|---:|")
    for count in (8, 1000, 100000):
        late, usual = Delays(), Delays(share=0)
        cells = [make_mean(count, lambda seed: max(make_starts(count, late, seed))),
                 make_mean(count, lambda seed: run_tree(make_starts(count, late, seed), 2048, CLUSTER)),
                 make_mean(count, lambda seed: run_tree(make_starts(count, usual, seed), 2048, CLUSTER))]
        print(f"| {count} | " + " | ".join(f"{cell * 1e6:.4g}" for cell in cells) + " |")


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--check", type=float, metavar="F")
    parser.add_argument("--self-test", action="store_true")
    arguments = parser.parse_args()
    if arguments.self_test:
        sys.exit(not self_test())
    if arguments.check:
        sys.exit(not check(arguments.check))
    print_tables()


if __name__ == "__main__":
    main()
