"""The CUDA driver through ctypes: the device, events, graphs, and streams that wait."""

import ctypes
import os

import timing

CAPTURE_RELAXED = 2
MEMORY_NODES = {10: "allocates", 11: "frees"}
# Attributes of a device.
CLOCK_RATE, MULTIPROCESSORS, MEMORY_CLOCK_RATE, BUS_WIDTH, L2_CACHE_SIZE = 13, 16, 36, 37, 38
NOT_READY = 600


class DriverError(Exception):
    def __init__(self, call, code):
        super().__init__(f"{call}: error {code}")
        self.code = code


def open_driver():
    """The library that the runtime opens, too."""
    return ctypes.CDLL(os.environ.get("BNGRAD_CUDA_DRIVER") or "libcuda.so.1")


class Driver:
    def __init__(self):
        self.library = open_driver()

    def call(self, name, *arguments):
        code = getattr(self.library, name)(*arguments)
        if code:
            raise DriverError(name, code)

    def version(self):
        """The newest version of CUDA for which it is, such as (12, 4)."""
        found = ctypes.c_int()
        self.call("cuDriverGetVersion", ctypes.byref(found))
        return found.value // 1000, found.value % 1000 // 10

    def check_nodes(self, graph):
        """Raises RuntimeError if a node of `graph` allocates or frees memory."""
        count = ctypes.c_size_t()
        self.call("cuGraphGetNodes", graph, None, ctypes.byref(count))
        nodes = (ctypes.c_void_p * count.value)()
        self.call("cuGraphGetNodes", graph, nodes, ctypes.byref(count))
        for node in nodes:
            kind = ctypes.c_int()
            self.call("cuGraphNodeGetType", ctypes.c_void_p(node), ctypes.byref(kind))
            if kind.value in MEMORY_NODES:
                raise RuntimeError(f"a node of the graph {MEMORY_NODES[kind.value]} memory")

    def describe(self):
        """The name of the device, its memory and cache in bytes, multiprocessors, highest clocks in MHz, and the width of
        its memory in bits."""
        self.call("cuInit", 0)
        device, size = ctypes.c_int(), ctypes.c_size_t()
        self.call("cuDeviceGet", ctypes.byref(device), 0)
        name = ctypes.create_string_buffer(256)
        self.call("cuDeviceGetName", name, 256, device)
        self.call("cuDeviceTotalMem_v2", ctypes.byref(size), device)

        def attribute(number):
            found = ctypes.c_int()
            self.call("cuDeviceGetAttribute", ctypes.byref(found), number, device)
            return found.value

        return {
            "gpu": name.value.decode(),
            "memory_bytes": size.value,
            "l2_bytes": attribute(L2_CACHE_SIZE),
            "multiprocessors": attribute(MULTIPROCESSORS),
            "clock_mhz": attribute(CLOCK_RATE) // 1000,
            "memory_clock_mhz": attribute(MEMORY_CLOCK_RATE) // 1000,
            "bus_bits": attribute(BUS_WIDTH),
        }

    def enter_context(self):
        """Makes the context of the runtime, which is current during the runtime's calls, current in this thread."""
        device, context = ctypes.c_int(), ctypes.c_void_p()
        self.call("cuInit", 0)
        self.call("cuDeviceGet", ctypes.byref(device), 0)
        self.call("cuDevicePrimaryCtxRetain", ctypes.byref(context), device)
        self.call("cuCtxPushCurrent_v2", context)

    def hold(self, stream, microseconds):
        """What follows in the stream waits as long: for C's usleep, which the driver calls in a thread of its own."""
        usleep = ctypes.cast(ctypes.CDLL(None).usleep, ctypes.c_void_p)
        self.call("cuLaunchHostFunc", ctypes.c_void_p(stream), usleep, ctypes.c_void_p(int(microseconds)))


class Graph:
    def __init__(self, driver, executable, kept):
        self.driver = driver
        self.executable = executable
        self.kept = kept

    def replay(self, stream):
        self.driver.call("cuGraphLaunch", self.executable, stream)

    def free(self):
        self.driver.call("cuGraphExecDestroy", self.executable)
        self.kept = None


class DriverTimer:
    """Captures calls of compiled gradients into graphs and times them."""

    def __init__(self, library):
        self.library = library
        self.driver = Driver()
        self.driver.enter_context()
        self.stream = ctypes.c_void_p()
        self.driver.call("cuStreamCreate", ctypes.byref(self.stream), 1)
        self.events = [ctypes.c_void_p(), ctypes.c_void_p()]
        # After the work that holds the stream.
        self.held = ctypes.c_void_p()
        for event in (*self.events, self.held):
            self.driver.call("cuEventCreate", ctypes.byref(event), 0)

    def on_stream(self, call):
        """`call` in the stream of this timer; checks its status."""

        def run():
            self.library.use_stream(self.stream.value)
            try:
                self.library.check(call())
            finally:
                self.library.use_own_streams()

        return run

    def copy(self, to, source, size):
        """A copy within the device, in the stream."""
        to, source = ctypes.c_uint64(to), ctypes.c_uint64(source)
        size = ctypes.c_size_t(size)
        return lambda: self.driver.call("cuMemcpyAsync", to, source, size, self.stream)

    def capture(self, calls, repeat, warm=True):
        """A graph of all `calls`, `repeat` times. Each call also runs once before, if `warm`."""
        if warm:
            for call in calls:
                call()
            self.synchronize()
        graph, executable = ctypes.c_void_p(), ctypes.c_void_p()
        self.driver.call("cuStreamBeginCapture_v2", self.stream, CAPTURE_RELAXED)
        try:
            for call in calls * repeat:
                call()
        finally:
            # Also after an error, as the stream captures until then.
            code = self.driver.library.cuStreamEndCapture(self.stream, ctypes.byref(graph))
        if code:
            raise DriverError("cuStreamEndCapture", code)
        try:
            self.driver.check_nodes(graph)
            self.driver.call(
                "cuGraphInstantiateWithFlags", ctypes.byref(executable), graph, ctypes.c_uint64(0)
            )
        finally:
            self.driver.call("cuGraphDestroy", graph)
        return Graph(self.driver, executable, calls)

    def time(self, function):
        """Microseconds that the work of `function` in the stream takes."""
        begin, end = self.events
        self.driver.call("cuEventRecord", begin, self.stream)
        function()
        self.driver.call("cuEventRecord", end, self.stream)
        self.driver.call("cuEventSynchronize", end)
        elapsed = ctypes.c_float()
        self.driver.call("cuEventElapsedTime", ctypes.byref(elapsed), begin, end)
        return elapsed.value * 1e3

    def hold(self, microseconds):
        self.driver.hold(self.stream.value, microseconds)
        self.driver.call("cuEventRecord", self.held, self.stream)

    def is_held(self):
        """Whether what followed the last `hold` in the stream still waits for it."""
        code = self.driver.library.cuEventQuery(self.held)
        if code not in (0, NOT_READY):
            raise DriverError("cuEventQuery", code)
        return code == NOT_READY

    def replay(self, graph):
        self.hold(timing.REPLAY_HOLD_US)
        return self.time(lambda: graph.replay(self.stream))

    def synchronize(self):
        self.driver.call("cuStreamSynchronize", self.stream)
