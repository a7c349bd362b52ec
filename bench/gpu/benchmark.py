"""Compares the times of gradients on the GPU with those of PyTorch and others.

Every implementation is captured into a CUDA graph that processes several
copies of the data in turn, together larger than the last-level cache. The graphs are
replayed in turn (timing.py). Compiled gradients are captured through
bngradCudaSetStream."""

import torch

import correctness
import cuda_driver
import device
import items
import peers
import timing

DTYPES = {
    "f16": torch.float16,
    "bf16": torch.bfloat16,
    "f32": torch.float32,
    "f64": torch.float64,
}
NAMES = {dtype: name for name, dtype in DTYPES.items()}
DEVICE = "cuda"
# Ratio of the size of all copies to the last-level cache.
CACHE_FACTOR = 3
MOST_BYTES = 24e9
COPIED_BYTES = 2 << 30


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
        self.offset = (0.5 - 0.25 * (number % 4)).to(parameter)
        offset = 0.125 * (number % 3)
        self.input = [
            normal().mul_(spread.to(data)).add_(self.mean.to(data)) for _ in range(count)
        ]
        self.grad_output = [] if item.is_training else [normal().add_(offset.to(data)) for _ in range(count)]

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
        if self.item.is_training:
            return (self.input[copy], self.scale, self.offset)
        rest = (self.scale, self.mean, self.variance)
        return (self.grad_output[copy], self.input[copy], *rest)

    def logical(self, tensor):
        """A view of `tensor` with the sizes for PyTorch."""
        case = self.item.case
        shaped = tensor.reshape(case.memory_sizes)
        if case.layout == "nchw" or len(case.sizes) == 2:
            return shaped
        return shaped.permute(0, shaped.dim() - 1, *range(1, shaped.dim() - 1))

    def compare(self, results, slack=1):
        """The largest ratio of error to bound, channel by channel in float64. More than
        `slack` is an error."""
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
            for (name, _, _), result, value, term in zip(item.results, results, exact, terms):
                if result is None:
                    continue
                # Others may return parameter gradients in the type of input.
                allowed = correctness.bound(item, NAMES[result.dtype], value, term, count, torch.abs)
                error = (part(result) - value).abs() / allowed
                wrong = ~(error <= slack)
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
        self.is_training, self.parameter_type = item.is_training, item.parameter_type


def count_copies(item):
    """The number of copies of the data that exceeds the last-level cache."""
    cache = torch.cuda.get_device_properties(0).L2_cache_size
    each = (item.inputs + 1) * item.case.tensor_bytes
    wanted = -(-CACHE_FACTOR * cache // each)
    # Tiny ones are bound by launches, so a few copies suffice.
    return int(max(2, min(wanted, MOST_BYTES // each, 64)))


class Own:
    """A function of BNGrad on the current stream of PyTorch."""

    def __init__(self, library, item, function, data):
        self.library = library
        gradient = device.Gradient(item, function)
        self.results = [data.results() for _ in data.input]
        self.kept = data
        self.calls = []
        for copy, results in enumerate(self.results):
            pointers = [t.data_ptr() for t in (*data.arguments(copy), *results)]
            self.calls.append(self._on_stream(gradient.bind(pointers)))
        self.expected, self.errors = None, []

    def _on_stream(self, call):
        def run():
            self.library.use_stream(torch.cuda.current_stream().cuda_stream)
            try:
                self.library.check(call())
            finally:
                self.library.use_own_streams()

        return run

    def run_alone(self):
        """Calls the function for each copy on its own, and keeps the results; returns those of the first copy."""
        for call in self.calls:
            call()
            torch.cuda.synchronize()
        self.expected = [[tensor.clone() for tensor in results] for results in self.results]
        return self.expected[0]

    def verify(self, run):
        """Notes an error unless the results of queued calls, which `run` makes in the stream, have the bits of those
        on their own."""
        for tensor in (tensor for results in self.results for tensor in results):
            tensor.view(torch.uint8).fill_(device.POISON)
        run()
        torch.cuda.synchronize()
        for copy, (results, expected) in enumerate(zip(self.results, self.expected)):
            for (name, _, _), got, wanted in zip(self.kept.item.results, results, expected):
                if not torch.equal(got.view(torch.uint8), wanted.view(torch.uint8)):
                    self.errors.append(f"{name} of copy {copy}: other bits from queued calls than from one on its own")
                    return


class TorchTimer:
    """Captures and times by graphs and events of PyTorch."""

    def capture(self, calls, repeat):
        """A graph of all `calls`, `repeat` times. Each call also runs once before."""
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
        return _Graph(graph, kept)

    def time(self, function):
        begin, end = (torch.cuda.Event(enable_timing=True) for _ in range(2))
        begin.record()
        function()
        end.record()
        end.synchronize()
        return begin.elapsed_time(end) * 1e3

    def hold(self, microseconds):
        cuda_driver.Driver().hold(torch.cuda.current_stream().cuda_stream, microseconds)

    def replay(self, graph):
        self.hold(timing.REPLAY_HOLD_US)
        return self.time(graph.graph.replay)


class _Graph:
    def __init__(self, graph, kept):
        self.graph = graph
        self.kept = kept

    def free(self):
        self.graph.reset()
        self.kept = None


def _copy_calls():
    source = torch.ones(COPIED_BYTES // 8, dtype=torch.float32, device=DEVICE)
    target = torch.empty_like(source)
    return [lambda: target.copy_(source)]


def _measure(library, item, functions, names, at):
    """BNGrad with each of `functions`, a copy, and the implementations `names`, in turn.

    `at(name)` is called before an implementation first runs."""
    timer = TIMER()
    data = Data(item, count_copies(item))
    estimate = (item.inputs + 1) * item.case.tensor_bytes / 4e6 + 3
    contenders, owns, worst, found = [], {}, 0.0, {}
    for name, function in functions.items():
        with device.naming(name, len(functions) > 1):
            owns[name] = Own(library, item, function, data)
            worst = max(worst, data.compare(owns[name].run_alone()))
        contenders.append(timing.Contender(name, owns[name].calls, estimate, owns[name].verify))
    contenders.insert(1, timing.Contender(timing.COPY, _copy_calls(), 700))
    for name in names:
        at(name)
        try:
            contenders.append(timing.Contender(name, peers.make(name, data), estimate))
        except Exception as error:
            if timing.is_fatal(error):
                raise
            found[name] = {"absent": timing.first_line(error)}
            if isinstance(error, peers.NotOffered):
                found[name]["not_offered"] = True
    times, absent = timing.measure(timer, contenders, at=at)
    for name in functions:
        if name in absent:
            return {"error": f"{name}: not captured: {absent[name]}"}
    summary = timing.summarize(times, timing.OWN, item.case.tensor_bytes, COPIED_BYTES)
    for name, why in absent.items():
        if name != timing.COPY:
            found[name] = {"absent": f"not captured: {why}"}
    summary["results"].update(found)
    # Other schedules are compared by graphs.
    if len(functions) == 1:
        own = owns[timing.OWN]
        timer.hold(timing.FIRST_HOLD_US)
        own.verify(lambda: [call() for call in own.calls * 2])
        summary["results"][timing.OWN]["stream_us"] = timing.in_stream(timer, own.calls)
    errors = [f"{name}: {error}" for name, own in owns.items() for error in own.errors]
    return {**summary, "worst": worst, **({"error": "; ".join(errors)} if errors else {})}


TIMER = TorchTimer


def warm_up(names, at):
    """Calls the implementations `names` once. What cannot be called is absent in each task, which tells why."""
    data = Data(items.Item((4, 8, 8, 8), "nchw", "f32"), 1)
    for name in names:
        at(name)
        try:
            peers.make(name, data)
            torch.cuda.synchronize()
        except Exception as error:
            if timing.is_fatal(error):
                raise
    at("")


def measure_item(library, item, functions, at, names):
    """Times and ratios. `functions` are those of BNGrad by name, first the one of the chosen schedule; the results of
    each are compared with float64. `names` are the other implementations."""
    try:
        return _measure(library, item, functions, names, at)
    finally:
        torch.cuda.empty_cache()
