"""initial_values.py make DIR: writes the arguments of initial-values.mlir.
initial_values.py check DIR TIMES DY PRODUCT: compares sum_dy.npy and sum_dy_xmu.npy in DIR with TIMES the sums, plus
the initial values DY and PRODUCT.
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
    times, start_dy, start_product = map(int, numbers)
    dy, x, mean = (np.load(path(name)) for name in ("dy", "x", "mean"))
    expected = {
        "sum_dy": start_dy + times * dy.sum(axis=0),
        "sum_dy_xmu": start_product + times * (dy * (x - mean)).sum(axis=0),
    }
    for name, sums in expected.items():
        got = np.load(path(name))
        if not np.array_equal(got, sums):
            print(f"{name}: expected {sums}, got {got}")
            return 1
    return 0


sys.exit(main())
