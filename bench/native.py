"""The C++ side of the benchmark: building, loading, and shared types."""

import ctypes
import pathlib
import subprocess

import numpy

import instruction_sets

HERE = pathlib.Path(__file__).resolve().parent / "native"


# The arrays of a problem, as in native/Peer.h.
ARRAYS = (
    "grad_output",
    "input",
    "scale",
    "mean",
    "variance",
    "grad_input",
    "grad_scale",
    "grad_offset",
)


class Problem(ctypes.Structure):
    """As in native/Peer.h."""

    _fields_ = (
        [
            (name, ctypes.c_int32)
            for name in ("rank", "channels_last", "element_type", "threads")
        ]
        + [
            (name, ctypes.c_int64)
            for name in ("images", "channels", "height", "width", "cache_bytes")
        ]
        + [("epsilon", ctypes.c_double)]
        + [
            (name, ctypes.c_void_p)
            for name in ARRAYS
        ]
        + [("other", ctypes.c_void_p), ("is_other_in_sums", ctypes.c_int32)]
    )


class Runner(ctypes.Structure):
    """As in native/Harness.cpp."""

    _fields_ = [
        ("run", ctypes.c_void_p),
        ("state", ctypes.c_void_p),
        ("calls", ctypes.c_int64),
        ("foreign_threads", ctypes.c_int32),
    ]


class Sample(ctypes.Structure):
    """As in native/Harness.cpp."""

    _fields_ = [
        ("cold", ctypes.c_double),
        ("warm", ctypes.c_double),
        ("bandwidth_before", ctypes.c_double),
        ("bandwidth_after", ctypes.c_double),
        ("switches", ctypes.c_int64),
    ]


class Function(ctypes.Structure):
    """As in native/Harness.cpp."""

    _fields_ = [
        ("address", ctypes.c_void_p),
        ("arguments", ctypes.c_int64),
        ("descriptors", ctypes.c_void_p * 12),
    ]


def descriptor(rank):
    """The type of a ranked memref's descriptor."""

    class Descriptor(ctypes.Structure):
        _fields_ = [
            ("allocated", ctypes.c_void_p),
            ("aligned", ctypes.c_void_p),
            ("offset", ctypes.c_int64),
            ("sizes", ctypes.c_int64 * rank),
            ("strides", ctypes.c_int64 * rank),
        ]

    return Descriptor


def describe(address, sizes, strides):
    """A memref descriptor of `address`; sizes and strides in elements."""
    result = descriptor(len(sizes))()
    result.allocated = result.aligned = address
    result.sizes[:] = sizes
    result.strides[:] = strides
    return result


def library_path(folder, name):
    """Where a library for the instruction set in use is built."""
    chosen = instruction_sets.forced()
    return pathlib.Path(folder) / f"libbench_{name}{'-' + chosen.stem if chosen else ''}.so"


def build(source, output, *flags):
    """Compiles one file of native/ unless `output` is newer; a one-line error, or None."""
    source = HERE / source
    newest = max(path.stat().st_mtime for path in (source, *HERE.glob("*.h")))
    output = pathlib.Path(output)
    if output.exists() and output.stat().st_mtime > newest:
        return None
    done = subprocess.run(
        ["clang++-22", "-O3", *instruction_sets.clang_flags(), "-fPIC", "-shared", source, "-o", output]
        + list(flags),
        capture_output=True,
        text=True,
    )
    if done.returncode == 0:
        return None
    lines = [line for line in done.stderr.splitlines() if "error" in line]
    return "does not compile: " + (lines or ["no message"])[0][:200]


def _allocate(function, count, dtype):
    """A zeroed array on huge pages that lives as long as the process."""
    dtype = numpy.dtype(dtype)
    address = function(count * dtype.itemsize)
    if not address:
        raise RuntimeError("not enough memory for the data")
    memory = (ctypes.c_char * (count * dtype.itemsize)).from_address(address)
    return numpy.frombuffer(memory, dtype)


class Harness:
    """native/Harness.cpp; seconds and bytes per second."""

    def __init__(self, folder, cache_bytes):
        path = library_path(folder, "harness")
        error = build("Harness.cpp", path, "-std=c++17", "-fopenmp=libomp")
        if error:
            raise RuntimeError("Harness.cpp " + error)
        self.library = ctypes.CDLL(str(path))
        self.library.harnessAllocate.restype = ctypes.c_void_p
        self.library.harnessAllocate.argtypes = [ctypes.c_int64]
        self.library.harnessBandwidth.restype = ctypes.c_double
        self.library.harnessInitialize.argtypes = [ctypes.c_int64]
        self.cache_bytes = cache_bytes

    def initialize(self):
        if not self.library.harnessIsBound():
            raise RuntimeError("expected each thread bound to a core of its own")
        if not self.library.harnessInitialize(self.cache_bytes):
            raise RuntimeError("not enough memory to measure bandwidth")

    def allocate(self, count, dtype):
        return _allocate(self.library.harnessAllocate, count, dtype)

    def bandwidth(self):
        return self.library.harnessBandwidth()

    def address(self, name):
        return ctypes.cast(getattr(self.library, name), ctypes.c_void_p).value

    def round(self, runners, order):
        """Measures each of `runners` once; returns their samples by index."""
        samples = (Sample * len(runners))()
        self.library.harnessRound(
            runners,
            (ctypes.c_int32 * len(order))(*order),
            ctypes.c_int64(len(order)),
            samples,
        )
        return samples


class Turn:
    """native/Turn.cpp; bytes per second."""

    def __init__(self, folder):
        self.path = library_path(folder, "turn")

    def build(self):
        if error := build("Turn.cpp", self.path, "-std=c++17", "-pthread"):
            raise RuntimeError("Turn.cpp " + error)

    def load(self, cores, cache_bytes):
        self.library = ctypes.CDLL(str(self.path))
        self.library.turnAllocate.restype = ctypes.c_void_p
        self.library.turnAllocate.argtypes = [ctypes.c_int64]
        self.library.turnBandwidth.restype = ctypes.c_double
        self.library.turnInitialize.argtypes = [ctypes.c_void_p, ctypes.c_int64, ctypes.c_int64]
        numbers = (ctypes.c_int32 * len(cores))(*cores)
        if not self.library.turnInitialize(numbers, len(cores), cache_bytes):
            raise RuntimeError("not enough memory to measure bandwidth")

    def allocate(self, count, dtype):
        return _allocate(self.library.turnAllocate, count, dtype)

    def bandwidth(self):
        return self.library.turnBandwidth()
