"""native.py JOB RESULTS: calls compiled functions through ctypes, in a separate process.

JOB is a pickled dict: `so`, `emulator`, which is the library that runs kernels or False, and `calls`, each with the
name of a function, `entry` (static or ciface), `arguments` and `results`: dicts of the bits (or the shape and storage),
a layout, and a shift of the data from the alignment of a line. Arrays are between guard bytes; guard bytes, gaps and
arguments must not change in the call. RESULTS gets one pickled answer after each call, so a crash loses only later
calls.
"""

import ctypes
import math
import os
import pickle
import sys
from typing import Any, Dict, List, Optional

import numpy as np

GUARD = 256  # bytes


class Array:
    """A strided view of an array in its own memory."""

    def __init__(self, spec: Dict[str, Any], pattern: int):
        shape, storage = tuple(spec["shape"]), np.dtype(spec["storage"])
        self.shape, size, layout = shape, storage.itemsize, spec.get("layout")
        strides = layout["strides"] if layout else [math.prod(shape[d + 1:]) for d in range(len(shape))]
        offset = layout["offset"] if layout else 0
        ends = [(n - 1) * s for n, s in zip(shape, strides)] if 0 not in shape else [0]
        low, high = offset + sum(e for e in ends if e < 0), offset + sum(e for e in ends if e > 0) + 1
        self.memory = np.full(2 * GUARD + 64 + (max(high, 0) - min(low, 0)) * size, pattern, dtype="|u1")
        base = self.memory.ctypes.data
        start = (-base) % 64 + GUARD - GUARD % 64 + spec.get("shift", 0) * size - min(low, 0) * size
        self.pointer, self.offset, self.strides = base + start, offset, strides
        if low < 0:
            raise ValueError("an array begins before its pointer")
        self.view = np.ndarray(shape, storage, self.memory.data, start + offset * size, [s * size for s in strides])
        if "bits" in spec:
            self.view[...] = spec["bits"].reshape(shape)
        # The bytes that belong to the array.
        self.inside = np.zeros(self.memory.shape, dtype=bool)
        for byte in range(size):
            place = start + offset * size + byte
            np.ndarray(shape, "|b1", self.inside.data, place, [s * size for s in strides])[...] = True
        self.before = self.memory.copy()

    def descriptor(self) -> np.ndarray:
        return np.array([self.pointer, self.pointer, self.offset, *self.shape, *self.strides], dtype=np.int64)

    def broken(self, inside: bool) -> Optional[str]:
        """The bytes that changed, outside of the array or anywhere."""
        changed = self.memory != self.before
        if not inside:
            changed &= ~self.inside
        if not changed.any():
            return None
        first = int(np.flatnonzero(changed)[0])
        where = first - (self.pointer - self.memory.ctypes.data)
        return f"{int(changed.sum())} bytes changed, the first at byte {where} from the pointer"


def call(library: ctypes.CDLL, spec: Dict[str, Any]) -> Dict[str, Any]:
    arguments = [Array(a, 0xFF) for a in spec["arguments"]]
    results = [Array(r, 0xC3) for r in spec["results"]]
    faults: List[str] = []
    if spec["entry"] == "static":
        function = getattr(library, spec["name"])
        function.restype = ctypes.c_int32
        status = function(*(ctypes.c_void_p(a.pointer) for a in arguments + results))
        if status != 0:
            faults.append(f"status: expected 0, got {status}")
            return {"faults": faults, "results": [r.view.copy(order="C") for r in results]}
    else:
        function = getattr(library, "_mlir_ciface_" + spec["name"])
        function.restype = None
        descriptors = [a.descriptor() for a in arguments + results]
        function(*(ctypes.c_void_p(d.ctypes.data) for d in descriptors))
    for index, array in enumerate(arguments):
        broken = array.broken(True)
        if broken:
            faults.append(f"guard: argument {index}: {broken}")
    for index, array in enumerate(results):
        broken = array.broken(False)
        if broken:
            faults.append(f"guard: result {index}: {broken}")
    return {"faults": faults, "results": [r.view.copy(order="C") for r in results]}


def main() -> None:
    with open(sys.argv[1], "rb") as file:
        job = pickle.load(file)
    # Its functions take precedence over those of the runtime that the library needs.
    emulator = job["emulator"] and ctypes.CDLL(job["emulator"], mode=ctypes.RTLD_GLOBAL)
    library = ctypes.CDLL(job["so"])
    with open(sys.argv[2], "wb") as file:
        for number, spec in enumerate(job["calls"]):
            os.write(2, f"@@call {number}\n".encode())
            answer = call(library, spec)
            pickle.dump(answer, file)
            file.flush()
            if emulator and (answer["faults"] or emulator.bngradCudaTakeStatus() != 0):
                break  # Later results are unreliable after an error of the device.


if __name__ == "__main__":
    main()
