"""special_values.py DIR: arrays with special values, float32, 6x4x5 with 4 channels in dim 1.

Each operand is written plain (NAME.npy) and with NaN in channel 1, infinity in channel 2 and -infinity in
channel 3 (NAME_special.npy); channel 0 is always plain. mask.npy is false for the special elements of
grad_output.
"""

import os
import sys

import numpy as np

directory = sys.argv[1]
os.makedirs(directory, exist_ok=True)
random = np.random.default_rng(1)
specials = [np.nan, np.inf, -np.inf]


def save(name, array, dtype=np.float32):
    np.save(os.path.join(directory, name + ".npy"), np.asarray(array, dtype))


for name, shape, low in [("grad_output", (6, 4, 5), -1), ("input", (6, 4, 5), -1), ("scale", (4,), 0.5),
                         ("mean", (4,), -1), ("variance", (4,), 0.5)]:
    array = random.uniform(low, 1.5, shape)
    save(name, array)
    if len(shape) == 1:
        array[1:] = specials
    else:
        array[2, 1:, 3] = specials
    save(name + "_special", array)
    if name == "grad_output":
        save("mask", np.isfinite(array) & (random.random(shape) < 0.75), bool)

save("zeros", np.zeros(4))
save("some_zero", [0.5, 0, 2, 0])
