"""bngrad beside PyTorch and JAX on this machine.

    python -m bngrad.bench [--part=PART] [--shapes=SHAPES] [--dtype=TYPES] [--threads=N] [--rounds=N] [--output=FOLDER]

In every round each takes a turn, as does a pass over memory; times are
medians. The result is a table on standard output, and bngrad-bench.svg in the
folder. Libraries that are not installed are left out.
"""

from __future__ import annotations

import argparse
import os
import pathlib
import sys
import time
from collections.abc import Callable, Sequence
from typing import Any

import bngrad
from bngrad import _explain, _numpy, _plot

DEFAULT_SHAPES = ("32x64x56x56,32x64x56x56:last,32x128x28x28,32x128x28x28:last,32x512x28x28,32x512x28x28:last,"
                  "32x256x14x14,32x256x14x14:last,32x2048x7x7,32x2048x7x7:last,4096x256")
LIBRARIES = ("bngrad", "torch", "jax")
GRADIENTS = ("grad_input", "grad_scale", "grad_offset")
# What is measured: a name for the plot, the results of a call, and the functions of bngrad with their wanted results.
FORWARD = ("output", "mean", "inv_std")
PARTS = {
    "backward": ("Gradient of batch normalization", GRADIENTS, {"batch_norm_backward": GRADIENTS}),
    "forward": ("Batch normalization", FORWARD, {"batch_norm_training": FORWARD}),
    "both": ("Batch normalization and its gradient", ("output", *GRADIENTS),
             {"batch_norm_training": FORWARD, "batch_norm_backward": GRADIENTS}),
}
EPSILON = 1e-5
# The least duration of the calls of a sample.
SECONDS = 500e-6
# The largest difference between libraries, relative to the largest element.
TOLERANCES = {"float16": 2e-2, "bfloat16": 1e-1, "float32": 2e-3, "float64": 1e-8}
Call = Callable[[], Any]
# Makes the call of a part for the data of a case.
Maker = Callable[["Data", str], Call]


class Case:
    """A batch norm: dim 1 has the channels, which are innermost in memory if
    `is_last`."""

    def __init__(self, shape: tuple[int, ...], is_last: bool, dtype: str):
        self.shape, self.is_last, self.dtype = shape, is_last, dtype
        rank = len(shape)
        self.order = (0, *range(2, rank), 1) if is_last else tuple(range(rank))
        self.layout = "-" if rank == 2 else "last" if is_last else "first"
        self.text = "x".join(map(str, shape))

    def label(self) -> str:
        return self.text + ("" if self.layout == "-" else f" channels {self.layout}") + f" {self.dtype}"


class Data:
    """The arrays of a case. Parameters are of float32, or float64."""

    def __init__(self, case: Case):
        import numpy as np

        generator = np.random.default_rng(0)
        kind: Any = case.dtype
        if case.dtype == "bfloat16":
            import ml_dtypes

            kind = ml_dtypes.bfloat16
        # Allocated in the order of memory, then viewed in the order of the dims.
        sizes = [case.shape[dim] for dim in case.order]
        back = [case.order.index(dim) for dim in range(len(sizes))]
        self.grad_output, self.input = (
            generator.standard_normal(sizes, np.float32).astype(kind).transpose(back) for _ in range(2))
        parameters = np.float64 if case.dtype == "float64" else np.float32
        axes = tuple(dim for dim in range(len(sizes)) if dim != 1)
        wide = self.input.astype(np.float64)
        self.mean, self.variance = wide.mean(axes).astype(parameters), wide.var(axes).astype(parameters)
        self.scale = np.linspace(0.5, 1.5, case.shape[1], dtype=parameters)
        self.offset = np.linspace(-1, 1, case.shape[1], dtype=parameters)


# The libraries --------------------------------------------------------------


def make_bngrad(data: Data, part: str) -> Call:
    import numpy as np

    output, grad_input = np.empty_like(data.input), np.empty_like(data.input)
    mean, inv_std, grad_scale, grad_offset = (np.empty_like(data.mean) for _ in range(4))

    def forward() -> Any:
        return bngrad.batch_norm_training(data.input, scale=data.scale, offset=data.offset, epsilon=EPSILON,
                                          out=(output, mean, None, inv_std), wanted=FORWARD)

    def backward(**statistics: Any) -> Any:
        return bngrad.batch_norm_backward(data.grad_output, data.input, scale=data.scale,
                                          out=(grad_input, grad_scale, grad_offset), **statistics)

    def both() -> Any:
        y, m, _, r = forward()
        return y, *backward(mean=m, inv_std=r)

    if part == "both":
        return both
    if part == "forward":
        return lambda: [result for result in forward() if result is not None]
    return lambda: backward(mean=data.mean, variance=data.variance, epsilon=EPSILON)


def make_torch(data: Data, part: str) -> Call:
    """PyTorch allocates its results: others would need a copy."""
    import numpy as np
    import torch

    def convert(array: Any) -> Any:
        if array.dtype.name != "bfloat16":
            return torch.from_numpy(array)
        return torch.from_numpy(array.view(np.int16)).view(torch.bfloat16)

    dy, x, mean, scale, offset = map(convert, (data.grad_output, data.input, data.mean, data.scale, data.offset))
    inv_std = torch.from_numpy(1 / np.sqrt(data.variance + data.variance.dtype.type(EPSILON)))
    normalize = torch.ops.aten.native_batch_norm.default
    op = torch.ops.aten.native_batch_norm_backward.default

    def forward() -> Any:
        return normalize(x, scale, offset, None, None, True, 0.1, EPSILON)

    def backward(mean: Any, inv_std: Any) -> Any:
        return op(dy, x, scale, None, None, mean, inv_std, True, EPSILON, [True] * 3)

    def both() -> Any:
        y, *statistics = forward()
        return y, *backward(*statistics)

    return {"both": both, "forward": forward, "backward": lambda: backward(mean, inv_std)}[part]


def make_jax(data: Data, part: str) -> Call:
    """JAX's derivative of the formula, from the residuals that JAX keeps."""
    import jax
    import jax.numpy as jnp

    # Innermost channels are the last dim, as JAX's arrays are row-major.
    is_last = data.input.strides[1] == data.input.itemsize
    axis = data.input.ndim - 1 if is_last else 1

    def convert(array: Any) -> Any:
        return jnp.asarray(array.transpose(0, *range(2, array.ndim), 1) if is_last else array)

    axes = tuple(dim for dim in range(data.input.ndim) if dim != axis)

    def forward(x: Any, scale: Any, offset: Any) -> Any:
        wide = x.astype(scale.dtype)
        mean, variance = jnp.mean(wide, axes), jnp.var(wide, axes)
        sizes = [-1 if dim == axis else 1 for dim in range(x.ndim)]
        inv_std = jax.lax.rsqrt(variance + EPSILON)
        output = (wide - mean.reshape(sizes)) * (inv_std * scale).reshape(sizes) + offset.reshape(sizes)
        return output.astype(x.dtype), mean, inv_std

    def normalize(x: Any, scale: Any, offset: Any) -> Any:
        return forward(x, scale, offset)[0]

    def both(dy: Any, *operands: Any) -> Any:
        output, pull = jax.vjp(normalize, *operands)
        return output, *pull(dy)

    dy, operands = convert(data.grad_output), (convert(data.input), jnp.asarray(data.scale), jnp.asarray(data.offset))
    if part == "backward":
        _, pull = jax.vjp(jax.jit(normalize), *operands)
        kept, structure = jax.tree.flatten(pull)
        gradient = jax.jit(lambda kept, dy: structure.unflatten(kept)(dy))
        return lambda: jax.block_until_ready(gradient(kept, dy))
    compiled = jax.jit(both) if part == "both" else jax.jit(forward)
    arguments = (dy, *operands) if part == "both" else operands
    return lambda: jax.block_until_ready(compiled(*arguments))


def find_libraries(threads: int) -> dict[str, Maker]:
    """The libraries that can be imported, on so many threads."""
    # All need it.
    __import__("numpy")

    # JAX reads this when it is imported.
    os.environ["NPROC"] = str(threads)
    os.environ.setdefault("JAX_PLATFORMS", "cpu")
    found: dict[str, Maker] = {"bngrad": make_bngrad}
    bngrad.set_num_threads(threads)
    try:
        import torch

        torch.set_num_threads(threads)
        found["torch"] = make_torch
    except ImportError:
        pass
    try:
        import jax

        # Without this, float64 becomes float32.
        jax.config.update("jax_enable_x64", True)
        found["jax"] = make_jax
    except ImportError:
        pass
    return found


def check(name: str, case: Case, results: Sequence[Any], expected: Sequence[Any],
          names: Sequence[str] = GRADIENTS) -> None:
    """Raises an error if a library's results, which have these names, differ."""
    import numpy as np

    def widen(value: Any) -> Any:
        if type(value).__module__ == "torch":
            return value.double().numpy()
        return np.asarray(value).astype(np.float64)

    for index, (result, other) in enumerate(zip(results, expected)):
        left, right = widen(result), widen(other)
        if left.shape != right.shape:
            left = np.moveaxis(left, -1, 1)
        limit = TOLERANCES[case.dtype] * max(float(np.abs(right).max(initial=0)), 1e-30)
        error = float(np.abs(left - right).max(initial=0))
        if not error <= limit:
            raise RuntimeError(f"{case.label()}: expected {name} and bngrad to differ by at most {limit:.3g} in "
                               f"{names[index]}, got {error:.3g}")


# The measurement ------------------------------------------------------------


class Progress:
    """A bar on a terminal."""

    def __init__(self, total: int, stream: Any = None):
        self.total, self.done = total, 0
        self.stream = sys.stderr if stream is None else stream
        self.is_shown = self.stream.isatty()

    def step(self, text: str) -> None:
        self._write(text)
        self.done += 1

    def end(self) -> None:
        self._write("")
        if self.is_shown:
            self.stream.write("\n")

    def _write(self, text: str) -> None:
        if self.is_shown:
            full = 30 * self.done // max(self.total, 1)
            self.stream.write(f"\r[{'#' * full}{'.' * (30 - full)}] {self.done}/{self.total} {text:<50.50}")
            self.stream.flush()


class Result:
    """Seconds of each library in a case, and the seconds that memory allows."""

    def __init__(self, case: Case, times: dict[str, float], expected: float, bandwidth: float):
        self.case, self.times, self.expected, self.bandwidth = case, times, expected, bandwidth


def sample(call: Call, calls: int) -> float:
    # After other libraries, the first call finds their data in the caches.
    call()
    start = time.perf_counter()
    for _ in range(calls):
        call()
    return (time.perf_counter() - start) / calls


def measure(case: Case, part: str, libraries: dict[str, Maker], traffic: Any, traffic_bytes: int,
            rounds: int) -> Result:
    data = Data(case)
    _, names, ops = PARTS[part]
    calls = {name: make(data, part) for name, make in libraries.items()}
    expected = [array.copy() for array in calls["bngrad"]()]
    for name, call in calls.items():
        check(name, case, call(), expected, names)
    counts = {name: max(1, min(1000, int(SECONDS / max(sample(call, 1), 1e-9)))) for name, call in calls.items()}
    times: dict[str, list[float]] = {name: [] for name in calls}
    passes = []
    for _ in range(rounds):
        for name, call in calls.items():
            times[name].append(sample(call, counts[name]))
        passes.append(traffic.measure())
    bandwidth = 3 * traffic_bytes / _explain.median(passes)
    moved = 0
    for op, wanted in ops.items():
        problem = _explain.make_problem(case.shape, case.dtype, op=op, order=case.order, wanted=wanted,
                                        parameter_dtype="float64" if case.dtype == "float64" else "float32")
        lines = dict(line.split("=", 1) for line in problem.describe().splitlines())
        moved += _explain.Traffic(lines, data.input.size, data.input.itemsize, (), _explain.cache_bytes()).moved
    return Result(case, {name: _explain.median(some) for name, some in times.items()}, moved / bandwidth, bandwidth)


# The report -----------------------------------------------------------------


def make_table(results: Sequence[Result], libraries: Sequence[str]) -> str:
    peers = [name for name in libraries if name != "bngrad"]
    rows = [["shape", "channels", "dtype", "memory, ms", *(f"{name}, ms" for name in libraries),
             *(f"{name} / bngrad" for name in peers)]]
    for result in results:
        case, times = result.case, result.times
        rows.append([case.text, case.layout, case.dtype, _plot.number(result.expected * 1e3),
                     *(_plot.number(times[name] * 1e3) for name in libraries),
                     *(f"{times[name] / times['bngrad']:.2f}" for name in peers)])
    widths = [max(map(len, column)) for column in zip(*rows)]
    return "\n".join("  ".join(cell.ljust(width) if index < 3 else cell.rjust(width)
                               for index, (cell, width) in enumerate(zip(row, widths))).rstrip() for row in rows)


def describe_cpu() -> str:
    try:
        for line in pathlib.Path("/proc/cpuinfo").read_text().splitlines():
            if line.startswith("model name"):
                return line.split(":", 1)[1].strip()
    except OSError:
        pass
    return "unknown CPU"


def draw(results: Sequence[Result], part: str, libraries: Sequence[str], subtitle: str) -> str:
    groups = [_plot.Group(result.case.label(), [result.times[name] * 1e3 for name in libraries],
                          result.expected * 1e3) for result in results]
    return _plot.draw(PARTS[part][0], subtitle, "time of a call, ms (logarithmic)", libraries,
                      groups, "time that memory allows")


# The command ----------------------------------------------------------------


def parse_shape(text: str) -> tuple[tuple[int, ...], bool]:
    sizes, separator, suffix = text.partition(":")
    shape = tuple(int(size) if size.isdecimal() else 0 for size in sizes.split("x"))
    if len(shape) < 2 or min(shape) < 1 or (separator and suffix != "last"):
        raise argparse.ArgumentTypeError(
            f"expected sizes of at least 1 such as 32x64x56x56 or 32x64x56x56:last, got '{text}'")
    return shape, bool(separator) and len(shape) > 2


def parse_shapes(text: str) -> list[tuple[tuple[int, ...], bool]]:
    return [parse_shape(each) for each in text.split(",")]


def parse_dtypes(text: str) -> list[str]:
    try:
        return [_explain._DTYPES[_explain.dtype_number(each)] for each in text.split(",")]
    except bngrad.Error as error:
        raise argparse.ArgumentTypeError(str(error).partition(": ")[2]) from None


def parse_count(text: str, most: int) -> int:
    if not text.isdecimal() or not 1 <= int(text) <= most:
        raise argparse.ArgumentTypeError(f"expected 1 to {most}, got '{text}'")
    return int(text)


def parse(arguments: Sequence[str] | None) -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="python -m bngrad.bench",
                                     description="bngrad beside PyTorch and JAX on this machine.", allow_abbrev=False)
    parser.add_argument("--part", choices=PARTS, default="backward", help="the gradient, the forward pass, or both")
    parser.add_argument("--shapes", type=parse_shapes, default=parse_shapes(DEFAULT_SHAPES),
                        help="such as 32x64x56x56,32x64x56x56:last; dim 1 has the channels, which ':last' makes "
                             "innermost in memory")
    parser.add_argument("--dtype", type=parse_dtypes, default=["float32"], help="such as float32,bfloat16")
    parser.add_argument("--threads", type=lambda text: parse_count(text, 1024), default=bngrad.get_num_threads(),
                        help="of each library")
    parser.add_argument("--rounds", type=lambda text: parse_count(text, 100000), default=15)
    parser.add_argument("--output", type=pathlib.Path, default=pathlib.Path("."), metavar="FOLDER",
                        help="of bngrad-bench.svg; made if there is none")
    return parser.parse_args(arguments)


def keep_memory() -> None:
    """Freed memory stays with the process, so that no library pays for the
    pages of its results."""
    import ctypes

    trim_threshold, mmap_max = -1, -4  # M_TRIM_THRESHOLD, M_MMAP_MAX
    try:
        mallopt = ctypes.CDLL(None).mallopt
    except (AttributeError, OSError):
        return
    mallopt(mmap_max, 0)
    mallopt(trim_threshold, (1 << 31) - 1)


def run(arguments: argparse.Namespace) -> None:
    keep_memory()
    libraries = find_libraries(arguments.threads)
    names = list(libraries)
    cases = [Case(shape, is_last, dtype) for dtype in arguments.dtype for shape, is_last in arguments.shapes]
    arguments.output.mkdir(parents=True, exist_ok=True)
    traffic_bytes = _explain._TRAFFIC_BYTES
    traffic = _numpy._Traffic(traffic_bytes)
    traffic.measure()
    progress, results = Progress(len(cases)), []
    for case in cases:
        progress.step(case.label())
        results.append(measure(case, arguments.part, libraries, traffic, traffic_bytes, arguments.rounds))
    progress.end()
    bandwidth = _explain.median([result.bandwidth for result in results])
    count = f"{arguments.threads} thread" + ("s" if arguments.threads > 1 else "")
    subtitle = (f"{describe_cpu()}, {count}, memory {bandwidth / 1e9:.3g} GB/s, medians of {arguments.rounds} "
                f"round{'s' if arguments.rounds > 1 else ''}")
    file = arguments.output / "bngrad-bench.svg"
    file.write_text(draw(results, arguments.part, names, subtitle), encoding="utf-8")
    print(subtitle)
    missing = [name for name in LIBRARIES if name not in libraries]
    if missing:
        print("not installed: " + ", ".join(missing))
    print(make_table(results, names))
    print(f"plot: {file}")


def main(arguments: Sequence[str] | None = None) -> int:
    """Runs the command and returns its exit status."""
    try:
        run(parse(arguments))
    except ImportError as error:
        print(f"bngrad: error: expected {error.name}, got none: pip install {error.name}", file=sys.stderr)
        return 1
    except (OSError, RuntimeError, MemoryError) as error:
        print(f"bngrad: error: {error or 'out of memory'}", file=sys.stderr)
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main())
