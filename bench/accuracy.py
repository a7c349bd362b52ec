"""Errors of the forward pass of training beside those of ATen, oneDNN and JAX, as a table.

    PYTHONPATH=<folder of bngrad> python bench/accuracy.py [--output=FILE.md] [--assert] [--quick]

Needs torch, jax and flax. oneDNN is the one inside PyTorch, which computes tensors of its layout (`to_mkldnn`).
The reference is numpy's long double: two passes, and a correction of the mean.
"""

import argparse
import dataclasses
import os
import pathlib
import sys

import machine

ROOT = pathlib.Path(__file__).resolve().parent.parent
# Read by XLA when it starts.
os.environ |= {"NPROC": "2", "JAX_PLATFORMS": "cpu"}

import flax
import jax
import ml_dtypes
import numpy as np
import torch
from flax import linen

import bngrad

CHANNELS = 64
# 20000 elements in each channel.
IMAGES, ROWS, COLUMNS = 8, 50, 50
UNITS = {"f32": 2.0**-24, "bf16": 2.0**-8}
# By how many u another library is not to be better, and by how many it may be, with another order of the sums.
MARGIN, LIMIT = 2.0, 4.0
QUANTITIES = ("mean", "inv_std", "y")


@dataclasses.dataclass
class Case:
    title: str
    input: np.ndarray  # N, C, H, W
    epsilon: float = 0.0
    # Whether the mean is at most 1/(8G) standard deviations, so that G A_v is of the order of G.
    is_near: bool = True

    @property
    def is_bf16(self):
        return self.input.dtype == ml_dtypes.bfloat16


def make_cases(is_quick):
    random = np.random.default_rng(2022)
    shape = (IMAGES, CHANNELS, ROWS, COLUMNS)

    def normal(mean=0.0, deviation=1.0, shape=shape):
        return (mean + deviation * random.standard_normal(shape)).astype(np.float32)

    outlier = normal()
    outlier[3, :, 7, 11] = 1e6
    first = normal(1e4)
    first[0, :, 0, 0] = 0
    long = (10, 2, 1000, 1000)
    cases = [
        Case("N(0, 1)", normal()),
        Case("mean/std 100", normal(100)),
        Case("mean/std 1e4", normal(1e4)),
        Case("mean/std 1e6", normal(1e6), is_near=False),
        Case("all 0.1, epsilon 1e-5", np.full(shape, 0.1, np.float32), 1e-5, is_near=False),
        Case("one outlier of 1e6", outlier),
        Case("first element 0, others mean/std 1e4", first),
        Case("N(0, 1e-30)", normal(0, 1e-15)),
        Case("bf16, mean/std 100", normal(100).astype(ml_dtypes.bfloat16)),
    ]
    if is_quick:
        return cases
    return [*cases, Case("1e7 elements N(0, 1)", normal(shape=long)),
            Case("1e7 elements 0.1 ± 0.001", normal(0.1, 0.001, long))]


class Exact:
    """The exact results, and the bounds of docs/numerics.md, section 10, with scale 1 and offset 0."""

    def __init__(self, case):
        x = case.input.astype(np.longdouble).swapaxes(0, 1).reshape(case.input.shape[1], -1)
        count, epsilon = x.shape[1], np.longdouble(np.float32(case.epsilon))
        u, u_out = UNITS["f32"], UNITS["bf16" if case.is_bf16 else "f32"]
        g = 4 * u * (4 + np.log2(np.longdouble(count + 1)))
        m = x.mean(1, keepdims=True)
        m += (x - m).mean(1, keepdims=True)
        x -= m
        v = (x**2).mean(1, keepdims=True)
        constant = case.input.swapaxes(0, 1).reshape(x.shape)
        is_constant = (constant == constant[:, :1]).all(1, keepdims=True)
        m, v = np.where(is_constant, constant[:, :1].astype(np.longdouble), m), np.where(is_constant, 0, v)
        x *= ~is_constant
        r = 1 / np.sqrt(v + epsilon)
        root = np.where(is_constant, 0, np.sqrt(v) + 2 * g * np.sqrt(m**2 + v))
        relative = 1 + root**2 / (v + epsilon)
        self.values = {"mean": m[:, 0], "inv_std": r[:, 0], "y": x * r}
        y_error = np.where(is_constant, 0, g * r * (abs(x) * relative + root + u * abs(m)))
        self.bounds = {"mean": (g * root + 2 * u * abs(m))[:, 0], "inv_std": (g * r * relative + u * r)[:, 0],
                       "y": y_error + u_out * abs(x * r)}
        size = np.maximum(abs(m), np.where(is_constant, 0, np.sqrt(v)))[:, 0]
        self.units = {"mean": u * size, "inv_std": u * self.values["inv_std"],
                      "y": u_out * np.maximum(abs(self.values["y"]), 1)}
        self.ratio = float(np.max(abs(m) / np.sqrt(np.where(is_constant, np.inf, v))))
        self.limit = float(1 / (8 * g))

    def measure(self, name, result):
        """The largest error in u, and in bounds."""
        exact = self.values[name]
        result = np.asarray(result).astype(np.longdouble)
        if name == "y":
            result = result.swapaxes(0, 1).reshape(exact.shape)
        error = abs(result - exact)
        with np.errstate(divide="ignore", invalid="ignore"):
            return [float(np.where(error > 0, error / each, 0).max()) for each in (self.units[name], self.bounds[name])]


def to_torch(array):
    if array.dtype == ml_dtypes.bfloat16:
        return torch.from_numpy(array.view(np.int16).copy()).view(torch.bfloat16)
    return torch.from_numpy(array)


def from_torch(tensor):
    return tensor.float().numpy()


def run_bngrad(case, is_last):
    if is_last:
        input = np.ascontiguousarray(case.input.transpose(0, 2, 3, 1)).transpose(0, 3, 1, 2)
    else:
        input = case.input
    y, mean, _, inv_std = bngrad.batch_norm_training(input, epsilon=case.epsilon)
    return {"mean": mean, "inv_std": inv_std, "y": y}


def run_aten(case, is_last):
    memory_format = torch.channels_last if is_last else torch.contiguous_format
    input = to_torch(case.input).contiguous(memory_format=memory_format)
    ones, zeros = torch.ones(input.shape[1]), torch.zeros(input.shape[1])
    y, mean, inv_std = torch.ops.aten.native_batch_norm(input, ones, zeros, None, None, True, 0.1, case.epsilon)
    return {"mean": mean.numpy(), "inv_std": inv_std.numpy(), "y": from_torch(y)}


def of_variance(mean, variance, y, epsilon):
    """The results of a library that returns the variance: its gradient computes inv_std from it in f32."""
    with np.errstate(divide="ignore", invalid="ignore"):
        inv_std = np.float32(1) / np.sqrt(np.asarray(variance) + np.float32(epsilon))
    return {"mean": np.asarray(mean), "inv_std": inv_std, "y": y}


def run_onednn(case):
    if case.is_bf16:
        return None
    input = torch.from_numpy(case.input)
    ones, zeros = torch.ones(input.shape[1]), torch.zeros(input.shape[1])
    results = torch.ops.aten.native_batch_norm(input.to_mkldnn(), ones, zeros, zeros.clone(), ones.clone(), True, 0.1,
                                               case.epsilon)
    y, mean, variance = (each.to_dense().numpy() for each in results)
    return of_variance(mean, variance, y, case.epsilon)


def run_jax(case, is_fast):
    """flax, whose running statistics with momentum 0 are those of the batch."""
    layer = linen.BatchNorm(use_running_average=False, axis=1, momentum=0.0, epsilon=case.epsilon, use_fast_variance=is_fast,
                            dtype=case.input.dtype)
    variables = layer.init(jax.random.key(0), case.input[:1])
    y, updates = jax.jit(lambda x: layer.apply(variables, x, mutable=["batch_stats"]))(case.input)
    statistics = updates["batch_stats"]
    return of_variance(statistics["mean"], statistics["var"], np.asarray(y), case.epsilon)


OURS = {"BNGrad NCHW": lambda case: run_bngrad(case, False), "BNGrad NHWC": lambda case: run_bngrad(case, True)}
PEERS = {
    "ATen NCHW": lambda case: run_aten(case, False),
    "ATen NHWC": lambda case: run_aten(case, True),
    "oneDNN": run_onednn,
    "JAX fast": lambda case: run_jax(case, True),
    "JAX two-pass": lambda case: run_jax(case, False),
}


def to_text(number):
    if number is None:
        return "none"
    if not np.isfinite(number):
        return "inf"
    if 0 < number < 0.0995 or number >= 9999.5:
        return f"{number:.1e}".replace("e+0", "e").replace("e-0", "e-")
    return f"{number:.2g}" if number < 9.95 else f"{number:.0f}"


def measure_case(case):
    """A row (title, quantity, errors in u, errors in bounds; by library) for each quantity."""
    exact = Exact(case)
    if case.is_near and exact.ratio > exact.limit:
        raise ValueError(f"{case.title}: expected mean/std of at most 1/(8G) = {exact.limit:.3g}, got {exact.ratio:.3g}")
    results = {name: run(case) for name, run in (OURS | PEERS).items()}
    rows = []
    for quantity in QUANTITIES:
        measured = {name: result and exact.measure(quantity, result[quantity]) for name, result in results.items()}
        rows.append((case.title, quantity, *({name: each and each[place] for name, each in measured.items()}
                                             for place in range(2))))
    return rows


def list_misses(rows):
    """Errors above their bounds, and lines that name where another library is better by more than `MARGIN`."""
    broken, worse = [], []
    for title, quantity, errors, shares in rows:
        name, best = min(((name, errors[name]) for name in PEERS if errors[name] is not None), key=lambda pair: pair[1])
        for ours in OURS:
            if not shares[ours] <= 1:
                broken.append(f"{title}, {quantity}, {ours}: {shares[ours]:.3g} bounds")
            if not errors[ours] <= best + MARGIN:
                worse.append((errors[ours] - best, f"{title}, {quantity}: {ours} {errors[ours]:.2f} u, {name} {best:.2f} u"))
    return broken, worse


def make_table(rows, place):
    lines = ["| data | result | " + " | ".join(OURS | PEERS) + " |", "|---" * 2 + "|---:" * len(OURS | PEERS) + "|"]
    return lines + ["| " + " | ".join([*row[:2], *map(to_text, row[place].values())]) + " |" for row in rows]


def report(rows):
    described = machine.describe(ROOT, 2)
    isa = bngrad.explain((4, 3, 5), "f32", rounds=1).isa
    onednn = next(line for line in torch.__config__.show().splitlines() if "MKL-DNN" in line).split("MKL-DNN ")[1].split()[0]
    broken, worse = list_misses(rows)
    listed = [f"* {line}" for line in [*broken, *(line for _, line in worse)]] or ["* none"]
    return [
        "# Errors of the forward pass",
        "",
        f"`bench/accuracy.py`: BNGrad ({isa}), PyTorch {torch.__version__}, the oneDNN {onednn} inside it, jax {jax.__version__} with",
        f"flax {flax.__version__}; {described['cpu']}, two threads, commit `{described['commit']}`, {described['date']}. Training with scale 1,",
        f"offset 0 and epsilon 0 if the row names no other; {CHANNELS} channels of {IMAGES * ROWS * COLUMNS} elements, or 2 of 1e7. JAX fast is flax's",
        "default, E[x²] - E[x]². The reference is computed in long double.",
        "",
        "## In u",
        "",
        "The largest error, in units of u = 2^-24, or 2^-8 for a y of bf16: relative for inv_std, relative to the larger of",
        "mean and standard deviation for the mean, and to the larger of 1 and |y| for y. oneDNN and JAX return a variance;",
        "their inv_std is computed from it in f32.",
        "",
        *make_table(rows, 2),
        "",
        f"Errors above their bound, and errors larger than the best of the others by more than {MARGIN:g} u:",
        "",
        *listed,
        "",
        "## In bounds",
        "",
        "The largest ratio of an error to the bound of [docs/numerics.md](../../docs/numerics.md#10-the-forward-pass).",
        "",
        *make_table(rows, 3),
    ]


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--output", type=pathlib.Path, default=ROOT / "bench/results/accuracy.md")
    parser.add_argument("--assert", dest="asserts", action="store_true",
                        help=f"write nothing; fail if an error is above its bound, or {LIMIT:g} u larger than another's")
    parser.add_argument("--quick", action="store_true", help="without the channels of 1e7 elements")
    arguments = parser.parse_args()
    torch.set_num_threads(2)
    rows = [row for case in make_cases(arguments.quick) for row in measure_case(case)]
    if not arguments.asserts:
        arguments.output.write_text("\n".join(report(rows)) + "\n", encoding="utf-8")
    print("\n".join(report(rows)))
    broken, worse = list_misses(rows)
    failures = broken + [line for difference, line in worse if difference > LIMIT]
    for line in failures if arguments.asserts else []:
        print("FAILED:", line)
    return 1 if arguments.asserts and failures else 0


if __name__ == "__main__":
    sys.exit(main())
