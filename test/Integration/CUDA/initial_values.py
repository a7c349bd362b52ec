"""initial_values.py make DIR: writes the arguments of initial-values.mlir.
initial_values.py check DIR TIMES DY PRODUCT [elements]: compares sum_dy.npy and sum_dy_xmu.npy in DIR with TIMES the
sums, plus the initial values DY and PRODUCT; and y.npy with dy times the first sum, plus the second.
"""

import os
import sys

import numpy as np


def main():
    what, folder, *numbers = sys.argv[1:]
    path = lambda name: os.path.join(folder, name + ".npy")
    if what == "make":
        os.makedirs(folder, exist_ok=True)
        random = np.random.default_rng(1)
        for name, shape in (("dy", (8, 4)), ("x", (8, 4)), ("mean", 4)):
            np.save(path(name), random.integers(-9, 10, shape).astype(np.float32))
        return 0
    has_elements = numbers[3:] == ["elements"]
    times, start_dy, start_product = map(int, numbers[:3])
    dy, x, mean = (np.load(path(name)) for name in ("dy", "x", "mean"))
    expected = {
        "sum_dy": start_dy + times * dy.sum(axis=0),
        "sum_dy_xmu": start_product + times * (dy * (x - mean)).sum(axis=0),
    }
    if has_elements:
        expected["y"] = dy * expected["sum_dy"] + expected["sum_dy_xmu"]
    for name, values in expected.items():
        got = np.load(path(name))
        if not np.array_equal(got, values):
            print(f"{name}: expected {values}, got {got}")
            return 1
    return 0


sys.exit(main())
