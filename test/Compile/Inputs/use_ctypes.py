"""use_ctypes.py gradients.so: calls functions of gradients.mlir and compares with numpy in float64."""

import ctypes
import os
import sys

import numpy as np

EPSILON = 1e-3
agreed = 0


def pointers(*arrays):
    return [ctypes.c_void_p(a.ctypes.data) for a in arrays]


def descriptor(array):
    """A memref descriptor: allocated and aligned pointer, offset, sizes, strides."""
    strides = [s // array.itemsize for s in array.strides]
    return np.array([array.ctypes.data, array.ctypes.data, 0, *array.shape, *strides], dtype=np.int64)


def gradients(dy, x, scale, mean, variance):
    """Section 3 of docs/mathematics.md, with channels in dim 1."""
    dims = tuple(d for d in range(x.ndim) if d != 1)

    def spread(values):
        return values.astype(np.float64).reshape([-1 if d == 1 else 1 for d in range(x.ndim)])

    dy, xmu = dy.astype(np.float64), x.astype(np.float64) - spread(mean)
    r = 1 / np.sqrt(variance.astype(np.float64) + EPSILON)
    sum_dy, sum_dy_xmu = dy.sum(axis=dims), (dy * xmu).sum(axis=dims)
    count = dy.size // x.shape[1]
    dx = spread(scale * r) * (dy - spread(sum_dy / count) - xmu * spread(r * r * sum_dy_xmu / count))
    return dx, sum_dy_xmu * r, sum_dy


def compare(results, expected, unit):
    global agreed
    for result, exact in zip(results, expected):
        terms = results[0].size // 3 if exact.ndim == 1 else 1
        error = np.abs(result.astype(np.float64) - exact).max()
        allowed = 64 * unit * max(np.abs(exact).max(), 4 * terms)
        assert error <= allowed, (error, allowed)
        agreed += 1


def inputs(random, shape, dtype):
    dy, x = (random.uniform(-1, 2, shape).astype(dtype) for _ in range(2))
    return dy, x, *(random.uniform(0.5, 2, 3).astype(np.float32) for _ in range(3))


def results(shape, dtype):
    return np.full(shape, 7, dtype), np.full(3, 7, np.float32), np.full(3, 7, np.float32)


def main():
    library = ctypes.CDLL(sys.argv[1])
    random = np.random.default_rng(1)
    for name, shape, dtype, unit in (("nchw", (5, 3, 7, 2), np.float32, 2.0**-24),
                                     ("halves", (64, 3, 64, 64), np.float16, 2.0**-11)):
        arguments, got = inputs(random, shape, dtype), results(shape, dtype)
        assert library[name](*pointers(*arguments, *got)) == 0
        compare(got, gradients(*arguments), unit)
        # Bitwise identical results with descriptors.
        again = results(shape, dtype)
        library["_mlir_ciface_" + name](*pointers(*map(descriptor, (*arguments, *again))))
        assert all(np.array_equal(a, b) for a, b in zip(got, again))
    for shape in ((4, 3, 9), (1, 3, 1)):
        arguments, got = inputs(random, shape, np.float32), results(shape, np.float32)
        library._mlir_ciface_dynamic(*pointers(*map(descriptor, (*arguments, *got))))
        compare(got, gradients(*arguments), 2.0**-24)
    print(f"{agreed} results agree")
    with open("/proc/self/maps") as file:
        loaded = {os.path.basename(line.split()[-1]) for line in file if ".so" in line}
    print("libraries:", *sorted(name for name in loaded if not name.startswith("_")))


main()
