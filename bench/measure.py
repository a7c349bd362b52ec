"""Measures one case: all libraries that can run it, in turn."""

import ctypes
import math
import re
import statistics
import time

import cases
import data
import judge
import kernels
import machine
import native
import peers

# A measurement is disturbed, and repeated, if the bandwidths before and after
# differ by more than this, or if another process ran on our cores: more
# switches than the system's own threads cause in that time.
BANDWIDTH_DRIFT = 0.15
SECONDS_PER_SWITCH = 0.1
# Rounds after which a library slower than the fastest by this factor is
# dropped.
SLOW_ROUNDS, SLOW_FACTOR = 10, 4
# Ratio of all rounds to the requested ones, to repeat disturbed measurements;
# and seconds to wait for an idle machine: the first time, doubled each time,
# and in total per requested round.
PATIENCE = 2.5
WAIT, WAIT_PER_ROUND = 0.1, 0.7
# So few rounds are not a measurement, so do not wait.
FEW_ROUNDS = 5
# Rounds over the requested ones, at most, to decide limits.
MOST_ROUNDS = 4
# Duration of the repeated calls of the fastest contender, in seconds.
SHORT_WINDOW = 400e-6
# Of the second-level cache, if it is unknown.
DEFAULT_L2 = 1 << 20
# Bytes of a row of `tiles`, as in native/Walk.cpp.
TILE_BYTES = 4096
# Of NHWC in the cache: more than BNGrad keeps sums in registers for, and so few that there are several hundred rows, beside
# which the work of the channels is little and from which on chains are longer (docs/numerics.md, section 4).
MOST_CACHED_CHANNELS = 160


class Contender:
    """One implementation in one case, and its samples."""

    def __init__(self, name, run=None, state=None, foreign_threads=False):
        self.name = name
        self.run = run
        self.state = state
        self.foreign_threads = foreign_threads
        self.absent = None
        self.error = None
        self.schedule = ""
        self.calls = 1
        # Of a contender with data of its own, whose time is not compared with that of others: its case.
        self.own_case = None
        # Round number to native.Sample.
        self.samples = {}
        self.disturbed = {}
        self.noisy = False
        self.keep = []


def bngrad_contender(harness, compiler, store, case, variant, schedule=""):
    """BNGrad's `variant` of `case`; absent if it does not compile."""
    contender = Contender("bngrad" if variant == "static" else "bngrad-" + variant)
    try:
        function = compiler.compile(case, variant, schedule)
    except kernels.CompileError as error:
        contender.absent = str(error)
        return contender
    sizes = case.memory_sizes
    strides = [math.prod(sizes[i + 1 :]) for i in range(len(sizes))]
    if variant == "strided" and case.layout == "nhwc":
        sizes = case.sizes
        strides = [strides[0], strides[-1]] + strides[1:-1]
    dy_type = "bf16" if variant == "cast" else case.type
    arrays = [(store.array("grad_output", case, dy_type), True)]
    arrays.append((store.array("input", case), True))
    arrays += [
        (store.array(name, case), False) for name in ("scale", "mean", "variance")
    ]
    if variant in ("relu", "residual", "consumer"):
        arrays.append((store.array("other", case), True))
    arrays.append((store.array("grad_input", case), True))
    arrays += [(store.array(name, case), False) for name in ("grad_scale", "grad_offset")]
    descriptors = [
        native.describe(
            array.ctypes.data,
            sizes if is_data else (case.channels,),
            strides if is_data else (1,),
        )
        for array, is_data in arrays
    ]
    state = native.Function(ctypes.cast(function, ctypes.c_void_p).value, len(arrays))
    for i, value in enumerate(descriptors):
        state.descriptors[i] = ctypes.addressof(value)
    contender.keep = [function, descriptors, state]
    contender.run = harness.address("harnessCallFunction")
    contender.state = ctypes.addressof(state)
    return contender


def shrink(case, cache_bytes):
    """A case with the rows of `case`, or with its channels if they are not many, whose three tensors take half of a
    cache."""
    most = cache_bytes // 2 // (3 * case.tensor_bytes // case.elements)
    if case.layout == "nhwc":
        channels = min(case.channels, MOST_CACHED_CHANNELS)
        return cases.Case((min(case.sizes[0] * case.row, most // channels), channels), "nhwc", case.type)
    row = min(case.row, most)
    # As many channels as a tile of short rows has.
    channels = min(case.channels, max(1, TILE_BYTES * case.elements // case.tensor_bytes // row))
    return cases.Case((min(case.sizes[0], max(1, most // (channels * row))), channels, row), "nchw", case.type)


def cached_contender(harness, compiler, store, case, schedule):
    """`bngrad-cached`: the loops of BNGrad's `schedule` of a case over data in the second-level cache of a core. It is a
    serial kernel, because in so short a time threads that start would count."""
    small = shrink(case, machine.caches().get("L2", DEFAULT_L2))
    serial = re.sub(r"threads = \d+", "threads = 1", f"#bngrad.schedule<{schedule}>")
    contender = bngrad_contender(harness, compiler, store, small, "static", serial)
    contender.name, contender.own_case = "bngrad-cached", small
    return contender


def floor_of(walk, cached, case, threads):
    """A contender whose times are the larger ones of the walked floor and of `cached` for the elements of a thread, in the
    rounds that both have."""
    floor, scale = Contender("floor"), case.elements / threads / cached.own_case.elements
    for kind in ("samples", "disturbed"):
        ours, theirs = getattr(walk, kind), getattr(cached, kind)
        for number in ours.keys() & theirs.keys():
            sample = native.Sample.from_buffer_copy(ours[number])
            sample.warm = max(sample.warm, theirs[number].warm * scale)
            getattr(floor, kind)[number] = sample
    return floor


def make_problem(case, threads, addresses):
    """The case as a Problem of native/Peer.h; the arrays without an address are null."""
    spatial = (1, 1) + case.sizes[2:]
    return native.Problem(
        len(case.sizes),
        int(case.layout == "nhwc"),
        data.element_type_number(case),
        threads,
        case.sizes[0],
        case.channels,
        *spatial[-2:],
        machine.last_level_cache(),
        kernels.EPSILON,
        *(addresses.get(name) for name in native.ARRAYS),
    )


def problem_of(store, case, threads):
    """The case as a Problem, with the arrays of `store`."""
    return make_problem(case, threads, {name: store.array(name, case).ctypes.data for name in native.ARRAYS})


def walk_contenders(peer, store, case, threads, schedule):
    """The walked floors of the fused neighbours with data of their own."""
    found = []
    for name, is_in_sums in peers.FUSED_WALKS.items():
        problem = problem_of(store, case, threads)
        problem.other = store.array("other", case).ctypes.data
        problem.is_other_in_sums = is_in_sums
        walked = peer_contenders(peer, problem, schedule)
        for contender in walked:
            contender.name = name
        found += walked
    return found


def peer_contenders(peer, problem, walk=0):
    """The peer's contenders, one for each variant. `walk` is the variant of the walked
    floor, a value of peers.WALKS."""
    variants = {"walk": walk} if peer.name == "walk" else peer.variants
    found = []
    for name, variant in variants.items():
        contender = Contender(name, foreign_threads=peer.foreign_threads)
        found.append(contender)
        if peer.absent:
            contender.absent = peer.absent
            continue
        state, contender.absent = peer.create(problem, variant)
        if not state:
            continue
        contender.run = ctypes.cast(peer.library.peerRun, ctypes.c_void_p).value
        contender.state = state
        contender.keep = [peer, problem]
    return found


def check(contender, store, reference):
    """Runs once and compares with the reference; sets `contender.error`. The walked
    floor computes nothing."""
    if contender.name == "walk":
        return
    store.clear_results(reference.case)
    if contender.name.startswith("bngrad"):
        function = ctypes.CFUNCTYPE(None, ctypes.c_void_p)(contender.run)
        factor = 5
    else:
        function = contender.keep[0].library.peerRunInto
        factor = 100
    function(contender.state)
    error = reference.error(store, factor)
    if error > 1:
        contender.error = "wrong result: error %.3g times the bound" % error


def _calls(contender):
    """Estimates the number of calls that take SHORT_WINDOW."""
    function = ctypes.CFUNCTYPE(None, ctypes.c_void_p)(contender.run)
    seconds = math.inf
    for _ in range(3):
        start = time.perf_counter()
        function(contender.state)
        seconds = min(seconds, time.perf_counter() - start)
    return max(1, min(1000, round(SHORT_WINDOW / seconds)))


def has_drifted(sample):
    """Whether the bandwidth before and after a measurement differs."""
    before, after = sample.bandwidth_before, sample.bandwidth_after
    return abs(before - after) > BANDWIDTH_DRIFT * max(before, after)


def _is_disturbed(sample, calls):
    if has_drifted(sample):
        return True
    seconds = sample.cold + sample.warm * calls
    return sample.switches > seconds / SECONDS_PER_SWITCH


def run_rounds(harness, contenders, rounds, is_decided=lambda: True):
    """Fills the contenders' samples until each has `rounds` undisturbed ones, and then
    until `is_decided` or there are MOST_ROUNDS times as many."""
    requested = rounds
    active = [c for c in contenders if c.run and not c.error]
    # Calls warm the caches, so all contenders have the same number of calls.
    calls = max((_calls(c) for c in active if not c.own_case), default=1)
    for contender in active:
        contender.calls = _calls(contender) if contender.own_case else calls
    number, wait, waited = 0, WAIT, 0
    while active and number < rounds * PATIENCE:
        # Every contender follows every other one equally often.
        turn = number % len(active)
        order = list(range(len(active)))
        order = order[turn:] + order[:turn]
        if number % 2:
            order.reverse()
        runners = (native.Runner * len(active))(
            *[
                native.Runner(c.run, c.state, c.calls, int(c.foreign_threads))
                for c in active
            ]
        )
        samples = harness.round(runners, order)
        quiet = 0
        for contender, sample in zip(active, samples):
            disturbed = _is_disturbed(sample, contender.calls)
            kept = contender.disturbed if disturbed else contender.samples
            kept[number] = native.Sample.from_buffer_copy(sample)
            quiet += not disturbed
        number += 1
        if 2 * quiet >= len(active):
            wait = WAIT
        elif waited < rounds * WAIT_PER_ROUND and rounds > FEW_ROUNDS:
            time.sleep(wait)
            waited += wait
            wait *= 2
        if number == SLOW_ROUNDS:
            fastest = min(_median_warm(c) for c in active if not c.own_case)
            active = [c for c in active if c.own_case or _median_warm(c) < SLOW_FACTOR * fastest]
        if all(len(c.samples) >= rounds for c in active):
            if is_decided() or rounds >= MOST_ROUNDS * requested:
                break
            rounds += requested
    for contender in contenders:
        use_disturbed(contender)


def use_disturbed(contender):
    """Uses all measurements, and marks the result, if most are disturbed: no machine is ever idle."""
    contender.noisy = len(contender.samples) < len(contender.disturbed) / 2
    if contender.noisy:
        contender.samples.update(contender.disturbed)


def _median_warm(contender):
    samples = contender.samples | contender.disturbed
    return statistics.median(sample.warm for sample in samples.values())


def summarize(contender, case):
    """The report of a contender: microseconds and ratios."""
    result = {"name": contender.name}
    for key in ("absent", "error", "schedule"):
        if getattr(contender, key):
            result[key] = getattr(contender, key)
    samples = contender.samples.values()
    result["disturbed"] = len(contender.disturbed)
    if contender.noisy:
        result["noisy"] = True
    result["rounds"] = len(samples)
    if not samples:
        return result

    def passes(seconds, sample):
        rate = (sample.bandwidth_before + sample.bandwidth_after) / 2
        return seconds * rate / case.tensor_bytes

    median = statistics.median
    result["warm_us"] = 1e6 * median(s.warm for s in samples)
    result["cold_us"] = 1e6 * median(s.cold for s in samples)
    result["bandwidth_gbps"] = 1e-9 * median(
        (s.bandwidth_before + s.bandwidth_after) / 2 for s in samples
    )
    for key in ("warm", "cold"):
        tensors = median(passes(getattr(s, key), s) for s in samples)
        result[key + "_over_floor3"] = tensors / 3
        result[key + "_over_floor5"] = tensors / 5
    return result


def find_ratios(first, second, key="warm"):
    """The ratios of warm or cold times in the rounds that both have, or in all if these are few."""
    mine, other = first.samples, second.samples
    if len(mine.keys() & other.keys()) < FEW_ROUNDS:
        mine, other = mine | first.disturbed, other | second.disturbed
    return [getattr(mine[i], key) / getattr(other[i], key) for i in sorted(mine.keys() & other.keys())]


def ratio(first, second):
    """The ratio of warm times that is printed, plotted and judged, or None without a common round."""
    found = find_ratios(first, second)
    return judge.find_median(found) if found else None
