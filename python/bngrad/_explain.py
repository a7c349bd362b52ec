"""How an op is computed, how fast, and how fast memory would allow."""

from __future__ import annotations

import operator
import os
from collections.abc import Sequence
from typing import Any

from bngrad import _numpy
from bngrad._errors import DtypeError, ParameterError, ShapeError

_DTYPES = ("float16", "bfloat16", "float32", "float64")
_SHORT = {"f16": "float16", "bf16": "bfloat16", "f32": "float32", "f64": "float64"}
_WIDTHS = (2, 2, 4, 8)
_BACKWARD = "batch_norm_backward"
# The results of each op.
_RESULTS = {op: tuple(name for name, use in _numpy._OPS[op].items() if use in ("result", "wanted"))
            for op in (_BACKWARD, "batch_norm_training", "batch_norm_inference")}
_DATA_RESULTS = ("grad_input", "output")
# Results last.
_DATA = sorted((name for name, shape in _numpy._ROLES.items() if shape == "data"), key=_DATA_RESULTS.__contains__)
_MOST_RANK = 16
# Bytes of each of three arrays, beyond a core's share of most caches.
_TRAFFIC_BYTES = 64 << 20
# The least duration of a round of calls.
_SECONDS = 200e-6
# Bytes per second by the number of threads.
_bandwidths: dict[int, float] = {}


# Arguments ------------------------------------------------------------------


def dtype_number(dtype: Any, name: str = "dtype") -> int:
    """The C library's number of a type, given by name or as a type of any library."""
    text = dtype if isinstance(dtype, str) else (
        getattr(dtype, "name", None) or getattr(dtype, "__name__", None) or str(dtype))
    text = str(text).rsplit(".", 1)[-1]
    text = _SHORT.get(text, text)
    if text not in _DTYPES:
        raise DtypeError(f"{name}: expected {', '.join(_DTYPES[:-1])} or {_DTYPES[-1]}, got {text}",
                         "BNGRAD_BAD_DTYPE")
    return _DTYPES.index(text)


def _integers(values: Any, name: str) -> list[int]:
    try:
        return [operator.index(values)]
    except TypeError:
        pass
    try:
        return [operator.index(value) for value in values]
    except TypeError:
        raise DtypeError(f"{name}: expected integers, got {values!r}", "BNGRAD_BAD_DTYPE") from None


def _read_shape(shape: Any) -> list[int]:
    sizes = _integers(shape, "shape")
    if not 1 <= len(sizes) <= _MOST_RANK:
        raise ShapeError(f"shape: expected 1 to {_MOST_RANK} dims, got {len(sizes)}", "BNGRAD_BAD_SHAPE")
    for size in sizes:
        if not 0 <= size < 1 << 47:
            raise ShapeError(f"shape: expected sizes of 0 to 2^47 - 1, got {size}", "BNGRAD_BAD_SHAPE")
    return sizes


def _read_feature_dims(dims: Any, rank: int) -> list[int]:
    numbers = [dim + rank if -rank <= dim < 0 else dim for dim in _integers(dims, "feature_dims")]
    if not numbers:
        raise ParameterError("feature_dims: expected at least one, got none", "BNGRAD_BAD_PARAM")
    if len(numbers) > 8:
        raise ParameterError(f"feature_dims: expected at most 8, got {len(numbers)}", "BNGRAD_BAD_PARAM")
    for number in numbers:
        if not 0 <= number < rank:
            raise ParameterError(f"feature_dims: expected dims of shape, 0 to {rank - 1}, got {number}",
                                 "BNGRAD_BAD_PARAM")
    if numbers != sorted(set(numbers)):
        raise ParameterError(f"feature_dims: expected ascending dims, got {numbers}", "BNGRAD_BAD_PARAM")
    return numbers


def _quote(names: Sequence[str]) -> str:
    quoted = [repr(name) for name in names]
    return " or ".join(filter(None, (", ".join(quoted[:-1]), quoted[-1])))


def _read_wanted(op: str, wanted: Any) -> list[str]:
    results = _RESULTS[op]
    if wanted is None:
        return list(results)
    if isinstance(wanted, str) or not hasattr(wanted, "__iter__"):
        raise DtypeError(f"wanted: expected names of results, got {type(wanted).__name__}", "BNGRAD_BAD_DTYPE")
    names = set()
    for name in wanted:
        if name not in results:
            raise ParameterError(f"wanted: expected {_quote(results)}, got {name!r}", "BNGRAD_BAD_PARAM")
        names.add(name)
    if not names:
        raise ParameterError("wanted: expected at least one result, got none", "BNGRAD_BAD_PARAM")
    return [name for name in results if name in names]


def make_problem(shape: Any, dtype: Any, *, op: str = _BACKWARD, feature_dims: Any = (1,), statistics: str = "batch",
                 mask: bool = False, scale: bool = True, parameter_dtype: Any = None, order: Any = None,
                 wanted: Any = None) -> Any:
    """Checks the arguments of `explain` and returns their problem."""
    sizes = _read_shape(shape)
    rank = len(sizes)
    dims = _read_feature_dims(feature_dims, rank)
    if op not in _RESULTS:
        raise ParameterError(f"op: expected {_quote(tuple(_RESULTS))}, got {op!r}", "BNGRAD_BAD_PARAM")
    if statistics not in ("batch", "global"):
        raise ParameterError(f"statistics: expected 'batch' or 'global', got {statistics!r}", "BNGRAD_BAD_PARAM")
    if op != _BACKWARD and statistics != "batch":
        raise ParameterError(f"statistics: expected 'batch' for {op}, got {statistics!r}", "BNGRAD_BAD_PARAM")
    if op != _BACKWARD and mask:
        raise ParameterError(f"mask: expected False for {op}, got {mask!r}", "BNGRAD_BAD_PARAM")
    number = dtype_number(dtype)
    parameters = number if parameter_dtype is None else dtype_number(parameter_dtype, "parameter_dtype")
    places = list(range(rank)) if order is None else _integers(order, "order")
    if sorted(places) != list(range(rank)):
        raise ParameterError(f"order: expected each of the dims 0 to {rank - 1} once, got {places}",
                             "BNGRAD_BAD_PARAM")
    optional = {"scale": scale, "offset": scale, "mask": mask}
    names = [name for name, use in _numpy._OPS[op].items() if use == "optional" and optional[name]]
    return _numpy._Problem(op, sizes, places, number, parameters, dims, statistics, names + _read_wanted(op, wanted))


# The model of memory --------------------------------------------------------


def cache_bytes() -> int:
    """The last-level cache as Linux lists it; 32 MiB if it does not."""
    folder = "/sys/devices/system/cpu/cpu0/cache"
    sizes = [32 << 20]
    try:
        for index in os.listdir(folder):
            if index.startswith("index"):
                with open(f"{folder}/{index}/size") as file:
                    sizes.append(int(file.read().strip().removesuffix("K")) << 10)
    except (OSError, ValueError):
        pass
    return sizes[-1] if len(sizes) == 1 else max(sizes[1:])


class Traffic:
    """The bytes of each tensor, the passes of the loops over it, and how often
    it crosses memory."""

    def __init__(self, lines: dict[str, str], elements: int, width: int, copied: Sequence[str], cache: int):
        self.bytes: dict[str, int] = {}
        self.passes: dict[str, int] = {}
        self.crossings: dict[str, int] = {}
        for name in _DATA:
            passes = int(lines.get(f"passes.{name}", 0))
            if passes:
                self.bytes[name] = elements * (1 if name == "mask" else width)
                self.passes[name] = passes
        total = sum(self.bytes.values())
        is_far = int(lines.get("reuse_bytes", 0)) > cache
        self.moved = 0
        # A copy may have another type.
        kernel_width = _WIDTHS[dtype_number(lines["data"])] if "data" in lines else width
        for name, passes in self.passes.items():
            crossings = passes if is_far else 1
            # A line is read before it is written, unless stores go past the caches.
            if name in _DATA_RESULTS and lines.get("streaming") == "0" and total > cache:
                crossings += 1
            if name in copied:
                # One read of the operand, one more of its copy.
                copy = self.bytes[name] if name == "mask" else elements * kernel_width
                self.moved += self.bytes[name] + (crossings + 1) * copy
                crossings += 2
            else:
                self.moved += crossings * self.bytes[name]
            self.crossings[name] = crossings


def median(values: Sequence[float]) -> float:
    """The median, or the mean of the middle two."""
    ordered, half = sorted(values), len(values) // 2
    return ordered[half] if len(values) % 2 else (ordered[half - 1] + ordered[half]) / 2


def measure(problem: Any, rounds: int) -> tuple[float, float]:
    """Seconds of a call, and bytes per second of memory: medians of rounds in
    which they take turns. The latter is measured once by number of threads."""
    threads = _numpy.get_num_threads()
    # The first call maps pages and starts threads.
    problem.measure(1)
    calls = max(1, min(1000, int(_SECONDS / max(problem.measure(1), 1e-9))))
    traffic = None
    if threads not in _bandwidths:
        traffic = _numpy._Traffic(_TRAFFIC_BYTES)
        traffic.measure()
    times, passes = [], []
    for _ in range(rounds):
        if traffic is not None:
            passes.append(traffic.measure())
        times.append(problem.measure(calls))
    if traffic is not None:
        _bandwidths[threads] = 3 * _TRAFFIC_BYTES / median(passes)
    return median(times), _bandwidths[threads]


# The result -----------------------------------------------------------------


def _scaled(bytes: float) -> str:
    return f"{bytes / 1e6:.3g} MB" if bytes < 1e9 else f"{bytes / 1e9:.3g} GB"


class Explanation:
    """The result of `bngrad.explain`. `print` shows it.

    kernel: "ready", or "compiled" by libBNGradCompiler.so.
    reason: why no ready kernel takes the operands directly; empty if one does.
    copied: the operands that are copied before or after, for that reason.
    isa: the instruction set of a ready kernel, otherwise None.
    form: "rows" if channels are innermost, otherwise "planes"; None if the
        kernel is compiled.
    schedule: the schedule of the loops (docs/schedules.md), otherwise None.
    threads: the number of threads that share the loops.
    bytes, passes, crossings: for each tensor, its bytes, the passes of the loops
        over it, and how often it crosses memory.
    bytes_moved: the bytes that cross memory.
    bandwidth: bytes per second of two reads and one write, measured.
    expected: seconds, bytes_moved over bandwidth.
    measured: seconds, a median.
    ratio: measured over expected.
    """

    def __init__(self, title: str, lines: dict[str, str], reason: str, copied: Sequence[str], traffic: Traffic,
                 seconds: float, bandwidth: float, rounds: int, cache: int):
        self.title = title
        self.kernel = lines["kernel"]
        self.reason = reason or lines.get("reason", "")
        self.copied = tuple(copied)
        self.isa = lines.get("isa")
        self.form = lines.get("form")
        self.sizes = tuple(int(lines.get(name, 0)) for name in ("outer", "channels", "inner"))
        self.schedule = lines.get("schedule")
        self.threads = int(lines.get("threads", _numpy.get_num_threads()))
        self.is_streaming = lines.get("streaming") == "1"
        self.bytes = traffic.bytes
        self.passes = traffic.passes
        self.crossings = traffic.crossings
        self.bytes_moved = traffic.moved
        self.bandwidth = bandwidth
        self.expected = self.bytes_moved / bandwidth
        self.measured = seconds
        self.ratio = seconds / self.expected if self.expected else float("nan")
        self.rounds = rounds
        self._fits = sum(self.bytes.values()) <= cache

    def _rows(self) -> list[tuple[str, str]]:
        if self.kernel == "ready":
            outer, channels, inner = self.sizes
            form = f"channels innermost, {outer} x {channels}" if self.form == "rows" else (
                f"channels not innermost, {outer} x {channels} x {inner}")
            kernel = f"ready, {self.isa}; {form}"
        else:
            kernel = "compiled for these types and layouts"
        rows = [("kernel", kernel)]
        if self.reason:
            rows.append(("reason", self.reason))
        if self.copied:
            rows.append(("copied", ", ".join(self.copied)))
        threads = f"{self.threads} thread" + ("s" if self.threads != 1 else "")
        if self.schedule:
            stores = ", stores past the caches" if self.is_streaming else ""
            rows.append(("schedule", f"{self.schedule}, {threads}{stores}"))
        else:
            rows.append(("schedule", f"chosen by the compiler, {threads}"))
        for name, size in self.bytes.items():
            passes, crossings = self.passes[name], self.crossings[name]
            rows.append((name, f"{_scaled(size)}, {passes} pass{'es' if passes > 1 else ''}, "
                               f"{crossings} of memory"))
        note = ", which the caches hold: it may be less" if self._fits else ""
        rows += [
            ("moved", _scaled(self.bytes_moved)),
            ("bandwidth", f"{self.bandwidth / 1e9:.3g} GB/s"),
            ("expected", f"{self.expected * 1e6:.4g} us{note}"),
            ("measured", f"{self.measured * 1e6:.4g} us, median of {self.rounds} rounds"),
            ("ratio", f"{self.ratio:.2f}"),
        ]
        return rows

    def __str__(self) -> str:
        rows = self._rows()
        width = max(len(name) for name, _ in rows)
        return "\n".join([self.title, *(f"  {name:<{width}}  {text}" for name, text in rows)])

    __repr__ = __str__


def explain(shape: Any, dtype: Any, *, op: str = _BACKWARD, feature_dims: Any = (1,), statistics: str = "batch",
            mask: bool = False, scale: bool = True, parameter_dtype: Any = None, order: Any = None,
            wanted: Any = None, rounds: int = 15) -> Explanation:
    """Explains how a function of bngrad computes its results, and measures it.

    Args:
        shape: the shape of input.
        dtype: the type of data, of any library, or a name such as "bfloat16".
        op: the function: "batch_norm_backward", "batch_norm_training" or
            "batch_norm_inference".
        feature_dims: as in that function.
        statistics: as in `batch_norm_backward`.
        mask: whether `batch_norm_backward` has a mask.
        scale: whether there is one, and in the forward pass an offset.
        parameter_dtype: the type of mean and the others; None for that of data.
        order: the dims in the order of memory, outermost first, such as
            (0, 2, 3, 1) for channels_last; None for row-major.
        wanted: names of the results to compute; None for all.
        rounds: of measurements; more rounds are more exact.

    Returns:
        An Explanation, whose repr is readable. It measures with data of
        its own, of the same size as those of a call.

    Raises:
        bngrad.Error: an argument is wrong.
    """
    if _integers(rounds, "rounds") != [rounds] or rounds < 1:
        raise ParameterError(f"rounds: expected at least 1, got {rounds}", "BNGRAD_BAD_PARAM")
    # Iterators are read once.
    shape, feature_dims = _integers(shape, "shape"), _integers(feature_dims, "feature_dims")
    if wanted is not None and op in _RESULTS:
        wanted = _read_wanted(op, wanted)
    problem = make_problem(shape, dtype, op=op, feature_dims=feature_dims, statistics=statistics, mask=mask,
                           scale=scale, parameter_dtype=parameter_dtype, order=order, wanted=wanted)
    lines = dict(line.split("=", 1) for line in problem.describe().splitlines())
    if lines["kernel"] != "ready":
        # The passes of its loops are unknown, but there is at least one.
        names = {name for name, use in _numpy._OPS[op].items() if use == "required"} | ({"mask"} if mask else set())
        names |= set(_read_wanted(op, wanted))
        lines |= {f"passes.{name}": "1" for name in names & set(_DATA)}
    copied, cache = problem.copied(), cache_bytes()
    sizes = _read_shape(shape)
    elements = 1
    for size in sizes:
        elements *= size
    number = dtype_number(dtype)
    traffic = Traffic(lines, elements, _WIDTHS[number], copied, cache)
    seconds, bandwidth = measure(problem, rounds)
    dims = ", ".join(map(str, feature_dims))
    title = f"{_DTYPES[number]} {'x'.join(map(str, sizes))}, feature dims {dims}, " + (
        f"{statistics} statistics" if op == _BACKWARD else lines["part"])
    return Explanation(title + (", mask" if mask else ""), lines, problem.reason(), copied, traffic, seconds, bandwidth,
                       rounds, cache)
