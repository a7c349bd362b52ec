"""Results of calls that wait in a stream, which is held until all are in it, behind the copies that write their
inputs: each must have the bits of a call on its own. Also of calls in place, of misaligned arrays and of a graph."""

import numpy as np

import correctness
import cuda_driver
import device

# More than it takes to queue the calls; where it was not, the calls are queued again behind a longer one.
HOLD_US, MOST_HOLD_US = 5000, 80000
# (name, misaligned by as many elements, the first result in place of this argument, replayed from a graph)
MODES = [
    ("in a stream", 0, None, False),
    ("in place of the first argument", 0, 0, False),
    ("in place of the second argument", 0, 1, False),
    ("in a graph", 0, None, True),
    ("in place in a graph", 0, 0, True),
    ("misaligned", 1, None, False),
]


class Queue(device.Allocations):
    """Arrays for `count` calls of one function, which work on their own."""

    def __init__(self, library, item, function, arguments, count, shift):
        super().__init__(library)
        self.item, self.shift = item, shift
        self.gradient = device.Gradient(item, function)
        self.sources = [self.place(array) for array in arguments]
        self.results = [self.make_results() for _ in range(count)]
        # Of the tensors that are read, which each call has for itself.
        data = arguments[: item.inputs]
        self.data = [[self.place(np.zeros_like(array)) for array in data] for _ in range(count)]
        self.sizes = [array.nbytes for array in data]

    def place(self, array):
        """The address of a copy of `array` that is misaligned by `shift` elements."""
        offset = self.shift * array.itemsize
        pointer = self.allocate(array.nbytes + offset) + offset
        if array.nbytes:
            self.library.copy(pointer, array.ctypes.data, array.nbytes)
        return pointer

    def make_results(self):
        made = []
        for _, element_type, per_channel in self.item.results:
            count = self.item.case.channels if per_channel else self.item.case.elements
            array = np.zeros(count, device.DTYPES[element_type])
            array.view(np.uint8)[:] = device.POISON
            made.append((self.place(array), array))
        return made

    def poison(self):
        for pointer, array in (result for results in self.results for result in results):
            self.library.copy(pointer, array.ctypes.data, array.nbytes)

    def targets(self, number, in_place):
        """The addresses of the results of a call."""
        pointers = [pointer for pointer, _ in self.results[number]]
        return pointers if in_place is None else [self.data[number][in_place], *pointers[1:]]

    def calls(self, in_place):
        return [self.gradient.bind([*self.data[number], *self.sources[self.item.inputs :], *self.targets(number, in_place)])
                for number in range(len(self.results))]

    def write_inputs(self, stream):
        for data in self.data:
            for to, source, size in zip(data, self.sources, self.sizes):
                self.library.copy_in_stream(to, source, size, stream)

    def download(self, number, in_place):
        found = []
        for pointer, (_, array) in zip(self.targets(number, in_place), self.results[number]):
            found.append(np.empty_like(array))
            self.library.copy(found[-1].ctypes.data, pointer, array.nbytes)
        return found


def run_queued(timer, run):
    """Calls `run` while the stream is held, so that all of its work is queued. False: the host is too slow for that."""
    hold, was_held = HOLD_US, False
    while not was_held and hold <= MOST_HOLD_US:
        timer.hold(hold)
        run()
        was_held = timer.is_held()
        timer.synchronize()
        hold *= 4
    return was_held


def check_mode(timer, queue, alone, in_place, is_graph):
    """Queues all calls, and compares all results with those of a call on its own. Whether all were queued at
    once."""
    calls = [timer.on_stream(call) for call in queue.calls(in_place)]
    steps = [lambda: queue.write_inputs(timer.stream.value), *calls]
    queue.poison()
    graph = timer.capture(steps, 1, warm=False) if is_graph else None

    def run():
        for step in [lambda: graph.replay(timer.stream)] if graph else steps:
            step()

    was_queued = run_queued(timer, run)
    queue.library.check()
    for number in range(len(calls)):
        for (name, _, _), got, wanted in zip(queue.item.results, queue.download(number, in_place), alone):
            if got.tobytes() != wanted.tobytes():
                raise device.Error(f"{name} of queued call {number}: other bits than from a call on its own")
    if graph:
        graph.free()
    return was_queued


def check(library, item, function, count):
    """The largest ratio of error to bound of a call on its own; `count` queued calls have the same bits. `not_held` are
    the modes in which the stream did not wait until all calls were in it."""
    timer = cuda_driver.DriverTimer(library)
    arguments = correctness.make_arguments(item, 1)
    worst, not_held = 0.0, []
    for shift in (0, 1):
        with Queue(library, item, function, arguments, count, shift) as queue:
            queue.write_inputs(timer.stream.value)
            timer.synchronize()
            library.check(queue.calls(None)[0]())
            alone = queue.download(0, None)
            worst = max(worst, correctness.compare(item, arguments, alone))
            for name, its_shift, in_place, is_graph in MODES:
                if its_shift != shift or (in_place is not None and in_place >= item.inputs):
                    continue
                try:
                    if not check_mode(timer, queue, alone, in_place, is_graph):
                        not_held.append(name)
                except device.Error as error:
                    raise device.Error(f"{name}: {error}") from None
    return {"worst": worst, **({"not_held": not_held} if not_held else {})}
