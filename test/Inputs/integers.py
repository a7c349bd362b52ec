"""integers.py DIR: npy files of integers, and what they are when they are doubled, with signs."""

import os
import sys

import numpy as np

directory = sys.argv[1]
os.makedirs(directory, exist_ok=True)
for name, dtype, doubled in (("u1", "u1", "a"), ("i2", "<i2", "b"), ("u4", "<u4", "c")):
    values = np.array([0, 1, -5], np.int64).astype(dtype)
    np.save(os.path.join(directory, name + ".npy"), values)
    np.save(os.path.join(directory, f"expected_{doubled}.npy"), (2 * values).astype(dtype.replace("u", "i")))
