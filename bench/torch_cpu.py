"""bngrad.torch beside PyTorch's own batch norms: the backward and the forward pass, eager and compiled.

    PYTHONPATH=<folder of bngrad> python bench/torch_cpu.py [--isa=NAME] [--output=FILE.md] [--rounds=N] [--assert]

The result goes to bench/results/torch-<instruction set>.md. --isa measures an older instruction set on a CPU that has
it, a value of BNGRAD_ISA: bngrad and PyTorch both use nothing newer. --assert fails if a ratio is below its limit.

One thread on one core; CPU time of the process, minima of rounds in which all
contenders take turns. Both allocate their outputs, which eager PyTorch cannot
get from the caller.
"""

import argparse
import dataclasses
import math
import pathlib
import statistics
import sys
import textwrap
import time

import instruction_sets
import machine
import torch_process

ROOT = pathlib.Path(__file__).resolve().parent.parent
FIRST = (32, 64, 56, 56)
SHAPES = {
    "ResNet-50": [(16, 64, 112, 112), FIRST, (16, 256, 56, 56), (16, 128, 28, 28), (16, 512, 28, 28),
                  (16, 256, 14, 14), (16, 1024, 14, 14), (16, 512, 7, 7), (16, 2048, 7, 7)],
    "MobileNetV2": [(16, 32, 112, 112), (16, 96, 56, 56), (16, 144, 28, 28), (16, 192, 14, 14), (16, 576, 14, 14),
                    (16, 960, 7, 7), (16, 1280, 7, 7)],
    "3-D": [(4, 32, 16, 56, 56), (2, 64, 8, 28, 28), (8, 128, 4, 14, 14)],
}


@dataclasses.dataclass(frozen=True)
class Part:
    """What PyTorch's time over bngrad's is to be for one pass of a batch norm.

    op: PyTorch's op.
    tensors: data that the pass reads and writes, with the sizes of its input.
    limits: least ratios by (type, layout) of shapes whose `tensors` fit into the last-level cache.
    goals: by (type, layout), of the first shape.
    least_mean: of the geometric mean; None if there is no limit yet.
    """

    op: str
    tensors: int
    limits: dict
    goals: dict
    least_mean: float | None


# The least ratio of each shape, and of a tiny call.
LEAST = 1.0
KINDS = [(type, layout) for type in ("f32", "bf16") for layout in ("channels first", "channels last")]
PARTS = {
    "backward": Part("native_batch_norm_backward", 3, dict(zip(KINDS, (1.0, 1.0, 1.6, 2.0))),
                     dict(zip(KINDS, (1.3, 1.1, 1.8, 1.8))), 1.6),
    "forward": Part("native_batch_norm", 2, dict(zip(KINDS, (1.3, 1.3, 1.0, 1.0))),
                    dict(zip(KINDS, (5.0, 1.4, 1.8, 1.8))), None),
}


def nothing():
    pass


class Contender:
    """`function` is timed; `enter`, `leave` and `prepare`, before each call,
    are not."""

    def __init__(self, function, enter=nothing, leave=nothing, prepare=nothing):
        self.function, self.enter, self.leave, self.prepare = function, enter, leave, prepare

    def measure(self, calls):
        """CPU seconds of a call."""
        self.prepare()
        start = time.process_time()
        for _ in range(calls):
            self.function()
        return (time.process_time() - start) / calls


def measure(contenders, rounds, calls=1):
    """The least CPU time of a call, in seconds, by contender."""
    best = dict.fromkeys(contenders, float("inf"))
    for _ in range(rounds):
        for name, contender in contenders.items():
            contender.enter()
            # After other contenders, the first call finds their data in the caches.
            contender.measure(1)
            best[name] = min(best[name], contender.measure(calls))
            contender.leave()
    return best


def eager_contenders(function):
    """`function` with and without bngrad. PyTorch twice: the noise."""
    import bngrad.torch

    return {"pytorch": Contender(function),
            "bngrad": Contender(function, bngrad.torch.enable, bngrad.torch.disable),
            "twin": Contender(function)}


def make_call(part, shape, dtype, is_last):
    """A call of `part` of a batch norm in training, as PyTorch's modules make it."""
    import torch

    memory_format = torch.contiguous_format
    if is_last:
        memory_format = torch.channels_last if len(shape) == 4 else torch.channels_last_3d
    grad_output, input = (torch.randn(shape).to(dtype).to(memory_format=memory_format) for _ in range(2))
    mean, inv_std, weight = (torch.linspace(low, 1.5, shape[1]) for low in (-0.5, 0.5, 0.4))
    if part == "forward":
        op = torch.ops.aten.native_batch_norm.default
        running_mean, running_var = torch.zeros(shape[1]), torch.ones(shape[1])
        return lambda: op(input, weight, mean, running_mean, running_var, True, 0.1, 1e-5)
    op = torch.ops.aten.native_batch_norm_backward.default
    return lambda: op(grad_output, input, weight, None, None, mean, inv_std, True, 1e-5, [True] * 3)


def measure_shapes(part, rounds):
    """Rows (network, shape, type, layout, seconds of pytorch, bngrad, twin) of `part`."""
    import torch

    rows = []
    for network, shapes in SHAPES.items():
        for shape in shapes:
            for type, dtype in (("f32", torch.float32), ("bf16", torch.bfloat16)):
                for is_last in (False, True):
                    call = make_call(part, shape, dtype, is_last)
                    start = time.process_time()
                    call()
                    # Short calls need more rounds, and several calls in one.
                    calls = max(1, int(2e-3 / (time.process_time() - start + 1e-6)))
                    best = measure(eager_contenders(call), rounds * (3 if shape == FIRST else 1), calls)
                    layout = "channels last" if is_last else "channels first"
                    rows.append((network, "x".join(map(str, shape)), type, layout, *best.values()))
                    print(part, *rows[-1][:4], f"{best['pytorch'] / best['bngrad']:.2f}", flush=True)
    return rows


def measure_tiny(part, rounds):
    import torch

    return measure(eager_contenders(make_call(part, (2, 4, 2, 2), torch.float32, False)), rounds, 3000)


def backward_of(module, called, inputs, grad_output, enter, leave):
    """A contender: the backward pass of a module."""
    outputs = []

    def prepare():
        for tensor in (*inputs, *module.parameters()):
            tensor.grad = None
        outputs[:] = [called(*inputs)]

    return Contender(lambda: outputs.pop().backward(grad_output), enter, leave, prepare)


def make_block(is_normalized):
    """A module whose code no other shares: graphs are kept by code, and one
    that bngrad compiled would serve PyTorch, too."""
    import torch

    class Block(torch.nn.Module):

        def __init__(self):
            super().__init__()
            self.norm, self.other = torch.nn.BatchNorm2d(FIRST[1]), torch.nn.BatchNorm2d(FIRST[1])

        def forward(self, x, *skip):
            y = self.norm(x)
            if skip:
                y = y + (self.other(skip[0]) if is_normalized else skip[0])
            return torch.relu(y)

    Block.forward.__code__ = Block.forward.__code__.replace()
    return Block()


def measure_forward(calls, inputs, rounds):
    """The least CPU time of the forward passes `calls`, by name."""
    return measure({name: Contender(lambda called=called: called(*inputs)) for name, called in calls.items()}, rounds)


def measure_compiled(rounds):
    """Rows (case, layout, seconds of the backward pass: eager, enabled,
    compiled, compiled by bngrad; and of the forward pass: all but enabled)."""
    import torch

    import bngrad.torch

    rows = []
    for title, count, is_normalized in (("ReLU(BN(x) + skip)", 2, False), ("ReLU(BN(x) + BN(z))", 2, True),
                                        ("ReLU(BN(x))", 1, False)):
        for is_last in (False, True):
            memory_format = torch.channels_last if is_last else torch.contiguous_format
            *inputs, grad_output = (torch.randn(FIRST).to(memory_format=memory_format) for _ in range(count + 1))
            for tensor in inputs:
                tensor.requires_grad_()
            contenders, calls = {}, {}
            for name, options in (("eager", None), ("enabled", {}), ("compiled", None), ("whole", {"compile": True})):
                module = make_block(is_normalized)
                called = module
                if name in ("compiled", "whole"):
                    called = torch.compile(module, fullgraph=True)
                    if options:
                        bngrad.torch.enable(**options)
                    called(*inputs).backward(grad_output)
                    if options:
                        bngrad.torch.disable()
                is_enabled = name == "enabled"
                if not is_enabled:
                    calls[name] = called
                contenders[name] = backward_of(module, called, inputs, grad_output,
                                               bngrad.torch.enable if is_enabled else nothing,
                                               bngrad.torch.disable if is_enabled else nothing)
            best = measure(contenders, rounds)
            forward = measure_forward(calls, inputs, rounds)
            rows.append((title, "channels last" if is_last else "channels first", *best.values(), *forward.values()))
            print(*rows[-1][:2], *(f"{value * 1e3:.2f}" for value in (*best.values(), *forward.values())), flush=True)
    return rows


def is_in_cache(shape, type, tensors):
    """Whether `tensors` of this shape and type fit into the last-level cache."""
    elements = math.prod(map(int, shape.split("x")))
    return tensors * elements * (2 if type == "bf16" else 4) <= machine.last_level_cache()


def list_failures(part, tiny, rows):
    """The ratios of `part` below their limits, beyond what PyTorch and its twin differ by, as lines."""
    failures, wanted = [], PARTS[part]

    def require(what, ratio, limit, twin=1.0):
        if ratio * max(twin, 1 / twin) < limit:
            failures.append(f"{part}, {what}: expected PyTorch / bngrad of at least {limit}, got {ratio:.2f} (twin {twin:.2f})")

    for network, shape, type, layout, pytorch, bngrad, twin in rows:
        limit = wanted.limits[type, layout] if is_in_cache(shape, type, wanted.tensors) else LEAST
        require(f"{shape} {type} {layout}", pytorch / bngrad, limit, pytorch / twin)
    if wanted.least_mean:
        require("geometric mean", find_mean(rows), wanted.least_mean)
    require("2x4x2x2", tiny["pytorch"] / tiny["bngrad"], LEAST, tiny["pytorch"] / tiny["twin"])
    return failures


def find_mean(rows):
    """The geometric mean of PyTorch / bngrad."""
    return statistics.geometric_mean(row[4] / row[5] for row in rows)


def report_part(part, tiny, rows):
    """The section of `part`."""
    wanted = PARTS[part]
    noise = max(max(pytorch / twin, twin / pytorch) for *_, pytorch, _, twin in rows)
    limits = ", ".join(f"{limit} ({type}, {layout})" for (type, layout), limit in wanted.limits.items())
    mean = f", their mean {wanted.least_mean}" if wanted.least_mean else ""
    lines = [
        f"## {part}: aten::{wanted.op}, training",
        "",
        *textwrap.wrap(
            f"PyTorch / bngrad: geometric mean {find_mean(rows):.2f}, least {min(row[4] / row[5] for row in rows):.2f}; "
            f"PyTorch and its twin differ by up to {noise:.2f}. A call of 2x4x2x2 takes {tiny['pytorch'] * 1e6:.1f} µs in "
            f"PyTorch and {tiny['bngrad'] * 1e6:.1f} µs with bngrad: PyTorch / bngrad {tiny['pytorch'] / tiny['bngrad']:.2f}. "
            f"With `--assert`, ratios must be at least {LEAST}{mean}, and for data in the last-level cache at least {limits}, "
            "beyond the difference of the twin.", 115),
        "",
        "| shapes of | shape | type | layout | PyTorch, ms | bngrad, ms | PyTorch / bngrad | goal | twin |",
        "|---|---|---|---|---:|---:|---:|---:|---:|",
    ]
    first = "x".join(map(str, FIRST))
    for network, shape, type, layout, pytorch, bngrad, twin in rows:
        goal = f"{wanted.goals[type, layout]}" if shape == first else ""
        lines.append(f"| {network} | {shape} | {type} | {layout} | {pytorch * 1e3:.3g} | {bngrad * 1e3:.3g} "
                     f"| {pytorch / bngrad:.2f} | {goal} | {pytorch / twin:.2f} |")
    return lines


def report(described, version, parts, compiled, rounds):
    """The document: `parts` has the tiny call and the rows of each part."""
    lines = [
        "# bngrad.torch beside PyTorch",
        "",
        f"`bench/torch_cpu.py`: PyTorch {version}, {described['cpu']}, {instruction_sets.to_text(described)}, one thread, commit",
        f"`{described['commit']}`, {described['date']}. CPU time, minima of {rounds} rounds in which the contenders take turns. Both",
        "allocate their outputs. The twin is PyTorch once more.",
    ]
    for part, (tiny, rows) in parts.items():
        lines += ["", *report_part(part, tiny, rows)]
    lines += [
        "",
        f"## Passes of a block, {'x'.join(map(str, FIRST))}, f32",
        "",
        "*Enabled* is eager mode with `enable()`, *whole* `torch.compile` with `enable(compile=True)`; the goal of its",
        "backward pass is at most 1.1 of enabled. Times in ms.",
        "",
        "| block | layout | eager | enabled | compiled | whole | whole / enabled | compiled / whole "
        "| forward: eager | compiled | whole |",
        "|---|---|---:|---:|---:|---:|---:|---:|---:|---:|---:|",
    ]
    for title, layout, eager, enabled, stock, whole, *forward in compiled:
        lines.append(f"| {title} | {layout} | " +
                     " | ".join(f"{value * 1e3:.3g}" for value in (eager, enabled, stock, whole)) +
                     f" | {whole / enabled:.2f} | {stock / whole:.2f} | " +
                     " | ".join(f"{value * 1e3:.3g}" for value in forward) + " |")
    return lines


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    torch_process.add_isa_option(parser)
    parser.add_argument("--output", type=pathlib.Path, help="default: bench/results/torch-<instruction set>.md")
    parser.add_argument("--rounds", type=int, default=10)
    parser.add_argument("--assert", dest="asserts", action="store_true", help="fail if a ratio is below its limit")
    arguments = parser.parse_args()
    torch_process.restart(arguments.isa, threads=1)
    import torch

    described = torch_process.describe(ROOT, 1)
    instruction_sets.hold_inductor(torch)

    torch.set_num_threads(1)
    torch.manual_seed(0)
    compiled = measure_compiled(arguments.rounds)
    parts = {part: (measure_tiny(part, arguments.rounds), measure_shapes(part, arguments.rounds)) for part in PARTS}
    lines = report(described, torch.__version__, parts, compiled, arguments.rounds)
    output = arguments.output or ROOT / "bench" / "results" / f"torch-{instruction_sets.find(described['isa']).stem}.md"
    output.write_text("\n".join(lines) + "\n", encoding="utf-8")
    print("\n".join(lines))
    failures = []
    if arguments.asserts:
        for part, (tiny, rows) in parts.items():
            failures += list_failures(part, tiny, rows)
    for line in failures:
        print("FAILED:", line)
    return 1 if failures else 0


if __name__ == "__main__":
    sys.exit(main())
