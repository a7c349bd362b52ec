"""compare_peers.py GPU_SUITE: the comparison with other implementations, on a CPU.

The calls of PyTorch are its own. Apex and quack are stand-ins with the same signatures
(Inputs/modules), and times are invented. BNGrad is the formula in float64."""

import os
import pathlib
import sys

HERE = pathlib.Path(__file__).resolve().parent
sys.path[:0] = [sys.argv[1], str(pathlib.Path(sys.argv[1]).parent)]

# Read when Triton is imported.
os.environ["TRITON_INTERPRET"] = "1"

import torch

import benchmark
import device
import items
import peers
import plan
import timing

torch.cuda.synchronize = torch.cuda.empty_cache = lambda: None
benchmark.DEVICE = "cpu"
benchmark.COPIED_BYTES = 1 << 16
benchmark.count_copies = lambda item: 2


class Timer:
    """Each call takes a time by contender, and twice as long in later rounds. Where it is idle, graphs do nothing."""

    is_idle = False

    def __init__(self):
        self.captured = 0
        self.replays = 0

    def capture(self, calls, repeat):
        for call in calls:
            call()
        self.captured += 1
        return Graph(self.captured, calls, repeat)

    def replay(self, graph):
        self.replays += 1
        for call in [] if self.is_idle else graph.functions:
            call()
        drift = 1 if self.replays < 8 * self.captured else 2
        return 10.0 * graph.number * graph.calls * drift

    def hold(self, microseconds):
        pass

    def time(self, function):
        function()
        return 1.0


class Graph:
    def __init__(self, number, functions, repeat):
        self.number, self.functions, self.calls = number, functions, repeat * len(functions)

    def free(self):
        pass


class Own(benchmark.Own):
    """In the place of BNGrad. From call `broken` on, results have a wrong bit; schedules of the name "wrong" have wrong
    results."""

    broken = 10**9

    def __init__(self, library, item, function, data):
        self.results = [data.results() for _ in data.input]
        self.kept, self.expected, self.errors, self.count = data, None, [], 0
        self.offset = 1 if function == "wrong" else 0
        self.calls = [lambda copy=copy: self.run(item, data, copy) for copy in range(2)]

    def run(self, item, data, copy):
        sizes, dims = item.folded
        dy, x = data.grad_output[copy].double(), data.input[copy].double()
        count = item.case.elements / item.case.channels
        centered = x - data.mean
        sum_dy = dy.sum(dims, keepdim=True)
        sum_dy_xmu = (dy * centered).sum(dims, keepdim=True)
        r = data.inv_std.double()
        found = data.scale * r * (dy - sum_dy / count - centered * r * r * sum_dy_xmu / count)
        for target, value in zip(self.results[copy], (found + self.offset, sum_dy_xmu * r, sum_dy)):
            target.copy_(value)
        self.count += 1
        if self.count > self.broken:
            self.results[copy][0].view(torch.uint8).flatten()[0] ^= 1


benchmark.TIMER = Timer
benchmark.Own = Own


def measure(item, names=plan.PEERS["benchmark"], functions=None):
    seen = []
    found = benchmark.measure_item(None, item, functions or {"bngrad": ""}, seen.append, names)
    return found, seen


def check(condition, message):
    if not condition:
        sys.exit(f"FAILED: {message}")


def check_absent(item):
    found, _ = measure(item)
    for name, text in (("apex", "the module syncbn is not installed"), ("cudnn", ""), ("cudnn_graph", "")):
        result = found["results"][name]
        check("us" not in result and text in result["absent"], f"{name}: {result}")
    found, _ = measure(item, ["quack"])
    check("not installed" in found["results"]["quack"]["absent"], f"{found}")
    check(found["results"]["quack"]["not_offered"], f"{found}")
    check("torch" not in found["results"], f"{found}")


def check_warm_up():
    """What is not installed costs nothing."""
    seen = []
    benchmark.warm_up(("torch", "cudnn_graph"), seen.append)
    check(seen == ["torch", "cudnn_graph", ""], f"{seen}")


def check_times(item):
    """Ratios are those of times of the same round, which drift."""
    found, seen = measure(item)
    check(seen[:4] == ["torch", "cudnn", "cudnn_graph", "apex"] and seen[-1] == "", f"{seen}")
    # Captured first to last: bngrad, copy, torch, apex.
    for name, ratio in (("torch", 3.0), ("apex", 4.0)):
        check(abs(found["ratios"][name] - ratio) < 1e-9, f"{item.name}: {name}: {found}")
    passes = benchmark.COPIED_BYTES / item.case.tensor_bytes / 2
    for key, tensors in (("over3", 3), ("over5", 5)):
        check(abs(found["ratios"][key] * tensors / passes - 1) < 1e-9, f"{key}: {found}")
    check(found["worst"] <= 1 and "error" not in found, f"{found}")


def check_own(item):
    """The error of another schedule has its name, and a wrong bit of a queued call is found."""
    try:
        measure(item, (), {"bngrad": "", "cluster of 4": "wrong"})
        check(False, "expected an error")
    except device.Error as error:
        check(str(error).startswith("cluster of 4: grad_input: channel 0 on"), f"{error}")
    found, _ = measure(item, (), {"bngrad": "", "two passes": ""})
    # Captured first to last: bngrad, copy, two passes. Only graphs are compared.
    check(abs(found["ratios"]["two passes"] - 3) < 1e-9 and "error" not in found, f"{found}")
    check("stream_us" not in found["results"]["bngrad"], f"{found}")
    # Two calls alone, two to capture them, and 34 rounds.
    for broken, text in ((3, "bngrad: grad_input of copy 0"), (2 + 2 + 34 * 2 + 1, "bngrad: grad_input of copy 1")):
        Own.broken = broken
        found, _ = measure(item, ())
        check(text in found.get("error", ""), f"{broken}: {found}")
        check("us" in found["results"]["bngrad"], f"{found}")
    Own.broken, Timer.is_idle = 10**9, True
    found, _ = measure(item, ())
    check("bngrad: grad_input of copy 0" in found.get("error", ""), f"{found}")
    Timer.is_idle = False


def check_triton(cases):
    """The kernels in Triton, interpreted, where that is installed."""
    if peers.why_absent("triton"):
        return
    for item in cases:
        found, _ = measure(item, ["triton"])
        check("us" in found["results"]["triton"], f"{item.name}: {found}")


def main():
    shapes = [((4, 6, 5, 7), "nchw"), ((4, 6, 5, 7), "nhwc"), ((33, 5), "nhwc"), ((3, 4, 25), "nchw")]
    cases = [items.Item(shape, layout, kind) for shape, layout in shapes for kind in ("f32", "bf16", "f16")]
    check_absent(cases[0])
    check_warm_up()
    sys.path.insert(0, str(HERE / "Inputs" / "modules"))
    for item in cases:
        check_times(item)
    check_own(cases[0])
    check_triton(cases)
    rows = items.Item((33, 8), "nhwc", "bf16")
    found, _ = measure(rows, ["quack"])
    check("us" in found["results"]["quack"], f"{found}")
    found, _ = measure(cases[0], ["quack"])
    check("gradients of rows only" in found["results"]["quack"]["absent"], f"{found}")

    os.environ["SYNCBN_FAULT"] = "wrong"
    found, _ = measure(cases[0])
    check("expected" in found["results"]["apex"]["absent"], f"{found}")
    check("not_offered" not in found["results"]["apex"], f"{found}")
    check("us" in found["results"]["torch"], f"{found}")
    os.environ["SYNCBN_FAULT"] = "error"
    try:
        measure(cases[0])
        check(False, "expected the error of the device")
    except RuntimeError as error:
        check(timing.is_fatal(error), f"{error}")
    print("passed")


main()
