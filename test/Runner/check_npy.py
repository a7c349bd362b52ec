"""check_npy.py write|compare DIR: writes the arguments of npy.mlir, compares its results with them."""

import os
import sys

import numpy as np

DTYPES = {"f16": "<f2", "bf16": "V2", "f32": "<f4", "f64": "<f8", "i1": "|b1", "i64": "<i8"}
SHAPES = [(), (2, 3, 5), (4, 0, 7)]


def cases():
    random = np.random.default_rng(1)
    for name, dtype in DTYPES.items():
        for i, shape in enumerate(SHAPES):
            # Any bits: NaN with any payload, subnormals, numbers of any size.
            bits = random.integers(0, 256, (int(np.prod(shape)), np.dtype(dtype).itemsize), "u1")
            array = (bits & 1).view(dtype) if name == "i1" else bits.view(dtype)
            yield f"{name}.{i}", array.reshape(shape)
    for version in [2, 3]:
        yield f"version{version}", random.random(30).astype("<f4")


mode, directory = sys.argv[1:]
os.makedirs(directory, exist_ok=True)
for name, array in cases():
    path = os.path.join(directory, name)
    if mode == "write":
        version = (int(name[-1]), 0) if name.startswith("version") else None
        with open(path + ".npy", "wb") as file:
            np.lib.format.write_array(file, array, version)
    else:
        result = np.load(path + ".out")
        assert result.dtype == array.dtype and result.shape == array.shape, (name, result.dtype, result.shape)
        assert result.tobytes() == array.tobytes(), name
