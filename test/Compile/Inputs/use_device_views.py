"""use_device_views.py EMULATOR OBJECT: calls the functions of cuda-device-views.mlir on arrays of the device."""

import ctypes
import sys

import numpy as np

cuda = ctypes.CDLL(sys.argv[1], mode=ctypes.RTLD_GLOBAL)
cuda.mgpuMemAlloc.restype = ctypes.c_void_p
cuda.mgpuMemAlloc.argtypes = [ctypes.c_uint64, ctypes.c_void_p, ctypes.c_bool]
cuda.mgpuMemcpy.argtypes = [ctypes.c_void_p, ctypes.c_void_p, ctypes.c_uint64, ctypes.c_void_p]
library = ctypes.CDLL(sys.argv[2])


def to_device(array):
    pointer = cuda.mgpuMemAlloc(array.nbytes, None, False)
    cuda.mgpuMemcpy(pointer, array.ctypes.data, array.nbytes, None)
    return pointer


def call(name, *arrays):
    """Calls with contiguous arrays, which are then replaced by the contents of device memory."""
    pointers = [to_device(array) for array in arrays]
    if getattr(library, name)(*map(ctypes.c_void_p, pointers)) != 0:
        raise SystemExit(f"{name} failed")
    for array, pointer in zip(arrays, pointers):
        cuda.mgpuMemcpy(array.ctypes.data, pointer, array.nbytes, None)


def call_any(name, *arrays):
    """As call, for dynamic sizes."""
    pointers = [to_device(array) for array in arrays]
    descriptors = []
    for array, pointer in zip(arrays, pointers):
        strides = [stride // array.itemsize for stride in array.strides]
        fields = [pointer, pointer, 0, *array.shape, *strides]
        descriptors.append((ctypes.c_int64 * len(fields))(*fields))
    getattr(library, "_mlir_ciface_" + name)(*map(ctypes.byref, descriptors))
    if cuda.bngradCudaTakeStatus() != 0:
        raise SystemExit(f"{name} failed")
    for array, pointer in zip(arrays, pointers):
        cuda.mgpuMemcpy(array.ctypes.data, pointer, array.nbytes, None)


def gradient(dy, x, mean, variance):
    """In float64; [N, C, S], epsilon is 1e-5."""
    dy, x, mean, variance = (array.astype(np.float64) for array in (dy, x, mean, variance))
    inv_std = 1 / np.sqrt(variance + 1e-5)
    centered = x - mean[:, None]
    sum_dy, sum_dy_xmu = dy.sum(axis=(0, 2)), (dy * centered).sum(axis=(0, 2))
    count = dy.size / len(mean)
    dx = inv_std[:, None] * (dy - (sum_dy / count)[:, None] - centered * (inv_std**2 * sum_dy_xmu / count)[:, None])
    return dx, sum_dy_xmu * inv_std, sum_dy


def is_close(got, expected):
    # 64 roundings of sums of 64 terms below 16.
    return np.all(np.abs(got - expected) <= 64 * 2.0**-24 * 16 * 64)


def main():
    random = np.random.default_rng(1)
    dy = random.uniform(-1, 1, (4, 3, 16)).astype(np.float32)
    wide = random.uniform(-1, 1, (4, 8, 16)).astype(np.float32)
    mean = np.array([0.5, -1, 2], np.float32)
    variance = np.array([0.3, 1, 4], np.float32)
    x = np.ascontiguousarray(wide[:, 5:])
    results = lambda: (np.zeros_like(dy), np.zeros_like(mean), np.zeros_like(mean))
    expected = gradient(dy, x, mean, variance)

    failed = 0
    got = results()
    call("slice", dy, wide, mean, variance, *got)
    failed += not all(map(is_close, got, expected))

    # The memory order of the strides.
    last = lambda array: np.ascontiguousarray(array.transpose(0, 2, 1))
    dx, dscale, doffset = results()
    dx = last(dx)
    call("channels_last", last(dy), last(x), mean, variance, dx, dscale, doffset)
    failed += not all(map(is_close, (dx.transpose(0, 2, 1), dscale, doffset), expected))

    dx, copied, _ = results()
    call("passed_on", dy, x, mean, variance, dx, copied)
    failed += not (is_close(dx, expected[0]) and np.array_equal(copied, variance))
    sums = np.stack([expected[2], expected[1] * np.sqrt(variance.astype(np.float64) + 1e-5)])
    got, count = np.full((2, 3), 7, np.float32), np.zeros((), np.int64)
    call("reduce", dy, x, mean, got, count)
    failed += not (is_close(got, sums) and count == 64)
    got, count = np.full((2, 3), 7, np.float32), np.zeros((), np.int64)
    call_any("reduce_any", dy, x, mean, got, count)
    failed += not (is_close(got, sums) and count == 64)
    none, count = np.zeros((0, 3, 16), np.float32), np.ones((), np.int64)
    call("reduce_nothing", none, none, mean, got, count)
    failed += not (np.all(got == 0) and count == 0)

    dx = np.zeros_like(dy)
    call("elemt", dy, x, mean, variance, sums.astype(np.float32), dx)
    failed += not is_close(-dx, expected[0])
    # A batch of twice as many elements.
    dx, count = np.zeros_like(dy), np.array(128)
    call("elemt_count", dy, x, mean, variance, sums.astype(np.float32), count, dx)
    inv_std = 1 / np.sqrt(variance.astype(np.float64) + 1e-5)[:, None]
    halves = dy.astype(np.float64) - (sums[0] / 128)[:, None]
    halves -= (x.astype(np.float64) - mean[:, None]) * inv_std**2 * (sums[1] / 128)[:, None]
    failed += not is_close(dx, inv_std * halves)

    dx, scale, more = np.zeros_like(dy), np.array(0.5, np.float32), np.array([9, 9, 0.25, 9], np.float32)
    call("scaled", dy, x, mean, variance, scale, more, dx)
    failed += not is_close(dx, 0.75 * expected[0])
    print(f"9 functions, {failed} failed")


main()
