"""f16_values.py write|compare DIR: the arguments of f16-on-the-bits.mlir, and their conversions by numpy.

f16.npy has every number of f16. f32.npy has each of them, the midpoint to the next one, the neighbours of both, every
power of two of f32, and random bits.
"""

import os
import sys

import numpy as np


def write(directory):
    halves = np.arange(1 << 16, dtype="<u2").view("<f2")
    numbers = np.arange(0x7C00, dtype="<u2").view("<f2").astype("<f8")
    midpoints = (numbers + np.append(numbers[1:], 65536.0)) / 2
    hard = np.concatenate([numbers, midpoints]).astype("<f4")
    random = np.random.default_rng(1).integers(0, 1 << 32, 1 << 16, "<u4").view("<f4")
    powers = (np.arange(256, dtype="<u4") << 23).view("<f4")
    values = np.concatenate([hard, np.nextafter(hard, np.float32(0)), np.nextafter(hard, np.float32(np.inf)), powers])
    values = np.concatenate([values, -values, random])
    np.save(os.path.join(directory, "f16.npy"), halves[:, None])
    np.save(os.path.join(directory, "f32.npy"), values[:, None])
    np.save(os.path.join(directory, "one.npy"), np.ones(1, "<f4"))


def compare(directory):
    def load(name):
        return np.load(os.path.join(directory, name + ".npy")).ravel()

    for source, target, bits in [("f16", "<f4", "<u4"), ("f32", "<f2", "<u2")]:
        with np.errstate(all="ignore"):
            expected = load(source).astype(target)
        for name in [source + ".scalars", source + ".vectors"]:
            result = load(name)
            assert result.dtype == expected.dtype, (name, result.dtype)
            is_equal = (result.view(bits) == expected.view(bits)) | (np.isnan(result) & np.isnan(expected))
            wrong = np.flatnonzero(~is_equal)
            assert wrong.size == 0, (name, load(source)[wrong[:5]], result[wrong[:5]], expected[wrong[:5]])


os.makedirs(sys.argv[2], exist_ok=True)
{"write": write, "compare": compare}[sys.argv[1]](sys.argv[2])
