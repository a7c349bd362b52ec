"""Calls compiled gradients through libBNGradCudaRuntime.so, or the emulator in
its place, with only ctypes and numpy."""

import contextlib
import ctypes
import pathlib

import numpy as np

POISON = 0xFF  # bytes of results before a call: NaN in every type
GUARD = 256  # bytes before and after a result that must not change
GUARD_BYTE = 0x5A


class Error(Exception):
    pass


@contextlib.contextmanager
def naming(name, is_needed):
    """Errors in it begin with `name`, if that is needed to tell whose they are."""
    try:
        yield
    except Error as error:
        raise Error(f"{name}: {error}") if is_needed else error


def from_bits(array, element_type):
    """Values of `array`, in which bf16 is uint16, in float64 or wider."""
    if element_type == "bf16":
        return (array.astype(np.uint32) << 16).view(np.float32)
    return array


def to_bits(values, element_type):
    """`values` rounded to `element_type`, bf16 as uint16."""
    if element_type == "bf16":
        bits = values.astype(np.float32).view(np.uint32)
        return ((bits + 0x7FFF + ((bits >> 16) & 1)) >> 16).astype(np.uint16)
    return values.astype(DTYPES[element_type])


DTYPES = {
    "f16": np.float16,
    "bf16": np.uint16,
    "f32": np.float32,
    "f64": np.float64,
    "i1": np.uint8,
}


class Library:
    """The functions of BNGrad/Runtime/Cuda.h."""

    def __init__(self, path):
        # Loaded before any object, so that calls of objects resolve to it.
        self.library = ctypes.CDLL(str(path), mode=ctypes.RTLD_GLOBAL)
        for name in ("mgpuMemAlloc", "mgpuStreamCreate"):
            getattr(self.library, name).restype = ctypes.c_void_p
        self.messages = []
        kind = ctypes.CFUNCTYPE(None, ctypes.c_char_p, ctypes.c_void_p)
        self._handler = kind(lambda text, _: self.messages.append(text.decode()))
        self.library.bngradCudaSetErrorHandler(self._handler, None)

    def check(self, status=0):
        """Raises the errors reported since the last check."""
        status = self.library.bngradCudaTakeStatus() or status
        messages, self.messages = self.messages, []
        if status or messages:
            raise Error("; ".join(messages) or f"status {status}")

    def count_clusters(self, cluster, resident):
        """Clusters of `cluster` blocks that run at once, where `resident` blocks fill a multiprocessor."""
        found = self.library.bngradCudaGetClusterSlots(cluster, resident)
        self.check()
        return found

    def capability(self):
        found = self.library.bngradCudaGetCapability()
        self.check()
        return found

    def allocate(self, size):
        pointer = self.library.mgpuMemAlloc(ctypes.c_uint64(max(size, 1)), None, 0)
        self.check()
        return pointer

    def free(self, pointer):
        self.library.mgpuMemFree(ctypes.c_void_p(pointer), None)
        self.check()

    def copy(self, to, source, size):
        self.library.mgpuMemcpy(
            ctypes.c_void_p(to), ctypes.c_void_p(source), ctypes.c_uint64(size), None
        )
        self.library.mgpuStreamSynchronize(None)
        self.check()

    def copy_in_stream(self, to, source, size, stream):
        self.library.mgpuMemcpy(
            ctypes.c_void_p(to), ctypes.c_void_p(source), ctypes.c_uint64(size), ctypes.c_void_p(stream)
        )

    def use_stream(self, stream):
        self.library.bngradCudaSetStream(ctypes.c_void_p(stream))

    def use_own_streams(self):
        self.library.bngradCudaResetStream()


class Gradient:
    """A function of an object (plan.Function)."""

    def __init__(self, item, function):
        self.item = item
        self.name = function.name
        self.object = ctypes.CDLL(str(pathlib.Path(function.path).resolve()))

    def bind(self, pointers):
        """A call with these addresses that returns its status."""
        if self.item.variant != "dynamic":
            function = getattr(self.object, self.name)
            arguments = [ctypes.c_void_p(pointer) for pointer in pointers]
            return lambda: function(*arguments)
        descriptors = []
        parameters = self.item.arguments + self.item.results
        for pointer, (_, _, per_channel) in zip(pointers, parameters):
            sizes = self.item.case.memory_sizes
            if per_channel:
                sizes = (self.item.case.channels,)
            strides = [int(np.prod(sizes[i + 1 :])) for i in range(len(sizes))]
            descriptors.append(
                np.array([pointer, pointer, 0, *sizes, *strides], dtype=np.int64)
            )
        arguments = [ctypes.c_void_p(d.ctypes.data) for d in descriptors]
        function = getattr(self.object, f"_mlir_ciface_{self.name}")
        function.restype = None
        # The descriptors live as long as the returned function.
        return lambda kept=descriptors: function(*arguments) or 0


class Allocations:
    """Memory of the device, which is freed at the end of a `with`."""

    def __init__(self, library):
        self.library = library
        self.allocations = []

    def allocate(self, size):
        self.allocations.append(self.library.allocate(size))
        return self.allocations[-1]

    def __enter__(self):
        return self

    def __exit__(self, kind, *_):
        try:
            for pointer in self.allocations:
                self.library.free(pointer)
        except Error:
            # After another error, that one is reported.
            if kind is None:
                raise
        self.allocations = []


class Buffers(Allocations):
    """Arguments and poisoned results of one call, each `shift` elements after
    a multiple of 256 bytes, with guards."""

    def __init__(self, library, item, arguments, shift=0):
        super().__init__(library)
        self.item = item
        self.pointers = []
        self.results = []
        for (_, element_type, _), array in zip(item.arguments, arguments):
            offset = shift * array.itemsize
            pointer = self.allocate(array.nbytes + offset)
            self.pointers.append(pointer + offset)
            self._upload(pointer + offset, array)
        for _, element_type, per_channel in item.results:
            size = item.case.channels if per_channel else item.case.elements
            image = np.full(
                size * np.dtype(DTYPES[element_type]).itemsize + 2 * GUARD,
                GUARD_BYTE,
                np.uint8,
            )
            image[GUARD:-GUARD] = POISON
            offset = shift * np.dtype(DTYPES[element_type]).itemsize
            pointer = self.allocate(image.nbytes + offset) + offset
            self._upload(pointer, image)
            self.pointers.append(pointer + GUARD)
            self.results.append((pointer, image, DTYPES[element_type]))

    def _upload(self, pointer, array):
        array = np.ascontiguousarray(array)
        if array.nbytes:
            self.library.copy(pointer, array.ctypes.data, array.nbytes)

    def download(self):
        """The results; raises if a guard has changed."""
        arrays = []
        for (pointer, image, dtype), (name, _, _) in zip(self.results, self.item.results):
            self.library.copy(image.ctypes.data, pointer, image.nbytes)
            guards = np.concatenate([image[:GUARD], image[-GUARD:]])
            if (guards != GUARD_BYTE).any():
                raise Error(f"{name}: written outside of the array")
            arrays.append(image[GUARD:-GUARD].view(dtype).copy())
        return arrays
