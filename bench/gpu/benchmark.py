"""Compares the times of gradients on the GPU with those of PyTorch.

Every implementation is captured into a CUDA graph that processes several
copies of the data in turn, together larger than the last-level cache. A figure
is the median over replays of the time per call. Compiled gradients are
captured through bngradCudaSetStream."""

import statistics
import time

import torch

import correctness
import device
import items

DTYPES = {
    "f16": torch.float16,
    "bf16": torch.bfloat16,
    "f32": torch.float32,
    "f64": torch.float64,
}
DEVICE = "cuda"
ROUNDS = 15
WARM_ROUNDS = 3
# Ratio of the size of all copies to the last-level cache.
CACHE_FACTOR = 3
MOST_BYTES = 24e9
# A graph takes at least this long, so that events resolve it.
GRAPH_US = 400


class Data:
    """`count` copies of the arguments of `item`, which differ."""

    def __init__(self, item, count, seed=1):
        self.item = item
        generator = torch.Generator(DEVICE).manual_seed(seed)
        sizes, dims = item.folded
        channel = [1 if dim in dims else size for dim, size in enumerate(sizes)]
        number = torch.arange(item.case.channels, device=DEVICE).reshape(channel)
        data = DTYPES[item.type]
        parameter = DTYPES[item.parameter_type]

        def uniform(low, high):
            values = torch.rand(channel, generator=generator, device=DEVICE)
            return low + (high - low) * values

        def normal():
            return torch.randn(sizes, generator=generator, device=DEVICE, dtype=data)

        spread = (0.5 + 0.25 * (number % 5)).to(parameter)
        self.mean = (0.25 + 0.5 * (number % 7)).to(parameter)
        self.variance = (spread**2 * uniform(0.9, 1.1)).to(parameter)
        self.scale = (uniform(0.5, 1.5) * (1 - 2 * (number % 2))).to(parameter)
        self.inv_std = (self.variance + items.EPSILON) ** -0.5
        offset = 0.125 * (number % 3)
        self.input = [
            normal().mul_(spread.to(data)).add_(self.mean.to(data)) for _ in range(count)
        ]
        self.grad_output = [normal().add_(offset.to(data)) for _ in range(count)]

    def results(self):
        """Poisoned results."""
        found = []
        for _, element_type, per_channel in self.item.results:
            like = self.mean if per_channel else self.input[0]
            tensor = torch.empty_like(like, dtype=DTYPES[element_type])
            tensor.view(torch.uint8).fill_(device.POISON)
            found.append(tensor)
        return found

    def arguments(self, copy):
        rest = (self.scale, self.mean, self.variance)
        return (self.grad_output[copy], self.input[copy], *rest)

    def logical(self, tensor):
        """A view of `tensor` with the sizes for PyTorch."""
        case = self.item.case
        shaped = tensor.reshape(case.memory_sizes)
        if case.layout == "nchw" or len(case.sizes) == 2:
            return shaped
        return shaped.permute(0, shaped.dim() - 1, *range(1, shaped.dim() - 1))

    def compare(self, results):
        """The largest ratio of error to bound, channel by channel in float64."""
        item = self.item
        sizes, dims = item.folded
        axis = next(dim for dim in range(3) if dim not in dims)
        step = max(1, int(2**26 // max(1, item.case.elements // item.case.channels)))
        worst = 0.0
        arguments = self.arguments(0)
        for begin in range(0, item.case.channels, step):
            length = min(step, item.case.channels - begin)

            def part(tensor):
                return tensor.narrow(axis, begin, length).double()

            wide = {
                name: part(tensor)
                for (name, _, _), tensor in zip(item.arguments, arguments)
            }
            piece = _Piece(item, length)
            exact, terms, count = correctness.reference(
                piece, wide, lambda mask, value: value.where(mask != 0, 0), torch.abs
            )
            for (name, element_type, _), result, value, term in zip(
                item.results, results, exact, terms
            ):
                allowed = correctness.bound(item, element_type, value, term, count, torch.abs)
                error = (part(result) - value).abs() / allowed
                wrong = ~(error <= 1)
                if wrong.any():
                    first = int(wrong.flatten().int().argmax())
                    raise device.Error(
                        f"{name}: channel {begin} on, element {first}: expected "
                        f"{value.flatten()[first].item():.8g} +- "
                        f"{allowed.flatten()[first].item():.2g}, got "
                        f"{part(result).flatten()[first].item():.8g}; "
                        f"{int(wrong.sum())} of {wrong.numel()} are wrong"
                    )
                worst = max(worst, float(error.max()))
        return worst


class _Case:
    def __init__(self, channels):
        self.channels = channels


class _Piece:
    """Some channels of an item, for correctness.reference."""

    def __init__(self, item, channels):
        sizes, dims = item.folded
        axis = next(dim for dim in range(3) if dim not in dims)
        self.folded = tuple(
            channels if dim == axis else size for dim, size in enumerate(sizes)
        ), dims
        self.case = _Case(channels)
        self.variant = item.variant


def count_copies(item):
    """The number of copies of the data that exceeds the last-level cache."""
    cache = torch.cuda.get_device_properties(0).L2_cache_size
    each = 3 * item.case.tensor_bytes
    wanted = -(-CACHE_FACTOR * cache // each)
    # Tiny ones are bound by launches, so a few copies suffice.
    return int(max(2, min(wanted, MOST_BYTES // each, 64)))


def capture(calls, repeat):
    """A graph of all `calls`, `repeat` times. Each call also runs once before capture."""
    stream = torch.cuda.Stream()
    stream.wait_stream(torch.cuda.current_stream())
    kept = []
    with torch.cuda.stream(stream):
        for call in calls:
            kept.append(call())
        torch.cuda.synchronize()
        kept.clear()
        graph = torch.cuda.CUDAGraph()
        with torch.cuda.graph(graph, stream=stream, capture_error_mode="relaxed"):
            for _ in range(repeat):
                # Keeps the results alive, so that their memory is not reused.
                kept[:] = [call() for call in calls]
    torch.cuda.current_stream().wait_stream(stream)
    return graph, kept


def measure(calls, rounds=ROUNDS, estimate_us=None):
    """Median, minimum and maximum of the microseconds of a call in a graph."""
    repeat = 1
    if estimate_us:
        repeat = max(1, int(GRAPH_US / (estimate_us * len(calls)) + 0.5))
    graph, kept = capture(calls, min(repeat, 50))
    times = []
    for number in range(WARM_ROUNDS + rounds):
        begin, end = (torch.cuda.Event(enable_timing=True) for _ in range(2))
        begin.record()
        graph.replay()
        end.record()
        end.synchronize()
        if number >= WARM_ROUNDS:
            times.append(begin.elapsed_time(end) * 1e3 / (min(repeat, 50) * len(calls)))
    graph.reset()
    del kept
    return {
        "us": statistics.median(times),
        "min_us": min(times),
        "max_us": max(times),
        "copies": len(calls),
    }


def measure_stream(calls, rounds=ROUNDS):
    """Median microseconds of a call in a sequence of calls in a stream: the
    time in a program without graphs, including gaps between launches."""
    calls = calls * max(1, 32 // len(calls))
    times = []
    for number in range(WARM_ROUNDS + rounds):
        begin, end = (torch.cuda.Event(enable_timing=True) for _ in range(2))
        begin.record()
        for call in calls:
            call()
        end.record()
        end.synchronize()
        if number >= WARM_ROUNDS:
            times.append(begin.elapsed_time(end) * 1e3 / len(calls))
    return statistics.median(times)


def measure_bandwidth():
    """Bytes of a copy of 1 GiB per second, in GB/s, both directions counted."""
    source = torch.empty(1 << 28, dtype=torch.float32, device=DEVICE).normal_()
    target = torch.empty_like(source)
    found = measure([lambda: target.copy_(source)], rounds=7)
    return 2 * source.nbytes / found["us"] / 1e3


class Own:
    """BNGrad's function on the current stream of PyTorch."""

    def __init__(self, library, item, path, data):
        self.library = library
        gradient = device.Gradient(item, path)
        self.results = [data.results() for _ in data.input]
        self.kept = data
        self.calls = []
        for copy, results in enumerate(self.results):
            pointers = [t.data_ptr() for t in (*data.arguments(copy), *results)]
            self.calls.append(self._on_stream(gradient.bind(pointers)))

    def _on_stream(self, call):
        def run():
            self.library.use_stream(torch.cuda.current_stream().cuda_stream)
            try:
                self.library.check(call())
            finally:
                self.library.use_own_streams()

        return run


def native_calls(data):
    """PyTorch's own kernels."""
    op = torch.ops.aten.native_batch_norm_backward
    scale, mean, inv_std = (
        t.flatten() for t in (data.scale, data.mean, data.inv_std)
    )

    def bind(copy):
        dy, x = data.logical(data.grad_output[copy]), data.logical(data.input[copy])
        return lambda: op(
            dy, x, scale, mean, mean, mean, inv_std, True, items.EPSILON, [True] * 3
        )

    return [bind(copy) for copy in range(len(data.input))]


def cudnn_calls(data):
    scale, mean, inv_std = (
        t.flatten() for t in (data.scale, data.mean, data.inv_std)
    )
    if data.input[0].dim() and len(data.item.sizes) == 2:
        raise device.Error("PyTorch does not call cuDNN for 2-D data")
    # The reserve space from the forward pass.
    x = data.logical(data.input[0])
    *_, reserve = torch.ops.aten.cudnn_batch_norm(
        x, scale, torch.zeros_like(scale), None, None, True, 0.1, items.EPSILON
    )
    op = torch.ops.aten.cudnn_batch_norm_backward

    def bind(copy):
        dy, x = data.logical(data.grad_output[copy]), data.logical(data.input[copy])
        return lambda: op(
            x, dy, scale, None, None, mean, inv_std, items.EPSILON, reserve
        )

    return [bind(copy) for copy in range(len(data.input))]


def compiled_calls(data):
    """torch.compile of PyTorch's decomposition."""
    torch._dynamo.reset()
    scale, mean, inv_std = (
        t.flatten() for t in (data.scale, data.mean, data.inv_std)
    )

    @torch.compile(dynamic=False)
    def function(dy, x):
        return torch.ops.aten.native_batch_norm_backward(
            dy, x, scale, mean, mean, mean, inv_std, True, items.EPSILON, [True] * 3
        )

    def bind(copy):
        dy, x = data.logical(data.grad_output[copy]), data.logical(data.input[copy])
        return lambda: function(dy, x)

    return [bind(copy) for copy in range(len(data.input))]


PEERS = {
    "torch": native_calls,
    "cudnn": cudnn_calls,
    "compile": compiled_calls,
}


def check_large(library, item, path):
    """Error over bound of a call on PyTorch's memory."""
    data = Data(item, 1)
    own = Own(library, item, path, data)
    own.calls[0]()
    torch.cuda.synchronize()
    return data.compare(own.results[0])


def _measure_calls(item, calls):
    calls[0]()
    torch.cuda.synchronize()
    estimate = 3 * item.case.tensor_bytes / 4e6 + 3
    return measure(calls, estimate_us=estimate)


def measure_peer(item, name):
    data = Data(item, count_copies(item))
    try:
        return _measure_calls(item, PEERS[name](data))
    finally:
        del data
        torch.cuda.empty_cache()


def measure_item(library, item, path, peers, deadline):
    """BNGrad and `peers`, each {"us": ...} or {"absent": why}."""
    data = Data(item, count_copies(item))
    found = {}

    def attempt(name, make):
        if time.monotonic() > deadline:
            found[name] = {"absent": "no time left"}
            return
        try:
            found[name] = _measure_calls(item, make())
        except Exception as error:
            text = str(error) or type(error).__name__
            found[name] = {"absent": text.splitlines()[0][:200]}
        torch.cuda.empty_cache()

    own = Own(library, item, path, data)
    attempt("bngrad", lambda: own.calls)
    stream_us = measure_stream(own.calls, rounds=5)
    if "us" not in found["bngrad"]:
        # Falls back to times without a graph; the table shows this.
        why = found["bngrad"]["absent"]
        found["bngrad"] = {"us": stream_us, "not_captured": why}
    found["bngrad"]["stream_us"] = stream_us
    del own
    for name in peers:
        attempt(name, lambda: PEERS[name](data))
    return found
