"""check_random.py DIR: checks the arrays that random.mlir wrote."""

import os
import sys

import numpy as np


def load(name):
    array = np.load(os.path.join(sys.argv[1], name + ".npy")).ravel()
    return (array.view("<u2").astype("<u4") << 16).view("<f4") if array.dtype == "V2" else array


def check_range(name, low, high):
    """Uniform in [low, high): the mean within four deviations, and values close to both ends."""
    values = load(name).astype(float)
    assert low <= values.min() and values.max() < high, (name, values.min(), values.max())
    assert values.min() < low + (high - low) / 100 and values.max() > high - (high - low) / 100, name
    allowed = 4 * (high - low) / np.sqrt(12 * len(values))
    assert abs(values.mean() - (low + high) / 2) < allowed, (name, values.mean())
    assert len(np.unique(values)) > 1


vector = load("vector")
assert (vector == load("static")).all() and (vector == load("dynamic")).all()
assert (vector == load("wide").astype("<f4")).all()
assert (vector[:5] == load("short")).all() and len(load("short")) == 5
assert (vector != load("other_seed")).all()
assert np.allclose(load("other_range"), vector.astype(float) + 3, atol=1e-6)

for name in ["grad_output", "input", "scale", "mean"]:
    check_range(name, -1, 1)
for name in ["variance", "inv_std", "cast_variance"]:
    check_range(name, 0.5, 1.5)
check_range("f16", 3, 5)
check_range("bf16", -2, -1)
check_range("f64", 1, 1.5)
check_range("given_variance", 0, 2)

mask = load("mask")
assert mask.dtype == bool and 1 <= len(np.unique(mask[:100])) <= 2 and abs(mask.mean() - 0.5) < 2 / np.sqrt(len(mask))
