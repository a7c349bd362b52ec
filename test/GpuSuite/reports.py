"""reports.py GPU_SUITE: interleaved measurements, journals and reports, without a device."""

import json
import os
import pathlib
import sys
import tempfile
import types
import xml.dom.minidom

sys.path[:0] = [sys.argv[1], str(pathlib.Path(sys.argv[1]).parent)]

import cuda_driver
import journal
import plan
import plot
import results
import suite
import summary
import timing
import tools
import worker


def check(condition, message):
    if not condition:
        sys.exit(f"FAILED: {message}")


class Graph:
    def __init__(self, timer, calls, repeat):
        self.timer, self.calls, self.repeat = timer, calls, repeat

    def free(self):
        self.timer.freed += 1


class Timer:
    """Times are those of the calls, times a factor by round."""

    def __init__(self, factors):
        self.factors, self.order, self.freed = factors, [], 0

    def capture(self, calls, repeat):
        for call in calls:
            call()
        return Graph(self, calls, repeat)

    def replay(self, graph):
        self.order.append(graph.calls[0]())
        round_number = self.order.count(self.order[-1]) - 1
        return self.factors[round_number] * graph.calls[0]() * graph.repeat * len(graph.calls)


class FaultyTimer:
    """The replay number `at` of the contender `name` fails."""

    def __init__(self, name, at):
        self.names, self.fault, self.counts = ["bngrad", "torch"], (name, at), {"bngrad": 0, "torch": 0}

    def capture(self, calls, repeat):
        return self.names.pop(0)

    def replay(self, graph):
        self.counts[graph] += 1
        if (graph, self.counts[graph] - 1) == self.fault:
            raise RuntimeError("CUDA error: an illegal memory access was encountered")
        return 1.0


def fail(text):
    def call():
        raise RuntimeError(text)

    return call


def check_measure():
    factors = [1, 9, 2, 5, 1, 1, 7]
    timer = Timer(factors)
    times = {"bngrad": 10.0, "copy": 40.0, "torch": 25.0}
    contenders = [
        timing.Contender(name, [lambda value=value: value] * 2, value)
        for name, value in times.items()
    ]
    contenders.insert(1, timing.Contender("cudnn", [fail("no engine\nmore")], 1))
    seen = []
    found, absent = timing.measure(timer, contenders, rounds=5, warm_rounds=2, at=seen.append)
    check(absent == {"cudnn": "no engine"}, f"{absent}")
    # Before each is captured, and before its first replay.
    check(seen == ["bngrad", "cudnn", "copy", "torch", "bngrad", "copy", "torch", ""], f"{seen}")
    check(timer.freed == 3, f"{timer.freed}")
    # Each once in a round, and another first.
    rounds = [timer.order[i : i + 3] for i in range(0, len(timer.order), 3)]
    check(len(rounds) == 7 and all(sorted(r) == [10, 25, 40] for r in rounds), f"{rounds}")
    check(rounds[0][0] == 10 and rounds[1][0] == 40 and rounds[2][0] == 25, f"{rounds}")
    check(found["bngrad"] == [20, 50, 10, 10, 70], f"{found}")
    found = timing.summarize(found, "bngrad", 1000, 12000)
    summary, ratios, bandwidth = (found[key] for key in ("results", "ratios", "bandwidth_gbps"))
    check(all(abs(bound - 2.5) < 1e-9 for bound in found["intervals"]["torch"]), f"{found}")
    # Of ratios that vary, the interval is around the median.
    varied = {"bngrad": [1.0] * 31, "torch": [1 + n / 31 for n in range(31)]}
    varied = timing.summarize(varied, "bngrad", 1000, 12000)
    low, high = varied["intervals"]["torch"]
    check(1 < low < varied["ratios"]["torch"] < high < 2, f"{varied}")
    check(summary["bngrad"] == {"us": 20, "min_us": 10, "max_us": 70}, f"{summary}")
    check("copy" not in summary and abs(ratios["torch"] - 2.5) < 1e-9, f"{summary} {ratios}")
    check(abs(ratios["over3"] - 1) < 1e-9 and abs(ratios["over5"] - 0.6) < 1e-9, f"{ratios}")
    check(abs(bandwidth - 12000 / 80 / 1e3) < 1e-9, f"{bandwidth}")
    # A graph is verified while it can be replayed.
    replayed = []
    verified = [timing.Contender("bngrad", [lambda: 1.0], 1, lambda replay: replayed.append(replay()))]
    timing.measure(Timer([1] * 40), verified, rounds=1, warm_rounds=1)
    check(len(replayed) == 1, f"{replayed}")
    # A graph of short calls repeats them, that of long ones does not.
    check(timing.Contender("", [None] * 2, 10).repeat == 20, "repeat")
    check(timing.Contender("", [None] * 2, 0.1).repeat == 50, "at most 50")
    check(timing.Contender("", [None], 5000).repeat == 1, "at least 1")
    # A fault in a replay is that of the contender.
    for name, at in (("bngrad", 0), ("torch", 8), ("torch", 30)):
        seen = []
        faulty = [timing.Contender(each, [lambda: 1.0], 1) for each in ("bngrad", "torch")]
        try:
            timing.measure(FaultyTimer(name, at), faulty, at=seen.append)
            check(False, "expected an error")
        except RuntimeError:
            check(seen[-1] == name, f"{name}: {seen}")
    # Without the device, no other contender can be measured.
    for text in ("CUDA error: an illegal memory access was encountered", "cuGraphLaunch: error 719"):
        try:
            timing.measure(Timer(factors), [timing.Contender("apex", [fail(text)], 1)])
            check(False, "expected an error")
        except RuntimeError:
            pass


class StreamTimer:
    """A host that needs `host_us` for each call, and a device that needs one microsecond. Time is simulated."""

    def __init__(self, host_us):
        self.host_us, self.holds, self.now = host_us, [], 0.0

    def perf_counter(self):
        return self.now / 1e6

    def hold(self, microseconds):
        self.holds.append(microseconds)

    def time(self, function):
        begin = self.now
        function()
        return max(32.0, self.now - begin - self.holds[-1])

    def call(self):
        self.now += self.host_us


def check_in_stream():
    """The time of a call in a stream is the device's, also where the host is slower."""
    for host_us, time, holds in ((200, 1.0, [2000, 4000, 8000] + [16000] * 6), (4000, None, None)):
        timing.time = timer = StreamTimer(host_us)
        check(timing.in_stream(timer, [timer.call]) == time, f"{host_us}")
        check(holds is None or timer.holds == holds, f"{timer.holds}")


def check_counted():
    """DRAM bytes are counted of what is farthest from the model, in either direction."""

    class Catalogue:
        items = {name: None for name in "abcdefg"}

        def measured(self):
            return list(self.items)

    misses = {"a": 1.1, "b": 0.4, "c": 3.0, "d": 1.5, "x": 9.0, "e": 1.0}
    check(plan.choose_counted(Catalogue(), "times", misses) == ["c", "b", "d", "a"], "the farthest")
    check(plan.choose_counted(Catalogue(), "checks", misses) == ["c", "b", "d", "a", "e", "f", "g"], "all")
    check(plan.choose_counted(Catalogue(), "times", {}) == ["a", "b", "c", "d"], "the first")


def check_order():
    """Neighbours differ, and what fails comes last, but is tried."""
    traits = {f"{kernel} {kind}": [kernel, kind] for kernel in ("one", "two") for kind in ("f32", "bf16", "f16")}.get
    names = [f"{kernel} {kind}" for kernel in ("one", "two") for kind in ("f32", "bf16", "f16")]
    order = plan.spread(names, traits)
    check(order == ["one f32", "two bf16", "one f16", "two f32", "one bf16", "two f16"], f"{order}")
    failures = plan.Failures(traits)
    failures.add([], "one f32")
    check(failures.order(names)[-1] == "one f32" and failures.order(names)[0] == "two bf16", f"{failures.order(names)}")
    # Of one kernel, each type fails; the other shows that types are not the reason.
    failures.add(["two f32", "two bf16"], "one bf16")
    check(failures.order(names)[:3] == ["two f32", "two f16", "two bf16"], f"{failures.order(names)}")
    check(failures.in_a_row == 1 and not failures.is_hopeless(["one f16"]), f"{failures.in_a_row}")
    for number in range(4):
        failures.add([], "one f32")
    check(failures.in_a_row == 5 and not failures.is_hopeless(["one f16"]), "a type that was not tried")
    failures.add([], "one f16")
    check(failures.is_hopeless(["one f16"]) and not failures.is_hopeless(["one f16", "two f16"]), "the other kernel works")


def check_fatal():
    """Errors after which a process cannot go on, as the driver's and PyTorch's texts have them."""
    for text in ("cuGraphLaunch: error 719", "CUDA error: hardware stack error", "CUDA error: invalid program counter",
                 "CUDA error: operation not supported on global/shared address space"):
        check(timing.is_fatal(RuntimeError(text)), text)
    check(not timing.is_fatal(RuntimeError("CUDA error: operation not supported")), "an error of one call")


def check_refusals():
    """Tools that may not observe the device say so anywhere in their output; others fail twice."""
    tools.find = lambda name: name
    for text, is_refused in (("==WARNING== x\n==ERROR== ERR_NVGPUCTRPERM", True), ("no ==ERROR==", False),
                             ("==WARNING== this device is not supported", True)):
        tools._run = lambda command, timeout: types.SimpleNamespace(stdout=text, stderr="", returncode=1)
        check(("refused" in tools.count_bytes(["x"], 1)) == is_refused, text)
    table = '"ID","Kernel Name","dram__bytes_read.sum","dram__bytes_write.sum"\n"0","one_pass","1,000","5"\n'
    table += '"1","reduce_0","10","7"\n"2","apply","20","1"\n'
    tools._run = lambda command, timeout: types.SimpleNamespace(stdout=table, stderr="", returncode=0)
    calls = [(call["read"], call["written"]) for call in tools.count_bytes(["a", "b"], 1)["calls"]]
    check(calls == [(1000, 5), (30, 8)] and tools.count_bytes(["a"], 1)["calls"][0]["read"] == 1030, f"{calls}")
    check("got 2" in tools.count_bytes(["a", "b", "c"], 1)["absent"], "the kernels of two calls")
    context = worker.Context.__new__(worker.Context)
    context.job, context.absences = {"limit": 10, "end": 0}, 0
    kinds = ({"absent": "why"}, {"read": 1}, {"absent": "why"}, {"absent": "why"})
    found = [context.run_tool(lambda seconds: result) for result in kinds]
    check([each.get("refused") for each in found] == [None, None, None, "why"], f"{found}")


def check_replay():
    """A graph is launched while the stream is held, so that its time has nothing of the host."""
    timer, order = cuda_driver.DriverTimer.__new__(cuda_driver.DriverTimer), []
    timer.hold = lambda microseconds: order.append(microseconds)
    timer.time = lambda function: order.append("time")
    timer.replay(None)
    check(order == [timing.REPLAY_HOLD_US, "time"], f"{order}")


def check_clock():
    """nvidia-smi that does not say the clock is not asked again."""
    watched, asked = suite.Suite.__new__(suite.Suite), []
    watched.log, watched.saved, watched.has_clock, watched.save = [1], 0, True, lambda: None
    tools.query_clock = lambda: asked.append(1)
    for _ in range(2):
        watched.save_sometimes(plan.Part("benchmark", 1, 1))
    check(len(asked) == 1, f"{asked}")


def check_turns():
    """One of each shape comes before another of one, and types differ within a turn."""
    tasks = ["a f32", "a bf16", "b f32", "b bf16", "c f32"]
    order = plan.take_turns(tasks, lambda task: task.split()[0])
    check(order == ["a f32", "b bf16", "c f32", "a bf16", "b f32"], f"{order}")


def check_complete():
    """A task is repeated, on demand, for other implementations that are absent or have no entry."""
    good = {name: {"us": 1.0} for name in plan.PEERS["compile"]}
    for change, expected in (({}, True), ({"quack": {"absent": "rows only", "not_offered": True}}, True),
                             ({"compile": {"absent": "a timeout"}}, False), ({"compile": None}, False)):
        found = {name: result for name, result in {**good, **change}.items() if result}
        check(plan.is_complete("compile", {"results": found}) == expected, f"{change}")
    check(plan.is_complete("smoke", {"worst": 0.5}) and plan.is_complete("alternatives", {"results": {}}), "without others")
    for result in ({"error": "wrong"}, {"absent": "no ncu"}):
        check(not plan.is_complete("smoke", result), f"{result}")


def check_journal(folder):
    path = folder / "journal.jsonl"
    log = journal.Journal(path)
    log.begin("a/1", 0)
    log.finish("a/1", {"worst": 0.5}, 1)
    log.begin("a/2", 2)
    with open(path, "ab") as file:
        file.write(b'{"task": "a/2", "resu')
    reader = journal.Reader(path)
    check(len(reader.read()) == 3 and reader.read() == [], "the complete lines, once")
    journal.Journal(path).finish("a/3", {}, 1)
    check([r["task"] for r in reader.read()] == ["a/3"], "what follows a line that was cut off")
    check(len(journal.load(path)) == 4, f"{journal.load(path)}")
    # A line that is being written is read when it is complete.
    for half, expected in ((b'{"task": ', []), (b'"a/4"}\n', ["a/4"])):
        with open(path, "ab") as file:
            file.write(half)
        check([r["task"] for r in reader.read()] == expected, "a line in two writes")
    target = folder / "text"
    journal.write_atomically(target, "one\n")
    journal.write_atomically(target, "two\n")
    check(target.read_text() == "two\n" and len(os.listdir(folder)) == 2, f"{os.listdir(folder)}")


def records():
    """A run with invented times: they are no measurement."""
    cases = {}
    for layout in ("nchw", "nhwc"):
        for kind in ("f32", "bf16"):
            facts = {"layout": layout, "type": kind, "tensor_bytes": 50e6, "schedule": "one_pass, cluster_blocks = 8",
                     "model_us": {"H200": [50.0, 122.0]}}
            cases[f"32x64x56x56 {layout} {kind}"] = facts
    machine = {"gpu": "NVIDIA H200 <invented> & none", "memory_bytes": 141e9, "multiprocessors": 132, "clock_mhz": 1980,
               "memory_clock_mhz": 3201, "bus_bits": 6144, "l2_bytes": 50 << 20, "date": "never", "commit": "0", "chip": "sm_90"}
    plan = {"smoke": 3, "benchmark": 4, "sanitizer": 2, "counters": 1}
    found = [{"machine": machine, "seed": 5, "plan": plan, "cases": cases}]

    def result(task, value):
        found.append({"task": task, "begin": 0})
        found.append({"task": task, "result": value, "seconds": 2})

    result("slots/clusters", {"slots": [[8, 1, 120], [16, 1, 112], [16, 2, 240]]})
    found.append({"software": "PyTorch 0"})
    found += [{"clock_mhz": 1755.0}, {"clock_mhz": 1980.0}]
    result("smoke/one", {"worst": 0.25})
    result("smoke/two", {"error": "grad_input[3]: expected 1, got 2"})
    names = list(cases)
    result(f"benchmark/{names[0]}", {
        "results": {"bngrad": {"us": 61.0, "stream_us": 70.0}, "torch": {"us": 122.0},
                    "apex": {"absent": "the module syncbn is not installed"}},
        "ratios": {"torch": 2.0, "over3": 1.25, "over5": 0.75},
        "intervals": {"torch": [1.9, 2.1], "over3": [1.24, 1.31]},
        "bandwidth_gbps": 3000.0, "worst": 0.125,
    })
    result(f"alternatives/{names[0]} cluster of 4", {
        "results": {"bngrad": {"us": 2.0}, "cluster of 4": {"us": 73.2}}, "ratios": {"cluster of 4": 1.2, "over3": 9.0},
    })
    result(f"alternatives/{names[0]} two passes", {"error": "grad_input: channel 0 on"})
    result(f"compile/{names[0]}", {
        "results": {"bngrad": {"us": 1.0}, "compile": {"us": 55.0}},
        "ratios": {"compile": 0.875, "over3": 9.0},
    })
    result(f"benchmark/{names[1]}", {
        "results": {"bngrad": {"us": 90.0}, "torch": {"us": 87.0}}, "bandwidth_gbps": 2800.0,
        "ratios": {"over3": 1.5, "over5": 0.9, "torch": 0.97}, "intervals": {"torch": [0.96, 1.0]},
    })
    result(f"benchmark/{names[2]}", {"error": "not finished after 40 s"})
    result("sanitizer/memcheck 0", {"items": 6, "summary": "ERROR SUMMARY: 0 errors"})
    result("sanitizer/racecheck 0", {"error": "hazard"})
    result(f"counters/{names[0]}", {"tensor_bytes": 50e6, "kernels": [{}], "read": 100e6, "written": 50e6})
    found.append({"part": "compile", "absent": "no PyTorch"})
    return found, names


def check_summary(document, names):
    """What is most important, in few lines, also if everything is wrong."""
    parts = {"smoke", "benchmark", "alternatives", "sanitizer", "0", "99"}
    failed = {"0": "no device", "99": "no device", "load": "another call's"}
    lines = summary.make(dict(document, failed=failed), parts, "results/h200")
    for line in (
        "case                    kernel     time model  pass torch compl   of4",
        "32x64x56x56 nchw f32    one/8     61 µs  0.50  1.25  2.00  0.88  1.20",
        "32x64x56x56 nchw bf16   one/8     90 µs  0.74  1.50  0.97     -     -",
        "best of PyTorch, cuDNN, torch.compile over BNGrad, 2 cases, 0 of them with all 3:",
        "  geometric mean 0.92, least 0.88 (32x64x56x56 nchw f32)",
        f"{names[0]}: 3.00 tensors moved",
        "clusters of 8, 1 blocks on a multiprocessor: 120 blocks at once; model: 128 or 120",
        "copy within the device, read and written bytes: median 2900 GB/s, from 2800 to 3000 during the run",
        "WRONG: smoke: two: grad_input[3]: expected 1, got 2",
        "WRONG: alternatives: 32x64x56x56 nchw f32 two passes: grad_input: channel 0 on",
        "FAILED: 0, 99: no device",
        "absent: compile: no PyTorch",
        "written: results/h200.md, .json, .svg",
    ):
        check(line in lines, f"expected '{line}' in {lines}")
    check(not any("tensors" in line and "x56" not in line for line in summary.make(document, {"smoke"}, "x")), "no times")
    check(not any("hazard" in line for line in summary.make(document, {"smoke"}, "x")[-2:]), "errors of other parts")
    long = "x" * 1000
    many = dict(document, notes=[long] * 200, benchmark=[dict(document["benchmark"][0], name=long)] * 200)
    many["failed"] = {f"{number}": f"{number} {long}" for number in range(100)}
    many["tasks"] = dict(document["tasks"], smoke={f"{number}": {"error": long} for number in range(1000)},
                         counters={f"{number}": {"error": long} for number in range(100)})
    lines = summary.make(many, parts | set(many["failed"]) | {"counters"}, "x")
    check(len(lines) <= summary.MOST_LINES, f"{len(lines)} lines")
    # The output of a borrowed machine may be cut to as much, beside the lines before.
    check(len("\n".join(lines).encode()) < 11500, f"{len(chr(10).join(lines))} characters")
    check("... and 1191 more" in lines, f"{lines[-2]}")


def check_best():
    """The best peer of a case is one of those that have a time, whose number is told."""
    ratios = ({"torch": 2.0, "cudnn": 4.0, "compile": 8.0}, {"torch": 2.0}, {"apex": 0.1})
    cases = [{"name": str(number), "ratios": each} for number, each in enumerate(ratios)]
    best = results.compare_best({"benchmark": cases})
    check(best == {"0": (2.0, 3), "1": (2.0, 1)}, f"{best}")


def check_results(folder):
    found, names = records()
    document = results.build(found)
    text = results.markdown(document)
    for line in (
        "| 32x64x56x56 | one_pass of 8 | 61 µs | 122 µs | 0.50 | 1.25 | 0.75 | 122 µs (2.00) | not measured"
        " | 55 µs (0.88) | 0.88 | 73.2 µs (1.20) |  | 70 µs"
        " | 1 broken, 1 not decided |",
        "* NVIDIA H200 <invented> & none; 141.0 GB, 132 multiprocessors of at most 1980 MHz, memory of 3201 MHz,"
        " cache of 52 MB; PyTorch 0",
        "* clock of the multiprocessors during the benchmark: 1755 to 1980 MHz",
        "* clusters of 16, 1 blocks on a multiprocessor: 112 blocks at once; model: 128 or 112",
        "* multiprocessors of the processing clusters by these: 18, 18, 18, 16, 16, 16, 16, 14",
        "* smoke: each kernel once: 1 correct, 1 failed, 1 not run; at most 0.25 of the bound",
        "* measured below: 1 correct; at most 0.12 of the bound",
        "* memcheck: 6 functions clean, 0 of 1 runs with errors",
        "* racecheck: 0 functions clean, 1 of 1 runs with errors: hazard",
        "* synccheck: not measured",
        "* compile absent: no PyTorch",
        f"| {names[0]} | 1 | 100.0 MB | 50.0 MB | 3.00 |",
        "1 limits kept, 3 broken, 2 not decided.",
        f"* {names[1]}, time of PyTorch: 1.03 (1.00 to 1.04), limit 1.02, not decided",
        f"* {names[0]}, time of torch.compile: 1.14 (1.14 to 1.14), limit 1.02, broken",
        f"* {names[1]}, time of 3 passes: 1.50 (1.50 to 1.50), limit 1.30, broken",
        f"* {names[2]}, not finished after 40 s, broken",
        f"* {names[0]}, time of 3 passes: 1.25 (1.24 to 1.31), limit 1.30, not decided",
        "* smoke: two: grad_input[3]: expected 1, got 2",
        "* Apex SyncBN, 1 cases (32x64x56x56 nchw f32, ...): the module syncbn is not installed",
        "GB/s, from 2800 to 3000 during the run",
    ):
        check(line in text, f"expected '{line}' in {text}")
    check_summary(document, names)
    name = results.file_name(document)
    check(name == "h200-invented-none-141gb-1980mhz-memory-3201mhz", name)
    misses = results.find_misses(document)
    check(misses == {names[0]: 0.5, names[1]: 90 / 122}, f"{misses}")
    results.write(document, folder / "gpu")
    svg = xml.dom.minidom.parse(str(folder / "gpu.svg"))
    marks = len(svg.getElementsByTagName("path")), len(svg.getElementsByTagName("circle"))
    # Of the legend and of two cases: BNGrad; eight others, twice PyTorch, torch.compile.
    check(marks == (1 + 2, 8 + 3), f"{marks}")
    check(set(plot.COLORS) == {"bngrad", *results.PEERS, *results.OTHERS}, f"{plot.COLORS}")
    # Without slots there are no times of the model; with those of none of its layouts, they are marked, and of the closest.
    other = results.build([r for r in found if "slots/clusters" != r.get("task")])
    check(not any(case["calculated_us"] for case in other["benchmark"]), f"{other['benchmark']}")
    check(results.find_misses(other) == {names[0]: 1.25, names[1]: 1.5}, f"{results.find_misses(other)}")
    for slots, time, ratio in ((127, 50, "1.22"), (104, 122, "0.50")):
        slots = {"task": "slots/clusters", "result": {"slots": [[8, 1, slots]]}, "seconds": 1}
        other = results.build(found + [slots])
        check(f"| ~{time} µs | ~{ratio} |" in results.markdown(other), results.markdown(other))
        line = f"32x64x56x56 nchw f32    one/8     61 µs {'~' + ratio:>5}"
        check(any(each.startswith(line) for each in summary.make(other, {"benchmark"}, "x")), f"{line}")
    # A bundle without calculated times leaves those of the same schedules.
    cases = {name: {**facts, "model_us": {}} for name, facts in found[0]["cases"].items()}
    check(results.build(found + [{**found[0], "cases": cases}])["benchmark"] == document["benchmark"], "times of the model")
    cases[names[0]]["schedule"] = "two_pass"
    other = results.build(found + [{**found[0], "cases": cases}])["benchmark"]
    check([case["calculated_us"] for case in other[:2]] == [None, 122.0], f"{other[:2]}")
    # What another bundle has otherwise is forgotten.
    stale = results.build(found + [{"stale": ["smoke/two", f"benchmark/{names[0]}"]}])
    check(list(stale["tasks"]["smoke"]) == ["one"] and names[0] not in stale["tasks"]["benchmark"], f"{stale['tasks']}")
    queued = {"task": "queued/one", "result": {"worst": 0.5, "not_held": ["in a graph"]}, "seconds": 1}
    text = results.markdown(results.build(found + [{**found[0], "plan": {"queued": 1}}, queued]))
    check("* queued: of 1 functions, calls ran before all were queued: the host is slow" in text, text)
    # Parts of a second run replace those of the first.
    more = [{**found[0], "seed": 6}, {"task": "smoke/two", "result": {"worst": 0.5}, "seconds": 1}]
    merged = results.build(found + more)
    check(not [w for w in results.wrong_items(merged) if w[0] == "smoke"], f"{merged['tasks']}")
    check("seed 5, 6" in results.markdown(merged), "seeds")
    for name, lines in (("a", found), ("b", more)):
        (folder / name).mkdir()
        (folder / name / "journal.jsonl").write_text("".join(json.dumps(l) + "\n" for l in lines))
    sys.argv = ["results.py", str(folder / "a"), str(folder / "b"), f"--output={folder}/merged"]
    results.main()
    check(json.loads((folder / "merged.json").read_text()) == json.loads(json.dumps(merged)), "merged")


with tempfile.TemporaryDirectory() as folder:
    check_journal(pathlib.Path(folder))
check_measure()
check_in_stream()
check_counted()
check_best()
check_order()
check_complete()
check_turns()
check_replay()
check_clock()
check_refusals()
check_fatal()
with tempfile.TemporaryDirectory() as folder:
    check_results(pathlib.Path(folder))
print("passed")
