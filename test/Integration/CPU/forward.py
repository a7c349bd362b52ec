"""forward.py RUNNER DIR [COUNT [SEED [OPTION...]]]: compares compiled forward passes with numpy's, for random
configurations.

The reference is written from the formulas, in numpy's long double. Each result must be within the bound of
docs/numerics.md, and the runner's own `--check` must agree. The channels of an input are ordinary, or far from zero
against their spread, constant, or with one outlier, which may be the first element, and one may have a NaN or an
infinity, or consist of infinities; a constant channel must give exactly the offset. Each configuration is also
compared with wrong references, which must be noticed. The runner gets the options, --threads=2 if there are none.
Prints the seed, `N wrong references, 0 unnoticed` and `N configurations, 0 failed`.
"""

import os
import subprocess
import sys

import numpy as np

from numpy_reference import MANTISSA, SMALLEST, load, real, save

SEED = 20261128
SIZES = [[1], [1, 3, 17, 200, 1500], [1, 2, 7, 23, 100, 5000], [1, 3, 7, 13, 16], [1, 2, 3, 4, 7], [1, 2, 3, 5]]  # by rank
NAMES = ["output", "mean", "variance", "inv_std"]


def pick_constants(random, size):
    """Numbers that differ most from their mean if 32 of them are added one by one in f32."""
    numbers = random.uniform(-1, 1, (size, 64)).astype(np.float32)
    sums = np.zeros_like(numbers)
    for _ in range(32):
        sums += numbers
    error = abs(sums / np.float32(32) - numbers) / np.spacing(abs(numbers))
    return np.take_along_axis(numbers, error.argmax(axis=1, keepdims=True), axis=1)


class Configuration:
    """One op of `kind` with its types, shapes and data."""

    def __init__(self, number, random):
        def pick(values):
            return values[int(random.integers(len(values)))]

        self.number = number
        self.kind = ["training", "training", "training", "inference", "training_reduce"][number % 5]
        self.data = ["f32", "f16", "bf16", "f32", "f64"][number // 5 % 5]
        self.parameter = pick(["f32", self.data])
        rank = int(random.integers(1, 6))
        self.shape = [int(pick(SIZES[rank])) for _ in range(rank)]
        # Channels first, last, or anywhere.
        self.features = [[min(rank, 2) - 1], [rank - 1],
                         sorted(random.choice(rank, random.integers(1, min(rank, 2) + 1), replace=False).tolist())][
                             int(random.integers(3))]
        if np.prod(self.shape) > 100000:
            for dim in self.features:
                self.shape[dim] = 7
        special = number % 7
        for dim in range(rank):
            if dim not in self.features and special in (0, 1):
                self.shape[dim] = special  # M = 0 (if it is not per activation) or 1
        self.shape = tuple(self.shape)
        self.reduced = tuple(d for d in range(rank) if d not in self.features)
        self.channels = tuple(self.shape[d] for d in self.features)
        self.count = int(np.prod([self.shape[d] for d in self.reduced], dtype=int))
        self.is_dynamic, self.has_scale, self.has_offset, self.has_inv_std, self.has_shift = (
            pick([True, False]) for _ in range(5))
        self.has_inv_std &= self.kind == "inference"
        # In f32, the last one is 0.
        self.epsilon = 0.0 if self.has_inv_std else pick([1e-5, 1e-3, 0.5, 0.0, 1e-50])
        self.spread = pick({"f16": [1, 10], "bf16": [1, 3], "f64": [1, 1e4, 1e8]}.get(self.data, [1, 1e4, 1e4]))
        self.outlier = pick([0, -1])
        self.types = [pick([self.data, "f32", "f64"]), *(pick(["f32", self.parameter, "f64"]) for _ in range(3))]
        self.used = pick([[0, 1, 2, 3], [0, 1, 2, 3], [0], [0, 3], [1, 2], [1], [2]])
        self.special = pick([None] * 6 + [np.nan, np.inf, -np.inf, "all infinite"])
        self.seed = int(random.integers(2**32))
        self.accumulator = "f64" if "f64" in (self.data, *[self.parameter] * self.has_parameters()) else "f32"
        if self.kind == "inference":
            self.used = [0]
        if self.kind == "training_reduce":
            self.types, self.used = [self.accumulator] * 2, [0, 1]

    def has_parameters(self):
        return {"training": self.has_scale or self.has_offset, "inference": True,
                "training_reduce": self.has_shift}[self.kind]

    def operands(self, directory):
        """Writes the operands; returns their paths and the values in the files."""
        random = np.random.default_rng(self.seed)
        location = self.spread * random.uniform(0.5, 1.5, self.channels)
        x = self.per_channel(location) + random.normal(0, 1, self.shape) * self.per_channel(
            random.uniform(0.5, 2, self.channels))
        if x.size:
            by_channel = np.moveaxis(x, self.features, range(len(self.features))).reshape(
                (int(np.prod(self.channels)), self.count))
            by_channel[0::3] = pick_constants(random, len(by_channel[0::3]))
            by_channel[1::3, self.outlier] *= 1000 if self.data in ("f32", "f64") else 4
            if self.special == "all infinite":
                by_channel[-1] = np.inf
            elif self.special is not None:
                by_channel[-1, random.integers(self.count) * random.integers(2)] = self.special
            x = np.moveaxis(by_channel.reshape(self.channels + tuple(self.shape[d] for d in self.reduced)),
                            range(len(self.features)), self.features)
        values = {"input": np.ascontiguousarray(x)}
        if self.kind == "training_reduce":
            if self.has_shift:
                values["shift"] = location
        else:
            if self.has_scale:
                values["scale"] = random.uniform(-2, 2, self.channels)
            if self.has_offset:
                values["offset"] = random.uniform(-1, 1, self.channels)
            if self.kind == "inference":
                values["mean"] = location
                values["inv_std" if self.has_inv_std else "variance"] = random.uniform(0.5, 2, self.channels)
        paths, saved = [], {}
        for name, value in values.items():
            path = os.path.join(directory, f"{self.number}.{name}.npy")
            saved[name] = save(path, self.data if name == "input" else self.parameter, value)
            paths.append(path)
        self.names = list(values)
        return paths, saved

    def per_channel(self, values):
        return np.reshape(values, [s if d in self.features else 1 for d, s in enumerate(self.shape)])

    def mlir(self):
        def tensor(kind, shape):
            return "tensor<" + "".join(("?" if self.is_dynamic else str(s)) + "x" for s in shape) + kind + ">"

        types = {n: tensor(self.data, self.shape) if n == "input" else tensor(self.parameter, self.channels)
                 for n in self.names}
        shapes = [self.channels] * 2 if self.kind == "training_reduce" else [self.shape] + [self.channels] * 3
        results = [tensor(t, s) for t, s in zip(self.types, shapes)]
        if self.kind == "inference":
            results = results[:1]
        results += ["tensor<i64>"] * (self.kind == "training_reduce")
        attributes = f"feature_dims = array<i64: {', '.join(map(str, self.features))}>"
        if self.kind != "training_reduce":
            attributes += f", epsilon = {self.epsilon:e} : f64"
        used = ", ".join(results[i] for i in self.used)
        many = f":{len(results)}" if len(results) > 1 else ""
        values = ", ".join(f"%0#{i}" if many else "%0" for i in self.used)
        return (f"func.func @f({', '.join(f'%{n}: {t}' for n, t in types.items())}) -> ({used}) {{\n"
                f"  %0{many} = bngrad.batch_norm_{self.kind} {' '.join(f'{n}(%{n} : {t})' for n, t in types.items())}\n"
                f"    {{{attributes}}} : {', '.join(results)}\n"
                f"  return {values} : {used}\n}}\n")

    def __str__(self):
        return f"configuration {self.number}, shape {self.shape}, spread {self.spread}\n{self.mlir()}"


def reference(c, operands, wrong=None):
    """G, and (exact, A, whether it must be exact) of each result of the op; `wrong` names a deliberate mistake."""
    x = operands["input"]
    u = real(2) ** -MANTISSA[c.accumulator]
    g = 4 * u * (4 + np.log2(real(c.count) + 1))
    size = max(c.count, 1)

    if wrong == "channels exchanged":
        x = np.roll(x, 1, c.features[np.argmax(c.channels)])
    epsilon = real(c.epsilon) if c.accumulator == "f64" else real(np.float32(c.epsilon))
    if wrong == "epsilon left out":
        epsilon = real(0)

    def total(values):
        return values.sum(axis=c.reduced, keepdims=True)

    if c.kind == "training_reduce":
        shifted = x - (c.per_channel(operands["shift"]) if c.has_shift and wrong != "shift left out" else 0)
        return g, [(total(shifted), total(abs(shifted)), False), (total(shifted**2), total(shifted**2), False)]
    scale = c.per_channel(operands["scale"]) if c.has_scale else real(1)
    offset = c.per_channel(operands["offset"]) if c.has_offset else real(0)
    scale, offset = real(1) if wrong == "scale left out" else scale, real(0) if wrong == "offset left out" else offset
    if c.kind == "inference":
        second = c.per_channel(operands["inv_std" if c.has_inv_std else "variance"])
        r = second if c.has_inv_std else 1 / np.sqrt(second + epsilon)
        product = (x - c.per_channel(operands["mean"])) * (scale * r)
        return g, [(product + offset, abs(product) + abs(offset), False)]
    mean = total(x) / size
    is_constant = False
    if c.count:
        is_constant = (x.max(axis=c.reduced, keepdims=True) == x.min(axis=c.reduced, keepdims=True)) & np.isfinite(mean)
        mean = np.where(is_constant, x.min(axis=c.reduced, keepdims=True), mean)
    # A long double cannot hold the mean of numbers that are 1e8 times as far from 0 as from each other.
    residual = total(x - mean) / size
    xmu = x - mean - residual
    variance = total(xmu**2) / (size - 1 if wrong == "unbiased" else size)
    shifted = variance + epsilon
    r = 1 / np.sqrt(shifted)
    t = g * np.sqrt(mean**2 + variance)
    a_variance = np.where(is_constant, 0, (np.sqrt(variance) + 2 * t) ** 2)
    relative = 1 + a_variance / shifted
    assert np.all((g * a_variance <= shifted / 2) | np.isnan(variance)), "expected data whose bound exists"
    a_output = abs(scale) * r * (abs(xmu) * relative + np.sqrt(a_variance) + u * abs(mean)) + abs(offset)
    return g, [(xmu * (scale * r) + offset, np.where(is_constant, 0, a_output), is_constant),
               (mean, np.sqrt(a_variance) + u * abs(mean) / g, is_constant),
               (variance, a_variance, is_constant),
               (r, r * relative, False)]


def wrong_references(c):
    """The mistakes that change a used result of `c` by more than its bound."""
    # The first channel is constant.
    if c.special is not None or c.count < 2 or np.prod(c.channels) < 2:
        return
    is_precise = all(c.types[i] in ("f32", "f64") for i in c.used)
    if is_precise:
        yield "channels exchanged"
    if c.kind == "training_reduce":
        if c.has_shift:
            yield "shift left out"
        return
    if c.epsilon == 0.5 and (c.kind == "inference" or 3 in c.used or 0 in c.used):
        yield "epsilon left out"
    if 0 in c.used and c.has_scale:
        yield "scale left out"
    if 0 in c.used and c.has_offset:
        yield "offset left out"
    if c.kind == "training" and 2 in c.used and is_precise and 2 < c.count < 1000:
        yield "unbiased"


def verify(c, results, operands, wrong=None):
    """Raises an AssertionError if a result is not within its bound."""
    g, expected = reference(c, operands, wrong)
    for i, result in results.items():
        exact, absolute, must_be_exact = expected[i]
        kind = c.types[i]
        is_data = c.kind != "training_reduce" and i == 0

        def spread(values):
            return np.broadcast_to(values, c.shape) if is_data else np.reshape(
                np.broadcast_to(values, c.per_channel(np.zeros(c.channels)).shape), c.channels)

        exact, absolute, must_be_exact = spread(exact), spread(absolute), spread(must_be_exact)
        finite = np.isfinite(exact)
        assert np.array_equal(np.isnan(result), np.isnan(exact)), f"result {i}: NaN"
        assert np.all((result == exact) | finite | np.isnan(exact)), f"result {i}: infinities"
        result, exact, absolute = (np.where(finite, v, 0) for v in (result, exact, absolute))
        rounding = real(2) ** -MANTISSA[kind] * abs(exact) + real(2) ** SMALLEST[kind]
        error = abs(result - exact)
        assert np.all(error <= rounding + g * absolute), f"result {i}: {np.max(error - rounding - g * absolute)}"
        assert np.all((error <= rounding) | ~must_be_exact), f"result {i}: not exact"
        if c.kind == "training" and i == 2:
            assert np.all(result >= 0), "negative variance"


@np.errstate(all="ignore")
def check(c, runner, directory, options):
    """(number of wrong references, unnoticed ones); raises an AssertionError for a wrong result."""
    paths, operands = c.operands(directory)
    file = os.path.join(directory, f"{c.number}.mlir")
    with open(file, "w") as stream:
        stream.write(c.mlir())
    outputs = [os.path.join(directory, f"{c.number}.{i}.npy") for i in c.used]
    command = [runner, file, "--check", *options, *(f"--arg={p}" for p in paths), *(f"--result={o}" for o in outputs)]
    done = subprocess.run(command, capture_output=True, text=True)
    assert done.returncode == 0, done.stdout + done.stderr
    results = {}
    for i, path in zip(c.used, outputs):
        is_data = c.kind != "training_reduce" and i == 0
        results[i] = load(path, c.types[i], c.shape if is_data else c.channels)
    verify(c, results, operands)
    mistakes = list(wrong_references(c))
    unnoticed = []
    for wrong in mistakes:
        try:
            verify(c, results, operands, wrong)
            unnoticed.append(wrong)
        except AssertionError:
            pass
    for path in paths + outputs:
        os.remove(path)
    return len(mistakes), unnoticed


def main():
    runner, directory = sys.argv[1:3]
    count = int(sys.argv[3]) if len(sys.argv) > 3 else 40
    seed = int(sys.argv[4]) if len(sys.argv) > 4 else SEED
    options = sys.argv[5:] or ["--threads=2"]
    os.makedirs(directory, exist_ok=True)
    random = np.random.default_rng(seed)
    failed = mistakes = num_unnoticed = 0
    for number in range(count):
        c = Configuration(number, random)
        try:
            wrong, unnoticed = check(c, runner, directory, options)
            mistakes += wrong
            num_unnoticed += len(unnoticed)
            if unnoticed:
                print(f"unnoticed {unnoticed}: {c}")
        except AssertionError as error:
            failed += 1
            print(f"FAILED {c}{error}")
    print(f"seed {seed}\n{mistakes} wrong references, {num_unnoticed} unnoticed")
    print(f"{count} configurations, {failed} failed")
    return failed > 0 or num_unnoticed > 0


if __name__ == "__main__":
    sys.exit(main())
