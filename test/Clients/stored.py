#!/usr/bin/env python3
"""Runs the programs of Inputs/, and compares each result with numpy in float64.

The programs have the ops that JAX, TensorFlow and torch-mlir put around a gradient. A
difference is relative to the largest absolute value of a result.

Usage: stored.py RUNNER FOLDER [--plant]
  --plant  swaps two channels of the mean for numpy alone; every program must then fail
"""

import argparse
import subprocess
import sys
from pathlib import Path

import numpy as np

SECONDS = 60
LIMIT, BF16_LIMIT = 2e-6, 2.0**-8
EPSILON = 1e-5


def gradient(x, scale, mean, variance, dy, feature=1, epsilon=EPSILON, inv_std=None):
    others = tuple(d for d in range(x.ndim) if d != feature)
    form = [1] * x.ndim
    form[feature] = -1
    count = x.size // x.shape[feature]
    r = 1 / np.sqrt(variance + epsilon) if inv_std is None else inv_std
    centered = x - mean.reshape(form)
    total, product = dy.sum(others), (dy * centered).sum(others)
    dx = (scale * r).reshape(form) * (dy - total.reshape(form) / count - centered *
                                      (r * r * product).reshape(form) / count)
    return dx, product * r, total


def cross_entropy(x, s, m, v, logits, labels):
    p = np.exp(logits - logits.max(1, keepdims=True))
    return gradient(x, s, m, v, (p / p.sum(1, keepdims=True) - labels) / 12)


def softmax(x, s, m, v, p, g):
    return gradient(x, s, m, v, p * (g - (p * g).sum(1, keepdims=True)))


def layer_norm(x, s, m, v, normal, deviation, g):
    inner = g - g.mean(1, keepdims=True) - normal * (g * normal).mean(1, keepdims=True)
    return gradient(x, s, m, v, inner / deviation[:, None])


def squeeze_excite(x, s, m, v, z, w, g):
    pooled = z.mean((2, 3))
    gate = 1 / (1 + np.exp(-(pooled @ w)))
    dlogits = (g * z).sum((2, 3)) * gate * (1 - gate)
    dpooled = dlogits @ w.T
    dy = g * gate[:, :, None, None] + dpooled[:, :, None, None] / 42
    return *gradient(x, s, m, v, dy), pooled.T @ dlogits


def residual(x, s, m, v, y, g):
    dy = np.where(y > 0, g, 0)
    return *gradient(x, s, m, v, dy), dy


def convolution(x, s, m, v, w, g):
    padded = np.pad(g, ((0, 0), (0, 0), (1, 1), (1, 1)))
    dy = sum(np.einsum("nchw,fc->nfhw", padded[:, :, i:i + 6, j:j + 7], w[:, :, i, j])
             for i in range(3) for j in range(3))
    return gradient(x, s, m, v, dy)


def average_pool(x, s, m, v, g):
    return gradient(x, s, m, v, g.repeat(2, 2).repeat(2, 3) / 4)


def dense(x, s, m, v, y, g, a, w):
    dx, ds, do = gradient(x, s, m, v, np.where(y > 0, g, 0))
    return dx @ w.T, a.T @ dx, ds, do


def sgd_clipping(x, s, m, v, g, offset):
    _, ds, do = gradient(x, s, m, v, g)
    step = 0.1 * min(1, 1 / np.sqrt((ds * ds).sum() + (do * do).sum()))
    return s - step * ds, offset - step * do


def weight_decay(x, s, m, v, g):
    dx, ds, do = gradient(x, s, m, v, g, feature=4, epsilon=1e-3)
    return dx, s - 0.1 * (ds + 0.01 * s), do


def bfloat16(x, s, m, v, g):
    return gradient(x, s, m, v, g, feature=3)


def torch_two(x, s, m, r, z, t, n, q, g):
    dz, dt, dc = gradient(z, t, n, None, g, inv_std=q)
    return *gradient(x, s, m, None, dz, inv_std=r), dt, dc


FLAT, CHANNELS, IMAGES = (12, 5), (5,), (4, 5, 6, 7)
# The reference, and the shapes of the arguments after x, scale, mean and variance.
PROGRAMS = {
    "log-softmax-cross-entropy": (cross_entropy, FLAT, [FLAT, FLAT]),
    "softmax": (softmax, FLAT, [FLAT, FLAT]),
    "layer-norm": (layer_norm, FLAT, [FLAT, (12,), FLAT]),
    "squeeze-excite": (squeeze_excite, IMAGES, [IMAGES, (5, 5), IMAGES]),
    "residual": (residual, IMAGES, [IMAGES, IMAGES]),
    "convolution": (convolution, IMAGES, [(5, 3, 3, 3), (4, 3, 6, 7)]),
    "average-pool": (average_pool, (4, 5, 6, 8), [(4, 5, 3, 4)]),
    "dense": (dense, FLAT, [FLAT, FLAT, (12, 3), (3, 5)]),
    "sgd-clipping": (sgd_clipping, FLAT, [FLAT, CHANNELS]),
    "weight-decay-ndhwc": (weight_decay, (3, 2, 4, 6, 5), [(3, 2, 4, 6, 5)]),
    "bfloat16": (bfloat16, (4, 6, 7, 5), [(4, 6, 7, 5)]),
    "torch-two": (torch_two, IMAGES, [IMAGES, CHANNELS, CHANNELS, CHANNELS, IMAGES]),
}


def round_to_bf16(values):
    """The values with the upper halves of their bits, which bf16 has."""
    return (values.astype(np.float32).view(np.uint32) & 0xFFFF0000).view(np.float32)


def load(path):
    """An array in float64; elements of 16 bits without a type are bf16."""
    array = np.load(path)
    if array.dtype.kind == "V":
        array = (array.view(np.uint16).astype(np.uint32) << 16).view(np.float32)
    return array.astype(np.float64)


def check(name, runner, folder, is_planted):
    """Why a program failed, or None."""
    reference, data, others = PROGRAMS[name]
    rng = np.random.default_rng(len(name))
    shapes = [data, CHANNELS, CHANNELS, CHANNELS, *others]
    # One-dimensional operands are statistics and parameters, and positive.
    arguments = [(rng.uniform(0.5, 1.5, shape) if len(shape) == 1 else rng.standard_normal(shape)).astype(np.float32)
                 for shape in shapes]
    paths = [folder / f"{name}-argument{i}.npy" for i in range(len(shapes))]
    for path, argument in zip(paths, arguments):
        if name == "bfloat16" and argument.ndim == 4:
            argument[...] = round_to_bf16(argument)
            np.save(path, (argument.view(np.uint32) >> 16).astype(np.uint16).view("V2"))
        else:
            np.save(path, argument)
    exact = [argument.astype(np.float64) for argument in arguments]
    if is_planted:
        exact[2][[0, 1]] = exact[2][[1, 0]]
    expected = reference(*exact)
    results = [folder / f"{name}-result{i}.npy" for i in range(len(expected))]
    command = [runner, Path(__file__).parent / "Inputs" / f"{name}.mlir", *[f"--arg={path}" for path in paths],
               *[f"--result={path}" for path in results]]
    run = subprocess.run(command, capture_output=True, text=True, timeout=SECONDS)
    if run.returncode != 0:
        return run.stderr.strip()
    for i, (path, value) in enumerate(zip(results, expected)):
        result = load(path)
        limit = BF16_LIMIT if name == "bfloat16" and i == 0 else LIMIT
        error = np.abs(result - value).max() / np.abs(value).max() if result.shape == value.shape else np.inf
        if not error <= limit:
            return f"result {i}: difference {error:.1e} of the largest value, expected at most {limit:.1e}"
    return None


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("runner")
    parser.add_argument("folder", type=Path)
    parser.add_argument("--plant", action="store_true")
    options = parser.parse_args()
    options.folder.mkdir(parents=True, exist_ok=True)
    failures = 0
    for name in PROGRAMS:
        if failure := check(name, options.runner, options.folder, options.plant):
            print(f"FAILED: {name}: {failure}")
            failures += 1
    print(f"{len(PROGRAMS) - failures} of {len(PROGRAMS)} programs agree")
    return failures != (len(PROGRAMS) if options.plant else 0)


if __name__ == "__main__":
    sys.exit(main())
