"""compare.py [--f16] A.npy B.npy [A.npy B.npy]...: fails unless the float32 arrays of each pair agree.

The two were computed from the same numbers in another order, each within its bound. Their difference may be 64
roundings of the largest element in f32 and, with --f16, one in f16: far less than the effect of one element in
the wrong place.
"""

import sys

import numpy as np

paths = sys.argv[1:]
roundings = 64 * 2.0**-24
if paths[0] == "--f16":
    paths.pop(0)
    roundings += 2.0**-11
for first, second in zip(paths[::2], paths[1::2]):
    a, b = np.load(first).astype(np.float64), np.load(second).astype(np.float64)
    assert a.shape == b.shape and a.size > 0, (first, a.shape, b.shape)
    allowed = roundings * np.abs(b).max()
    difference = np.abs(a - b).max()
    if not difference <= allowed:
        sys.exit(f"{first} and {second} differ by {difference}, allowed are {allowed}")
