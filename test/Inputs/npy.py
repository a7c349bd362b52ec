"""Writes and prints small .npy files.

Usage: npy.py write PATH TYPE SHAPE VALUE...
       npy.py print PATH...

TYPE is i1, f16, f32 or f64, SHAPE is like 2x3, and the values are in row-major
order; `print` prints those of one file per line.
"""

import sys

import numpy as np

TYPES = {"i1": "|b1", "f16": "<f2", "f32": "<f4", "f64": "<f8"}


def main() -> int:
    what, *arguments = sys.argv[1:]
    if what == "write":
        path, kind, shape, *values = arguments
        array = np.array([float(value) for value in values])
        array = array.astype(TYPES[kind])
        np.save(path, array.reshape([int(size) for size in shape.split("x")]))
        return 0
    for path in arguments:
        print(*(f"{value:.9g}" for value in np.load(path).flat))
    return 0


if __name__ == "__main__":
    sys.exit(main())
