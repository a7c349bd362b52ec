"""bad_npy.py DIR: npy files that are not a tensor<3x4xf32>, and some that are."""

import os
import sys

import numpy as np

directory = sys.argv[1]
os.makedirs(directory, exist_ok=True)
good = np.arange(12, dtype="<f4").reshape(3, 4)
arrays = {
    "good": good,
    "fortran": np.asfortranarray(good),
    "big_endian": good.astype(">f4"),
    "f64": good.astype("<f8"),
    "bf16": good.astype("<u2").view("V2"),
    "shape": good.reshape(4, 3),
    "rank": good.reshape(12),
    "rank_0": np.float32(1),
    "complex": good.astype("<c8"),
    "int32": good.astype("<i4"),
    "string": good.astype("<U4"),
    "structured": np.zeros((3, 4), [("a", "<f4"), ("b", "<i4")]),
}
for name, array in arrays.items():
    np.save(os.path.join(directory, name + ".npy"), array)


def path(name):
    return os.path.join(directory, name + ".npy")


def write(name, contents):
    with open(path(name), "wb") as file:
        file.write(contents)


with open(path("good"), "rb") as file:
    contents = file.read()
write("truncated", contents[:-1])
write("too_long", contents + b"\0")
write("header_only", contents[:64])
write("empty", b"")
write("text", b"not an npy file")
write("version_4", contents[:6] + b"\4" + contents[7:])
