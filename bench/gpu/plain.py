"""Times of compiled gradients without PyTorch: the driver's graphs and events."""

import numpy as np

import cuda_driver
import device
import timing

# Ratio of the size of all copies to the last-level cache.
CACHE_FACTOR = 3
MOST_COPIES = 16
MOST_BYTES = 24e9
COPIED_BYTES = 1 << 30
BLOCK_BYTES = 1 << 20


class Arrays(device.Allocations):
    """`count` copies of arguments and results in memory of the device. Data repeat a
    random block; per-channel values are those of the tests."""

    def __init__(self, library, item, count):
        super().__init__(library)
        random = np.random.default_rng(1)
        self.pointers = [[] for _ in range(count)]
        channels = item.case.channels
        for name, element_type, per_channel in item.arguments + item.results:
            size = channels if per_channel else item.case.elements
            if name in ("scale", "variance", "inv_std"):
                values = random.uniform(0.5, 1.5, min(size, BLOCK_BYTES))
            else:
                values = random.standard_normal(min(size, BLOCK_BYTES))
            block = device.to_bits(values, element_type)
            for pointers in self.pointers:
                pointers.append(self.fill(block, size * block.itemsize))

    def fill(self, block, size):
        pointer = self.allocate(size)
        filled = min(block.nbytes, size)
        self.library.copy(pointer, block.ctypes.data, filled)
        while filled < size:
            part = min(filled, size - filled)
            self.library.copy(pointer + filled, pointer, part)
            filled += part
        return pointer


def count_copies(item, cache_bytes):
    """The number of copies of the data that exceeds the last-level cache."""
    each = (item.inputs + 1) * item.case.tensor_bytes
    return int(max(2, min(-(-CACHE_FACTOR * cache_bytes // each), MOST_BYTES // each, MOST_COPIES)))


def copied_bytes(item):
    """Of the copy that measures the bandwidth; less for the items of tests."""
    return min(COPIED_BYTES, max(256 * item.case.tensor_bytes, 1 << 16))


def measure_item(library, item, functions, at, names):
    """Times of BNGrad with each of `functions` and of a copy, and the ratios."""
    timer = cuda_driver.DriverTimer(library)
    with Arrays(library, item, count_copies(item, timer.driver.describe()["l2_bytes"])) as arrays:
        return _measure(timer, arrays, item, functions)


def _measure(timer, arrays, item, functions):
    size = copied_bytes(item) // 2
    copy = arrays.fill(np.zeros(1 << 14, np.uint8), 2 * size)
    estimate = (item.inputs + 1) * item.case.tensor_bytes / 4e6 + 3
    contenders = []
    for name, function in functions.items():
        with device.naming(name, len(functions) > 1):
            gradient = device.Gradient(item, function)
            calls = [timer.on_stream(gradient.bind(pointers)) for pointers in arrays.pointers]
            calls[0]()  # Loads the module.
            timer.synchronize()
        contenders.append(timing.Contender(name, calls, estimate))
    contenders.insert(1, timing.Contender(timing.COPY, [timer.copy(copy, copy + size, size)], 700))
    times, absent = timing.measure(timer, contenders)
    for name in functions:
        if name in absent:
            return {"error": f"{name}: not captured: {absent[name]}"}
    found = timing.summarize(times, timing.OWN, item.case.tensor_bytes, 2 * size)
    # Other schedules are compared by graphs.
    if len(functions) == 1:
        found["results"][timing.OWN]["stream_us"] = timing.in_stream(timer, contenders[0].calls)
    return found
